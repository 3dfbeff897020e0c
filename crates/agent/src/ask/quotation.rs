//! Answering by quotation: the sentences of the best passages that answer a question, chosen by rule, without a model.
//!
//! A sentence's score comes from the question words it contains, with rare words counting more; to a lesser degree
//! from those of its heading and neighbours; and from whether it contains the expected kind of answer.

use std::collections::BTreeSet;
use std::ops::Range;

use super::passages::{Finding, Passages};
use super::question::{AnswerKind, QuestionProfile, likeness, words};
use super::units::{QuotableUnit, UnitKind, units};

/// Maximum sentences of an answer, and their bytes together; a single one may be longer.
const MOST: usize = 3;
const MOST_BYTES: usize = 700;
/// Weight of a word of the question that is not in the sentence but in its heading, in a neighbour, in the name of the
/// file, or elsewhere in the passage.
const IN_CONTEXT: f64 = 0.55;
const IN_NEIGHBOUR: f64 = 0.4;
const IN_NAME: f64 = 0.3;
const IN_PASSAGE: f64 = 0.2;
/// Factor for a sentence without the expected kind of answer.
const OTHER_KIND: f64 = 0.6;
/// Factors for a sentence that is a question, and for one in tests and test data, which are about something else.
const ASKS: f64 = 0.5;
const IN_TESTS: f64 = 0.85;
/// Weight of the passage's own rank.
const RANK: f64 = 0.12;
/// The minimum words of an informative sentence, and the number beyond which it is long.
const SHORT_WORDS: usize = 4;
const LONG_WORDS: usize = 45;
/// The share of the best score that a further sentence must reach: for questions with one answer, and for others.
const NEXT_FACT: f64 = 0.93;
const NEXT: f64 = 0.88;
/// Two sentences are duplicates if they share this fraction of their words.
const SAME: f64 = 0.7;
/// The share of the question that a quotation must cover to count as its answer.
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
    /// Whether they cover enough of the question to count as its answer, and one of them states its numbers, ids and rare
    /// words.
    pub is_answer: bool,
}

/// A sentence with its scores.
struct ScoredUnit {
    file: usize,
    unit: QuotableUnit,
    words: Vec<String>,
    /// How far it and its surroundings contain each word of the question.
    held: Vec<f64>,
    score: f64,
}

/// Chooses the sentences that answer from the findings.
pub(super) fn quotation(question: &str, passages: &mut Passages, found: &[Finding]) -> Quotation {
    let wanted = QuestionProfile::of(question, |word| passages.rarity(word));
    let mut candidates: Vec<ScoredUnit> = Vec::new();
    let mut seen = BTreeSet::new();
    for finding in found {
        let file = finding.place.file;
        let Some(text) = passages.library.text(file) else { continue };
        let name = &passages.library.files[file].name;
        let units = units(name, &text, &finding.place.bytes());
        let new = scored(&wanted, name, finding, units).into_iter();
        candidates.extend(new.filter(|candidate| seen.insert((file, candidate.unit.bytes.start))));
    }
    let names: Vec<Vec<String>> = passages.library.files.iter().map(|file| words(&file.name)).collect();
    choose(&wanted, &candidates, &names, |candidate| passages.library.text(candidate.file))
}

/// The units of one passage with their scores.
fn scored(
    wanted: &QuestionProfile,
    name: &str,
    finding: &Finding,
    units: Vec<QuotableUnit>,
) -> Vec<ScoredUnit> {
    let read: Vec<Vec<String>> = units.iter().map(|unit| words(&unit.text)).collect();
    // Text that repeats the question neither answers it nor supports its neighbours.
    let repeats: Vec<bool> = units.iter().map(|unit| wanted.is_repeated(&unit.text)).collect();
    let found = |(words, repeats): (&Vec<String>, &bool)| {
        if *repeats { vec![0.0; wanted.terms.len()] } else { wanted.found(words) }
    };
    let own: Vec<Vec<f64>> = read.iter().zip(&repeats).map(found).collect();
    let of_tests = if is_of_tests(name) { IN_TESTS } else { 1.0 };
    let name = wanted.found(&words(name));
    let whole = own.iter().fold(vec![0.0; wanted.terms.len()], |all, own| most(&all, own, 1.0));
    let held = |at: usize, unit: &QuotableUnit| {
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
            ScoredUnit { file: finding.place.file, unit, words, held, score }
        })
        .collect()
}

