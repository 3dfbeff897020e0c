//! Phase 6: the verdict, and the phase that follows from it (R1-3.48 to R1-3.52, R1-3.75 to R1-3.81, R1-3.84, C10, C67 to
//! C69). Limits are enforced here and never by the model (R1-3.79).

use larder_engine::inputs::InputDocument;
use larder_engine::settings::TurnLimits;
use larder_text::sections::SectionId;
use larder_vault::context::{Check, CheckResult, Validation, Verdict};
use larder_vault::{BlockId, Score};
use serde_json::json;

use super::absent;
use super::answers::ValidationAnswer;
use super::empty_sources;
use super::ending;
use super::error::Stop;
use super::event::Events;
use super::phase::{PhaseContext, PhaseOutcome};
use super::plan::task_plan;
use super::recipes::PhaseInputs;
use super::round_rules::ONLY_GOAL;
use super::state::{AnswerAttempt, AttemptVerdict, Ending, TurnState};
use super::synthesize::citable_documents;
use super::turn_phase::TurnPhase;

/// Why an answer without a verdict is delivered with a mark.
const UNJUDGED: &str = "the validator gave no verdict that can be read";

/// The verdict in place of one that could not be read.
fn unjudged(block: Option<BlockId>) -> Validation {
    Validation {
        decision: Verdict::Fail,
        confidence: Score::ZERO,
        checks: Vec::new(),
        goals: Vec::new(),
        issues: vec![UNJUDGED.to_owned()],
        revision_hints: Vec::new(),
        suggested_fixes: Vec::new(),
        notes: String::new(),
        block,
    }
}

/// Judges the newest answer.
pub(super) async fn run(cx: &mut PhaseContext<'_>) -> Result<PhaseOutcome, Stop> {
    let plan = task_plan(cx);
    let mut documents = citable_documents(cx).await?;
    let response = cx.draft.place.response();
    if let Some(attempt) = cx.state.attempts.last() {
        let answer = InputDocument::whole(response.name(), response.as_str(), attempt.answer.as_str());
        documents.push(answer);
    }
    let values = vec![("attempt", json!(cx.state.attempt(TurnPhase::Validate)))];
    let inputs = PhaseInputs { documents, values, ..PhaseInputs::default() };
    let convert = |answer: &ValidationAnswer| answer.validation(&plan);
    let mut validation = match cx.recipes().decide("phase6_validator", inputs, convert).await {
        Ok((_, validation)) => validation,
        // An answer that nobody could judge is still an answer.
        Err(Stop::Unmet { .. }) => {
            let block = cx.document.next_decision("validation", SectionId::Validation);
            cx.document.append(&unjudged(block)).await?;
            return Ok(ending::exhausted(&mut cx.state, cx.events, UNJUDGED));
        }
        Err(stop) => return Err(stop),
    };
    let newest = cx.state.attempts.last();
    let unsupported = newest.map(|attempt| attempt.unsupported.clone()).unwrap_or_default();
    // An answer that says only what could not be found says so already.
    let is_honest =
        newest.is_some_and(|attempt| absent::is_only_absence(&attempt.answer, &empty_sources::asked(cx)));
    let unreached =
        newest.filter(|_| !is_honest).map(|attempt| attempt.unreached.clone()).unwrap_or_default();
    let found_by_model = attempt_verdict(&validation);
    let is_approved = validation.decision == Verdict::Approve;
    hold_to_documents(&mut validation, &unsupported);
    hold_to_goals(&mut validation, &unreached);
    validation.block = cx.document.next_decision("validation", SectionId::Validation);
    cx.document.append(&validation).await?;
    if let Some(attempt) = cx.state.attempts.last_mut() {
        // Code may be wrong about a value that the model has judged: it keeps the answer from being called verified, not
        // from being delivered.
        let claims_failed = found_by_model.claims_failed;
        attempt.verdict = Some(AttemptVerdict { claims_failed, ..attempt_verdict(&validation) });
    }
    let is_flawed =
        |attempt: &&AnswerAttempt| !attempt.unsupported.is_empty() || !attempt.unreached.is_empty();
    let was_revised = cx.state.attempts.iter().filter(is_flawed).count() > 1;
    if is_approved && was_revised {
        if !unsupported.is_empty() {
            let reason = "a revision left values that none of its documents states";
            return Ok(ending::exhausted(&mut cx.state, cx.events, reason));
        }
        if !unreached.is_empty() {
            let reason = format!("{} not reached", unreached.join(", "));
            return Ok(ending::exhausted(&mut cx.state, cx.events, &reason));
        }
    }
    Ok(follow(&mut cx.state, cx.events, &cx.turns.limits, &validation))
}

