//! The suites, by name. Each owns one measure and knows where its corpus lies.

mod captures;
mod cards;
mod conversations;
mod diffs;
mod html;
mod json;
mod linked;
mod locomo;
mod logs;
mod markdown;
mod memory;
mod needs;
mod routing;
mod speed;
mod talk;
mod text;
mod traces;
mod vault;

use std::path::Path;

use larder_condense::ContentType;
use larder_text::tokens::Counter;

use crate::report::Report;
use crate::{Failure, measure};

pub use needs::ablations;

/// Measures once.
pub type Suite = fn() -> Result<Report, Failure>;

/// All suites that are measured in this program, in the order in which they run.
pub const SUITES: [(&str, Suite); 16] = [
    ("logs", logs::measure),
    ("json", json::measure),
    ("diffs", diffs::measure),
    ("html", html::measure),
    ("captures", captures::measure),
    ("text", text::measure),
    ("markdown", markdown::measure),
    ("traces", traces::measure),
    ("needs", needs::measure),
    ("cards", cards::measure),
    ("memory", memory::measure),
    ("conversations", conversations::measure),
    ("talk", talk::measure),
    ("linked", linked::measure),
    ("routing", routing::measure),
    ("speed", speed::measure),
];

/// What each suite condenses a text of its type to, for a comparison: logs as far as every line is covered, JSON to 8 % of
/// its tokens, diffs to 10 %.
pub(crate) fn target_of(content_type: ContentType, text: &str) -> usize {
    let tokens = Counter::o200k().count(text);
    match content_type {
        ContentType::Log => logs::target_of(text, tokens),
        ContentType::Json => measure::share_of(tokens, json::SHARES[1]),
        _ => measure::share_of(tokens, diffs::SHARE),
    }
}

/// How much of what the suite looks for is still in `output`, and of how much: templates, ids, or names of files.
///
/// # Errors
/// The truth next to the file is not as expected.
pub(crate) fn kept(
    content_type: ContentType,
    folder: &Path,
    file: &str,
    original: &str,
    output: &str,
) -> Result<(usize, usize), Failure> {
    match content_type {
        ContentType::Log => logs::kept(folder, file, original, output),
        ContentType::Json => json::kept(folder, file, output),
        _ => diffs::kept(folder, file, output),
    }
}
