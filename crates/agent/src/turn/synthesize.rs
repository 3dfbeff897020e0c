//! Phase 5: the answer (R1-3.46, R1-3.47, C22). `response.md` contains it in full; §5 contains it, or a digest with a
//! link to it. It is not delivered before phase 6 approves it (C69).

use std::sync::Arc;

use larder_condense::ContentType;
use larder_condense::rewrite;
use larder_core::pack::Slice;
use larder_engine::inputs::InputDocument;
use larder_retrieval::{Grant, LinkToFollow, Retrieval};
use larder_store::{RunId, UserStore};
use larder_text::hash::ContentHash;
use larder_text::sections::SectionId;
use larder_vault::context::{Check, CheckResult, Checklist, Synthesis, Validation, Verdict};
use larder_vault::{Response, Score};
use serde_json::json;

use super::condense::TurnCondenser;
use super::documents::CONTEXT;
use super::error::Stop;
use super::phase::{PhaseContext, PhaseOutcome};
use super::recipes::PhaseInputs;
use super::state::AnswerAttempt;
use super::turn_phase::TurnPhase;
use super::{ending, evidence, files};

/// Why an answer without citations is not validated.
const UNFOUNDED: &str = "it does not cite its sources";
/// Tokens of §5 that are reserved for all but the answer.
const FRAME: usize = 300;

/// Writes the answer, or rewrites it by the hints of the last verdict.
pub(super) async fn run(cx: &mut PhaseContext<'_>) -> Result<PhaseOutcome, Stop> {
    let name = cx.by_mode("phase5_synthesizer");
    let attempt = cx.state.attempt(TurnPhase::Synthesize);
    let documents = citable_documents(cx).await?;
    let known: String = documents.iter().map(|document| &*document.text).collect();
    let inputs = PhaseInputs {
        documents,
        values: vec![("attempt", json!(attempt))],
        hints: std::mem::take(&mut cx.state.hints),
        layer: None,
    };
    let (answer, cites) = match cx.recipes().run(&name, inputs).await {
        Ok(outcome) => (outcome.reply.trim().to_owned(), true),
        // If a run never cited anything, its last reply is delivered with a mark, since another run would not cite
        // either.
        Err(Stop::Unmet(run, _)) => (last_reply(&cx.turns.engine.store, &run)?, false),
        Err(stop) => return Err(stop),
    };
    if answer.is_empty() {
        return Err(Stop::Fail("the synthesizer returned an empty answer".to_owned()));
    }
    let (response, meta) = (cx.draft.place.response(), cx.meta("response"));
    files::insert_document(&mut cx.draft, &response, meta, Response(answer.clone()));
    let checklist = checklist(cx, &answer, &known, cites);
    let preview = preview(&cx.document.condenser, &answer);
    cx.document.append(&Synthesis { preview, full: Some(files::link(response)), checklist })?;
    let text = format!("{} tokens", cx.document.condenser.counter.count(&answer));
    cx.state.attempts.push(AnswerAttempt { answer, verdict: None });
    if cites {
        return Ok(PhaseOutcome::new(TurnPhase::Validate, text));
    }
    let verdict = unfounded(cx);
    cx.document.append(&verdict)?;
    Ok(ending::exhausted(&mut cx.state, cx.events, UNFOUNDED))
}

/// The verdict on an answer without citations, which needs no model.
fn unfounded(cx: &PhaseContext<'_>) -> Validation {
    Validation {
        decision: Verdict::Fail,
        confidence: Score::ZERO,
        checks: vec![(Check::ClaimsSupported, CheckResult::Fail)],
        goals: Vec::new(),
        issues: vec![UNFOUNDED.to_owned()],
        revision_hints: Vec::new(),
        suggested_fixes: Vec::new(),
        notes: String::new(),
        block: cx.document.next_decision("validation", SectionId::Validation),
    }
}

/// The last reply of a run whose answers all failed its gates.
fn last_reply(store: &UserStore, run: &RunId) -> Result<String, Stop> {
    let output = store.runs().get(run)?.output;
    let bytes = output.map(|output| store.contents().get(output)).transpose()?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).unwrap_or_default())
}

/// The documents that an answer may cite by number: each reference of §2, then each attachment, then each tool
/// result, then the document of
/// all results. The order is the same in phases 5 and 6 (R0-14.8). Links inside references are not followed (R1-14.4,
/// C90).
pub(super) async fn citable_documents(cx: &mut PhaseContext<'_>) -> Result<Vec<InputDocument>, Stop> {
    let (now, counter) = (cx.clock.now(), cx.document.condenser.counter.clone());
    let retrieval = Retrieval::new(&cx.turns.documents, &counter, now, Grant::Synthesis);
    let mut documents = Vec::new();
    for file in &cx.state.references {
        let link = LinkToFollow { path: file.to_string(), sections_to_extract: Vec::new() };
        let read = retrieval.follow(&[link], usize::MAX).await?;
        // An unreadable document keeps its number, so that the others keep theirs.
        let text = read.documents.first().map_or("(not to be read)", |document| document.text.as_str());
        documents.push(cited(file.as_str(), text));
    }
    documents.extend(evidence::attachments(&cx.draft).iter().map(|(name, text)| cited(name, text)));
    for result in evidence::results(&cx.draft) {
        // Without its folder, whose name would make it an earlier turn.
        let name = format!("{} {}", cx.draft.place.tool_results().name(), result.block());
        let said = if result.content.trim().is_empty() { "(nothing)" } else { result.content.as_str() };
        documents.push(cited(&name, said));
    }
    documents.extend(evidence::result_document(&cx.draft));
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
fn preview(condenser: &TurnCondenser<'_>, answer: &str) -> String {
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

/// What can be checked without a model: whether the answer cites anything, whether it states values that appear in
/// none of its documents, and whether its fences are closed.
fn checklist(cx: &PhaseContext<'_>, answer: &str, known: &str, cites: bool) -> Checklist {
    // Sections are cited by the name of the document.
    let known = format!("{CONTEXT}\n{}\n{known}", cx.document.text);
    let invented = rewrite::invented(&known, answer);
    if let Some(value) = &invented {
        cx.events.warn(format!("the answer states {value:?}, which appears in none of its documents"));
    }
    let fences = answer.lines().filter(|line| line.trim_start().starts_with("```")).count();
    Checklist {
        claims_match: cites && invented.is_none(),
        intent_satisfied: cites,
        no_hallucinations: invented.is_none(),
        appropriate_format: fences % 2 == 0,
    }
}
