//! Work that blocks lets other tasks continue.
#![allow(clippy::unwrap_used, reason = "a test may stop and say why")]

use larder_engine::blocking::{run, spawn};

/// Waits for a message from another task, both asynchronously and blocking.
async fn waits_and_blocks(word: std::sync::mpsc::Receiver<u8>) -> u8 {
    tokio::task::yield_now().await;
    word.recv().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_tasks_continue_while_one_blocks() {
    let (send, word) = std::sync::mpsc::channel();
    let blocked = spawn(waits_and_blocks(word));
    tokio::spawn(async move { send.send(7).unwrap() }).await.unwrap();
    assert_eq!(blocked.await.unwrap(), 7);
}

#[tokio::test]
async fn a_runtime_of_one_thread_runs_it_too() {
    let (send, word) = std::sync::mpsc::channel();
    send.send(7).unwrap();
    assert_eq!(spawn(waits_and_blocks(word)).await.unwrap(), 7);
}

#[tokio::test]
async fn work_gives_its_value_or_the_error_that_it_panicked() {
    assert_eq!(run(|| vec![7]).await.unwrap(), [7]);
    let broken = run(|| -> u8 { std::panic::panic_any("broken") }).await;
    assert!(broken.unwrap_err().is_panic());
}
