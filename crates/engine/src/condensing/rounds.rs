//! The rounds of condensing: divide a text into chunks, have a model summarize each, join them, and repeat until the
//! target is met. Knows neither the cache nor what happens when a round fails.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use futures::future::join_all;
use larder_condense::{Author, CondenseRequest, ContentType, required_pointers, rewrite};
use larder_core::recipe::Recipe;
use larder_store::CompactionKey;
use larder_text::chunk::{SMALLEST_CHUNK, chunks};
use larder_text::hash::ContentHash;
use larder_text::tokens::Counter;
use larder_text::words::counted;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Remembered, Summarizer, SummarizerError};
use crate::candidate::ModelCandidate;
use crate::inputs::{InputDocument, RunInput};
use crate::packer;
use crate::prompt::prepare_for;
use crate::run::{RunKind, SpendingOnly};

/// Each round must save at least a tenth, so more rounds than this would not help.
const MAX_ROUNDS: usize = 5;
/// The share of its tokens that a round may leave, in hundredths.
const ENOUGH: usize = 90;
/// A summary with fewer tokens is useless.
const MIN_SHARE: usize = 32;
/// Shares are multiples of this, so that a chunk keeps its share, and its summary, while the text grows a little.
const SHARE_STEP: usize = 16;
/// A summary takes at least one part in this many of what it may take.
pub(super) const LEAST: usize = 2;
/// The same for the model's own words, without headings and without the spans that are added to them: a summary that only
/// names what it left out is none.
const LEAST_OWN: usize = 4;
/// The share of its allotment that a model is asked to use, in hundredths, since models tend to exceed it.
const ASKED: usize = 80;
/// Summarizing fewer tokens costs more for the call than it can save.
const WORTH_A_CALL: usize = 48;
/// Tokens that may be added or lost where pieces of a prompt are joined.
const JOINS: usize = 8;
/// Tokens of pins that a prompt may name.
const NAMED_PINS: usize = 60;
/// Zones below this confidence are left out (R0-22.18, C43).
const MIN_CONFIDENCE: f64 = 0.5;

/// How many tokens fit into one model call.
#[derive(Debug, Clone)]
pub(super) struct CallRoom {
    /// Available for the text to summarize.
    input: usize,
    /// Available for the summary.
    output: usize,
    /// Counts with the model's tokenizer.
    counter: Counter,
}

/// A part of the text in its current state.
struct TextPassage {
    text: String,
    /// Whether it stays unchanged.
    settled: bool,
}

/// Data shared by the calls of a round.
struct SummaryRound<'a> {
    recipe: &'a Recipe,
    request: &'a CondenseRequest<'a>,
    preserve: &'a [String],
    room: &'a CallRoom,
    /// Everything about the condenser that the summary of a chunk depends on.
    condenser: String,
    /// The model that is asked, and the fallback that wrote a summary in its place.
    model: &'a str,
    fallback: &'a Mutex<Option<String>>,
    /// Tokens of the headings of a conversation, which merging makes once of many times.
    headings: usize,
    /// Set when a call fails, because the others would be wasted.
    stop: AtomicBool,
}

/// The summary of a chunk in a model's own words, with the model that wrote it: the one that was asked, or its fallback.
#[derive(Serialize, Deserialize)]
struct Written {
    by: String,
    summary: String,
}

impl SummaryRound<'_> {
    /// A chunk of a text that has grown since is summarized once. A summary is kept by the tokens it has, a refusal by
    /// those that were allowed.
    fn key(&self, job: &ChunkJob) -> CompactionKey<'_> {
        CompactionKey {
            content: ContentHash::new(job.text.as_bytes()),
            content_type: self.request.content_type.as_str(),
            target_tokens: job.share as u64,
            query: ContentHash::new(b""),
            condenser: &self.condenser,
            tokenizer: self.request.counter.name(),
        }
    }

    /// The summary, with the required spans that it lost, after its writer is noted.
    fn credit(&self, written: Written, job: &ChunkJob) -> String {
        if written.by != self.model {
            *self.fallback.lock().unwrap_or_else(PoisonError::into_inner) = Some(written.by);
        }
        let required = required(self.request, &job.text, job.share);
        with_spans(written.summary, &required, &job.text, job.share + self.headings, self.request.counter)
    }

    /// Tokens of a model's own words.
    fn own(&self, summary: &str) -> usize {
        self.request.counter.count(summary).saturating_sub(self.headings)
    }
}

