//! What an answer may state (R0-14.8): the values and the names of the question, of what was gathered and of its documents.
//! Names are those of documents alone: what a model wrote of them in §2 or in research may hold names that they do not.

use std::sync::Arc;

use larder_store::{TurnDraft, UserDocuments};
use larder_text::sections::SectionId;
use larder_tools::figures::{self, Evidence};
use larder_vault::VaultPath;
use larder_vault::context::GatheredContext;

use super::doubts::{Doubts, turns_in};
use super::phase::PhaseContext;
use super::{evidence, old_prices, old_research};

/// The files of a captured page that hold what it states.
const OF_PAGE: [&str; 2] = ["page_content.md", "extracted_data.json"];

/// What the documents of an answer state.
#[derive(Debug, Default)]
pub(super) struct KnownTexts {
    values: Vec<String>,
    names: Vec<String>,
    lines: Vec<usize>,
}

impl KnownTexts {
    pub(super) fn add(&mut self, text: String) {
        self.names.push(text.clone());
        self.values.push(text);
    }

    /// Adds a text with another for its names.
    pub(super) fn add_named(&mut self, text: String, names: String) {
        self.values.push(text);
        self.names.push(names);
    }

    /// What of `said` none of it states, now that it is `now`.
    pub(super) fn unsupported(&self, said: &str, now: &str) -> Vec<String> {
        let (values, names) = (self.values.join(figures::BOUNDARY), self.names.join(figures::BOUNDARY));
        Evidence::new(&values).with_names(&names).with_lines(&self.lines).at(now).unsupported(said)
    }
}

/// What an answer may state: the query, what was gathered, and its documents. Not what the turn itself has written in other
/// sections, since an earlier attempt may have invented it; nor what an earlier turn invented, the calls among the results of
/// all, or what a call of the model stored.
pub(super) fn of_answer(cx: &PhaseContext<'_>, documents: &[(String, Arc<str>)], answer: &str) -> KnownTexts {
    let mut known = KnownTexts::default();
    known.add(cx.document.body(SectionId::UserQuery));
    if let Some(gathered) = cx.document.newest() {
        let said = gathered_evidence(cx, gathered, answer);
        let names = figures::without_words(&said, &cx.state.unstated);
        known.add_named(said, names);
    }
    let now = cx.clock.last();
    let mut doubts = Doubts::new(&cx.turns.documents);
    let all_results = cx.draft.place.tool_results();
    let writes = evidence::names_of_calls(&cx.draft, evidence::WRITING);
    let research = evidence::names_of_calls(&cx.draft, evidence::RESEARCH);
    let documents =
        documents.iter().filter(|(name, _)| name != all_results.as_str() && !writes.contains(name));
    for (name, text) in documents {
        let stated = old_research::evidence(&doubts.without(name, text), name, now);
        let stated = old_prices::evidence(&cx.turns.documents, (name, stated), now, answer);
        let pages = match research.contains(name) {
            true => pages_of_draft(&cx.draft),
            false => pages_of_research(&cx.turns.documents, name, text),
        };
        let names = names_of(&stated, &pages);
        known.add_named(stated, names);
        known
            .lines
            .extend([text.lines().count(), text.lines().filter(|line| !line.trim().is_empty()).count()]);
    }
    known
}

/// A text of research with the names that its pages have, or all of it where no page is known.
pub(super) fn names_of(text: &str, pages: &str) -> String {
    if pages.is_empty() {
        return text.to_owned();
    }
    figures::without_words(text, &figures::unstated_words(text, pages))
}

/// The pages that were captured in this turn.
pub(super) fn pages_of_draft(draft: &TurnDraft) -> String {
    let pages = draft.files.iter().filter(|(name, _)| is_of_page(name));
    pages.map(|(_, bytes)| String::from_utf8_lossy(bytes)).collect::<Vec<_>>().join("\n")
}

/// The pages that were captured in the turns which a document of research is of; empty for other documents.
pub(super) fn pages_of_research(documents: &UserDocuments, name: &str, text: &str) -> String {
    if !text.contains(old_research::TITLE) {
        return String::new();
    }
    let mut turns: Vec<u32> = turns_in(name).chain(turns_in(text)).collect();
    turns.sort_unstable();
    turns.dedup();
    let captures = turns.into_iter().filter_map(|turn| documents.catalog().captures(Some(turn), None).ok());
    let folders = captures.flatten().map(|capture| capture.manifest.folder().to_owned());
    let files = folders.flat_map(|folder| OF_PAGE.map(|name| VaultPath::new(&format!("{folder}/{name}"))));
    let texts = files.flatten().filter_map(|file| documents.files().read_text(&file).ok()?);
    texts.collect::<Vec<_>>().join("\n")
}

fn is_of_page(name: &str) -> bool {
    OF_PAGE.iter().any(|file| name.ends_with(file))
}

/// What §2 states, without what it says of its sources, such as their quality and age.
fn gathered_evidence(cx: &PhaseContext<'_>, gathered: GatheredContext, answer: &str) -> String {
    let (documents, now) = (&cx.turns.documents, cx.clock.last());
    let preferences = gathered.preferences.into_iter().map(|one| format!("{}: {}", one.name, one.value));
    let turns = gathered.prior_turns.into_iter().map(|one| {
        let row = documents.catalog().turn(one.turn).ok().flatten();
        let name = row.map(|row| row.context.to_string()).unwrap_or_default();
        format!("turn {}\n{}", one.turn, old_prices::evidence(documents, (&name, one.summary), now, answer))
    });
    let research = gathered.research.into_iter().flat_map(|one| {
        let found = one.top.into_iter();
        let found = found.map(|one| format!("{} | price: {} | {}", one.product, one.price, one.source));
        std::iter::once(one.topic).chain(found)
    });
    let said = preferences.chain(turns).chain(research);
    let information = old_prices::of_lines(&gathered.information, &cx.state.old_days, now, answer);
    std::iter::once(information).chain(said).collect::<Vec<_>>().join("\n")
}
