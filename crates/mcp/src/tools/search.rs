//! `search`: finds lines that match a pattern, or passages that match a query, in files, folders and stored texts.

use larder_agent::ask::{Asker, Question};
use larder_store::Selection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::McpCaller;
use super::super::progress::CallProgress;
use super::super::sources::CallError;
use super::{McpTool, Reading, ShownPassage};

/// The default number of passages.
const MOST: usize = 10;
/// The largest number of passages.
const LIMIT: usize = 100;

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchFor {
    /// A regular expression; finds matching lines, in order.
    pattern: Option<String>,
    /// Words or a question; finds the passages that share most words with it, best first.
    query: Option<String>,
    /// Pointers and paths of files and folders to search. Default: everything open to this server.
    #[serde(default)]
    sources: Vec<String>,
    /// The number of results. Default: 10, at most 100.
    most: Option<usize>,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Findings {
    /// The matches.
    found: Vec<ShownPassage>,
    /// Whether there are more matches.
    more: bool,
    /// The files read.
    read: Reading,
}

impl McpTool for SearchFor {
    type Output = Findings;
    const NAME: &'static str = "search";
    const TITLE: &'static str = "Find lines or passages";
    const DESCRIPTION: &'static str = "Finds, in files, folders and the texts behind pointers, the \
        lines that match a regular expression (pattern) or the passages that answer a query best \
        (query, ranked by shared words; no model is asked). Each comes with its place and a pointer to \
        read it again; `rehydrate` of the pointer's id with other lines reads around it.";

    async fn call(
        self,
        caller: &McpCaller,
        progress: &CallProgress,
    ) -> Result<(Findings, String), CallError> {
        let paths = caller.sources(&self.sources)?;
        let most = self.most.unwrap_or(MOST).clamp(1, LIMIT);
        // One more than is shown tells whether there is more.
        let (mut quotes, search) = match (&self.pattern, &self.query) {
            (Some(pattern), None) => {
                Asker::new(&caller.engine, progress).select(&paths, &Selection::grep(pattern)?, most + 1)?
            }
            (None, Some(query)) => {
                let question = Question { text: query, paths: &paths, recipe: "", asking: caller.asking };
                Asker::new(&caller.engine, progress).quote(&question, most + 1)?
            }
            _ => return Err(CallError("give exactly one: either `pattern` or `query`".to_owned())),
        };
        let more = quotes.len() > most;
        quotes.truncate(most);
        let found: Vec<ShownPassage> =
            quotes.into_iter().map(|quote| ShownPassage::of(quote, caller)).collect();
        let read = Reading::of(&search, caller);
        let mut text: String = found.iter().map(|passage| passage.print() + "\n").collect();
        text.push_str(&format!(
            "{} found{} in {} files",
            found.len(),
            if more { ", there are more" } else { "" },
            read.files
        ));
        Ok((Findings { found, more, read }, text))
    }
}
