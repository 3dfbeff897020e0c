//! The text about a turn or a piece of research that is embedded: a function of its document alone, cut to the input of
//! embedding models.

use crate::{Research, TurnMetadata};

/// Bytes of a text: a few hundred tokens, and for English within 512 of most vocabularies.
const MAX_BYTES: usize = 1_500;
/// Bytes of the query: text pasted behind a question must not displace the result.
const MAX_QUERY_BYTES: usize = 900;
/// Bytes of a hash: enough that no two texts of one user share one.
const HASH: usize = 16;

/// The query, the result, and the topic.
pub fn of_turn(turn: &TurnMetadata) -> String {
    let topic = turn.topic.as_deref().unwrap_or_default();
    short_text(&turn.query, turn.summary.as_deref().unwrap_or_default(), topic)
}

/// The query, the facts that were found, and the topic.
pub fn of_research(research: &Research) -> String {
    short_text(&research.query, &research.facts.join("\n"), &research.topic)
}

fn short_text(query: &str, result: &str, topic: &str) -> String {
    let topic = cut(topic, MAX_QUERY_BYTES / 4).replace(['.', '_'], " ");
    let query = cut(query, MAX_QUERY_BYTES);
    let result = cut(result, MAX_BYTES - query.len() - topic.len() - 2);
    format!("{query}\n{result}\n{topic}")
}

fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// The key of a text.
pub fn hash(text: &str) -> [u8; HASH] {
    let mut hash = [0; HASH];
    blake3::Hasher::new().update(text.as_bytes()).finalize_xof().fill(&mut hash);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_short_and_keeps_the_result() {
        let text = short_text(&"é".repeat(5_000), &"answer ".repeat(500), "commerce.gaming_laptop");
        assert!(text.len() <= MAX_BYTES && text.len() > MAX_BYTES - 8, "{}", text.len());
        assert!(text.contains("\nanswer answer") && text.ends_with("\ncommerce gaming laptop"));
        assert_eq!(short_text("q", "", ""), "q\n\n");
        assert!(short_text("", "", &"é".repeat(5_000)).len() <= MAX_BYTES);
        assert_ne!(hash("a"), hash("b"));
    }
}
