//! Research notes: claims stay with their sources, actionable statements precede background, and advertising is
//! dropped first.
//!
//! Knows how notes cite sources and what advertising sounds like; blocks are handled by Markdown.

use hashbrown::HashMap;

use crate::engine::condenser::Divide;
use crate::engine::job::Job;
use crate::engine::units::{TextPiece, Tier};
use crate::types::markdown;

/// The factor by which a citation raises a claim's weight.
const CITED: f32 = 1.8;
/// Longer paragraphs are more than a source.
const LONGEST_SOURCE: usize = 400;
/// Promotional phrases, in lower case.
const PRAISE: [&str; 40] = [
    "best-in-class",
    "world-class",
    "state-of-the-art",
    "cutting-edge",
    "game-chang",
    "revolutionary",
    "unparalleled",
    "unbeatable",
    "unmatched",
    "must-have",
    "must have",
    "next-level",
    "next level",
    "amazing",
    "stunning",
    "incredible",
    "breathtaking",
    "effortless",
    "seamless",
    "elevate",
    "unleash",
    "supercharge",
    "don't miss",
    "don’t miss",
    "hurry",
    "act now",
    "buy now",
    "shop now",
    "order now",
    "order today",
    "limited time",
    "limited-time",
    "while supplies last",
    "you deserve",
    "you'll love",
    "you’ll love",
    "perfect for everyone",
    "look no further",
    "takes your",
    "sign up today",
];
/// Phrases about availability and failure, in lower case, which come first (R0-23.9).
#[rustfmt::skip]
const STATUS: [&str; 22] = [
    "in stock", "in-stock", "out of stock", "out-of-stock", "sold out", "unavailable", "available",
    "availability", "back-order", "backorder", "pre-order", "preorder", "discontinued", "ships in",
    "delivery", "lead time", "error", "failed", "could not", "timed out", "captcha", "access denied",
];
/// Labels of a line that names the source of the claim above it, in lower case.
const SOURCE_LABELS: [&str; 10] = [
    "source",
    "sources",
    "via",
    "ref",
    "reference",
    "url",
    "link",
    "cited from",
    "seen at",
    "retrieved from",
];

pub(crate) struct Research;

impl Divide for Research {
    fn units(&self, job: &Job<'_>) -> Vec<TextPiece> {
        let text = job.request.text;
        let mut pieces = Vec::new();
        markdown::divide(text, 0..text.len(), &mut pieces);
        weigh(text, &mut pieces);
        bind(text, &mut pieces);
        pieces
    }

    fn parses(&self, text: &str) -> bool {
        Divide::parses(&markdown::Markdown, text)
    }
}

fn weigh(text: &str, pieces: &mut [TextPiece]) {
    for piece in pieces.iter_mut().filter(|piece| piece.divisible) {
        let lower = text[piece.range.clone()].to_lowercase();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        if says(&PRAISE) {
            piece.tier = Tier::Last;
        } else if says(&STATUS) {
            piece.tier = Tier::Salient;
        }
    }
}

/// Makes a claim need its source, and a source its claim.
fn bind(text: &str, pieces: &mut [TextPiece]) {
    let free = |piece: &TextPiece| piece.divisible && piece.needs[1].is_none();
    let content = |piece: &TextPiece| {
        text[piece.range.clone()].trim_start_matches(|c: char| c.is_whitespace() || MARKUP.contains(&c))
    };
    let mut notes: HashMap<&str, usize> = HashMap::new();
    for (index, piece) in pieces.iter().enumerate() {
        if let Some(label) = note_label(content(piece)).filter(|_| free(piece)) {
            notes.entry(label).or_insert(index);
        }
    }
    for index in 0..pieces.len() {
        let piece = &pieces[index];
        if !free(piece) {
            continue;
        }
        let above = index
            .checked_sub(1)
            .filter(|&above| free(&pieces[above]) && pieces[above].needs[0] == piece.needs[0]);
        let source = piece.range.len() <= LONGEST_SOURCE && is_source(content(piece));
        let cited = cites(&text[piece.range.clone()])
            .find_map(|label| notes.get(label).copied())
            .filter(|&note| note != index);
        match (above, cited) {
            (Some(above), _) if source => {
                pieces[index].needs[1] = Some(above);
                pieces[index].divisible = false;
                pieces[above].needs[1] = Some(index);
                pieces[above].prior *= CITED;
            }
            (_, Some(note)) => {
                pieces[index].needs[1] = Some(note);
                pieces[index].prior *= CITED;
            }
            _ => {}
        }
    }
}

/// Signs that may precede the content of a line.
const MARKUP: [char; 7] = ['-', '*', '+', '>', '(', '_', '—'];

/// Whether a piece only names the source of the one above it.
fn is_source(content: &str) -> bool {
    let lower: String = content.chars().take(24).flat_map(char::to_lowercase).collect();
    let labelled = SOURCE_LABELS.iter().any(|label| {
        lower
            .strip_prefix(label)
            .is_some_and(|rest| rest.trim_start_matches(['*', '_']).starts_with([':', ' ']))
    });
    let addressed = content.contains("://");
    labelled && (addressed || lower.contains(':'))
        || lower.starts_with("http") && !content.trim().contains(' ')
}

/// The label of a footnote: `[3]: …`, `[3] https://…`, `[^a]: …`.
fn note_label(content: &str) -> Option<&str> {
    let (label, rest) = content.strip_prefix('[')?.split_once(']')?;
    let note = rest.starts_with(':') || rest.trim_start().starts_with("http");
    (note && is_label(label)).then_some(label)
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= 12
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'^' | b'-' | b'_'))
}

/// The labels that `text` cites: `[3]`, `[^a]`.
fn cites(text: &str) -> impl Iterator<Item = &str> {
    text.split('[').skip(1).filter_map(|after| {
        let (label, rest) = after.split_once(']')?;
        (is_label(label) && !rest.starts_with(['(', ':'])).then_some(label)
    })
}

#[cfg(test)]
#[path = "research_tests.rs"]
mod tests;
