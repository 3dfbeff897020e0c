//! Tests of reading requests.

use super::*;

fn roles(request: &Request<'_>) -> Vec<(Role, String)> {
    request.items.iter().map(|item| (item.role(), item.text().to_owned())).collect()
}

#[test]
fn a_chat_is_read_with_calls_results_and_opaque_parts() {
    let body = r#"{"model":"m\u0031","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9,
      "max_tokens":7,"response_format":{"type":"json_object"},
      "tools":[{"type":"function","function":{"name":"read","parameters":{}},"summarizable":false},
               {"type":"function","function":{"name":"list","summarizable":true}}],
      "messages":[{"role":"developer","content":"rules"},
        {"role":"user","content":[{"type":"text","text":"one"},{"type":"image_url","image_url":{"url":"data:x"}},
                                  {"type":"text","text":"two"}]},
        {"role":"assistant","content":null,"reasoning_content":"hm","refusal":null,
         "tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"a\":1}"}},
                       {"id":"c2","type":"custom","custom":{"name":"list","input":"x"}}]},
        {"role":"tool","tool_call_id":"c1","content":"file"},
        {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"names"}]}]}"#;
    let request = read(ApiDialect::Chat, body).unwrap();
    assert_eq!(request.model.unwrap().text(), "m1");
    assert!(request.stream && request.include_usage && !request.history_elsewhere);
    assert_eq!(request.max_output, Some(9));
    assert_eq!(request.fixed[0].raw, r#"{"type":"json_object"}"#);
    let expected = [
        (Role::System, "rules"),
        (Role::User, "one\ntwo"),
        (Role::Assistant, ""),
        (Role::Tool, "file"),
        (Role::Tool, "names"),
    ];
    assert_eq!(roles(&request), expected.map(|(role, text)| (role, text.to_owned())));
    assert_eq!(request.items[1].opaque[0].kind, OpaqueKind::Image);
    let calls = &request.items[2].calls;
    assert_eq!((&*calls[0].id, &*calls[0].name, &*calls[0].arguments), ("c1", "read", "{\"a\":1}"));
    assert_eq!((&*calls[1].name, &*calls[1].arguments), ("list", "x"));
    assert_eq!(request.items[2].opaque[0].raw, "\"hm\"");
    let result = |at: usize| request.items[at].result.as_ref().unwrap();
    assert_eq!((result(3).name.as_deref(), result(3).summarizable), (Some("read"), false));
    assert_eq!((result(4).name.as_deref(), result(4).summarizable), (Some("list"), true));
    assert_eq!(request.messages(), 5);
    assert!(request.message(3).starts_with(r#"{"role":"tool","tool_call_id":"c1""#));
}

#[test]
fn messages_of_anthropic_give_each_result_an_item_of_its_own() {
    let body = r#"{"model":"m","max_tokens":5,"system":[{"type":"text","text":"rules","cache_control":{"type":"ephemeral"}}],
      "messages":[{"role":"user","content":"go"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"ok"},
          {"type":"tool_use","id":"a","name":"f","input":{"x": 1}},{"type":"tool_use","id":"b","name":"g","input":{}},
          {"type":"server_tool_use","id":"w","name":"web_search","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"bad"},
          {"type":"tool_result","tool_use_id":"a","summarizable":false,"cache_control":{"type":"ephemeral"},
           "content":[{"type":"text","text":"1"},{"type":"image","source":{}},{"type":"text","text":"2"}]},
          {"type":"tool_result","tool_use_id":"z"},
          {"type":"text","text":"and now"},{"type":"document","source":{"type":"text","data":"d"}}]}]}"#;
    let request = read(ApiDialect::Messages, body).unwrap();
    let expected = [
        (Role::System, "rules"),
        (Role::User, "go"),
        (Role::Assistant, "ok"),
        (Role::Tool, "bad"),
        (Role::Tool, "1\n2"),
        (Role::Tool, ""),
        (Role::User, "and now"),
    ];
    assert_eq!(roles(&request), expected.map(|(role, text)| (role, text.to_owned())));
    assert!(request.items[0].cache_control && request.items[4].cache_control);
    let kinds = |at: usize| request.items[at].opaque.iter().map(|opaque| opaque.kind).collect::<Vec<_>>();
    assert_eq!(kinds(2), [OpaqueKind::Reasoning, OpaqueKind::Other]);
    assert!(
        !request.items[2].opaque[0].counted.contains("signature"),
        "a signature is no text of the prompt"
    );
    assert_eq!(kinds(4), [OpaqueKind::Image]);
    assert_eq!(kinds(6), [OpaqueKind::Other], "a document of plain text counts as text");
    assert_eq!(request.items[2].calls[0].arguments, r#"{"x": 1}"#);
    let result = |at: usize| request.items[at].result.as_ref().unwrap();
    assert!(result(3).error && result(3).name.as_deref() == Some("g"));
    assert!(!result(4).summarizable && result(3).summarizable);
    assert_eq!(result(5).name, None);
}

#[test]
fn results_without_the_id_of_a_call_are_results() {
    let body = r#"{"model":"m","input":[{"type":"function_call_output","name":"f","output":"one"},
        {"type":"local_shell_call_output","id":"c","output":"two"}]}"#;
    let request = read(ApiDialect::Responses, body).unwrap();
    let results = request.items.iter().map(|item| item.result.as_ref().unwrap());
    let named: Vec<_> = results.map(|result| (&*result.id, result.name.as_deref())).collect();
    assert_eq!(named, [("", Some("f")), ("c", None)]);
}

