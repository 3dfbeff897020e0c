//! Ranks what was said in conversations for a message: by words and, where there are vectors, by meaning (R4-4.6, C91).
//!
//! One score for all sessions: what the index gives for the words, next to the cosine of the message's vector and of its
//! session's. A message below the threshold of its model is not related by meaning, and its words alone count.
//! Pure; knows neither stores nor models, and nothing of who may see what.

use chrono::DateTime;

use crate::index::{Index, Query, Record};

/// The weight of the nearest message next to the best match of words …
const MEANING: f64 = 0.7;
/// … and of the nearest session.
const SESSION: f64 = 0.05;
/// A longer name before a colon is not one.
const MAX_NAME: usize = 30;
/// A name of more words is not one.
const NAME_WORDS: usize = 3;

/// Something that was said. What is given one after another with the same session follows one another.
#[derive(Debug, Clone, Copy, Default)]
pub struct Utterance<'a> {
    /// What was said.
    pub text: &'a str,
    /// Who said it, unless the text opens with a name and a colon.
    pub author: &'a str,
    /// When, in milliseconds since 1970.
    pub millis: u64,
    /// A number for its session.
    pub session: usize,
    /// Its vector.
    pub vector: Option<&'a [f32]>,
    /// The vector of its session.
    pub session_vector: Option<&'a [f32]>,
    /// The share by which its score is raised.
    pub boost: f64,
}

/// What is looked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// A message, or any words.
    pub text: &'a str,
    /// Now, in milliseconds since 1970.
    pub millis: u64,
    /// Its vector, by the model of the others.
    pub vector: Option<&'a [f32]>,
    /// The cosine from which a text is related.
    pub threshold: f64,
}

/// Something that may help.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Related {
    /// Its place among what was given.
    pub place: usize,
    /// How well it answers; comparable within one ranking.
    pub score: f64,
    /// Whether it, or what was said next to it, shares words with the question.
    pub by_words: bool,
    /// The cosine, if it is related by it.
    pub cosine: Option<f64>,
}

/// What may help with a question, best first, equals in order.
pub fn related(asked: &Asked<'_>, said: &[Utterance<'_>]) -> Vec<Related> {
    let words = word_scores(asked, said);
    let near =
        |vector: Option<&[f32]>| Some(cosine(asked.vector?, vector?)).filter(|&near| near >= asked.threshold);
    let own: Vec<Option<f64>> = said.iter().map(|one| near(one.vector)).collect();
    let sessions: Vec<Option<f64>> = said.iter().map(|one| near(one.session_vector)).collect();
    let best = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let most_words = best(&mut words.iter().copied());
    let nearest = best(&mut own.iter().flatten().copied());
    let nearest_session = best(&mut sessions.iter().flatten().copied());
    let found = (0..said.len()).map(|place| {
        let meaning = own[place].map_or(0.0, |near| near / nearest);
        let session = sessions[place].map_or(0.0, |near| near / nearest_session);
        let score = words[place] / most_words + MEANING * meaning;
        // A session says which of its messages are preferred, not that all of them are related.
        let score = if score > 0.0 { score + SESSION * session } else { 0.0 };
        Related {
            place,
            score: score * (1.0 + said[place].boost),
            by_words: words[place] > 0.0,
            cosine: own[place],
        }
    });
    let mut found: Vec<Related> = found.filter(|found| found.score > 0.0).collect();
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
    found
}

/// What the words of each are worth.
fn word_scores(asked: &Asked<'_>, said: &[Utterance<'_>]) -> Vec<f64> {
    let mut index = Index::for_query(asked.text);
    let mut session = None;
    for one in said {
        if session.replace(one.session) != Some(one.session) {
            index.start_section();
        }
        let (author, text) = author_of(one);
        // Who says it, and when, is searched, too.
        let day = day(one.millis);
        let shown = format!(
            "[{}] {author}: {text}",
            day.map(|day| day.format("%-d %B %Y").to_string()).unwrap_or_default()
        );
        index.add(&Record { text: &shown, author: Some(author), day, ..Record::default() });
    }
    let mut scores = vec![0.0; said.len()];
    for hit in index.search(&Query { text: asked.text, today: day(asked.millis) }) {
        scores[hit.record] = hit.score;
    }
    scores
}

