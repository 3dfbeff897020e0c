//! What a client gives besides its question when its model is a recipe or a conversation: obeyed, listed or refused.

use larder_engine::executor::RunReceipt;
use larder_testkit::stub::{Answer, StubServer};
use serde_json::{Value, json};

use crate::support::{Gateway, completion, said, write};

const RECIPE: &str = "\
name: brief
description: Answer briefly.
model_layer: VOICE
token_budget: {total: 2000, prompt: 300, input: 1200, output: 300, response_reserve: 200}
system_prompt: Answer in one sentence.
slots:
  - {name: system, from: prompt, cap: 300}
  - {name: said, from: messages, cap: flexible, overflow: [condense]}
output_format: text
";
const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";
const CONVERSE: &str = "/model/recipe%2Ftalk%2Fbrief/converse";

async fn gateway(answers: impl IntoIterator<Item = Answer>) -> Gateway {
    let gateway = Gateway::with(StubServer::start(answers).await, "").await;
    write(gateway.dir.path().join("recipes/talk/brief.yaml"), RECIPE);
    gateway.restart().await
}

/// A request to the recipe in the form of a path, with more fields.
fn asked(path: &str, more: &Value) -> Value {
    let say = json!([{"role": "user", "content": "Which?"}]);
    let mut body = match path {
        RESPONSES => json!({"model": "recipe/talk/brief", "input": say}),
        CONVERSE => json!({"messages": [{"role": "user", "content": [{"text": "Which?"}]}]}),
        MESSAGES => json!({"model": "recipe/talk/brief", "max_tokens": 1024, "messages": say}),
        _ => json!({"model": "recipe/talk/brief", "messages": say}),
    };
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn ask(gateway: &Gateway, path: &str, body: &Value) -> (u16, Option<String>, String) {
    let response = gateway.post(path, body.to_string()).send().await.unwrap();
    let ignored = response.headers().get("x-larder-ignored").map(|names| names.to_str().unwrap().to_owned());
    (response.status().as_u16(), ignored, response.text().await.unwrap())
}

#[tokio::test]
async fn what_would_change_the_form_of_a_reply_is_refused_and_named() {
    let gateway = gateway([]).await;
    let tool = json!([{"type": "function", "function": {"name": "look", "parameters": {}}}]);
    let schema = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {}}});
    for (path, more, words) in [
        (CHAT, json!({"n": 3}), "n: a recipe gives one reply"),
        (CHAT, json!({"tools": tool}), "tools: a recipe offers its model no tools of the client"),
        (CHAT, json!({"tool_choice": "required"}), "tool_choice: "),
        (CHAT, json!({"stream": "yes"}), "stream: send true or false"),
        (CHAT, json!({"moderation": {"model": "m"}}), "moderation: nothing checks the reply"),
        (CHAT, json!({"web_search_options": {}}), "web_search_options: "),
        (CHAT, json!({"functions": [{"name": "look"}]}), "functions: "),
        (CHAT, json!({"response_format": schema}), "response_format: a recipe sets the form of its reply"),
        (CHAT, json!({"stop": ["\n"]}), "stop: a recipe gives its whole reply"),
        (CHAT, json!({"logprobs": true}), "logprobs: a recipe gives no probabilities"),
        (CHAT, json!({"modalities": ["text", "audio"]}), "modalities: a recipe replies in text"),
        (CHAT, json!({"max_tokens": 0}), "max_tokens: it is the most tokens of the reply; send 1 or more"),
        (CHAT, json!({"max_completion_tokens": "many"}), "max_completion_tokens: "),
        (MESSAGES, json!({"max_tokens": 0}), "max_tokens: "),
        (MESSAGES, json!({"stop_sequences": ["x"]}), "stop_sequences: "),
        (MESSAGES, json!({"tools": [{"name": "look"}]}), "tools: "),
        (MESSAGES, json!({"output_config": {"format": schema}}), "output_config.format: "),
        (RESPONSES, json!({"text": {"format": schema}}), "text.format: "),
        (RESPONSES, json!({"tools": tool}), "tools: "),
        (RESPONSES, json!({"background": true}), "background: a recipe replies while the client waits"),
        (RESPONSES, json!({"previous_response_id": "r"}), "previous_response_id: a recipe reads only what"),
        (RESPONSES, json!({"conversation": "c"}), "conversation: "),
        (RESPONSES, json!({"input": [{"type": "item_reference", "id": "i"}]}), "send the item itself"),
        (CONVERSE, json!({"inferenceConfig": {"stopSequences": ["x"]}}), "inferenceConfig.stopSequences: "),
        (CONVERSE, json!({"toolConfig": {"tools": [{"toolSpec": {"name": "x"}}]}}), "toolConfig.tools: "),
    ] {
        let (status, _, said) = ask(&gateway, path, &asked(path, &more)).await;
        assert!(status == 400 && said.contains(words), "{path} {more}: {status} {said}");
        let form = if path == MESSAGES { r#"{"type":"error","error""# } else { "{" };
        assert!(said.starts_with(form), "{said}");
    }
    // All of it at once.
    let more = json!({"n": 2, "stop": "x", "messages": [{"role": "robot", "content": "Which?"}]});
    let (_, _, said) = ask(&gateway, CHAT, &asked(CHAT, &more)).await;
    assert!(["n: ", "stop: ", "role \\\"robot\\\""].iter().all(|words| said.contains(words)), "{said}");
    assert!(gateway.seen().is_empty());
}

