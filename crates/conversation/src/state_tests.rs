//! Turns, stages and milestones of a participant.

use super::*;

const TYPE: &str = r#"{
    "name": "talk", "description": "Talk.", "recipe": "converse/talk",
    "stages": [
        {"name": "first", "buffer_turns": 4,
         "next": [{"to": "second", "when": {"field": {"name": "Heard", "value": "Y", "times": 2}}}]},
        {"name": "second", "buffer_turns": 4,
         "next": [{"to": "third", "when": {"turns": 2, "others_at": "second"}}]},
        {"name": "third", "buffer_turns": 4},
        {"name": "alone", "buffer_turns": 4, "aside": "alone", "next": []}
    ],
    "milestones": [{"name": "heard", "text": "felt heard", "when": {"field": {"name": "Heard", "value": "y"}}}],
    "window": {"protected": 12, "with_summary": 16, "without_summary": 24, "message_chars": 2000,
               "from_other_sessions": 10, "from_this_session": 5, "from_before": 10},
    "summary": {"recipe": "x", "after_messages": 30, "again_after": 20, "keep": 15, "words": 500},
    "memory": {"categories": [{"name": "People", "about": "people"}], "facts": "x", "consolidate": "x",
               "per_session": 20, "per_profile": 50, "profile_tokens": 500, "shown_facts": 5,
               "shown_preferences": 5, "shown_reflections": 2},
    "fields": {"tag": "thinking", "intensity": "UserIntensity", "trend_turns": 3, "trend_from": 1},
    "calls": {"intents": {"runs": "before"}, "context": {"runs": "before"}, "references": {"runs": "behind"},
              "planning": {"runs": "off"}, "reply": {"runs": "reply"}, "facts": {"runs": "behind"},
              "summary": {"runs": "behind"}, "embedding": {"runs": "behind"}}
}"#;

fn kind() -> ConversationType {
    serde_json::from_str(TYPE).unwrap()
}

fn fields(heard: &str) -> BTreeMap<String, String> {
    [("Heard".to_owned(), heard.to_owned())].into()
}

#[test]
fn a_stage_is_left_once_its_field_was_that_so_many_times_in_a_row() {
    let (kind, mut state) = (kind(), ParticipantState::default());
    for (heard, expected) in
        [("Y", "first"), ("N", "first"), ("Y", "first"), ("y", "second"), ("y", "second")]
    {
        state.heard(&fields(heard), None);
        state.advance(&kind, Happened::default());
        assert_eq!(state.stage(&kind).unwrap().name, expected, "{heard}");
    }
    assert_eq!((state.turns, state.stage_turns, state.milestones.len()), (5, 1, 1));
}

#[test]
fn a_new_stage_is_told_in_its_first_turn_only() {
    let (kind, mut state) = (kind(), ParticipantState::default());
    state.heard(&fields("Y"), None);
    state.advance(&kind, Happened::default());
    state.heard(&fields("Y"), None);
    state.advance(&kind, Happened::default());
    assert_eq!(state.came_from.as_deref(), Some("first"));
    state.advance(&kind, Happened::default());
    assert_eq!(state.came_from, None);
}

#[test]
fn a_stage_may_wait_for_the_others() {
    let kind = kind();
    let others = [vec!["first".to_owned()]];
    let mut state = ParticipantState { stage: Some("second".into()), ..ParticipantState::default() };
    for _ in 0..3 {
        state.advance(&kind, Happened { others: &others, ..Happened::default() });
    }
    assert_eq!(state.stage.as_deref(), Some("second"));
    state.advance(&kind, Happened { others: &[vec!["second".to_owned()]], ..Happened::default() });
    assert_eq!(state.stage.as_deref(), Some("third"));
}

#[test]
fn an_aside_leaves_the_stage_of_the_main_line() {
    let (kind, mut state) =
        (kind(), ParticipantState { aside: Some("alone".into()), ..ParticipantState::default() });
    state.heard(&fields("Y"), None);
    state.advance(&kind, Happened::default());
    state.heard(&fields("Y"), None);
    state.advance(&kind, Happened::default());
    assert_eq!((state.stage(&kind).unwrap().name.as_str(), state.stage.as_deref()), ("alone", None));
}

#[test]
fn a_trend_compares_with_the_mean_of_the_turns_before() {
    let (rules, mut state) = (kind().fields, ParticipantState::default());
    let mut trends = Vec::new();
    for intensity in [5, 5, 7, 6, 2] {
        state.heard(&BTreeMap::new(), Some(intensity));
        trends.push(state.trend(&rules));
    }
    assert_eq!(trends, ["stable", "stable", "rising", "stable", "falling"]);
}
