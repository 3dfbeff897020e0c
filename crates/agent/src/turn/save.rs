//! Phase 7: saves by rule, before any model is asked for a summary (C5, R1-3.78). After the commit the turn is
//! complete; later failures cost nothing.

use larder_engine::executor::Spending;
use larder_store::NewJob;
use larder_text::sections::{SectionId, Sections};
use larder_tools::figures;
use larder_vault::context::{self, Checklist, Synthesis};
use larder_vault::layout::is_research;
use larder_vault::links::{DualLink, Reference};
use larder_vault::{
    BlockId, ContentKind, DocumentTime, Meta, Note, Response, TurnMetadata, TurnMetrics, TurnStatus,
    VaultPath,
};
use serde_json::{Value, json};

use super::background::EndedTurn;
use super::documents::CONTEXT;
use super::event::TurnEvent;
use super::files;
use super::notes;
use super::phase::PhaseContext;
use super::state::{AnswerAttempt, Ending};
use super::synthesize;
use super::turn_phase::TurnPhase;
use super::{AnswerSource, TurnOutcome};

/// What the turn's runs read and retrieval considered; not part of the vault's layout.
const RECEIPTS: &str = "receipts.json";
/// Picodollars of a millionth of a dollar.
const PICOS_PER_MICRO: u64 = 1_000_000;
/// Characters of an answer that serve as the summary of a turn until a model writes one.
const INTERIM_SUMMARY: usize = 240;
const NUMBER: u8 = TurnPhase::Save.number();

/// A turn that is ready to be committed.
pub(super) struct PreparedTurn {
    ending: Ending,
    began: DocumentTime,
}

/// Reports the ending and completes every file of the turn's folder.
pub(super) fn prepare(cx: &mut PhaseContext<'_>) -> PreparedTurn {
    let began = cx.clock.now();
    let name = TurnPhase::Save.name().to_owned();
    cx.events.send(&TurnEvent::Phase { number: NUMBER, name, attempt: 1 });
    let lost = || Ending::Failed { reason: "the turn ended without a result".to_owned() };
    let ending = cx.state.ending.clone().unwrap_or_else(lost);
    match &ending {
        Ending::Answer { text, .. } => cx.events.send(&TurnEvent::Answer { text: text.clone() }),
        Ending::Clarify { question } => cx.events.send(&TurnEvent::Clarify { question: question.clone() }),
        Ending::Failed { .. } => {}
    }
    complete(cx, &ending);
    PreparedTurn { ending, began }
}

/// What is to be done behind the turn once it is committed.
pub(super) fn jobs(cx: &mut PhaseContext<'_>, turn: &PreparedTurn) -> Vec<NewJob> {
    let millis = cx.clock.spent();
    cx.turns.jobs_after(&EndedTurn {
        number: cx.draft.number,
        session: cx.draft.session.as_deref(),
        status: status(&turn.ending),
        spent: Spending { usage: cx.state.usage, cost: cx.state.cost },
        millis,
        interim: &interim_summary(&turn.ending),
    })
}

/// Records outside the turn what a committed turn used, and reports its end.
pub(super) fn conclude(cx: &mut PhaseContext<'_>, turn: PreparedTurn) -> TurnOutcome {
    notes::note_turn(cx, &turn.ending);
    let millis = cx.clock.millis_since(turn.began);
    cx.events.send(&TurnEvent::PhaseDone { number: NUMBER, tokens: 0, millis, text: "saved".to_owned() });
    let outcome = outcome(cx, turn.ending);
    cx.events.send(&TurnEvent::Finished {
        status: outcome.status,
        unverified: outcome.unverified,
        tokens: cx.state.tokens(),
        cost: outcome.cost,
        millis: outcome.latency_ms,
    });
    outcome
}

fn outcome(cx: &mut PhaseContext<'_>, ending: Ending) -> TurnOutcome {
    let status = status(&ending);
    let (mut answer, mut question, mut reason, mut is_unverified) = (None, None, None, false);
    let mut sources = Vec::new();
    match ending {
        Ending::Answer { text, unverified, note, sources: cited, .. } => {
            (answer, is_unverified, reason, sources) = (Some(text), unverified, note, cited);
        }
        Ending::Clarify { question: asked } => question = Some(asked),
        Ending::Failed { reason: why } => reason = Some(why),
    }
    TurnOutcome {
        turn: cx.draft.number,
        folder: cx.draft.place.folder().to_owned(),
        status,
        answer,
        sources,
        question,
        reason,
        unverified: is_unverified,
        usage: cx.state.usage,
        cost: cx.state.cost,
        tool_calls: cx.state.tool_calls,
        latency_ms: cx.clock.spent(),
    }
}

