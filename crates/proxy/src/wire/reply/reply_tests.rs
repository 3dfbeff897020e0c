//! Tests of replies over several rounds.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::testing::{FORMATS, Part, any_rounds, seen_whole, text_of, whole};
use super::super::{REHYDRATE, read};
use super::*;

/// A first request of each format.
pub(in super::super) fn request(dialect: ApiDialect) -> String {
    let list = if dialect == ApiDialect::Responses { "input" } else { "messages" };
    let content = if dialect == ApiDialect::Converse { json!([{"text": "go"}]) } else { json!("go") };
    json!({"model": "m", list: [{"role": "user", "content": content}], "kept": 1.0}).to_string()
}

/// What the client is to see of `rounds`: everything but our calls.
pub(in super::super) fn visible(dialect: ApiDialect, rounds: &[Vec<Part>]) -> Vec<Part> {
    if dialect != ApiDialect::Chat {
        return rounds.iter().flatten().filter(|part| !part.is_ours()).cloned().collect();
    }
    let mut text = String::new();
    rounds.iter().for_each(|parts| push_text(&mut text, &text_of(parts)));
    let calls = rounds.iter().flatten().filter(|part| matches!(part, Part::Call { .. }) && !part.is_ours());
    let text = Some(Part::Text(text)).filter(|part| *part != Part::Text(String::new()));
    text.into_iter().chain(calls.cloned()).collect()
}

/// Answers a reply to its end; gives the requests sent.
fn drive(dialect: ApiDialect, rounds: &[Vec<Part>]) -> (WholeReply, Vec<String>) {
    let mut reply = WholeReply::new(dialect, Some(REHYDRATE));
    let mut sent = vec![request(dialect)];
    for (at, parts) in rounds.iter().enumerate() {
        reply.take(&whole(dialect, at, parts)).unwrap();
        let answers = reply.rounds().calls().iter().map(|call| format!("answer to {}", call.id)).collect();
        reply.rounds().answer(answers);
        let next = reply.next(&sent[at]).unwrap();
        assert_eq!(next.is_some(), at + 1 < rounds.len());
        sent.extend(next);
    }
    (reply, sent)
}

