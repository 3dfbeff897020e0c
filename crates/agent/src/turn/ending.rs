//! How a turn ends without an approved answer: with a question, a failure, or the best answer marked as unverified.

use super::event::Events;
use super::phase::PhaseOutcome;
use super::state::{AnswerAttempt, Ending, TurnState};
use super::turn_phase::TurnPhase;

/// Ends the turn without an answer (R1-3.77).
pub(super) fn fail(state: &mut TurnState, events: Events<'_>, reason: String) -> PhaseOutcome {
    events.warn(reason.clone());
    let outcome = PhaseOutcome::new(TurnPhase::Save, format!("failed: {reason}"));
    state.ending = Some(Ending::Failed { reason });
    outcome
}

/// Ends the turn with a question to the user (C6).
pub(super) fn clarify(state: &mut TurnState, question: String) -> PhaseOutcome {
    let outcome = PhaseOutcome::new(TurnPhase::Save, format!("CLARIFY: {question}"));
    state.ending = Some(Ending::Clarify { question });
    outcome
}

/// Ends a turn that has reached a limit: with the best answer without a failed claim, marked as unverified, or
/// without an answer (C68).
pub(super) fn exhausted(state: &mut TurnState, events: Events<'_>, reason: &str) -> PhaseOutcome {
    let claims_hold =
        |attempt: &&AnswerAttempt| attempt.verdict.as_ref().is_none_or(|verdict| !verdict.claims_failed);
    let rank = |attempt: &&AnswerAttempt| {
        let verdict = attempt.verdict.as_ref();
        // Confidences compare as whole thousandths; the newest of equals is the best.
        let confidence = verdict.map_or(0, |verdict| (verdict.confidence.get() * 1_000.0) as u32);
        (verdict.map_or(0, |verdict| verdict.passed), confidence)
    };
    let Some(best) = state.attempts.iter().filter(claims_hold).max_by_key(rank) else {
        let reason = without_answer(state, reason);
        return fail(state, events, reason);
    };
    let issues = best.verdict.as_ref().map(|verdict| verdict.issues.as_slice()).unwrap_or_default();
    let text = format!("{}{}", mark(reason, issues), best.answer);
    let quality = best.verdict.as_ref().and_then(|verdict| verdict.quality);
    events.warn(format!("the answer is not verified: {reason}"));
    let note = Some(reason.to_owned());
    let sources = best.sources.clone();
    state.ending = Some(Ending::Answer { text, unverified: true, quality, note, sources });
    PhaseOutcome::new(TurnPhase::Save, format!("delivered unverified: {reason}"))
}

fn without_answer(state: &TurnState, reason: &str) -> String {
    let verdict = state.attempts.last().and_then(|attempt| attempt.verdict.as_ref());
    match verdict.filter(|verdict| !verdict.issues.is_empty()) {
        Some(verdict) => format!("{reason}, and its claims failed validation: {}", verdict.issues.join("; ")),
        None => reason.to_owned(),
    }
}

/// The first lines of an answer that did not pass.
fn mark(reason: &str, issues: &[String]) -> String {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let issues: Vec<String> = issues.iter().map(|issue| words(issue)).collect();
    let issues =
        if issues.is_empty() { String::new() } else { format!(" Open issues: {}", issues.join("; ")) };
    format!("> **Unverified.** This answer did not pass validation: {}.{issues}\n\n", words(reason))
}

/// An answer without the lines of [`mark`].
pub(super) fn unmarked(answer: &str) -> &str {
    match answer.split_once("\n\n") {
        Some((first, rest)) if first.starts_with("> **Unverified.**") => rest,
        _ => answer,
    }
}

#[cfg(test)]
mod tests {
    use larder_vault::Score;

    use super::super::event::NoopTurnObserver;
    use super::super::state::AttemptVerdict;
    use super::*;

    fn attempt(answer: &str, verdict: Option<(f64, usize, bool)>) -> AnswerAttempt {
        let verdict = verdict.map(|(confidence, passed, claims_failed)| AttemptVerdict {
            confidence: Score::new(confidence).unwrap(),
            quality: None,
            passed,
            claims_failed,
            issues: vec![format!("issue of {answer}")],
        });
        AnswerAttempt {
            answer: answer.to_owned(),
            unsupported: Vec::new(),
            unreached: Vec::new(),
            sources: Vec::new(),
            verdict,
        }
    }

    fn ended(attempts: Vec<AnswerAttempt>) -> Ending {
        let mut state = TurnState::new("2026-01-05T10:00:00Z".parse().unwrap(), None);
        state.attempts = attempts;
        let outcome = exhausted(&mut state, Events(&NoopTurnObserver), "no time");
        assert_eq!(outcome.next, TurnPhase::Save);
        state.ending.unwrap()
    }

    #[test]
    fn an_exhausted_turn_delivers_its_best_answer_marked() {
        let attempts = vec![
            attempt("weak", Some((0.9, 2, false))),
            attempt("best", Some((0.6, 3, false))),
            attempt("invented", Some((1.0, 4, true))),
        ];
        let Ending::Answer { text, unverified, note, .. } = ended(attempts) else { panic!("no answer") };
        assert!(
            text.starts_with("> **Unverified.** This answer did not pass validation: no time."),
            "{text}"
        );
        assert!(text.contains("Open issues: issue of best\n\nbest"), "{text}");
        assert_eq!((unverified, note.as_deref()), (true, Some("no time")));
    }

    #[test]
    fn of_equal_answers_the_newest_is_delivered() {
        let attempts = vec![attempt("old", Some((0.5, 2, false))), attempt("new", Some((0.5, 2, false)))];
        let Ending::Answer { text, .. } = ended(attempts) else { panic!("no answer") };
        assert!(text.ends_with("\nnew"), "{text}");
    }

    #[test]
    fn without_an_answer_whose_claims_hold_the_turn_fails_with_its_issues() {
        let Ending::Failed { reason } = ended(vec![attempt("a", Some((0.5, 2, true)))]) else {
            panic!("an answer")
        };
        assert_eq!(reason, "no time, and its claims failed validation: issue of a");
        let Ending::Failed { reason } = ended(Vec::new()) else { panic!("an answer") };
        assert_eq!(reason, "no time");
    }
}
