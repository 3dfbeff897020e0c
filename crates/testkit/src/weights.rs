//! The real weights of the embedded models, fetched once into the user's shared folder (`LARDER_MODELS` names
//! another).

use std::path::PathBuf;
use std::sync::OnceLock;

use larder_local::Embedded;
use larder_models::weights::{CHAT_MODEL, WeightSource, Weights};

/// The folder of the weights called `name`, fetched if need be.
pub fn folder(name: &str) -> PathBuf {
    let env = |name: &str| std::env::var(name).ok();
    // A runtime may neither be entered nor dropped on the thread of another.
    let pull = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(Weights::shared(None, &env).pull(name, &WeightSource::Any, &env, &mut |_, _| {}))
    };
    std::thread::scope(|scope| scope.spawn(pull).join().unwrap()).unwrap()
}

/// The embedded chat model: one for all tests of a process, which stand in one queue.
pub fn embedded() -> Embedded {
    static OPENED: OnceLock<Embedded> = OnceLock::new();
    OPENED.get_or_init(|| Embedded::open(&folder(CHAT_MODEL)).unwrap()).clone()
}
