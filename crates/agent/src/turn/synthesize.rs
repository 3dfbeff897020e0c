//! Phase 5: the answer (R1-3.46, R1-3.47, C22). It stands whole in `response.md`; §5 holds it, or a digest of it that
//! leads there. Nobody sees it before phase 6 approves (C69).

use std::sync::Arc;

use larder_condense::ContentType;
use larder_condense::rewrite;
use larder_condense::sections::SectionId;
use larder_core::pack::Slice;
use larder_store::RunId;
use larder_text::hash::ContentHash;
use larder_vault::Response;
use larder_vault::Score;
use larder_vault::context::{Check, CheckResult, Checklist, Synthesis, Validation, Verdict};
use serde_json::json;

use super::error::Stop;
use super::machine::{CONTEXT, Done, Machine};
use super::recipes::Offer;
use super::state::{Attempt, Step};
use larder_engine::inputs::InputDocument;
use larder_retrieval::{Grant, LinkToFollow, Retrieval};

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

/// Why an answer goes to no validator.
const UNFOUNDED: &str = "it did not cite what it stands on";

/// Tokens of §5 that are not the answer.
const BESIDE_ANSWER: usize = 300;

impl Machine<'_> {
    /// Writes the answer, or writes it again by the hints of the last verdict.
    pub(super) async fn synthesize(&mut self) -> Result<Done, Stop> {
        let name = self.by_mode("phase5_synthesizer");
        let attempt = self.state.attempt(Step::Synthesize);
        let documents = self.evidence()?;
        let known: String = documents.iter().map(|document| &*document.text).collect();
        let offer = Offer {
            documents,
            values: vec![("attempt", json!(attempt))],
            hints: std::mem::take(&mut self.state.hints),
            layer: None,
        };
        let (answer, cites) = match self.ask(&name, offer).await {
            Ok(outcome) => (outcome.reply.trim().to_owned(), true),
            // Its last words may go out, marked: nobody will make it cite.
            Err(Stop::Unmet(run, _)) => (self.last_words(&run)?, false),
            Err(stop) => return Err(stop),
        };
        if answer.is_empty() {
            return Err(Stop::Fail("the synthesizer gave an empty answer".to_owned()));
        }
        let response = self.draft.place.response();
        self.write(&response, "response", Response(answer.clone()));
        let checklist = self.checklist(&answer, &known, cites);
        let section =
            Synthesis { preview: self.preview(&answer), full: Some(self.link(response)), checklist };
        self.append(&section)?;
        let text = format!("{} tokens", self.counter.count(&answer));
        self.state.attempts.push(Attempt { answer, verdict: None });
        match cites {
            true => Ok(Done::new(Step::Validate, text)),
            false => {
                let verdict = self.unfounded();
                self.append(&verdict)?;
                Ok(self.exhausted(UNFOUNDED))
            }
        }
    }

    /// What phase 6 would have to say of an answer without sources; no model need be asked.
    fn unfounded(&mut self) -> Validation {
        Validation {
            decision: Verdict::Fail,
            confidence: Score::ZERO,
            checks: vec![(Check::ClaimsSupported, CheckResult::Fail)],
            goals: Vec::new(),
            issues: vec![UNFOUNDED.to_owned()],
            revision_hints: Vec::new(),
            suggested_fixes: Vec::new(),
            notes: String::new(),
            block: self.decision("validation", SectionId::Validation),
        }
    }

    /// What a run said last, whose every answer failed its gates.
    fn last_words(&self, run: &RunId) -> Result<String, Stop> {
        let store = &self.turns.engine.store;
        let output = store.runs().get(run)?.output;
        let bytes = output.map(|output| store.contents().get(output)).transpose()?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).unwrap_or_default())
    }

    /// What an answer may cite by number, in this order: each reference of §2, each result of a tool; and the results as
    /// they stand in their document. The same for phases 5 and 6 (R0-14.8). Of each reference one document is read, and
    /// nothing that it links to (R1-14.4, C90).
    pub(super) fn evidence(&mut self) -> Result<Vec<InputDocument>, Stop> {
        let (now, counter) = (self.clock.now(), self.counter.clone());
        let retrieval = Retrieval::new(&self.turns.documents, &counter, now, Grant::Synthesis);
        let mut documents = Vec::new();
        for file in &self.state.references {
            let link = LinkToFollow { path: file.to_string(), sections_to_extract: Vec::new() };
            let read = retrieval.follow(&[link], usize::MAX)?;
            // What cannot be read keeps its number, so that the others keep theirs.
            let text = read.documents.first().map_or("(not to be read)", |document| document.text.as_str());
            documents.push(cited(file.as_str(), text));
        }
        for result in self.results() {
            let name = format!("{} {}", self.draft.place.tool_results(), result.block());
            let said = if result.content.trim().is_empty() { "(nothing)" } else { result.content.as_str() };
            documents.push(cited(&name, said));
        }
        documents.extend(self.result_document());
        Ok(documents)
    }

    /// The answer, or what of it fits into §5.
    fn preview(&self, answer: &str) -> String {
        let room = SectionId::Synthesis.token_budget() - BESIDE_ANSWER;
        if self.counter.count_up_to(answer, room).is_some() {
            return answer.to_owned();
        }
        // The digest gives a pointer to what it leaves out.
        let kept = self.keep(answer.as_bytes(), "answer", "the whole answer").is_ok();
        let Some(digest) = self.condensed(answer, ContentType::Markdown, room).filter(|_| kept) else {
            return self.counter.prefix(answer, room).to_owned();
        };
        self.stands(&digest);
        digest.made.text
    }

    /// What can be checked without a model, before phase 6 looks: whether the answer cites what it stands on, whether it
    /// states values that stand nowhere, and whether its form is whole.
    fn checklist(&self, answer: &str, known: &str, cites: bool) -> Checklist {
        // Sections are cited by the name of the document.
        let known = format!("{CONTEXT}\n{}\n{known}", self.context);
        let invented = rewrite::invented(&known, answer);
        if let Some(value) = &invented {
            self.warn(format!("the answer states {value:?}, which stands in none of its documents"));
        }
        let fences = answer.lines().filter(|line| line.trim_start().starts_with("```")).count();
        Checklist {
            claims_match: cites && invented.is_none(),
            intent_satisfied: cites,
            no_hallucinations: invented.is_none(),
            appropriate_format: fences % 2 == 0,
        }
    }
}
