//! Content types, pins and condensing: how a text becomes smaller without being lost.
//!
//! Knows tokens and pointers; does not know recipes, documents' meaning, packs or models.
#![deny(missing_docs)]

mod abbreviation;
mod above;
mod beginning;
mod chat;
pub mod chunk;
mod code;
mod context_doc;
mod detect;
mod diff;
mod earlier;
mod explain;
mod extract;
mod fill;
mod frame;
mod html;
mod json;
mod logs;
mod markdown;
mod page;
pub mod pins;
mod plain;
mod prose;
pub mod rank;
mod render;
mod research;
pub mod retell;
mod retold;
mod score;
pub mod sections;
mod select;
mod steps;
mod structure;
mod table;
mod units;
mod wanted;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use self::abbreviation::is_abbreviation;
pub use self::above::Above;
pub use self::beginning::beginning;
pub use self::detect::detect;
pub use self::explain::{Explanation, Fate, Reason, Score, UnitReason};
use self::frame::{Condenser, Extractive, Job};
pub use self::html::{WebPage, web_page};
use larder_text::hash::ContentHash;
use larder_text::pointer::{Pointer, PointerKey};
use larder_text::tokens::Counter;

/// Raised whenever the same request would give another text; part of every key a condensed text is cached under.
pub const CONDENSER_VERSION: u32 = 2;

/// What a text is, which decides how it is condensed (R0-22.6, extended).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentType {
    /// `context.md`: numbered sections §0…§6.
    ContextDoc,
    /// `research.md`: findings with sources.
    ResearchDoc,
    /// A captured web page: zones with confidence.
    PageDoc,
    /// Output of a tool, of no more special type.
    ToolResult,
    /// An earlier turn.
    PriorTurn,
    /// Sentences and paragraphs.
    Prose,
    /// Markdown with headings.
    Markdown,
    /// Messages of a conversation.
    Chat,
    /// One JSON value, or one per line.
    Json,
    /// Lines written by a running program.
    Log,
    /// A unified diff.
    Diff,
    /// Source code of a programming language.
    Code,
    /// A web page's markup.
    Html,
    /// Rows of fields: CSV, TSV and the like.
    Table,
    /// Anything else, by lines.
    Generic,
}

/// One request to make a text smaller.
#[derive(Debug, Clone, Copy)]
pub struct CondenseRequest<'a> {
    /// The original.
    pub text: &'a str,
    /// What it is.
    pub content_type: ContentType,
    /// Tokens the result may have at most, markers and header included.
    pub target: usize,
    /// The question in view; units that answer it are kept first.
    pub query: Option<&'a str>,
    /// Spans that must survive byte for byte, or the request is refused.
    pub pins: &'a [String],
    /// Who counts.
    pub counter: &'a Counter,
    /// Mints the pointer that leads back to the original.
    pub key: &'a PointerKey,
}

/// What the reader of a condensed text sees and knows beside it.
#[derive(Debug, Clone, Copy, Default)]
pub struct InView<'a> {
    /// Stretches of the text that stand in what the reader sees before it, sorted and apart: they are not shown again,
    /// and the mark in their place says so.
    pub above: &'a [Range<usize>],
    /// The reader knows what marks mean and how to read on: a header only gives the pointer.
    pub marks_known: bool,
    /// What is known of the text already, and is not worked out again.
    pub known: Option<Known>,
    /// Nobody asks what became of telling details: [`Condensed::probes`] stays empty.
    pub unprobed: bool,
}

/// What a caller knows of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its hash.
    pub hash: ContentHash,
    /// Its tokens; about, where they are many times the target.
    pub tokens: usize,
}

impl Known {
    /// Works it out.
    fn of(request: &CondenseRequest<'_>) -> Self {
        let hash = ContentHash::of(request.text.as_bytes());
        Self { hash, tokens: request.counter.count(request.text) }
    }
}

/// What a gap leaves out, counted in which unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Lines, from 1.
    Line,
    /// Bytes, from 0.
    Byte,
}

