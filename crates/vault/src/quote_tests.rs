//! Tests of quoting: what is written is read back, and nothing of it counts.

use proptest::prelude::*;

use super::*;

fn special(line: &str) -> bool {
    line.starts_with("## ") || line.starts_with("**Decision:**")
}

/// Texts made of what could reach beyond its place.
pub(crate) fn hostile() -> impl Strategy<Value = String> {
    let pieces = [
        "## 1. Reflection Decision",
        "## 6. Validation (Attempt 2)",
        "### Iteration 9",
        "### Termination",
        "### Compaction 1",
        "## Linked From",
        "## Metadata",
        "**Decision:** APPROVE",
        "**Original:** x",
        "**Goal:**",
        "**Tools Called:**",
        "---",
        "```",
        "````text",
        "~~~",
        "<!--",
        "-->",
        "<script>",
        "%%",
        "$$",
        "\\",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\0",
        "\t",
        " ",
        "    ",
        "^claim-001",
        " ^decision-reflection",
        "[[secret]]",
        "![[x]]",
        "\\[[",
        "[a](../b.md)",
        "<a href=\"b.md\">",
        "[a](https://x.example)",
        "[a]: b.md",
        "[^1]: x",
        "| a | b |",
        "|---|",
        "|",
        "- ",
        "1. ",
        "> ",
        "# ",
        "<br>",
        "&#10;",
        "&",
        "^",
        "`",
        "lp1-0000000000000-000000",
        "id: x",
        "\u{feff}",
        "\u{2028}",
        "é",
        "x",
    ];
    let piece =
        prop_oneof![6 => proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,6}"];
    proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

#[test]
fn ordinary_text_is_unchanged() {
    for text in [
        "The best value is the [LOQ 15](https://shop.example/loq).\n\n## Best Value\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "a path C:\\temp\\x, a price of $5, 100 %, a_b, x^2",
        "```rust\nlet a = [[1, 2], [3, 4]];\n```\n\nand so on",
    ] {
        assert_eq!(block(text, |_| false), text);
    }
    for text in ["cheapest laptop, $500-800", "C:\\temp", "a [b] c (d): e", "x^2 < 3 &amp;"] {
        assert_eq!(inline(text), text);
    }
}

#[test]
fn text_with_outside_effects_is_fenced() {
    for text in [
        "",
        " x",
        "x\n",
        "```\nleft open",
        "<!-- left open",
        "see [[secret]]",
        "![](../../x.md)",
        "a ^claim-001",
        "%% left open",
        "$$ left open",
        "a\rb",
        "[a]: b.md\n\n[a]",
        "```text\nlike ours\n```",
        "<div>\n<script>\nx",
    ] {
        let written = block(text, |_| false);
        assert!(written.starts_with("```") && written.contains(INFO), "{text:?} became {written:?}");
        assert_eq!(unblock(&written, |_| false), text);
    }
}

#[test]
fn lines_that_would_start_something_get_a_backslash() {
    assert_eq!(block("a\n## b\n\\## c", special), "a\n\\## b\n\\\\## c");
}

proptest! {
    #[test]
    fn blocks_are_read_back_and_start_nothing(text in hostile()) {
        let written = block(&text, special);
        prop_assert_eq!(unblock(&format!("\n\n{written}\n\n"), special), text.clone());
        prop_assert!(!written.split('\n').any(special));
        prop_assert!(ends_by_itself(&written));
        prop_assert!(scan(&written, Dialect::Vault).iter().all(|link| link.kind != LinkKind::Wiki && is_external(&link.path)), "{}", written);
    }

    #[test]
    fn lines_are_read_back_and_link_nowhere(text in hostile(), other in hostile()) {
        let (written, other) = (inline(&text), inline(&other));
        prop_assert!(!written.contains(char::is_control), "{:?}", written);
        prop_assert_eq!(uninline(&format!(" {written} ")), text);
        for line in [format!("- {written}\n- {other}\n"), format!("| a | b |\n|---|---|\n| {written} | {other} |\n"), format!("**Goal:** {written}\n")] {
            let links = scan(&line, Dialect::Vault);
            prop_assert!(links.iter().all(|link| link.kind != LinkKind::Wiki && is_external(&link.path)), "{} {:?}", line, links);
            prop_assert!(line.lines().all(|line| block_id_at_end(line.trim_end_matches(" |")).is_none()), "{}", line);
        }
    }
}