/// What code finds outranks an approval: an answer with a value that none of its documents states is revised once, and never called verified.
fn hold_to_documents(validation: &mut Validation, unsupported: &[String]) {
    if unsupported.is_empty() {
        return;
    }
    for (check, result) in &mut validation.checks {
        if matches!(check, Check::ClaimsSupported | Check::NoHallucinations) {
            *result = CheckResult::Fail;
        }
    }
    let issue = |value: &String| {
        format!("{value:?} is in none of the answer's documents, or not as the answer states it.")
    };
    validation.issues.extend(unsupported.iter().map(issue));
    if validation.decision == Verdict::Approve {
        validation.decision = Verdict::Revise;
    }
    if validation.decision == Verdict::Revise {
        let hint = |value: &String| format!("Leave out {value:?}, or state it as a document does.");
        validation.revision_hints.extend(unsupported.iter().map(hint));
    }
}

/// An approval that leaves a goal unaddressed contradicts itself: the answer is rewritten (R1-3.84). A goal that the calls
/// of the turn did not reach is not addressed, whatever the model says.
fn hold_to_goals(validation: &mut Validation, unreached: &[String]) {
    for goal in &mut validation.goals {
        goal.addressed &= !unreached.contains(&goal.goal.to_string());
    }
    if unreached.iter().any(|goal| goal == ONLY_GOAL) {
        let checks = validation.checks.iter_mut();
        checks
            .filter(|(check, _)| *check == Check::QueryAddressed)
            .for_each(|check| check.1 = CheckResult::Fail);
    }
    let issue = |goal: &String| format!("The calls of the turn did not reach {goal}.");
    validation.issues.extend(unreached.iter().map(issue));
    let left = validation.goals.iter().filter(|goal| !goal.addressed).map(|goal| goal.goal.to_string());
    let left: Vec<String> = left.filter(|goal| !unreached.contains(goal)).collect();
    if left.is_empty() && unreached.is_empty() {
        return;
    }
    if validation.decision == Verdict::Approve {
        validation.decision = Verdict::Revise;
        validation.revision_hints.extend((!left.is_empty()).then(|| format!("Address {}.", left.join(", "))));
    }
    if validation.decision == Verdict::Revise {
        let hint = |goal: &String| format!("Say plainly that {goal} could not be reached.");
        validation.revision_hints.extend(unreached.iter().map(hint));
    }
}

fn attempt_verdict(validation: &Validation) -> AttemptVerdict {
    let failed = |check: &(Check, CheckResult)| check.1 == CheckResult::Fail;
    let about_claims =
        |check: &(Check, CheckResult)| matches!(check.0, Check::ClaimsSupported | Check::NoHallucinations);
    AttemptVerdict {
        confidence: validation.confidence,
        quality: validation.overall_quality().or(Some(validation.confidence)),
        passed: validation.checks.iter().filter(|check| !failed(check)).count(),
        claims_failed: validation.checks.iter().any(|check| failed(check) && about_claims(check)),
        issues: validation.issues.clone(),
    }
}

fn follow(
    state: &mut TurnState,
    events: Events<'_>,
    limits: &TurnLimits,
    validation: &Validation,
) -> PhaseOutcome {
    let text = format!("{} {}", validation.decision, validation.confidence);
    match validation.decision {
        Verdict::Approve => approve(state, text),
        Verdict::Revise if state.revisions < limits.revisions => {
            state.revisions += 1;
            state.hints.clone_from(&validation.revision_hints);
            PhaseOutcome::new(TurnPhase::Synthesize, text)
        }
        Verdict::Retry if state.retries < limits.retries => {
            state.retries += 1;
            state.hints.clone_from(&validation.suggested_fixes);
            PhaseOutcome::new(TurnPhase::Plan, text)
        }
        Verdict::Revise => ending::exhausted(state, events, "it was revised as often as a turn allows"),
        Verdict::Retry => ending::exhausted(state, events, "it was planned again as often as a turn allows"),
        Verdict::Fail => ending::fail(state, events, validation.issues.join("; ")),
    }
}

fn approve(state: &mut TurnState, text: String) -> PhaseOutcome {
    let attempt = state.attempts.last();
    let quality = attempt.and_then(|attempt| attempt.verdict.as_ref()).and_then(|verdict| verdict.quality);
    let answer = attempt.map(|attempt| attempt.answer.clone()).unwrap_or_default();
    let sources = attempt.map(|attempt| attempt.sources.clone()).unwrap_or_default();
    state.ending = Some(Ending::Answer { text: answer, unverified: false, quality, note: None, sources });
    PhaseOutcome::new(TurnPhase::Save, text)
}

