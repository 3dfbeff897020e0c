//! Phase 0: what the query refers to (R1-3.20 to R1-3.25, R1-5, R1-14.1, R1-14.6). Whether a page was captured, and
//! where, is looked up; no model says so.

use larder_condense::sections::SectionId;
use larder_vault::{ContentReference, QueryAnalysis};

use super::answers::QueryAnswer;
use super::error::Stop;
use super::machine::{Done, Machine};
use super::recipes::Offer;
use super::state::Step;
use larder_engine::inputs::InputDocument;
use larder_retrieval::{FoundCapture, Grant, RECENT_TURNS, Retrieval};

impl Machine<'_> {
    /// Resolves the query against the last three turns and adds what it found to §0.
    pub(super) async fn analyze(&mut self) -> Result<Done, Stop> {
        let turns = self.turns;
        let (now, counter) = (self.clock.now(), self.counter.clone());
        let retrieval = Retrieval::new(&turns.documents, &counter, now, Grant::QueryAnalyzer);
        let documents = self.known_before(&retrieval)?;
        let original = self.draft.query.clone();
        let offer = Offer { documents, ..Offer::default() };
        let make = |answer: &QueryAnswer| Ok(answer.analysis(&original));
        let (_, mut analysis) = self.decide("phase0_query_analyzer", offer, make).await?;
        if let Some(reference) = &mut analysis.content_reference {
            self.look_up(reference, &retrieval)?;
        }
        self.write_json(&self.draft.place.query_analysis(), &analysis);
        self.extend(SectionId::UserQuery, &analysis.for_section().write())?;
        let done = Done::new(Step::Reflect, line(&analysis));
        self.state.analysis = Some(analysis);
        Ok(done)
    }

    /// What phase 0 may see of earlier turns (C90): their summaries, and the pages that they captured.
    fn known_before(&self, retrieval: &Retrieval<'_>) -> Result<Vec<InputDocument>, Stop> {
        let rows = retrieval.recent(RECENT_TURNS, self.draft.number)?;
        let mut documents = Vec::new();
        let mut captures: Vec<FoundCapture> = Vec::new();
        for turn in rows.iter().map(|row| Some(row.number)).chain([None]) {
            let found = retrieval.capture(turn, &self.draft.query)?;
            captures
                .extend(found.filter(|found| !captures.iter().any(|known| known.manifest == found.manifest)));
        }
        let recent: Vec<String> = rows
            .iter()
            .map(|row| {
                let topic = row.topic.as_deref().unwrap_or("-");
                let summary = row.summary.as_deref().unwrap_or("-");
                format!(
                    "turn {} ({}, topic {topic})\nasked: {}\n{summary}\n",
                    row.number, row.status, row.query
                )
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

    /// Says of a reference whether the page that it means was captured, and where (R1-14.6).
    fn look_up(&self, reference: &mut ContentReference, retrieval: &Retrieval<'_>) -> Result<(), Stop> {
        // Turns to come hold nothing, and a turn that never was is no source.
        reference.source_turn = reference.source_turn.filter(|turn| *turn < self.draft.number && *turn > 0);
        let hint = format!("{} {}", reference.title, reference.source_url.as_deref().unwrap_or_default());
        let mut found = retrieval.capture(reference.source_turn, &hint)?;
        if found.is_none() && reference.source_turn.is_some() {
            found = retrieval.capture(None, &hint)?;
        }
        (reference.has_webpage_cache, reference.webpage_cache_path) = (found.is_some(), None);
        if let Some(found) = found {
            reference.source_turn = Some(found.turn);
            reference.webpage_cache_path = Some(found.path);
            reference.source_url = Some(found.url);
        }
        Ok(())
    }
}

fn line(analysis: &QueryAnalysis) -> String {
    match analysis.was_resolved {
        true => format!("{}: {}", analysis.query_type, analysis.resolved_query),
        false => analysis.query_type.to_string(),
    }
}