fn complete(cx: &mut PhaseContext<'_>, ending: &Ending) {
    cx.draft.phase = Some(NUMBER);
    write_response(cx, ending);
    relink_attempts(cx);
    complete_frontmatter(cx, ending);
    let (at, metrics) = (cx.draft.place.metrics(), metrics(cx));
    files::insert_json(&mut cx.draft, &at, &metrics);
    let (at, metadata) = (cx.draft.place.metadata(), metadata(cx, ending));
    files::insert_json(&mut cx.draft, &at, &metadata);
    if let Some(at) = VaultPath::new(&format!("{}/{RECEIPTS}", cx.draft.place.folder())) {
        let ended = ended(ending);
        let value = json!({
            "turn_number": cx.draft.number, "ended": ended, "considered": cx.state.considered,
            "runs": cx.state.receipts, "sections": sections(cx),
        });
        files::insert_json(&mut cx.draft, &at, &value);
    }
    cx.draft.files.insert(CONTEXT.to_owned(), cx.document.text.clone().into_bytes());
}

/// `response.md` contains what the user received: the answer with its mark, or why there is none. A newest answer that was
/// not delivered is kept, as one that was replaced.
fn write_response(cx: &mut PhaseContext<'_>, ending: &Ending) {
    let (text, sources) = match ending {
        Ending::Answer { text, sources, .. } => (text.clone(), sources.as_slice()),
        Ending::Failed { reason } => {
            let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
            (format!("> **No answer.** {reason}"), [].as_slice())
        }
        Ending::Clarify { .. } => return,
    };
    let newest = cx.state.attempts.last();
    if newest.is_some_and(|attempt| attempt.answer != super::ending::unmarked(&text)) {
        let (response, attempt) = (cx.draft.place.response(), cx.state.attempt(TurnPhase::Validate));
        let kept = cx.draft.place.earlier_response(attempt);
        files::keep(&mut cx.draft, &response, &kept);
    }
    write_answer(cx, &text, sources);
    if matches!(ending, Ending::Failed { .. }) {
        // The newest version of §5, which later turns read, says what the user received, and none of its boxes is ticked.
        let preview = synthesize::preview(&cx.document.condenser, &text);
        let full = Some(files::link(cx.draft.place.response()));
        let section = Synthesis { preview, full, checklist: Checklist::default() };
        cx.document.text += &context::append(&cx.document.text, &section, &cx.document.at);
    }
}

/// Writes `response.md`: an answer, and what its numbers lead to.
pub(super) fn write_answer(cx: &mut PhaseContext<'_>, text: &str, sources: &[AnswerSource]) {
    let source = |source: &AnswerSource| {
        let (path, block) = source.document.split_once("#^").unwrap_or((&source.document, ""));
        let (file, note) = (VaultPath::new(path)?, source.pointer.clone().unwrap_or_default());
        let label = file.short().to_owned();
        let link = match BlockId::new(block) {
            Some(block) => DualLink::to_block(file, block, &label),
            None => DualLink::new(file, &label),
        };
        Some((source.number, Reference { link, note }))
    };
    let sources = sources.iter().filter_map(source).collect();
    let (at, meta) = (cx.draft.place.response(), cx.meta("response"));
    files::insert_document(&mut cx.draft, &at, meta, Response { text: text.to_owned(), sources });
}

/// Leads the links of replaced attempts to their own plans and answers, as a rename does (R1-3.81). Prompts saw the
/// newest attempt only, so nothing that a model read changes.
fn relink_attempts(cx: &mut PhaseContext<'_>) {
    let (place, at) = (&cx.draft.place, &cx.document.at);
    let kept = |id: SectionId, attempt: u32| match id {
        SectionId::TaskPlan => Some((place.ticket(), place.earlier_ticket(attempt))),
        SectionId::Synthesis => Some((place.response(), place.earlier_response(attempt))),
        _ => None,
    };
    let text = &cx.document.text;
    let mut relinked = String::with_capacity(text.len());
    let mut end = 0;
    for section in &Sections::parse(text).sections {
        let Some((file, earlier)) = kept(section.id, section.attempt) else { continue };
        if files::text(&cx.draft, &earlier).is_none() {
            continue;
        }
        let [old, new] = [file, earlier].map(|file| files::link(file).both(at));
        relinked.push_str(&text[end..section.body.start]);
        relinked.push_str(&text[section.body.clone()].replace(&old, &new));
        end = section.body.end;
    }
    relinked.push_str(&text[end..]);
    cx.document.text = relinked;
}

/// Adds topic, intent and quality of the turn to the frontmatter of `context.md`, and to that of each document what it
/// holds (R1-9.11). The sections are unchanged.
fn complete_frontmatter(cx: &mut PhaseContext<'_>, ending: &Ending) {
    let did_research = cx.draft.files.keys().any(|name| is_research(name));
    let has_research = did_research || cx.state.references.iter().any(|file| is_research(file.name()));
    let plan = cx.state.plan.as_ref();
    let context = &mut cx.document.text;
    if let Some(mut meta) = Meta::read(&Note::parse(context).frontmatter).value {
        meta.topic = plan.and_then(|plan| plan.topic.clone());
        meta.intent = plan.map(|plan| plan.intent);
        if let Ending::Answer { quality, .. } = ending {
            meta.quality = *quality;
        }
        meta.content_types = kinds(context, has_research);
        let end = Sections::parse(context).frontmatter.end;
        context.replace_range(..end, meta.write().as_str());
    }
    let place = &cx.draft.place;
    let others = [(place.ticket(), false), (place.response(), false), (place.tool_results(), did_research)];
    for (at, has_research) in others {
        let Some(text) = files::text(&cx.draft, &at) else { continue };
        let text = files::with_meta(text, |meta| meta.content_types = kinds(text, has_research));
        files::insert(&mut cx.draft, &at, text.into_bytes());
    }
}

