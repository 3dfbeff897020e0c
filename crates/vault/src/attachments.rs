//! `attachments.md`: what a user pasted into a query, out of the way of the user's own words. Pasted text is written in
//! fences; its pointer gives the bytes.

use super::BlockId;
use super::VaultPath;
use super::blocks::{BlockWriter, Grammar, HeadedBlock, LINKED_TURN, blocks, parsed};
use super::file::DocumentValue;
use super::problem::{ParseProblem, ParsedDocument};
use super::value::{Number, Size};
use larder_text::pointer::Pointer;
use larder_text::sections::SectionId;

const TITLE: &str = "# Attachments";
const ATTACHMENT: &str = "## Attachment ";

static GRAMMAR: Grammar =
    Grammar { heads: &[TITLE, ATTACHMENT], labels: &[LINKED_TURN, "Kind", "Words", "Original", "Content"] };

/// All attachments of a turn, in the order in which they were pasted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attachments {
    /// One for each pasted stretch.
    pub attachments: Vec<Attachment>,
}

/// One pasted stretch of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// From 1. Links refer to it as `^attachment-001`.
    pub number: u32,
    /// What it is, such as `mail` or `log`.
    pub kind: String,
    /// Its number of words.
    pub words: u64,
    /// The pointer to its bytes, within the query as it was typed.
    pub original: Option<Pointer>,
    /// The pasted text.
    pub content: String,
}

impl Attachment {
    /// The block id that links refer to.
    pub fn block(&self) -> BlockId {
        BlockId::numbered("attachment", usize::try_from(self.number).unwrap_or(usize::MAX))
    }

    /// The line of the query that names the attachment: `[attachments.md 1: mail, 360 words, lp1-…]`.
    pub fn line(&self) -> String {
        let original = self.original.as_ref().map(|pointer| format!(", {pointer}")).unwrap_or_default();
        format!("[attachments.md {}: {}, {} words{original}]", self.number, self.kind, self.words)
    }

    fn write(&self, writer: &mut BlockWriter) {
        writer.head(&format!("{ATTACHMENT}{}", self.number));
        writer.text_field("Kind", &self.kind);
        if let Some(original) = &self.original {
            writer.field("Original", &original.to_string());
        }
        writer.field("Words", &self.words.to_string());
        writer.gap();
        writer.label("Content");
        writer.fenced(&self.content);
        // The block is the content.
        writer.line(&self.block().to_string());
    }

    fn read(block: &HeadedBlock<'_>, problems: &mut Vec<ParseProblem>) -> Option<Self> {
        let number = parsed::<Number>(&block.rest, block.line, "Attachment", problems);
        let words = block.line("Words").and_then(|(line, value)| {
            let word = value.split_whitespace().next().unwrap_or_default();
            parsed::<Size>(word, line, "Words", problems)
        });
        Some(Self {
            number: number?.0,
            kind: block.text("Kind").unwrap_or_default(),
            words: words.map(|words| words.0).unwrap_or_default(),
            original: block.line("Original").and_then(|(_, pointer)| pointer.parse().ok()),
            content: block.text_of_block("Content").unwrap_or_default(),
        })
    }
}

impl DocumentValue for Attachments {
    fn write_body(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.head(TITLE);
        writer.line("What was pasted into the query.");
        writer.linked_turn(at, SectionId::UserQuery, 1);
        self.attachments.iter().for_each(|attachment| attachment.write(&mut writer));
        writer.finish()
    }

    fn read_body(body: &str, line: usize, _: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let blocks = blocks(body, &GRAMMAR, line);
        let attachments = blocks.iter().filter(|block| block.head == ATTACHMENT);
        let attachments = attachments.filter_map(|block| Attachment::read(block, &mut problems)).collect();
        ParsedDocument::new(Some(Self { attachments }), problems)
    }
}
