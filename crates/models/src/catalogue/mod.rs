//! The catalogue: what is known about the models of all providers, by the ids that providers, resellers and clouds
//! use. Owns its data, how an id finds its entry, and which limits hold; settings and servers are elsewhere.
//!
//! # Input limit and window
//!
//! The data states how long a prompt may be and how long a reply. Whether both share the window is decided here, by
//! one rule ([`LimitRule`]): where the maker publishes a window that is the sum of the two (`families.tsv` lists them
//! with their sources), the prompt may fill its own limit whatever the reply asks for; in all other cases the
//! prompt's limit is the window, and the reply is part of it. Resellers often list the maker's whole window as the
//! limit of the prompt: then the maker's parts hold.

mod overrides;
mod row;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use larder_text::family::{Family, SeparateLimits};
use larder_text::model_id::ModelId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::price::Prices;
pub use overrides::Override;
pub use row::{Kind, PriceTier, Row, STANDARD};

/// The table that is built in; `catalogue/generate.py` writes it.
static BUILT_IN: &[u8] = include_bytes!("../../catalogue/models.zip");
/// The version of the format that a file of ours states.
const FORMAT: u32 = 1;
/// Resellers in front of ids that are the makers' own, in litellm's spelling.
const MAKERS: [&str; 15] = [
    "anthropic",
    "amazon-nova",
    "codestral",
    "cohere",
    "dashscope",
    "deepseek",
    "gemini",
    "meta",
    "meta_llama",
    "minimax",
    "mistral",
    "moonshot",
    "openai",
    "xai",
    "zai",
];

/// Where a catalogue comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The version of the format.
    pub format: u32,
    /// The name of the table, with its version.
    pub source: String,
    /// When the table was taken from there, as `2026-11-24`.
    pub date: String,
    /// Its licence.
    pub license: String,
}

/// Facts about models, by id. Clones share them.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// Unpacked when it is first asked.
    table: Arc<OnceLock<Table>>,
    /// What settings state, by id.
    overrides: Arc<BTreeMap<String, Override>>,
}

/// The lines of a file of ours: the source, then an id, a tab and a [`Row`] each.
#[derive(Debug, Default)]
struct Table {
    source: Option<Source>,
    text: String,
    /// Where the id and the row of each model are, in the order of ids.
    lines: Vec<(Range<usize>, Range<usize>)>,
    /// Models by key, as places in `lines`.
    keys: BTreeMap<String, Vec<usize>>,
}

/// Why a file is not a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// It is in neither format.
    #[error("this is neither litellm's table of models nor a catalogue that Larder wrote: {0}")]
    Format(String),
    /// A model that cannot be read.
    #[error("model {id:?}: {reason}")]
    Model {
        /// Its id.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is too small to be a whole table.
    #[error("the file has {0} models, fewer than a whole table; settings override single models")]
    Small(usize),
}

/// How an id found its entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Match {
    /// The id in the catalogue.
    pub id: String,
    /// What was removed from the id or respelled; empty if the catalogue has the very id.
    pub steps: Vec<&'static str>,
}

/// Which limits hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitRule {
    /// Prompt and reply share the window.
    Shared,
    /// The prompt has a limit of its own.
    Separate,
}

/// How long prompt and reply may be, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Which of the two rules holds.
    pub rule: LimitRule,
    /// Prompt and reply together.
    pub window: u64,
    /// The prompt.
    pub input: u64,
    /// Whether the source contradicts itself or the maker, so that the provider may decide otherwise.
    pub uncertain: bool,
}

/// What the catalogue says about a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// How its id was found.
    pub matched: Match,
    /// The facts of its row.
    pub row: Row,
    /// Its limits; `None` if the catalogue does not say.
    pub limits: Option<Limits>,
    /// The maker's id that limits were taken from, if not from its own row.
    pub limits_from: Option<String>,
    /// What holds for its family.
    pub family: Option<&'static Family>,
    /// Whether settings state some of this.
    pub overridden: bool,
    /// Whether settings state its window or the limit of its prompt.
    pub states_window: bool,
}

impl Limits {
    /// The limit of the prompt, where it has one of its own.
    pub fn input_limit(&self) -> Option<u64> {
        (self.rule == LimitRule::Separate).then_some(self.input)
    }
}

