//! Runs blocking work for asynchronous callers: the store and the documents read and write files, and condensing
//! takes time. Knows nothing of that work.

use std::any::Any;
use std::future::{Future, poll_fn};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, JoinHandle, block_in_place};

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

/// Runs short work that blocks, such as a look into the store, on a thread for such work. Once begun it ends, even if
/// the returned future is dropped.
///
/// # Errors
/// The work panicked.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    // One type of task for all work: each is some kilobytes of code.
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(work()));
    match tokio::task::spawn_blocking(work).await?.downcast() {
        Ok(done) => Ok(*done),
        Err(_) => unreachable!("it is what the work returned"),
    }
}
