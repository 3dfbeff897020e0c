//! Captured pages: which one a query refers to, and what it can contribute (R1-6.3, R1-6.10 to R1-6.14, R1-14.5 to
//! R1-14.7). `rules` chooses the level, `answer` writes the text.

mod answer;
mod rules;
mod table;

use std::collections::BTreeMap;

use larder_store::{CaptureRow, DocumentKind};
use larder_text::tokens::Counter;
use larder_vault::{ContentReference, DocumentTime, Manifest, TurnStatus, VaultPath, read_json};
use serde::Serialize;

use rules::{LevelChoice, choose_level};
pub use rules::{PageLevel, is_stale};

use super::extract::cut;
use super::phrases::PaddedQuery;
use super::ranking::{Ranked, order, scores};
use super::render::{block, line, when};
use super::trace::Trace;
use super::{Retrieval, RetrievalError, SearchRequest};

/// Turns whose captures are considered if no turn is named …
const RECENT: u64 = 20;
/// … and hits in the text of pages.
const HITS: u64 = 20;
/// Tokens of a page whose text is given whole, whatever is asked about it.
pub const SMALL_PAGE: usize = 400;
/// Share of a query's words that title and address must contain for a page that was not referred to.
const NAMED: f64 = 0.34;
/// What precedes the text of a small page.
pub const WHOLE: &str = "The whole text of the page:";

/// A captured page that a query speaks of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundCapture {
    /// The page's address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// `turn_000847/webpage_cache/reddit_abc123/` (R1-5.3).
    pub path: String,
    /// The turn that captured it.
    pub turn: u32,
    /// Its manifest.
    pub manifest: VaultPath,
    /// When it was captured.
    pub captured_at: DocumentTime,
    /// Share of the query's words that its title and address contain.
    pub score: f64,
}

/// What a captured page offers for a query (R1-6.10 to R1-6.20): an answer with its age, or where to look instead.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageAnswer {
    /// Where the answer can be found.
    pub level: PageLevel,
    /// The captured answer, cut to the cap of a linked document (R1-8.11).
    pub text: String,
    /// The page's own address, for going there without a search (R1-5.7).
    pub source_url: String,
    /// When it was captured.
    pub captured_at: DocumentTime,
    /// Seconds since then.
    pub age_seconds: u64,
    /// Whether changeable content, such as a price, may have changed since (C106).
    pub may_be_stale: bool,
    /// The file that answers: manifest, data or text.
    pub document: VaultPath,
    /// The text of a small page, unless `text` is that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub small_page: Option<SmallPage>,
    /// Why this level.
    pub why: String,
}

/// The whole text of a page of at most [`SMALL_PAGE`] tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SmallPage {
    /// Its `page_content.md`.
    pub document: VaultPath,
    /// The text as captured.
    pub text: String,
}

impl PageAnswer {
    /// The captured answer within `max` tokens, without the text of a small page; `None` if only the live page, or another one, can answer.
    pub fn captured(&self, max: usize, counter: &Counter) -> Option<String> {
        let answers = matches!(self.level, PageLevel::Manifest | PageLevel::Data | PageLevel::Content);
        let text = || cut(&self.text, max, counter, self.document.as_str()).0;
        answers.then(text).filter(|text| !text.trim().is_empty())
    }

    /// The page as a recipe reads it, with its level and age.
    pub fn to_text(&self) -> String {
        let stale =
            if self.may_be_stale { "\nstale: prices and availability may have changed since" } else { "" };
        let whole = self.small_page.as_ref().map(|page| format!("\n{WHOLE}\n{}\n", page.text));
        let text = format!(
            "level: {}\nwhy: {}\nsource_url: {}\ncaptured: {}{stale}\npath: {}\n\n{}\n{}",
            self.level.as_str(),
            line(&self.why),
            line(&self.source_url),
            when(self.captured_at, self.age_seconds),
            self.document,
            self.text,
            whole.unwrap_or_default(),
        );
        block(&text)
    }
}