/// One call of a round.
struct ChunkJob {
    /// The index of the passage that the chunk belongs to.
    passage: usize,
    text: String,
    /// Maximum tokens of its summary.
    share: usize,
}

impl Summarizer<'_> {
    /// How much text fits into one call of `recipe` next to its prompt: at most its input budget.
    pub(super) fn room(
        &self,
        recipe: &Recipe,
        candidate: &ModelCandidate,
    ) -> Result<CallRoom, SummarizerError> {
        let counter = self.engine.counter(&candidate.spec);
        let input = sub_input(recipe, "x", 1, "");
        let kind = RunKind::Condensing { until: None };
        let prepared = prepare_for(self.engine, recipe, &input, candidate, &counter, None, kind)
            .map_err(|_| SummarizerError::Pack(recipe.id()))?;
        let available = prepared.request.budget.available();
        let packed = packer::pack(&prepared.request, &counter, self.engine.store.key())
            .map_err(|_| SummarizerError::Pack(recipe.id()))?;
        let used = packed.map_or(available, |pack| pack.receipt.total);
        let input = recipe.budget.input.min(available.saturating_sub(used + JOINS));
        if input < SMALLEST_CHUNK.max(WORTH_A_CALL) {
            return Err(SummarizerError::NoInput { recipe: recipe.id(), model: candidate.name.clone() });
        }
        Ok(CallRoom { input, output: prepared.max_output, counter })
    }

    /// The whole text summarized within the target, without its header; `fallback` receives the model that wrote some of
    /// it in place of the one of `author`.
    pub(super) async fn rounds(
        &self,
        recipe: &Recipe,
        request: &CondenseRequest<'_>,
        preserve: &[String],
        room: CallRoom,
        (author, condenser): (&Author, &str),
        fallback: &Mutex<Option<String>>,
    ) -> Result<String, SummarizerError> {
        let counter = request.counter;
        let left = without_header(request)?;
        let mut passages = passages(request);
        let headings = headings(request);
        for round in 0..MAX_ROUNDS {
            let jobs = plan(&passages, left, &room, counter, request.target)?;
            self.budget.reserve(jobs.len())?;
            let single = jobs.len() <= 1;
            self.observer.stage(&format!(
                "condensing, round {}: {}",
                round + 1,
                counted(jobs.len() as u64, "call")
            ));
            let most: usize = jobs.iter().map(|job| job.share).sum();
            let before: usize = jobs.iter().map(|job| room.counter.count(&job.text)).sum();
            if most * LEAST < left {
                // What the round before left is not made longer.
                let is_short = round > 0 && before * LEAST < left;
                return Err(if is_short {
                    SummarizerError::TooShort { tokens: before, target: left }
                } else {
                    SummarizerError::TooRoomy { recipe: recipe.id(), most, target: left }
                });
            }
            let stop = AtomicBool::new(false);
            let (room, model, condenser) = (&room, author.model.as_str(), format!("chunk {condenser}"));
            let calls =
                SummaryRound { recipe, request, preserve, room, condenser, model, fallback, headings, stop };
            let written = self.round(&calls, &jobs).await?;
            // Summaries under headings are merged under one set of them (C53).
            let history =
                (request.content_type == ContentType::Chat).then(|| rewrite::merged_histories(&written));
            let merged = single || !matches!(history, Some(None));
            replace(&mut passages, &jobs, written);
            if let (Some(Some(text)), [passage]) = (history, passages.as_mut_slice()) {
                passage.text = text;
            }
            let words = joined(&passages);
            if merged && counter.count_up_to(&words, left).is_some() {
                // A chunk may have had no room for what the whole has.
                let whole = passages.len() == 1;
                return Ok(if whole { with_spans(words, &[], request.text, left, counter) } else { words });
            }
            let after: usize =
                passages.iter().filter(|one| !one.settled).map(|one| room.counter.count(&one.text)).sum();
            if after * 100 > before * ENOUGH {
                return Err(SummarizerError::NotSmaller);
            }
        }
        Err(SummarizerError::NotSmaller)
    }

    /// Summarizes the chunks of the first round.
    pub(super) async fn first_round(
        &self,
        recipe: &Recipe,
        request: &CondenseRequest<'_>,
        preserve: &[String],
        room: CallRoom,
        (author, condenser): (&Author, &str),
    ) -> Result<(), SummarizerError> {
        let left = without_header(request)?;
        let jobs = plan(&passages(request), left, &room, request.counter, request.target)?;
        self.budget.reserve(jobs.len())?;
        let (headings, stop) = (headings(request), AtomicBool::new(false));
        // Each summary is kept with its writer.
        let (room, model, fallback) = (&room, author.model.as_str(), &Mutex::default());
        let condenser = format!("chunk {condenser}");
        let calls =
            SummaryRound { recipe, request, preserve, room, condenser, model, fallback, headings, stop };
        self.round(&calls, &jobs).await.map(drop)
    }

    /// The summaries of all chunks. If one is known to be refused, no model is asked for the others.
    async fn round(
        &self,
        round: &SummaryRound<'_>,
        jobs: &[ChunkJob],
    ) -> Result<Vec<String>, SummarizerError> {
        for job in jobs {
            self.known(round, job)?;
        }
        all_or_first_failure(join_all(jobs.iter().map(|job| self.summarize(round, job))).await)
    }

    /// The summary of a chunk that was written before, whatever room it had then: the longest that fits.
    fn known(&self, round: &SummaryRound<'_>, job: &ChunkJob) -> Result<Option<Written>, SummarizerError> {
        let least = job.share.div_ceil(LEAST_OWN) as u64;
        Remembered::read(self.engine.store.compactions().get_from(&round.key(job), least)?)
    }

    /// One chunk summarized, unless another call of the round has failed.
    async fn summarize(&self, round: &SummaryRound<'_>, job: &ChunkJob) -> Result<String, SummarizerError> {
        let _slot = self.budget.slot().await?;
        if round.stop.load(Ordering::SeqCst) {
            return Err(SummarizerError::Stopped);
        }
        let written = match (self.budget.is_late(), self.observer.may_spend()) {
            (true, _) => Err(SummarizerError::Late),
            (false, false) => Err(SummarizerError::Spent),
            (false, true) => self.call(round, job).await,
        };
        // A call cut off by the deadline failed because of it, whatever its error says.
        let late = |error| if self.budget.is_late() { SummarizerError::Late } else { error };
        let written = written.map_err(late);
        if written.is_err() {
            round.stop.store(true, Ordering::SeqCst);
        }
        written
    }

    /// The summary of a chunk, known or new.
    async fn call(&self, round: &SummaryRound<'_>, job: &ChunkJob) -> Result<String, SummarizerError> {
        if let Some(written) = self.known(round, job)? {
            return Ok(round.credit(written, job));
        }
        let written = self.ask(round, job).await;
        // A call that was cut off says nothing of the model.
        if let Some(json) = Remembered::of(&written).filter(|_| written.is_ok() || !self.budget.is_late()) {
            let room =
                written.as_ref().map_or(job.share, |written| round.own(&written.summary).min(job.share));
            let key = CompactionKey { target_tokens: room as u64, ..round.key(job) };
            self.engine.store.compactions().insert(&key, &json)?;
        }
        written.map(|written| round.credit(written, job))
    }

    /// The model's summary of a chunk, checked.
    async fn ask(&self, round: &SummaryRound<'_>, job: &ChunkJob) -> Result<Written, SummarizerError> {
        let required = required(round.request, &job.text, job.share);
        let asked = (job.share * ASKED / 100).max(1) + round.headings;
        let named = named(&required, round.preserve);
        let named = round.room.counter.prefix(&named, NAMED_PINS);
        let mut input = sub_input(round.recipe, &job.text, asked, named);
        input.session_id.clone_from(&self.input.session_id);
        input.turn_id.clone_from(&self.input.turn_id);
        input.request_id.clone_from(&self.input.request_id);
        let kind = RunKind::Condensing { until: self.budget.deadline };
        let observer = SpendingOnly(self.observer);
        let outcome = self.runner.run_recipe(round.recipe, &input, &observer, kind).await;
        self.budget.called(&outcome);
        let outcome = outcome?;
        let summary = match &outcome.output {
            Value::Object(_) => zones(&outcome.output),
            _ => unframed(&outcome.reply, round.recipe),
        };
        if summary.is_empty() {
            return Err(SummarizerError::Empty);
        }
        if let Some(value) = rewrite::invented(&job.text, &summary) {
            return Err(SummarizerError::Invented(value));
        }
        let own = round.own(&summary);
        if own * LEAST_OWN < job.share {
            return Err(SummarizerError::TooShort { tokens: own, target: job.share });
        }
        Ok(Written { by: outcome.receipt.model, summary })
    }
}

