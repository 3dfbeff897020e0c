//! The queue of background jobs: nothing in it is lost, done out of turn, or seen by another user.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod common;

use common::Home;
use larder_store::{
    DocumentPlace, Documents, JOB_FAILED, Job, JobEnd, JobState, JobWorker, NewJob, StoreError, Timestamp,
};
use larder_vault::Mode;
use serde_json::json;

const START: u64 = 1_795_219_200_000;

fn new(key: &str, session: Option<&str>) -> NewJob {
    let session = session.map(str::to_owned);
    NewJob { kind: "test", key: key.to_owned(), session, payload: json!({"of": key}), after: 0 }
}

fn worker(home: &Home) -> JobWorker {
    home.store.job_queue().acquire().unwrap().unwrap()
}

/// The keys of the jobs that can start now, all of which are then running.
fn claimed(worker: &JobWorker) -> Vec<Job> {
    std::iter::from_fn(|| worker.claim().unwrap()).collect()
}

fn keys(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.key.as_str()).collect()
}

#[test]
fn a_job_that_waits_is_there_once_with_its_newest_payload() {
    let home = Home::new();
    let ada = home.user("ada");
    ada.jobs().add(&new("a", None)).unwrap();
    ada.jobs().add(&NewJob { payload: json!(2), after: 60_000, ..new("a", None) }).unwrap();
    let listed = ada.jobs().list().unwrap();
    assert_eq!((listed.len(), listed[0].id, &listed[0].payload), (1, 1, &json!(2)));
    assert_eq!(listed[0].due, listed[0].created, "it does not wait longer");
    let worker = worker(&home);
    let job = worker.claim().unwrap().unwrap();
    assert_eq!((job.state, job.attempts), (JobState::Running, 1));
    // What is added while it is running may not have been seen by it, and is done after it.
    ada.jobs().add(&new("a", None)).unwrap();
    assert_eq!(worker.claim().unwrap(), None);
    worker.end(&job, &JobEnd::Done).unwrap();
    let again = worker.claim().unwrap().unwrap();
    assert!(again.id > job.id);
    worker.end(&again, &JobEnd::Done).unwrap();
    assert_eq!(ada.jobs().list().unwrap(), []);
    ada.jobs().add(&new("a", None)).unwrap();
    assert!(ada.jobs().list().unwrap()[0].id > again.id, "no number comes twice");
}

#[test]
fn the_jobs_of_a_session_are_done_in_order() {
    let home = Home::new();
    let ada = home.user("ada");
    for (key, session) in [("1", Some("s")), ("2", Some("s")), ("3", Some("t")), ("4", None)] {
        ada.jobs().add(&new(key, session)).unwrap();
    }
    home.user("bob").jobs().add(&new("5", Some("s"))).unwrap();
    let worker = worker(&home);
    let first = claimed(&worker);
    assert_eq!(keys(&first), ["1", "3", "4", "5"]);
    worker.end(&first[0], &JobEnd::Failed("it is down".to_owned())).unwrap();
    assert_eq!(claimed(&worker), [], "the second waits for the first, which is repeated");
    for job in &first[1..] {
        worker.end(job, &JobEnd::Done).unwrap();
    }
    assert_eq!(home.store.job_queue().next_due().unwrap().unwrap().as_millis(), START + 10_000);
    home.clock.set(START + 10_000);
    let again = claimed(&worker);
    assert_eq!(keys(&again), ["1"]);
    worker.end(&again[0], &JobEnd::Done).unwrap();
    assert_eq!(keys(&claimed(&worker)), ["2"]);
}

#[test]
fn a_job_that_keeps_failing_becomes_a_request_for_a_human() {
    let home = Home::new();
    let ada = home.user("ada");
    ada.jobs().add(&new("a", None)).unwrap();
    let worker = worker(&home);
    let mut now = START;
    let mut pauses = Vec::new();
    while let Some(due) = home.store.job_queue().next_due().unwrap() {
        pauses.push((due.as_millis() - now) / 1_000);
        now = due.as_millis();
        home.clock.set(now);
        let job = worker.claim().unwrap().unwrap();
        worker.end(&job, &JobEnd::Failed("it is down".to_owned())).unwrap();
    }
    assert_eq!(pauses, [0, 10, 60, 360, 2_160, 12_960]);
    let job = ada.jobs().get(1).unwrap();
    assert_eq!((job.state, job.attempts, job.intervention), (JobState::Failed, 6, Some(1)));
    let asked = ada.interventions().get(1).unwrap();
    assert_eq!(asked.kind, JOB_FAILED);
    for part in ["job 1 (test: a) failed 6 times", "it is down", "larder jobs retry 1"] {
        assert!(asked.message.contains(part), "{part}: {}", asked.message);
    }
    // Its session goes on without it, and so does its key.
    ada.jobs().add(&new("a", None)).unwrap();
    assert_eq!(keys(&claimed(&worker)), ["a"]);

    let retried = ada.jobs().retry(1).unwrap();
    assert_eq!((retried.state, retried.attempts, retried.intervention), (JobState::Waiting, 0, None));
    assert_eq!(ada.interventions().get(1).unwrap().resolution.as_deref(), Some("retried"));
    ada.jobs().cancel(1).unwrap();
    assert!(matches!(ada.jobs().get(1), Err(StoreError::UnknownJob { id: 1 })));
    assert!(matches!(ada.jobs().cancel(2), Err(StoreError::JobRunning { id: 2 })));
}

