//! The days that a text speaks of: "on 8 May 2023", "in March", "two weeks ago", "next Friday", "between 3 and 9 June".
//!
//! Questions and what is said are read alike, and differ only in which of the days that come again they mean. Knows English
//! words for dates; reads no clock: today is an argument.

use std::ops::Range;
use std::sync::LazyLock;

use chrono::NaiveDate;
use regex::{Captures, Regex};

use super::calendar::{
    DaySpan, NUMBERS, NamedDays, Sense, counted, month_of, shifted, span_of, unit_around, weekday_named,
};

/// Words that say which of the months or days that come again is meant.
const WHICH: [&str; 6] = ["last", "past", "previous", "this", "next", "coming"];
/// Besides these, the words after which a month or season by itself is a time …
const BEFORE_MONTH: [&str; 7] = ["in", "since", "during", "by", "until", "till", "of"];
/// … and a day of the week or "the 11th".
const BEFORE_DAY: [&str; 7] = ["on", "since", "until", "till", "by", "from", "between"];
/// Words that begin a range.
const RANGE: [&str; 2] = ["from", "between"];
/// After a date with one of these words, or one of [`WHICH`], "to" and a month or day by itself end a range: "in March to
/// May", but not "on 3 March - May said …".
const OPEN_ENDED: [&str; 5] = ["from", "between", "in", "during", "since"];
/// Words after which `may` is a verb.
const BEHIND_VERB: [&str; 17] = [
    "be", "not", "have", "also", "well", "only", "never", "still", "even", "need", "take", "help", "change",
    "cause", "seem", "make", "or",
];
/// What is counted, so that "the 2nd floor" is no day.
const COUNTED: [&str; 46] = [
    "floor",
    "storey",
    "page",
    "chapter",
    "verse",
    "line",
    "row",
    "column",
    "step",
    "stage",
    "level",
    "time",
    "try",
    "attempt",
    "grade",
    "place",
    "position",
    "rank",
    "round",
    "game",
    "match",
    "set",
    "lap",
    "mile",
    "hole",
    "day",
    "night",
    "week",
    "month",
    "quarter",
    "half",
    "year",
    "century",
    "date",
    "visit",
    "trip",
    "anniversary",
    "birthday",
    "street",
    "avenue",
    "edition",
    "version",
    "season",
    "episode",
    "question",
    "one",
];
/// The most bytes on each side of a date that are read for its tense.
const SENTENCE: usize = 200;
const SENTENCE_ENDS: [char; 5] = ['.', '!', '?', ';', '\n'];

