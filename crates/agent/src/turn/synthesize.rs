//! Phase 5: the answer (R1-3.46, R1-3.47, C22). `response.md` contains it in full; §5 contains it, or a digest with a
//! link to it. It is not delivered before phase 6 approves it (C69).

use std::borrow::Cow;
use std::sync::Arc;

use larder_condense::ContentType;
use larder_core::pack::Slice;
use larder_engine::executor::ResolvedCitation;
use larder_engine::inputs::InputDocument;
use larder_retrieval::{Grant, LinkToFollow, Retrieval};
use larder_store::{RunId, StoreError, UserStore};
use larder_text::hash::ContentHash;
use larder_text::sections::SectionId;
use larder_tools::figures;
use larder_vault::context::{CallStatus, Check, CheckResult, Checklist, Synthesis, Validation, Verdict};
use larder_vault::{Score, ToolResult};
use serde_json::json;

use super::condense::TurnCondenser;
use super::error::Stop;
use super::phase::{PhaseContext, PhaseOutcome};
use super::recipes::PhaseInputs;
use super::small_talk::is_small_talk;
use super::state::AnswerAttempt;
use super::turn_phase::TurnPhase;
use super::{
    AnswerSource, absent, calls, empty_sources, ending, evidence, files, known, old_prices, old_research,
    save,
};

/// Why an answer without citations is not validated.
const UNFOUNDED: &str = "it does not cite its sources";
/// How many citations and calls a reason names.
const NAMED: usize = 3;
/// Tokens of §5 that are reserved for all but the answer.
const FRAME: usize = 300;

/// Writes the answer, or rewrites it by the hints of the last verdict.
pub(super) async fn run(cx: &mut PhaseContext<'_>) -> Result<PhaseOutcome, Stop> {
    let name = cx.by_mode("phase5_synthesizer");
    let attempt = cx.state.attempt(TurnPhase::Synthesize);
    let documents = citable_documents(cx).await?;
    let stored: Vec<(String, Arc<str>)> =
        documents.iter().map(|document| (document.name.clone(), Arc::clone(&document.text))).collect();
    let inputs = PhaseInputs {
        documents,
        values: vec![("attempt", json!(attempt))],
        hints: std::mem::take(&mut cx.state.hints),
        layer: None,
        is_free: is_small_talk(&cx.draft.query),
    };
    let written = write_supported(cx, &name, inputs, &stored).await?;
    let WrittenAnswer { answer, citations, unknown, empty } = written;
    let known = known::of_answer(cx, &stored, &answer);
    if answer.is_empty() {
        return Err(Stop::Fail("the synthesizer returned an empty answer".to_owned()));
    }
    let (response, cites) = (cx.draft.place.response(), citations.is_some());
    let sources = sources(cx, &citations.unwrap_or_default(), &stored)?;
    if attempt > 1 {
        let kept = cx.draft.place.earlier_response(attempt - 1);
        files::keep(&mut cx.draft, &response, &kept);
    }
    save::write_answer(cx, &answer, &sources);
    // What a failed call said may be repeated by an answer that says only that it failed.
    let is_absence = absent::is_only_absence(&answer, &empty_sources::asked(cx));
    let now = cx.clock.last().to_string();
    let unsupported = if is_absence { Vec::new() } else { known.unsupported(&answer, &now) };
    for value in &unsupported {
        cx.events.warn(format!(
            "the answer states {value:?}, which is not in its documents, or not as the answer has it"
        ));
    }
    let checklist = checklist(&answer, &unsupported, cites);
    let preview = preview(&cx.document.condenser, &answer);
    cx.document.append(&Synthesis { preview, full: Some(files::link(response)), checklist }).await?;
    let text = format!("{} tokens", cx.document.condenser.counter.count(&answer));
    let unreached = cx.state.unreached();
    cx.state.attempts.push(AnswerAttempt { answer, unsupported, unreached, sources, verdict: None });
    if cites {
        return Ok(PhaseOutcome::new(TurnPhase::Validate, text));
    }
    let why = unfounded(&unknown, &empty, &evidence::results(&cx.draft));
    let verdict = verdict_on_unfounded(cx, why.clone());
    cx.document.append(&verdict).await?;
    Ok(ending::exhausted(&mut cx.state, cx.events, &why))
}

/// An answer, and what it cites.
struct WrittenAnswer {
    answer: String,
    /// `None` if it does not cite as it must.
    citations: Option<Vec<ResolvedCitation>>,
    /// What it cites that is not there.
    unknown: Vec<String>,
    /// What it cites that holds nothing.
    empty: Vec<String>,
}

