//! Tests of putting back what clients are not shown.

use larder_text::json;
use proptest::prelude::*;
use serde_json::json;

use super::super::ApiDialect;
use super::super::reply::{WholeReply, tests::request};
use super::super::testing::{FORMATS, Part, any_rounds, seen_whole, whole};
use super::super::{REHYDRATE, read};
use super::*;

/// What a client sends after a reply: its history with the reply, and the results of its calls, re-spelled as clients do.
fn history(dialect: ApiDialect, units: &[Json], parts: &[Part]) -> String {
    let mut body: Json = serde_json::from_str(&request(dialect)).unwrap();
    let name = if dialect == ApiDialect::Responses { "input" } else { "messages" };
    let list = body[name].as_array_mut().unwrap();
    let calls =
        parts.iter().filter_map(|part| if let Part::Call { id, .. } = part { Some(id) } else { None });
    match dialect {
        ApiDialect::Responses => {
            list.extend(units.iter().cloned());
            list.extend(
                calls.map(|id| json!({"type": "function_call_output", "call_id": id, "output": "done"})),
            );
        }
        ApiDialect::Chat => {
            list.push(units[0].clone());
            list.extend(calls.map(|id| json!({"role": "tool", "tool_call_id": id, "content": "done"})));
        }
        ApiDialect::Converse => {
            let results: Vec<Json> = calls
                .map(|id| json!({"toolResult": {"toolUseId": id, "content": [{"text": "done"}]}}))
                .collect();
            list.push(json!({"content": units, "role": "assistant"}));
            list.push(json!({"role": "user", "content": results}));
        }
        ApiDialect::Messages | ApiDialect::Invoke => {
            let results: Vec<Json> = calls
                .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "done"}))
                .collect();
            list.push(json!({"content": units, "role": "assistant"}));
            list.push(json!({"role": "user", "content": results}));
        }
    }
    // Clients of JavaScript drop the point of whole numbers.
    serde_json::to_string_pretty(&body).unwrap().replace("1.0", "1")
}

/// Ids of calls and results in order, and whether each result follows its call.
fn pairing(body: &str, dialect: ApiDialect) -> Vec<(String, bool)> {
    let request = read(dialect, body).unwrap();
    let mut open = Vec::new();
    let mut all = Vec::new();
    for item in &request.items {
        for call in &item.calls {
            open.push(call.id.to_string());
            all.push((call.id.to_string(), false));
        }
        if let Some(result) = &item.result {
            assert!(open.contains(&result.id.to_string()), "a result before its call: {body}");
            all.push((result.id.to_string(), true));
        }
    }
    all
}

fn reply(dialect: ApiDialect, rounds: &[Vec<Part>]) -> (Vec<HiddenSteps>, String) {
    let mut reply = WholeReply::new(dialect, Some(REHYDRATE));
    let mut sent = request(dialect);
    for (at, parts) in rounds.iter().enumerate() {
        reply.take(&whole(dialect, at, parts)).unwrap();
        let answers = reply.rounds().calls().iter().map(|call| format!("answer to {}", call.id)).collect();
        reply.rounds().answer(answers);
        sent = reply.next(&sent).unwrap().unwrap_or(sent);
    }
    let place = read(dialect, &request(dialect)).unwrap().place();
    (reply.rounds().hidden(&place), reply.close().unwrap())
}

