//! Claims: the sentences of an answer, each with the sentence of a cited passage that supports it, by shared words.

use std::ops::Range;

use larder_condense::rank::RankIndex;
use larder_text::pointer::Pointer;
use serde::Serialize;

use super::passages::Passages;
use super::sentences::sentences;
use larder_engine::executor::ResolvedCitation;
use larder_tools::figures;

/// Sentences of an answer that are grounded.
const MAX_CLAIMS: usize = 32;

/// A sentence of an answer and its source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroundedClaim {
    /// The sentence.
    pub text: String,
    /// The document.
    pub source: String,
    /// The bytes of the document that support it: a sentence of a cited passage, or the whole passage where no sentence
    /// shares a word with the claim.
    pub bytes: (usize, usize),
    /// The lines of these bytes, from 1, both included.
    pub lines: (usize, usize),
    /// Pointer to these bytes.
    pub pointer: Pointer,
    /// Whether the bytes share words with the claim, and the cited passages state or yield its numbers, dates and names. A
    /// claim without support is doubtful.
    pub supported: bool,
    /// The numbers, dates and names of the claim that the cited passages neither state nor yield.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unstated: Vec<String>,
}

impl GroundedClaim {
    /// What to add to a claim without support, in brackets; empty for one with support.
    pub fn doubt(&self) -> String {
        match self.unstated.as_slice() {
            _ if self.supported => String::new(),
            [] => " (its source does not support it)".to_owned(),
            values => format!(" (its source does not state {})", values.join(", ")),
        }
    }
}

/// A cited passage, or a sentence of one.
struct Ground {
    file: usize,
    bytes: Range<usize>,
    lines: (usize, usize),
}

/// Grounds every sentence of the answer to `question` in the passages that it cites. `pointer` mints pointers into a file.
pub(super) fn claims(
    (question, answer): (&str, &str),
    citations: &[ResolvedCitation],
    passages: &mut Passages,
    pointer: impl Fn(usize, Range<usize>) -> Option<Pointer>,
) -> Vec<GroundedClaim> {
    let cited: Vec<Ground> = citations.iter().filter_map(|citation| ground(citation, passages)).collect();
    let mut grounds = Vec::new();
    let mut known = format!("{question}\n\n");
    let mut index = RankIndex::default();
    for passage in &cited {
        let Some(text) = passages.library.text(passage.file) else { continue };
        known.extend([text.get(passage.bytes.clone()).unwrap_or_default(), "\n\n"]);
        for sentence in sentences(text.get(passage.bytes.clone()).unwrap_or_default()) {
            let bytes = passage.bytes.start + sentence.start..passage.bytes.start + sentence.end;
            let words = text.get(bytes.clone()).unwrap_or_default();
            let first = passage.lines.0 + breaks(text.get(passage.bytes.start..bytes.start));
            index.add(words);
            grounds.push(Ground { file: passage.file, bytes, lines: (first, first + breaks(Some(words))) });
        }
    }
    let mut found = Vec::new();
    for range in sentences(answer).into_iter().take(MAX_CLAIMS) {
        let text = &answer[range];
        let hit = index.search(text, 0).first().and_then(|hit| grounds.get(hit.passage));
        let Some(place) = hit.or(cited.first()) else { continue };
        let Some(pointer) = pointer(place.file, place.bytes.clone()) else { continue };
        let unstated = figures::unsupported(&known, text);
        found.push(GroundedClaim {
            text: text.to_owned(),
            source: passages.library.files[place.file].name.clone(),
            bytes: (place.bytes.start, place.bytes.end),
            lines: place.lines,
            pointer,
            supported: hit.is_some() && unstated.is_empty(),
            unstated,
        });
    }
    found
}

fn ground(citation: &ResolvedCitation, passages: &Passages) -> Option<Ground> {
    let (start, end) = citation.bytes?;
    Some(Ground { file: passages.library.find(&citation.source)?, bytes: start..end, lines: citation.lines? })
}

fn breaks(text: Option<&str>) -> usize {
    text.unwrap_or_default().bytes().filter(|&byte| byte == b'\n').count()
}
