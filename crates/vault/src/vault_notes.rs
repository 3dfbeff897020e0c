//! Notes that turn Larder's folder into a vault: wrappers of files that are not Markdown, and the index of each
//! directory.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VaultPath;
use super::blocks::{BlockWriter, Grammar, HeadedBlock, LINKED_TURN, blocks, item};
use super::file::DocumentValue;
use super::links::DualLink;
use super::problem::{ParseProblem, ParsedDocument};
use super::quote::{inline, inline_without, uninline};
use super::sync::{ListItem, sync};

const KEY_FIELDS: &str = "## Key Fields";
const RECENT: &str = "## Recent";
const BY_TOPIC: &str = "## By Topic";

static WRAPPER: Grammar = Grammar { heads: &["# ", KEY_FIELDS], labels: &["Source", LINKED_TURN] };
static INDEX: Grammar = Grammar { heads: &["# ", RECENT, BY_TOPIC], labels: &[] };

/// The readable note next to a file that is not Markdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    /// A title such as `metrics (turn_000815)`.
    pub title: String,
    /// The wrapped file.
    pub source: DualLink,
    /// The `context.md` of the turn that the file belongs to.
    pub turn: Option<DualLink>,
    /// Key figures, such as `total_tokens` and `6850`.
    pub fields: Vec<(String, String)>,
}

impl Wrapper {
    /// The wrapper of a turn's file, with the top-level scalars of `content` as fields.
    pub fn new(file: &VaultPath, context: &VaultPath, content: &Value) -> Self {
        let turn = context.folder().rsplit('/').next().unwrap_or_default();
        let plain = |(key, value): (&String, &Value)| Some((key.clone(), scalar(value)?));
        Self {
            title: format!("{} ({turn})", stem(file)),
            source: DualLink::new(file.clone(), file.name()),
            turn: Some(DualLink::new(context.clone(), turn)),
            fields: content.as_object().into_iter().flatten().filter_map(plain).collect(),
        }
    }

    /// The wrapper of a record outside turns: the scalars of `content`, and how many entries its lists have.
    pub fn of_record(file: &VaultPath, content: &Value) -> Self {
        let entries = |value: &Value| value.as_array().map(|list| list.len().to_string());
        let field = |(key, value): (&String, &Value)| Some((key.clone(), scalar(value).or(entries(value))?));
        Self {
            title: format!("{} ({})", stem(file), file.folder().rsplit('/').next().unwrap_or_default()),
            source: DualLink::new(file.clone(), file.name()),
            turn: None,
            fields: content.as_object().into_iter().flatten().filter_map(field).collect(),
        }
    }
}

fn stem(file: &VaultPath) -> &str {
    file.name().rsplit_once('.').map_or(file.name(), |(stem, _)| stem)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Array(_) | Value::Object(_) | Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

impl DocumentValue for Wrapper {
    fn write_body(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&WRAPPER);
        writer.head(&format!("# {}", inline(&self.title)));
        writer.field("Source", &self.source.both(at));
        if let Some(turn) = &self.turn {
            writer.field(LINKED_TURN, &turn.both(at));
        }
        writer.head(KEY_FIELDS);
        let field =
            |(name, value): &(String, String)| format!("{}: {}", inline_without(name, &[':']), inline(value));
        writer.list(self.fields.iter().map(field));
        writer.finish()
    }

    fn read_body(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let blocks = blocks(body, &WRAPPER, line);
        let under = |head: &str| blocks.iter().find(|block| block.head == head);
        let fields = under(KEY_FIELDS).map(|block| block.items("")).unwrap_or_default().into_iter();
        let fields = fields
            .filter_map(|(_, item)| item.split_once(':'))
            .map(|(name, value)| (uninline(name), uninline(value)));
        let link = |label: &str| under("# ").and_then(|block| DualLink::read(block.line(label)?.1, at));
        let source = link("Source");
        if source.is_none() {
            problems.push(ParseProblem::new(line, "**Source:** followed by a link is missing"));
        }
        let value = under("# ").zip(source).map(|(title, source)| Self {
            title: uninline(&title.rest),
            source,
            turn: link(LINKED_TURN),
            fields: fields.collect(),
        });
        ParsedDocument::new(value, problems)
    }
}

