//! Numbers, money, times and names as people read them. Text written by clients goes through here, escaped.

use larder_models::price::Usd;
use larder_store::Timestamp;
use larder_text::words::plural;
use maud::{Markup, html};

/// A whole number with separated thousands: `12,345`.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with its noun, which gets an s unless it is one.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", number(count), plural(count))
}

/// A number in few characters: `999`, `12.3k`, `4.6M`.
pub fn short(number: u64) -> String {
    let scaled = |unit: f64, letter: &str| {
        let value = number as f64 / unit;
        if value < 100.0 { format!("{value:.1}{letter}") } else { format!("{value:.0}{letter}") }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => scaled(1e3, "k"),
        1_000_000..1_000_000_000 => scaled(1e6, "M"),
        _ => scaled(1e9, "G"),
    }
}

/// Dollars with the digits that matter: `$12.34`, `$0.0105`.
pub fn money(amount: Usd) -> String {
    dollars(amount.picos() as f64 / 1e12)
}

/// The amount saved; negative if Larder cost more.
pub fn money_saved(cost: Usd, without: Usd) -> String {
    let amount = dollars(cost.picos().abs_diff(without.picos()) as f64 / 1e12);
    if cost > without { format!("−{amount}") } else { amount }
}

fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0.00".to_owned(),
        ..0.000_1 => "<$0.0001".to_owned(),
        ..1.0 => format!("${amount:.4}"),
        _ => format!("${amount:.2}"),
    }
}

/// A time span from microseconds: `340 µs`, `12 ms`, `1.2 s`.
pub fn span(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

/// How much `part` is of `whole`: `43 %`.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".to_owned();
    }
    let share = part as f64 / whole as f64 * 100.0;
    if share > 0.0 && share < 1.0 { "<1 %".to_owned() } else { format!("{share:.0} %") }
}

/// A share as an SVG length: `12.345%`; 0 if `whole` is 0.
pub fn share(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 };
    format!("{:.3}%", share.min(100.0))
}

/// A moment, in UTC.
pub fn moment(time: Timestamp) -> Markup {
    let exact = time.to_string();
    let (day, clock) = exact.split_once('T').unwrap_or((&exact, ""));
    let clock = clock.split('.').next().unwrap_or_default();
    html! { time datetime=(exact) title={ (exact) " (UTC)" } { span.day { (day) } " " (clock) } }
}

/// A name chosen by others: it keeps its own writing direction and may wrap anywhere.
pub fn name(text: &str) -> Markup {
    html! { bdi.name { (text) } }
}

/// The last digits of an id, which differ between ids created at the same time.
pub fn short_id(id: &str) -> &str {
    let from = id.len().saturating_sub(8);
    id.get(from..).unwrap_or(id)
}

/// A segment of an address, with every reserved character percent-encoded.
pub fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_money_and_spans_are_formatted_for_people() {
        let written = [0, 999, 1_000, 12_345, 999_999, 1_234_567].map(number);
        assert_eq!(written, ["0", "999", "1,000", "12,345", "999,999", "1,234,567"]);
        let written = [0, 999, 1_000, 12_345, 123_456, 4_600_000].map(short);
        assert_eq!(written, ["0", "999", "1.0k", "12.3k", "123k", "4.6M"]);
        let usd = Usd::from_picos;
        assert_eq!(money(usd(0)), "$0.00");
        assert_eq!(money(usd(10_500_000_000)), "$0.0105");
        assert_eq!(money(usd(10)), "<$0.0001");
        assert_eq!(money(usd(12_340_000_000_000)), "$12.34");
        assert_eq!(money_saved(usd(2_000_000_000_000), usd(500_000_000_000)), "−$1.50");
        assert_eq!([340, 12_340, 1_240_000].map(span), ["340 µs", "12.3 ms", "1.2 s"]);
        assert_eq!([(1, 0), (1, 1_000), (43, 100)].map(|(a, b)| percent(a, b)), ["0 %", "<1 %", "43 %"]);
        assert_eq!(share(1, 3), "33.333%");
    }

    #[test]
    fn names_stay_within_their_address_segment() {
        assert_eq!(segment("../a?b#c/d%e é"), "%2E%2E%2Fa%3Fb%23c%2Fd%25e%20%C3%A9");
        assert_eq!(segment("plain-ID_9~"), "plain-ID_9~");
    }
}
