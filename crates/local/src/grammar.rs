//! Replies that satisfy a JSON Schema or a grammar: which tokens may follow, and how to end in time. Knows llguidance; the model's
//! likelihoods belong to the caller.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

use super::bounds;
use super::closing::{self, Place};
use super::sample::repeats_itself;
use super::tokenizer::Tokenizer;

/// Tokens between checks that the reply can still end in time.
const CHECK_EVERY: usize = 8;
/// With at least this many allowed tokens the model writes free text, where repetition is the danger; with fewer it
/// chooses by likelihood alone.
const FREE_TEXT: usize = 512;

/// Shared by all grammars of a vocabulary; takes about 200 ms to build, so it is built on first use.
pub(super) struct Grammars {
    factory: ParserFactory,
    tokenizer: Arc<Tokenizer>,
}

impl Grammars {
    pub(super) fn new(tokenizer: &Arc<Tokenizer>) -> Result<Self, String> {
        let environment: TokEnv = Arc::new(Environment::new(tokenizer));
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let factory = ParserFactory::new(&environment, InferenceCapabilities::default(), &slices);
        let mut factory = factory.map_err(|error| error.to_string())?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self { factory, tokenizer: Arc::clone(tokenizer) })
    }

    /// The rule of a reply of at most `budget` tokens.
    pub(super) fn constrain(&self, schema: &Value, budget: usize) -> Result<Constraint, String> {
        // Bounds that contradict a deeply nested schema would allow no text; then only the budget applies.
        let matcher =
            self.compile(bounds::bounded(schema, budget)).or_else(|_| self.compile(schema.clone()))?;
        self.constraint(matcher, Place::default(), budget)
    }

    /// The rule of a reply of at most `budget` tokens that a Lark grammar describes.
    pub(super) fn constrain_text(&self, grammar: &str, budget: usize) -> Result<Constraint, String> {
        let parser = self.factory.create_parser(TopLevelGrammar::from_lark(grammar.to_owned()));
        let matcher = Matcher::new(parser);
        if let Some(error) = matcher.get_error() {
            return Err(format!("the grammar cannot be enforced: {error}"));
        }
        self.constraint(matcher, Place::tagged(), budget)
    }

    fn constraint(&self, matcher: Matcher, place: Place, budget: usize) -> Result<Constraint, String> {
        let closing = closing::closing(&matcher, place, &self.tokenizer, budget).ok_or_else(|| {
            format!("no answer of at most {budget} tokens satisfies the schema: raise the output budget")
        })?;
        let tokenizer = Arc::clone(&self.tokenizer);
        Ok(Constraint {
            matcher,
            tokenizer,
            budget,
            written: Vec::new(),
            place,
            safe: 0,
            closing,
            is_closed: false,
        })
    }

    fn compile(&self, mut schema: Value) -> Result<Matcher, String> {
        match &mut schema {
            Value::Object(schema) => {
                // A single, common white space layout: a model that may choose could write white space forever.
                let layout =
                    json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
                schema.insert("x-guidance".to_owned(), layout);
            }
            Value::Bool(_) => {}
            _ => return Err("a schema is an object or a boolean".to_owned()),
        }
        let parser = self.factory.create_parser(TopLevelGrammar::from_json_schema(schema));
        let matcher = Matcher::new(parser);
        match matcher.get_error() {
            Some(error) => Err(format!("the schema cannot be enforced: {error}")),
            None => Ok(matcher),
        }
    }
}

/// The next step.
pub(super) enum Next {
    /// Exactly these tokens.
    Forced(Vec<u32>),
    /// One of the tokens whose bit is set; `free` if they are free text.
    Choice { allowed: toktrie::SimpleVob, free: bool },
    /// Nothing: the reply is whole.
    End,
}

/// A reply under construction. It never exceeds its budget and always ends as complete, valid JSON: at each check a
/// way to end is known and fits; when it would no longer fit, the reply returns to the last check and ends that way.
pub(super) struct Constraint {
    matcher: Matcher,
    tokenizer: Arc<Tokenizer>,
    budget: usize,
    written: Vec<u32>,
    place: Place,
    /// Tokens that will not be removed.
    safe: usize,
    /// The shortest completion found from there.
    closing: Vec<u32>,
    /// Whether the text was closed before the model ended it: for lack of room, because it went in circles, or because the
    /// grammar gave up.
    is_closed: bool,
}

