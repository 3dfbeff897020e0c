//! Kills writers with SIGKILL at pseudo-random moments. After each there must be whole records only, and every
//! record that was reported as written.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a failed step fails the test")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{exchange, message, run};
use larder_store::{
    Clock, ExchangeFilter, KeyId, KeyLimits, NewExchange, NewIntervention, NewKey, NewPointer,
    RESERVATION_LIFETIME, ReserveOutcome, RunFilter, RunId, Spend, Store, StoreError, StoreOptions,
    Timestamp, UserStore,
};
use larder_text::pointer::Pointer;

/// Rounds in an ordinary run of the tests; `LARDER_CRASH_ROUNDS` asks for more.
const ROUNDS: u64 = 24;
/// After so many rounds the next ones start from an empty folder, so that setting up is interrupted too.
const ROUNDS_PER_HOME: u64 = 6;

/// Exchanges that are recorded together.
const BATCH: usize = 5;
/// What each call takes from the budget of the one key.
const CALL: Spend = Spend { tokens: 10, picos: 7 };
/// Far more than the writers get to take.
const LIMITS: KeyLimits = KeyLimits { tokens_per_day: Some(10_000_000), picos_per_day: None };

/// When everything is written, so that no budget begins anew meanwhile: 2026-11-21T12:00:00Z.
const NOON: u64 = 1_795_262_400_000;

/// A clock that stands still.
struct Still(u64);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0)
    }
}

fn open(home: &Path, millis: u64) -> Store {
    let clock = std::sync::Arc::new(Still(millis));
    Store::open(home, StoreOptions { clock, ..StoreOptions::default() }).unwrap()
}

/// SplitMix64: the same moments in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// Not a test of its own: what the killed processes run.
#[test]
#[ignore = "started and killed by the test below"]
fn writer() {
    let Ok(home) = std::env::var("LARDER_CRASH_HOME") else { return };
    let mut random = Random(std::process::id().into());
    let say = |line: &str| {
        println!("{line}");
        std::io::stdout().flush().unwrap();
    };
    say("began");
    let store = open(Path::new(&home), NOON);
    say("opened");
    let mut talk = Vec::new();
    loop {
        let user = store.user(["ada", "Eve"][random.below(2) as usize]).unwrap();
        let contents: Vec<_> = (0..1 + random.below(4))
            .map(|_| random.below(1_000).to_string().repeat(1 + random.below(20_000) as usize))
            .collect();
        let items: Vec<_> = contents
            .iter()
            .map(|content| NewPointer {
                content: content.as_bytes().into(),
                kind: "text",
                display_text: "digits",
            })
            .collect();
        let pointers: Vec<Pointer> =
            user.pointers().insert_all(&items).unwrap().into_iter().map(|stored| stored.pointer_id).collect();
        say("put");
        let receipt = format!("{{\"parts\":{}}}", random.below(1_000_000));
        let recorded = user.runs().record(run(&store, "r", receipt.as_bytes(), &pointers)).unwrap();
        say(&format!("run {} {}", user.user(), recorded.run_id));
        gateway_call(&user, &mut talk, &say);
        match random.below(8) {
            0 => drop(user.interventions().raise(&NewIntervention::missing_recipe("r")).unwrap()),
            1 => {
                say("deleting");
                store.delete_user("victim").unwrap();
            }
            _ => drop(
                store
                    .user("victim")
                    .unwrap()
                    .pointers()
                    .insert(receipt.as_bytes(), "text", "")
                    .or_else(being_deleted)
                    .unwrap(),
            ),
        }
        say("step");
    }
}

fn key() -> KeyId {
    KeyId::new([7; 6])
}