/// What names days, by the names of the groups, and at its end what only says that a time is told.
#[allow(clippy::expect_used, reason = "the pattern is constant and every test run compiles it")]
static DATES: LazyLock<Regex> = LazyLock::new(|| {
    let month = "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";
    let weekday = "(?:mon|tues|wednes|thurs|fri|satur|sun)day";
    let number = format!(r"\d{{1,3}}|(?:an?\s+)?(?:few|couple(?:\s+of)?)|several|an?|{}", NUMBERS.join("|"));
    let nth = "(?:st|nd|rd|th)?";
    let to = r"\s*(?:and|to|until|till|through|-|–)\s*(?:the\s+)?";
    let parts = [
        r"(?P<iy>[12]\d{3})-(?P<im>\d{2})(?:-(?P<id>\d{2})(?:T[\d:]+)?)?".to_owned(),
        format!(
            r"(?:the\s+)?(?:(?P<d1>\d{{1,2}}){nth}(?P<t1>{to}))?(?P<dd>\d{{1,2}}){nth}\s+(?:of\s+)?(?P<dm>{month})\b(?:,?\s+(?P<dy>[12]\d{{3}}))?"
        ),
        format!(
            r"(?P<mm>{month})\s+(?P<md>\d{{1,2}}){nth}(?:(?P<t2>{to})(?P<d2>\d{{1,2}}){nth})?\b(?:,?\s+(?P<my>[12]\d{{3}}))?"
        ),
        format!(r"(?P<am>{month})(?:,?\s+(?P<ay>[12]\d{{3}}))?"),
        r"(?P<s>spring|summer|autumn|fall|winter)(?:\s+(?:of\s+)?(?P<sy>[12]\d{3}))?".to_owned(),
        "(?P<near>today|tonight|yesterday|tomorrow)".to_owned(),
        r"(?P<part>last|this)\s+(?:night|morning|afternoon|evening)".to_owned(),
        format!(
            r"(?P<n>{number})\s+(?P<unit>day|weekend|week|month|year)s?(?P<ago>\s+(?:ago|earlier|back))?"
        ),
        r"(?P<rel>last|this|past|previous|next|coming)\s+(?P<of>weekend|week|month|year)".to_owned(),
        format!("(?P<wd>{weekday})"),
        r"the\s+(?P<nth>\d{1,2})(?:st|nd|rd|th)".to_owned(),
        r"(?P<y>(?:19|20)\d{2})".to_owned(),
        "recently|lately|soon|just".to_owned(),
    ];
    let time = [WHICH.as_slice(), &BEFORE_MONTH, &BEFORE_DAY].concat().join("|");
    // Only ASCII counts, which is searched faster.
    Regex::new(&format!(r"(?i-u)\b(?:(?P<time>{time})\s+)?(?:{})\b", parts.join("|")))
        .expect("a constant pattern")
});

/// Words by which a sentence speaks of what was, of what is, or of what will be.
#[allow(clippy::expect_used, reason = "the pattern is constant and every test run compiles it")]
static TENSES: LazyLock<Regex> = LazyLock::new(|| {
    let past = "(?:was|were|did|had)(?:n't)?|been|went|came|got|took|saw|met|said|told|made|bought|left|gave|found|began|[a-z]+[a-df-z]ed";
    let coming = r"will|won't|shall|gonna|going\s+to|upcoming|tomorrow";
    Regex::new(&format!(r"(?i-u)\b(?:(?P<past>{past})|(?P<coming>{coming}|'ll|’ll)|(?P<now>am|is|are))\b"))
        .expect("a constant pattern")
});

/// What a question says of days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskedDays {
    /// The days that it names.
    pub spans: Vec<DaySpan>,
    /// Its words without those that name them.
    pub rest: String,
}

/// What a text says of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ToldTime {
    /// The days that it names.
    pub spans: Vec<DaySpan>,
    /// Whether it tells any time: days, a duration, or that something is recent.
    pub tells: bool,
}

/// How a text is read.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The day on which it was written.
    today: Option<NaiveDate>,
    /// Whether it is a query, or else something that was said.
    asks: bool,
}

/// A place where a text names days.
#[derive(Debug)]
struct Mention {
    at: Range<usize>,
    /// The word of time before it, in lower case.
    word: String,
    named: NamedDays,
    /// Whether it lacks a word of time, without which it is no time unless a range ends with it: "may" is a verb too.
    is_bare: bool,
}

/// The day that a text names, such as `8 May 2023`, if it names one and with its year.
pub fn day_of(text: &str) -> Option<NaiveDate> {
    let spans = spans(text, None);
    let first = spans.first()?;
    (first.start() == first.end()).then_some(*first.start())
}

/// The days that `question` names. Relative days and dates without a year need `today`.
pub(super) fn spans(question: &str, today: Option<NaiveDate>) -> Vec<DaySpan> {
    asked_days(question, today).spans
}

/// The days that `question` names, and its other words.
pub(super) fn asked_days(question: &str, today: Option<NaiveDate>) -> AskedDays {
    let mut asked = AskedDays { spans: Vec::new(), rest: String::new() };
    let mut end = 0;
    Reading { today, asks: true }.read(question, |place, spans| {
        asked.rest.push_str(&question[end..place.start]);
        asked.spans.extend(spans);
        end = place.end;
    });
    asked.rest.push_str(&question[end..]);
    asked
}

