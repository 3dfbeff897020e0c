//! Breaking what takes texts of others: cases from bytes, generators, mutation, and what must hold of every case.
//!
//! `cargo fuzz` and the command of this program share the cases and the checks; see `fuzz/README.md`.

mod case;
mod check;
mod command;
mod gateway;
mod kept;
mod minimise;
mod mutate;
mod pointers;
mod target;

use self::case::Case;
use self::check::check;
pub use self::command::command;
pub use self::target::Target;
