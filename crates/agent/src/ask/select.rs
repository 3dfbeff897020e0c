//! The matches of a selection in files, folders and stored texts: every place, in order, without ranking or a model.

use std::path::PathBuf;

use larder_store::{Selection, StoreError};
use larder_text::pointer::Pointer;
use larder_text::words::counted;

use super::library::{Library, WalkedPaths};
use super::passages::REPORT_BYTES;
use super::{AskError, Asker, Quote, SearchReport};

impl Asker<'_> {
    /// The first `limit` matches of a selection under `paths`, which are files, folders and pointers: each line of a
    /// pattern, each value of a path. Texts with a match are stored, so that the pointers resolve. Every relevance is 1.
    ///
    /// # Errors
    /// If nothing can be read, or the findings cannot be stored.
    pub fn select(
        &self,
        paths: &[PathBuf],
        selection: &Selection,
        limit: usize,
    ) -> Result<(Vec<Quote>, SearchReport), AskError> {
        let (paths, held) = self.stored(paths)?;
        self.observer.stage("looking for files");
        let found = WalkedPaths::under(&paths)?;
        let mut library = Library::default();
        library.skipped = found.skipped;
        let mut quotes = Vec::new();
        for (name, text) in held {
            library.hold(name.clone(), &text);
            quotes.extend(self.places(&name, &text, selection, limit.saturating_sub(quotes.len()))?);
        }
        self.observer.stage(&format!("reading {}", counted(found.paths.len() as u64, "file")));
        let (mut done, mut reported) = (0_u64, 0_u64);
        for (path, size) in found.paths {
            if !self.observer.is_wanted() {
                return Err(AskError::Cancelled);
            }
            if quotes.len() >= limit {
                break;
            }
            done = done.saturating_add(size);
            let Some((file, text)) = library.add(path) else { continue };
            let name = library.files[file].name.clone();
            quotes.extend(self.places(&name, &text, selection, limit - quotes.len())?);
            if done - reported >= REPORT_BYTES {
                reported = done;
                self.observer.progress(done, found.bytes);
            }
        }
        if library.files.is_empty() {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            return Err(AskError::NoText(names.join(", ")));
        }
        let search = SearchReport {
            files: library.files.len(),
            bytes: library.bytes,
            passages: quotes.len(),
            offered: quotes.len(),
            skipped: library.skipped,
            ..SearchReport::default()
        };
        Ok((quotes, search))
    }

    fn places(
        &self,
        name: &str,
        text: &str,
        selection: &Selection,
        limit: usize,
    ) -> Result<Vec<Quote>, StoreError> {
        // A text that the selection cannot read, such as one that is not JSON, has no match.
        let mut ranges = selection.find(text.as_bytes()).unwrap_or_default();
        ranges.truncate(limit);
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let stored = self.engine.store.pointers().insert(text.as_bytes(), "document", name)?;
        let (mut line, mut at) = (1, 0);
        let mut quotes = Vec::new();
        for range in ranges {
            // Values of a path can contain one another.
            if range.start < at {
                (line, at) = (1, 0);
            }
            let (Some(before), Some(part)) = (text.get(at..range.start), text.get(range.clone())) else {
                continue;
            };
            line += breaks(before);
            at = range.start;
            let last = line + breaks(part.strip_suffix('\n').unwrap_or(part));
            quotes.push(Quote {
                source: name.to_owned(),
                lines: (line, last),
                bytes: (range.start, range.end),
                relevance: 1.0,
                pointer: Pointer::bytes(stored.pointer_id.id.clone(), range.clone()),
                text: part.to_owned(),
            });
        }
        Ok(quotes)
    }
}

fn breaks(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}
