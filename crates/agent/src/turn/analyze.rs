//! Phase 0: what the query refers to (R1-3.20 to R1-3.25, R1-5, R1-14.1, R1-14.6). Whether a page was captured, and
//! where, is looked up and never taken from a model.

use larder_engine::inputs::InputDocument;
use larder_retrieval::{FoundCapture, Grant, RECENT_TURNS, Retrieval};
use larder_store::TurnDraft;
use larder_text::sections::SectionId;
use larder_vault::{ContentReference, QueryAnalysis};

use super::answers::QueryAnswer;
use super::error::Stop;
use super::files;
use super::phase::{PhaseContext, PhaseOutcome};
use super::recipes::PhaseInputs;
use super::turn_phase::TurnPhase;

/// Resolves the query against the last three turns and adds the result to §0.
pub(super) async fn run(cx: &mut PhaseContext<'_>) -> Result<PhaseOutcome, Stop> {
    let turns = cx.turns;
    let (now, counter) = (cx.clock.now(), cx.document.condenser.counter.clone());
    let retrieval = Retrieval::new(&turns.documents, &counter, now, Grant::QueryAnalyzer);
    let documents = earlier_turns(&retrieval, &cx.draft).await?;
    let original = cx.draft.query.clone();
    let inputs = PhaseInputs { documents, ..PhaseInputs::default() };
    let convert = |answer: &QueryAnswer| Ok(answer.analysis(&original));
    let asked = cx.document.asked();
    let (_, mut analysis) = cx.recipes().decide("phase0_query_analyzer", inputs, convert).await?;
    analysis.original_query = asked.unwrap_or(analysis.original_query);
    if let Some(reference) = &mut analysis.content_reference {
        look_up(reference, &retrieval, cx.draft.number).await?;
    }
    let at = cx.draft.place.query_analysis();
    files::insert_json(&mut cx.draft, &at, &analysis);
    cx.document.condenser.query.clone_from(&analysis.resolved_query);
    cx.document.extend(SectionId::UserQuery, &analysis.for_section().write())?;
    let outcome = PhaseOutcome::new(TurnPhase::Reflect, line(&analysis));
    cx.state.analysis = Some(analysis);
    Ok(outcome)
}

/// What phase 0 may see of earlier turns (C90): their summaries, and the pages that they captured.
async fn earlier_turns(retrieval: &Retrieval<'_>, draft: &TurnDraft) -> Result<Vec<InputDocument>, Stop> {
    let rows = retrieval.recent(RECENT_TURNS, draft.number, draft.session.as_deref()).await?;
    let mut documents = Vec::new();
    let mut captures: Vec<FoundCapture> = Vec::new();
    for turn in rows.iter().map(|row| Some(row.number)).chain([None]) {
        let found = retrieval.capture(turn, &draft.query).await?;
        captures.extend(found.filter(|found| !captures.iter().any(|known| known.manifest == found.manifest)));
    }
    let recent: Vec<String> = rows
        .iter()
        .map(|row| {
            let topic = row.topic.as_deref().unwrap_or("-");
            let summary = row.summary.as_deref().unwrap_or("-");
            let own = draft.session.is_some() && row.session == draft.session;
            let of = if own { " of this conversation" } else { "" };
            let (number, status, query) = (row.number, row.status, &row.query);
            format!("turn {number}{of} ({status}, topic {topic})\nasked: {query}\n{summary}\n")
        })
        .collect();
    let captures: Vec<String> = captures
        .iter()
        .map(|found| format!("turn {}: {}\n{}\n", found.turn, found.title, found.url))
        .collect();
    for (name, texts) in [("recent_turns", recent), ("captures", captures)] {
        if !texts.is_empty() {
            documents.push(InputDocument::whole(name, name, texts.join("\n")));
        }
    }
    Ok(documents)
}

/// Fills in whether the page of a reference was captured, and where (R1-14.6).
async fn look_up(
    reference: &mut ContentReference,
    retrieval: &Retrieval<'_>,
    number: u32,
) -> Result<(), Stop> {
    // A later turn, or a nonexistent one, cannot be a source.
    reference.source_turn = reference.source_turn.filter(|turn| *turn < number && *turn > 0);
    let hint = format!("{} {}", reference.title, reference.source_url.as_deref().unwrap_or_default());
    let mut found = retrieval.capture(reference.source_turn, &hint).await?;
    if found.is_none() && reference.source_turn.is_some() {
        found = retrieval.capture(None, &hint).await?;
    }
    (reference.has_webpage_cache, reference.webpage_cache_path) = (found.is_some(), None);
    if let Some(found) = found {
        reference.source_turn = Some(found.turn);
        reference.webpage_cache_path = Some(found.path);
        reference.source_url = Some(found.url);
    }
    Ok(())
}

fn line(analysis: &QueryAnalysis) -> String {
    match analysis.was_resolved {
        true => format!("{}: {}", analysis.query_type, analysis.resolved_query),
        false => analysis.query_type.to_string(),
    }
}
