//! What needs no turn: which tools are offered, how they are shown, and what is kept of large results.

use serde_json::json;

use super::*;
use crate::{call_text, describe};

fn toolbox() -> ToolBox {
    ToolBox::new(&ToolSettings::default()).unwrap()
}

#[test]
fn tools_are_offered_by_mode_and_name() {
    let toolbox = toolbox();
    let names = |mode, named: &[&str]| -> Vec<String> {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        toolbox.specs(mode, &named).into_iter().map(|spec| spec.name.clone()).collect()
    };
    assert_eq!(
        names(Mode::Chat, &[]),
        [
            "doc.read",
            "doc.search",
            "internet.research",
            "memory.create",
            "memory.query",
            "web.search",
            "web.visit"
        ]
    );
    let code = names(Mode::Code, &["file.*", "command.run", "web.visit", "nothing"]);
    assert_eq!(code, ["command.run", "file.edit", "file.read", "file.search", "web.visit"]);
    assert!(names(Mode::Chat, &["file.*"]).is_empty());
}

#[test]
fn every_schema_is_one_and_every_tool_says_what_it_does() {
    let toolbox = toolbox();
    for mode in [Mode::Chat, Mode::Code] {
        for spec in toolbox.specs(mode, &[]) {
            toolbox.schemas.compile(&spec.parameters).unwrap();
            assert_eq!(spec.parameters["additionalProperties"], false, "{}", spec.name);
            assert!(spec.description.len() > 30, "{}", spec.name);
            for (name, property) in spec.parameters["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{}: {name}", spec.name);
            }
        }
    }
    let shown = describe(&toolbox.specs(Mode::Chat, &["web.search".to_owned()]));
    assert!(
        shown.contains("arguments: query: string, limit?: integer, time_range?: \"day\"|\"month\"|\"year\"")
    );
}

#[test]
fn arguments_are_held_to_their_schema() {
    let toolbox = toolbox();
    let spec = |name: &str| toolbox.tools[name].spec();
    for (name, arguments, fits) in [
        ("memory.create", json!({"kind": "fact", "fact": "x"}), true),
        ("memory.create", json!({"kind": "fact"}), false),
        ("memory.create", json!({"kind": "preference", "name": "a"}), false),
        ("memory.create", json!({"kind": "preference", "name": "a", "value": "b"}), true),
        ("memory.create", json!({"kind": "other", "fact": "x"}), false),
        ("web.visit", json!({}), false),
        ("web.visit", json!({"url": 5}), false),
        ("web.visit", json!({"url": "https://x", "more": 1}), false),
        ("web.visit", json!([]), false),
    ] {
        let checked = toolbox.check(spec(name), &arguments);
        assert_eq!(checked.is_ok(), fits, "{name} {arguments}");
        if let Err(error) = checked {
            assert!(error.to_string().contains("expected: {"), "{error}");
        }
    }
}

#[test]
fn large_results_are_cut_and_say_so() {
    let mut spec = toolbox().tools["web.search"].spec().clone();
    spec.max_bytes = 10;
    let cut = capped(ToolOutput::success("Found", "123456789é and more"), &spec);
    let text = String::from_utf8(cut.content).unwrap();
    assert!(text.starts_with("123456789\n[web.search gave 20 bytes; the first 9 are kept"), "{text}");
    assert!(cut.summary.contains("cut: 9 of 20 bytes"));
    let whole = capped(ToolOutput::success("Found", "1234567890"), &spec);
    assert_eq!(whole.content, b"1234567890");
    let binary = capped(ToolOutput::success("Found", vec![0x80; 100]), &spec);
    assert!(binary.content.len() > 6, "bytes that are no text are kept too");
}

#[test]
fn calls_are_shown_in_a_line() {
    let text = call_text("internet.research", &json!({"query": "a \"b\"", "mode": "commerce"}));
    assert_eq!(text, r#"internet.research(query="a \"b\"", mode="commerce")"#);
    assert!(call_text("x", &json!({"a": "y".repeat(5_000)})).len() < 300);
    assert!(whole_call_text("x", &json!({"a": "y".repeat(5_000)})).len() > 5_000, "who is asked sees all");
    assert_eq!(call_text("x", &Value::Null), "x()");
}

#[test]
fn definitions_are_lean() {
    let toolbox = toolbox();
    let specs = toolbox.tools.values().map(|tool| tool.spec());
    let definitions: Vec<String> =
        specs.map(|spec| format!("{}{}{}", spec.name, spec.description, spec.parameters)).collect();
    for noise in ["$schema", "$defs", "\"title\"", "\"format\"", "\"default\"", "null", "\\n"] {
        assert!(definitions.iter().all(|definition| !definition.contains(noise)), "{noise}");
    }
    let bytes: usize = definitions.iter().map(String::len).sum();
    assert!(bytes < 6_850, "every planner's prompt holds these definitions: {bytes} bytes");
}
