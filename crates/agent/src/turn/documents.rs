//! `context.md` of a turn: it grows through the vault's writers and is never rewritten. A section that exceeds its
//! budget gets a compaction (C7, R0-25.1); its own text stays in the file. Knows no phase.

use larder_condense::ContentType;
use larder_text::pointer::Pointer;
use larder_text::sections::{SectionId, Sections};
use larder_vault::context::{self, SectionValue};
use larder_vault::{BlockId, VaultPath};

use super::condense::{CondensedText, TurnCondenser};
use super::digest;
use super::error::Stop;
use super::event::{Events, TurnEvent};

/// The file that grows.
pub(super) const CONTEXT: &str = "context.md";
/// Tokens reserved for heading, name and end of a compaction, tried in this order.
const FRAMES: [usize; 4] = [48, 96, 160, 240];

/// `context.md` so far.
pub(super) struct TurnDocument<'a> {
    pub(super) text: String,
    /// Where the file will be stored.
    pub(super) at: VaultPath,
    pub(super) condenser: TurnCondenser<'a>,
    events: Events<'a>,
}

impl<'a> TurnDocument<'a> {
    pub(super) const fn new(
        text: String,
        at: VaultPath,
        condenser: TurnCondenser<'a>,
        events: Events<'a>,
    ) -> Self {
        Self { text, at, condenser, events }
    }

    /// Adds a version of a section.
    pub(super) async fn append<T: SectionValue>(&mut self, value: &T) -> Result<(), Stop> {
        self.text += &context::append(&self.text, value, &self.at);
        // §4 is kept within its budget while it is written (R0-26.1), §0 never shrinks (C30).
        if !matches!(T::ID, SectionId::UserQuery | SectionId::ToolExecution) {
            self.settle(T::ID).await?;
        }
        Ok(())
    }

    /// The query of the turn: the user's own words, and a line for each attachment.
    pub(super) fn asked(&self) -> Option<String> {
        larder_vault::original_query(&self.text)
    }

    /// Extends the last section, which must be `id`; the order of the phases ensures that it is.
    pub(super) fn extend(&mut self, id: SectionId, body: &str) -> Result<(), Stop> {
        let added = larder_vault::extend_section(&self.text, id, body);
        self.text += &added.map_err(|error| Stop::Fail(error.to_string()))?;
        Ok(())
    }

    /// The newest version of a section as a value.
    pub(super) fn newest<T: SectionValue>(&self) -> Option<T> {
        context::read_newest::<T>(&self.text, &self.at).and_then(|read| read.value)
    }

    /// The body of the newest version of a section, as it was written.
    pub(super) fn body(&self, id: SectionId) -> String {
        let view = larder_vault::select(&self.text, [id]);
        let section = view.sections.iter().find(|section| section.id == id);
        section.map(|section| view.body_of(section).to_owned()).unwrap_or_default()
    }

    /// Whether the last section is `id`.
    pub(super) fn ends_with(&self, id: SectionId) -> bool {
        Sections::parse(&self.text).sections.last().is_some_and(|section| section.id == id)
    }

    /// The block for a decision that is about to be written: `decision-reflection`, then `decision-reflection-2`, since a
    /// block is unique in its document.
    pub(super) fn next_decision(&self, name: &str, section: SectionId) -> Option<BlockId> {
        match Sections::parse(&self.text).attempts(section).count() {
            0 => BlockId::new(&format!("decision-{name}")),
            before => BlockId::new(&format!("decision-{name}-{}", before + 1)),
        }
    }

    /// Tokens of a section as prompts see it.
    pub(super) fn tokens_of(&self, id: SectionId) -> usize {
        self.condenser.counter.count(&shown(&self.text, id))
    }

    /// Compacts the last section if it exceeds its budget, along its own structure where it has one.
    pub(super) async fn settle(&mut self, id: SectionId) -> Result<(), Stop> {
        let budget = id.token_budget();
        if self.condenser.counter.count_up_to(&shown(&self.text, id), budget).is_some() {
            return Ok(());
        }
        let digest = digest::of(id, self, budget).await;
        self.compact(id, budget, digest)
    }

    /// Appends a compaction that replaces the last section, which must be `id`, in prompts, with at most `target`
    /// tokens: `text`, or the section as condensed.
    pub(super) fn compact(&mut self, id: SectionId, target: usize, text: Option<String>) -> Result<(), Stop> {
        let before = shown(&self.text, id);
        let from = self.condenser.counter.count(&before);
        let display = format!("§{} of {}", id.number(), self.at);
        let original = self.condenser.store(before.as_bytes(), "section", &display)?;
        let by_rule = FRAMES.iter().filter_map(|frame| {
            self.condenser.for_document(&before, ContentType::Markdown, target.checked_sub(*frame)?)
        });
        let by_rule = by_rule.map(|condensed| (condensed.result.text.clone(), Some(condensed)));
        let texts = text.map(|text| (text, None)).into_iter().chain(by_rule);
        let mut added = texts.filter_map(|(text, by)| Some((self.compaction(id, &original, &text)?, by)));
        let fits = |(added, _): &(String, Option<CondensedText>)| {
            self.condenser.counter.count_up_to(&shown(&(self.text.clone() + added), id), target).is_some()
        };
        let added = match added.find(fits) {
            Some((added, by)) => {
                by.iter().for_each(|condensed| self.condenser.report(condensed));
                added
            }
            None => self.compaction(id, &original, "Omitted for lack of room.").unwrap_or_default(),
        };
        self.text += &added;
        self.events.send(&TurnEvent::Compacted { section: id.number(), from, to: self.tokens_of(id) });
        Ok(())
    }

    fn compaction(&self, id: SectionId, original: &Pointer, text: &str) -> Option<String> {
        larder_vault::append_compaction(&self.text, id, &original.to_string(), text).ok()
    }
}

/// A section as prompts see it: its newest version, from the last compaction on.
fn shown(context: &str, id: SectionId) -> String {
    let view = larder_vault::select(context, [id]);
    let section = view.sections.iter().find(|section| section.id == id);
    section.map(|section| view.text_of(section).into_owned()).unwrap_or_default()
}
