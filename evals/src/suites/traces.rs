//! Replay of real agent runs: what a policy sends, what of it a provider's cache holds, and what it hides.
//!
//! Every way is measured in the same run: everything as it is, old results masked, the usual offload when a result is
//! written, and ours. A request holds the messages so far and is sent at every fourth message and at the last. The cost
//! is that of the messages (measure M6); next to it is the share with the definition of our tool counted, which
//! moves a cached prefix where it is offered later than with the first request.

mod figures;

use std::collections::HashMap;
use std::time::Instant;

use larder_core::policy::{
    ContextBudgetPolicy, Conversation, ConversationItem, DecidedWindow, DecisionContext, FixedTokens,
    ItemCall, Memo, MessageForm, ModelProfile, PointerReader, PolicySettings, ToolOffer, Verdict,
    rehydrate_tool,
};
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::pointer::{Pointer, PointerKey};
use larder_text::price::CacheWrites;
use larder_text::tokens::Counter;
use serde_json::{Value, json};

use self::figures::Figures;
use crate::report::{Better, Report, ReportColumn};
use crate::{Failure, corpora, measure};

/// A request is sent at every so many messages.
const STEP: usize = 4;
/// The price of a cached token as a share of that of an uncached one.
const CACHED: f64 = 0.1;
/// The usual offload: results of more tokens keep so many characters.
const OFFLOADED_ABOVE: usize = 300;
const OFFLOADED_TO: usize = 600;
/// The text that replaces the rest there, and a masked result; every further token would make them dearer.
const OFFLOAD_MARK: &str = "\n[rest: ptr_00000000]";
const MASK: &str = "[tool result masked]";
/// Newest results that masking spares.
const UNMASKED: usize = 3;
const WINDOW: usize = 128_000;
/// A window that many of the runs do not fit into, so that older results have to give way.
const SMALL_WINDOW: usize = 10_000;
/// Entry caps around the default, to show how much hangs on it.
const CAPS: [usize; 5] = [96, 128, 160, 240, 320];
/// Shorter strings, in characters, are not probes.
const SHORTEST_PROBE: usize = 4;

/// Measures all runs under every way.
///
/// # Errors
/// The corpus is missing or not as expected.
pub fn measure() -> Result<Report, Failure> {
    let counter = Counter::o200k();
    let folder = corpora::folder("traces")?.join("openai");
    let files = corpora::files(&folder, &[".json"])?;
    let runs = files
        .iter()
        .map(|file| Run::read(&corpora::name(file), corpora::json(file)?, &counter))
        .collect::<Result<Vec<_>, Failure>>()?;
    let ours = |window: usize, entry_cap: Option<usize>, offer_tool: ToolOffer| {
        let defaults = PolicySettings::default();
        let settings = PolicySettings { entry_cap, offer_tool, ..defaults };
        let profile = ModelProfile { window, input_limit: None, max_output: None, cache: None };
        Way::Larder(Box::new(ContextBudgetPolicy::from_settings(&settings, &profile)))
    };
    let mut ways = vec![
        ("as it is".to_owned(), Way::AsItIs, ""),
        (format!("masked but the last {UNMASKED}"), Way::Masked, ""),
        ("offloaded when written".to_owned(), Way::Offloaded, ""),
        ("larder".to_owned(), ours(WINDOW, None, ToolOffer::WhenNeeded), ""),
    ];
    for source in ["swe-agent", "tau-bench", "agent-sdk"] {
        ways.push((format!("{source}, as it is"), Way::AsItIs, source));
        ways.push((format!("{source}, offloaded"), Way::Offloaded, source));
        ways.push((format!("{source}, larder"), ours(WINDOW, None, ToolOffer::WhenNeeded), source));
    }
    ways.push(("larder, tool from the first".to_owned(), ours(WINDOW, None, ToolOffer::WithTools), ""));
    ways.extend(
        CAPS.map(|cap| {
            (format!("larder, entry cap {cap}"), ours(WINDOW, Some(cap), ToolOffer::WhenNeeded), "")
        }),
    );
    ways.push((
        format!("larder, window of {SMALL_WINDOW}"),
        ours(SMALL_WINDOW, None, ToolOffer::WhenNeeded),
        "",
    ));
    let (mut rows, mut faults, mut total) = (Vec::new(), Vec::new(), Vec::new());
    for (name, way, source) in ways {
        let mut figures = Figures::default();
        for run in runs.iter().filter(|run| run.name.starts_with(source)) {
            figures.add(run, &way, &counter)?;
        }
        let broken = std::mem::take(&mut figures.faults).into_iter().map(|fault| format!("{name}: {fault}"));
        if matches!(way, Way::Larder(_)) {
            faults.extend(broken);
        }
        if name == "larder" {
            total = figures.row();
        }
        rows.push((name, figures.row()));
    }
    Ok(Report {
        suite: "traces",
        title: "Agent runs, replayed: a request at every fourth message, a cached token at a tenth"
            .to_owned(),
        columns: columns(),
        rows,
        total,
        faults,
    })
}