/// The input of one call.
fn sub_input(recipe: &Recipe, text: &str, target: usize, preserve: &str) -> RunInput {
    let mut input = RunInput::default();
    if let Some(doc) = recipe.input_docs.first() {
        input.documents.push(InputDocument::whole(doc.name.as_str(), "text", text));
    }
    input.values.insert("target_tokens".to_owned(), Value::from(target.to_string()));
    input.values.insert("preserve".to_owned(), Value::from(preserve));
    input
}

/// A reply without the tags around the text to summarize, which small models tend to repeat.
fn unframed(reply: &str, recipe: &Recipe) -> String {
    let name = recipe.input_docs.first().map_or("", |doc| doc.name.as_str());
    let is_tag = |line: &&str| {
        let tag = line.trim().trim_start_matches(['<', '/']);
        line.trim().starts_with('<') && line.trim().ends_with('>') && tag.starts_with(name)
    };
    let lines: Vec<&str> = reply.lines().filter(|line| !is_tag(line)).collect();
    lines.join("\n").trim().to_owned()
}

/// All summaries, or the error that stopped the round.
fn all_or_first_failure(
    written: Vec<Result<String, SummarizerError>>,
) -> Result<Vec<String>, SummarizerError> {
    let (mut words, mut failure) = (Vec::with_capacity(written.len()), None);
    for result in written {
        match (result, &failure) {
            (Ok(text), _) => words.push(text),
            (Err(found), None | Some(SummarizerError::Stopped)) => failure = Some(found),
            (Err(_), Some(_)) => {}
        }
    }
    failure.map_or(Ok(words), Err)
}

