//! The lifetime and scope of knowledge: expiry, states, promotion. Pure: the current time is a parameter.

use serde::{Deserialize, Serialize};

use super::value::words;
use super::{DocumentTime, Intent, Scope, Score, Ttl};

/// The maximum number of links to a linked document (R1-8.9).
pub const MAX_LINK_DEPTH: usize = 2;
/// Maximum tokens of linked content (R1-8.10).
const TOTAL_LINK_BUDGET: usize = 8_000;
/// Maximum tokens of one linked document (R1-8.11).
pub const PER_DOCUMENT_CAP: usize = 2_000;
/// Links are no longer followed at this share of the budget, in per cent (R1-8.12).
const STOP_THRESHOLD_PERCENT: usize = 80;
/// How many seconds stale research is kept for its evergreen part before it is archived.
const STALE_FOR: u64 = 30 * 86_400;

/// The token budget for linked content in a call with `left` tokens available (C23).
pub const fn link_budget(left: usize) -> usize {
    let most = TOTAL_LINK_BUDGET * STOP_THRESHOLD_PERCENT / 100;
    if left < most { left } else { most }
}

/// What can expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aging {
    /// A price, an availability.
    Offer,
    /// Another time-dependent claim.
    Claim,
    /// The time-sensitive part of research.
    Research,
    /// The parts of a captured page that may have changed.
    Page,
    /// What remains true.
    Evergreen,
}

/// How long something may be relied on (C106). Prices and stock, and anything looked up for a purchase, expire after 6
/// hours (R1-3.42, R1-3.68, R1-4.8); navigation targets after a day, and anything looked up for information after a week.
pub const fn ttl(aging: Aging, intent: Intent) -> Ttl {
    match (aging, intent) {
        (Aging::Evergreen, _) => Ttl::Evergreen,
        (Aging::Offer, _) => Ttl::hours(6),
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
    /// The time-sensitive part has expired; the evergreen part is still good.
    Stale = "stale",
    /// Nothing in it is needed any more, or newer research has replaced it.
    Expired = "expired",
    /// In the archive.
    Archived = "archived",
}

words! {
    /// What to do with research in a state.
    ResearchAction, "index, use, refresh, archive or nothing":
    /// Add it to the index.
    Index = "index",
    /// Retrieve and use it.
    Use = "use",
    /// Repeat the research when it is needed next.
    Refresh = "refresh",
    /// Move it to the archive.
    Archive = "archive",
    /// Do nothing.
    Nothing = "nothing",
}

/// The facts that decide the state of research.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResearchLife {
    /// When it was created.
    pub created: DocumentTime,
    /// When its time-sensitive part expires; `None` if it has none.
    pub expires: Option<DocumentTime>,
    /// Whether it is in the index.
    pub indexed: bool,
    /// Whether newer research has replaced it.
    pub superseded: bool,
    /// Whether it is in the archive.
    pub archived: bool,
}

impl ResearchLife {
    /// The state of the research at `now`. A `now` before its creation is treated as the time of creation.
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
    /// What to do with research in this state.
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

/// The evidence that a piece of knowledge must have to be promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackRecord {
    /// Its trust score.
    pub trust: Score,
    /// How often it was useful.
    pub uses: u32,
    /// Its age in seconds.
    pub age: u64,
    /// Whether it is evergreen.
    pub evergreen: bool,
}

struct Threshold {
    trust: f64,
    uses: u32,
    age: u64,
}

/// New → user (R1-12.6 to R1-12.8).
const TO_USER: Threshold = Threshold { trust: 0.50, uses: 3, age: 3_600 };
/// User → candidate for all users (R1-12.9 to R1-12.11).
const TO_GLOBAL: Threshold = Threshold { trust: 0.80, uses: 10, age: 24 * 3_600 };

impl TrackRecord {
    fn reaches(&self, threshold: &Threshold) -> bool {
        self.trust.get() >= threshold.trust && self.uses >= threshold.uses && self.age >= threshold.age
    }
}

/// The scope of a piece of knowledge: `user` once it has earned that, otherwise unchanged. No record makes anything
/// `global`: that takes a person ([`is_candidate`]).
pub fn promoted(scope: Scope, standing: &TrackRecord) -> Scope {
    if scope == Scope::New && standing.reaches(&TO_USER) { Scope::User } else { scope }
}

/// Whether knowledge of a user has earned to be offered to people as something that all users may see. What can expire
/// never has (C84).
pub fn is_candidate(scope: Scope, standing: &TrackRecord) -> bool {
    scope == Scope::User && standing.evergreen && standing.reaches(&TO_GLOBAL)
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
        assert_eq!(ttl(Aging::Offer, Intent::Informational).to_string(), "6h");
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
            (Scope::User, standing(1.0, 99, 999_999, true), Scope::User),
            (Scope::Global, standing(0.0, 0, 0, false), Scope::Global),
        ] {
            assert_eq!(promoted(scope, &standing), expected, "{standing:?}");
        }
        for (scope, standing, expected) in [
            (Scope::User, standing(0.80, 10, 86_400, true), true),
            (Scope::User, standing(0.80, 10, 86_400, false), false),
            (Scope::User, standing(0.79, 10, 86_400, true), false),
            (Scope::User, standing(0.80, 9, 86_400, true), false),
            (Scope::User, standing(0.80, 10, 86_399, true), false),
            (Scope::New, standing(1.0, 99, 999_999, true), false),
            (Scope::Global, standing(1.0, 99, 999_999, true), false),
        ] {
            assert_eq!(is_candidate(scope, &standing), expected, "{scope} {standing:?}");
        }
    }

    #[test]
    fn links_get_what_the_call_leaves() {
        assert_eq!((link_budget(9_000), link_budget(6_000)), (6_400, 6_000));
    }
}
