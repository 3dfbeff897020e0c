//! Ranks what was said in conversations for a message: by words and, where there are vectors, by meaning (R4-4.6, C91).
//!
//! One score for all sessions: what the index gives for the words and the days that are named, next to the cosine of the
//! message's vector and of its session's. A message below the threshold of its model is not related by meaning, and its
//! words alone count. A question for a time is answered by what tells one.
//! Pure; knows neither stores nor models, and nothing of who may see what.

use chrono::DateTime;

use crate::index::{KeptRecords, Query, Record, asks_latest, asks_when};

/// The weight of the nearest message next to the best match of words …
const MEANING: f64 = 0.7;
/// … and of the nearest session.
const SESSION: f64 = 0.05;
/// What the nearness of a message together with the next one counts for: an answer says what its question is about.
const WITH_NEXT: f64 = 0.8;
/// The share by which the score of what tells a time rises for a question that asks for one.
const TELLS_TIME: f64 = 0.7;
/// A question about the last time prefers the newest of what scores at least this share of the best …
const ALIKE: f64 = 0.5;
/// … whose score rises by this share. That of the oldest of them does not.
const NEWEST: f64 = 1.0;
/// The least square of the length of two vectors' sum that is divided by.
const LEAST_SQUARE: f64 = 0.01;
/// Products that are summed side by side.
const LANES: usize = 16;
/// A longer name before a colon is not one.
const MAX_NAME: usize = 30;
/// A name of more words is not one.
const NAME_WORDS: usize = 3;

/// The words by which a question is answered with yes or no.
const YES_OR_NO: [&str; 12] = [
    "yes",
    "yeah",
    "yep",
    "yup",
    "no",
    "nope",
    "nah",
    "sure",
    "exactly",
    "definitely",
    "absolutely",
    "totally",
];

/// Something that was said.
#[derive(Debug, Clone, Copy, Default)]
pub struct Utterance<'a> {
    /// What was said.
    pub text: &'a str,
    /// Who said it, unless the text opens with a name and a colon.
    pub author: &'a str,
    /// When, in milliseconds since 1970.
    pub millis: u64,
}

/// Something that was said and may be related. What is given one after another with the same session follows one another.
#[derive(Debug, Clone, Copy, Default)]
pub struct Candidate<'a> {
    /// Its number.
    pub number: u64,
    /// A number for its session.
    pub session: usize,
    /// Its vector, as [`of_unit_length`] makes it.
    pub vector: Option<&'a [f32]>,
    /// The vector of its session, alike.
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
    /// Its vector, by the model of the others and of unit length as they are.
    pub vector: Option<&'a [f32]>,
    /// The cosine from which a text is related.
    pub threshold: f64,
}

/// Something that may help.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Related {
    /// Its place among the candidates.
    pub place: usize,
    /// How well it answers; comparable within one ranking.
    pub score: f64,
    /// Whether it, or what was said next to it, shares words with the question, or is of a day that it names.
    pub by_words: bool,
    /// The cosine, its own or together with the next message, if it is related by it.
    pub cosine: Option<f64>,
}

/// Everything that was said, by numbers that the caller gives; its words are analysed once, however often it is searched.
#[derive(Debug, Default)]
pub struct Dialogue(KeptRecords);

impl Dialogue {
    /// Adds what was said, in place of what had the same number.
    pub fn add(&mut self, number: u64, said: &Utterance<'_>) {
        let (author, text) = author_of(said);
        // Who says it, and when, is searched, too.
        let day = day(said.millis);
        let shown = format!(
            "[{}] {author}: {text}",
            day.map(|day| day.format("%-d %B %Y").to_string()).unwrap_or_default()
        );
        self.0.add(number, &Record { text: &shown, author: Some(author), day, ..Record::default() }, text);
    }