fn columns() -> Vec<ReportColumn> {
    let lower = |name, slack| ReportColumn { better: Better::Lower, slack, ..ReportColumn::shown(name, 0) };
    let none = |name| ReportColumn { accepted: Some(0.0), ..lower(name, 0.0) };
    vec![
        ReportColumn::shown("requests", 0),
        ReportColumn::shown("prefix kept %", 1),
        ReportColumn::higher("outside epochs %", 0.0).least(100.0),
        ReportColumn::shown("sent", 0),
        ReportColumn::shown("uncached", 0),
        lower("cost", 1_000.0),
        lower("with tool", 1_000.0),
        none("unpaired"),
        ReportColumn::higher("byte-exact %", 0.0).least(100.0),
        ReportColumn::shown("probes", 0),
        ReportColumn::higher("retained %", 0.5),
        ReportColumn::shown("recoverable", 0),
        none("lost"),
        ReportColumn::shown("replaced", 0),
        ReportColumn::shown("epochs", 0),
        ReportColumn::shown("refused", 0),
        none("violations"),
        ReportColumn::shown("ms", 2),
    ]
}

enum Way {
    AsItIs,
    Masked,
    Offloaded,
    Larder(Box<ContextBudgetPolicy>),
}

/// One run with what the policy has to know of its messages.
struct Run {
    name: String,
    messages: Vec<Value>,
    known: Vec<Known>,
}

struct Known {
    role: Role,
    text: String,
    hash: ContentHash,
    tokens: usize,
    beside: usize,
    /// Id, name and arguments.
    calls: Vec<[String; 3]>,
    result_of: Option<String>,
}

impl Run {
    fn read(name: &str, value: Value, counter: &Counter) -> Result<Self, Failure> {
        let Value::Array(messages) = value else {
            return Err(format!("{name} is not a list of messages").into());
        };
        let known = messages.iter().map(|message| Known::of(message, counter)).collect::<Option<Vec<_>>>();
        let known = known.ok_or_else(|| format!("{name} holds a message of an unknown shape"))?;
        Ok(Self { name: name.to_owned(), messages, known })
    }

    /// How many messages each request holds.
    fn requests(&self) -> Vec<usize> {
        let count = self.messages.len();
        let mut requests: Vec<usize> = (STEP..=count).step_by(STEP).collect();
        if requests.last() != Some(&count) {
            requests.push(count);
        }
        requests
    }

    fn results(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.known.len()).filter(|&at| self.known[at].role == Role::Tool)
    }
}

impl Known {
    fn of(message: &Value, counter: &Counter) -> Option<Self> {
        let role = match message["role"].as_str()? {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => return None,
        };
        let text = match &message["content"] {
            Value::Null => String::new(),
            content => content.as_str()?.to_owned(),
        };
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let call = |call: &Value| {
            let part = |part: &Value| part.as_str().map(str::to_owned);
            Some([
                part(&call["id"])?,
                part(&call["function"]["name"])?,
                part(&call["function"]["arguments"])?,
            ])
        };
        let tokens = counter.count(&text);
        Some(Self {
            role,
            hash: ContentHash::new(text.as_bytes()),
            tokens,
            beside: counter.count(&line(message)).saturating_sub(tokens),
            calls: calls.iter().map(call).collect::<Option<_>>()?,
            result_of: message["tool_call_id"].as_str().map(str::to_owned),
            text,
        })
    }
}

