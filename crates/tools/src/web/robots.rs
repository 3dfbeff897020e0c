//! robots.txt (RFC 9309): fetched once a day per site; a site that fails to return its rules is not visited.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use larder_models::web::{self, Guard, WebRequest};
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
    /// [`ToolError::Denied`] when its site does not want it.
    pub(super) async fn check(&self, page: &str, guard: &Guard) -> Result<(), ToolError> {
        // An invalid address is refused, with its reason, by the request itself.
        let Ok(url) = Url::parse(page) else { return Ok(()) };
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
        let rules = Arc::new(rules_of(page, guard).await?);
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if sites.len() >= MOST_SITES {
            sites.clear();
        }
        sites.insert(site, (Instant::now(), Arc::clone(&rules)));
        Ok(rules)
    }
}

/// The rules: everything is allowed if there are none, nothing if the site fails to answer (RFC 9309, 2.3.1).
async fn rules_of(page: &Url, guard: &Guard) -> Result<robotxt::Robots, ToolError> {
    let Ok(mut at) = page.join("/robots.txt").map(String::from) else {
        return Ok(robotxt::Robots::disallow_all());
    };
    for _ in 0..=MAX_REDIRECTS {
        let request = WebRequest { url: &at, accept: "text/plain, */*;q=0.1", limit: LARGEST };
        let got = web::get(request, guard).await.map_err(tool_error)?;
        if let Some(next) = redirect(&got) {
            at = next;
            continue;
        }
        return Ok(match got.status {
            200..=299 => robotxt::Robots::parse(&got.body, NAME),
            500.. => robotxt::Robots::disallow_all(),
            _ => robotxt::Robots::allow_all(),
        });
    }
    Ok(robotxt::Robots::allow_all())
}
