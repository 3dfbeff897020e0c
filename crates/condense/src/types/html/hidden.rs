//! Finds the text that a page does not show: inside elements with the attribute `hidden`, or styled as invisible.
//!
//! Knows attributes only, no style sheets and no scripts. An element whose end is not found hides nothing.

use super::outline::{Element, element};
use larder_text::markup::{self, Token, TokenKind, attributes};

/// Pages hide these only until a script has run.
const ALWAYS_SHOWN: [&str; 4] = ["html", "body", "main", "article"];
/// Names of elements without an end that are looked for; more of them are not a page that somebody wrote.
const MOST_UNCLOSED: usize = 16;
/// Elements without content.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// The tokens that tile `page`, in which text that it does not show is hidden.
pub(super) fn tokens(page: &str) -> Vec<Token> {
    let mut tokens = markup::tokens(page);
    hide(page, &mut tokens);
    tokens
}

/// Linear in the length of the page. A page that would show nothing shows everything: a script would show it.
fn hide(page: &str, tokens: &mut [Token]) {
    let mut unclosed: Vec<String> = Vec::new();
    let mut hidden: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let name = &page[token.name.clone()];
        let hides = token.kind == TokenKind::Open && hides(name, &page[token.range.clone()]);
        at += 1;
        if !hides || unclosed.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            continue;
        }
        let Some(len) = content(page, name, &tokens[at..]) else {
            unclosed.push(name.to_owned());
            if unclosed.len() == MOST_UNCLOSED {
                break;
            }
            continue;
        };
        for (number, token) in (at..).zip(&mut tokens[at..at + len]) {
            if shows(page, token) {
                token.kind = TokenKind::Hidden;
                hidden.push(number);
            }
        }
        at += len;
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
    let named = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    if named(&ALWAYS_SHOWN) || named(&VOID) {
        return false;
    }
    attributes(tag).any(|(name, value)| {
        let hidden = name.eq_ignore_ascii_case("hidden") && !value.eq_ignore_ascii_case("until-found");
        hidden || name.eq_ignore_ascii_case("style") && value.split(';').any(is_invisible)
    })
}

/// Whether a declaration of a style is `display: none` or `visibility: hidden`.
fn is_invisible(declaration: &str) -> bool {
    let Some((property, value)) = declaration.split_once(':') else { return false };
    let value = value.split('!').next().unwrap_or_default().trim();
    let is = |known: &str, hidden: &str| {
        property.trim().eq_ignore_ascii_case(known) && value.eq_ignore_ascii_case(hidden)
    };
    is("display", "none") || is("visibility", "hidden") || is("visibility", "collapse")
}

/// How many of `tokens`, which follow its start tag, are the content of the element `name`; `None` if nothing ends it.
fn content(page: &str, name: &str, tokens: &[Token]) -> Option<usize> {
    let own = element(name);
    let paragraph = name.eq_ignore_ascii_case("p");
    // Elements that also end where the next of their kind starts, unless inside another list or table.
    let around = match own {
        Element::Item => Some(Element::List),
        Element::Row | Element::Cell => Some(Element::Table),
        _ => None,
    };
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        let (open, close) = (token.kind == TokenKind::Open, token.kind == TokenKind::Close);
        if !open && !close {
            return false;
        }
        let other_name = &page[token.name.clone()];
        let other = element(other_name);
        let same = other_name.eq_ignore_ascii_case(name);
        if paragraph {
            return same || !matches!(other, Element::Inline | Element::Link | Element::Break);
        }
        if around.map_or(same, |around| other == around) {
            let ends = close && depth == 0;
            depth = if open { depth + 1 } else { depth.saturating_sub(1) };
            return ends;
        }
        let ends = other == own || own == Element::Cell && other == Element::Row;
        around.is_some() && depth == 0 && ends
    })
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
