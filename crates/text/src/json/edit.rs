//! Edits of a JSON text by byte range: unedited text is preserved byte for byte. Does not know what the text means.

use std::ops::Range;

use super::{Name, Value};

/// Replaces a byte range of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The bytes to replace; an empty range inserts.
    pub range: Range<usize>,
    /// The replacement text.
    pub with: String,
}

impl Edit {
    /// Inserts `with` before byte `at`.
    pub fn insert(at: usize, with: impl Into<String>) -> Self {
        Self { range: at..at, with: with.into() }
    }

    /// Replaces `range` with `with`.
    pub fn replace(range: Range<usize>, with: impl Into<String>) -> Self {
        Self { range, with: with.into() }
    }

    /// Removes `range`.
    pub const fn remove(range: Range<usize>) -> Self {
        Self { range, with: String::new() }
    }
}

/// Edits that conflict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "bytes {}..{} cannot be edited: they overlap another edit or lie outside a text of {length} bytes",
    range.start,
    range.end
)]
pub struct EditError {
    /// The range of the rejected edit.
    pub range: Range<usize>,
    /// The length of the text, in bytes.
    pub length: usize,
}

/// The text with all edits applied; every other byte is kept. Insertions at one place keep their order.
///
/// # Errors
/// If edits overlap or lie outside the text, which is a bug in the caller.
pub fn apply(text: &str, mut edits: Vec<Edit>) -> Result<String, EditError> {
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let added: usize = edits.iter().map(|edit| edit.with.len()).sum();
    let mut out = String::with_capacity(text.len() + added);
    let mut from = 0;
    for edit in edits {
        let Range { start, end } = edit.range;
        let kept = text.get(from..start).filter(|_| start <= end && text.is_char_boundary(end));
        let Some(kept) = kept else {
            return Err(EditError { range: edit.range, length: text.len() });
        };
        out.push_str(kept);
        out.push_str(&edit.with);
        from = end;
    }
    out.push_str(&text[from..]);
    Ok(out)
}

/// Removes some elements of a container along with their commas. `spans` are the ranges of all elements (for members,
/// starting at the name); `gone` selects those to remove. The others keep their bytes.
pub fn remove_from(spans: &[Range<usize>], gone: impl Fn(usize) -> bool) -> Vec<Edit> {
    let first_kept = (0..spans.len()).find(|&at| !gone(at)).unwrap_or(spans.len());
    let edit = |at: usize| match (spans.get(at), spans.get(at + 1)) {
        // Before the first kept element, remove up to the next one; after it, remove from the end of the previous
        // one. No two edits then touch the same comma.
        (Some(this), Some(next)) if at < first_kept => Edit::remove(this.start..next.start),
        (Some(this), _) if at > first_kept => Edit::remove(spans[at - 1].end..this.end),
        (this, _) => Edit::remove(this.cloned().unwrap_or_default()),
    };
    (0..spans.len()).filter(|&at| gone(at)).map(edit).collect()
}

/// Removes all members with these names from an object.
pub fn without(object: Value<'_, '_>, names: &[&str]) -> Vec<Edit> {
    let members: Vec<_> = object.members().collect();
    let spans: Vec<_> = members.iter().map(|(key, value)| key.span().start..value.span().end).collect();
    let named = |key: &Name<'_>| names.iter().any(|name| key.is(name));
    remove_from(&spans, |at| members.get(at).is_some_and(|(key, _)| named(key)))
}

/// Removes items from an array and inserts others, given as comma-separated `json`, before the remaining ones.
pub fn splice(array: Value<'_, '_>, json: &str, gone: impl Fn(usize) -> bool) -> Vec<Edit> {
    let spans: Vec<_> = array.items().map(Value::span).collect();
    let stays = (0..spans.len()).any(|at| !gone(at));
    let comma = if stays && !json.is_empty() { "," } else { "" };
    let mut edits = remove_from(&spans, gone);
    if !json.is_empty() {
        edits.push(Edit::insert(array.span().start + 1, format!("{json}{comma}")));
    }
    edits
}

/// Appends one or more comma-separated values to an array.
pub fn append_to(array: Value<'_, '_>, json: &str) -> Edit {
    let comma = if array.items().next().is_some() { "," } else { "" };
    Edit::insert(array.span().end - 1, format!("{comma}{json}"))
}

/// Appends one or more comma-separated members to an object.
pub fn add_members(object: Value<'_, '_>, json: &str) -> Edit {
    let comma = if object.members().next().is_some() { "," } else { "" };
    Edit::insert(object.span().end - 1, format!("{comma}{json}"))
}
