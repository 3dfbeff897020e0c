//! What condensed diffs guarantee.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

mod guarantees;

use guarantees::{Case, held, key, pins_of};
use larder_condense::{Condensed, ContentType, essential};
use larder_text::pointer::Pointer;
use larder_text::tokens::Counter;
use proptest::prelude::*;

fn case(text: &str, target: usize) -> Case<'_> {
    Case::new(ContentType::Diff, text, target)
}

fn condensed(text: &str, target: usize) -> Condensed {
    case(text, target).run(&Counter::o200k()).unwrap()
}

fn check(text: &str, target: usize, query: Option<&str>, pins: &[String]) {
    held(&Case { query, pins, ..case(text, target) }, &Counter::o200k());
}

const SCRAPS: [&str; 36] = [
    "diff --git a/src/a.rs b/src/a.rs\nindex 11..22 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n",
    "diff --git a/src/b.rs b/src/b.rs\nnew file mode 100644\n--- /dev/null\n+++ b/src/b.rs\n",
    "diff --git a/src/c.rs b/lib/c.rs\nsimilarity index 100%\nrename from src/c.rs\nrename to lib/c.rs\n",
    "diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n",
    "diff --git a/e.png b/e.png\nindex 1..2\nBinary files a/e.png and b/e.png differ\n",
    "diff --git a/f b/f\nGIT binary patch\nliteral 10\nzcmZ\n\n",
    "diff --git a/Cargo.lock b/Cargo.lock\n--- a/Cargo.lock\r\n+++ b/Cargo.lock\r\n",
    "diff --git \"a/\\303\\244 b\" \"b/\\303\\244 b\"\nold mode 100644\nnew mode 100755\n",
    "diff --cc m\nindex 1,2..3\n--- a/m\n+++ b/m\n@@@ -1,2 -1,2 +1,2 @@@\n  x\n- y\n -z\n++w\n",
    "diff --git ",
    "Index: s.c\n=====\n",
    "Only in a: b\n",
    "Binary files a and b differ\n",
    "--- x\n+++ y\n",
    "@@ -1,3 +1,3 @@ fn main() {\n x\n-old 1\n+new 1\n y\n",
    "@@ -10,2 +10,3 @@\n a\n+added 17\n b\n",
    "@@ -1,40 +1,40 @@\n",
    "@@ -0,0 +1,99999999999999999999 @@\n",
    "@@ -1,2 +1,2\n",
    "@@@@@@@@@@@@@@@@@@@@@@@@\n",
    "-removed line\n",
    "+added line with words\n",
    " context\n",
    "\n",
    "\r\n",
    "\\ No newline at end of file\n",
    "+diff --git a/n b/n\n",
    "[… L3-9]\n",
    "[Condensed diff: 3 files, +1 -2. Full text: lp1-0000000000000-000000.\n",
    "lp1-",
    "\0\0\n",
    "+吾輩は猫である。\n",
    "commit 3ea751c087f3\nAuthor: Ann <ann@example.org>\n\n    Mend it\n\n",
    "-- \n2.39.2\n",
    "+aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\u{1b}[32m+green\u{1b}[0m\n",
];

fn diffs() -> impl Strategy<Value = String> {
    let scraps = prop::collection::vec((prop::sample::select(SCRAPS.to_vec()), 1..5_usize), 0..90)
        .prop_map(|scraps| scraps.into_iter().map(|(scrap, times)| scrap.repeat(times)).collect());
    let files =
        prop::collection::vec(("[a-c]/[a-e]{1,3}", prop::collection::vec("[-+ ][a-z ]{0,30}", 0..40)), 0..12)
            .prop_map(|files| files.into_iter().map(|(name, lines)| file(&name, &lines)).collect());
    prop_oneof![3 => scraps, 3 => files, 1 => any::<Vec<char>>().prop_map(String::from_iter)]
}

#[test]
fn what_is_left_out_has_the_counts_of_its_hunks() {
    let hunk = |at: usize, added: usize, removed: usize| {
        let lines = |sign: char, count: usize| -> String {
            (0..count).map(|n| format!("{sign}value {n} of the configuration at {at}\n")).collect()
        };
        format!("@@ -{at},{removed} +{at},{added} @@\n{}{}", lines('-', removed), lines('+', added))
    };
    let hunks: String = (1..=8).map(|n| hunk(n * 1_000, 40 + n, 20 + n)).collect();
    let text = format!("diff --git a/a.toml b/a.toml\n--- a/a.toml\n+++ b/a.toml\n{hunks}");
    let shown = condensed(&text, 900).text;
    let (mut counts, mut sum) = (0, (0, 0));
    for line in shown.lines().skip(2) {
        let Some((_, after)) = line.split_once(']').filter(|_| line.contains("[…")) else {
            sum.0 += usize::from(line.starts_with('+'));
            sum.1 += usize::from(line.starts_with('-'));
            continue;
        };
        for hunk in after.split(',') {
            let numbers: Vec<usize> =
                hunk.split_whitespace().filter_map(|word| word[1..].parse().ok()).collect();
            let [added, removed] = numbers[..] else { panic!("{line}") };
            (counts, sum) = (counts + 1, (sum.0 + added, sum.1 + removed));
        }
    }
    assert_eq!(sum, ((1..=8).map(|n| 40 + n).sum(), (1..=8).map(|n| 20 + n).sum()), "{shown}");
    assert!(counts >= 8, "{shown}");
}

