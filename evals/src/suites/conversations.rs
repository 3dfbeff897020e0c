//! Conversations: which share of the messages that answer a question reaches the window of a later conversation, within
//! 1,000 tokens of what is looked up.
//!
//! The conversations of the corpus are held again through the product: one person writes, the other answers as the
//! assistant; facts and summaries are written behind each reply by rules that see neither questions nor answers, vectors by
//! the embedded model. Then the person asks each question in another conversation, with a consent for all sessions. What
//! counts is in the prompt that the model was sent: a message that is there with all of its text.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use larder_conversation::memory::EVERYTHING;
use larder_conversation::{Conversation, Conversations};
use larder_engine::executor::NoopObserver;
use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_local::MiniLm;
use larder_models::weights::EMBEDDING_MODEL;
use larder_retrieval::dialogue::opening_name;
use larder_retrieval::index::day_of;
use larder_store::{Clock, ConversationCost, NewReply, Store, StoreOptions, Timestamp, Track};
use larder_testkit::layers::{Answering, with_vectors};
use larder_testkit::weights;
use larder_text::tokens::Counter;
use larder_vault::DocumentTime;
use serde_json::{Value, json};

use super::locomo::{self, DialogueMessage, KINDS, LocomoConversation};
use crate::Failure;
use crate::report::{Report, ReportColumn};

/// Tokens of what is looked up, which the type allows.
const BUDGET: usize = 1_000;
/// The type in `evals/conversation`.
const KIND: &str = "listener";
/// The name under which the person takes part.
const PERSON: &str = "Person";
/// The stage of the type.
const STAGE: &str = "talk";
/// The line above what is looked up in other sessions, and what follows it in the prompt.
const RELATED: &str = "[Related content from previous sessions]";
const MESSAGE: &str = "User message: ";
/// Tokens that an answer may take, time for it in milliseconds, and characters of a message.
const WINDOW: usize = 200_000;
const PATIENCE_MS: u64 = 60_000;
const CHARS: usize = 2_000;
/// A sentence with fewer words is no fact, nor one with more.
const FACT_WORDS: std::ops::RangeInclusive<usize> = 5..=35;
/// Facts that are found in a message.
const FACTS: usize = 4;
/// Words by which people speak of themselves.
const OF_THEMSELVES: [&str; 9] = ["i", "i'm", "i've", "i'd", "my", "me", "we", "we're", "our"];

/// What one question was offered, with vectors and by words alone.
struct Outcome {
    conversation: usize,
    kind: usize,
    fused: f64,
    words: f64,
}

/// Measures all conversations.
///
/// # Errors
/// The corpus or the embedding model is missing, or something fails.
pub fn measure() -> Result<Report, Failure> {
    let conversations = locomo::conversations()?;
    let model = MiniLm::open(&weights::folder(EMBEDDING_MODEL))?;
    let (mut outcomes, mut faults) = (Vec::new(), Vec::new());
    let asked = std::thread::scope(|scope| {
        let ask = |(number, conversation)| {
            let model = model.clone();
            scope.spawn(move || ask_all(number, conversation, model).map_err(|error| error.to_string()))
        };
        let threads: Vec<_> = conversations.iter().enumerate().map(ask).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("asking panicked".into())))
            .collect::<Vec<_>>()
    });
    for one in asked {
        let (some, more) = one?;
        outcomes.extend(some);
        faults.extend(more);
    }
    let mut rows: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for (number, conversation) in conversations.iter().enumerate() {
        let mut row = figures(&outcomes, |one| one.conversation == number);
        let others = mean(&outcomes, |one| one.kind == 2 && one.conversation != number, |one| one.fused);
        row.push(row[4].zip(others).map(|(own, others)| own - others));
        rows.push((conversation.name.clone(), row));
    }
    for (kind, name) in KINDS.iter().enumerate() {
        let mut row = figures(&outcomes, |one| one.kind == kind + 1);
        row.push(None);
        rows.push(((*name).to_owned(), row));
    }
    let mut total = figures(&outcomes, |_| true);
    total.push(None);
    Ok(Report {
        suite: "conversations",
        title: "Messages that answer a question, in per cent, within 1,000 tokens of what a conversation looks up".to_owned(),
        columns: vec![
            ReportColumn::shown("questions", 0),
            ReportColumn::higher("fused", 0.5).least(90.0),
            ReportColumn::higher("words", 0.5).least(86.0),
            ReportColumn::higher("multi-hop", 1.0).least(67.0),
            ReportColumn::shown("temporal", 1),
            ReportColumn::shown("multi-hop by words", 1),
            ReportColumn::shown("temporal against the others", 1),
        ],
        rows,
        total,
        faults,
    })
}

