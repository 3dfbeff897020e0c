//! One kind of memory on disk: the records and their rendering, read together and written together.
//!
//! The rendering is written before the records: after a crash in between, the new line is treated as added by a
//! person, and nothing is lost. A line that people removed from the rendering removes its record.

use larder_store::UserDocuments;
use larder_text::hash::ContentHash;
use larder_vault::{
    BlockId, Document, DocumentTime, DocumentValue, FactLine, FactRecord, FactRecords, Facts, Meta,
    PreferenceLine, PreferenceRecord, PreferenceRecords, Preferences, Scope, Score, Ttl, VaultPath,
    read_json, rewrite_json, safe_name, write_json,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::spec::ToolError;

/// The confidence in a statement that a person added by hand.
const WRITTEN_BY_HAND: f64 = 1.0;

/// A file as it was read.
struct MemoryFile {
    path: VaultPath,
    text: Option<String>,
}

impl MemoryFile {
    fn of(documents: &UserDocuments, path: VaultPath) -> Result<Self, ToolError> {
        let text = documents.files().read_text(&path)?;
        Ok(Self { path, text })
    }

    fn seen(&self) -> Option<ContentHash> {
        self.text.as_ref().map(|text| ContentHash::new(text.as_bytes()))
    }

    fn write(&self, documents: &UserDocuments, text: &str) -> Result<(), ToolError> {
        if self.text.as_deref() == Some(text) {
            return Ok(());
        }
        Ok(documents.files().write(&self.path, text.as_bytes(), self.seen())?)
    }

    fn unreadable(&self, problem: impl std::fmt::Display) -> ToolError {
        ToolError::Failed(format!("{} cannot be read, so nothing was changed: {problem}", self.path))
    }

    /// The records of a JSON document; empty if the document does not exist.
    fn records<T: DeserializeOwned + Default>(&self) -> Result<T, ToolError> {
        let Some(text) = &self.text else { return Ok(T::default()) };
        let reading = read_json::<T>(text);
        let problem = reading.problems.first().map(ToString::to_string).unwrap_or_default();
        reading.value.ok_or_else(|| self.unreadable(problem))
    }

    fn rewritten<T: Serialize>(&self, records: &T) -> Result<String, ToolError> {
        match &self.text {
            None => Ok(write_json(records)),
            Some(text) => rewrite_json(text, records).map_err(|problem| self.unreadable(problem)),
        }
    }

    /// The rendering with its lines updated; a new one has frontmatter.
    fn rendered<T: DocumentValue>(
        &self,
        user: &str,
        now: DocumentTime,
        value: T,
        update: impl Fn(&T, &str, &VaultPath) -> String,
    ) -> String {
        match &self.text {
            Some(text) => update(&value, text, &self.path),
            None => {
                let stem = self.path.name().trim_end_matches(".md");
                Document::new(meta(user, stem, now), value).write(&self.path)
            }
        }
    }
}

fn meta(user: &str, stem: &str, now: DocumentTime) -> Meta {
    Meta {
        id: format!("{}_{stem}", safe_name(user)),
        turn_number: None,
        session_id: user.to_owned(),
        topic: None,
        intent: None,
        content_types: Vec::new(),
        scope: Scope::User,
        quality: None,
        created_at: now,
        tags: Vec::new(),
    }
}

/// `memory/facts.json`: the records, and the number of the last id assigned. Links may refer to the block of a
/// deleted fact, so its id is not reused (R4-4.8).
#[derive(Default, Serialize, Deserialize)]
struct StoredFacts {
    #[serde(flatten)]
    records: FactRecords,
    #[serde(default)]
    last: usize,
}

/// The number of `fact-007`.
fn number(id: &BlockId) -> Option<usize> {
    id.as_str().strip_prefix("fact-")?.parse().ok()
}

/// The facts of one user.
pub(super) struct FactBook {
    records: MemoryFile,
    rendering: MemoryFile,
    /// The highest number ever assigned to a fact.
    last: usize,
    /// The facts, with edits by people applied.
    pub(super) facts: Vec<FactRecord>,
}

impl FactBook {
    pub(super) fn open(documents: &UserDocuments, now: DocumentTime) -> Result<Self, ToolError> {
        let records = MemoryFile::of(documents, documents.place().memory("facts"))?;
        let rendering = MemoryFile::of(documents, documents.place().facts())?;
        let StoredFacts { records: FactRecords { mut facts }, last } = records.records()?;
        let last = facts.iter().filter_map(|fact| number(&fact.id)).chain([last]).max().unwrap_or_default();
        if let Some(text) = &rendering.text {
            let lines = Document::<Facts>::read(text, &rendering.path).value.map(|document| document.value.0);
            let lines = lines.unwrap_or_default();
            facts.retain(|fact| lines.iter().any(|line| line.id.as_ref() == Some(&fact.id)));
            for line in lines {
                // Lines that people wrote without a name are never changed.
                let Some(id) = line.id.clone() else { continue };
                match facts.iter_mut().find(|fact| fact.id == id) {
                    Some(fact) if fact.fact != line.fact => {
                        fact.fact = line.fact;
                        fact.updated_at = now;
                    }
                    Some(_) => {}
                    None => facts.push(of_line(line, id, now)),
                }
            }
        }
        Ok(Self { records, rendering, last, facts })
    }

    /// An id that no fact has ever had, including people's edits.
    pub(super) fn next_id(&mut self) -> BlockId {
        let highest = self.facts.iter().filter_map(|fact| number(&fact.id)).max().unwrap_or_default();
        self.last = highest.max(self.last).saturating_add(1);
        BlockId::numbered("fact", self.last)
    }

    pub(super) fn write(&self, documents: &UserDocuments, now: DocumentTime) -> Result<(), ToolError> {
        let lines = Facts(self.facts.iter().map(FactLine::from).collect());
        let stored = StoredFacts { records: FactRecords { facts: self.facts.clone() }, last: self.last };
        let records = self.records.rewritten(&stored)?;
        let rendering = self.rendering.rendered(documents.user(), now, lines, Facts::update);
        self.rendering.write(documents, &rendering)?;
        self.records.write(documents, &records)
    }
}

fn of_line(line: FactLine, id: BlockId, now: DocumentTime) -> FactRecord {
    FactRecord {
        id,
        category: line.category,
        fact: line.fact,
        source: line.source.map(|source| source.file),
        scope: line.scope,
        confidence: line.confidence.or_else(|| Score::new(WRITTEN_BY_HAND)).unwrap_or_default(),
        uses: 0,
        ttl: Ttl::Evergreen,
        created_at: now,
        updated_at: now,
    }
}

/// The preferences of one user.
pub(super) struct PreferenceBook {
    records: MemoryFile,
    rendering: MemoryFile,
    /// The preferences, with edits by people applied.
    pub(super) preferences: Vec<PreferenceRecord>,
}

impl PreferenceBook {
    pub(super) fn open(documents: &UserDocuments, now: DocumentTime) -> Result<Self, ToolError> {
        let records = MemoryFile::of(documents, documents.place().memory("preferences"))?;
        let rendering = MemoryFile::of(documents, documents.place().preferences())?;
        let PreferenceRecords { mut preferences } = records.records()?;
        if let Some(text) = &rendering.text {
            let lines = Document::<Preferences>::read(text, &rendering.path).value;
            let lines = lines.map(|document| document.value.0).unwrap_or_default();
            preferences.retain(|known| lines.iter().any(|line| line.name == known.id));
            for line in lines {
                match preferences.iter_mut().find(|known| known.id == line.name) {
                    Some(known) if known.value != line.value => {
                        known.value = line.value;
                        known.updated_at = now;
                    }
                    Some(_) => {}
                    None => preferences.push(PreferenceRecord {
                        id: line.name,
                        value: line.value,
                        source: line.source.map(|source| source.file),
                        updated_at: now,
                    }),
                }
            }
        }
        Ok(Self { records, rendering, preferences })
    }

    pub(super) fn write(&self, documents: &UserDocuments, now: DocumentTime) -> Result<(), ToolError> {
        let lines = Preferences(self.preferences.iter().map(PreferenceLine::from).collect());
        let records = self.records.rewritten(&PreferenceRecords { preferences: self.preferences.clone() })?;
        let rendering = self.rendering.rendered(documents.user(), now, lines, Preferences::update);
        self.rendering.write(documents, &rendering)?;
        self.records.write(documents, &records)
    }
}
