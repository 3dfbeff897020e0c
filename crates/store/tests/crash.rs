//! Kills writers with SIGKILL at pseudo-random moments. After each there must be whole records only, and every
//! record that was reported as written.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a failed step fails the test")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::run;
use larder_core::pointer::Pointer;
use larder_store::{NewIntervention, NewPointer, RunFilter, RunId, Store, StoreOptions};

/// Rounds in an ordinary run of the tests; `LARDER_CRASH_ROUNDS` asks for more.
const ROUNDS: u64 = 24;
/// After so many rounds the next ones start from an empty folder, so that setting up is interrupted too.
const ROUNDS_PER_HOME: u64 = 6;

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
    let store = Store::open(Path::new(&home), StoreOptions::default()).unwrap();
    say("opened");
    loop {
        let user = store.user(["ada", "Eve"][random.below(2) as usize]).unwrap();
        let contents: Vec<_> = (0..1 + random.below(4))
            .map(|_| random.below(1_000).to_string().repeat(1 + random.below(20_000) as usize))
            .collect();
        let items: Vec<_> = contents
            .iter()
            .map(|content| NewPointer { content: content.as_bytes(), kind: "text", display_text: "digits" })
            .collect();
        let pointers: Vec<Pointer> =
            user.put_all(&items).unwrap().into_iter().map(|stored| stored.pointer_id).collect();
        say("put");
        let receipt = format!("{{\"parts\":{}}}", random.below(1_000_000));
        let recorded = user.record_run(run(&store, "r", receipt.as_bytes(), &pointers)).unwrap();
        say(&format!("run {} {}", user.user(), recorded.run_id));
        match random.below(8) {
            0 => drop(user.raise(&NewIntervention::missing_recipe("r")).unwrap()),
            1 => {
                say("deleting");
                store.delete_user("victim").unwrap();
            }
            _ => drop(
                store
                    .user("victim")
                    .unwrap()
                    .put(receipt.as_bytes(), "text", "")
                    .or_else(being_deleted)
                    .unwrap(),
            ),
        }
        say("step");
    }
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

/// Reads what the writer reports, kills it a little after line `lines`, and gives the runs it reported.
fn kill_after(mut child: Child, lines: u64, pause: Duration) -> Vec<(String, RunId)> {
    let mut reports = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut seen: Vec<_> = reports.by_ref().take(lines as usize).collect();
    let reached = Instant::now();
    while reached.elapsed() < pause {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    seen.extend(reports);
    seen.iter()
        .filter_map(|line| {
            let (user, id) = line.strip_prefix("run ")?.split_once(' ')?;
            Some((user.to_owned(), id.parse().ok()?))
        })
        .collect()
}

fn check(home: &Path, reported: &[(String, RunId)]) {
    let store = Store::open(home, StoreOptions::default()).unwrap();
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    for (user, id) in reported {
        let user = store.user(user).unwrap();
        let record = user.run(id).unwrap();
        user.blob(record.receipt).unwrap();
        for pointer in user.run_pointers(id).unwrap() {
            user.resolve(&pointer).unwrap();
        }
    }
    let runs =
        ["ada", "Eve"].map(|user| store.user(user).unwrap().runs(&RunFilter::default()).unwrap().len());
    assert_eq!(runs.iter().sum::<usize>() as u64, report.runs);
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
