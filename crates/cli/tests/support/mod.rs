//! A folder with a project and a store, the `larder` binary, and a stub that plays the provider.
#![allow(dead_code, reason = "each test binary uses its part of this module")]

pub mod scholar;
pub mod served;

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use larder_testkit::stub::{Answer, Seen, StubServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const SUMMARY: &str = "\
name: summary
description: Say what matters in some notes.
model_layer: VOICE
token_budget: {total: 2000, prompt: 200, input: 1300, output: 300, response_reserve: 200}
prompt_files: [prompts/notes/all.md]
input_docs: [{name: notes, content_type: prose}]
output_format: text
";
const HASTY: &str = "quality_gates: {timeout_ms: 300}\n";
const TYPED: &str = "\
name: typed
description: Answer from some notes, citing them.
model_layer: VOICE
token_budget: {total: 2000, prompt: 200, input: 1300, output: 300, response_reserve: 200}
prompt_files: [prompts/notes/all.md]
input_docs: [{name: notes, content_type: prose}]
output_format: json
output_schema:
  type: object
  additionalProperties: false
  required: [answer, citations]
  properties:
    answer: {type: string}
    citations: {type: array, items: {type: string}}
quality_gates: {schema_validation: true, evidence_required: true, max_retries: 1}
";

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A folder of its own, and perhaps a provider.
pub struct Shop {
    dir: TempDir,
    provider: Option<(Runtime, StubServer)>,
}

impl Shop {
    /// A folder with nothing in it.
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), provider: None }
    }

    /// A project with the recipes `notes/summary`, `notes/hasty` and `notes/typed`, whose model is a stub that gives
    /// `answers` in order.
    pub fn with_provider(answers: impl IntoIterator<Item = Answer>) -> Self {
        let shop = Self::with_models(answers);
        shop.write("recipes/notes/summary.yaml", SUMMARY);
        shop.write("recipes/notes/hasty.yaml", SUMMARY.replace("name: summary", "name: hasty") + HASTY);
        shop.write("recipes/notes/typed.yaml", TYPED);
        shop.write("prompts/notes/all.md", "You answer from notes. Use only what they say.\n");
        shop
    }

    /// The same without recipes of its own: the built-in ones are used.
    pub fn with_models(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut shop = Self::new();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(StubServer::start(answers));
        shop.provider = Some((runtime, server));
        shop.configure("", "");
        shop
    }

    /// A folder with nothing in it, and a provider that answers each request by what it says.
    pub fn responding(respond: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(StubServer::responding(respond));
        Self { dir: tempfile::tempdir().unwrap(), provider: Some((runtime, server)) }
    }

    /// Where the provider is.
    pub fn address(&self) -> &str {
        self.provider.as_ref().unwrap().1.address()
    }

    /// Writes larder.toml with more keys for the model `stub`, and more tables. `[models.small]` gets its provider.
    pub fn configure(&self, keys: &str, tables: &str) {
        self.configure_layers(&["VOICE"], keys, tables);
    }

    /// The same, with the model `stub` playing these layers.
    pub fn configure_layers(&self, layers: &[&str], keys: &str, tables: &str) {
        let (_, server) = self.provider.as_ref().unwrap();
        let common = format!(
            "provider = \"openai\"\nbase_url = \"{}/v1\"\nid = \"gpt-4o-mini\"\nretries = 0\n",
            server.address()
        );
        let tables = tables.replace("[models.small]\n", &format!("[models.small]\n{common}"));
        let layers: String = layers.iter().map(|layer| format!("{layer} = \"stub\"\n")).collect();
        let text = format!(
            "[models.layers]\n{layers}\n[models.stub]\n{common}window = 8000\nmax_output = 1000\n{keys}\n{tables}"
        );
        self.write("larder.toml", text);
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Everything the provider was sent.
    pub fn seen(&self) -> Vec<Seen> {
        self.provider.as_ref().unwrap().1.seen()
    }

    /// The command, ready to start in this folder, in an environment that holds nothing else.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(args).current_dir(self.dir.path()).env_clear();
        command.env("HOME", self.dir.path().join("user")).env("LARDER_HOME", self.dir.path().join("home"));
        // No process outlives a test that does not ask for it.
        command.env("LARDER_JOBS_DETACHED", "false");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The command, in a process that writes no file beyond so many KiB: it is told so by an error, as on a full disk.
    #[cfg(unix)]
    pub fn command_within(&self, kib: u64, args: &[&str]) -> Command {
        let limited = "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"";
        let mut command = Command::new("/bin/sh");
        // The shell counts in blocks of 512 bytes.
        let blocks = (kib * 2).to_string();
        command.args(["-c", limited, &blocks, env!("CARGO_BIN_EXE_larder")]).args(args);
        command.current_dir(self.dir.path()).env_clear();
        command.env("HOME", self.dir.path().join("user")).env("LARDER_HOME", self.dir.path().join("home"));
        command.env("LARDER_JOBS_DETACHED", "false");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    pub fn run_with(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// Runs what must succeed.
    pub fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "larder {args:?}: {ran:?}");
        ran
    }

    /// Runs what must fail with this exit code, say why, and print no half of an answer.
    pub fn fails(&self, code: i32, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, code, "larder {args:?}: {ran:?}");
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        ran
    }

    /// Runs what must succeed and print JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        let ran = self.ok(&[args, &["--format", "json"]].concat());
        serde_json::from_str(&ran.out).unwrap()
    }

    /// Condenses a file for the sake of the pointer to it.
    pub fn pointer_to(&self, file: &str) -> String {
        self.json(&["condense", file, "--to", "200"])["pointer"].as_str().unwrap().to_owned()
    }
}

/// A reply of the provider that says this text, at the price of 100 tokens in and 10 out.
pub fn reply_text(text: &str) -> Answer {
    Answer::json(
        200,
        &json!({
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "gpt-4o-mini",
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }),
    )
}

/// A reply of the provider that calls these tools, at the same price.
pub fn reply_calls(calls: &[(&str, Value)]) -> Answer {
    let call = |(at, (name, arguments)): (usize, &(&str, Value))| {
        json!({"id": format!("call_{at}"), "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}})
    };
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    Answer::json(
        200,
        &json!({
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "gpt-4o-mini",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }),
    )
}

/// A reply of the provider that is this value.
pub fn reply(value: &Value) -> Answer {
    reply_text(&value.to_string())
}

/// The keys of an object, in order.
pub fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// A number that the environment sets for a test.
pub fn setting(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Waits until the process ends or `delay` has passed; says whether it ended.
pub fn ended_within(child: &mut Child, delay: Duration) -> bool {
    let end = Instant::now() + delay;
    loop {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::park_timeout(left.min(Duration::from_micros(500)));
    }
}

/// Steele and Vigna's splitmix64: the moments are the same in every run of a test.
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
