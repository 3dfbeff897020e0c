//! The rounds of condensing: divide into chunks, have each retold, join, and again until the target holds.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use larder_condense::chunk::{SMALLEST_CHUNK, chunks};
use larder_condense::{CondenseRequest, ContentType, rewrite};
use larder_core::recipe::Recipe;
use larder_text::tokens::Counter;
use serde_json::Value;

use super::{Allowance, Failure};
use crate::engine::Engine;
use crate::executor::{Candidate, Paid, Purpose};
use crate::inputs::{Document, RunInput};
use crate::packer;

/// Times a text is retold; each must take a tenth off, so more would not help.
const MAX_ROUNDS: usize = 5;
/// Share of its tokens that a round may leave, in hundredths.
const ENOUGH: usize = 90;
/// A summary of fewer tokens says nothing.
const LEAST_SHARE: usize = 32;
/// Share of its allotment that a model is told to use, in hundredths: models overrun.
const TOLD: usize = 80;
/// A stretch of fewer tokens costs a call more than it could save.
const WORTH_RETELLING: usize = 48;
/// Tokens that may come and go where pieces of a prompt are joined.
const JOINS: usize = 8;
/// Tokens of pins that a prompt may name.
const NAMED_PINS: usize = 60;
/// Zones below this confidence are left out (R0-22.18, C43).
const LEAST_CONFIDENCE: f64 = 0.5;

/// What a model's call has room for.
#[derive(Debug, Clone)]
pub(super) struct Room {
    /// Tokens of text that go in.
    input: usize,
    /// Tokens that come out.
    output: usize,
    /// Who counts them.
    counter: Counter,
}

/// A stretch on its way: what it says by now, and whether that stays.
struct Passage {
    text: String,
    settled: bool,
}

/// What the calls of a round have in common.
struct Call<'a> {
    recipe: &'a Recipe,
    request: &'a CondenseRequest<'a>,
    preserve: &'a [String],
    room: &'a Room,
    /// One of them failed, so the rest would be paid for nothing.
    stop: AtomicBool,
}

/// A call to make.
struct Job {
    passage: usize,
    text: String,
    /// Tokens its summary may have.
    share: usize,
}

impl Engine {
    /// How much text one call of `recipe` can hold beside its prompt: its own input budget at most.
    pub(super) fn room(&self, recipe: &Recipe, candidate: &Candidate) -> Result<Room, Failure> {
        let counter = self.counter(&candidate.spec);
        let input = sub_input(recipe, "x", 1, "");
        let unpackable = |_| Failure::Pack(recipe.id());
        let prepared = self
            .prepare(recipe, &input, candidate, &counter, None, Purpose::Condensing { until: None })
            .map_err(|_| Failure::Pack(recipe.id()))?;
        let available = prepared.request.budget.available();
        let packed = packer::pack(&prepared.request, &counter, self.store.key()).map_err(unpackable)?;
        let used = packed.map_or(available, |pack| pack.receipt.total);
        let input = recipe.budget.input.min(available.saturating_sub(used + JOINS));
        if input < SMALLEST_CHUNK.max(WORTH_RETELLING) {
            return Err(Failure::NoInput { recipe: recipe.id(), model: candidate.name.clone() });
        }
        Ok(Room { input, output: prepared.max_output, counter })
    }

    /// The whole text retold within the target, without its header.
    pub(super) async fn rounds(
        &self,
        recipe: &Recipe,
        request: &CondenseRequest<'_>,
        preserve: &[String],
        room: Room,
        allowance: &Allowance<'_>,
    ) -> Result<String, Failure> {
        let counter = request.counter;
        let header = counter.count(&rewrite::header(request.text, request.key, counter, request.target));
        let left = request.target.checked_sub(header).ok_or(Failure::NoRoom { target: request.target })?;
        let mut passages = passages(request);
        for round in 0..MAX_ROUNDS {
            let jobs = plan(&passages, left, &room, counter, request.target)?;
            allowance.take(jobs.len())?;
            let single = jobs.len() <= 1;
            allowance.observer.stage(&format!("condensing, round {}: {} calls", round + 1, jobs.len()));
            let before: usize = jobs.iter().map(|job| room.counter.count(&job.text)).sum();
            let call = Call { recipe, request, preserve, room: &room, stop: AtomicBool::new(false) };
            let written = join_all(jobs.iter().map(|job| self.retell(&call, job, allowance))).await;
            replace(&mut passages, &jobs, all_or_first_failure(written)?);
            let words = joined(&passages);
            // Summaries under headings have to be merged under one set of them (C53).
            let merged = single || request.content_type != ContentType::Chat;
            if merged && counter.count_up_to(&words, left).is_some() {
                return Ok(words);
            }
            let after: usize =
                passages.iter().filter(|one| !one.settled).map(|one| room.counter.count(&one.text)).sum();
            if after * 100 > before * ENOUGH {
                return Err(Failure::NotSmaller);
            }
        }
        Err(Failure::NotSmaller)
    }

