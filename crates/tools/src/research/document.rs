//! The result of research: `research.md` and `research.json` by the documents' own writer, and the text for the model.

use std::collections::BTreeMap;

use larder_text::hash::ContentHash;
use larder_vault::context::Claim;
use larder_vault::lifecycle::{Aging, ttl};
use larder_vault::links::DualLink;
use larder_vault::{
    Backlink, ContentKind, Document, Intent, Listing, Meta, ReputableSource, Research, Score, Tag, Ttl,
    read_json, turn_name, write_json,
};

use super::CONTENT;
use super::answers::WrittenResearch;
use super::claims::{PageClaims, ReadPage, host};
use crate::context::ToolContext;
use crate::spec::{ToolError, ToolOutput};

/// Where the research is used, for its backlink (R1-4.10).
const SECTION: &str = "§4 Tool Execution";
const JSON: &str = "research.json";
const MARKDOWN: &str = "research.md";
/// Digits of the name of research (R1-4.4).
const SUFFIX: usize = 6;
/// Reliability of an unknown site.
const UNKNOWN_SITE: f64 = 0.5;
/// Maximum number of earlier research documents on a topic that are checked.
const EARLIER: u64 = 20;

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
        for read in &mut self.reads {
            files.append(&mut read.page.files);
        }
        let dropped: usize = self.reads.iter().map(|read| read.dropped).sum();
        if dropped > 0 {
            self.notes.push(format!("{dropped} claims were dropped: their quotes are not on their pages"));
        }
        let claims = self.claims.all.clone();
        let text = self.text();
        let (pages, sources) =
            (self.reads.len(), self.reads.iter().filter(|read| !read.claims.is_empty()).count());
        if pages > 0 {
            let research = self.research(context)?;
            let place = context.turn.research();
            let document = Document::new(meta(&research, context), research.clone()).write(&place);
            files.insert(MARKDOWN.to_owned(), document.into_bytes());
            files.insert(JSON.to_owned(), write_json(&research).into_bytes());
        }
        let summary = format!("Found {} claims on {sources} of {pages} pages", claims.len());
        let output = ToolOutput::success(summary, text).typed(CONTENT);
        Ok(ToolOutput { claims, files, ..output })
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

    /// The document, merged with earlier research of the turn, since a turn has only one.
    fn research(mut self, context: &ToolContext<'_>) -> Result<Research, ToolError> {
        let earlier = context.draft_files.get(JSON).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let earlier = earlier.and_then(|text| read_json::<Research>(text).value);
        let listings = self.listings();
        let sources = self.sources(context)?;
        if let Some(earlier) = &earlier {
            let mut all = earlier.claims.clone();
            let new = self.claims.all.drain(..);
            let new: Vec<Claim> = new.filter(|claim| !all.iter().any(|known| same(known, claim))).collect();
            all.extend(new);
            self.claims.all = all;
            self.claims.number();
        }
        let claims = self.claims.all;
        // Evergreen facts are claims of pages, not their write-up by a model.
        let facts =
            claims.iter().filter(|claim| claim.ttl == Ttl::Evergreen).map(|claim| claim.claim.clone());
        let facts = facts.collect();
        let ages = !listings.is_empty() || claims.iter().any(|claim| claim.ttl != Ttl::Evergreen);
        let expires = ages.then(|| ttl(Aging::Research, self.intent).end(context.now)).flatten();
        let quality = Score::mean(claims.iter().map(|claim| claim.confidence)).unwrap_or_default();
        let written = self.written.as_ref().map(WrittenResearch::topic);
        let topic = written.unwrap_or_else(|| "general".to_owned());
        let turn = context.turn.number();
        let research = match earlier {
            Some(earlier) => Research {
                expires: earlier.expires.into_iter().chain(expires).min(),
                quality,
                facts,
                sources: union(earlier.sources, sources, |a, b| a.url == b.url),
                listings: union(earlier.listings, listings, |a, b| a.url == b.url && a.product == b.product),
                claims,
                ..earlier
            },
            None => Research {
                id: id(turn, self.task),
                turn,
                session: context.documents.user().to_owned(),
                query: self.task.to_owned(),
                supersedes: superseded(&topic, context)?,
                topic,
                intent: self.intent,
                quality,
                created: context.now,
                expires,
                sources,
                facts,
                listings,
                claims,
                linked_from: vec![Backlink {
                    link: DualLink::new(context.turn.context(), &turn_name(turn)),
                    section: SECTION.to_owned(),
                }],
            },
        };
        Ok(research)
    }

    /// The offers that a page supports: every number of the price is on the page.
    fn listings(&self) -> Vec<Listing> {
        let read: Vec<String> = self.reads.iter().map(|read| read.page.url.clone()).collect();
        let listings = self.written.as_ref().map(|written| written.listings(&read)).unwrap_or_default();
        let is_supported = |listing: &Listing| {
            let page = self.reads.iter().find(|read| read.page.url == listing.url);
            page.is_some_and(|read| {
                numbers(&listing.price).iter().all(|number| contains_number(number, &read.page.text))
            })
        };
        listings.into_iter().filter(is_supported).collect()
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

fn same(a: &Claim, b: &Claim) -> bool {
    a.claim == b.claim && a.source == b.source
}

/// Both lists; of equal items the new one.
fn union<T>(old: Vec<T>, new: Vec<T>, same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut all: Vec<T> = old.into_iter().filter(|old| !new.iter().any(|new| same(old, new))).collect();
    all.extend(new);
    all
}

/// `697` and `1,299.00` of `$697 to $1,299.00`.
fn numbers(price: &str) -> Vec<&str> {
    let digits = |char: char| char.is_ascii_digit() || char == '.' || char == ',';
    let parts = price.split(|char: char| !digits(char)).map(|part| part.trim_matches(['.', ',']));
    parts.filter(|part| part.bytes().any(|byte| byte.is_ascii_digit())).collect()
}

/// Whether the number is in the text by itself: `1` is not in `15`, `1.5` or `1,500`.
fn contains_number(number: &str, text: &str) -> bool {
    let digit = |char: Option<char>| char.is_some_and(|char| char.is_ascii_digit());
    text.match_indices(number).any(|(at, _)| {
        let (mut before, mut after) = (text[..at].chars().rev(), text[at + number.len()..].chars());
        let (left, right) = (before.next(), after.next());
        let joined = |near: Option<char>, far: Option<char>| {
            digit(near) || matches!(near, Some('.' | ',')) && digit(far)
        };
        !joined(left, before.next()) && !joined(right, after.next())
    })
}

/// `research_759_abc123` (R1-4.4).
fn id(turn: u32, task: &str) -> String {
    let hash = ContentHash::new(task.as_bytes()).to_hex();
    format!("research_{turn}_{}", &hash[..SUFFIX])
}

/// The expired research on this topic that the new one replaces (R1-12.5).
fn superseded(topic: &str, context: &ToolContext<'_>) -> Result<Option<String>, ToolError> {
    let rows = context.documents.catalog().research(Some(topic), EARLIER)?;
    let old = rows.into_iter().find(|row| {
        row.topic == topic
            && row.superseded_by.is_none()
            && row.expires_at.is_some_and(|expires| expires <= context.now)
    });
    Ok(old.map(|row| row.id))
}

fn meta(research: &Research, context: &ToolContext<'_>) -> Meta {
    let base = Meta::for_turn(research.turn, "research", context.documents.user(), research.created);
    let mut kinds = vec![ContentKind::Research];
    if !research.listings.is_empty() {
        kinds.push(ContentKind::Pricing);
    }
    let meta = base.holding(&kinds, &[Tag::Research]);
    Meta {
        topic: Some(research.topic.clone()),
        intent: Some(research.intent),
        quality: Some(research.quality),
        ..meta
    }
}

#[cfg(test)]
mod tests {
    use larder_vault::safe_name;

    use super::*;

    #[test]
    fn every_number_of_a_price_must_be_on_the_page() {
        assert_eq!(numbers("$697 to $1,299.00, about"), ["697", "1,299.00"]);
        assert!(numbers("on request").is_empty());
        assert!(
            contains_number("697", "for $697.")
                && contains_number("1", "1, 2")
                && contains_number("649", "649")
        );
        for text in ["15", "1.5", "1,500", "2.1", ""] {
            assert!(!contains_number("1", text), "{text}");
        }
    }

    #[test]
    fn names_are_those_of_the_turn_and_the_task() {
        let name = id(759, "syrian hamsters");
        assert!(name.starts_with("research_759_") && name.len() == "research_759_".len() + SUFFIX);
        assert_eq!(name, safe_name(&name));
    }
}
