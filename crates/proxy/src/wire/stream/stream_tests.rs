//! Tests of replies as streams.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::reply::tests::{request, visible};
use super::super::testing::{FORMATS, Part, any_rounds, seen_streamed, seen_whole, streamed, whole};
use super::super::{ApiErrorKind, REHYDRATE, ReplyPlace, WholeReply, rehydrate_tool_json};
use super::*;

/// Pushes each stream in pieces of `sizes`, answers, and goes on; gives what the client gets and the requests sent.
pub(super) fn drive(
    dialect: ApiDialect,
    streams: &[String],
    sizes: &[usize],
) -> (Vec<u8>, Vec<String>, StreamedReply) {
    let mut stream = StreamedReply::new(dialect, Some(REHYDRATE));
    let mut sent = vec![request(dialect)];
    let mut out = Vec::new();
    let mut sizes = sizes.iter().copied().chain([usize::MAX]).cycle();
    for text in streams {
        let bytes = dialect.format().framing().laid_out(text.clone());
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let size = sizes.next().unwrap_or(1).clamp(1, rest.len());
            stream.push(&rest[..size], &mut out);
            rest = &rest[size..];
        }
        stream.end(&mut out);
        let answers = stream.rounds().calls().iter().map(|call| format!("answer to {}", call.id)).collect();
        stream.rounds().answer(answers);
        let Some(next) = stream.next(sent.last().unwrap()).unwrap() else { break };
        sent.push(next);
    }
    stream.close(&mut out);
    (out, sent, stream)
}

pub(super) fn streams(dialect: ApiDialect, rounds: &[Vec<Part>]) -> Vec<String> {
    rounds.iter().enumerate().map(|(at, parts)| streamed(dialect, at, parts)).collect()
}

