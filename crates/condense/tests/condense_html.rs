//! What a condensed web page and a condensed page capture guarantee, whatever the page, the target and the pins.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

mod guarantees;

use guarantees::{Case, held, key, pins_of};
use larder_condense::{CondenseError, Condensed, ContentType};
use larder_text::pointer::Pointer;
use larder_text::tokens::Counter;
use proptest::prelude::*;

fn run(page: &str, target: usize, query: Option<&str>, pins: &[String]) -> Result<Condensed, CondenseError> {
    Case { text: page, content_type: ContentType::Html, target, query, pins }.run(&Counter::o200k())
}

/// Words of `markup` outside tags, with no knowledge of how the condenser reads it.
fn words(markup: &str) -> Vec<String> {
    let (mut words, mut word, mut in_tag) = (Vec::new(), String::new(), false);
    for c in markup.chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            c if !in_tag && c.is_alphanumeric() => {
                word.push(c);
                continue;
            }
            _ => {}
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Everything that holds of a condensed page; `words_hold` says whether its told text can be read by [`words`].
fn check(page: &str, target: usize, query: Option<&str>, pins: &[String], words_hold: bool) {
    let case = Case { text: page, content_type: ContentType::Html, target, query, pins };
    let Some(condensed) = held(&case, &Counter::o200k()) else { return };
    let (mut at, mut written) = (0, 0);
    let mut check_told = |told: &str| {
        for word in words(told).iter().filter(|_| words_hold) {
            let found = condensed.text[written..].find(word.as_str());
            assert!(found.is_some(), "{word:?} of {told:?} is neither told nor in a gap: {}", condensed.text);
            written += found.unwrap() + word.len();
        }
    };
    for gap in &condensed.gaps {
        assert_eq!(gap.pointer.id, condensed.pointer.id);
        check_told(&page[at..gap.bytes.start]);
        at = gap.bytes.end;
    }
    if condensed.gaps.is_empty() && condensed.text == page {
        return;
    }
    check_told(&page[at..]);
    let explained = condensed.text.contains("left out");
    for gap in condensed.gaps.iter().filter(|_| explained) {
        let (start, end) = gap.range;
        assert!(condensed.text.contains(&format!("{start}-{end}]")), "{gap:?} is not marked");
    }
}

/// Pages put together from well-formed pieces, numbered words throughout.
fn pages() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<p>§ is a sentence about the harbour and its ferry, which left at noon with § aboard. It cost $§.50.</p>",
        "<p>§ was short.</p>",
        "<h2>Heading §</h2>",
        "<ul><li>item §</li><li>item <b>§</b></li></ul>",
        "<table><tr><td>row §</td><td>§</td></tr><tr><td>row §</td><td>§</td></tr></table>",
        "<nav><a href='/§'>menu §</a> <a href='/§'>menu §</a></nav>",
        "<script>var a§ = 1; // this is a script of more than a few characters, so that it counts as something</script>",
        "<!-- note § -->",
        "<div class='ad'><a href='https://ads.example/§'>buy §</a></div>",
        "<pre>code §\n  more §</pre>",
        "<p>see <a href='https://source.example/§'>source §</a> for more about the letters of the year §.</p>",
        "text § without a tag\n",
        "<footer>imprint §</footer>",
        "<form><label>name §</label><input value='§'></form>",
        "\r\n\r\n",
        "<div><div>",
        "</div>",
    ]);
    prop::collection::vec(piece, 0..90).prop_map(|pieces| {
        let mut number = 0;
        let mut page = "<html><head><title>The title</title></head><body>".to_owned();
        for c in pieces.concat().chars() {
            if c == '§' {
                number += 1;
                page.push_str(&format!("w{number}x"));
            } else {
                page.push(c);
            }
        }
        page + "</body></html>"
    })
}

/// A page with bytes of another kind put in at some places, or with a stretch taken out.
fn mutated() -> impl Strategy<Value = String> {
    let scrap = prop::sample::select(vec![
        "<",
        ">",
        "\"",
        "'",
        "&",
        "&amp;",
        "&#x41;",
        "\0",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "<svg>",
        "<a href=",
        "é",
        "日本語。",
        "\u{feff}",
        "\r\n",
        "=",
        "<td>",
        "</p>",
        "lp1-",
        "[… B1-2]",
        "```",
        "\u{e}\u{e}\u{e}\u{e}",
        "<title>",
    ]);
    (pages(), prop::collection::vec((any::<prop::sample::Index>(), scrap, 0..40_usize), 0..12)).prop_map(
        |(mut page, edits)| {
            for (place, scrap, cut) in edits {
                let start = page.floor_char_boundary(place.index(page.len() + 1));
                let end = page.floor_char_boundary((start + cut / 4).min(page.len())).max(start);
                page.replace_range(start..end, scrap);
            }
            page
        },
    )
}