impl Entry {
    /// What tokens cost; `None` if unknown.
    pub fn prices(&self) -> Option<Prices> {
        self.row.all_prices()
    }

    /// Tokens of the shortest prompt that its provider caches: of the model, otherwise of its family.
    pub fn cache_minimum(&self) -> Option<u64> {
        let family = self.family.and_then(|family| family.cache_minimum);
        self.row.cache_minimum.or(family.and_then(|tokens| u64::try_from(tokens).ok()))
    }
}

/// Catalogues with the same text and overrides are the same.
impl PartialEq for Catalogue {
    fn eq(&self, other: &Self) -> bool {
        self.overrides == other.overrides && self.has_same_table(other)
    }
}

impl Catalogue {
    fn has_same_table(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table) || self.to_text() == other.to_text()
    }
}

impl fmt::Display for Catalogue {
    /// The name of its source, with the date.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source().map_or(Ok(()), |Source { source, date, .. }| write!(f, "{source}, {date}"))
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Catalogue {
    /// The catalogue that is compiled in. It is unpacked on first use, which takes some milliseconds.
    pub fn built_in() -> Self {
        Self { table: Arc::default(), overrides: Arc::default() }
    }

    /// Reads litellm's table or a file that [`to_text`](Self::to_text) wrote. `source` describes litellm's; a file of
    /// ours names its own.
    ///
    /// # Errors
    /// What is wrong with it; a table with one broken model is refused as a whole.
    pub fn read(text: &str, source: Source) -> Result<Self, CatalogueError> {
        let first = text.lines().next().unwrap_or_default();
        let table = if serde_json::from_str::<Source>(first).is_ok() {
            Table::new(text.to_owned())?
        } else {
            let entries = serde_json::from_str::<Map<String, Value>>(text);
            let entries = entries.map_err(|error| CatalogueError::Format(error.to_string()))?;
            Table::new(converted(&entries, &Source { format: FORMAT, ..source })?)?
        };
        /// What every release of litellm's table since 2024 has.
        const LEAST: usize = 100;
        if table.lines.len() < LEAST {
            return Err(CatalogueError::Small(table.lines.len()));
        }
        for at in 0..table.lines.len() {
            let bad = |reason| CatalogueError::Model { id: table.id(at).to_owned(), reason };
            let row: Row = serde_json::from_str(&table.text[table.lines[at].1.clone()])
                .map_err(|error| bad(error.to_string()))?;
            row.problem().map_or(Ok(()), |problem| Err(bad(problem)))?;
        }
        Ok(Self { table: Arc::new(OnceLock::from(table)), overrides: Arc::default() })
    }

    /// The catalogue as a file, to be read by [`read`](Self::read).
    pub fn to_text(&self) -> &str {
        &self.table().text
    }

    /// Where the facts come from.
    pub fn source(&self) -> Option<&Source> {
        self.table().source.as_ref()
    }

    /// All ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let table = self.table();
        table.lines.iter().map(|(id, _)| &table.text[id.clone()])
    }

    /// The same with what settings state about models, by their ids.
    #[must_use]
    pub fn with_overrides(&self, overrides: BTreeMap<String, Override>) -> Self {
        Self { table: Arc::clone(&self.table), overrides: overrides.into() }
    }

    /// The entry of a model: of exactly this id, otherwise of the same model at the same provider, otherwise at its
    /// maker. Another reseller's facts are no facts about this one. What settings state comes first.
    pub fn find(&self, id: &str) -> Option<Entry> {
        let found = self.in_table(id);
        let Some(own) = self.override_of(id) else { return found };
        Some(own.applied(found.unwrap_or_else(|| Entry::blank(id))))
    }

    /// The row of exactly this id.
    pub fn exactly(&self, id: &str) -> Option<Row> {
        let table = self.table();
        table.row(table.place(id)?)
    }

    /// Whether a row or a setting is of exactly this id. [`Catalogue::find`] also knows any number of spellings.
    pub fn has(&self, id: &str) -> bool {
        self.overrides.contains_key(id) || self.table().place(id).is_some()
    }

    /// The id that a model's tokens are counted by: one of the family that settings state, otherwise its own.
    pub fn counted_as<'a>(&'a self, id: &'a str) -> &'a str {
        self.override_of(id).and_then(|own| own.family.as_deref()).unwrap_or(id)
    }

