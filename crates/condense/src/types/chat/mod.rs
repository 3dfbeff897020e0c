//! Conversations: keeps the first request and the newest turns, further requests, decisions and failures; of the rest,
//! code, finished and remaining work come before small talk and before output that repeats itself.
//!
//! Knows turns and how to weigh sentences; `messages` knows how turns are written, `cues` which words matter.

mod cues;
mod messages;
mod quoted;
mod significant;

use std::ops::Range;

use self::messages::{ChatMessage, ChatTranscript, Speaker, Writing};
use self::significant::Significant;
use crate::analysis::template;
use crate::engine::condenser::{Condenser, Divide};
use crate::engine::draft::ExtractionOptions;
use crate::engine::extractive::Extractive;
use crate::engine::job::Job;
use crate::engine::units::{LONGEST_UNIT, TextPiece, Tier, split_long};
use crate::types::markdown;
use crate::types::plain::{self, Plain};
use crate::types::prose::sentences;
use larder_text::transcript;

/// The condenser of conversations.
pub(crate) const CONDENSER: &dyn Condenser = &Extractive(Chat);

/// The shares of the target, in per cent, reserved for the first request and the newest turns.
const FIRST_REQUEST_SHARE: usize = 20;
const NEWEST_SHARE: usize = 35;
/// The weight of a turn by speaker.
const USER: f32 = 2.0;
const ASSISTANT: f32 = 1.0;
const TOOL: f32 = 0.7;
/// The weight of the oldest and of the newest turn; linear in between.
const OLDEST: f32 = 0.6;
const NEWEST: f32 = 2.0;
/// The weight of the first request if it does not fit whole.
const REQUEST: f32 = 4.0;
/// The weight of a call: its result, and what the assistant says of it, tell more than its arguments.
const CALL: f32 = 0.2;
/// The weight of a failure that the assistant quotes later.
const QUOTED: f32 = 8.0;

/// Whether most of `text` is messages with known roles.
pub(crate) fn looks_like(text: &str) -> bool {
    messages::is_transcript(text)
}

struct Chat;

impl Divide for Chat {
    fn units(&self, job: &Job<'_>) -> Vec<TextPiece> {
        let text = job.request.text;
        let transcript = ChatTranscript::of(text);
        if transcript.messages.is_empty() {
            return Plain.units(job);
        }
        let (request, newest) = protected(job, &transcript);
        let quoted = match transcript.writing {
            Writing::Json => Vec::new(),
            Writing::Lines | Writing::Transcript => quoted::failures(text, &transcript.messages),
        };
        let mut pieces = Vec::new();
        let (mut significant, mut tool_messages) = (Significant::new(job), Vec::new());
        let first = transcript.messages.first().map_or(0, |message| message.range.start);
        divide(text, 0..first, transcript.writing, &mut pieces);
        let mut at = first;
        for (index, message) in transcript.messages.iter().enumerate() {
            let from = pieces.len();
            message_pieces(text, message, transcript.writing, &mut pieces);
            let is_request = transcript.first_request() == Some(index);
            let first = index >= newest || is_request && request;
            let turn = worth(index, &transcript) * if is_request { REQUEST } else { 1.0 };
            for piece in &mut pieces[from..] {
                let quoted = quoted::overlaps(&quoted, &piece.range);
                piece.tier = if first || quoted { Tier::First } else { piece.tier };
                piece.prior *=
                    turn * cues::worth(&text[piece.range.clone()]) * if quoted { QUOTED } else { 1.0 };
            }
            if message.role == Speaker::Tool {
                tool_messages.push(from..pieces.len());
            }
            significant.mark(job, message, from..pieces.len(), &pieces);
            at = message.range.end;
        }
        significant.reserve(job, &mut pieces);
        weigh_repeats(text, &tool_messages, &mut pieces);
        divide(text, at..text.len(), transcript.writing, &mut pieces);
        pieces
    }

    fn options(&self, job: &Job<'_>) -> ExtractionOptions {
        let messages = ChatTranscript::of(job.request.text).messages.into_iter();
        let names = ("message", messages.map(|message| (message.number, message.range)).collect());
        ExtractionOptions { salient_first: false, names: Some(names), ..ExtractionOptions::default() }
    }
}