#[tokio::test]
async fn what_clients_send_by_default_changes_nothing() {
    let usual = [
        (
            CHAT,
            json!({"n": 1, "temperature": null, "top_p": 1.0, "tools": [], "tool_choice": "auto", "stop": null,
            "functions": null, "response_format": {"type": "text"}, "logprobs": false, "top_logprobs": 0,
            "presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {}, "seed": null, "user": "u",
            "metadata": {"a": "b"}, "store": false, "parallel_tool_calls": true, "service_tier": "auto",
            "modalities": ["text"], "stream_options": null, "prompt_cache_key": "k", "max_tokens": null}),
        ),
        (
            RESPONSES,
            json!({"text": {"format": {"type": "text"}}, "tools": [], "include": [], "store": false,
            "truncation": "disabled", "reasoning": {"effort": null, "summary": null}, "background": false,
            "previous_response_id": null, "parallel_tool_calls": false, "top_logprobs": 0}),
        ),
        (
            MESSAGES,
            json!({"thinking": {"type": "disabled"}, "stop_sequences": [], "tool_choice": {"type": "auto"},
            "metadata": {"user_id": "u"}, "service_tier": "auto", "cache_control": {"type": "ephemeral"}}),
        ),
        (CONVERSE, json!({"inferenceConfig": {"maxTokens": 512}, "additionalModelRequestFields": {}})),
    ];
    let gateway = gateway((0..4).map(|_| said("Forty-two."))).await;
    for (path, more) in &usual {
        let (status, ignored, said) = ask(&gateway, path, &asked(path, more)).await;
        assert!(
            status == 200 && ignored.is_none() && said.contains("Forty-two."),
            "{path}: {ignored:?} {said}"
        );
    }
    let sent: Vec<Value> = gateway.seen().iter().map(|seen| seen.json()).collect();
    assert!(sent.iter().all(|body| body["messages"] == sent[0]["messages"]), "{sent:?}");
}