/// The capture that `hint` names best; see [`Retrieval::capture`]. Only turns below `before` count.
pub(super) fn capture(
    retrieval: &Retrieval<'_>,
    turn: Option<u32>,
    hint: &str,
    before: u32,
) -> Result<Option<FoundCapture>, RetrievalError> {
    let mut rows = candidates(retrieval, turn, hint)?;
    rows.retain(|row| row.turn < before);
    // A page named by its address is that page and no other, however similar another is.
    if addresses(hint).next().is_some() {
        rows.retain(|row| {
            let mut known = [&row.url].into_iter().chain(&row.redirected_from);
            known.any(|known| addresses(hint).any(|address| same_page(address, known)))
        });
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let texts: Vec<String> = rows.iter().map(|row| format!("{}\n{}", row.title, row.url)).collect();
    let ranked = scores(hint, retrieval.now, texts.iter().map(|text| Ranked::alone(text)));
    // The turn is named, so its capture is meant regardless of the title.
    let best = order(&ranked).first().copied().or(turn.map(|_| 0));
    Ok(best.map(|at| found(&rows[at], PaddedQuery::new(&texts[at]).shared(&PaddedQuery::new(hint)))))
}

/// Captures of a turn, or of the newest turns and of pages that contain words of the hint, newest first.
fn candidates(
    retrieval: &Retrieval<'_>,
    turn: Option<u32>,
    hint: &str,
) -> Result<Vec<CaptureRow>, RetrievalError> {
    let documents = retrieval.documents;
    if turn.is_some() {
        return Ok(documents.catalog().captures(turn, None)?);
    }
    let mut rows = match addresses(hint).next() {
        Some(url) => documents.catalog().captures(None, Some(url))?,
        None => Vec::new(),
    };
    let mut turns: Vec<u32> =
        documents.catalog().recent_turns(RECENT, None, None)?.iter().map(|row| row.number).collect();
    turns.extend(retrieval.search(hint, &[DocumentKind::Page], HITS)?.iter().filter_map(|hit| hit.turn));
    turns.sort_unstable();
    turns.dedup();
    for turn in turns.into_iter().rev() {
        rows.extend(documents.catalog().captures(Some(turn), None)?);
    }
    rows.sort_by(|a, b| b.captured_at.cmp(&a.captured_at).then(b.turn.cmp(&a.turn)).then(a.url.cmp(&b.url)));
    // Only the newest visit to each page counts, and what earlier ones led through leads to it too.
    let mut newest: BTreeMap<String, usize> = BTreeMap::new();
    let mut pages: Vec<CaptureRow> = Vec::new();
    for row in rows {
        match newest.get(&row.url).and_then(|at| pages.get_mut(*at)) {
            Some(page) => page.redirected_from.extend(row.redirected_from),
            None => {
                newest.insert(row.url.clone(), pages.len());
                pages.push(row);
            }
        }
    }
    Ok(pages)
}

/// The addresses that a text names, without the signs of its sentences.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let sign = |char: char| "<>()[]{}\"'`.,;:!?".contains(char);
    text.split_whitespace().map(move |word| word.trim_matches(sign)).filter(|word| word.contains("://"))
}

/// Whether two addresses are those of one page: scheme, `www.`, a fragment and a last slash do not count.
fn same_page(one: &str, other: &str) -> bool {
    let plain = |url: &str| {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let rest = rest.split('#').next().unwrap_or_default().trim_end_matches('/');
        rest.strip_prefix("www.").unwrap_or(rest).to_lowercase()
    };
    plain(one) == plain(other)
}

fn found(row: &CaptureRow, score: f64) -> FoundCapture {
    let folder = row.manifest.folder();
    let mut parts = folder.rsplit('/');
    let (slug, cache, turn) = (parts.next(), parts.next(), parts.next());
    FoundCapture {
        url: row.url.clone(),
        title: row.title.clone(),
        path: [turn, cache, slug].map(Option::unwrap_or_default).join("/") + "/",
        turn: row.turn,
        manifest: row.manifest.clone(),
        captured_at: row.captured_at,
        score,
    }
}

