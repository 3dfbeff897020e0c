//! Tests of cutting lines and bytes.

use super::*;
use proptest::prelude::*;

fn lines(content: &[u8], first: usize, last: usize) -> Result<Vec<u8>, SelectError> {
    cut(content, Fragment::Lines { first, last })
}

fn bytes(content: &[u8], start: usize, end: usize) -> Result<Vec<u8>, SelectError> {
    cut(content, Fragment::Bytes { start, end })
}

#[test]
fn a_line_includes_its_break_and_the_last_needs_none() {
    let content = b"one\r\ntwo\n\nfo\xffur";
    assert_eq!(lines(content, 1, 1).unwrap(), b"one\r\n");
    assert_eq!(lines(content, 2, 3).unwrap(), b"two\n\n");
    assert_eq!(lines(content, 4, 4).unwrap(), b"fo\xffur");
    assert_eq!(lines(content, 1, 4).unwrap(), content);
    assert_eq!(lines(b"one\n", 1, 9).unwrap(), b"one\n");
    assert_eq!(lines(b"one\n", 2, 9), Err(SelectError::LinesOutOfRange { first: 2, last: 9, lines: 1 }));
    assert_eq!(lines(b"", 1, 1), Err(SelectError::LinesOutOfRange { first: 1, last: 1, lines: 0 }));
    assert!(lines(content, 0, 1).is_err() && lines(content, 3, 2).is_err());
}

#[test]
fn bytes_out_of_range_name_the_bounds() {
    assert_eq!(bytes(b"abc", 1, 3).unwrap(), b"bc");
    assert_eq!(bytes(b"abc", 3, 3).unwrap(), b"");
    assert_eq!(bytes(b"", 0, 0).unwrap(), b"");
    let error = bytes(b"abc", 1, 4).unwrap_err();
    assert!(error.to_string().ends_with("ask for bytes within 0:3"), "{error}");
    assert!(bytes(b"abc", 2, 1).is_err());
    assert!(bytes(b"abc", 0, usize::MAX).is_err());
}

proptest! {
    #[test]
    fn how_the_content_is_split_into_pieces_does_not_matter(
        pieces in prop::collection::vec(prop::collection::vec(prop::sample::select(b"ab\r\n".to_vec()), 0..5), 0..6),
        first in 0usize..12,
        last in 0usize..12,
        as_lines in any::<bool>(),
    ) {
        let wanted = if as_lines {
            Fragment::Lines { first, last }
        } else {
            Fragment::Bytes { start: first, end: last }
        };
        let mut cutter = Cutter::new(wanted);
        pieces.iter().for_each(|piece| cutter.feed(piece));
        let whole = pieces.concat();
        let split: Vec<_> = whole.split_inclusive(|&byte| byte == b'\n').collect();
        let expected = if as_lines {
            first.checked_sub(1).and_then(|from| split.get(from..last.min(split.len()))).filter(|lines| !lines.is_empty()).map(<[_]>::concat)
        } else {
            whole.get(first..last).map(<[_]>::to_vec)
        };
        prop_assert_eq!(cutter.finish().ok(), expected);
    }
}

#[test]
fn ranges_are_two_numbers() {
    for text in [
        "",
        ":",
        "-",
        "1:",
        "1-",
        ":2",
        "-2",
        "a:b",
        "-1:2",
        "1:-2",
        "+1:2",
        "1:2:3",
        "1-2-3",
        "1-2:3",
        "1 : 2",
        "1--2",
        "99999999999999999999:1",
    ] {
        assert!(matches!(Selection::lines(text), Err(SelectError::BadRange { .. })), "{text}");
        assert!(matches!(Selection::bytes(text), Err(SelectError::BadRange { .. })), "{text}");
    }
    for text in ["0:1", "2:1", "0", "L2", "+2", "99999999999999999999"] {
        assert!(Selection::lines(text).is_err(), "{text}");
    }
    assert!(Selection::bytes("1").is_err(), "one number says no end");
    assert_eq!(Selection::bytes("0:0").unwrap().apply(b"").unwrap(), b"");
    for range in ["2:2", "2-2", "2"] {
        assert_eq!(Selection::lines(range).unwrap().apply(b"a\nb").unwrap(), b"b");
    }
    for range in ["1:3", "1-3"] {
        assert_eq!(Selection::bytes(range).unwrap().apply(b"abcd").unwrap(), b"bc");
    }
    assert!(Selection::lines("0-1").is_err() && Selection::lines("2-1").is_err());
}

