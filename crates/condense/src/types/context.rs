//! `context.md`: §0 is verbatim, the headings stay, the newest section comes first, and the middle is condensed.
//!
//! Knows sections; the content of a section is Markdown.

use crate::engine::condenser::Divide;
use crate::engine::job::Job;
use crate::engine::units::{TextPiece, Tier};
use crate::types::markdown;
use larder_text::sections::{Section, SectionId, Sections};

/// Tokens for header, headings and markers that must remain if the newest section is protected.
const ROOM_FOR_FRAME: usize = 160;
/// The weight of a version that a later attempt has replaced.
const SUPERSEDED: f32 = 0.4;

/// Which section is protected in addition to §0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContextDoc {
    /// The current turn: protects the section written last.
    Current,
    /// An earlier turn: protects its answer.
    Prior,
}

impl Divide for ContextDoc {
    fn units(&self, job: &Job<'_>) -> Vec<TextPiece> {
        let text = job.request.text;
        let sections = Sections::parse(text);
        let mut pieces = Vec::new();
        markdown::divide(text, 0..sections.preamble.end, &mut pieces);
        if self == &Self::Prior && sections.sections.is_empty() {
            put_labelled_first(text, &mut pieces);
        }
        let protected = self.protected(&sections).filter(|section| fits(job, &sections, section));
        for section in &sections.sections {
            let from = pieces.len();
            divide_section(text, section, &mut pieces);
            let replaced = sections.newest(section.id) != Some(section);
            for (index, piece) in pieces[from..].iter_mut().enumerate() {
                piece.tier = match section.id {
                    id if !id.may_condense() => Tier::Required,
                    _ if index == 0 || protected == Some(section) => Tier::First,
                    _ => Tier::Plain,
                };
                piece.prior *= if replaced { SUPERSEDED } else { 1.0 };
            }
        }
        pieces
    }

    fn parses(&self, text: &str) -> bool {
        Divide::parses(&markdown::Markdown, text)
    }
}

impl ContextDoc {
    fn protected(self, sections: &Sections) -> Option<&Section> {
        match self {
            Self::Current => sections.sections.last(),
            Self::Prior => sections.newest(SectionId::Synthesis),
        }
    }
}

/// Labels of questions and answers, in lower case.
const LABELS: [&str; 10] =
    ["user", "query", "question", "intent", "request", "assistant", "response", "answer", "reply", "result"];

/// Gives precedence to labelled questions and answers in a turn without sections.
fn put_labelled_first(text: &str, pieces: &mut [TextPiece]) {
    for index in 0..pieces.len() {
        let line = text[pieces[index].range.clone()].lines().next().unwrap_or_default();
        let words =
            line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '*' | '-' | '>' | '_'));
        let label_end = words.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(words.len());
        let (label, rest) = words.split_at(label_end);
        let rest = rest.trim_start_matches(['*', '_', ' ']);
        if !LABELS.contains(&label.to_ascii_lowercase().as_str())
            || !(rest.is_empty() || rest.starts_with(':'))
        {
            continue;
        }
        pieces[index].tier = Tier::First;
        let alone = rest.trim_start_matches([':', '*', '_', ' ']).is_empty();
        if let Some(next) = pieces.get_mut(index + 1).filter(|_| alone) {
            next.tier = Tier::First;
        }
    }
}

/// The pieces of one section; the first is its heading, which all others need.
fn divide_section(text: &str, section: &Section, pieces: &mut Vec<TextPiece>) {
    let heading = pieces.len();
    let line = section.range.start..section.body.start;
    pieces.push(TextPiece { divisible: false, ..TextPiece::plain(line, 1.0) });
    markdown::divide(text, section.body.clone(), pieces);
    for piece in &mut pieces[heading + 1..] {
        if piece.needs[0].is_none() {
            piece.needs[0] = Some(heading);
        }
    }
}

/// Whether `section` fits next to §0 and leaves something for the rest.
fn fits(job: &Job<'_>, sections: &Sections, section: &Section) -> bool {
    let (text, counter) = (job.request.text, job.request.counter);
    let fixed = sections.sections.iter().filter(|fixed| !fixed.id.may_condense() || *fixed == section);
    let mut left = job.request.target.saturating_sub(ROOM_FOR_FRAME);
    for part in fixed {
        match counter.count_up_to(&text[part.range.clone()], left) {
            Some(tokens) => left -= tokens,
            None => return false,
        }
    }
    true
}