/// Writes an answer, and another if the first cites what holds nothing.
async fn write_supported(
    cx: &mut PhaseContext<'_>,
    name: &str,
    mut inputs: PhaseInputs,
    stored: &[(String, Arc<str>)],
) -> Result<WrittenAnswer, Stop> {
    let first = write(cx, name, inputs.clone(), stored).await?;
    if first.empty.is_empty() {
        return Ok(first);
    }
    inputs.hints.push(format!(
        "[{}] holds nothing, so it supports nothing: cite what states what you say. Where nothing does, say only that it \
         is not known, and end with [context.md§0].",
        first.empty.join(", ")
    ));
    match write(cx, name, inputs, stored).await {
        // There is an answer already.
        Err(Stop::Fail(_) | Stop::Exhausted(_)) => Ok(first),
        written => written,
    }
}

async fn write(
    cx: &mut PhaseContext<'_>,
    name: &str,
    inputs: PhaseInputs,
    stored: &[(String, Arc<str>)],
) -> Result<WrittenAnswer, Stop> {
    let is_free = inputs.is_free;
    match cx.recipes().run(name, inputs).await {
        Ok(outcome) => {
            let answer = outcome.reply.trim().to_owned();
            let empty = empty_sources::cited(cx, &answer, &outcome.citations, stored);
            // Small talk is answered without evidence, unless the answer states something.
            let is_free = is_free && figures::states_nothing(&answer);
            let cites = is_free || !outcome.citations.is_empty() && empty.is_empty();
            let empty = if cites { Vec::new() } else { empty };
            Ok(WrittenAnswer {
                answer,
                citations: cites.then_some(outcome.citations),
                unknown: Vec::new(),
                empty,
            })
        }
        // If a run never cited anything, its last reply is delivered with a mark, since another run would not cite
        // either.
        Err(Stop::Unmet { run, unknown_citations, .. }) => {
            let answer = last_reply(&cx.turns.engine.store, &run)?;
            Ok(WrittenAnswer { answer, citations: None, unknown: unknown_citations, empty: Vec::new() })
        }
        Err(stop) => Err(stop),
    }
}

/// Why an answer that did not cite as it must is not validated. What it cites may be a call that failed, which is no
/// evidence.
fn unfounded(unknown: &[String], empty: &[String], results: &[ToolResult]) -> String {
    let named = |cited: &[String]| {
        format!("it cites [{}]", cited.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", "))
    };
    if unknown.is_empty() && !empty.is_empty() {
        return format!("{}, which holds nothing", named(empty));
    }
    if unknown.is_empty() {
        return UNFOUNDED.to_owned();
    }
    let cited = named(unknown);
    let number = |cited: &String| cited.trim_start_matches('p').parse().ok();
    let numbers: Vec<u32> = unknown.iter().filter_map(number).collect();
    let failed = || results.iter().filter(|result| result.status != CallStatus::Success);
    let is_cited = |result: &&ToolResult| numbers.contains(&result.number);
    let mut named: Vec<&ToolResult> = failed().filter(is_cited).collect();
    let why = match named.is_empty() {
        true => "none of its sources; a call failed",
        false => "no evidence, since a call failed",
    };
    if named.is_empty() {
        named = failed().collect();
    }
    if named.is_empty() {
        return format!("{cited}, which is none of its sources");
    }
    let said = named.iter().take(NAMED).map(|call| {
        let (text, status) = (calls::summary(&call.call), call.status.as_str());
        format!("{text} ended with {status}: {}", calls::summary(&call.content))
    });
    let said = said.collect::<Vec<_>>().join("; ");
    format!("{cited}, which is {why}: {said}")
}

/// The verdict on an answer without valid citations, which needs no model.
fn verdict_on_unfounded(cx: &PhaseContext<'_>, why: String) -> Validation {
    Validation {
        decision: Verdict::Fail,
        confidence: Score::ZERO,
        checks: vec![(Check::ClaimsSupported, CheckResult::Fail)],
        goals: Vec::new(),
        issues: vec![why],
        revision_hints: Vec::new(),
        suggested_fixes: Vec::new(),
        notes: String::new(),
        block: cx.document.next_decision("validation", SectionId::Validation),
    }
}

/// The last reply of a run whose answers all failed its gates.
fn last_reply(store: &UserStore, run: &RunId) -> Result<String, Stop> {
    let output = match store.runs().get(run) {
        // There was no room for its record.
        Err(StoreError::UnknownRun { .. }) => None,
        record => record?.output,
    };
    let bytes = output.map(|output| store.contents().get(output)).transpose()?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).unwrap_or_default())
}

