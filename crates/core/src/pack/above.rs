//! What stands above a message in its prompt, and the form of a result that refers to it instead of repeating it.
//! Owns the wording of references.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::Value;

use super::items::LinkedItem;
use larder_text::message::Role;
use larder_text::seen_text::{Repeat, SeenText};

/// The fewest lines that a reference replaces.
const FEWEST_LINES: usize = 3;
/// A reference is at most this part of the length of the lines it replaces.
const SHORTER: (usize, usize) = (2, 3);
/// A reference quotes the last line, too, if the run has more lines than this: in short runs it would cost what the
/// reference saves.
const LONG_RUN: usize = 10;
/// How many characters of a call a reference shows.
const CALL_CHARS: usize = 20;
/// How many characters of a line a reference shows.
const LINE_CHARS: usize = 16;

/// The texts that stand above a message.
#[derive(Default)]
pub(super) struct Above<'a> {
    seen: SeenText,
    shown: Vec<Shown>,
    /// The results in the prompt so far, whether or not their texts are referred to.
    results: Vec<&'a LinkedItem<'a>>,
    /// What the calls of the first of them asked for, as references quote it: known once a reference was made.
    asked: RefCell<Vec<String>>,
}

/// A text in the prompt.
struct Shown {
    /// The number of its message.
    message: usize,
    /// Its index in the results.
    result: usize,
    /// Whether its lines are those of its original. Marks of a condensed text number the lines of the original, and a
    /// reference would number those that are shown.
    is_complete: bool,
}

impl<'a> Above<'a> {
    /// Adds message number `message`, with its text as it is sent if that stands above later results, and whether it hides
    /// nothing.
    pub fn add(&mut self, message: usize, entry: &'a LinkedItem<'a>, text: Option<(&str, bool)>) {
        if entry.item.role != Role::Tool {
            return;
        }
        if let Some((text, is_complete)) = text {
            self.seen.add(text);
            self.shown.push(Shown { message, result: self.results.len(), is_complete });
        }
        self.results.push(entry);
    }

    /// The lines of `text` that stand above, in message number `from` or after it.
    pub fn repeats(&self, text: &str, from: usize) -> Vec<Repeat> {
        self.seen.repeats(text, self.shown.partition_point(|shown| shown.message < from))
    }

    /// `text` with references in place of those of its lines that stand above: in message number `from` or after it or,
    /// if `within`, in the text itself. `None` if there are none.
    pub fn referring(&self, text: &str, from: usize, within: bool) -> Option<String> {
        let repeats = self.repeats(text, from);
        // Most texts repeat nothing that stands above: copying them would be for nothing.
        if repeats.is_empty() && !within {
            return None;
        }
        let mut referring = Referring::new(within);
        let mut copied = 0;
        for repeat in repeats {
            let Some(reference) = self.reference(text, &repeat) else { continue };
            referring.copy(&text[copied..repeat.bytes.start]);
            referring.refer(&reference, &text[repeat.bytes.clone()]);
            copied = repeat.bytes.end;
        }
        referring.copy(&text[copied..]);
        referring.refers.then_some(referring.text)
    }

    /// The reference to the lines of a repeat; `None` if it would not be much shorter.
    fn reference(&self, text: &str, repeat: &Repeat) -> Option<String> {
        let shown = self.shown.get(repeat.of).filter(|shown| shown.is_complete)?;
        let of = self.name(shown.result)?;
        reference(repeat.lines, &of, &text[repeat.bytes.clone()])
    }

    /// The words by which a result is found above: the end of its call, and which of several results it is if their calls
    /// end alike.
    fn name(&self, result: usize) -> Option<String> {
        let mut asked = self.asked.borrow_mut();
        let unread = self.results.get(asked.len()..)?;
        asked.extend(unread.iter().map(|entry| end(&call_of(entry))));
        let call = asked.get(result)?;
        let alike = || asked.iter().enumerate().filter(|(_, other)| *other == call);
        let number = alike().take_while(|(at, _)| *at <= result).count();
        Some(if alike().nth(1).is_some() {
            format!("result {number} of \"{call}\"")
        } else {
            format!("\"{call}\"")
        })
    }
}

/// A text that is copied line by line, with references where it repeats itself.
struct Referring<'t> {
    text: String,
    /// Whether it contains a reference.
    refers: bool,
    within: bool,
    /// The lines of `text`; `None` for references.
    lines: Vec<Option<&'t str>>,
    /// Where each line stands first.
    places: HashMap<&'t str, usize>,
}

impl<'t> Referring<'t> {
    fn new(within: bool) -> Self {
        Self { text: String::new(), refers: false, within, lines: Vec::new(), places: HashMap::new() }
    }

    /// Adds lines, with references in place of those that it has already.
    fn copy(&mut self, part: &'t str) {
        if !self.within {
            return self.text.push_str(part);
        }
        let mut rest = part;
        while !rest.is_empty() {
            rest = match self.repeat(rest) {
                Some((reference, end)) => {
                    self.refer(&reference, &rest[..end]);
                    &rest[end..]
                }
                None => {
                    let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
                    let line = rest[..end].trim_end_matches('\n');
                    self.places.entry(line).or_insert(self.lines.len());
                    self.lines.push(Some(line));
                    self.text.push_str(&rest[..end]);
                    &rest[end..]
                }
            };
        }
    }

    /// Adds a reference in place of these lines.
    fn refer(&mut self, reference: &str, replaced: &str) {
        self.text.push_str(reference);
        if replaced.ends_with('\n') {
            self.text.push('\n');
        }
        self.lines.push(None);
        self.refers = true;
    }

