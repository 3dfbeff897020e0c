//! The steps of research that a recipe decides, within the sub-run's budget. Each has a fallback rule for a failed or
//! unusable answer, except extraction: no rule can tell what a page states.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answers::{ExtractAnswer, ResearchPlanAnswer, SourcesAnswer, WrittenResearch};
use super::claims::PageClaims;
use crate::context::ToolContext;
use crate::sub_run::run_recipe;
use crate::web::{SearchHit, Visited};
use larder_engine::executor::Meter;
use larder_engine::inputs::InputDocument;

const PLAN: &str = "research/plan_research";
const SELECT: &str = "research/select_sources";
const EXTRACT: &str = "research/extract_claims";
const WRITE: &str = "research/write_research";

/// The runs of one piece of research, and their budget.
pub(super) struct SubRun<'a> {
    context: &'a ToolContext<'a>,
    task: &'a str,
    until: Instant,
    meter: Meter<'a>,
    /// Which steps were done by rule, and why.
    pub(super) notes: Vec<String>,
}

impl<'a> SubRun<'a> {
    pub(super) fn new(context: &'a ToolContext<'a>, task: &'a str, tokens: u64, until: Instant) -> Self {
        let tokens = context.budget.tokens.map_or(tokens, |left| left.min(tokens));
        let meter = Meter::new(context.observer, Some(tokens), context.budget.cost);
        Self { context, task, until, meter, notes: Vec::new() }
    }

    /// The searches; the task itself if the recipe fails.
    pub(super) async fn plan(&mut self, max: usize) -> Vec<String> {
        let answer: Result<ResearchPlanAnswer, String> =
            self.run(PLAN, Vec::new(), &[("most", json!(max.to_string()))]).await;
        let searches = answer.and_then(|answer| answer.searches(max).map_err(|error| error.to_string()));
        searches.unwrap_or_else(|why| {
            self.notes.push(format!("the task was searched for as it is: {why}"));
            vec![self.task.to_owned()]
        })
    }

    /// The addresses to read: the model is shown both the searches and the user's query (R1-3.62). The first results
    /// if the recipe fails.
    pub(super) async fn select(
        &mut self,
        searches: &[String],
        hits: &[SearchHit],
        max: usize,
    ) -> Vec<String> {
        let found: Vec<String> = hits.iter().map(|hit| hit.url.clone()).collect();
        let results: Vec<String> = hits.iter().map(|hit| self.listed(hit)).collect();
        let document = InputDocument::whole("results", "results", results.join("\n"));
        let values = [("searched", json!(searches.join("; "))), ("most", json!(max.to_string()))];
        let answer: Result<SourcesAnswer, String> = self.run(SELECT, vec![document], &values).await;
        let chosen = answer.and_then(|answer| answer.chosen(&found).map_err(|error| error.to_string()));
        let mut chosen = chosen.unwrap_or_else(|why| {
            self.notes.push(format!("the first results were read: {why}"));
            found
        });
        chosen.truncate(max);
        chosen
    }

    fn listed(&self, hit: &SearchHit) -> String {
        let known = self.context.documents.uses().source(&super::claims::host(&hit.url)).ok().flatten();
        let record =
            known.map(|site| format!("\n  record of the site: {}", site.reliability)).unwrap_or_default();
        format!("- {}\n  {}\n  {}{record}\n", hit.title, hit.url, hit.snippet)
    }

    /// Extracts the claims of a page.
    pub(super) async fn extract(&self, page: &Visited) -> Result<ExtractAnswer, String> {
        let text = format!("Title: {}\nURL: {}\n\n{}", page.title, page.url, page.stated());
        self.run(EXTRACT, vec![InputDocument::whole("page", page.url.clone(), text)], &[]).await
    }

    /// Writes the summary; `None` if there are no claims or the recipe fails.
    pub(super) async fn write(&mut self, claims: &PageClaims) -> Option<WrittenResearch> {
        if claims.all.is_empty() {
            return None;
        }
        let document = InputDocument::whole("claims", "claims", claims.listed());
        let written = self.run(WRITE, vec![document], &[]).await;
        let note =
            |why: &String| self.notes.push(format!("the result lists claims without a write-up: {why}"));
        written.inspect_err(note).ok()
    }

    async fn run<T: DeserializeOwned>(
        &self,
        name: &str,
        documents: Vec<InputDocument>,
        more: &[(&str, Value)],
    ) -> Result<T, String> {
        let task = [("task", json!(self.task))];
        let values: Vec<(&str, Value)> = task.into_iter().chain(more.iter().cloned()).collect();
        run_recipe(self.context, &self.meter, name, documents, &values, self.until).await
    }
}
