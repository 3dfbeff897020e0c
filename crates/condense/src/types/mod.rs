//! The content types, one module each: how a type is detected, divided and rewritten.
//!
//! A new type implements [`Condenser`] or [`Divide`](crate::engine::condenser::Divide) in a module here; the compiler
//! then asks for its entry in [`entry`].

pub(crate) mod chat;
mod code;
mod context;
pub(crate) mod detect;
mod diff;
pub(crate) mod html;
mod json;
mod logs;
mod markdown;
mod page;
pub(crate) mod plain;
pub(crate) mod prose;
mod research;
mod table;

use crate::content_type::ContentType;
use crate::engine::condenser::Condenser;
use crate::engine::extractive::Extractive;
use larder_text::terminal::without_terminal_codes;

pub use self::code::GRAMMARS;

pub(crate) const PLAIN: &dyn Condenser = &Extractive(plain::Plain);

/// The entry of a content type.
struct TypeEntry {
    /// `None` for types that only state an origin: these are condensed by the structure of the text.
    condenser: Option<&'static dyn Condenser>,
    /// File name extensions, in lower case.
    extensions: &'static [&'static str],
    /// How a text's bytes reveal this structure.
    structure: Option<Structure>,
}

/// Detects a structure, which decides only how a text is shortened, never how far it is trusted.
struct Structure {
    /// Detectors are tried in this order, the most distinctive first.
    order: u8,
    looks_like: fn(&str) -> bool,
}

impl TypeEntry {
    const fn new(condenser: &'static dyn Condenser) -> Self {
        Self { condenser: Some(condenser), extensions: &[], structure: None }
    }

    const fn by_structure() -> Self {
        Self { condenser: None, extensions: &[], structure: None }
    }

    const fn extensions(self, extensions: &'static [&'static str]) -> Self {
        Self { extensions, ..self }
    }

    const fn structure(self, order: u8, looks_like: fn(&str) -> bool) -> Self {
        Self { structure: Some(Structure { order, looks_like }), ..self }
    }
}

/// File name extensions of source code.
const CODE: &[&str] = &[
    "rs", "py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "go", "java", "c", "h", "cc",
    "cpp", "cxx", "hh", "hpp", "hxx",
];

/// How texts of a type are detected and condensed.
const fn entry(content_type: ContentType) -> TypeEntry {
    match content_type {
        ContentType::ContextDoc => TypeEntry::new(&Extractive(context::ContextDoc::Current)),
        ContentType::PriorTurn => TypeEntry::new(&Extractive(context::ContextDoc::Prior)),
        ContentType::Prose => TypeEntry::new(&Extractive(prose::Prose)),
        ContentType::Markdown => {
            TypeEntry::new(&Extractive(markdown::Markdown)).extensions(&["md", "markdown", "mdx"])
        }
        ContentType::ResearchDoc => TypeEntry::new(&Extractive(research::Research)),
        ContentType::PageDoc => TypeEntry::new(page::CONDENSER),
        ContentType::Chat => TypeEntry::new(chat::CONDENSER).structure(1, chat::looks_like),
        ContentType::Json => TypeEntry::new(json::CONDENSER)
            .structure(2, json::looks_like)
            .extensions(&["json", "jsonl", "ndjson", "geojson", "ipynb"]),
        ContentType::Diff => {
            TypeEntry::new(diff::CONDENSER).structure(3, diff::looks_like).extensions(&["diff", "patch"])
        }
        ContentType::Html => TypeEntry::new(html::CONDENSER)
            .structure(4, html::looks_like)
            .extensions(&["html", "htm", "xhtml"]),
        ContentType::Log => {
            TypeEntry::new(logs::CONDENSER).structure(5, logs::looks_like).extensions(&["log"])
        }
        ContentType::Table => {
            TypeEntry::new(table::CONDENSER).structure(6, table::looks_like).extensions(&["csv", "tsv"])
        }
        ContentType::Code => TypeEntry::new(code::CONDENSER).extensions(CODE),
        ContentType::ToolResult | ContentType::Generic => TypeEntry::by_structure(),
    }
}

/// The condenser for a text of this type.
pub(crate) fn condenser_for(content_type: ContentType, text: &str) -> &'static dyn Condenser {
    let by_structure = || entry(structure_of(text)?).condenser;
    entry(content_type).condenser.or_else(by_structure).unwrap_or(PLAIN)
}

/// The structure revealed by a text's bytes, if any. Texts with one are rewritten when condensed; of all others,
/// parts are shown.
pub fn structure_of(text: &str) -> Option<ContentType> {
    let text = &*without_terminal_codes(text);
    let structure = |content_type| Some((entry(content_type).structure?, content_type));
    let mut structures: Vec<_> = ContentType::ALL.into_iter().filter_map(structure).collect();
    structures.sort_by_key(|(structure, _)| structure.order);
    structures.into_iter().find(|(structure, _)| (structure.looks_like)(text)).map(|(_, found)| found)
}

/// The type implied by a file name extension.
pub fn by_extension(name: &str) -> Option<ContentType> {
    let (_, extension) = name.rsplit_once('.')?;
    let is_listed = |content_type: &ContentType| {
        entry(*content_type).extensions.iter().any(|known| extension.eq_ignore_ascii_case(known))
    };
    ContentType::ALL.into_iter().find(is_listed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_types_claim_an_extension_or_a_place_in_the_order() {
        let entries = || ContentType::ALL.map(entry).into_iter();
        let mut extensions = BTreeSet::new();
        assert!(entries().flat_map(|entry| entry.extensions).all(|extension| extensions.insert(extension)));
        let mut orders = BTreeSet::new();
        assert!(
            entries().filter_map(|entry| entry.structure).all(|structure| orders.insert(structure.order))
        );
    }
}
