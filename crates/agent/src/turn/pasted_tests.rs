//! Tests of dividing a query into the user's words and what was pasted.

use super::*;

fn divided(typed: &str) -> (String, Vec<(&'static str, String)>) {
    let DividedQuery { words, pasted } = divide(typed, &Counter::cl100k());
    let pasted = pasted.into_iter().map(|pasted| (pasted.kind, typed[pasted.bytes].to_owned())).collect();
    (words, pasted)
}

/// Prose of about `words` words that asks nothing.
fn prose(words: usize) -> String {
    let sentence =
        |number: usize| format!("The {number} th crate went from the harbour to the old granary. ");
    (0..words / 11 + 1).map(sentence).collect::<String>().trim_end().to_owned()
}

fn mail(greeting: &str) -> String {
    format!("{greeting}\n\n{}\n\nBest wishes,\nClara", prose(400))
}

#[test]
fn a_short_query_stays_as_it_is() {
    for typed in ["Which one?", "Read this:\n\n> quoted\n\n```\nfenced\n```\n", "  spaces\n\n"] {
        assert_eq!(divided(typed), (typed.to_owned(), Vec::new()));
    }
}

#[test]
fn what_is_separated_leaves_the_users_words() {
    let log: String =
        (0..200).map(|n| format!("2026-01-05T10:00:{:02}Z INFO worker {n} took {n} ms\n", n % 60)).collect();
    let log = log.trim_end();
    let listing: String = (0..200).map(|n| format!("- item {n}, {n}0 pieces\n")).collect();
    let listing = listing.trim_end();
    let headers = format!("From: Clara\nTo: Ben\nSubject: Crates\n\n{}", prose(400));
    let quoted = prose(400).split(". ").map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n");
    for (ask, pasted, kind) in [
        ("What does she want?", mail("Dear Ben,").as_str(), "mail"),
        ("Was will sie?", mail("Sehr geehrter Herr Bauer,").as_str(), "mail"),
        ("What does she want?", headers.as_str(), "mail"),
        ("Why does it fail?", log, "log"),
        ("Welche fehlen?", listing, "listing"),
        ("What does she want?", quoted.as_str(), "mail"),
        ("Summarize this:", prose(400).as_str(), "text"),
        ("Explain.", &format!("```\n{}\n```", prose(400)), "text"),
    ] {
        let (words, found) = divided(&format!("{ask}\n\n{pasted}"));
        assert_eq!((words.as_str(), found), (ask, vec![(kind, pasted.to_owned())]));
    }
    let (words, found) = divided(&format!("{headers}\n\nWhat does she want?"));
    assert_eq!((words.as_str(), found), ("What does she want?", vec![("mail", headers.clone())]));
    let both = format!("Compare the log\n\n{log}\n\nwith the list\n\n{listing}\n\nand name what is missing.");
    let (words, found) = divided(&both);
    assert_eq!(words, "Compare the log\n\nwith the list\n\nand name what is missing.");
    assert_eq!(found.len(), 2);
}

#[test]
fn where_nothing_separates_the_first_paragraph_and_what_asks_are_own_words() {
    let typed = format!("I found this.\n\n{} Is that true? {}\n\nWho wrote it?", prose(300), prose(300));
    let (words, found) = divided(&typed);
    assert_eq!(words, "I found this.\n\nIs that true?\n\nWho wrote it?");
    assert_eq!(found, [("text", typed.clone())]);
    let block = prose(3_000);
    let (words, found) = divided(&block);
    assert!(block.starts_with(&words) && Counter::cl100k().count(&words) <= OWN_WORDS, "{words}");
    assert_eq!(found, [("text", block.clone())]);
    let (words, _) = divided(&"x".repeat(50_000));
    assert!(Counter::cl100k().count(&words) <= OWN_WORDS);
}

proptest::proptest! {
    #[test]
    fn any_query_is_divided_within_its_limit(typed in "[a-zäß?:>\\-`\" \n]{0,60}", times in 1_usize..200) {
        let typed = typed.repeat(times);
        let counter = Counter::cl100k();
        let divided = divide(&typed, &counter);
        proptest::prop_assert!(counter.count(&divided.words) <= OWN_WORDS + 8);
        let mut end = 0;
        for pasted in &divided.pasted {
            proptest::prop_assert!(pasted.bytes.start >= end && typed.get(pasted.bytes.clone()).is_some());
            end = pasted.bytes.end;
        }
        proptest::prop_assert_eq!(divided.pasted.is_empty(), divided.words == typed);
    }
}