proptest! {
    #[test]
    fn any_page_meets_its_target_and_reports_its_ranges(
        page in pages(),
        target in prop_oneof![0..80_usize, 80..400_usize, 400..2_000_usize],
        query in prop::option::of("w[0-9]{1,2}x|ferry harbour"),
        places in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize), 0..3),
    ) {
        let pins = pins_of(&page, &places);
        check(&page, target, query.as_deref(), &pins, pins.is_empty());
    }

    #[test]
    fn any_broken_page_meets_its_target(
        page in prop_oneof![4 => mutated(), 1 => "\\PC{0,400}", 1 => any::<Vec<char>>().prop_map(String::from_iter)],
        target in prop_oneof![0..80_usize, 80..400_usize, 400..2_000_usize],
        places in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize), 0..3),
    ) {
        let pins = pins_of(&page, &places);
        check(&page, target, None, &pins, false);
    }

    #[test]
    fn our_own_pointers_survive(page in pages(), at in any::<prop::sample::Index>(), target in 80..500_usize) {
        let pointer = Pointer::lines(key().mint(larder_text::hash::ContentHash::new(b"elsewhere")), 3, 9);
        let at = page.floor_char_boundary(at.index(page.len() + 1));
        let page = format!("{} {pointer} {}", &page[..at], &page[at..]);
        check(&page, target, None, &[], false);
    }
}

fn article(paragraphs: usize) -> String {
    const SUBJECTS: [&str; 7] =
        ["harbour", "library", "market", "orchard", "railway", "theatre", "observatory"];
    let paragraph = |n: usize| {
        let (a, b, c) = (SUBJECTS[n % 7], SUBJECTS[(n / 7) % 7], SUBJECTS[(n / 49) % 7]);
        format!(
            "<p class=\"c{n}\">People who walked from the {a} to the {b} spoke of the weather, of the {c}, and of the \
             {n} letters that nobody had opened since the winter before.</p><script>track({n}, \"{a}\", \"{b}\", \"{c}\");\
             </script>\n"
        )
    };
    let body: String = (0..paragraphs).map(paragraph).collect();
    format!(
        "<!DOCTYPE html><html><head><title>Letters</title></head><body><nav><a href=/a>Home</a></nav><article>{body}\
         </article></body></html>"
    )
}

#[test]
fn pages_larger_than_the_target_fill_it() {
    for target in [500, 1_000, 4_000] {
        let condensed = run(&article(600), target, None, &[]).unwrap();
        assert!(condensed.tokens * 100 >= target * 95, "{} of {target}", condensed.tokens);
    }
}

#[test]
fn the_paragraph_that_answers_the_query_is_kept() {
    let page =
        article(400).replace("</article>", "<p>The keeper of the lighthouse was Matilda.</p></article>");
    let condensed = run(&page, 400, Some("who was the lighthouse keeper?"), &[]).unwrap();
    assert!(condensed.text.contains("The keeper of the lighthouse was Matilda."), "{}", condensed.text);
}

#[test]
fn hostile_pages_meet_their_target() {
    let deep = "<div>".repeat(1_000_000) + "word";
    let nested = "<b><p><i><table></b></p><td></i>x".repeat(20_000);
    let floods =
        ["<", "&amp;", "<a href=\"", "<!--", "<script>", "<p>é\0", "<li>x ", "<td>x", "<font color=1>x<p>"];
    let floods = floods.iter().map(|unit| unit.repeat(1_000_000 / unit.len()));
    // Each end tag ends nothing, so that the page is as deep as it has elements.
    let words = "Words of an article that goes on for a while. ".repeat(60);
    let hidden = format!("<!doctype html><article><p>{words}</p>") + &"<div></i>".repeat(5_900);
    for page in floods.chain([deep, nested, hidden, format!("<html>{}", "x".repeat(1_000_000))]) {
        let condensed = run(&page, 300, Some("word"), &[]).unwrap();
        assert!(condensed.tokens <= 300, "{}", &page[..20]);
    }
}
