//! Presets as text: what they decide, and what binds a decision before its score.

use larder_text::Layer;

use super::*;
use crate::route::{RouteRequest, Tier, TierModel};

const PRESET: &str = r##"description: For tests.
tiers:
  - {name: small, layer: NERVES}
  - {name: middle, layer: VOICE, from: 2}
  - {name: large, layer: MIND, from: 4}
require:
  - {capability: vision, when: {images: {from: 1}}}
ceilings: {cost_usd: 0.02, latency_ms: 3000}
factors:
  - {name: intensity, weight: 1.5, when: {fields: {intensity: {from: 8}}}}
  - {name: conflict, weight: 1.5, when: {says: ["contradict*", "says … but"], in: either}}
  - {name: long, weight: 0.5, when: {chars: {from: 501}}}
  - {name: code, weight: 1, when: {document_kind: [code], documents: {to: 3}, not: {says: [typo]}}}
  - {name: draft, weight: -1, when: {task: [draft, rewrite]}}
  - {name: german, weight: 0.5, when: {says: [und, ich, nicht, das], at_least: 3}}
  - {name: stage, weight: 1, when: {any: [{stage: [repair]}, {output: [json], fields: {mode: [Deep]}}]}}
"##;

fn preset(text: &str) -> Preset {
    let presets = check(&[("routes/test.yaml".to_owned(), text.as_bytes().to_vec())].into());
    assert_eq!(presets.diagnostics, []);
    presets.usable["test"].clone()
}

fn say(message: &str) -> RouteRequest {
    RouteRequest { message: message.into(), ..RouteRequest::default() }
}

fn model(tier: &Tier) -> Option<TierModel> {
    let cost = ["0.001", "0.01", "0.02"][match tier.layer {
        Layer::Nerves => 0,
        Layer::Voice => 1,
        _ => 2,
    }];
    Some(TierModel {
        model: format!("model of {}", tier.name),
        window: 10_000,
        capabilities: Vec::new(),
        cost: cost.parse().ok(),
        latency_ms: None,
    })
}

#[test]
fn factors_add_up_and_each_is_recorded_with_what_made_it_hold() {
    let preset = preset(PRESET);
    let mut request = say("The mail says Monday but the notes contradict it.");
    request.fields.insert("intensity".into(), 9.into());
    request.history = vec!["He says one thing but means another".into()];
    request.tasks = vec!["draft".into()];
    let decision = preset.decide(&request, None, model);
    assert_eq!((decision.tier.as_str(), decision.score, decision.layer), ("middle", 2.0, Layer::Voice));
    assert_eq!(decision.model, "model of middle");
    let found: Vec<(&str, f64, Option<&str>)> =
        decision.factors.iter().map(|one| (one.name.as_str(), one.score, one.reason.as_deref())).collect();
    assert_eq!(found.len(), preset.factors.len());
    assert_eq!(found[0], ("intensity", 1.5, Some("intensity 9")));
    assert_eq!(found[1], ("conflict", 1.5, Some("contradict*, says … but")));
    assert_eq!(found[2], ("long", 0.0, None));
    assert_eq!(found[4], ("draft", -1.0, Some("task draft")));
}

#[test]
fn every_kind_of_condition_holds_as_written() {
    let preset = preset(PRESET);
    let held = |request: &RouteRequest| -> Vec<String> {
        let factors = preset.decide(request, None, model).factors;
        factors.into_iter().filter(|one| one.reason.is_some()).map(|one| one.name).collect()
    };
    let with_code = |message: &str| RouteRequest {
        documents: vec![crate::route::RouteDocument { kind: "code".into(), tokens: 5 }],
        ..say(message)
    };
    assert_eq!(held(&with_code("fix the parser")), ["code"]);
    assert_eq!(held(&with_code("fix the typo")), [""; 0]);
    assert_eq!(held(&say("das weiß ich nicht")), ["german"]);
    assert_eq!(held(&say("das weiß er nicht")), [""; 0]);
    assert_eq!(held(&RouteRequest { stage: Some("repair".into()), ..say("hm") }), ["stage"]);
    let mut deep = RouteRequest { output: Some("json".into()), ..say("hm") };
    deep.fields.insert("mode".into(), "deep".into());
    assert_eq!(held(&deep), ["stage"]);
    assert_eq!(held(&say(&"é".repeat(500))), [""; 0]);
    assert_eq!(held(&say(&"é".repeat(501))), ["long"]);
}

#[test]
fn a_floor_is_kept_and_an_unknown_one_means_the_largest() {
    let preset = preset(PRESET);
    let tier = |floor| preset.decide(&say("hi"), floor, model).tier;
    assert_eq!([tier(None), tier(Some("middle")), tier(Some("largest"))], ["small", "middle", "large"]);
}

#[test]
fn a_model_that_cannot_answer_is_passed_over_and_named() {
    let preset = preset(PRESET);
    let picture = RouteRequest { images: 1, ..say("what is this") };
    let sees = |tier: &Tier| {
        let capabilities = if tier.name == "large" { vec!["vision".to_owned()] } else { Vec::new() };
        Some(TierModel { capabilities, ..model(tier)? })
    };
    let decision = preset.decide(&picture, None, sees);
    assert_eq!((decision.tier.as_str(), decision.excluded.len()), ("large", 2));
    assert_eq!(decision.excluded[0].reason, "model of small lacks vision");
    let tokens = RouteRequest { tokens: 20_000, ..say("hi") };
    let wide = |tier: &Tier| {
        let window = if tier.name == "small" { 8_000 } else { 200_000 };
        Some(TierModel { window, ..model(tier)? })
    };
    assert_eq!(preset.decide(&tokens, None, wide).tier, "middle");
    // Where no model can, the largest is asked and says why it cannot.
    assert_eq!(preset.decide(&picture, None, model).tier, "large");
    assert_eq!(preset.decide(&say("hi"), None, |_| None).model, "");
}

#[test]
fn ceilings_bind_the_score_and_yield_to_the_floor() {
    let cheap = PRESET.replace("cost_usd: 0.02", "cost_usd: 0.015");
    let preset = preset(&cheap);
    let mut hard = RouteRequest { stage: Some("repair".into()), ..say("he says so but they contradict") };
    hard.fields.insert("intensity".into(), 10.into());
    let decision = preset.decide(&hard, None, model);
    assert_eq!((decision.score, decision.tier.as_str()), (4.0, "middle"));
    assert_eq!(decision.excluded[0].reason, "model of large may cost $0.02, the ceiling is $0.015");
    assert_eq!(preset.decide(&hard, Some("large"), model).tier, "large");
    let slow = |tier: &Tier| {
        let latency_ms = (tier.name != "small").then_some(9_000);
        Some(TierModel { latency_ms, ..model(tier)? })
    };
    assert_eq!(preset.decide(&hard, None, slow).tier, "small");
}

#[test]
fn the_decision_is_the_same_every_time_and_names_nothing_of_the_message() {
    let preset = preset(PRESET);
    let request = say("Contradictions of Rosalind, says she, but");
    let decision = preset.decide(&request, None, model);
    assert_eq!(decision, preset.decide(&request, None, model));
    assert!(!serde_json::to_string(&decision).unwrap().contains("Rosalind"));
}
