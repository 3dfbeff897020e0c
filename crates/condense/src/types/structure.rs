//! The structure a text has, judged by its own bytes: for tool results and texts whose name says nothing.
//!
//! Structure decides only how a text is made smaller, never how far it is trusted.

use crate::content_type::ContentType;
use crate::types::{chat, diff, html, json, logs, table};

type LooksLike = fn(&str) -> bool;

/// The structure that a text has by its own bytes, if any. Texts with one are rewritten when they are condensed; of all
/// others parts are shown. The most distinctive signs are looked for first.
pub fn structure_of(text: &str) -> Option<ContentType> {
    let looks: [(LooksLike, ContentType); 6] = [
        (chat::looks_like, ContentType::Chat),
        (json::looks_like, ContentType::Json),
        (diff::looks_like, ContentType::Diff),
        (html::looks_like, ContentType::Html),
        (logs::looks_like, ContentType::Log),
        (table::looks_like, ContentType::Table),
    ];
    looks.into_iter().find(|(looks_like, _)| looks_like(text)).map(|(_, structure)| structure)
}