impl Constraint {
    /// The next step.
    pub(super) fn next(&mut self) -> Next {
        if self.matcher.is_stopped() && !self.matcher.is_error() {
            return Next::End;
        }
        let forced = self.matcher.compute_ff_tokens();
        if !forced.is_empty() {
            return Next::Forced(forced);
        }
        match self.matcher.compute_mask() {
            Ok(allowed) => {
                let free = allowed.num_set() >= FREE_TEXT;
                Next::Choice { allowed, free }
            }
            Err(error) => {
                tracing::debug!(%error, "a grammar gave up; the reply is closed early");
                self.close();
                Next::End
            }
        }
    }

    /// Adds tokens that [`Self::next`] allowed; `false` if the reply had to be closed instead, and is complete.
    pub(super) fn push(&mut self, tokens: &[u32]) -> bool {
        if self.matcher.consume_tokens(tokens).is_err() {
            self.close();
            return false;
        }
        for &token in tokens {
            self.place.read(self.tokenizer.bytes(token));
        }
        self.written.extend_from_slice(tokens);
        let whole = self.matcher.is_stopped();
        if whole
            || self.written.len() >= self.safe + CHECK_EVERY
            || self.written.len() + CHECK_EVERY > self.budget
        {
            return self.check(whole);
        }
        true
    }

    fn check(&mut self, whole: bool) -> bool {
        let closing = match self.budget.checked_sub(self.written.len()) {
            Some(_) if whole => Some(Vec::new()),
            Some(left) => closing::closing(&self.matcher, self.place, &self.tokenizer, left),
            None => None,
        };
        match closing {
            Some(closing) => {
                self.safe = self.written.len();
                self.closing = closing;
                true
            }
            None => {
                self.close();
                false
            }
        }
    }

    /// Ends the reply here, where the model may and did choose to.
    pub(super) fn end(&mut self) {
        if self.matcher.is_accepting().unwrap_or(false) && self.written.len() <= self.budget {
            self.safe = self.written.len();
            self.closing.clear();
        } else {
            self.close();
        }
    }

    /// Ends the reply at the last check, in the shortest way.
    pub(super) fn close(&mut self) {
        self.written.truncate(self.safe);
        self.written.append(&mut self.closing);
        self.safe = self.written.len();
        self.is_closed = true;
    }

    /// Whether it is a tagged text that repeats itself; JSON may.
    pub(super) fn goes_in_circles(&self) -> bool {
        self.place.is_tagged() && repeats_itself(&self.written)
    }

    /// Whether the text was closed where the model would have gone on.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The tokens so far that will stay.
    pub(super) fn settled(&self) -> &[u32] {
        self.written.get(..self.safe).unwrap_or_default()
    }

    /// All tokens so far.
    pub(super) fn written(&self) -> &[u32] {
        &self.written
    }
}

/// The vocabulary as llguidance wants it.
struct Environment {
    trie: TokTrie,
    tokenizer: Arc<Tokenizer>,
}

impl Environment {
    fn new(tokenizer: &Arc<Tokenizer>) -> Self {
        let size = u32::try_from(tokenizer.size()).unwrap_or(u32::MAX);
        let words: Vec<Vec<u8>> = (0..size)
            .map(|token| match tokenizer.bytes(token) {
                [] => format!("<marker{token}>").bytes().fold(
                    vec![TokTrie::SPECIAL_TOKEN_MARKER],
                    |mut word, byte| {
                        word.push(byte);
                        word
                    },
                ),
                bytes => bytes.to_vec(),
            })
            .collect();
        let trie = TokTrie::from(&TokRxInfo::new(size, tokenizer.turn_end), &words);
        Self { trie, tokenizer: Arc::clone(tokenizer) }
    }
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        let encode = |text: &str| match self.tokenizer.encode(text) {
            Ok(tokens) => tokens,
            Err(_) => self.trie.greedy_tokenize(text.as_bytes()),
        };
        self.trie.tokenize_with_greedy_fallback(bytes, encode)
    }
}
