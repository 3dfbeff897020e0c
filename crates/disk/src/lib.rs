//! How the store puts bytes on disk: private files that are either whole or absent, locks between processes, contents as
//! compressed frames in blobs and segments, documents in folders and buckets, the one table of everything that is stored, and the errors of the store. Knows no
//! rows of the index, and no users but as names of folders.
#![deny(missing_docs)]

pub mod based;
pub mod blobs;
mod clock;
pub mod data_rules;
mod error;
pub mod files;
pub mod foreground;
pub mod frame;
pub mod group_sync;
pub mod home;
pub mod index_files;
pub mod locks;
pub mod partial;
pub mod recent;
pub mod run_id;
pub mod segments;
pub mod tree;
pub mod user;

pub use clock::{Clock, Entropy, MILLIS_PER_DAY, ParseTimestampError, SystemClock, SystemEntropy, Timestamp};
pub use error::StoreError;
