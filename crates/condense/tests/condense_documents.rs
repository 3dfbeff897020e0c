//! What page captures, research notes, earlier turns and tool results keep, by requirement row.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use larder_condense::{CondenseRequest, Condensed, ContentType, condense, detect};
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

fn run(content_type: ContentType, text: &str, target: usize, query: Option<&str>) -> Condensed {
    let (counter, key) = (Counter::o200k(), PointerKey::new([7; 32]));
    let pins = &[];
    let condensed =
        condense(&CondenseRequest { text, content_type, target, query, pins, counter: &counter, key: &key })
            .unwrap();
    assert!(
        condensed.tokens <= target && condensed.original_tokens > target,
        "{} of {target}",
        condensed.tokens
    );
    let mut at = 0;
    for gap in &condensed.gaps {
        assert!(condensed.text.contains(&text[at..gap.bytes.start]));
        at = gap.bytes.end;
    }
    condensed
}

fn town(n: usize) -> String {
    const SUBJECTS: [&str; 7] =
        ["harbour", "library", "market", "orchard", "railway", "theatre", "observatory"];
    let (a, b) = (SUBJECTS[n % 7], SUBJECTS[(n / 7) % 7]);
    format!("People who walked from the {a} to the {b} spoke of the weather and of nothing else. ")
}

fn towns(from: usize, count: usize) -> String {
    (from..from + count).map(town).collect()
}

fn zone(kind: &str, confidence: f64, fields: usize, sentences: usize) -> String {
    let fields: Vec<String> =
        (0..fields).map(|n| format!("\"{kind}_field_{n}\": \"value {n} of {kind}\"")).collect();
    format!(
        "{{\"kind\": \"{kind}\", \"confidence\": {confidence}, \"fields\": {{{}}}, \"raw_text\": \"{}\"}}",
        fields.join(", "),
        towns(fields.len(), sentences)
    )
}

fn capture(zones: &[String]) -> String {
    format!(
        "{{\"url\": \"https://shop.example/lamp\", \"captured_at\": \"2026-01-02T03:04:05Z\", \"zones\": [\n{}\n]}}\n",
        zones.join(",\n")
    )
}

#[test]
fn r0_22_13_fields_of_a_zone_are_shown_all_or_not_at_all() {
    let zones: Vec<String> = ["other", "pricing", "reviews", "navigation", "product_info"]
        .map(|kind| zone(kind, 0.9, 25, 30))
        .into();
    let text = capture(&zones);
    for target in [300, 500, 900, 1_500, 2_200] {
        let condensed = run(ContentType::PageDoc, &text, target, None);
        for kind in ["other", "pricing", "reviews", "navigation", "product_info"] {
            let shown =
                (0..25).filter(|n| condensed.text.contains(&format!("\"value {n} of {kind}\""))).count();
            assert!(shown == 0 || shown == 25, "{shown} fields of {kind} at {target}: {}", condensed.text);
        }
    }
}

#[test]
fn r0_22_15_zones_are_kept_in_the_order_of_their_kinds() {
    let kinds = ["unknown", "navigation", "reviews", "product_info", "pricing"];
    let zones: Vec<String> = kinds.map(|kind| zone(kind, 0.9, 25, 0)).into();
    let text = capture(&zones);
    let mut before = 0;
    for target in [500, 1_000, 1_400] {
        let condensed = run(ContentType::PageDoc, &text, target, None);
        let shown: Vec<&str> = ["pricing", "product_info", "reviews", "navigation", "unknown"]
            .into_iter()
            .filter(|kind| condensed.text.contains(&format!("value 24 of {kind}")))
            .collect();
        assert!(
            ["pricing", "product_info", "reviews", "navigation", "unknown"].starts_with(&shown),
            "{shown:?} at {target}"
        );
        assert!(shown.len() >= before && !shown.is_empty(), "{shown:?} at {target}");
        before = shown.len();
    }
}

#[test]
fn r0_22_16_to_18_confidence_decides_what_is_shown() {
    let text = capture(&[
        zone("pricing", 0.8, 4, 40),
        zone("product_info", 0.79, 4, 40),
        zone("reviews", 0.49, 4, 40),
    ])
    .replace("product_info_field_2", "product_name")
    .replace("value 2 of product_info", "Lamp 2000");
    let condensed = run(ContentType::PageDoc, &text, 1_500, None);
    for kept in ["value 0 of pricing", "value 3 of pricing", "Lamp 2000", "https://shop.example/lamp"] {
        assert!(condensed.text.contains(kept), "{kept} in {}", condensed.text);
    }
    for dropped in ["value 0 of reviews", "value 2 of reviews"] {
        assert!(!condensed.text.contains(dropped), "{dropped} in {}", condensed.text);
        let at = text.find(dropped).unwrap();
        assert!(
            condensed.gaps.iter().any(|gap| gap.bytes.start <= at && at < gap.bytes.end),
            "{dropped} is lost"
        );
    }
}

