//! Who names whom: ids that records define, and the records in whose text these ids stand.
//!
//! Knows ids as runs of characters; does not know what they mean, or how far they are followed.

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// The ids of records and where they are named. A record may name what a later one defines.
#[derive(Debug, Clone, Default)]
pub(super) struct Links {
    /// The record that defines an id: the first that does.
    defined: HashMap<u64, u32>,
    /// The id that each record defines.
    ids: Vec<Option<u64>>,
    /// The records in which an id, or what looks like one, is named.
    named: HashMap<u64, Vec<u32>>,
    /// What each record names, one after another, and where each ends.
    names: Vec<u64>,
    ends: Vec<usize>,
}

impl Links {
    /// Adds the next record: its text, the id that it defines, and ids that it names beside those in its text.
    pub(super) fn add(&mut self, text: &str, id: Option<&str>, links: &[&str]) {
        let number = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        let id = id.map(|id| xxh3_64(id.as_bytes()));
        if let Some(id) = id {
            self.defined.entry(id).or_insert(number);
        }
        self.ids.push(id);
        for run in runs(text).chain(links.iter().copied()) {
            let run = xxh3_64(run.as_bytes());
            let named = self.named.entry(run).or_default();
            if named.last() != Some(&number) {
                named.push(number);
                self.names.push(run);
            }
        }
        self.ends.push(self.names.len());
    }

    /// The records that define what `record` names, in the order of the names.
    pub(super) fn from(&self, record: usize) -> impl Iterator<Item = usize> {
        let first = record.checked_sub(1).map_or(0, |before| self.ends[before]);
        let names = &self.names[first..self.ends[record]];
        names
            .iter()
            .filter_map(|name| self.defined.get(name))
            .map(|&at| at as usize)
            .filter(move |&at| at != record)
    }

    /// The records that name what `record` defines, in order.
    pub(super) fn to(&self, record: usize) -> impl Iterator<Item = usize> {
        let naming = self.ids[record].and_then(|id| self.named.get(&id)).map_or(&[][..], Vec::as_slice);
        naming.iter().map(|&at| at as usize).filter(move |&at| at != record)
    }
}

/// What may be an id: runs of letters, digits and the signs of ids and paths, that are no plain words.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let sign = |c: char| matches!(c, '-' | '_' | '.' | '/' | ':' | '#' | '@');
    text.split(move |c: char| !(c.is_alphanumeric() || sign(c)))
        .map(move |run| run.trim_matches(sign))
        .filter(move |run| run.chars().any(|c| sign(c) || c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_both_ways_whatever_comes_first() {
        let mut links = Links::default();
        links.add("### veh-0772 (owner: pers-0401)", Some("veh-0772"), &[]);
        links.add("### Ann (ID: pers-0401), see pers-0401.", Some("pers-0401"), &[]);
        links.add("A note.", Some("notes/a b.md"), &["pers-0401", "veh-0772", "nowhere"]);
        let from = |record| links.from(record).collect::<Vec<_>>();
        let to = |record| links.to(record).collect::<Vec<_>>();
        assert_eq!((from(0), to(0)), (vec![1], vec![2]));
        assert_eq!((from(1), to(1)), (vec![], vec![0, 2]));
        assert_eq!((from(2), to(2)), (vec![1, 0], vec![]));
    }

    #[test]
    fn the_first_who_defines_an_id_keeps_it() {
        let mut links = Links::default();
        links.add("x", Some("a-1"), &[]);
        links.add("y", Some("a-1"), &[]);
        links.add("a-1", None, &[]);
        assert_eq!(links.from(2).collect::<Vec<_>>(), [0]);
        assert_eq!(links.to(1).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn plain_words_are_no_ids() {
        let found: Vec<&str> =
            runs("See turns/turn_000759/research.md (B0), e-mail: x@y.z… the end - 7.").collect();
        assert_eq!(found, ["turns/turn_000759/research.md", "B0", "e-mail", "x@y.z", "7"]);
    }
}
