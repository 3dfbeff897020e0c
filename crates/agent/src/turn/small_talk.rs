//! Queries that ask nothing of documents: greetings, thanks and the like, by a closed list of phrases. Knows no model.

/// In lower case and without punctuation. A query is small talk if nothing but these is in it.
const PHRASES: [&str; 62] = [
    "how are you",
    "how are you doing",
    "how is it going",
    "how s it going",
    "how do you do",
    "what s up",
    "who are you",
    "nice to meet you",
    "see you",
    "talk to you",
    "have a nice day",
    "have a good day",
    "thank you",
    "thanks",
    "many thanks",
    "so much",
    "very much",
    "a lot",
    "for your help",
    "for the help",
    "you re welcome",
    "you are welcome",
    "that s all",
    "that is all",
    "well done",
    "good job",
    "good morning",
    "good afternoon",
    "good evening",
    "good night",
    "hello",
    "hi",
    "hey",
    "there",
    "today",
    "later",
    "soon",
    "again",
    "bye",
    "goodbye",
    "cheers",
    "ok",
    "okay",
    "great",
    "perfect",
    "cool",
    "sorry",
    "please",
    "hallo",
    "guten morgen",
    "guten tag",
    "guten abend",
    "gute nacht",
    "wie geht s",
    "wie geht es dir",
    "wie geht es ihnen",
    "danke",
    "danke schön",
    "vielen dank",
    "bis bald",
    "tschüss",
    "tschüs",
];

/// Whether a query consists of nothing but such phrases.
pub(super) fn is_small_talk(query: &str) -> bool {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split(|char: char| !char.is_alphanumeric()).collect();
    let mut rest: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let is_any = !rest.is_empty();
    while !rest.is_empty() {
        let longest = PHRASES
            .iter()
            .map(|phrase| phrase.split(' ').collect::<Vec<_>>())
            .filter(|phrase| rest.starts_with(phrase))
            .max_by_key(Vec::len);
        let Some(phrase) = longest else { return false };
        rest.drain(..phrase.len());
    }
    is_any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_greetings_and_thanks_are_small_talk() {
        for query in
            ["How are you?", "thanks!", "Hi there, how's it going today?", "Vielen Dank!", "ok, great"]
        {
            assert!(is_small_talk(query), "{query}");
        }
        for query in
            ["", "?", "is it so?", "thanks, and what does it cost?", "How are you licensed?", "hello world"]
        {
            assert!(!is_small_talk(query), "{query}");
        }
    }
}
