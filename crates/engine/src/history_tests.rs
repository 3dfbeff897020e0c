//! Conversations in the forms of the APIs.

use larder_text::message::ToolCall;
use larder_text::picture::Picture;
use serde_json::json;

use super::message::FAILED;
use super::*;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn key() -> PointerKey {
    PointerKey::new([7; 32])
}

fn whole(value: &Value) -> Result<History, Vec<String>> {
    super::read(&value.to_string(), &key())
}

fn read(value: Value) -> Vec<Message> {
    whole(&value).unwrap().messages
}

fn call(id: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "bash".into(), arguments: r#"{"command":"ls"}"#.into() }
}

#[test]
fn every_api_and_our_own_form_give_the_same_messages() {
    let openai = json!([
        {"role": "user", "content": "fix it"},
        {"role": "assistant", "content": null, "refusal": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\":\"ls\"}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.rs"},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]);
    let anthropic = json!({"messages": [
        {"role": "user", "content": "fix it"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a.rs"}]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]});
    let bedrock = json!({"messages": [
        {"role": "user", "content": [{"text": "fix it"}, {"cachePoint": {"type": "default"}}]},
        {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "c1", "name": "bash", "input": {"command": "ls"}}}]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "c1", "content": [{"text": "a.rs"}], "status": "success"}}]},
        {"role": "assistant", "content": [{"text": "done"}]},
    ]});
    let read_openai = read(openai);
    assert_eq!(read_openai, read(anthropic));
    assert_eq!(read_openai, read(bedrock));
    assert_eq!(read_openai[1].tool_calls, [call("c1")]);
    assert_eq!(read_openai[2].tool_call_id.as_deref(), Some("c1"));
    let ours = serde_json::to_value(&read_openai).unwrap();
    assert_eq!(read(ours), read_openai);
}

#[test]
fn results_and_words_of_one_message_become_messages_in_their_order() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "bash", "input": {}});
    let found = read(json!({"system": "be brief", "messages": [
        {"role": "assistant", "content": [call("a"), call("b")]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "no such file", "is_error": true},
            {"type": "tool_result", "tool_use_id": "b"},
            {"type": "text", "text": "go on"}]},
    ]}));
    let texts: Vec<_> = found.iter().map(|message| (message.role, message.joined_text())).collect();
    let failed = format!("{FAILED}\nno such file");
    let expected = [
        (Role::System, "be brief".to_owned()),
        (Role::Assistant, String::new()),
        (Role::Tool, failed),
        (Role::Tool, String::new()),
        (Role::User, "go on".to_owned()),
    ];
    assert_eq!(texts, expected);
}

/// What a mark of a message leads to.
fn behind(history: &History, text: &str) -> Vec<u8> {
    let pointers = key().find_in(text);
    let [(_, pointer)] = pointers.as_slice() else { panic!("{text}") };
    let original = history.originals.iter().find(|original| original.pointer(&key()) == *pointer);
    original.unwrap().content.clone()
}

#[test]
fn what_is_not_text_is_behind_its_mark() {
    let file = json!({"type": "document", "title": "Tides", "source": {"type": "base64", "data": "JVBE".repeat(200)}});
    let found = whole(&json!([
        {"role": "assistant", "reasoning_content": "Think.", "content": [
            {"type": "thinking", "thinking": "List first.", "signature": "x"},
            {"type": "redacted_thinking", "data": "c2VjcmV0"},
            {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [
            {"type": "text", "text": "seen:"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]}]},
        {"role": "user", "name": "Ann", "content": [
            {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}"), "detail": "low"}},
            {"type": "text", "text": "and this?"}]},
        {"role": "user", "content": [file]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]},
        {"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "The tide is at 4.7 m."}}]},
    ]))
    .unwrap();
    let text = |at: usize| found.messages[at].joined_text();
    assert!(text(0).starts_with("[thinking]\nThink.\n") && text(0).contains("List first."), "{}", text(0));
    assert!(text(0).ends_with("\n[thinking that its provider encrypted]\n"), "{}", text(0));
    assert_eq!(found.messages[0].tool_calls, [call("c1")]);
    let png = Picture::from_base64(PNG).unwrap();
    assert!(text(1).starts_with("seen:\n[picture, image/png, 70 bytes: lp1-"), "{}", text(1));
    assert_eq!([behind(&found, &text(1)), behind(&found, &text(2))], [png.file(), png.file()]);
    assert!(text(2).contains("Ann") && text(2).ends_with("]\nand this?"), "{}", text(2));
    assert!(text(3).starts_with("[document \"Tides\": lp1-"), "{}", text(3));
    assert_eq!(behind(&found, &text(3)), file.to_string().into_bytes());
    assert_eq!(text(4), "[picture: https://a.example/b.png]\n");
    assert!(text(5).contains("The tide is at 4.7 m."), "{}", text(5));
    // The whole, two pictures and a file.
    assert_eq!(found.originals.len(), 4);
}

#[test]
fn the_conversation_is_kept_as_it_was_given() {
    let given = " [ {\"role\" : \"user\", \"content\": \"x\", \"phase\": \"draft\"} ]\n";
    assert_eq!(super::read(given, &key()).unwrap().originals[0].content, given.as_bytes());
}

#[test]
fn calls_of_any_tool_have_their_results() {
    let shot = json!({"type": "computer_screenshot", "image_url": format!("data:image/png;base64,{PNG}")});
    let found = whole(&json!([
        {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "error: patch failed to apply at a.rs:3"},
        {"type": "local_shell_call", "call_id": "b", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "call_id": "b", "output": [{"stdout": "a.rs", "stderr": ""}]},
        {"type": "computer_call", "call_id": "c", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "c", "output": shot},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "List first."}], "encrypted_content": "x"},
    ]))
    .unwrap();
    let names: Vec<&str> = found
        .messages
        .iter()
        .flat_map(|message| &message.tool_calls)
        .map(|call| call.name.as_str())
        .collect();
    assert_eq!(names, ["apply_patch", "local_shell", "computer"]);
    assert_eq!(found.messages[0].tool_calls[0].arguments, r#"{"input":"*** Begin Patch"}"#);
    assert_eq!(found.messages[1].joined_text(), "error: patch failed to apply at a.rs:3");
    assert!(found.messages[3].joined_text().contains("a.rs"));
    assert_eq!(behind(&found, &found.messages[5].joined_text()), Picture::from_base64(PNG).unwrap().file());
    assert!(found.messages[6].joined_text().contains("List first."));
}

