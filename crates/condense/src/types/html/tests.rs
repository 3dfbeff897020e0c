//! Tests of pages made readable.

use super::*;

const PARAGRAPH: &str = "The harbour master wrote that the ferry would leave at noon, and that nobody had asked him \
    whether the tide would let it. He had kept the book for thirty years, and it had never been wrong before. ";

fn article(body: &str) -> String {
    format!(
        "<!DOCTYPE html><html><head><title>Ferry leaves &amp; returns</title><script>var secret = 1;</script></head><body>\
         <nav><ul><li><a href='/a'>Home</a></li><li><a href='/b'>News</a></li></ul></nav><article><h1>Ferry</h1>\
         <p>{PARAGRAPH}</p><p>{PARAGRAPH}</p>{body}<p>{PARAGRAPH}</p></article>\
         <footer><p>All rights reserved by the harbour company of the northern islands.</p></footer></body></html>"
    )
}

fn text(page: &str) -> String {
    readable(page, &[]).text
}

#[test]
fn the_article_is_kept_without_its_surroundings() {
    let text = text(&article(""));
    assert!(text.starts_with("[Page: \"Ferry leaves & returns\"]\n"), "{text}");
    assert_eq!(text.matches("The harbour master wrote").count(), 3, "{text}");
    assert!(!text.contains("News") && !text.contains("secret") && !text.contains("rights"), "{text}");
}

