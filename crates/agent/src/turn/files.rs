//! The files of a turn's folder, kept in its draft until the turn is committed. `context.md` is not among them: it only
//! grows, see `documents`.

use larder_store::TurnDraft;
use larder_text::sections::Sections;
use larder_vault::links::DualLink;
use larder_vault::{Document, DocumentValue, Meta, Note, VaultPath};
use serde::Serialize;

/// Adds or replaces a file.
pub(super) fn insert(draft: &mut TurnDraft, at: &VaultPath, bytes: Vec<u8>) {
    draft.files.insert(name(draft, at), bytes);
}

/// Adds or replaces a Markdown document with frontmatter.
pub(super) fn insert_document<T: DocumentValue>(draft: &mut TurnDraft, at: &VaultPath, meta: Meta, value: T) {
    let text = Document::new(meta, value).write(at);
    insert(draft, at, text.into_bytes());
}

/// Adds or replaces a JSON document.
pub(super) fn insert_json<T: Serialize>(draft: &mut TurnDraft, at: &VaultPath, value: &T) {
    insert(draft, at, larder_vault::write_json(value).into_bytes());
}

/// Keeps a document that is about to be replaced, if there is one, under another name (R1-3.81).
pub(super) fn keep(draft: &mut TurnDraft, at: &VaultPath, kept: &VaultPath) {
    let Some(text) = text(draft, at) else { return };
    let stem = kept.name().trim_end_matches(".md");
    let id = format!("{}_{stem}", larder_vault::turn_name(draft.number));
    let text = with_meta(text, |meta| meta.id = id);
    insert(draft, kept, text.into_bytes());
}

/// The document with a change in its frontmatter, if it has any.
pub(super) fn with_meta(text: &str, change: impl FnOnce(&mut Meta)) -> String {
    let end = Sections::parse(text).frontmatter.end;
    let mut front = Note::parse(text).frontmatter;
    let Some(mut meta) = Meta::read(&front).value else { return text.to_owned() };
    change(&mut meta);
    meta.write_into(&mut front);
    format!("{}{}", front.as_str(), &text[end..])
}

/// The text of a file, if the file exists and is text.
pub(super) fn text<'d>(draft: &'d TurnDraft, at: &VaultPath) -> Option<&'d str> {
    std::str::from_utf8(draft.files.get(&name(draft, at))?).ok()
}

/// A link to a document, labelled with its short name.
pub(super) fn link(to: VaultPath) -> DualLink {
    let label = to.short().to_owned();
    DualLink::new(to, &label)
}

/// The path of a file relative to the turn's folder.
fn name(draft: &TurnDraft, at: &VaultPath) -> String {
    let below = at.as_str().strip_prefix(draft.place.folder()).and_then(|rest| rest.strip_prefix('/'));
    below.unwrap_or(at.as_str()).to_owned()
}
