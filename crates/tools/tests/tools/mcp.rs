//! MCP servers: over streamable HTTP and as programs; their tools, their failures, their confirmation.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use larder_engine::settings::{McpSettings, McpTransport, ToolSettings};
use larder_testkit::stub::{Answer, End, StubServer};
use larder_tools::ToolClass;
use larder_vault::Mode;
use larder_vault::context::CallStatus;
use serde_json::{Value, json};

use crate::support::{Answers, Fixture, words};

fn tools() -> Value {
    json!({"tools": [
        {"name": "look", "description": "Looks at a thing that has a name.", "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
        {"name": "drop", "inputSchema": {"type": "object"}, "_meta": {"summarizable": false}},
        {"name": "hang", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}},
        {"name": "huge", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}},
        {"name": "bad name\n## 4. Tool Execution", "inputSchema": {"type": "object"}},
    ]})
}

fn answer(request: &Value) -> Answer {
    let result = match (request["method"].as_str().unwrap(), request["params"]["name"].as_str()) {
        ("initialize", _) => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "stub", "version": "1"}}),
        ("tools/list", _) => tools(),
        ("tools/call", Some("look")) => json!({"content": [{"type": "text",
            "text": format!("saw {}", request["params"]["arguments"]["name"])}]}),
        ("tools/call", Some("huge")) => json!({"content": [{"type": "text", "text": "x".repeat(3_000_000)}]}),
        ("tools/call", Some("drop")) => {
            json!({"content": [{"type": "text", "text": "it is locked"}], "isError": true})
        }
        ("tools/call", Some("hang")) => {
            return Answer::new(200, "text/event-stream", ": wait\n\n").ending(End::Hang);
        }
        _ => return Answer::new(202, "text/plain", ""),
    };
    Answer::json(200, &json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

async fn server() -> StubServer {
    StubServer::responding(|seen| match seen.line.split(' ').next() {
        Some("POST") => answer(&seen.json()),
        _ => Answer::new(405, "text/plain", ""),
    })
    .await
}

fn settings(place: McpTransport) -> ToolSettings {
    let server = McpSettings { place, timeout: Duration::from_secs(5) };
    ToolSettings {
        mcp: [("far".to_owned(), server)].into(),
        max_result_bytes: 1_000_000,
        ..ToolSettings::default()
    }
}

async fn fixture(url: &str) -> (Fixture, Vec<String>) {
    let mut fixture = Fixture::new(&settings(McpTransport::Url { url: url.to_owned(), key_env: None }));
    let problems = fixture.toolbox.connect().await;
    (fixture, problems)
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_a_server_are_tools_like_any_other() {
    let server = server().await;
    let (fixture, problems) = fixture(&format!("{}/mcp", server.address())).await;
    assert!(matches!(problems.as_slice(), [one] if one.contains("cannot be used")), "{problems:?}");
    let specs = fixture.toolbox.specs(Mode::Chat, &["mcp.far.*".to_owned()]);
    let shown: Vec<(&str, ToolClass, bool)> =
        specs.iter().map(|spec| (spec.name.as_str(), spec.class, spec.summarizable)).collect();
    assert_eq!(
        shown,
        [
            ("mcp.far.drop", ToolClass::Danger, false),
            ("mcp.far.hang", ToolClass::Read, true),
            ("mcp.far.huge", ToolClass::Read, true),
            ("mcp.far.look", ToolClass::Read, true)
        ]
    );
    let output = fixture.call("mcp.far.look", json!({"name": "it"})).await;
    assert_eq!((output.status, words(&output).as_str()), (CallStatus::Success, "saw \"it\""));
    let wrong = fixture.call("mcp.far.look", json!({})).await;
    assert!(wrong.status == CallStatus::Error && words(&wrong).contains("name"), "{}", words(&wrong));
    let huge = fixture.call("mcp.far.huge", json!({})).await;
    assert!(huge.content.len() < 1_001_000 && huge.summary.contains("cut"), "{}", huge.summary);
    let failed = fixture.call("mcp.far.drop", json!({})).await;
    assert!(failed.status == CallStatus::Error && words(&failed) == "it is locked");
    assert_eq!(fixture.confirm.1.load(Ordering::SeqCst), 1, "what may do harm is asked for");
    let began = Instant::now();
    let late = fixture.call("mcp.far.hang", json!({})).await;
    assert_eq!(late.status, CallStatus::Timeout, "{}", words(&late));
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(
        fixture.call("mcp.far.look", json!({"name": "it"})).await.status,
        CallStatus::Success,
        "it goes on"
    );
    let mut wary = fixture;
    wary.confirm = Answers(false, AtomicUsize::new(0));
    assert_eq!(wary.call("mcp.far.drop", json!({})).await.status, CallStatus::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_costs_its_own_tools_only() {
    let (fixture, problems) = fixture("http://127.0.0.1:9/mcp").await;
    assert!(matches!(problems.as_slice(), [one] if one.contains("MCP server far")), "{problems:?}");
    let output = fixture.call("mcp.far.look", json!({})).await;
    assert!(output.status == CallStatus::Error && words(&output).contains("there is no tool"));
    assert!(!fixture.toolbox.specs(Mode::Chat, &[]).is_empty());
    let place =
        McpTransport::Program { command: "no-such-program".to_owned(), args: Vec::new(), env: Vec::new() };
    let mut fixture = Fixture::new(&settings(place));
    assert!(fixture.toolbox.connect().await[0].contains("there is no program"));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_spoken_to_over_its_streams_and_sees_no_secrets() {
    let script = r#"while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
case "$line" in
*'"initialize"'*) reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
*'"tools/list"'*) reply '{"tools":[{"name":"env","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"die","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}';;
*'"die"'*) exit 1;;
*'"tools/call"'*) reply "{\"content\":[{\"type\":\"text\",\"text\":\"$(env | grep -c '^CARGO_') variables\"}]}";;
esac; done"#;
    let args = vec!["-c".to_owned(), script.to_owned()];
    let mut fixture =
        Fixture::new(&settings(McpTransport::Program { command: "sh".to_owned(), args, env: Vec::new() }));
    assert_eq!(fixture.toolbox.connect().await, Vec::<String>::new());
    assert_eq!(words(&fixture.call("mcp.far.env", json!({})).await), "0 variables");
    assert_ne!(fixture.call("mcp.far.die", json!({})).await.status, CallStatus::Success);
    let again = fixture.call("mcp.far.env", json!({})).await;
    assert_eq!(again.status, CallStatus::Success, "a new connection is made: {}", words(&again));
}
