//! The steps of research that a recipe decides, under the sub-run's own budget. Each has a rule for when the recipe
//! cannot be run or answers nothing of use, except extracting: no rule can say what a page states.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answers::{ExtractAnswer, ResearchPlanAnswer, SourcesAnswer, WrittenResearch};
use super::claims::PageClaims;
use crate::context::ToolContext;
use crate::web::{SearchHit, Visited};
use larder_engine::answer;
use larder_engine::executor::{Meter, ProgressObserver as _, RunKind};
use larder_engine::inputs::{InputDocument, RunInput};

const PLAN: &str = "research/plan_research";
const SELECT: &str = "research/select_sources";
const EXTRACT: &str = "research/extract_claims";
const WRITE: &str = "research/write_research";

/// One piece of research, as far as it costs.
pub(super) struct SubRun<'a> {
    context: &'a ToolContext<'a>,
    task: &'a str,
    /// Tokens that it may take in all.
    tokens: u64,
    until: Instant,
    meter: Meter<'a>,
    /// Which steps a rule took over, and why.
    pub(super) notes: Vec<String>,
}

impl<'a> SubRun<'a> {
    pub(super) fn new(context: &'a ToolContext<'a>, task: &'a str, tokens: u64, until: Instant) -> Self {
        let tokens = context.budget.tokens.map_or(tokens, |left| left.min(tokens));
        let meter = Meter::new(context.observer, Some(tokens), context.budget.cost);
        Self { context, task, tokens, until, meter, notes: Vec::new() }
    }

    /// What to search for; the task itself if nobody can say better.
    pub(super) async fn plan(&mut self, most: usize) -> Vec<String> {
        let answer: Result<ResearchPlanAnswer, String> =
            self.run(PLAN, Vec::new(), &[("most", json!(most.to_string()))]).await;
        let searches = answer.and_then(|answer| answer.searches(most).map_err(|error| error.to_string()));
        searches.unwrap_or_else(|why| {
            self.notes.push(format!("by rule it was searched for as it was asked: {why}"));
            vec![self.task.to_owned()]
        })
    }

    /// The addresses to read: of what was searched and what the user asked, both are seen (R1-3.62). The first results
    /// if nobody can choose.
    pub(super) async fn select(
        &mut self,
        searches: &[String],
        hits: &[SearchHit],
        most: usize,
    ) -> Vec<String> {
        let found: Vec<String> = hits.iter().map(|hit| hit.url.clone()).collect();
        let results: Vec<String> = hits.iter().map(|hit| self.listed(hit)).collect();
        let document = InputDocument::whole("results", "results", results.join("\n"));
        let values = [("searched", json!(searches.join("; "))), ("most", json!(most.to_string()))];
        let answer: Result<SourcesAnswer, String> = self.run(SELECT, vec![document], &values).await;
        let chosen = answer.and_then(|answer| answer.chosen(&found).map_err(|error| error.to_string()));
        let mut chosen = chosen.unwrap_or_else(|why| {
            self.notes.push(format!("by rule the first results were read: {why}"));
            found
        });
        chosen.truncate(most);
        chosen
    }

    fn listed(&self, hit: &SearchHit) -> String {
        let known = self.context.documents.uses().source(&super::claims::host(&hit.url)).ok().flatten();
        let record =
            known.map(|site| format!("\n  record of the site: {}", site.reliability)).unwrap_or_default();
        format!("- {}\n  {}\n  {}{record}\n", hit.title, hit.url, hit.snippet)
    }

    /// What a page states.
    pub(super) async fn extract(&self, page: &Visited) -> Result<ExtractAnswer, String> {
        let text = format!("Title: {}\nURL: {}\n\n{}", page.title, page.url, page.text);
        self.run(EXTRACT, vec![InputDocument::whole("page", page.url.clone(), text)], &[]).await
    }

    /// The write-up; none if there is nothing to write, or nobody to write it.
    pub(super) async fn write(&mut self, claims: &PageClaims) -> Option<WrittenResearch> {
        if claims.all.is_empty() {
            return None;
        }
        let document = InputDocument::whole("claims", "claims", claims.listed());
        let written = self.run(WRITE, vec![document], &[]).await;
        let note =
            |why: &String| self.notes.push(format!("by rule it was written up from its claims: {why}"));
        written.inspect_err(note).ok()
    }

    async fn run<T: DeserializeOwned>(
        &self,
        name: &str,
        documents: Vec<InputDocument>,
        more: &[(&str, Value)],
    ) -> Result<T, String> {
        if !self.meter.may_spend() {
            let tokens = self.tokens;
            return Err(format!("the research's {tokens} tokens, or the money of the turn, are used up"));
        }
        let engine = self.context.engine;
        let found = engine.find(name, None);
        let recipe = found.map_err(|source| engine.missing(name, source).to_string())?;
        let always = [("now", json!(self.context.now.to_string())), ("task", json!(self.task))];
        let values = always.into_iter().chain(more.iter().cloned());
        let input = RunInput {
            documents,
            query: Some(self.context.original_query.to_owned()),
            // A project may have made the recipe its own, and takes what it likes.
            values: values
                .filter(|(name, _)| recipe.inputs.contains(*name))
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            turn_id: Some(larder_vault::turn_name(self.context.turn.number())),
            ..RunInput::default()
        };
        let running = engine.run_recipe(recipe, &input, &self.meter, RunKind::Answer);
        let outcome = tokio::time::timeout_at(self.until, running)
            .await
            .map_err(|_| "the research's time is up".to_owned())?
            .map_err(|error| error.to_string())?;
        answer::read(&outcome.output).map_err(|error| error.to_string())
    }
}