fn figures(outcomes: &[Outcome], of: impl Fn(&Outcome) -> bool) -> Vec<Option<f64>> {
    let count = outcomes.iter().filter(|one| of(one)).count();
    vec![
        Some(count as f64),
        mean(outcomes, &of, |one| one.fused),
        mean(outcomes, &of, |one| one.words),
        mean(outcomes, |one| of(one) && one.kind == 1, |one| one.fused),
        mean(outcomes, |one| of(one) && one.kind == 2, |one| one.fused),
        mean(outcomes, |one| of(one) && one.kind == 1, |one| one.words),
    ]
}

/// A mean in per cent.
fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> bool, value: impl Fn(&Outcome) -> f64) -> Option<f64> {
    let some: Vec<f64> = outcomes.iter().filter(|one| of(one)).map(value).collect();
    (!some.is_empty()).then(|| 100.0 * some.iter().sum::<f64>() / some.len() as f64)
}

/// A clock that is set to the days of the corpus, and moves on by a millisecond with each look.
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// A conversation of the corpus that was held again.
struct Replay {
    _folder: tempfile::TempDir,
    all: Conversations,
    clock: Arc<SetClock>,
    /// What the scripted model says next.
    next: Arc<Mutex<String>>,
    prompts: Arc<Mutex<Vec<String>>>,
}

fn ask_all(
    number: usize,
    conversation: &LocomoConversation,
    model: MiniLm,
) -> Result<(Vec<Outcome>, Vec<String>), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let replay = Replay::new(model)?;
        replay.hold(&conversation.turns).await?;
        let fused = replay.ask(conversation, &replay.all).await?;
        let by_words = Conversations { embedding: None, ..replay.all.clone() };
        let words = replay.ask(conversation, &by_words).await?;
        let mut outcomes = Vec::new();
        let mut faults = Vec::new();
        for ((question, fused), words) in conversation.questions.iter().zip(fused).zip(words) {
            let kind = question.kind;
            faults.extend([&fused, &words].into_iter().filter(|shown| shown.1 > BUDGET).map(|shown| {
                format!("{}: {} tokens of {BUDGET}: {}", conversation.name, shown.1, question.text)
            }));
            outcomes.push(Outcome { conversation: number, kind, fused: fused.0, words: words.0 });
        }
        Ok((outcomes, faults))
    })
}

