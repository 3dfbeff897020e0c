//! Making the forms of a history's messages, one after the other: what each becomes when it enters, given what stands
//! before it, and what an epoch makes of it.
//!
//! Knows texts, counts and the memo; does not know when an epoch begins or what it may take.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::choose::{Choice, Ladder};
use super::history::{Entry, Fate, Limits, Means, Price, Replaced, Stands};
use super::receipt::Rendition;
use super::render::pointer_text;
use super::watermark::{Entries, Saving};
use larder_condense::{
    CONDENSER_VERSION, CondenseError, CondenseRequest, Condensed, ContentType, Gap, KnownText, ReaderView,
    SeenText,
};
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::pointer::Pointer;

/// Raised whenever the same history would be decided otherwise; part of every key of the memo.
const VERSION: u8 = 1;
/// Results of at most so many tokens are not looked at: they always stand whole.
const SMALL: usize = 48;
/// A result stands whole up to this share over its cap: below, what a header and marks take outweighs what is saved.
const WORTH: (usize, usize) = (5, 4);
/// Tokens that replacing a result must save at least.
const LEAST_SAVED: usize = 24;
/// The cap of what should stand whole if it can, an error or a text with pointers, beside that of others.
const ROOMY: usize = 4;
/// One part in so many of a text must stand above for it to be shown as what is new in it.
const REPEATED: usize = 4;
/// Bytes of each thing said that are looked at for the question in view.
const QUERY_BYTES: usize = 2_000;
/// Bytes of a tool's name that its pointer shows.
const NAME_BYTES: usize = 64;

/// Messages as they are made, one after the other.
pub(super) struct Making<'a> {
    entries: &'a [Entry<'a>],
    limits: &'a Limits,
    means: Means<'a>,
    pub stands: Vec<Stands>,
    start: ContentHash,
    /// The hash of all that the next message's form follows from, but for the message itself.
    chain: ContentHash,
    /// What stands in view, as far as it was looked at: made only where something new has to be decided.
    above: SeenText,
    looked_at: usize,
}

impl<'a> Making<'a> {
    pub fn new(entries: &'a [Entry<'a>], limits: &'a Limits, means: Means<'a>) -> Self {
        let (stands, above) = (Vec::with_capacity(entries.len()), SeenText::default());
        let start = start(limits, means);
        Self { entries, limits, means, stands, start, chain: start, above, looked_at: 0 }
    }

    /// Puts the next message in the form that was chosen; gives what it costs.
    fn push(&mut self, choice: Choice) -> usize {
        let index = self.stands.len();
        let entry = &self.entries[index];
        let plain = matches!(entry.fate, Fate::Verbatim | Fate::Kept) || entry.tokens <= SMALL;
        let (stands, tokens) = match choice {
            Choice::Absent => (Stands::Dropped, None),
            Choice::Whole if plain => (Stands::Whole, Some(entry.tokens)),
            _ => match self.made(index, choice) {
                Some(made) => {
                    let tokens = made.tokens;
                    (Stands::Replaced(made), Some(tokens))
                }
                None => (Stands::Whole, Some(entry.tokens)),
            },
        };
        self.stands.push(stands);
        tokens.map_or(0, |tokens| tokens.saturating_add(entry.beside))
    }

    /// The text in place of a result, if any: found in the memo, or made with a look at what stands before.
    fn made(&mut self, index: usize, choice: Choice) -> Option<Arc<Replaced>> {
        let entry = &self.entries[index];
        self.chain = follow(self.chain, self.entries, entry, choice);
        if choice == Choice::Pointer {
            return Some(self.maker(entry).pointer());
        }
        self.means.memo.get_or(self.chain, || {
            for at in self.looked_at..index {
                look_at(&mut self.above, &self.entries[at], &self.stands[at]);
            }
            self.looked_at = index;
            let maker = Maker { entries: self.entries, entry, means: self.means, start: self.start };
            match choice {
                Choice::Condensed(target) => maker.condensed(target.saturating_sub(entry.beside)),
                _ => maker.entering(self.limits.entry_cap, &self.above),
            }
        })
    }

    fn maker(&self, entry: &'a Entry<'a>) -> Maker<'a> {
        Maker { entries: self.entries, entry, means: self.means, start: self.start }
    }
}

/// Where every chain of hashes starts: what all forms follow from.
fn start(limits: &Limits, means: Means<'_>) -> ContentHash {
    let owner = means.key.mint(ContentHash::of(b""));
    let text = format!(
        "{VERSION} {CONDENSER_VERSION} {} {} {}",
        means.counter.name(),
        limits.entry_cap,
        owner.as_str()
    );
    ContentHash::of(text.as_bytes())
}

