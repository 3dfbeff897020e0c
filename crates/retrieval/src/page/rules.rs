//! Which level of a captured page may answer a query, by the rules of a table (R1-6.10 to R1-6.20, R1-14.5 to
//! R1-14.7).
//!
//! Pure: knows the words of a query and which parts a capture has. A rule proposes a level and states why; the model
//! that reads the proposal decides, so a wrong rule costs tokens but never an answer.

use std::ops::ControlFlow;

use larder_vault::DocumentTime;
use larder_vault::Intent;
use larder_vault::lifecycle::{Aging, ttl};
use serde::{Deserialize, Serialize};

use super::table::{CHARGES, Needs, PLAIN, PageRule, RULES};
use crate::phrases::PaddedQuery;

/// Where the answer to a question about a page can be found, cheapest first (R1-6.10 to R1-6.14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageLevel {
    /// The summary in the manifest: simple facts.
    Manifest,
    /// The extracted data: structured facts.
    Data,
    /// The text of the page.
    Content,
    /// The live page, at its own address.
    Navigate,
    /// A search: nothing was visited, or the page is not the right one.
    Search,
}

impl PageLevel {
    /// The word that prompts and receipts show.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Data => "data",
            Self::Content => "content",
            Self::Navigate => "navigate",
            Self::Search => "search",
        }
    }
}

/// Which parts a capture has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PageContents {
    /// Whether the manifest states the number of pages.
    pub pages: bool,
    /// Whether the manifest states the number of comments.
    pub comments: bool,
    /// The names of extracted values ([`larder_vault::value_names`]); empty if there are none.
    pub data: Vec<String>,
    /// What the page is about: its title and address, and the names of its products.
    pub topic: String,
    /// The text of the page is there.
    pub content: bool,
    /// Seconds since the visit.
    pub age: u64,
}

/// A level and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LevelChoice {
    /// Where to look.
    pub level: PageLevel,
    /// Why, in words for the receipt and the model.
    pub why: &'static str,
    /// The names of the values that are asked for; empty if the query names them itself.
    pub values: &'static [&'static str],
}

impl LevelChoice {
    const fn new(level: PageLevel, why: &'static str) -> Self {
        Self { level, why, values: &[] }
    }
}

/// Whether the name of a value, such as `sale_price`, contains one of these words.
pub(super) fn is_one_of(name: &str, words: &[&str]) -> bool {
    let name = PaddedQuery::new(name);
    words.iter().any(|word| name.say(word))
}

/// Where to find the answer to a query about a page; `None` is a page that was never visited. The first matching rule
/// of the table whose data exists decides; otherwise names in the extracted data; otherwise the text.
pub(super) fn choose_level(query: &str, page: Option<&PageContents>) -> LevelChoice {
    let Some(page) = page else {
        return LevelChoice::new(PageLevel::Search, "no visit of the page is on record");
    };
    let words = PaddedQuery::new(query);
    match RULES.iter().try_for_each(|rule| rule.apply(&words, page)) {
        ControlFlow::Break(choice) => choice,
        ControlFlow::Continue(()) => by_content(&words, page),
    }
}

/// Seconds for which a price that was captured may be believed (C106).
fn price_is_good_for() -> u64 {
    ttl(Aging::Offer, Intent::Informational).seconds()
}

/// Whether anything that changes on a page may have changed since.
pub fn is_stale(captured: DocumentTime, now: DocumentTime) -> bool {
    now.seconds_since(captured) >= price_is_good_for()
}

impl PageRule {
    fn apply(&self, words: &PaddedQuery, page: &PageContents) -> ControlFlow<LevelChoice> {
        let says = self.says.iter().all(|group| group.iter().any(|phrase| words.say(phrase)));
        if !says || self.unless.iter().any(|phrase| words.say(phrase)) {
            return ControlFlow::Continue(());
        }
        if self.ages && page.age >= price_is_good_for() {
            let why = "what was extracted is old; it may have changed";
            return ControlFlow::Break(LevelChoice::new(PageLevel::Navigate, why));
        }
        let found = match self.needs {
            Needs::Nothing => true,
            Needs::Pages => page.pages,
            Needs::Comments => page.comments,
            Needs::Value(names) => page.data.iter().any(|name| is_one_of(name, names)),
            Needs::Content => page.content,
        };
        if found && page.content && matches!(self.needs, Needs::Value(_)) && !self.covers(words, page) {
            let why =
                "it asks for more than the names of the extracted values state: the text has to be searched";
            return ControlFlow::Break(LevelChoice::new(PageLevel::Content, why));
        }
        if found {
            let values = if let Needs::Value(names) = self.needs { names } else { &[] };
            ControlFlow::Break(LevelChoice { values, ..LevelChoice::new(self.level, self.why) })
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Whether nothing in the query asks for another value than the rule's: each of its words is one of the rule or of the
    /// name of a value, or says which page is meant. The price of a product answers no question about its shipping.
    fn covers(&self, words: &PaddedQuery, page: &PageContents) -> bool {
        let topic = PaddedQuery::new(&page.topic);
        let names = self.says.iter().copied().flatten().copied().chain(page.data.iter().map(String::as_str));
        let names: Vec<PaddedQuery> = names.map(PaddedQuery::new).collect();
        words.subjects().all(|word| {
            PLAIN.contains(&word)
                || names.iter().any(|name| name.holds(word))
                || (!CHARGES.contains(&word) && topic.holds(word))
        })
    }
}

/// If no rule decides: extracted data that the query names, then the text, then whatever exists.
fn by_content(words: &PaddedQuery, page: &PageContents) -> LevelChoice {
    if page.data.iter().any(|name| words.name(name)) {
        return LevelChoice::new(PageLevel::Data, "the query names what was extracted");
    }
    match (page.content, page.data.is_empty()) {
        (true, _) => LevelChoice::new(PageLevel::Content, "the text has to be searched"),
        (false, false) => LevelChoice::new(PageLevel::Data, "only extracted data was kept"),
        (false, true) => LevelChoice::new(PageLevel::Navigate, "the capture does not contain it"),
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
