//! Classifies tokens with digits: dates, prices, quantities, hashes, ids, or plain numbers.
//!
//! Knows a token and its neighbours; does not know how tokens are found.

use std::ops::Range;

use super::{SpanKind, trimmed};
use larder_text::months;

/// Classifies a token with a digit, which its neighbours may turn into a date, a price or a quantity.
pub(super) fn classify_number(
    text: &str,
    previous: &Range<usize>,
    range: Range<usize>,
) -> (Range<usize>, SpanKind) {
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

/// `$1,299.00`, `-12ms`, `45%`: an optional sign and currency, digits with separators, and a suffix.
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

fn is_unit(word: &str) -> bool {
    UNITS.contains(&word)
}

fn is_month(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',']).to_ascii_lowercase();
    word.len() >= 3
        && months::ENGLISH.iter().any(|month| *month == word || (word.len() <= 4 && month.starts_with(&word)))
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

/// `12 March 2024`, `March 12, 2024`, `July, 1805`: this number and the adjacent month.
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

/// Letters and digits together, as in ids, versions and serial numbers; but not a timestamp, an ordinal (`15th`) or a
/// paragraph number (`1.E.8`).
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
    let ordinal = ["th", "st", "nd", "rd"].iter().any(|end| token.ends_with(end)) && letters == 2;
    let counts = |part: &str| part.bytes().all(|b| b.is_ascii_digit()) || part.len() == 1;
    let numbering = letters > 0 && token.split('.').all(counts);
    let plain = token.bytes().all(allowed) && !timestamp && !ordinal && !numbering && !token.contains("--");
    plain && (version || letters >= 1 && digits >= 2 && token.len() >= 5)
}