#[tokio::test]
async fn what_is_left_out_is_listed_in_the_reply_and_the_records() {
    let gateway = gateway((0..5).map(|_| said("Forty-two."))).await;
    let more = json!({"temperature": 0.7, "top_p": 0.9, "seed": 7, "reasoning_effort": "low", "fröhlich": 1,
        "messages": [{"role": "user", "name": "Ada", "content": "Which?"}]});
    let (status, ignored, said) = ask(&gateway, CHAT, &asked(CHAT, &more)).await;
    let names = "temperature, top_p, seed, reasoning_effort, fr?hlich, message 1: name";
    assert_eq!((status, ignored.as_deref()), (200, Some(names)), "{said}");
    for (path, more, names) in [
        (
            MESSAGES,
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}, "top_k": 4}),
            "thinking, top_k",
        ),
        (RESPONSES, json!({"text": {"verbosity": "low"}, "store": true}), "text.verbosity, store"),
        (CONVERSE, json!({"inferenceConfig": {"temperature": 0}}), "inferenceConfig.temperature"),
    ] {
        let (status, ignored, said) = ask(&gateway, path, &asked(path, &more)).await;
        assert_eq!((status, ignored.as_deref()), (200, Some(names)), "{path}: {said}");
    }
    let many: serde_json::Map<String, Value> = (0..10_000).map(|n| (format!("own_{n}"), json!(n))).collect();
    let (status, ignored, said) = ask(&gateway, CHAT, &asked(CHAT, &Value::from(many))).await;
    assert_eq!(status, 200, "{said}");
    let ignored = ignored.unwrap();
    assert!(ignored.starts_with("own_0, own_1, ") && ignored.ends_with("own_63, and 9936 more"), "{ignored}");
    let sent = gateway.seen()[0].json();
    assert!(["temperature", "top_p", "seed"].iter().all(|name| sent.get(name).is_none()), "{sent}");
    let (store, _folder) = (gateway.store(), std::sync::Arc::clone(&gateway.dir));
    let (records, _) = gateway.stop().await;
    let head = &records[0].summary;
    assert_eq!(head.ignored.join(", "), names);
    let run = store.runs().get(&head.run.as_ref().unwrap().parse().unwrap()).unwrap();
    let receipt: RunReceipt = serde_json::from_slice(&store.contents().get(run.receipt).unwrap()).unwrap();
    assert_eq!(receipt.ignored, head.ignored);
    let last = &records.last().unwrap().summary.ignored;
    assert_eq!((last.len(), last.join(", ")), (65, ignored), "the record is as short as the header");
    // With the request itself, in which the values are.
    let kept = store.pointers().get(&receipt.history.unwrap().parse().unwrap()).unwrap();
    let kept: Value = serde_json::from_slice(&store.contents().get(kept.content).unwrap()).unwrap();
    assert_eq!(kept, asked(CHAT, &more));
}