    fn in_table(&self, id: &str) -> Option<Entry> {
        let (table, parsed) = (self.table(), ModelId::parse(id));
        // Fine-tuned models have their own prices, so a row of one describes no other.
        let plain = |at: &usize| !is_tuned(&ModelId::parse(table.id(*at)));
        let same_key = || table.keys.get(&parsed.key).into_iter().flatten().copied().filter(plain);
        let tuned = id.match_indices(':').nth(1).filter(|_| is_tuned(&parsed));
        let exact = table.place(id);
        // Versions of one model differ by date alone: the provider's own id for the one that is asked for comes first.
        let unprefixed = || table.place(id.rsplit_once('/')?.1);
        let unprefixed =
            || unprefixed().filter(|at| ModelId::parse(table.id(*at)).reseller == parsed.reseller);
        let own_row =
            exact.or_else(|| tuned.and_then(|(end, _)| table.place(&id[..end]))).or_else(unprefixed);
        let at = own_row.or_else(|| best(table, same_key(), |other| other.reseller == parsed.reseller));
        let maker = best(table, same_key(), is_makers);
        let at = at.or(maker)?;
        let (matched_id, mut row) = (table.id(at).to_owned(), table.row(at)?);
        let family = Family::of(&parsed);
        let own = row.max_input.and_then(|input| limits(input, row.max_output, family, row.kind));
        let mut limits_from = None;
        let limits = own.or_else(|| {
            let at = maker.filter(|maker| *maker != at)?;
            let makers = table.row(at)?;
            limits_from = Some(table.id(at).to_owned());
            row.max_output = row.max_output.or(makers.max_output);
            limits(makers.max_input?, makers.max_output, family, makers.kind)
        });
        if limits.is_none() {
            limits_from = None;
        }
        if own_row.is_none() && (parsed.variant.is_some() || is_tuned(&parsed)) {
            // What a variant costs is not what the model costs.
            row.prices.clear();
        }
        let steps = if exact.is_some() { Vec::new() } else { parsed.steps };
        Some(Entry {
            matched: Match { id: matched_id, steps },
            row,
            limits,
            limits_from,
            family,
            overridden: false,
            states_window: false,
        })
    }

    /// Ids that contain all of these words, those of settings included, in order.
    pub fn search(&self, words: &[String]) -> BTreeSet<&str> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let ids = self.ids().chain(self.overrides.keys().map(String::as_str));
        ids.filter(|id| {
            let id = id.to_lowercase();
            words.iter().all(|word| id.contains(word))
        })
        .collect()
    }

    /// The id that is most like an unknown one, if any is similar.
    pub fn nearest(&self, id: &str) -> Option<&str> {
        const SIMILAR: f64 = 0.75;
        let key = ModelId::parse(id).key;
        let scored = self
            .table()
            .keys
            .iter()
            .map(|(other, places)| (strsim::normalized_damerau_levenshtein(&key, other), places));
        let (_, places) = scored.filter(|(score, _)| *score >= SIMILAR).max_by(|a, b| a.0.total_cmp(&b.0))?;
        let table = self.table();
        best(table, places.iter().copied(), |_| true).map(|at| table.id(at))
    }

    fn table(&self) -> &Table {
        // The tests read all of the built-in file, so the empty table is never used.
        self.table.get_or_init(|| unpacked().and_then(|text| Table::new(text).ok()).unwrap_or_default())
    }
}

/// The built-in file.
fn unpacked() -> Option<String> {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(BUILT_IN)).ok()?;
    let mut text = String::new();
    archive.by_index(0).ok()?.read_to_string(&mut text).ok()?;
    Some(text)
}

/// litellm's table as a file of ours.
fn converted(entries: &Map<String, Value>, source: &Source) -> Result<String, CatalogueError> {
    let bad = |id: &str, reason: String| CatalogueError::Model { id: id.to_owned(), reason };
    let mut lines = BTreeMap::new();
    for (id, entry) in entries {
        let Some(fields) = entry.as_object() else {
            return Err(CatalogueError::Format(format!("{id:?} is not an object")));
        };
        let Some(row) = Row::from_litellm(fields).map_err(|reason| bad(id, reason))? else { continue };
        let row = serde_json::to_string(&row).map_err(|error| bad(id, error.to_string()))?;
        lines.insert(id, row);
    }
    let source = serde_json::to_string(source).map_err(|error| CatalogueError::Format(error.to_string()))?;
    let lines = lines.iter().map(|(id, row)| format!("{id}\t{row}\n"));
    Ok(std::iter::once(format!("{source}\n")).chain(lines).collect())
}

