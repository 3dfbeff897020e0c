//! `research.md` and `research.json`: the full results of one research task.

use serde::{Deserialize, Serialize};

use super::blocks::{BlockWriter, Grammar, HeadedBlock, blocks, item};
use super::context::Claim;
use super::file::DocumentValue;
use super::links::DualLink;
use super::problem::{ParseProblem, ParsedDocument};
use super::quote::{inline, uninline};
use super::sync::{ListItem, sync};
use super::value::words;
use super::{DocumentTime, Intent, Score, VaultPath};

const TITLE: &str = "# Research Document";
const METADATA: &str = "## Metadata";
const WRITE_UP: &str = "## Write-Up";
const EVERGREEN: &str = "## Evergreen Knowledge";
const SOURCES: &str = "### Reputable Sources";
const FACTS: &str = "### General Facts";
const TIME_SENSITIVE: &str = "## Time-Sensitive Data";
const LISTINGS: &str = "### Current Listings";
const CLAIMS: &str = "## Claims";
const LINKED_FROM: &str = "## Linked From";

static GRAMMAR: Grammar = Grammar {
    heads: &[
        TITLE,
        METADATA,
        WRITE_UP,
        EVERGREEN,
        SOURCES,
        FACTS,
        TIME_SENSITIVE,
        LISTINGS,
        CLAIMS,
        LINKED_FROM,
    ],
    labels: &[
        "ID",
        "Turn",
        "Session",
        "Query",
        "Topic",
        "Intent",
        "Quality",
        "Created",
        "Expires",
        "Supersedes",
        "Title",
        "Overview",
        FINDINGS,
        LASTING,
        AGING,
    ],
};

/// Labels of the lists of the write-up.
const FINDINGS: &str = "Findings";
const LASTING: &str = "Evergreen";
const AGING: &str = "Time-Sensitive";

words! {
    /// Whether something is available.
    Stock, "yes, no or unknown":
    /// Available.
    Yes = "yes" | "true" | "in stock",
    /// Not available.
    No = "no" | "false" | "out of stock",
    /// Unknown.
    Unknown = "unknown" | "" | "-",
}

/// One research task and its results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Research {
    /// An id such as `research_759_abc123`.
    pub id: String,
    /// The turn that ran it.
    pub turn: u32,
    /// The user's id, under this key's historical name (C85).
    pub session: String,
    /// The question.
    pub query: String,
    /// A dotted topic such as `pet.hamster.syrian_hamster`.
    pub topic: String,
    /// The intent of the query.
    pub intent: Intent,
    /// Its quality.
    pub quality: Score,
    /// When it was created.
    pub created: DocumentTime,
    /// When its time-sensitive part expires.
    #[serde(default)]
    pub expires: Option<DocumentTime>,
    /// The research that this one replaces.
    #[serde(default)]
    pub supersedes: Option<String>,
    /// What a model wrote from the claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_up: Option<WriteUp>,
    /// Reliable sources.
    #[serde(default)]
    pub sources: Vec<ReputableSource>,
    /// Evergreen facts.
    #[serde(default)]
    pub facts: Vec<String>,
    /// Current offers.
    #[serde(default)]
    pub listings: Vec<Listing>,
    /// The claims it established, with their provenance.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// The documents that use it.
    #[serde(default)]
    pub linked_from: Vec<Backlink>,
}

/// The research in a model's words: whatever it states, the claims are the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WriteUp {
    /// A short name.
    pub title: String,
    /// What is known, how sure it is, what is missing.
    pub overview: String,
    /// The statements that answer, the most useful first.
    pub findings: Vec<String>,
    /// Statements that stay true.
    pub evergreen: Vec<String>,
    /// Statements that grow old.
    pub time_sensitive: Vec<String>,
}

/// A reliable source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReputableSource {
    /// The vendor.
    pub vendor: String,
    /// A kind such as `breeder`.
    pub kind: String,
    /// The reliability.
    pub reliability: Score,
    /// The URL.
    pub url: String,
}

