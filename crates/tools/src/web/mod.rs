//! The open web: visits pages and queries a search engine. Responses are untrusted data.
//!
//! Every address is checked by `larder_models::web` before anything is sent, and every redirect is treated like any
//! other address. Knows robots.txt, encodings and captures; knows no recipe.

mod browser;
mod capture;
mod decode;
mod extract;
mod robots;
mod screenshot;
mod search;
mod visit;

use std::sync::Arc;
use std::time::Duration;

use larder_models::web::{self, Guard, WebError, WebReply, WebRequest};

use self::browser::Browser;
pub(super) use self::capture::Visited;
use self::robots::Robots;
pub(crate) use self::screenshot::RECIPE as SCREENSHOT_RECIPE;
pub(super) use self::search::SearchHit;
use super::context::ToolContext;
use super::spec::{Tool, ToolError};
use super::typed::typed;
use larder_engine::settings::ToolSettings;

/// Redirects that are followed from one address.
const MAX_REDIRECTS: usize = 5;
/// Media types that can be read.
const ACCEPT: &str = "text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.8, */*;q=0.1";

/// Access to the web, shared by the tools that need it.
pub(super) struct Web {
    guard: Guard,
    robots: Option<Robots>,
    page_max_bytes: usize,
    page_timeout: Duration,
    search_url: Option<String>,
    browser: Option<Browser>,
}

/// The tools of the web.
pub(super) fn tools(web: &Arc<Web>, settings: &ToolSettings) -> Vec<Box<dyn Tool>> {
    vec![typed(visit::WebVisit::new(Arc::clone(web), settings)), typed(search::WebSearch(Arc::clone(web)))]
}

impl Web {
    /// # Errors
    /// [`ToolError::Settings`] when the browser that the settings name is not there.
    pub(super) fn new(settings: &ToolSettings) -> Result<Self, ToolError> {
        Ok(Self {
            guard: Guard { allowed: settings.private_hosts.clone(), trusting: false },
            robots: settings.robots.then(Robots::default),
            page_max_bytes: settings.page_max_bytes,
            page_timeout: settings.page_timeout,
            search_url: settings.search_url.clone(),
            browser: Browser::of(settings)?,
        })
    }

    /// Visits a page and captures it, all within the time that a page has.
    pub(super) async fn visit(&self, url: &str, context: &ToolContext<'_>) -> Result<Visited, ToolError> {
        let limit = context.budget.time(self.page_timeout);
        let page = tokio::time::timeout(limit, self.page(url)).await;
        let late = |_| ToolError::Timeout { what: format!("the page {}", shown(url)), after: limit };
        let (asked, at, got) = page.map_err(late)??;
        let picture = match &self.browser {
            Some(browser) => Some(browser.picture(&at, got.peer).await),
            None => None,
        };
        capture::capture(&asked, &at, &got, picture, context)
    }

    /// Follows redirects to the page; each address on the way is requested only if its site allows robots. Returns those
    /// addresses, the page's own, and what it says.
    async fn page(&self, url: &str) -> Result<(Vec<String>, String, WebReply), ToolError> {
        let asked = without_fragment(url.trim());
        let (mut on_the_way, mut at) = (Vec::new(), asked.clone());
        for _ in 0..=MAX_REDIRECTS {
            let got = self
                .get(&at)
                .await
                .map_err(|error| if at == asked { error } else { redirected(error, &asked, &at) })?;
            match redirect(&got) {
                Some(next) => on_the_way.push(std::mem::replace(&mut at, without_fragment(&next))),
                None => return Ok((on_the_way, at, got)),
            }
        }
        Err(ToolError::Failed(format!("{} leads through more than {MAX_REDIRECTS} redirects", shown(url))))
    }

    /// One address, if its site allows robots.
    async fn get(&self, url: &str) -> Result<WebReply, ToolError> {
        if let Some(robots) = &self.robots {
            robots.check(url, &self.guard).await?;
        }
        let request = WebRequest { url, accept: ACCEPT, limit: self.page_max_bytes };
        web::get(request, &self.guard).await.map_err(tool_error)
    }
}

/// The error of an address that another one leads to.
fn redirected(error: ToolError, asked: &str, at: &str) -> ToolError {
    let text = format!("{} redirects to {}: {error}", shown(asked), shown(at));
    match error {
        ToolError::Denied(_) => ToolError::Denied(text),
        ToolError::Arguments(_) => ToolError::Arguments(text),
        _ => ToolError::Failed(text),
    }
}

fn redirect(got: &WebReply) -> Option<String> {
    matches!(got.status, 301 | 302 | 303 | 307 | 308).then(|| got.location.clone()).flatten()
}

/// A refused address is a denied call, any other error a failed one.
fn tool_error(error: WebError) -> ToolError {
    match error {
        WebError::Private { .. } => ToolError::Denied(error.to_string()),
        WebError::Address { .. } => ToolError::Arguments(error.to_string()),
        other => ToolError::Failed(other.to_string()),
    }
}

fn without_fragment(url: &str) -> String {
    url.split('#').next().unwrap_or_default().to_owned()
}

/// An address as messages show it.
fn shown(url: &str) -> String {
    url.chars().take(200).filter(|char| !char.is_control()).collect()
}
