//! Tests of the documents that look behind their public face: crashes at every step, rebuilt indexes, what a document
//! is worth.

mod crash;
mod failing;
mod generate;
mod keeping;
mod rebuild;
mod vectors;

use super::*;
use crate::{Clock, StoreOptions, Timestamp as Moment};

use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that tests set.
#[derive(Debug)]
struct Fixed(AtomicU64);

impl Clock for Fixed {
    fn now(&self) -> Moment {
        Moment::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// The moment at which generated turns begin.
const START: u64 = 1_767_607_200_000;

/// A home with a store whose clock can be set.
struct Home {
    dir: tempfile::TempDir,
    clock: Arc<Fixed>,
}

impl Home {
    fn new() -> Self {
        let clock = Arc::new(Fixed(AtomicU64::new(START)));
        Self { dir: tempfile::tempdir().unwrap(), clock }
    }

    /// Another home with the same in it. Nobody may have this one open.
    fn copied(&self) -> Self {
        let copy = Self { dir: tempfile::tempdir().unwrap(), clock: Arc::clone(&self.clock) };
        copy_folder(self.dir.path(), copy.dir.path());
        copy
    }

    fn store(&self) -> Store {
        let options =
            StoreOptions { clock: Arc::clone(&self.clock) as Arc<dyn Clock>, ..StoreOptions::default() };
        Store::open(&self.dir.path().join("home"), options).unwrap()
    }

    fn vault(&self) -> PathBuf {
        self.dir.path().join("vault")
    }

    fn open(&self) -> Documents {
        Documents::open(&self.store(), &DocumentPlace::Folder(self.vault())).unwrap()
    }

    fn set(&self, millis: u64) {
        self.clock.0.store(millis, Ordering::Relaxed);
    }
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
