//! Chunks tile, fit, and end where a reader would cut.

use proptest::prelude::*;

use super::*;

fn check(text: &str, max: usize, counter: &Counter) -> Vec<Chunk> {
    let chunks = chunks(text, max, counter).unwrap();
    let (mut at, mut line) = (0, 1);
    for chunk in &chunks {
        let part = &text[chunk.bytes.clone()];
        assert_eq!(chunk.bytes.start, at);
        assert!(!part.is_empty());
        assert_eq!(chunk.tokens, counter.count(part));
        assert!(chunk.tokens <= max, "{} of {max} in {part:?}", chunk.tokens);
        assert_eq!(
            chunk.lines,
            (
                line,
                line + part.trim_end_matches('\n').matches('\n').count() + {
                    let breaks = part.len() - part.trim_end_matches('\n').len();
                    breaks.saturating_sub(1)
                }
            )
        );
        line += part.matches('\n').count();
        at = chunk.bytes.end;
    }
    assert_eq!(at, text.len());
    chunks
}

proptest! {
    #[test]
    fn chunks_tile_and_fit(
        text in prop::collection::vec(
            prop_oneof!["[a-z .,!?]{0,80}", "\\PC{0,40}", "[\n\r #]{1,4}", "[ぁ-ん一-龠。、「」]{0,60}", "[\0-\x7f]{0,40}"], 0..40,
        ).prop_map(|parts| parts.concat()),
        max in SMALLEST_CHUNK..200,
    ) {
        for counter in [Counter::o200k(), Counter::bytes(), Counter::claude(crate::tokens::ClaudeGeneration::From4_7)] {
            check(&text, max, &counter);
        }
    }
}

#[test]
fn chunks_end_at_the_best_boundary() {
    let counter = Counter::o200k();
    let sentence = "The quick brown fox jumps over the lazy dog again and again. ";
    let ends = |text: &str, max: usize| -> Vec<String> {
        let chunks = check(text, max, &counter);
        let tail = |chunk: &Chunk| text[chunk.bytes.clone()].chars().rev().take(2).collect::<Vec<_>>();
        chunks[..chunks.len() - 1].iter().map(|chunk| tail(chunk).into_iter().rev().collect()).collect()
    };
    assert!(ends(&sentence.repeat(50), 100).iter().all(|end| end == ". "));
    assert!(ends(&format!("{}\n\n", sentence.repeat(3)).repeat(20), 100).iter().all(|end| end == "\n\n"));
    assert!(
        ends(&"吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。".repeat(40), 100)
            .iter()
            .all(|end| end.ends_with('。'))
    );
    let code = "    let value = compute(first, second);\n".repeat(60);
    assert!(ends(&code, 100).iter().all(|end| end == ";\n"));
    let markdown = format!("# Part\n\n{}\n\n", sentence.repeat(5)).repeat(12);
    let chunks = check(&markdown, 100, &counter);
    assert!(chunks.iter().all(|chunk| markdown[chunk.bytes.clone()].starts_with("# Part")));
}

#[test]
fn an_enormous_line_and_empty_text_are_divided() {
    let counter = Counter::o200k();
    assert_eq!(chunks("", 100, &counter), Ok(Vec::new()));
    let json = format!("[{}]", (0..20_000).map(|n| format!("{{\"id\":{n}}}")).collect::<Vec<_>>().join(","));
    assert!(check(&json, 500, &counter).iter().all(|chunk| chunk.lines == (1, 1)));
    for unit in ["a", " ", "漢", "\0", "👍🏽", "\r\n"] {
        check(&unit.repeat(20_000), 500, &counter);
    }
    assert_eq!(chunks("text", 3, &counter), Err(ChunkError { max: 3 }));
}

#[test]
fn chunks_fill_most_of_what_they_may() {
    let counter = Counter::o200k();
    let text: String = (0..20_000).map(|n| format!("Sentence number {n} says something. ")).collect();
    let chunks = check(&text, 500, &counter);
    let filled = chunks.iter().map(|chunk| chunk.tokens).sum::<usize>() * 100 / (chunks.len() * 500);
    assert!(filled >= 85, "{filled} %");
}
