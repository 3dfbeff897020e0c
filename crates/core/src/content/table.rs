//! Rows of fields.

use super::frame::{Condenser, Extractive};
use super::plain;

/// Condenses this type.
pub(super) const CONDENSER: &dyn Condenser = &Extractive(plain::Plain);

/// Whether `text` reads like it, whatever its name.
pub(super) fn looks_like(_text: &str) -> bool {
    false
}
