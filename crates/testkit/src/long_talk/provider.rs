//! The provider of a long conversation: it gives the recorded replies, answers the calls behind them from what was said, and
//! counts what it has in its cache. Knows nothing of the participants or of what is checked.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use larder_text::tokens::Counter;
use serde_json::{Value, json};

use crate::stub::{Answer, Seen};

/// Cached tokens are counted in steps from the least that is cached, as OpenAI does.
const CACHED: (u64, u64) = (1_024, 128);
/// Tokens around each message, and at the end, as OpenAI documents them.
const FRAME: (u64, u64) = (4, 3);
/// Earlier requests that the provider still has in its cache.
const KEPT: usize = 8;
/// Turns after which the model says that a message refers to something.
const REFERS: usize = 10;
/// Facts that are left when a profile is merged.
const MERGED: usize = 20;

/// What the provider was asked for a reply.
pub(super) struct Asked {
    pub(super) at: Instant,
    /// What earlier calls of the turn took the provider.
    pub(super) took: Duration,
    pub(super) messages: Vec<Value>,
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
}

/// The provider.
#[derive(Default)]
pub(super) struct Provider {
    /// The message and its recorded reply.
    pub(super) now: Mutex<(String, String)>,
    pub(super) turn: Mutex<usize>,
    pub(super) asked: Mutex<Option<Asked>>,
    /// The newest prompts.
    cache: Mutex<Vec<String>>,
    /// What calls besides the reply took it since the last message was posted.
    pub(super) took: Mutex<Duration>,
}

impl Provider {
    pub(super) fn answer(&self, seen: &Seen) -> Answer {
        let at = Instant::now();
        let body = seen.json();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let is_streamed = body["stream"] == true;
        let (input, cached) = self.tokens(&messages, is_streamed);
        let (said, reply) = self.now.lock().unwrap().clone();
        let text = if is_streamed { reply } else { self.behind(&messages, &said) };
        let output = Counter::o200k().count(&text) as u64;
        let usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": cached}});
        if !is_streamed {
            let choice = json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
            *self.took.lock().unwrap() += at.elapsed();
            return Answer::json(
                200,
                &json!({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}),
            );
        }
        let took = *self.took.lock().unwrap();
        let most = ["max_completion_tokens", "max_tokens"].iter().find_map(|key| body[key].as_u64());
        *self.asked.lock().unwrap() =
            Some(Asked { at, took, messages, input, cached, output: most.unwrap_or_default() });
        let chunk = |delta: Value, finish: Value| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            format!(
                "data: {}\n\n",
                json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})
            )
        };
        let end = json!({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage});
        let (text, stop) = (chunk(json!({ "content": text }), Value::Null), chunk(json!({}), json!("stop")));
        Answer::events(format!("{text}{stop}data: {end}\n\ndata: [DONE]\n\n"))
    }

    /// What a call besides the reply gives.
    fn behind(&self, messages: &[Value], said: &str) -> String {
        let prompt: String = messages.iter().map(text_of).collect();
        let words: Vec<&str> = said.split_whitespace().collect();
        let some = |from: usize, many: usize| {
            words.iter().skip(from).take(many).copied().collect::<Vec<_>>().join(" ")
        };
        let answer = if prompt.contains("Update the facts.") {
            let is_told = !prompt.contains(&format!("Said: {}", some(0, 12)));
            let fact = json!({"category": "People", "fact": format!("Said: {}", some(0, 12)),
                "quote": some(0, 12), "confidence": 0.9});
            json!({"upsert": if is_told { vec![fact] } else { vec![] }, "delete": []})
        } else if prompt.contains("Write the summary.") {
            let entry = json!([{"text": some(0, 8), "messages": [1]}]);
            let narrative = format!("They spoke about much. {}", some(0, 60));
            let mut summary = json!({"narrative": narrative, "currentFocus": some(0, 10)});
            for list in [
                "keyThemes",
                "emotionalJourney",
                "unresolvedTopics",
                "agreedFacts",
                "userNeeds",
                "partnerNeeds",
                "openQuestions",
                "agreements",
            ] {
                summary[list] = entry.clone();
            }
            summary
        } else if prompt.contains("Write up to three search texts") {
            json!({"searches": [{"text": some(words.len() / 2, 5), "scope": "sessions"}]})
        } else if prompt.contains("Decide whether the last message refers") {
            let refers = self.turn.lock().unwrap().is_multiple_of(REFERS);
            let found = json!({"words": some(0, 4), "search": some(0, 4)});
            json!({"refers": refers, "references": if refers { vec![found] } else { vec![] }})
        } else if prompt.contains("Merge the facts.") {
            let kept: Vec<Value> = prompt.lines().filter_map(kept_fact).take(MERGED).collect();
            json!({ "facts": kept })
        } else if prompt.contains("The last message asks to remember or to forget something.") {
            json!({"action": "none", "text": "", "quote": ""})
        } else {
            json!({"people": []})
        };
        answer.to_string()
    }

    /// Tokens of a prompt, and those of the longest beginning that it shares with an earlier one.
    fn tokens(&self, messages: &[Value], is_reply: bool) -> (u64, u64) {
        let prompt: String =
            messages.iter().map(|one| format!("{}: {}\n", one["role"], text_of(one))).collect();
        let counter = Counter::o200k();
        let count = |text: &str| counter.count(text) as u64;
        let mut cache = self.cache.lock().unwrap();
        let shared = |earlier: &String| {
            let same = earlier.bytes().zip(prompt.bytes()).take_while(|(a, b)| a == b).count();
            prompt.floor_char_boundary(same)
        };
        let shared = cache.iter().map(shared).max().unwrap_or(0);
        let (least, step) = CACHED;
        let cached = count(&prompt[..shared]);
        let cached = if cached < least { 0 } else { least + (cached - least) / step * step };
        let (each, last) = FRAME;
        let input: u64 = messages.iter().map(|one| count(&text_of(one)) + each).sum();
        if is_reply {
            cache.push(prompt);
            if cache.len() > KEPT {
                cache.remove(0);
            }
        }
        (input + last, if is_reply { cached } else { 0 })
    }
}

/// A line of the facts of a profile, as what they are merged into.
fn kept_fact(line: &str) -> Option<Value> {
    let (id, rest) = line.strip_prefix("fact-")?.split_once(" [")?;
    let (category, rest) = rest.split_once("] (")?;
    let (_, fact) = rest.split_once(") ")?;
    Some(json!({"category": category, "fact": fact, "from": [format!("fact-{id}")]}))
}

/// The text of a message of a request.
pub(super) fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
