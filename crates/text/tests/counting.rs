//! Counting tokens through the public API: by section, and in time that grows with the text.
#![allow(clippy::unwrap_used, reason = "a test may stop and say why")]

use std::time::{Duration, Instant};

use larder_text::tokens::Counter;

#[test]
fn a_document_is_counted_in_total_and_by_section() {
    let counter = Counter::cl100k();
    let sections = [("§0", "Where is the ledger?"), ("§1", "**Decision:** PROCEED"), ("§1", "It is clear.")];
    let breakdown = counter.count_document(&sections);
    let expected = [
        ("§0", counter.count(sections[0].1)),
        ("§1", counter.count(sections[1].1) + counter.count(sections[2].1)),
    ];
    let found = breakdown.by_section.iter().map(|(name, tokens)| (name.as_str(), *tokens));
    assert!(found.eq(expected), "R0-21.3: {breakdown:?}");
    assert_eq!(breakdown.total, expected[0].1 + expected[1].1, "R0-21.3");
}

/// Texts without a place to divide them at: an algorithm whose time grows with the square of such a text needs hours for
/// eight megabytes, a linear one less than a second.
#[test]
fn eight_megabytes_of_any_text_are_counted_in_time() {
    for unit in ["a", " ", "!", "7", "aA", "\u{301}", "漢", "the ledger "] {
        let text = unit.repeat((8 << 20) / unit.len());
        let began = Instant::now();
        assert!(Counter::cl100k().count(&text) > 1_000);
        assert!(began.elapsed() < Duration::from_secs(60), "R0-21.2: {unit:?} took {:?}", began.elapsed());
    }
}
