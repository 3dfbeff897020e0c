//! The window: tool floods shrink, nothing is lost, prefixes stay, what cannot fit is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_core::pack::Rendition;
use larder_core::policy::BudgetStatus;
use larder_proxy::record::Outcome;
use larder_testkit::stub::{Answer, StubServer};
use serde_json::{Value, json};

use crate::support::{Gateway, after_tool, long_log, message, pointers, said};

fn result(sent: &Value, at: usize) -> String {
    sent["messages"][at]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_tools_flood_is_condensed_and_its_pointer_gives_every_byte_back() {
    let gateway = Gateway::new([said("line 321")]).await;
    let body = after_tool(&long_log());
    let response = gateway.chat(&body).await;
    assert_eq!(response.status(), 200);
    let number = |name: &str| response.headers()[name].to_str().unwrap().parse::<u64>().unwrap();
    assert!(number("x-larder-tokens-after") * 5 < number("x-larder-tokens-before"));
    assert_eq!(number("x-larder-pointers"), 1);

    let sent = gateway.last_sent();
    let shown = result(&sent, 3);
    assert!(shown.contains("ERROR request 321"), "{shown}");
    let pointer = pointers(&gateway, &shown).into_iter().next().unwrap();
    let whole = larder_text::pointer::Pointer::whole(pointer.id);
    assert_eq!(gateway.store().pointers().resolve(&whole).unwrap(), long_log().as_bytes());
    for at in 0..3 {
        assert_eq!(sent["messages"][at], body["messages"][at]);
    }
    let tools: Vec<&str> = sent["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["read_log", "larder_rehydrate"]);

    let gateway = gateway.restart().await;
    assert_eq!(gateway.store().pointers().resolve(&whole).unwrap(), long_log().as_bytes(), "after a restart");
    let (records, _) = gateway.stop().await;
    let record = &records[0];
    let decision = record.summary.decision.as_ref().unwrap();
    assert_eq!(
        decision.status,
        BudgetStatus::Ok,
        "it is shortened because that is cheaper: {}",
        decision.reason
    );
    let part = record.window.iter().find(|part| part.role == "tool").unwrap();
    assert_eq!((part.rendition, part.label.as_str()), (Rendition::Condensed, "read_log"));
    assert_eq!(record.compactions.len(), 1);
    assert_eq!(record.compactions[0].to, Rendition::Condensed);
}

#[tokio::test]
async fn a_conversation_that_grows_extends_its_prompt_and_identical_histories_give_identical_bytes() {
    let gateway = Gateway::new((0..8).map(|_| said("ok"))).await;
    let mut body = after_tool(&long_log());
    let mut last: Vec<Value> = Vec::new();
    for turn in 0..4 {
        gateway.chat(&body).await;
        gateway.chat(&body).await;
        let seen = gateway.seen();
        let [.., first, second] = seen.as_slice() else { panic!("two requests") };
        assert_eq!(first.body, second.body);
        let messages = first.json()["messages"].as_array().unwrap().clone();
        assert_eq!(messages[..last.len()], last[..], "turn {turn}");
        last = messages;
        let id = format!("call_{}", turn + 2);
        let history = body["messages"].as_array_mut().unwrap();
        history.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "read_log", "arguments": format!("{{\"page\": {turn}}}")}}]}));
        let page = long_log().replace("2026", &format!("{}", 2000 + turn));
        history.push(json!({"role": "tool", "tool_call_id": id, "content": page}));
    }
}

#[tokio::test]
async fn a_restart_changes_no_byte() {
    let gateway = Gateway::new([said("ok"), said("ok")]).await;
    let body = after_tool(&long_log());
    gateway.chat(&body).await;
    let gateway = gateway.restart().await;
    gateway.chat(&body).await;
    assert_eq!(gateway.seen()[0].body, gateway.seen()[1].body);
}

