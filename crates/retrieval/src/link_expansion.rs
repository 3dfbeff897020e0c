//! Following links: level by level, within a budget, each document once (R1-8.8 to R1-8.12, R1-10.8; C23). Knows which
//! sections were asked for; the query only decides what is shown of a document that is too long. Instructions in documents are never followed.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use larder_vault::context::{Claim, ToolLog, read_newest};
use larder_vault::layout::is_research;
use larder_vault::lifecycle::{MAX_LINK_DEPTH, PER_DOCUMENT_CAP, link_budget};
use larder_vault::links::{NoteOutline, links};
use larder_vault::{Document as Typed, Research, VaultPath, read_json};
use serde::{Deserialize, Serialize};

use super::extract::{Extract, cut, extract, headings};
use super::passages::bearing_on;
use super::scope::{LinkTarget, VaultScope, in_turn};
use super::trace::{Trace, TraceEntry};
use super::{Grant, Retrieval};

/// Links of one document that are considered; a hostile page may contain millions.
const MAX_LINKS: usize = 64;
/// With fewer tokens left, no further document is read: too little of it would be shown.
const MIN_TOKENS: usize = 64;
/// Headings that a record names where a section is missing.
const NAMED_HEADINGS: usize = 12;
/// Documents that use this one are not a source of its claims (R1-8.9), so links below this heading are not followed.
const BACKLINKS: &str = "Linked From";

/// A link that a model wants followed (R1-10.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkToFollow {
    /// A path in the vault in any spelling: whole, from the user's folder, from `turns/`, relative, a wikilink.
    pub path: String,
    /// Sections of the document, by number, heading or `^block`; all of it if there are none.
    #[serde(default)]
    pub sections_to_extract: Vec<String>,
}

/// The documents that links pointed to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LinkExpansion {
    /// In the order in which they were read: level by level.
    pub documents: Vec<LinkedDocument>,
    /// Every link that was considered, for the receipt.
    pub considered: Vec<TraceEntry>,
    /// Tokens of all documents.
    pub tokens: usize,
}

/// A linked document, or the requested parts of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkedDocument {
    /// Its place in the vault.
    pub path: VaultPath,
    /// The requested sections that were found; empty if the whole document is included.
    pub sections: Vec<String>,
    /// The original text; gaps and cuts are marked.
    pub text: String,
    /// Its tokens.
    pub tokens: usize,
    /// Steps from the turn's own document: 1 or 2 (R1-8.9).
    pub depth: u8,
    /// The document that linked here; `None` for a requested one.
    pub from: Option<VaultPath>,
    /// The bytes of the text in the document, before any cut; empty for keys of a JSON document.
    pub bytes: Vec<Range<usize>>,
    /// Claims that the text contains, with the byte ranges that they come from (R1-3.42).
    pub claims: Vec<Claim>,
}

/// A link to read.
struct QueuedLink {
    written: String,
    sections: Vec<String>,
    depth: u8,
    from: Option<VaultPath>,
}

struct LinkWalk<'r> {
    retrieval: &'r Retrieval<'r>,
    scope: VaultScope,
    depth: usize,
    left: usize,
    queue: VecDeque<QueuedLink>,
    /// The documents read, each with the one whose link led there.
    read: BTreeMap<VaultPath, Option<VaultPath>>,
    documents: Vec<LinkedDocument>,
    trace: Trace,
}

/// See [`Retrieval::follow`].
pub(super) async fn expand(retrieval: &Retrieval<'_>, asked: &[LinkToFollow], limit: usize) -> LinkExpansion {
    let narrow = retrieval.grant == Grant::Synthesis;
    let home = retrieval.documents.place().preferences().folder().to_owned();
    let budget = link_budget(limit);
    let mut walk = LinkWalk {
        retrieval,
        scope: VaultScope::new(&home),
        depth: if narrow { 1 } else { MAX_LINK_DEPTH },
        left: budget,
        queue: VecDeque::new(),
        read: BTreeMap::new(),
        documents: Vec::new(),
        trace: Trace::default(),
    };
    walk.ask(asked, if narrow { 1 } else { MAX_LINKS });
    while let Some(wanted) = walk.queue.pop_front() {
        walk.visit(wanted).await;
    }
    LinkExpansion { documents: walk.documents, considered: walk.trace.finish(), tokens: budget - walk.left }
}

