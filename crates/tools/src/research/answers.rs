//! The answers of the recipes of `internet.research`, as typed values.

use larder_vault::context::Claim;
use larder_vault::lifecycle::{Aging, ttl};
use larder_vault::{Intent, Listing, Score, Stock, Ttl, WriteUp};
use serde::{Deserialize, Serialize};

use crate::offers::is_offer;
use larder_engine::answer::{UnusableAnswer, said, stated, topic};

/// What `research/plan_research` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResearchPlanAnswer {
    /// Queries for a search engine, most useful first (R1-3.62).
    pub searches: Vec<String>,
    /// Why.
    pub reason: String,
}

impl ResearchPlanAnswer {
    /// The queries, at most `max`, each once.
    ///
    /// # Errors
    /// When there is none.
    pub fn searches(&self, max: usize) -> Result<Vec<String>, UnusableAnswer> {
        let mut searches: Vec<String> = Vec::new();
        for search in said(&self.searches) {
            if searches.len() < max && !searches.contains(&search) {
                searches.push(search);
            }
        }
        UnusableAnswer::unless(!searches.is_empty(), || "searches is empty; give at least one".into())?;
        Ok(searches)
    }
}

/// What `research/select_sources` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourcesAnswer {
    /// Addresses of pages to read, the most useful first.
    pub urls: Vec<String>,
    /// Why.
    pub reason: String,
}

impl SourcesAnswer {
    /// The chosen addresses that are in `found`, without duplicates, in order. Any other address is invented.
    ///
    /// # Errors
    /// Addresses, and none of them was found.
    pub fn chosen(&self, found: &[String]) -> Result<Vec<String>, UnusableAnswer> {
        let mut chosen: Vec<String> = Vec::new();
        for url in said(&self.urls) {
            if found.contains(&url) && !chosen.contains(&url) {
                chosen.push(url);
            }
        }
        UnusableAnswer::unless(!chosen.is_empty() || self.urls.is_empty(), || {
            "urls contains no address of the search results; copy addresses exactly".into()
        })?;
        Ok(chosen)
    }
}

/// What `research/extract_claims` answers about one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractAnswer {
    /// What the page states.
    pub claims: Vec<FoundClaim>,
    /// The page in two sentences.
    pub summary: String,
}

/// One statement of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundClaim {
    /// The claim in one sentence.
    pub claim: String,
    /// Its confidence.
    pub confidence: Score,
    /// The page's own words for it.
    pub quote: String,
    /// How long it is valid.
    pub ttl: Ttl,
    /// Whether it stays true.
    pub evergreen: bool,
}

impl FoundClaim {
    /// The claim of the page at `url`. The table of lifetimes decides how long it is valid (C106); the model that read
    /// the page can only shorten that. The caller locates `quote` on the page.
    pub fn claim(&self, url: &str, intent: Intent) -> Claim {
        let most = ttl(self.aging(), intent);
        let ttl = if self.evergreen || self.ttl.seconds() >= most.seconds() { most } else { self.ttl };
        Claim {
            claim: self.claim.trim().to_owned(),
            confidence: self.confidence,
            source: url.to_owned(),
            ttl,
            origin: None,
        }
    }

    /// Prices and stock change, whatever the page or the model says (R1-3.68).
    fn aging(&self) -> Aging {
        if is_offer(&self.claim) || is_offer(&self.quote) {
            Aging::Offer
        } else if self.evergreen {
            Aging::Evergreen
        } else {
            Aging::Claim
        }
    }
}

/// What `research/write_research` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenResearch {
    /// The title.
    pub title: String,
    /// Dotted.
    pub topic: String,
    /// The overview in a paragraph.
    pub overview: String,
    /// The findings, the most useful first.
    pub findings: Vec<String>,
    /// Offers that are available now.
    pub listings: Vec<ListingAnswer>,
    /// Statements that stay true.
    pub evergreen: Vec<String>,
    /// Statements that are true now.
    pub time_sensitive: Vec<String>,
}

/// An offer that is available now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListingAnswer {
    /// The product.
    pub product: String,
    /// Its price, as the page states it.
    pub price: String,
    /// The address of the page.
    pub source: String,
}

impl WrittenResearch {
    /// The part that `research.md` keeps in the model's words (R1-4.2).
    pub fn write_up(self) -> WriteUp {
        let Self { title, overview, findings, evergreen, time_sensitive, .. } = self;
        WriteUp { title, overview, findings, evergreen, time_sensitive }
    }

    /// The dotted topic (R1-4.5).
    pub fn topic(&self) -> String {
        topic(&self.topic)
    }

    /// The listings as they are stored. The vendor is the host of the address; `stock` says what the page there states.
    pub fn listings(&self, stock: impl Fn(&ListingAnswer) -> Stock) -> Vec<Listing> {
        let listing = |listing: &ListingAnswer| {
            Some(Listing {
                product: stated(Some(&listing.product))?,
                price: listing.price.trim().to_owned(),
                vendor: host(&listing.source).to_owned(),
                in_stock: stock(listing),
                url: listing.source.clone(),
            })
        };
        self.listings.iter().filter_map(listing).collect()
    }
}

/// `shop.example` of `https://www.shop.example/x`.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
    host.strip_prefix("www.").unwrap_or(host)
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