/// The chain with one more result, what it answers, and the form chosen for it.
fn follow(chain: ContentHash, entries: &[Entry<'_>], entry: &Entry<'_>, choice: Choice) -> ContentHash {
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(chain.as_bytes());
    bytes.extend_from_slice(entry.hash.as_bytes());
    let said = [entry.request, entry.asked.map(|asked| asked.by)];
    for at in said {
        let hash = at.and_then(|at| entries.get(at)).map(|entry| entry.hash);
        bytes.extend_from_slice(&hash.map_or([0; 32], |hash| *hash.as_bytes()));
    }
    let (kind, target) = match choice {
        Choice::Whole => (b'w', 0),
        Choice::Condensed(target) => (b'c', target.saturating_sub(entry.beside)),
        Choice::Pointer => (b'p', 0),
        Choice::Absent => (b'a', 0),
    };
    bytes.push(kind);
    bytes.extend_from_slice(&target.to_le_bytes());
    bytes.push(u8::from(entry.fate == Fate::Result { is_error: true }));
    if let Some(asked) = entry.asked {
        bytes.extend_from_slice(&asked.call.name.len().to_le_bytes());
        bytes.extend_from_slice(asked.call.name.as_bytes());
        bytes.extend_from_slice(asked.call.arguments.as_bytes());
    }
    ContentHash::of(&bytes)
}

/// Puts what a result shows in view.
fn look_at(above: &mut SeenText, entry: &Entry<'_>, stands: &Stands) {
    if !matches!(entry.fate, Fate::Result { .. }) || entry.tokens <= SMALL {
        return;
    }
    match stands {
        Stands::Whole => above.add(entry.text),
        Stands::Replaced(made) if made.tells_all => above.add(entry.text),
        Stands::Replaced(made) if made.rendition == Rendition::Condensed => above.add(&made.text),
        _ => {}
    }
}

impl Entries for Making<'_> {
    fn enter(&mut self, _index: usize) -> (Choice, usize) {
        (Choice::Whole, self.push(Choice::Whole))
    }

    fn ladders(&self, count: usize) -> Cow<'_, [Ladder]> {
        let ladder = |entry| self.maker(entry).ladder(self.limits.entry_cap);
        Cow::Owned(self.entries[..count].iter().map(ladder).collect())
    }

    fn redecide(&mut self, choices: &[Choice]) -> Vec<usize> {
        *self = Self::new(self.entries, self.limits, self.means);
        choices.iter().map(|&choice| self.push(choice)).collect()
    }

    fn pays(&self, saving: &Saving) -> bool {
        let Price { cached, turns } = self.limits.price;
        let answers = || {
            let so_far = self.entries[..saving.at_message].iter();
            so_far.filter(|entry| entry.role == Role::Assistant).count()
        };
        let turns = turns.unwrap_or_else(answers);
        saving.saved as f64 * cached * turns as f64 > saving.moved as f64 * (1.0 - cached)
    }
}

/// Makes the forms of one message.
#[derive(Clone, Copy)]
struct Maker<'a> {
    entries: &'a [Entry<'a>],
    entry: &'a Entry<'a>,
    means: Means<'a>,
    start: ContentHash,
}

