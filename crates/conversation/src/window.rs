//! What of a session is sent verbatim, and that nothing of it is forgotten (C92, C93). Pure.
//!
//! Every message of the session is sent, lies below the watermark of the summary, or is withheld because a message asked
//! for that. Within a stage and between two watermarks the history only grows at its end.

use std::sync::Arc;

use larder_text::message::{Message, Role};

use crate::intent::{Found, MemoryIntent};
use crate::kind::{ConversationType, Stage, SummaryRules, WindowRules};

/// A message of a session as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastMessage {
    /// Its number in the conversation.
    pub number: u64,
    /// The participant, or the assistant.
    pub role: Role,
    /// The text.
    pub text: Arc<str>,
    /// Where the whole text can be read.
    pub pointer: String,
}

/// What becomes of a message of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// It is sent; one that is too long by its beginning and a pointer.
    Sent,
    /// It is in the summary, which is sent.
    Summarized,
    /// It is withheld, as the message asked.
    Withheld(MemoryIntent),
}

/// The history of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionWindow {
    /// The messages that are sent, in order.
    pub sent: Vec<Message>,
    /// What becomes of each message of the session.
    pub coverage: Vec<Coverage>,
}

/// What decides how much of a session is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryRules {
    /// The newest messages, which are always sent.
    pub protected: usize,
    /// Messages that are sent once there is a summary, counted from when it was written.
    pub wanted: usize,
    /// The newest messages that a summary leaves out.
    pub keep: usize,
    /// The most messages that are sent where an intent withholds the summary.
    pub without_summary: usize,
    /// Characters of a message.
    pub message_chars: usize,
}

impl HistoryRules {
    /// The rules of a stage, with the numbers for the window of the model.
    pub fn of(kind: &ConversationType, stage: &Stage, window: &WindowRules) -> Self {
        Self {
            protected: window.protected,
            wanted: stage.buffer_turns.saturating_mul(2).min(window.with_summary).max(window.protected),
            keep: kind.summary_in(stage).keep,
            without_summary: window.without_summary,
            message_chars: window.message_chars,
        }
    }
}

/// Chooses what of a session is sent. `covered` is how many of the messages the summary covers, from the first on.
pub fn choose(
    messages: &[PastMessage],
    covered: Option<usize>,
    rules: &HistoryRules,
    found: &Found,
) -> SessionWindow {
    let (from, before) = match found.memory.filter(|intent| intent.withholds()) {
        Some(intent) => {
            let kept = found.messages.unwrap_or(rules.without_summary);
            (messages.len().saturating_sub(kept), Coverage::Withheld(intent))
        }
        None => (first_sent(messages.len(), covered, rules), Coverage::Summarized),
    };
    let coverage = (0..messages.len()).map(|at| if at < from { before } else { Coverage::Sent }).collect();
    let sent = messages[from..].iter().map(|message| entry(message, rules.message_chars)).collect();
    SessionWindow { sent, coverage }
}

/// The first message that is sent. What no summary covers always is. Of what it covers, as much is sent as was wanted
/// when it was written, so that the first message stays the same until the next summary.
fn first_sent(messages: usize, covered: Option<usize>, rules: &HistoryRules) -> usize {
    let Some(covered) = covered else { return 0 };
    let from = covered.saturating_sub(rules.wanted.saturating_sub(rules.keep));
    from.min(messages.saturating_sub(rules.protected))
}

/// How many messages a summary should cover now, from the first on, if one is due: after `after_messages`, and again after `again_after`
/// new ones, or when the messages outside the kept tail that no summary covers have more than `after_tokens` tokens
/// (C94). `tokens` counts the tokens of a message.
pub fn summary_due(
    messages: &[PastMessage],
    covered: Option<usize>,
    rules: &SummaryRules,
    tokens: impl Fn(&PastMessage) -> usize,
) -> Option<usize> {
    let end = messages.len().saturating_sub(rules.keep);
    let open = messages.get(covered.unwrap_or(0)..end).filter(|open| !open.is_empty())?;
    let is_due = match covered {
        None => messages.len() >= rules.after_messages,
        Some(_) => open.len() >= rules.again_after,
    };
    let outside = || open.iter().map(tokens).fold(0, usize::saturating_add);
    let is_due = is_due || rules.after_tokens.is_some_and(|most| outside() > most);
    is_due.then_some(end)
}

/// A message as it enters the history, which is decided by its text alone and so never changes: whole, or its beginning
/// and a pointer to the rest.
pub fn entry(message: &PastMessage, chars: usize) -> Message {
    Message::text(message.role, shown(&message.text, &message.pointer, chars))
}

/// A text as it is sent: whole or, of a long one, its beginning and a pointer to the rest.
pub(crate) fn shown(text: &str, pointer: &str, chars: usize) -> String {
    let Some((cut, _)) = text.char_indices().nth(chars) else { return text.to_owned() };
    // Between words, unless no word ends nearby.
    let start = text[..cut].rfind(char::is_whitespace).filter(|space| space * 10 > cut * 9).unwrap_or(cut);
    format!("{}\n[… the rest of this message: {pointer}#B{start}-{}]", &text[..start], text.len())
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
