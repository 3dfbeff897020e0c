//! Answering a question over files and folders of any size.
//!
//! A planner gathers passages, a recipe answers from them, and every claim of the answer is traced to the bytes it comes
//! from. Rules rank every passage by the words it shares with the question, without a model. A capable model can then
//! search again, look for patterns, read ranges, follow JSON paths and ask sub-questions, within limits on depth, calls
//! and tokens. The packer decides what enters a prompt.

mod claims;
mod library;
mod pages;
mod passages;
mod plan;
mod question;
mod quotation;
mod quoting;
mod select;
pub(crate) mod sentences;
mod units;
mod vocabulary;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use futures::future::{BoxFuture, FutureExt};
use larder_core::recipe::{Recipe, RecipeError};
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_store::{Selection, StoreError};
use larder_text::chunk::ChunkError;
use larder_text::pointer::Pointer;
use larder_text::tokens::Counter;
use larder_text::words::is_blank;
use serde::Serialize;

pub use self::claims::GroundedClaim;
pub use self::library::SkippedFile;
use self::passages::{Finding, Passages};
use self::quotation::{Quotation, quotation};
use self::quoting::is_embedded;
use larder_engine::Engine;
use larder_engine::executor::{ModelSet, ProgressObserver, RunError, RunOutcome, max_call_usage};
use larder_engine::inputs::RunInput;
use larder_engine::settings::AskSettings;
use larder_text::words::counted;

/// Passages offered to the packer, best first; more would not fit the window of any built-in recipe.
const OFFERED: usize = 64;
/// Passages whose neighbours are offered too.
const WITH_NEIGHBOURS: usize = 4;
/// Maximum number of passages offered because they define the subject of the question.
const DEFINITIONS: usize = 16;
/// Relevance of a neighbour relative to that of its passage.
const NEIGHBOUR_SHARE: f64 = 0.5;

/// A question over files.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The question.
    pub text: &'a str,
    /// Files, folders, and pointers to stored texts.
    pub paths: &'a [PathBuf],
    /// The recipe that answers.
    pub recipe: &'a str,
    /// How it is answered.
    pub asking: AskSettings,
}

/// How the passages were found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SearchReport {
    /// Files read.
    pub files: usize,
    /// Bytes read.
    pub bytes: u64,
    /// Passages ranked.
    pub passages: usize,
    /// Passages offered to the recipe that answers.
    pub offered: usize,
    /// The steps of the model that planned.
    pub steps: Vec<String>,
    /// Calls of recipes, the answer included.
    pub calls: usize,
    /// Tokens of these calls; a failed call counts with all the tokens it might have used.
    pub usage: Usage,
    /// Price of these tokens, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// Files and folders that were not read, and why.
    pub skipped: Vec<SkippedFile>,
}

impl SearchReport {
    /// A report with what was read for these passages.
    fn over(passages: &mut Passages) -> Self {
        Self {
            files: passages.library.files.len(),
            bytes: passages.library.bytes,
            passages: passages.len(),
            skipped: std::mem::take(&mut passages.library.skipped),
            ..Self::default()
        }
    }

    /// One line for people.
    pub fn summary(&self) -> String {
        format!(
            "read {}, {:.1} MB; ranked {}, offered {}",
            counted(self.files as u64, "file"),
            self.bytes as f64 / 1e6,
            counted(self.passages as u64, "passage"),
            self.offered
        )
    }

    fn count(&mut self, outcome: &RunOutcome) {
        self.calls += 1;
        self.usage += outcome.usage;
        self.pay(outcome.cost);
    }

    fn pay(&mut self, cost: Option<Usd>) {
        if let Some(cost) = cost {
            self.cost = Some(self.cost.map_or(cost, |sum| sum + cost));
        }
    }

    /// Counts a failed call. Its usage is not known here, so it counts with its full budget, at the price of the most
    /// expensive model that it may have called.
    fn failed(&mut self, recipe: &Recipe, reach: &ModelSet) {
        self.calls += 1;
        self.usage.input = self.usage.input.saturating_add(recipe.budget.total as u64);
        self.pay(Some(reach.most(&max_call_usage(recipe))).filter(|cost| *cost > Usd::default()));
    }

    /// Input and output tokens.
    pub const fn tokens(&self) -> u64 {
        self.usage.input.saturating_add(self.usage.output)
    }
}

/// An answer with the bytes it is based on.
#[derive(Debug, Clone, Serialize)]
pub struct AskAnswer {
    /// The run of the recipe that answered.
    #[serde(flatten)]
    pub outcome: RunOutcome,
    /// Whether the answer shares words with what it cites; for a quotation, whether it covers enough of the question
    /// to count as an answer.
    pub verified: bool,
    /// The sentences of the answer.
    pub claims: Vec<GroundedClaim>,
    /// Sentences that answer without a model, next to an answer of the embedded one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<GroundedClaim>,
    /// How the passages were found.
    pub search: SearchReport,
}

