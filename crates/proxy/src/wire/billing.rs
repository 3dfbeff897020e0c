//! The billing information that Claude Code writes into its instructions: it differs in every request. Knows this line only.

use std::borrow::Cow;

use larder_text::hash::ContentHash;
use larder_text::message::Role;

use super::request::{Item, Text};

/// The start of the line in which Claude Code says who pays for a request. It is in the instructions and differs in
/// every request.
const BILLING: &str = "x-anthropic-billing-header:";

impl Item<'_> {
    /// The hash of the stable part of its text: for instructions, this excludes the request's billing information.
    pub fn identity(&self) -> ContentHash {
        if !self.is_billed() {
            return self.hash();
        }
        let texts: Vec<Cow<'_, str>> = self.texts.iter().map(Text::text).collect();
        let kept: Vec<&str> = texts
            .iter()
            .filter_map(|text| match text.starts_with(BILLING) {
                true => text.split_once('\n').map(|(_, rest)| rest),
                false => Some(text.as_ref()),
            })
            .collect();
        ContentHash::new(kept.join("\n").as_bytes())
    }

    /// Whether it contains instructions with billing information.
    pub fn is_billed(&self) -> bool {
        let is_billed = |text: &Text<'_>| text.raw.get(1..).is_some_and(|text| text.starts_with(BILLING));
        self.role() == Role::System && self.texts.iter().any(is_billed)
    }
}
