//! Quotes instead of generating: the best passages, and answers made of their sentences. Calls no model.

use std::time::Instant;

use larder_core::pack::Receipt;
use larder_core::recipe::Recipe;
use larder_models::table::Provider;
use larder_store::StoreError;
use larder_text::tokens::Counter;
use serde_json::json;

use super::passages::{Finding, Passages};
use super::quotation::{Quotation, Quoted};
use super::{AskAnswer, AskError, Asker, GroundedClaim, Question, Quote, SearchReport, run_input};
use larder_engine::Engine;
use larder_engine::executor::QuotedAnswer;
use larder_engine::settings::AnswerMode;

/// The answer where no passage shares a word with the question.
const NOTHING: &str = "Nothing that was read shares a word with the question.";

impl Question<'_> {
    /// Whether it is answered by quoting: on request, or by default if the embedded model would answer. A recipe
    /// whose answers have a different shape from those of `ask/answer` needs a model.
    pub fn is_quoted(&self, engine: &Engine, recipe: &Recipe) -> bool {
        let property = |name: &str| {
            let schema = recipe.output.schema.as_ref();
            schema.is_some_and(|schema| schema.pointer(&format!("/properties/{name}")).is_some())
        };
        let can_quote = property("answer") && property("citations");
        match self.asking.answer {
            AnswerMode::Generate => false,
            AnswerMode::Quote => can_quote,
            AnswerMode::Auto => can_quote && is_embedded(engine, recipe),
        }
    }
}

impl Asker<'_> {
    /// The passages that share most words with a question, best first, without a model; empty if none shares a word.
    ///
    /// # Errors
    /// If nothing can be read.
    pub fn quote(
        &self,
        question: &Question<'_>,
        most: usize,
    ) -> Result<(Vec<Quote>, SearchReport), AskError> {
        let (mut passages, found) = self.gather(question, &Counter::cl100k())?;
        let mut quotes = Vec::new();
        for finding in found.iter().take(most) {
            let bytes = finding.place.bytes();
            let Some(document) = passages.document(finding, "") else { continue };
            let Some(pointer) = self.pointer_into(&mut passages, finding.place.file, bytes.clone())? else {
                continue;
            };
            quotes.push(Quote {
                source: document.name,
                lines: document.slice.map_or((1, 1), |slice| slice.lines),
                bytes: (bytes.start, bytes.end),
                relevance: finding.relevance,
                pointer,
                text: document.text.to_string(),
            });
        }
        let search = SearchReport { offered: quotes.len(), ..SearchReport::over(&mut passages) };
        Ok((quotes, search))
    }

    /// An answer of quoted sentences, recorded as a run.
    pub(super) fn answer_by_quoting(
        &self,
        question: &Question<'_>,
        recipe: &Recipe,
        passages: &mut Passages,
        found: &[Finding],
        quotation: &Quotation,
        started: Instant,
    ) -> Result<AskAnswer, AskError> {
        let claims = self.quoted_claims(quotation, passages)?;
        let said: Vec<&str> = claims.iter().map(|claim| claim.text.as_str()).collect();
        let reply = if said.is_empty() { NOTHING.to_owned() } else { said.join(" ") };
        let files = passages.library.files.iter();
        let names: Vec<String> = files.map(|file| file.name.clone()).collect();
        let answer = |receipt: &Receipt| {
            let parts = parts(quotation, &names, receipt);
            let value = json!({ "answer": reply, "citations": parts });
            QuotedAnswer { value, reply, parts }
        };
        let input = run_input(question.text, recipe, passages, found);
        let took = started.elapsed();
        let outcome = self.engine.record_quotation(recipe, &input, Counter::cl100k(), took, answer)?;
        let verified = quotation.is_answer && !claims.is_empty();
        Ok(AskAnswer { outcome, verified, claims, quotes: Vec::new(), search: SearchReport::default() })
    }

    /// Quoted sentences with pointers to their bytes.
    pub(super) fn quoted_claims(
        &self,
        quotation: &Quotation,
        passages: &mut Passages,
    ) -> Result<Vec<GroundedClaim>, StoreError> {
        let mut claims = Vec::new();
        for Quoted { file, text, bytes } in &quotation.sentences {
            let Some(whole) = passages.library.text(*file) else { continue };
            let Some(pointer) = self.pointer_into(passages, *file, bytes.clone())? else { continue };
            let breaks = |end: usize| 1 + whole.bytes().take(end).filter(|&byte| byte == b'\n').count();
            claims.push(GroundedClaim {
                text: text.clone(),
                source: passages.library.files[*file].name.clone(),
                bytes: (bytes.start, bytes.end),
                lines: (breaks(bytes.start), breaks(bytes.end)),
                pointer,
                supported: true,
                unstated: Vec::new(),
            });
        }
        Ok(claims)
    }
}

/// The parts of a prompt that the quoted sentences are from.
fn parts(quotation: &Quotation, names: &[String], receipt: &Receipt) -> Vec<String> {
    let mut parts = Vec::new();
    for Quoted { file, bytes, .. } in &quotation.sentences {
        let holds = |(start, end): (usize, usize)| start <= bytes.start && bytes.start < end;
        let part = receipt.parts.iter().find(|part| {
            Some(&*part.source) == names.get(*file).map(String::as_str) && part.bytes.is_some_and(holds)
        });
        if let Some(part) = part.map(|part| part.id.to_string()).filter(|part| !parts.contains(part)) {
            parts.push(part);
        }
    }
    parts
}

/// Whether the embedded model would answer.
pub(super) fn is_embedded(engine: &Engine, recipe: &Recipe) -> bool {
    let candidate = engine.candidate(recipe.layer, recipe.mode);
    candidate.is_ok_and(|candidate| candidate.spec.provider == Provider::Embedded)
}
