//! What stands above a message in its prompt, and the form of a result that refers to it instead of repeating it.
//! Owns the wording of references.

use super::items::LinkedItem;
use larder_condense::{Repeat, SeenText};

/// The fewest lines that a reference replaces.
const FEWEST_LINES: usize = 3;
/// A reference is at most this part of the length of the lines it replaces.
const SHORTER: (usize, usize) = (2, 3);
/// How many characters of a call a reference shows.
const CALL_CHARS: usize = 20;
/// How many characters of a line a reference shows.
const LINE_CHARS: usize = 16;

/// The texts that stand above a message.
#[derive(Default)]
pub(super) struct Above<'a> {
    seen: SeenText,
    shown: Vec<Shown<'a>>,
}

/// A text in the prompt, with the message that contains it.
struct Shown<'a> {
    entry: &'a LinkedItem<'a>,
    /// The number of its message.
    message: usize,
}

impl<'a> Above<'a> {
    /// Adds the text of message number `message` as it is sent.
    pub fn add(&mut self, message: usize, entry: &'a LinkedItem<'a>, text: &str) {
        self.seen.add(text);
        self.shown.push(Shown { entry, message });
    }

    /// The lines of `text` that stand above, in message number `from` or after it.
    pub fn repeats(&self, text: &str, from: usize) -> Vec<Repeat> {
        self.seen.repeats(text, self.shown.partition_point(|shown| shown.message < from))
    }

    /// `text` with references in place of those of its lines that stand above, in message number `from` or after it;
    /// `None` if there are none.
    pub fn referring(&self, text: &str, from: usize) -> Option<String> {
        let mut referring = String::new();
        let mut copied = 0;
        for repeat in self.repeats(text, from) {
            let Some(reference) = self.reference(text, &repeat) else { continue };
            referring.push_str(&text[copied..repeat.bytes.start]);
            referring.push_str(&reference);
            copied = repeat.bytes.end;
            if text[..copied].ends_with('\n') {
                referring.push('\n');
            }
        }
        (copied > 0).then(|| referring + &text[copied..])
    }

    /// The reference to the lines of a repeat; `None` if it would not be much shorter.
    fn reference(&self, text: &str, repeat: &Repeat) -> Option<String> {
        let (first, last) = repeat.lines;
        if last - first + 1 < FEWEST_LINES {
            return None;
        }
        let lines = text[repeat.bytes.clone()].lines();
        let mut inside = lines.map(str::trim).filter(|line| !line.is_empty());
        let from = inside.next().unwrap_or_default();
        let to = inside.next_back().unwrap_or(from);
        let call = call_of(self.shown.get(repeat.of)?.entry);
        let [call, from, to] = [end(&call), beginning(from), beginning(to)];
        let reference = format!("[… above: L{first}-{last} of \"{call}\", \"{from}\" to \"{to}\"]");
        (reference.len() * SHORTER.1 <= repeat.bytes.len() * SHORTER.0).then_some(reference)
    }
}

/// The words by which a result can be found above: what its call asked for.
fn call_of(entry: &LinkedItem<'_>) -> String {
    let Some(answered) = entry.answers else { return entry.item.role.as_str().to_owned() };
    let arguments = answered.call.arguments.as_ref();
    let asked = match serde_json::from_str(arguments) {
        Ok(serde_json::Value::Object(fields)) => {
            fields.values().find_map(|value| Some(value.as_str()?.trim().to_owned()))
        }
        _ => Some(arguments.trim().to_owned()),
    };
    asked.filter(|asked| !asked.is_empty()).unwrap_or_else(|| answered.call.name.to_string())
}

/// The beginning of a line, without what would end the quotation.
fn beginning(line: &str) -> String {
    let mut chars = line.chars().map(quotable);
    let mut text: String = chars.by_ref().take(LINE_CHARS).collect();
    text.extend(chars.next().map(|_| '…'));
    text
}

/// The end of the first line of a call, which says more than its beginning: commands begin alike.
fn end(call: &str) -> String {
    let line = call.lines().next().unwrap_or_default();
    let skipped = line.chars().count().saturating_sub(CALL_CHARS);
    let cut = (skipped > 0).then_some('…');
    cut.into_iter().chain(line.chars().skip(skipped).map(quotable)).collect()
}

fn quotable(c: char) -> char {
    match c {
        '"' => '\'',
        c if c.is_control() => ' ',
        c => c,
    }
}
