//! §2: the gathered context.

use std::collections::BTreeMap;

use crate::blocks::{BlockWriter, Grammar, HeadedBlock, blocks, parsed};
use crate::links::{DualLink, Reference, encoded, files_in};
use crate::problem::{ParseProblem, ParsedDocument};
use crate::quote::inline;
use crate::value::{Hours, ValueError, words};
use crate::{Score, VaultPath, turn_name};
use larder_text::sections::SectionId;

use super::SectionValue;

const INFORMATION: &str = "### Gathered Information";
const PREFERENCES: &str = "### Session Preferences";
const TURNS: &str = "### Relevant Prior Turns";
const RESEARCH: &str = "### Cached Research Intelligence";
const REFERENCES: &str = "### Source References";
const REFERENCES_WIKI: &str = "### Source References (Obsidian)";
/// The label of the records of memory.
const MEMORY: &str = "Memory";
/// The label of the wikilinks of earlier turns, for which the cells of a table have no place.
const TURNS_WIKI: &str = "Turns";

static GRAMMAR: Grammar = Grammar {
    heads: &[INFORMATION, PREFERENCES, TURNS, RESEARCH, REFERENCES, REFERENCES_WIKI],
    labels: &["Sufficiency", MEMORY, TURNS_WIKI, "Research", "Topic", "Quality Score", "Age", "Top Results"],
};

words! {
    /// The relevance of an earlier turn.
    Relevance, "high, medium or low":
    /// It contains an answer.
    High = "high",
    /// It is helpful.
    Medium = "medium",
    /// It is loosely related.
    Low = "low",
}

words! {
    /// Whether the gathered information is enough (R1-11.4 to R1-11.8). The planner routes by it (R1-11.10).
    Sufficiency, "SUFFICIENT, STALE_RESEARCH, NEEDS_RESEARCH or NEEDS_MORE":
    /// It answers the query.
    Sufficient = "SUFFICIENT",
    /// Lasting facts are there; the rest is out of date.
    StaleResearch = "STALE_RESEARCH",
    /// Nothing relevant is known.
    NeedsResearch = "NEEDS_RESEARCH",
    /// Only part of what is needed is known.
    NeedsMore = "NEEDS_MORE",
}

/// The content of §2.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GatheredContext {
    /// Whether it is enough.
    pub sufficiency: Option<Sufficiency>,
    /// The information compiled for the question, as text.
    pub information: String,
    /// The user's preferences and their sources.
    pub preferences: Vec<Preference>,
    /// Relevant earlier turns.
    pub prior_turns: Vec<PriorTurn>,
    /// Research that is already available.
    pub research: Vec<CachedResearch>,
    /// The `context.md` of the turns that the tables name, to which their numbers link (R1-8.4).
    pub turns: BTreeMap<u32, VaultPath>,
    /// The records of memory that preferences and facts are from (R1-8.5).
    pub memory: Vec<VaultPath>,
    /// The documents used.
    pub references: Vec<Reference>,
}

/// A preference of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preference {
    /// Its name, such as `budget`.
    pub name: String,
    /// Its value, such as `$500-800`.
    pub value: String,
    /// The turn in which it was stated.
    pub source_turn: Option<u32>,
}

/// A relevant earlier turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorTurn {
    /// Its number.
    pub turn: u32,
    /// Its relevance.
    pub relevance: Relevance,
    /// A summary of the turn.
    pub summary: String,
}

/// Research that is already available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedResearch {
    /// The document, whose label is the research's id.
    pub document: Option<DualLink>,
    /// Its topic, such as `commerce.laptop`.
    pub topic: String,
    /// Its quality.
    pub quality: Score,
    /// Its age.
    pub age: Hours,
    /// Its best findings.
    pub top: Vec<TopResult>,
}

/// One research finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopResult {
    /// The product.
    pub product: String,
    /// Its price.
    pub price: String,
    /// Its source.
    pub source: String,
}

const PREFERENCE: [&str; 3] = ["Preference", "Value", "Source"];
const TURN: [&str; 3] = ["Turn", "Relevance", "Summary"];
const TOP: [&str; 3] = ["Product", "Price", "Source"];

