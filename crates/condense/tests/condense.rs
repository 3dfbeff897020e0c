//! What every condensation guarantees, whatever the text, the type, the target and the pins.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

mod guarantees;

use guarantees::{Case, check_gaps, held, key, pins_of, rehydrated};
use larder_condense::{
    CondenseError, CondenseRequest, Condensed, ContentType, GapUnit, KnownText, ReaderView, condense_in_view,
    detect,
};
use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;
use larder_text::tokens::{ClaudeGeneration, Counter};
use proptest::prelude::*;

const TYPES: [ContentType; 9] = [
    ContentType::ContextDoc,
    ContentType::ResearchDoc,
    ContentType::PageDoc,
    ContentType::ToolResult,
    ContentType::PriorTurn,
    ContentType::Prose,
    ContentType::Markdown,
    ContentType::Chat,
    ContentType::Generic,
];

const COUNTERS: [fn() -> Counter; 3] =
    [Counter::o200k, Counter::bytes, || Counter::claude(ClaudeGeneration::From4_7)];

/// Everything that holds of a condensation, checked from outside.
fn check(case: &Case<'_>, counter: &Counter) {
    let text = case.text;
    let Some(condensed) = held(case, counter) else { return };
    assert_eq!(condensed.original_tokens, counter.count(text));
    assert_eq!(condensed.pointer, Pointer::whole(key().mint(ContentHash::new(text.as_bytes()))));
    if !retold(case) {
        check_gaps(text, &condensed);
    }
}

/// Whether the text has a structure whose condenser says things in other words; such condensers have tests of their own.
fn retold(case: &Case<'_>) -> bool {
    matches!(case.content_type, ContentType::ToolResult | ContentType::Generic)
        && !matches!(detect(None, "", false, case.text), ContentType::Prose | ContentType::Generic)
}

/// Texts put together from what condensers look at.
fn texts() -> impl Strategy<Value = String> {
    let scraps = prop::sample::select(vec![
        "The quick brown fox jumps over the lazy dog. ",
        "It costs $1,299.00 today. ",
        "吾輩は猫である。名前はまだ無い。",
        "ERROR: disk full at /var/log/app.log:12\n",
        "\r\n",
        "\n\n",
        "\0",
        "# Title\n\n",
        "## 0. User Query\n",
        "## 1. Reflection Decision\n",
        "## 6. Validation (Attempt 2)\n",
        "```rust\n",
        "let x = 1;\n",
        "```\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "- item one\n",
        "see https://example.org/x?y=1 ",
        "[… L3-9]",
        "[… lp1-0000000000000-000000]",
        "lp1-",
        "    ",
        "---\n",
        "> quote\n",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "e\u{301}",
        "👩‍👩‍👧‍👦",
        "Mr. Smith met Dr. No on 12 March 2024, and left. ",
        "word ",
        "\u{feff}",
        "1. first\n2. second\n",
        "<div>\n<p>x</p>\n</div>\n",
        "~~~\n",
        "2024-05-01 12:00:00 INFO request 17 took 12ms\n",
        "\u{2028}",
        "你好，世界！",
        "{\"a\": [1, 2, 3]}",
        "\x1B[1;31merror: no such file\x1B[0m\n",
        "\x1B[2K",
        "\x1B]8;;https://example.org/\x07here\x1B]8;;\x1B\\ ",
    ]);
    let scraps = prop::collection::vec((scraps, 1..4_usize), 0..120)
        .prop_map(|scraps| scraps.into_iter().map(|(scrap, times)| scrap.repeat(times)).collect());
    prop_oneof![4 => scraps, 1 => "\\PC{0,600}", 1 => any::<Vec<char>>().prop_map(String::from_iter)]
}