/// What a text that was written on a day says of time.
pub(super) fn told_time(text: &str, day: NaiveDate) -> ToldTime {
    let mut told = ToldTime::default();
    let reading = Reading { today: Some(day), asks: false };
    told.tells = reading.read(text, |_, spans| told.spans.extend(spans));
    told
}

impl Reading {
    /// Gives each place where a text names days, and these; returns whether the text tells any time.
    fn read(self, text: &str, mut found: impl FnMut(Range<usize>, Vec<DaySpan>)) -> bool {
        let mut tells = false;
        let mut mentions = Vec::new();
        for captures in DATES.captures_iter(text) {
            let Some(some) = self.mentions(&captures, text) else { continue };
            tells |= some.iter().all(|one| !one.is_bare || matches!(one.named, NamedDays::Weekly(_)));
            mentions.extend(some);
        }
        let mut mentions = mentions.iter().peekable();
        let mut weekday = None;
        while let Some(first) = mentions.next() {
            let next = mentions.peek();
            if next.is_some_and(|next| first.is_weekday_of(next, text)) {
                weekday = Some(first.at.start);
                continue;
            }
            let start = weekday.take().unwrap_or(first.at.start);
            let range = next.filter(|last| first.joins(last, text)).map(|last| self.range(first, last, text));
            let (end, spans) = match range.filter(|spans| !spans.is_empty()) {
                Some(spans) => (mentions.next().map_or(first.at.end, |last| last.at.end), spans),
                None if first.is_bare => continue,
                None => (first.at.end, self.days(first, text)),
            };
            if !spans.is_empty() {
                tells = true;
                found(start..end, spans);
            }
        }
        tells
    }

    /// The days that are named at a place, two of them for "3 to 9 June"; `None` if it only looks like a time.
    fn mentions(self, found: &Captures<'_>, text: &str) -> Option<Vec<Mention>> {
        let at = found.get(0)?.range();
        let word = found.name("time").map(|word| word.as_str().to_ascii_lowercase()).unwrap_or_default();
        let next = next_word(&text[at.end..]);
        let group = |name: &str| found.name(name).map(|text| text.as_str());
        let year = |name: &str| group(name)?.parse::<i32>().ok();
        let month = group("dm").or(group("mm")).or(group("am"));
        if month.is_some_and(|month| is_verb(month, &word, next))
            || (group("nth").is_some() && is_counted(next))
        {
            return None;
        }
        let is_after = |words: &[&str]| words.contains(&word.as_str());
        let is_time = is_after(&WHICH) || is_after(&BEFORE_MONTH);
        let mut mentions = if let Some(month) = group("dm").or(group("mm")).and_then(month_of) {
            let year = year("dy").or(year("my"));
            days_of_month(found, &word, |day| NamedDays::of_day(year, month, day))
        } else if let Some(month) = group("am").and_then(month_of) {
            let year = year("ay");
            mention(at, &word, NamedDays::of_month(year, month), year.is_none() && !is_time)
        } else if let Some(season) = group("s") {
            let year = year("sy");
            mention(at, &word, NamedDays::of_season(year, season), year.is_none() && !is_time)
        } else if let Some(day) = group("wd") {
            let is_time = is_after(&WHICH) || is_after(&BEFORE_DAY);
            mention(at, &word, weekday_named(day).map(NamedDays::Weekly), !is_time)
        } else if let Some(number) = group("nth") {
            mention(at, &word, number.parse().ok().map(NamedDays::Monthly), !is_after(&BEFORE_DAY))
        } else {
            mention(at, &word, self.known(found, &word).map(NamedDays::Known), false)
        };
        // "From last March until May" begins in a year that is known.
        if let (Some(today), Some(first)) = (self.today, mentions.first_mut())
            && WHICH.contains(&word.as_str())
            && let Some(span) = first.named.seen_from(today, first.sense(text), self.asks).pop()
        {
            first.named = NamedDays::Known(span);
        }
        Some(mentions)
    }