impl Replay {
    fn new(model: MiniLm) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let clock = Arc::new(SetClock(AtomicU64::new(0)));
        let options = StoreOptions { clock: Arc::clone(&clock) as _, ..StoreOptions::default() };
        let store = Store::open(&folder.path().join("home"), options)?.user("evals")?;
        let next = Arc::new(Mutex::new(String::new()));
        let says = Arc::clone(&next);
        let scripted = Answering::new(move |prompt| answer(prompt, &says));
        let prompts = scripted.prompts();
        let models = with_vectors(Arc::new(scripted), Arc::new(model), folder.path(), WINDOW, PATIENCE_MS);
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("conversation");
        let project = Project::open(&project, &Counter::cl100k())?;
        let engine = Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None))?;
        let all = Conversations::new(engine, Some("vectors".to_owned()));
        Ok(Self { _folder: folder, all, clock, next, prompts })
    }

    fn begin(&self, all: &Conversations) -> Result<Conversation, Failure> {
        let user = all.engine.store.user().to_owned();
        let id = all.begin(KIND, "", &[(PERSON.to_owned(), user)])?.id;
        Ok(all.open(&id, Some(PERSON))?)
    }

    /// Holds the conversation: one session for each of the corpus, a reply for each message of the first speaker.
    async fn hold(&self, turns: &[DialogueMessage]) -> Result<(), Failure> {
        let talk = self.begin(&self.all)?;
        talk.memory(&Counter::cl100k()).grant(EVERYTHING, "Everything may be remembered.")?;
        let person = turns.first().map(|turn| turn.speaker.as_str()).unwrap_or_default();
        let mut session = turns.first().map(|turn| turn.session);
        let mut at = 0;
        while let Some(turn) = turns.get(at) {
            if session.replace(turn.session) != Some(turn.session) {
                talk.begin_session(None).await?;
            }
            // A second for each message, so that what is written for one is never older than what was written before.
            self.clock.0.store(moment(&turn.date)? + 1_000 * at as u64, Ordering::SeqCst);
            let reply =
                turns.get(at + 1).filter(|next| next.speaker != turn.speaker && next.session == turn.session);
            at += 1;
            match reply.filter(|_| turn.speaker == person) {
                Some(reply) => {
                    *self.next.lock().unwrap_or_else(PoisonError::into_inner) = said(reply);
                    talk.say(&said(turn), &NoopObserver).await?;
                    at += 1;
                }
                None if turn.speaker == person => {
                    let posted = talk.post(&said(turn), None)?;
                    let track = Track { conversation: talk.id(), participant: PERSON };
                    self.all.engine.store.conversations().leave(track, posted.number)?;
                }
                None => self.open_with(&talk, &said(turn))?,
            }
            self.work(false).await?;
        }
        self.work(true).await
    }

    /// The assistant begins a session.
    fn open_with(&self, talk: &Conversation, text: &str) -> Result<(), Failure> {
        let track = Track { conversation: talk.id(), participant: PERSON };
        let (_, state) = talk.standing()?;
        let opening = NewReply {
            to: None,
            text,
            data: &json!({}),
            state: &serde_json::to_value(&state)?,
            memory: &[],
            jobs: &[],
            costs: &[ConversationCost { stage: STAGE, call: "opening", ..ConversationCost::default() }],
            chars: CHARS,
        };
        self.all.engine.store.conversations().answer(track, &opening)?;
        Ok(())
    }

    /// Does the jobs that wait; vectors only once everything was said.
    async fn work(&self, vectors: bool) -> Result<(), Failure> {
        let jobs = self.all.engine.store.jobs();
        for job in jobs.list()? {
            if vectors || !job.kind.ends_with("embed") {
                let after = serde_json::from_value(job.payload.clone())?;
                self.all.work(&job.kind, &after, &NoopObserver).await?;
                jobs.cancel(job.id)?;
            }
        }
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }

    /// For each question: the share of the messages that answer it in the prompt, and the tokens of what was looked up.
    async fn ask(
        &self,
        conversation: &LocomoConversation,
        all: &Conversations,
    ) -> Result<Vec<(f64, usize)>, Failure> {
        let turns = &conversation.turns;
        let talk = self.begin(all)?;
        let last = turns.last().map(|turn| moment(&turn.date)).transpose()?.unwrap_or_default();
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = "I see.".to_owned();
        let mut shown = Vec::new();
        for (at, question) in conversation.questions.iter().enumerate() {
            self.clock.0.store(last + 10_000_000, Ordering::SeqCst);
            // One question takes the place of the other, so that none is found in the past of the next.
            let posted = match at {
                0 => talk.post(&question.text, None)?,
                _ => talk.revise(Some(&question.text), None).await?,
            };
            talk.answer(posted.number, &NoopObserver).await?;
            let prompts = std::mem::take(&mut *self.prompts.lock().unwrap_or_else(PoisonError::into_inner));
            let related = related(prompts.last().map(String::as_str).unwrap_or_default());
            let holds =
                |&&turn: &&usize| related.lines().any(|line| line.ends_with(&one_line(&said(&turns[turn]))));
            let found = question.evidence.iter().filter(holds).count();
            shown.push((found as f64 / question.evidence.len() as f64, Counter::o200k().count(related)));
        }
        // What was asked first is not part of the past of what is asked next.
        all.delete(talk.id(), None).await?;
        Ok(shown)
    }
}

