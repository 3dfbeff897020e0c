//! Tests of extracts: which sections they contain, and where they are cut.

use super::*;

const CONTEXT: &str = "---\nid: x\n---\n## 0. User Query\n\nq\n\n## 4. Tool Execution\n\nfirst try\n\n### Claims Extracted\n\nold\n\n## 4. Tool Execution (Attempt 2)\n\nsecond try\n\n### Claims Extracted\n\n| a | b ^claim-001\n\n### Termination\n\nend\n";

fn path(name: &str) -> VaultPath {
    VaultPath::new(name).unwrap()
}

fn take(name: &str, text: &str, wanted: &[&str]) -> Extract {
    extract(&path(name), text, &wanted.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

#[test]
fn a_section_is_given_in_its_newest_version_however_it_is_named() {
    for name in
        ["§4", "4. Tool Execution", "## 4. Tool Execution", "tool execution", "tool_execution", "section_4"]
    {
        let taken = take("context.md", CONTEXT, &[name]);
        assert!(taken.text.starts_with("## 4. Tool Execution (Attempt 2)"), "{name}: {}", taken.text);
        assert!(taken.text.ends_with("end\n") && taken.missing.is_empty());
    }
    let claims = take("context.md", CONTEXT, &["Claims Extracted"]);
    assert!(
        claims.text.contains("claim-001") && !claims.text.contains("old") && !claims.text.contains("end")
    );
    assert!(take("context.md", CONTEXT, &["^claim-001"]).text.contains("| a | b"));
}

#[test]
fn only_what_is_asked_for_is_given_and_what_is_missing_is_named() {
    let taken = take("context.md", CONTEXT, &["§0", "Termination", "Nonsense"]);
    assert_eq!(taken.text, "## 0. User Query\n\nq\n\n\n[…]\n### Termination\n\nend\n");
    assert_eq!((taken.missing.len(), taken.sections.len()), (1, 2));
    let shown: String =
        taken.ranges.iter().map(|range| &CONTEXT[range.clone()]).collect::<Vec<_>>().join(GAP);
    assert_eq!(shown, taken.text);
    let nested = take("context.md", CONTEXT, &["§4", "Termination"]);
    assert_eq!(nested.ranges.len(), 1, "what is asked for twice is given once");
    let whole = take("context.md", CONTEXT, &[]);
    assert!(whole.text.starts_with("## 0."), "without frontmatter");
    assert_eq!(take("context.md", CONTEXT, &["Nonsense"]).text, whole.text);
}

#[test]
fn a_json_document_is_taken_by_its_keys() {
    let text = r#"{"pagination": {"total_pages": 3}, "author": "x", "top_comments": []}"#;
    let taken = take("extracted_data.json", text, &["Top Comments", "pagination", "no"]);
    assert_eq!(taken.text, "{\n  \"top_comments\": [],\n  \"pagination\": {\n    \"total_pages\": 3\n  }\n}");
    assert_eq!(taken.missing, ["no"]);
    assert_eq!(take("a.json", "not json", &["x"]).text, "not json");
}

#[test]
fn a_cut_text_fits_and_says_so() {
    let counter = Counter::cl100k();
    let text = "A line of seven or eight tokens.\n".repeat(1_000);
    for max in [0, 1, 40, 41, 100, 2_000] {
        let (shown, was_cut) = cut(&text, max, &counter, "users/u/a.md");
        assert!(was_cut && counter.count(&shown) <= max, "{max}: {}", counter.count(&shown));
    }
    let (shown, _) = cut(&text, 2_000, &counter, "users/u/a.md");
    assert!(counter.count(&shown) > 1_900 && shown.ends_with("the rest is in users/u/a.md]"));
    assert_eq!(cut("short", 10, &counter, "x"), ("short".to_owned(), false));
}

#[test]
fn lines_of_a_range_count_from_one() {
    assert_eq!(lines_of("a\nb\nc\n", &(2..4)), (2, 2));
    assert_eq!(lines_of("a\nb\nc\n", &(0..6)), (1, 3));
}
