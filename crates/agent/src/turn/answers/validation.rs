//! Phase 6: the verdict on the answer.

use larder_vault::context::{Check, CheckResult, Checklist, GoalVerdict, TaskPlan, Validation, Verdict};
use larder_vault::{BlockId, Score};
use serde::{Deserialize, Serialize};

use larder_engine::answer::{UnusableAnswer, said};

use super::CONFIDENCE_THRESHOLD;

/// What `phase6_validator` answers (R1-3.49 to R1-3.52).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationAnswer {
    /// The verdict.
    pub decision: Verdict,
    /// Its confidence.
    pub confidence: Score,
    /// The result of each check.
    pub checks: Checks,
    /// The verdict on each goal, if there are several.
    pub goals: Vec<GoalCheck>,
    /// The issues found.
    pub issues: Vec<String>,
    /// With REVISE: what to write differently.
    pub revision_hints: Vec<String>,
    /// With RETRY: what to plan differently.
    pub suggested_fixes: Vec<String>,
    /// Other remarks.
    pub notes: String,
}

/// The four checks (R1-3.50).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checks {
    /// Every claim of the answer has its evidence.
    pub claims_supported: bool,
    /// Nothing in the answer is invented.
    pub no_hallucinations: bool,
    /// The query is answered, with the priorities that it states.
    pub query_addressed: bool,
    /// The format is coherent.
    pub coherent_format: bool,
}

/// The verdict on one goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoalCheck {
    /// Its number in the plan.
    pub goal: u32,
    /// Whether the answer addresses it.
    pub addressed: bool,
    /// How well it does.
    pub quality: Score,
    /// Remarks.
    pub notes: String,
}

impl Checks {
    /// Each check with its result, in the order of the table in §6.
    pub fn results(self) -> [(Check, bool); 4] {
        [
            (Check::ClaimsSupported, self.claims_supported),
            (Check::NoHallucinations, self.no_hallucinations),
            (Check::QueryAddressed, self.query_addressed),
            (Check::CoherentFormat, self.coherent_format),
        ]
    }

    /// The four items of §5's checklist (R1-3.47), derived from the checks.
    pub fn checklist(self) -> Checklist {
        Checklist {
            claims_match: self.claims_supported,
            intent_satisfied: self.query_addressed,
            no_hallucinations: self.no_hallucinations,
            appropriate_format: self.coherent_format,
        }
    }

    fn failed(self) -> Vec<String> {
        let failed = self.results().into_iter().filter(|(_, passed)| !passed);
        failed.map(|(check, _)| format!("{check}: FAIL")).collect()
    }
}

impl ValidationAnswer {
    /// §6. An approval with a confidence below [`CONFIDENCE_THRESHOLD`], or contradicted by a failed check, becomes a REVISE
    /// (C67, R0-14.8); its hints are the issues, or the failed checks.
    ///
    /// # Errors
    /// A verdict without its reasons, and goals that are not those of the plan.
    pub fn validation(&self, plan: &TaskPlan) -> Result<Validation, UnusableAnswer> {
        let failed = self.checks.failed();
        let approved = self.decision == Verdict::Approve;
        let unsure = self.confidence.get() < CONFIDENCE_THRESHOLD;
        let decision =
            if approved && (unsure || !failed.is_empty()) { Verdict::Revise } else { self.decision };
        let issues = said(&self.issues);
        let hints = match decision {
            Verdict::Revise => self.hints(&issues, &failed, approved)?,
            _ => Vec::new(),
        };
        let fixes = if decision == Verdict::Retry { said(&self.suggested_fixes) } else { Vec::new() };
        UnusableAnswer::unless(decision != Verdict::Retry || !fixes.is_empty(), || {
            "decision is RETRY and suggested_fixes is empty; say what a new plan should do otherwise".into()
        })?;
        UnusableAnswer::unless(decision != Verdict::Fail || !issues.is_empty(), || {
            "decision is FAIL and issues is empty; say why there can be no answer".into()
        })?;
        Ok(Validation {
            decision,
            confidence: self.confidence,
            checks: self.checks.results().map(|(check, passed)| (check, result(passed))).to_vec(),
            goals: self.goals(plan)?,
            issues,
            revision_hints: hints,
            suggested_fixes: fixes,
            notes: self.notes.trim().to_owned(),
            block: BlockId::new("decision-validation"),
        })
    }

    fn hints(
        &self,
        issues: &[String],
        failed: &[String],
        downgraded: bool,
    ) -> Result<Vec<String>, UnusableAnswer> {
        let given = [said(&self.revision_hints), issues.to_vec(), failed.to_vec()];
        let first = given.into_iter().find(|hints| !hints.is_empty());
        let unsure = || vec!["Keep to what the evidence states, and cite it.".to_owned()];
        first.or_else(|| downgraded.then(unsure)).ok_or_else(|| {
            UnusableAnswer::new("decision is REVISE and revision_hints is empty; say what to write otherwise")
        })
    }

    fn goals(&self, plan: &TaskPlan) -> Result<Vec<GoalVerdict>, UnusableAnswer> {
        let verdict = |goal: &larder_vault::context::Goal| {
            let number = goal.id.0;
            let mut found = self.goals.iter().filter(|check| check.goal == number);
            match (found.next(), found.next()) {
                (Some(check), None) => Ok(GoalVerdict {
                    goal: goal.id,
                    addressed: check.addressed,
                    quality: check.quality,
                    notes: check.notes.trim().to_owned(),
                }),
                _ => Err(UnusableAnswer::new(format!(
                    "goals must hold goal {number} of the plan exactly once"
                ))),
            }
        };
        plan.goals.iter().map(verdict).collect()
    }
}

const fn result(passed: bool) -> CheckResult {
    if passed { CheckResult::Pass } else { CheckResult::Fail }
}
