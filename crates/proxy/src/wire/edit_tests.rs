//! Tests of changing requests.

use std::sync::Arc;

use larder_core::pack::Rendition;
use larder_core::policy::Substitution;
use larder_text::hash::ContentHash;
use larder_text::pointer::{Pointer, PointerKey};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::{ApiDialect, REHYDRATE, read, rehydrate_tool_json};
use super::*;

fn substitution(text: &str) -> Arc<Substitution> {
    let pointer = Pointer::whole(PointerKey::new([1; 32]).mint(ContentHash::new(b"original")));
    let (text, gaps) = (text.to_owned(), Vec::new());
    Arc::new(Substitution {
        rendition: Rendition::Pointer,
        text,
        tokens: 1,
        pointer: Some(pointer),
        gaps,
        complete: None,
    })
}

fn replaced(text: &str) -> MessageForm {
    MessageForm::Replaced(substitution(text))
}

fn dropped_for(text: &str) -> MessageForm {
    MessageForm::DroppedFor(substitution(text))
}

fn by_index(forms: &[(usize, MessageForm)]) -> Vec<(usize, &MessageForm)> {
    forms.iter().map(|(at, form)| (*at, form)).collect()
}

fn changed(dialect: ApiDialect, body: &str, forms: &[(usize, MessageForm)]) -> String {
    let request = read(dialect, body).unwrap();
    json::apply(body, request.rewrite(&by_index(forms))).unwrap()
}

fn offered(dialect: ApiDialect, body: &str) -> String {
    json::apply(body, read(dialect, body).unwrap().offer()).unwrap()
}

#[test]
fn a_result_is_replaced_and_every_other_byte_stays() {
    let body = r#"{ "x": 1.50,"messages":[{"role":"tool","tool_call_id":"c","content":"long\u0020text" , "y":[ ]}]}"#;
    let expected =
        r#"{ "x": 1.50,"messages":[{"role":"tool","tool_call_id":"c","content":"short \"one\"" , "y":[ ]}]}"#;
    assert_eq!(changed(ApiDialect::Chat, body, &[(0, replaced("short \"one\""))]), expected);
}

#[test]
fn non_text_parts_and_breakpoints_are_kept() {
    let body = r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[
        {"type":"text","text":"1"}, {"type":"image","source":{"data":"i"}},
        {"type":"text","text":"2","cache_control":{"type":"ephemeral"}}, {"type":"text","text":"3"}]},
        {"type":"text","text":"mine"}]}]}"#;
    let text = changed(ApiDialect::Messages, body, &[(0, replaced("all"))]);
    let json: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(
        json["messages"][0]["content"][0]["content"],
        json!([{"type":"image","source":{"data":"i"}},
               {"type":"text","text":"all","cache_control":{"type":"ephemeral"}}])
    );
    assert_eq!(json["messages"][0]["content"][1]["text"], "mine");
    let plain = body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let json: Json =
        serde_json::from_str(&changed(ApiDialect::Messages, &plain, &[(0, replaced("all"))])).unwrap();
    assert_eq!(
        json["messages"][0]["content"][0]["content"],
        json!([{"type":"text","text":"all"}, {"type":"image","source":{"data":"i"}}])
    );
}

#[test]
fn dropped_items_take_their_messages_with_them_only_if_nothing_is_left() {
    let body = r#"{"messages":[{"role":"user","content":"go"},
        {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},
                                       {"type":"tool_use","id":"b","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1","summarizable":true},
                                  {"type":"tool_result","tool_use_id":"b","content":"2"}]},
        {"role":"assistant","content":"said"},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"z","content":"3"},{"type":"text","text":"t"}]}]}"#;
    let changes = [
        (1, dropped_for("earlier steps")),
        (2, MessageForm::Dropped),
        (3, MessageForm::Dropped),
        (5, MessageForm::Dropped),
    ];
    let json: Json = serde_json::from_str(&changed(ApiDialect::Messages, body, &changes)).unwrap();
    assert_eq!(
        json["messages"],
        json!([{"role":"user","content":"go"}, {"role":"assistant","content":"earlier steps"},
               {"role":"assistant","content":"said"}, {"role":"user","content":[{"type":"text","text":"t"}]}])
    );
    let orphan = changed(ApiDialect::Messages, body, &[(5, dropped_for("gone"))]);
    let json: Json = serde_json::from_str(&orphan).unwrap();
    assert_eq!(json["messages"][4]["content"][0], json!({"type":"text","text":"gone"}));
}

