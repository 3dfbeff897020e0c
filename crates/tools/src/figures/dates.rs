//! Dates in any usual notation, as day, month and year. Plain functions of texts.

use std::collections::BTreeSet;
use std::ops::Range;

use larder_text::months;

/// A date, or the part of one that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Parts {
    year: Option<u32>,
    month: u32,
    day: Option<u32>,
}

impl Parts {
    fn new(year: Option<u32>, month: u32, day: Option<u32>) -> Option<Self> {
        let is_valid = (1..=12).contains(&month) && day.is_none_or(|day| (1..=31).contains(&day));
        is_valid.then_some(Self { year, month, day })
    }

    /// Whether another date says all that this one does.
    fn is_in(&self, other: &Self) -> bool {
        self.month == other.month
            && (self.day.is_none() || self.day == other.day)
            && (self.year.is_none() || self.year == other.year)
    }

    /// Itself, and with less said: every date that [is in](Self::is_in) it.
    fn with_less(self) -> [Self; 4] {
        [(self.year, self.day), (None, self.day), (self.year, None), (None, None)].map(|(year, day)| Self {
            year,
            day,
            ..self
        })
    }
}

/// A date in a text, with its place.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) range: Range<usize>,
    /// What it may mean: two dates where day and month could be either.
    readings: Vec<Parts>,
    /// Whether it is a date only if another text states that date: `1.5.` may also be a number that ends a sentence.
    pub(super) is_doubtful: bool,
}

impl Written {
    /// Whether another date is this one, or a more exact one.
    pub(super) fn is_stated_by(&self, other: &Self) -> bool {
        self.readings.iter().any(|one| other.readings.iter().any(|other| one.is_in(other)))
    }

    /// Whether it is more than a month.
    pub(super) fn is_distinct(&self) -> bool {
        self.readings.iter().any(|parts| parts.day.is_some() || parts.year.is_some())
    }

    /// Whether it names a day of a month.
    pub(super) fn has_day(&self) -> bool {
        self.readings.iter().any(|parts| parts.day.is_some())
    }
}

impl Written {
    /// The year that it names.
    pub(super) fn year(&self) -> Option<u32> {
        self.readings.iter().find_map(|parts| parts.year)
    }

    /// The days since year 0 that it may be; none unless it says day, month and year.
    pub(super) fn days(&self) -> impl Iterator<Item = i64> {
        let whole = |parts: &Parts| Some((parts.year?, parts.month, parts.day?));
        self.readings.iter().filter_map(whole).map(|(year, month, day)| {
            // The year begins with March, so that its last day is a leap day.
            let (year, month) =
                if month < 3 { (i64::from(year) - 1, month + 9) } else { (year.into(), month - 3) };
            365 * year + year / 4 - year / 100 + year / 400 + i64::from((153 * month + 2) / 5 + day)
        })
    }
}

/// What documents say of dates, with what it is said of: looked up by the dates of an answer, of which there may be as many.
pub(super) struct Calendar<T>(BTreeSet<(Parts, T)>);

impl<T: Copy + Ord> Calendar<T> {
    /// What is said of each date.
    pub(super) fn of<'d>(said: impl Iterator<Item = (&'d Written, T)>) -> Self {
        let of_date = |(date, said): (&'d Written, T)| {
            let readings = date.readings.iter().flat_map(|parts| parts.with_less());
            readings.map(move |parts| (parts, said)).collect::<Vec<_>>()
        };
        Self(said.flat_map(of_date).collect())
    }

    /// Whether this is said of a date, or of a more exact one.
    pub(super) fn says(&self, date: &Written, said: T) -> bool {
        date.readings.iter().any(|parts| self.0.contains(&(*parts, said)))
    }
}

/// A run of digits or of letters.
struct Token<'t> {
    range: Range<usize>,
    text: &'t str,
}

impl Token<'_> {
    fn number(&self) -> Option<u32> {
        (self.text.len() <= 4).then(|| self.text.parse().ok()).flatten()
    }

    fn day(&self) -> Option<u32> {
        self.number().filter(|day| self.text.len() <= 2 && (1..=31).contains(day))
    }

    fn year(&self) -> Option<u32> {
        self.number().filter(|_| self.text.len() == 4)
    }

    /// A year as it is written at the end of a date.
    fn last_year(&self) -> Option<u32> {
        self.year().or_else(|| self.number().filter(|_| self.text.len() == 2).map(|year| 2000 + year))
    }
}