/// Whether a file belongs to tests.
fn is_of_tests(name: &str) -> bool {
    let of_tests = |part: &str| matches!(part, "test" | "tests" | "golden" | "fixtures" | "testdata");
    name.split(['/', '\\', '_', '.']).any(of_tests)
}

/// The element-wise maximum, with those of `other` scaled by this share.
fn most(held: &[f64], other: &[f64], share: f64) -> Vec<f64> {
    held.iter().zip(other).map(|(held, other)| held.max(other * share)).collect()
}

/// The value of a unit as an answer, regardless of the words it shares with the question.
fn fitness(wanted: &QuestionProfile, unit: &QuotableUnit, words: &[String]) -> f64 {
    let mut fitness = match unit.kind {
        UnitKind::Prose => 1.0,
        UnitKind::Comment | UnitKind::Row => 0.92,
        UnitKind::Code if wanted.names_code => 0.9,
        UnitKind::Code => 0.6,
    };
    // A field of this name is not a definition.
    let is_field = wanted.kind == AnswerKind::Meaning && unit.kind == UnitKind::Code;
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

/// The best sentences without duplicates.
fn choose(
    wanted: &QuestionProfile,
    candidates: &[ScoredUnit],
    names: &[Vec<String>],
    mut text: impl FnMut(&ScoredUnit) -> Option<std::sync::Arc<str>>,
) -> Quotation {
    let mut order: Vec<usize> = (0..candidates.len()).filter(|&at| candidates[at].score > 0.0).collect();
    // The sort is stable: equals stay in the order of their passages.
    order.sort_by(|&a, &b| candidates[b].score.total_cmp(&candidates[a].score));
    let best = order.first().map_or(0.0, |&at| candidates[at].score);
    let one_thing = !matches!(wanted.kind, AnswerKind::Any | AnswerKind::Reason | AnswerKind::Meaning);
    let least = best * if one_thing { NEXT_FACT } else { NEXT };
    let mut chosen: Vec<usize> = Vec::new();
    let mut quotation = Quotation::default();
    let mut held = vec![0.0; wanted.terms.len()];
    let mut bytes = 0;
    let mut is_about = false;
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
        let quoted = whole(wanted, candidates, at, &text);
        let ScoredUnit { unit, file, .. } = candidate;
        let around =
            [words(&quoted.text), words(&unit.context), names.get(*file).cloned().unwrap_or_default()];
        is_about |=
            wanted.is_about(&around.concat(), matches!(unit.kind, UnitKind::Prose | UnitKind::Comment));
        quotation.sentences.push(quoted);
    }
    quotation.is_answer = is_about && wanted.share(&held) >= HELD && !wanted.lacks_name(&held);
    quotation
}

fn says_the_same(one: &ScoredUnit, other: &ScoredUnit) -> bool {
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

/// A sentence with the preceding one if it refers back to it (`It …`), and with what follows if it announces it
/// (`…:`) or if that states the requested reason.
fn whole(wanted: &QuestionProfile, candidates: &[ScoredUnit], at: usize, text: &str) -> Quoted {
    const BACK: [&str; 14] = [
        "it", "this", "that", "these", "those", "they", "he", "she", "es", "sie", "er", "dies", "diese",
        "dieser",
    ];
    let ScoredUnit { file, unit, words, .. } = &candidates[at];
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

/// Whether the requested reason is not in a sentence but in the next one of its paragraph.
fn explains(wanted: &QuestionProfile, one: &ScoredUnit, next: &ScoredUnit) -> bool {
    wanted.kind == AnswerKind::Reason
        && one.unit.paragraph == next.unit.paragraph
        && !wanted.is_satisfied(&one.unit.text, &one.words)
        && wanted.is_satisfied(&next.unit.text, &next.words)
}