#[test]
fn an_output_of_objects_has_no_text_that_could_be_condensed() {
    let body = r#"{"model":"m","input":[{"type":"shell_call_output","call_id":"a","output":
        [{"stdout":"one","stderr":"","outcome":{"type":"exit","exit_code":0}}]},
        {"type":"computer_call_output","call_id":"b","output":{"type":"computer_screenshot","file_id":"f"}}]}"#;
    let request = read(ApiDialect::Responses, body).unwrap();
    for item in &request.items {
        assert!(item.result.is_some() && item.texts.is_empty(), "{:?}", item.texts.len());
        assert_eq!(item.opaque.len(), 1);
    }
}

#[test]
fn a_thread_of_the_providers_is_left_alone() {
    let body = |kind: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"go"}}],"thread":{{"type":"{kind}"}}}}"#
        )
    };
    let (new, old) = (body("create"), body("continue"));
    let (new, old) = (read(ApiDialect::Messages, &new).unwrap(), read(ApiDialect::Messages, &old).unwrap());
    assert!(!new.history_elsewhere && old.history_elsewhere);
    assert!(new.unofferable().is_some() && old.unofferable().is_some());
}

#[test]
fn a_moved_breakpoint_is_no_other_message() {
    let body = |mark: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"text","text":"go"{mark}}}]}}]}}"#
        )
    };
    let (marked, bare) = (body(r#","prompt_cache_breakpoint":{"mode":"explicit"}"#), body(""));
    let (marked, bare) = (read(ApiDialect::Chat, &marked).unwrap(), read(ApiDialect::Chat, &bare).unwrap());
    assert_eq!(marked.identity(0), bare.identity(0));
    assert!(marked.items[0].cache_control && !bare.items[0].cache_control);
}

#[test]
fn attachments_within_other_parts_are_known() {
    let kind = |part: &str| {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{part}]}}]}}"#);
        read(ApiDialect::Messages, &body).unwrap().items[0].opaque[0].kind
    };
    let document = |source: &str| format!(r#"{{"type":"document","source":{source}}}"#);
    let fetched = |source: &str| {
        let content = format!(r#"{{"type":"web_fetch_result","content":{}}}"#, document(source));
        format!(r#"{{"type":"web_fetch_tool_result","tool_use_id":"t","content":{content}}}"#)
    };
    let (text, pdf) = (r#"{"type":"text","data":"x"}"#, r#"{"type":"base64","data":"JVBERi"}"#);
    assert_eq!(kind(&fetched(text)), OpaqueKind::Other);
    assert_eq!(kind(&fetched(pdf)), OpaqueKind::File);
    let blocks = r#"{"type":"content","content":[{"type":"text","text":"x"}]}"#;
    assert_eq!(kind(&document(blocks)), OpaqueKind::Other, "its blocks count as text");
    let body = r#"{"model":"m","input":[{"type":"image_generation_call","id":"i","result":"iVBORw0"}]}"#;
    assert_eq!(read(ApiDialect::Responses, body).unwrap().items[0].opaque[0].kind, OpaqueKind::Image);
}

#[test]
fn responses_are_read_item_by_item() {
    let body = r#"{"model":"m","instructions":"rules","max_output_tokens":3,"input":[
        {"role":"user","content":"go"},
        {"type":"reasoning","id":"rs","summary":[],"encrypted_content":"seal"},
        {"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"{}"},
        {"type":"custom_tool_call","call_id":"c2","name":"patch","input":"*** Begin"},
        {"type":"web_search_call","id":"ws","status":"completed"},
        {"type":"function_call_output","call_id":"c1","output":"text"},
        {"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"done"},
           {"type":"input_image","image_url":"u"}]},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"said","annotations":[]},
           {"type":"refusal","refusal":"no"}]}]}"#;
    let request = read(ApiDialect::Responses, body).unwrap();
    let expected = [
        (Role::System, "rules"),
        (Role::User, "go"),
        (Role::Assistant, ""),
        (Role::Assistant, ""),
        (Role::Assistant, ""),
        (Role::Assistant, ""),
        (Role::Tool, "text"),
        (Role::Tool, "done"),
        (Role::Assistant, "said"),
    ];
    assert_eq!(roles(&request), expected.map(|(role, text)| (role, text.to_owned())));
    let thought = &request.items[2].opaque[0];
    assert_eq!((thought.kind, thought.counted), (OpaqueKind::Sealed, r#""seal""#));
    assert_eq!(request.items[4].calls[0].name, "patch");
    assert!(request.items[5].calls.is_empty(), "the provider answers its own calls");
    assert_eq!(request.items[7].result.as_ref().unwrap().name.as_deref(), Some("patch"));
    assert!(!request.history_elsewhere);
    let text = read(ApiDialect::Responses, r#"{"model":"m","input":"hi"}"#).unwrap();
    assert_eq!(roles(&text), [(Role::User, "hi".to_owned())]);
    assert!(read(ApiDialect::Responses, r#"{"previous_response_id":"r"}"#).unwrap().history_elsewhere);
    assert!(
        read(ApiDialect::Responses, r#"{"input":[{"type":"item_reference","id":"x"}]}"#)
            .unwrap()
            .history_elsewhere
    );
}

#[test]
fn uncountable_requests_are_rejected_with_their_place() {
    let refused = |dialect, body: &str| read(dialect, body).unwrap_err().to_string();
    let twice = refused(ApiDialect::Chat, r#"{"messages":[],"model":"a","messages":[]}"#);
    assert!(twice.starts_with("messages: this field appears twice") && twice.contains("byte 38"), "{twice}");
    let twice =
        refused(ApiDialect::Chat, r#"{"messages":[{"role":"user","content":"a","c\u006fntent":"b"}]}"#);
    assert!(twice.starts_with("messages[0].content: this field appears twice"), "{twice}");
    let twice = refused(
        ApiDialect::Messages,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}"#,
    );
    assert!(twice.starts_with("messages[0].content[0].text: "), "{twice}");
    assert!(
        refused(ApiDialect::Chat, "[1")
            .contains("not JSON: the text ends before the value does at line 1, column 3")
    );
    assert!(refused(ApiDialect::Chat, "[]").starts_with("the body: expected an object"));
    assert!(refused(ApiDialect::Chat, "{}").starts_with("messages: expected an array"));
    assert!(
        refused(ApiDialect::Responses, r#"{"input":5}"#).starts_with("input: expected a string or an array")
    );
    assert!(
        refused(ApiDialect::Messages, r#"{"messages":["x"]}"#).starts_with("messages[0]: expected an object")
    );
    assert!(
        refused(ApiDialect::Chat, r#"{"model":5,"messages":[]}"#).starts_with("model: expected a string")
    );
}

#[test]
fn of_too_many_messages_none_is_read() {
    let messages = r#"[{"role":"user","content":"a"},{"role":"user","role":"user"}]"#;
    for (dialect, body) in [
        (ApiDialect::Chat, format!(r#"{{"messages":{messages}}}"#)),
        (ApiDialect::Messages, format!(r#"{{"messages":{messages}}}"#)),
        (ApiDialect::Responses, format!(r#"{{"input":{messages}}}"#)),
    ] {
        let error = read_up_to(dialect, &body, 1).unwrap_err();
        assert_eq!(error, ReadError::Messages { count: 2, max: 1 });
        assert!(!matches!(read_up_to(dialect, &body, 2), Err(ReadError::Messages { .. })));
    }
}

#[test]
fn unknown_shapes_are_left_to_the_provider() {
    let body = r#"{"messages":[{"role":"wizard","content":7},{"content":["a",{"text":"no type"},null]},{},
        {"role":"tool","content":{"type":"x"}},{"role":"assistant","tool_calls":"none"}],"tools":"many"}"#;
    let request = read(ApiDialect::Chat, body).unwrap();
    assert_eq!(request.items.len(), 5);
    assert_eq!(request.items[1].opaque.len(), 3);
    read(ApiDialect::Messages, body).unwrap();
}

#[test]
fn a_moved_cache_breakpoint_leaves_a_message_the_same() {
    let body = |mark: &str, nested: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a"{nested},"content":[
              {{"type":"text","text":"cache_control"{mark}}}]}}]}}]}}"#
        )
    };
    let identity = |body: &str| read(ApiDialect::Messages, body).unwrap().identity(0);
    let (plain, mark) = (body("", ""), r#", "cache_control":{"type":"ephemeral"}"#);
    assert_eq!(identity(&plain), identity(&body(mark, "")));
    assert_eq!(identity(&plain), identity(&body(mark, mark)));
    assert_ne!(identity(&plain), identity(&plain.replace("\"a\"", "\"b\"")));
}

#[test]
fn billing_lines_do_not_change_the_identity_of_instructions() {
    let body = |role: &str, content: &str| {
        format!(
            r#"{{"messages":[{{"role":"{role}","content":{content}}},{{"role":"user","content":"go"}}]}}"#
        )
    };
    let identity =
        |role: &str, content: &str| read(ApiDialect::Chat, &body(role, content)).unwrap().identity(0);
    let parts = |nonce: &str, rules: &str| {
        format!(
            r#"[{{"type":"text","text":"x-anthropic-billing-header: cch={nonce};"}},{{"type":"text","text":"{rules}"}}]"#
        )
    };
    let joined =
        |nonce: &str, rules: &str| format!(r#""x-anthropic-billing-header: cch={nonce};\n\n{rules}""#);
    for content in [&parts as &dyn Fn(&str, &str) -> String, &joined] {
        assert_eq!(identity("system", &content("1", "a")), identity("system", &content("2", "a")));
        assert_ne!(identity("system", &content("1", "a")), identity("system", &content("1", "b")));
        assert_ne!(identity("user", &content("1", "a")), identity("user", &content("2", "a")));
    }
    let quoted = r#""Never send x-anthropic-billing-header: cch=1;""#;
    assert_ne!(identity("system", quoted), identity("system", &quoted.replace('1', "2")));
}

#[test]
fn only_text_can_be_counted() {
    let countable = |content: &str| {
        let body = format!(r#"{{"input":[{{"role":"user","content":[{content}]}}]}}"#);
        read(ApiDialect::Responses, &body).unwrap().is_countable()
    };
    assert!(countable(r#"{"type":"input_text","text":"hi"}"#));
    for kind in ["input_image", "input_file", "input_audio"] {
        assert!(!countable(&format!(r#"{{"type":"input_text","text":"hi"}},{{"type":"{kind}"}}"#)), "{kind}");
    }
    let elsewhere = r#"{"previous_response_id":"r","input":"hi"}"#;
    assert!(!read(ApiDialect::Responses, elsewhere).unwrap().is_countable());
}

/// Requests as real clients sent them (`clients/` of the corpora): read, and not a byte changed.
#[test]
fn choices_are_read_however_they_are_written() {
    for (n, choices) in [("1", 1), ("3", 3), ("2.0", 2), ("null", 1), ("0", 1), ("-1", 1), ("\"2\"", 1)] {
        let body = format!(r#"{{"messages":[],"n":{n}}}"#);
        let request = read(ApiDialect::Chat, &body).unwrap();
        assert_eq!((request.choices, request.unofferable().is_some()), (choices, choices > 1), "{n}");
    }
}

#[test]
fn recorded_requests_of_clients_are_read_and_left_as_they_are() {
    let Some(folder) = larder_testkit::corpora("clients") else { return };
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines() {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let dialect = match record["path"].as_str().unwrap() {
                "/v1/chat/completions" => ApiDialect::Chat,
                "/v1/responses" => ApiDialect::Responses,
                path if path.starts_with("/v1/messages") => ApiDialect::Messages,
                _ => continue,
            };
            for body in [record["body"].to_string(), serde_json::to_string_pretty(&record["body"]).unwrap()] {
                let request = read(dialect, &body).unwrap();
                assert_eq!(roles(&request), [(Role::User, "hi".to_owned())]);
                assert!(request.model.is_some() && request.unofferable().is_none());
                assert_eq!(request.stream, record["body"]["stream"] == true);
                assert_eq!(json::apply(&body, request.rewrite(&[])).unwrap(), body);
            }
            seen += 1;
        }
    }
    assert!(seen >= 10, "only {seen} requests");
}
