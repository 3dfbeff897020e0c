//! Requests of `Converse`, read and edited.

use std::sync::Arc;

use larder_core::pack::Rendition;
use larder_core::policy::{MessageForm, Substitution};
use larder_text::json;
use serde_json::{Value as Json, json};

use super::super::dialect::ApiDialect;
use super::super::request::{Request, read};
use super::*;

#[test]
fn what_the_provider_may_edit_is_known() {
    let edited = |own: Json| {
        let body = json!({"messages": [{"role": "user", "content": [{"text": "go"}]}], "additionalModelRequestFields": own});
        read(ApiDialect::Converse, &body.to_string()).unwrap().edited_elsewhere
    };
    assert_eq!(edited(json!({"top_k": 5})), None);
    let edits = json!({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}});
    assert_eq!(edited(edits), Some("additionalModelRequestFields.context_management"));
}

fn body() -> Json {
    json!({
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "user", "content": [
                {"text": "look"},
                {"image": {"format": "png", "source": {"bytes": "QUJD"}}},
                {"document": {"format": "pdf", "name": "d", "source": {"bytes": "QUJD"}}},
                {"document": {"format": "txt", "name": "d", "source": {"text": "plain"}}},
            ]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "seal"}}},
                {"reasoningContent": {"redactedContent": "c2VhbA=="}},
                {"text": "I look."},
                {"toolUse": {"toolUseId": "a", "name": "find", "input": {"q": 1}}},
                {"toolUse": {"toolUseId": "b", "name": "find", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "one"}, {"text": "two"}]}},
                {"toolResult": {"toolUseId": "b", "content": [{"json": {"x": 1}}], "status": "error"}},
                {"cachePoint": {"type": "default"}},
            ]},
        ],
        "inferenceConfig": {"maxTokens": 77},
        "toolConfig": {"tools": [{"toolSpec": {"name": "find", "inputSchema": {"json": {}}}}, {"cachePoint": {"type": "default"}}]},
    })
}

fn substitution(text: &str) -> Arc<Substitution> {
    let (text, gaps) = (text.to_owned(), Vec::new());
    let rendition = Rendition::Pointer;
    Arc::new(Substitution { rendition, text, tokens: 1, pointer: None, gaps, complete: None })
}

fn edited(text: &str, edits: impl FnOnce(&Request<'_>) -> Vec<Edit>) -> Json {
    let edits = edits(&read(ApiDialect::Converse, text).unwrap());
    serde_json::from_str(&json::apply(text, edits).unwrap()).unwrap()
}

#[test]
fn every_block_has_its_place() {
    let text = body().to_string();
    let request = read(ApiDialect::Converse, &text).unwrap();
    assert_eq!((request.max_output, request.model.is_none(), request.stream), (Some(77), true, false));
    let roles: Vec<Role> = request.items.iter().map(Item::role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Tool]);
    let texts: Vec<&str> = request.items.iter().map(Item::text).collect();
    assert_eq!(texts, ["Be brief.", "look", "I look.", "one\ntwo", ""]);
    let kinds: Vec<Vec<OpaqueKind>> =
        request.items.iter().map(|item| item.opaque.iter().map(|opaque| opaque.kind).collect()).collect();
    assert_eq!(kinds[1], [OpaqueKind::Image, OpaqueKind::File, OpaqueKind::Other]);
    assert_eq!(kinds[2], [OpaqueKind::Reasoning, OpaqueKind::Sealed]);
    assert_eq!(request.items[2].opaque[0].counted, "\"hm\"");
    assert_eq!(kinds[4], [OpaqueKind::Other]);
    let calls: Vec<_> =
        request.items[2].calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect();
    assert_eq!(calls, [("a", "find", r#"{"q":1}"#), ("b", "find", "{}")]);
    let results: Vec<_> = request.items[3..].iter().filter_map(|item| item.result.as_ref()).collect();
    assert_eq!(
        results.iter().map(|result| (&*result.id, result.error)).collect::<Vec<_>>(),
        [("a", false), ("b", true)]
    );
    assert_eq!(results[0].name.as_deref(), Some("find"));
    assert_eq!(request.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["find"]);
}

#[test]
fn moved_cache_points_leave_a_message_the_same() {
    let message = |content: Json| json!({"messages": [{"role": "user", "content": content}]}).to_string();
    let identity = |content: Json| read(ApiDialect::Converse, &message(content)).unwrap().identity(0);
    let plain = identity(json!([{"text": "a"}, {"text": "b"}]));
    assert_eq!(identity(json!([{"text": "a"}, {"text": "b"}, {"cachePoint": {"type": "default"}}])), plain);
    assert_eq!(identity(json!([{"text": "a"}, {"cachePoint": {"type": "default"}}, {"text": "b"}])), plain);
    assert_ne!(identity(json!([{"text": "a"}])), plain);
}

#[test]
fn our_tool_joins_the_clients_or_stands_alone() {
    let tools = edited(&body().to_string(), |request| request.offer())["toolConfig"]["tools"].clone();
    assert_eq!(tools[2]["toolSpec"]["name"], "larder_rehydrate");
    assert!(
        tools[2]["toolSpec"]["inputSchema"]["json"].is_object()
            && tools[0] == body()["toolConfig"]["tools"][0]
    );
    let bare = json!({"messages": [{"role": "user", "content": [{"text": "a"}]}]}).to_string();
    let tools = edited(&bare, |request| request.offer())["toolConfig"]["tools"].clone();
    assert_eq!(
        (tools.as_array().map(Vec::len), &tools[0]["toolSpec"]["name"]),
        (Some(1), &json!("larder_rehydrate"))
    );
    for body in
        [r#"{"messages":[],"toolConfig":{}}"#, r#"{"messages":[],"promptVariables":{"a":{"text":"b"}}}"#]
    {
        assert!(read(ApiDialect::Converse, body).unwrap().unofferable().is_some(), "{body}");
    }
}

#[test]
fn a_result_is_replaced_where_it_stands() {
    let text = body().to_string();
    let form = MessageForm::Replaced(substitution("short"));
    let new = edited(&text, |request| request.rewrite(&[(3, &form)]));
    let mut expected = body();
    expected["messages"][2]["content"][0]["toolResult"]["content"] = json!([{"text": "short"}]);
    assert_eq!(new, expected);
    // A message of the model's and its results are dropped for a note.
    let note = MessageForm::DroppedFor(substitution("gone"));
    let dropped = MessageForm::Dropped;
    let new = edited(&text, |request| request.rewrite(&[(2, &note), (3, &dropped), (4, &dropped)]));
    assert_eq!(
        new["messages"],
        json!([body()["messages"][0], {"role": "assistant", "content": [{"text": "gone"}]}])
    );
}
