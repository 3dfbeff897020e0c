//! Which spans of a text matter in themselves: error lines, URLs, prices, quantities, dates, addresses, paths,
//! hashes, ids and numbers.
//!
//! Finds and ranks spans; does not know targets, units or what happens to a span. Words are runs of ASCII between
//! white space and non-ASCII characters, so the scan is linear and works in text without spaces too.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Longer runs are data, not names: a data URI tells a reader nothing.
const LONGEST_SPAN: usize = 300;
/// An error line is recognised, and kept, up to this many bytes.
const LONGEST_ERROR: usize = 240;

/// What a span is, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanKind {
    /// A number without a unit, a time of day, a timestamp. Counted in the probes, pinned by nobody.
    Number,
    /// A calendar date.
    Date,
    /// A number with its unit.
    Quantity,
    /// An identifier or version of letters and digits.
    Id,
    /// A hexadecimal digest.
    Hash,
    /// A file path.
    Path,
    /// An e-mail address.
    Email,
    /// A web address.
    Url,
    /// An amount of money.
    Price,
    /// A line that reports an error.
    Error,
}

impl SpanKind {
    /// Whether spans of this kind are kept before text that holds none.
    pub const fn is_telling(self) -> bool {
        !matches!(self, Self::Number)
    }

    /// How much a span of this kind counts when not all fit.
    pub const fn weight(self) -> f32 {
        match self {
            Self::Number => 0.0,
            Self::Date | Self::Quantity => 1.0,
            Self::Id | Self::Hash | Self::Path => 1.5,
            Self::Email | Self::Url | Self::Price => 2.0,
            Self::Error => 4.0,
        }
    }
}

/// A span that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// What it is.
    pub kind: SpanKind,
}

/// How readily a line counts as an error line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorSense {
    /// Only the forms machines write: `ERROR`, `ValueError:`, `fatal: …`. For texts in which people may write of errors.
    Strict,
    /// Any line with a word of failure. For output of tools.
    Loose,
}

/// Every span of `text` that matters, by start. An error line may hold other spans; others do not overlap.
pub fn scan(text: &str, sense: ErrorSense) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut previous = 0..0;
    for word in words(text) {
        scan_word(text, &previous, &word, &mut spans);
        previous = word;
    }
    spans.extend(error_lines(text, sense));
    spans.sort_by_key(|span| (span.range.start, std::cmp::Reverse(span.range.end)));
    spans
}

/// Runs of printable ASCII, each a candidate.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && !bytes[at].is_ascii_graphic() {
            at += 1;
        }
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_graphic() {
            at += 1;
        }
        (start < at).then_some(start..at)
    })
}

fn scan_word(text: &str, previous: &Range<usize>, word: &Range<usize>, spans: &mut Vec<Span>) {
    let bytes = &text.as_bytes()[word.clone()];
    let interesting = |b: &u8| matches!(b, b'0'..=b'9' | b'/' | b'@' | b'\\');
    let www = bytes.len() > 6 && bytes[..6].windows(4).any(|start| start.eq_ignore_ascii_case(b"www."));
    if !www && !bytes.iter().any(interesting) {
        return;
    }
    if word.len() > LONGEST_SPAN {
        // Minified data: look at its pieces, each small.
        for piece in split_data(text, word) {
            if piece.len() <= LONGEST_SPAN {
                classify(text, &(piece.start..piece.start), &piece, spans);
            }
        }
        return;
    }
    // `{"url":"https://x.org","price":12}` and `key=value` are several candidates in one run.
    let data = bytes.iter().filter(|b| matches!(b, b'"' | b'=' | b'{' | b'<' | b'|')).count();
    if data > 0 && !text[word.clone()].contains("://") || data > 2 {
        for piece in split_data(text, word) {
            classify(text, previous, &piece, spans);
        }
    } else {
        classify(text, previous, word, spans);
    }
}

fn split_data<'t>(text: &'t str, word: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<'t> {
    let start = word.start;
    let run = &text[word.clone()];
    run.split(['"', '=', '{', '}', '<', '>', '|', ',', ';']).filter(|piece| !piece.is_empty()).map(
        move |piece| {
            // `split` yields slices of `run`, so the distance of their addresses is their offset in it.
            let at = start + (piece.as_ptr() as usize - run.as_ptr() as usize);
            at..at + piece.len()
        },
    )
}

