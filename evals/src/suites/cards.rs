//! Long histories of cards: what of a coding agent's run is still in the prompt once older messages are condensed as one
//! text, by rule.
//!
//! Each run is the history of a card with a cap of 10,000 tokens, packed by the engine as `larder run` packs it. What is
//! looked for is what a reader needs in any case: the first request, the newest messages, and the lines of tool results
//! that name a failure and that a later message or call of the assistant repeats word for word.

use std::collections::BTreeSet;
use std::time::Instant;

use larder_engine::Engine;
use larder_engine::executor::RunReceipt;
use larder_engine::inputs::RunInput;
use larder_engine::project::Project;
use larder_engine::settings::RunPolicy;
use larder_models::connect::Models;
use larder_models::table::ModelTable;
use larder_store::{Store, StoreOptions};
use larder_text::message::{Message, Role, ToolCall};
use larder_text::tokens::Counter;
use serde_json::Value;

use crate::report::{Better, Report, ReportColumn};
use crate::{Failure, corpora, measure};

const RECIPE: &str = "card/card_agent";
const QUERY: &str = "Go on.";
/// A window that leaves the card's cap as the only limit. No request is sent.
const TABLE: &str = "
[models.layers]
MIND = \"big\"

[models.big]
provider = \"openai\"
base_url = \"http://127.0.0.1:9\"
id = \"gpt-4o\"
tokenizer = \"o200k_base\"
window = 128000
max_output = 4000
";
const WORDS: [&str; 5] = ["error", "exception", "traceback", "failed", "fatal"];
/// The newest messages that must be in the prompt.
const NEWEST: usize = 2;
/// A growing history is packed at every so many messages.
const STEP: usize = 16;

/// Counts over all runs.
#[derive(Default)]
struct Figures {
    messages: usize,
    requests: usize,
    newest: usize,
    lines: (usize, usize),
    tokens: usize,
    /// Histories over the cap, and those of them that take 50 to 75 % of it.
    over: (usize, usize),
    /// Pairs of a history and a longer one in the same epoch, and those whose prompt is extended.
    extended: (usize, usize),
}

/// Measures all runs.
///
/// # Errors
/// The corpus is missing or not as expected.
pub fn measure() -> Result<Report, Failure> {
    let home = tempfile::tempdir()?;
    let engine = engine(home.path())?;
    let files = corpora::files(&corpora::folder("traces")?.join("coding"), &[".json.gz"])?;
    let (mut figures, mut faults, started) = (Figures::default(), Vec::new(), Instant::now());
    for file in &files {
        let name = corpora::name(file);
        let history =
            history(&corpora::json(file)?).ok_or_else(|| format!("{name} is not a list of messages"))?;
        let missing = figures.add(&engine, &history)?;
        faults.extend(missing.into_iter().map(|what| format!("{name}: {what}")));
    }
    let seconds = started.elapsed().as_secs_f64();
    let runs = files.len();
    let row = vec![
        runs as f64,
        figures.messages as f64,
        measure::percent(figures.requests, runs),
        measure::percent(figures.newest, runs * NEWEST),
        figures.lines.1 as f64,
        measure::percent(figures.lines.0, figures.lines.1),
        measure::percent(figures.over.1, figures.over.0),
        figures.tokens as f64 / runs.max(1) as f64,
        measure::percent(figures.extended.1, figures.extended.0),
        seconds,
    ];
    Ok(Report {
        suite: "cards",
        title: "Runs of a coding agent as histories of a card, 10,000 tokens: what is in the prompt, by rule"
            .to_owned(),
        columns: columns(),
        rows: Vec::new(),
        total: row.into_iter().map(Some).collect(),
        faults,
    })
}

fn columns() -> Vec<ReportColumn> {
    vec![
        ReportColumn::shown("runs", 0),
        ReportColumn::shown("messages", 0),
        ReportColumn::higher("requests %", 0.0).least(100.0),
        ReportColumn::higher("newest %", 0.0).least(100.0),
        ReportColumn::shown("failures repeated", 0),
        ReportColumn::higher("in prompt %", 0.5).least(98.0),
        ReportColumn::higher("in 50-75 %", 0.0).least(100.0),
        ReportColumn { better: Better::Lower, slack: 200.0, ..ReportColumn::shown("tokens", 0) },
        ReportColumn::higher("prefix kept %", 0.0).least(100.0),
        ReportColumn::shown("s", 1),
    ]
}

fn engine(home: &std::path::Path) -> Result<Engine, Failure> {
    let store = Store::open(home, StoreOptions::default())?.user("evals")?;
    let table = ModelTable::parse(TABLE).map_err(|problems| format!("{problems:?}"))?;
    let models = Models::new(table, home, &|_| None);
    let project = Project::builtin(&Counter::cl100k());
    Ok(Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None))?)
}

