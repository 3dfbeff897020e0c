//! Frames against damage, and against every way a network can cut a stream.

use proptest::prelude::*;

use super::*;

/// `messageStart` as botocore 1.44 reads it, with headers of every kind before its own.
fn with_every_header() -> Vec<u8> {
    let mut headers = Vec::new();
    for (kind, value) in [
        (0_u8, &b""[..]),
        (1, b""),
        (2, b"\x01"),
        (3, b"\x00\x01"),
        (4, b"\x00\x00\x00\x01"),
        (5, b"12345678"),
        (6, b"\x00\x02ab"),
        (8, b"12345678"),
        (9, b"0123456789abcdef"),
    ] {
        headers.extend([1, b'a' + kind, kind]);
        headers.extend(value);
    }
    let own = event("messageStart", b"{}");
    let length = number(&own, 4).unwrap();
    headers.extend(&own[PRELUDE..PRELUDE + length]);
    assembled(&headers, b"{}")
}

#[test]
fn a_frame_is_as_its_documentation_shows_it() {
    // The example of Amazon's documentation of the format: no headers, no payload.
    let empty = [0, 0, 0, 16, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
    assert_eq!(frame(&[], b""), empty);
    assert!(Frame::read(&empty).unwrap().payload.is_empty());
}

#[test]
fn headers_of_every_kind_are_passed_over() {
    let bytes = with_every_header();
    let frame = Frame::read(&bytes).unwrap();
    assert_eq!((frame.kind(), frame.payload, frame.is_failure()), ("messageStart", &b"{}"[..], false));
    assert_eq!(frame.header("a"), None);
    assert_eq!(frame.with_payload(b"{}"), bytes);
}

#[test]
fn failures_are_told_from_events() {
    let bytes = exception("throttlingException", br#"{"message":"slow"}"#);
    let frame = Frame::read(&bytes).unwrap();
    assert!(frame.is_failure());
    assert_eq!((frame.kind(), &*frame.text()), ("throttlingException", r#"{"message":"slow"}"#));
    let headers =
        [(":message-type", "error"), (":error-code", "InternalFailure"), (":error-message", "oops")];
    let bytes = super::frame(&headers, b"");
    let frame = Frame::read(&bytes).unwrap();
    assert!(frame.is_failure());
    assert_eq!((frame.kind(), &*frame.text()), ("InternalFailure", "oops"));
}

#[test]
fn changed_bytes_are_no_frame() {
    let whole = event("messageStop", br#"{"stopReason":"end_turn"}"#);
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        assert!(Frame::read(&changed).is_err(), "byte {at}");
        assert!(Frame::read(&whole[..at]).is_err(), "the first {at} bytes");
    }
    // The checksums are right, the headers are not.
    for headers in [&b"\x09a"[..], b"\x01a\x07\x00\x09b", b"\x01a\x0a", b"\x01\xff\x00"] {
        assert_eq!(Frame::read(&assembled(headers, b"")).unwrap_err(), FrameError::Headers);
    }
}

proptest! {
    #[test]
    fn frames_are_the_same_however_the_stream_is_cut(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..6),
        chunk in 1_usize..64,
    ) {
        let frames: Vec<Vec<u8>> = payloads.iter().map(|payload| event("chunk", payload)).collect();
        let stream = [frames.concat(), vec![0, 0]].concat();
        let (mut splitter, mut found) = (FrameSplitter::default(), Vec::new());
        for bytes in stream.chunks(chunk) {
            splitter.push(bytes);
            while let Some(frame) = splitter.next_frame().unwrap() {
                found.push(frame);
            }
        }
        prop_assert_eq!(&found, &frames);
        prop_assert_eq!(splitter.rest(), [0, 0]);
        prop_assert!(splitter.next_frame().unwrap().is_none() && splitter.rest().is_empty());
        for (frame, payload) in found.iter().zip(&payloads) {
            prop_assert_eq!(Frame::read(frame).unwrap().payload, payload.as_slice());
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Frame::read(&bytes);
        let _ = Frame::read(&assembled(&bytes, b""));
        let mut splitter = FrameSplitter::default();
        splitter.push(&bytes);
        while let Ok(Some(_)) = splitter.next_frame() {}
    }
}
