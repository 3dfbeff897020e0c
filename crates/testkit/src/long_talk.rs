//! A long conversation of two participants through `larder serve`, with a provider that repeats what was recorded: what each
//! request held, what it shared with the one before it, what it cost, and how long Larder took before it asked.

mod provider;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use larder_models::weights::EMBEDDING_MODEL;
use serde_json::{Value, json};

use self::provider::{Asked, Provider, text_of};
use crate::stub::StubServer;
use crate::weights;

/// The participants.
const PEOPLE: [&str; 2] = ["ana", "ben"];
/// The tokens that fit the prompt and the answer, by the recipe of the type's replies (R4-5.4).
const BUDGET: u64 = 40_000;
/// Turns after which a person asks not to be reminded.
const AVOIDS: usize = 60;
/// A message that withholds the past.
const AVOID: &str = "Please don't bring up what is past now.";
/// Turns after which somebody says more than is sent of a message, and the characters of it.
const LONG: (usize, usize) = (45, 2_600);
/// How often it is looked whether everything behind a reply is done.
const AGAIN: Duration = Duration::from_millis(5);
/// The embedded model, as the built-in table has it: the settings have a table of their own.
const MINILM: &str = "[models.minilm]\nprovider = \"embedded\"\nid = \"all-minilm-l6-v2\"\nwindow = 256\n\
                      dimensions = 384\ncapabilities = [\"embedding\"]\nretries = 0\n";
/// Characters at the beginning of a long message that are always sent.
const BEGINNING: usize = 1_500;
/// Millionths of a millionth of a US dollar in one.
const PICOS: f64 = 1e12;
/// The longest wait for what is done behind a reply; only a failing run waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is said, and with which program.
#[derive(Debug, Clone, Copy)]
pub struct LongTalk<'a> {
    /// The `larder` program.
    pub larder: &'a Path,
    /// How many messages, replies included.
    pub messages: usize,
    /// How many sessions, of both participants together.
    pub sessions: usize,
    /// What is said, each with its reply; begins anew when it is used up.
    pub said: &'a [(String, String)],
    /// Whether the embedded model makes vectors.
    pub vectors: bool,
}

/// One message with its reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turn {
    /// From the post until the provider had the request, without what it took itself for a planning call before it.
    pub added: Duration,
    /// Tokens of the prompt, and how many of them the provider had cached.
    pub input: u64,
    /// Tokens of `input` that were cached.
    pub cached: u64,
    /// Tokens of the prompt as Larder counted them (R4-9.6).
    pub counted: u64,
    /// Messages of the session by what became of them: sent, in the summary, withheld, left out.
    pub coverage: [u64; 4],
    /// Whether the message asked for the past to be withheld.
    pub withheld: bool,
    /// Whether the system prompt and the history before the last message repeat those of the turn before; `None` where a
    /// stage, a session or a summary began, or the past was withheld.
    pub repeats: Option<bool>,
    /// Messages that were looked up.
    pub retrieved: usize,
}

/// What is known after a share of the messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mark {
    /// Turns so far.
    pub turns: usize,
    /// Memory of the server in KiB.
    pub memory: u64,
    /// US dollars so far, by Larder's own sums.
    pub cost: f64,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Talked {
    /// In order.
    pub turns: Vec<Turn>,
    /// After each quarter.
    pub marks: Vec<Mark>,
    /// What should never be.
    pub faults: Vec<String>,
}

/// The beginning of a prompt that the next one has to repeat.
#[derive(PartialEq)]
struct Prefix {
    session: u64,
    stage: String,
    watermark: u64,
    messages: Vec<String>,
}

/// One participant, as the test knows it.
#[derive(Default)]
struct Side {
    session: u64,
    /// The messages of the session: number, role, text.
    log: Vec<(u64, &'static str, String)>,
    before: Option<Prefix>,
}

/// A run under way.
struct Running<'a> {
    plan: LongTalk<'a>,
    folder: tempfile::TempDir,
    provider: Arc<Provider>,
    process: Child,
    address: String,
    conversation: String,
    sides: BTreeMap<&'static str, Side>,
    seen: Talked,
}

