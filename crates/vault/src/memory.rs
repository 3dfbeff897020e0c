//! Memory: records in `memory/*.json`, their readable versions `preferences.md` and `facts.md`, and knowledge about
//! sites.
//!
//! The records are authoritative; the Markdown files show them and can be edited: people's additions are kept, and
//! their changes are read back.

use serde::{Deserialize, Serialize};

use super::blocks::{BlockWriter, Grammar, blocks, item};
use super::file::DocumentValue;
use super::links::DualLink;
use super::problem::{ParseProblem, ParsedDocument};
use super::quote::{block_id_at_end, inline, inline_without, uninline};
use super::sync::{ListItem, sync};
use super::{BlockId, DocumentTime, Scope, Score, Ttl, VaultPath};

const PREFERENCES: &str = "# Preferences";
const FACTS: &str = "# Facts";

static PREFERENCES_GRAMMAR: Grammar = Grammar { heads: &[PREFERENCES], labels: &[] };
static FACTS_GRAMMAR: Grammar = Grammar { heads: &[FACTS], labels: &[] };

/// `memory/facts.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FactRecords {
    /// In the order in which they were learned.
    #[serde(default)]
    pub facts: Vec<FactRecord>,
}

/// One remembered statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactRecord {
    /// A permanent id.
    pub id: BlockId,
    /// A category such as `People`.
    pub category: String,
    /// The statement.
    pub fact: String,
    /// The document it comes from.
    #[serde(default)]
    pub source: Option<VaultPath>,
    /// Its scope: one conversation (`new`), the user, or everyone.
    pub scope: Scope,
    /// The confidence in it, which promotion uses as trust.
    pub confidence: Score,
    /// How often it was useful.
    #[serde(default)]
    pub uses: u32,
    /// How long it may be relied on; only evergreen facts are promoted beyond the user.
    pub ttl: Ttl,
    /// When it was learned.
    pub created_at: DocumentTime,
    /// When it was last confirmed.
    pub updated_at: DocumentTime,
}

/// `memory/preferences.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PreferenceRecords {
    /// In the order in which they were learned.
    #[serde(default)]
    pub preferences: Vec<PreferenceRecord>,
}

/// One preference of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreferenceRecord {
    /// Its name, such as `favorite_hamster`.
    pub id: String,
    /// Its value, such as `Syrian`.
    pub value: String,
    /// The document it comes from.
    #[serde(default)]
    pub source: Option<VaultPath>,
    /// When it was last stated.
    pub updated_at: DocumentTime,
}

/// `site_knowledge/{domain}.json`: what was learned about a site, shared by all users. Contains nothing about any
/// user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteKnowledge {
    /// A domain such as `amazon.com`.
    pub domain: String,
    /// When something was last learned.
    pub updated_at: DocumentTime,
    /// How reliable the site is.
    #[serde(default)]
    pub reliability: Option<Score>,
    /// The patterns learned.
    #[serde(default)]
    pub patterns: Vec<SitePattern>,
}

/// One pattern learned about a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SitePattern {
    /// A permanent id.
    pub id: String,
    /// A kind such as `price` or `pagination`.
    pub kind: String,
    /// The pattern, as text or as a selector.
    pub pattern: String,
    /// The confidence in it.
    pub confidence: Score,
    /// How often it was useful.
    #[serde(default)]
    pub uses: u32,
    /// When it last worked.
    pub last_seen: DocumentTime,
}

/// `preferences.md`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preferences(pub Vec<PreferenceLine>);

/// One preference as displayed: `- favorite_hamster: Syrian`, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreferenceLine {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The document it comes from.
    pub source: Option<DualLink>,
}

/// `facts.md`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts(pub Vec<FactLine>);

/// One fact as displayed: `- statement (People, user, 0.9) ^fact-001`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactLine {
    /// The record's id; `None` for what people wrote themselves.
    pub id: Option<BlockId>,
    /// The statement.
    pub fact: String,
    /// Its category.
    pub category: String,
    /// Its scope.
    pub scope: Scope,
    /// The confidence in it.
    pub confidence: Option<Score>,
    /// The document it comes from.
    pub source: Option<DualLink>,
}

fn source_link(source: Option<&VaultPath>) -> Option<DualLink> {
    source.map(|file| DualLink::new(file.clone(), file.folder().rsplit('/').next().unwrap_or_default()))
}

impl From<&PreferenceRecord> for PreferenceLine {
    fn from(record: &PreferenceRecord) -> Self {
        let source = source_link(record.source.as_ref());
        Self { name: record.id.clone(), value: record.value.clone(), source }
    }
}

impl From<&FactRecord> for FactLine {
    fn from(record: &FactRecord) -> Self {
        Self {
            id: Some(record.id.clone()),
            fact: record.fact.clone(),
            category: record.category.clone(),
            scope: record.scope,
            confidence: Some(record.confidence),
            source: source_link(record.source.as_ref()),
        }
    }
}