    /// One chunk retold, with the spans it must not lose put back. A failure stops the calls not yet begun.
    async fn retell(&self, call: &Call<'_>, job: &Job, allowance: &Allowance<'_>) -> Result<String, Failure> {
        let Ok(_slot) = allowance.slots.acquire().await else { return Err(Failure::Stopped) };
        if call.stop.load(Ordering::SeqCst) {
            return Err(Failure::Stopped);
        }
        let written = match (allowance.is_late(), allowance.observer.may_spend()) {
            (true, _) => Err(Failure::Late),
            (false, false) => Err(Failure::Spent),
            (false, true) => self.one(call, job, allowance).await,
        };
        // A call that ended because its time was up failed for that reason, whatever it says.
        let written = written.map_err(|failure| if allowance.is_late() { Failure::Late } else { failure });
        if written.is_err() {
            call.stop.store(true, Ordering::SeqCst);
        }
        written
    }

    async fn one(&self, call: &Call<'_>, job: &Job, allowance: &Allowance<'_>) -> Result<String, Failure> {
        let required = required(call.request, &job.text);
        let told = (job.share * TOLD / 100).max(1);
        let named = named(&required, call.preserve);
        let named = call.room.counter.prefix(&named, NAMED_PINS);
        let mut input = sub_input(call.recipe, &job.text, told, named);
        input.session_id.clone_from(&allowance.session_id);
        input.turn_id.clone_from(&allowance.turn_id);
        input.request_id.clone_from(&allowance.request_id);
        let purpose = Purpose::Condensing { until: allowance.deadline };
        let outcome = self.run_recipe(call.recipe, &input, &Paid(allowance.observer), purpose).await;
        allowance.called(&outcome);
        let outcome = outcome?;
        let words = match &outcome.output {
            Value::Object(_) => zones(&outcome.output),
            _ => unframed(&outcome.reply, call.recipe),
        };
        if words.is_empty() {
            return Err(Failure::Empty);
        }
        if let Some(value) = rewrite::invented(&job.text, &words) {
            return Err(Failure::Invented(value));
        }
        Ok(with_spans(words, &required, &job.text, job.share, call.request.counter))
    }
}

/// What a call is given.
fn sub_input(recipe: &Recipe, text: &str, target: usize, preserve: &str) -> RunInput {
    let mut input = RunInput::default();
    if let Some(doc) = recipe.input_docs.first() {
        input.documents.push(Document::whole(doc.name.as_str(), "text", text));
    }
    input.values.insert("target_tokens".to_owned(), Value::from(target.to_string()));
    input.values.insert("preserve".to_owned(), Value::from(preserve));
    input
}

/// A reply without the tags around the text it retells, which small models repeat.
fn unframed(reply: &str, recipe: &Recipe) -> String {
    let name = recipe.input_docs.first().map_or("", |doc| doc.name.as_str());
    let is_tag = |line: &&str| {
        let tag = line.trim().trim_start_matches(['<', '/']);
        line.trim().starts_with('<') && line.trim().ends_with('>') && tag.starts_with(name)
    };
    let lines: Vec<&str> = reply.lines().filter(|line| !is_tag(line)).collect();
    lines.join("\n").trim().to_owned()
}

/// What was written, or the failure that stopped the others.
fn all_or_first_failure(written: Vec<Result<String, Failure>>) -> Result<Vec<String>, Failure> {
    let (mut words, mut failure) = (Vec::with_capacity(written.len()), None);
    for result in written {
        match (result, &failure) {
            (Ok(text), _) => words.push(text),
            (Err(found), None | Some(Failure::Stopped)) => failure = Some(found),
            (Err(_), Some(_)) => {}
        }
    }
    failure.map_or(Ok(words), Err)
}

