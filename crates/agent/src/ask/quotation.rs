//! Answering by quotation: the sentences of the best passages that answer a question, chosen by rule, without a model.
//!
//! Sentences count by the words of the question that they hold, rare words more; less by those of their heading and
//! neighbours; and by whether they hold the kind of thing that is asked for.

use std::collections::BTreeSet;
use std::ops::Range;

use super::passages::{Finding, Passages};
use super::units::{Kind as UnitKind, Unit, units};
use super::wanted::{Kind, Wanted, likeness, words};

/// Sentences of an answer at most, and their bytes together; one may be longer.
const MOST: usize = 3;
const MOST_BYTES: usize = 700;
/// What a word of the question counts for that stands not in the sentence but in its heading, in a neighbour, in the
/// name of the file, or elsewhere in the passage.
const IN_CONTEXT: f64 = 0.55;
const IN_NEIGHBOUR: f64 = 0.4;
const IN_NAME: f64 = 0.3;
const IN_PASSAGE: f64 = 0.2;
/// What a sentence keeps that does not hold the kind of thing that is wanted.
const OTHER_KIND: f64 = 0.6;
/// What it keeps when it is a question, and in tests and their data, which speak of other things than the rest.
const ASKS: f64 = 0.5;
const IN_TESTS: f64 = 0.85;
/// What the passage's own rank adds.
const RANK: f64 = 0.12;
/// Words of a sentence that say enough, and after which one gets long.
const SHORT_WORDS: usize = 4;
const LONG_WORDS: usize = 45;
/// A further sentence has to reach this share of the best: of questions for one thing, and of others.
const NEXT_FACT: f64 = 0.93;
const NEXT: f64 = 0.88;
/// Two sentences say the same when this share of the words of one is in the other.
const SAME: f64 = 0.7;
/// The share of the question that the answer has to hold to be taken for one.
const HELD: f64 = 0.4;

/// A sentence that answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quoted {
    pub file: usize,
    pub text: String,
    pub bytes: Range<usize>,
}

/// The sentences that answer a question, best first.
#[derive(Debug, Default)]
pub(super) struct Quotation {
    pub sentences: Vec<Quoted>,
    /// Whether they hold enough of the question to be taken for its answer.
    pub is_answer: bool,
}

/// A sentence with what speaks for it.
struct Candidate {
    file: usize,
    unit: Unit,
    words: Vec<String>,
    /// What it and its surroundings hold of each word of the question.
    held: Vec<f64>,
    score: f64,
}

/// Chooses from what was found.
pub(super) fn quotation(question: &str, passages: &mut Passages, found: &[Finding]) -> Quotation {
    let wanted = Wanted::of(question, |word| passages.rarity(word));
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut seen = BTreeSet::new();
    for finding in found {
        let file = finding.place.file;
        let Some(text) = passages.library.text(file) else { continue };
        let name = &passages.library.files[file].name;
        let units = units(name, &text, &finding.place.bytes());
        let new = scored(&wanted, name, finding, units).into_iter();
        candidates.extend(new.filter(|candidate| seen.insert((file, candidate.unit.bytes.start))));
    }
    choose(&wanted, &candidates, |candidate| passages.library.text(candidate.file))
}

/// The units of one passage with their scores.
fn scored(wanted: &Wanted, name: &str, finding: &Finding, units: Vec<Unit>) -> Vec<Candidate> {
    let read: Vec<Vec<String>> = units.iter().map(|unit| words(&unit.text)).collect();
    // What repeats the question does not answer it, nor does it say that its neighbours do.
    let repeats: Vec<bool> = units.iter().map(|unit| wanted.is_repeated(&unit.text)).collect();
    let found = |(words, repeats): (&Vec<String>, &bool)| {
        if *repeats { vec![0.0; wanted.terms.len()] } else { wanted.found(words) }
    };
    let own: Vec<Vec<f64>> = read.iter().zip(&repeats).map(found).collect();
    let of_tests = if is_of_tests(name) { IN_TESTS } else { 1.0 };
    let name = wanted.found(&words(name));
    let whole = own.iter().fold(vec![0.0; wanted.terms.len()], |all, own| most(&all, own, 1.0));
    let held = |at: usize, unit: &Unit| {
        let mut held = most(&own[at], &wanted.found(&words(&unit.context)), IN_CONTEXT);
        let around = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        for neighbour in around.filter_map(|at| own.get(at)) {
            held = most(&held, neighbour, IN_NEIGHBOUR);
        }
        most(&most(&held, &name, IN_NAME), &whole, IN_PASSAGE)
    };
    let held: Vec<Vec<f64>> = units.iter().enumerate().map(|(at, unit)| held(at, unit)).collect();
    let units = units.into_iter().zip(read).zip(held).zip(repeats);
    units
        .map(|(((unit, words), held), repeats)| {
            let share = wanted.share(&held);
            let is_candidate = share > 0.0 && !repeats;
            let base = if is_candidate { share + RANK * finding.relevance.sqrt() } else { 0.0 };
            let score = base * of_tests * fitness(wanted, &unit, &words);
            Candidate { file: finding.place.file, unit, words, held, score }
        })
        .collect()
}

/// Whether a file belongs to tests.
fn is_of_tests(name: &str) -> bool {
    let of_tests = |part: &str| matches!(part, "test" | "tests" | "golden" | "fixtures" | "testdata");
    name.split(['/', '\\', '_', '.']).any(of_tests)
}

