//! The engine shared by all condensers. A [`job`] holds what is known about a text; a type's [`condenser`] produces a
//! [`draft`]; [`verify`] checks it. [`extractive`] condenses by choosing among the [`units`] of a text: [`select`]
//! takes the best, [`fill`] uses up the target, [`render`] writes the text, [`explain`] gives the reasons.
//!
//! Knows no content type.

pub(crate) mod condenser;
pub(crate) mod draft;
pub(crate) mod explain;
pub(crate) mod extractive;
mod fill;
pub(crate) mod greedy;
pub(crate) mod job;
pub(crate) mod markers;
pub(crate) mod render;
mod select;
pub(crate) mod source_map;
pub(crate) mod units;
pub(crate) mod verify;
