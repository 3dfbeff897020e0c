//! `web.visit`: one page, read and captured.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Web;
use super::browser;
use super::extract;
use super::screenshot;
use crate::context::ToolContext;
use crate::spec::{ToolError, ToolOutput, ToolSpec};
use crate::typed::TypedTool;
use larder_engine::settings::ToolSettings;

/// Time for reading a page, beyond that of getting it.
const READING: Duration = Duration::from_secs(10);

pub(super) struct WebVisit {
    web: Arc<Web>,
    timeout: Duration,
    max_bytes: usize,
}

/// Visit one web page by its address and read its text and data. The page is kept, so that questions about it can be
/// answered later without another visit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WebVisitArgs {
    /// the whole address: https://example.com/page
    #[schemars(length(min = 1, max = 4_000))]
    url: String,
}

impl WebVisit {
    pub(super) fn new(web: Arc<Web>, settings: &ToolSettings) -> Self {
        Self {
            web,
            timeout: settings.page_timeout
                + READING
                + browser::TIMEOUT
                + screenshot::TIMEOUT
                + extract::TIMEOUT,
            // The text of a page is no longer than its markup, and what precedes it is short.
            max_bytes: settings.page_max_bytes.saturating_mul(2),
        }
    }
}

impl TypedTool for WebVisit {
    type Args = WebVisitArgs;

    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::from_args::<WebVisitArgs>("web.visit");
        ToolSpec { timeout: self.timeout, max_bytes: self.max_bytes, ..spec }
    }

    async fn run(&self, args: WebVisitArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let mut page = self.web.visit(&args.url, context).await?;
        screenshot::complete(&mut page, context).await;
        extract::complete(&mut page, context).await;
        Ok(page.output(context))
    }
}
