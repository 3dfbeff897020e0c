//! Turns that are killed at any moment: a turn is whole or absent, none that was committed is lost, and the one that was
//! interrupted goes on.
//!
//! `LARDER_CRASH_ROUNDS` says how many processes are killed, `LARDER_CRASH_SEED` when. From 200 on, some must have been in
//! each phase.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeSet;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use larder_testkit::stub::End;
use serde_json::Value;
use support::scholar::{ANSWER, Role};
use support::{Ran, Shop, ended_within, next, reply_text, setting};

/// Processes that are killed when nobody asks for more.
const ROUNDS: usize = 12;
/// So many processes are killed in every phase.
const MANY: usize = 200;
/// The longest that anything here may take; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(120);
/// The file that makes a folder a turn.
const METADATA: &str = "metadata.json";

/// What a process was killed in the middle of, and what it left.
struct Round<'a> {
    shop: &'a Shop,
    /// The files of a whole turn.
    whole: &'a BTreeSet<String>,
    /// Turns that are known to be committed.
    committed: &'a mut BTreeSet<u64>,
    context: String,
}

impl Round<'_> {
    /// Whether a turn has all files. An answer is written twice where a call failed, so that its goal is not reached.
    fn is_whole(&self, files: &BTreeSet<String>) -> bool {
        files.iter().filter(|name| *name != "response_1.md").eq(self.whole)
    }

    /// What stands on the disk right after the kill: folders without metadata are no turns yet.
    fn check_disk(&self) {
        let documents = self.shop.documents();
        let turns = documents.turns();
        let committed = turns.iter().filter(|(_, files)| files.contains(METADATA));
        for (turn, files) in committed.clone() {
            assert!(self.is_whole(files), "{}: {turn}: {files:?}", self.context);
        }
        let committed: BTreeSet<&String> = committed.map(|(turn, _)| turn).collect();
        let inside = |path: &str| {
            let turn = path.split_once("/turns/").and_then(|(_, inside)| inside.split_once('/'));
            turn.is_some_and(|(turn, _)| committed.contains(&turn.to_owned()))
        };
        assert_eq!(documents.broken_links(inside), Vec::<String>::new(), "{}", self.context);
    }

    /// What the next process finds: every turn is whole, and none that was committed is gone. Gives the draft, and the
    /// phase after the last one that it has finished.
    fn check_list(&mut self) -> Option<(u64, u64)> {
        let listed = self.shop.json(&["turn", "list", "--limit", "100000"]);
        let numbers: BTreeSet<u64> = of(&listed["turns"]).into_iter().collect();
        assert!(self.committed.is_subset(&numbers), "{}: {:?} in {numbers:?}", self.context, self.committed);
        let drafts = listed["unfinished"].as_array().unwrap();
        let drafts: Vec<(u64, u64)> = drafts
            .iter()
            .map(|row| (row["number"].as_u64().unwrap(), row["phase"].as_u64().map_or(0, |phase| phase + 1)))
            .collect();
        let is_new = |(number, _): &(u64, u64)| !numbers.contains(number);
        assert!(drafts.len() <= 1 && drafts.iter().all(is_new), "{}", self.context);
        let turns = self.shop.documents().turns();
        assert_eq!(turns.len(), numbers.len(), "{}: a folder is no turn: {turns:?}", self.context);
        assert!(turns.values().all(|files| self.is_whole(files)), "{}: {turns:?}", self.context);
        assert_eq!(self.shop.documents().broken_links(|_| true), Vec::<String>::new(), "{}", self.context);
        *self.committed = numbers;
        drafts.first().copied()
    }
}

fn of(rows: &Value) -> Vec<u64> {
    rows.as_array().unwrap().iter().map(|row| row["number"].as_u64().unwrap()).collect()
}

