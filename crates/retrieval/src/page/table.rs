//! The rules that choose the level of a captured page (R1-6.15 to R1-6.20). Data only: `rules` applies them.

use super::rules::PageLevel;

/// The parts that a rule's level needs in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Pages,
    Comments,
    /// A value whose name contains one of these.
    Value(&'static [&'static str]),
    Content,
}

/// One rule: the query contains a phrase from every group and none of `unless`.
pub(super) struct PageRule {
    pub(super) says: &'static [&'static [&'static str]],
    pub(super) unless: &'static [&'static str],
    pub(super) level: PageLevel,
    pub(super) needs: Needs,
    /// Whether an old capture sends to the page instead.
    pub(super) ages: bool,
    pub(super) why: &'static str,
}

/// Questions about the current state.
const NOW: &[&str] = &[
    "now",
    "still",
    "current",
    "currently",
    "latest",
    "newest",
    "today",
    "anymore",
    "any more",
    "up to date",
    "updated",
    "live",
    "refresh",
    "reload",
    "recheck",
    "check again",
    "check for",
    "any news",
    "any updates",
    "any changes",
    "changed since",
];
const COMMENTS: &[&str] = &[
    "comments", "comment", "replies", "reply", "posts", "post", "messages", "message", "answers", "reviews",
    "updates",
];
const STOCK: &[&str] =
    &["in stock", "out of stock", "stock", "available", "availability", "sold out", "for sale"];
const PRICE: &[&str] = &["price", "prices", "cost", "costs", "how much", "discount", "deal"];
/// Names under which prices are extracted.
const PRICES: &[&str] = &["price", "prices", "cost", "costs"];
const SPEECH: &[&str] = &[
    "say",
    "said",
    "says",
    "recommend",
    "recommended",
    "recommends",
    "mention",
    "mentioned",
    "think",
    "thought",
    "suggest",
    "suggested",
    "advise",
    "advised",
    "conclude",
    "concluded",
    "write",
    "claim",
    "argue",
    "report",
];
/// Comments that may have come since.
const SINCE: &[&str] =
    &["now", "today", "new comments", "new replies", "new posts", "latest comments", "latest replies"];
const HOW_MANY: &[&str] = &["how many", "number of", "count of", "total", "amount of"];
/// Restrictions to part of what is counted, which no manifest knows.
const SOME: &[&str] = &[
    "about",
    "mention",
    "mentions",
    "mentioned",
    "mentioning",
    "say",
    "says",
    "recommend",
    "with",
    "pages that",
    "comments that",
    "replies that",
    "posts that",
    "messages that",
    "answers that",
    "reviews that",
    "updates that",
    "ones that",
    "there that",
];
/// What is charged besides the product: its price is another one, although titles often name it ("free shipping").
pub(super) const CHARGES: &[&str] = &[
    "shipping",
    "delivery",
    "postage",
    "freight",
    "handling",
    "tax",
    "taxes",
    "vat",
    "duty",
    "customs",
    "fee",
    "fees",
    "deposit",
    "warranty",
    "insurance",
    "installation",
    "assembly",
    "subscription",
    "membership",
    "return",
    "returns",
];
/// Words that ask for no other value than the rest of the query does.
pub(super) const PLAIN: &[&str] = &[
    "tell",
    "told",
    "know",
    "remember",
    "remind",
    "forgot",
    "exactly",
    "roughly",
    "find",
    "found",
    "see",
    "saw",
    "seen",
    "show",
    "shown",
    "give",
    "get",
    "got",
    "visit",
    "visited",
    "look",
    "looked",
    "earlier",
    "before",
    "yesterday",
    "last",
    "time",
    "buy",
    "item",
    "product",
    "thing",
    "article",
    "offer",
    "listing",
    "site",
    "website",
    "shop",
    "store",
    "thread",
    "post",
    "link",
];

/// A question for a structured fact: the data answers it if a value of one of these names was extracted.
macro_rules! structured {
    ($says:expr, $names:expr $(,)?) => {
        PageRule {
            says: &[$says],
            unless: &[],
            level: PageLevel::Data,
            needs: Needs::Value($names),
            ages: false,
            why: "it asks for structured facts, which were extracted",
        }
    };
}

/// In the order in which they are tried: past statements, the present, then captured content.
pub(super) const RULES: &[PageRule] = &[
    PageRule {
        says: &[&[
            "elsewhere",
            "somewhere else",
            "other sites",
            "another site",
            "similar threads",
            "other threads",
        ]],
        unless: &[],
        level: PageLevel::Search,
        needs: Needs::Nothing,
        ages: false,
        why: "it asks for something that is elsewhere",
    },
    PageRule {
        says: &[&["what did", "what does", "what do", "did", "does"], SPEECH],
        unless: SINCE,
        level: PageLevel::Content,
        needs: Needs::Content,
        ages: false,
        why: "it asks what was said: that is in the text",
    },
    PageRule {
        says: &[NOW],
        unless: &[],
        level: PageLevel::Navigate,
        needs: Needs::Nothing,
        ages: false,
        why: "it asks how things are now; what was captured may have changed",
    },
    PageRule {
        says: &[&["new", "recent"], COMMENTS],
        unless: &[],
        level: PageLevel::Navigate,
        needs: Needs::Nothing,
        ages: false,
        why: "it asks for what came after the visit",
    },
    PageRule {
        says: &[&["was", "were", "did", "had", "back then", "at the time"], PRICE],
        unless: &[],
        level: PageLevel::Data,
        needs: Needs::Value(PRICES),
        ages: false,
        why: "it asks for the price as it was then: that was extracted",
    },
    PageRule {
        says: &[STOCK],
        unless: &[],
        level: PageLevel::Navigate,
        needs: Needs::Nothing,
        ages: false,
        why: "availability changes; what was captured may be stale",
    },
    PageRule {
        says: &[PRICE],
        unless: &[],
        level: PageLevel::Data,
        needs: Needs::Value(PRICES),
        ages: true,
        why: "the price was extracted at the visit",
    },
    PageRule {
        says: &[HOW_MANY, &["pages", "page"]],
        unless: SOME,
        level: PageLevel::Manifest,
        needs: Needs::Pages,
        ages: false,
        why: "the manifest counts the pages",
    },
    PageRule {
        says: &[HOW_MANY, COMMENTS],
        unless: SOME,
        level: PageLevel::Manifest,
        needs: Needs::Comments,
        ages: false,
        why: "the manifest counts the comments",
    },
    PageRule {
        says: &[&[
            "title of",
            "the title",
            "what site",
            "which site",
            "the url",
            "the address",
            "link to",
            "page count",
        ]],
        unless: &[],
        level: PageLevel::Manifest,
        needs: Needs::Nothing,
        ages: false,
        why: "the manifest names it",
    },
    structured!(
        &["top comment", "top comments", "top answer", "top reply", "upvotes", "points"],
        &["comments", "points", "upvotes"],
    ),
    structured!(&["author", "who posted", "who wrote", "who started"], &["author", "posted by"]),
    structured!(&["when was it posted", "posted"], &["posted", "published", "modified"]),
    structured!(&["subreddit"], &["subreddit"]),
    structured!(&["specs", "spec", "specification", "specifications"], &["specifications", "specs"]),
    structured!(&["rating"], &["rating", "ratings"]),
    structured!(&["products"], &["products"]),
    structured!(&["seller"], &["seller", "vendor"]),
    structured!(&["brand"], &["brand"]),
];