/// A stretch of the original that the condensed text does not show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// In what `range` is counted.
    pub unit: Unit,
    /// First and last unit, both included, for lines; start and end, the end excluded, for bytes.
    pub range: (usize, usize),
    /// How many units are left out.
    pub count: usize,
    /// Gives exactly the bytes of this gap back.
    pub pointer: Pointer,
    /// The same stretch in bytes of the original. Gaps and shown bytes tile the original.
    pub bytes: Range<usize>,
}

/// What became of the distinct numbers, paths, URLs, hashes, ids and error lines of the original.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probes {
    /// Stand in the condensed text.
    pub kept: usize,
    /// Stand in bytes that the pointer of a gap, or the text's own, gives back.
    pub recoverable: usize,
    /// In neither. Always 0: what is shown, told and left out tiles the original, or the condensation was refused.
    pub lost: usize,
}

/// A text made smaller, with the way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condensed {
    /// What the model reads: header, kept text, marked gaps.
    pub text: String,
    /// Tokens of `text`, as charged.
    pub tokens: usize,
    /// Tokens of the original, as charged.
    pub original_tokens: usize,
    /// As what it was condensed.
    #[serde(rename = "type")]
    pub content_type: ContentType,
    /// Leads to the whole original.
    pub pointer: Pointer,
    /// What is not shown, in order.
    pub gaps: Vec<Gap>,
    /// What became of the telling details.
    pub probes: Probes,
    /// The model that wrote it, unless it was made by rule.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub author: Option<Author>,
}

/// The model that wrote a condensed text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// Its name in the model table.
    pub model: String,
    /// The recipe it followed: `category/name`.
    pub recipe: String,
    /// The recipe's version.
    pub version: String,
}

/// Why a text could not be condensed to its target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CondenseError {
    /// What must stand byte for byte is itself larger than the target.
    #[error("pins and markers need {needed} tokens, the target is {target}; raise the target or pin less")]
    PinsExceedTarget {
        /// Tokens that pins, header and gap markers need.
        needed: usize,
        /// Tokens allowed.
        target: usize,
    },
    /// A required pin does not stand in the original.
    #[error("the pin {pin:?} does not stand in the text")]
    PinAbsent {
        /// The pin.
        pin: String,
    },
}

/// Makes a text smaller so that it meets the target; a text that meets it already is given back as it is.
///
/// The result is at most `target` tokens, holds every pin and every pointer of ours that stood in the text, and says
/// where what it leaves out can be read. It is a pure function of the request.
///
/// # Errors
/// A pin that does not stand in the text; a target below what pins, pointers and marks need, with the needed number.
pub fn condense(request: &CondenseRequest<'_>) -> Result<Condensed, CondenseError> {
    condense_in_view(request, InView::default())
}

/// As [`condense`], for a reader with something in view. Where part of the text stands above, the rest is shown as it
/// is, whatever its type.
///
/// # Errors
/// As [`condense`].
pub fn condense_in_view(request: &CondenseRequest<'_>, view: InView<'_>) -> Result<Condensed, CondenseError> {
    run(request, view, false).map(|(condensed, _)| condensed)
}

/// Condenses and says of every unit why it is shown or not, and what `more` tokens beyond the target would let in.
///
/// The text is the one that [`condense`] gives; what further tokens would let in is read from a second condensation
/// at the larger target.
///
/// # Errors
/// As [`condense`].
pub fn explain(request: &CondenseRequest<'_>, more: usize) -> Result<Explanation, CondenseError> {
    let (condensed, units) = run(request, InView::default(), true)?;
    let larger = CondenseRequest { target: request.target.saturating_add(more), ..*request };
    let further = explain::beyond(&condensed.gaps, &condense(&larger)?.gaps);
    Ok(Explanation { condensed, units, more, further })
}