/// ` ([…](…) | [[…]])`.
fn write_source(source: Option<&DualLink>, at: &VaultPath) -> String {
    source.map(|link| format!(" ({})", link.both(at))).unwrap_or_default()
}

/// The line without its source, and the source. Untrusted text never contains `](`.
fn split_source<'l>(line: &'l str, at: &VaultPath) -> (&'l str, Option<DualLink>) {
    let start = line.find("](").and_then(|link| line[..link].rfind(" (["));
    let source = start.and_then(|start| Some((&line[..start], DualLink::read(&line[start..], at)?)));
    source.map_or((line, None), |(before, source)| (before, Some(source)))
}

impl PreferenceLine {
    fn write(&self, at: &VaultPath) -> String {
        format!(
            "- {}: {}{}",
            inline_without(&self.name, &[':']),
            inline(&self.value),
            write_source(self.source.as_ref(), at)
        )
    }

    fn read(item: &str, at: &VaultPath) -> Option<Self> {
        let (name, rest) = item.split_once(':')?;
        let (value, source) = split_source(rest, at);
        Some(Self { name: uninline(name), value: uninline(value), source })
    }
}

impl FactLine {
    fn write(&self, at: &VaultPath) -> String {
        let confidence = self.confidence.map(|confidence| format!(", {confidence}")).unwrap_or_default();
        let source = write_source(self.source.as_ref(), at);
        let id = self.id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
        let category = inline_without(&self.category, &[',', '(', ')']);
        format!("- {} ({category}, {}{confidence}){source}{id}", inline(&self.fact), self.scope)
    }

    fn read(item: &str, at: &VaultPath) -> Self {
        let (rest, id) = match block_id_at_end(item) {
            Some((place, id)) => (item[..place].trim_end(), BlockId::new(id)),
            None => (item, None),
        };
        let (rest, source) = split_source(rest, at);
        let line = Self {
            id,
            fact: uninline(rest),
            category: String::new(),
            scope: Scope::New,
            confidence: None,
            source,
        };
        let details = rest.trim_end().strip_suffix(')').and_then(|rest| rest.rsplit_once('('));
        let details = details.filter(|(fact, _)| fact.is_empty() || fact.ends_with(' '));
        let Some((fact, details)) = details else { return line };
        let mut details = details.split(',').map(str::trim);
        let (category, scope) = (details.next(), details.next().and_then(|scope| scope.parse().ok()));
        let (Some(category), Some(scope)) = (category, scope) else { return line };
        let confidence = details.next().and_then(|confidence| confidence.parse().ok());
        Self { fact: uninline(fact), category: uninline(category), scope, confidence, ..line }
    }
}

impl Preferences {
    /// Updates the document `text` at path `at` to these preferences. Other lines are kept; preferences that are
    /// missing here are removed.
    pub fn update(&self, text: &str, at: &VaultPath) -> String {
        let key = |line: &str| Some(PreferenceLine::read(item(line)?, at)?.name);
        let entry = |line: &PreferenceLine| ListItem { key: line.name.clone(), line: line.write(at) };
        sync(text, PREFERENCES, &self.0.iter().map(entry).collect::<Vec<_>>(), key, |_| false)
    }
}

impl Facts {
    /// Updates the document `text` at path `at` to these facts. Lines without an id belong to the user and are kept;
    /// facts that are missing here are removed.
    pub fn update(&self, text: &str, at: &VaultPath) -> String {
        let key = |line: &str| FactLine::read(item(line)?, at).id;
        let named = self.0.iter().filter_map(|line| Some((line.id.clone()?, line)));
        let entries: Vec<_> = named.map(|(key, line)| ListItem { key, line: line.write(at) }).collect();
        sync(text, FACTS, &entries, key, |_| false)
    }
}

impl DocumentValue for Preferences {
    fn write_body(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&PREFERENCES_GRAMMAR);
        writer.head(PREFERENCES);
        self.0.iter().for_each(|line| writer.line(&line.write(at)));
        writer.finish()
    }

    fn read_body(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let items = blocks(body, &PREFERENCES_GRAMMAR, line).into_iter().flat_map(|block| block.items(""));
        let read = items.filter_map(|(line, item)| {
            let read = PreferenceLine::read(item, at);
            if read.is_none() {
                problems
                    .push(ParseProblem::new(line, "expected `name: value`; the line is kept but ignored"));
            }
            read
        });
        let read = read.collect();
        ParsedDocument::new(Some(Self(read)), problems)
    }
}

impl DocumentValue for Facts {
    fn write_body(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&FACTS_GRAMMAR);
        writer.head(FACTS);
        self.0.iter().for_each(|line| writer.line(&line.write(at)));
        writer.finish()
    }

    fn read_body(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let items = blocks(body, &FACTS_GRAMMAR, line).into_iter().flat_map(|block| block.items(""));
        ParsedDocument::new(Some(Self(items.map(|(_, item)| FactLine::read(item, at)).collect())), Vec::new())
    }
}
