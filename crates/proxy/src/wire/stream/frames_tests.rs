//! Tests of replies as frames of Amazon's event streams.

use serde_json::json;

use super::super::reply::tests::visible;
use super::super::testing::{Part, seen_streamed, streamed};
use super::super::{ApiErrorKind, REHYDRATE};
use super::tests::{drive, streams};
use super::*;

#[test]
fn frames_without_our_calls_are_forwarded_unchanged_and_broken_ones_too() {
    for dialect in [ApiDialect::Converse, ApiDialect::Invoke] {
        let parts =
            [Part::Think("hm".into()), Part::Text("so".into()), Part::call("c", "read", json!({"a": 1}))];
        let bytes = dialect.format().framing().laid_out(streamed(dialect, 0, &parts));
        let noise = [&bytes[..], b"no frame at all, but more bytes than the lengths of one take"].concat();
        for (sent, tool) in [(&bytes, Some(REHYDRATE)), (&noise, Some(REHYDRATE)), (&bytes, None)] {
            for size in [1, 7, usize::MAX] {
                let (mut stream, mut out) = (StreamedReply::new(dialect, tool), Vec::new());
                sent.chunks(size.min(sent.len())).for_each(|piece| stream.push(piece, &mut out));
                stream.end(&mut out);
                stream.close(&mut out);
                assert!(out == *sent, "{dialect:?} {size}");
            }
        }
    }
}

#[test]
fn frames_of_a_reply_that_goes_on_show_nothing_of_ours() {
    let rounds = [
        vec![Part::Think("hm".into()), Part::Text("so ".into()), Part::ours("o")],
        vec![Part::Text("far".into()), Part::call("c", "read", json!({"n": 1})), Part::ours("p")],
    ];
    for dialect in [ApiDialect::Converse, ApiDialect::Invoke] {
        let (out, sent, mut stream) = drive(dialect, &streams(dialect, &rounds), &[11]);
        assert!(!String::from_utf8_lossy(&stream.readable(&out)).contains(REHYDRATE));
        let seen = seen_streamed(dialect, &out);
        assert_eq!(seen.parts, visible(dialect, &rounds));
        assert_eq!((sent.len(), &*seen.stop), (2, "tool_use"));
        assert_eq!(stream.rounds().usage().map(|usage| usage.input), Some(100 + 200 + 24));
        stream.fail(&ApiError::new(ApiErrorKind::Upstream, "it broke"), &mut Vec::new());
    }
}

#[test]
fn a_stream_of_frames_ends_well_however_it_must_end() {
    for dialect in [ApiDialect::Converse, ApiDialect::Invoke] {
        let laid_out = |parts: &[Part]| dialect.format().framing().laid_out(streamed(dialect, 0, parts));
        // The model waits, but is not asked again.
        let (mut stream, mut out) = (StreamedReply::new(dialect, Some(REHYDRATE)), Vec::new());
        stream.push(&laid_out(&[Part::Think("hm".into()), Part::ours("o")]), &mut out);
        stream.end(&mut out);
        stream.rounds().give_up("enough");
        stream.close(&mut out);
        let seen = seen_streamed(dialect, &out);
        let Some(Part::Text(text)) = seen.parts.last() else { panic!("a text: {:?}", seen.parts) };
        assert!(text.ends_with("read back no further: enough]"), "{text}");
        assert_eq!((seen.parts.len(), &*seen.stop), (2, "end_turn"));
        // It breaks off within our call, and the error is an exception of the provider's.
        let (mut stream, mut out) = (StreamedReply::new(dialect, Some(REHYDRATE)), Vec::new());
        let whole = laid_out(&[Part::Text("said".into()), Part::ours("our_id")]);
        stream.push(&whole[..whole.len() * 2 / 3], &mut out);
        stream.end(&mut out);
        assert!(stream.rounds().calls().is_empty() && !stream.rounds().last().ended);
        let begun = out.len();
        stream.fail(&ApiError::new(ApiErrorKind::Upstream, "it broke"), &mut out);
        let last = dialect.format().framing().read(&out[begun..]).unwrap();
        assert_eq!((last.kind, last.fails), ("modelStreamErrorException", true));
        assert!(last.data.contains("it broke"));
        // The provider's own exception.
        let failure = "event: throttlingException\ndata: {\"message\":\"slow\"}\n\n".to_owned();
        let failure = dialect.format().framing().laid_out(failure);
        let (mut stream, mut out) = (StreamedReply::new(dialect, Some(REHYDRATE)), Vec::new());
        stream.push(&failure, &mut out);
        stream.end(&mut out);
        assert!(stream.rounds().failed() && !stream.rounds().last().ended);
        assert_eq!(out, failure);
    }
}