impl SectionValue for GatheredContext {
    const ID: SectionId = SectionId::GatheredContext;

    fn write(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        if let Some(sufficiency) = self.sufficiency {
            writer.field("Sufficiency", sufficiency.as_str());
        }
        if !self.memory.is_empty() {
            let link = |file: &VaultPath| DualLink::new(file.clone(), file.short()).both(at);
            writer.field(MEMORY, &self.memory.iter().map(link).collect::<Vec<_>>().join(", "));
        }
        if !self.information.is_empty() {
            writer.head(INFORMATION);
            writer.text(&self.information);
        }
        if !self.preferences.is_empty() {
            writer.head(PREFERENCES);
            let turn = |turn: u32| self.link(turn, &format!("turn {turn}"), at);
            let source = |row: &Preference| row.source_turn.map(turn).unwrap_or_default();
            let row = |row: &Preference| [inline(&row.name), inline(&row.value), source(row)];
            writer.written_table(PREFERENCE, self.preferences.iter().map(row));
        }
        if !self.prior_turns.is_empty() {
            writer.head(TURNS);
            let turn = |turn: u32| self.link(turn, &turn.to_string(), at);
            let row = |row: &PriorTurn| [turn(row.turn), row.relevance.to_string(), inline(&row.summary)];
            writer.written_table(TURN, self.prior_turns.iter().map(row));
        }
        if !self.turns.is_empty() {
            let link =
                |(turn, file): (&u32, &VaultPath)| DualLink::new(file.clone(), &turn_name(*turn)).wiki();
            writer.field(TURNS_WIKI, &self.turns.iter().map(link).collect::<Vec<_>>().join(", "));
        }
        self.research.iter().for_each(|research| research.write(&mut writer, at));
        if !self.references.is_empty() {
            writer.head(REFERENCES);
            let numbered = |(number, reference): (usize, &Reference)| reference.numbered(number + 1, at);
            writer.list(self.references.iter().enumerate().map(numbered));
            writer.head(REFERENCES_WIKI);
            writer.list(self.references.iter().map(Reference::wiki));
        }
        writer.finish()
    }

    fn read(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let mut read = Self::default();
        let mut numbered = Vec::new();
        for block in blocks(body, &GRAMMAR, line) {
            match block.head {
                INFORMATION | "" => {
                    read.sufficiency = read.sufficiency.or(block.value("Sufficiency", &mut problems));
                    let memory = block.line(MEMORY).map(|(_, links)| files_in(links, at));
                    read.memory.extend(memory.unwrap_or_default());
                    read.information.push_str(&block.text("").unwrap_or_default());
                }
                PREFERENCES => {
                    let rows = block.rows("", PREFERENCE).into_iter();
                    let rows =
                        rows.map(|(line, row)| preference(line, row, (&mut read.turns, at), &mut problems));
                    read.preferences.extend(rows);
                }
                TURNS => {
                    let rows = block.rows("", TURN).into_iter();
                    let turns = &mut read.turns;
                    let rows =
                        rows.filter_map(|(line, row)| prior_turn(line, row, (turns, at), &mut problems));
                    read.prior_turns.extend(rows);
                }
                RESEARCH => read.research.extend(CachedResearch::read(&block, at, &mut problems)),
                REFERENCES => numbered = references(&block, at, &mut problems),
                _ => read.references = references(&block, at, &mut problems),
            }
        }
        if read.references.is_empty() {
            read.references = numbered;
        }
        ParsedDocument::new(Some(read), problems)
    }
}

impl GatheredContext {
    /// The section for a prompt: [`write`](SectionValue::write) without the copies of the links for Obsidian, which say
    /// the same again.
    pub fn write_digest(&self, at: &VaultPath) -> String {
        let text = self.write(at);
        let kept = text.split_once(REFERENCES_WIKI).map_or(text.as_str(), |(kept, _)| kept);
        let copy = format!("**{TURNS_WIKI}:**");
        let lines: Vec<&str> = kept.trim_end().lines().filter(|line| !line.starts_with(&copy)).collect();
        lines.join("\n") + "\n"
    }