/// What the gateway writes for one request, whose user says one thing more than in the one before.
fn gateway_call(user: &UserStore, talk: &mut Vec<String>, say: &impl Fn(&str)) {
    let store = user.store();
    let new = NewKey { id: key(), user: "keeper", label: "", hash: "", limits: LIMITS, operator: false };
    match store.keys().add(&new) {
        Ok(_) | Err(StoreError::KeyExists { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let ReserveOutcome::Held(held) = store.keys().reserve(&key(), CALL).unwrap() else {
        panic!("the budget is used up")
    };
    say("held");
    talk.push(format!("{} says {}", std::process::id(), talk.len()).repeat(1 + talk.len() % 3 * 2_000));
    let history: Vec<_> = talk.iter().map(|text| message(text.as_bytes())).collect();
    let session = std::process::id().to_string();
    user.transcripts().append(&session, &history, Some(b"a reply")).unwrap();
    say("told");
    let batch = store.new_run_id().unwrap();
    let ids: Vec<String> = (0..BATCH).map(|n| format!("{batch}-{n}")).collect();
    let batch = batch.to_string();
    let rows = ids.iter().map(|id| (user, NewExchange { session: Some(&batch), ..exchange(id) }));
    assert_eq!(store.record_exchanges(&rows.collect::<Vec<_>>()).unwrap(), BATCH);
    say(&format!("batch {} {batch}", user.user()));
    store.keys().settle(&held, CALL).unwrap();
}

/// While another process deletes the user, refusal is the right answer.
fn being_deleted(
    error: larder_store::StoreError,
) -> Result<larder_store::StoredPointer, larder_store::StoreError> {
    use larder_store::StoreError::{BeingDeleted, MissingBlob};
    match error {
        BeingDeleted { .. } | MissingBlob { .. } => std::process::exit(0),
        other => Err(other),
    }
}

fn start(home: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--ignored", "--nocapture", "--test-threads=1"])
        .env("LARDER_CRASH_HOME", home)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a writer reported as written: a run or a batch of exchanges, of a user.
#[derive(Debug)]
enum Written {
    Run(String, RunId),
    Batch(String, String),
}

fn written(line: &str) -> Option<Written> {
    let (what, rest) = line.split_once(' ')?;
    let (user, id) = rest.split_once(' ')?;
    match what {
        "run" => Some(Written::Run(user.to_owned(), id.parse().ok()?)),
        "batch" => Some(Written::Batch(user.to_owned(), id.to_owned())),
        _ => None,
    }
}

/// Reads what the writer reports, kills it a little after line `lines`, and gives what it reported as written.
fn kill_after(mut child: Child, lines: u64, pause: Duration) -> Vec<Written> {
    let mut reports = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut seen: Vec<_> = reports.by_ref().take(lines as usize).collect();
    let reached = Instant::now();
    while reached.elapsed() < pause {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    seen.extend(reports);
    seen.iter().filter_map(|line| written(line)).collect()
}

fn check(home: &Path, reported: &[Written]) {
    let store = open(home, NOON);
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    for written in reported {
        let (user, id) = match written {
            Written::Run(user, id) => (store.user(user).unwrap(), id),
            Written::Batch(user, session) => {
                let filter = ExchangeFilter { session: Some(session.clone()), ..ExchangeFilter::default() };
                assert_eq!(store.user(user).unwrap().exchanges().list(&filter).unwrap().len(), BATCH);
                continue;
            }
        };
        let record = user.runs().get(id).unwrap();
        user.contents().get(record.receipt).unwrap();
        for pointer in user.runs().pointers(id).unwrap() {
            user.pointers().resolve(&pointer).unwrap();
        }
    }
    let runs = ["ada", "Eve"]
        .map(|user| store.user(user).unwrap().runs().list(&RunFilter::default()).unwrap().len());
    assert_eq!(runs.iter().sum::<usize>() as u64, report.runs);
    check_gateway(home, &store);
}

fn check_gateway(home: &Path, store: &Store) {
    let mut batches = 0;
    for user in ["ada", "Eve"] {
        let sessions = store.user(user).unwrap().exchanges().sessions(u64::MAX).unwrap();
        assert!(sessions.iter().all(|batch| batch.requests == BATCH as u64), "a batch is whole or not there");
        batches += sessions.len() as u64;
    }
    let Some(stored) = store.keys().get(&key()).unwrap() else { return assert_eq!(batches, 0) };
    assert_eq!(stored.record.limits, LIMITS);
    let today = store.keys().day_spend(&key()).unwrap();
    let calls = |spend: Spend| {
        assert_eq!(spend.tokens / CALL.tokens * CALL.picos, spend.picos, "nothing is half counted");
        assert!(spend.tokens.is_multiple_of(CALL.tokens));
        spend.tokens / CALL.tokens
    };
    assert!(calls(today.used) <= batches && batches <= calls(today.used) + calls(today.held));
    let later = open(home, NOON + RESERVATION_LIFETIME.as_millis() as u64);
    assert_eq!(
        later.keys().day_spend(&key()).unwrap().held,
        Spend::default(),
        "what the dead held is given back"
    );
}

#[test]
fn a_killed_writer_leaves_whole_records_only() {
    let rounds = std::env::var("LARDER_CRASH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    let mut random = Random(42);
    let (mut dir, mut reported) = (tempfile::tempdir().unwrap(), Vec::new());
    let mut total = 0;
    for round in 0..rounds {
        if round % ROUNDS_PER_HOME == 0 {
            (dir, reported) = (tempfile::tempdir().unwrap(), Vec::new());
        }
        let home = dir.path().join("home");
        // Every third round two processes write at once; one of them outlives the other.
        let writers: Vec<_> = (0..1 + u64::from(round % 3 == 0)).map(|_| start(&home)).collect();
        for writer in writers {
            // The first lines are the test harness's own, then "began" and "opened".
            let lines = 2 + random.below(30);
            let pause = Duration::from_micros(random.below(3_000));
            reported.extend(kill_after(writer, lines, pause));
        }
        check(&home, &reported);
        total += reported.len();
    }
    assert!(total > 0, "the writers got as far as reporting runs");
}
