//! `web.search`: a search engine with a JSON endpoint compatible with SearXNG. The endpoint comes from the settings,
//! so it may be anywhere; its results are untrusted data.

use std::sync::Arc;
use std::time::Duration;

use larder_condense::ContentType;
use larder_models::web::{self, Guard, WebRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Web, tool_error};
use crate::context::ToolContext;
use crate::spec::{ToolError, ToolOutput, ToolSpec};
use crate::typed::TypedTool;

/// Results that are shown by default, and at most.
const HITS: usize = 10;
const MAX_HITS: u64 = 50;
/// Bytes of an answer.
const MAX_BYTES: usize = 4_000_000;
/// Characters of a title and of a snippet.
const MAX_TITLE: usize = 200;
const MAX_SNIPPET: usize = 500;
/// Characters of an address.
const MAX_URL: usize = 2_000;
const HOW_TO_CONFIGURE: &str = "there is no search engine; set tools.search_url in larder.toml to the JSON endpoint of \
     one compatible with SearXNG, such as search_url = \"http://127.0.0.1:8080/search\" under [tools]";

/// One result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SearchHit {
    pub(crate) title: String,
    pub(crate) url: String,
    /// The engine's excerpt of the page.
    pub(crate) snippet: String,
}

pub(super) struct WebSearch(pub(super) Arc<Web>);

/// Search the web. Gives titles, addresses and snippets; read pages with web.visit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WebSearchArgs {
    /// words for a search engine: what is looked for, not a whole sentence
    #[schemars(length(min = 1, max = 500))]
    query: String,
    /// how many results to show; 10 by default
    #[schemars(range(min = 1, max = MAX_HITS))]
    limit: Option<usize>,
    /// only what is newer
    time_range: Option<TimeRange>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TimeRange {
    Day,
    Month,
    Year,
}

/// The part of the endpoint's reply that is read.
#[derive(Deserialize)]
struct SearchReply {
    #[serde(default)]
    results: Vec<SearchResult>,
}

#[derive(Deserialize)]
struct SearchResult {
    url: Option<String>,
    title: Option<String>,
    content: Option<String>,
}

impl TypedTool for WebSearch {
    type Args = WebSearchArgs;

    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::from_args::<WebSearchArgs>("web.search");
        ToolSpec { timeout: Duration::from_secs(60), max_bytes: 200_000, ..spec }
    }

    async fn run(&self, args: WebSearchArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let mut hits = self.0.search(&args.query, args.time_range, context).await?;
        let found = hits.len();
        hits.truncate(args.limit.unwrap_or(HITS));
        let summary = format!("Found {found} results, {} shown", hits.len());
        let content = serde_json::to_string_pretty(&hits).unwrap_or_default();
        Ok(ToolOutput::success(summary, content).typed(ContentType::Json))
    }
}

impl Web {
    /// Asks the search engine.
    pub(crate) async fn search(
        &self,
        query: &str,
        time_range: Option<TimeRange>,
        context: &ToolContext<'_>,
    ) -> Result<Vec<SearchHit>, ToolError> {
        let endpoint =
            self.search_url.as_deref().ok_or_else(|| ToolError::Failed(HOW_TO_CONFIGURE.to_owned()))?;
        let wrong = |_| ToolError::Settings(format!("tools.search_url is not an address: {endpoint}"));
        let mut url = Url::parse(endpoint).map_err(wrong)?;
        url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
        if let Some(range) = time_range {
            let range = match range {
                TimeRange::Day => "day",
                TimeRange::Month => "month",
                TimeRange::Year => "year",
            };
            url.query_pairs_mut().append_pair("time_range", range);
        }
        let request = WebRequest { url: url.as_str(), accept: "application/json", limit: MAX_BYTES };
        let trusting = Guard { trusting: true, ..Guard::default() };
        let limit = context.budget.time(self.page_timeout);
        let late = |_| ToolError::Timeout { what: "the search engine".to_owned(), after: limit };
        let got = tokio::time::timeout(limit, web::get(request, &trusting))
            .await
            .map_err(late)?
            .map_err(tool_error)?;
        if got.status != 200 {
            return Err(ToolError::Failed(format!(
                "the search engine answered {}; its JSON format may be turned off (search.formats of SearXNG)",
                got.status
            )));
        }
        let answer: SearchReply = serde_json::from_slice(&got.body).map_err(|error| {
            ToolError::Failed(format!(
                "the search engine gave no JSON results: {error}; see tools.search_url"
            ))
        })?;
        Ok(answer.results.into_iter().filter_map(hit).collect())
    }
}

fn hit(found: SearchResult) -> Option<SearchHit> {
    let url = found.url?;
    let parsed = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    if url.len() > MAX_URL {
        return None;
    }
    let line = |text: Option<String>, longest: usize| -> String {
        let words = text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        words.chars().take(longest).collect()
    };
    let snippet = line(found.content, MAX_SNIPPET);
    Some(SearchHit { title: line(found.title, MAX_TITLE), url: parsed.into(), snippet })
}
