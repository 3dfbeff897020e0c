//! The texts of a conversation's last request with their hashes. The next request repeats nearly all of them, and to compare
//! them takes a tenth of the time of hashing them again.

use std::ops::Range;

use bytes::Bytes;
use larder_text::hash::ContentHash;

use super::Request;

/// The texts of a request, item by item, with the hash of each item's text.
#[derive(Debug)]
pub struct HashedTexts {
    body: Bytes,
    /// Where the literals of all texts are in the body.
    literals: Vec<Range<usize>>,
    /// For each item, the end of its part of `literals`, and the hash.
    items: Vec<(usize, ContentHash)>,
}

impl HashedTexts {
    /// The texts of a request that was read from `body`, which stays in memory.
    pub fn of(request: &Request<'_>, body: &Bytes) -> Self {
        // A literal is a part of the body.
        let place = |raw: &str| {
            let start = (raw.as_ptr() as usize).saturating_sub(request.body.as_ptr() as usize);
            start..start.saturating_add(raw.len())
        };
        let (mut literals, mut items) = (Vec::new(), Vec::with_capacity(request.items.len()));
        for item in &request.items {
            literals.extend(item.texts.iter().map(|text| place(text.raw)));
            items.push((literals.len(), item.hash()));
        }
        Self { body: body.clone(), literals, items }
    }

    /// Bytes that it keeps in memory.
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// Gives the items at the start of another request that have the same texts their hashes.
    pub fn recognise(&self, request: &Request<'_>) {
        let mut start = 0;
        for (item, &(end, hash)) in request.items.iter().zip(&self.items) {
            let known = self.literals.get(start..end).unwrap_or_default();
            start = end;
            let texts = item.texts.iter().map(|text| text.raw.as_bytes());
            if !texts.eq(known.iter().map(|at| self.body.get(at.clone()).unwrap_or_default())) {
                return;
            }
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

    fn body(messages: &[Vec<String>]) -> String {
        let message = |texts: &Vec<String>| match texts.as_slice() {
            [text] => json!({"role": "user", "content": text}),
            texts => {
                let parts: Vec<_> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
                json!({"role": "user", "content": parts})
            }
        };
        let messages: Vec<_> = messages.iter().map(message).collect();
        json!({"model": "m", "messages": messages}).to_string()
    }

    fn texts() -> impl Strategy<Value = Vec<Vec<String>>> {
        prop::collection::vec(prop::collection::vec("[ab\"\n]{0,3}", 1..3), 1..6)
    }

    proptest! {
        #[test]
        fn recognised_texts_have_the_hashes_that_they_would_get(before in texts(), after in texts(), shared in 0_usize..6) {
            let after: Vec<_> = before.iter().take(shared).cloned().chain(after).collect();
            let (before, after) = (body(&before), body(&after));
            let last = read(ApiDialect::Chat, &before).unwrap();
            let known = HashedTexts::of(&last, &Bytes::from(before.clone()));
            let next = read(ApiDialect::Chat, &after).unwrap();
            known.recognise(&next);
            for item in &next.items {
                prop_assert_eq!(item.hash(), ContentHash::new(item.text().as_bytes()));
            }
        }
    }

    #[test]
    fn the_texts_that_a_request_repeats_are_not_hashed_again() {
        let said =
            |texts: &[&str]| body(&texts.iter().map(|text| vec![(*text).to_owned()]).collect::<Vec<_>>());
        let (before, after) = (said(&["one", "two", "three"]), said(&["one", "two", "3", "four"]));
        let mut known =
            HashedTexts::of(&read(ApiDialect::Chat, &before).unwrap(), &Bytes::from(before.clone()));
        let mark = ContentHash::new(b"a mark");
        known.items.iter_mut().for_each(|(_, hash)| *hash = mark);
        let next = read(ApiDialect::Chat, &after).unwrap();
        known.recognise(&next);
        let marked: Vec<bool> = next.items.iter().map(|item| item.hash() == mark).collect();
        assert_eq!(marked, [true, true, false, false]);
    }
}
