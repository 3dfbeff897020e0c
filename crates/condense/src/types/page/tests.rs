//! Tests of page captures.

use super::*;

fn roles(stretches: &[ZoneStretch], text: &str, role: Role) -> String {
    let mut at = 0;
    for stretch in stretches {
        assert_eq!(stretch.range.start, at);
        at = stretch.range.end;
    }
    assert_eq!(at, text.len());
    stretches
        .iter()
        .filter(|stretch| stretch.role == role)
        .map(|stretch| &text[stretch.range.clone()])
        .collect()
}

const JSON: &str = r#"{"url": "https://x.example", "captured_at": "2026-01-02T03:04:05Z", "zones": [
  {"kind": "pricing", "confidence": 0.95, "fields": {"price": "$9.99", "colour": "red"}, "raw_text": "Only \"nine\" dollars."},
  {"kind": "product_info", "confidence": 0.79, "fields": {"name": "Lamp", "wire": "2 m"}, "raw_text": "A lamp."},
  {"kind": "ad", "confidence": 0.3, "fields": {"name": "Boat"}}], "top_comments": [{"author": "a"}]}
"#;

#[test]
fn json_captures_are_divided_by_confidence() {
    let stretches = json::stretches(JSON).unwrap();
    assert!(roles(&stretches, JSON, Role::Metadata).contains("https://x.example"));
    let structured = roles(&stretches, JSON, Role::Structured);
    for kept in ["$9.99", "red", "Lamp", "top_comments"] {
        assert!(structured.contains(kept), "{kept} in {structured}");
    }
    let dropped = roles(&stretches, JSON, Role::Dropped);
    for gone in ["2 m", "A lamp.", "Boat"] {
        assert!(dropped.contains(gone), "{gone} in {dropped}");
    }
    assert!(roles(&stretches, JSON, Role::Text).contains("nine"));
}

#[test]
fn markdown_captures_are_divided_by_confidence() {
    let text = "# Page Content: Lamp\n\n**URL:** https://x.example\n**Captured:** 2026-01-02\n\n## Zone: pricing (confidence: 0.9)\n\
        - price: $9.99\n- colour: red\n\nOnly nine dollars.\n\n## Product info\n**Confidence:** 60%\n- name: Lamp\n- wire: 2 m\n\nA lamp.\n\
        \n## Ads, confidence 0.49\n- name: Boat\n\n## Page Text\n\nAll of it.\n";
    let stretches = markdown::stretches(text);
    let metadata = roles(&stretches, text, Role::Metadata);
    assert!(metadata.contains("URL") && metadata.contains("Captured"), "{metadata}");
    let structured = roles(&stretches, text, Role::Structured);
    for kept in ["$9.99", "red", "name: Lamp"] {
        assert!(structured.contains(kept), "{kept} in {structured}");
    }
    let dropped = roles(&stretches, text, Role::Dropped);
    for gone in ["2 m", "A lamp.", "Boat"] {
        assert!(dropped.contains(gone), "{gone} in {dropped}");
    }
    let narrative = roles(&stretches, text, Role::Text);
    assert!(narrative.contains("nine dollars") && narrative.contains("All of it."), "{narrative}");
}

#[test]
fn bands_leave_no_hole() {
    for (confidence, full, key) in [
        ("0.8", true, true),
        ("0.795", false, true),
        ("0.5", false, true),
        ("0.4999", false, false),
        ("NaN", false, false),
    ] {
        let text = format!(
            r#"{{"zones":[{{"kind":"x","confidence":{confidence},"fields":{{"price":1,"wire":2}}}}]}}"#
        );
        let stretches = json::stretches(&text).unwrap();
        let structured = roles(&stretches, &text, Role::Structured);
        assert_eq!((structured.contains("wire"), structured.contains("price")), (full, key), "{confidence}");
    }
}

#[test]
fn incomplete_json_is_parsed_as_markdown() {
    for text in [
        "",
        "{",
        "{\"zones\": [",
        "[1]",
        "{\"a\" 1}",
        "{} x",
        "{\"zones\": [{\"kind\"}]}",
        "{\"a\": \"\\",
        "{\"é\":}",
    ] {
        assert!(json::stretches(text).is_none(), "{text}");
        roles(&markdown::stretches(text), text, Role::Text);
    }
    for text in [
        "{}",
        "{\"zones\": {\"pricing\": {\"price\": 1}, \"nav\": 3}}",
        "{\"zones\": []}",
        " {\"a\": [[[1]]]}\n",
    ] {
        roles(&json::stretches(text).unwrap(), text, Role::Text);
    }
    let deep = format!("{{\"zones\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    roles(&json::stretches(&deep).unwrap(), &deep, Role::Text);
}