/// The dates of a text, in order: at least a month with a day or a year, or a month by its name.
pub(super) fn of(text: &str) -> Vec<Written> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let date = numeric(text, &tokens, at)
            .or_else(|| with_signs(text, &tokens, at))
            .or_else(|| compact(text, &tokens, at))
            .or_else(|| named(text, &tokens, at));
        at += date.as_ref().map_or(1, |(_, length)| *length);
        found.extend(date.map(|(date, _)| date));
    }
    found
}

/// The dates of a text that states them: one without a year has that of the stretch that it begins.
pub(super) fn stated(text: &str) -> Vec<Written> {
    let mut dates = of(text);
    share_years(text, &mut dates);
    dates
}

/// Gives the first date of a stretch the year of its last: `from 1 May to 30 September 2026`, or the year before.
fn share_years(text: &str, dates: &mut [Written]) {
    for at in 1..dates.len() {
        let [first, last] = &mut dates[at - 1..=at] else { break };
        let between = text[first.range.end..last.range.start].trim().to_lowercase();
        let is_stretch = matches!(between.as_str(), "to" | "-" | "–" | "until" | "till" | "through" | "bis");
        let end = last.readings.first().and_then(|parts| Some((parts.year?, parts.month)));
        if let Some((year, month)) = end.filter(|_| is_stretch) {
            for parts in &mut first.readings {
                parts.year.get_or_insert(year.saturating_sub(u32::from(parts.month > month)));
            }
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut last = None;
    for (at, char) in text.char_indices() {
        let kind = Some(char.is_ascii_digit()).filter(|_| char.is_alphanumeric());
        let end = at + char.len_utf8();
        match tokens.last_mut().filter(|_| kind.is_some() && kind == last) {
            Some(token) => {
                token.range.end = end;
                token.text = &text[token.range.clone()];
            }
            None if kind.is_some() => tokens.push(Token { range: at..end, text: &text[at..end] }),
            None => {}
        }
        last = kind;
    }
    tokens
}

/// What is between two tokens.
fn gap<'t>(text: &'t str, first: &Token<'_>, second: &Token<'_>) -> &'t str {
    &text[first.range.end..second.range.start]
}

