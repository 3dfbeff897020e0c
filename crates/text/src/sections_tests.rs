//! Tests of dividing `context.md`.

use proptest::prelude::*;

use super::*;

fn spans<'t>(text: &'t str, sections: &Sections) -> Vec<&'t str> {
    let mut spans = vec![&text[sections.frontmatter.clone()], &text[sections.preamble.clone()]];
    spans.extend(sections.sections.iter().map(|section| &text[section.range.clone()]));
    spans
}

fn names(text: &str) -> Vec<(u8, u32)> {
    Sections::parse(text).sections.iter().map(|s| (s.id.number(), s.attempt)).collect()
}

#[test]
fn budgets_add_up_to_the_document_trigger() {
    let sum: usize = SectionId::ALL.iter().map(|id| id.token_budget()).sum();
    assert_eq!(sum, DOCUMENT_TRIGGER_TOKENS);
}

#[test]
fn level_three_keeps_its_share_at_any_total() {
    assert_eq!(call_trigger(CALL_LIMIT_TOKENS), CALL_TRIGGER_TOKENS);
    assert_eq!(call_trigger(5_750), 5_270);
    assert_eq!(call_trigger(0), 0);
    assert!(call_trigger(usize::MAX) < usize::MAX);
}

#[test]
fn every_canonical_heading_starts_its_section() {
    for id in SectionId::ALL {
        let text = format!("{}\nbody\n", id.heading());
        let sections = Sections::parse(&text);
        assert_eq!(sections.newest(id).map(|s| &text[s.body.clone()]), Some("body\n"), "{id}");
        assert_eq!(id.heading().as_bytes()[3], b'0' + id.number());
    }
}

#[test]
fn frontmatter_and_preamble_are_separate() {
    let text = "\u{feff}---\r\nturn: 1\r\n---\r\n# Turn\r\n## 0. User Query\r\n**Original:** hi\r\n";
    let sections = Sections::parse(text);
    assert_eq!(spans(text, &sections)[..2], ["\u{feff}---\r\nturn: 1\r\n---\r\n", "# Turn\r\n"]);
    assert_eq!(&text[sections.sections[0].body.clone()], "**Original:** hi\r\n");
}

#[test]
fn unclosed_frontmatter_swallows_no_section() {
    assert_eq!(
        names("---\nturn: 1\n## 0. User Query\nhi\n---\n## 1. Reflection Decision\n"),
        [(0, 1), (1, 1)]
    );
    assert_eq!(Sections::parse("---\nturn: 1\n").preamble, 0..12);
}

#[test]
fn look_alike_headings_are_body_text() {
    for line in [
        " ## 1. Reflection Decision",
        "## 1. Reflection Decision ",
        "## 1. reflection decision",
        "## 1. Synthesis",
        "## 7. Validation",
        "### 1. Reflection Decision",
        "##  1. Reflection Decision",
        "## 1. Reflection Decision (Attempt 0)",
        "## 1. Reflection Decision (Attempt 02)",
        "## 1. Reflection Decision (Attempt +2)",
        "## 1. Reflection Decision (Attempt -2)",
        "## 1. Reflection Decision (Attempt 99999999999)",
        "## 1. Reflection Decision (attempt 2)",
        "## 1. Reflection Decision (Attempt )",
        "## 1. Reflection Decision\u{0}",
        "## 1. Reflection Decision\u{85}",
        "## Best Value",
        "##",
        "## ",
        "## é",
    ] {
        assert!(!starts_section(line), "{line:?}");
        assert_eq!(names(&format!("## 0. User Query\n{line}\nend\n")), [(0, 1)], "{line:?}");
    }
}

#[test]
fn the_newest_attempt_wins_and_older_ones_stay() {
    let text = "## 5. Synthesis\none\n## 6. Validation (Attempt 1)\nno\n## 5. Synthesis (Attempt 2)\ntwo\n## 5. Synthesis\n3";
    assert_eq!(names(text), [(5, 1), (6, 1), (5, 2), (5, 3)]);
    let sections = Sections::parse(text);
    let bodies: Vec<_> = sections.attempts(SectionId::Synthesis).map(|s| &text[s.body.clone()]).collect();
    assert_eq!(bodies, ["one\n", "two\n", "3"]);
    assert_eq!(sections.newest(SectionId::Synthesis).map(|s| s.attempt), Some(3));
}

#[test]
fn selectors_name_sections() {
    assert_eq!(SectionId::from_selector("§4"), Some(SectionId::ToolExecution));
    assert_eq!(SectionId::from_selector("section_0"), Some(SectionId::UserQuery));
    assert_eq!(SectionId::from_selector("validation"), Some(SectionId::Validation));
    for wrong in ["", "§", "§7", "§04", "4", "§é", "Validation", "section_"] {
        assert_eq!(SectionId::from_selector(wrong), None, "{wrong}");
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        (0..7_usize).prop_map(|n| SectionId::ALL[n].heading().to_owned()),
        (0..7_usize, 0..4_u32).prop_map(|(n, a)| format!("{} (Attempt {a})", SectionId::ALL[n].heading())),
        Just("---".to_owned()),
        Just("## Best Value".to_owned()),
        "\\PC{0,20}",
    ];
    let line_break = prop_oneof![Just("\n"), Just("\r\n"), Just("\r"), Just("")];
    proptest::collection::vec((line, line_break), 0..20)
        .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

proptest! {
    #[test]
    fn sections_tile_any_text(text in any_text()) {
        let sections = Sections::parse(&text);
        prop_assert_eq!(spans(&text, &sections).concat(), &*text);
        for section in &sections.sections {
            prop_assert!(starts_section(&text[section.range.start..section.body.start]));
            prop_assert_eq!(section.range.end, section.body.end);
        }
    }

    #[test]
    fn appending_text_moves_no_earlier_section(text in any_text(), more in any_text()) {
        let before = Sections::parse(&(text.clone() + "\n"));
        let after = Sections::parse(&(text + "\n## 6. Validation\n" + &more));
        // An unclosed frontmatter is the one thing that later text may close, unless a section has begun.
        if let Some((last, earlier)) = before.sections.split_last() {
            prop_assert_eq!(earlier, &after.sections[..earlier.len()]);
            prop_assert_eq!(last.range.start, after.sections[earlier.len()].range.start);
        }
    }
}