#[test]
fn r0_22_17_a_zone_of_middling_confidence_leaves_no_open_stub() {
    let lamp = zone("gallery", 0.79, 4, 40).replace("gallery_field_2", "price");
    let text = capture(&[zone("pricing", 0.8, 4, 40), zone("reviews", 0.6, 4, 40), lamp]);
    let shown = run(ContentType::PageDoc, &text, 1_500, None).text;
    assert!(!shown.contains("reviews"), "a zone without a key field says nothing: {shown}");
    assert!(shown.contains("value 2 of gallery") && !shown.contains("value 1 of gallery"), "{shown}");
    let open = shown.matches("\"fields\": {").count() + shown.matches("\"fields\":{").count();
    assert_eq!(open, 2, "the fields of two zones: {shown}");
    let last = &shown[shown.rfind("\"fields\"").unwrap()..];
    assert!(last.contains('}'), "they are closed: {last}");
}

#[test]
fn r0_22_14_and_19_narrative_is_condensed_and_leaves_room_for_structure() {
    let zones: Vec<String> =
        (0..8).map(|n| zone(if n % 2 == 0 { "pricing" } else { "reviews" }, 0.9, 12, 60)).collect();
    let text = capture(&zones);
    let condensed = run(ContentType::PageDoc, &text, 1_000, None);
    let structured = condensed.text.matches("_field_").count();
    assert!(structured >= 36, "{structured} fields in {}", condensed.text);
    assert!(condensed.text.contains("People who walked"), "{}", condensed.text);
    assert!(condensed.text.contains("2026-01-02T03:04:05Z"), "{}", condensed.text);
}

#[test]
fn r1_6_8_markdown_captures_keep_metadata_and_fields() {
    let text = format!(
        "# Page Content: Lamp\n\n**URL:** https://shop.example/lamp\n**Captured:** 2026-01-02\n\n## Zone: pricing (confidence: 0.9)\n\
         - price: $9.99\n- was: $12.99\n\n## Zone: advert (confidence: 0.2)\n- price: $1\n\n## Page Text\n\n{}\n\n## Visible Elements\n- price\n- gallery\n",
        towns(0, 90)
    );
    let condensed = run(ContentType::PageDoc, &text, 400, None);
    for kept in [
        "**URL:** https://shop.example/lamp",
        "- price: $9.99\n- was: $12.99\n",
        "- price\n- gallery\n",
        "People who walked",
    ] {
        assert!(condensed.text.contains(kept), "{kept} in {}", condensed.text);
    }
    assert!(!condensed.text.contains("- price: $1\n"), "{}", condensed.text);
}

#[test]
fn r0_23_9_research_keeps_evidence_and_lets_advertising_go() {
    let filler = |n: usize| {
        format!("- {}\n- This amazing, world-class lamp number {n} will elevate every room.\n", town(n))
    };
    let mut text = "# Research\n\n## Research Findings\n\n".to_owned();
    for n in 0..60 {
        text += &filler(n);
        if n == 17 {
            text += "- The brass lamp is sold by Porto Light for €45.50.\n- Source: https://porto.example/brass\n";
        }
        if n == 41 {
            text += "- The copper lamp is out of stock at every store we saw.\n";
        }
    }
    let condensed = run(ContentType::ResearchDoc, &text, 500, None);
    for kept in
        ["€45.50", "https://porto.example/brass", "out of stock at every store", "sold by Porto Light"]
    {
        assert!(condensed.text.contains(kept), "{kept} in {}", condensed.text);
    }
    let advertising = condensed.text.matches("amazing").count();
    let background = condensed.text.matches("People who walked").count();
    assert!(advertising * 4 <= background, "{advertising} against {background} in {}", condensed.text);
}

#[test]
fn r0_22_4_tool_results_keep_errors_and_key_data() {
    let line = |n: usize| match n {
        333 => "step 333 failed: permission denied for /srv/data\n".to_owned(),
        600 => "total cost: $1,204.50\n".to_owned(),
        n => format!("step {n} done without remarks\n"),
    };
    let text: String = (0..900).map(line).collect();
    let condensed = run(ContentType::ToolResult, &text, 300, None);
    assert!(
        condensed.text.contains("step 333 failed: permission denied for /srv/data"),
        "{}",
        condensed.text
    );
    assert!(condensed.text.contains("$1,204.50"), "{}", condensed.text);
}