/// A message as one line of compact JSON.
fn line(message: &Value) -> String {
    format!("{message}\n")
}

/// What one request sends.
struct Sent {
    /// None where nothing may be sent.
    messages: Option<Vec<Value>>,
    /// Tokens of what is sent before the messages.
    before: usize,
    /// Texts that pointers in it lead to.
    behind: Vec<String>,
    /// How often the prefix has moved by declaration, and at which message last.
    epoch: (usize, usize),
    replaced: usize,
    faults: Vec<String>,
    /// More tokens than the window may have.
    over: bool,
}

impl Sent {
    fn plain(messages: Vec<Value>, behind: Vec<String>) -> Self {
        let replaced = behind.len();
        let (before, epoch, faults, over) = (0, (0, 0), Vec::new(), false);
        Self { messages: Some(messages), before, behind, epoch, replaced, faults, over }
    }
}

/// What a policy needs in addition to the run; memo and counter are shared by all requests, as in a server.
struct Bench<'a> {
    counter: &'a Counter,
    key: PointerKey,
    memo: Memo,
    /// Tokens of our tool's definition.
    tool: usize,
}

impl Bench<'_> {
    fn send(&self, run: &Run, until: usize, way: &Way) -> Sent {
        let messages = &run.messages[..until];
        let results = || run.results().take_while(|&at| at < until);
        let with = |changed: &[(usize, String)]| {
            let mut messages = messages.to_vec();
            changed.iter().for_each(|(at, text)| messages[*at]["content"] = json!(text));
            messages
        };
        match way {
            Way::AsItIs => Sent::plain(messages.to_vec(), Vec::new()),
            Way::Masked => {
                let old: Vec<usize> = results().collect();
                let old = &old[..old.len().saturating_sub(UNMASKED)];
                let changed: Vec<_> = old.iter().map(|&at| (at, MASK.to_owned())).collect();
                Sent::plain(with(&changed), Vec::new())
            }
            Way::Offloaded => {
                let large: Vec<usize> =
                    results().filter(|&at| run.known[at].tokens > OFFLOADED_ABOVE).collect();
                let head = |at: usize| {
                    let head: String = run.known[at].text.chars().take(OFFLOADED_TO).collect();
                    (at, head + OFFLOAD_MARK)
                };
                let changed: Vec<_> = large.iter().map(|&at| head(at)).collect();
                Sent::plain(with(&changed), large.iter().map(|&at| run.known[at].text.clone()).collect())
            }
            Way::Larder(policy) => self.larder(run, until, policy),
        }
    }

    fn larder(&self, run: &Run, until: usize, policy: &ContextBudgetPolicy) -> Sent {
        let calls: Vec<Vec<ItemCall<'_>>> = run.known[..until].iter().map(calls).collect();
        let items: Vec<ConversationItem<'_>> =
            run.known[..until].iter().zip(&calls).map(|(known, calls)| item(known, calls)).collect();
        // The runs do not say what tools they had; that they had some is enough here.
        let fixed = FixedTokens { rehydrate_tool: self.tool, tools: 1, ..FixedTokens::default() };
        let conversation = Conversation {
            fixed,
            items: &items,
            max_output: None,
            reader: PointerReader::Larder,
            needs_tool: false,
            refers_above: true,
            writes: CacheWrites::Usual,
        };
        let means = DecisionContext { counter: self.counter, key: &self.key, memo: &self.memo };
        let window = policy.decide(&conversation, means);
        let messages = (window.verdict != Verdict::Refuse).then(|| edited(&run.messages[..until], &window));
        let faults = self.faults(&items, &window, messages.as_deref());
        let stored: HashMap<String, &str> = window
            .originals(&items)
            .map(|kept| (self.key.mint(ContentHash::new(kept.text.as_bytes())).to_string(), kept.text))
            .collect();
        let text: String = messages.iter().flatten().map(content).collect();
        let found = self.key.find_in(&text).into_iter();
        let behind =
            found.filter_map(|(_, pointer)| stored.get(pointer.id.as_str()).map(|text| (*text).to_owned()));
        let over = messages.is_some() && window.tokens_after > policy.prompt_budget(None);
        let replaced = window.pointers();
        let epoch = (window.epoch.number, window.epoch.at_message);
        let before = if window.offer_tool { self.tool } else { 0 };
        Sent { behind: behind.collect(), messages, before, epoch, replaced, faults, over }
    }

    /// What of the guarantees the window breaks.
    fn faults(
        &self,
        items: &[ConversationItem<'_>],
        window: &DecidedWindow,
        messages: Option<&[Value]>,
    ) -> Vec<String> {
        let mut faults = Vec::new();
        let stored: Vec<&str> = window.originals(items).map(|kept| kept.text).collect();
        for (at, (item, decided)) in items.iter().zip(&window.items).enumerate() {
            let MessageForm::Replaced(made) = &decided.form else { continue };
            let exact = made.pointer.as_ref().is_none_or(|pointer| {
                *pointer == Pointer::whole(self.key.mint(ContentHash::new(item.text.as_bytes())))
                    && stored.contains(&item.text)
                    && made.gaps.iter().all(|gap| {
                        measure::resolve(item.text, &gap.pointer) == item.text.get(gap.bytes.clone())
                    })
                    && made.text.contains(pointer.id.as_str())
            });
            if !exact {
                faults.push(format!("message {at} does not come back byte for byte"));
            }
            if self.counter.count(&made.text) != made.tokens || item.role != Role::Tool {
                faults.push(format!("message {at} is not what its receipt says"));
            }
        }
        let recounted: usize =
            messages.iter().copied().flatten().map(content).map(|text| self.counter.count(&text)).sum();
        let beside: usize = items
            .iter()
            .zip(&window.items)
            // The marker of dropped messages has no calls.
            .filter(|(_, decided)| decided.tokens > 0 && !matches!(decided.form, MessageForm::DroppedFor(_)))
            .map(|(item, _)| item.opaque_tokens)
            .sum();
        let tool = if window.offer_tool { self.tool } else { 0 };
        if messages.is_some() && recounted + beside + tool > window.tokens_after + items.len() {
            faults.push(format!("says {} tokens and has {}", window.tokens_after, recounted + beside + tool));
        }
        faults
    }
}