#[test]
fn what_a_killed_worker_was_doing_is_done_again() {
    let home = Home::new();
    let ada = home.user("ada");
    ada.jobs().add(&new("a", Some("s"))).unwrap();
    ada.jobs().add(&new("b", Some("s"))).unwrap();
    for start in 1..=30 {
        let worker = worker(&home);
        assert!(home.reopen().job_queue().acquire().unwrap().is_none(), "there is one worker");
        assert_eq!(worker.claim().unwrap().map(|job| (job.key, job.attempts)), Some(("a".to_owned(), start)));
        assert_eq!(worker.claim().unwrap(), None);
    }
    let worker = worker(&home);
    let failed = ada.jobs().get(1).unwrap();
    assert_eq!((failed.state, failed.intervention), (JobState::Failed, Some(1)), "it kills its workers");
    assert_eq!(keys(&claimed(&worker)), ["b"]);
}

#[test]
fn a_job_that_cannot_be_done_yet_waits_without_an_attempt() {
    let home = Home::new();
    let ada = home.user("ada");
    ada.jobs().add(&new("a", None)).unwrap();
    let worker = worker(&home);
    let job = worker.claim().unwrap().unwrap();
    let tomorrow = Timestamp::from_millis(START + 86_400_000);
    worker.end(&job, &JobEnd::NotBefore(tomorrow, "the budget is used up".to_owned())).unwrap();
    let job = ada.jobs().get(1).unwrap();
    assert_eq!((job.due, job.attempts, job.reason.as_deref()), (tomorrow, 0, Some("the budget is used up")));
    assert_eq!(worker.claim().unwrap(), None);
    assert_eq!(ada.jobs().retry(1).unwrap().due.as_millis(), START, "a human may know better");
}

#[test]
fn jobs_are_their_users_alone() {
    let home = Home::new();
    home.user("ada").jobs().add(&new("a", None)).unwrap();
    let bob = home.user("bob");
    assert_eq!(bob.jobs().list().unwrap(), []);
    for refused in [bob.jobs().get(1), bob.jobs().retry(1), bob.jobs().cancel(1)] {
        assert!(matches!(refused, Err(StoreError::UnknownJob { id: 1 })));
    }
    let worker = worker(&home);
    let job = worker.claim().unwrap().unwrap();
    home.store.delete_user("ada").unwrap();
    worker.end(&job, &JobEnd::Failed("it is down".to_owned())).unwrap();
    assert_eq!(home.user("ada").jobs().list().unwrap(), []);
    assert_eq!(home.user("ada").interventions().list(false).unwrap(), []);
}

#[test]
fn a_turn_and_its_jobs_are_committed_together() {
    let home = Home::new();
    let place = DocumentPlace::Folder(home.path().join("documents"));
    let ada = Documents::open(&home.store, &place).unwrap().user("ada").unwrap();
    let mut draft = ada.drafts().begin(Mode::Chat, None, "q").unwrap();
    ada.drafts().commit_with(&draft, &[new("early", None)]).unwrap_err();
    assert_eq!(home.user("ada").jobs().list().unwrap(), [], "it is no whole turn");
    let metadata = json!({
        "turn_number": draft.number, "user_id": "ada", "mode": "chat", "status": "complete",
        "created_at": draft.created_at, "query": "q",
    });
    draft.files.insert("metadata.json".to_owned(), metadata.to_string().into_bytes());
    for _ in 0..2 {
        ada.drafts().commit_with(&draft, &[new("a", None)]).unwrap();
    }
    assert_eq!(keys(&home.user("ada").jobs().list().unwrap()), ["a"]);
    let worker = worker(&home);
    let job = worker.claim().unwrap().unwrap();
    worker.end(&job, &JobEnd::Done).unwrap();
    ada.drafts().commit_with(&draft, &[new("a", None)]).unwrap();
    assert_eq!(home.user("ada").jobs().list().unwrap(), [], "a second commit changes nothing");
}

/// A thread whose file systems have no locks asks to be the worker, next to one that is.
#[cfg(target_os = "linux")]
#[test]
fn where_there_are_no_locks_nobody_becomes_the_worker() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
    let home = Home::new();
    let store = home.store.clone();
    let without_locks = std::thread::spawn(move || {
        let missing = SeccompAction::Errno(libc::EOPNOTSUPP.cast_unsigned());
        let rules = [(libc::SYS_flock, Vec::new())].into_iter().collect();
        let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, arch).unwrap();
        seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
        let error = store.job_queue().acquire().unwrap_err().to_string();
        assert!(
            error.contains("turns") && error.contains("which the file system of a home must have"),
            "{error}"
        );
    });
    without_locks.join().unwrap();
    assert!(home.store.job_queue().acquire().unwrap().is_some());
}