/// Whether the first request fits into its share, and the first of the newest messages that do.
fn protected(job: &Job<'_>, transcript: &ChatTranscript) -> (bool, usize) {
    let (text, counter, target) = (job.request.text, job.request.counter, job.request.target);
    let fits = |range: &Range<usize>, room| counter.count_up_to(&text[range.clone()], room);
    let request = transcript.first_request().and_then(|index| transcript.messages.get(index));
    let request =
        request.is_some_and(|message| fits(&message.range, target * FIRST_REQUEST_SHARE / 100).is_some());
    let mut room = target * NEWEST_SHARE / 100;
    let mut newest = transcript.messages.len();
    for message in transcript.messages.iter().rev() {
        let Some(tokens) = fits(&message.range, room) else { break };
        room -= tokens;
        newest -= 1;
    }
    (request, newest)
}

fn worth(index: usize, transcript: &ChatTranscript) -> f32 {
    let by = match transcript.messages[index].role {
        Speaker::User | Speaker::Other => USER,
        Speaker::System | Speaker::Assistant => ASSISTANT,
        Speaker::Tool => TOOL,
    };
    let last = transcript.messages.len().saturating_sub(1).max(1);
    by * (OLDEST + (NEWEST - OLDEST) * index as f32 / last as f32)
}

/// Lowers the weight of lines in tool results that a newer one repeats but for numbers.
fn weigh_repeats(text: &str, tool_messages: &[Range<usize>], pieces: &mut [TextPiece]) {
    let mut seen = hashbrown::HashSet::new();
    for at in tool_messages.iter().rev().flat_map(|message| message.clone().rev()) {
        if !seen.insert(template(&text[pieces[at].range.clone()])) {
            pieces[at].prior *= plain::REPEATED;
        }
    }
}

/// A message's label and its content, which is not shown without the label.
fn message_pieces(text: &str, message: &ChatMessage, writing: Writing, pieces: &mut Vec<TextPiece>) {
    let from = pieces.len();
    divide(text, message.range.start..message.label.start, writing, pieces);
    let label = pieces.len();
    pieces.push(TextPiece { divisible: false, ..TextPiece::plain(message.label.clone(), 1.0) });
    divide(text, message.label.end..message.range.end, writing, pieces);
    for (index, piece) in pieces.iter_mut().enumerate().skip(from) {
        if index != label && piece.needs[0].is_none() {
            piece.needs[0] = Some(label);
        }
    }
}

/// Pieces that tile `range`: blocks of Markdown, or the lines and sentences of a JSON string.
fn divide(text: &str, range: Range<usize>, writing: Writing, pieces: &mut Vec<TextPiece>) {
    if range.is_empty() {
        return;
    }
    match writing {
        Writing::Lines => markdown::divide(text, range, pieces),
        Writing::Transcript => {
            let mut start = range.start;
            for line in text[range].split_inclusive('\n') {
                let prior = if line.starts_with(transcript::CALL) { CALL } else { 1.0 };
                let parts = plain::lines(text, start..start + line.len()).into_iter();
                pieces.extend(parts.map(|part| TextPiece::plain(part, prior)));
                start += line.len();
            }
        }
        Writing::Json => {
            let lines = escaped_lines(text, range);
            let short = |line: Range<usize>| {
                if line.len() > LONGEST_SENTENCES { sentences(text, line) } else { vec![line] }
            };
            let parts = lines.into_iter().flat_map(short);
            pieces.extend(
                parts
                    .flat_map(|part| split_long(text, part, LONGEST_UNIT))
                    .map(|part| TextPiece::plain(part, 1.0)),
            );
        }
    }
}

/// Longer lines are divided at sentences, in bytes.
const LONGEST_SENTENCES: usize = 200;
/// Shorter lines are joined with the next one, in bytes.
const SHORTEST_LINE: usize = 24;

/// The lines of a JSON string, divided at escaped `\n`, and of the surrounding JSON; they tile `range`.
fn escaped_lines(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut lines, mut start, mut at) = (Vec::new(), range.start, range.start);
    while at < range.end {
        let skip = match bytes[at] {
            b'\\' => 2,
            _ => 1,
        };
        let ends = bytes[at] == b'\n' || bytes[at] == b'\\' && bytes.get(at + 1) == Some(&b'n');
        at = (at + skip).min(range.end);
        if ends && at - start >= SHORTEST_LINE && text.is_char_boundary(at) {
            lines.push(start..at);
            start = at;
        }
    }
    if start < range.end {
        lines.push(start..range.end);
    }
    lines
}

#[cfg(test)]
#[path = "../chat_tests.rs"]
mod tests;
