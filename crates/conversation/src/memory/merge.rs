//! A profile with too many facts, merged by a model (C100). The rule that limits a profile holds before and after it.

use larder_store::{MemoryChange, StoreError};
use serde::Deserialize;

use super::facts::statement;
use super::{Fact, FactScope, PersonMemory, Statement};

/// What a model made of the facts of a profile.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct MergedFacts {
    /// All that is to be kept.
    #[serde(default)]
    pub facts: Vec<MergedFact>,
}

/// A fact that replaces others, or stays as it is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MergedFact {
    /// One of the categories.
    pub category: String,
    /// The statement.
    pub fact: String,
    /// The facts that it was made from.
    pub from: Vec<String>,
}

/// What became of a merged profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// Facts that were written.
    pub written: usize,
    /// Facts that were merged into them.
    pub merged: usize,
    /// Statements without a source, of no category, or made under several consents.
    pub refused: usize,
}

impl PersonMemory<'_> {
    /// What a profile with too many facts is merged from: facts that may cross sessions, the surest first and of those the
    /// newest. Empty if all of them are within the limits.
    ///
    /// # Errors
    /// The store fails.
    pub fn to_merge(&self) -> Result<Vec<Fact>, StoreError> {
        let consents = self.in_force()?;
        let mut facts = self.holding()?;
        facts.reverse();
        let mut keys = std::collections::BTreeSet::new();
        facts.retain(|fact| {
            let is_allowed = consents.iter().any(|held| Some(&held.id) == fact.consent.as_ref());
            is_allowed && keys.insert(statement(&fact.said))
        });
        facts.sort_by(|a, b| b.said.confidence.total_cmp(&a.said.confidence));
        let tokens: usize = facts.iter().map(|fact| self.counter.count(&fact.said.fact)).sum();
        if facts.len() <= self.rules.per_profile && tokens <= self.rules.profile_tokens {
            return Ok(Vec::new());
        }
        facts.truncate(self.rules.per_profile.saturating_mul(2));
        Ok(facts)
    }

    /// Puts what a model made of the facts `given` in their place. A fact that it made of several ends them; one that it
    /// repeats as it is stays; one that it left out stays in its session. `run` is the run that merged them.
    ///
    /// # Errors
    /// The store fails.
    pub fn merge(&self, given: &[Fact], merged: &MergedFacts, run: &str) -> Result<MergeReport, StoreError> {
        let now = self.store.store().now();
        let mut report = MergeReport::default();
        let mut change = MemoryChange { since: self.since, ..MemoryChange::default() };
        let mut used = std::collections::BTreeSet::new();
        let mut kept = std::collections::BTreeSet::new();
        for new in &merged.facts {
            let sources: Vec<&Fact> =
                given.iter().filter(|fact| new.from.contains(&fact.id) && !used.contains(&fact.id)).collect();
            let category =
                self.rules.categories.iter().find(|known| known.name.eq_ignore_ascii_case(&new.category));
            let text = new.fact.split_whitespace().collect::<Vec<_>>().join(" ");
            let newest = sources.iter().max_by_key(|fact| fact.created);
            // What two consents allow would have to go with either of them.
            let one_consent = sources.windows(2).all(|pair| pair[0].consent == pair[1].consent);
            let (Some(newest), Some(category), true) = (newest, category, one_consent && !text.is_empty())
            else {
                report.refused += 1;
                continue;
            };
            used.extend(sources.iter().map(|fact| fact.id.clone()));
            if let [only] = sources.as_slice()
                && only.said.fact == text
            {
                kept.insert(only.id.clone());
                continue;
            }
            let said = Statement {
                category: category.name.clone(),
                fact: text,
                scope: FactScope::Profile,
                confidence: sources.iter().map(|fact| fact.said.confidence).fold(1.0, f64::min),
                supersedes: None,
                merged: sources.iter().map(|fact| fact.id.clone()).collect(),
                preference: sources.iter().any(|fact| fact.said.preference),
                run: Some(run.to_owned()),
                ..newest.said.clone()
            };
            let fact = Fact {
                id: self.talks().new_id("fact")?,
                said,
                valid_until: None,
                created: now,
                ..(*newest).clone()
            };
            change.put.push(fact.write(self));
            for source in sources {
                change.put.push(Fact { valid_until: Some(now), ..source.clone() }.write(self));
                report.merged += 1;
            }
            report.written += 1;
        }
        if report.written + kept.len() == 0 {
            return Ok(report);
        }
        for fact in given.iter().filter(|fact| !used.contains(&fact.id) || kept.contains(&fact.id)) {
            let scope = if kept.contains(&fact.id) { FactScope::Profile } else { FactScope::Session };
            if fact.said.scope != scope {
                change.put.push(
                    Fact { said: Statement { scope, ..fact.said.clone() }, ..fact.clone() }.write(self),
                );
            }
        }
        self.talks().memory().apply(&change)?;
        self.limit_profile()?;
        Ok(report)
    }
}
