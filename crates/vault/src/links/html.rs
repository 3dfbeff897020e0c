//! Links in HTML tags: the values of `href` and `src`. Comments, declarations, scripts and styles are skipped.

use super::scan::{Link, LinkKind};

/// The links of a piece of HTML that starts at byte `base` of the text.
pub(super) fn links(html: &str, base: usize) -> Vec<Link> {
    let mut links = Vec::new();
    let mut at = 0;
    while let Some(found) = html[at..].find('<') {
        let tag = at + found;
        at = match skipped(&html[tag..]) {
            Some(length) => tag + length,
            None => {
                let name_end =
                    html[tag + 1..].find(|char: char| !char.is_ascii_alphanumeric() && char != '-');
                let name_end = name_end.map_or(html.len(), |end| tag + 1 + end);
                if name_end == tag + 1 { name_end } else { attributes(html, tag, name_end, base, &mut links) }
            }
        };
    }
    links
}

/// The length of a part that cannot contain links: a comment, a declaration, a script, a style.
fn skipped(html: &str) -> Option<usize> {
    let ends = [
        ("<!--", "-->"),
        ("<![CDATA[", "]]>"),
        ("<?", "?>"),
        ("<!", ">"),
        ("<script", "</script"),
        ("<style", "</style"),
    ];
    let opens = |opening: &str| {
        html.as_bytes()
            .get(..opening.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(opening.as_bytes()))
    };
    let (_, end) = ends.into_iter().find(|(opening, _)| opens(opening))?;
    let found = html.match_indices(&end[..1]).find(|(at, _)| {
        let here = html.as_bytes().get(*at..at + end.len());
        *at > 0 && here.is_some_and(|here| here.eq_ignore_ascii_case(end.as_bytes()))
    });
    Some(found.map_or(html.len(), |(at, _)| at + end.len()))
}

/// Reads the attributes of a tag; returns the end of the tag.
fn attributes(html: &str, tag: usize, mut at: usize, base: usize, links: &mut Vec<Link>) -> usize {
    let first = links.len();
    let is_space = |char: char| char.is_ascii_whitespace() || char == '/';
    loop {
        at = html.len() - html[at..].trim_start_matches(is_space).len();
        let Some(char) = html[at..].chars().next() else { break };
        if char == '>' {
            at += 1;
            break;
        }
        let rest = &html[at..];
        let name = &rest
            [..rest.find(|char: char| is_space(char) || matches!(char, '=' | '>')).unwrap_or(rest.len())];
        at += name.len();
        let after = html[at..].trim_start();
        let Some(value) = after.strip_prefix('=') else {
            // Skip a character that cannot start a name.
            at += if name.is_empty() { char.len_utf8() } else { 0 };
            continue;
        };
        let value = value.trim_start();
        let start = html.len() - value.len();
        let (start, end, next) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let end = value[1..].find(quote).map_or(html.len(), |end| start + 1 + end);
                (start + 1, end, (end + 1).min(html.len()))
            }
            _ => {
                let end = value.find(|char: char| char.is_ascii_whitespace() || char == '>');
                let end = end.map_or(html.len(), |end| start + end);
                (start, end, end)
            }
        };
        at = next;
        let embed = name.eq_ignore_ascii_case("src");
        if embed || name.eq_ignore_ascii_case("href") {
            let target = base + start..base + end;
            links.push(Link::new(LinkKind::Html, embed, 0..0, &decoded(&html[start..end]), Some(target)));
        }
    }
    links[first..].iter_mut().for_each(|link| link.range = base + tag..base + at);
    at
}

/// The value of an attribute with character references decoded.
fn decoded(value: &str) -> String {
    let references = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    references.into_iter().fold(value.to_owned(), |value, (reference, char)| value.replace(reference, char))
}