#[test]
fn dropped_items_of_responses_and_chats_are_elements() {
    let body = r#"{"input":[{"role":"user","content":"go"},{"type":"function_call","call_id":"a","name":"f",
        "arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"},{"role":"user","content":"on"}]}"#;
    let text = changed(ApiDialect::Responses, body, &[(1, MessageForm::Dropped), (2, MessageForm::Dropped)]);
    assert_eq!(text, r#"{"input":[{"role":"user","content":"go"},{"role":"user","content":"on"}]}"#);
    let text = changed(ApiDialect::Responses, body, &[(1, dropped_for("x")), (2, MessageForm::Dropped)]);
    let expected = r#"{"input":[{"role":"user","content":"go"},{"role":"assistant","content":"x"},{"role":"user","content":"on"}]}"#;
    assert_eq!(text, expected);
    let all = changed(
        ApiDialect::Responses,
        body,
        &[
            (0, MessageForm::Dropped),
            (1, MessageForm::Dropped),
            (2, MessageForm::Dropped),
            (3, MessageForm::Dropped),
        ],
    );
    assert_eq!(all, r#"{"input":[]}"#);
}

#[test]
fn our_own_fields_never_reach_a_provider() {
    let body = r#"{"tools":[{"summarizable":false,"type":"function","function":{"name":"f","summarizable":true}}],
      "messages":[{"role":"tool","tool_call_id":"c","content":"summarizable","summarizable": false}]}"#;
    let expected = r#"{"tools":[{"type":"function","function":{"name":"f"}}],
      "messages":[{"role":"tool","tool_call_id":"c","content":"summarizable"}]}"#;
    assert_eq!(changed(ApiDialect::Chat, body, &[]), expected);
}