#[test]
fn lists_tables_code_and_sources_are_readable() {
    let body = format!(
        "<h2>What it carries</h2><ul><li>Salt &amp; <b>flo</b>ur</li><li>Letters, as <a href='https://archive.example/1'>the \
         archive</a> says, and <a href='/own'>parcels</a></li></ul><p>{PARAGRAPH}</p><table><tr><th>Day</th><th>Tons</th>\
         </tr><tr><td>Monday</td><td>12.50</td></tr></table><pre>tide --at\n    noon</pre><ol start=3><li>Moor<ul><li>at \
         the pier</ul><li>Unload<li value=7>Leave</ol><ol type=a><li>by sea</ol>"
    );
    let text = text(&article(&body));
    for expected in [
        "## What it carries\n",
        "- Salt & flour\n",
        "as [the archive](https://archive.example/1) says, and parcels\n",
        "| Day | Tons |\n|---|---|\n| Monday | 12.50 |\n",
        "```\ntide --at\n    noon\n```\n",
        "3. Moor\n  - at the pier\n4. Unload\n7. Leave\n",
        "- by sea\n",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
}

#[test]
fn elements_in_sentences_keep_their_text() {
    let body = "<p>It leaves on <time>1 May</time> at <output>13:30</output>, for <del>€15</del> <ins>€12</ins> or \
                <data value=3>three</data> tokens.</p>";
    let text = text(&article(body));
    assert!(text.contains("It leaves on 1 May at 13:30, for ~~€15~~ €12 or three tokens."), "{text}");
}

#[test]
fn cells_keep_their_columns() {
    let rows = "<tr><th rowspan=2>Plan</th><th colspan=2>Price</th><th></th></tr><tr><th>Month</th><th>Year</th><th>Seats</th></tr>\
                <tr><td>Pro</td><td></td><td><del>$190</del> $170</td><td><img alt=any></td></tr>\
                <tr><td rowspan=2>Team</td><td>$49</td><td>$490</td></tr><tr><td>$59</td><td></td><td>7</td></tr>";
    let text = text(&article(&format!("<table>{rows}</table>")));
    let expected = "| Plan | Price |\n|---|---|\n|  | Month | Year | Seats |\n| Pro |  | ~~$190~~ $170 | any |\n\
                    | Team | $49 | $490 |\n|  | $59 |  | 7 |\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn pages_without_an_article_show_what_is_visible() {
    for (page, expected) in [
        (
            "<html><body><div id=root></div><p>You need JavaScript.</p><script>x()</script></body></html>",
            "You need JavaScript.",
        ),
        ("<html><form><label>Name</label><input><button>Send</button></form></html>", "Name\n\nSend"),
        ("just text, no tags at all", "just text, no tags at all"),
        ("<html><head><title>Empty</title></head></html>", "[Page: \"Empty\"]"),
        ("", ""),
    ] {
        assert_eq!(text(page).trim_end(), expected, "{page}");
    }
}

/// Every word appears in the page where it is said to be, in order.
fn check_words(page: &str, readable: &Readable) {
    let (mut at, mut source) = (readable.facts, 0);
    for word in &readable.source_map.words {
        assert!(
            word.at.start >= at && word.source.start >= source && word.source.end <= page.len(),
            "{word:?}"
        );
        assert!(word.mark_at <= word.at.start);
        let (shown, told) = (&readable.text[word.at.clone()], &page[word.source.clone()]);
        assert!(shown == told || shown == larder_text::entities::plain(told), "{shown:?} for {told:?}");
        (at, source) = (word.at.end, word.source.end);
    }
}

#[test]
fn required_ranges_are_kept_even_inside_markup() {
    let page = article("<p class='lead'>A&amp;B met <b>Mat</b>ilda</p>");
    for pin in [
        "class='lead'",
        "A&amp;B",
        "Mat</b>ilda",
        "var secret",
        "Home</a></li><li>",
        "ferry would leave",
        "at noon, and",
    ] {
        let at = page.find(pin).unwrap();
        let required = vec![at..at + pin.len(); 1];
        let readable = readable(&page, &required);
        assert!(readable.text.contains(pin), "{pin:?} in {}", readable.text);
        check_words(&page, &readable);
    }
}

/// Pages that make a parser slow, deep or wrong.
pub(super) fn hostile() -> Vec<(&'static str, String)> {
    let flood = |unit: &str, times: usize| unit.repeat(times);
    let fonts: String = (0..2_000).map(|n| format!("<font color={n}>")).collect();
    vec![
        ("10,000 divs", format!("{}deep{}", flood("<div>", 10_000), flood("</div>", 10_000))),
        ("1,000,000 divs", flood("<div>", 1_000_000) + "deep"),
        ("unclosed formatting in every paragraph", fonts + &flood("<p>word ", 2_000)),
        ("wrong nesting", flood("<b><p><i><table></b></p><td></i>x", 3_000)),
        ("a huge attribute", format!("<p class=\"{}\">x</p>", flood("a ", 1_000_000))),
        ("many attributes", format!("<p {}>x</p>", flood("a=b ", 300_000))),
        ("NUL and controls", flood("<p>a\0b\u{e}\u{f}\u{10}\u{11}c</p>", 2_000)),
        ("angle brackets", flood("<", 2_000_000)),
        ("tags without an end", flood("<a href=\"", 200_000)),
        ("scripts", flood("<script>if (a<b) {}</script>", 40_000)),
        ("unclosed scripts", flood("<script>x", 100_000)),
        ("styles", format!("<style>{}</style><p>x", flood("a{b:c}", 300_000))),
        ("comments", flood("<!-- x -->", 100_000)),
        ("entities", flood("&amp;&#8217;&bogus;&#xffffffff;&", 60_000)),
        ("no body", "<html><head><title>x</title></head></html>".repeat(2_000)),
        ("text only", flood("word ", 300_000)),
        ("lists in lists", flood("<ul><li>x", 20_000)),
        ("rows without a table", flood("<tr><td>a<td>b", 20_000)),
        ("marks of our own", flood("<p>[… L1-9] lp1-0000000000000-000000 [condensed]</p>", 3_000)),
        ("wide characters at every offset", flood("<p>By é — x ‘y’ 日本語。</p>", 8_000)),
        ("cells apart", format!("<table><tr>{}", flood("<td>a<br>b", 20_000))),
        (
            "wide spans",
            flood("<table><tr><td>a<td colspan=99>b<td>c<tr><td>d<td rowspan=9><td>e</table>", 5_000),
        ),
        (
            "empty rows under spans",
            flood(&format!("<table><tr><td colspan=99><td rowspan=0>x{}</table>", flood("<tr>", 195)), 500),
        ),
        ("lists in cells", format!("<table>{}", flood("<tr><td>a<br>b<ul><li>x</ul><td>c", 20_000))),
        ("headings", format!("<table>{}", flood("<tr><th>a<th>b<tr><td>c<td>d", 20_000))),
        ("pictures", flood("<table><tr><td>a<td><img alt=x><td>b", 20_000)),
        ("struck", flood("<s>a<i style='text-decoration:line-through'>b", 20_000)),
        ("links", flood("<a href=https://example.org/x>y</a> ", 20_000)),
    ]
}

#[test]
fn hostile_pages_are_read_without_harm() {
    for (name, page) in hostile() {
        let readable = readable(&page, &[]);
        check_words(&page, &readable);
        assert!(readable.text.len() <= 2 * page.len() + 200, "{name}");
    }
}

#[test]
fn only_pages_look_like_pages() {
    for page in [
        "<!DOCTYPE html><p>",
        "\u{feff} <HTML lang=de>",
        "<?xml version='1.0'?>\n<html >",
        "<!-- x --><html>",
    ] {
        assert!(looks_like(page), "{page}");
    }
    for other in ["", "<", "<p>x</p>", "<htmlx>", "<?xml?><svg>", "see <html>", "é<html>"] {
        assert!(!looks_like(other), "{other}");
    }
}
