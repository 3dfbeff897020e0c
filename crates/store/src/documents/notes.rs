//! Notes generated from other documents: wrappers inside a turn (R1-9.21, C80), index notes (R1-9.22, R1-9.23) and
//! the overviews of research (C77). None of them is in the index, so it never depends on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use larder_vault::layout::{TurnPlace, wrapper};
use larder_vault::links::DualLink;
use larder_vault::{
    Document, DocumentTime, FactRecords, IndexEntry, IndexNote, Meta, Note, PreferenceRecords, Scope, Tag,
    TopicEntry, VaultPath, Wrapper, read_json, turn_name, write_json,
};
use serde::Serialize;

use super::UserDocuments;
use super::index::{
    PathKind, Rows, Subject, Wanted, memory_documents, recent_turns, research, topics, turn_user,
};
use super::types::{ResearchRow, TurnRow};
use larder_disk::StoreError;
use larder_text::words::counted;

/// Documents under `## Recent`.
const RECENT: u64 = 20;
/// Topics under `## By Topic`, those with the newest documents first: the note of a turn must not grow with all turns.
const TOPICS: u64 = 200;
/// Maximum research entries in the overview of one topic, newest first.
const IN_VIEW: u64 = 100;

/// `research_cache/{topic}.json`.
#[derive(Serialize)]
struct ResearchIndexFile<'a> {
    topic: &'a str,
    research: Vec<ResearchRow>,
}

/// The readable note next to a file of a turn that is not Markdown, and its path in the turn's folder.
pub(super) fn wrapper_of(
    place: &TurnPlace,
    user: &str,
    created_at: DocumentTime,
    path: &str,
    bytes: &[u8],
) -> Option<(String, Vec<u8>)> {
    let is_json = path.ends_with(".json");
    if !is_json && !path.ends_with(".png") {
        return None;
    }
    let file = VaultPath::new(&format!("{}/{path}", place.folder()))?;
    let content =
        if is_json { serde_json::from_slice(bytes).unwrap_or_default() } else { serde_json::Value::Null };
    let note = Wrapper::new(&file, &place.context(), &content);
    let kind = path.replace(['/', '.'], "_");
    let tag = if path == "metrics.json" { &[Tag::Metrics][..] } else { &[] };
    let meta = Meta::for_turn(place.number(), &kind, user, created_at).holding(&[], tag);
    let at = wrapper(&file);
    let text = Document::new(meta, note).write(&at);
    Some((format!("{path}.md"), text.into_bytes()))
}

/// Whether the index of the memory shows a document.
pub(super) fn shows_memory(path: &VaultPath) -> bool {
    PathKind::parse(path)
        .is_some_and(|spot| spot.turn.is_none() && spot.kind() == Some(super::types::DocumentKind::Memory))
}

/// Whether a document is what one user's visits showed about a site.
pub(super) fn is_site(path: &VaultPath) -> bool {
    PathKind::parse(path)
        .is_some_and(|spot| spot.rest.starts_with("site_knowledge/") && spot.rest.ends_with(".json"))
}

/// Writes the notes of one user that are generated from the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notes<'d> {
    pub(super) docs: &'d UserDocuments,
}