/// The larger of each pair, those of `other` at this share.
fn most(held: &[f64], other: &[f64], share: f64) -> Vec<f64> {
    held.iter().zip(other).map(|(held, other)| held.max(other * share)).collect()
}

/// What a unit is worth as an answer, whatever it holds of the question.
fn fitness(wanted: &Wanted, unit: &Unit, words: &[String]) -> f64 {
    let mut fitness = match unit.kind {
        UnitKind::Prose => 1.0,
        UnitKind::Comment | UnitKind::Row => 0.92,
        UnitKind::Code if wanted.names_code => 0.9,
        UnitKind::Code => 0.6,
    };
    // A field of this name does not say what it is.
    let is_field = wanted.kind == Kind::Meaning && unit.kind == UnitKind::Code;
    if is_field || !wanted.is_satisfied(&unit.text, words) {
        fitness *= OTHER_KIND;
    }
    if unit.text.ends_with('?') {
        fitness *= ASKS;
    }
    let count = words.len();
    if count < SHORT_WORDS {
        fitness *= 0.6 + 0.1 * count as f64;
    }
    if count > LONG_WORDS {
        fitness *= 1.0 - 0.3 * ((count - LONG_WORDS) as f64 / LONG_WORDS as f64).min(1.0);
    }
    fitness
}

/// The best sentences that do not say the same.
fn choose(
    wanted: &Wanted,
    candidates: &[Candidate],
    mut text: impl FnMut(&Candidate) -> Option<std::sync::Arc<str>>,
) -> Quotation {
    let mut order: Vec<usize> = (0..candidates.len()).filter(|&at| candidates[at].score > 0.0).collect();
    // Equals stay in the order of their passages.
    order.sort_by(|&a, &b| candidates[b].score.total_cmp(&candidates[a].score));
    let best = order.first().map_or(0.0, |&at| candidates[at].score);
    let one_thing = !matches!(wanted.kind, Kind::Any | Kind::Reason | Kind::Meaning);
    let least = best * if one_thing { NEXT_FACT } else { NEXT };
    let mut chosen: Vec<usize> = Vec::new();
    let mut quotation = Quotation::default();
    let mut held = vec![0.0; wanted.terms.len()];
    let mut bytes = 0;
    for at in order {
        let candidate = &candidates[at];
        if candidate.score < least || chosen.len() == MOST {
            break;
        }
        let is_said = |&other: &usize| says_the_same(&candidates[other], candidate);
        let is_quoted = |quoted: &Quoted| {
            quoted.file == candidate.file && quoted.bytes.contains(&candidate.unit.bytes.start)
        };
        if chosen.iter().any(is_said)
            || quotation.sentences.iter().any(is_quoted)
            || bytes > 0 && bytes + candidate.unit.text.len() > MOST_BYTES
        {
            continue;
        }
        let Some(text) = text(candidate) else { continue };
        bytes += candidate.unit.text.len();
        held = most(&held, &candidate.held, 1.0);
        chosen.push(at);
        quotation.sentences.push(whole(wanted, candidates, at, &text));
    }
    quotation.is_answer = wanted.share(&held) >= HELD && !wanted.lacks_name(&held);
    quotation
}

fn says_the_same(one: &Candidate, other: &Candidate) -> bool {
    if one.file == other.file
        && one.unit.bytes.start < other.unit.bytes.end
        && other.unit.bytes.start < one.unit.bytes.end
    {
        return true;
    }
    let (few, many) = if one.words.len() < other.words.len() { (one, other) } else { (other, one) };
    let shared =
        few.words.iter().filter(|word| many.words.iter().any(|other| likeness(word, other) > 0.9)).count();
    shared as f64 >= few.words.len() as f64 * SAME
}

/// A sentence with the one before it where it points back to that (`It …`), and with what follows where it announces
/// it (`…:`), or where that gives the reason that is wanted.
fn whole(wanted: &Wanted, candidates: &[Candidate], at: usize, text: &str) -> Quoted {
    const BACK: [&str; 14] = [
        "it", "this", "that", "these", "those", "they", "he", "she", "es", "sie", "er", "dies", "diese",
        "dieser",
    ];
    let Candidate { file, unit, words, .. } = &candidates[at];
    let near = |other: usize| {
        let other = candidates.get(other)?;
        let (a, b) =
            if other.unit.bytes.start < unit.bytes.start { (&other.unit, unit) } else { (unit, &other.unit) };
        let between = text.get(a.bytes.end..b.bytes.start)?;
        (other.file == *file && between.len() <= 40).then_some(&other.unit)
    };
    let (mut said, mut bytes) = (unit.text.clone(), unit.bytes.clone());
    let points_back = words.first().is_some_and(|word| BACK.contains(&word.as_str()));
    if points_back
        && let Some(before) = at.checked_sub(1).and_then(near)
        && before.paragraph == unit.paragraph
    {
        said = format!("{} {said}", before.text);
        bytes.start = before.bytes.start;
    } else if let Some(after) = near(at + 1)
        && (said.ends_with(':') || explains(wanted, &candidates[at], &candidates[at + 1]))
    {
        said = format!("{said} {}", after.text);
        bytes.end = after.bytes.end;
    }
    Quoted { file: *file, text: said, bytes }
}

/// Whether the reason that is wanted is not in a sentence but in the next of its paragraph.
fn explains(wanted: &Wanted, one: &Candidate, next: &Candidate) -> bool {
    wanted.kind == Kind::Reason
        && one.unit.paragraph == next.unit.paragraph
        && !wanted.is_satisfied(&one.unit.text, &one.words)
        && wanted.is_satisfied(&next.unit.text, &next.words)
}
