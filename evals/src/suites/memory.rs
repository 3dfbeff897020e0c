//! Memory: which share of the messages that answer a question a turn is offered within so many tokens, without any
//! model.
//!
//! Every session is a note in a vault, every message a paragraph of it: `[date] speaker: text [image: caption]`. A
//! message counts if the passages contain all of it.

use std::ops::Range;
use std::time::Instant;

use larder_condense::rank::RankIndex;
use larder_retrieval::index::{Index, Limits, Query, Record, day_of};
use larder_vault::DocumentTime;

use super::locomo::{self, DialogueMessage, KINDS, LocomoConversation};
use super::vault::{self, NoteVault};
use crate::Failure;
use crate::report::{Report, ReportColumn};

/// Budgets in tokens.
const BUDGETS: [usize; 5] = [250, 500, 1_000, 2_000, 4_000];
/// The place of the budget by which the suite is judged.
const JUDGED: usize = 2;
/// When questions are asked of whose conversation no date is known.
const UNDATED: &str = "2024-01-01T00:00:00Z";
/// Neighbours on each side in the plain search that is shown for comparison.
const PLAIN_NEIGHBOURS: usize = 2;
/// Turns of the index that shows how speed grows, and questions asked of it.
const MANY: usize = 100_000;
const MANY_QUESTIONS: usize = 200;

