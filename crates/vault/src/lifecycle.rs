//! How long knowledge lives and for whom it counts: lifetimes, states, promotion (C82, C84, C106). Pure: the
//! moment is handed in.

use serde::{Deserialize, Serialize};

use super::value::words;
use super::{DocumentTime, Intent, Scope, Score, Ttl};

/// How many links away a document may be (R1-8.9).
pub const MAX_LINK_DEPTH: usize = 2;
/// Tokens for linked content (R1-8.10).
const TOTAL_LINK_BUDGET: usize = 8_000;
/// Tokens for one linked document (R1-8.11).
pub const PER_DOCUMENT_CAP: usize = 2_000;
/// Following stops at this share of the budget, in per cent (R1-8.12).
const STOP_THRESHOLD_PERCENT: usize = 80;
/// How long research that grew stale is kept for its evergreen part before it is archived.
const STALE_FOR: u64 = 30 * 86_400;

/// Tokens for linked content when the call has `left` for it (C23).
pub const fn link_budget(left: usize) -> usize {
    let most = TOTAL_LINK_BUDGET * STOP_THRESHOLD_PERCENT / 100;
    if left < most { left } else { most }
}

/// What grows old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aging {
    /// A claim that depends on the time: a price, an availability.
    Claim,
    /// The time-sensitive part of research.
    Research,
    /// A captured page, for what may have changed on it.
    Page,
    /// What stays true.
    Evergreen,
}

/// How long something may be believed (C106). What was looked up in order to buy is old after 6 hours (R1-3.42,
/// R1-4.8); addresses hold for a day, and what was looked up in order to know holds for a week.
pub const fn ttl(aging: Aging, intent: Intent) -> Ttl {
    match (aging, intent) {
        (Aging::Evergreen, _) => Ttl::Evergreen,
        (_, Intent::Transactional | Intent::CommerceSearch | Intent::Comparison) => Ttl::hours(6),
        (_, Intent::Navigation) => Ttl::hours(24),
        (_, Intent::Informational) => Ttl::hours(7 * 24),
    }
}

words! {
    /// The state of research.
    ResearchState, "created, active, stale, expired or archived":
    /// Written, not yet indexed.
    Created = "created",
    /// Indexed and fresh.
    Active = "active",
    /// Its time-sensitive part is old, its evergreen part is good.
    Stale = "stale",
    /// Nothing in it is wanted any more, or newer research took its place.
    Expired = "expired",
    /// In the archive.
    Archived = "archived",
}

words! {
    /// What to do about it.
    ResearchAction, "index, use, refresh, archive or nothing":
    /// Index it.
    Index = "index",
    /// Retrieve and use it.
    Use = "use",
    /// Research again at the next question.
    Refresh = "refresh",
    /// Move it to the archive.
    Archive = "archive",
    /// Leave it.
    Nothing = "nothing",
}

/// The facts that decide the state of research.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResearchLife {
    /// When it was made.
    pub created: DocumentTime,
    /// When its time-sensitive part is old; none if it has no such part.
    pub expires: Option<DocumentTime>,
    /// Whether it is in the index.
    pub indexed: bool,
    /// Whether newer research took its place.
    pub superseded: bool,
    /// Whether it is in the archive.
    pub archived: bool,
}

impl ResearchLife {
    /// The state of the research at `now`. A `now` before its creation counts as its creation.
    pub fn state(&self, now: DocumentTime) -> ResearchState {
        let old = self.expires.filter(|expires| *expires <= now);
        match old {
            _ if self.archived => ResearchState::Archived,
            _ if self.superseded => ResearchState::Expired,
            _ if !self.indexed => ResearchState::Created,
            None => ResearchState::Active,
            Some(expires) if now.seconds_since(expires) < STALE_FOR => ResearchState::Stale,
            Some(_) => ResearchState::Expired,
        }
    }
}

impl ResearchState {
    /// What to do about research in this state.
    pub const fn action(self) -> ResearchAction {
        match self {
            Self::Created => ResearchAction::Index,
            Self::Active => ResearchAction::Use,
            Self::Stale => ResearchAction::Refresh,
            Self::Expired => ResearchAction::Archive,
            Self::Archived => ResearchAction::Nothing,
        }
    }
}

/// What a piece of knowledge must have shown to count for more people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackRecord {
    /// How far it is trusted.
    pub trust: Score,
    /// How often it was of use.
    pub uses: u32,
    /// How old it is, in seconds.
    pub age: u64,
    /// Whether it stays true.
    pub evergreen: bool,
}