/// A passage that is relevant to a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quote {
    /// The document.
    pub source: String,
    /// Its lines, from 1, both included.
    pub lines: (usize, usize),
    /// Its bytes.
    pub bytes: (usize, usize),
    /// From 1 for the best downwards.
    pub relevance: f64,
    /// Pointer to the passage.
    pub pointer: Pointer,
    /// The passage.
    pub text: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// A named path cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The question has nothing to answer.
    #[error("the question is empty: it has no visible text; ask something")]
    NoQuestion,
    /// Nothing readable was found.
    #[error("no readable text in {0}; name files or folders with UTF-8 text")]
    NoText(String),
    /// The recipe does not exist.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The passage size is too small.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// No call of a model is allowed, and the answer needs one.
    #[error(
        "an answer needs a call of a model, but none is allowed; raise --max-calls or ask.max_calls, or use --quote"
    )]
    NoCalls,
    /// The limits are too low for the answer alone.
    #[error(
        "recipe {recipe} may use {needed} tokens, but the limit is {limit}; raise --max-tokens or ask.max_tokens"
    )]
    Tokens {
        /// The recipe.
        recipe: String,
        /// Tokens of one call.
        needed: usize,
        /// The limit.
        limit: u64,
    },
    /// The recipe returned no answer.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A cited document could not be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The client disconnected.
    #[error("cancelled while reading: the client disconnected")]
    Cancelled,
}

/// A text that is in the store already, with its pointer.
type StoreText = (String, Arc<str>);

/// Answers questions over files with an engine, and reports to an observer.
#[derive(Clone, Copy)]
pub struct Asker<'e> {
    engine: &'e Engine,
    observer: &'e dyn ProgressObserver,
}

impl<'e> Asker<'e> {
    /// Reads, searches and runs with this engine; the observer is notified and can cancel.
    pub fn new(engine: &'e Engine, observer: &'e dyn ProgressObserver) -> Self {
        Self { engine, observer }
    }