/// What one question was offered: shares of the messages that answer it.
#[derive(Clone)]
struct QuestionOutcome {
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
    let conversations = locomo::conversations()?;
    let (mut outcomes, mut faults) = (Vec::new(), Vec::new());
    for asked in ask_conversations(&conversations) {
        let (some, more) = asked?;
        outcomes.extend(some);
        faults.extend(more);
    }
    let mut rows: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for (number, conversation) in conversations.iter().enumerate() {
        rows.push((conversation.name.clone(), figures(&outcomes, |o| o.conversation == number, true)));
    }
    for (kind, name) in KINDS.iter().enumerate() {
        rows.push(((*name).to_owned(), figures(&outcomes, |o| o.kind == kind + 1, false)));
    }
    rows.push((format!("{MANY} turns"), speed(&conversations)));
    let columns = ["@250", "@500", "@1000", "@2000", "@4000"].map(|name| ReportColumn::higher(name, 0.5));
    let mut columns = [vec![ReportColumn::shown("questions", 0)], columns.to_vec()].concat();
    columns[1 + JUDGED] = columns[1 + JUDGED].least(86.0);
    columns.extend([
        ReportColumn::higher("all @1000", 0.5),
        ReportColumn::higher("multi-hop @1000", 1.0).least(58.0),
        ReportColumn::shown("plain @1000", 1),
        ReportColumn::shown("ms to index", 0),
        ReportColumn::shown("ms p95", 2),
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
fn figures(
    outcomes: &[QuestionOutcome],
    of: impl Fn(&QuestionOutcome) -> bool,
    multi_hop: bool,
) -> Vec<Option<f64>> {
    let some: Vec<&QuestionOutcome> = outcomes.iter().filter(|outcome| of(outcome)).collect();
    let mean = |some: &[&QuestionOutcome], value: &dyn Fn(&QuestionOutcome) -> f64| {
        (!some.is_empty())
            .then(|| 100.0 * some.iter().map(|outcome| value(outcome)).sum::<f64>() / some.len() as f64)
    };
    let mut figures = vec![Some(some.len() as f64)];
    figures.extend((0..BUDGETS.len()).map(|at| mean(&some, &|outcome| outcome.recall[at])));
    figures.push(mean(&some, &|outcome| f64::from(outcome.recall[JUDGED] >= 1.0)));
    let hops: Vec<&QuestionOutcome> =
        some.iter().copied().filter(|outcome| multi_hop && outcome.kind == 1).collect();
    figures.push(mean(&hops, &|outcome| outcome.recall[JUDGED]));
    figures.push(mean(&some, &|outcome| outcome.plain));
    figures.extend([None, None]);
    figures
}

/// The outcomes of the questions of a conversation, and faults.
type ConversationOutcomes = Result<(Vec<QuestionOutcome>, Vec<String>), Failure>;

/// What the questions of each conversation came to. Every conversation has a vault and a thread of its own.
fn ask_conversations(conversations: &[LocomoConversation]) -> Vec<ConversationOutcomes> {
    std::thread::scope(|scope| {
        let ask = |(number, conversation)| scope.spawn(move || ask_all(number, conversation));
        let threads: Vec<_> = conversations.iter().enumerate().map(ask).collect();
        let outcome = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("asking panicked".into()))
        };
        threads.into_iter().map(outcome).collect()
    })
}

/// The note that a message is in, and its bytes there.
type MessagePlace = (usize, Range<usize>);

/// The notes of a conversation, one for each session, and where each message is.
fn notes(turns: &[DialogueMessage]) -> (Vec<(String, String)>, Vec<MessagePlace>) {
    let (mut notes, mut places): (Vec<(String, String)>, Vec<_>) = (Vec::new(), Vec::new());
    let mut session = None;
    for turn in turns {
        if session.replace(turn.session) != Some(turn.session) {
            notes.push((format!("session-{:02}.md", turn.session), String::new()));
        }
        let at = notes.len() - 1;
        let text = &mut notes[at].1;
        let start = text.len();
        text.push_str(&turn.shown);
        places.push((at, start..text.len()));
        text.push_str("\n\n");
    }
    (notes, places)
}

fn ask_all(number: usize, conversation: &LocomoConversation) -> ConversationOutcomes {
    let turns = &conversation.turns;
    let (notes, places) = notes(turns);
    let vault = NoteVault::new(&notes)?;
    let plain = plain(turns);
    let now = asked_at(turns)?;
    let (mut outcomes, mut faults) = (Vec::new(), Vec::new());
    for question in &conversation.questions {
        let mut recall = [0.0; BUDGETS.len()];
        for (recall, budget) in recall.iter_mut().zip(BUDGETS) {
            let limits = Limits { tokens: budget, ..Limits::default() };
            let passages = vault.passages(&question.text, now, limits)?;
            let tokens = vault::tokens(&passages);
            if tokens > budget {
                faults.push(format!("{}: {tokens} tokens of {budget}: {}", conversation.name, question.text));
            }
            let shown = |&turn: &usize| {
                let (note, bytes) = &places[turn];
                vault::shows(&passages, &notes[*note].0, bytes)
            };
            *recall = share(question.evidence.iter().filter(|turn| shown(turn)).count(), &question.evidence);
        }
        let order: Vec<usize> =
            plain.search(&question.text, PLAIN_NEIGHBOURS).iter().map(|hit| hit.passage).collect();
        let within = within(&order, turns, BUDGETS[JUDGED]);
        let found = question.evidence.iter().filter(|turn| within.contains(turn)).count();
        let plain = share(found, &question.evidence);
        outcomes.push(QuestionOutcome { conversation: number, kind: question.kind, recall, plain });
    }
    Ok((outcomes, faults))
}

/// The end of the day of the last session.
fn asked_at(turns: &[DialogueMessage]) -> Result<DocumentTime, Failure> {
    let day = turns.last().and_then(|turn| day_of(&turn.date));
    let moment = day.map_or(UNDATED.to_owned(), |day| format!("{day}T23:59:59Z"));
    moment.parse().map_err(|_| format!("{moment} is not a moment").into())
}

fn plain(turns: &[DialogueMessage]) -> RankIndex {
    let (mut plain, mut session) = (RankIndex::default(), None);
    for turn in turns {
        if session.replace(turn.session) != Some(turn.session) {
            plain.start_document();
        }
        plain.add(&turn.shown);
    }
    plain
}

/// The messages before the first that would exceed the budget.
fn within<'o>(order: &'o [usize], turns: &[DialogueMessage], budget: usize) -> &'o [usize] {
    let mut used = 0;
    let fits = |turn: &&usize| {
        used += turns[**turn].tokens;
        used <= budget
    };
    &order[..order.iter().take_while(fits).count()]
}

