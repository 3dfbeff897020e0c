//! Source code: signatures before bodies, public before private, and within bodies whatever the query asks for first.
//!
//! Knows the order of importance and how units are formed; `tree` assigns roles to lines by grammar, `lexical` by
//! indentation and braces where no grammar fits or parsing is too slow.

mod language;
mod lexical;
mod outline;
mod signs;
mod tree;

use self::outline::CodeOutline;
use self::signs::Language;
use crate::engine::condenser::{Condenser, Divide};
use crate::engine::draft::ExtractionOptions;
use crate::engine::extractive::Extractive;
use crate::engine::job::Job;
use crate::engine::units::TextPiece;
use crate::types::plain::Plain;
use larder_text::source::without_line_numbers;

/// The condenser of source code.
pub(crate) const CONDENSER: &dyn Condenser = &Extractive(Code);

/// Larger texts are read by indentation and braces. Parsing was measured at 3 to 6 MB/s on a busy machine: 1 MiB of
/// Rust takes at least 260 ms, this much about 35 ms.
const MAX_PARSED: usize = 128 << 10;
/// Texts with a longer average line, in bytes, are not written by hand: minified code is treated as data.
const LONGEST_AVERAGE_LINE: usize = 400;

/// Programming languages with a built-in grammar.
pub const GRAMMARS: [&str; signs::SIGNS.len()] =
    ["Rust", "Python", "JavaScript", "TypeScript", "TSX", "Go", "Java", "C", "C++"];

struct Code;

impl Divide for Code {
    fn units(&self, job: &Job<'_>) -> Vec<TextPiece> {
        let shown = job.request.text;
        let plain = without_line_numbers(shown);
        let text = plain.as_deref().unwrap_or(shown);
        let mut outline = CodeOutline::of(text);
        if text.len() / outline.rows().max(1) > LONGEST_AVERAGE_LINE {
            return Plain.units(job);
        }
        let language = Language::of(text);
        let parsed = language.filter(|_| text.len() <= MAX_PARSED).and_then(|language| language.parse(text));
        match parsed {
            Some((language, tree)) => tree::annotate(&tree, language, &mut outline),
            None => lexical::annotate(language, &mut outline),
        }
        outline.of_lines_in(shown).pieces()
    }

    fn options(&self, _: &Job<'_>) -> ExtractionOptions {
        ExtractionOptions { salient_first: false, indented_markers: true, ..ExtractionOptions::default() }
    }
}

#[cfg(test)]
#[path = "../code_tests.rs"]
mod tests;
