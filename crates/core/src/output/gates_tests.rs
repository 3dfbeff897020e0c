//! Tests of the gates.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::output::parse;
use crate::recipe::TagSpec;

fn ids(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

fn gates(threshold: Option<f64>, evidence: bool) -> Gates {
    Gates { confidence_threshold: threshold, evidence_required: evidence, ..Gates::default() }
}

fn judge(
    format: OutputFormat,
    schema: Option<Value>,
    gates: &Gates,
    citable: &[&str],
    answer: &str,
) -> GateResult {
    let spec = OutputSpec { format, schema, tags: Vec::new() };
    let parsed = parse(&spec, answer);
    evaluate(parsed.as_ref(), &spec, gates, &Schemas::default(), &ids(citable)).unwrap()
}

fn cited(result: &GateResult) -> Vec<&str> {
    result.citations.iter().map(|citation| citation.part.as_str()).collect()
}

#[test]
fn an_answer_that_cannot_be_read_fails_and_can_be_repaired() {
    let result = judge(OutputFormat::Json, Some(json!({})), &gates(None, false), &[], "Sorry");
    assert_eq!((result.schema_valid, result.remedy()), (Some(false), Some(Remedy::Repair)));
    assert!(repair_message(&result.failures).contains("no JSON value found"));
}

#[test]
fn schema_failures_name_the_place() {
    let schema = json!({"required": ["decision"], "properties": {"confidence": {"maximum": 1}}});
    let result =
        judge(OutputFormat::Json, Some(schema.clone()), &gates(None, false), &[], r#"{"confidence": 7}"#);
    assert_eq!((result.schema_valid, result.confidence), (Some(false), None));
    let message = repair_message(&result.failures);
    assert!(message.contains("at the top level: \"decision\" is a required property"), "{message}");
    assert!(message.contains("at /confidence: 7 is greater than the maximum of 1"), "{message}");
    let off = Gates { schema_validation: false, ..gates(None, false) };
    assert!(judge(OutputFormat::Json, Some(schema), &off, &[], r#"{"confidence": 7}"#).passed());
}

#[test]
fn low_confidence_escalates_and_is_hidden_from_the_model() {
    let judge = |answer| judge(OutputFormat::Json, None, &gates(Some(0.7), false), &[], answer);
    assert!(judge(r#"{"confidence": 0.7}"#).passed());
    let low = judge(r#"{"confidence": 0.65}"#);
    assert_eq!((low.confidence, low.remedy()), (Some(0.65), Some(Remedy::Escalate)));
    assert_eq!(repair_message(&low.failures), "");
    for missing in [r"{}", r#"{"confidence": "high"}"#, r#"{"confidence": -1}"#, r#"[{"confidence": 1}]"#] {
        assert_eq!(judge(missing).failures, [GateFailure::NoConfidence], "{missing}");
        assert_eq!(judge(missing).remedy(), Some(Remedy::Repair));
    }
}

#[test]
fn citations_in_data_resolve_to_parts() {
    let answer = r#"{"answer": "x", "citations": ["p1", "[2]", 3, {"id": "ticket.md#L3-9"}],
        "nested": [{"sources": ["context.md"]}], "evidence": []}"#;
    let result = judge(
        OutputFormat::Json,
        None,
        &gates(None, true),
        &["p1", "p2", "p3", "ticket.md", "context.md"],
        answer,
    );
    assert!(result.passed(), "{:?}", result.failures);
    assert_eq!(cited(&result), ["p1", "p2", "p3", "ticket.md", "context.md"]);
    assert_eq!(result.citations[3].fragment.as_deref(), Some("L3-9"));
    assert_eq!(result.citations[4].place, CitationPlace::Pointer("/nested/0/sources/0".to_owned()));
}

#[test]
fn an_unknown_citation_is_a_failure_that_names_what_may_be_cited() {
    let result = judge(
        OutputFormat::Yaml,
        None,
        &gates(None, true),
        &["p1", "p2"],
        "a: 1\nsources: [p1, p9, {x: 1}]\n",
    );
    assert_eq!((cited(&result), result.failures.len()), (vec!["p1"], 2));
    let message = repair_message(&result.failures);
    assert!(message.contains("\"p9\" is none of the parts given; cite only p1, p2"), "{message}");
    let lenient = judge(OutputFormat::Yaml, None, &gates(None, false), &["p1"], "sources: [p9]\n");
    assert!(lenient.passed());
}

#[test]
fn each_claim_must_cite() {
    let answer =
        r#"{"claims": [{"claim": "a", "sources": ["p1"]}, {"claim": "b", "sources": []}, "c [1]", "d"]}"#;
    let result = judge(OutputFormat::Json, None, &gates(None, true), &["p1"], answer);
    let bare = |path: &str| GateFailure::BareClaim { path: path.to_owned() };
    assert_eq!(result.failures, [bare("/claims/1"), bare("/claims/3")]);
    assert_eq!(cited(&result), ["p1", "p1"]);
}

#[test]
fn markers_and_links_in_text_resolve_to_parts() {
    let text = "It costs $697 [1], see [2, p3] and [the ticket](ticket.md#L3-4).\n\nAs of [2026] [sic] [shop](https://x.y/[7]).\n\n\
        `a[9]` and\n\n```\nb[8]\n```\n";
    let citable = ["p1", "p2", "p3", "ticket.md"];
    let result = judge(OutputFormat::Markdown, None, &gates(None, true), &citable, text);
    assert!(cited(&result).starts_with(&["ticket.md"]), "{result:?}");
    let mut sorted = cited(&result);
    sorted.sort_unstable();
    assert_eq!(sorted, citable);
    let CitationPlace::Bytes(range) = &result.citations[1].place else { panic!("{result:?}") };
    assert_eq!(&text[range.clone()], "1");
    let unknown = judge(OutputFormat::Text, None, &gates(None, true), &citable, "b[8]");
    assert_eq!(unknown.failures.len(), 1);
    let none = judge(OutputFormat::Markdown, None, &gates(None, true), &citable, "plain `[1]`");
    assert_eq!(none.failures, [GateFailure::NoEvidence { offered: "p1, p2, p3, ticket.md".to_owned() }]);
}

#[test]
fn tags_are_held_to_their_schemas() {
    let tag = |name: &str, multiple, schema| TagSpec {
        name: name.to_owned(),
        required: false,
        multiple,
        hidden: true,
        inline: false,
        schema: Some(schema),
    };
    let thinking = json!({"type": "object", "required": ["Mode"], "properties": {
        "Mode": {"enum": ["NEEDS", "REPAIR"]}, "UserIntensity": {"type": "integer", "minimum": 1, "maximum": 10}}});
    let spec = OutputSpec {
        format: OutputFormat::Tagged,
        schema: None,
        tags: vec![
            tag("thinking", false, thinking),
            tag("dispatch", true, json!({"type": "string", "enum": ["STOP"]})),
        ],
    };
    let judge = |answer: &str| {
        let parsed = parse(&spec, answer);
        evaluate(parsed.as_ref(), &spec, &gates(None, false), &Schemas::default(), &ids(&[])).unwrap()
    };
    assert!(judge("<thinking>Mode: NEEDS\nUserIntensity: 7</thinking><dispatch>STOP</dispatch>hi").passed());
    let result = judge("<thinking>Mode: ANGRY\nUserIntensity: 11</thinking><dispatch>GO</dispatch>");
    let message = repair_message(&result.failures);
    for place in ["/thinking/Mode", "/thinking/UserIntensity", "/dispatch/0"] {
        assert!(message.contains(place), "{place}: {message}");
    }
}

#[test]
fn a_repair_message_is_short_for_any_answer() {
    let long = format!("{{\"sources\": [{}1]}}", format!("\"{}\",", "x".repeat(10_000)).repeat(100));
    let result = judge(OutputFormat::Json, None, &gates(None, true), &["p1"], &long);
    let message = repair_message(&result.failures);
    assert!(message.chars().count() < 6_000 && message.contains("more of this kind"), "{}", message.len());
    assert_eq!(repair_message(&[]), "");
}

#[test]
fn huge_answers_are_searched_in_one_pass_and_their_findings_bounded() {
    let units = "[1]|[9]|[|]|[a](p1) |[a](|![|`|```\n|*|> |- |<a |[1,|&".split('|').chain(["|a|\n|-|\n"]);
    for unit in units {
        let answer = unit.repeat((1 << 20) / unit.len());
        for format in [OutputFormat::Text, OutputFormat::Markdown] {
            let result = judge(format, None, &gates(None, true), &["p1"], &answer);
            assert!(result.citations.len() + result.failures.len() <= 2_000, "{unit}");
        }
    }
    let claims = format!("{{\"claims\": [{}1]}}", "1,".repeat(100_000));
    assert_eq!(judge(OutputFormat::Json, None, &gates(None, true), &[], &claims).failures.len(), 1_000);
}

proptest! {
    #[test]
    fn only_parts_of_the_pack_are_ever_cited(text in "(\\[p?[0-9]{1,2}\\]|\\[[a-z, 1-3]{0,6}\\]|[\\[\\]()`\n a#]|\\PC){0,40}") {
        let citable = ["p1", "p2", "a"];
        for format in [OutputFormat::Text, OutputFormat::Markdown] {
            let result = judge(format, None, &gates(None, true), &citable, &text);
            for citation in &result.citations {
                prop_assert!(citable.contains(&citation.part.as_str()));
                let CitationPlace::Bytes(range) = &citation.place else { return Err(TestCaseError::fail("text has bytes")) };
                prop_assert!(text.get(range.clone()).is_some());
            }
        }
    }
}
