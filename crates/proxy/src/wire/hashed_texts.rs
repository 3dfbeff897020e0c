//! The texts of a conversation's last request with their hashes. The next request repeats nearly all of them, and to compare
//! them takes a tenth of the time of hashing them again.

use larder_text::hash::ContentHash;

use super::Request;

/// The texts of a request, item by item, with the hash of each item's text.
#[derive(Debug)]
pub struct HashedTexts {
    /// The literals of all texts, one after the other.
    literals: String,
    /// Where each of them ends.
    ends: Vec<usize>,
    /// For each item, the end of its part of `ends`, and the hash.
    items: Vec<(usize, ContentHash)>,
}

impl HashedTexts {
    /// The texts of a request.
    pub fn of(request: &Request<'_>) -> Self {
        let texts = || request.items.iter().flat_map(|item| &item.texts);
        let mut literals = String::with_capacity(texts().map(|text| text.raw.len()).sum());
        let (mut ends, mut items) = (Vec::with_capacity(texts().count()), Vec::new());
        items.reserve_exact(request.items.len());
        for item in &request.items {
            for text in &item.texts {
                literals.push_str(text.raw);
                ends.push(literals.len());
            }
            items.push((ends.len(), item.hash()));
        }
        Self { literals, ends, items }
    }

    /// Bytes that it keeps in memory.
    pub fn size(&self) -> usize {
        self.literals.len() + size_of_val(self.ends.as_slice()) + size_of_val(self.items.as_slice())
    }

    /// Gives the items at the start of another request that have the same texts their hashes.
    pub fn recognise(&self, request: &Request<'_>) {
        let (mut first, mut start) = (0, 0);
        for (item, &(last, hash)) in request.items.iter().zip(&self.items) {
            let ends = self.ends.get(first..last).unwrap_or_default();
            let known = ends.iter().map(|&end| self.literals.get(std::mem::replace(&mut start, end)..end));
            if !known.eq(item.texts.iter().map(|text| Some(text.raw))) {
                return;
            }
            first = last;
            item.know_hash(hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{ApiDialect, read};
    use super::*;

    const DIALECTS: [ApiDialect; 3] = [ApiDialect::Chat, ApiDialect::Messages, ApiDialect::Responses];

    fn body(dialect: ApiDialect, messages: &[Vec<String>]) -> String {
        let (list, kind) =
            if dialect == ApiDialect::Responses { ("input", "input_text") } else { ("messages", "text") };
        let message = |texts: &Vec<String>| match texts.as_slice() {
            [text] => json!({"role": "user", "content": text}),
            texts => {
                let parts: Vec<_> = texts.iter().map(|text| json!({"type": kind, "text": text})).collect();
                json!({"role": "user", "content": parts})
            }
        };
        let messages: Vec<_> = messages.iter().map(message).collect();
        json!({"model": "m", "max_tokens": 1, list: messages}).to_string()
    }

    fn texts() -> impl Strategy<Value = Vec<Vec<String>>> {
        prop::collection::vec(prop::collection::vec("[ab\"\n]{0,3}", 1..3), 1..6)
    }

    proptest! {
        #[test]
        fn recognised_texts_have_the_hashes_that_they_would_get(before in texts(), after in texts(), shared in 0_usize..6) {
            let after: Vec<_> = before.iter().take(shared).cloned().chain(after).collect();
            for dialect in DIALECTS {
                let (before, after) = (body(dialect, &before), body(dialect, &after));
                let known = HashedTexts::of(&read(dialect, &before).unwrap());
                let next = read(dialect, &after).unwrap();
                known.recognise(&next);
                for item in &next.items {
                    prop_assert_eq!(item.hash(), ContentHash::new(item.text().as_bytes()));
                }
            }
        }
    }

    #[test]
    fn the_texts_that_a_request_repeats_are_not_hashed_again() {
        let mark = ContentHash::new(b"a mark");
        for dialect in DIALECTS {
            let said = |texts: &[&str]| {
                let messages: Vec<_> = texts.iter().map(|text| vec![(*text).to_owned()]).collect();
                body(dialect, &messages)
            };
            let (before, after) = (said(&["one", "two", "three"]), said(&["one", "two", "3", "four"]));
            let mut known = HashedTexts::of(&read(dialect, &before).unwrap());
            known.items.iter_mut().for_each(|(_, hash)| *hash = mark);
            let next = read(dialect, &after).unwrap();
            known.recognise(&next);
            let marked: Vec<bool> = next.items.iter().map(|item| item.hash() == mark).collect();
            assert_eq!(marked, [true, true, false, false], "{dialect:?}");
        }
    }
}
