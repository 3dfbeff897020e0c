//! Where a participant stands: the stage, how many turns there were, what the last replies said of them. Pure; the store
//! keeps it as JSON with the track.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budgets::SessionBudgets;
use crate::calls::Breakers;
use crate::kind::{Aside, Condition, ConversationType, FieldIs, FieldRules, Stage};
use crate::sharing::SharePreview;

/// Intensities that are kept: the most that a type may compare with, and the newest.
const KEPT_INTENSITIES: usize = 21;

/// Where a participant stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ParticipantState {
    /// The stage of the main line; `None` before the first turn.
    pub stage: Option<String>,
    /// The aside in which the current session is held.
    pub aside: Option<String>,
    /// Turns of the track.
    pub turns: u64,
    /// Turns since the stage began.
    pub stage_turns: u64,
    /// The stage before, in the first turn of a new one (R4-2.12).
    pub came_from: Option<String>,
    /// Whether something was shared since the last turn (R4-2.13).
    pub just_shared: bool,
    /// Intensities of the last replies, oldest first (R4-6.3).
    pub intensities: Vec<u8>,
    /// For each field of the replies: its last value, and in how many replies in a row it was that.
    pub fields: BTreeMap<String, (String, u32)>,
    /// The stages of the main line that were reached.
    pub reached: Vec<String>,
    /// What was done explicitly in the stage, by its name.
    pub done: Vec<String>,
    /// What was ever done explicitly, counted.
    pub acts: u64,
    /// What was reached, oldest first (R4-6.9).
    pub milestones: Vec<Milestone>,
    /// What the last reply's background found that its message refers to, for the next turn (C98).
    pub references: Vec<String>,
    /// Which guarded calls failed (C66).
    pub breakers: Breakers,
    /// What became of what the participant asked to be remembered, until the next reply says so.
    pub notices: Vec<String>,
    /// The learned budgets of the session.
    pub budgets: SessionBudgets,
    /// What is ready to be shared or released, once the participant confirms it.
    pub preview: Option<SharePreview>,
}

/// Something that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Milestone {
    /// Its name in the type.
    pub name: String,
    /// In words.
    pub text: String,
    /// The turn in which it was reached.
    pub turn: u64,
}

/// What happened in a turn that conditions may ask for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Happened<'a> {
    /// What the participant did explicitly, by its name.
    pub action: Option<&'a str>,
    /// The stages that each of the other participants has reached.
    pub others: &'a [Vec<String>],
}