fn classify(text: &str, previous: &Range<usize>, word: &Range<usize>, spans: &mut Vec<Span>) {
    let range = trimmed(text, word);
    let token = &text[range.clone()];
    let mut push = |range: Range<usize>, kind| {
        let overlaps = |last: &Span| last.range.end > range.start;
        while spans.last().is_some_and(overlaps) {
            spans.pop();
        }
        spans.push(Span { range, kind });
    };
    if token.is_empty() {
    } else if let Some(at) = url_start(token) {
        push(range.start + at..range.end, SpanKind::Url);
    } else if is_email(token) {
        push(range, SpanKind::Email);
    } else if is_path(token, text[..range.start].ends_with('<')) {
        push(range, SpanKind::Path);
    } else if token.bytes().any(|b| b.is_ascii_digit()) {
        let (range, kind) = classify_number(text, previous, range);
        push(range, kind);
    }
}

/// The word without the punctuation around it.
fn trimmed(text: &str, word: &Range<usize>) -> Range<usize> {
    let run = &text[word.clone()];
    let head =
        run.trim_start_matches(['(', '[', '{', '<', '>', '"', '\'', '`', '*', ',', ':', ';', '!', '?', '|']);
    let body = head
        .trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '<', '"', '\'', '`', '*', '|']);
    let start = word.end - head.len();
    start..start + body.len()
}

fn url_start(token: &str) -> Option<usize> {
    if let Some(colon) = token.find("://") {
        let scheme = token[..colon].bytes().rev().take_while(u8::is_ascii_alphanumeric).count();
        return (scheme > 0 && token.len() > colon + 3).then_some(colon - scheme);
    }
    (token.len() > 6 && token.as_bytes()[..4].eq_ignore_ascii_case(b"www.")).then_some(0)
}

fn is_email(token: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '%');
    token.split_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && user.chars().all(name) && host.contains('.') && host.chars().all(name)
    })
}

fn is_path(token: &str, after_angle: bool) -> bool {
    let bytes = token.as_bytes();
    if bytes.len() > 3 && bytes[0].is_ascii_alphabetic() && &bytes[1..3] == b":\\" {
        return true;
    }
    let Some((_, last)) = token.rsplit_once('/') else { return is_source_file(token) };
    let letters = token.bytes().filter(u8::is_ascii_alphabetic).count();
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| token.starts_with(root)) && !after_angle;
    let slashes = token.bytes().filter(|&b| b == b'/').count();
    letters >= 2 && (rooted && token.len() >= 4 || has_extension(last) || slashes >= 3)
}

/// `main.rs`, `main.rs:12:5`, `notes.txt`: a stem, a dot, and a short extension that starts with a letter.
fn is_source_file(token: &str) -> bool {
    let file = token.split(':').next().unwrap_or(token);
    let known = [
        "rs", "py", "js", "ts", "tsx", "jsx", "go", "java", "c", "h", "cpp", "cc", "hpp", "rb", "php", "sh",
        "toml", "yaml", "yml", "json", "xml", "html", "css", "md", "txt", "log", "csv", "sql", "lock",
        "conf", "cfg", "ini", "exe", "dll", "so", "jar", "gz", "zip", "tar", "png", "jpg", "pdf",
    ];
    let stem_ok = |stem: &str| {
        !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    file.rsplit_once('.').is_some_and(|(stem, ext)| stem_ok(stem) && known.contains(&ext))
}

fn has_extension(name: &str) -> bool {
    let name = name.split(':').next().unwrap_or(name);
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
            && extension.as_bytes()[0].is_ascii_alphabetic()
    })
}