    /// Days that are given with their year, or by their distance from today.
    fn known(self, found: &Captures<'_>, word: &str) -> Option<DaySpan> {
        let text = |name: &str| found.name(name).map(|text| text.as_str().to_ascii_lowercase());
        let number = |name: &str| found.name(name).and_then(|text| text.as_str().parse::<u32>().ok());
        if let Some(year) = number("iy").or(number("y")) {
            return span_of(i32::try_from(year).ok()?, number("im"), number("id"));
        }
        let today = self.today?;
        let on = |away: i64| shifted(today, away).map(|day| day..=day);
        if let Some(near) = text("near") {
            return on(i64::from(near == "tomorrow") - i64::from(near == "yesterday"));
        }
        if let Some(part) = text("part") {
            return on(-i64::from(part == "last"));
        }
        if let Some((number, unit)) = text("n").zip(text("unit")) {
            return match found.name("ago") {
                Some(_) => counted(today, -1, &number, &unit),
                None if word == "in" => counted(today, 1, &number, &unit),
                // "For two weeks" only tells a time.
                None => None,
            };
        }
        let (of, rel) = text("of").zip(text("rel"))?;
        let step = match rel.as_str() {
            "last" | "past" | "previous" => -1,
            "this" => 0,
            _ => 1,
        };
        unit_around(today, &of, step)
    }

    /// The days of a mention by itself.
    fn days(self, mention: &Mention, text: &str) -> Vec<DaySpan> {
        let Some(today) = self.today else {
            return match &mention.named {
                NamedDays::Known(span) => vec![span.clone()],
                _ => Vec::new(),
            };
        };
        let mut spans = mention.named.seen_from(today, mention.sense(text), self.asks);
        if mention.word == "since" {
            for span in spans.iter_mut().filter(|span| *span.start() < today) {
                *span = *span.start()..=today;
            }
        }
        spans
    }

    /// The days from a mention to another: the end is the first after a beginning that is known, else the beginning is the
    /// last before the end, so that "from 28 to 3 March" begins in February.
    fn range(self, first: &Mention, last: &Mention, text: &str) -> Vec<DaySpan> {
        if let NamedDays::Known(begin) = &first.named {
            let mut ends = last.named.around(*begin.start()).into_iter();
            let end = ends.find(|end| end.start() >= begin.start());
            return end.map(|end| *begin.start()..=*end.end()).into_iter().collect();
        }
        let from = |end: DaySpan| {
            let begins = first.named.around(*end.start());
            let begin = begins.iter().rfind(|begin| begin.start() <= end.start())?;
            Some(*begin.start()..=*end.end())
        };
        self.days(last, text).into_iter().filter_map(from).collect()
    }
}

impl Mention {
    /// Whether it and the next one are the ends of a range.
    fn joins(&self, last: &Self, text: &str) -> bool {
        let word = self.word.as_str();
        let between = text[self.at.end..last.at.start].trim();
        let joins = match between.strip_suffix("the").unwrap_or(between).trim_end() {
            "to" | "until" | "till" | "through" | "-" | "–" => true,
            // "On 3 and 9 June" is two days.
            "and" => word == "between",
            "" => ["until", "till"].contains(&last.word.as_str()),
            _ => false,
        };
        let begins = !self.is_bare || RANGE.contains(&word);
        joins && begins && (!last.is_bare || OPEN_ENDED.contains(&word) || WHICH.contains(&word))
    }

    /// Whether it is only the weekday of the date behind it, as in "on Friday, 8 May".
    fn is_weekday_of(&self, date: &Self, text: &str) -> bool {
        let is_date = match &date.named {
            NamedDays::Known(span) => span.start() == span.end(),
            NamedDays::Yearly { day, .. } => day.is_some(),
            _ => false,
        };
        matches!(self.named, NamedDays::Weekly(_))
            && is_date
            && date.word.is_empty()
            && ["", ","].contains(&text[self.at.end..date.at.start].trim())
    }