#[cfg(test)]
mod tests {

    use larder_vault::context::{GoalId, GoalVerdict};

    use super::super::event::NoopTurnObserver;
    use super::*;

    fn validation(decision: Verdict) -> Validation {
        Validation {
            decision,
            confidence: Score::new(0.9).unwrap(),
            checks: vec![
                (Check::ClaimsSupported, CheckResult::Pass),
                (Check::CoherentFormat, CheckResult::Fail),
            ],
            goals: Vec::new(),
            issues: vec!["an issue".to_owned()],
            revision_hints: vec!["a hint".to_owned()],
            suggested_fixes: vec!["a fix".to_owned()],
            notes: String::new(),
            block: None,
        }
    }

    fn state() -> TurnState {
        let mut state = TurnState::new("2026-01-05T10:00:00Z".parse().unwrap(), None);
        state.attempts = vec![AnswerAttempt {
            answer: "answer".to_owned(),
            unsupported: Vec::new(),
            unreached: Vec::new(),
            sources: Vec::new(),
            verdict: None,
        }];
        state
    }

    #[test]
    fn a_verdict_leads_to_its_phase_until_the_limits() {
        let limits = TurnLimits { revisions: 1, retries: 1, ..TurnLimits::default() };
        let mut state = state();
        let mut follow = |decision| {
            let next = follow(&mut state, Events(&NoopTurnObserver), &limits, &validation(decision)).next;
            (next, state.hints.clone(), state.ending.is_some())
        };
        let hint = vec!["a hint".to_owned()];
        let fix = vec!["a fix".to_owned()];
        assert_eq!(follow(Verdict::Revise), (TurnPhase::Synthesize, hint, false));
        assert_eq!(follow(Verdict::Retry), (TurnPhase::Plan, fix.clone(), false));
        assert_eq!(follow(Verdict::Revise), (TurnPhase::Save, fix.clone(), true));
        assert_eq!(follow(Verdict::Retry), (TurnPhase::Save, fix, true));
    }

    #[test]
    fn an_invented_value_outranks_an_approval() {
        let mut approved = validation(Verdict::Approve);
        hold_to_documents(&mut approved, &[]);
        assert_eq!(approved.decision, Verdict::Approve);
        hold_to_documents(&mut approved, &["$599.00".to_owned()]);
        assert_eq!(approved.decision, Verdict::Revise);
        assert!(approved.revision_hints.last().unwrap().contains("$599.00"));
        assert!(attempt_verdict(&approved).claims_failed);
    }

    #[test]
    fn an_approval_that_leaves_a_goal_unaddressed_is_a_revision() {
        let mut approved = validation(Verdict::Approve);
        let quality = Score::new(0.8).unwrap();
        let goal = |id, addressed| GoalVerdict { goal: GoalId(id), addressed, quality, notes: String::new() };
        approved.goals = vec![goal(1, true), goal(2, false)];
        hold_to_goals(&mut approved, &[]);
        assert_eq!(approved.decision, Verdict::Revise);
        assert_eq!(approved.revision_hints.last().unwrap(), "Address GOAL_2.");
        // The same for a goal that the model takes for addressed and no call has reached.
        let mut approved = validation(Verdict::Approve);
        approved.goals = vec![goal(1, true), goal(2, true)];
        hold_to_goals(&mut approved, &["GOAL_2".to_owned()]);
        assert_eq!((approved.decision, approved.goals[0].addressed), (Verdict::Revise, true));
        assert!(!approved.goals[1].addressed && approved.issues.last().unwrap().contains("GOAL_2"));
        let mut approved = validation(Verdict::Approve);
        approved.checks.push((Check::QueryAddressed, CheckResult::Pass));
        hold_to_goals(&mut approved, &[ONLY_GOAL.to_owned()]);
        assert_eq!(approved.decision, Verdict::Revise);
        assert_eq!(approved.checks.last().unwrap().1, CheckResult::Fail);
    }

    #[test]
    fn only_failed_checks_of_claims_make_claims_fail() {
        let verdict = attempt_verdict(&validation(Verdict::Revise));
        assert_eq!((verdict.passed, verdict.claims_failed), (1, false));
        let mut failed = validation(Verdict::Revise);
        failed.checks = vec![(Check::NoHallucinations, CheckResult::Fail)];
        assert!(attempt_verdict(&failed).claims_failed);
    }
}
