//! Claims of pages: a claim counts only where its quote is on the page, and is then traced to these bytes.

use larder_text::pointer::Pointer;
use larder_vault::context::{Claim, ClaimOrigin};
use larder_vault::links::DualLink;
use larder_vault::{BlockId, Intent};

use super::answers::ExtractAnswer;
use crate::context::ToolContext;
use crate::figures;
use crate::quotes::place_of;
use crate::spec::ToolError;
use crate::web::Visited;

/// A page that was read, with its claims.
pub(super) struct ReadPage {
    pub(super) page: Visited,
    /// All that it states.
    pub(super) text: String,
    /// Claims whose quotes are on it; their blocks are named when all pages are read.
    pub(super) claims: Vec<Claim>,
    /// Number of claims whose quotes, or whose values, are not.
    pub(super) dropped: usize,
    /// The page in two sentences.
    pub(super) summary: String,
}

impl ReadPage {
    /// Whether the page is at an address, or was when it was asked for.
    pub(super) fn is_at(&self, url: &str) -> bool {
        self.page.url == url || self.page.redirected_from.iter().any(|from| from == url)
    }

    /// The claims of an answer that the page supports. What it states is stored, so that each can be traced.
    pub(super) fn of(
        page: Visited,
        answer: ExtractAnswer,
        intent: Intent,
        context: &ToolContext<'_>,
    ) -> Result<Self, ToolError> {
        let text = page.stated();
        let stored = context.documents.store().pointers().insert(text.as_bytes(), "web_page", &page.title)?;
        let mut read = Self { page, text, claims: Vec::new(), dropped: 0, summary: answer.summary.clone() };
        let claims: Vec<&str> = answer.claims.iter().map(|found| found.claim.as_str()).collect();
        let are_stated = figures::are_stated(&read.text, &claims);
        for (found, is_stated) in answer.claims.iter().zip(are_stated) {
            let place = place_of(&found.quote, &read.text);
            let Some(bytes) = place.filter(|_| is_stated) else {
                read.dropped += 1;
                continue;
            };
            let document = DualLink::new(read.page.document.clone(), "page");
            let origin = ClaimOrigin {
                block: BlockId::numbered("claim", 0),
                bytes: Some(Pointer::bytes(stored.pointer_id.id.clone(), bytes)),
                document: Some(document),
            };
            read.claims.push(Claim { origin: Some(origin), ..found.claim(&read.page.url, intent) });
        }
        Ok(read)
    }

    /// A page without extracted claims.
    pub(super) fn unread(page: Visited) -> Self {
        Self { text: page.stated(), page, claims: Vec::new(), dropped: 0, summary: String::new() }
    }
}

/// The claims of all pages, with blocks numbered through.
pub(super) struct PageClaims {
    pub(super) all: Vec<Claim>,
}

impl PageClaims {
    pub(super) fn of(reads: &[ReadPage]) -> Self {
        let mut all: Vec<Claim> = Vec::new();
        for claim in reads.iter().flat_map(|read| &read.claims) {
            if !all.iter().any(|known| known.claim == claim.claim && known.source == claim.source) {
                all.push(claim.clone());
            }
        }
        let mut claims = Self { all };
        claims.number();
        claims
    }

    /// Names the block of each claim by its place.
    pub(super) fn number(&mut self) {
        for (place, claim) in self.all.iter_mut().enumerate() {
            if let Some(origin) = &mut claim.origin {
                origin.block = BlockId::numbered("claim", place + 1);
            }
        }
    }

    /// The claims as a recipe reads them.
    pub(super) fn listed(&self) -> String {
        let line = |claim: &Claim| {
            format!(
                "- {} (confidence {}, {}, source {})\n",
                claim.claim, claim.confidence, claim.ttl, claim.source
            )
        };
        self.all.iter().map(line).collect()
    }
}

/// `shop.example` of `https://www.shop.example/x`.
pub(super) fn host(url: &str) -> String {
    site_of(url).unwrap_or_default()
}

/// `shop.example` of `https://www.shop.example/x`; `None` if it is not a web address.
pub fn site_of(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let host = url.host_str()?.to_lowercase();
    Some(host.strip_prefix("www.").map(str::to_owned).unwrap_or(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_without_their_www() {
        assert_eq!(host("https://www.Shop.example:8080/x?y"), "shop.example");
        assert_eq!(host("nonsense"), "");
    }
}
