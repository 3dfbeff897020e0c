//! `context.md`: §0 stands as it is, the headings stay, the newest section goes first, the middle is condensed
//! (R0-22.1, R0-23.3 to R0-23.7, C27).
//!
//! Knows sections; what stands inside one is Markdown.

use super::frame::{Divide, Job};
use super::markdown;
use super::sections::{Section, SectionId, Sections};
use super::units::{Piece, Tier};

/// Tokens for header, headings and marks that must remain when the newest section is protected.
const ROOM_FOR_FRAME: usize = 160;
/// What a version counts for that a later attempt has replaced.
const SUPERSEDED: f32 = 0.4;

/// Which section is protected beside §0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContextDoc {
    /// The current turn: the section written last.
    Current,
    /// An earlier turn: its answer (R0-22.5).
    Prior,
}

impl Divide for ContextDoc {
    fn units(&self, job: &Job<'_>) -> Vec<Piece> {
        let text = job.request.text;
        let sections = Sections::of(text);
        let mut pieces = Vec::new();
        markdown::divide(text, 0..sections.preamble.end, &mut pieces);
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

/// Pieces of one section; the first is its heading and all others need it.
fn divide_section(text: &str, section: &Section, pieces: &mut Vec<Piece>) {
    let heading = pieces.len();
    let line = section.range.start..section.body.start;
    pieces.push(Piece { divisible: false, ..Piece::plain(line, 1.0) });
    markdown::divide(text, section.body.clone(), pieces);
    for piece in &mut pieces[heading + 1..] {
        if piece.needs[0].is_none() {
            piece.needs[0] = Some(heading);
        }
    }
}

/// Whether `section` fits beside §0 with something left for the rest.
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
