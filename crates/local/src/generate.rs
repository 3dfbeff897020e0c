//! Generates one reply: reads the prompt, then writes token after token, freely or under a grammar. Blocking; knows
//! nothing of threads, time or listeners.

use std::sync::Arc;

use larder_text::hash::ContentHash;
use serde_json::Value;

use super::grammar::{Constraint, Grammars, Next};
use super::llama::Llama;
use super::sample::{Sampler, repeats_itself};
use super::text::TextStream;
use super::tokenizer::Tokenizer;
use super::{WINDOW, broken, refused, template, tools};
use larder_models::chat::{ChatEvent, ChatReply, ChatRequest, ModelError, StopReason, Usage};

/// Prompt tokens processed per pass. Passes start at multiples of it, so that a prompt with a cached prefix is
/// computed in the same pieces as a new one, and yields a bit-identical reply.
const PASS: usize = 128;

/// The model with its memory of the last prompt.
pub(super) struct Generator {
    model: Llama,
    tokenizer: Arc<Tokenizer>,
    grammars: Option<Grammars>,
    /// The prompt tokens whose keys and values are cached, in whole passes.
    known: Vec<u32>,
}

/// Receives the events of a reply.
pub(super) trait Listener {
    /// Takes an event.
    fn tell(&self, event: ChatEvent);

    /// Whether no one is waiting for the reply any more.
    fn is_gone(&self) -> bool;
}

/// The output of a reply before it is reported.
struct FinishedReply {
    tokens: usize,
    text: String,
    stop: StopReason,
}

/// How one request is to be answered.
struct GenerationPlan<'a> {
    prompt: Vec<u32>,
    /// Tokens that the reply may have.
    budget: usize,
    rule: Option<Rule<'a>>,
    is_call: bool,
    seed: u64,
}

/// What the reply must satisfy.
enum Rule<'a> {
    Schema(std::borrow::Cow<'a, Value>),
    Grammar(&'a str),
}

impl Rule<'_> {
    fn text(&self) -> String {
        match self {
            Self::Schema(schema) => schema.to_string(),
            Self::Grammar(grammar) => (*grammar).to_owned(),
        }
    }
}

impl Generator {
    pub(super) fn new(model: Llama, tokenizer: Arc<Tokenizer>) -> Self {
        Self { model, tokenizer, grammars: None, known: Vec::new() }
    }

    /// Answers a request. Returns `None` if the listener left before the end.
    pub(super) fn answer(
        &mut self,
        request: &ChatRequest,
        listener: &dyn Listener,
    ) -> Result<Option<ChatReply>, ModelError> {
        let plan = self.plan(request)?;
        let constraint = match &plan.rule {
            Some(rule) => Some(self.constrain(rule, plan.budget)?),
            None => None,
        };
        let cached = self.known_prefix(&plan.prompt);
        let Some(logits) = self.read(&plan.prompt, cached, listener) else {
            return Ok(None);
        };
        let writing = ReplyWriter {
            generator: self,
            sampler: Sampler::new(request.temperature, plan.seed),
            position: plan.prompt.len(),
            budget: plan.budget,
            logits,
            listener,
            // The text of a call is not the reply's text.
            stream: TextStream::new(!plan.is_call),
        };
        let written = match constraint {
            Some(constraint) => writing.bound(constraint),
            None => writing.free(),
        };
        let Some(written) = written else { return Ok(None) };
        let usage = Usage {
            input: plan.prompt.len() as u64,
            cached_input: cached as u64,
            output: written.tokens as u64,
            ..Usage::default()
        };
        finish(written, usage, plan.is_call.then_some(plan.seed)).map(Some)
    }

    fn plan<'a>(&self, request: &'a ChatRequest) -> Result<GenerationPlan<'a>, ModelError> {
        let prompt = template::render(&request.messages, &request.tools, &self.tokenizer).map_err(refused)?;
        let left = WINDOW.saturating_sub(prompt.len());
        if left == 0 {
            return Err(ModelError::WindowExceeded {
                provider: super::PROVIDER.to_owned(),
                detail: format!("the prompt has {} tokens, the window {WINDOW}", prompt.len()),
            });
        }
        let is_call = tools::must_call(&request.messages, &request.tools);
        let rule = match (&request.schema, &request.grammar) {
            _ if is_call => Some(Rule::Schema(std::borrow::Cow::Owned(tools::schema(&request.tools)))),
            (Some(schema), _) => Some(Rule::Schema(std::borrow::Cow::Borrowed(schema))),
            (None, grammar) => grammar.as_deref().map(Rule::Grammar),
        };
        let seed = seed(&prompt, rule.as_ref(), request.temperature);
        let budget = usize::try_from(request.max_output).unwrap_or(usize::MAX).min(left);
        Ok(GenerationPlan { prompt, budget, rule, is_call, seed })
    }

    fn constrain(&mut self, rule: &Rule<'_>, budget: usize) -> Result<Constraint, ModelError> {
        let grammars = match self.grammars.take() {
            Some(grammars) => grammars,
            None => Grammars::new(&self.tokenizer).map_err(broken)?,
        };
        let grammars = self.grammars.insert(grammars);
        let constraint = match rule {
            Rule::Schema(schema) => grammars.constrain(schema, budget),
            Rule::Grammar(grammar) => grammars.constrain_text(grammar, budget),
        };
        constraint.map_err(refused)
    }

    /// How much of `prompt` is cached. At least its last token must be processed to get the next logits.
    fn known_prefix(&self, prompt: &[u32]) -> usize {
        let shared = self.known.iter().zip(prompt).take_while(|(known, new)| known == new).count();
        shared.min(prompt.len().saturating_sub(1)) / PASS * PASS
    }

    /// The logits after a prompt whose first `known` tokens are cached; `None` if the listener left.
    fn read(&mut self, prompt: &[u32], known: usize, listener: &dyn Listener) -> Option<Vec<f32>> {
        self.known.truncate(known);
        let mut logits = Vec::new();
        for pass in prompt.get(known..).unwrap_or_default().chunks(PASS) {
            let position = self.known.len();
            logits = self.model.forward(pass, position, &|| !listener.is_gone())?;
            if pass.len() == PASS {
                self.known.extend_from_slice(pass);
            }
        }
        Some(logits)
    }
}

