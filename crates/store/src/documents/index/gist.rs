//! What a turn or a piece of research says in short, for vectors of it: a function of its document alone, cut to what
//! embedding models take.

use larder_vault::{Research, TurnMetadata};

/// Bytes of a text: a few hundred tokens, and for English within 512 of most vocabularies.
const MOST: usize = 1_500;
/// Bytes of what was asked: what is pasted behind a question must not push out what came of it.
const MOST_ASKED: usize = 900;
/// Bytes of a hash: enough that no two texts of one user share one.
const HASH: usize = 16;

/// What was asked, what it came to, and the topic.
pub(super) fn of_turn(turn: &TurnMetadata) -> String {
    let topic = turn.topic.as_deref().unwrap_or_default();
    told(&turn.query, turn.summary.as_deref().unwrap_or_default(), topic)
}

/// What was asked, the facts that were found, and the topic.
pub(super) fn of_research(research: &Research) -> String {
    told(&research.query, &research.facts.join("\n"), &research.topic)
}

fn told(asked: &str, came_to: &str, topic: &str) -> String {
    let topic = cut(topic, MOST_ASKED / 4).replace(['.', '_'], " ");
    let asked = cut(asked, MOST_ASKED);
    let came_to = cut(came_to, MOST - asked.len() - topic.len() - 2);
    format!("{asked}\n{came_to}\n{topic}")
}

fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// By what a text is known.
pub(super) fn hash(text: &str) -> [u8; HASH] {
    let mut hash = [0; HASH];
    blake3::Hasher::new().update(text.as_bytes()).finalize_xof().fill(&mut hash);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gist_is_short_and_says_what_it_came_to() {
        let gist = told(&"é".repeat(5_000), &"answer ".repeat(500), "commerce.gaming_laptop");
        assert!(gist.len() <= MOST && gist.len() > MOST - 8, "{}", gist.len());
        assert!(gist.contains("\nanswer answer") && gist.ends_with("\ncommerce gaming laptop"));
        assert_eq!(told("q", "", ""), "q\n\n");
        assert!(told("", "", &"é".repeat(5_000)).len() <= MOST);
        assert_ne!(hash("a"), hash("b"));
    }
}
