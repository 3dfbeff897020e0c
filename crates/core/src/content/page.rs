//! Page captures.

use super::frame::{Condenser, Extractive};
use super::markdown;

/// Condenses this type.
pub(super) const CONDENSER: &dyn Condenser = &Extractive(markdown::Markdown);