fn calls(known: &Known) -> Vec<ItemCall<'_>> {
    known
        .calls
        .iter()
        .map(|[id, name, arguments]| ItemCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        })
        .collect()
}

fn item<'a>(known: &'a Known, calls: &'a [ItemCall<'a>]) -> ConversationItem<'a> {
    ConversationItem {
        role: known.role,
        text: &known.text,
        texts: &[],
        hash: known.hash,
        tokens: known.tokens,
        sampled: false,
        opaque_tokens: known.beside,
        calls,
        opaque: &[],
        result_of: known.result_of.as_deref(),
        is_error: false,
        summarizable: true,
        spared: false,
        rehydrated: false,
    }
}

/// The messages with every decision carried out.
fn edited(messages: &[Value], window: &DecidedWindow) -> Vec<Value> {
    let edit = |(message, stands): (&Value, &MessageForm)| match stands {
        MessageForm::Whole => Some(message.clone()),
        MessageForm::Replaced(made) => {
            let mut message = message.clone();
            message["content"] = json!(made.text);
            Some(message)
        }
        MessageForm::Dropped => None,
        MessageForm::DroppedFor(made) => Some(json!({ "role": "assistant", "content": made.text })),
    };
    messages.iter().zip(window.items.iter().map(|decided| &decided.form)).filter_map(edit).collect()
}

fn content(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}

/// All text of a request.
fn said(messages: &[Value]) -> String {
    let arguments = |message: &Value| -> String {
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect::<Vec<_>>().join("\n")
    };
    messages.iter().map(|message| format!("{}\n{}\n", content(message), arguments(message))).collect()
}
