//! Words that say nothing of a text's subject.

/// English function words and words of asking, in lower case and sorted.
pub const STOP_WORDS: [&str; 60] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "is", "it", "its", "me",
    "my", "not", "of", "on", "or", "she", "should", "that", "the", "their", "them", "there", "they", "this",
    "to", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "you", "your",
];

/// Whether a word in lower case is one of them.
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted_and_found() {
        assert!(STOP_WORDS.is_sorted_by(|a, b| a < b));
        assert!(is_stop_word("the") && is_stop_word("your") && !is_stop_word("larder"));
    }
}
