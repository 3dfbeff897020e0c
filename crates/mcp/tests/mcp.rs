//! The Model Context Protocol on streams: lists, every tool, prompts, resources, errors, progress, cancellation, walls.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use larder_engine::executor::ModelSet;
use larder_mcp::{AskBudget, AskReservation, McpCaller};
use larder_models::chat::{ModelError, Usage};
use larder_models::price::Usd;
use larder_testkit::scripted::{Act, text};
use serde_json::{Value, json};
use support::{Client, Shop};

const TOOLS: [&str; 6] = ["rehydrate", "search", "ask", "condense", "count", "explain"];

fn answer(words: &str) -> Act {
    Act::Say(Ok(text(&json!({"answer": words, "citations": ["p1"]}).to_string())))
}

/// A log in which one line matters.
fn log() -> String {
    let line = |at: usize| match at {
        700 => "2026-01-01T00:11:40Z ERROR payment of 42.50 EUR failed: card declined\n".to_owned(),
        _ => format!("2026-01-01T00:{:02}:{:02}Z INFO request {at} served\n", at / 60 % 60, at % 60),
    };
    (0..1000).map(line).collect()
}

/// Every schema within a schema.
fn schemas(schema: &Value, visit: &mut dyn FnMut(&Value)) {
    visit(schema);
    match schema {
        Value::Object(object) => object.values().for_each(|value| schemas(value, visit)),
        Value::Array(items) => items.iter().for_each(|value| schemas(value, visit)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_says_who_it_is_and_lists_its_tools() {
    let mut client = Shop::new([]).client("ann").await;
    assert_eq!(client.info["serverInfo"]["name"], "larder");
    assert_eq!(client.info["protocolVersion"], "2025-11-25");
    assert!(client.info["instructions"].as_str().unwrap().contains("rehydrate"));
    let capabilities = client.info["capabilities"].as_object().unwrap();
    assert_eq!(capabilities.keys().collect::<Vec<_>>(), ["prompts", "resources", "tools"]);
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), TOOLS);
    for tool in tools {
        assert!(tool["description"].as_str().unwrap().len() > 40, "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        assert_eq!(tool["annotations"]["readOnlyHint"], tool["name"] != "ask", "{tool}");
        assert_eq!(tool["annotations"]["openWorldHint"], tool["name"] == "ask", "{tool}");
        assert_eq!(tool["annotations"]["destructiveHint"], false, "{tool}");
        for side in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[side]["type"], "object", "{tool}");
            for (name, property) in tool[side]["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{}: {name}", tool["name"]);
            }
            schemas(&tool[side], &mut |schema| {
                for key in ["$ref", "$defs", "$schema", "format", "anyOf", "default"] {
                    assert!(
                        schema.get(key).is_none_or(|found| key == "default" && !found.is_null()),
                        "{key}: {schema}"
                    );
                }
                assert!(schema["type"] != "null" && !schema["type"].is_array(), "{schema}");
            });
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rehydrate_gives_the_original_whole_and_in_part() {
    let shop = Shop::new([]);
    let (log, orders) = (log(), r#"{"orders": [{"id": 7}, {"id": 8}]}"#);
    let (pointer, json_pointer) =
        (shop.pointer("ann", log.as_bytes()), shop.pointer("ann", orders.as_bytes()));
    let mut client = shop.client("ann").await;
    let (data, shown) = client.call("rehydrate", json!({"id": pointer, "limit": 100_000})).await;
    assert_eq!((data["text"].as_str().unwrap(), shown.as_str()), (log.as_str(), log.as_str()));
    assert_eq!((&data["kind"], &data["total_bytes"]), (&json!("tool_result"), &json!(log.len())));
    let line = log.lines().nth(700).unwrap();
    for part in [
        json!({"lines": "701:701"}),
        json!({"lines": "701-701"}),
        json!({"pattern": "ERROR"}),
        json!({"grep": "ERROR"}),
    ] {
        let mut arguments = part.clone();
        arguments["id"] = json!(pointer);
        assert_eq!(client.call("rehydrate", arguments).await.1, format!("{line}\n"), "{part}");
    }
    assert_eq!(
        client.call("rehydrate", json!({"id": format!("{pointer}#L701-701")})).await.1,
        format!("{line}\n")
    );
    assert_eq!(client.call("rehydrate", json!({"id": pointer, "bytes": "0:10"})).await.1, "2026-01-01");
    let at = json!({"id": json_pointer, "path": "$.orders[1].id"});
    assert_eq!(client.call("rehydrate", at).await.1, "8");
    let none = client.call("rehydrate", json!({"id": pointer, "pattern": "FATAL"})).await;
    assert_eq!(none.0["text"], "");
    assert!(none.1.contains("no line matches"), "{}", none.1);
    let bytes = shop.pointer("ann", b"\xff\xfe\x00a");
    let (data, _) = client.call("rehydrate", json!({"id": bytes})).await;
    assert_eq!((data["base64"].as_str(), data.get("text")), (Some("//4AYQ=="), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn recoverable_errors_are_results_with_a_hint() {
    let shop = Shop::new([]);
    shop.write("notes.md", "notes");
    let pointer = shop.pointer("ann", log().as_bytes());
    let mut client = shop.client("ann").await;
    for (tool, arguments, words) in [
        ("rehydrate", json!({"id": "lp1-nonsense"}), "not a pointer: expected lp1-"),
        ("rehydrate", json!({"id": "lp1-0000000000000-000000"}), "copy it exactly"),
        (
            "rehydrate",
            json!({"id": pointer, "limit": 1000}),
            "in 1000 lines, more than 1000 tokens; narrow it",
        ),
        (
            "rehydrate",
            json!({"id": pointer, "lines": "1:2", "path": "$"}),
            "one of lines, bytes, pattern and path",
        ),
        ("rehydrate", json!({"id": pointer, "lines": "1..2"}), "first:last"),
        ("rehydrate", json!({"id": pointer, "lines": "1001:2000"}), "ask for lines within 1:1000"),
        ("rehydrate", json!({"id": pointer, "pattern": "("}), "pattern: "),
        ("rehydrate", json!({"id": pointer, "path": "$.a"}), "use lines, bytes or a pattern instead"),
        ("rehydrate", json!({}), "missing field `id`"),
        ("rehydrate", json!({"id": pointer, "line": "1:2"}), "unknown field `line`"),
        ("search", json!({}), "either `pattern` or `query`"),
        ("search", json!({"pattern": "a", "query": "a"}), "either `pattern` or `query`"),
        ("search", json!({"query": "a", "sources": ["../secret"]}), "is not open to this server"),
        ("search", json!({"query": "a", "sources": ["lp1-0000000000000-000000"]}), "copy it exactly"),
        ("ask", json!({"question": "a?", "sources": ["/etc/passwd"]}), "is not open to this server"),
        ("ask", json!({"question": "a?", "recipe": "ask/anser"}), "ask/answer"),
        ("ask", json!({"question": "a?", "max_tokens": 10}), "the limit is 10"),
        ("condense", json!({"text": "a", "source": "b", "target_tokens": 1}), "either `text` or `source`"),
        ("condense", json!({"text": "a"}), "missing field `target_tokens`"),
        ("condense", json!({"text": "a", "target_tokens": 9, "type": "novel"}), "unknown type \"novel\""),
        (
            "condense",
            json!({"text": "a", "target_tokens": 9, "pins": ["b"]}),
            "the text does not contain the pin",
        ),
        ("condense", json!({"source": ".", "target_tokens": 9}), "is a folder"),
        ("count", json!({"text": "a", "model": "no-such-model"}), "cl100k_base"),
        ("count", json!({"source": "missing.md"}), "is not open to this server"),
        ("explain", json!({"recipe": "summarize/sumarize"}), "summarize/summarize"),
        ("explain", json!({"recipe": "summarize/summarize"}), "needs"),
    ] {
        let said = client.fails(tool, arguments.clone()).await;
        assert!(said.contains(words), "{tool} {arguments}: {said}");
    }
    assert!(
        shop.store.user("ann").unwrap().interventions().list(false).unwrap().is_empty(),
        "no human is troubled"
    );
    let unknown = client.refused("tools/call", json!({"name": "delete", "arguments": {}})).await;
    assert_eq!(unknown["code"], -32602);
    assert!(unknown["message"].as_str().unwrap().contains("rehydrate"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn search_finds_lines_and_passages_with_pointers_that_hold() {
    let shop = Shop::new([]);
    shop.write("app.log", log());
    shop.write("docs/guide.md", "# Guide\n\nThe budget is enforced by the packer before a request leaves.\n");
    shop.write(".env", "ERROR secret");
    let pointer = shop.pointer("ann", b"one\nan ERROR here\n");
    let mut client = shop.client("ann").await;
    let (data, shown) = client.call("search", json!({"pattern": "ERROR"})).await;
    let found = data["found"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{data}");
    assert_eq!((&found[0]["source"], &found[0]["lines"]), (&json!("app.log"), &json!([701, 701])));
    assert_eq!((&data["more"], &data["read"]["files"]), (&json!(false), &json!(2)));
    assert!(shown.contains("card declined"), "{shown}");
    let back = client.call("rehydrate", json!({"id": found[0]["pointer"]})).await.1;
    assert_eq!(back, found[0]["text"].as_str().unwrap());
    let (data, _) =
        client.call("search", json!({"pattern": "INFO", "most": 3, "sources": ["app.log"]})).await;
    assert_eq!((data["found"].as_array().unwrap().len(), &data["more"]), (3, &json!(true)));
    let (data, _) = client.call("search", json!({"pattern": "ERROR", "sources": [pointer]})).await;
    assert_eq!(data["found"][0]["source"], json!(pointer));
    assert_eq!(data["found"][0]["text"], "an ERROR here\n");
    let (data, shown) = client.call("search", json!({"query": "Where is the budget enforced?"})).await;
    assert_eq!(data["found"][0]["source"], "docs/guide.md", "{data}");
    assert!(shown.starts_with("docs/guide.md:1-3 lp1-"), "{shown}");
    let back = client.call("rehydrate", json!({"id": data["found"][0]["pointer"]})).await.1;
    assert_eq!(back, data["found"][0]["text"].as_str().unwrap());
    shop.write("wide.txt", format!("needle {}", "é".repeat(5000)));
    let (data, _) = client.call("search", json!({"pattern": "needle"})).await;
    assert_eq!(data["found"][0]["cut"], true);
    let back = client.call("rehydrate", json!({"id": data["found"][0]["pointer"]})).await.1;
    assert_eq!(back.chars().count(), 5007, "the pointer gives all of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn condense_and_count_take_texts_files_and_pointers() {
    let shop = Shop::new([]);
    shop.write("app.log", log());
    let mut client = shop.client("ann").await;
    let arguments = json!({"source": "app.log", "target_tokens": 300, "query": "payment"});
    let (data, shown) = client.call("condense", arguments.clone()).await;
    assert_eq!((data["text"].as_str().unwrap(), &data["type"]), (shown.as_str(), &json!("log")));
    assert!(shown.contains("card declined") && data["tokens"].as_u64().unwrap() <= 300, "{data}");
    let pointer = data["pointer"].as_str().unwrap();
    let whole = client.call("rehydrate", json!({"id": pointer, "limit": 100_000})).await.1;
    assert_eq!(whole, log());
    assert_eq!(
        client.call("condense", json!({"source": pointer, "target_tokens": 300, "query": "payment"})).await.1,
        shown
    );
    assert_eq!(client.call("condense", arguments).await.1, shown, "the same every time");
    for gap in data["gaps"].as_array().unwrap() {
        let [start, end] = [0, 1].map(|at| usize::try_from(gap["bytes"][at].as_u64().unwrap()).unwrap());
        let back = client.call("rehydrate", json!({"id": gap["pointer"], "limit": 100_000})).await.1;
        assert_eq!(back, log()[start..end]);
    }
    let (data, shown) = client.call("count", json!({"text": "one two three", "model": "gpt-4o"})).await;
    assert_eq!(
        (&data["tokens"], &data["tokenizer"], &data["label"]),
        (&json!(3), &json!("o200k_base"), &json!("exact"))
    );
    assert_eq!(shown, "3 tokens (o200k_base, exact), 13 bytes");
    let (data, _) = client.call("count", json!({"source": "app.log", "limit": 100, "model": "m"})).await;
    assert_eq!((data.get("tokens"), &data["over_limit"]), (None, &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_answers_with_places_and_tells_its_course_if_asked_to() {
    let shop = Shop::new([answer("The budget is enforced by the packer."), answer("By the packer.")]);
    shop.write("guide.md", "# Guide\n\nThe budget is enforced by the packer before a request leaves.\n");
    let mut client = shop.client("ann").await;
    let question = json!({"question": "Who enforces the budget?"});
    let (data, shown) = client.call("ask", question.clone()).await;
    assert_eq!(data["answer"], "The budget is enforced by the packer.");
    assert_eq!(
        (&data["claims"][0]["source"], &data["claims"][0]["supported"]),
        (&json!("guide.md"), &json!(true))
    );
    assert_eq!((&data["model"], &data["calls"]), (&json!("m"), &json!(1)));
    assert!(data["cost_usd"].as_f64().unwrap() > 0.0 && shown.contains("← guide.md:"), "{shown}");
    let back = client.call("rehydrate", json!({"id": data["claims"][0]["pointer"]})).await.1;
    assert!(back.contains("enforced by the packer"), "{back}");
    assert!(client.notes.is_empty(), "nobody asked for progress: {:?}", client.notes);
    let params = json!({"name": "ask", "arguments": question, "_meta": {"progressToken": "t1"}});
    client.ask("tools/call", params).await;
    let steps: Vec<f64> =
        client.notes.iter().map(|note| note["params"]["progress"].as_f64().unwrap()).collect();
    assert!(steps.len() >= 4 && steps.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", client.notes);
    for note in &client.notes {
        assert_eq!(
            (&note["method"], &note["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("t1"))
        );
    }
    let said: Vec<&str> =
        client.notes.iter().map(|note| note["params"]["message"].as_str().unwrap()).collect();
    assert!(said.iter().any(|words| words.starts_with("packed ")) && said.contains(&"asking m"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_ends_without_an_answer_and_the_server_goes_on() {
    let shop = Shop::new([Act::Hang]);
    shop.write("guide.md", "The budget is enforced by the packer.\n");
    let mut client = shop.client("ann").await;
    let params =
        json!({"name": "ask", "arguments": {"question": "Who enforces it?"}, "_meta": {"progressToken": 1}});
    let id = client.begin("tools/call", params).await;
    while client.next().await["params"]["message"] != "asking m" {}
    while shop.model.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    // `end` refuses any other response before the one it waits for.
    assert_eq!(client.call("count", json!({"text": "a"})).await.0["tokens"], 1);
    assert_eq!(shop.model.requests().len(), 1);
}

#[derive(Default)]
struct Counting {
    left: Mutex<u64>,
    said: Arc<Mutex<Vec<String>>>,
}

struct Held(Arc<Mutex<Vec<String>>>);

impl AskBudget for Counting {
    fn reserve(&self, tokens: u64, reach: &ModelSet) -> Result<Box<dyn AskReservation>, String> {
        let left = *self.left.lock().unwrap();
        if tokens > left {
            return Err(format!("{left} tokens are left today"));
        }
        self.said.lock().unwrap().push(format!("reserved {tokens} at {}", reach.max_cost(tokens)));
        Ok(Box::new(Held(Arc::clone(&self.said))))
    }
}

impl AskReservation for Held {
    fn settle(self: Box<Self>, usage: Usage, cost: Option<Usd>) {
        let cost = cost.map(|cost| cost.to_string());
        self.0.lock().unwrap().push(format!("used {} + {} at {cost:?}", usage.input, usage.output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_is_paid_for_from_the_callers_budget() {
    let shop = Shop::new([answer("By the packer.")]);
    shop.write("guide.md", "The budget is enforced by the packer.\n");
    let budget = Arc::new(Counting { left: Mutex::new(50_000), said: Arc::default() });
    let caller = McpCaller { budget: Some(Arc::clone(&budget) as Arc<dyn AskBudget>), ..shop.caller("ann") };
    let mut client = Client::start(caller).await;
    let said = client.fails("ask", json!({"question": "Who?"})).await;
    assert_eq!(said, "50000 tokens are left today");
    client.call("ask", json!({"question": "Who?", "max_tokens": 40_000})).await;
    client.fails("ask", json!({"question": "Who?", "max_tokens": 10})).await;
    let said = budget.said.lock().unwrap().clone();
    assert_eq!(said[0], "reserved 40000 at 0.08", "as if all of them were of the dearest kind");
    assert!(said[1].starts_with("used 10 + ") && said[1].contains("Some("), "{said:?}");
    assert_eq!(said[2..], ["reserved 10 at 0.00002", "used 0 + 0 at None"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_planning_of_which_nothing_came_is_paid_for_in_tokens_and_money() {
    // A call of ask/plan may take 6,000 tokens; the answer takes 10 and 3.
    let late = ModelError::Timeout { provider: "m".into(), after: Duration::from_secs(60) };
    let broken = ModelError::NotConfigured { provider: "m".into(), detail: "no key".into() };
    for error in [late, broken] {
        let shop = Shop::new([Act::Say(Err(error)), answer("By the packer.")]);
        shop.write("guide.md", "The budget is enforced by the packer.\n");
        let budget = Arc::new(Counting { left: Mutex::new(60_000), said: Arc::default() });
        let caller =
            McpCaller { budget: Some(Arc::clone(&budget) as Arc<dyn AskBudget>), ..shop.planning("ann") };
        let mut client = Client::start(caller).await;
        let (data, _) = client.call("ask", json!({"question": "Who enforces it?"})).await;
        assert!(data["steps"].to_string().contains("planning stopped"), "{data}");
        let said = budget.said.lock().unwrap().clone();
        assert_eq!(said[1..], ["used 6010 + 3 at Some(\"0.006316\")"], "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recipes_are_prompts_whose_pointers_can_be_read() {
    let shop = Shop::new([]);
    shop.write("app.log", log());
    let mut client = shop.client("ann").await;
    let listed = client.ask("prompts/list", json!({})).await;
    let prompts = listed["prompts"].as_array().unwrap();
    let summarize = prompts.iter().find(|prompt| prompt["name"] == "summarize/summarize").unwrap();
    let names: Vec<&str> =
        summarize["arguments"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["query", "document"], "{summarize}");
    let arguments = json!({"query": "What failed?", "document": "app.log"});
    let got = client.ask("prompts/get", json!({"name": "summarize/summarize", "arguments": arguments})).await;
    let messages = got["messages"].as_array().unwrap();
    let text: String = messages.iter().map(|message| message["content"]["text"].as_str().unwrap()).collect();
    assert!(text.contains("What failed?") && text.contains("card declined"), "{text}");
    let at = text.find("lp1-").unwrap();
    let uri = format!("larder://pointer/{}", &text[at..at + 24]);
    let read = client.ask("resources/read", json!({"uri": uri})).await;
    assert_eq!(read["contents"][0]["text"], log());
    let given = json!({"query": "What?", "document": "a text\nof two lines"});
    let got = client.ask("prompts/get", json!({"name": "summarize/summarize", "arguments": given})).await;
    assert!(got.to_string().contains("of two lines"));
    let history = json!([{"role": "user", "content": "Why are imports slow?"},
        {"role": "assistant", "content": "They parse everything twice."}]);
    shop.write("h.json", history.to_string());
    for source in [history.to_string(), "h.json".to_owned()] {
        let given = json!({"query": "Go on", "history": source});
        let got = client.ask("prompts/get", json!({"name": "card/card_agent", "arguments": given})).await;
        let said: Vec<&str> =
            got["messages"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
        assert_eq!(said, ["user", "user", "assistant", "user"], "{got}");
        assert!(got.to_string().contains("They parse everything twice."), "{got}");
        let explain = json!({"recipe": "card/card_agent", "query": "Go on", "history": source});
        let (data, _) = client.call("explain", explain).await;
        assert!(data["parts"].to_string().contains("message 2"), "{data}");
    }
    for (name, arguments, words) in [
        (
            "card/card_agent",
            json!({"query": "Go on", "history": "[{\"role\": \"robot\"}]"}),
            "message 1: role",
        ),
        ("summarize/nothing", json!({}), "prompts/list"),
        ("summarize/summarize", json!({"document": "app.log"}), "query"),
        ("summarize/summarize", json!({"query": "What?"}), "document"),
        (
            "summarize/summarize",
            json!({"query": "What?", "document": "../home/key"}),
            "is not open to this server",
        ),
        ("summarize/summarize", json!({"query": "What?", "paper": "app.log"}), "it takes query, document"),
        (
            "summarize/summarize",
            json!({"query": "q ".repeat(9_000), "document": "app.log"}),
            "tokens too many",
        ),
    ] {
        let error = client.refused("prompts/get", json!({"name": name, "arguments": arguments})).await;
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{words}: {error}");
    }
    let explain = json!({"recipe": "summarize/summarize", "query": "What failed?",
        "documents": [{"input": "document", "source": "app.log"}]});
    let (data, shown) = client.call("explain", explain).await;
    assert_eq!((&data["fits"], &data["model"]), (&json!(true), &json!("m")));
    assert!(data["used"].as_u64() <= data["available"].as_u64() && shown.contains("condensed"), "{shown}");
    let explain = json!({"recipe": "summarize/summarize", "query": "q ".repeat(9_000),
        "documents": [{"input": "document", "source": "app.log"}]});
    let (data, _) = client.call("explain", explain).await;
    assert_eq!(data["fits"], false, "what cannot fit is explained too");
    assert!(data["refused"].as_str().unwrap().contains("query needs"), "{data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pointers_are_resources() {
    let shop = Shop::new([]);
    let pointer = shop.pointer("ann", b"one\ntwo\nthree\n");
    let binary = shop.pointer("ann", b"\xff\xfe");
    let mut client = shop.client("ann").await;
    let listed = client.ask("resources/templates/list", json!({})).await;
    assert_eq!(listed["resourceTemplates"][0]["uriTemplate"], "larder://pointer/{id}");
    assert_eq!(client.ask("resources/list", json!({})).await["resources"], json!([]));
    for (suffix, text) in
        [("", "one\ntwo\nthree\n"), ("#L2", "two\n"), ("%23L2-3", "two\nthree\n"), ("#B0-3", "one")]
    {
        let uri = format!("larder://pointer/{pointer}{suffix}");
        let read = client.ask("resources/read", json!({"uri": uri})).await;
        assert_eq!(read["contents"], json!([{"uri": uri, "mimeType": "text/plain", "text": text}]));
    }
    let read = client.ask("resources/read", json!({"uri": format!("larder://pointer/{binary}")})).await;
    assert_eq!(read["contents"][0]["blob"], "//4=");
    for uri in
        ["larder://pointer/lp1-0000000000000-000000", "larder://pointer/../key", "file:///etc/passwd", ""]
    {
        let error = client.refused("resources/read", json!({"uri": uri})).await;
        assert_eq!(error["code"], -32002, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_walls() {
    let shop = Shop::new([]);
    let pointer = shop.pointer("ann", b"a secret of Ann's");
    let mut bob = shop.client("bob").await;
    for (tool, arguments) in [
        ("rehydrate", json!({"id": pointer})),
        ("search", json!({"pattern": "secret", "sources": [pointer]})),
        ("ask", json!({"question": "What is it?", "sources": [pointer]})),
        ("condense", json!({"source": pointer, "target_tokens": 100})),
        ("count", json!({"source": pointer})),
    ] {
        let said = bob.fails(tool, arguments).await;
        assert!(said.contains("not created in this store for this user"), "{tool}: {said}");
    }
    bob.refused("resources/read", json!({"uri": format!("larder://pointer/{pointer}")})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_messages_are_answered_and_the_server_goes_on() {
    let mut client = Shop::new([]).client("ann").await;
    for arguments in [json!({"id": "lp1-\u{0}\n\u{202e}"}), json!({"id": "x".repeat(100_000)})] {
        let said = client.fails("rehydrate", arguments).await;
        assert!(said.len() < 1_000, "the words do not repeat what they were given: {}", said.len());
    }
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let line =
        format!("{{\"jsonrpc\": \"2.0\", \"id\": 99, \"method\": \"tools/call\", \"params\": {deep}}}");
    for line in [line.as_str(), "null", "{", "", r#"{"jsonrpc": "2.0", "method": "no/such"}"#] {
        client.raw(line).await;
    }
    let id = client.begin("no/such/method", json!({})).await;
    // Whatever the lines before are answered with.
    let answer = loop {
        let message = client.next().await;
        if message["id"] == id {
            break message;
        }
    };
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}