    /// The reference to the lines at the start of `rest` that it has already, and where they end.
    fn repeat(&self, rest: &str) -> Option<(String, usize)> {
        let first = *self.places.get(rest.lines().next()?)?;
        let (mut count, mut end) = (0, 0);
        for line in rest.split_inclusive('\n') {
            if self.lines.get(first + count) != Some(&Some(line.trim_end_matches('\n'))) {
                break;
            }
            (count, end) = (count + 1, end + line.len());
        }
        Some((reference((first + 1, first + count), "this result", &rest[..end])?, end))
    }
}

/// The reference to lines of a text above in place of `replaced`, the same lines; `None` if it would not be much shorter.
fn reference((first, last): (usize, usize), of: &str, replaced: &str) -> Option<String> {
    if last + 1 < first + FEWEST_LINES {
        return None;
    }
    let mut said = replaced.lines().map(str::trim).filter(|line| !line.is_empty());
    let begins = beginning(said.next().unwrap_or_default());
    let last_line = said.next_back().filter(|_| last - first >= LONG_RUN);
    let ends = last_line.map(|line| format!(" to \"{}\"", beginning(line))).unwrap_or_default();
    let reference = format!("[… above: L{first}-{last} of {of}, \"{begins}\"{ends}]");
    (reference.len() * SHORTER.1 <= replaced.len() * SHORTER.0).then_some(reference)
}

/// The words by which a result can be found above: what its call asked for.
fn call_of(entry: &LinkedItem<'_>) -> String {
    let Some(answered) = entry.answers else { return entry.item.role.as_str().to_owned() };
    let arguments = answered.call.arguments.as_ref();
    let asked = match serde_json::from_str(arguments) {
        Ok(Value::Object(fields)) => fields.values().find_map(words),
        _ => Some(arguments.trim().to_owned()),
    };
    asked.filter(|asked| !asked.is_empty()).unwrap_or_else(|| answered.call.name.to_string())
}

/// An argument of text, or of a list of words such as `["bash", "-lc", …]`.
fn words(argument: &Value) -> Option<String> {
    match argument {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Array(words) => {
            Some(words.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?.join(" ").trim().to_owned())
        }
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::items::{ConversationItem, link};
    use larder_text::hash::ContentHash;
    use larder_text::tokens::Counter;

    fn lines(range: std::ops::Range<usize>) -> String {
        range.map(|at| format!("line {at} of the report says {}\n", at * 7919)).collect()
    }

    fn within(text: &str) -> Option<String> {
        Above::default().referring(text, 0, true)
    }

    #[test]
    fn a_text_refers_to_lines_that_it_has_already() {
        let text = format!("first run\n{}second run\n{}and {}", lines(0..9), lines(2..8), lines(2..8));
        let found = within(&text).unwrap();
        let expected = format!(
            "first run\n{}second run\n[… above: L4-9 of this result, \"line 2 of the re…\"]\nand {}[… above: L5-9 of this \
             result, \"line 3 of the re…\"]\n",
            lines(0..9),
            lines(2..3)
        );
        assert_eq!(found, expected, "the numbers are those of the text as sent");
        let end = text.trim_end_matches('\n');
        assert_eq!(within(end).unwrap(), expected.trim_end(), "the last line may lack its break");
    }

    #[test]
    fn of_a_long_run_the_last_line_is_quoted_too() {
        let found = within(&lines(0..20).repeat(2)).unwrap();
        let reference = "[… above: L1-20 of this result, \"line 0 of the re…\" to \"line 19 of the r…\"]\n";
        assert_eq!(found, lines(0..20) + reference);
    }

    #[test]
    fn only_a_text_that_is_shown_whole_is_referred_to() {
        let text = lines(0..9);
        let result = ConversationItem {
            role: Role::Tool,
            text: &text,
            hash: ContentHash::new(text.as_bytes()),
            tokens: 100,
            sampled: false,
            opaque_tokens: 0,
            opaque: &[],
            calls: &[],
            result_of: None,
            texts: &[],
            is_error: false,
            summarizable: true,
            spared: false,
            rehydrated: false,
        };
        let linked = link(std::slice::from_ref(&result), 1_000, &|_| None, &Counter::cl100k());
        let referring = |is_complete| {
            let mut above = Above::default();
            above.add(0, &linked[0], Some((&text, is_complete)));
            above.referring(&text, 0, false)
        };
        let whole = referring(true).unwrap();
        assert!(whole.starts_with("[… above: L1-9 of \"tool\""), "{whole}");
        assert_eq!(referring(false), None, "its lines have other numbers than those of the original");
    }

    #[test]
    fn short_repeats_stay() {
        assert_eq!(within(&format!("{}{}", lines(0..9), lines(3..5))), None, "two lines");
        assert_eq!(within("a\nb\nc\nd\na\nb\nc\nd\n"), None, "shorter than a reference");
        assert_eq!(within(""), None);
        assert_eq!(Above::default().referring(&lines(0..9).repeat(2), 0, false), None);
    }

    #[test]
    fn a_line_that_repeats_without_end_becomes_shorter() {
        let text = "the same line, again and again and again\n".repeat(50);
        let found = within(&text).unwrap();
        assert_eq!(found.lines().next(), text.lines().next());
        assert!(found.len() * SHORTER.1 <= text.len() * SHORTER.0, "{found}");
    }
}
