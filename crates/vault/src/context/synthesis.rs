//! §5: the answer, or a digest of it, and the writer's checklist.

use crate::VaultPath;
use crate::blocks::{BlockWriter, Grammar, blocks};
use crate::links::DualLink;
use crate::problem::{ParseProblem, ParsedDocument};
use larder_text::sections::SectionId;

use super::SectionValue;

static GRAMMAR: Grammar =
    Grammar { heads: &[], labels: &["Response Preview", "Full Response", "Validation Checklist"] };

const CHECKS: [&str; 4] =
    ["Claims match evidence", "Intent satisfied", "No hallucinations", "Appropriate format"];

/// The content of §5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synthesis {
    /// The answer in Markdown, or a digest of it.
    pub preview: String,
    /// The full answer, if the section contains a digest.
    pub full: Option<DualLink>,
    /// The writer's own assessment of its answer.
    pub checklist: Checklist,
}

/// The four items of the checklist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checklist {
    /// Claims match evidence.
    pub claims_match: bool,
    /// Intent satisfied.
    pub intent_satisfied: bool,
    /// No hallucinations.
    pub no_hallucinations: bool,
    /// Appropriate format.
    pub appropriate_format: bool,
}

impl SectionValue for Synthesis {
    const ID: SectionId = SectionId::Synthesis;

    fn write(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.label("Response Preview");
        writer.text(&self.preview);
        if let Some(full) = &self.full {
            writer.field("Full Response", &full.both(at));
        }
        writer.gap();
        writer.label("Validation Checklist");
        let list = &self.checklist;
        let boxes =
            [list.claims_match, list.intent_satisfied, list.no_hallucinations, list.appropriate_format];
        let lines = CHECKS.into_iter().zip(boxes);
        writer.list(lines.map(|(name, checked)| format!("[{}] {name}", if checked { 'x' } else { ' ' })));
        writer.finish()
    }

    fn read(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let blocks = blocks(body, &GRAMMAR, line);
        let block = &blocks[0];
        let items = block.items("Validation Checklist");
        let checked = |name: &str| {
            let boxes = items.iter().filter_map(|(_, item)| item.strip_prefix('[')?.split_once(']'));
            boxes.into_iter().any(|(mark, text)| mark.eq_ignore_ascii_case("x") && text.trim() == name)
        };
        // A hand-written answer may lack its label.
        let Some(preview) = block.text("Response Preview").or_else(|| block.text("")) else {
            return ParsedDocument::new(
                None,
                vec![ParseProblem::new(line, "**Response Preview:** is missing, so there is no answer")],
            );
        };
        let [claims_match, intent_satisfied, no_hallucinations, appropriate_format] = CHECKS.map(checked);
        let checklist = Checklist { claims_match, intent_satisfied, no_hallucinations, appropriate_format };
        let full = block.line("Full Response").and_then(|(_, link)| DualLink::read(link, at));
        ParsedDocument::new(Some(Self { preview, full, checklist }), Vec::new())
    }
}
