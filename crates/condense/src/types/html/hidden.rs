//! Finds the text that a page does not show: inside elements with the attribute `hidden`, or styled as invisible.
//!
//! Knows attributes only, no style sheets and no scripts. An element whose end is not found hides nothing.

use larder_text::elements::{has_style, outermost};
use larder_text::markup::{self, Token, TokenKind, attribute};

/// Pages hide these only until a script has run.
const ALWAYS_SHOWN: [&str; 4] = ["html", "body", "main", "article"];

/// The tokens that tile `page`, in which text that it does not show is hidden.
pub(super) fn tokens(page: &str) -> Vec<Token> {
    let mut tokens = markup::tokens(page);
    hide(page, &mut tokens);
    tokens
}

/// Linear in the length of the page. A page that would show nothing shows everything: a script would show it.
fn hide(page: &str, tokens: &mut [Token]) {
    let mut hidden: Vec<usize> = Vec::new();
    for number in outermost(page, tokens, hides).into_iter().flatten() {
        if shows(page, &tokens[number]) {
            tokens[number].kind = TokenKind::Hidden;
            hidden.push(number);
        }
    }
    if !tokens.iter().any(|token| shows(page, token)) {
        hidden.into_iter().for_each(|number| tokens[number].kind = TokenKind::Text);
    }
}

fn shows(page: &str, token: &Token) -> bool {
    token.kind == TokenKind::Text && !page[token.range.clone()].trim().is_empty()
}

/// Whether the start tag `tag` of an element `name` hides its content.
fn hides(name: &str, tag: &str) -> bool {
    if ALWAYS_SHOWN.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return false;
    }
    let hidden = attribute(tag, "hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found"));
    hidden || has_style(tag, is_invisible)
}

/// Whether a declaration of a style is `display: none` or `visibility: hidden`.
fn is_invisible(property: &str, value: &str) -> bool {
    let value = value.split('!').next().unwrap_or_default().trim();
    let is = |known: &str, hidden: &str| {
        property.eq_ignore_ascii_case(known) && value.eq_ignore_ascii_case(hidden)
    };
    is("display", "none") || is("visibility", "hidden") || is("visibility", "collapse")
}

#[cfg(test)]
mod tests {
    use super::super::web_page;

    /// What a capture shows of `page`, on one line.
    fn shown(page: &str) -> String {
        let texts: Vec<String> = web_page(page).text.into_iter().map(|text| text.text).collect();
        texts.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_a_page_hides_is_not_shown() {
        for (page, visible) in [
            ("<p>a</p><p style=\"display:none\">X</p><p>b</p>", "a b"),
            ("<p style='color: red; DISPLAY : none !important'>X <b>X</b><p>b", "b"),
            ("<div hidden>X<div>X</div>X</div>b", "b"),
            ("<span style=visibility:hidden>X</span> b", "b"),
            ("<ul><li hidden>X<ul><li>X<li>X</ul>X<li>b</ul>", "- b"),
            (
                "<table><tr><td hidden>X<table><tr><td>X</table><td>b<tr style='display:none'><td>X</table>c",
                "b c",
            ),
        ] {
            assert_eq!(shown(page), visible, "{page}");
        }
    }

    #[test]
    fn what_only_looks_hidden_is_shown() {
        for (page, visible) in [
            ("<p aria-hidden=true>a</p><p class=hidden>b</p>", "a b"),
            ("<body style='visibility:hidden'><p hidden=until-found>a</p></body>", "a"),
            ("<input type=hidden hidden><p data-hidden>a</p><p style='display:nonesuch'>b</p>", "a b"),
            ("<div hidden>a<p>b", "a b"),
        ] {
            assert_eq!(shown(page), visible, "{page}");
        }
    }

    #[test]
    fn many_elements_that_nothing_closes_cost_no_more_than_their_length() {
        let page: String = (0..100_000).map(|number| format!("<x{number} hidden>a")).collect();
        assert!(!shown(&page).is_empty());
    }

    #[test]
    fn a_page_that_would_show_nothing_shows_everything() {
        assert!(shown("<div id=app style='display:none'><p>All of it</p></div>").contains("All of it"));
    }
}
