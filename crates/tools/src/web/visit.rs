//! `web.visit`: one page, read and captured.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::browser;
use crate::arguments;
use crate::context::ToolContext;
use crate::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};
use larder_engine::settings::ToolSettings;

/// Time for reading a page, beyond that of getting it.
const READING: Duration = Duration::from_secs(10);

pub(super) struct Visit {
    web: Arc<Web>,
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Arguments {
    url: String,
}

impl Visit {
    pub(super) fn new(web: Arc<Web>, settings: &ToolSettings) -> Self {
        let fields = json!({"url": arguments::text("the whole address: https://example.com/page", 4_000)});
        let spec = ToolSpec {
            name: "web.visit".to_owned(),
            description:
                "Visit one web page by its address and read its main text and data. The page is kept, so \
                          that questions about it can be answered later without another visit."
                    .to_owned(),
            parameters: arguments::object(&["url"], fields),
            class: ToolClass::Read,
            summarizable: true,
            timeout: settings.page_timeout + READING + browser::TIMEOUT,
            // The text of a page is no longer than its markup, and what stands before it is short.
            max_bytes: settings.page_max_bytes.saturating_mul(2),
            modes: ToolModes::Both,
        };
        Self { web, spec }
    }
}

impl Tool for Visit {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let Arguments { url } = arguments::read(arguments)?;
            Ok(self.web.visit(&url, context).await?.output())
        }
        .boxed()
    }
}