/// The condensed text and, if asked for, the reasons.
fn run(
    request: &CondenseRequest<'_>,
    view: InView<'_>,
    reasons: bool,
) -> Result<(Condensed, Vec<UnitReason>), CondenseError> {
    if let Some(pin) = request.pins.iter().find(|pin| !request.text.contains(pin.as_str())) {
        return Err(CondenseError::PinAbsent { pin: pin.clone() });
    }
    let known = view.known.unwrap_or_else(|| Known::of(request));
    let original_tokens = known.tokens;
    let job = Job::new(request, known).in_view(view);
    if original_tokens <= request.target && view.above.is_empty() {
        let units = if reasons { explain::of_whole(&job) } else { Vec::new() };
        return Ok((whole(&job), units));
    }
    match shortened(&job, reasons) {
        Err(CondenseError::PinsExceedTarget { .. }) if !job.marks.is_empty() => {
            shortened(&job.without_marks(), reasons)
        }
        other => other,
    }
}

fn shortened(job: &Job<'_>, reasons: bool) -> Result<(Condensed, Vec<UnitReason>), CondenseError> {
    let attempt = |condenser: &'static dyn Condenser| {
        let (draft, units) =
            if reasons { condenser.explain(job)? } else { (condenser.condense(job)?, Vec::new()) };
        Ok(frame::proved(job, condenser, draft).map(|condensed| (condensed, units)))
    };
    let condenser = if job.view.above.is_empty() {
        condenser_for(job.request.content_type, job.request.text)
    } else {
        PLAIN
    };
    if let Ok(proved) = attempt(condenser)? {
        return Ok(proved);
    }
    attempt(PLAIN)?.map_err(|_| CondenseError::PinsExceedTarget {
        needed: job.original_tokens,
        target: job.request.target,
    })
}

/// The structure that a text has by its own bytes, if it has one: such a text is told in other words when it is
/// condensed, any other is shown in parts.
pub fn structure_of(text: &str) -> Option<ContentType> {
    structure::of(text)
}

/// The smallest target at which one of every kind of thing in the text still stands: a line of each template of a log,
/// the name of each file of a diff. `None` where the type has no such kinds. The request's target is not read.
pub fn essential(request: &CondenseRequest<'_>) -> Option<usize> {
    let known = Known::of(request);
    let needed = condenser_for(request.content_type, request.text).essential(&Job::new(request, known))?;
    Some(needed.min(known.tokens))
}

const PLAIN: &dyn Condenser = &Extractive(plain::Plain);

/// What says only where a text comes from (a tool, a page) is condensed by the structure it has.
fn condenser_for(content_type: ContentType, text: &str) -> &'static dyn Condenser {
    match content_type {
        ContentType::ContextDoc => &Extractive(context_doc::ContextDoc::Current),
        ContentType::PriorTurn => &Extractive(context_doc::ContextDoc::Prior),
        ContentType::Prose => &Extractive(prose::Prose),
        ContentType::Markdown => &Extractive(markdown::Markdown),
        ContentType::ResearchDoc => &Extractive(research::Research),
        ContentType::PageDoc => page::CONDENSER,
        ContentType::Chat => chat::CONDENSER,
        ContentType::Json => json::CONDENSER,
        ContentType::Log => logs::CONDENSER,
        ContentType::Diff => diff::CONDENSER,
        ContentType::Code => code::CONDENSER,
        ContentType::Html => html::CONDENSER,
        ContentType::Table => table::CONDENSER,
        ContentType::ToolResult | ContentType::Generic => match structure::of(text) {
            Some(structure) => condenser_for(structure, text),
            None => PLAIN,
        },
    }
}

/// The original, unchanged.
fn whole(job: &Job<'_>) -> Condensed {
    let text = job.request.text;
    Condensed {
        text: text.to_owned(),
        tokens: job.original_tokens,
        original_tokens: job.original_tokens,
        content_type: job.request.content_type,
        pointer: Pointer::whole(job.id.clone()),
        gaps: Vec::new(),
        probes: job.probes(std::slice::from_ref(&(0..text.len())), text),
        author: None,
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