    /// Answers a question over files, with the bytes that support every claim. Cited documents are stored, so that
    /// their pointers resolve.
    ///
    /// # Errors
    /// If nothing can be read, the limits are too small, or the recipe returns no answer.
    pub fn ask<'a>(&'a self, question: &'a Question<'a>) -> BoxFuture<'a, Result<AskAnswer, AskError>> {
        async move {
            let started = Instant::now();
            let recipe = self.engine.recipe_or_builtin(question.recipe)?;
            let (is_quoted, limits) = (question.is_quoted(self.engine, recipe), question.asking.limits);
            if !is_quoted && limits.calls == 0 {
                return Err(AskError::NoCalls);
            }
            if !is_quoted && recipe.budget.total as u64 > limits.tokens {
                return Err(AskError::Tokens {
                    recipe: recipe.id(),
                    needed: recipe.budget.total,
                    limit: limits.tokens,
                });
            }
            let counter = if is_quoted { Counter::cl100k() } else { self.passage_counter(recipe)? };
            let (mut passages, found) = self.gather(question, &counter)?;
            let mut search = SearchReport::over(&mut passages);
            // Where no passage shares a word with the question, the beginnings are the best guess.
            let found = if found.is_empty() { passages.beginning(OFFERED / 8) } else { found };
            let found = self.planned(question, recipe, &mut passages, found, &mut search).await;
            search.offered = found.len().min(OFFERED);
            let quotation = if is_quoted || is_embedded(self.engine, recipe) {
                quotation(question.text, &mut passages, &found)
            } else {
                Quotation::default()
            };
            if is_quoted {
                let passages = &mut passages;
                let answer =
                    self.answer_by_quoting(question, recipe, passages, &found, &quotation, started)?;
                return Ok(AskAnswer { search, ..answer });
            }
            let outcome = self.answer(question.text, recipe, &mut passages, &found).await?;
            search.count(&outcome);
            let claims = self.claims(question.text, &outcome, &mut passages)?;
            let verified = claims.iter().any(|claim| claim.supported);
            let quotes = self.quoted_claims(&quotation, &mut passages)?;
            Ok(AskAnswer { outcome, verified, claims, quotes, search })
        }
        .boxed()
    }

    /// The counter for sizing passages: the fastest exact one, since the packer counts again with the model's own;
    /// but bytes for a model that is charged by the byte.
    fn passage_counter(&self, recipe: &Recipe) -> Result<Counter, RunError> {
        let counter = self.engine.counter(&self.engine.candidate(recipe.layer, recipe.mode)?.spec);
        Ok(if counter.name() == Counter::bytes().name() { counter } else { Counter::cl100k() })
    }

    /// Paths that are files or folders, and the texts behind those that are pointers.
    fn stored(&self, paths: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<StoreText>), AskError> {
        let (mut files, mut held) = (Vec::new(), Vec::new());
        for path in paths {
            let pointer: Option<Pointer> = path.to_str().and_then(|text| text.parse().ok());
            let Some(pointer) = pointer.filter(|_| !path.exists()) else {
                files.push(path.clone());
                continue;
            };
            let text = String::from_utf8(self.engine.store.pointers().resolve(&pointer)?)
                .map_err(|_| AskError::NoText(pointer.to_string()))?;
            held.push((pointer.to_string(), text.into()));
        }
        Ok((files, held))
    }

    /// Reads everything and finds at most [`OFFERED`] passages by rule: the best by shared words, and the neighbours of
    /// the very best, which replace the last.
    fn gather(
        &self,
        question: &Question<'_>,
        counter: &Counter,
    ) -> Result<(Passages, Vec<Finding>), AskError> {
        if is_blank(question.text) {
            return Err(AskError::NoQuestion);
        }
        let (paths, held) = self.stored(question.paths)?;
        let query = question::searched(question.text);
        let (mut passages, mut found) = Passages::read(&paths, held, &query, counter, self.observer)?;
        let definitions = definitions(question.text, &mut passages);
        found.retain(|finding| definitions.iter().all(|other| other.place != finding.place));
        found.splice(0..0, definitions);
        // Each has two neighbours at most.
        let rest = found.split_off(found.len().min(OFFERED - 2 * WITH_NEIGHBOURS));
        let mut seen: BTreeSet<_> = found.iter().map(|finding| finding.place.clone()).collect();
        let mut neighbours = Vec::new();
        for best in found.iter().take(WITH_NEIGHBOURS) {
            let relevance = best.relevance * NEIGHBOUR_SHARE;
            let new = passages.neighbours(&best.place).into_iter();
            let new = new.filter(|place| seen.insert(place.clone()));
            neighbours.extend(new.map(|place| Finding { place, relevance }));
        }
        let room = OFFERED - found.len() - neighbours.len();
        found.extend(rest.into_iter().filter(|finding| !seen.contains(&finding.place)).take(room));
        found.extend(neighbours);
        Ok((passages, found))
    }

    /// Answers from the findings, best first.
    async fn answer(
        &self,
        question: &str,
        recipe: &Recipe,
        passages: &mut Passages,
        found: &[Finding],
    ) -> Result<RunOutcome, RunError> {
        let input = run_input(question, recipe, passages, found);
        self.engine.run(&recipe.id(), &input, self.observer).await
    }

    fn claims(
        &self,
        question: &str,
        outcome: &RunOutcome,
        passages: &mut Passages,
    ) -> Result<Vec<GroundedClaim>, StoreError> {
        let text = outcome.output.get("answer").and_then(|answer| answer.as_str()).unwrap_or(&outcome.reply);
        let mut stored = BTreeMap::new();
        for citation in &outcome.citations {
            if let Some(file) = passages.library.find(&citation.source)
                && let Some(pointer) = self.pointer_into(passages, file, 0..0)?
            {
                stored.insert(file, pointer.id);
            }
        }
        let pointer = |file: usize, bytes| Some(Pointer::bytes(stored.get(&file)?.clone(), bytes));
        Ok(claims::claims((question, text), &outcome.citations, passages, pointer))
    }

    /// Stores a file and returns a pointer to a range of it; `None` when it has changed since it was read.
    fn pointer_into(
        &self,
        passages: &mut Passages,
        file: usize,
        bytes: std::ops::Range<usize>,
    ) -> Result<Option<Pointer>, StoreError> {
        let Some(text) = passages.library.text(file) else { return Ok(None) };
        let name = passages.library.files[file].name.clone();
        let stored = self.engine.store.pointers().insert(text.as_bytes(), "document", &name)?;
        Ok(Some(Pointer::bytes(stored.pointer_id.id, bytes)))
    }
}

/// The passages that define the subject of a question that asks for a definition. Words alone cannot rank them where the
/// subject occurs in most passages.
fn definitions(question: &str, passages: &mut Passages) -> Vec<Finding> {
    let pattern = question::definition(question).and_then(|pattern| Selection::grep(&pattern).ok());
    pattern.map_or_else(Vec::new, |pattern| passages.select(None, &pattern, DEFINITIONS))
}

/// The input of a recipe: the question, and the findings as documents of its first input.
fn run_input(question: &str, recipe: &Recipe, passages: &mut Passages, found: &[Finding]) -> RunInput {
    let input = recipe.input_docs.first().map_or("passages", |doc| doc.name.as_str());
    let documents =
        found.iter().take(OFFERED).filter_map(|finding| passages.document(finding, input)).collect();
    RunInput { documents, query: Some(question.to_owned()), ..RunInput::default() }
}
