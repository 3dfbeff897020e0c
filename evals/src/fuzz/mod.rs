//! Breaking condensers: cases from bytes, generators, mutation, and what must hold of every case.
//!
//! `cargo fuzz` and the command of this program share the cases and the checks; see `fuzz/README.md`.

mod case;
mod check;
mod command;
mod minimise;
mod mutate;

pub use self::case::Case;
pub use self::check::check;
pub use self::command::command;
