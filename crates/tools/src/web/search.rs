//! `web.search`: a search engine with a JSON endpoint in the manner of SearXNG. The endpoint comes from the settings, so
//! it may stand anywhere; what it lists is data of strangers.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_condense::ContentType;
use larder_models::web::{self, Get, Guard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::{Web, told};
use crate::arguments;
use crate::context::ToolContext;
use crate::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};

/// Results that are shown when nobody says how many, and at most.
const HITS: usize = 10;
const MOST_HITS: u64 = 50;
/// Bytes of an answer.
const LARGEST: usize = 4_000_000;
/// Characters of a title and of a snippet.
const LONGEST_TITLE: usize = 200;
const LONGEST_SNIPPET: usize = 500;
/// Characters of an address.
const LONGEST_URL: usize = 2_000;
const HOW_TO_CONFIGURE: &str = "there is no search engine; set tools.search_url in larder.toml to the JSON endpoint of \
     one in the manner of SearXNG, such as search_url = \"http://127.0.0.1:8080/search\" under [tools]";

/// One result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SearchHit {
    /// The page's title.
    pub(crate) title: String,
    /// Its address.
    pub(crate) url: String,
    /// What the engine shows of it.
    pub(crate) snippet: String,
}

pub(super) struct Search {
    web: Arc<Web>,
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
    limit: Option<usize>,
    time_range: Option<String>,
}

/// What the endpoint answers, as far as it matters.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    url: Option<String>,
    title: Option<String>,
    content: Option<String>,
}

impl Search {
    pub(super) fn new(web: Arc<Web>) -> Self {
        let range =
            json!({"type": "string", "enum": ["day", "month", "year"], "description": "only what is newer"});
        let fields = json!({
            "query": arguments::text("words for a search engine: what is looked for, not a whole sentence", 500),
            "limit": arguments::number("how many results to show; 10 if left out", 1, MOST_HITS),
            "time_range": range,
        });
        let spec = ToolSpec {
            name: "web.search".to_owned(),
            description: "Search the web. Gives titles, addresses and snippets; read pages with web.visit."
                .to_owned(),
            parameters: arguments::object(&["query"], fields),
            class: ToolClass::Read,
            summarizable: true,
            timeout: Duration::from_secs(60),
            max_bytes: 200_000,
            modes: ToolModes::Both,
        };
        Self { web, spec }
    }
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let Arguments { query, limit, time_range } = arguments::read(arguments)?;
            let mut hits = self.web.search(&query, time_range.as_deref(), context).await?;
            let found = hits.len();
            hits.truncate(limit.unwrap_or(HITS));
            let summary = format!("Found {found} results, {} shown", hits.len());
            let content = serde_json::to_string_pretty(&hits).unwrap_or_default();
            Ok(ToolOutput::success(summary, content).typed(ContentType::Json))
        }
        .boxed()
    }
}

impl Web {
    /// Asks the search engine.
    pub(crate) async fn search(
        &self,
        query: &str,
        time_range: Option<&str>,
        context: &ToolContext<'_>,
    ) -> Result<Vec<SearchHit>, ToolError> {
        let endpoint =
            self.search_url.as_deref().ok_or_else(|| ToolError::Failed(HOW_TO_CONFIGURE.to_owned()))?;
        let wrong = |_| ToolError::Settings(format!("tools.search_url is no address: {endpoint}"));
        let mut url = Url::parse(endpoint).map_err(wrong)?;
        url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
        if let Some(range) = time_range {
            url.query_pairs_mut().append_pair("time_range", range);
        }
        let request = Get { url: url.as_str(), accept: "application/json", limit: LARGEST };
        let trusting = Guard { trusting: true, ..Guard::default() };
        let limit = context.budget.time(self.page_timeout);
        let late = |_| ToolError::Timeout { what: "the search engine".to_owned(), after: limit };
        let got =
            tokio::time::timeout(limit, web::get(request, &trusting)).await.map_err(late)?.map_err(told)?;
        if got.status != 200 {
            return Err(ToolError::Failed(format!(
                "the search engine answered {}; its JSON format may be turned off (search.formats of SearXNG)",
                got.status
            )));
        }
        let answer: Answer = serde_json::from_slice(&got.body).map_err(|error| {
            ToolError::Failed(format!(
                "the search engine gave no JSON results: {error}; see tools.search_url"
            ))
        })?;
        Ok(answer.results.into_iter().filter_map(hit).collect())
    }
}

fn hit(found: Found) -> Option<SearchHit> {
    let url = found.url?;
    let parsed = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    if url.len() > LONGEST_URL {
        return None;
    }
    let line = |text: Option<String>, longest: usize| -> String {
        let words = text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        words.chars().take(longest).collect()
    };
    let snippet = line(found.content, LONGEST_SNIPPET);
    Some(SearchHit { title: line(found.title, LONGEST_TITLE), url: parsed.into(), snippet })
}