impl Figures {
    /// Packs a history, whole and as it grows. Returns what is missing.
    fn add(&mut self, engine: &Engine, history: &[Message]) -> Result<Vec<String>, Failure> {
        let receipt = packed(engine, history)?;
        let prompt: Vec<String> = receipt.messages.iter().map(said).collect();
        let prompt = prompt.join("\n");
        let mut missing = Vec::new();
        self.messages += history.len();
        let request = history.iter().find(|message| message.role == Role::User).map(said).unwrap_or_default();
        if prompt.contains(&request) {
            self.requests += 1;
        } else {
            missing.push("the first request is not in the prompt".to_owned());
        }
        for message in history.iter().rev().take(NEWEST) {
            if prompt.contains(&said(message)) {
                self.newest += 1;
            } else {
                missing.push("one of the newest messages is not in the prompt".to_owned());
            }
        }
        for line in repeated_failures(history) {
            self.lines.1 += 1;
            if prompt.contains(line) {
                self.lines.0 += 1;
            } else {
                missing.push(format!("{line:?} is not in the prompt"));
            }
        }
        let slot = receipt.receipt.budget.slots.iter().find(|slot| slot.name == "history");
        let slot = slot.ok_or("the recipe has no slot for the history")?;
        self.tokens += slot.tokens;
        if receipt.receipt.epoch.is_some_and(|epoch| epoch.number > 0) {
            self.over.0 += 1;
            self.over.1 +=
                usize::from(slot.tokens * 4 <= slot.allowed * 3 && slot.tokens * 2 >= slot.allowed);
        }
        self.grow(engine, history)?;
        Ok(missing)
    }

    fn grow(&mut self, engine: &Engine, history: &[Message]) -> Result<(), Failure> {
        let mut before: Option<RunReceipt> = None;
        for until in (1..=history.len()).filter(|until| until % STEP == 0) {
            // A call without its result is never sent.
            let now = packed(engine, &history[..until])?;
            if let Some(before) = before.as_ref().filter(|_| history[until - 1].tool_calls.is_empty()) {
                let number = |receipt: &RunReceipt| receipt.receipt.epoch.map(|epoch| epoch.number);
                if number(before) == number(&now) {
                    // The query is last.
                    let stays = &before.messages[..before.messages.len() - 1];
                    self.extended.0 += 1;
                    self.extended.1 += usize::from(now.messages.starts_with(stays));
                }
            }
            before = history[until - 1].tool_calls.is_empty().then_some(now);
        }
        Ok(())
    }
}

fn packed(engine: &Engine, history: &[Message]) -> Result<RunReceipt, Failure> {
    let input = RunInput { query: Some(QUERY.to_owned()), history: history.to_vec(), ..RunInput::default() };
    Ok(engine.explain(RECIPE, &input)?)
}

/// The messages of a run.
fn history(run: &Value) -> Option<Vec<Message>> {
    let message = |message: &Value| {
        let role = serde_json::from_value(message["role"].clone()).ok()?;
        let call = |call: &Value| {
            Some(ToolCall {
                id: call["id"].as_str()?.to_owned(),
                name: call["function"]["name"].as_str()?.to_owned(),
                arguments: call["function"]["arguments"].as_str()?.to_owned(),
            })
        };
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        Some(Message {
            tool_calls: calls.iter().map(call).collect::<Option<_>>()?,
            tool_call_id: message["tool_call_id"].as_str().map(str::to_owned),
            ..Message::text(role, message["content"].as_str().unwrap_or_default())
        })
    };
    run.as_array()?.iter().map(message).collect()
}

/// Everything that a message says.
fn said(message: &Message) -> String {
    let mut text = message.joined_text();
    for call in &message.tool_calls {
        text.push('\n');
        text.push_str(&call.arguments);
    }
    text.trim_start().to_owned()
}

/// The same with the values of the arguments as the tool reads them.
fn said_plainly(message: &Message) -> String {
    let mut text = said(message);
    for call in &message.tool_calls {
        let values =
            serde_json::from_str::<serde_json::Map<String, Value>>(&call.arguments).unwrap_or_default();
        values.values().filter_map(Value::as_str).for_each(|value| text.extend(["\n", value]));
    }
    text
}

/// The lines of tool results, without outer white space, that name a failure and that the assistant repeats later.
fn repeated_failures(history: &[Message]) -> BTreeSet<&str> {
    let mut lines = BTreeSet::new();
    for (at, message) in history.iter().enumerate().filter(|(_, message)| message.role == Role::Tool) {
        let later: Vec<String> = history[at + 1..]
            .iter()
            .filter(|message| message.role == Role::Assistant)
            .map(said_plainly)
            .collect();
        let text = match message.content.as_slice() {
            [larder_text::message::Content::Text { text }] => text.as_str(),
            _ => continue,
        };
        let names_failure = |line: &&str| {
            let line = line.to_ascii_lowercase();
            WORDS.iter().any(|word| line.contains(word))
        };
        let candidates = text.lines().map(str::trim).filter(names_failure);
        lines.extend(candidates.filter(|line| later.iter().any(|said| said.contains(line))));
    }
    lines
}