    fn sense(&self, text: &str) -> Sense {
        match self.word.as_str() {
            "last" | "past" | "previous" => Sense::Last,
            "next" | "coming" => Sense::Next,
            "this" => Sense::This,
            "since" => Sense::Since,
            _ => tense(text, &self.at),
        }
    }
}

fn mention(at: Range<usize>, word: &str, named: Option<NamedDays>, is_bare: bool) -> Vec<Mention> {
    named.map(|named| Mention { at, word: word.to_owned(), named, is_bare }).into_iter().collect()
}

/// "8 May", or both ends of "3 to 9 June" and "June 3 to 9".
fn days_of_month(
    found: &Captures<'_>,
    word: &str,
    of_day: impl Fn(u32) -> Option<NamedDays>,
) -> Vec<Mention> {
    let number = |name: &str| found.name(name)?.as_str().parse::<u32>().ok();
    let whole = found.get(0).map_or(0..0, |whole| whole.range());
    let (first, last) = (number("d1").or(number("md")), number("dd").or(number("d2")));
    let begin = match first.zip(last) {
        Some((first, last)) if first < last => of_day(first),
        // In the month before.
        Some((first, _)) if number("d1").is_some() && RANGE.contains(&word) => {
            Some(NamedDays::Monthly(first))
        }
        _ => None,
    };
    let to = found.name("t1").or(found.name("t2")).map(|to| to.range());
    let Some((begin, to)) = begin.zip(to) else {
        // What ends no range is no day of this month: "May 3 - 2 of us were late".
        let day = number("dd").or(number("md"));
        return mention(whole, word, day.and_then(of_day), false);
    };
    let mut ends = mention(whole.start..to.start, word, Some(begin), false);
    ends.extend(mention(to.end..whole.end, "", last.and_then(of_day), false));
    ends
}

/// Whether `may` is a verb.
fn is_verb(month: &str, word: &str, next: &str) -> bool {
    let is_behind = |words: &[&str]| words.iter().any(|one| next.eq_ignore_ascii_case(one));
    month.eq_ignore_ascii_case("may") && month != "May" && (WHICH.contains(&word) || is_behind(&BEHIND_VERB))
}

/// Whether a number before a word counts something, and days of no month.
fn is_counted(next: &str) -> bool {
    let next = next.to_ascii_lowercase();
    let singular = next.strip_suffix('s').unwrap_or(&next);
    COUNTED.contains(&singular) || (singular.ends_with("day") && weekday_named(singular).is_some())
}

/// The first word of what follows, right after a space or hyphen.
fn next_word(behind: &str) -> &str {
    let behind = behind.trim_start_matches([' ', '-']);
    behind.split(|char: char| !char.is_alphabetic()).next().unwrap_or_default()
}

/// What the sentence around a place speaks of.
fn tense(text: &str, at: &Range<usize>) -> Sense {
    let before = &text[text.ceil_char_boundary(at.start.saturating_sub(SENTENCE))..at.start];
    let behind = &text[at.end..text.floor_char_boundary((at.end + SENTENCE).min(text.len()))];
    let before = before.rsplit(SENTENCE_ENDS).next().unwrap_or_default();
    let behind = behind.split(SENTENCE_ENDS).next().unwrap_or_default();
    let (mut past, mut coming, mut now) = (false, false, false);
    for found in [before, behind].into_iter().flat_map(|part| TENSES.captures_iter(part)) {
        past |= found.name("past").is_some();
        coming |= found.name("coming").is_some();
        now |= found.name("now").is_some();
    }
    match (past, coming) {
        (true, false) if !now => Sense::Past,
        (false, true) => Sense::Coming,
        _ => Sense::Open,
    }
}

#[cfg(test)]
#[path = "dates_tests.rs"]
mod tests;
