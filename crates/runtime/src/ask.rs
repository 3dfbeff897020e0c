//! Answering a question over files and folders of any size: read, split, rank against the question, hand the best
//! passages to a recipe. The packer decides how many of them enter.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use larder_core::content::chunk::{Chunk, ChunkError, chunks};
use larder_core::content::rank::RankIndex;
use larder_core::hash::ContentHash;
use larder_core::pack::Slice;

use crate::engine::Engine;
use crate::executor::Observer;
use crate::inputs::{Document, RunInput};

/// Tokens of a passage at most: several fit into the smallest window, and each says enough to be cited.
const PASSAGE_TOKENS: usize = 220;
/// Passages on either side whose words speak for a passage too: what answers often stands beside what is asked.
const NEIGHBOURS: usize = 1;
/// Passages offered to the packer, best first; more could not enter the window of any shipped recipe.
const OFFERED: usize = 64;
/// Bytes of all files together.
const MAX_BYTES: u64 = 1 << 30;
/// Bytes of one file.
const MAX_FILE: u64 = 256 << 20;
/// Folders that hold no text of the user's.
const SKIPPED: [&str; 4] = ["target", "node_modules", "__pycache__", "venv"];

/// What was found, ready to run.
#[derive(Debug)]
pub struct Found {
    /// For the recipe.
    pub input: RunInput,
    /// Files that were passed over, and why.
    pub skipped: Vec<String>,
    /// Files read.
    pub files: usize,
    /// Bytes read.
    pub bytes: usize,
    /// Passages ranked.
    pub passages: usize,
}

impl Found {
    /// One line for people.
    pub fn summary(&self) -> String {
        format!(
            "read {} files, {:.1} MB; ranked {} passages, offered the best {}",
            self.files,
            self.bytes as f64 / 1e6,
            self.passages,
            self.input.documents.len()
        )
    }
}

/// Why nothing can be asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// A named path cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Nothing readable was found.
    #[error("no readable text in {0}; name files or folders that hold text in UTF-8")]
    Nothing(String),
    /// The recipe is not there.
    #[error(transparent)]
    Recipe(#[from] larder_core::recipe::RecipeError),
    /// A passage is too small to hold anything.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// The layer is bound to no model.
    #[error("layer {0} is bound to no model; bind it under [models.layers] in larder.toml")]
    Unbound(&'static str),
}

struct File {
    name: String,
    text: Arc<str>,
    hash: ContentHash,
}

impl File {
    fn passage(&self, input: &str, chunk: &Chunk, relevance: f64) -> Document {
        Document {
            input: input.to_owned(),
            name: self.name.clone(),
            text: self.text[chunk.bytes.clone()].into(),
            slice: Some(Slice {
                document: self.hash,
                text: Arc::clone(&self.text),
                bytes: chunk.bytes.clone(),
                lines: chunk.lines,
            }),
            relevance,
        }
    }
}

/// Reads `paths` and ranks their passages against `question` for the recipe's first input.
pub fn gather(
    engine: &Engine,
    recipe: &str,
    paths: &[PathBuf],
    question: &str,
    observer: &dyn Observer,
) -> Result<Found, AskError> {
    let recipe = engine.project.recipe(recipe)?;
    let input_name = recipe.input_docs.first().map_or("passages", |doc| doc.name.as_str());
    let model = engine
        .models
        .table()
        .resolve(recipe.layer, recipe.mode)
        .ok_or(AskError::Unbound(recipe.layer.as_str()))?;
    let counter = engine.counter(model.spec);
    observer.stage("reading files");
    let mut skipped = Vec::new();
    let files = read_all(paths, &mut skipped)?;
    if files.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(AskError::Nothing(names.join(", ")));
    }
    observer.stage(&format!("splitting {} files into passages", files.len()));
    let mut passages = Vec::new();
    let mut index = RankIndex::default();
    for (file, read) in files.iter().enumerate() {
        index.start_document();
        for chunk in chunks(&read.text, PASSAGE_TOKENS, &counter)? {
            index.add(&read.text[chunk.bytes.clone()]);
            passages.push((file, chunk));
        }
    }
    observer.stage(&format!("ranking {} passages", passages.len()));
    let mut ranked = index.search(question, NEIGHBOURS);
    ranked.truncate(OFFERED);
    let best = ranked.first().map_or(1.0, |hit| hit.score.max(f64::MIN_POSITIVE));
    let passage = |number: usize, relevance: f64| {
        let (file, chunk) = &passages[number];
        files[*file].passage(input_name, chunk, relevance)
    };
    // Squared, so that the best passages stay whole and the others shrink first.
    let mut documents: Vec<Document> =
        ranked.iter().map(|hit| passage(hit.passage, (hit.score / best).powi(2).max(1e-6))).collect();
    if documents.is_empty() {
        // Nothing answers the question by its words: the beginnings are the best guess there is.
        documents.extend((0..passages.len().min(OFFERED / 8)).map(|number| passage(number, 1.0)));
    }
    Ok(Found {
        files: files.len(),
        bytes: files.iter().map(|file| file.text.len()).sum(),
        passages: passages.len(),
        skipped,
        input: RunInput { documents, query: Some(question.to_owned()), ..RunInput::default() },
    })
}

fn read_all(paths: &[PathBuf], skipped: &mut Vec<String>) -> Result<Vec<File>, AskError> {
    let mut found = Vec::new();
    let mut total = 0;
    for path in paths {
        let failed = |source| AskError::Read { path: path.clone(), source };
        if std::fs::metadata(path).map_err(failed)?.is_dir() {
            walk(path, &mut found, skipped, &mut total);
        } else {
            read_one(path, &mut found, skipped, &mut total);
        }
    }
    Ok(found)
}

/// Walks a folder in the order of names. Links are not followed: they could lead out of what the user named.
fn walk(dir: &Path, found: &mut Vec<File>, skipped: &mut Vec<String>, total: &mut u64) {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return skipped.push(format!("{}: {error}", dir.display())),
    };
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || kind.is_symlink() || (kind.is_dir() && SKIPPED.contains(&name.as_str())) {
            continue;
        }
        if kind.is_dir() {
            walk(&entry.path(), found, skipped, total);
        } else if kind.is_file() {
            read_one(&entry.path(), found, skipped, total);
        }
    }
}

fn read_one(path: &Path, found: &mut Vec<File>, skipped: &mut Vec<String>, total: &mut u64) {
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if size > MAX_FILE || *total + size > MAX_BYTES {
        return skipped.push(format!("{}: {size} bytes are too many", path.display()));
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return skipped.push(format!("{}: {error}", path.display())),
    };
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => skipped.push(format!("{}: not text", path.display())),
        Ok(text) if text.trim().is_empty() => {}
        Ok(text) => {
            *total += size;
            let hash = ContentHash::of(text.as_bytes());
            let name = path.strip_prefix("./").unwrap_or(path).to_string_lossy().into_owned();
            found.push(File { name, text: text.into(), hash });
        }
        Err(_) => skipped.push(format!("{}: not text in UTF-8", path.display())),
    }
}