impl LinkWalk<'_> {
    /// Queues the requested links; a document requested twice gets the sections of both.
    fn ask(&mut self, asked: &[LinkToFollow], max: usize) {
        let mut wanted: Vec<QueuedLink> = Vec::new();
        for link in asked {
            match wanted.iter().position(|known| known.written == link.path) {
                Some(known) => wanted[known].sections.extend(link.sections_to_extract.iter().cloned()),
                None if wanted.len() == max => {
                    let why = format!("only {max} links are followed for this caller");
                    self.trace.unused("link", &link.path, 0.0, why);
                }
                None => wanted.push(QueuedLink {
                    written: link.path.clone(),
                    sections: link.sections_to_extract.clone(),
                    depth: 1,
                    from: None,
                }),
            }
        }
        self.queue.extend(wanted);
    }

    async fn visit(&mut self, wanted: QueuedLink) {
        let target = match self.scope.places(&wanted.written, wanted.from.as_ref()) {
            Ok(target) => target,
            Err(why) => return self.trace.unused("link", &wanted.written, 0.0, why),
        };
        let deeper = usize::from(wanted.depth) > self.depth;
        // Which place a link means is certain for the first only, before they are looked at.
        let places = if deeper { &target.places[..] } else { target.places.get(..1).unwrap_or_default() };
        if let Some(why) = self.seen(places, &wanted) {
            return self.trace.unused("link", &wanted.written, 0.0, why);
        }
        if deeper {
            let why = format!("level {} is not followed for this caller", wanted.depth);
            return self.trace.unused("link", &wanted.written, 0.0, why);
        }
        if self.left < MIN_TOKENS {
            return self.trace.unused("link", &wanted.written, 0.0, "the tokens for links are used up");
        }
        match self.load(&target).await {
            Ok(Some((path, text))) => match self.seen(std::slice::from_ref(&path), &wanted) {
                Some(why) => self.trace.unused("link", path.as_str(), 0.0, why),
                None => self.take(path, &text, target.fragment, wanted),
            },
            Ok(None) => self.trace.unused("link", &wanted.written, 0.0, "there is no such document"),
            Err(why) => self.trace.unused("link", &wanted.written, 0.0, why),
        }
    }

    /// Why a document is not read again: the link forms a cycle, or the document was read before.
    fn seen(&self, places: &[VaultPath], wanted: &QueuedLink) -> Option<String> {
        let place = places.iter().find(|place| self.read.contains_key(*place))?;
        let from = wanted.from.as_ref();
        let before = from.and_then(|from| self.read.get(from)).and_then(Option::as_ref);
        let back = from == Some(place) || before == Some(place);
        Some(if back {
            format!("a cycle: it leads back to {place}")
        } else {
            format!("{place} was read already")
        })
    }

    /// The first of the places that exists; archived turns are found in the archive.
    async fn load(&self, target: &LinkTarget) -> Result<Option<(VaultPath, String)>, String> {
        let documents = self.retrieval.documents;
        let mut places = target.places.clone();
        for (number, inside) in target.places.iter().filter_map(in_turn) {
            let turn = documents.catalog().turn(number).map_err(|error| error.to_string())?;
            let archived = turn.filter(|turn| turn.archived);
            places.extend(archived.and_then(|turn| turn.context.join(inside)));
        }
        let mut failed = None;
        for path in places {
            match documents.files().read_text(&path) {
                Ok(Some(text)) => return Ok(Some((path, text))),
                Ok(None) => {}
                Err(error) => failed = failed.or(Some(error.to_string())),
            }
        }
        failed.map_or(Ok(None), Err)
    }

    fn take(&mut self, path: VaultPath, text: &str, fragment: Option<String>, wanted: QueuedLink) {
        let QueuedLink { mut sections, depth, from, .. } = wanted;
        sections.extend(fragment.filter(|_| sections.is_empty()));
        let taken = extract(&path, text, &sections);
        let counter = self.retrieval.counter;
        let max = PER_DOCUMENT_CAP.min(self.left);
        let query = self.retrieval.query.filter(|_| counter.count_up_to(&taken.text, max).is_none());
        let parts = query.and_then(|query| bearing_on(self.retrieval, query, &path, &taken.text, max));
        let (shown, was_cut) =
            parts.map_or_else(|| cut(&taken.text, max, counter, path.as_str()), |parts| (parts, true));
        let tokens = counter.count(&shown);
        self.left -= tokens.min(self.left);
        let mut why = match &from {
            None => "it was asked for".to_owned(),
            Some(from) => format!("{from} links to it"),
        };
        if !taken.missing.is_empty() {
            let whole = if taken.sections.is_empty() { "; given whole" } else { "" };
            let missing = taken.missing.join(", ");
            why += &format!(", without {missing}{whole}; it has: {}", headings(text, NAMED_HEADINGS));
        }
        if was_cut {
            why += ", cut to the tokens that are left for it";
        }
        self.trace.used("link", path.as_str(), 1.0 / f64::from(depth), tokens, why);
        self.read.insert(path.clone(), from.clone());
        self.queue_links(&path, text, &taken, depth + 1);
        let claims = claims(&path, text, &shown);
        let Extract { sections, ranges, .. } = taken;
        let text = shown;
        self.documents.push(LinkedDocument {
            path,
            sections,
            text,
            tokens,
            depth,
            from,
            bytes: ranges,
            claims,
        });
    }

    /// Queues the links in an extracted text. Links are written in two styles side by side (R1-8.1): the second has
    /// the same target and is skipped.
    fn queue_links(&mut self, path: &VaultPath, text: &str, taken: &Extract, depth: u8) {
        if !path.name().ends_with(".md") {
            return;
        }
        let headings = NoteOutline::parse(text).headings.into_iter();
        let backlinks =
            headings.filter(|heading| heading.text.trim() == BACKLINKS).map(|heading| heading.section);
        let left_out: Vec<Range<usize>> = backlinks.collect();
        let (mut known, mut more) = (Vec::<(String, Option<LinkTarget>)>::new(), 0);
        for link in links(text) {
            let stands_in =
                |ranges: &[Range<usize>]| ranges.iter().any(|range| range.contains(&link.range.start));
            let destination = link.destination();
            let again = known.iter().any(|(written, _)| *written == destination);
            if !stands_in(&taken.ranges) || stands_in(&left_out) || again {
                continue;
            }
            if known.len() == MAX_LINKS {
                more += 1;
                continue;
            }
            let target = self.scope.places(&destination, Some(path)).ok();
            if !known.iter().any(|(_, other)| same(other.as_ref(), target.as_ref())) {
                known.push((destination, target));
            }
        }
        if more > 0 {
            let why = format!("{more} further links of this document are not considered");
            self.trace.unused("link", path.as_str(), 0.0, why);
        }
        let from = |written| QueuedLink { written, sections: Vec::new(), depth, from: Some(path.clone()) };
        self.queue.extend(known.into_iter().map(|(written, _)| from(written)));
    }
}

