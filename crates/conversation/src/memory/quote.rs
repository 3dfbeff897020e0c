//! Where the words of a fact are said. Pure.

use larder_store::{ConversationMessage, Speaker};

use super::redact::stands_alone;

/// Letters and digits of a quotation, below which it is found in almost anything.
const QUOTED_LETTERS: usize = 3;

/// Where words are said: the number of the newest message with them, a participant's before one of the assistant, and
/// the bytes. Case and spaces may differ. Words are whole, and too few letters are a source of nothing, unless they are all
/// that was said.
pub(super) fn find_quote(messages: &[ConversationMessage], quote: &str) -> Option<(u64, usize, usize)> {
    let words: Vec<String> = quote.split_whitespace().map(str::to_lowercase).collect();
    let letters = quote.chars().filter(|c| c.is_alphanumeric()).count();
    if words.is_empty() {
        return None;
    }
    let of = |speaker| messages.iter().rev().filter(move |message| message.speaker == speaker);
    of(Speaker::Participant).chain(of(Speaker::Assistant)).find_map(|message| {
        let (start, end) = span_of(&message.text, &words)?;
        let is_all = message.text.trim().len() == end - start;
        (letters >= QUOTED_LETTERS || is_all).then_some((message.number, start, end))
    })
}

/// The bytes of a text that are these words in lower case, whatever spaces are between them.
pub(super) fn span_of(text: &str, words: &[String]) -> Option<(usize, usize)> {
    let wanted: Vec<char> = words.join(" ").chars().collect();
    // Within a word neither begins nor ends anything.
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !stands_alone(c));
    let parts = |at: usize| {
        let (before, after) = (text[..at].chars().next_back(), text[at..].chars().next());
        !(joins(before) && joins(after))
    };
    let mut starts = text.char_indices().filter(|(at, c)| !c.is_whitespace() && parts(*at)).map(|(at, _)| at);
    starts.find_map(|start| {
        let (mut at, mut is_space) = (0, false);
        for (offset, c) in text[start..].char_indices() {
            if c.is_whitespace() {
                is_space = true;
                continue;
            }
            if is_space && at > 0 {
                if wanted.get(at) != Some(&' ') {
                    return None;
                }
                at += 1;
            }
            is_space = false;
            for lower in c.to_lowercase() {
                if wanted.get(at) != Some(&lower) {
                    return None;
                }
                at += 1;
            }
            if at == wanted.len() {
                let end = start + offset + c.len_utf8();
                return parts(end).then_some((start, end));
            }
        }
        None
    })
}