proptest! {
    #[test]
    fn the_client_sees_everything_but_our_calls_and_pays_for_all(rounds in any_rounds()) {
        for dialect in ApiDialect::ALL {
            let (mut reply, _) = drive(dialect, &rounds);
            let usage = reply.rounds().usage().unwrap();
            let body = reply.close().unwrap();
            let seen = seen_whole(dialect, &body);
            prop_assert_eq!(&seen.parts, &visible(dialect, &rounds));
            let plain = |at: usize| seen_whole(dialect, &whole(dialect, at, &rounds[at]));
            prop_assert_eq!(&seen.stop, &plain(rounds.len() - 1).stop);
            // Every number is the sum over the rounds.
            let input = match dialect {
                ApiDialect::Chat => "prompt_tokens",
                ApiDialect::Converse => "inputTokens",
                _ => "input_tokens",
            };
            let sum: u64 = (0..rounds.len()).map(|at| plain(at).usage[input].as_u64().unwrap()).sum();
            prop_assert_eq!(&seen.usage[input], sum);
            let apart = if !matches!(dialect, ApiDialect::Chat | ApiDialect::Responses) { 12 * rounds.len() as u64 } else { 0 };
            prop_assert_eq!(usage.input, sum + apart);
            prop_assert_eq!(usage.cached_input, 7 * rounds.len() as u64);
            if rounds.len() == 1 && !rounds[0].iter().any(Part::is_ours) {
                prop_assert_eq!(body, whole(dialect, 0, &rounds[0]));
            }
        }
    }

    #[test]
    fn each_request_extends_the_one_before_by_what_was_said_and_answered(rounds in any_rounds()) {
        for dialect in ApiDialect::ALL {
            let (_, sent) = drive(dialect, &rounds);
            for (at, pair) in sent.windows(2).enumerate() {
                let end = pair[0].rfind(']').unwrap();
                prop_assert!(pair[1].starts_with(&pair[0][..end]), "{} does not extend {}", pair[1], pair[0]);
                prop_assert!(pair[1].ends_with(r#"],"kept":1.0}"#), "{}", pair[1]);
                let request = read(dialect, &pair[1]).unwrap();
                let results: Vec<_> = request.items.iter().filter(|item| item.result.is_some()).collect();
                let asked: usize = rounds[..=at].iter().flatten().filter(|part| part.is_ours()).count();
                prop_assert_eq!(results.len(), asked);
                for item in results {
                    let result = item.result.as_ref().unwrap();
                    prop_assert_eq!(result.name.as_deref(), Some(REHYDRATE));
                    prop_assert_eq!(item.text(), format!("answer to {}", result.id));
                }
            }
        }
    }
}

#[test]
fn a_reply_without_our_calls_is_the_providers_own_bytes() {
    for dialect in FORMATS {
        let parts = [Part::Text("hi".into()), Part::call("c", "read", json!({}))];
        let body = whole(dialect, 0, &parts).replace(':', " : ");
        let mut reply = WholeReply::new(dialect, Some(REHYDRATE));
        reply.take(&body).unwrap();
        assert!(
            reply.rounds().calls().is_empty() && reply.rounds().hidden(&ReplyPlace::default()).is_empty()
        );
        assert_eq!(reply.next(&request(dialect)).unwrap(), None);
        assert_eq!(reply.close().unwrap(), body);
        // Where we offered nothing, a tool of our name is the client's own affair.
        let body = whole(dialect, 0, &[Part::ours("x")]);
        let mut reply = WholeReply::new(dialect, None);
        reply.take(&body).unwrap();
        assert!(reply.rounds().calls().is_empty());
        assert_eq!(reply.close().unwrap(), body);
    }
}

#[test]
fn a_reply_that_ends_although_the_model_waits_says_that_it_ended() {
    for dialect in FORMATS {
        let mut reply = WholeReply::new(dialect, Some(REHYDRATE));
        reply.take(&whole(dialect, 0, &[Part::Text("so".into()), Part::ours("a")])).unwrap();
        let seen = seen_whole(dialect, &reply.close().unwrap());
        assert_eq!(seen.parts, [Part::Text("so".into())]);
        assert_eq!(seen.stop, ["stop", "completed", "end_turn"][dialect as usize]);
    }
}

#[test]
fn a_reply_that_would_say_nothing_says_why() {
    for dialect in FORMATS {
        for said in [vec![], vec![Part::Think("hm".into())], vec![Part::Text(" ".into())]] {
            let thoughts = said.len();
            let mut reply = WholeReply::new(dialect, Some(REHYDRATE));
            reply.take(&whole(dialect, 0, &[said, vec![Part::ours("a"), Part::ours("b")]].concat())).unwrap();
            reply.rounds().give_up("enough");
            let seen = seen_whole(dialect, &reply.close().unwrap());
            let Some(Part::Text(text)) = seen.parts.last() else { panic!("a text: {:?}", seen.parts) };
            assert!(text.ends_with("read back no further: enough]"), "{text}");
            assert_eq!(seen.parts.len(), if dialect == ApiDialect::Chat { 1 } else { thoughts + 1 });
            assert_eq!(seen.stop, ["stop", "completed", "end_turn"][dialect as usize]);
        }
    }
    // Some servers leave the content out.
    let call = r#"{"id":"a","type":"function","function":{"name":"larder_rehydrate","arguments":"{}"}}"#;
    let body =
        format!(r#"{{"choices":[{{"message":{{"tool_calls":[{call}]}},"finish_reason":"tool_calls"}}]}}"#);
    let mut reply = WholeReply::new(ApiDialect::Chat, Some(REHYDRATE));
    reply.take(&body).unwrap();
    let body: Json = serde_json::from_str(&reply.close().unwrap()).unwrap();
    let message = &body["choices"][0]["message"];
    assert!(message["content"].is_string() && message.get("tool_calls").is_none(), "{body}");
}

#[test]
fn a_reply_cut_short_in_our_call_asks_nothing_of_us() {
    let cut = [
        ("\"tool_calls\"}", "\"length\"}"),
        ("\"completed\"", "\"incomplete\""),
        ("\"tool_use\",\"stop", "\"max_tokens\",\"stop"),
    ];
    for dialect in FORMATS {
        let body = whole(dialect, 0, &[Part::ours("a")]);
        let (from, to) = cut[dialect as usize];
        assert!(body.contains(from), "{body}");
        let mut reply = WholeReply::new(dialect, Some(REHYDRATE));
        reply.take(&body.replace(from, to)).unwrap();
        assert!(reply.rounds().calls().is_empty());
        assert_eq!(reply.next(&request(dialect)).unwrap(), None);
        let parts = seen_whole(dialect, &reply.close().unwrap()).parts;
        assert!(matches!(&parts[..], [Part::Text(text)] if text.contains("cut the reply off")), "{parts:?}");
    }
}

#[test]
fn a_text_for_input_becomes_a_list_and_sealed_thoughts_alone_are_sent_back_unstored() {
    let body = json!({"status": "completed", "store": false, "output": [
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "reasoning", "id": "r2", "summary": [], "encrypted_content": "x"},
        {"type": "function_call", "id": "f", "call_id": "c", "name": REHYDRATE, "arguments": "{}"}]});
    let mut reply = WholeReply::new(ApiDialect::Responses, Some(REHYDRATE));
    reply.take(&body.to_string()).unwrap();
    reply.rounds().answer(vec!["text".into()]);
    let next =
        |request: &str| -> Json { serde_json::from_str(&reply.next(request).unwrap().unwrap()).unwrap() };
    let sent = next(r#"{"model":"m","input":"h\u0069"}"#);
    assert_eq!(sent["input"][0], json!({"role": "user", "content": "hi"}));
    assert_eq!(sent["input"][1]["id"], "r2");
    assert_eq!(sent["input"][3], json!({"type": "function_call_output", "call_id": "c", "output": "text"}));
    let sent = next(r#"{"previous_response_id":"r"}"#);
    assert_eq!(sent["input"].as_array().unwrap().len(), 3);
    for held in [r#"{"conversation":"c","input":"hi"}"#, r#"{"conversation":{"id":"c"}}"#] {
        assert_eq!(next(held)["input"].as_array().unwrap().len(), 1, "the conversation has the rest");
    }
    assert!(WholeReply::next(&reply, "no json").is_err());
}

#[test]
fn thoughts_that_a_provider_wants_back_are_sent_back() {
    let mut body: Json = serde_json::from_str(&whole(ApiDialect::Chat, 0, &[Part::ours("a")])).unwrap();
    body["choices"][0]["message"]["reasoning_content"] = json!("hm");
    body["choices"][0]["message"]["tool_calls"][0]["extra_content"] =
        json!({"google": {"thought_signature": "s"}});
    let mut reply = WholeReply::new(ApiDialect::Chat, Some(REHYDRATE));
    reply.take(&body.to_string()).unwrap();
    reply.rounds().answer(vec!["text".into()]);
    let next: Json = serde_json::from_str(&reply.next(&request(ApiDialect::Chat)).unwrap().unwrap()).unwrap();
    assert_eq!(next["messages"][1]["reasoning_content"], "hm");
    assert_eq!(next["messages"][1]["content"], Json::Null);
    assert_eq!(next["messages"][1]["tool_calls"][0]["extra_content"]["google"]["thought_signature"], "s");
}

#[test]
fn odd_numbers_of_a_report_are_left_as_they_are() {
    let report = r#"{"a": 1e308, "b": 2, "c": {"d": 0.5}, "e": "x", "f": -1}"#;
    let doc = Document::parse(report).unwrap();
    let mut tally = Tally::default();
    tally.take(doc.root());
    let sum = json::apply(report, tally.edits(doc.root())).unwrap();
    assert_eq!(sum, r#"{"a": 1e308, "b": 4, "c": {"d": 1}, "e": "x", "f": -2}"#);
    assert_eq!(tally.get("f"), None);
}

#[test]
fn what_a_reply_of_bedrock_costs_is_read_whole() {
    let reply = json!({"output": {"message": {"role": "assistant", "content": [{"text": "four"}]}},
        "stopReason": "end_turn", "serviceTier": {"type": "priority"},
        "usage": {"inputTokens": 10, "outputTokens": 2, "cacheReadInputTokens": 5, "cacheWriteInputTokens": 7,
            "cacheDetails": [{"ttl": "5m", "inputTokens": 3}, {"ttl": "1h", "inputTokens": 4}]}});
    let mut whole = WholeReply::new(ApiDialect::Converse, None);
    whole.take(&reply.to_string()).unwrap();
    let usage = whole.rounds().last().usage.unwrap();
    assert_eq!((usage.input, usage.cache_write, usage.cache_write_1h), (22, 7, 4), "{usage:?}");
    assert_eq!(usage.service, Service::from_name("priority"));
}

#[test]
fn only_text_counts_as_said() {
    let picture = "A".repeat(9_000);
    let chat = json!({"choices": [
        {"index": 0, "logprobs": {"content": [{"token": "four", "bytes": [1, 2, 3]}]},
         "message": {"role": "assistant", "content": "four", "reasoning_content": "three", "audio": {"data": picture},
             "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}},
        {"index": 1, "message": {"role": "assistant", "content": [{"type": "text", "text": "more"}]}}]});
    let messages = json!({"content": [
        {"type": "thinking", "thinking": "three", "signature": picture},
        {"type": "text", "text": "four", "citations": [{"cited_text": "q"}]},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
        {"type": "text", "text": "more"}]});
    let responses = json!({"output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "three"}], "encrypted_content": picture},
        {"type": "image_generation_call", "result": picture},
        {"type": "message", "content": [
            {"type": "output_text", "text": "four", "logprobs": [{"token": "four"}]},
            {"type": "refusal", "refusal": "more"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]});
    for (dialect, body) in
        [(ApiDialect::Chat, chat), (ApiDialect::Responses, responses), (ApiDialect::Messages, messages)]
    {
        let mut reply = WholeReply::new(dialect, None);
        reply.take(&body.to_string()).unwrap();
        assert_eq!(
            reply.rounds().last().said,
            "three".len() + "four".len() + "{}".len() + "more".len(),
            "{dialect:?}"
        );
    }
}
