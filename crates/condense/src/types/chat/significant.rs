//! Requests, decisions with their reasons, what the user rules out, fixes, open items, failures and reports of them, and
//! calls that changed something, of the messages that are not protected: a share of the target is reserved for each kind,
//! newest first, since a reader of the summary must know them whatever the query is.
//!
//! Knows pieces and what kind each is of; `cues` knows the words.

use std::ops::Range;

use hashbrown::HashSet;

use super::cues;
use super::messages::{ChatMessage, Speaker};
use super::quoted::overlaps;
use crate::engine::job::Job;
use crate::engine::units::{TextPiece, Tier};
use crate::types::logs::explains;
use larder_text::transcript;

/// The share of the target, in per cent, reserved for each kind; what one leaves, the next may use.
const SHARES: [(Kind, usize); 5] =
    [(Kind::Request, 8), (Kind::Decision, 16), (Kind::Failure, 10), (Kind::Change, 12), (Kind::Report, 6)];
/// Tokens of a speaker and a mark, which a piece on its own brings along.
const OVERHEAD: f32 = 24.0;
/// A longer message of the user is material, not a request, in bytes.
const LONGEST_REQUEST: usize = 600;
/// The same for one that says what must or must not be.
const LONGEST_RULES: usize = 2_000;
/// Maximum number of lines after a failure that are kept with it.
const MAX_DETAILS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Request,
    Decision,
    Failure,
    Change,
    Report,
}

/// The significant pieces of a conversation.
pub(super) struct Significant {
    /// Each with what belongs to it, as indices of pieces.
    found: Vec<(Kind, Range<usize>)>,
    errors: Vec<Range<usize>>,
}

impl Significant {
    pub(super) fn new(job: &Job<'_>) -> Self {
        Self { found: Vec::new(), errors: job.errors() }
    }

    /// Finds the significant ones among the pieces of a message.
    pub(super) fn mark(
        &mut self,
        job: &Job<'_>,
        message: &ChatMessage,
        of: Range<usize>,
        pieces: &[TextPiece],
    ) {
        let said = |at: usize| &job.request.text[pieces[at].range.clone()];
        let mut at = of.start;
        while at < of.end {
            let kind = self.kind(message, &pieces[at], said(at));
            let mut end = at + 1;
            match kind {
                Some(Kind::Failure | Kind::Report) => {
                    let details = (end..of.end).take(MAX_DETAILS);
                    end += details.take_while(|&next| explains(said(next))).count();
                }
                Some(Kind::Decision) if end < of.end && cues::completes(said(at), said(end)) => end += 1,
                _ => {}
            }
            self.found.extend(kind.map(|kind| (kind, at..end)));
            at = end;
        }
    }

    fn kind(&self, message: &ChatMessage, piece: &TextPiece, said: &str) -> Option<Kind> {
        if piece.range.start < message.label.end {
            return None;
        }
        if said.starts_with(transcript::CALL) {
            return cues::changes(said).then_some(Kind::Change);
        }
        match message.role {
            Speaker::Tool => overlaps(&self.errors, &piece.range).then_some(Kind::Failure),
            _ if cues::decides(said) => Some(Kind::Decision),
            Speaker::User | Speaker::Other if message.range.len() <= LONGEST_RULES && cues::rules(said) => {
                Some(Kind::Decision)
            }
            Speaker::User => {
                (message.range.len() <= LONGEST_REQUEST && cues::worth(said) >= 1.0).then_some(Kind::Request)
            }
            _ => overlaps(&self.errors, &piece.range).then_some(Kind::Report),
        }
    }

    /// Gives precedence to as many as their shares of the target hold.
    pub(super) fn reserve(&self, job: &Job<'_>, pieces: &mut [TextPiece]) {
        let mut room = 0.0;
        let mut known = HashSet::new();
        for (kind, share) in SHARES {
            room += (job.request.target * share / 100) as f32;
            for (_, range) in self.found.iter().rev().filter(|(of, _)| *of == kind) {
                let members = &mut pieces[range.clone()];
                let said = &job.request.text[members[0].range.start..members[range.len() - 1].range.end];
                let cost = OVERHEAD + said.len() as f32 * job.tokens_per_byte();
                if cost <= room && known.insert(said.trim()) {
                    room -= cost;
                    members.iter_mut().for_each(|piece| piece.tier = piece.tier.min(Tier::First));
                }
            }
        }
    }
}