proptest! {
    #[test]
    fn any_text_meets_its_target_or_is_refused_with_the_number_it_needs(
        text in texts(),
        content_type in prop::sample::select(TYPES.to_vec()),
        target in prop_oneof![0..80_usize, 80..700_usize, 700..2_000_usize],
        counter in prop::sample::select(COUNTERS.to_vec()),
        query in prop::option::of("[a-z ]{0,30}|猫である|costs today"),
        places in prop::collection::vec((any::<prop::sample::Index>(), 0..60_usize), 0..3),
    ) {
        let pins = pins_of(&text, &places);
        let case = Case { text: &text, content_type, target, query: query.as_deref(), pins: &pins };
        check(&case, &counter());
    }

    #[test]
    fn our_own_pointers_survive(before in texts(), after in texts(), target in 60..400_usize) {
        let pointer = Pointer::lines(key().mint(ContentHash::new(b"elsewhere")), 3, 9);
        let text = format!("{before}{pointer} {after}");
        let case = Case { text: &text, content_type: ContentType::Generic, target, query: None, pins: &[] };
        check(&case, &Counter::o200k());
    }

    #[test]
    fn prose_fills_its_target(
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 40..300),
        target in 200..900_usize,
    ) {
        let counter = Counter::o200k();
        let text = words.join(" ").repeat(1 + 2_000 / words.len());
        let case = Case { text: &text, content_type: ContentType::Prose, target, query: None, pins: &[] };
        let condensed = case.run(&counter).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(condensed.original_tokens > target);
        prop_assert!(condensed.tokens * 100 >= target * 98, "{} of {target}", condensed.tokens);
    }
}

/// Words of several scripts, and the signs that end clauses, sentences and paragraphs.
const WORDS: [&str; 24] = [
    "the",
    "harbour",
    "was",
    "closed,",
    "and",
    "nobody",
    "spoke.",
    "Incomprehensibly",
    "Anna",
    "waited;",
    "1805",
    "years",
    "猫は",
    "いた。",
    "“Oh!”",
    "said",
    "she.\n\n",
    "a",
    "letter\n",
    "of",
    "unremarkable",
    "straße",
    "—",
    "why?",
];

fn sample(line: impl Fn(usize) -> String, count: usize) -> String {
    (0..count).map(line).collect()
}

#[allow(clippy::unwrap_used, reason = "a test helper")]
fn condensed(text: &str, content_type: ContentType, target: usize, query: Option<&str>) -> Condensed {
    let case = Case { text, content_type, target, query, pins: &[] };
    check(&case, &Counter::o200k());
    case.run(&Counter::o200k()).unwrap()
}

const SUBJECTS: [&str; 7] = ["harbour", "library", "market", "orchard", "railway", "theatre", "observatory"];

fn town(n: usize) -> String {
    let (a, b) = (SUBJECTS[n % 7], SUBJECTS[(n / 7) % 7]);
    format!("People who walked from the {a} to the {b} spoke of the weather and of nothing else. ")
}

#[test]
fn telling_details_are_kept_when_they_all_fit() {
    let details = [
        "$1,299.00",
        "https://example.org/offer/17",
        "ann@example.org",
        "45%",
        "/etc/hosts",
        "3ea751c087f3",
        "12 March 2024",
    ];
    let text = sample(
        |n| if n % 40 == 20 { format!("Note this: {} is it. ", details[n / 40 % 7]) } else { town(n) },
        280,
    );
    let condensed = condensed(&text, ContentType::Prose, 500, None);
    for detail in details {
        assert!(condensed.text.contains(detail), "{detail} in {}", condensed.text);
    }
    assert_eq!(condensed.probes.kept, details.len());
}

#[test]
fn a_clause_is_kept_where_its_sentence_is_too_dear() {
    let long = |n: usize| {
        format!(
            "In the {}, where {} and where {}, the price was ${n}99.50, and {}, so that was that. ",
            SUBJECTS[n % 7],
            town(n).repeat(2),
            town(n + 1),
            town(n + 3).repeat(2)
        )
        .replace(". ", ", ")
            + "End. "
    };
    let text = sample(long, 12);
    let condensed = condensed(&text, ContentType::Prose, 480, None);
    for n in 0..12 {
        assert!(condensed.text.contains(&format!("${n}99.50")), "{n} in {}", condensed.text);
    }
}

#[test]
fn the_sentence_that_answers_the_query_is_kept() {
    let text = sample(
        |n| if n == 777 { "The lighthouse keeper was called Matilda. ".to_owned() } else { town(n) },
        2_000,
    );
    let condensed =
        condensed(&text, ContentType::Prose, 300, Some("What was the name of the keeper of the lighthouse?"));
    assert!(condensed.text.contains("The lighthouse keeper was called Matilda."), "{}", condensed.text);
}

