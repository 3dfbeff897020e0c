//! The house rules that no compiler checks: who may import whom inside this crate, and what every source file of the
//! repository looks like.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the core, and the modules that each may import besides itself. `beside`, `hash`, `pointer` and
/// `message` are the leaves that all may use. Nothing points leftwards in tokens → content → {recall, recipe, document,
/// trace} → pack → output.
const MAY_IMPORT: [(&str, &[&str]); 13] = [
    ("beside", &[]),
    ("hash", &["beside"]),
    ("message", &[]),
    ("pointer", &["hash"]),
    ("tokens", &["beside", "hash", "message", "pointer"]),
    ("content", &["beside", "hash", "message", "pointer", "tokens"]),
    ("recall", &["content"]),
    ("recipe", &["content", "hash", "message", "pointer", "tokens"]),
    ("document", &["content", "hash", "message", "pointer", "tokens"]),
    ("trace", &["content", "hash", "message", "pointer", "tokens"]),
    ("pack", &["content", "document", "hash", "message", "pointer", "recipe", "tokens", "trace"]),
    ("policy", &["content", "hash", "message", "pack", "pointer", "tokens"]),
    ("output", &["content", "document", "hash", "message", "pack", "pointer", "recipe", "tokens", "trace"]),
];

/// Most lines of a file, its tests left out. More needs a reason among its first lines that begins so.
const MOST_LINES: usize = 500;
const REASON: &str = "Longer than 500 lines because ";
/// Most lines of a test module inside the file that it tests.
const MOST_INLINE_TEST_LINES: usize = 150;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every file under `dir`, as its path inside the repository, in order.
fn files(dir: &str) -> Vec<String> {
    fn collect(root: &Path, dir: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("__pycache__") {
                continue;
            }
            if path.is_dir() {
                collect(root, &path, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    collect(&root, &root.join(dir), &mut found);
    found.sort();
    assert!(!found.is_empty(), "{dir} is empty");
    found
}

fn sources(dir: &str) -> Vec<(String, String)> {
    let rust = files(dir).into_iter().filter(|path| path.ends_with(".rs"));
    rust.map(|path| (fs::read_to_string(root().join(&path)).unwrap(), path))
        .map(|(text, path)| (path, text))
        .collect()
}

/// Whether all of a file is test code or measures.
fn is_test(path: &str) -> bool {
    ["/tests/", "/benches/", "/examples/"].iter().any(|folder| path.contains(folder))
        || path.ends_with("_tests.rs")
        || path.ends_with("/tests.rs")
        || path.starts_with("crates/testkit/")
}

/// The lines before the test module at the end, and the number of lines of that.
fn divide(text: &str) -> (Vec<&str>, usize) {
    let lines: Vec<&str> = text.lines().collect();
    let inline =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    let end = lines.windows(2).position(inline).unwrap_or(lines.len());
    (lines[..end].to_vec(), lines.len() - end)
}

/// The modules that a line names by `crate::`: one, or several in braces.
fn named(line: &str) -> Vec<&str> {
    let is_part = |char: char| !(char.is_ascii_alphanumeric() || char == '_');
    let mut found = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        if line[..at].ends_with(|char: char| char.is_ascii_alphanumeric() || char == '_' || char == '$') {
            continue;
        }
        let rest = &line[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            // The first word of each member; members of inner braces are named as if they stood outside, which can
            // only make the check stricter.
            Some(list) => found
                .extend(list.split([',', '{', '}']).filter_map(|member| member.trim().split(is_part).next())),
            None => found.extend(rest.split(is_part).next()),
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

#[test]
fn modules_of_the_core_import_in_one_direction() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (path, text) in sources("crates/core/src").iter().filter(|(path, _)| !is_test(path)) {
        let inside = path.trim_start_matches("crates/core/src/");
        let module = inside.split(['/', '.']).next().unwrap();
        if module == "lib" {
            continue;
        }
        let (_, allowed) = MAY_IMPORT
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("{path}: give module {module} its place in MAY_IMPORT"));
        for (number, line) in divide(text).0.iter().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for name in named(line) {
                seen += 1;
                if name != module && !allowed.contains(&name) {
                    wrong.push(format!("{path}:{}: {module} must not import {name}", number + 1));
                }
            }
        }
    }
    assert!(seen > 30, "the scan finds imports: {seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the fence on dependencies cannot see: files, sockets, processes, the environment and clocks of the standard
/// library. `std::io` is free, since its traits read from memory as well.
#[test]
fn the_core_calls_no_io_of_the_standard_library() {
    let forbidden = ["env", "fs", "net", "os", "process", "time"].map(|name| format!("std::{name}"));
    let mut wrong = Vec::new();
    for (path, text) in sources("crates/core/src").iter().filter(|(path, _)| !is_test(path)) {
        for (number, line) in divide(text).0.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if forbidden.iter().any(|name| code.contains(name.as_str())) || code.contains("use std::{") {
                wrong.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_scan_for_imports_sees_every_form() {
    assert_eq!(named("use crate::pack::{Part, Slot};"), ["pack"]);
    assert_eq!(named("use crate::{hash::ContentHash, pack};"), ["hash", "pack"]);
    assert_eq!(named("let part: crate::pack::Part = crate::output::of(x);"), ["pack", "output"]);
    assert_eq!(named("use mycrate::pack;"), [""; 0]);
}

#[test]
fn every_source_file_says_what_it_owns() {
    let missing: Vec<String> = sources("crates")
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//! "))
        .map(|(path, _)| path)
        .collect();
    assert!(
        missing.is_empty(),
        "begin with `//!`, what the file owns and what it must not know: {missing:?}"
    );
}

#[test]
fn no_file_is_too_long() {
    let mut wrong = Vec::new();
    for (path, text) in sources("crates").iter().filter(|(path, _)| !is_test(path)) {
        let (code, tests) = divide(text);
        if code.len() > MOST_LINES && !code.iter().take(12).any(|line| line.contains(REASON)) {
            wrong.push(format!("{path}: {} lines without tests, {MOST_LINES} allowed", code.len()));
        }
        if tests > MOST_INLINE_TEST_LINES {
            wrong.push(format!("{path}: {tests} lines of tests; move them to a file of their own"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_unfinished_is_left() {
    let unfinished = ["todo", "dbg", "unimplemented"].map(|name| format!("{name}!("));
    let mut wrong = Vec::new();
    for (path, text) in sources("crates") {
        for (number, line) in text.lines().enumerate() {
            if unfinished.iter().any(|mark| line.contains(mark.as_str())) {
                wrong.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What ships must not name a place that only one machine has.
#[test]
fn no_path_of_a_machine_is_written_down() {
    let places = ["work", "root", "Users"].map(|name| format!("/{name}/"));
    let mut wrong = Vec::new();
    for dir in
        ["crates", "cookbook", "evals", ".ci", "docs"].into_iter().filter(|dir| root().join(dir).is_dir())
    {
        for path in files(dir) {
            let text = String::from_utf8_lossy(&fs::read(root().join(&path)).unwrap()).into_owned();
            for (number, line) in text.lines().enumerate() {
                // After a letter it is the middle of some other path or address.
                let stands = |place: &String| {
                    line.match_indices(place.as_str()).any(|(at, _)| {
                        !line[..at].ends_with(|char: char| char.is_alphanumeric() || ".-_~}".contains(char))
                    })
                };
                if places.iter().any(stands) {
                    wrong.push(format!("{path}:{}: {}", number + 1, line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An invariant without a test is only a wish, and a test that was renamed holds nothing.
#[test]
fn every_test_that_the_architecture_names_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit());
    let named: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    let named: Vec<&str> = named.into_iter().filter(|name| name.contains('_') && !name.contains(' ')).collect();
    assert!(named.len() > 40, "{named:?}");
    let code: String = sources("crates").into_iter().map(|(_, text)| text).collect();
    let missing: Vec<&&str> = named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names tests that do not exist: {missing:?}");
}
