//! The result of research: `research.md` and `research.json` by the documents' own writer, and the text for the model.

use std::collections::{BTreeMap, BTreeSet};

use larder_store::ResearchRow;
use larder_text::hash::ContentHash;
use larder_text::words::counted;
use larder_text::words::is_stop_word;
use larder_vault::layout::is_research;
use larder_vault::lifecycle::{Aging, ttl};
use larder_vault::links::DualLink;
use larder_vault::{
    Backlink, ContentKind, Document, DocumentTime, Intent, Meta, ReputableSource, Research, Scope, Score,
    Stock, Tag, Ttl, VaultPath, turn_name, write_json,
};

use super::CONTENT;
use super::answers::{ListingAnswer, WrittenResearch};
use super::claims::{PageClaims, ReadPage, host};
use crate::context::ToolContext;
use crate::figures::{Evidence, has_price};
use crate::offers::{is_offered, stocks};
use crate::spec::{ToolError, ToolOutput};

/// Where the research is used, for its backlink (R1-4.10).
const SECTION: &str = "§4 Tool Execution";
/// Digits of the name of research (R1-4.4).
const SUFFIX: usize = 6;
/// Reliability of an unknown site.
const UNKNOWN_SITE: f64 = 0.5;
/// Newest pieces of research, and newest on the topic, that the new one may replace.
const EARLIER: u64 = 50;

/// Everything that one piece of research found.
pub(super) struct ResearchResult<'a> {
    pub(super) task: &'a str,
    pub(super) intent: Intent,
    pub(super) searches: &'a [String],
    pub(super) reads: Vec<ReadPage>,
    pub(super) claims: PageClaims,
    /// What failed, in words.
    pub(super) notes: Vec<String>,
    pub(super) written: Option<WrittenResearch>,
}