proptest! {
    #[test]
    fn hidden_steps_are_restored_in_place(rounds in any_rounds()) {
        for dialect in ApiDialect::ALL {
            let (hidden, body) = reply(dialect, &rounds);
            // It survives being stored.
            let hidden: Vec<HiddenSteps> = serde_json::from_str(&serde_json::to_string(&hidden).unwrap()).unwrap();
            let seen = seen_whole(dialect, &body);
            let history = history(dialect, &seen.units, &seen.parts);
            let find = |key: &str| hidden.iter().find(|hidden| hidden.keys.iter().any(|own| own == key)).cloned();
            let edits = read(dialect, &history).unwrap().restore(find);
            let restored = json::apply(&history, edits).unwrap();

            // Every call of ours that can be anchored is back, with its result.
            let asks = rounds.last().unwrap().iter().any(|part| matches!(part, Part::Call { .. }));
            let keyed = |part: &Part| dialect != ApiDialect::Chat || matches!(part, Part::Call { .. });
            // A chat has the texts of all rounds in one.
            let text = rounds.iter().flatten().any(|part| matches!(part, Part::Text(_)));
            let mut expected = 0;
            for (at, parts) in rounds.iter().enumerate() {
                let ours = parts.iter().filter(|part| part.is_ours()).count();
                let anchored = at + 1 == rounds.len() && asks
                    || dialect == ApiDialect::Chat && text
                    || rounds[at + 1..].iter().flatten().any(|part| keyed(part) && !part.is_ours());
                expected += if anchored { ours } else { 0 };
            }
            let pairs = pairing(&restored, dialect);
            let again = read(dialect, &restored).unwrap();
            let ours: Vec<_> = again.items.iter()
                .filter(|item| item.result.as_ref().is_some_and(|result| result.name.as_deref() == Some(REHYDRATE)))
                .collect();
            prop_assert_eq!(ours.len(), expected, "{:?} {}", dialect, restored);
            for item in ours {
                prop_assert_eq!(item.text(), format!("answer to {}", item.result.as_ref().unwrap().id));
            }
            // Each call has one result, and calls stand in the order in which they were made.
            let calls: Vec<&String> = pairs.iter().filter(|(_, result)| !result).map(|(id, _)| id).collect();
            let results = pairs.iter().filter(|(_, result)| *result).count();
            prop_assert_eq!(calls.len(), results);
            let made: Vec<&String> = rounds[..rounds.len() - 1].iter().flatten()
                .filter_map(|part| if let Part::Call { id, .. } = part { Some(id) } else { None })
                .filter(|id| calls.contains(id)).collect();
            prop_assert_eq!(&calls[..made.len()], &made[..]);
            // What the client said is untouched.
            let plain = read(dialect, &history).unwrap();
            for at in 0..plain.messages() {
                if dialect == ApiDialect::Responses {
                    prop_assert!(restored.contains(plain.message(at)));
                }
            }
        }
    }

    #[test]
    fn results_are_in_the_message_after_their_calls(rounds in any_rounds()) {
        // Anthropic refuses anything else.
        let (hidden, body) = reply(ApiDialect::Messages, &rounds);
        let seen = seen_whole(ApiDialect::Messages, &body);
        let history = history(ApiDialect::Messages, &seen.units, &seen.parts);
        let find = |key: &str| hidden.iter().find(|hidden| hidden.keys.iter().any(|own| own == key)).cloned();
        let restored = json::apply(&history, read(ApiDialect::Messages, &history).unwrap().restore(find)).unwrap();
        let restored: Json = serde_json::from_str(&restored).unwrap();
        let messages = restored["messages"].as_array().unwrap();
        for (at, message) in messages.iter().enumerate() {
            let uses: Vec<_> = message["content"].as_array().into_iter().flatten()
                .filter(|block| block["type"] == "tool_use").map(|block| block["id"].clone()).collect();
            if uses.is_empty() {
                continue;
            }
            prop_assert_eq!(&message["role"], "assistant");
            // All its results stand in the very next message.
            let next = &messages[at + 1];
            prop_assert_eq!(&next["role"], "user");
            let mut results: Vec<_> = next["content"].as_array().unwrap().iter()
                .map(|block| block["tool_use_id"].clone()).collect();
            let mut uses = uses;
            uses.sort_by_key(Json::to_string);
            results.sort_by_key(Json::to_string);
            prop_assert_eq!(uses, results);
        }
    }
}

