//! The event parser against every way a network can cut a stream.

use proptest::prelude::*;

use super::*;

fn parse<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<StreamEvent>, SseError> {
    let (mut parser, mut events) = (SseParser::default(), Vec::new());
    for chunk in chunks {
        parser.push(chunk, &mut events)?;
    }
    parser.finish(&mut events)?;
    Ok(events)
}

fn event(event: &str, data: &str) -> StreamEvent {
    StreamEvent { event: event.to_owned(), data: data.to_owned() }
}

#[test]
fn line_ends_comments_and_several_data_lines() {
    for line_end in ["\n", "\r\n", "\r"] {
        let stream = [
            ": hello",
            "event: delta",
            "data: a",
            "data:b",
            "data:  c",
            "data",
            "id: 7",
            "",
            "data: é",
            "",
            "",
        ];
        let stream = stream.join(line_end);
        let expected = vec![event("delta", "a\nb\n c\n"), event("", "é")];
        assert_eq!(parse([stream.as_bytes()]).unwrap(), expected, "{line_end:?}");
        assert_eq!(parse(stream.as_bytes().chunks(1)).unwrap(), expected, "{line_end:?}, byte by byte");
    }
}

#[test]
fn the_last_event_needs_no_blank_line() {
    assert_eq!(
        parse([b"data: x\n\ndata: [DONE]".as_slice()]).unwrap(),
        [event("", "x"), event("", "[DONE]")]
    );
    assert_eq!(parse([b"event: lonely\n\n".as_slice()]).unwrap(), [], "an event without data is none");
    assert_eq!(parse([b"".as_slice()]).unwrap(), []);
    assert_eq!(parse(["\u{feff}data: x".as_bytes()]).unwrap(), [event("", "x")]);
}

#[test]
fn hostile_streams_are_errors() {
    assert_eq!(parse([b"data: \xff\n\n".as_slice()]), Err(SseError::NotUtf8));
    assert_eq!(parse(vec![vec![b'a'; 1 << 20]; 17].iter().map(Vec::as_slice)), Err(SseError::TooLarge));
    let many_lines = b"data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n".repeat(1 << 12);
    assert_eq!(parse(vec![many_lines; 70].iter().map(Vec::as_slice)), Err(SseError::TooLarge));
    assert_eq!(parse([[0; 1000].as_slice()]).unwrap(), []);
}

proptest! {
    #[test]
    fn chunking_never_matters(
        stream in "((data|event|:|x)?:? ?[a-zé\u{1f980}]{0,3}(\n|\r|\r\n)){0,12}",
        cuts in proptest::collection::vec(0_usize..200, 0..8),
    ) {
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.push(0);
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(parse(chunks), parse([bytes]));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse([bytes.as_slice()]);
    }
}