proptest! {
    #[test]
    fn a_streamed_reply_is_the_whole_one(
        rounds in any_rounds(),
        sizes in prop::collection::vec(1..200_usize, 1..20),
    ) {
        for dialect in ApiDialect::ALL {
            let (out, sent, mut stream) = drive(dialect, &streams(dialect, &rounds), &sizes);
            let seen = seen_streamed(dialect, &out);
            prop_assert_eq!(&seen.parts, &visible(dialect, &rounds));

            let mut reply = WholeReply::new(dialect, Some(REHYDRATE));
            for (at, parts) in rounds.iter().enumerate() {
                reply.take(&whole(dialect, at, parts)).unwrap();
                let answers = reply.rounds().calls().iter().map(|call| format!("answer to {}", call.id)).collect();
                reply.rounds().answer(answers);
                if let Some(next) = reply.next(&sent[at]).unwrap() {
                    // The same request, value by value: pieces put together have other white space.
                    prop_assert_eq!(
                        serde_json::from_str::<Json>(&next).unwrap(),
                        serde_json::from_str::<Json>(&sent[at + 1]).unwrap()
                    );
                }
            }
            prop_assert_eq!(stream.rounds().usage(), reply.rounds().usage());
            prop_assert_eq!(stream.rounds().last().usage, reply.rounds().last().usage);
            let keys = |rounds: &ReplyRounds| rounds.hidden(&ReplyPlace::default()).into_iter().map(|hidden| hidden.keys).collect::<Vec<_>>();
            prop_assert_eq!(keys(stream.rounds()), keys(reply.rounds()));
            let expected = seen_whole(dialect, &reply.close().unwrap());
            prop_assert_eq!(&seen.stop, &expected.stop);
            prop_assert_eq!(&seen.usage, &expected.usage);
        }
    }

    #[test]
    fn chunks_make_no_difference(
        rounds in any_rounds(),
        sizes in prop::collection::vec(1..60_usize, 1..20),
        ends in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        for dialect in FORMATS {
            let streams: Vec<_> = streams(dialect, &rounds).iter().map(|text| text.replace('\n', ends)).collect();
            let (whole, sent, _) = drive(dialect, &streams, &[usize::MAX]);
            let (pieces, sent_too, _) = drive(dialect, &streams, &sizes);
            prop_assert_eq!(&whole, &pieces);
            prop_assert_eq!(sent, sent_too);
            if ends != "\n" {
                let (plain, ..) = drive(dialect, &streams.iter().map(|s| s.replace(ends, "\n")).collect::<Vec<_>>(), &[]);
                prop_assert_eq!(String::from_utf8(whole).unwrap().replace(ends, "\n"), String::from_utf8(plain).unwrap());
            }
        }
    }

    #[test]
    fn streams_without_our_calls_are_forwarded_unchanged(
        said in prop::collection::vec(prop_oneof!["[a-z]{1,9}".prop_map(Part::Text), "[a-z]{1,9}".prop_map(Part::Think)], 0..4),
        calls in 0..3_usize,
        sizes in prop::collection::vec(1..200_usize, 1..9),
        noise in prop::collection::vec((any::<prop::sample::Index>(), "[\n\r:a-z{}\"é]{1,9}|data: \\{\"type\":1\\}\n\n|: ping\n\n"), 0..4),
    ) {
        for dialect in FORMATS {
            let mut parts = said.clone();
            parts.extend((0..calls).map(|at| Part::call(&format!("c{at}"), "larder", json!({"a": 1}))));
            let mut text = streamed(dialect, 0, &parts);
            for (at, noise) in &noise {
                let places: Vec<usize> = text.match_indices("\n\n").map(|(at, _)| at + 2).collect();
                text.insert_str(places[at.index(places.len())], noise);
            }
            let (out, ..) = drive(dialect, std::slice::from_ref(&text), &sizes);
            prop_assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn any_bytes_go_through_in_order(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        pieces in prop::collection::vec(prop::sample::select(vec!["data: ", "\n", "\r", "{\"choices\":[{\"delta\":", "}", "]", "é", "\n\n"]), 0..40),
        sizes in prop::collection::vec(1..40_usize, 1..9),
    ) {
        for dialect in FORMATS {
            for bytes in [bytes.clone(), pieces.concat().into_bytes()] {
                let mut stream = StreamedReply::new(dialect, Some(REHYDRATE));
                let mut out = Vec::new();
                let mut rest = bytes.as_slice();
                let mut sizes = sizes.iter().cycle();
                while !rest.is_empty() {
                    let size = (*sizes.next().unwrap()).min(rest.len());
                    stream.push(&rest[..size], &mut out);
                    rest = &rest[size..];
                }
                stream.end(&mut out);
                stream.close(&mut out);
                prop_assert_eq!(out, bytes);
            }
        }
    }
}

#[test]
fn text_reaches_the_client_before_the_reply_ends_and_nothing_of_ours_does() {
    for dialect in FORMATS {
        let parts = [Part::Text("before".into()), Part::call("c", "read", json!({})), Part::ours("o")];
        let text = streamed(dialect, 0, &parts);
        let mut stream = StreamedReply::new(dialect, Some(REHYDRATE));
        let mut out = Vec::new();
        let mut shown_at = None;
        for (at, event) in text.split_inclusive("\n\n").enumerate() {
            stream.push(event.as_bytes(), &mut out);
            let so_far = String::from_utf8_lossy(&out);
            assert!(!so_far.contains(REHYDRATE));
            if so_far.contains("bef") && shown_at.is_none() {
                shown_at = Some(at);
                assert_eq!(
                    so_far.len(),
                    text.split_inclusive("\n\n").take(at + 1).map(str::len).sum::<usize>()
                );
            }
        }
        assert!(shown_at.is_some());
        stream.end(&mut out);
        let so_far = String::from_utf8_lossy(&out).into_owned();
        // The client's call is out, the end is not: what is hidden must be remembered first.
        assert!(so_far.contains("\"read\"") && !so_far.contains("tool_use\",\"stop_sequence"));
        assert_eq!(stream.rounds().calls().len(), 1);
        stream.rounds().answer(vec!["text".into()]);
        assert_eq!(stream.next(&request(dialect)).unwrap(), None);
        assert_eq!(stream.rounds().hidden(&ReplyPlace::default()).len(), 1);
        stream.close(&mut out);
        seen_streamed(dialect, &out);
    }
}

#[test]
fn a_name_in_pieces_is_held_back_until_it_is_known() {
    let chunk = |entry: Json| {
        format!(
            "data: {}\n\n",
            json!({"id": "x", "choices": [{"index": 0, "delta": {"tool_calls": [entry]}, "finish_reason": null}]})
        )
    };
    let named = |pieces: &[&str]| {
        let mut text = chunk(
            json!({"index": 0, "id": "c", "type": "function", "function": {"name": "", "arguments": ""}}),
        );
        text += ": still there\n\n";
        for piece in pieces {
            text += &chunk(json!({"index": 0, "function": {"name": piece}}));
        }
        text += &chunk(json!({"index": 0, "function": {"arguments": "{}"}}));
        text + "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
    };
    let theirs = named(&["larder_", "re", "write"]);
    assert_eq!(
        String::from_utf8(drive(ApiDialect::Chat, std::slice::from_ref(&theirs), &[7]).0).unwrap(),
        theirs
    );
    let prefix = named(&["larder_"]);
    assert_eq!(
        String::from_utf8(drive(ApiDialect::Chat, std::slice::from_ref(&prefix), &[7]).0).unwrap(),
        prefix
    );
    let mut stream = StreamedReply::new(ApiDialect::Chat, Some(REHYDRATE));
    let mut out = Vec::new();
    stream.push(named(&["larder_", "rehydrate"]).as_bytes(), &mut out);
    stream.end(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), ": still there\n\n");
    assert_eq!(stream.rounds().calls(), [OurCallIs("c", "{}").into()]);
}

struct OurCallIs(&'static str, &'static str);

impl From<OurCallIs> for super::super::RehydrateCall {
    fn from(call: OurCallIs) -> Self {
        Self { id: call.0.into(), arguments: call.1.into() }
    }
}

#[test]
fn calls_in_one_chunk_are_separated() {
    let entry = |index: u64, id: &str, name: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let delta = json!({"role": "assistant", "content": null, "tool_calls": [entry(0, "a", REHYDRATE), entry(1, "b", "read"), entry(2, "c", REHYDRATE)]});
    let text = format!(
        "data: {}\n\ndata: [DONE]\n\n",
        json!({"id": "x", "created": 1, "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]})
    );
    let (out, _, mut stream) = drive(ApiDialect::Chat, &[text], &[]);
    let seen = seen_streamed(ApiDialect::Chat, &out);
    assert_eq!(seen.parts, [Part::call("b", "read", json!({}))]);
    assert_eq!(stream.rounds().hidden(&ReplyPlace::default())[0].keys.len(), 1);
    // Servers that give every call the index 0.
    let delta = json!({"tool_calls": [entry(0, "a", REHYDRATE), entry(0, "b", "read")]});
    let text =
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}));
    let (out, ..) = drive(ApiDialect::Chat, &[text], &[]);
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains("\"b\"") && !out.contains("\"a\""));
}