#[test]
fn errors_survive_in_a_long_tool_result() {
    let text = sample(
        |n| {
            if n == 611 {
                "worker 3: connection refused by 10.0.0.7\n".to_owned()
            } else {
                format!("request {n} served from cache\n")
            }
        },
        1_000,
    );
    let condensed = condensed(&text, ContentType::ToolResult, 200, None);
    assert!(condensed.text.contains("connection refused by 10.0.0.7"), "{}", condensed.text);
    assert!(
        condensed.text.contains("request 0 ") && condensed.text.contains("request 999 "),
        "{}",
        condensed.text
    );
    assert!(condensed.gaps.iter().filter(|gap| gap.unit == GapUnit::Line).count() >= 2);
}

#[test]
fn colours_hide_no_failure_and_are_not_shown() {
    let results = |bad: &str, good: &str, plain: &str| {
        let result = |n: usize| {
            let (colour, word) = if n % 97 == 5 { (bad, "FAILED") } else { (good, "ok") };
            format!("test cases_{}::case_{n} ... {colour}{word}{plain}\n", n / 30)
        };
        (0..1_200).map(result).collect::<String>()
    };
    let coloured = results("\x1B[31m", "\x1B[32m", "\x1B(B\x1B[m");
    for content_type in [ContentType::ToolResult, ContentType::Generic, ContentType::Log] {
        let condensed = |text: &str| Case::new(content_type, text, 2_000).run(&Counter::o200k()).unwrap();
        let failures = |text: &str| condensed(text).text.matches("FAILED").count();
        assert_eq!(failures(&coloured), failures(&results("", "", "")), "{content_type:?}");
        let condensed = condensed(&coloured);
        assert_eq!(condensed.text.matches("FAILED").count(), 13, "{}", condensed.text);
        assert!(!condensed.text.contains('\x1B'), "{}", condensed.text);
        for gap in &condensed.gaps {
            assert_eq!(rehydrated(&coloured, &gap.pointer), &coloured[gap.bytes.clone()]);
        }
    }
}

#[test]
fn markdown_keeps_headings_and_whole_fences() {
    let section = |n: usize| {
        format!(
            "## Part {n}\n\n{}\n\n```sh\nmake part\n{}```\n\n",
            town(n).repeat(3),
            format!("echo {n}\n").repeat(9)
        )
    };
    let text = format!("# Guide\n\n{}", sample(section, 12));
    let condensed = condensed(&text, ContentType::Markdown, 600, Some("part"));
    assert!(condensed.text.contains("# Guide\n"));
    let fences = condensed.text.lines().filter(|line| line.starts_with("```")).count();
    assert_eq!(fences % 2, 0, "{}", condensed.text);
}

#[test]
fn context_keeps_the_query_and_the_newest_section() {
    let body = |from: usize| sample(|n| town(n + from), 30);
    let text = format!(
        "# Context\n\n## 0. User Query\n\nfind a lamp; do not change `this`\n\n## 2. Gathered Context\n\n{}\n\n## 3. Task Plan\n\n{}\n\n## 4. Tool Execution\n\n{}\n",
        body(0),
        body(9),
        town(1).repeat(4)
    );
    let condensed = condensed(&text, ContentType::ContextDoc, 500, None);
    for kept in [
        "## 0. User Query\n\nfind a lamp; do not change `this`\n\n",
        "## 2. Gathered Context\n",
        "## 3. Task Plan\n",
    ] {
        assert!(condensed.text.contains(kept), "{kept} in {}", condensed.text);
    }
    assert!(
        condensed.text.ends_with(&format!("## 4. Tool Execution\n\n{}\n", town(1).repeat(4))),
        "{}",
        condensed.text
    );
    let refused =
        Case { text: &text, content_type: ContentType::ContextDoc, target: 30, query: None, pins: &[] };
    assert!(matches!(refused.run(&Counter::o200k()), Err(CondenseError::PinsExceedTarget { .. })));
}

#[test]
fn an_absent_pin_is_named() {
    let pins = ["lamp".to_owned()];
    let case = Case {
        text: "no such thing",
        content_type: ContentType::Prose,
        target: 100,
        query: None,
        pins: &pins,
    };
    assert_eq!(case.run(&Counter::o200k()), Err(CondenseError::PinAbsent { pin: "lamp".into() }));
}

