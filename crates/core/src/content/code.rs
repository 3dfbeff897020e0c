//! Source code.

use super::frame::{Condenser, Extractive};
use super::plain;

/// Condenses this type.
pub(super) const CONDENSER: &dyn Condenser = &Extractive(plain::Plain);
