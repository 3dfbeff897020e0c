//! What documents say stays text, and what is ours becomes headings, links and anchors.

use std::sync::OnceLock;

use larder_store::{DocumentPlace, Documents, Store, StoreOptions};
use larder_vault::VaultPath;
use proptest::prelude::*;

use super::*;

/// The links of a document without links, which stands alone.
fn links_at(place: &str) -> Links {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
    let documents = Documents::open(&store, &DocumentPlace::Folder(dir.path().join("documents"))).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let at = VaultPath::new(place).unwrap();
    let user = documents.user("a").unwrap();
    let found = runtime.spawn_blocking(move || Links::of(&user, &at, "").unwrap());
    runtime.block_on(found).unwrap()
}

fn show(text: &str) -> String {
    static LINKS: OnceLock<Links> = OnceLock::new();
    let links = LINKS.get_or_init(|| links_at("users/a/notes/x.md"));
    MarkdownPage::new(links, 2).show(text).into_string()
}

#[test]
fn markdown_becomes_html() {
    for (text, expected) in [
        ("## Deep\n\ntext", "<h3 id=\"h-deep\">Deep</h3><p>text</p>"),
        (
            "- a\n- b ^claim-001\n",
            "<ul><li>a</li><li>b <span class=\"block\" id=\"b-claim-001\">^claim-001</span></li></ul>",
        ),
        ("`a<b` **c** *d* ~~e~~", "<p><code>a&lt;b</code> <strong>c</strong> <em>d</em> <s>e</s></p>"),
        ("2^10 and 3 ^a b", "<p>2^10 and 3 ^a b</p>"),
        ("[x](#^claim-001)", "<p><a href=\"#b-claim-001\">x</a></p>"),
        ("[[#Deep|y]]", "<p><a href=\"#h-deep\">y</a></p>"),
        ("[gone](gone.md)", "<p><span class=\"broken\" title=\"leads to no document\">gone</span></p>"),
        ("\\## 4. Tool Execution", "<p>## 4. Tool Execution</p>"),
    ] {
        assert_eq!(show(text), expected);
    }
    let table = show("| a | b |\n|---|--:|\n| 1 | 2 |\n");
    assert!(table.contains("<th scope=\"col\">a</th><th scope=\"col\" class=\"numeric\">b</th>"), "{table}");
    assert!(table.contains("<td>1</td><td class=\"numeric\">2</td></tr></tbody></table></div>"), "{table}");
}

#[test]
fn nothing_hostile_leaves_its_place() {
    for text in [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(2)> b",
        "[x](javascript:alert(3))",
        "[x](<javascript:alert(3)>)",
        "![x](https://evil.example/pixel.png)",
        "<javascript:alert(4)>",
        "[\"'><script>alert(1)</script>](\"'><script>alert(1)</script>)",
        "[[\"'><script>alert(1)</script>|<b>x</b>]]",
        "```\"><script>alert(1)</script>\n</pre><script>alert(1)</script>\n```",
        "# <script>alert(1)</script> \"'><b>",
        "| <b>x</b> |\n|---|\n| <script>alert(1)</script> |",
        "x ^\"><b>",
        "[a]: javascript:alert(1)\n\n[a]",
        "<details open ontoggle=alert(1)>\n\nx\n\n</details>",
    ] {
        let html = show(text);
        for wrong in ["<script", "<img", "<b>", "<details", "href=\"javascript", "\"'>"] {
            let escaped = html.replace("&lt;", "");
            assert!(!escaped.contains(wrong), "{text} lets out {wrong}: {html}");
        }
        assert!(!html.contains("<img") && !html.contains("<iframe"), "{html}");
    }
}

#[test]
fn ids_are_unique_and_headings_skip_no_level() {
    let html = show("# a\n\n##### b\n\n# a\n\nx ^n\n\ny ^N\n");
    assert_eq!(html.matches("id=\"h-a\"").count(), 1);
    assert_eq!(html.matches("id=\"b-n\"").count(), 1);
    assert!(html.contains("<h3 id=\"h-a\">a</h3><h4 id=\"h-b\">b</h4><h3>a</h3>"), "{html}");
}

#[test]
fn long_code_is_cut_and_says_so() {
    let html = show(&format!("```\n{}\n```\n", "é".repeat(20_000)));
    assert!(html.len() < 40_000 && html.contains("bytes more"));
}

/// Tags that a text of nothing but letters and signs gets are ours, and all are closed.
fn is_balanced(html: &str) -> bool {
    let mut open = Vec::new();
    for tag in html.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else { return false };
        let name = tag.trim_start_matches('/').split(' ').next().unwrap_or_default();
        if matches!(name, "br" | "hr") {
            continue;
        }
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else {
            open.push(name);
        }
    }
    open.is_empty()
}

proptest! {
    #[test]
    fn any_text_gives_tags_that_are_ours_and_closed(text in "[-a-c<>&\"'`*_#|\\[\\]()!^\\\\ \n1.~:/]{0,200}") {
        let html = show(&text);
        prop_assert!(is_balanced(&html), "{html}");
        for name in html.split('<').skip(1) {
            let name = name.trim_start_matches('/').split([' ', '>']).next().unwrap_or_default();
            let ours = ["p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "a", "em", "strong", "s", "code", "pre", "br",
                "hr", "span", "div", "table", "thead", "tbody", "tr", "th", "td", "blockquote"];
            prop_assert!(ours.contains(&name), "{name} in {html}");
        }
    }
}