#[test]
fn items_of_responses_are_the_messages_of_chat() {
    let call = |id: &str| {
        json!({"type": "function_call", "id": "fc", "call_id": id, "name": "bash",
        "arguments": "{\"command\":\"ls\"}", "status": "completed"})
    };
    let found = read(json!({"instructions": "be brief", "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "fix it"}]},
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "List first."}]},
        call("c1"),
        call("c2"),
        {"type": "function_call_output", "call_id": "c1", "output": "a.rs"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "b.rs"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done", "annotations": []}]},
    ]}));
    let roles: Vec<Role> = found.iter().map(|message| message.role).collect();
    let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    assert_eq!(names, ["system", "user", "assistant", "tool", "tool", "assistant", "assistant"]);
    assert_eq!(found[2].tool_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["c1", "c2"]);
    assert!(found[2].joined_text().contains("List first."));
    assert_eq!((found[4].joined_text(), found[6].joined_text()), ("b.rs".into(), "done".into()));
    let item = json!({"type": "web_search_call", "id": "x", "action": {"query": "y"}});
    let searched = whole(&json!([item])).unwrap();
    assert_eq!(searched.messages[0].joined_text(), format!("[web_search_call: {item}]\n"));
}

#[test]
fn what_bedrock_writes_besides_text_is_kept() {
    let found = whole(&json!({"system": [{"text": "be brief"}], "messages": [
        {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "List first.", "signature": "x"}}},
            {"toolUse": {"toolUseId": "c1", "name": "bash"}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "status": "error", "content": [
            {"json": {"code": 2}}, {"image": {"format": "png", "source": {"bytes": PNG}}}]}}]},
        {"role": "user", "content": [{"document": {"name": "Tides", "source": {"bytes": "JVBE".repeat(200)}}}]},
    ]}))
    .unwrap();
    let text = |at: usize| found.messages[at].joined_text();
    assert_eq!((text(0).as_str(), found.messages[1].tool_calls[0].arguments.as_str()), ("be brief", "{}"));
    assert!(text(1).contains("List first."), "{}", text(1));
    assert!(text(2).starts_with(FAILED) && text(2).contains(r#"{"code":2}"#), "{}", text(2));
    assert_eq!(behind(&found, &text(2)), Picture::from_base64(PNG).unwrap().file());
    let file = String::from_utf8(behind(&found, &text(3))).unwrap();
    assert!(file.contains(r#""document":{"name":"Tides""#), "{file}");
}

#[test]
fn custom_calls_of_chat_are_those_of_responses() {
    let found = read(json!([
        {"role": "assistant", "tool_calls": [
            {"id": "a", "type": "custom", "custom": {"name": "apply_patch", "input": "*** Begin Patch"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "done"},
    ]));
    assert_eq!(found[0].tool_calls[0].arguments, r#"{"input":"*** Begin Patch"}"#);
}

#[test]
fn a_result_without_its_call_is_named() {
    let problems = whole(&json!([
        {"role": "user", "content": "x"},
        {"role": "tool", "tool_call_id": "c9", "content": "x"},
    ]));
    let expected =
        "message 2: no message before it calls a tool with the id \"c9\", or that call has its result";
    assert_eq!(problems.unwrap_err(), [expected]);
}

#[test]
fn a_call_without_its_result_is_named_unless_it_is_last() {
    let calls = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "bash", "input": {}},
        {"type": "tool_use", "id": "b", "name": "bash", "input": {}}]});
    let result = json!({"role": "tool", "tool_call_id": "b", "content": "done"});
    let problems = whole(&json!([calls, result, {"role": "user", "content": "well?"}, calls])).unwrap_err();
    let expected = "message 1: its call of bash (id \"a\") has no result before message 3; add the result, or leave \
                    the call out";
    assert_eq!(problems, [expected]);
    // A result that comes too late is no better.
    let late = json!([calls, result, {"role": "user", "content": "well?"},
        {"role": "tool", "tool_call_id": "a", "content": "x"}]);
    assert_eq!(whole(&late).unwrap_err(), [expected]);
    // So it is with the items of Responses.
    let item = |id: &str| json!({"type": "function_call", "call_id": id, "name": "bash", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "b", "output": "done"});
    let problems = whole(&json!([item("a"), item("b"), output, item("c")])).unwrap_err();
    assert!(problems[0].starts_with("message 1: its call of bash (id \"a\")"), "{problems:?}");

    let found = whole(&json!([calls, result])).unwrap();
    let ids: Vec<_> = found.messages[1..].iter().map(|message| message.tool_call_id.as_deref()).collect();
    assert_eq!(ids, [Some("b"), Some("a")]);
    assert_eq!(found.messages[2].joined_text(), NO_RESULT);
    assert_eq!(found.notes, ["message 1: its call of bash has no result; the prompt says so"]);

    let asked = question(&json!([calls, {"role": "user", "content": "well?"}]).to_string(), &key());
    let problems = asked.unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("has no result before the question"), "{problems:?}");
    // One that has its result is not said to lack it because an earlier one does.
    let asked = json!([calls, {"role": "user", "content": "well?"}, calls, result,
        {"role": "tool", "tool_call_id": "a", "content": "done"}, {"role": "user", "content": "and now?"}]);
    let problems = question(&asked.to_string(), &key()).unwrap_err();
    assert!(problems.iter().all(|problem| problem.starts_with("message 1")), "{problems:?}");
}

#[test]
fn what_a_text_cites_is_read() {
    let long = "QUJD".repeat(200);
    let found = read(json!([
        {"role": "assistant", "content": "See there.", "annotations": [{"type": "url_citation", "url_citation":
            {"url": "https://tides.example", "title": "Tides", "start_index": 0, "end_index": 4}}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "And there.", "annotations": [
            {"type": "url_citation", "url": "https://moon.example", "title": "Moon", "start_index": 0, "end_index": 4},
            {"type": "file_citation", "file_id": "file-1", "filename": "tides.pdf", "index": 3},
            {"type": "other", "page": 7}]}]},
        {"role": "user", "content": [{"type": "text", "text": "Cited.", "citations": [
            {"type": "char_location", "cited_text": "High water is at noon.", "document_title": "Almanac"},
            {"type": "web_search_result_location", "url": "https://sea.example", "title": "Sea", "encrypted_index": long}]}]},
    ]));
    let texts: Vec<String> = found.iter().map(Message::joined_text).collect();
    let expected = [
        "See there.\n[citation: Tides, https://tides.example]\n",
        "And there.\n[citation: Moon, https://moon.example]\n[citation: tides.pdf, file-1]\n\
         [citation: {\"type\":\"other\",\"page\":7}]\n",
        "Cited.\n[citation: Almanac, High water is at noon.]\n[citation: Sea, https://sea.example]\n",
    ];
    assert_eq!(texts, expected);
    // A question is sent as its text alone.
    let block =
        json!({"type": "text", "text": "Why?", "citations": [{"type": "char_location", "cited_text": "x"}]});
    let asked = question(&json!([{"role": "user", "content": [block]}]).to_string(), &key()).unwrap();
    assert_eq!((asked.query.as_str(), asked.unread), ("Why?", vec!["message 1: citations".to_owned()]));
}

#[test]
fn what_would_be_lost_is_refused_with_its_place() {
    let problems = whole(&json!([
        {"role": "robot", "content": "x"},
        {"role": "user", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "tool", "content": "x"},
        {"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "user"},
        {"role": "assistant", "content": [{"name": "x"}]},
        {"role": "assistant", "tool_calls": [{"type": "computer", "computer": {"name": "f", "input": "x"}}]},
        "x",
    ]))
    .unwrap_err();
    for (at, words) in [
        "message 1: role \"robot\" cannot be read",
        "message 2: a block of type \"tool_use\"",
        "message 3: a tool's message needs tool_call_id",
        "message 4: function_call is not read; use tool_calls",
        "message 5: it has no content",
        "message 6: a block of content has no type",
        "message 7: a call of type \"computer\"",
        "message 8 is not an object",
    ]
    .into_iter()
    .enumerate()
    {
        assert!(problems[at].starts_with(words), "{}", problems[at]);
    }
    assert_eq!(problems.len(), 8, "{problems:?}");
    assert!(whole(&json!("x")).unwrap_err()[0].contains("JSON array"));
    let empty = whole(&json!([{"role": "user", "content": [{"type": "text"}]}])).unwrap_err();
    assert_eq!(empty, ["message 1: its block of text has no text"]);
    let said = json!([{"role": "user", "content": "x"}]);
    let two = whole(&json!({"messages": said, "input": said})).unwrap_err();
    assert_eq!(two, ["it has both messages and input; give one of them"]);
}
