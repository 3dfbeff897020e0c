//! Retention over months, with the clock moved: the store stays as small as what it keeps, and processes that are killed
//! while they store and collect lose nothing that is kept.
//!
//! `LARDER_RETENTION_REQUESTS` says how many requests four months have, `LARDER_CRASH_ROUNDS` how many processes are killed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a failed step fails the test")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{exchange, message};
use larder_store::{
    Clock, DocumentPlace, Documents, NewExchange, Retention, Store, StoreError, StoreOptions, Timestamp,
};
use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;

const START: u64 = 1_795_219_200_000;
const DAY: u64 = 86_400_000;
const DAYS: u64 = 120;
/// Requests of a run when nobody asks for more.
const REQUESTS: u64 = 1_200;
/// Processes killed when nobody asks for more.
const ROUNDS: u64 = 12;
/// What the settings keep by default.
const RETENTION: Retention = Retention {
    originals: Some(Duration::from_millis(30 * DAY)),
    transcripts: Some(Duration::from_millis(30 * DAY)),
    records: Some(Duration::from_millis(90 * DAY)),
    conversations: None,
    max_bytes: Some(20_000_000_000),
};

struct Moved(AtomicU64);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

fn open(home: &Path, clock: &Arc<Moved>) -> Documents {
    let options = StoreOptions { clock: clock.clone(), ..StoreOptions::default() };
    let store = Store::open(home, options).unwrap();
    Documents::open(&store, &DocumentPlace::Folder(home.join("documents"))).unwrap()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

/// Text that compresses about as logs do, different for every seed.
fn text(seed: u64, bytes: usize) -> String {
    let line =
        |at: u64| format!("request {at} took {}\n", ContentHash::new(format!("{seed}/{at}").as_bytes()));
    let mut text: String = (0..).map(line).take(bytes / 80 + 1).collect();
    text.truncate(bytes);
    text
}

/// Bytes of a request's new result: most are small, some large.
const SIZES: [usize; 8] = [400, 900, 2_000, 4_000, 8_000, 20_000, 50_000, 80_000];

/// One request: its new result is stored, its conversation grows or begins, it is recorded.
fn request(documents: &Documents, store: &Store, at: u64, talk: &mut Vec<String>) -> Pointer {
    let user = store.user("ada").unwrap();
    let original = text(at, SIZES[(at % 8) as usize]);
    let stored = user.pointers().insert(original.as_bytes(), "tool_result", "a log").unwrap();
    if at.is_multiple_of(10) {
        talk.clear();
    }
    talk.push(original);
    let history: Vec<_> = talk.iter().map(|text| message(text.as_bytes())).collect();
    let session = format!("s{}", at / 10);
    user.transcripts().append(&session, &history, Some(b"a reply")).unwrap();
    let (id, time) = (format!("r{at}"), store.now());
    let used = [stored.pointer_id.id.name()];
    let json = format!("{{\"notes\":\"{}\"}}", text(at, 1_500).replace('\n', " "));
    let new = NewExchange { session: Some(&session), time, used: &used, json: &json, ..exchange(&id) };
    store.record_exchanges(&[(&user, new)]).unwrap();
    if at.is_multiple_of(400) {
        let own = documents.user("ada").unwrap();
        let path = larder_vault::VaultPath::new(&format!("users/ada/memory/note-{at}.md")).unwrap();
        own.files().write(&path, format!("See {}.\n", stored.pointer_id).as_bytes(), None).unwrap();
    }
    stored.pointer_id
}

#[test]
fn four_months_of_traffic_take_no_more_room_than_what_is_kept() {
    let requests = setting("LARDER_RETENTION_REQUESTS", REQUESTS);
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(Moved(AtomicU64::new(START)));
    let documents = open(&dir.path().join("home"), &clock);
    documents.recover().unwrap();
    let store = open(&dir.path().join("home"), &clock);
    drop(store);
    let options = StoreOptions { clock: clock.clone(), ..StoreOptions::default() };
    let store = Store::open(&dir.path().join("home"), options).unwrap();
    let (mut talk, mut pointers, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for day in 0..DAYS {
        for at in day * requests / DAYS..(day + 1) * requests / DAYS {
            let from = day * requests / DAYS;
            clock.0.store(START + day * DAY + (at - from) * DAY * DAYS / requests.max(1), Ordering::Relaxed);
            pointers.push((day, at, request(&documents, &store, at, &mut talk)));
        }
        clock.0.store(START + (day + 1) * DAY, Ordering::Relaxed);
        let report = documents.collect(&RETENTION, &|_| true).unwrap();
        if (day + 1).is_multiple_of(30) {
            println!("day {}: {} bytes", day + 1, report.bytes);
            sizes.push(report.bytes);
        }
    }
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    // Records stay 90 days, so the last two months differ by a third of the records at most.
    assert!(sizes[3] * 10 <= sizes[2] * 11, "{sizes:?}");
    assert!(sizes[3] <= sizes[0] * 2, "{sizes:?}");
    let user = store.user("ada").unwrap();
    for (day, at, pointer) in pointers {
        let found = user.pointers().resolve(&pointer);
        match day {
            _ if at.is_multiple_of(400) => drop(found.unwrap()),
            day if day >= DAYS - 29 => drop(found.unwrap()),
            day if day < DAYS - 32 => assert!(matches!(found, Err(StoreError::Expired { .. })), "{day}"),
            _ => {}
        }
    }
}

/// Not a test of its own: what the killed processes run.
#[test]
#[ignore = "started and killed by the test below"]
fn collector() {
    let Ok(home) = std::env::var("LARDER_CRASH_HOME") else { return };
    let clock = Arc::new(Moved(AtomicU64::new(setting("LARDER_CRASH_TIME", START))));
    let documents = open(Path::new(&home), &clock);
    documents.recover().unwrap();
    let options = StoreOptions { clock: clock.clone(), ..StoreOptions::default() };
    let store = Store::open(Path::new(&home), options).unwrap();
    let mut talk = Vec::new();
    for at in setting("LARDER_CRASH_TIME", START) / DAY * 100.. {
        let pointer = request(&documents, &store, at, &mut talk);
        println!("kept {pointer} {}", clock.now().as_millis());
        std::io::stdout().flush().unwrap();
        clock.0.fetch_add(DAY, Ordering::Relaxed);
        documents.collect(&RETENTION, &|_| true).unwrap();
    }
}

#[test]
fn a_process_killed_while_it_collects_loses_nothing_that_is_kept() {
    let rounds = setting("LARDER_CRASH_ROUNDS", ROUNDS);
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let (mut time, mut kept) = (START, Vec::<(Pointer, u64)>::new());
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "collector", "--ignored", "--nocapture", "--test-threads=1"])
            .env("LARDER_CRASH_HOME", &home)
            .env("LARDER_CRASH_TIME", time.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut seen: Vec<String> =
            lines.by_ref().filter(|line| line.starts_with("kept ")).take(36 + round as usize % 7).collect();
        // At different moments of the collection that follows the line.
        let reached = std::time::Instant::now();
        while reached.elapsed() < Duration::from_micros(round * 997 % 9_000) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        seen.extend(lines.filter(|line| line.starts_with("kept ")));
        kept.extend(seen.iter().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        }));
        time = kept.last().map_or(time, |(_, at)| at + DAY);
        let documents = open(&home, &Arc::new(Moved(AtomicU64::new(time))));
        documents.recover().unwrap();
        let options =
            StoreOptions { clock: Arc::new(Moved(AtomicU64::new(time))), ..StoreOptions::default() };
        let store = Store::open(&home, options).unwrap();
        let report = store.verify().unwrap();
        assert!(report.is_clean(), "{:#?}", report.problems);
        for (pointer, at) in &kept {
            match store.user("ada").unwrap().pointers().resolve(pointer) {
                Ok(_) => {}
                Err(StoreError::Expired { .. }) => assert!(time.saturating_sub(*at) >= 29 * DAY, "{pointer}"),
                // The date of expiry goes with the records of that time.
                Err(StoreError::UnknownPointer { .. }) => {
                    assert!(time.saturating_sub(*at) >= 119 * DAY, "{pointer}");
                }
                Err(error) => panic!("{pointer}: {error}"),
            }
        }
    }
    println!("{rounds} processes killed, {} originals stored", kept.len());
}
