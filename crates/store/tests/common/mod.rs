//! A home folder with fixed time and counted randomness.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_store::{
    Clock, Entropy, NewExchange, NewRun, RunFacts, RunStatus, RunTokens, Store, StoreOptions, Timestamp,
    TranscriptMessage, UserStore,
};
use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;

/// A clock that stands still until it is set.
pub struct FixedClock(AtomicU64);

impl FixedClock {
    pub fn set(&self, millis: u64) {
        self.0.store(millis, Ordering::Relaxed);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Bytes that never come twice and are the same in every run of the tests.
pub struct CountedEntropy(AtomicU64);

impl Entropy for CountedEntropy {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        let count = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        bytes.iter_mut().zip(count.into_iter().rev().cycle()).for_each(|(byte, next)| *byte = next);
        Ok(())
    }
}

pub struct Home {
    pub dir: tempfile::TempDir,
    pub clock: Arc<FixedClock>,
    pub options: StoreOptions,
    pub store: Store,
}

impl Home {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(FixedClock(AtomicU64::new(1_795_219_200_000)));
        let entropy = Arc::new(CountedEntropy(AtomicU64::new(1)));
        let options = StoreOptions { clock: clock.clone(), entropy, ..StoreOptions::default() };
        let store = Store::open(&dir.path().join("home"), options.clone()).unwrap();
        Self { dir, clock, options, store }
    }

    pub fn path(&self) -> &Path {
        self.store.home()
    }

    pub fn reopen(&self) -> Store {
        Store::open(self.path(), self.options.clone()).unwrap()
    }

    pub fn user(&self, user: &str) -> UserStore {
        self.store.user(user).unwrap()
    }
}

pub fn facts(recipe: &str) -> RunFacts {
    RunFacts {
        recipe: recipe.to_owned(),
        recipe_version: "1".to_owned(),
        model_layer: "MIND".to_owned(),
        model: "scripted".to_owned(),
        session_id: Some("abc123".to_owned()),
        turn_id: Some("turn_000042".to_owned()),
        request_id: None,
        tokens: RunTokens { prompt: 1_520, input: 1_850, output: 1_200 },
        latency_ms: 812,
        success: true,
        schema_valid: Some(true),
        confidence: Some(0.75),
        retries: 0,
        compression_applied: true,
        compression_savings: 5_500,
        cost_usd: None,
        models: Vec::new(),
        status: RunStatus::Completed,
        error: None,
    }
}

pub fn run<'a>(store: &Store, recipe: &str, receipt: &'a [u8], pointers: &'a [Pointer]) -> NewRun<'a> {
    NewRun {
        run_id: store.new_run_id().unwrap(),
        facts: facts(recipe),
        receipt,
        output: Some(b"the answer"),
        pointers,
    }
}

/// An exchange of the moment the fixed clock begins with.
pub fn exchange(id: &str) -> NewExchange<'_> {
    NewExchange {
        id,
        session: None,
        time: Timestamp::from_millis(1_795_219_200_000),
        model: "gpt",
        recipe: None,
        status: 200,
        tokens_in: 300,
        tokens_out: 50,
        tokens_before: 1_000,
        tokens_after: 300,
        cost_picos: Some(7),
        without_picos: Some(20),
        compactions: 2,
        used: &[],
        json: "{}",
    }
}

/// A message that goes upstream as it came.
pub fn message(raw: &[u8]) -> TranscriptMessage<'_> {
    TranscriptMessage { identity: ContentHash::new(raw), role: "user", raw, sent: None, pointers: &[] }
}
