//! Tests of diffs: parsing, names, hunks and proof.

use proptest::prelude::*;

use super::parse::Status;
use super::*;
use crate::content_type::ContentType;
use crate::engine::verify::check_draft;

proptest! {
    #[test]
    fn every_draft_is_proved(
        lines in prop::collection::vec(
            "diff --git a/[a-c]/[a-c] b/[a-c]/[a-c]|--- a/x|\\+\\+\\+ b/x|@@ -1,[0-9] \\+1,[0-9] @@|[-+ ][a-z]{0,9}\\r?|rename from a|index 1..2|[\\x00-\\u{ff}]{0,20}",
            0..80,
        ),
        target in 20..400_usize,
    ) {
        check_draft(CONDENSER, ContentType::Diff, &lines.join("\n"), target);
    }
}

#[test]
fn headers_in_every_style_are_read() {
    for (text, name, status, counts) in [
        (
            "diff --git a/x y b/x y\nindex 1..2 100644\n--- a/x y\n+++ b/x y\n@@ -1 +1 @@\n-a\n+b\n",
            "x y",
            Status::Modified,
            (1, 1),
        ),
        (
            "diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nold mode 100644\nnew mode 100755\n",
            "ä",
            Status::Modified,
            (0, 0),
        ),
        (
            "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n",
            "b",
            Status::Renamed,
            (0, 0),
        ),
        (
            "diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n--- b\n",
            "a",
            Status::Deleted,
            (0, 2),
        ),
        (
            "--- old.txt\t2024-05-01\r\n+++ new.txt\t2024-05-02\r\n@@ -0,0 +1 @@\r\n+a\r\n\\ No newline at end of file\r\n",
            "new.txt",
            Status::Modified,
            (1, 0),
        ),
        (
            "Index: a.c\n===================================================================\n--- a.c\t(revision 1)\n+++ a.c\t(working copy)\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n",
            "a.c",
            Status::Modified,
            (1, 1),
        ),
        (
            "diff --cc a.c\nindex 1,2..3\n--- a/a.c\n+++ b/a.c\n@@@ -1,2 -1,2 +1,2 @@@\n  x\n- y\n -z\n++w\n",
            "a.c",
            Status::Modified,
            (1, 2),
        ),
        ("@@ -1 +1 @@\n-a\n+b\n", "(unnamed)", Status::Modified, (1, 1)),
        ("@@ -1,999999999999999999 +1 @@\n-a\n+b\n", "(unnamed)", Status::Modified, (1, 1)),
    ] {
        let diff = ParsedDiff::parse(text);
        let [file] = &diff.files[..] else { panic!("{text}: {diff:?}") };
        assert_eq!((file.name(), file.status, (file.added, file.removed)), (name, status, counts), "{text}");
        assert_eq!(file.lines, 0..diff.lines.len(), "{text}");
    }
}

#[test]
fn a_diff_of_diffs_is_one_file() {
    let inner = "+diff --git a/x b/x\n+--- a/x\n++++ b/x\n+@@ -1 +1 @@\n+-a\n++b\n";
    let text = format!(
        "diff --git a/p b/p\n--- a/p\n+++ b/p\n@@ -0,0 +1,6 @@\n{inner}diff --git a/q b/q\nnew file mode 100644\n"
    );
    let diff = ParsedDiff::parse(&text);
    let names: Vec<_> = diff.files.iter().map(|file| (file.name(), file.status, file.added)).collect();
    assert_eq!(names, [("p", Status::Modified, 6), ("q", Status::Added, 0)]);
}

#[test]
fn only_headers_at_the_beginning_of_lines_look_like_a_diff() {
    assert!(looks_like("diff --git a/x b/x\nrename from x\n"));
    assert!(looks_like("Fix it\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"));
    assert!(looks_like("Index: x\r\n=====\r\n--- x\r\n+++ x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n"));
    for other in [
        "",
        "diff --git is a command\n",
        "# Title\n```diff\n--- a\n+++ b\n@@ -1 +1 @@\n```\n",
        "---\ntitle: x\n---\n",
        "--- a\n",
    ] {
        assert!(!looks_like(other), "{other:?}");
    }
}