/// The same request draws the same random numbers.
fn seed(prompt: &[u32], rule: Option<&Rule<'_>>, temperature: Option<f32>) -> u64 {
    let mut bytes: Vec<u8> = prompt.iter().flat_map(|token| token.to_le_bytes()).collect();
    bytes.extend(rule.map(Rule::text).unwrap_or_default().bytes());
    bytes.extend(temperature.unwrap_or(0.0).to_le_bytes());
    let digest = ContentHash::new(&bytes);
    digest.as_bytes().first_chunk().map_or(0, |start| u64::from_le_bytes(*start))
}

fn finish(written: FinishedReply, usage: Usage, call: Option<u64>) -> Result<ChatReply, ModelError> {
    let FinishedReply { text, stop, .. } = written;
    match call {
        None => Ok(ChatReply { text, tool_calls: Vec::new(), stop, usage }),
        Some(seed) => {
            let call =
                tools::call(&text, seed).ok_or_else(|| broken(format!("`{text}` is not a tool call")))?;
            Ok(ChatReply { text: String::new(), tool_calls: vec![call], stop: StopReason::ToolCalls, usage })
        }
    }
}

/// A reply being written.
struct ReplyWriter<'a> {
    generator: &'a mut Generator,
    sampler: Sampler,
    position: usize,
    budget: usize,
    logits: Vec<f32>,
    listener: &'a dyn Listener,
    stream: TextStream,
}

impl ReplyWriter<'_> {
    /// Writes until the model ends its turn or the budget is used up.
    fn free(mut self) -> Option<FinishedReply> {
        let mut tokens = Vec::new();
        loop {
            if tokens.len() == self.budget {
                return Some(self.done(tokens.len(), StopReason::Length));
            }
            if repeats_itself(&tokens) {
                // Nothing closes free text: it ends as it would at the limit.
                return Some(self.done(tokens.len(), StopReason::Length));
            }
            for &marker in self.generator.tokenizer.silent() {
                if let Some(logit) = self.logits.get_mut(marker as usize) {
                    *logit = f32::NEG_INFINITY;
                }
            }
            let token = self.sampler.pick(&mut self.logits, &tokens);
            if self.generator.tokenizer.ends_turn(token) {
                return Some(self.done(tokens.len(), StopReason::Stop));
            }
            tokens.push(token);
            self.tell(&[token]);
            if tokens.len() < self.budget && !self.advance(&[token]) {
                return None;
            }
        }
    }

    /// Writes what the grammar allows until the text is complete.
    fn bound(mut self, mut constraint: Constraint) -> Option<FinishedReply> {
        let mut told = 0;
        let mut open = true;
        while open {
            let tokens = match constraint.next() {
                Next::End => break,
                Next::Forced(tokens) => tokens,
                Next::Choice { free: true, .. } if constraint.goes_in_circles() => {
                    constraint.close();
                    break;
                }
                Next::Choice { allowed, free } => {
                    let logits = &mut self.logits;
                    allowed.iter_unset_entries(|token| {
                        if let Some(logit) = logits.get_mut(token) {
                            *logit = f32::NEG_INFINITY;
                        }
                    });
                    let repeats = if free { constraint.written() } else { &[] };
                    let token = self.sampler.pick(&mut self.logits, repeats);
                    if self.generator.tokenizer.ends_turn(token) {
                        constraint.end();
                        break;
                    }
                    vec![token]
                }
            };
            open = constraint.push(&tokens);
            self.tell(constraint.settled().get(told..).unwrap_or_default());
            told = constraint.settled().len();
            if open && !self.advance(&tokens) {
                return None;
            }
        }
        self.tell(constraint.settled().get(told..).unwrap_or_default());
        let tokens = constraint.settled().len();
        let stop = if constraint.is_closed() { StopReason::Closed } else { StopReason::Stop };
        Some(self.done(tokens, stop))
    }

    /// Processes the tokens just written; `false` if the listener left.
    fn advance(&mut self, tokens: &[u32]) -> bool {
        if self.position + tokens.len() > WINDOW {
            // Only a reply that will be closed from an earlier point gets here; its continuation is irrelevant.
            return true;
        }
        let listener = self.listener;
        match self.generator.model.forward(tokens, self.position, &|| !listener.is_gone()) {
            Some(logits) => self.logits = logits,
            None => return false,
        }
        self.position += tokens.len();
        true
    }

    fn tell(&mut self, tokens: &[u32]) {
        for &token in tokens {
            if let Some(text) = self.stream.push(self.generator.tokenizer.bytes(token)) {
                self.listener.tell(ChatEvent::Text(text));
            }
        }
    }

    fn done(self, tokens: usize, stop: StopReason) -> FinishedReply {
        FinishedReply { tokens, text: self.stream.finish(), stop }
    }
}