/// The tokens that the target leaves to the summary.
fn without_header(request: &CondenseRequest<'_>) -> Result<usize, SummarizerError> {
    let CondenseRequest { text, key, counter, target, .. } = *request;
    let header = counter.count(&rewrite::header(text, key, counter, target));
    target.checked_sub(header).ok_or(SummarizerError::NoRoom { target })
}

/// Tokens of the headings under which a conversation is summarized.
fn headings(request: &CondenseRequest<'_>) -> usize {
    match request.content_type {
        ContentType::Chat => request.counter.count(&rewrite::merged_histories(&[]).unwrap_or_default()),
        _ => 0,
    }
}

/// The parts of the text. Those too short for a call stay unchanged.
fn passages(request: &CondenseRequest<'_>) -> Vec<TextPassage> {
    let found = rewrite::segments(request.text, request.content_type);
    let passage = |stretch: rewrite::Segment| {
        let text = request.text[stretch.bytes].to_owned();
        let short = request.counter.count_up_to(&text, WORTH_A_CALL).is_some();
        TextPassage { settled: stretch.verbatim || short, text }
    };
    found.into_iter().map(passage).collect()
}

/// The calls of a round, with the tokens that each summary may have.
fn plan(
    passages: &[TextPassage],
    left: usize,
    room: &CallRoom,
    counter: &Counter,
    target: usize,
) -> Result<Vec<ChunkJob>, SummarizerError> {
    let mut open: Vec<(usize, &str, Range<usize>, usize)> = Vec::new();
    for (at, passage) in passages.iter().enumerate().filter(|(_, passage)| !passage.settled) {
        let found = chunks(&passage.text, room.input, &room.counter)
            .map_err(|_| SummarizerError::NoRoom { target })?;
        open.extend(found.into_iter().map(|chunk| (at, passage.text.as_str(), chunk.bytes, chunk.tokens)));
    }
    let fixed: usize =
        passages.iter().filter(|one| one.settled).map(|one| counter.count(&one.text) + 1).sum();
    let free = left.saturating_sub(fixed + open.len());
    if open.is_empty() || free < MIN_SHARE {
        return Err(SummarizerError::NoRoom { target });
    }
    let total: usize = open.iter().map(|(.., tokens)| tokens).sum();
    let job = |(passage, text, bytes, tokens): (usize, &str, Range<usize>, usize)| ChunkJob {
        passage,
        text: text[bytes].to_owned(),
        share: (tokens.saturating_mul(free) / total.max(1) / SHARE_STEP * SHARE_STEP)
            .clamp(MIN_SHARE, room.output.max(MIN_SHARE)),
    };
    Ok(open.into_iter().map(job).collect())
}