/// A token with a digit in it, which its neighbours may turn into a date, a price or a quantity.
fn classify_number(text: &str, previous: &Range<usize>, range: Range<usize>) -> (Range<usize>, SpanKind) {
    let token = &text[range.clone()];
    if is_date(token) {
        return (range, SpanKind::Date);
    }
    let near = previous.end < range.start && range.start - previous.end <= 3;
    let before = if near { &text[trimmed(text, previous)] } else { "" };
    let next = next_word(text, range.end);
    let after = &text[next.clone()];
    let shape = NumberShape::of(token);
    if let Some(number) = &shape {
        let glued_before = text[..range.start].chars().next_back().filter(|c| !c.is_ascii());
        let glued_after = text[range.end..].chars().next().filter(|c| !c.is_ascii());
        if number.currency || glued_before.is_some_and(is_currency) {
            let start = range.start - glued_before.filter(|&c| is_currency(c)).map_or(0, char::len_utf8);
            return (start..range.end, SpanKind::Price);
        }
        if let Some(c) = glued_after.filter(|&c| is_currency(c) || CJK_UNITS.contains(c)) {
            let kind = if is_currency(c) {
                SpanKind::Price
            } else if "年月日".contains(c) {
                SpanKind::Date
            } else {
                SpanKind::Quantity
            };
            return (range.start..range.end + c.len_utf8(), kind);
        }
        if let Some(found) = date_in_words(text, previous, before, &range, &next) {
            return (found, SpanKind::Date);
        }
        if number.unit.is_empty() && next.start == range.end + 1 {
            if CURRENCY_WORDS.iter().any(|word| after.eq_ignore_ascii_case(word)) {
                return (range.start..next.end, SpanKind::Price);
            }
            if is_unit(after) {
                return (range.start..next.end, SpanKind::Quantity);
            }
        }
        if is_unit(number.unit) {
            return (range, SpanKind::Quantity);
        }
    }
    let kind = if is_hash(token) {
        SpanKind::Hash
    } else if is_id(token) {
        SpanKind::Id
    } else {
        SpanKind::Number
    };
    (range, kind)
}

/// `$1,299.00`, `-12ms`, `45%`: an optional sign and currency, digits with separators, the rest.
struct NumberShape<'t> {
    currency: bool,
    unit: &'t str,
}

impl<'t> NumberShape<'t> {
    fn of(token: &'t str) -> Option<Self> {
        let rest = token.trim_start_matches(['-', '+', '~', '±']);
        let code = ["US$", "USD", "EUR", "GBP", "$"].iter().find_map(|code| rest.strip_prefix(code));
        let number = code.unwrap_or(rest);
        if !number.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let end =
            number.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',')).unwrap_or(number.len());
        Some(Self { currency: code.is_some(), unit: &number[end..] })
    }
}

fn is_currency(c: char) -> bool {
    matches!(c, '€' | '£' | '¥' | '￥' | '円' | '元' | '₹' | '₩' | '₽')
}

const CJK_UNITS: &str = "年月日時分秒人個件回度％円元歳才本枚号条";
const CURRENCY_WORDS: [&str; 14] = [
    "USD", "EUR", "GBP", "JPY", "CHF", "dollars", "dollar", "euros", "euro", "pounds", "cents", "yen",
    "rubles", "francs",
];
const UNITS: [&str; 66] = [
    "%", "ms", "us", "ns", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes", "h",
    "hr", "hour", "hours", "day", "days", "week", "weeks", "month", "months", "year", "years", "km", "m",
    "cm", "mm", "mi", "mile", "miles", "feet", "ft", "kg", "g", "mg", "lb", "lbs", "oz", "B", "KB", "MB",
    "GB", "TB", "kB", "KiB", "MiB", "GiB", "bytes", "tokens", "Hz", "kHz", "MHz", "GHz", "V", "W", "kW",
    "kWh", "Wh", "mAh", "px", "pt", "fps", "rpm", "percent",
];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn is_unit(word: &str) -> bool {
    UNITS.contains(&word)
}

fn is_month(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',']).to_ascii_lowercase();
    word.len() >= 3
        && MONTHS.iter().any(|month| *month == word || (word.len() <= 4 && month.starts_with(&word)))
}

