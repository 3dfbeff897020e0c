//! `larder mcp` as a client starts it: the protocol and nothing else on standard output, files within the roots only.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use serde_json::{Value, json};
use support::Shop;

/// What the server says to these requests, line by line, until its input ends.
fn talk(shop: &Shop, args: &[&str], requests: &[Value]) -> Vec<Value> {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let lines: String = [hello, ready].iter().chain(requests).map(|message| format!("{message}\n")).collect();
    let ran = shop.run_with(&[&["mcp"], args].concat(), lines.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    // Whatever is no message fails here.
    let mut said: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    said.sort_by_key(|message| message["id"].as_u64());
    said
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[test]
fn it_speaks_the_protocol_and_reads_the_project_folder() {
    let shop = Shop::with_provider([]);
    shop.write("notes.md", "The meeting is on Monday.\n");
    let requests = [
        call(1, "count", &json!({"source": "notes.md"})),
        call(2, "count", &json!({"source": "home/key"})),
        json!({"jsonrpc": "2.0", "id": 3, "method": "prompts/list"}),
    ];
    for verbosity in [&[][..], &["-vv"]] {
        let said = talk(&shop, verbosity, &requests);
        assert_eq!(said.len(), 4, "{said:?}");
        assert_eq!(said[0]["result"]["serverInfo"]["name"], "larder");
        assert_eq!(said[1]["result"]["structuredContent"]["tokens"], 6);
        assert_eq!(said[2]["result"]["isError"], true, "the store is closed: {said:?}");
        assert_eq!(said[3]["result"]["prompts"][2]["name"], "notes/typed");
    }
}

#[test]
fn a_value_with_a_default_may_be_left_out_and_errors_speak_of_the_call() {
    let shop = Shop::with_provider([]);
    let recipe = std::fs::read_to_string(shop.path().join("recipes/notes/summary.yaml")).unwrap();
    let recipe = recipe.replace("name: summary", "name: told").replace("notes/all.md", "notes/told.md");
    let variables = "variables: {team: \"{{ team | default('ops') }}\", place: \"{{ place }}\"}\n";
    shop.write("recipes/notes/told.yaml", recipe + variables);
    shop.write("prompts/notes/told.md", "You are {{ team }} in {{ place }}.\n");
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}),
        call(2, "explain", &json!({"recipe": "notes/told", "query": "What?", "values": {"place": "Oslo"}})),
    ];
    let said = talk(&shop, &[], &requests);
    let prompts = said[1]["result"]["prompts"].as_array().unwrap();
    let told = prompts.iter().find(|prompt| prompt["name"] == "notes/told").unwrap();
    let is_required = |name: &str| {
        let arguments = told["arguments"].as_array().unwrap();
        arguments.iter().find(|one| one["name"] == name).unwrap()["required"] == true
    };
    assert!(is_required("place") && !is_required("team"), "{told}");
    let missing = said[2]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(missing.contains("needs a document named") && !missing.contains("--doc"), "{missing}");
}

#[test]
fn roots_on_the_command_line_are_the_only_ones() {
    let shop = Shop::with_provider([]);
    shop.write("notes.md", "closed\n");
    shop.write("docs/guide.md", "open\n");
    let requests = [
        call(1, "count", &json!({"source": "guide.md"})),
        call(2, "count", &json!({"source": "../notes.md"})),
        call(3, "search", &json!({"pattern": "."})),
    ];
    let said = talk(&shop, &["--root", "docs"], &requests);
    assert_eq!(said[1]["result"]["isError"], false);
    assert_eq!(said[2]["result"]["isError"], true);
    assert_eq!(said[3]["result"]["structuredContent"]["read"]["files"], 1);
}

#[test]
fn unreadable_roots_are_reported_before_serving() {
    let shop = Shop::new();
    let ran = shop.fails(1, &["mcp", "--root", "missing"]);
    assert!(ran.err.contains("missing") && ran.out.is_empty(), "{ran:?}");
    let ran = shop.fails(2, &["mcp", "--project", "/"]);
    assert!(ran.err.contains("choose a folder with --root"), "{ran:?}");
    assert_eq!(shop.run(&["mcp"]).code, 0, "a client that goes at once asked for nothing");
}