fn day(millis: u64) -> Option<chrono::NaiveDate> {
    DateTime::from_timestamp_millis(i64::try_from(millis).ok()?).map(|moment| moment.date_naive())
}

/// Who says something, and what.
fn author_of<'a>(said: &Utterance<'a>) -> (&'a str, &'a str) {
    opening_name(said.text).unwrap_or((said.author, said.text))
}

/// The name before the colon that a text opens with, as in `Ann: Hello.`, and the rest.
pub fn opening_name(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once(": ")?;
    let is_name =
        |word: &str| word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphanumeric);
    let words = name.split(' ').count();
    (name.len() <= MAX_NAME && words <= NAME_WORDS && name.split(' ').all(is_name)).then_some((name, rest))
}

/// The cosine of the angle between two vectors; 0 if one of them says nothing, or they are of different lengths.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 && a.len() == b.len() { f64::from(dot(a, b) / lengths) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;
    const NEAR: [f32; 2] = [1.0, 0.0];
    const FAR: [f32; 2] = [0.0, 1.0];

    fn said(text: &str, session: usize) -> Utterance<'_> {
        Utterance { text, author: "User", millis: 19_000 * DAY, session, ..Utterance::default() }
    }

    fn places(found: &[Related]) -> Vec<usize> {
        found.iter().map(|found| found.place).collect()
    }

    #[test]
    fn words_find_what_was_said_and_a_question_leads_to_its_answer() {
        let all = [said("Where did you put the bicycle?", 0), said("In the shed.", 0), said("It rains.", 1)];
        let found = related(&Asked { text: "the bicycle", ..Asked::default() }, &all);
        let mut both = places(&found);
        both.sort_unstable();
        assert_eq!(both, [0, 1]);
        assert!(found.iter().all(|found| found.by_words && found.cosine.is_none()));
        assert!(related(&Asked { text: "hamster", ..Asked::default() }, &all).is_empty());
    }

    #[test]
    fn meaning_counts_from_the_threshold_on_and_only_with_a_vector_of_the_question() {
        let all = [
            Utterance { vector: Some(&[0.6, 0.8]), ..said("We bought a mattress.", 0) },
            Utterance { vector: Some(&FAR), ..said("It rains.", 1) },
        ];
        let asked = Asked { text: "bedding", vector: Some(&NEAR), ..Asked::default() };
        let at = |threshold| places(&related(&Asked { threshold, ..asked }, &all));
        assert_eq!((at(0.59), at(0.61)), (vec![0], vec![]));
        assert!(related(&Asked { vector: None, ..asked }, &all).is_empty());
    }

    #[test]
    fn a_near_session_and_a_link_are_preferred() {
        let plain = said("We bought a bed.", 0);
        let preferred = |other| {
            places(&related(&Asked { text: "bed", vector: Some(&NEAR), ..Asked::default() }, &[plain, other]))
        };
        assert_eq!(preferred(said("We bought a bed.", 1)), [0, 1]);
        assert_eq!(
            preferred(Utterance { session_vector: Some(&NEAR), ..said("We bought a bed.", 1) }),
            [1, 0]
        );
        assert_eq!(preferred(Utterance { boost: 0.3, ..said("We bought a bed.", 1) }), [1, 0]);
    }

    #[test]
    fn a_name_that_opens_a_text_is_who_said_it() {
        assert_eq!(opening_name("Ann Lee: Hi: you."), Some(("Ann Lee", "Hi: you.")));
        for none in ["I said this: no.", "12: x", "Hello", "note: x", "A Very Long Name Indeed: x"] {
            assert_eq!(opening_name(none), None, "{none}");
        }
        let all = [said("Ann: I like tea.", 0), said("Bob: I like tea.", 1)];
        assert_eq!(
            places(&related(&Asked { text: "What tea does Bob like?", ..Asked::default() }, &all)),
            [1, 0]
        );
    }

    #[test]
    fn the_cosine_is_that_of_the_angle() {
        assert_eq!((cosine(&NEAR, &NEAR), cosine(&NEAR, &FAR)), (1.0, 0.0));
        assert_eq!((cosine(&NEAR, &[0.0, 0.0]), cosine(&NEAR, &[1.0])), (0.0, 0.0));
    }
}
