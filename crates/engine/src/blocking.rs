//! Runs blocking work for asynchronous callers: the store and the documents read and write files, and condensing
//! takes time. Knows nothing of that work.

use std::future::{Future, poll_fn};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinHandle, block_in_place};

/// Runs a future that blocks between its await points, such as a recipe run or a turn, as a separate task. Other
/// tasks continue: whenever it is polled, its worker thread first hands them over to another thread. On a
/// single-threaded runtime they wait.
pub fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut work = Box::pin(work);
    let hands_over = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    tokio::spawn(poll_fn(move |context| {
        if hands_over { block_in_place(|| work.as_mut().poll(context)) } else { work.as_mut().poll(context) }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