#[test]
fn a_stream_that_breaks_off_asks_nothing_of_us() {
    for dialect in FORMATS {
        let text = streamed(dialect, 0, &[Part::Text("said".into()), Part::ours("our_id")]);
        let cut = text.find(REHYDRATE).unwrap() + 120;
        let (out, sent, mut stream) = drive(dialect, &[text[..cut].to_owned()], &[]);
        assert!(!String::from_utf8_lossy(&out).contains("our_id"));
        assert_eq!(sent.len(), 1);
        assert!(stream.rounds().calls().is_empty() && !stream.rounds().last().ended);
    }
}

#[test]
fn a_reply_that_must_end_while_the_model_waits_ends_well() {
    for dialect in FORMATS {
        let mut stream = StreamedReply::new(dialect, Some(REHYDRATE));
        let mut out = Vec::new();
        stream.push(streamed(dialect, 0, &[Part::Text("so".into()), Part::ours("o")]).as_bytes(), &mut out);
        stream.end(&mut out);
        stream.close(&mut out);
        let seen = seen_streamed(dialect, &out);
        assert_eq!(seen.parts, [Part::Text("so".into())]);
        assert_eq!(seen.stop, ["stop", "completed", "end_turn"][dialect as usize]);
    }
}

#[test]
fn a_reply_that_would_say_nothing_says_why_before_its_end() {
    let rounds = [[Part::Think("hm".into()), Part::ours("a")], [Part::Think("so".into()), Part::ours("b")]];
    for dialect in FORMATS {
        let mut stream = StreamedReply::new(dialect, Some(REHYDRATE));
        let mut out = Vec::new();
        for (round, parts) in rounds.iter().enumerate() {
            stream.push(streamed(dialect, round, parts).as_bytes(), &mut out);
            stream.end(&mut out);
            if round == 0 {
                stream.rounds().answer(vec!["text".into()]);
                assert!(stream.next(&request(dialect)).unwrap().is_some());
            }
        }
        stream.rounds().give_up("enough");
        stream.close(&mut out);
        let seen = seen_streamed(dialect, &out);
        let Some(Part::Text(text)) = seen.parts.last() else { panic!("a text: {:?}", seen.parts) };
        assert!(text.ends_with("read back no further: enough]"), "{text}");
        assert_eq!(seen.parts.len(), [1, 3, 3][dialect as usize], "{:?}", seen.parts);
        assert_eq!(seen.stop, ["stop", "completed", "end_turn"][dialect as usize]);
    }
}