impl Maker<'_> {
    /// The tokens that the text may have when it enters.
    fn cap(&self, entry_cap: usize) -> usize {
        let is_error = self.entry.fate == Fate::Result { is_error: true };
        // What carries our pointers was condensed before, or speaks of what was.
        let roomy = is_error || !self.means.key.find_in(self.entry.text).is_empty();
        if roomy { entry_cap.saturating_mul(ROOMY) } else { entry_cap }
    }

    fn ladder(&self, entry_cap: usize) -> Ladder {
        let entry = self.entry;
        let is_result = matches!(entry.fate, Fate::Result { .. }) && entry.tokens > SMALL;
        let over = is_result && !stands_whole(entry.tokens, entry_cap);
        let cap = if over { self.cap(entry_cap) } else { entry_cap };
        let tokens = if over && !stands_whole(entry.tokens, cap) { cap } else { entry.tokens };
        let size = tokens.saturating_add(entry.beside);
        let pointer =
            if is_result { self.pointer().tokens.saturating_add(entry.beside) } else { usize::MAX / 4 };
        Ladder {
            whole: Some(size),
            size,
            pointer,
            frame: entry.beside,
            priority: u8::from(entry.fate == Fate::Result { is_error: true }),
            relevance: 1.0,
            summarizable: is_result,
            min_remaining: 0,
        }
    }

    /// What a result becomes when it enters; none if it stands whole.
    fn entering(&self, entry_cap: usize, above: &SeenText) -> Option<Arc<Replaced>> {
        let (text, tokens, cap) = (self.entry.text, self.entry.tokens, self.cap(entry_cap));
        let whole = stands_whole(tokens, cap);
        if whole && self.entry.fate == (Fate::Result { is_error: true }) {
            return None;
        }
        let news = self.news(above, tokens.saturating_sub(LEAST_SAVED).min(cap));
        match news {
            Some(news) if news.tells_all => Some(Arc::new(news)),
            _ if whole => None,
            Some(news) if larder_condense::structure_of(text).is_none() => Some(Arc::new(news)),
            _ => self.condensed(cap),
        }
    }

    /// What is new in the text, if enough of it stands above.
    fn news(&self, above: &SeenText, target: usize) -> Option<Replaced> {
        let repeats = above.repeats(self.entry.text);
        let bytes: usize = repeats.iter().map(ExactSizeIterator::len).sum();
        if bytes * REPEATED < self.entry.text.len() {
            return None;
        }
        let condensed = self.condense(target, &repeats).ok()?;
        let stands = |gap: &Gap| {
            repeats.iter().any(|above| above.start <= gap.bytes.start && gap.bytes.end <= above.end)
        };
        let tells_all = condensed.gaps.iter().all(stands);
        Some(Replaced { tells_all, ..replaced(condensed) })
    }

    /// The text in at most `target` tokens: none if it has no more, a pointer where it cannot be done.
    fn condensed(&self, target: usize) -> Option<Arc<Replaced>> {
        match self.condense(target, &[]) {
            Ok(condensed) if condensed.text == self.entry.text => None,
            Ok(condensed) => Some(Arc::new(replaced(condensed))),
            Err(_) => Some(self.pointer()),
        }
    }

    fn condense(&self, target: usize, above: &[Range<usize>]) -> Result<Condensed, CondenseError> {
        let Means { counter, key, .. } = self.means;
        let query = self.query();
        let request = CondenseRequest {
            text: self.entry.text,
            content_type: ContentType::ToolResult,
            target,
            query: Some(&query).filter(|query| !query.is_empty()).map(String::as_str),
            pins: &[],
            counter,
            key,
        };
        let known = Some(KnownText { hash: self.entry.hash, tokens: self.entry.tokens });
        larder_condense::condense_in_view(
            &request,
            ReaderView { seen: above, markers_known: true, known, skip_probes: true },
        )
    }

    /// The question in view: what the call asks for, why, and what the user asked last before it.
    fn query(&self) -> String {
        let said = |at: usize| self.entries.get(at).map_or("", |entry| entry.text);
        let asked = self.entry.asked;
        let parts = [
            asked.map_or("", |asked| asked.call.name),
            asked.map_or("", |asked| asked.call.arguments),
            asked.map_or("", |asked| said(asked.by)),
            self.entry.request.map_or("", said),
        ];
        let begin = |part: &&str| part[..part.floor_char_boundary(QUERY_BYTES)].to_owned();
        parts.iter().filter(|part| !part.is_empty()).map(begin).collect::<Vec<_>>().join("\n")
    }

    /// One line that says what it is and leads to it: the same wherever it stands.
    fn pointer(&self) -> Arc<Replaced> {
        let name = self.entry.asked.map_or("", |asked| asked.call.name);
        let name = &name[..name.floor_char_boundary(NAME_BYTES)];
        let key = [self.start.as_bytes(), self.entry.hash.as_bytes(), name.as_bytes()].concat();
        let make = || {
            let pointer = Pointer::whole(self.means.key.mint(self.entry.hash));
            let text = pointer_text(&format!("result of {name}"), self.entry.text, &pointer);
            let (tokens, gaps) = (self.means.counter.count(&text), Vec::new());
            Replaced { rendition: Rendition::Pointer, text, tokens, pointer, gaps, tells_all: false }
        };
        let found = self.means.memo.get_or(ContentHash::of(&key), || Some(Arc::new(make())));
        found.unwrap_or_else(|| Arc::new(make()))
    }
}

fn stands_whole(tokens: usize, cap: usize) -> bool {
    tokens <= cap.saturating_mul(WORTH.0) / WORTH.1
}

fn replaced(condensed: Condensed) -> Replaced {
    let Condensed { text, tokens, pointer, gaps, .. } = condensed;
    let tells_all = gaps.is_empty();
    Replaced { rendition: Rendition::Condensed, text, tokens, pointer, gaps, tells_all }
}