struct Threshold {
    trust: f64,
    uses: u32,
    age: u64,
}

/// New → user (R1-12.6 to R1-12.8).
const TO_USER: Threshold = Threshold { trust: 0.50, uses: 3, age: 3_600 };
/// User → global (R1-12.9 to R1-12.11).
const TO_GLOBAL: Threshold = Threshold { trust: 0.80, uses: 10, age: 24 * 3_600 };

/// For whom knowledge counts from now on: one step further if it has earned that, else as before. What grows old
/// never leaves its user (C84).
pub fn promoted(scope: Scope, standing: &TrackRecord) -> Scope {
    let reaches = |threshold: &Threshold| {
        standing.trust.get() >= threshold.trust
            && standing.uses >= threshold.uses
            && standing.age >= threshold.age
    };
    match scope {
        Scope::New if reaches(&TO_USER) => Scope::User,
        Scope::User if reaches(&TO_GLOBAL) && standing.evergreen => Scope::Global,
        unchanged => unchanged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DocumentTime {
        text.parse().unwrap()
    }

    #[test]
    fn prices_are_old_after_six_hours() {
        assert_eq!(ttl(Aging::Claim, Intent::Transactional).to_string(), "6h");
        assert_eq!(
            ttl(Aging::Research, Intent::CommerceSearch).end(at("2025-12-06T18:44:00Z")),
            Some(at("2025-12-07T00:44:00Z"))
        );
        assert_eq!(ttl(Aging::Evergreen, Intent::Transactional), Ttl::Evergreen);
        assert_eq!(ttl(Aging::Page, Intent::Informational).to_string(), "7d");
    }

    #[test]
    fn research_goes_through_its_states_in_order() {
        let (created, expires) = (at("2025-12-06T18:44:00Z"), at("2025-12-07T00:44:00Z"));
        let mut life = ResearchLife {
            created,
            expires: Some(expires),
            indexed: false,
            superseded: false,
            archived: false,
        };
        let mut seen = vec![life.state(created)];
        life.indexed = true;
        for now in
            ["2025-12-07T00:43:59Z", "2025-12-07T00:44:00Z", "2026-01-06T00:43:59Z", "2026-01-06T00:44:00Z"]
        {
            seen.push(life.state(at(now)));
        }
        life.archived = true;
        seen.push(life.state(created));
        use ResearchState::{Active, Archived, Created, Expired, Stale};
        assert_eq!(seen, [Created, Active, Stale, Stale, Expired, Archived]);
        let superseded = ResearchLife { superseded: true, archived: false, ..life };
        assert_eq!(superseded.state(created).action(), ResearchAction::Archive);
        let evergreen = ResearchLife { expires: None, archived: false, ..life };
        assert_eq!(evergreen.state(at("9999-01-01T00:00:00Z")), Active);
        assert_eq!(
            ResearchState::ALL.iter().map(|state| state.action()).collect::<Vec<_>>(),
            ResearchAction::ALL
        );
    }

    #[test]
    fn promotion_takes_trust_use_and_age() {
        let standing = |trust: f64, uses, age, evergreen| TrackRecord {
            trust: Score::new(trust).unwrap(),
            uses,
            age,
            evergreen,
        };
        for (scope, standing, expected) in [
            (Scope::New, standing(0.50, 3, 3_600, false), Scope::User),
            (Scope::New, standing(0.49, 3, 3_600, true), Scope::New),
            (Scope::New, standing(0.50, 2, 3_600, true), Scope::New),
            (Scope::New, standing(0.50, 3, 3_599, true), Scope::New),
            (Scope::New, standing(1.0, 99, 999_999, true), Scope::User),
            (Scope::User, standing(0.80, 10, 86_400, true), Scope::Global),
            (Scope::User, standing(0.80, 10, 86_400, false), Scope::User),
            (Scope::User, standing(0.79, 10, 86_400, true), Scope::User),
            (Scope::User, standing(0.80, 9, 86_400, true), Scope::User),
            (Scope::User, standing(0.80, 10, 86_399, true), Scope::User),
            (Scope::Global, standing(0.0, 0, 0, false), Scope::Global),
        ] {
            assert_eq!(promoted(scope, &standing), expected, "{standing:?}");
        }
    }

    #[test]
    fn links_get_what_the_call_leaves() {
        assert_eq!((link_budget(9_000), link_budget(6_000)), (6_400, 6_000));
    }
}