/// Whether two links have the same target.
fn same(known: Option<&LinkTarget>, other: Option<&LinkTarget>) -> bool {
    let (Some(known), Some(other)) = (known, other) else { return false };
    known.fragment == other.fragment && known.places.iter().any(|place| other.places.contains(place))
}

/// The claims of a document that the part shown of it contains.
fn claims(path: &VaultPath, text: &str, shown: &str) -> Vec<Claim> {
    let research = |research: Research| research.claims;
    let all = match path.name() {
        "context.md" => {
            let log = read_newest::<ToolLog>(text, path).and_then(|log| log.value);
            log.map(|log| log.claims).unwrap_or_default()
        }
        name if is_research(name) => {
            let read = Typed::<Research>::read(text, path).value;
            read.map(|document| research(document.value)).unwrap_or_default()
        }
        name if name.strip_suffix(".json").is_some_and(|name| is_research(&format!("{name}.md"))) => {
            read_json::<Research>(text).value.map(research).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let is_shown = |claim: &Claim| match &claim.origin {
        Some(origin) => shown.contains(&origin.block.to_string()) || shown.contains(&claim.claim),
        None => shown.contains(&claim.claim),
    };
    all.into_iter().filter(is_shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_styles_of_one_link_lead_to_the_same_place() {
        let scope = VaultScope::new("users/henry");
        let from = VaultPath::new("users/henry/turns/turn_000815/context.md");
        let target = |written| scope.places(written, from.as_ref()).ok();
        let plain = target("../turn_000759/research.md");
        assert!(same(plain.as_ref(), target("[[users/henry/turns/turn_000759/research]]").as_ref()));
        assert!(!same(plain.as_ref(), target("../turn_000759/research.md#^claim-001").as_ref()));
        assert!(!same(plain.as_ref(), target("../turn_000760/research.md").as_ref()));
        assert!(!same(plain.as_ref(), target("https://example.com/").as_ref()));
    }

    #[test]
    fn only_claims_that_are_shown_are_passed_on() {
        let path = VaultPath::new("users/henry/turns/turn_000759/research.json").unwrap();
        assert!(claims(&path, "{}", "").is_empty());
        let other = VaultPath::new("users/henry/notes/tea.md").unwrap();
        assert!(claims(&other, "A claim.", "A claim.").is_empty(), "a note has no claims of its own");
    }
}