/// The stretches of the text, those too short to be worth a call settled.
fn passages(request: &CondenseRequest<'_>) -> Vec<Passage> {
    let found = rewrite::segments(request.text, request.content_type);
    let passage = |stretch: rewrite::Segment| {
        let text = request.text[stretch.bytes].to_owned();
        let short = request.counter.count_up_to(&text, WORTH_RETELLING).is_some();
        Passage { settled: stretch.verbatim || short, text }
    };
    found.into_iter().map(passage).collect()
}

/// The calls of a round, with what each may write.
fn plan(
    passages: &[Passage],
    left: usize,
    room: &Room,
    counter: &Counter,
    target: usize,
) -> Result<Vec<Job>, Failure> {
    let mut open: Vec<(usize, &str, Range<usize>, usize)> = Vec::new();
    for (at, passage) in passages.iter().enumerate().filter(|(_, passage)| !passage.settled) {
        let found =
            chunks(&passage.text, room.input, &room.counter).map_err(|_| Failure::NoRoom { target })?;
        open.extend(found.into_iter().map(|chunk| (at, passage.text.as_str(), chunk.bytes, chunk.tokens)));
    }
    let fixed: usize =
        passages.iter().filter(|one| one.settled).map(|one| counter.count(&one.text) + 1).sum();
    let free = left.saturating_sub(fixed + open.len());
    if open.is_empty() || free < LEAST_SHARE {
        return Err(Failure::NoRoom { target });
    }
    let total: usize = open.iter().map(|(.., tokens)| tokens).sum();
    let job = |(passage, text, bytes, tokens): (usize, &str, Range<usize>, usize)| Job {
        passage,
        text: text[bytes].to_owned(),
        share: (tokens.saturating_mul(free) / total.max(1)).clamp(LEAST_SHARE, room.output.max(LEAST_SHARE)),
    };
    Ok(open.into_iter().map(job).collect())
}

/// Puts what was written in the place of what it retells.
fn replace(passages: &mut [Passage], jobs: &[Job], written: Vec<String>) {
    for job in jobs {
        passages[job.passage].text.clear();
    }
    for (job, words) in jobs.iter().zip(written) {
        let text = &mut passages[job.passage].text;
        text.push_str(words.trim_end());
        text.push('\n');
    }
}

fn joined(passages: &[Passage]) -> String {
    let mut out = String::new();
    for passage in passages {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&passage.text);
    }
    out
}

/// Pins and pointers of ours that stand in a chunk: none of them may get lost.
fn required(request: &CondenseRequest<'_>, text: &str) -> Vec<String> {
    let pins = request.pins.iter().filter(|pin| !pin.is_empty() && text.contains(pin.as_str())).cloned();
    let pointers = request.key.find_in(text).into_iter().map(|(range, _)| text[range].to_owned());
    let mut all: Vec<String> = pins.chain(pointers).collect();
    all.sort();
    all.dedup();
    all
}

/// What the prompt says must be kept: spans, then kinds of spans.
fn named(required: &[String], preserve: &[String]) -> String {
    let all: Vec<&str> = required.iter().chain(preserve).map(String::as_str).collect();
    all.join("; ")
}

/// The summary with the required spans it lost, and with as many of the telling ones as its share has room for.
fn with_spans(mut words: String, required: &[String], text: &str, share: usize, counter: &Counter) -> String {
    for span in required {
        if !words.contains(span.as_str()) {
            words = format!("{words}\n{span}");
        }
    }
    for span in rewrite::missing(text, &words) {
        let longer = format!("{words}\n{span}");
        if counter.count_up_to(&longer, share).is_some() {
            words = longer;
        }
    }
    words
}

/// The zones of a page capture as text, without those of low confidence.
fn zones(output: &Value) -> String {
    let zones = output["zones"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sure = zones.iter().filter(|zone| zone["confidence"].as_f64() >= Some(LEAST_CONFIDENCE));
    let lines = sure.filter_map(|zone| {
        let (kind, content) = (zone["type"].as_str()?, zone["content"].as_str()?);
        Some(format!("{kind} (confidence {}): {}", zone["confidence"], content.trim()))
    });
    lines.collect::<Vec<_>>().join("\n")
}