impl ResearchResult<'_> {
    /// The output: its text for the model, the claims, and the files of the turn.
    pub(super) fn output(mut self, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let mut files = BTreeMap::new();
        for read in &self.reads {
            files.extend(read.page.files(context));
        }
        let dropped: usize = self.reads.iter().map(|read| read.dropped).sum();
        if dropped > 0 {
            self.notes
                .push(format!("claims dropped: {dropped}; their quotes or values are not on their pages"));
        }
        self.hold_to_pages(context);
        let claims = self.claims.all.clone();
        let text = self.text();
        let (pages, sources) =
            (self.reads.len(), self.reads.iter().filter(|read| !read.claims.is_empty()).count());
        if pages > 0 {
            let number = next_number(context);
            let place = context.turn.research_number(number);
            let research = self.research(number, context)?;
            let document = Document::new(meta(&place, &research, context), research.clone()).write(&place);
            files.insert(place.name().to_owned(), document.into_bytes());
            let data = place.name().replace(".md", ".json");
            files.insert(data, write_json(&research).into_bytes());
        }
        let (found, pages) = (counted(claims.len() as u64, "claim"), counted(pages as u64, "page"));
        let summary = format!("Found {found} on {sources} of {pages}");
        let output = ToolOutput::success(summary, text).typed(CONTENT);
        Ok(ToolOutput { claims, files, ..output })
    }

    /// Leaves out of the write-up what has values that neither the question nor a page states.
    fn hold_to_pages(&mut self, context: &ToolContext<'_>) {
        let Some(written) = &mut self.written else { return };
        let pages = self.reads.iter().flat_map(|read| [&read.text, &read.page.title, &read.page.url]);
        let known: Vec<&str> = pages.map(String::as_str).chain([self.task, context.original_query]).collect();
        let (known, now) = (known.join("\n"), context.now.to_string());
        let known = Evidence::new(&known).at(&now);
        let mut left_out = 0;
        for lines in [&mut written.findings, &mut written.evergreen, &mut written.time_sensitive] {
            let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
            let mut are_stated = known.are_stated(&texts).into_iter();
            let before = lines.len();
            lines.retain(|_| are_stated.next().unwrap_or(true));
            left_out += before - lines.len();
        }
        for text in [&mut written.title, &mut written.overview] {
            if known.are_stated(&[text.as_str()]).contains(&false) {
                text.clear();
                left_out += 1;
            }
        }
        if written.title.is_empty() {
            self.task.clone_into(&mut written.title);
        }
        let offers = std::mem::take(&mut written.listings);
        // An offer is on a page that was read, with its price as a price.
        let is_real = |offer: &ListingAnswer| {
            let beside: Vec<&str> = products_at(&offer.source, &offers).collect();
            let page = self.reads.iter().find(|read| read.is_at(&offer.source));
            page.is_some_and(|read| {
                has_price(&read.text, &offer.price)
                    && is_offered(&read.text, (&offer.product, &offer.price), &beside)
            })
        };
        let (real, invented): (Vec<_>, Vec<_>) = offers.iter().cloned().partition(is_real);
        written.listings = real;
        if !invented.is_empty() {
            let names: Vec<&str> = invented.iter().map(|offer| offer.product.as_str()).collect();
            self.notes.push(format!(
                "offers dropped: {} ({}); no page at their address was read, or it lacks the product or its price",
                invented.len(),
                names.join(", ")
            ));
        }
        if left_out > 0 {
            self.notes.push(format!(
                "{left_out} statements of the write-up were dropped: no page states their values"
            ));
        }
    }

    /// What the page of an offer says of whether it can be had.
    fn stock(&self, offer: &ListingAnswer) -> Stock {
        let offers = self.written.as_ref().map(|written| written.listings.as_slice()).unwrap_or_default();
        let names: Vec<&str> = products_at(&offer.source, offers).collect();
        let page = self.reads.iter().find(|read| read.is_at(&offer.source));
        let stocks = page.map(|read| stocks(&read.text, &names)).unwrap_or_default();
        let mut stocks = names.into_iter().zip(stocks);
        stocks.find(|(name, _)| *name == offer.product).map_or(Stock::Unknown, |(_, stock)| stock)
    }

    /// The text for the model.
    fn text(&self) -> String {
        let mut text = format!("Question: {}\nSearched: {}\n", self.task, self.searches.join("; "));
        if let Some(written) = &self.written {
            text.push_str(&format!("\n{}\n\n{}\n", written.title, written.overview));
            for (name, lines) in [("Findings", &written.findings), ("Growing old", &written.time_sensitive)] {
                if !lines.is_empty() {
                    text.push_str(&format!("\n{name}:\n- {}\n", lines.join("\n- ")));
                }
            }
        }
        text.push_str(&format!("\nClaims:\n{}", self.claims.listed()));
        text.push_str("\nPages:\n");
        for read in &self.reads {
            text.push_str(&format!("- {} ({}): {}\n", read.page.url, read.page.title, read.summary));
        }
        for note in &self.notes {
            text.push_str(&format!("Note: {note}\n"));
        }
        text
    }

    /// The research as a document of its own. `number` is its place among those of the turn.
    fn research(self, number: usize, context: &ToolContext<'_>) -> Result<Research, ToolError> {
        let listings =
            self.written.as_ref().map(|written| written.listings(|one| self.stock(one))).unwrap_or_default();
        let sources = self.sources(context)?;
        let claims = self.claims.all;
        // Evergreen facts are claims of pages, not their write-up by a model.
        let facts =
            claims.iter().filter(|claim| claim.ttl == Ttl::Evergreen).map(|claim| claim.claim.clone());
        let facts = facts.collect();
        let ages = claims.iter().map(|claim| claim.ttl).filter(|ttl| *ttl != Ttl::Evergreen);
        let offers = listings.first().map(|_| ttl(Aging::Offer, self.intent));
        let expires = ages.chain(offers).min_by_key(|ttl| ttl.seconds()).and_then(|ttl| ttl.end(context.now));
        let quality = Score::mean(claims.iter().map(|claim| claim.confidence)).unwrap_or_default();
        let written = self.written.as_ref().map(WrittenResearch::topic);
        let topic =
            written.or_else(|| context.topic.map(str::to_owned)).unwrap_or_else(|| "general".to_owned());
        let turn = context.turn.number();
        Ok(Research {
            id: id(turn, number, self.task),
            turn,
            session: context.documents.user().to_owned(),
            query: self.task.to_owned(),
            supersedes: superseded(self.task, &topic, context)?,
            topic,
            intent: self.intent,
            quality,
            created: context.now,
            expires,
            write_up: self.written.map(WrittenResearch::write_up),
            sources,
            facts,
            listings,
            claims,
            linked_from: vec![Backlink {
                link: DualLink::new(context.turn.context(), &turn_name(turn)),
                section: SECTION.to_owned(),
            }],
        })
    }

    /// The pages with claims, and the reliability of their sites so far.
    fn sources(&self, context: &ToolContext<'_>) -> Result<Vec<ReputableSource>, ToolError> {
        let mut sources = Vec::new();
        for read in self.reads.iter().filter(|read| !read.claims.is_empty()) {
            let vendor = host(&read.page.url);
            let known = context.documents.uses().source(&vendor)?.map(|site| site.reliability);
            let reliability = known.or_else(|| Score::new(UNKNOWN_SITE)).unwrap_or_default();
            let kind = read.page.kind.to_owned();
            sources.push(ReputableSource { vendor, kind, reliability, url: read.page.url.clone() });
        }
        Ok(sources)
    }
}

/// `research_759_abc123` (R1-4.4); the same question asked again in a turn has another name.
fn id(turn: u32, number: usize, task: &str) -> String {
    let again = if number > 1 { format!("{number} {task}") } else { task.to_owned() };
    let hash = ContentHash::new(again.as_bytes()).to_hex();
    format!("research_{turn}_{}", &hash[..SUFFIX])
}

/// The place of the next piece of research among those of the turn, from 1.
fn next_number(context: &ToolContext<'_>) -> usize {
    1 + context.draft_files.keys().filter(|name| is_research(name)).count()
}