/// A current offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The product.
    pub product: String,
    /// A price such as `$25-$35`.
    pub price: String,
    /// The vendor.
    pub vendor: String,
    /// Its availability.
    pub in_stock: Stock,
    /// The URL.
    pub url: String,
}

/// A document that uses the research, and the place in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlink {
    /// The document.
    pub link: DualLink,
    /// A section such as `§2 Gathered Context`.
    pub section: String,
}

const SOURCE: [&str; 4] = ["Vendor", "Type", "Reliability", "URL"];
const LISTING: [&str; 5] = ["Product", "Price", "Vendor", "In Stock", "URL"];

impl DocumentValue for Research {
    fn write_body(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.head(TITLE);
        writer.text_field("ID", &self.id);
        writer.field("Turn", &self.turn.to_string());
        writer.text_field("Session", &self.session);
        writer.text_field("Query", &self.query);
        writer.head(METADATA);
        self.write_metadata(&mut writer);
        if let Some(write_up) = &self.write_up {
            writer.head(WRITE_UP);
            write_up.write(&mut writer);
        }
        writer.head(EVERGREEN);
        writer.head(SOURCES);
        let row = |source: &ReputableSource| {
            [source.vendor.clone(), source.kind.clone(), source.reliability.to_string(), source.url.clone()]
        };
        writer.table(SOURCE, self.sources.iter().map(row));
        writer.head(FACTS);
        writer.list(self.facts.iter().map(|fact| inline(fact)));
        writer.head(TIME_SENSITIVE);
        writer.head(LISTINGS);
        let row = |listing: &Listing| {
            let Listing { product, price, vendor, in_stock, url } = listing.clone();
            [product, price, vendor, in_stock.to_string(), url]
        };
        writer.table(LISTING, self.listings.iter().map(row));
        if !self.claims.is_empty() {
            writer.head(CLAIMS);
            Claim::write_rows(&self.claims, &mut writer, at);
        }
        writer.head(LINKED_FROM);
        writer.list(self.linked_from.iter().map(|backlink| backlink.write(at)));
        writer.finish()
    }

    fn read_body(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let value = Self::read_from(&blocks(body, &GRAMMAR, line), at, &mut problems);
        ParsedDocument::new(value, problems)
    }
}

impl Research {
    fn write_metadata(&self, writer: &mut BlockWriter) {
        writer.text_field("Topic", &self.topic);
        writer.field("Intent", self.intent.as_str());
        writer.field("Quality", &self.quality.to_string());
        writer.field("Created", &self.created.to_string());
        if let Some(expires) = self.expires {
            writer.field("Expires", &expires.to_string());
        }
        if let Some(supersedes) = &self.supersedes {
            writer.text_field("Supersedes", supersedes);
        }
    }

    fn read_from(
        blocks: &[HeadedBlock<'_>],
        at: &VaultPath,
        problems: &mut Vec<ParseProblem>,
    ) -> Option<Self> {
        let under = |head: &str| blocks.iter().find(|block| block.head == head);
        let missing = |head: &str, problems: &mut Vec<ParseProblem>| {
            problems.push(ParseProblem::new(1, format!("{head:?} is missing")));
            None
        };
        let title = under(TITLE).or_else(|| missing(TITLE, problems))?;
        let metadata = under(METADATA).or_else(|| missing(METADATA, problems))?;
        let id = title.text("ID").filter(|id| !id.is_empty());
        if id.is_none() {
            problems.push(ParseProblem::new(title.line, "**ID:** is missing"));
        }
        let turn = title.required::<super::value::Number>("Turn", problems);
        let intent = metadata.required("Intent", problems);
        let quality = metadata.required("Quality", problems);
        let created = metadata.required("Created", problems);
        let expires = metadata.value("Expires", problems);
        let facts = under(FACTS).map(|block| block.items("")).unwrap_or_default();
        Some(Self {
            session: title.text("Session").unwrap_or_default(),
            query: title.text("Query").unwrap_or_default(),
            topic: metadata.text("Topic").unwrap_or_default(),
            supersedes: metadata.text("Supersedes"),
            write_up: under(WRITE_UP).map(WriteUp::read),
            sources: under(SOURCES).map(|block| sources(block, problems)).unwrap_or_default(),
            facts: facts.iter().map(|(_, fact)| uninline(fact)).collect(),
            listings: under(LISTINGS).map(|block| listings(block, problems)).unwrap_or_default(),
            claims: under(CLAIMS).map(|block| Claim::read_all(block, at, problems)).unwrap_or_default(),
            linked_from: under(LINKED_FROM).map(|block| Backlink::read_all(block, at)).unwrap_or_default(),
            expires,
            id: id?,
            turn: turn?.0,
            intent: intent?,
            quality: quality?,
            created: created?,
        })
    }
}

impl WriteUp {
    fn write(&self, writer: &mut BlockWriter) {
        writer.text_field("Title", &self.title);
        writer.text_field("Overview", &self.overview);
        for (label, lines) in
            [(FINDINGS, &self.findings), (LASTING, &self.evergreen), (AGING, &self.time_sensitive)]
        {
            writer.label(label);
            writer.list(lines.iter().map(|line| inline(line)));
        }
    }