/// The documents that an answer may cite by number: each reference of §2, then each attachment, then each result of a
/// call that succeeded, then `toolresults.md` with the numbers of those in place of what they say. The order is the same
/// in phases 5 and 6 (R0-14.8). Links inside references are not followed (R1-14.4, C90).
pub(super) async fn citable_documents(cx: &mut PhaseContext<'_>) -> Result<Vec<InputDocument>, Stop> {
    let (now, counter) = (cx.clock.now(), cx.document.condenser.counter.clone());
    let retrieval =
        Retrieval::new(&cx.turns.documents, &counter, now, Grant::Synthesis).with_query(cx.query());
    let mut documents = Vec::new();
    for file in &cx.state.references {
        let link = LinkToFollow { path: file.to_string(), sections_to_extract: Vec::new() };
        let read = retrieval.follow(&[link], usize::MAX).await?;
        // An unreadable document keeps its number, so that the others keep theirs.
        let text = read.documents.first().map_or("(not to be read)", |document| document.text.as_str());
        let old = old_research::current(text, file.as_str(), now);
        let old = old.or_else(|| old_prices::dated(&cx.turns.documents, file.as_str(), text, now));
        let text = old.map_or(Cow::Borrowed(text), Cow::Owned);
        documents.push(cited(file.as_str(), &text));
    }
    documents.extend(evidence::attachments(&cx.draft).iter().map(|(name, text)| cited(name, text)));
    let mut results = evidence::results(&cx.draft);
    // What a failed call says is no evidence.
    for result in results.iter_mut().filter(|result| result.status == CallStatus::Success) {
        let name = evidence::name(&cx.draft.place.tool_results(), &result.block());
        let said = if result.content.trim().is_empty() { "(nothing)" } else { result.content.as_str() };
        documents.push(cited(&name, said));
        // Its number among the calls is not the one to cite.
        let number = documents.len();
        result.content = format!("(evidence p{number}, cited as [{number}])");
    }
    documents.extend(evidence::list_of(&cx.draft, &results));
    Ok(documents)
}

/// A document that an answer cites by its number.
fn cited(name: &str, text: &str) -> InputDocument {
    let whole: Arc<str> = Arc::from(text);
    let slice = Slice {
        document: ContentHash::new(text.as_bytes()),
        text: Arc::clone(&whole),
        bytes: 0..text.len(),
        lines: (1, text.lines().count().max(1)),
    };
    InputDocument { slice: Some(slice), ..InputDocument::whole("evidence", name, whole) }
}

/// The answer, or a digest of it that fits §5.
pub(super) fn preview(condenser: &TurnCondenser<'_>, answer: &str) -> String {
    let room = SectionId::Synthesis.token_budget() - FRAME;
    if condenser.counter.count_up_to(answer, room).is_some() {
        return answer.to_owned();
    }
    // The digest has pointers to what it omits.
    let stored = condenser.store(answer.as_bytes(), "answer", "the whole answer").is_ok();
    let digest = condenser.for_document(answer, ContentType::Markdown, room).filter(|_| stored);
    let Some(digest) = digest else { return condenser.counter.prefix(answer, room).to_owned() };
    condenser.report(&digest);
    digest.result.text
}

/// What the citations of an answer lead to, by number. A part of a document of the turn is named after its file, without
/// the folder. What has no original yet, such as a document of the vault as it was read, gets one.
fn sources(
    cx: &PhaseContext<'_>,
    citations: &[ResolvedCitation],
    documents: &[(String, Arc<str>)],
) -> Result<Vec<AnswerSource>, Stop> {
    let originals = evidence::originals(&cx.draft);
    let mut sources = Vec::new();
    for citation in citations {
        let Some(number) = citation.part.strip_prefix('p').and_then(|number| number.parse().ok()) else {
            continue;
        };
        let document = match citation.source.split_once(" ^") {
            Some((file, block)) => format!("{}/{file}#^{block}", cx.draft.place.folder()),
            None => citation.source.clone(),
        };
        let mut pointer = originals.get(&citation.source).or(citation.pointer.as_ref()).cloned();
        let read = documents.iter().find(|(name, _)| *name == citation.source);
        if let (None, Some((name, text))) = (&pointer, read) {
            let stored = cx.document.condenser.store(text.as_bytes(), "document", name)?;
            pointer = Some(stored.to_string());
        }
        sources.push(AnswerSource { number, document, pointer });
    }
    sources.sort_by_key(|source| source.number);
    sources.dedup_by_key(|source| source.number);
    Ok(sources)
}

/// What can be checked without a model: whether the answer cites anything, whether it states values that appear in
/// none of its documents, and whether its fences are closed.
fn checklist(answer: &str, unsupported: &[String], cites: bool) -> Checklist {
    let fences = answer.lines().filter(|line| line.trim_start().starts_with("```")).count();
    Checklist {
        claims_match: cites && unsupported.is_empty(),
        intent_satisfied: cites,
        no_hallucinations: unsupported.is_empty(),
        appropriate_format: fences % 2 == 0,
    }
}
