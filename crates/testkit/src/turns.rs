//! What models say in turns.

use serde_json::json;

use crate::scripted::{Act, text};

/// What a model says in a turn that is answered from what is known.
pub fn plain_turn() -> Vec<Act> {
    let say = |words: String| Act::Say(Ok(text(&words)));
    let mut acts: Vec<Act> = [
        json!({"resolved_query": "", "was_resolved": false, "query_type": "new_topic", "intent": "informational", "entities": [], "content_reference": null,
            "reasoning": "It refers to nothing."}),
        json!({"decision": "PROCEED", "confidence": 0.95, "is_action": false, "is_follow_up": false,
            "reasoning": "It is clear.", "question": null}),
        json!({"direct_info": [], "links_to_follow": [], "reasoning": "Nothing is known."}),
        json!({"information": "Nothing is known.", "preferences": [], "prior_turns": [], "references": [],
            "sufficiency": "NEEDS_RESEARCH"}),
        json!({"goal": "Answer the query.", "intent": "informational", "confidence": 0.9, "next_step": "synthesis",
            "question": null, "goals": [], "tasks": [{"goal": null, "text": "Answer."}], "focus": null,
            "previous_failure": null, "new_approach": null, "topic": "test"}),
    ]
    .into_iter()
    .map(|answer| say(answer.to_string()))
    .collect();
    acts.push(say("Here is the answer. [context.md§0]".to_owned()));
    let verdict = json!({"decision": "APPROVE", "confidence": 0.9,
        "checks": {"claims_supported": true, "no_hallucinations": true, "query_addressed": true, "coherent_format": true},
        "goals": [], "issues": [], "revision_hints": [], "suggested_fixes": [], "notes": ""});
    acts.push(say(verdict.to_string()));
    acts.push(say(json!({"summary": "It was answered.", "topic": "test", "lessons": []}).to_string()));
    acts
}