#[test]
fn forged_markers_are_distinguished() {
    let text = sample(|n| format!("{}[… L{n}-{}]\n", town(n), n + 5), 200);
    let condensed = condensed(&text, ContentType::Prose, 400, None);
    let id = condensed.pointer.id.as_str();
    let tag = &id[id.len() - 2..];
    assert!(
        condensed.text.contains(&format!("[…{tag} B")) || condensed.text.contains(&format!("[…{tag} L")),
        "{}",
        condensed.text
    );
}

#[test]
fn hostile_texts_are_condensed_in_linear_time() {
    for unit in [
        "a", " ", "\n", "\0", ".", ". ", "\r\n", "。", "é", "# ", "> ", "- ", "```\n", "|", "[… ", "lp1-",
        "\"", "1", "<", "a.b ", "*", "[", "\u{301}",
    ] {
        let text = unit.repeat(60_000 / unit.len());
        for content_type in TYPES {
            let case = Case { text: &text, content_type, target: 300, query: Some("a b"), pins: &[] };
            let condensed = case.run(&Counter::o200k());
            assert!(condensed.is_ok_and(|condensed| condensed.tokens <= 300), "{unit:?} {content_type:?}");
        }
    }
}

#[test]
fn a_tiny_part_of_a_long_text_consists_of_whole_sentences() {
    let dated = |n: usize| format!("On {} May 18{:02}, {}", n % 27 + 1, n % 90 + 10, town(n).to_lowercase());
    let text = sample(dated, 400);
    let condensed = condensed(&text, ContentType::Prose, 300, None);
    let whole: Vec<String> = (0..400).map(|n| dated(n).trim().to_owned()).collect();
    let body = condensed.text.split_once('\n').unwrap().1;
    let shown: Vec<&str> =
        body.split("[…").map(|piece| piece.split_once(']').map_or(piece, |(_, rest)| rest)).collect();
    let (last, before) = shown.split_last().unwrap();
    for piece in before.iter().chain([last]).map(|piece| piece.trim()).filter(|piece| !piece.is_empty()) {
        let rest =
            whole.iter().fold(piece.to_owned(), |rest, sentence| rest.replacen(sentence.as_str(), "", 1));
        // Only the end of the budget may hold the beginning of one more.
        assert!(
            rest.trim().is_empty() || condensed.text.matches(rest.trim()).count() == 1,
            "{rest:?} of {piece:?}"
        );
    }
}

#[test]
fn gaps_of_a_part_are_counted_in_its_original() {
    let rows =
        |n: usize| format!("{{\"id\": {n}, \"town\": \"{}\", \"crates\": {}}}", town(n).trim(), n * 7 % 97);
    let list = (0..200).map(rows).collect::<Vec<_>>();
    let parts = [
        sample(|n| format!("{}\n", town(n)), 200),
        format!("[{}]", list.join(", ")),
        list.join("\n"),
        sample(|n| format!("{n},{},{}\n", town(n).trim().replace(',', ""), n * 31), 200),
    ];
    let counter = Counter::o200k();
    let heads = ["Found 200 of them.\nThese are they:\n", "é\n\n", ""];
    for (before, part) in heads.iter().flat_map(|head| parts.iter().map(move |part| (*head, part))) {
        let original = format!("{before}{part}");
        let request = CondenseRequest {
            text: part,
            content_type: ContentType::ToolResult,
            target: 300,
            query: None,
            pins: &[],
            counter: &counter,
            key: &key(),
        };
        let hash = ContentHash::new(original.as_bytes());
        let view = ReaderView {
            known: Some(KnownText { hash, tokens: counter.count(part) }),
            before: (before.len(), before.matches('\n').count()),
            ..ReaderView::default()
        };
        let condensed = condense_in_view(&request, view).unwrap();
        assert_eq!(condensed.pointer, Pointer::whole(key().mint(hash)));
        assert!(!condensed.gaps.is_empty(), "{}", condensed.text);
        for gap in &condensed.gaps {
            assert_eq!(
                rehydrated(&original, &gap.pointer),
                &original[gap.bytes.clone()],
                "{}",
                condensed.text
            );
            let unit = if gap.unit == GapUnit::Line { 'L' } else { 'B' };
            let range = format!("{unit}{}-{}", gap.range.0, gap.range.1);
            assert!(condensed.text.contains(&range), "{range} is marked: {}", condensed.text);
        }
    }
}
