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

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the core, and the modules that each may import besides itself: pack → recipe → output, and policy over
/// pack.
const MAY_IMPORT: [(&str, &[&str]); 4] =
    [("pack", &[]), ("recipe", &["pack"]), ("policy", &["pack"]), ("output", &["pack", "recipe"])];

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
    assert!(seen > 10, "the scan finds imports: {seen}");
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
    let named: Vec<&str> =
        named.into_iter().filter(|name| name.contains('_') && !name.contains(' ')).collect();
    assert!(named.len() > 40, "{named:?}");
    let code: String = sources("crates").into_iter().map(|(_, text)| text).collect();
    let missing: Vec<&&str> = named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names tests that do not exist: {missing:?}");
}

/// Whether a word is the id of a requirement: `R3-4.28`, `R3-4`, `C34`, `E13`, `N15`.
fn is_requirement(word: &str) -> bool {
    let number = |text: &str, digits: usize| {
        (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if let Some(rest) = word.strip_prefix('R') {
        return rest.split_once('-').is_some_and(|(seed, row)| {
            let (section, item) =
                row.split_once('.').map_or((row, None), |(section, item)| (section, Some(item)));
            matches!(seed, "0" | "1" | "2" | "3" | "4")
                && number(section, 2)
                && item.is_none_or(|item| number(item, 3))
        });
    }
    let rest = word.strip_prefix(['C', 'E', 'N']).unwrap_or_default();
    number(rest, if word.starts_with('C') { 3 } else { 2 })
}

/// The ids of requirements that a text cites.
fn requirements(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
    let words = text.split(move |char| !is_part(char)).map(|word| word.trim_end_matches(['.', '-']));
    words.filter(|word| is_requirement(word))
}

#[test]
fn ids_of_requirements_are_recognised() {
    let found: Vec<&str> =
        requirements("(R3-4.28, C34; E13). R0-12 to N15. RC34 C3po A4 C1234 R5-1 E123").collect();
    assert_eq!(found, ["R3-4.28", "C34", "E13", "R0-12", "N15"]);
}

#[test]
fn every_cited_requirement_is_listed_and_every_listed_one_is_cited() {
    let mut cited: BTreeMap<String, String> = BTreeMap::new();
    let crates = files("crates").into_iter().filter(|path| path.ends_with(".rs") && path.contains("/src/"));
    for path in crates.chain(files("cookbook")) {
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        let comment = if path.ends_with(".rs") { "//" } else { "#" };
        for line in text.lines().filter_map(|line| line.find(comment).map(|start| &line[start..])) {
            for id in requirements(line) {
                cited.entry(id.to_owned()).or_insert_with(|| path.clone());
            }
        }
    }
    let page = fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let listed: Vec<&str> = rows.map(|(id, _)| id).filter(|id| is_requirement(id)).collect();
    let unlisted: Vec<_> = cited.iter().filter(|(id, _)| !listed.contains(&id.as_str())).collect();
    assert!(unlisted.is_empty(), "add to docs/requirements.md, or do not cite: {unlisted:?}");
    let uncited: Vec<_> = listed.iter().filter(|id| !cited.contains_key(**id)).collect();
    assert!(uncited.is_empty(), "nothing cites these rows of docs/requirements.md; remove them: {uncited:?}");
}