impl Table {
    /// Finds the models in a file of ours.
    fn new(text: String) -> Result<Self, CatalogueError> {
        let bad = |reason: String| CatalogueError::Format(reason);
        let end = text.find('\n').ok_or_else(|| bad("it has no lines".to_owned()))?;
        let source: Source = serde_json::from_str(&text[..end])
            .map_err(|error| bad(format!("its first line does not name its source: {error}")))?;
        if source.format != FORMAT {
            return Err(bad(format!("its format is {}, and this version reads {FORMAT}", source.format)));
        }
        let mut table = Self { source: Some(source), ..Self::default() };
        let mut start = end + 1;
        for line in text[start..].split_inclusive('\n') {
            let (from, id) = (start, line.split('\t').next().unwrap_or_default());
            start += line.len();
            let row = from + id.len() + 1..from + line.trim_end().len();
            if id.is_empty() || row.start >= row.end {
                return Err(bad(format!("{:?} is not an id, a tab and a model", line.trim_end())));
            }
            table.lines.push((from..from + id.len(), row));
        }
        table.text = text;
        let ids: Vec<&str> = table.lines.iter().map(|(id, _)| &table.text[id.clone()]).collect();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(bad(format!("{:?} does not come after {:?}", pair[1], pair[0])));
        }
        for (at, id) in ids.iter().enumerate() {
            table.keys.entry(ModelId::parse(id).key).or_default().push(at);
        }
        Ok(table)
    }

    fn id(&self, at: usize) -> &str {
        self.lines.get(at).map_or("", |(id, _)| &self.text[id.clone()])
    }

    fn row(&self, at: usize) -> Option<Row> {
        let (_, row) = self.lines.get(at)?;
        serde_json::from_str(&self.text[row.clone()]).ok()
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.lines.binary_search_by(|(other, _)| self.text[other.clone()].cmp(id)).ok()
    }
}

/// The plainest of the ids at these places that is wanted: the shortest, then the first.
fn best(
    table: &Table,
    places: impl Iterator<Item = usize>,
    is_wanted: impl Fn(&ModelId) -> bool,
) -> Option<usize> {
    let wanted = places.filter(|at| is_wanted(&ModelId::parse(table.id(*at))));
    wanted.min_by_key(|at| (table.id(*at).len(), *at))
}

/// Whether an id is one that the model's maker uses.
fn is_makers(id: &ModelId) -> bool {
    let plain = id.reseller.is_empty() || MAKERS.contains(&id.reseller.as_str());
    plain && id.variant.is_none() && !is_tuned(id)
}

/// Whether an id is that of a fine-tuned model.
fn is_tuned(id: &ModelId) -> bool {
    id.steps.contains(&"fine-tuning prefix")
}

/// The limits of a model by the rule above.
fn limits(input: u64, output: Option<u64>, family: Option<&Family>, kind: Kind) -> Option<Limits> {
    let shared = |uncertain| Limits { rule: LimitRule::Shared, window: input, input, uncertain };
    let splits = family.map_or(&[][..], |family| &family.windows);
    let separate = |split: &SeparateLimits, uncertain| Limits {
        rule: LimitRule::Separate,
        window: split.window,
        input: split.input,
        uncertain,
    };
    if input == 0 {
        return None;
    }
    let Some(output) = output.filter(|_| kind != Kind::Embedding) else { return Some(shared(false)) };
    let of_output = |split: &&SeparateLimits| split.output == output;
    let parts = splits.iter().filter(of_output).find(|split| split.input == input);
    let whole = splits.iter().filter(of_output).find(|split| split.window == input);
    Some(match (parts, whole) {
        (Some(split), _) => separate(split, false),
        (None, Some(split)) => separate(split, true),
        // A table that repeats one number for both does not know one of them; and one that splits the window neither
        // as the maker does nor not at all is the reseller's own limit or a mistake.
        (None, None) => shared(output >= input || !splits.is_empty()),
    })
}

#[cfg(test)]
#[path = "../catalogue_tests.rs"]
mod tests;