#[test]
fn our_tool_follows_the_clients_in_each_format() {
    for dialect in [ApiDialect::Chat, ApiDialect::Responses, ApiDialect::Messages] {
        let list = if dialect == ApiDialect::Responses { "input" } else { "messages" };
        let tool: Json = serde_json::from_str(&rehydrate_tool_json(dialect, REHYDRATE)).unwrap();
        let name = if dialect == ApiDialect::Chat { &tool["function"]["name"] } else { &tool["name"] };
        assert_eq!(name, REHYDRATE);
        for tools in [",\"tools\":[]", ",\"tools\":[{\"type\":\"x\"} ]", ",\"tools\":null", ""] {
            let body = format!(r#"{{"model":"m","{list}":[]{tools}}}"#);
            let text = offered(dialect, &body);
            let json: Json = serde_json::from_str(&text).unwrap();
            let tools = json["tools"].as_array().unwrap();
            assert_eq!(tools.last().unwrap(), &tool);
            assert_eq!(json.as_object().unwrap().len(), 3);
            // Where the client has a tool of that name, ours takes another.
            let both: Json = serde_json::from_str(&offered(dialect, &text)).unwrap();
            let last = both["tools"].as_array().unwrap().last().unwrap();
            let name = if dialect == ApiDialect::Chat { &last["function"]["name"] } else { &last["name"] };
            assert_eq!(name, "larder_rehydrate_2");
        }
    }
}

#[test]
fn a_choice_of_tools_is_kept_and_a_list_of_allowed_ones_gets_ours() {
    let body = r#"{"messages":[],"tools":[],"tool_choice":"none"}"#;
    assert!(offered(ApiDialect::Chat, body).ends_with(r#","tool_choice":"none"}"#));
    let chat = r#"{"messages":[],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools",
        "allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}}"#;
    let json: Json = serde_json::from_str(&offered(ApiDialect::Chat, chat)).unwrap();
    let allowed = &json["tool_choice"]["allowed_tools"]["tools"];
    assert_eq!(allowed[1], json!({"type":"function","function":{"name":REHYDRATE}}));
    let responses =
        r#"{"input":"hi","tools":[],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]}}"#;
    let json: Json = serde_json::from_str(&offered(ApiDialect::Responses, responses)).unwrap();
    assert_eq!(json["tool_choice"]["tools"], json!([{"type":"function","name":REHYDRATE}]));
}

#[test]
fn where_calls_of_ours_could_not_be_answered_nothing_is_offered() {
    let bodies = [
        (ApiDialect::Chat, r#"{"messages":[],"n":2}"#),
        (ApiDialect::Chat, r#"{"messages":[],"functions":[{"name":"f"}]}"#),
        (
            ApiDialect::Messages,
            r#"{"messages":[],"tools":[{"name":"larder_rehydrate"},{"name":"larder_rehydrate_2"},
            {"name":"larder_rehydrate_3"},{"name":"larder_rehydrate_4"}]}"#,
        ),
        (ApiDialect::Responses, r#"{"input":"hi","background":true}"#),
    ];
    for (dialect, body) in bodies {
        assert!(read(dialect, body).unwrap().unofferable().is_some(), "{body}");
        assert_eq!(offered(dialect, body), body);
    }
}

#[test]
fn the_model_is_put_in_where_the_clients_stood() {
    let body = r#"{"messages":[],"model" : "mine"}"#;
    let edit = read(ApiDialect::Chat, body).unwrap().set_model("theirs/\"x\"").unwrap();
    assert_eq!(json::apply(body, vec![edit]).unwrap(), r#"{"messages":[],"model" : "theirs/\"x\""}"#);
    assert!(read(ApiDialect::Chat, r#"{"messages":[]}"#).unwrap().set_model("m").is_none());
}

/// A conversation as each format has it.
fn conversation(dialect: ApiDialect, results: &[(String, bool)]) -> Json {
    let mut list = vec![json!({"role":"user","content":"go"})];
    for (at, (text, parts)) in results.iter().enumerate() {
        let id = format!("c{at}");
        match dialect {
            ApiDialect::Chat => {
                let content = if *parts { json!([{"type":"text","text":text}]) } else { json!(text) };
                list.push(json!({"role":"assistant","content":null,"tool_calls":[
                    {"id":id,"type":"function","function":{"name":"f","arguments":"{}"}}]}));
                list.push(json!({"role":"tool","tool_call_id":id,"content":content}));
            }
            ApiDialect::Converse => {
                let call = json!({"toolUseId":id,"name":"f","input":{}});
                list.push(json!({"role":"assistant","content":[{"toolUse":call}]}));
                let result = json!({"toolUseId":id,"content":[{"text":text}]});
                list.push(json!({"role":"user","content":[{"toolResult":result}]}));
            }
            ApiDialect::Messages | ApiDialect::Invoke => {
                let content = if *parts { json!([{"type":"text","text":text}]) } else { json!(text) };
                list.push(
                    json!({"role":"assistant","content":[{"type":"tool_use","id":id,"name":"f","input":{}}]}),
                );
                list.push(json!({"role":"user","content":[{"type":"tool_result","tool_use_id":id,"content":content}]}));
            }
            ApiDialect::Responses => {
                let output = if *parts { json!([{"type":"input_text","text":text}]) } else { json!(text) };
                list.push(json!({"type":"function_call","call_id":id,"name":"f","arguments":"{}"}));
                list.push(json!({"type":"function_call_output","call_id":id,"output":output}));
            }
        }
    }
    let name = if dialect == ApiDialect::Responses { "input" } else { "messages" };
    json!({"model":"m", name: list, "unknown": {"kept": [1.5, null]}})
}

proptest! {
    #[test]
    fn replaced_results_are_all_that_changes(
        results in prop::collection::vec((any::<String>(), any::<bool>()), 1..5),
        new in prop::collection::vec(prop::option::of("[ -~\n\"\\\\é]{1,20}"), 5),
        dialect in prop::sample::select(ApiDialect::ALL.to_vec()),
    ) {
        let body = serde_json::to_string_pretty(&conversation(dialect, &results)).unwrap();
        let request = read(dialect, &body).unwrap();
        let tools: Vec<usize> = (0..request.items.len()).filter(|&at| request.items[at].result.is_some()).collect();
        prop_assert_eq!(tools.len(), results.len());
        let changes: Vec<_> = tools.iter().zip(&new).filter_map(|(&at, new)| Some((at, replaced(new.as_deref()?)))).collect();
        let edits = request.rewrite(&by_index(&changes));
        prop_assert_eq!(edits.len(), changes.len());
        let text = json::apply(&body, edits).unwrap();
        let expected: Vec<_> = results.iter().zip(&new)
            .map(|((old, parts), new)| (new.clone().unwrap_or_else(|| old.clone()), *parts)).collect();
        // Same values, and the same bytes: the writer spells as we do.
        prop_assert_eq!(&text, &serde_json::to_string_pretty(&conversation(dialect, &expected)).unwrap());
        let again = read(dialect, &text).unwrap();
        for (at, (text, _)) in tools.iter().zip(&expected) {
            prop_assert_eq!(again.items[*at].text(), text.as_str());
        }
    }

    #[test]
    fn any_changes_of_any_items_leave_a_request_of_the_other_items(
        results in prop::collection::vec((Just("text".to_owned()), any::<bool>()), 1..5),
        kinds in prop::collection::vec(0..4, 12),
        dialect in prop::sample::select(ApiDialect::ALL.to_vec()),
    ) {
        let body = conversation(dialect, &results).to_string();
        let request = read(dialect, &body).unwrap();
        let change = |at: usize| match kinds[at % kinds.len()] {
            0 => None,
            1 => Some((at, replaced("new"))),
            2 => Some((at, MessageForm::Dropped)),
            _ => Some((at, dropped_for("gone"))),
        };
        let changes: Vec<_> = (0..request.items.len()).filter_map(change).collect();
        let text = json::apply(&body, request.rewrite(&by_index(&changes))).unwrap();
        let again = read(dialect, &text).unwrap();
        let dropped = changes.iter().filter(|(_, change)| *change == MessageForm::Dropped).count();
        prop_assert_eq!(again.items.len(), request.items.len() - dropped);
    }
}