#[test]
fn a_reply_that_repeats_the_tools_of_its_request_names_none_of_ours() {
    let dialect = ApiDialect::Responses;
    let reply = |tools: &str, allowed: &str| {
        format!(
            r#"{{"id":"resp_1","status":"completed","tool_choice":{{"type":"allowed_tools","mode":"auto","tools":[{allowed}]}},"tools":[{tools}],"output":[]}}"#
        )
    };
    let events = |reply: &str| {
        let event = |kind| format!("data: {{\"type\":\"response.{kind}\",\"response\":{reply}}}\n\n");
        ["created", "in_progress", "completed"].map(event).concat()
    };
    let ours = rehydrate_tool_json(dialect, REHYDRATE);
    let (own, named) = (r#"{"type":"function","name":"read"}"#, dialect.format().tool_reference(REHYDRATE));
    for (sent, shown) in [
        (reply(&format!("{own},{ours}"), &format!("{own},{named}")), reply(own, own)),
        (reply(&ours, &named), reply("", "")),
    ] {
        for (tool, shown) in [(Some(REHYDRATE), &shown), (None, &sent)] {
            let mut whole = WholeReply::new(dialect, tool);
            whole.take(&sent).unwrap();
            assert_eq!(&whole.close().unwrap(), shown);
            let (mut stream, mut out) = (StreamedReply::new(dialect, tool), Vec::new());
            stream.push(events(&sent).as_bytes(), &mut out);
            stream.end(&mut out);
            stream.close(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), events(shown));
        }
    }
}

#[test]
fn what_is_known_of_a_round_grows_with_it() {
    for dialect in FORMATS {
        let text = streamed(dialect, 0, &[Part::Text("some text".into())]);
        let events: Vec<&str> = text.split_inclusive("\n\n").collect();
        let (begun, end) = events.split_at(events.len() - [3, 1, 2][dialect as usize]);
        for hide in [true, false] {
            let mut stream = StreamedReply::new(dialect, hide.then_some(REHYDRATE));
            let mut out = Vec::new();
            assert_eq!(stream.known(), PartialUsage::default());
            stream.push(begun.concat().as_bytes(), &mut out);
            let known = stream.known();
            assert_eq!((known.said, known.ended), (9, false));
            assert_eq!(known.usage.map(|usage| usage.input), [None, None, Some(112)][dialect as usize]);
            stream.push(end.concat().as_bytes(), &mut out);
            stream.end(&mut out);
            let known = stream.rounds().last();
            assert!(known.ended && known.usage.is_some_and(|usage| usage.output == 10), "{known:?}");
        }
    }
}

