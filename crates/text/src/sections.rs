//! The sections of `context.md`: their names, headings, budgets, and their locations in a text.
//!
//! Knows the notation of a section heading; does not know a section's content, author or readers.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Level 2: the size at which `context.md` as a whole is condensed, in a call of [`CALL_LIMIT_TOKENS`] (R0-25.2).
const DOCUMENT_TRIGGER_TOKENS: usize = 8_600;
/// The size to which level 2 condenses it in such a call (R0-25.2).
const DOCUMENT_TARGET_TOKENS: usize = 7_500;
/// Level 3: the size at which such a call is condensed aggressively (R0-25.3).
const CALL_TRIGGER_TOKENS: usize = 11_000;
/// The call that the sizes above are given for, in tokens. A larger or smaller one has them in proportion (C20).
const CALL_LIMIT_TOKENS: usize = 12_000;

/// The size above which level 2 condenses `context.md` in a call of `total` tokens.
pub const fn document_trigger(total: usize) -> usize {
    in_proportion(total, DOCUMENT_TRIGGER_TOKENS)
}

/// The size to which level 2 condenses `context.md` in a call of `total` tokens.
pub const fn document_target(total: usize) -> usize {
    in_proportion(total, DOCUMENT_TARGET_TOKENS)
}

/// The size of prompt and input above which level 3 reduces a call of `total` tokens.
pub const fn call_trigger(total: usize) -> usize {
    in_proportion(total, CALL_TRIGGER_TOKENS)
}

const fn in_proportion(total: usize, of_limit: usize) -> usize {
    // Multiplying quotient and remainder separately gives the exact floor without overflow.
    let (whole, rest) = (total / CALL_LIMIT_TOKENS, total % CALL_LIMIT_TOKENS);
    whole * of_limit + rest * of_limit / CALL_LIMIT_TOKENS
}

/// A section of `context.md` by its stable id; the number is for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SectionId {
    /// §0: the user's question, verbatim and resolved.
    UserQuery,
    /// §1: whether to proceed or to ask the user for clarification.
    Reflection,
    /// §2: what was gathered.
    GatheredContext,
    /// §3: goals and tasks.
    TaskPlan,
    /// §4: tool calls, results and claims.
    ToolExecution,
    /// §5: the answer.
    Synthesis,
    /// §6: the verdict on the answer.
    Validation,
}

impl SectionId {
    /// All sections, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::UserQuery,
        Self::Reflection,
        Self::GatheredContext,
        Self::TaskPlan,
        Self::ToolExecution,
        Self::Synthesis,
        Self::Validation,
    ];

    /// The number after `§` and in the heading: 0 to 6.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The section with this number; `None` above 6.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The stable id used in recipes, receipts and indexes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserQuery => "user_query",
            Self::Reflection => "reflection",
            Self::GatheredContext => "gathered_context",
            Self::TaskPlan => "task_plan",
            Self::ToolExecution => "tool_execution",
            Self::Synthesis => "synthesis",
            Self::Validation => "validation",
        }
    }

    /// The heading line of the first attempt, without its line break.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::UserQuery => "## 0. User Query",
            Self::Reflection => "## 1. Reflection Decision",
            Self::GatheredContext => "## 2. Gathered Context",
            Self::TaskPlan => "## 3. Task Plan",
            Self::ToolExecution => "## 4. Tool Execution",
            Self::Synthesis => "## 5. Synthesis",
            Self::Validation => "## 6. Validation",
        }
    }

    /// Tokens above which level 1 condenses this section by itself (R0-11.13 to R0-11.19); §0 is exempt (C30).
    pub const fn token_budget(self) -> usize {
        match self {
            Self::UserQuery => 500,        // R0-11.13
            Self::Reflection => 300,       // R0-11.14
            Self::GatheredContext => 2000, // R0-11.15
            Self::TaskPlan => 800,         // R0-11.16
            Self::ToolExecution => 2500,   // R0-11.17
            Self::Synthesis => 2000,       // R0-11.18
            Self::Validation => 500,       // R0-11.19
        }
    }

    /// Words above which level 1 condenses this section, if words are limited too (R1-3.7 to R1-3.13, C14).
    pub const fn word_limit(self) -> usize {
        match self {
            Self::UserQuery => 500,        // R1-3.7
            Self::Reflection => 300,       // R1-3.8
            Self::GatheredContext => 2000, // R1-3.9
            Self::TaskPlan => 1000,        // R1-3.10
            Self::ToolExecution => 3000,   // R1-3.11
            Self::Synthesis => 2000,       // R1-3.12
            Self::Validation => 500,       // R1-3.13
        }
    }

    /// Whether this section may be condensed: all except the user's query (R0-11.20, C30).
    pub const fn may_condense(self) -> bool {
        !matches!(self, Self::UserQuery)
    }

    /// Parses `§4`, `section_4` or `tool_execution`; `None` for anything else.
    pub fn from_selector(selector: &str) -> Option<Self> {
        let number = selector.strip_prefix('§').or_else(|| selector.strip_prefix("section_"));
        match number.map(str::as_bytes) {
            Some([digit @ b'0'..=b'9']) => Self::from_number(digit - b'0'),
            Some(_) => None,
            None => Self::ALL.into_iter().find(|id| id.name() == selector),
        }
    }
}

