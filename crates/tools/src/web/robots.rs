//! robots.txt (RFC 9309): fetched once a day per site; a site that fails to return its rules is not visited.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use larder_models::web::{self, Guard, WebError, WebRequest};
use tokio::time::Instant;
use url::Url;

use super::{MAX_REDIRECTS, redirect, shown, tool_error};
use crate::spec::ToolError;

/// The product token of our user agent.
const NAME: &str = "larder";
/// Bytes of rules that are read (RFC 9309, 2.5).
const LARGEST: usize = 512_000;
/// How long rules are cached (RFC 9309, 2.4).
const FRESH: Duration = Duration::from_secs(24 * 3_600);
/// Maximum sites whose rules are cached.
const MOST_SITES: usize = 1_000;

/// The rules of the sites visited so far.
#[derive(Default)]
pub(super) struct Robots {
    sites: Mutex<BTreeMap<String, (Instant, Arc<robotxt::Robots>)>>,
}

impl Robots {
    /// Whether the page may be visited.
    ///
    /// # Errors
    /// [`ToolError::Denied`] when its site does not want it or fails to say so.
    pub(super) async fn check(&self, page: &str, guard: &Guard) -> Result<(), ToolError> {
        let url = web::visitable(page).map_err(tool_error)?;
        let site = url.origin().ascii_serialization();
        let rules = match self.known(&site) {
            Some(rules) => rules,
            None => self.learn(&url, site.clone(), guard).await?,
        };
        if rules.is_url_allowed(&url) {
            return Ok(());
        }
        Err(ToolError::Denied(format!(
            "{} may not be visited: the robots.txt of {site} asks robots to stay away; use another source",
            shown(page)
        )))
    }

    fn known(&self, site: &str) -> Option<Arc<robotxt::Robots>> {
        let sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, rules) = sites.get(site)?;
        (at.elapsed() < FRESH).then(|| Arc::clone(rules))
    }

    async fn learn(
        &self,
        page: &Url,
        site: String,
        guard: &Guard,
    ) -> Result<Arc<robotxt::Robots>, ToolError> {
        let rules = Arc::new(rules_of(page, &site, guard).await?);
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if sites.len() >= MOST_SITES {
            sites.clear();
        }
        sites.insert(site, (Instant::now(), Arc::clone(&rules)));
        Ok(rules)
    }
}

/// The rules: everything is allowed if there are none. A site that fails to return them allows nothing (RFC 9309,
/// 2.3.1), and is asked again at the next visit.
async fn rules_of(page: &Url, site: &str, guard: &Guard) -> Result<robotxt::Robots, ToolError> {
    let unread = |why: String| {
        format!(
            "{} may not be visited: the robots.txt of {site} could not be read ({why}), and a site that fails to return \
             its rules is not visited; try again later, or use another source",
            shown(page.as_str())
        )
    };
    let Ok(mut at) = page.join("/robots.txt").map(String::from) else {
        return Ok(robotxt::Robots::disallow_all());
    };
    for _ in 0..=MAX_REDIRECTS {
        let request = WebRequest { url: &at, accept: "text/plain, */*;q=0.1", limit: LARGEST };
        let got = match web::get(request, guard).await {
            // The name is the page's own: the error speaks of both.
            Err(error @ (WebError::Private { .. } | WebError::Unknown { .. })) => {
                return Err(tool_error(error));
            }
            Err(error) => return Err(ToolError::Failed(unread(error.to_string()))),
            Ok(got) => got,
        };
        if let Some(next) = redirect(&got) {
            at = next;
            continue;
        }
        return match got.status {
            200..=299 => Ok(robotxt::Robots::parse(&got.body, NAME)),
            500.. => Err(ToolError::Denied(unread(format!("status {}", got.status)))),
            _ => Ok(robotxt::Robots::allow_all()),
        };
    }
    Ok(robotxt::Robots::allow_all())
}