/// Replaces passages by the summaries of their chunks.
fn replace(passages: &mut [TextPassage], jobs: &[ChunkJob], written: Vec<String>) {
    for job in jobs {
        passages[job.passage].text.clear();
    }
    for (job, words) in jobs.iter().zip(written) {
        let text = &mut passages[job.passage].text;
        text.push_str(words.trim_end());
        text.push('\n');
    }
}

fn joined(passages: &[TextPassage]) -> String {
    let mut out = String::new();
    for passage in passages {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&passage.text);
    }
    out
}

/// Pins and Larder's own pointers in a chunk that is written in `share` tokens: none may be lost.
fn required(request: &CondenseRequest<'_>, text: &str, share: usize) -> Vec<String> {
    let pins = request.pins.iter().filter(|pin| !pin.is_empty() && text.contains(pin.as_str())).cloned();
    let pointers =
        required_pointers(text, request.key, share).into_iter().map(|range| text[range].to_owned());
    let mut all: Vec<String> = pins.chain(pointers).collect();
    all.sort();
    all.dedup();
    all
}

/// What the prompt asks to keep: spans, then kinds of spans.
fn named(required: &[String], preserve: &[String]) -> String {
    let all: Vec<&str> = required.iter().chain(preserve).map(String::as_str).collect();
    all.join("; ")
}

/// The summary followed by the required spans that it lost, and as many salient ones as its share allows.
fn with_spans(mut words: String, required: &[String], text: &str, share: usize, counter: &Counter) -> String {
    for span in required {
        if !words.contains(span.as_str()) {
            words = rewrite::with_lines(&words, &[span]);
        }
    }
    for span in rewrite::missing(text, &words) {
        let longer = rewrite::with_lines(&words, &[span]);
        if counter.count_up_to(&longer, share).is_some() {
            words = longer;
        }
    }
    words
}

/// The zones of a page capture as text, without those below [`MIN_CONFIDENCE`].
fn zones(output: &Value) -> String {
    let zones = output["zones"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sure = zones.iter().filter(|zone| zone["confidence"].as_f64() >= Some(MIN_CONFIDENCE));
    let lines = sure.filter_map(|zone| {
        let (kind, content) = (zone["type"].as_str()?, zone["content"].as_str()?);
        Some(format!("{kind} (confidence {}): {}", zone["confidence"], content.trim()))
    });
    lines.collect::<Vec<_>>().join("\n")
}