#[test]
fn grep_gives_whole_lines_of_any_bytes() {
    let content = b"one\r\n\xfferror: x\0\ntwo\nlast error";
    let grep = |pattern: &str| Selection::grep(pattern).unwrap().apply(content).unwrap();
    assert_eq!(grep("error"), b"\xfferror: x\0\nlast error");
    assert_eq!(grep("^one$"), b"one\r\n");
    assert_eq!(grep("nowhere"), b"");
    assert_eq!(grep(""), content);
}

#[test]
fn long_lines_are_shown_in_passages() {
    let long = format!("{}FAILED{}FAILED{}", "é".repeat(2_000), "-".repeat(300), "x".repeat(3_000));
    let content = format!("FAILED\n{long}\nok\n");
    let passages = Selection::grep("FAILED").unwrap().passages(content.as_bytes()).unwrap();
    let shown: Vec<&str> = passages.into_iter().map(|range| &content[range]).collect();
    let expected = format!("{}FAILED{}FAILED{}", "é".repeat(100), "-".repeat(300), "x".repeat(200));
    assert_eq!(shown, ["FAILED\n", &expected]);
    let apart = format!("{}a{}", "-".repeat(1_000), "-".repeat(1_000)).repeat(2);
    let ranges = Selection::grep("a").unwrap().passages(apart.as_bytes()).unwrap();
    assert_eq!(ranges, [800..1_201, 2_801..3_202]);
    assert_eq!(Selection::grep("short").unwrap().passages(b"a short line\n"), None);
    assert_eq!(Selection::lines("1:1").unwrap().passages(content.as_bytes()), None);
}

#[test]
fn every_long_line_that_matches_is_shown() {
    let dashes = "-".repeat(3_000);
    let content = format!("START{dashes}FAILED\r\n{dashes}FAILED\n{dashes}FAILED");
    let shown = |pattern: &str| -> Vec<&str> {
        let ranges = Selection::grep(pattern).unwrap().passages(content.as_bytes()).unwrap();
        ranges.into_iter().map(|range| &content[range]).collect()
    };
    let tail = format!("{}FAILED", "-".repeat(200));
    assert_eq!(shown("FAILED$"), [&format!("{tail}\r\n"), &format!("{tail}\n"), &tail]);
    assert_eq!(shown("^START-*FAILED$"), [content.lines().next().unwrap().to_owned() + "\r\n"]);
    let head = "-".repeat(200);
    assert_eq!(shown("x*"), [&format!("START{}", "-".repeat(195)), &head, &head], "an empty match");
    assert_eq!(shown("(START)*")[0], format!("START{head}"), "what an empty match is next to");
}

#[test]
fn hostile_patterns_are_refused_or_linear() {
    for pattern in ["(", "\\w{9999}{9999}", &"a".repeat(2_000), &"(".repeat(900)] {
        assert!(matches!(Selection::grep(pattern), Err(SelectError::BadPattern { .. })));
    }
    let content = vec![b'a'; 1 << 20];
    assert_eq!(Selection::grep("(a*)*b").unwrap().apply(&content).unwrap(), b"");
}

#[test]
fn parts_are_found_in_place() {
    let content = b"one\r\ntwo\nthree\n";
    let found = |selection: Result<Selection, SelectError>| -> Vec<Vec<u8>> {
        selection.unwrap().find(content).unwrap().into_iter().map(|range| content[range].to_vec()).collect()
    };
    assert_eq!(found(Selection::lines("2:3")), [b"two\nthree\n"]);
    assert_eq!(found(Selection::bytes("5:8")), [b"two"]);
    assert_eq!(found(Selection::grep("^t")), [&b"two\n"[..], b"three\n"]);
    assert_eq!(found(Selection::grep("one$")), [b"one\r\n"], "the line break is not matched against");
    assert!(found(Selection::grep("four")).is_empty());
    let json = br#"{"a": [1, {"b": 2.50}], "c": 2.50}"#;
    let path = Selection::path("$.a[1].b").unwrap().find(json).unwrap();
    assert_eq!((path.len(), path[0].clone()), (1, 16..20), "the value on the path, not its twin");
    assert!(Selection::lines("4:9").unwrap().find(content).is_err());
    assert!(Selection::path("$.x").unwrap().find(json).is_err());
}
