//! What a model says in each phase, as tests vary it.

use serde_json::{Value, json};

pub fn analysis() -> String {
    json!({"resolved_query": "", "was_resolved": false, "query_type": "new_topic", "intent": "informational", "entities": [], "content_reference": null,
        "reasoning": "It refers to nothing."})
    .to_string()
}

pub fn proceed(confidence: f64) -> String {
    json!({"decision": "PROCEED", "confidence": confidence, "is_action": false, "is_follow_up": false,
        "reasoning": "It is clear.", "question": null})
    .to_string()
}

pub fn retrieval() -> String {
    json!({"direct_info": [], "links_to_follow": [], "reasoning": "Nothing is known."}).to_string()
}

pub fn gathered() -> String {
    json!({"information": "Nothing is known.", "preferences": [], "prior_turns": [], "references": [],
        "sufficiency": "NEEDS_RESEARCH"})
    .to_string()
}

pub fn plan(next: &str) -> Value {
    json!({"goal": "Answer the query.", "intent": "informational", "confidence": 0.9, "next_step": next,
        "question": if next == "clarify" { json!("Which one do you mean?") } else { json!(null) }, "goals": [],
        "tasks": [{"goal": null, "text": "Look it up."}], "focus": null,
        "previous_failure": "The first plan missed the point.", "new_approach": "Look elsewhere.", "topic": "test"})
}

pub fn call(tools: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> =
        tools.iter().map(|(tool, arguments)| json!({"tool": tool, "arguments": arguments})).collect();
    json!({"action": "TOOL_CALL", "goal": null, "reasoning": "It is needed.", "calls": calls,
        "goal_confidence": null, "progress": null, "claims": []})
}

pub fn done() -> Value {
    json!({"action": "DONE", "goal": null, "reasoning": "Enough is known.", "calls": [],
        "goal_confidence": null, "progress": "Enough is known.", "claims": []})
}

pub fn answer() -> String {
    "Here is the answer. [context.md§0]".to_owned()
}

pub fn verdict(decision: &str, confidence: f64) -> Value {
    json!({"decision": decision, "confidence": confidence,
        "checks": {"claims_supported": true, "no_hallucinations": true, "query_addressed": true, "coherent_format": true},
        "goals": [], "issues": if decision == "APPROVE" { json!([]) } else { json!(["It misses the point."]) },
        "revision_hints": ["Say more."], "suggested_fixes": ["Search elsewhere."], "notes": ""})
}

/// Phases 0 to 2.
pub fn opening() -> Vec<String> {
    vec![analysis(), proceed(0.95), retrieval(), gathered()]
}

/// A whole turn that is answered from what is known.
pub fn plain_turn() -> Vec<String> {
    let mut all = opening();
    all.extend([plan("synthesis").to_string(), answer(), verdict("APPROVE", 0.9).to_string()]);
    all
}