/// The research that the new one replaces (R1-12.5): the same question, however fresh its answer is, or a question much
/// like it on the same topic whose answer has grown old.
fn superseded(task: &str, topic: &str, context: &ToolContext<'_>) -> Result<Option<String>, ToolError> {
    let asked = question(task);
    let earlier =
        context.draft_files.iter().filter(|(name, _)| is_research(name)).filter_map(|(name, bytes)| {
            let at = VaultPath::new(&format!("{}/{name}", context.turn.folder()))?;
            Document::<Research>::read(std::str::from_utf8(bytes).ok()?, &at).value
        });
    let earlier: Vec<Research> = earlier.map(|document| document.value).collect();
    let replaced: Vec<&str> = earlier.iter().filter_map(|research| research.supersedes.as_deref()).collect();
    if let Some(same) = earlier.iter().rev().find(|research| question(&research.query) == asked) {
        return Ok(Some(same.id.clone()));
    }
    let rows = context.documents.catalog().research(None, EARLIER)?;
    let rows = rows.into_iter().chain(context.documents.catalog().research(Some(topic), EARLIER)?);
    let current = rows.filter(|row| row.superseded_by.is_none() && !replaced.contains(&row.id.as_str()));
    let current: Vec<ResearchRow> = current.collect();
    Ok(replaceable(&current, &asked, topic, context.now).map(|row| row.id.clone()))
}

/// The one of several pieces that a question replaces: of the same question, otherwise the newest stale one that is like it.
fn replaceable<'r>(
    rows: &'r [ResearchRow],
    asked: &BTreeSet<String>,
    topic: &str,
    now: DocumentTime,
) -> Option<&'r ResearchRow> {
    let same = rows.iter().find(|row| question(&row.title) == *asked);
    let is_old =
        |row: &&ResearchRow| row.topic == topic && row.expires_at.is_some_and(|expires| expires <= now);
    same.or_else(|| rows.iter().filter(is_old).find(|row| is_like(&question(&row.title), asked)))
}

/// The words of a question.
fn question(text: &str) -> BTreeSet<String> {
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).filter(|word| !is_stop_word(word)).collect()
}

/// Whether at least half of all words of two questions are in both.
fn is_like(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    let shared = one.intersection(other).count();
    shared > 0 && shared * 2 >= one.union(other).count()
}

fn meta(place: &VaultPath, research: &Research, context: &ToolContext<'_>) -> Meta {
    let kind = place.name().trim_end_matches(".md");
    let base = Meta::for_turn(research.turn, kind, context.documents.user(), research.created);
    let mut kinds = vec![ContentKind::Research];
    if !research.listings.is_empty() {
        kinds.push(ContentKind::Pricing);
    }
    let meta = base.holding(&kinds, &[Tag::Research]);
    Meta {
        scope: Scope::New,
        topic: Some(research.topic.clone()),
        intent: Some(research.intent),
        quality: Some(research.quality),
        ..meta
    }
}

/// The products of the offers at an address.
fn products_at<'o>(source: &str, offers: &'o [ListingAnswer]) -> impl Iterator<Item = &'o str> {
    offers.iter().filter(move |offer| offer.source == source).map(|offer| offer.product.as_str())
}

#[cfg(test)]
mod tests {
    use larder_vault::safe_name;

    use super::*;

    #[test]
    fn questions_are_compared_by_their_words() {
        assert_eq!(question("Which gaming laptops are there?"), question("which gaming LAPTOPS there are"));
        let laptops = question("gaming laptops with an NVIDIA GPU");
        assert!(is_like(&laptops, &question("gaming laptops with an AMD GPU")));
        assert!(!is_like(&laptops, &question("How long does the battery of a ThinkPad last?")));
        assert!(!is_like(&BTreeSet::new(), &BTreeSet::new()));
    }

    #[test]
    fn the_same_question_is_replaced_before_one_that_is_like_it() {
        let now: DocumentTime = "2026-01-06T10:00:00Z".parse().unwrap();
        let row = |turn: u32, title: &str| ResearchRow {
            document: VaultPath::new(&format!("users/u/turns/turn_{turn:06}/research.md")).unwrap(),
            id: format!("research_{turn}"),
            turn,
            topic: "commerce.notebook".to_owned(),
            intent: Intent::CommerceSearch,
            quality: Score::default(),
            created_at: now,
            expires_at: Some("2026-01-05T16:00:00Z".parse().unwrap()),
            superseded_by: None,
            scope: Scope::New,
            title: title.to_owned(),
            use_count: 0,
        };
        let rows = [row(2, "weight of the Vela notebook"), row(1, "price of the Vela notebook")];
        for (asked, id) in [
            ("price of the Vela notebook", Some("research_1")),
            ("weight of the Vela notebook", Some("research_2")),
            ("battery of the Vela notebook", Some("research_2")),
            ("keyboards", None),
        ] {
            let found = replaceable(&rows, &question(asked), "commerce.notebook", now);
            assert_eq!(found.map(|row| row.id.as_str()), id, "{asked}");
        }
    }

    #[test]
    fn names_are_those_of_the_turn_and_the_task() {
        let name = id(759, 1, "syrian hamsters");
        assert!(name.starts_with("research_759_") && name.len() == "research_759_".len() + SUFFIX);
        assert_ne!(name, id(759, 2, "syrian hamsters"));
        assert_eq!(name, safe_name(&name));
    }
}