    fn read(block: &HeadedBlock<'_>) -> Self {
        let lines = |label: &str| block.items(label).iter().map(|(_, line)| uninline(line)).collect();
        Self {
            title: block.text("Title").unwrap_or_default(),
            overview: block.text("Overview").unwrap_or_default(),
            findings: lines(FINDINGS),
            evergreen: lines(LASTING),
            time_sensitive: lines(AGING),
        }
    }
}

fn sources(block: &HeadedBlock<'_>, problems: &mut Vec<ParseProblem>) -> Vec<ReputableSource> {
    let rows = block.rows("", SOURCE).into_iter();
    rows.filter_map(|(line, [vendor, kind, reliability, url])| {
        let reliability = super::blocks::parsed(&reliability, line, "Reliability", problems)?;
        Some(ReputableSource { vendor, kind, reliability, url })
    })
    .collect()
}

fn listings(block: &HeadedBlock<'_>, problems: &mut Vec<ParseProblem>) -> Vec<Listing> {
    let rows = block.rows("", LISTING).into_iter();
    rows.filter_map(|(line, [product, price, vendor, in_stock, url])| {
        let in_stock = super::blocks::parsed(&in_stock, line, "In Stock", problems)?;
        Some(Listing { product, price, vendor, in_stock, url })
    })
    .collect()
}

impl Backlink {
    fn write(&self, at: &VaultPath) -> String {
        format!("{} - \"{}\"", self.link.both(at), inline(&self.section))
    }

    fn read(item: &str, at: &VaultPath) -> Option<Self> {
        let (link, section) = item.split_once(" - \"").unwrap_or((item, ""));
        let section = uninline(section.strip_suffix('"').unwrap_or(section));
        Some(Self { link: DualLink::read(link, at)?, section })
    }

    fn read_all(block: &HeadedBlock<'_>, at: &VaultPath) -> Vec<Self> {
        block.items("").into_iter().filter_map(|(_, item)| Self::read(item, at)).collect()
    }

    /// Adds this backlink to research; that of a document which is already linked gets the new section.
    pub fn add_to_value(&self, research: &mut Research) {
        match research.linked_from.iter_mut().find(|known| known.link.file == self.link.file) {
            Some(known) => known.clone_from(self),
            None => research.linked_from.push(self.clone()),
        }
    }

    /// Adds this backlink to the research document `text` at path `at`; every other byte is preserved. If the
    /// document is already linked, its line is kept or extended by the new section.
    pub fn add_to(&self, text: &str, at: &VaultPath) -> String {
        let key = |line: &str| Some(Self::read(item(line)?, at)?.link.file);
        let entry = ListItem { key: self.link.file.clone(), line: format!("- {}", self.write(at)) };
        sync(text, LINKED_FROM, &[entry], key, |_| true)
    }
}