fn share(found: usize, evidence: &[usize]) -> f64 {
    found as f64 / evidence.len() as f64
}

/// Indexes and asks the turns of all conversations, over and over until there are many.
fn speed(conversations: &[LocomoConversation]) -> Vec<Option<f64>> {
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
            day: day_of(&turn.date),
            ..Record::default()
        });
    }
    let indexed = started.elapsed().as_secs_f64() * 1e3;
    let questions = conversations.iter().flat_map(|conversation| &conversation.questions);
    let mut times: Vec<f64> = questions
        .take(MANY_QUESTIONS)
        .map(|question| {
            let started = Instant::now();
            std::hint::black_box(index.search(&Query::new(&question.text)));
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let mut row = vec![None; 3 + BUDGETS.len()];
    row.extend([None, Some(indexed), times.get(times.len() * 95 / 100).copied()]);
    row
}

#[cfg(test)]
mod tests {
    use super::super::locomo::MemoryQuestion;
    use super::*;

    fn outcome(kind: usize, recall: f64, plain: f64) -> QuestionOutcome {
        QuestionOutcome { conversation: 0, kind, recall: [0.0, 0.0, recall, 1.0, 1.0], plain }
    }

    #[test]
    fn figures_are_means_in_per_cent() {
        let outcomes = [outcome(1, 0.5, 0.0), outcome(1, 1.0, 0.5), outcome(4, 0.0, 1.0)];
        let all = figures(&outcomes, |_| true, true);
        // Questions, recall at five budgets, all messages, multi-hop, plain.
        let expected = [3.0, 0.0, 0.0, 50.0, 100.0, 100.0, 100.0 / 3.0, 75.0, 50.0];
        assert_eq!(all.iter().flatten().count(), expected.len());
        for (figure, expected) in all.iter().flatten().zip(expected) {
            assert!((figure - expected).abs() < 1e-9, "{all:?}");
        }
        let multi_hop = figures(&outcomes, |outcome| outcome.kind == 1, false);
        assert_eq!((multi_hop[0], multi_hop[3], multi_hop[7]), (Some(2.0), Some(75.0), None));
        assert_eq!(figures(&outcomes, |outcome| outcome.kind == 2, true)[3], None);
    }

    #[test]
    fn a_question_gets_the_share_of_its_messages_that_a_vault_offers() {
        let turn = |session, shown: &str| DialogueMessage {
            shown: format!("[1:56 pm on 8 May, 2023] Ann: {shown}"),
            speaker: "Ann".to_owned(),
            text: shown.to_owned(),
            session,
            date: "1:56 pm on 8 May, 2023".to_owned(),
            tokens: 20,
        };
        let turns = vec![
            turn(1, "I adopted a hamster from the shelter in Oslo, a golden one."),
            turn(1, "The weather was terrible on the whole way home, though."),
            turn(2, "My hamster has learned to ride on a tiny skateboard."),
        ];
        let questions = [vec![0], vec![0, 1]].map(|evidence| MemoryQuestion {
            text: "Where did Ann adopt the golden hamster?".to_owned(),
            kind: 4,
            evidence,
        });
        let conversation = LocomoConversation { name: "test".to_owned(), turns, questions: questions.into() };
        let (outcomes, faults) = ask_all(0, &conversation).unwrap();
        assert_eq!((outcomes[0].recall[0], &faults[..]), (1.0, &[][..]));
        assert_eq!(outcomes[1].recall.map(|recall| recall >= 0.5), [true; 5]);
    }

    #[test]
    fn only_messages_within_the_budget_count() {
        let turn = |tokens| DialogueMessage {
            shown: String::new(),
            speaker: String::new(),
            text: String::new(),
            session: 1,
            date: String::new(),
            tokens,
        };
        let turns = [turn(40), turn(70), turn(10)];
        assert_eq!(within(&[0, 1, 2], &turns, 100), [0]);
        assert_eq!(within(&[2, 0, 1], &turns, 120), [2, 0, 1]);
    }
}