#[tokio::test]
async fn a_change_of_form_is_recorded_once_across_a_restart_however_long_the_conversation() {
    let gateway = Gateway::with(StubServer::responding(|_| said("ok")).await, "").await;
    let mut body = after_tool(&long_log());
    // Windows this long are recorded with neighbours told as one.
    let history = body["messages"].as_array_mut().unwrap();
    for _ in 0..120 {
        history.insert(2, json!({"role": "user", "content": "And now?"}));
    }
    for at in 0..120 {
        history.push(json!({"role": "user", "content": format!("Look again, {at}.")}));
    }
    gateway.chat(&body).await;
    gateway.chat(&body).await;
    let gateway = gateway.restart().await;
    gateway.chat(&body).await;
    let id = "call_2";
    let history = body["messages"].as_array_mut().unwrap();
    history.push(json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "read_log", "arguments": "{}"}}]}));
    history.push(json!({"role": "tool", "tool_call_id": id, "content": long_log().replace("2026", "2027")}));
    let gateway = gateway.restart().await;
    gateway.chat(&body).await;
    let text = gateway.app.telemetry.metrics.text().unwrap();
    assert!(text.contains("summary_count_total 1\n"), "only what is new is counted:\n{text}");
    let (records, _) = gateway.stop().await;
    assert!(records[0].window.len() < 20, "neighbours are told as one");
    let changed: Vec<usize> = records.iter().map(|record| record.compactions.len()).collect();
    assert_eq!(changed, [1, 0, 0, 1]);
    assert_eq!(records[3].compactions[0].message, records[3].window.last().unwrap().message.unwrap());
}

#[tokio::test]
async fn a_change_of_form_is_recorded_once_although_the_last_window_was_only_counted() {
    let counted = json!({"input_tokens": 14});
    let reply = message(json!([{"type": "text", "text": "hi"}]), "end_turn");
    let provider = StubServer::responding(move |seen| {
        Answer::json(200, if seen.line.contains("count_tokens") { &counted } else { &reply })
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let body = json!({"model": "claude", "max_tokens": 10,
        "tools": [{"name": "read_log", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Which request failed?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read_log", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": long_log()}]}]});
    assert_eq!(gateway.messages(&body).await.status(), 200);
    let count = |gateway: &Gateway| gateway.post("/v1/messages/count_tokens", body.to_string()).send();
    for _ in 0..3 {
        assert_eq!(count(&gateway).await.unwrap().status(), 200);
    }
    let gateway = gateway.restart().await;
    assert_eq!(gateway.messages(&body).await.status(), 200);
    let (records, _) = gateway.stop().await;
    let changed: Vec<usize> = records.iter().map(|record| record.compactions.len()).collect();
    assert_eq!(changed, [1, 0, 0, 0, 0]);
}

#[tokio::test]
async fn decisions_of_a_dry_run_apply_once_it_is_disabled() {
    let dry = "[policy]\ndry_run = true\n";
    let gateway = Gateway::with(StubServer::responding(|_| said("ok")).await, dry).await;
    let body = after_tool(&long_log());
    gateway.chat(&body).await;
    gateway.chat(&body).await;
    let text = gateway.app.telemetry.metrics.text().unwrap();
    assert!(text.contains("summary_count_total 0\n") && text.contains("tokens_saved_count 0\n"), "{text}");
    crate::support::write_settings(gateway.dir.path(), &gateway.provider, "");
    let gateway = gateway.restart().await;
    gateway.chat(&body).await;
    let (records, _) = gateway.stop().await;
    let counted: Vec<u64> = records.iter().map(|record| record.summary.shape.compactions).collect();
    assert_eq!(counted, [0, 0, 1]);
}

