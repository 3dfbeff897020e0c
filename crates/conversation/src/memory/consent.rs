//! What persons allow to cross sessions: who, what, since when, and the text that was shown to them.

use larder_store::{
    ERASE_JOB, MemoryChange, MemoryFilter, MemoryKind, MemoryRecord, NewJob, StoreError, Timestamp,
};
use serde::Serialize;
use serde_json::json;

use super::{Fact, FactScope, PersonMemory, text};

/// The scope of a consent that is for facts of every category, messages and summaries.
pub const EVERYTHING: &str = "profile";

/// What a person agrees to, as it is shown and recorded: that everything may cross sessions, or the facts of a category, which
/// is about something.
pub fn consent_text(category: Option<(&str, &str)>) -> String {
    let what = match category {
        None => "what I say and what is noted about me".to_owned(),
        Some((name, about)) => format!("notes about me of the kind \u{201c}{name}\u{201d} ({about})"),
    };
    format!(
        "I agree that {what} may be kept beyond a session and used in my later sessions and conversations under this name, \
         until I revoke this."
    )
}

/// That a person allowed something to cross sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Consent {
    /// Its id.
    pub id: String,
    /// `profile` for everything, or a category of facts.
    pub scope: String,
    /// The text that was shown.
    pub shown: String,
    /// When it was given.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub since: Timestamp,
    /// When it was revoked.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = DateTime))]
    pub revoked: Option<Timestamp>,
}

impl Consent {
    fn read(record: &MemoryRecord) -> Self {
        Self {
            id: record.id.clone(),
            scope: text(record, "scope").to_owned(),
            shown: text(record, "shown").to_owned(),
            since: record.created,
            revoked: record.ended,
        }
    }
}

impl PersonMemory<'_> {
    /// All consents of the person, oldest first, those that were revoked included.
    ///
    /// # Errors
    /// The store fails.
    pub fn consents(&self) -> Result<Vec<Consent>, StoreError> {
        let kind = Some(MemoryKind::Consent);
        Ok(self
            .records(MemoryFilter { kind, ..MemoryFilter::default() })?
            .iter()
            .map(Consent::read)
            .collect())
    }

    /// Those that are in force.
    pub(super) fn in_force(&self) -> Result<Vec<Consent>, StoreError> {
        let mut all = self.consents()?;
        all.retain(|consent| consent.revoked.is_none());
        Ok(all)
    }

    /// The id of the consent by which everything may cross sessions.
    ///
    /// # Errors
    /// The store fails.
    pub fn consent_to_everything(&self) -> Result<Option<String>, StoreError> {
        Ok(consent_for(&self.in_force()?, None))
    }

    /// Records a consent, which holds from now on: also for what is remembered already. One of the same scope that is in
    /// force is returned as it is.
    ///
    /// # Errors
    /// The scope is neither [`EVERYTHING`] nor a category of the type, or the store fails.
    pub fn grant(&self, scope: &str, shown: &str) -> Result<Consent, StoreError> {
        let is_known = scope == EVERYTHING || self.rules.categories.iter().any(|known| known.name == scope);
        if !is_known {
            let name = scope.chars().take(40).collect();
            let reason = "neither `profile` nor a category of facts of this conversation";
            return Err(StoreError::InvalidName { what: "scope of consent", name, reason });
        }
        if let Some(held) = self.in_force()?.into_iter().find(|consent| consent.scope == scope) {
            return Ok(held);
        }
        let id = self.talks().new_id("consent")?;
        let consent = self.record(MemoryKind::Consent, id, &json!({"scope": scope, "shown": shown}));
        let mut facts = self.all_facts()?;
        facts.retain(|fact| fact.consent.is_none() && (scope == EVERYTHING || fact.said.category == scope));
        for fact in &mut facts {
            fact.consent = Some(consent.id.clone());
            if fact.valid_until.is_none() {
                fact.said.scope = FactScope::Profile;
            }
        }
        let mut change = MemoryChange::default();
        change.put.push(consent.clone());
        change.put.extend(facts.iter().map(|fact| fact.write(self)));
        self.talks().memory().apply(&change)?;
        self.limit_profile()?;
        // As it is stored, with the moment of that.
        let held = self.in_force()?.into_iter().find(|held| held.id == consent.id);
        Ok(held.unwrap_or_else(|| Consent::read(&consent)))
    }

    /// Revokes a consent: nothing crosses by it from now on, and a job erases what was made under it. Returns `None` if
    /// the person has none of this id.
    ///
    /// # Errors
    /// The store fails.
    pub fn revoke(&self, id: &str) -> Result<Option<Consent>, StoreError> {
        let filter =
            MemoryFilter { kind: Some(MemoryKind::Consent), id: Some(id), ..MemoryFilter::default() };
        let Some(mut record) = self.records(filter)?.pop() else { return Ok(None) };
        if record.ended.is_none() {
            record.ended = Some(self.store.store().now());
            let erase = NewJob {
                kind: ERASE_JOB,
                key: format!("{ERASE_JOB} {id}"),
                session: None,
                payload: json!({ "consent": id }),
                after: 0,
            };
            let change =
                MemoryChange { put: vec![record.clone()], jobs: vec![erase], ..MemoryChange::default() };
            self.talks().memory().apply(&change)?;
        }
        Ok(Some(Consent::read(&record)))
    }

    /// Whether a fact may be seen from a session, and the consent if it comes from another.
    pub(super) fn right<'f>(
        &self,
        consents: &[Consent],
        fact: &'f Fact,
        session: u64,
    ) -> Option<Option<&'f str>> {
        if fact.session == session && fact.conversation == self.track.conversation {
            return Some(None);
        }
        let consent = fact.consent.as_deref()?;
        consents.iter().any(|held| held.id == consent).then_some(Some(consent))
    }
}

/// The consent by which facts of a category cross sessions; without a category, that by which everything does.
pub(super) fn consent_for(in_force: &[Consent], category: Option<&str>) -> Option<String> {
    let allows = |consent: &&Consent| consent.scope == EVERYTHING || Some(consent.scope.as_str()) == category;
    in_force.iter().find(allows).map(|consent| consent.id.clone())
}
