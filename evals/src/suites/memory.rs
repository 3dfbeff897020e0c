//! Memory: which share of the turns that answer a question stands within so many tokens, without any model.
//!
//! The unit is the turn, shown as `[date] speaker: text [image: caption]` with one line break. Turns stand in the order
//! of their rank until the next would pass the budget.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use larder_condense::rank::RankIndex;
use larder_retrieval::recall::{Day, Index, Limits, Query, Record};
use larder_text::tokens::Counter;
use serde_json::Value;

use crate::report::{Column, Report};
use crate::{Failure, corpora};

/// Budgets in tokens.
const BUDGETS: [usize; 5] = [250, 500, 1_000, 2_000, 4_000];
/// The place of the budget by which the suite is judged.
const JUDGED: usize = 2;
/// Kinds of questions, by their numbers from 1.
const KINDS: [&str; 5] = ["multi-hop", "temporal", "open", "single-hop", "adversarial"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Neighbours on each side in the plain search that stands beside.
const PLAIN_NEIGHBOURS: usize = 2;
/// Turns of the index that shows how speed grows, and questions asked of it.
const MANY: usize = 100_000;
const MANY_QUESTIONS: usize = 200;

struct Turn {
    shown: String,
    speaker: String,
    session: usize,
    day: Option<Day>,
    tokens: usize,
}

struct Question {
    text: String,
    kind: usize,
    evidence: Vec<usize>,
}

struct Conversation {
    name: String,
    turns: Vec<Turn>,
    questions: Vec<Question>,
}

/// What one question got.
struct Outcome {
    conversation: usize,
    kind: usize,
    recall: [f64; BUDGETS.len()],
    plain: f64,
}

/// Measures all conversations.
///
/// # Errors
/// The corpus is missing or not as expected.
pub fn measure() -> Result<Report, Failure> {
    let folder = corpora::folder("memory")?.join("locomo");
    let corrections = corrections(&corpora::json(&folder.join("corrections.json"))?);
    let mut conversations = Vec::new();
    for path in corpora::files(&folder, &[".json"])? {
        if corpora::name(&path) != "corrections.json" {
            conversations.push(conversation(&path, &corrections)?);
        }
    }
    let (mut outcomes, mut faults) = (Vec::new(), Vec::new());
    for (number, conversation) in conversations.iter().enumerate() {
        outcomes.extend(ask_all(number, conversation, &mut faults));
    }
    let mut rows: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for (number, conversation) in conversations.iter().enumerate() {
        rows.push((conversation.name.clone(), figures(&outcomes, |o| o.conversation == number, true)));
    }
    for (kind, name) in KINDS.iter().enumerate() {
        rows.push(((*name).to_owned(), figures(&outcomes, |o| o.kind == kind + 1, false)));
    }
    rows.push((format!("{MANY} turns"), speed(&conversations)));
    let columns = ["@250", "@500", "@1000", "@2000", "@4000"].map(|name| Column::higher(name, 0.5));
    let mut columns = [vec![Column::shown("questions", 0)], columns.to_vec()].concat();
    columns[1 + JUDGED] = columns[1 + JUDGED].least(86.0);
    columns.extend([
        Column::higher("all @1000", 0.5),
        Column::higher("multi-hop @1000", 1.0).least(58.0),
        Column::shown("plain @1000", 1),
        Column::shown("ms to index", 0),
        Column::shown("ms p95", 2),
    ]);
    Ok(Report {
        suite: "memory",
        title: "Turns that answer a question, in per cent, within so many tokens; plain is BM25 with two neighbours"
            .to_owned(),
        columns,
        rows,
        total: figures(&outcomes, |_| true, true),
        faults,
    })
}

/// Recall of some questions at each budget, the share with all their turns, and recall of the multi-hop ones.
fn figures(outcomes: &[Outcome], of: impl Fn(&Outcome) -> bool, multi_hop: bool) -> Vec<Option<f64>> {
    let some: Vec<&Outcome> = outcomes.iter().filter(|outcome| of(outcome)).collect();
    let mean = |some: &[&Outcome], value: &dyn Fn(&Outcome) -> f64| {
        (!some.is_empty())
            .then(|| 100.0 * some.iter().map(|outcome| value(outcome)).sum::<f64>() / some.len() as f64)
    };
    let mut figures = vec![Some(some.len() as f64)];
    figures.extend((0..BUDGETS.len()).map(|at| mean(&some, &|outcome| outcome.recall[at])));
    figures.push(mean(&some, &|outcome| f64::from(outcome.recall[JUDGED] >= 1.0)));
    let hops: Vec<&Outcome> = some.iter().copied().filter(|outcome| multi_hop && outcome.kind == 1).collect();
    figures.push(mean(&hops, &|outcome| outcome.recall[JUDGED]));
    figures.push(mean(&some, &|outcome| outcome.plain));
    figures.extend([None, None]);
    figures
}

fn index(turns: &[Turn]) -> Index {
    let mut index = Index::default();
    let mut session = None;
    for turn in turns {
        if session.replace(turn.session) != Some(turn.session) {
            index.start_section();
        }
        index.add(&Record {
            text: &turn.shown,
            tokens: turn.tokens,
            author: Some(&turn.speaker),
            day: turn.day,
            ..Record::default()
        });
    }
    index
}

fn ask_all(number: usize, conversation: &Conversation, faults: &mut Vec<String>) -> Vec<Outcome> {
    let turns = &conversation.turns;
    let index = index(turns);
    let plain = plain(turns);
    let today = turns.last().and_then(|turn| turn.day);
    let most = Limits { tokens: BUDGETS[BUDGETS.len() - 1], links: None };
    let mut outcomes = Vec::new();
    for question in &conversation.questions {
        let query = Query { text: &question.text, today, ..Query::default() };
        let gathered = index.gather(&query, &most, |turn| &turns[turn].shown);
        let order: Vec<usize> = gathered.taken.iter().map(|taken| taken.record).collect();
        let recall = BUDGETS.map(|budget| {
            let shown = within(&order, turns, budget);
            let text: String = shown.iter().map(|&turn| turns[turn].shown.clone() + "\n").collect();
            let tokens = Counter::o200k().count(&text);
            if tokens > budget {
                faults.push(format!("{}: {tokens} tokens of {budget}: {}", conversation.name, question.text));
            }
            share(shown, &question.evidence)
        });
        let order: Vec<usize> =
            plain.search(&question.text, PLAIN_NEIGHBOURS).iter().map(|hit| hit.passage).collect();
        let plain = share(within(&order, turns, BUDGETS[JUDGED]), &question.evidence);
        outcomes.push(Outcome { conversation: number, kind: question.kind, recall, plain });
    }
    outcomes
}

fn plain(turns: &[Turn]) -> RankIndex {
    let (mut plain, mut session) = (RankIndex::default(), None);
    for turn in turns {
        if session.replace(turn.session) != Some(turn.session) {
            plain.start_document();
        }
        plain.add(&turn.shown);
    }
    plain
}

/// The turns before the first that would pass the budget.
fn within<'o>(order: &'o [usize], turns: &[Turn], budget: usize) -> &'o [usize] {
    let mut used = 0;
    let fits = |turn: &&usize| {
        used += turns[**turn].tokens;
        used <= budget
    };
    &order[..order.iter().take_while(fits).count()]
}