    /// Forgets what has other numbers.
    pub fn retain(&mut self, wanted: impl FnMut(u64) -> bool) {
        self.0.retain(wanted);
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// What of the candidates may help with a question, best first, equals in order. What is no candidate counts for
    /// nothing, not even for how rare a word is.
    pub fn related(&self, asked: &Asked<'_>, among: &[Candidate<'_>]) -> Vec<Related> {
        let selected: Vec<(u64, usize)> = among.iter().map(|one| (one.number, one.session)).collect();
        let words = self.0.scores(&Query { text: asked.text, today: day(asked.millis) }, &selected);
        let near = |vector: Option<&[f32]>| {
            Some(cosine(asked.vector?, vector?)).filter(|&near| near >= asked.threshold)
        };
        let own = nearness(asked, among);
        let when = asks_when(asked.text);
        let mut sessions: Vec<Option<f64>> = Vec::with_capacity(among.len());
        for (place, one) in among.iter().enumerate() {
            // Candidates of one session have one vector.
            let before = place.checked_sub(1).filter(|&before| among[before].session == one.session);
            sessions.push(before.map_or_else(|| near(one.session_vector), |before| sessions[before]));
        }
        let best = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let most_words = best(&mut words.iter().copied());
        let nearest = best(&mut own.iter().flatten().copied());
        let nearest_session = best(&mut sessions.iter().flatten().copied());
        let found = (0..among.len()).map(|place| {
            let meaning = own[place].map_or(0.0, |near| near / nearest);
            let session = sessions[place].map_or(0.0, |near| near / nearest_session);
            let score = words[place] / most_words + MEANING * meaning;
            // A session says which of its messages are preferred, not that all of them are related.
            let score = if score > 0.0 { score + SESSION * session } else { 0.0 };
            let tells = if when && self.0.tells_time(among[place].number) { TELLS_TIME } else { 0.0 };
            Related {
                place,
                score: score * (1.0 + among[place].boost) * (1.0 + tells),
                by_words: words[place] > 0.0,
                cosine: own[place],
            }
        });
        let mut found: Vec<Related> = found.filter(|found| found.score > 0.0).collect();
        if asks_latest(asked.text) {
            self.prefer_new(among, &mut found);
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
        found
    }

    /// Raises the scores of those that answer about as well as the best, the more the newer they are.
    fn prefer_new(&self, among: &[Candidate<'_>], found: &mut [Related]) {
        let best = found.iter().map(|one| one.score).fold(0.0, f64::max);
        let alike = found.iter_mut().filter(|one| one.score >= ALIKE * best);
        let mut dated: Vec<_> =
            alike.filter_map(|one| Some((self.0.day(among[one.place].number)?, one))).collect();
        let days = || dated.iter().map(|(day, _)| *day);
        let Some((oldest, newest)) = days().min().zip(days().max()) else { return };
        let between = (newest - oldest).num_days().max(1) as f64;
        for (day, one) in &mut dated {
            one.score *= 1.0 + NEWEST * (*day - oldest).num_days() as f64 / between;
        }
    }
}

/// How near each candidate is: by itself or, for less, together with the one that follows in its session; `None` below the
/// threshold.
fn nearness(asked: &Asked<'_>, among: &[Candidate<'_>]) -> Vec<Option<f64>> {
    let cosines: Vec<Option<f64>> =
        among.iter().map(|one| Some(cosine(asked.vector?, one.vector?))).collect();
    let is_near = |near: &f64| *near >= asked.threshold;
    let with_next = |place: usize| {
        let (one, next) = (&among[place], among.get(place + 1)?);
        let sum = cosines[place]? + cosines[place + 1]?;
        // The cosine with the sum of both vectors at length 1.
        let square = || Some(2.0 + 2.0 * cosine(one.vector?, next.vector?));
        let near =
            (one.session == next.session).then(square)?.map(|square| sum / square.max(LEAST_SQUARE).sqrt());
        near.filter(is_near).map(|near| WITH_NEXT * near)
    };
    let nearest = |place: usize| match (cosines[place].filter(is_near), with_next(place)) {
        (Some(alone), Some(both)) => Some(alone.max(both)),
        (alone, both) => alone.or(both),
    };
    (0..among.len()).map(nearest).collect()
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

/// Whether a text answers with a yes or a no, which says little without the question before it.
pub fn opens_with_yes_or_no(text: &str) -> bool {
    let said = opening_name(text).map_or(text, |(_, said)| said).trim_start();
    let word = said.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    YES_OR_NO.contains(&word.as_str())
}

/// A vector of length 1 in the same direction; one that says nothing stays as it is.
pub fn of_unit_length(mut vector: Vec<f32>) -> Vec<f32> {
    let length = dot(&vector, &vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    }
    vector
}

/// The cosine of the angle between two vectors of unit length; 0 if one of them says nothing, or they are of different
/// lengths.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    if a.len() == b.len() { f64::from(dot(a, b)) } else { 0.0 }
}

/// Sums in lanes, which a processor adds at once.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>();
    lanes.iter().sum::<f32>() + rest
}