#[tokio::test]
async fn oversized_requests_are_refused_with_the_deficit() {
    let gateway = Gateway::new([]).await;
    let flood = "all different words here ".repeat(4_000);
    let body = json!({"model": "mini", "messages": [{"role": "user", "content": flood}]});
    let response = gateway.chat(&body).await;
    assert_eq!(response.status(), 400);
    let error: Value = response.json().await.unwrap();
    assert_eq!(error["error"]["code"], "context_length_exceeded");
    let words = error["error"]["message"].as_str().unwrap();
    assert!(words.contains("maximum context length") && words.contains("largest parts"), "{words}");
    let response =
        gateway.messages(&json!({"model": "claude", "max_tokens": 10, "messages": body["messages"]})).await;
    let error: Value = response.json().await.unwrap();
    assert_eq!(
        (error["type"].as_str(), error["error"]["type"].as_str()),
        (Some("error"), Some("invalid_request_error"))
    );
    assert!(error["error"]["message"].as_str().unwrap().starts_with("prompt is too long"));
    assert!(gateway.seen().is_empty());
    let (records, _) = gateway.stop().await;
    assert!(
        records
            .iter()
            .all(|record| record.summary.outcome == Outcome::Refused && record.summary.violations == 0)
    );
}

#[tokio::test]
async fn a_dry_run_decides_and_changes_nothing() {
    let gateway = Gateway::with(StubServer::start([said("ok")]).await, "[policy]\ndry_run = true\n").await;
    let body = after_tool(&long_log());
    gateway.chat(&body).await;
    let mut expected = body.clone();
    expected["model"] = json!("gpt-4o-mini");
    assert_eq!(gateway.last_sent(), expected);
    let (records, _) = gateway.stop().await;
    let decision = records[0].summary.decision.as_ref().unwrap();
    assert_eq!((decision.status, decision.dry_run), (BudgetStatus::Ok, true));
    assert!(decision.reason.contains("shortened"), "{}", decision.reason);
}

#[tokio::test]
async fn a_provider_that_counts_more_than_the_budget_is_a_violation() {
    let reply = |tokens: u64| {
        let usage = json!({"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1});
        let message = json!({"role": "assistant", "content": "ok"});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        Answer::json(
            200,
            &json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}),
        )
    };
    let gateway = Gateway::with(StubServer::start([reply(100), reply(200_000)]).await, "").await;
    let body = json!({"model": "mini", "messages": [{"role": "user", "content": "hi"}]});
    for _ in 0..2 {
        assert_eq!(gateway.chat(&body).await.status(), 200);
    }
    let (records, _) = gateway.stop().await;
    let violations: Vec<u64> = records.iter().map(|record| record.summary.violations).collect();
    assert_eq!(violations, [0, 1]);
}

