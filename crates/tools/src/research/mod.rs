//! `internet.research`: a sub-run with a budget and a document of its own.
//!
//! Plan, search, choose, visit, extract, write: what decides is a recipe, what is checked is checked here. A source is
//! read only if the search listed it; a claim counts only if its quote stands on the page. What a page says is data at
//! every step. A step that fails is replaced by a rule where there is one, so that pages that were read are never lost.

mod answers;
mod claims;
mod document;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};
use larder_condense::ContentType;
use larder_vault::Intent;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use self::claims::site_of;
use self::claims::{PageClaims, Read};
use self::steps::SubRun;
use super::arguments;
use super::context::ToolContext;
use super::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};
use super::web::{SearchHit, Visited, Web};
use larder_engine::settings::ToolSettings;

/// Searches of one piece of research.
const SEARCHES: usize = 3;
/// Results that are weighed.
const MOST_RESULTS: usize = 30;
/// Pages that are visited at once.
const AT_ONCE: usize = 3;
/// Time for one piece of research.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Time that is kept for writing what was found.
const WRITING: Duration = Duration::from_secs(30);

struct Research {
    web: Arc<Web>,
    spec: ToolSpec,
    pages: usize,
    tokens: u64,
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
    mode: Option<Intent>,
}

/// The tool, over the web as the settings have it.
pub(super) fn tool(web: &Arc<Web>, settings: &ToolSettings) -> Box<dyn Tool> {
    let mode = json!({"type": "string",
        "enum": ["informational", "transactional", "navigation", "commerce", "comparison"],
        "description": "what it is for; decides how long the findings may be believed. informational if left out"});
    let fields = json!({
        "query": arguments::text("what is to be found out, in one sentence", 1_000),
        "mode": mode,
    });
    let spec = ToolSpec {
        name: "internet.research".to_owned(),
        description:
            "Find something out on the web: searches, reads several pages, and gives claims with their \
                      sources. Use it when no page is known yet; use web.visit for a known page."
                .to_owned(),
        parameters: arguments::object(&["query"], fields),
        class: ToolClass::Read,
        summarizable: true,
        timeout: TIMEOUT + WRITING,
        max_bytes: 1_000_000,
        modes: ToolModes::Both,
    };
    let research = Research {
        web: Arc::clone(web),
        spec,
        pages: settings.research_pages,
        tokens: settings.research_tokens,
    };
    Box::new(research)
}

impl Tool for Research {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let Arguments { query, mode } = arguments::read(arguments)?;
            let intent = mode.unwrap_or(Intent::Informational);
            self.research(&query, intent, context).await
        }
        .boxed()
    }
}

impl Research {
    async fn research(
        &self,
        task: &str,
        intent: Intent,
        context: &ToolContext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let left = context.budget.time(TIMEOUT);
        let until = Instant::now() + left.saturating_sub(WRITING.min(left / 4));
        let mut run = SubRun::new(context, task, self.tokens, until);
        let searches = run.plan(SEARCHES).await;
        let hits = self.search(&searches, context).await?;
        if hits.is_empty() {
            return Ok(ToolOutput::success("Found no results", "The searches found nothing."));
        }
        let chosen = run.select(&searches, &hits, self.pages).await;
        let (pages, mut notes) = self.visit(&chosen, context, until).await;
        let mut reads = Vec::new();
        for page in pages {
            match run.extract(&page).await {
                Ok(answer) => reads.push(Read::of(page, answer, intent, context)?),
                Err(why) => {
                    notes.push(format!("{} was visited and not evaluated: {why}", page.url));
                    reads.push(Read::unread(page));
                }
            }
        }
        let claims = PageClaims::of(&reads);
        let written = run.write(&claims).await;
        notes.append(&mut run.notes);
        let read = document::Work { task, intent, searches: &searches, reads, claims, notes, written };
        read.output(context)
    }

    /// The results of all searches, each address once. One search that fails costs its own results only.
    async fn search(
        &self,
        searches: &[String],
        context: &ToolContext<'_>,
    ) -> Result<Vec<SearchHit>, ToolError> {
        let mut hits: Vec<SearchHit> = Vec::new();
        let mut failed = None;
        for query in searches {
            match self.web.search(query, None, context).await {
                Err(error) => failed = Some(error),
                Ok(found) => {
                    // The best of each search are weighed before the rest of any.
                    for hit in found.into_iter().take(MOST_RESULTS / searches.len().max(1)) {
                        if !hits.iter().any(|known| known.url == hit.url) {
                            hits.push(hit);
                        }
                    }
                }
            }
        }
        match failed {
            Some(error) if hits.is_empty() => Err(error),
            _ => Ok(hits),
        }
    }

    /// The pages that could be read, in the order chosen, and why the others could not.
    async fn visit(
        &self,
        chosen: &[String],
        context: &ToolContext<'_>,
        until: Instant,
    ) -> (Vec<Visited>, Vec<String>) {
        let urls: Vec<String> = chosen.iter().take(self.pages).cloned().collect();
        let visits = stream::iter(urls).map(|url| async move {
            let visit = tokio::time::timeout_at(until, self.web.visit(&url, context)).await;
            visit.map_or_else(
                |_| Err(format!("{url} was not visited: the time was up")),
                |visited| visited.map_err(|error| error.to_string()),
            )
        });
        let (mut pages, mut notes) = (Vec::<Visited>::new(), Vec::new());
        for visited in visits.buffered(AT_ONCE).collect::<Vec<_>>().await {
            match visited {
                // Two addresses may lead to one page.
                Ok(page) if pages.iter().any(|known| known.url == page.url) => {}
                Ok(page) => pages.push(page),
                Err(why) => notes.push(why),
            }
        }
        (pages, notes)
    }
}

/// What results of research are.
const CONTENT: ContentType = ContentType::ResearchDoc;