impl Notes<'_> {
    /// Writes the notes that show these documents, or showed them before.
    pub(super) fn write_for(&self, rows: &[Rows]) -> Result<(), StoreError> {
        let topics: BTreeSet<&str> = rows.iter().filter_map(Rows::research_topic).collect();
        if rows.iter().any(Rows::is_turn) {
            self.write_turns_index()?;
        }
        if !topics.is_empty() {
            self.write_research(topics.into_iter())?;
        }
        Ok(())
    }

    /// Writes all notes.
    pub(super) fn write_all(&self) -> Result<(), StoreError> {
        let all = self.docs.index().read(|tx| topics(tx, Subject::Research, u64::MAX))?;
        self.write_turns_index()?;
        if !all.is_empty() {
            self.write_research(all.iter().map(|(topic, ..)| topic.as_str()))?;
        }
        self.write_memory_index()?;
        self.write_archive_indexes()
    }

    /// Writes the readable note next to a record outside turns (R1-9.21).
    pub(super) fn write_wrapper(
        &self,
        file: &VaultPath,
        bytes: &[u8],
        created_at: Option<DocumentTime>,
    ) -> Result<(), StoreError> {
        let below = file.as_str().splitn(3, '/').last().unwrap_or_default();
        let meta =
            self.meta(&below.replace(['/', '.'], "_"), created_at.unwrap_or_else(|| self.docs.now()))?;
        let note = Wrapper::of_record(file, &serde_json::from_slice(bytes).unwrap_or_default());
        let at = wrapper(file);
        let standing = self.docs.tree().read(&at)?.and_then(|bytes| String::from_utf8(bytes).ok());
        // The time of the first version stays.
        let meta =
            standing.and_then(|text| Meta::read(&Note::parse(&text).frontmatter).value).unwrap_or(meta);
        self.docs.tree().write(&at, Document::new(meta, note).write(&at).as_bytes())
    }

    /// Writes the index of every month of this user's archive.
    fn write_archive_indexes(&self) -> Result<(), StoreError> {
        let mut months: BTreeMap<String, Vec<TurnRow>> = BTreeMap::new();
        for turn in self.docs.index().read(|tx| recent_turns(tx, u64::MAX, None, None))? {
            let month =
                turn.context.as_str().strip_prefix("archive/").and_then(|rest| rest.split('/').next());
            if let Some(month) = month.map(str::to_owned) {
                months.entry(month).or_default().push(turn);
            }
        }
        for (month, turns) in months {
            let mut by_topic: BTreeMap<&str, (u64, u32)> = BTreeMap::new();
            for (topic, number) in turns.iter().filter_map(|turn| Some((turn.topic.as_deref()?, turn.number)))
            {
                let (count, newest) = by_topic.entry(topic).or_default();
                (*count, *newest) = (*count + 1, number.max(*newest));
            }
            let topics =
                by_topic.into_iter().map(|(topic, (count, newest))| (topic.to_owned(), count, newest));
            let note = IndexNote {
                title: format!("Archive of {month}"),
                recent: turns.iter().map(turn_entry).collect(),
                topics: topic_entries(&topics.collect::<Vec<_>>(), "turn"),
            };
            let Some(newest) = turns.first() else { continue };
            let id = format!("archive_{}_index", month.replace('-', "_"));
            self.write_index(&self.docs.place.archive_index(&month), &id, newest.created_at, &note)?;
        }
        Ok(())
    }

    fn write_turns_index(&self) -> Result<(), StoreError> {
        let _newest_last = self.docs.handles.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let (turns, by_topic) = self
            .docs
            .index()
            .read(|tx| Ok((recent_turns(tx, RECENT, None, None)?, topics(tx, Subject::Turns, TOPICS)?)))?;
        let Some(newest) = turns.first() else { return Ok(()) };
        let note = IndexNote {
            title: "Turns".to_owned(),
            recent: turns.iter().map(turn_entry).collect(),
            topics: topic_entries(&by_topic, "turn"),
        };
        self.write_index(&self.docs.place.turns_index(), "turns_index", newest.created_at, &note)
    }

    pub(super) fn write_research<'a>(
        &self,
        changed: impl Iterator<Item = &'a str>,
    ) -> Result<(), StoreError> {
        let _newest_last = self.docs.handles.notes.lock().unwrap_or_else(PoisonError::into_inner);
        for topic in changed.filter(|topic| !topic.is_empty()) {
            let rows = self.docs.index().read(|tx| research(tx, Wanted::Just(topic), IN_VIEW))?;
            let rows = self.docs.catalog().with_uses(rows)?;
            let path = self.docs.place.research(topic);
            if rows.is_empty() {
                self.docs.tree().remove(&path)?;
                self.docs.tree().remove(&wrapper(&path))?;
            } else {
                let at = rows.iter().map(|row| row.created_at).min();
                let view = write_json(&ResearchIndexFile { topic, research: rows });
                self.docs.tree().write(&path, view.as_bytes())?;
                self.write_wrapper(&path, view.as_bytes(), at)?;
            }
        }
        let (rows, by_topic) = self
            .docs
            .index()
            .read(|tx| Ok((research(tx, Wanted::All, RECENT)?, topics(tx, Subject::Research, TOPICS)?)))?;
        let Some(newest) = rows.first() else { return Ok(()) };
        let recent = rows.iter().map(|row| IndexEntry {
            link: DualLink::new(row.document.clone(), &row.id),
            note: row.title.clone(),
        });
        let note = IndexNote {
            title: "Research".to_owned(),
            recent: recent.collect(),
            topics: topic_entries(&by_topic, "piece"),
        };
        self.write_index(&self.docs.place.research_index(), "research_index", newest.created_at, &note)
    }

    pub(super) fn write_memory_index(&self) -> Result<(), StoreError> {
        let _newest_last = self.docs.handles.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let documents = self.docs.index().read(memory_documents)?;
        if documents.is_empty() {
            return Ok(());
        }
        let newest = self.docs.index().read(|tx| recent_turns(tx, 1, None, None))?;
        let at = newest.first().map_or_else(|| self.docs.now(), |turn| turn.created_at);
        let mut topics = Vec::new();
        for document in documents.iter().filter(|document| document.name().ends_with(".json")) {
            let Some(bytes) = self.docs.tree().read(document)? else { continue };
            self.write_wrapper(document, &bytes, Some(at))?;
            topics.extend(memory_topics(&bytes));
        }
        let recent = documents.into_iter().map(|document| {
            let note = if document.name().ends_with(".json") { "records" } else { "as it is shown" };
            IndexEntry { link: DualLink::new(document.clone(), document.name()), note: note.to_owned() }
        });
        let note = IndexNote { title: "Memory".to_owned(), recent: recent.collect(), topics };
        self.write_index(&self.docs.place.memory_index(), "memory_index", at, &note)
    }

    /// Writes an index note and preserves what people added to it.
    fn write_index(
        &self,
        at: &VaultPath,
        id: &str,
        created_at: DocumentTime,
        note: &IndexNote,
    ) -> Result<(), StoreError> {
        let standing = self.docs.tree().read(at)?.map(String::from_utf8);
        let text = match &standing {
            Some(Ok(text)) => note.update(text, at),
            // Not text: it was not edited by hand.
            Some(Err(_)) | None => Document::new(self.meta(id, created_at)?, note.clone()).write(at),
        };
        if matches!(&standing, Some(Ok(old)) if *old == text) {
            return Ok(());
        }
        self.docs.tree().write(at, text.as_bytes())
    }

    fn meta(&self, id: &str, created_at: DocumentTime) -> Result<Meta, StoreError> {
        let user = self.docs.index().read(turn_user)?.unwrap_or_else(|| self.docs.user().to_owned());
        Ok(Meta {
            id: id.to_owned(),
            turn_number: None,
            session_id: user,
            topic: None,
            intent: None,
            content_types: Vec::new(),
            scope: Scope::User,
            quality: None,
            created_at,
            tags: Vec::new(),
        })
    }
}