/// Noon of the day of a session.
fn moment(date: &str) -> Result<u64, Failure> {
    let day = day_of(date).ok_or_else(|| format!("{date} names no day"))?;
    let noon: DocumentTime = format!("{day}T12:00:00Z").parse().map_err(|_| format!("{day} is no day"))?;
    Ok(u64::try_from(noon.as_millis())?)
}

/// A message with the name of who says it.
fn said(turn: &DialogueMessage) -> String {
    format!("{}: {}", turn.speaker, turn.text)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a prompt shows of other sessions.
fn related(prompt: &str) -> &str {
    let behind = prompt.rsplit_once(RELATED).map_or("", |(_, behind)| behind);
    behind.rsplit_once(MESSAGE).map_or(behind, |(related, _)| related).trim()
}

/// What the scripted model says.
fn answer(prompt: &str, next: &Mutex<String>) -> String {
    if prompt.contains("Update the facts.") {
        return json!({"upsert": facts(prompt), "delete": []}).to_string();
    }
    if prompt.contains("Merge the facts.") {
        // Nothing is merged: what is over the limits of a profile stays in its session.
        return json!({ "facts": [] }).to_string();
    }
    if prompt.contains("Write the summary.") {
        let lines = messages(prompt).filter_map(|text| text.split(['.', '!', '?']).next());
        return json!({"summary": lines.collect::<Vec<_>>().join(". ")}).to_string();
    }
    next.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The texts of the messages in a prompt.
fn messages(prompt: &str) -> impl Iterator<Item = &str> {
    prompt.lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let text = rest.strip_prefix("User: ").or_else(|| rest.strip_prefix("Assistant: "))?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
    })
}

/// What people say of themselves in the two newest messages, a sentence each.
fn facts(prompt: &str) -> Vec<Value> {
    let all: Vec<&str> = messages(prompt).collect();
    let newest = &all[all.len().saturating_sub(2)..];
    let mut facts = Vec::new();
    for message in newest {
        let Some((name, text)) = opening_name(message) else { continue };
        let is_fact = |sentence: &&str| {
            let words: Vec<String> = sentence.split_whitespace().map(str::to_lowercase).collect();
            FACT_WORDS.contains(&words.len())
                && words.iter().any(|word| OF_THEMSELVES.contains(&word.as_str()))
        };
        let sentences = text.split(['.', '!', '?']).map(str::trim).filter(is_fact);
        facts.extend(sentences.filter(|sentence| sentence.len() < 200).take(FACTS).map(|sentence| {
            json!({"category": "Other", "fact": format!("{name}: {sentence}"), "quote": sentence, "confidence": 1.0})
        }));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Facts\n[7] User: Ann: I bought a bicycle in Ghent yesterday! Great.\n[8] Assistant: Bob: Nice. My bicycle is older than yours.\nUpdate the facts.";

    #[test]
    fn facts_are_what_people_say_of_themselves_with_the_words() {
        let found = facts(PROMPT);
        let told: Vec<_> = found.iter().map(|fact| fact["fact"].as_str().unwrap()).collect();
        assert_eq!(
            told,
            ["Ann: I bought a bicycle in Ghent yesterday", "Bob: My bicycle is older than yours"]
        );
        assert_eq!(found[0]["quote"], "I bought a bicycle in Ghent yesterday");
    }

    #[test]
    fn what_was_looked_up_is_between_its_label_and_the_message() {
        let prompt = format!("x\n{RELATED}\nOn 2023-05-08:\n[3] Ann: Hi.\n\n{MESSAGE}\"What?\"");
        assert_eq!(related(&prompt), "On 2023-05-08:\n[3] Ann: Hi.");
        assert_eq!(related("User message: x"), "");
    }
}
