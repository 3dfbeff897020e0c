//! Phase 6: the verdict, and what follows from it (R1-3.48 to R1-3.52, R1-3.75 to R1-3.81, R1-3.84, C10, C67 to C69).
//! The machine holds the limits, never the model (R1-3.79).

use larder_condense::sections::SectionId;
use larder_vault::context::{Check, CheckResult, Validation, Verdict};
use serde_json::json;

use super::answers::ValidationAnswer;
use super::error::Stop;
use super::machine::{Done, Machine};
use super::recipes::Offer;
use super::state::{Attempt, Ending, Judged, Step};
use larder_engine::inputs::InputDocument;

impl Machine<'_> {
    /// Judges the newest answer.
    pub(super) async fn validate(&mut self) -> Result<Done, Stop> {
        let plan = self.task_plan();
        let mut documents = self.evidence()?;
        let response = self.draft.place.response();
        if let Some(attempt) = self.state.attempts.last() {
            documents.push(InputDocument::whole(response.name(), response.as_str(), attempt.answer.as_str()));
        }
        let values = vec![("attempt", json!(self.state.attempt(Step::Validate)))];
        let offer = Offer { documents, values, ..Offer::default() };
        let make = |answer: &ValidationAnswer| answer.validation(&plan);
        let (_, mut validation) = self.decide("phase6_validator", offer, make).await?;
        hold_to_goals(&mut validation);
        validation.block = self.decision("validation", SectionId::Validation);
        self.append(&validation)?;
        if let Some(attempt) = self.state.attempts.last_mut() {
            attempt.verdict = Some(judged(&validation));
        }
        Ok(self.follow(&validation))
    }

    fn follow(&mut self, validation: &Validation) -> Done {
        let limits = self.turns.limits;
        let text = format!("{} {}", validation.decision, validation.confidence);
        match validation.decision {
            Verdict::Approve => self.approve(text),
            Verdict::Revise if self.state.revisions < limits.revisions => {
                self.state.revisions += 1;
                self.state.hints.clone_from(&validation.revision_hints);
                Done::new(Step::Synthesize, text)
            }
            Verdict::Retry if self.state.retries < limits.retries => {
                self.state.retries += 1;
                self.state.hints.clone_from(&validation.suggested_fixes);
                Done::new(Step::Plan, text)
            }
            Verdict::Revise => self.exhausted("it was revised as often as a turn allows"),
            Verdict::Retry => self.exhausted("it was planned anew as often as a turn allows"),
            Verdict::Fail => self.fail(validation.issues.join("; ")),
        }
    }

    fn approve(&mut self, text: String) -> Done {
        let attempt = self.state.attempts.last();
        let quality =
            attempt.and_then(|attempt| attempt.verdict.as_ref()).and_then(|verdict| verdict.quality);
        let answer = attempt.map(|attempt| attempt.answer.clone()).unwrap_or_default();
        self.state.ending = Some(Ending::Answer { text: answer, unverified: false, quality, note: None });
        Done::new(Step::Save, text)
    }

    /// Nothing more can be tried: the best answer of which no claim failed goes out with a mark, or none (C68).
    pub(super) fn exhausted(&mut self, reason: &str) -> Done {
        let claims_hold = |attempt: &&Attempt| attempt.verdict.as_ref().is_none_or(|it| !it.claims_failed);
        let rank = |attempt: &&Attempt| {
            let verdict = attempt.verdict.as_ref();
            // Confidences compare as whole thousandths; of equals the newest is the best.
            let confidence = verdict.map_or(0, |verdict| (verdict.confidence.get() * 1_000.0) as u32);
            (verdict.map_or(0, |verdict| verdict.passed), confidence)
        };
        let Some(best) = self.state.attempts.iter().filter(claims_hold).max_by_key(rank) else {
            return self.fail(self.without_answer(reason));
        };
        let issues = best.verdict.as_ref().map(|verdict| verdict.issues.as_slice()).unwrap_or_default();
        let text = format!("{}{}", mark(reason, issues), best.answer);
        let quality = best.verdict.as_ref().and_then(|verdict| verdict.quality);
        self.warn(format!("the answer is not verified: {reason}"));
        let note = Some(reason.to_owned());
        self.state.ending = Some(Ending::Answer { text, unverified: true, quality, note });
        Done::new(Step::Save, format!("delivered unverified: {reason}"))
    }

    fn without_answer(&self, reason: &str) -> String {
        let verdict = self.state.attempts.last().and_then(|attempt| attempt.verdict.as_ref());
        match verdict.filter(|verdict| !verdict.issues.is_empty()) {
            Some(verdict) => format!("{reason}, and its claims did not hold: {}", verdict.issues.join("; ")),
            None => reason.to_owned(),
        }
    }
}

/// An approval that leaves a goal unaddressed contradicts itself: the answer is written again (R1-3.84).
fn hold_to_goals(validation: &mut Validation) {
    let left: Vec<String> =
        validation.goals.iter().filter(|goal| !goal.addressed).map(|goal| goal.goal.to_string()).collect();
    if validation.decision == Verdict::Approve && !left.is_empty() {
        validation.decision = Verdict::Revise;
        validation.revision_hints.push(format!("Address {}.", left.join(", ")));
    }
}

fn judged(validation: &Validation) -> Judged {
    let failed = |check: &(Check, CheckResult)| check.1 == CheckResult::Fail;
    let about_claims =
        |check: &(Check, CheckResult)| matches!(check.0, Check::ClaimsSupported | Check::NoHallucinations);
    Judged {
        confidence: validation.confidence,
        quality: validation.overall_quality().or(Some(validation.confidence)),
        passed: validation.checks.iter().filter(|check| !failed(check)).count(),
        claims_failed: validation.checks.iter().any(|check| failed(check) && about_claims(check)),
        issues: validation.issues.clone(),
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