/// What a captured page offers to the query: the one that the reference names, or one whose title and address hold
/// much of the query (R1-6.3).
pub(super) async fn find(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    trace: &mut Trace,
) -> Result<Option<PageAnswer>, RetrievalError> {
    let capture = match request.reference {
        Some(reference) => referenced(retrieval, request, reference)?,
        None => capture(retrieval, None, request.query, request.before)?,
    };
    let Some(capture) = capture else {
        let choice = choose_level(request.query, None);
        return match request.reference {
            Some(reference) => unvisited(retrieval, request, reference, choice, trace),
            None => Ok(None),
        };
    };
    if request.reference.is_none() && capture.score < NAMED {
        let why = "nobody referred to the page, and its title hardly names what is asked";
        trace.unused("capture", capture.manifest.as_str(), capture.score, why);
        return Ok(None);
    }
    let text = match retrieval.documents.files().read_text(&capture.manifest) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => {
            trace.unused("capture", capture.manifest.as_str(), capture.score, error.to_string());
            return Ok(None);
        }
    };
    let Some(manifest) = read_json::<Manifest>(&text).value else {
        let why = "the manifest cannot be read; repair it by hand, or visit the page again";
        trace.unused("capture", capture.manifest.as_str(), capture.score, why);
        return Ok(None);
    };
    let answer = answer::write(retrieval, request.query, &capture, &manifest).await;
    let tokens = retrieval.counter.count(&answer.to_text());
    trace.used("capture", answer.document.as_str(), capture.score, tokens, answer.why.as_str());
    Ok(Some(answer))
}

/// The capture that a reference names: by its path, its turn and address, its address alone, or its turn and title.
fn referenced(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    reference: &ContentReference,
) -> Result<Option<FoundCapture>, RetrievalError> {
    let documents = retrieval.documents;
    let earlier = |rows: Vec<CaptureRow>| rows.into_iter().find(|row| row.turn < request.before);
    if let Some((turn, slug)) = reference.capture() {
        let folder = format!("/webpage_cache/{slug}");
        let mut rows = documents.catalog().captures(Some(turn), None)?;
        rows.retain(|row| row.manifest.folder().ends_with(&folder));
        if let Some(row) = earlier(rows) {
            return Ok(Some(found(&row, 1.0)));
        }
    }
    if let Some(url) = reference.source_url.as_deref() {
        // The newest visit is the most complete; the turn only identifies the page, whose address may be another one.
        if let Some(row) = earlier(documents.catalog().captures(None, Some(url))?) {
            let newest = earlier(documents.catalog().captures(None, Some(&row.url))?);
            return Ok(Some(found(newest.as_ref().unwrap_or(&row), 1.0)));
        }
    }
    let hint = format!("{} {}", reference.title, reference.site);
    let of_turn = match reference.source_turn {
        Some(_) if reference.source_url.is_none() => {
            capture(retrieval, reference.source_turn, &hint, request.before)?
        }
        _ => None,
    };
    Ok(of_turn)
}

/// A page that was referred to and not captured: its address if it is known, so that nothing need be searched
/// (R1-5.7), as the turn that saw it tells it.
fn unvisited(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    reference: &ContentReference,
    choice: LevelChoice,
    trace: &mut Trace,
) -> Result<Option<PageAnswer>, RetrievalError> {
    let url = reference.source_url.as_deref().filter(|url| !url.is_empty());
    let number = reference.source_turn.filter(|turn| *turn < request.before);
    let turn = number.map(|turn| retrieval.documents.catalog().turn(turn)).transpose()?.flatten();
    let turn = turn.filter(|turn| turn.status != TurnStatus::Failed);
    let (Some(url), Some(turn)) = (url, turn) else {
        trace.unused("capture", url.unwrap_or(&reference.title), 0.0, choice.why);
        return Ok(None);
    };
    let age = retrieval.age(turn.created_at);
    let answer = PageAnswer {
        level: PageLevel::Navigate,
        text: reference.prior_findings.clone(),
        source_url: url.to_owned(),
        captured_at: turn.created_at,
        age_seconds: age,
        may_be_stale: is_stale(turn.created_at, retrieval.now),
        document: turn.context,
        small_page: None,
        why: "its address is known and it was not captured".to_owned(),
    };
    let tokens = retrieval.counter.count(&answer.to_text());
    trace.used("capture", answer.document.as_str(), 1.0, tokens, answer.why.as_str());
    Ok(Some(answer))
}