/// `2026-05-03`, `3.5.2026`, `5/3/2026`, and `3.5.` where a sentence may end, too.
fn numeric(text: &str, tokens: &[Token<'_>], at: usize) -> Option<(Written, usize)> {
    let first = tokens.get(at)?;
    let before = text[..first.range.start].chars().next_back();
    if before.is_some_and(|char| matches!(char, '.' | ',' | '-' | '/' | '$' | '€' | '£')) {
        return None;
    }
    let second = tokens.get(at + 1)?;
    let sign = gap(text, first, second);
    let is_dotted = sign.trim_end() == ".";
    if !is_dotted && !matches!(sign, "-" | "/") {
        return None;
    }
    let third = tokens.get(at + 2).filter(|third| gap(text, second, third) == sign);
    // A fourth number makes an address or a version of it.
    let goes_on = |last: usize| {
        let next = tokens.get(last + 1).filter(|next| next.number().is_some());
        next.is_some_and(|next| matches!(gap(text, &tokens[last], next), "." | "-" | "/"))
    };
    if let Some(third) = third.filter(|_| !goes_on(at + 2)) {
        let year_first =
            || Some(Parts::new(first.year(), second.day()?, Some(third.day()?)).into_iter().collect());
        let year_last = || {
            let (a, b) = (first.day()?, second.day()?);
            let year = Some(third.last_year()?);
            let day_first = Parts::new(year, b, Some(a));
            let month_first = Parts::new(year, a, Some(b)).filter(|_| !is_dotted);
            Some(day_first.into_iter().chain(month_first).collect())
        };
        let readings: Option<Vec<Parts>> = if first.year().is_some() { year_first() } else { year_last() };
        if let Some(readings) = readings.filter(|readings| !readings.is_empty()) {
            let written = Written { range: first.range.start..third.range.end, readings, is_doubtful: false };
            return Some((written, 3));
        }
    }
    let ends_with_dot = text[second.range.end..].starts_with('.');
    if sign == "." && ends_with_dot && !goes_on(at + 1) {
        let parts = Parts::new(None, second.day()?, Some(first.day()?))?;
        let range = first.range.start..second.range.end + 1;
        return Some((Written { range, readings: vec![parts], is_doubtful: true }, 2));
    }
    None
}

/// `2026年12月9日` and `12月9日`, and the same in Korean.
fn with_signs(text: &str, tokens: &[Token<'_>], at: usize) -> Option<(Written, usize)> {
    /// The number of a token, and the end of the sign after it.
    fn part(text: &str, tokens: &[Token<'_>], at: usize, signs: [char; 2]) -> Option<(u32, usize)> {
        let (number, word) = (tokens.get(at)?, tokens.get(at + 1)?);
        let sign = word.text.chars().next().filter(|sign| signs.contains(sign))?;
        let is_joined = gap(text, number, word).is_empty();
        Some((number.number().filter(|_| is_joined)?, word.range.start + sign.len_utf8()))
    }
    let year = part(text, tokens, at, ['年', '년']).filter(|_| tokens[at].text.len() == 4);
    let month_at = if year.is_some() { at + 2 } else { at };
    let month = part(text, tokens, month_at, ['月', '월']);
    let (month, month_end) = month?;
    let day = part(text, tokens, month_at + 2, ['日', '일']);
    if year.is_none() && day.is_none() {
        return None;
    }
    let parts = Parts::new(year.map(|(year, _)| year), month, day.map(|(day, _)| day))?;
    let range = tokens[at].range.start..day.map_or(month_end, |(_, end)| end);
    let length = month_at - at + if day.is_some() { 4 } else { 2 };
    Some((Written { range, readings: vec![parts], is_doubtful: false }, length))
}

/// `20261014` and `20261014T100011Z`, which may be numbers or ids.
fn compact(text: &str, tokens: &[Token<'_>], at: usize) -> Option<(Written, usize)> {
    let token = tokens.get(at).filter(|token| token.text.len() == 8)?;
    let before = text[..token.range.start].chars().next_back();
    let after = text[token.range.end..].strip_prefix('T').map_or_else(
        || text[token.range.end..].chars().next(),
        |time| time.chars().next().filter(|char| !char.is_ascii_digit()),
    );
    let is_apart = |char: Option<char>| {
        char.is_none_or(|char| !char.is_alphanumeric() && !matches!(char, ',' | '.' | '$' | '€' | '£'))
    };
    let ends_sentence =
        after == Some('.') && !text[token.range.end + 1..].starts_with(|char: char| char.is_ascii_digit());
    let number: u32 = token.text.parse().ok()?;
    let year = Some(number / 10_000).filter(|year| (1900..2100).contains(year))?;
    let parts = Parts::new(Some(year), number / 100 % 100, Some(number % 100))?;
    (is_apart(before) && (is_apart(after) || ends_sentence))
        .then(|| (Written { range: token.range.clone(), readings: vec![parts], is_doubtful: true }, 1))
}

/// The year after the time of a day: `Oct 14 10:00:11 2026`, with a time zone before it or not.
fn year_after_time(text: &str, tokens: &[Token<'_>], day: usize) -> Option<u32> {
    let is_time = |at: usize| {
        let (first, second) = (tokens.get(at)?, tokens.get(at + 1)?);
        (first.number().is_some() && second.number().is_some() && gap(text, first, second) == ":")
            .then_some(())
    };
    is_time(day + 1)?;
    let last = if is_time(day + 2).is_some() { day + 3 } else { day + 2 };
    let is_zone =
        |token: &Token<'_>| token.text.len() <= 4 && token.text.bytes().all(|byte| byte.is_ascii_uppercase());
    let zone = usize::from(tokens.get(last + 1).is_some_and(is_zone));
    let year = tokens.get(last + 1 + zone)?.year()?;
    (day..=last + zone)
        .filter(|at| *at == day || *at >= last)
        .all(|at| gap(text, &tokens[at], &tokens[at + 1]) == " ")
        .then_some(year)
}

/// `3 May 2026`, `3rd of May`, `May 3, 2026`, `May 2026`, `May`, `2 de mayo de 2026`, `1er mai 2026`.
fn named(text: &str, tokens: &[Token<'_>], at: usize) -> Option<(Written, usize)> {
    let first = tokens.get(at)?;
    // The number before a month is its day.
    let leading = first.day().and_then(|day| {
        let skipped = tokens[at + 1..].iter().take(2).take_while(|token| is_filler(token.text)).count();
        let name = at + 1 + skipped;
        let month = month(tokens.get(name)?.text)?;
        let near = (at..name).all(|one| is_near(gap(text, &tokens[one], &tokens[one + 1])));
        near.then_some((day, month, name))
    });
    let (mut day, month, name) = match leading {
        Some((day, month, name)) => (Some(day), month, name),
        None => (None, month(first.text)?, at),
    };
    let is_elsewhere = english_or_german(tokens[name].text).is_none();
    let mut last = name;
    let next = |last: usize, skipped: usize| {
        let next = tokens.get(last + 1 + skipped)?;
        let near = (last..=last + skipped).all(|one| is_near(gap(text, &tokens[one], &tokens[one + 1])));
        near.then_some(next)
    };
    if day.is_none()
        && !is_elsewhere
        && let Some(found) = next(last, 0).and_then(Token::day)
        // `May 12:30` and `May 3.5` are no days.
        && !text[tokens[last + 1].range.end..].starts_with([':', '%'])
    {
        day = Some(found);
        last += 1;
        if tokens
            .get(last + 1)
            .is_some_and(|token| is_ordinal(token.text) && gap(text, &tokens[last], token).is_empty())
        {
            last += 1;
        }
    }
    let of = usize::from(next(last, 0).is_some_and(|token| is_filler(token.text)));
    let year = next(last, of).and_then(Token::year);
    last += year.map_or(0, |_| 1 + of);
    let year = year.or_else(|| day.and_then(|_| year_after_time(text, tokens, last)));
    // In other languages a word may mean something else, and its day stands before it.
    let is_word = is_word(&tokens[name]);
    let is_vague = is_word || tokens[name].text.chars().count() < 4;
    if is_elsewhere && (day.is_none() && (year.is_none() || is_vague) || year.is_none() && is_word) {
        return None;
    }
    let readings = vec![Parts::new(year, month, day)?];
    let range = first.range.start..tokens[last].range.end;
    Some((Written { range, readings, is_doubtful: false }, last + 1 - at))
}

/// Whether the short name of a month is a word of English or German, too: `3 ago`, `5 out`.
fn is_word(token: &Token<'_>) -> bool {
    matches!(
        token.text.to_lowercase().as_str(),
        "ago" | "set" | "out" | "gen" | "mag" | "sie" | "lip" | "lis" | "dic"
    )
}

fn is_near(gap: &str) -> bool {
    gap.len() <= 3
        && gap.chars().all(|char| matches!(char, ' ' | '\u{a0}' | '.' | ',' | '*' | '_' | '-' | '/'))
}

fn is_filler(word: &str) -> bool {
    is_ordinal(word) || matches!(word, "of" | "de" | "del")
}

fn is_ordinal(word: &str) -> bool {
    matches!(word, "st" | "nd" | "rd" | "th" | "er" | "º" | "o" | "e")
}

/// The number of a month by its name in any of these languages, or by the letters that it is shortened to.
fn month(word: &str) -> Option<u32> {
    english_or_german(word).or_else(|| {
        let word = word.to_lowercase();
        months::ELSEWHERE.iter().find(|(_, names)| names.contains(&word.as_str())).map(|(month, _)| *month)
    })
}

/// The number of a month by its English or German name, or by the three letters that it begins with.
fn english_or_german(word: &str) -> Option<u32> {
    /// The month of each name in [`months::GERMAN`].
    const GERMAN: [u32; 10] = [1, 1, 2, 2, 3, 5, 6, 7, 10, 12];
    let word = word.to_lowercase();
    let is_short = word.chars().count() == 3;
    let is_named = |month: &str| month == word || is_short && month.starts_with(&word);
    let english = (1..).zip(&months::ENGLISH).find(|(_, month)| is_named(month)).map(|(number, _)| number);
    let german = || GERMAN.into_iter().zip(&months::GERMAN).find(|(_, month)| is_named(month));
    english.or_else(|| german().map(|(number, _)| number)).or((word == "sept").then_some(9))
}
