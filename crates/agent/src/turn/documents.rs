//! Writing the documents of a turn: `context.md` grows by the writers of the core alone, the other files stand beside
//! it. A section that outgrows its budget gets a compaction (C7, R0-25.1); its own text stays in the file.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use larder_condense::sections::{SectionId, Sections};
use larder_condense::{CondenseRequest, Condensed, ContentType};
use larder_text::pointer::Pointer;
use larder_vault::context::{self, SectionValue};
use larder_vault::links::DualLink;
use larder_vault::{Document, DocumentValue, Meta, Tag, VaultPath};
use serde::Serialize;

use super::error::Stop;
use super::event::TurnEvent;
use super::machine::Machine;

/// Tokens that heading, name and end of a compaction take beside its text, tried in this order.
const FRAMES: [usize; 4] = [48, 96, 160, 240];

/// A text that was condensed by rule, and how long that took.
pub(super) struct Shorter {
    pub(super) made: Condensed,
    took: Duration,
}

impl Machine<'_> {
    /// Adds a version of a section.
    pub(super) fn append<T: SectionValue>(&mut self, value: &T) -> Result<(), Stop> {
        self.context += &context::append(&self.context, value, &self.at());
        // §4 is held to its budget while it is written (R0-26.1), §0 never shrinks (C30).
        if !matches!(T::ID, SectionId::UserQuery | SectionId::ToolExecution) {
            self.settle(T::ID)?;
        }
        Ok(())
    }

    /// Adds to the last section, which must be `id`.
    pub(super) fn extend(&mut self, id: SectionId, body: &str) -> Result<(), Stop> {
        let added = larder_vault::extend_section(&self.context, id, body);
        // The order of the phases makes it the last one.
        self.context += &added.map_err(|error| Stop::Fail(error.to_string()))?;
        Ok(())
    }

    /// How often a section stands in the document.
    pub(super) fn versions(&self, id: SectionId) -> usize {
        Sections::parse(&self.context).attempts(id).count()
    }

    /// Tokens of a section as prompts see it.
    pub(super) fn tokens_of(&self, id: SectionId) -> usize {
        self.counter.count(&shown(&self.context, id))
    }

    /// Compacts the last section by rule if it is over its budget.
    pub(super) fn settle(&mut self, id: SectionId) -> Result<(), Stop> {
        let budget = id.token_budget();
        if self.counter.count_up_to(&shown(&self.context, id), budget).is_some() {
            return Ok(());
        }
        self.compact(id, budget, None)
    }

    /// Appends a compaction that stands for the last section, which is `id`, in at most `target` tokens: `text`, or
    /// what the condenser makes of it.
    pub(super) fn compact(&mut self, id: SectionId, target: usize, text: Option<String>) -> Result<(), Stop> {
        let before = shown(&self.context, id);
        let from = self.counter.count(&before);
        let original =
            self.keep(before.as_bytes(), "section", &format!("§{} of {}", id.number(), self.at()))?;
        let by_rule = FRAMES
            .iter()
            .filter_map(|frame| self.condensed(&before, ContentType::Markdown, target.checked_sub(*frame)?));
        let by_rule = by_rule.map(|shorter| (shorter.made.text.clone(), Some(shorter)));
        let made = text.map(|text| (text, None)).into_iter().chain(by_rule);
        let mut added = made.filter_map(|(text, by)| Some((self.compaction(id, &original, &text)?, by)));
        let fits = |(added, _): &(String, Option<Shorter>)| {
            self.counter.count_up_to(&shown(&(self.context.clone() + added), id), target).is_some()
        };
        let added = match added.find(fits) {
            Some((added, by)) => {
                by.iter().for_each(|shorter| self.stands(shorter));
                added
            }
            None => self.compaction(id, &original, "Left out for want of room.").unwrap_or_default(),
        };
        self.context += &added;
        self.tell(&TurnEvent::Compacted { section: id.number(), from, to: self.tokens_of(id) });
        Ok(())
    }

    fn compaction(&self, id: SectionId, original: &Pointer, text: &str) -> Option<String> {
        larder_vault::append_compaction(&self.context, id, &original.to_string(), text).ok()
    }

    /// `text` in at most `target` tokens; links that were cut stand in a fence, where they lead nowhere.
    pub(super) fn condensed(&self, text: &str, content_type: ContentType, target: usize) -> Option<Shorter> {
        let mut shorter = self.condensed_plainly(text, content_type, target)?;
        let targets = |text: &str| -> BTreeSet<String> {
            larder_vault::links::links(text).into_iter().map(|link| link.path).collect()
        };
        if !targets(&shorter.made.text).is_subset(&targets(text)) {
            shorter.made.text = fenced(&shorter.made.text);
        }
        Some(shorter)
    }

    /// `text` in at most `target` tokens.
    pub(super) fn condensed_plainly(
        &self,
        text: &str,
        content_type: ContentType,
        target: usize,
    ) -> Option<Shorter> {
        let began = Instant::now();
        let made = larder_condense::condense(&self.condense_request(text, content_type, target)).ok()?;
        Some(Shorter { made, took: began.elapsed() })
    }

    /// Tells whoever counts of a condensed text once it stands in a document: several may be tried for one place.
    pub(super) fn stands(&self, Shorter { made, took }: &Shorter) {
        self.turns.engine.report_condensed(made, *took);
    }

    /// What to ask of the condenser for a text of this turn.
    fn condense_request<'t>(
        &'t self,
        text: &'t str,
        content_type: ContentType,
        target: usize,
    ) -> CondenseRequest<'t> {
        CondenseRequest {
            text,
            content_type,
            target,
            query: Some(self.resolved()),
            pins: &[],
            counter: &self.counter,
            key: self.turns.engine.store.key(),
        }
    }

    /// Stores bytes and gives the pointer that gives them back.
    pub(super) fn keep(&self, bytes: &[u8], kind: &str, display: &str) -> Result<Pointer, Stop> {
        Ok(self.turns.engine.store.pointers().insert(bytes, kind, display)?.pointer_id)
    }

    /// Writes a Markdown document of the turn with frontmatter.
    pub(super) fn write<T: DocumentValue>(&mut self, at: &VaultPath, kind: &str, value: T) {
        let meta = self.meta(kind);
        let text = Document::new(meta, value).write(at);
        self.put(at, text.into_bytes());
    }

    /// The frontmatter of a document of the turn, made now.
    pub(super) fn meta(&self, kind: &str) -> Meta {
        let user = self.turns.documents.user();
        Meta::for_turn(self.draft.number, kind, user, self.clock.last()).holding(&[], &[] as &[Tag])
    }

    /// Writes a JSON document of the turn.
    pub(super) fn write_json<T: Serialize>(&mut self, at: &VaultPath, value: &T) {
        self.put(at, larder_vault::write_json(value).into_bytes());
    }

    /// Puts a file into the turn's folder.
    pub(super) fn put(&mut self, at: &VaultPath, bytes: Vec<u8>) {
        self.draft.files.insert(self.name_in_folder(at), bytes);
    }

    /// The path of a file below the turn's folder.
    pub(super) fn name_in_folder(&self, at: &VaultPath) -> String {
        let folder = self.draft.place.folder();
        let below = at.as_str().strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        below.unwrap_or(at.as_str()).to_owned()
    }

    /// The text of a file in the turn's folder, if it is there and is text.
    pub(super) fn text_of(&self, at: &VaultPath) -> Option<&str> {
        std::str::from_utf8(self.draft.files.get(&self.name_in_folder(at))?).ok()
    }

    /// A link to a document of the turn.
    pub(super) fn link(&self, to: VaultPath) -> DualLink {
        let label = to.short().to_owned();
        DualLink::new(to, &label)
    }
}

/// A section as prompts see it: its newest version, from the last compaction on.
fn shown(context: &str, id: SectionId) -> String {
    let view = larder_vault::select(context, [id]);
    let section = view.sections.iter().find(|section| section.id == id);
    section.map(|section| view.text_of(section).into_owned()).unwrap_or_default()
}

/// `text` inside a fence longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|char: char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}
