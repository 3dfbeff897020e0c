//! Queries that ask nothing of documents: greetings, thanks and the like, of nothing but words of courtesy. Knows no model.

/// What makes a query small talk, in lower case and without punctuation.
const PHRASES: [&str; 56] = [
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
    "take care",
    "have a nice day",
    "have a good day",
    "have a great day",
    "have a nice evening",
    "have a nice weekend",
    "thank you",
    "thanks",
    "thx",
    "i appreciate",
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
    "bye",
    "goodbye",
    "cheers",
    "ok",
    "okay",
    "great",
    "perfect",
    "cool",
    "awesome",
    "sorry",
    "hallo",
    "guten morgen",
    "guten tag",
    "guten abend",
    "gute nacht",
    "wie geht s",
    "wie geht es dir",
    "wie geht es ihnen",
    "danke",
    "vielen dank",
    "bis bald",
    "tschüs",
    "tschüss",
];
/// What may stand next to them. None of it chooses or asks for anything.
const FILLERS: [&str; 34] = [
    "you", "so", "much", "very", "really", "a", "lot", "many", "for", "your", "the", "help", "answer",
    "time", "and", "too", "there", "today", "later", "soon", "again", "please", "helpful", "useful", "nice",
    "good", "then", "now", "dear", "schön", "sehr", "helped", "geholfen", "dir",
];
/// What the answer did, after a word for it.
const ANSWERS: [&str; 5] = ["that", "it", "this", "das", "es"];
const DEEDS: [&str; 12] =
    ["helped", "helps", "was", "s", "is", "worked", "works", "did", "hat", "war", "ist", "really"];
/// How the question whether somebody is well begins, and the question who this is.
const QUESTIONS: [&str; 4] = ["how", "what", "who", "wie"];

/// Whether a query consists of nothing but words of courtesy, and asks nothing but how one is.
pub(super) fn is_small_talk(query: &str) -> bool {
    let lower = query.to_lowercase();
    let words: Vec<&str> = lower.split(|char: char| !char.is_alphanumeric()).collect();
    let mut rest: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let (mut is_courteous, mut may_ask) = (false, false);
    while let Some(word) = rest.first().copied() {
        let phrases = PHRASES.iter().map(|phrase| phrase.split(' ').collect::<Vec<_>>());
        let longest = phrases.filter(|phrase| rest.starts_with(phrase)).max_by_key(Vec::len);
        is_courteous |= longest.is_some();
        may_ask |= longest.is_some() && QUESTIONS.contains(&word);
        let tells = ANSWERS.contains(&word) && rest.get(1).is_some_and(|deed| DEEDS.contains(deed));
        let length = match longest {
            Some(phrase) => phrase.len(),
            None if tells => 2,
            None if FILLERS.contains(&word) => 1,
            None => return false,
        };
        rest.drain(..length);
    }
    is_courteous && (may_ask || !query.contains('?'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_greetings_and_thanks_are_small_talk() {
        for query in [
            "How are you?",
            "thanks!",
            "Hi there, how's it going today?",
            "Vielen Dank!",
            "ok, great",
            "Thank you so much, that helped!",
            "ok great, bye",
            "Thanks a lot for your help, it was very useful.",
            "Danke, das hat sehr geholfen!",
            "Awesome, that really helped, thank you. Have a nice weekend!",
            "Thanks, that's all.",
        ] {
            assert!(is_small_talk(query), "{query}");
        }
        for query in [
            "",
            "?",
            "is it so?",
            "thanks, and what does it cost?",
            "How are you licensed?",
            "hello world",
            "that was good",
            "thanks, is it good?",
            "ok, this",
            "ok, and now?",
            "help",
            "thanks, that helped with the boat",
        ] {
            assert!(!is_small_talk(query), "{query}");
        }
    }
}