fn turn_entry(turn: &TurnRow) -> IndexEntry {
    IndexEntry {
        link: DualLink::new(turn.context.clone(), &turn_name(turn.number)),
        note: turn.summary.as_ref().unwrap_or(&turn.query).clone(),
    }
}

/// The topics of records of memory: the categories of facts, and the preferences.
fn memory_topics(bytes: &[u8]) -> Vec<TopicEntry> {
    let Ok(text) = str::from_utf8(bytes) else { return Vec::new() };
    let facts = read_json::<FactRecords>(text).value.unwrap_or_default().facts;
    let preferences = read_json::<PreferenceRecords>(text).value.unwrap_or_default().preferences;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for fact in facts {
        *counts.entry(TopicEntry::new(&fact.category, "").topic).or_default() += 1;
    }
    let facts = counts.iter().map(|(category, count)| TopicEntry::new(category, &counted(*count, "fact")));
    let many = preferences.len() as u64;
    let preferences = (many > 0).then(|| TopicEntry::new("preferences", &counted(many, "preference")));
    facts.chain(preferences).collect()
}

/// Topics with the same tag share a line.
fn topic_entries(topics: &[(String, u64, u32)], what: &str) -> Vec<TopicEntry> {
    let mut seen = BTreeSet::new();
    let entries = topics.iter().map(|(topic, count, newest)| {
        TopicEntry::new(topic, &format!("{}, the newest in {}", counted(*count, what), turn_name(*newest)))
    });
    entries.filter(|entry| seen.insert(entry.topic.clone())).collect()
}