fn share(shown: &[usize], evidence: &[usize]) -> f64 {
    evidence.iter().filter(|turn| shown.contains(turn)).count() as f64 / evidence.len() as f64
}

/// Indexes and asks the turns of all conversations, over and over until there are many.
fn speed(conversations: &[Conversation]) -> Vec<Option<f64>> {
    let all = conversations.iter().flat_map(|conversation| &conversation.turns);
    let started = Instant::now();
    let mut index = Index::default();
    for (number, turn) in all.cycle().take(MANY).enumerate() {
        if number % 20 == 0 {
            index.start_section();
        }
        index.add(&Record {
            text: &turn.shown,
            author: Some(&turn.speaker),
            day: turn.day,
            ..Record::default()
        });
    }
    let indexed = started.elapsed().as_secs_f64() * 1e3;
    let questions = conversations.iter().flat_map(|conversation| &conversation.questions);
    let mut times: Vec<f64> = questions
        .take(MANY_QUESTIONS)
        .map(|question| {
            let started = Instant::now();
            std::hint::black_box(index.search(&Query::of(&question.text)));
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let mut row = vec![None; 3 + BUDGETS.len()];
    row.extend([None, Some(indexed), times.get(times.len() * 95 / 100).copied()]);
    row
}

/// The corrected evidence of questions, by conversation and place.
fn corrections(list: &Value) -> HashMap<(String, u64), Value> {
    let entries = list.as_array().into_iter().flatten();
    entries
        .filter_map(|entry| {
            let key = (entry["sample_id"].as_str()?.to_owned(), entry["qa_index"].as_u64()?);
            Some((key, entry["correct_evidence"].clone()))
        })
        .collect()
}

fn conversation(path: &Path, corrections: &HashMap<(String, u64), Value>) -> Result<Conversation, Failure> {
    let file = corpora::json(path)?;
    let said = &file["conversation"];
    let (mut turns, mut ids) = (Vec::new(), HashMap::new());
    for session in (1..).take_while(|session| said.get(format!("session_{session}_date_time")).is_some()) {
        let date = said[format!("session_{session}_date_time")].as_str().unwrap_or_default();
        for turn in said[format!("session_{session}")].as_array().into_iter().flatten() {
            let text = |field: &str| turn[field].as_str().unwrap_or_default();
            ids.insert(text("dia_id").to_owned(), turns.len());
            let mut shown = format!("[{date}] {}: {}", text("speaker"), text("text"));
            if !text("blip_caption").is_empty() {
                shown += &format!(" [image: {}]", text("blip_caption"));
            }
            let tokens = Counter::o200k().count(&shown) + 1;
            turns.push(Turn { shown, speaker: text("speaker").to_owned(), session, day: day(date), tokens });
        }
    }
    let name = file["sample_id"].as_str().unwrap_or_default().to_owned();
    let mut questions = Vec::new();
    for (place, asked) in (0..).zip(file["qa"].as_array().into_iter().flatten()) {
        let evidence = evidence(corrections.get(&(name.clone(), place)).unwrap_or(&asked["evidence"]), &ids);
        if !evidence.is_empty() {
            let text = asked["question"].as_str().unwrap_or_default().to_owned();
            let kind = asked["category"].as_u64().and_then(|kind| usize::try_from(kind).ok()).unwrap_or(0);
            questions.push(Question { text, kind, evidence });
        }
    }
    if turns.is_empty() || questions.is_empty() {
        return Err(format!("{}: holds no turns or no questions", path.display()).into());
    }
    Ok(Conversation { name, turns, questions })
}

/// Turn ids, several of which may stand in one string; what is no turn is dropped.
fn evidence(list: &Value, ids: &HashMap<String, usize>) -> Vec<usize> {
    let mut evidence = Vec::new();
    for text in list.as_array().into_iter().flatten().filter_map(Value::as_str) {
        for id in text.split([';', ',', ' ', '\n']) {
            let id = id.strip_prefix("D:").map_or(id.to_owned(), |rest| format!("D{rest}"));
            if let Some(&turn) = ids.get(&id)
                && !evidence.contains(&turn)
            {
                evidence.push(turn);
            }
        }
    }
    evidence
}

/// The day of a session, written like "1:56 pm on 8 May, 2023".
fn day(date: &str) -> Option<Day> {
    let (_, date) = date.split_once(" on ")?;
    let mut words = date.split([' ', ',']).filter(|word| !word.is_empty());
    let day = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| month.starts_with(name))?;
    Day::of(words.next()?.parse().ok()?, u32::try_from(month + 1).ok()?, day)
}
