//! The sub-run `internet.research`: what to search, what to read, what the pages say, and the document of it all.

use larder_vault::context::Claim;
use larder_vault::{Listing, Score, Stock, Ttl};
use serde::{Deserialize, Serialize};

use larder_engine::answer::{UnusableAnswer, said, stated, topic};

/// What `research/plan_research` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResearchPlanAnswer {
    /// Queries for a search engine, the most useful first (R1-3.62).
    pub searches: Vec<String>,
    /// Why.
    pub reason: String,
}

impl ResearchPlanAnswer {
    /// The queries, at most `most`, each once.
    ///
    /// # Errors
    /// When there is none.
    pub fn searches(&self, most: usize) -> Result<Vec<String>, UnusableAnswer> {
        let mut searches: Vec<String> = Vec::new();
        for search in said(&self.searches) {
            if searches.len() < most && !searches.contains(&search) {
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
    /// The addresses that stand among `found`, each once, in the order chosen. Any other address is made up.
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
            "urls holds no address of the search results; copy addresses exactly".into()
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
    /// In one sentence.
    pub claim: String,
    /// How sure it is.
    pub confidence: Score,
    /// The page's own words for it.
    pub quote: String,
    /// How long it may be believed.
    pub ttl: Ttl,
    /// Whether it stays true.
    pub evergreen: bool,
}

impl FoundClaim {
    /// The claim of the page at `url`; evergreen whatever the time says. Where `quote` stands in the page is found out by
    /// whoever holds the page.
    pub fn claim(&self, url: &str) -> Claim {
        Claim {
            claim: self.claim.trim().to_owned(),
            confidence: self.confidence,
            source: url.to_owned(),
            ttl: if self.evergreen { Ttl::Evergreen } else { self.ttl },
            origin: None,
        }
    }
}

/// What `research/write_research` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenResearch {
    /// What it is about.
    pub title: String,
    /// Dotted.
    pub topic: String,
    /// In a paragraph.
    pub overview: String,
    /// What was found, the most useful first.
    pub findings: Vec<String>,
    /// What can be had now.
    pub listings: Vec<ListingAnswer>,
    /// What stays true.
    pub evergreen: Vec<String>,
    /// What is true now.
    pub time_sensitive: Vec<String>,
}

/// Something that can be had now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListingAnswer {
    /// What.
    pub product: String,
    /// For how much.
    pub price: String,
    /// The address that says so.
    pub source: String,
    /// Whether it is there.
    pub stock: Stock,
}

impl WrittenResearch {
    /// The dotted topic (R1-4.5).
    pub fn topic(&self) -> String {
        topic(&self.topic)
    }

    /// The listings whose source stands among `read`, the addresses that were read; the others are made up. The vendor is
    /// the host of the address.
    pub fn listings(&self, read: &[String]) -> Vec<Listing> {
        let known = self.listings.iter().filter(|listing| read.contains(&listing.source));
        let listing = |listing: &ListingAnswer| {
            Some(Listing {
                product: stated(Some(&listing.product))?,
                price: listing.price.trim().to_owned(),
                vendor: host(&listing.source).to_owned(),
                in_stock: listing.stock,
                url: listing.source.clone(),
            })
        };
        known.filter_map(listing).collect()
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
