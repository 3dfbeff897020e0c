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
    assert_eq!(lines(b"one\n", 1, 2), Err(SelectError::LinesOutOfRange { first: 1, last: 2, lines: 1 }));
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
            first.checked_sub(1).and_then(|from| split.get(from..last)).filter(|lines| !lines.is_empty()).map(<[_]>::concat)
        } else {
            whole.get(first..last).map(<[_]>::to_vec)
        };
        prop_assert_eq!(cutter.finish().ok(), expected);
    }
}
