//! The content types, one module each: how a type is recognised, divided and rewritten.
//!
//! A new type implements [`Condenser`] or [`Divide`](crate::engine::condenser::Divide) in a module here and is entered
//! in [`condenser_for`]; a type that is recognised by its bytes is entered in [`structure`] as well.

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
mod structure;
mod table;

use crate::content_type::ContentType;
use crate::engine::condenser::Condenser;
use crate::engine::extractive::Extractive;

pub use self::structure::structure_of;

pub(crate) const PLAIN: &dyn Condenser = &Extractive(plain::Plain);

/// What says only where a text comes from (a tool, a page) is condensed by the structure it has.
pub(crate) fn condenser_for(content_type: ContentType, text: &str) -> &'static dyn Condenser {
    match content_type {
        ContentType::ContextDoc => &Extractive(context::ContextDoc::Current),
        ContentType::PriorTurn => &Extractive(context::ContextDoc::Prior),
        ContentType::Prose => &Extractive(prose::Prose),
        ContentType::Markdown => &Extractive(markdown::Markdown),
        ContentType::ResearchDoc => &Extractive(research::Research),
        ContentType::PageDoc => page::CONDENSER,
        ContentType::Chat => chat::CONDENSER,
        ContentType::Json => json::CONDENSER,
        ContentType::Log => logs::CONDENSER,
        ContentType::Diff => diff::CONDENSER,
        ContentType::Code => code::CONDENSER,
        ContentType::Html => html::CONDENSER,
        ContentType::Table => table::CONDENSER,
        ContentType::ToolResult | ContentType::Generic => match structure_of(text) {
            Some(structure) => condenser_for(structure, text),
            None => PLAIN,
        },
    }
}
