//! Tests of the scanner of pages.

use super::*;

fn check(page: &str) -> Vec<(TokenKind, &str)> {
    let tokens = tokens(page);
    let mut at = 0;
    for token in &tokens {
        assert_eq!(token.range.start, at, "{page:?}");
        at = token.range.end;
    }
    assert_eq!(at, page.len());
    tokens.iter().map(|token| (token.kind, &page[token.range.clone()])).collect()
}

#[test]
fn tags_text_and_hidden_content_are_distinguished() {
    use TokenKind::*;
    assert_eq!(
        check("<p class='a>b'>x < y</P ><!-- <b> --><script>if (a</b>) </script>z<br/><!doctype x>"),
        [
            (Open, "<p class='a>b'>"),
            (Text, "x < y"),
            (Close, "</P >"),
            (Comment, "<!-- <b> -->"),
            (Open, "<script>"),
            (Hidden, "if (a</b>) "),
            (Close, "</script>"),
            (Text, "z"),
            (Open, "<br/>"),
            (Comment, "<!doctype x>"),
        ]
    );
}

#[test]
fn unclosed_elements_hide_as_little_as_possible() {
    use TokenKind::*;
    assert_eq!(check("<a href=\"x>y</a>"), [(Open, "<a href=\"x>"), (Text, "y"), (Close, "</a>")]);
    assert_eq!(check("a <b"), [(Text, "a "), (Text, "<b")]);
    assert_eq!(check("<svg>x"), [(Open, "<svg>"), (Text, "x")]);
    assert_eq!(check("<script>x"), [(Open, "<script>"), (Hidden, "x")]);
    assert_eq!(check("<!--x"), [(Comment, "<!--x")]);
    assert_eq!(check("</"), [(Text, "</")]);
}

#[test]
fn floods_are_read_once() {
    for unit in [
        "<", "<a ", "<a \"", "<a x=\"", "<a x='>", "</", "<!--", "<svg>", "<svg></", "</script", "<a=", "<!",
        "<?", "é<",
    ] {
        let page = unit.repeat(2_000_000 / unit.len());
        check(&page);
    }
}

#[test]
fn attributes_are_read_in_all_their_forms() {
    let tag = "<a href = 'x y' class=b/c data-x id=\"\" ALT=é>";
    let expected = [("href", "x y"), ("class", "b/c"), ("data-x", ""), ("id", ""), ("ALT", "é")];
    assert_eq!(attributes(tag).collect::<Vec<_>>(), expected);
    assert_eq!(attribute(tag, "alt"), Some("é"));
    for broken in ["", "<", "<a", "<a =", "<a = = ' >", "<a '\"=x\">", "<a\0é=é>"] {
        attributes(broken).for_each(drop);
    }
}