#[test]
fn without_its_memory_a_history_stays_as_it_is() {
    for dialect in ApiDialect::ALL {
        let (_, body) = reply(dialect, &[vec![Part::ours("a")], vec![Part::call("b", "read", json!({}))]]);
        let seen = seen_whole(dialect, &body);
        let history = history(dialect, &seen.units, &seen.parts);
        assert_eq!(read(dialect, &history).unwrap().restore(|_| None), []);
    }
}

#[test]
fn a_call_of_another_conversation_with_the_same_id_is_another_call() {
    let call = |arguments: &str| {
        let text = json!({"id": "read:0", "function": {"name": "read", "arguments": arguments}}).to_string();
        let doc = larder_text::json::Document::parse(&text).unwrap();
        ApiDialect::Chat.format().keys(doc.root(), false)
    };
    assert_eq!(call(r#"{"b":[1.0,{"d":1,"c":2}],"a":2}"#), call(r#"{ "a": 2, "b": [1, {"c": 2, "d": 1}] }"#));
    assert_ne!(call(r#"{"a":1}"#), call(r#"{"a":2}"#));
    assert_ne!(call("x"), call("y"));
    let no_id = json!({"id": "", "function": {"name": "f", "arguments": ""}}).to_string();
    assert!(
        ApiDialect::Chat
            .format()
            .keys(larder_text::json::Document::parse(&no_id).unwrap().root(), false)
            .is_empty()
    );
}

#[test]
fn where_the_provider_holds_the_history_it_gets_the_results_it_lacks() {
    let rounds = [vec![Part::ours("a")], vec![Part::call("b", "read", json!({})), Part::ours("c")]];
    let (hidden, _) = reply(ApiDialect::Responses, &rounds);
    let body = r#"{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"b","output":"x"}]}"#;
    let find = |key: &str| hidden.iter().find(|hidden| hidden.keys.iter().any(|own| own == key)).cloned();
    let restored = json::apply(body, read(ApiDialect::Responses, body).unwrap().restore(find)).unwrap();
    let restored: Json = serde_json::from_str(&restored).unwrap();
    let ids: Vec<_> =
        restored["input"].as_array().unwrap().iter().map(|item| item["call_id"].clone()).collect();
    assert_eq!(ids, ["c", "b"], "the first step's result is with the provider already");
    assert_eq!(restored["input"][0]["type"], "function_call_output");
}

#[test]
fn a_breakpoint_of_the_cache_stays_on_its_block() {
    let rounds = [vec![Part::ours("a")], vec![Part::call("b", "read", json!({}))]];
    let (hidden, _) = reply(ApiDialect::Messages, &rounds);
    let body = r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"read","input":{},
        "cache_control":{"type":"ephemeral"}}],"x":1}]}"#;
    let find = |key: &str| hidden.iter().find(|hidden| hidden.keys.iter().any(|own| own == key)).cloned();
    let restored = json::apply(body, read(ApiDialect::Messages, body).unwrap().restore(find)).unwrap();
    let json: Json = serde_json::from_str(&restored).unwrap();
    assert_eq!(json["messages"].as_array().unwrap().len(), 3);
    assert_eq!(json["messages"][2]["content"][0]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(json["messages"][2]["x"], 1);
}

/// A history of texts: who speaks, and what; `parts`: as parts, not as a string.
fn texts(dialect: ApiDialect, said: &[(&str, &str)], parts: bool) -> String {
    let message = |(role, text): &(&str, &str)| {
        let kind = match (dialect, *role) {
            (ApiDialect::Responses, "assistant") => "output_text",
            (ApiDialect::Responses, _) => "input_text",
            _ => "text",
        };
        let content = if parts { json!([{"type": kind, "text": text}]) } else { json!(text) };
        json!({"role": role, "content": content})
    };
    let name = if dialect == ApiDialect::Responses { "input" } else { "messages" };
    json!({"model": "m", name: said.iter().map(message).collect::<Vec<_>>()}).to_string()
}