#[tokio::test]
async fn a_limit_of_the_client_holds_and_a_reply_that_reaches_it_says_so() {
    let cut = || Answer::json(200, &completion(json!({"role": "assistant", "content": "Forty"}), "length"));
    let gateway = gateway((0..12).map(|_| cut())).await;
    for (path, limit, ends) in [
        (CHAT, json!({"max_completion_tokens": 50, "max_tokens": 60}), r#""finish_reason":"length""#),
        (CHAT, json!({"max_tokens": 50, "stream": true}), r#""finish_reason":"length""#),
        (MESSAGES, json!({"max_tokens": 50}), r#""stop_reason":"max_tokens""#),
        (MESSAGES, json!({"max_tokens": 50, "stream": true}), r#""stop_reason":"max_tokens""#),
        (
            RESPONSES,
            json!({"max_output_tokens": 50}),
            r#""incomplete_details":{"reason":"max_output_tokens"}"#,
        ),
        (RESPONSES, json!({"max_output_tokens": 50, "stream": true}), "event: response.incomplete"),
        (CONVERSE, json!({"inferenceConfig": {"maxTokens": 50}}), r#""stopReason":"max_tokens""#),
    ] {
        let (status, ignored, said) = ask(&gateway, path, &asked(path, &limit)).await;
        assert!(status == 200 && said.contains("Forty") && said.contains(ends), "{path} {limit}: {said}");
        assert_eq!(ignored, None);
        let sent = gateway.last_sent();
        let most = sent.get("max_completion_tokens").or_else(|| sent.get("max_tokens"));
        assert_eq!(most, Some(&json!(50)), "{sent}");
    }
    assert!(gateway.store().interventions().list(false).unwrap().is_empty());
    // A larger limit leaves the recipe's own, and a reply that reaches that one is none.
    let (status, _, said) = ask(&gateway, CHAT, &asked(CHAT, &json!({"max_tokens": 4096}))).await;
    assert!(status == 502 && said.contains("cut off at 300 tokens"), "{status} {said}");
}

#[tokio::test]
async fn histories_are_read_and_refused_as_in_a_file() {
    let gateway = gateway((0..4).map(|_| said("Forty-two."))).await;
    let question = json!({"role": "user", "content": "Which?"});
    let with = |before: Value| {
        let mut messages = before.as_array().unwrap().clone();
        messages.push(question.clone());
        json!({"messages": messages})
    };
    let call = json!({"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    for (before, words) in [
        (
            json!([{"role": "tool", "tool_call_id": "c9", "content": "x"}]),
            "message 1: no message before it calls a tool with the id",
        ),
        (json!([{"role": "tool", "content": "x"}]), "message 1: a tool's message needs tool_call_id"),
        (
            json!([question, {"role": "robot", "content": "x"}]),
            "message 2: role \\\"robot\\\" cannot be read; use system, developer, user, assistant or tool",
        ),
        (json!([question, {"role": "assistant", "content": null}]), "message 2: it has no content"),
        (
            json!([{"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}}]),
            "message 1: function_call is not read; use tool_calls",
        ),
        (
            json!([{"role": "user", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}]),
            "message 1: a block of type",
        ),
        (
            json!([question, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c2", "content": "x"}]),
            "message 3: no message before it",
        ),
    ] {
        let (status, _, said) = ask(&gateway, CHAT, &asked(CHAT, &with(before))).await;
        assert!(status == 400 && said.contains(words), "{status} {said}");
    }
    assert!(gateway.seen().is_empty());
    // Of each format the same prompt.
    let chat = json!([question, {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"}]);
    let calls = json!([{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]);
    let anthropic = json!([question, {"role": "assistant", "content": calls}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "content": "seen"}, {"type": "text", "text": "Which?"}]}]);
    let bedrock = json!([{"role": "user", "content": [{"text": "Which?"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "seen"}]}},
            {"text": "Which?"}]}]);
    let items = json!([question, {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "seen"}, question]);
    for (path, body) in [
        (CHAT, asked(CHAT, &with(chat))),
        (MESSAGES, asked(MESSAGES, &json!({"messages": anthropic}))),
        (CONVERSE, asked(CONVERSE, &json!({"messages": bedrock}))),
        (RESPONSES, asked(RESPONSES, &json!({"input": items}))),
    ] {
        let (status, ignored, said) = ask(&gateway, path, &body).await;
        assert!(status == 200 && ignored.is_none(), "{path}: {status} {said}");
    }
    let prompts: Vec<String> =
        gateway.seen().iter().map(|seen| seen.json()["messages"].to_string()).collect();
    assert!(prompts.iter().all(|prompt| prompt.contains("seen") && *prompt == prompts[0]), "{prompts:#?}");
}

#[tokio::test]
async fn a_byte_order_mark_is_no_error_and_counting_a_recipe_is_one() {
    let gateway = gateway([said("Forty-two.")]).await;
    let marked = format!("\u{feff}{}", asked(RESPONSES, &json!({"input": "Which?"})));
    let response = gateway.post(RESPONSES, marked).send().await.unwrap();
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    let (status, _, said) = ask(&gateway, "/v1/messages/count_tokens", &asked(MESSAGES, &json!({}))).await;
    assert!(status == 400 && said.contains("larder explain"), "{said}");
    assert_eq!(gateway.seen().len(), 1);
}
