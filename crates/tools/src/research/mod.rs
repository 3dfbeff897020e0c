//! `internet.research`: a sub-run with its own budget and document.
//!
//! Plan, search, choose, visit, extract, write: recipes decide, this module checks. A source is read only if the
//! search listed it; a claim counts only if its quote is on the page. The text of a page is data at every step. A
//! failed step is replaced by a rule if there is one, so that pages already read are not lost.

mod answers;
mod claims;
mod document;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use larder_condense::ContentType;
use larder_vault::Intent;
use larder_vault::lifecycle::{Aging, ttl};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

pub use self::claims::site_of;
use self::claims::{PageClaims, ReadPage};
use self::steps::SubRun;
use super::context::ToolContext;
use super::spec::{Tool, ToolError, ToolOutput, ToolSpec};
use super::typed::{TypedTool, typed};
use super::web::{SearchHit, Visited, Web};
use larder_engine::settings::ToolSettings;

/// Searches of one piece of research.
const SEARCHES: usize = 3;
/// Maximum number of search results to choose from.
const MAX_RESULTS: usize = 30;
/// Pages that are visited concurrently.
const CONCURRENT_VISITS: usize = 3;
/// Time for one piece of research.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Time reserved for writing up the findings.
const WRITING: Duration = Duration::from_secs(30);

struct InternetResearch {
    web: Arc<Web>,
    pages: usize,
    tokens: u64,
}

/// Find something out on the web: searches, reads several pages, and gives claims with their sources. Use it when no page
/// is known yet; use web.visit for a known page.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InternetResearchArgs {
    /// what is to be found out, in one sentence
    #[schemars(length(min = 1, max = 1_000))]
    query: String,
    /// what it is for; decides how long the findings may be believed, with the turn's own intent
    #[schemars(with = "Option<String>", extend("enum" = MODES))]
    mode: Option<Intent>,
}

/// Intents by the names that models use.
const MODES: [&str; 5] = ["informational", "transactional", "navigation", "commerce", "comparison"];

/// Creates the tool, over the configured web access.
pub(super) fn tool(web: &Arc<Web>, settings: &ToolSettings) -> Box<dyn Tool> {
    typed(InternetResearch {
        web: Arc::clone(web),
        pages: settings.research_pages,
        tokens: settings.research_tokens,
    })
}

impl TypedTool for InternetResearch {
    type Args = InternetResearchArgs;

    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::from_args::<InternetResearchArgs>("internet.research");
        ToolSpec { timeout: TIMEOUT + WRITING, max_bytes: 1_000_000, ..spec }
    }

    async fn run(
        &self,
        args: InternetResearchArgs,
        context: &ToolContext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        self.research(&args.query, intent(args.mode, context.intent), context).await
    }
}

impl InternetResearch {
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
            return Ok(ToolOutput::success("Found no results", ""));
        }
        let chosen = run.select(&searches, &hits, self.pages).await;
        let (pages, mut notes) = self.visit(&chosen, context, until).await;
        let mut reads = Vec::new();
        for page in pages {
            match run.extract(&page).await {
                Ok(answer) => reads.push(ReadPage::of(page, answer, intent, context)?),
                Err(why) => {
                    notes.push(format!("{} was visited and not evaluated: {why}", page.url));
                    reads.push(ReadPage::unread(page));
                }
            }
        }
        let claims = PageClaims::of(&reads);
        let written = run.write(&claims).await;
        notes.append(&mut run.notes);
        let read =
            document::ResearchResult { task, intent, searches: &searches, reads, claims, notes, written };
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
                    // The best of each search come before the rest of any.
                    for hit in found.into_iter().take(MAX_RESULTS / searches.len().max(1)) {
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

    /// The pages that could be read, in the order chosen, and why the others could not be.
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
                |_| Err(format!("{url} was not visited: time ran out")),
                |visited| visited.map_err(|error| error.to_string()),
            )
        });
        let (mut pages, mut notes) = (Vec::<Visited>::new(), Vec::new());
        for visited in visits.buffered(CONCURRENT_VISITS).collect::<Vec<_>>().await {
            match visited {
                // Two addresses may refer to one page.
                Ok(page) if pages.iter().any(|known| known.url == page.url) => {}
                Ok(page) => pages.push(page),
                Err(why) => notes.push(why),
            }
        }
        (pages, notes)
    }
}

/// The intent of the call or of its turn: that by which less is believed for long (R1-3.68).
fn intent(call: Option<Intent>, turn: Option<Intent>) -> Intent {
    let lasts = |intent: &Intent| ttl(Aging::Research, *intent).seconds();
    call.into_iter().chain(turn).min_by_key(lasts).unwrap_or(Intent::Informational)
}

/// The content type of results.
const CONTENT: ContentType = ContentType::ResearchDoc;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_intent_that_believes_for_shorter_decides() {
        use Intent::{CommerceSearch, Informational, Navigation};
        assert_eq!(intent(None, None), Informational);
        assert_eq!(intent(None, Some(CommerceSearch)), CommerceSearch);
        assert_eq!(intent(Some(Informational), Some(CommerceSearch)), CommerceSearch);
        assert_eq!(intent(Some(CommerceSearch), Some(Informational)), CommerceSearch);
        assert_eq!(intent(Some(Navigation), Some(Informational)), Navigation);
    }

    #[test]
    fn every_intent_has_a_mode() {
        let intents: Vec<Intent> = MODES.iter().map(|mode| mode.parse().unwrap()).collect();
        assert_eq!(intents, Intent::ALL);
    }
}