    /// The cell that names an earlier turn: a link to it, if its place is known.
    fn link(&self, turn: u32, text: &str, at: &VaultPath) -> String {
        match self.turns.get(&turn) {
            Some(file) => format!("[{text}]({})", encoded(&at.relative(file))),
            None => text.to_owned(),
        }
    }
}

impl CachedResearch {
    fn write(&self, writer: &mut BlockWriter, at: &VaultPath) {
        writer.head(RESEARCH);
        if let Some(document) = &self.document {
            writer.field("Research", &document.both(at));
        }
        writer.text_field("Topic", &self.topic);
        writer.field("Quality Score", &self.quality.to_string());
        writer.field("Age", &format!("{} hours", self.age));
        if !self.top.is_empty() {
            writer.label("Top Results");
            let row = |row: &TopResult| [row.product.clone(), row.price.clone(), row.source.clone()];
            writer.table(TOP, self.top.iter().map(row));
        }
    }

    fn read(block: &HeadedBlock<'_>, at: &VaultPath, problems: &mut Vec<ParseProblem>) -> Option<Self> {
        let quality = block.required("Quality Score", problems);
        let age = block.required("Age", problems);
        let top = block.rows("Top Results", TOP).into_iter();
        Some(Self {
            document: block.line("Research").and_then(|(_, link)| DualLink::read(link, at)),
            topic: block.text("Topic").unwrap_or_default(),
            quality: quality?,
            age: age?,
            top: top.map(|(_, [product, price, source])| TopResult { product, price, source }).collect(),
        })
    }
}

/// The places of turns, and the document that names them.
type Turns<'t> = (&'t mut BTreeMap<u32, VaultPath>, &'t VaultPath);

fn preference(
    line: usize,
    [name, value, source]: [String; 3],
    turns: Turns<'_>,
    problems: &mut Vec<ParseProblem>,
) -> Preference {
    let source_turn = if source.trim().is_empty() { None } else { turn(&source, line, turns, problems) };
    Preference { name, value, source_turn }
}

fn prior_turn(
    line: usize,
    [number, relevance, summary]: [String; 3],
    turns: Turns<'_>,
    problems: &mut Vec<ParseProblem>,
) -> Option<PriorTurn> {
    let number = turn(&number, line, turns, problems);
    let relevance = parsed(&relevance, line, "Relevance", problems);
    Some(PriorTurn { turn: number?, relevance: relevance?, summary })
}

/// The turn of a cell such as `811`, `turn 811` or `[turn 811](../turn_000811/context.md)`.
fn turn(cell: &str, line: usize, turns: Turns<'_>, problems: &mut Vec<ParseProblem>) -> Option<u32> {
    let link = cell.trim().strip_prefix('[').and_then(|rest| rest.split_once("]("));
    let text = link.map_or(cell, |(text, _)| text);
    let number = text.trim().trim_start_matches("turn").trim_matches([' ', '_']);
    let error = || ParseProblem::new(line, ValueError::new("the number of a turn", number).to_string());
    let number = number.parse().map_err(|_| problems.push(error())).ok()?;
    let (known, at) = turns;
    let file = link.and_then(|_| DualLink::read(cell, at)).map(|link| link.file);
    known.extend(file.map(|file| (number, file)));
    Some(number)
}

fn references(block: &HeadedBlock<'_>, at: &VaultPath, problems: &mut Vec<ParseProblem>) -> Vec<Reference> {
    let items = block.items("").into_iter();
    items
        .filter_map(|(line, item)| {
            let read = Reference::read(item, at).or_else(|| bare(item));
            if read.is_none() {
                problems.push(ParseProblem::new(line, "expected a link to a document of the vault"));
            }
            read
        })
        .collect()
}

/// A hand-written path relative to the root of the vault.
fn bare(item: &str) -> Option<Reference> {
    let file = VaultPath::new(item.trim())?;
    let label = file.short().to_owned();
    Some(Reference { link: DualLink::new(file, &label), note: String::new() })
}