#[cfg(test)]
#[path = "dialogue_time_tests.rs"]
mod time_tests;

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;
    const NEAR: [f32; 2] = [1.0, 0.0];
    const FAR: [f32; 2] = [0.0, 1.0];

    #[derive(Clone, Copy)]
    struct Said<'a>(&'a str, Candidate<'a>);

    fn said(text: &str, session: usize) -> Said<'_> {
        Said(text, Candidate { session, ..Candidate::default() })
    }

    fn related(asked: &Asked<'_>, all: &[Said<'_>]) -> Vec<Related> {
        let mut dialogue = Dialogue::default();
        let mut among = Vec::new();
        for (number, Said(text, candidate)) in (1..).zip(all) {
            dialogue.add(number, &Utterance { text, author: "User", millis: 19_000 * DAY });
            among.push(Candidate { number, ..*candidate });
        }
        dialogue.related(asked, &among)
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
        let (with, first) = (Said, Candidate::default());
        let all = [
            with("We bought a mattress.", Candidate { vector: Some(&[0.6, 0.8]), ..first }),
            with("It rains.", Candidate { vector: Some(&FAR), session: 1, ..first }),
        ];
        let asked = Asked { text: "bedding", vector: Some(&NEAR), ..Asked::default() };
        let at = |threshold| places(&related(&Asked { threshold, ..asked }, &all));
        assert_eq!((at(0.59), at(0.61)), (vec![0], vec![]));
        assert!(related(&Asked { vector: None, ..asked }, &all).is_empty());
    }

    #[test]
    fn a_message_is_related_by_what_follows_it_in_its_session() {
        let at = |vector: &'static [f32; 2], session| {
            Said("It rains.", Candidate { vector: Some(vector), session, ..Candidate::default() })
        };
        let all = [at(&[0.5, 0.866], 0), at(&[0.9, 0.436], 0), at(&[0.5, 0.866], 1)];
        let asked = Asked { text: "bedding", vector: Some(&NEAR), threshold: 0.7, ..Asked::default() };
        let found = related(&asked, &all);
        assert_eq!(places(&found), [1, 0]);
        assert!(found[1].cosine.is_some_and(|near| (0.5..0.7).contains(&near)), "{found:?}");
    }

    #[test]
    fn a_near_session_and_a_link_are_preferred() {
        let plain = said("We bought a bed.", 0);
        let preferred = |other| {
            places(&related(&Asked { text: "bed", vector: Some(&NEAR), ..Asked::default() }, &[plain, other]))
        };
        assert_eq!(preferred(said("We bought a bed.", 1)), [0, 1]);
        let other = Candidate { session: 1, ..Candidate::default() };
        let near = Candidate { session_vector: Some(&NEAR), ..other };
        assert_eq!(preferred(Said("We bought a bed.", near)), [1, 0]);
        assert_eq!(preferred(Said("We bought a bed.", Candidate { boost: 0.3, ..other })), [1, 0]);
    }

    #[test]
    fn what_is_no_candidate_counts_for_nothing() {
        let texts = ["Where is the bicycle?", "In the shed.", "Bicycles are fine.", "It rains on the shed."];
        let (mut all, mut some) = (Dialogue::default(), Dialogue::default());
        let said = |text| Utterance { text, author: "User", millis: 19_000 * DAY };
        for (number, text) in (1..).zip(texts) {
            all.add(number, &said(text));
            if number != 2 {
                some.add(number, &said(text));
            }
        }
        let among = [4, 1, 3].map(|number| Candidate { number, ..Candidate::default() });
        let asked = Asked { text: "the bicycle in the shed", ..Asked::default() };
        let expected = some.related(&asked, &among);
        assert_eq!((expected.len(), all.related(&asked, &among)), (3, expected.clone()));
        // Said anew it is what it is now, and forgotten it is nothing.
        all.add(2, &said("Bicycle, bicycle."));
        all.retain(|number| number != 2);
        assert_eq!(all.related(&asked, &among), expected);
        assert!(all.related(&asked, &[Candidate { number: 2, ..Candidate::default() }]).is_empty());
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
    fn a_yes_or_a_no_is_a_word_at_the_beginning() {
        for answer in ["Yes", "no, I do not", "Ann: Yep! We did.", " Sure."] {
            assert!(opens_with_yes_or_no(answer), "{answer}");
        }
        for none in ["Nobody came.", "I said yes.", "note: yes", ""] {
            assert!(!opens_with_yes_or_no(none), "{none}");
        }
    }

    #[test]
    fn the_cosine_is_that_of_the_angle() {
        let near = of_unit_length(vec![3.0, 0.0]);
        assert_eq!((cosine(&near, &NEAR), cosine(&NEAR, &FAR)), (1.0, 0.0));
        let none = of_unit_length(vec![0.0, 0.0]);
        assert_eq!((cosine(&NEAR, &none), cosine(&NEAR, &[1.0])), (0.0, 0.0));
    }
}