impl LongTalk<'_> {
    /// Holds the conversation.
    pub fn hold(self) -> Talked {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let provider = Arc::new(Provider::default());
        let answering = Arc::clone(&provider);
        let stub = runtime.block_on(StubServer::responding(move |seen| answering.answer(seen)));
        let folder = tempfile::tempdir().unwrap();
        let layers: String =
            ["REFLEX", "NERVES", "MIND", "VOICE"].map(|layer| format!("{layer} = \"stub\"\n")).concat();
        let (embedding, minilm) = if self.vectors { ("minilm", MINILM) } else { ("", "") };
        let settings = format!(
            "[gather]\nembedding = \"{embedding}\"\n[models.layers]\n{layers}[models.stub]\nprovider = \"openai\"\n\
             base_url = \"{}/v1\"\nid = \"gpt-4o-mini\"\nretries = 0\nwindow = 128000\nmax_output = 16000\n\
             capabilities = [\"streaming\"]\nprices = {{ input = 0.15, cached_input = 0.075, output = 0.6 }}\n{minilm}",
            stub.address()
        );
        std::fs::write(folder.path().join("larder.toml"), settings).unwrap();
        let mut process = self.command(folder.path(), &["serve", "--listen", "127.0.0.1:0"]).spawn().unwrap();
        let mut greeting = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        // The last line says whether there are keys.
        while !greeting.contains("keys") && out.read_line(&mut greeting).unwrap() > 0 {}
        let address =
            greeting.lines().next().unwrap().strip_prefix("larder serves http://").unwrap().to_owned();
        let mut running = Running {
            plan: self,
            folder,
            provider,
            process,
            address,
            conversation: String::new(),
            sides: PEOPLE.into_iter().map(|name| (name, Side { session: 1, ..Side::default() })).collect(),
            seen: Talked::default(),
        };
        running.talk();
        std::mem::take(&mut running.seen)
    }

    fn command(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.larder);
        command.args(arguments).current_dir(folder).env_clear();
        command.env("HOME", folder.join("user")).env("LARDER_HOME", folder.join("home"));
        command.env("LARDER_JOBS_DETACHED", "false");
        if self.vectors {
            command.env("LARDER_MODELS", weights::folder(EMBEDDING_MODEL).parent().unwrap());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Running<'_> {
    /// Status and body of a reply of the API.
    fn ask(&self, method: &str, path: &str, accept: &str, body: &Value) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.to_string();
        let head = format!(
            "{method} /api/v1/{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: {accept}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 20"), "{method} {path}: {reply}");
        body.to_owned()
    }

    fn api(&self, method: &str, path: &str, body: &Value) -> Value {
        serde_json::from_str(&self.ask(method, path, "application/json", body)).unwrap()
    }

    fn talk(&mut self) {
        let people: Vec<Value> = PEOPLE.iter().map(|name| json!({ "name": name })).collect();
        let begun = self.api("POST", "conversations", &json!({"type": "mediation", "participants": people}));
        self.conversation = begun["id"].as_str().unwrap().to_owned();
        let turns = self.plan.messages / 2;
        let rounds = (self.plan.sessions / PEOPLE.len()).max(1);
        let in_round = turns / rounds;
        for round in 0..rounds {
            self.begin(round);
            for at in 0..in_round {
                self.turn(PEOPLE[at % PEOPLE.len()]);
                if self.seen.turns.len().is_multiple_of((turns / 4).max(1)) {
                    self.mark();
                }
            }
        }
    }

    /// Begins a session of each participant, and leads them on: to where the past of all sessions is looked up.
    fn begin(&mut self, round: usize) {
        let path = format!("conversations/{}", self.conversation);
        for name in PEOPLE {
            let who = json!({ "participant": name });
            if round > 0 {
                let begun = self.api("POST", &format!("{path}/sessions"), &who);
                let side = self.sides.get_mut(name).unwrap();
                (side.session, side.log) = (begun["session"].as_u64().unwrap(), Vec::new());
            } else {
                let shown = "May what you say be remembered in later sessions?";
                let consent = json!({"scope": "profile", "shown": shown, "participant": name});
                self.api("POST", &format!("{path}/consents"), &consent);
            }
        }
        if let Some(step) = ["begin", "understood", "needs_named"].get(round) {
            for name in PEOPLE {
                let action = json!({"action": step, "participant": name});
                self.api("POST", &format!("{path}/actions"), &action);
            }
        }
    }

    fn turn(&mut self, who: &'static str) {
        let at = self.seen.turns.len();
        let (mut said, reply) = self.plan.said[at % self.plan.said.len()].clone();
        if at % AVOIDS == AVOIDS - 1 {
            said = AVOID.to_owned();
        } else if at % LONG.0 == LONG.0 - 1 {
            said = said.chars().chain(" And then.".chars().cycle()).take(LONG.1).collect();
        }
        let fields = "<thinking>\nMode: WITNESS\nUserIntensity: 4\nFeelHeardCheck: Y\n</thinking>\n";
        *self.provider.now.lock().unwrap() = (said.clone(), format!("{fields}{reply}"));
        *self.provider.turn.lock().unwrap() = at;
        *self.provider.took.lock().unwrap() = Duration::ZERO;
        let path = format!("conversations/{}", self.conversation);
        let started = Instant::now();
        let events = self.ask(
            "POST",
            &format!("{path}/messages"),
            "text/event-stream",
            &json!({"text": said, "participant": who}),
        );
        assert!(events.contains("event: done"), "{events}");
        let window = self.api("GET", &format!("{path}/window?participant={who}"), &Value::Null);
        let asked = self.provider.asked.lock().unwrap().take();
        let Some(asked) = asked else { panic!("the provider was not asked for turn {at}: {events}") };
        let turn = self.check(at, who, (&asked, started), &window["record"]);
        self.seen.turns.push(turn);
        let number = window["reply"].as_u64().unwrap();
        let side = self.sides.get_mut(who).unwrap();
        side.log.extend([(number - 1, "user", said), (number, "assistant", reply)]);
        self.finish();
    }

    /// Compares a request with what was said.
    fn check(
        &mut self,
        at: usize,
        who: &'static str,
        (asked, started): (&Asked, Instant),
        record: &Value,
    ) -> Turn {
        let side = self.sides.get_mut(who).unwrap();
        let window = &record["window"];
        let count = |field: &str| window[field].as_u64().unwrap_or_default();
        let withheld = count("withheld") > 0 || window["intent"] == "avoid_recall";
        let watermark = count("watermark");
        let (last, before) = asked.messages.split_last().unwrap();
        let (system, history) =
            before.split_at(before.iter().take_while(|one| one["role"] == "system").count());
        let mut faults = Vec::new();
        // Every message is sent as it was said, or below the watermark of a summary that is sent, or withheld.
        let hidden = side.log.len().saturating_sub(history.len());
        if system.is_empty() || history.len() > side.log.len() {
            faults.push("the request has another form".to_owned());
        }
        for ((number, role, said), sent) in side.log[hidden..].iter().zip(history) {
            let text = text_of(sent);
            let is_whole = text == *said;
            let beginning: String = said.chars().take(BEGINNING).collect();
            let is_long =
                said.chars().count() >= LONG.1 && text.starts_with(&beginning) && text.contains("lp1-");
            if sent["role"] != *role || !is_whole && !is_long {
                faults.push(format!("message {number} was sent as {text:?}"));
            }
        }
        if !withheld && side.log[..hidden].iter().any(|(number, ..)| *number > watermark) {
            faults.push(format!("a message above the watermark {watermark} was not sent"));
        }
        if !withheld && hidden > 0 && !text_of(last).contains("Rolling summary") {
            faults.push("the summary was not sent".to_owned());
        }
        let sent = window["sent"].as_array().map_or(0, Vec::len) as u64;
        let coverage = [sent, count("summarized"), count("withheld"), count("left_out")];
        if coverage[..3].iter().sum::<u64>() != side.log.len() as u64 || coverage[3] > 0 {
            faults.push(format!("{coverage:?} of {} messages", side.log.len()));
        }
        let counted = ["system_tokens", "history_tokens", "last_tokens"].map(count).iter().sum::<u64>();
        if counted > count("available_tokens") || asked.input + asked.output > BUDGET {
            faults.push(format!("{} tokens and {} for the answer", asked.input, asked.output));
        }
        let now = Prefix {
            session: side.session,
            stage: record["stage"].as_str().unwrap_or_default().to_owned(),
            watermark,
            messages: before.iter().map(Value::to_string).collect(),
        };
        let is_same = |before: &&Prefix| {
            (before.session, &before.stage, before.watermark) == (now.session, &now.stage, now.watermark)
        };
        let repeats = (!withheld).then(|| side.before.as_ref().filter(is_same)).flatten();
        let repeats = repeats.map(|before| now.messages.starts_with(&before.messages));
        if repeats == Some(false) {
            faults.push("the prompt does not repeat the one before".to_owned());
        }
        if !withheld {
            side.before = Some(now);
        }
        self.seen.faults.extend(faults.into_iter().map(|fault| format!("turn {at} of {who}: {fault}")));
        Turn {
            added: asked.at.saturating_duration_since(started).saturating_sub(asked.took),
            input: asked.input,
            cached: asked.cached,
            counted,
            coverage,
            withheld,
            repeats,
            retrieved: window["retrieved"].as_array().map_or(0, Vec::len),
        }
    }

    /// Waits until everything behind the reply is done, as a person does who reads it.
    fn finish(&self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let jobs = self.api("GET", "jobs", &Value::Null);
            let mut jobs = jobs["jobs"].as_array().cloned().unwrap_or_default();
            jobs.retain(|job| job["kind"].as_str().is_some_and(|kind| kind.starts_with("conversation_")));
            if jobs.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "jobs are never done: {jobs:?}");
            std::thread::park_timeout(AGAIN);
        }
    }

    fn mark(&mut self) {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        let costs = self
            .plan
            .command(self.folder.path(), &["costs", "--by", "call", "--format", "json"])
            .output()
            .unwrap();
        let costs: Value = serde_json::from_slice(&costs.stdout).unwrap();
        let sums = costs.as_object().unwrap().values();
        let picos: f64 = sums.filter_map(|sum| sum["picos"].as_f64()).sum();
        self.seen.marks.push(Mark { turns: self.seen.turns.len(), memory, cost: picos / PICOS });
    }
}