/// A well-formed file of one hunk.
fn file(name: &str, lines: &[String]) -> String {
    let count = |sign: char| lines.iter().filter(|line| !line.starts_with(sign)).count();
    format!(
        "diff --git a/{name} b/{name}\nindex 1..2 100644\n--- a/{name}\n+++ b/{name}\n@@ -1,{} +1,{} @@\n{}",
        count('+'),
        count('-'),
        lines.iter().map(|line| format!("{line}\n")).collect::<String>()
    )
}

proptest! {
    #[test]
    fn any_diff_meets_its_target_or_is_refused_with_the_number_it_needs(
        text in diffs(),
        target in prop_oneof![0..80_usize, 80..700_usize, 700..2_000_usize],
        query in prop::option::of("[a-z ]{0,30}|added line"),
        places in prop::collection::vec((any::<prop::sample::Index>(), 0..60_usize), 0..3),
    ) {
        check(&text, target, query.as_deref(), &pins_of(&text, &places));
    }

    #[test]
    fn our_own_pointers_survive_in_diffs(before in diffs(), after in diffs(), target in 60..400_usize) {
        let pointer = Pointer::lines(key().mint(larder_text::hash::ContentHash::new(b"elsewhere")), 3, 9);
        check(&format!("{before}{pointer} {after}"), target, None, &[]);
    }

    #[test]
    fn what_is_essential_names_every_file(names in prop::collection::btree_set("[a-c]/[a-z]{1,6}", 1..40)) {
        let text: String = names.iter().map(|name| file(name, &["+x".to_owned(), "-y".to_owned()])).collect();
        let target = case(&text, 0).with(&Counter::o200k(), essential).unwrap();
        let condensed = condensed(&text, target);
        for name in &names {
            prop_assert!(condensed.text.contains(&name[2..]), "{} in {}", name, condensed.text);
        }
    }
}

#[test]
fn a_large_diff_shrinks_to_a_few_hundred_tokens() {
    let line = |n: usize| {
        format!("{}It was line {n} of a long tale, and not the last of them.", ['+', '-', ' '][n % 3])
    };
    let lines: Vec<String> = (0..5_000).map(line).collect();
    let text = file("book/tale.txt", &lines);
    let condensed = condensed(&text, 247); // R3-5.17
    assert!(condensed.original_tokens > 80_000, "{}", condensed.original_tokens);
    assert!(condensed.text.contains("modified book/tale.txt +1667 -1667\n"), "{}", condensed.text);
    assert!(condensed.text.contains("\n@@ -1,3333 +1,3333 @@\n"), "{}", condensed.text);
    assert!(
        condensed.text.contains(&lines[0]) && condensed.text.contains(&lines[4_999]),
        "{}",
        condensed.text
    );
}

#[test]
fn where_not_all_names_fit_what_people_wrote_is_named_first() {
    let names = (0..300).map(|n| format!("crates/part{n}/Cargo.lock")).chain(["src/main.rs".to_owned()]);
    let text: String = names.map(|name| file(&name, &["+x".to_owned(), "-y".to_owned()])).collect();
    let condensed = condensed(&text, 200);
    assert!(condensed.text.contains("modified src/{main.rs +1 -1}"), "{}", condensed.text);
    assert!(
        condensed.text.starts_with("[Condensed diff") && condensed.text.contains("301 files"),
        "{}",
        condensed.text
    );
    assert!(!condensed.gaps.is_empty());
}

#[test]
fn hunks_that_answer_the_query_are_shown_first() {
    let lines = |n: usize| {
        let word = if n == 37 { "zeppelin" } else { "lamp" };
        (0..20).map(|i| format!("+the {word} {n} is number {i}")).collect::<Vec<_>>()
    };
    let text: String = (0..60).map(|n| file(&format!("src/f{n}.rs"), &lines(n))).collect();
    let asked = Case { query: Some("where is the zeppelin?"), ..case(&text, 1_500) };
    let condensed = asked.run(&Counter::o200k()).unwrap();
    assert!(condensed.text.contains("+the zeppelin 37 is number 0\n"), "{}", condensed.text);
}

#[test]
fn every_status_is_named() {
    let text = format!(
        "{}{}{}{}{}{}",
        SCRAPS[2],
        SCRAPS[4],
        SCRAPS[7],
        "diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n",
        file("long", &vec!["+some words of a long file".to_owned(); 300])
    );
    let condensed = condensed(&text, 300);
    for named in [
        "renamed src/c.rs → lib/c.rs\n",
        "modified e.png binary\n",
        "modified ä b mode 100644 → 100755\n",
        "deleted d +0 -1",
        "added n +1 -0",
        "modified long +300 -0\n",
    ] {
        assert!(condensed.text.contains(named), "{named} in {}", condensed.text);
    }
}

#[test]
fn hostile_diffs_are_condensed() {
    for unit in SCRAPS {
        check(&unit.repeat(60_000 / unit.len()), 300, Some("a b"), &[]);
    }
    check(&file("big", &[format!("+{}", "x1,".repeat(3_400_000))]), 300, None, &[]);
}
