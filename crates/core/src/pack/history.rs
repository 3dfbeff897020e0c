//! Deciding the messages of a conversation that is sent as it is, with only some texts replaced: the gateway's way
//! into the packer. Owns what a message is there, the forms in which it can stand, and the mark of what is left out.
//!
//! Does not know settings, models or wire formats. What a message becomes follows from what stands before it alone, so a
//! history that grows keeps what was decided.

use std::fmt::Write;
use std::sync::Arc;

use super::choose_messages::Hold;
use super::making::Making;
use super::memo::Memo;
use super::receipt::{Epoch, Original, OriginalText, Rendition};
use super::render::left_out_mark;
use super::slot::Overflow;
use super::watermark::{self, Decided, Marks, Ties};
use larder_condense::Gap;
use larder_text::hash::ContentHash;
use larder_text::message::{Message, Role};
use larder_text::pointer::{Pointer, PointerKey};
use larder_text::tokens::Counter;

/// What may become of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stands byte for byte.
    Verbatim,
    /// It stands as it is, or goes with its group where the hard limit forces it.
    Kept,
    /// A tool result: condensed when it enters, later pointed at.
    Result {
        /// It reports a failure, so it stands whole as far as it fits.
        is_error: bool,
    },
}

/// What the model asks of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The call's id.
    pub id: &'a str,
    /// The tool.
    pub name: &'a str,
    /// The arguments, as JSON text.
    pub arguments: &'a str,
}

/// The call that a result answers.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The message that it stands in.
    pub by: usize,
    /// The call.
    pub call: Call<'a>,
}

/// One message that is decided.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// Who speaks.
    pub role: Role,
    /// The text that may be replaced, whole.
    pub text: &'a str,
    /// The hash of the text.
    pub hash: ContentHash,
    /// Tokens of the text.
    pub tokens: usize,
    /// Tokens that stand beside the text whatever becomes of it.
    pub beside: usize,
    /// What may become of it.
    pub fate: Fate,
    /// The first message of the group that it is left out with.
    pub group: usize,
    /// No call waits for its result after this message.
    pub settled: bool,
    /// The call that it answers.
    pub asked: Option<Asked<'a>>,
    /// The user's last message before it.
    pub request: Option<usize>,
    /// What it asks of tools, to be stored if it is left out.
    pub calls: &'a [Call<'a>],
    /// What stands beside its text as it came, to be stored with it.
    pub others: &'a [&'a str],
}

/// The text that stands in a message's place.
#[derive(Debug, Clone, PartialEq)]
pub struct Replaced {
    /// Condensed, a pointer, or the mark of what was left out ([`Rendition::Absent`]).
    pub rendition: Rendition,
    /// The text.
    pub text: String,
    /// Its tokens.
    pub tokens: usize,
    /// Leads to the original.
    pub pointer: Pointer,
    /// What a condensed text does not show.
    pub gaps: Vec<Gap>,
    /// All that it does not show stands above, or it says all in fewer words.
    pub tells_all: bool,
}

impl Replaced {
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.gaps.len() * size_of::<Gap>()
    }
}

/// In which form a message stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Stands {
    /// As it came.
    Whole,
    /// With this text in place of its own.
    Replaced(Arc<Replaced>),
    /// Not at all.
    Dropped,
    /// The first of a run that is left out: a message of the model with this text alone stands for the run.
    DroppedFor(Arc<Replaced>),
}

/// What compaction costs and brings.
#[derive(Debug, Clone, Copy)]
pub struct Price {
    /// A cached token beside an uncached one.
    pub cached: f64,
    /// Further requests to expect; none: as many as there were.
    pub turns: Option<usize>,
}

/// How much a history may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Tokens that the text of a result may have when it enters.
    pub entry_cap: usize,
    /// Above so many tokens older results are compacted if it pays.
    pub soft: usize,
    /// More tokens than this cannot be sent.
    pub hard: usize,
    /// The share of either that compaction comes down to.
    pub low: f64,
    /// Newest messages that compaction spares.
    pub protect_last: usize,
    /// Whether compaction pays.
    pub price: Price,
}