/// Kills a process after this time, unless it ends before; gives what it had printed.
fn killed_after(mut child: Child, delay: Duration) -> (bool, String) {
    let ended = ended_within(&mut child, delay);
    if !ended {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(!ended || output.status.success(), "{output:?}");
    (!ended, String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_turn_that_is_killed_is_whole_or_absent_and_goes_on() {
    let rounds = setting("LARDER_CRASH_ROUNDS", ROUNDS);
    let mut state = setting("LARDER_CRASH_SEED", 2026) as u64;
    let shop = Shop::with_scholar(|_, _| None);
    let turn = ["turn", "Where does the ledger lie?", "--format", "json"];

    // Turns that nobody kills say what a whole one is and how long one takes.
    shop.ok(&turn);
    let started = Instant::now();
    shop.ok(&turn);
    let mut time = started.elapsed();
    let whole = shop.documents().turns()["turn_000001"].clone();
    let mut committed = BTreeSet::from([1, 2]);
    let (mut killed, mut resumed, mut answered) = (0, 0, 0);
    let mut draft: Option<u64> = None;
    let mut phases = BTreeSet::new();
    // When a process dies is a matter of the machine, so that it may take more of them until one dies within a turn.
    let all: BTreeSet<u64> = (0..=7).collect();
    let lacks = |resumed: usize, phases: &BTreeSet<u64>| resumed == 0 || rounds >= MANY && *phases != all;
    while killed < rounds || lacks(resumed, &phases) && killed < rounds.max(MANY) * 2 {
        // Whatever was interrupted is gone on with by every other process, which may be killed too.
        let resumes = draft.is_some() && next(&mut state).is_multiple_of(2);
        let args = if resumes { &["turn", "resume", "--format", "json"][..] } else { &turn };
        if !resumes && let Some(number) = draft {
            let outcome = shop.json(&["turn", "resume"]);
            assert_eq!((&outcome["turn"], &outcome["answer"]), (&number.into(), &ANSWER.into()), "{outcome}");
            committed.insert(number);
            resumed += 1;
        }
        let delay = time.mul_f64(1.1 * (next(&mut state) % 1_000) as f64 / 1_000.0);
        let started = Instant::now();
        let (was_killed, said) = killed_after(shop.start(args), delay);
        if !was_killed && !resumes {
            // A machine that was busy when the first turn was timed would let most of the others end.
            time = started.elapsed();
        } else if was_killed && !resumes && delay > time {
            // One that is busier since would let none end.
            time = delay.mul_f64(1.2);
        }
        killed += usize::from(was_killed);
        // Who was told of an answer finds it.
        if let Ok(outcome) = serde_json::from_str::<Value>(&said) {
            committed.insert(outcome["turn"].as_u64().unwrap());
            answered += 1;
        }
        let context = format!("{killed} killed, the last after {delay:?} of {time:?}: {args:?}");
        let mut round = Round { shop: &shop, whole: &whole, committed: &mut committed, context };
        round.check_disk();
        let left = round.check_list();
        draft = left.map(|(number, _)| number);
        phases.extend(left.filter(|_| was_killed).map(|(_, phase)| phase));
    }
    assert!(rounds < MANY || phases == all, "nobody was killed in a phase but {phases:?}");
    assert_eq!(shop.run(&["verify"]).code, 0);
    shop.ok(&turn);
    assert!(resumed > 0, "no turn was ever interrupted");
    report(&format!(
        "{killed} killed, in the phases {phases:?}, {resumed} resumed, {answered} told their answer, {} turns",
        committed.len()
    ));
}

/// Who is asked in each phase, from 0; none is asked in phase 7, each step of which `a_commit_that_dies_anywhere_is_finished_by_recover`
/// of the store dies in.
const ASKED_IN: [(u64, Role); 8] = [
    (0, Role::Analyzer),
    (1, Role::Reflection),
    (2, Role::Retrieval),
    (2, Role::Gathering),
    (3, Role::Planner),
    (4, Role::Coordinator),
    (5, Role::Synthesizer),
    (6, Role::Validator),
];

#[test]
fn a_turn_that_is_killed_in_a_phase_goes_on_from_there() {
    let stuck = Arc::new(Mutex::new(None));
    let armed = Arc::clone(&stuck);
    let shop = Shop::with_scholar(move |role, _| {
        let is_stuck = *armed.lock().unwrap() == Some(role);
        is_stuck.then(|| reply_text("never").ending(End::Hang))
    });
    shop.ok(&["turn", "Where does the ledger lie?"]);
    let whole = shop.documents().turns()["turn_000001"].clone();
    let mut committed = BTreeSet::from([1]);
    for (phase, role) in ASKED_IN {
        *stuck.lock().unwrap() = Some(role);
        let asked = || shop.roles().iter().filter(|asked| **asked == role).count();
        let before = asked();
        let mut child = shop.start(&["turn", "Where does the ledger lie?"]);
        let end = Instant::now() + PATIENCE;
        while asked() == before {
            assert!(Instant::now() < end, "{role:?} is never asked");
            assert!(
                !ended_within(&mut child, Duration::from_millis(2)),
                "it ended before {role:?} was asked"
            );
        }
        child.kill().unwrap();
        child.wait().unwrap();
        *stuck.lock().unwrap() = None;
        let context = format!("killed while {role:?} was asked");
        let mut round = Round { shop: &shop, whole: &whole, committed: &mut committed, context };
        round.check_disk();
        let (number, stopped) = round.check_list().unwrap_or_else(|| panic!("{role:?}: no draft is left"));
        assert_eq!(stopped, phase, "{role:?}");
        let outcome = shop.json(&["turn", "resume"]);
        assert_eq!(
            (&outcome["turn"], &outcome["answer"]),
            (&number.into(), &ANSWER.into()),
            "{role:?}: {outcome}"
        );
        // Of the phases before, none is gone through again.
        let again: Vec<Role> = shop.roles().into_iter().rev().take_while(|asked| *asked != role).collect();
        let earlier = ASKED_IN.iter().filter(|(earlier, _)| *earlier < phase);
        for (_, earlier) in earlier {
            assert!(!again.contains(earlier), "{earlier:?} was asked again after {role:?}: {again:?}");
        }
        committed.insert(number);
    }
    assert_eq!(shop.run(&["verify"]).code, 0);
}

/// No file may grow beyond a limit, which a full disk does to all files at once: whatever cannot be written, the turn is
/// whole or a draft, and says which file it was.
#[cfg(unix)]
#[test]
fn a_turn_that_cannot_be_written_is_a_draft_or_absent_and_says_why() {
    let shop = Shop::with_scholar(|_, _| None);
    let turn = ["turn", "Where does the ledger lie?", "--format", "json"];
    shop.ok(&turn);
    let whole = shop.documents().turns()["turn_000001"].clone();
    let mut committed = BTreeSet::from([1]);
    let (mut failed, mut resumed) = (0, 0);
    for kib in (4..).step_by(12) {
        let ran: Ran = shop.command_within(kib, &turn).output().unwrap().into();
        let context = format!("files of at most {kib} KiB: {ran:?}");
        assert!(ran.code == 0 || ran.code == 3, "{context}");
        assert!(!ran.err.contains("panicked"), "{context}");
        if ran.code == 0 {
            let outcome: Value = serde_json::from_str(&ran.out).unwrap();
            committed.insert(outcome["turn"].as_u64().unwrap());
        } else {
            failed += 1;
            assert!(ran.out.is_empty() && ran.err.contains("home/"), "the file is named: {context}");
        }
        let mut round = Round { shop: &shop, whole: &whole, committed: &mut committed, context };
        round.check_disk();
        if let Some((number, _)) = round.check_list() {
            let outcome = shop.json(&["turn", "resume"]);
            let said = outcome["answer"].as_str().unwrap();
            // A call whose result could not be written reaches no goal.
            assert!(outcome["turn"] == number && said.ends_with(ANSWER), "{outcome}");
            round.check_disk();
            committed.insert(number);
            resumed += 1;
        }
        if ran.code == 0 {
            break;
        }
    }
    assert_eq!(shop.run(&["verify"]).code, 0);
    assert!(failed > 2 && resumed > 0, "{failed} failed, {resumed} of them as drafts");
    report(&format!("{failed} could not be written, {resumed} of them went on"));
}

/// What `cargo test -- --nocapture` shows.
#[allow(clippy::print_stdout, reason = "figures of a test")]
fn report(line: &str) {
    println!("{line}");
}