/// What a document of the turn holds.
fn kinds(text: &str, has_research: bool) -> Vec<ContentKind> {
    let kinds = [
        (ContentKind::Context, true),
        (ContentKind::Research, has_research),
        (ContentKind::Pricing, figures::states_price(text)),
    ];
    kinds.into_iter().filter(|(_, holds)| *holds).map(|(kind, _)| kind).collect()
}

fn metrics(cx: &mut PhaseContext<'_>) -> TurnMetrics {
    TurnMetrics {
        turn_number: cx.draft.number,
        total_duration_ms: cx.clock.spent(),
        total_tokens: cx.state.tokens(),
        total_cost_microdollars: cx.state.cost.map_or(0, |cost| cost.picos() / PICOS_PER_MICRO),
        tool_calls: u64::from(cx.state.tool_calls),
        runs: cx.state.runs.clone(),
    }
}

fn metadata(cx: &mut PhaseContext<'_>, ending: &Ending) -> TurnMetadata {
    let plan = cx.state.plan.as_ref();
    TurnMetadata {
        turn_number: cx.draft.number,
        user_id: cx.turns.documents.user().to_owned(),
        session_id: Some(cx.draft.session.clone().unwrap_or_else(|| cx.turns.documents.user().to_owned())),
        mode: cx.draft.mode,
        status: status(ending),
        created_at: cx.draft.created_at,
        finished_at: Some(cx.clock.now()),
        query: cx.query().to_owned(),
        summary: Some(interim_summary(ending)),
        topic: plan.and_then(|plan| plan.topic.clone()),
        intent: plan.map(|plan| plan.intent),
        quality: match ending {
            Ending::Answer { quality, .. } => *quality,
            Ending::Clarify { .. } | Ending::Failed { .. } => None,
        },
        unverified: matches!(ending, Ending::Answer { unverified: true, .. }),
        invented: invented(&cx.state.attempts, ending),
        last_phase: Some(NUMBER),
        revisions: cx.state.revisions,
        retries: cx.state.retries,
    }
}

/// What the answers stated without a document, except what a verified one states in the end.
fn invented(attempts: &[AnswerAttempt], ending: &Ending) -> Vec<String> {
    let verified = match ending {
        Ending::Answer { text, unverified: false, .. } => text.as_str(),
        _ => "",
    };
    let mut values: Vec<String> = Vec::new();
    for value in attempts.iter().flat_map(|attempt| &attempt.unsupported) {
        if !values.contains(value) && !verified.contains(value.as_str()) {
            values.push(value.clone());
        }
    }
    values
}

/// The size of each version of each section, as it was written (R1-3.6, C14).
fn sections(cx: &PhaseContext<'_>) -> Vec<Value> {
    let text = &cx.document.text;
    let size = |section: &larder_text::sections::Section| {
        let body = text.get(section.body.clone()).unwrap_or_default();
        let tokens = cx.document.condenser.counter.count(body);
        let words = body.split_whitespace().count();
        json!({
            "section": section.id.number(), "attempt": section.attempt, "words": words, "tokens": tokens,
        })
    };
    Sections::parse(text).sections.iter().map(size).collect()
}

const fn status(ending: &Ending) -> TurnStatus {
    match ending {
        Ending::Answer { .. } => TurnStatus::Complete,
        Ending::Clarify { .. } => TurnStatus::Clarify,
        Ending::Failed { .. } => TurnStatus::Failed,
    }
}

/// How the turn ended, for its receipts.
fn ended(ending: &Ending) -> Value {
    match ending {
        Ending::Answer { unverified, note, .. } => {
            json!({"status": status(ending), "unverified": unverified, "reason": note})
        }
        Ending::Clarify { question } => json!({"status": status(ending), "question": question}),
        Ending::Failed { reason } => json!({"status": status(ending), "reason": reason}),
    }
}

/// The summary of a turn until a model writes one: the next turn may start before that.
fn interim_summary(ending: &Ending) -> String {
    let (before, text) = match ending {
        Ending::Answer { text, unverified: true, .. } => ("Unverified: ", super::ending::unmarked(text)),
        Ending::Answer { text, .. } => ("", text.as_str()),
        Ending::Clarify { question } => ("Asked the user: ", question.as_str()),
        Ending::Failed { reason } => ("No answer: ", reason.as_str()),
    };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = words.char_indices().nth(INTERIM_SUMMARY).map(|(end, _)| end);
    match end {
        Some(end) => format!("{before}{}…", &words[..end]),
        None => format!("{before}{words}"),
    }
}
