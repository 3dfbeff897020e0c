//! Tests of what appears around a model's words.

use super::*;

fn key() -> PointerKey {
    PointerKey::new([7; 32])
}

fn author() -> Author {
    Author { model: "m".into(), recipe: "compress/generic".into(), version: "0".into() }
}

fn request<'a>(
    text: &'a str,
    target: usize,
    counter: &'a Counter,
    key: &'a PointerKey,
) -> CondenseRequest<'a> {
    CondenseRequest { text, content_type: ContentType::Prose, target, query: None, pins: &[], counter, key }
}

#[test]
fn stretches_tile_a_context_and_copy_query_newest_and_headings() {
    let text = "# Context\n\n## 0. User Query\nfind a lamp\n\n## 1. Reflection Decision\nlong talk\n\n## 2. Gathered Context\nnewest\n";
    let found = segments(text, ContentType::ContextDoc);
    let joined: String = found.iter().map(|stretch| &text[stretch.bytes.clone()]).collect();
    assert_eq!(joined, text);
    let free: Vec<&str> = found
        .iter()
        .filter(|stretch| !stretch.verbatim)
        .map(|stretch| &text[stretch.bytes.clone()])
        .collect();
    assert_eq!(free, ["long talk\n\n"]);
    let free = segments(text, ContentType::PriorTurn).into_iter().filter(|stretch| !stretch.verbatim);
    assert_eq!(free.count(), 2, "an earlier turn's newest section may be rewritten");
    assert_eq!(segments("abc", ContentType::Prose), [Segment { bytes: 0..3, verbatim: false }]);
}

#[test]
fn missing_names_errors_and_prices_before_dates() {
    let text = "On 2024-03-05 it cost $12.50.\nERROR: disk full\nSee https://a.example/b";
    let found = missing(text, "It cost $12.50.");
    assert_eq!(found.first(), Some(&"ERROR: disk full"), "{found:?}");
    assert!(!found.contains(&"$12.50") && found.contains(&"https://a.example/b"), "{found:?}");
}

#[test]
fn numbers_that_are_rounded_or_made_up_are_found() {
    assert_eq!(invented("It took 1,243 ms.", "It took 1,243 ms."), None);
    assert!(invented("It took 1,243 ms.", "It took about 1,200 ms.").is_some());
    assert!(invented("See the page.", "See https://made.up/page").is_some());
    assert_eq!(invented("First this, then that.", "1. this\n2. that"), None, "a list counts for itself");
}

#[test]
fn words_are_taken_only_with_target_pins_and_pointers_kept() {
    let (counter, key) = (Counter::cl100k(), key());
    let pointer = key.mint(ContentHash::new(b"else"));
    let text = format!("{} The answer is blue. {pointer}\n", "Words upon words upon words. ".repeat(40));
    let pins = ["The answer is blue.".to_owned()];
    let request = CondenseRequest { pins: &pins, ..request(&text, 120, &counter, &key) };
    let good = format!("Words. The answer is blue. {pointer}");
    let condensed = accept(&request, &good, author()).unwrap();
    assert!(condensed.tokens <= 120 && condensed.tokens == counter.count(&condensed.text));
    assert!(condensed.text.contains(&good) && condensed.text.contains(&condensed.pointer.to_string()));
    assert_eq!((condensed.author, condensed.probes.lost), (Some(author()), 0));
    let lost = [format!("Words. {pointer}"), "Words. The answer is blue.".to_owned()];
    lost.iter().for_each(|words| assert_eq!(accept(&request, words, author()), Err(RewriteError::PinLost)));
    let long = format!("{good} {}", "and so on ".repeat(60));
    assert_eq!(accept(&request, &long, author()), Err(RewriteError::TooLong));
}

#[test]
fn a_rewrite_longer_than_the_original_is_rejected_at_any_target() {
    let (counter, key) = (Counter::cl100k(), key());
    let request = request("short", 500, &counter, &key);
    assert_eq!(accept(&request, "short, and then much more", author()), Err(RewriteError::TooLong));
}

#[test]
fn a_conversation_keeps_its_five_headings() {
    let (counter, key) = (Counter::cl100k(), key());
    let text = "user: do it\nassistant: done\n".repeat(60);
    let request = CondenseRequest { content_type: ContentType::Chat, ..request(&text, 200, &counter, &key) };
    let words = HISTORY_HEADINGS.join("\nNone.\n");
    assert!(accept(&request, &words, author()).is_ok());
    for wrong in
        [words.replace("## Key Decisions\n", ""), format!("{words}\n## Task Summary\n"), String::new()]
    {
        assert_eq!(accept(&request, &wrong, author()), Err(RewriteError::Unparsable));
    }
}