/// `2024-05-01`, `01.05.2024`, `5/1/2024`, without a time of day.
fn is_date(token: &str) -> bool {
    ['-', '/', '.'].iter().any(|&sign| {
        let mut parts = token.split(sign);
        let (Some(a), Some(b), Some(c), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let short = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        let year = |part: &str| part.len() == 4 && part.bytes().all(|b| b.is_ascii_digit());
        short(b) && (year(a) && short(c) || short(a) && year(c))
    })
}

/// `12 March 2024`, `March 12, 2024`, `July, 1805`: this number and the month beside it.
fn date_in_words(
    text: &str,
    previous: &Range<usize>,
    before: &str,
    range: &Range<usize>,
    next: &Range<usize>,
) -> Option<Range<usize>> {
    let digits = text[range.clone()].trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let value: u32 = digits.parse().ok()?;
    let plausible = (1..=31).contains(&value) || (1000..=2999).contains(&value);
    if !plausible {
        return None;
    }
    if is_month(before) {
        return Some(trimmed(text, previous).start..range.end);
    }
    is_month(&text[next.clone()]).then_some(range.start..next.end)
}

fn next_word(text: &str, from: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let mut start = from;
    while start < bytes.len() && start < from + 2 && bytes[start] == b' ' {
        start += 1;
    }
    let limit = bytes.len().min(start + 16);
    let mut end = start;
    while end < limit && (bytes[end].is_ascii_alphanumeric() || bytes[end] == b'%') {
        end += 1;
    }
    if start == from { from..from } else { start..end }
}

fn is_hash(token: &str) -> bool {
    let hex = token.bytes().all(|b| b.is_ascii_hexdigit());
    let letters = token.bytes().any(|b| b.is_ascii_alphabetic());
    hex && token.len() >= 7 && letters || (hex && token.len() >= 32)
}

/// Letters and digits together, as ids, versions and serial numbers are; a plain timestamp or ordinal is none.
fn is_id(token: &str) -> bool {
    let name = token.strip_prefix('#').unwrap_or(token);
    if name.len() < token.len() {
        return name.bytes().all(|b| b.is_ascii_digit());
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    let letters = token.bytes().filter(u8::is_ascii_alphabetic).count();
    let timestamp = token.contains(':') && token.as_bytes()[0].is_ascii_digit();
    let version = token.as_bytes()[0].is_ascii_digit()
        && token.bytes().filter(|&b| b == b'.').count() == 2
        && letters == 0;
    token.bytes().all(allowed) && !timestamp && (version || letters >= 1 && digits >= 2 && token.len() >= 5)
}

#[allow(clippy::expect_used, reason = "the patterns are constants and every test run compiles them")]
static STRICT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?-u)\b(?:ERROR|FATAL|FAILED|FAILURE|CRITICAL|PANIC|EXCEPTION)\b",
        r"|(?-u)[A-Za-z](?:Error|Exception)\b",
        r"|(?-u)\b(?:[Ee]rror|[Ff]atal|[Ff]ailed|[Pp]anic|[Ee]xception)(?: \w+)?:",
        r"|Traceback \(most recent|panicked at|(?-u)\bexit(?:ed with)? (?:code|status) [1-9]",
    ))
    .expect("a constant pattern")
});

#[allow(clippy::expect_used, reason = "the patterns are constants and every test run compiles them")]
static LOOSE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i-u:error|exception|\bfatal|\bfail(?:ed|ure|ing)|\bpanic|traceback|\bcritical\b|\babort(?:ed|ing)|segfault",
        r"|\bdenied\b|\brefused\b|timed out|\btimeout\b|unreachable|\bcannot\b|unable to|not found|\bcorrupt)",
        r"|(?-u)\bexit(?:ed with)? (?:code|status) [1-9]",
    ))
    .expect("a constant pattern")
});

fn error_lines(text: &str, sense: ErrorSense) -> Vec<Span> {
    let pattern: &Regex = if sense == ErrorSense::Strict { &STRICT } else { &LOOSE };
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(found) = pattern.find_at(text, from) {
        let start = text[from..found.start()].rfind('\n').map_or(from, |at| from + at + 1);
        let end = text[found.start()..].find('\n').map_or(text.len(), |at| found.start() + at);
        spans.push(Span { range: error_range(text, start..end, found.start()), kind: SpanKind::Error });
        from = end;
        if from >= text.len() {
            break;
        }
    }
    spans
}

/// The line without the blanks around it; of an overlong line, the part from shortly before the word of failure.
fn error_range(text: &str, line: Range<usize>, word: usize) -> Range<usize> {
    let start = line.end - text[line.clone()].trim_start().len();
    let end = start + text[start..line.end].trim_end().len();
    if end - start <= LONGEST_ERROR {
        return start..end;
    }
    let first = text.ceil_char_boundary(word.saturating_sub(LONGEST_ERROR / 4).max(start));
    first..text.floor_char_boundary((first + LONGEST_ERROR).min(end))
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