fn put(hidden: &[HiddenSteps], dialect: ApiDialect, body: &str) -> Vec<Json> {
    let find = |key: &str| hidden.iter().find(|hidden| hidden.keys.iter().any(|own| own == key)).cloned();
    let restored = json::apply(body, read(dialect, body).unwrap().restore(find)).unwrap();
    let restored: Json = serde_json::from_str(&restored).unwrap();
    let name = if dialect == ApiDialect::Responses { "input" } else { "messages" };
    restored[name].as_array().unwrap().clone()
}

#[test]
fn a_text_is_known_by_its_place_however_it_is_spelled() {
    let said =
        [("user", "go"), ("assistant", "done"), ("user", "more"), ("assistant", "done"), ("user", "?")];
    for dialect in FORMATS {
        let (hidden, _) = reply(dialect, &[vec![Part::ours("a")], vec![Part::Text("done".into())]]);
        for parts in [false, true] {
            let body = texts(dialect, &said, parts);
            let plain: Json = serde_json::from_str(&body).unwrap();
            let name = if dialect == ApiDialect::Responses { "input" } else { "messages" };
            let plain = plain[name].as_array().unwrap();
            let list = put(&hidden, dialect, &body);
            // The call and its result, before the first of two equal texts, and nothing before the second.
            assert_eq!(list.len(), plain.len() + 2, "{dialect:?} {parts} {list:?}");
            assert_eq!(list[0], plain[0]);
            assert_eq!(list[3]["role"], "assistant");
            assert_eq!(list[4..], plain[2..]);
            assert!(list[1].to_string().contains(REHYDRATE), "{:?}", list[1]);
            assert!(list[2].to_string().contains("answer to a"), "{:?}", list[2]);
        }
    }
}

#[test]
fn a_changed_or_moved_text_restores_nothing() {
    for dialect in FORMATS {
        let (hidden, _) = reply(dialect, &[vec![Part::ours("a")], vec![Part::Text("done".into())]]);
        for said in [
            [("user", "go"), ("assistant", "Done")],
            [("user", "went"), ("assistant", "done")],
            [("assistant", "done"), ("user", "go")],
            [("user", "go"), ("user", "done")],
        ] {
            let body = texts(dialect, &said, false);
            assert_eq!(put(&hidden, dialect, &body).len(), 2, "{dialect:?} {body}");
        }
        let body = texts(dialect, &[("user", "go"), ("user", "go"), ("assistant", "done")], true);
        assert_eq!(put(&hidden, dialect, &body).len(), 3, "{dialect:?} {body}");
    }
}

#[test]
fn a_step_with_two_anchors_is_restored_once() {
    let rounds = [vec![Part::ours("a")], vec![Part::Think("hm".into()), Part::Text("done".into())]];
    let (hidden, body) = reply(ApiDialect::Messages, &rounds);
    let seen = seen_whole(ApiDialect::Messages, &body);
    let whole = history(ApiDialect::Messages, &seen.units, &seen.parts);
    let without = history(ApiDialect::Messages, &seen.units[1..], &seen.parts);
    for body in [whole, without] {
        let list = put(&hidden, ApiDialect::Messages, &body);
        let all = Json::Array(list).to_string();
        assert_eq!(all.matches(REHYDRATE).count(), 1, "{all}");
    }
}

#[test]
fn each_message_of_a_chat_gets_its_own_text_again() {
    let rounds = [
        vec![Part::Text("one".into()), Part::ours("a")],
        vec![Part::Text("two ".into()), Part::ours("b")],
        vec![Part::Text("three".into())],
    ];
    let (hidden, _) = reply(ApiDialect::Chat, &rounds);
    let said = [("user", "go"), ("assistant", "one\n\ntwo three")];
    let list = put(&hidden, ApiDialect::Chat, &texts(ApiDialect::Chat, &said, false));
    let texts: Vec<&Json> = list.iter().map(|message| &message["content"]).collect();
    assert_eq!(texts, ["go", "one", "answer to a", "two ", "answer to b", "three"]);
}