#[test]
fn r0_22_5_earlier_turns_keep_what_was_asked_and_answered() {
    let sections = format!(
        "## 0. User Query\n\nfind a lamp\n\n## 2. Gathered Context\n\n{}\n\n## 5. Synthesis\n\nThe brass lamp is the one.\n\n## 6. Validation\n\n{}\n",
        towns(0, 60),
        towns(9, 30)
    );
    let labelled = format!(
        "Previous Turn\n\nUser: find a lamp\n\nNotes: {}\n\n{}\n\nAssistant: The brass lamp is the one.\n\n{}\n",
        towns(0, 30),
        towns(20, 30),
        towns(40, 30)
    );
    let headed = format!(
        "# Previous Turn\n\n{}\n\n### User\n\nfind a lamp\n\n{}\n\n### Response\n\nThe brass lamp is the one.\n",
        towns(0, 50),
        towns(20, 50)
    );
    for text in [sections, labelled, headed] {
        let condensed = run(ContentType::PriorTurn, &text, 300, None);
        for kept in ["find a lamp", "The brass lamp is the one."] {
            assert!(condensed.text.contains(kept), "{kept} in {}", condensed.text);
        }
    }
}

#[test]
fn c41_a_context_of_another_turn_is_an_earlier_turn() {
    for (name, expected) in [
        ("context.md", ContentType::ContextDoc),
        ("sessions/s1/context.md", ContentType::ContextDoc),
        ("users/u/turns/turn_000123/context.md", ContentType::PriorTurn),
        ("turn_000123/notes/context.md", ContentType::PriorTurn),
        ("return_1/context.md", ContentType::ContextDoc),
    ] {
        assert_eq!(detect(None, name, true, "## 0. User Query\n"), expected, "{name}");
    }
}

#[test]
fn what_answers_the_query_goes_before_bare_dates() {
    let sentence = |n: usize| {
        if n == 150 {
            "The keeper of the lighthouse was called Matilda, and she kept a diary of every ship. ".to_owned()
        } else {
            format!(
                "On {} March {} there was {} in the town. ",
                1 + n % 28,
                1700 + n,
                ["rain", "snow", "wind"][n % 3]
            )
        }
    };
    let text: String = (0..300).map(sentence).collect();
    let condensed = run(
        ContentType::Prose,
        &text,
        250,
        Some("Who was the keeper of the lighthouse and what did she keep?"),
    );
    assert!(condensed.text.contains("she kept a diary of every ship"), "{}", condensed.text);
}

#[test]
fn r0_22_7_to_12_the_first_rule_that_matches_decides_the_type() {
    use ContentType::*;
    const QUERY: &str = "# Context\n\n## 0. User Query\n\nfind a lamp\n";
    const FINDINGS: &str = "# Lamps\n\n## Research Findings\n\nThey burn.\n";
    for (name, content, expected, row) in [
        ("context.md", "", ContextDoc, "R0-22.7"),
        ("a", QUERY, ContextDoc, "R0-22.7"),
        ("research.md", "", ResearchDoc, "R0-22.8"),
        ("a", FINDINGS, ResearchDoc, "R0-22.8"),
        ("shop_page_doc.txt", "", PageDoc, "R0-22.9"),
        ("a", "{\"ocr_items\": []}", PageDoc, "R0-22.9"),
        ("tool:search", "", ToolResult, "R0-22.10"),
        ("my_tool_result.txt", "", ToolResult, "R0-22.10"),
        ("turn_000012.txt", "", PriorTurn, "R0-22.11"),
        ("a", "Previous Turn: lamps", PriorTurn, "R0-22.11"),
        ("a", "\u{1}{[<=>]}", Generic, "R0-22.12"),
        // Each before those that follow it.
        ("page_doc", &[FINDINGS, QUERY].concat(), ContextDoc, "R0-22.12"),
        ("page_doc", FINDINGS, ResearchDoc, "R0-22.12"),
        ("tool:page_doc", "Previous Turn", PageDoc, "R0-22.12"),
        ("tool:turn_lights_on", "Previous Turn", ToolResult, "R0-22.12"),
    ] {
        assert_eq!(detect(None, name, true, content), expected, "{row}: {name:?} {content:?}");
    }
    // Text from the web or a tool has the type of its name alone: it cannot declare one (R0-29.10).
    assert_eq!(detect(None, "tool:search", false, QUERY), ToolResult);
    for content in [QUERY, FINDINGS, "ocr_items", "Previous Turn"] {
        let found = detect(None, "a", false, content);
        assert!(![ContextDoc, ResearchDoc, PageDoc, PriorTurn].contains(&found), "{content:?}: {found:?}");
    }
}