/// With what a history is decided.
#[derive(Debug, Clone, Copy)]
pub struct Means<'a> {
    /// Who counts.
    pub counter: &'a Counter,
    /// Whose pointers stand for what is replaced.
    pub key: &'a PointerKey,
    /// What was made before.
    pub memo: &'a Memo,
}

/// What became of a history.
#[derive(Debug)]
pub struct History {
    /// Per message.
    pub stands: Vec<Stands>,
    /// Tokens of each, what stands beside its text included.
    pub costs: Vec<usize>,
    /// The epoch in which each was decided; 0 when it entered.
    pub since: Vec<usize>,
    /// When compaction last moved the prefix.
    pub epoch: Epoch,
    /// What the marks of left-out messages lead to.
    pub originals: Vec<Original>,
}

/// The part of the hard limit above which messages are left out, so that the next ones find room.
const FULL: f64 = 0.8;

/// Decides every message, the oldest first. What comes out may exceed the hard limit where what must stand does.
pub fn decide_history(entries: &[Entry<'_>], limits: &Limits, means: Means<'_>) -> History {
    let share = |tokens: usize, share: f64| (tokens as f64 * share) as usize;
    let low = share(limits.soft.min(limits.hard), limits.low);
    let marks = Marks {
        lost: limits.hard,
        soft: Some((limits.soft, low)),
        hard: limits.hard,
        low,
        drop_above: Some(share(limits.hard, FULL)),
        overflow: Overflow::LADDER,
    };
    let groups: Vec<usize> = entries.iter().map(|entry| entry.group).collect();
    let settled: Vec<bool> = entries.iter().map(|entry| entry.settled).collect();
    let hold = |entry: &Entry<'_>| if entry.fate == Fate::Verbatim { Hold::Critical } else { Hold::Free };
    let hold: Vec<Hold> = entries.iter().map(hold).collect();
    let ties = Ties { groups: &groups, settled: &settled, hold: &hold, protect_last: limits.protect_last };
    let mut making = Making::new(entries, limits, means);
    let Decided { mut costs, since, mut epoch, .. } = watermark::decide(&ties, &marks, &mut making);
    let mut stands = making.stands;
    // The mark of a run leads to all of it, so it changes where the run does.
    let run = stands[..epoch.from_message].iter().rev().take_while(|stands| **stands == Stands::Dropped);
    epoch.from_message -= run.count();
    let originals = note_dropped(entries, &mut stands, &mut costs, means);
    History { stands, costs, since, epoch, originals }
}

/// Lets the first message of every run that is left out say so, and gives what its pointer leads to.
fn note_dropped(
    entries: &[Entry<'_>],
    stands: &mut [Stands],
    costs: &mut [usize],
    means: Means<'_>,
) -> Vec<Original> {
    let mut originals = Vec::new();
    let mut at = 0;
    while at < stands.len() {
        let run = stands[at..].iter().take_while(|stands| **stands == Stands::Dropped).count();
        if run == 0 {
            at += 1;
            continue;
        }
        let text = transcript(&entries[at..at + run]);
        let pointer = Pointer::whole(means.key.mint(ContentHash::of(text.as_bytes())));
        let note = left_out_mark("the conversation", &pointer).trim_end().to_owned();
        let tokens = means.counter.count(&note);
        costs[at] = means.counter.count_message(&Message::text(Role::Assistant, note.as_str()));
        let (rendition, gaps) = (Rendition::Absent, Vec::new());
        stands[at] = Stands::DroppedFor(Arc::new(Replaced {
            rendition,
            text: note,
            tokens,
            pointer,
            gaps,
            tells_all: false,
        }));
        originals.push(Original {
            text: OriginalText::Joined(text),
            kind: "left_out",
            display: "messages that were left out".to_owned(),
        });
        at += run;
    }
    originals
}

/// Messages as people read them, with every byte of their texts, of what stands beside those, and of calls.
fn transcript(entries: &[Entry<'_>]) -> String {
    let mut text = String::new();
    for entry in entries {
        let role = match entry.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let _ = writeln!(text, "[{role}]\n{}", entry.text);
        for other in entry.others {
            let _ = writeln!(text, "{other}");
        }
        for call in entry.calls {
            let _ = writeln!(text, "→ {} {}", call.name, call.arguments);
        }
    }
    text
}
