//! Notes generated from other documents: wrappers inside a turn (R1-9.21, C80), index notes (R1-9.22, R1-9.23) and
//! the overviews of research (C77). None of them is in the index, so it never depends on them.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use larder_vault::layout::{TurnPlace, wrapper};
use larder_vault::links::DualLink;
use larder_vault::{
    Document, DocumentTime, IndexEntry, IndexNote, Meta, Scope, Tag, TopicEntry, VaultPath, Wrapper,
    turn_name, write_json,
};
use serde::Serialize;

use super::UserDocuments;
use super::index::{
    PathKind, Rows, Subject, Wanted, memory_documents, recent_turns, research, topics, turn_user,
};
use super::types::ResearchRow;
use crate::error::StoreError;

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
    let kind = path.rsplit_once('.').map_or(path, |(stem, _)| stem).replace('/', "_");
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
        self.write_memory_index()
    }

    fn write_turns_index(&self) -> Result<(), StoreError> {
        let _newest_last = self.docs.handles.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let (turns, by_topic) = self
            .docs
            .index()
            .read(|tx| Ok((recent_turns(tx, RECENT, None)?, topics(tx, Subject::Turns, TOPICS)?)))?;
        let Some(newest) = turns.first() else { return Ok(()) };
        let recent = turns.iter().map(|turn| IndexEntry {
            link: DualLink::new(turn.context.clone(), &turn_name(turn.number)),
            note: turn.summary.as_ref().unwrap_or(&turn.query).clone(),
        });
        let note = IndexNote {
            title: "Turns".to_owned(),
            recent: recent.collect(),
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
            } else {
                let view = write_json(&ResearchIndexFile { topic, research: rows });
                self.docs.tree().write(&path, view.as_bytes())?;
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
        let recent = documents.into_iter().map(|document| {
            let note = if document.name().ends_with(".json") { "records" } else { "as it is shown" };
            IndexEntry { link: DualLink::new(document.clone(), document.name()), note: note.to_owned() }
        });
        let note = IndexNote { title: "Memory".to_owned(), recent: recent.collect(), topics: Vec::new() };
        let newest = self.docs.index().read(|tx| recent_turns(tx, 1, None))?;
        let at = match newest.first() {
            Some(turn) => turn.created_at,
            None => self.docs.now(),
        };
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

/// Topics with the same tag share a line.
fn topic_entries(topics: &[(String, u64, u32)], what: &str) -> Vec<TopicEntry> {
    let mut seen = BTreeSet::new();
    let entries = topics.iter().map(|(topic, count, newest)| {
        let many = if *count == 1 { "" } else { "s" };
        TopicEntry::new(topic, &format!("{count} {what}{many}, the newest in {}", turn_name(*newest)))
    });
    entries.filter(|entry| seen.insert(entry.topic.clone())).collect()
}