impl ParticipantState {
    /// The stage in which the next reply is written.
    pub fn stage<'k>(&self, kind: &'k ConversationType) -> Option<&'k Stage> {
        let named = self.aside.as_deref().or(self.stage.as_deref());
        named.and_then(|name| kind.stage(name)).or_else(|| kind.stages.first())
    }

    /// The last intensity.
    pub fn intensity(&self) -> Option<u8> {
        self.intensities.last().copied()
    }

    /// How the last intensity compares with the mean of those before: `rising`, `falling` or `stable` (R4-6.3).
    pub fn trend(&self, rules: &FieldRules) -> &'static str {
        let Some((last, before)) = self.intensities.split_last() else { return "stable" };
        let before = &before[before.len().saturating_sub(rules.trend_turns)..];
        if before.is_empty() {
            return "stable";
        }
        let mean = before.iter().map(|&value| f64::from(value)).sum::<f64>() / before.len() as f64;
        let (change, least) = (f64::from(*last) - mean, f64::from(rules.trend_from));
        if change >= least {
            "rising"
        } else if change <= -least {
            "falling"
        } else {
            "stable"
        }
    }

    /// Takes in what a reply said of the participant: the fields of its hidden tag, and the intensity among them.
    pub fn heard(&mut self, fields: &BTreeMap<String, String>, intensity: Option<u8>) {
        for (name, value) in fields {
            let entry = self.fields.entry(name.clone()).or_default();
            if entry.0.eq_ignore_ascii_case(value) {
                entry.1 = entry.1.saturating_add(1);
            } else {
                *entry = (value.clone(), 1);
            }
        }
        // A field that is absent ends its row.
        self.fields.retain(|name, _| fields.contains_key(name));
        self.intensities.extend(intensity);
        let over = self.intensities.len().saturating_sub(KEPT_INTENSITIES);
        self.intensities.drain(..over);
    }

    /// Counts a turn, notes what was reached, and moves to another stage where a rule holds: the first that does.
    pub fn advance(&mut self, kind: &ConversationType, happened: Happened<'_>) {
        self.turns = self.turns.saturating_add(1);
        self.stage_turns = self.stage_turns.saturating_add(1);
        (self.came_from, self.just_shared) = (None, false);
        self.act(kind, happened);
    }

    /// Notes what was reached, and moves to another stage where a rule holds, without a turn.
    pub fn act(&mut self, kind: &ConversationType, happened: Happened<'_>) {
        self.acts += u64::from(happened.action.is_some());
        let stage = self.stage(kind).filter(|stage| stage.aside == Aside::No);
        let action = happened.action.filter(|action| self.done.iter().all(|done| done != action));
        self.done.extend(action.filter(|_| stage.is_some()).map(str::to_owned));
        self.note(kind, happened);
        let Some(stage) = stage else { return };
        self.stage = Some(stage.name.clone());
        self.reach(&stage.name);
        if let Some(rule) = stage.next.iter().find(|rule| self.holds(kind, &rule.when, happened)) {
            self.enter(kind, &rule.to, happened);
        }
    }

    /// Moves on where a rule waited for the others, who have come so far since. Whoever has just come to a stage stays for a
    /// turn or an act.
    pub fn catch_up(&mut self, kind: &ConversationType, others: &[Vec<String>]) {
        if others.is_empty() || (self.stage_turns == 0 && self.done.is_empty()) {
            return;
        }
        let happened = Happened { action: None, others };
        let Some(stage) = self.stage(kind).filter(|stage| stage.aside == Aside::No) else { return };
        let mut waiting = stage.next.iter().filter(|rule| rule.when.others_at.is_some());
        if let Some(rule) = waiting.find(|rule| self.holds(kind, &rule.when, happened)) {
            self.enter(kind, &rule.to, happened);
        }
    }

    /// Moves to another stage of the main line.
    fn enter(&mut self, kind: &ConversationType, to: &str, happened: Happened<'_>) {
        if self.stage.as_deref() == Some(to) {
            return;
        }
        (self.came_from, self.stage_turns) = (self.stage.replace(to.to_owned()), 0);
        self.done.clear();
        self.reach(to);
        self.note(kind, happened);
    }

    fn reach(&mut self, stage: &str) {
        if self.reached.iter().all(|reached| reached != stage) {
            self.reached.push(stage.to_owned());
        }
    }

    fn note(&mut self, kind: &ConversationType, happened: Happened<'_>) {
        for milestone in &kind.milestones {
            let is_new = self.milestones.iter().all(|reached| reached.name != milestone.name);
            if is_new && self.holds(kind, &milestone.when, happened) {
                let (name, text) = (milestone.name.clone(), milestone.text.clone());
                self.milestones.push(Milestone { name, text, turn: self.turns });
            }
        }
    }

    fn holds(&self, kind: &ConversationType, when: &Condition, happened: Happened<'_>) -> bool {
        let field = |FieldIs { name, value, times }: &FieldIs| {
            self.fields.get(name).is_some_and(|(last, row)| last.eq_ignore_ascii_case(value) && row >= times)
        };
        let reached =
            |wanted: &str| happened.others.iter().all(|other| other.iter().any(|one| one == wanted));
        let done =
            |wanted: &str| happened.action == Some(wanted) || self.done.iter().any(|action| action == wanted);
        let conditions = [
            when.stage.as_deref().map(|wanted| self.stage(kind).is_some_and(|stage| stage.name == wanted)),
            when.field.as_ref().map(field),
            when.intensity_at_most.map(|most| self.intensity().is_some_and(|last| last <= most)),
            when.action.as_deref().map(done),
            when.turns.map(|turns| self.stage_turns >= turns),
            when.others_at.as_deref().map(reached),
        ];
        let mut given = conditions.into_iter().flatten().peekable();
        given.peek().is_some() && given.all(|holds| holds)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