#[test]
fn a_reply_of_several_choices_ends_with_the_last_of_them() {
    let event = |index: u64, text: &str, finish: Json| {
        let choice = json!({"index": index, "delta": {"content": text}, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let mut stream = StreamedReply::new(ApiDialect::Chat, None);
    let (mut out, mut all) = (Vec::new(), String::new());
    let events = [
        (event(0, "one", Json::Null), 3, false),
        (event(1, "two", Json::Null), 6, false),
        (event(0, "", json!("stop")), 6, false),
        (event(1, "three", Json::Null), 11, false),
        (event(1, "", json!("stop")), 11, true),
    ];
    for (event, said, ended) in events {
        stream.push(event.as_bytes(), &mut out);
        all += &event;
        assert_eq!((stream.known().said, stream.known().ended), (said, ended));
    }
    assert_eq!(String::from_utf8(out).unwrap(), all);
}

#[test]
fn choices_that_come_one_after_the_other_are_all_awaited() {
    let event = |index: u64, finish: Json| {
        let choice = json!({"index": index, "delta": {"content": "x"}, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let mut out = Vec::new();
    let mut stream = StreamedReply::new(ApiDialect::Chat, None).with_choices(2);
    for (index, finish, told) in
        [(0, Json::Null, false), (0, json!("stop"), false), (1, Json::Null, false), (1, json!("stop"), true)]
    {
        stream.push(event(index, finish).as_bytes(), &mut out);
        assert_eq!(stream.is_told(), told, "{index}");
    }
    // A provider that sends fewer says at least that it is done.
    let mut stream = StreamedReply::new(ApiDialect::Chat, None).with_choices(2);
    stream.push(event(0, json!("stop")).as_bytes(), &mut out);
    assert!(!stream.is_told());
    stream.push(b"data: [DONE]\n\n", &mut out);
    assert!(stream.is_told());
}

#[test]
fn an_error_of_the_providers_own_is_noticed() {
    let errors = [
        r#"{"error":{"message":"overloaded"}}"#,
        r#"{"type":"error","code":"server_error","message":"overloaded"}"#,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}"#,
    ];
    for dialect in FORMATS {
        let mut stream = StreamedReply::new(dialect, Some(REHYDRATE));
        let mut out = Vec::new();
        let event = format!("data: {}\n\n", errors[dialect as usize]);
        stream.push(event.as_bytes(), &mut out);
        stream.end(&mut out);
        assert!(stream.rounds().failed() && !stream.rounds().last().ended);
        assert_eq!(out, event.as_bytes());
    }
}

#[test]
fn a_failure_in_a_later_round_is_an_event_of_the_format() {
    for dialect in FORMATS {
        let mut stream = StreamedReply::new(dialect, Some(REHYDRATE));
        let mut out = Vec::new();
        stream.push(streamed(dialect, 0, &[Part::ours("o")]).as_bytes(), &mut out);
        stream.end(&mut out);
        stream.fail(&ApiError::new(ApiErrorKind::Upstream, "it broke"), &mut out);
        stream.close(&mut out);
        let text = String::from_utf8(out).unwrap();
        let last = text.trim_end().rsplit("data: ").next().unwrap();
        let last: Json = serde_json::from_str(last).unwrap();
        assert!(last["message"] == "it broke" || last["error"]["message"] == "it broke");
        if dialect == ApiDialect::Responses {
            assert_eq!(last["sequence_number"], 2);
        }
    }
}

#[test]
fn an_endless_event_is_passed_on_in_pieces_and_not_kept() {
    let mut stream = StreamedReply::new(ApiDialect::Chat, Some(REHYDRATE));
    let mut out = Vec::new();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        stream.push(&piece, &mut out);
        let StreamSplitter::Events(splitter) = &stream.splitter else { panic!("server-sent events") };
        assert!(splitter.buffered() <= MAX_EVENT_BYTES + piece.len());
    }
    assert!(out.len() >= (40 << 20) - MAX_EVENT_BYTES);
    stream.push(b"\n\n", &mut out);
    stream.push(streamed(ApiDialect::Chat, 0, &[Part::ours("o")]).as_bytes(), &mut out);
    stream.end(&mut out);
    assert_eq!(stream.rounds().calls().len(), 1, "what comes after is read again");
}

#[test]
fn a_reply_too_long_to_be_kept_is_passed_on_and_ends_at_our_call() {
    let long = Part::Text("x".repeat(1 << 20));
    let mut stream = StreamedReply::new(ApiDialect::Messages, Some(REHYDRATE));
    let mut out = Vec::new();
    let parts: Vec<_> = std::iter::repeat_n(long, 17).chain([Part::ours("o")]).collect();
    stream.push(streamed(ApiDialect::Messages, 0, &parts).as_bytes(), &mut out);
    stream.end(&mut out);
    assert!(stream.rounds().calls().is_empty());
    stream.close(&mut out);
    let seen = seen_streamed(ApiDialect::Messages, &out);
    assert_eq!((seen.parts.len(), &*seen.stop), (17, "end_turn"));
}

#[test]
fn seals_citations_and_unknown_pieces_are_put_together() {
    let event = |data: Json| format!("data: {data}\n\n");
    let mut text = event(json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}));
    let blocks = [
        json!({"type": "redacted_thinking", "data": "sealed"}),
        json!({"type": "text", "text": ""}),
        json!({"type": "tool_use", "id": "o", "name": REHYDRATE, "input": {}}),
    ];
    let deltas = [
        vec![],
        vec![
            json!({"type": "text_delta", "text": "a"}),
            json!({"type": "citations_delta", "citation": {"cited_text": "q"}}),
            json!({"type": "new_delta", "novelty": {"x": 1}}),
        ],
        vec![
            json!({"type": "input_json_delta", "partial_json": "{\"id\":"}),
            json!({"type": "input_json_delta", "partial_json": "no json"}),
        ],
    ];
    for (index, (block, deltas)) in blocks.iter().zip(deltas).enumerate() {
        text += &event(json!({"type": "content_block_start", "index": index, "content_block": block}));
        for delta in deltas {
            text += &event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        text += &event(json!({"type": "content_block_stop", "index": index}));
    }
    text += &event(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}}),
    );
    let (_, sent, mut stream) = drive(ApiDialect::Messages, &[text], &[]);
    assert_eq!(stream.rounds().calls()[0].arguments, "{\"id\":no json");
    let sent: Json = serde_json::from_str(&sent[1]).unwrap();
    assert_eq!(
        sent["messages"][1]["content"],
        json!([{"type": "redacted_thinking", "data": "sealed"},
               {"type": "text", "text": "a", "citations": [{"cited_text": "q"}], "novelty": {"x": 1}},
               {"type": "tool_use", "id": "o", "name": REHYDRATE, "input": {}}])
    );
}