impl fmt::Display for SectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "§{}", self.number())
    }
}

/// One written version of a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The section's id; a text may contain several versions of a section.
    pub id: SectionId,
    /// The version, from 1: the number in its heading, or one more than the highest so far.
    pub attempt: u32,
    /// The byte range of heading line and body.
    pub range: Range<usize>,
    /// The byte range of the body alone.
    pub body: Range<usize>,
}

/// A text divided into sections. Frontmatter, preamble and sections tile it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sections {
    /// YAML between `---` lines at the very start, those lines included; empty if there is none. It counts towards no
    /// section's budget (C81).
    pub frontmatter: Range<usize>,
    /// Text before the first section.
    pub preamble: Range<usize>,
    /// Every version of every section, in document order.
    pub sections: Vec<Section>,
}

impl Sections {
    /// Divides `text`. A section starts only at a line that equals a canonical heading, optionally followed by `
    /// (Attempt N)`; every other heading is body text (C8). Never fails.
    pub fn parse(text: &str) -> Self {
        let frontmatter = 0..frontmatter_end(text);
        let mut sections: Vec<Section> = Vec::new();
        let mut newest = [0_u32; SectionId::ALL.len()];
        let mut preamble = frontmatter.end..text.len();
        for line in lines(text, frontmatter.end) {
            let Some((id, attempt)) = parse_heading(&text[line.clone()]) else { continue };
            match sections.last_mut() {
                Some(previous) => (previous.range.end, previous.body.end) = (line.start, line.start),
                None => preamble.end = line.start,
            }
            let newest = &mut newest[usize::from(id.number())];
            let attempt = attempt.unwrap_or(newest.saturating_add(1));
            *newest = attempt.max(*newest);
            sections.push(Section { id, attempt, range: line.start..text.len(), body: line.end..text.len() });
        }
        Self { frontmatter, preamble, sections }
    }

    /// The current version of a section: the one written last, since the text is append-only (C7, C8).
    pub fn newest(&self, id: SectionId) -> Option<&Section> {
        self.sections.iter().rev().find(|section| section.id == id)
    }

    /// Every version of a section, oldest first.
    pub fn attempts(&self, id: SectionId) -> impl DoubleEndedIterator<Item = &Section> {
        self.sections.iter().filter(move |section| section.id == id)
    }
}

/// Whether `line`, with or without its line break, would start a section.
pub fn starts_section(line: &str) -> bool {
    parse_heading(line).is_some()
}

/// Byte ranges of the lines of `text` starting at `from`, line breaks included.
fn lines(text: &str, from: usize) -> impl Iterator<Item = Range<usize>> {
    text[from..].split_inclusive('\n').scan(from, |start, line| {
        let range = *start..*start + line.len();
        *start = range.end;
        Some(range)
    })
}

fn without_break(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

fn parse_heading(line: &str) -> Option<(SectionId, Option<u32>)> {
    let line = without_break(line);
    let number = line.strip_prefix("## ")?.bytes().next()?.checked_sub(b'0')?;
    let id = SectionId::from_number(number)?;
    match line.strip_prefix(id.heading())? {
        "" => Some((id, None)),
        suffix => {
            let digits = suffix.strip_prefix(" (Attempt ")?.strip_suffix(')')?;
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
            let attempt = digits.parse().ok().filter(|_| plain)?;
            Some((id, Some(attempt)))
        }
    }
}

/// The end of the frontmatter; 0 if there is none. Frontmatter never contains a canonical heading, so an unclosed
/// `---` cannot swallow a section.
fn frontmatter_end(text: &str) -> usize {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = lines(text, text.len() - body.len());
    let opens = lines.next().is_some_and(|line| without_break(&text[line]) == "---");
    if !opens {
        return 0;
    }
    for line in lines {
        match without_break(&text[line.clone()]) {
            "---" | "..." => return line.end,
            other if starts_section(other) => return 0,
            _ => {}
        }
    }
    0
}

#[cfg(test)]
#[path = "sections_tests.rs"]
mod tests;
