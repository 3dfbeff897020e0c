//! The passages of a library: where each is, which answer a query, and how one becomes a document of a run.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use larder_core::pack::Slice;
use larder_retrieval::index::{Hit, Index, Query, Record};
use larder_store::Selection;
use larder_text::chunk::chunks;
use larder_text::tokens::Counter;

use super::AskError;
use super::library::{Library, WalkedPaths};
use larder_engine::executor::ProgressObserver;
use larder_engine::inputs::InputDocument;
use larder_text::words::counted;

/// Maximum tokens of a passage: several fit the smallest window, and each is long enough to be cited.
const PASSAGE_TOKENS: usize = 220;
/// Bytes between two reports of progress.
pub(super) const REPORT_BYTES: u64 = 1 << 20;

/// A range of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PassagePlace {
    /// The file's number in the library.
    pub file: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// First and last line, from 1.
    pub lines: (usize, usize),
}

impl PassagePlace {
    pub fn bytes(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// A place that is relevant to a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    pub place: PassagePlace,
    /// From 1 for the best downwards.
    pub relevance: f64,
}

/// A library, divided into passages.
pub(super) struct Passages {
    pub library: Library,
    /// In the order of files and bytes.
    places: Vec<PassagePlace>,
    /// Rarity of the words of the question.
    index: Index,
}

impl Passages {
    /// Reads every file under `paths` once, adds texts from the store, and ranks the passages against `query`, best first.
    pub fn read(
        paths: &[PathBuf],
        held: Vec<(String, Arc<str>)>,
        query: &str,
        counter: &Counter,
        observer: &dyn ProgressObserver,
    ) -> Result<(Self, Vec<Finding>), AskError> {
        observer.stage("looking for files");
        let found = WalkedPaths::under(paths)?;
        observer.stage(&format!("reading {}", counted(found.paths.len() as u64, "file")));
        let mut library = Library::default();
        library.skipped = found.skipped;
        let mut places = Vec::new();
        let mut index = Index::for_query(query);
        let mut divide = |file: usize, text: &str| -> Result<(), AskError> {
            index.start_section();
            for chunk in chunks(text, PASSAGE_TOKENS, counter)? {
                index.add(&Record { text: &text[chunk.bytes.clone()], ..Record::default() });
                let Range { start, end } = chunk.bytes;
                places.push(PassagePlace { file, start, end, lines: chunk.lines });
            }
            Ok(())
        };
        for (name, text) in held {
            divide(library.hold(name, &text), &text)?;
        }
        let (mut done, mut reported) = (0_u64, 0_u64);
        for (path, size) in found.paths {
            if !observer.is_wanted() {
                return Err(AskError::Cancelled);
            }
            done = done.saturating_add(size);
            let Some((file, text)) = library.add(path) else { continue };
            divide(file, &text)?;
            if done - reported >= REPORT_BYTES {
                reported = done;
                observer.progress(done, found.bytes);
            }
        }
        observer.progress(found.bytes, found.bytes);
        if library.files.is_empty() {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            return Err(AskError::NoText(names.join(", ")));
        }
        let passages = Self { library, places, index };
        let found = passages.best(&passages.index, query);
        Ok((passages, found))
    }

    /// How many passages there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// How rare a word of the question is among the passages.
    pub fn rarity(&self, word: &str) -> f64 {
        self.index.rarity(word)
    }

    /// The first passages, for a question whose words occur nowhere.
    pub fn beginning(&self, count: usize) -> Vec<Finding> {
        let first = self.places.iter().take(count);
        first.map(|place| Finding { place: place.clone(), relevance: 1.0 }).collect()
    }

    /// Passages that answer another query, best first. Reads every file again.
    pub fn search(&mut self, query: &str) -> Vec<Finding> {
        let mut index = Index::for_query(query);
        let mut text: Option<Arc<str>> = None;
        for at in 0..self.places.len() {
            let place = self.places[at].clone();
            if at == 0 || self.places[at - 1].file != place.file {
                index.start_section();
                text = self.library.text(place.file);
            }
            let text = text.as_deref().and_then(|text| text.get(place.bytes())).unwrap_or_default();
            index.add(&Record { text, ..Record::default() });
        }
        self.best(&index, query)
    }

    /// Passages that share words with the query, best first.
    fn best(&self, index: &Index, query: &str) -> Vec<Finding> {
        let hits = index.search(&Query::new(query));
        let best = hits.first().map_or(1.0, |hit| hit.score.max(f64::MIN_POSITIVE));
        // Squared, so that the best passages stay whole and the others are condensed first.
        let relevance = |score: f64| (score / best).powi(2).max(1e-6);
        let finding = |hit: Hit| {
            let place = self.places.get(hit.record)?.clone();
            Some(Finding { place, relevance: relevance(hit.score) })
        };
        hits.into_iter().filter_map(finding).collect()
    }

    /// The passages of one file or of all that contain a match of a selection: lines of a pattern, values of a path.
    pub fn select(&mut self, file: Option<usize>, selection: &Selection, most: usize) -> Vec<Finding> {
        let files = file.map_or(0..self.library.files.len(), |file| file..file + 1);
        let mut places = BTreeSet::new();
        for file in files {
            let Some(text) = self.library.text(file) else { continue };
            for range in selection.find(text.as_bytes()).unwrap_or_default() {
                places.extend(self.around(file, &range));
                if places.len() >= most {
                    break;
                }
            }
            if places.len() >= most {
                break;
            }
        }
        places.into_iter().take(most).map(|place| Finding { place, relevance: 1.0 }).collect()
    }

    /// The passages of a file that overlap a range of it.
    fn around(&self, file: usize, range: &Range<usize>) -> Vec<PassagePlace> {
        let first = self.places.partition_point(|place| (place.file, place.end) <= (file, range.start));
        let touches =
            |place: &&PassagePlace| place.file == file && place.start < range.end.max(range.start + 1);
        self.places[first.min(self.places.len())..].iter().take_while(touches).cloned().collect()
    }

    /// The passages before and after a place, within its file.
    pub fn neighbours(&self, place: &PassagePlace) -> Vec<PassagePlace> {
        let Ok(at) = self.places.binary_search(place) else { return Vec::new() };
        let adjacent = [at.checked_sub(1), at.checked_add(1)].into_iter().flatten();
        let same = |at: usize| self.places.get(at).filter(|other| other.file == place.file).cloned();
        adjacent.filter_map(same).collect()
    }

    /// A finding as a document for the input called `input`; `None` when its file has changed.
    pub fn document(&mut self, finding: &Finding, input: &str) -> Option<InputDocument> {
        let PassagePlace { file, start, end, lines } = finding.place;
        let text = self.library.text(file)?;
        let file = self.library.files.get(file)?;
        let passage: Arc<str> = text.get(start..end)?.into();
        Some(InputDocument {
            input: input.to_owned(),
            name: file.name.clone(),
            text: passage,
            slice: Some(Slice { document: file.hash, text, bytes: start..end, lines }),
            relevance: finding.relevance,
            picture: None,
        })
    }
}
