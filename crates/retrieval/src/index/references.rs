//! References between records: the ids that records define, and the records whose text contains these ids.
//!
//! Knows ids as runs of characters; does not know what they mean, or how far references are followed.

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// The ids of records and where they are used. A record may refer to an id that a later one defines.
#[derive(Debug, Clone, Default)]
pub(super) struct References {
    /// The record that defines an id: the first that does.
    defined: HashMap<u64, u32>,
    /// The id that each record defines.
    ids: Vec<Option<u64>>,
    /// The records that contain an id, or a word that looks like one.
    named: HashMap<u64, Vec<u32>>,
    /// The ids in each record, one after another, and where each record's end.
    names: Vec<u64>,
    ends: Vec<usize>,
}

impl References {
    /// Adds the next record: its text, and the id that it defines.
    pub(super) fn add(&mut self, text: &str, id: Option<&str>) {
        let number = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        let id = id.map(|id| xxh3_64(id.as_bytes()));
        if let Some(id) = id {
            self.defined.entry(id).or_insert(number);
        }
        self.ids.push(id);
        for run in runs(text) {
            let run = xxh3_64(run.as_bytes());
            let named = self.named.entry(run).or_default();
            if named.last() != Some(&number) {
                named.push(number);
                self.names.push(run);
            }
        }
        self.ends.push(self.names.len());
    }

    /// Whether some record defines this id.
    pub(super) fn defines(&self, id: &str) -> bool {
        self.defined.contains_key(&xxh3_64(id.as_bytes()))
    }

    /// The records that define the ids in `record`, in the order of the ids.
    pub(super) fn from(&self, record: usize) -> impl Iterator<Item = usize> {
        let first = record.checked_sub(1).map_or(0, |before| self.ends[before]);
        let names = &self.names[first..self.ends[record]];
        names
            .iter()
            .filter_map(|name| self.defined.get(name))
            .map(|&at| at as usize)
            .filter(move |&at| at != record)
    }

    /// The records that contain the id that `record` defines, in order.
    pub(super) fn to(&self, record: usize) -> impl Iterator<Item = usize> {
        let naming = self.ids[record].and_then(|id| self.named.get(&id)).map_or(&[][..], Vec::as_slice);
        naming.iter().map(|&at| at as usize).filter(move |&at| at != record)
    }
}

/// What may be an id: runs of letters, digits and the punctuation of ids and paths that are not plain words.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || is_sign(c)))
        .map(|run| run.trim_matches(is_sign))
        .filter(|run| run.chars().any(|c| is_sign(c) || c.is_ascii_digit()))
}

/// Punctuation within ids and paths.
fn is_sign(c: char) -> bool {
    matches!(c, '-' | '_' | '.' | '/' | ':' | '#' | '@')
}

/// The ids in a text: words of letters, digits and punctuation. Paths are not ids; a model chooses which to follow.
pub fn ids(text: &str) -> impl Iterator<Item = &str> {
    runs(text).filter(|run| {
        is_id(run)
            && !run.contains('/')
            && run.contains(is_sign)
            && run.contains(|c: char| c.is_ascii_digit())
    })
}

/// Whether a word is an id that other records could contain. A number is not: too much contains the same one.
pub fn is_id(word: &str) -> bool {
    runs(word).next() == Some(word) && word.chars().any(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_in_both_directions() {
        let mut references = References::default();
        references.add("### veh-0772 (owner: pers-0401)", Some("veh-0772"));
        references.add("### Ann (ID: pers-0401), see pers-0401.", Some("pers-0401"));
        references.add("A note on pers-0401, veh-0772 and no-where.", Some("note-1"));
        let from = |record| references.from(record).collect::<Vec<_>>();
        let to = |record| references.to(record).collect::<Vec<_>>();
        assert_eq!((from(0), to(0)), (vec![1], vec![2]));
        assert_eq!((from(1), to(1)), (vec![], vec![0, 2]));
        assert_eq!((from(2), to(2)), (vec![1, 0], vec![]));
    }

    #[test]
    fn the_first_record_with_an_id_defines_it() {
        let mut references = References::default();
        references.add("x", Some("a-1"));
        references.add("y", Some("a-1"));
        references.add("a-1", None);
        assert_eq!(references.from(2).collect::<Vec<_>>(), [0]);
        assert_eq!(references.to(1).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn plain_words_are_not_ids() {
        let found: Vec<&str> =
            runs("See turns/turn_000759/research.md (B0), e-mail: x@y.z… the end - 7.").collect();
        assert_eq!(found, ["turns/turn_000759/research.md", "B0", "e-mail", "x@y.z", "7"]);
        let ids: Vec<&str> = ids("pers-0401 at turns/turn_1/a.md, e-mail, B0, 2026-01-05, INC_7.").collect();
        assert_eq!(ids, ["pers-0401", "INC_7"]);
    }
}
