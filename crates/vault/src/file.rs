//! One of Larder's Markdown documents: frontmatter and a value. The writer always adds frontmatter; the reader
//! accepts its absence.

use super::note::Note;
use super::problem::ParsedDocument;
use super::write::{escape, unescape};
use super::{Meta, VaultPath};

/// The content of a Markdown document.
pub trait DocumentValue: Sized {
    /// Writes the body, for a document at path `at`.
    fn write_body(&self, at: &VaultPath) -> String;

    /// Reads a body whose first line has number `line` in the file.
    fn read_body(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self>;
}

/// A document with its frontmatter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<T> {
    /// The frontmatter; `None` if it was removed.
    pub meta: Option<Meta>,
    /// The document's content.
    pub value: T,
}

impl<T: DocumentValue> Document<T> {
    /// A document with frontmatter.
    pub const fn new(meta: Meta, value: T) -> Self {
        Self { meta: Some(meta), value }
    }

    /// The whole file, at path `at`. Nothing in it can be mistaken for a section of `context.md`, wherever the text
    /// is inserted.
    pub fn write(&self, at: &VaultPath) -> String {
        let front = self.meta.as_ref().map(Meta::write).unwrap_or_default();
        front.as_str().to_owned() + &escape(&self.value.write_body(at))
    }

    /// Reads a whole file at path `at`.
    pub fn read(text: &str, at: &VaultPath) -> ParsedDocument<Self> {
        let note = Note::parse(text);
        let body = T::read_body(&unescape(&note.body), note.body_line(), at);
        let meta = match note.frontmatter.as_str() {
            "" => ParsedDocument::new(None, Vec::new()),
            _ => Meta::read(&note.frontmatter),
        };
        let problems = meta.problems.into_iter().chain(body.problems).collect();
        ParsedDocument::new(body.value.map(|value| Self { meta: meta.value, value }), problems)
    }
}