/// The `index.md` of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexNote {
    /// A title such as `Turns`.
    pub title: String,
    /// The most recent documents, newest first.
    pub recent: Vec<IndexEntry>,
    /// Topics, in order.
    pub topics: Vec<TopicEntry>,
}

/// One recent document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// The document.
    pub link: DualLink,
    /// A short description.
    pub note: String,
}

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicEntry {
    /// A topic such as `commerce.laptop`; shown as the tag `#commerce/laptop`, since Obsidian tags cannot contain a
    /// full stop.
    pub topic: String,
    /// A description of what is available.
    pub description: String,
}

impl IndexEntry {
    fn write(&self) -> String {
        format!("- {} - {}", self.link.wiki(), inline(&self.note))
    }

    fn read(item: &str, at: &VaultPath) -> Option<Self> {
        let end = if item.starts_with("[[") { "]]" } else { ")" };
        let (link, note) = item.split_at(item.find(end)? + end.len());
        let note = note.trim_start();
        Some(Self { link: DualLink::read(link, at)?, note: uninline(note.strip_prefix('-').unwrap_or(note)) })
    }
}

impl TopicEntry {
    /// Creates a topic reduced to what a tag can contain: letters, digits, `_`, `-` and inner full stops.
    pub fn new(topic: &str, description: &str) -> Self {
        let kept = |char: char| if char.is_alphanumeric() || "_-".contains(char) { char } else { ' ' };
        let words = topic.split(['.', '/']).map(|word| word.chars().map(kept).collect::<String>());
        let words: Vec<String> =
            words.map(|word| word.split_whitespace().collect::<Vec<_>>().join("-")).collect();
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let topic = if words.is_empty() { "other".to_owned() } else { words.join(".") };
        Self { topic, description: description.to_owned() }
    }

    fn write(&self) -> String {
        format!("- #{} - {}", self.topic.replace('.', "/"), inline(&self.description))
    }

    fn read(item: &str) -> Option<Self> {
        let (tag, description) = item.split_once(' ').unwrap_or((item, ""));
        let description = description.trim_start().strip_prefix('-').unwrap_or(description);
        Some(Self { topic: tag.strip_prefix('#')?.replace('/', "."), description: uninline(description) })
    }
}

impl IndexNote {
    /// Updates the index `text` at path `at` to these entries. Other lines are kept; entries that are missing here
    /// are removed.
    pub fn update(&self, text: &str, at: &VaultPath) -> String {
        let recent = |entry: &IndexEntry| ListItem { key: entry.link.file.clone(), line: entry.write() };
        let recent: Vec<_> = self.recent.iter().map(recent).collect();
        let text =
            sync(text, RECENT, &recent, |line| Some(IndexEntry::read(item(line)?, at)?.link.file), |_| false);
        let topic = |entry: &TopicEntry| ListItem { key: entry.topic.clone(), line: entry.write() };
        let topics: Vec<_> = self.topics.iter().map(topic).collect();
        sync(&text, BY_TOPIC, &topics, |line| Some(TopicEntry::read(item(line)?)?.topic), |_| false)
    }
}

impl DocumentValue for IndexNote {
    fn write_body(&self, _: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&INDEX);
        writer.head(&format!("# {}", inline(&self.title)));
        writer.head(RECENT);
        self.recent.iter().for_each(|entry| writer.line(&entry.write()));
        writer.head(BY_TOPIC);
        self.topics.iter().for_each(|entry| writer.line(&entry.write()));
        writer.finish()
    }

    fn read_body(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let blocks = blocks(body, &INDEX, line);
        let under = |head: &str| blocks.iter().find(|block| block.head == head);
        let items = |block: Option<&HeadedBlock<'_>>| block.map(texts).unwrap_or_default();
        let recent = items(under(RECENT));
        let topics = items(under(BY_TOPIC));
        let value = Self {
            title: under("# ").map(|block| uninline(&block.rest)).unwrap_or_default(),
            recent: recent.iter().filter_map(|item| IndexEntry::read(item, at)).collect(),
            topics: topics.iter().filter_map(|item| TopicEntry::read(item)).collect(),
        };
        ParsedDocument::new(Some(value), Vec::new())
    }
}

fn texts(block: &HeadedBlock<'_>) -> Vec<String> {
    block.items("").into_iter().map(|(_, item)| item.to_owned()).collect()
}