#[tokio::test]
async fn what_the_threshold_or_the_entry_cap_shortens_is_not_said_to_be_over_budget() {
    let settings = "[policy]\ntrace_threshold_tokens = 1500\nexpected_turns = 50\n";
    let gateway = Gateway::with(StubServer::start([said("ok")]).await, settings).await;
    let mut messages = vec![json!({"role": "user", "content": "Read the logs."})];
    for at in 0..8 {
        let call = json!({"id": format!("c{at}"), "type": "function", "function": {"name": "read", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        let log = long_log().replace("request", &format!("request of run {at}"));
        messages.push(
            json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": format!("run {at}\n{log}")}),
        );
    }
    assert_eq!(gateway.chat(&json!({"model": "mini", "messages": messages})).await.status(), 200);
    let (records, _) = gateway.stop().await;
    let shortened = records[0].window.iter().filter(|part| part.rendition != Rendition::Whole);
    let reasons: Vec<String> = shortened.map(|part| part.reason.to_string()).collect();
    assert!(reasons.iter().any(|reason| reason == "over entry cap"), "{reasons:?}");
    assert!(!reasons.iter().any(|reason| reason == "call over budget"), "{reasons:?}");
}

#[tokio::test]
async fn a_dry_run_refuses_nothing_either() {
    let gateway = Gateway::with(StubServer::start([said("ok")]).await, "[policy]\ndry_run = true\n").await;
    let flood = "all different words here ".repeat(4_000);
    let body = json!({"model": "mini", "messages": [{"role": "user", "content": flood}]});
    assert_eq!(gateway.chat(&body).await.status(), 200);
    assert_eq!(gateway.last_sent()["messages"], body["messages"]);
    let (records, _) = gateway.stop().await;
    let head = &records[0].summary;
    let decision = head.decision.as_ref().unwrap();
    assert_eq!((decision.status, decision.dry_run), (BudgetStatus::Reject, true));
    assert!(decision.deficit > 0 && head.violations == 0);
}

#[tokio::test]
async fn switched_off_it_still_counts_and_refuses() {
    for switch in ["enabled", "compression_enabled"] {
        let settings = format!("[policy]\n{switch} = false\n");
        let gateway = Gateway::with(StubServer::start([said("ok")]).await, &settings).await;
        let response = gateway.chat(&after_tool(&long_log())).await;
        assert_eq!(response.status(), 200, "{switch}");
        assert_eq!(result(&gateway.last_sent(), 3), long_log(), "{switch}");
        let response = gateway.chat(&after_tool(&long_log().repeat(4))).await;
        assert_eq!(response.status(), 400, "{switch}");
        let error: Value = response.json().await.unwrap();
        let words = error["error"]["message"].as_str().unwrap();
        assert!(
            words.contains("condensing is switched off (policy.enabled or policy.compression_enabled)")
                && words.contains("(tool)"),
            "{words}"
        );
        assert_eq!(gateway.seen().len(), 1, "{switch}");
    }
}

#[tokio::test]
async fn tools_that_opt_out_and_results_that_say_so_stay_whole() {
    let settings = "[policy]\nopt_out_tools = [\"read_*\"]\n";
    let gateway = Gateway::with(StubServer::start([said("ok")]).await, settings).await;
    gateway.chat(&after_tool(&long_log())).await;
    assert_eq!(result(&gateway.last_sent(), 3), long_log());

    let gateway = Gateway::new([said("ok")]).await;
    let mut body = after_tool(&long_log());
    body["messages"][3]["summarizable"] = json!(false);
    gateway.chat(&body).await;
    let sent = gateway.last_sent();
    assert_eq!(result(&sent, 3), long_log());
    assert!(sent["messages"][3].get("summarizable").is_none(), "no provider knows this field");
}

#[tokio::test]
async fn a_transcript_holds_each_message_as_it_came_and_as_it_was_sent() {
    let gateway = Gateway::new([said("line 321")]).await;
    let body = after_tool(&long_log());
    let response = gateway.chat(&body).await;
    let session = response.headers()["x-larder-session"].to_str().unwrap().to_owned();
    // All is written when it stops.
    let gateway = gateway.restart().await;
    let store = gateway.store();
    let lines = store.transcripts().lines(&session).unwrap();
    assert_eq!(lines.len(), 5, "four messages and the reply");
    let raw = |at: usize| -> Value {
        serde_json::from_slice(&store.contents().get(lines[at].raw.hash).unwrap()).unwrap()
    };
    for at in 0..4 {
        assert_eq!(raw(at), body["messages"][at]);
    }
    let sent: Value =
        serde_json::from_slice(&store.contents().get(lines[3].sent.unwrap().hash).unwrap()).unwrap();
    assert!(sent["content"].as_str().unwrap().contains("ERROR request 321"));
    assert_eq!(lines[3].pointers.len(), 1);
    assert!(lines[0].sent.is_none());
    assert_eq!(raw(4)["choices"][0]["message"]["content"], "line 321");
}

#[tokio::test]
async fn a_long_reply_says_in_the_transcript_where_it_is_cut() {
    let gateway = Gateway::new([said(&"x".repeat(2 << 20)), said("short")]).await;
    let body = json!({"model": "mini", "messages": [{"role": "user", "content": "hi"}]});
    let response = gateway.chat(&body).await;
    let session = response.headers()["x-larder-session"].to_str().unwrap().to_owned();
    assert!(response.bytes().await.unwrap().len() > 2 << 20);
    // All is written when it stops.
    let gateway = gateway.restart().await;
    let store = gateway.store();
    let lines = store.transcripts().lines(&session).unwrap();
    let kept = String::from_utf8(store.contents().get(lines[1].raw.hash).unwrap()).unwrap();
    assert!(kept.starts_with("{") && kept.ends_with("more came and are not kept]\n"));
    assert!(kept.contains("x\n[larder: cut at 1048576 bytes; "));
}

#[tokio::test]
async fn failure_reports_stay_whole_in_formats_without_an_error_flag() {
    let gateway = Gateway::new([said("ok"), said("ok")]).await;
    let lines = |first: &str| {
        let frames = (0..52).map(|at| format!("  File \"step_{at}.py\", line {}, in run\n", at * 31 + 7));
        format!("{first}\n{}KeyError: 'granary'\n", frames.collect::<String>())
    };
    // No file is read.
    let ran = |text: &str| {
        let mut body = after_tool(text);
        body["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("{}");
        body
    };
    let failed = ran(&lines("Traceback (most recent call last):"));
    gateway.chat(&failed).await;
    assert_eq!(gateway.last_sent()["messages"][3], failed["messages"][3]);
    gateway.chat(&ran(&lines("These are the frames:"))).await;
    assert!(!pointers(&gateway, &result(&gateway.last_sent(), 3)).is_empty());
}

/// Whether requests with `content` teach how far the estimates of a model are off, when the provider reports half as much.
async fn teaches(content: Value) -> bool {
    let reported = Arc::new(AtomicU64::new(0));
    let reports = Arc::clone(&reported);
    let provider = StubServer::responding(move |_| {
        let mut reply = message(json!([{"type": "text", "text": "hi"}]), "end_turn");
        reply["usage"]["input_tokens"] = json!(reports.load(Ordering::SeqCst));
        Answer::json(200, &reply)
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let body =
        json!({"model": "claude", "max_tokens": 10, "messages": [{"role": "user", "content": content}]});
    for _ in 0..10 {
        let response = gateway.messages(&body).await;
        let counted = response.headers()["x-larder-tokens-after"].to_str().unwrap();
        reported.store(counted.parse::<u64>().unwrap() / 2, Ordering::SeqCst);
    }
    let store = gateway.store();
    gateway.stop().await;
    store.store().revisions().newest().unwrap() > 0
}

#[tokio::test]
async fn the_inspector_counts_as_the_gateway_does() {
    let reported = Arc::new(AtomicU64::new(0));
    let reports = Arc::clone(&reported);
    let provider = StubServer::responding(move |_| {
        let mut reply = message(json!([{"type": "text", "text": "hi"}]), "end_turn");
        reply["usage"]["input_tokens"] = json!(reports.load(Ordering::SeqCst));
        Answer::json(200, &reply)
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let asking = |words: &str| {
        let message = json!({"role": "user", "content": words.repeat(50)});
        json!({"model": "claude", "max_tokens": 10, "messages": [message]})
    };
    let sent = async |body: &Value| {
        let response = gateway.messages(body).await;
        response.headers()["x-larder-tokens-after"].to_str().unwrap().parse::<u64>().unwrap()
    };
    let inspected = async |body: &Value| {
        let response = gateway.post("/api/v1/policy/inspect?wire=messages", body.to_string()).send().await;
        let exchange: Value = response.unwrap().json().await.unwrap();
        exchange["tokens"]["after"].as_u64().unwrap()
    };
    let (early, late) =
        (asking("Which request failed, and why? "), asking("Which request passed, and how? "));
    assert_eq!(inspected(&early).await, sent(&early).await);
    while gateway.app.store.revisions().newest().unwrap() == 0 {
        let counted = sent(&early).await;
        reported.store(counted / 2, Ordering::SeqCst);
    }
    assert_eq!(inspected(&early).await, sent(&early).await, "it keeps the factor that it began with");
    let corrected = inspected(&late).await;
    assert_eq!(corrected, sent(&late).await, "a new one begins with the newest");
    assert!(corrected * 20 < inspected(&early).await * 19, "{corrected}");
    gateway.stop().await;
}

#[tokio::test]
async fn estimates_are_corrected_by_requests_of_text_alone() {
    let words = "Which request failed, and why? ".repeat(50);
    assert!(teaches(json!(words)).await);
    let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="});
    assert!(!teaches(json!([{"type": "text", "text": words}, {"type": "image", "source": source}])).await);
}
