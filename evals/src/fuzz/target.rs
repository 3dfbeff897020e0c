//! What there is to break: each target has a name, a form of cases in bytes, a generator of cases and checks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use larder_condense::ContentType;

use super::gateway::{requests, results, streams};
use super::{Case, check, mutate, pointers};
use crate::made::{Random, TYPES};

/// Bytes before the text of every case: they say how it is to be taken.
pub(super) const HEAD: usize = 4;

/// What is to be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The condenser of a type.
    Condense(ContentType),
    /// Bodies of requests, in all formats.
    Requests,
    /// Streamed and whole replies, in all formats and any pieces.
    Streams,
    /// Texts with pointers in them.
    Pointers,
    /// Results of tools on their way through a request.
    Results,
}

/// The targets other than condensers.
const OTHERS: [(&str, Target); 4] = [
    ("requests", Target::Requests),
    ("streams", Target::Streams),
    ("pointers", Target::Pointers),
    ("results", Target::Results),
];

impl Target {
    /// Every target with its name.
    pub fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let condensers = TYPES.into_iter().map(|(name, content_type)| (name, Self::Condense(content_type)));
        condensers.chain(OTHERS)
    }

    /// The target with this name, and the name.
    pub fn named(name: &str) -> Option<(&'static str, Self)> {
        Self::all().find(|(known, _)| *known == name)
    }

    /// Runs the case that `bytes` are, and says what is wrong; empty if nothing is. Panics are caught.
    pub fn check(self, bytes: &[u8]) -> Vec<String> {
        let checked = catch_unwind(AssertUnwindSafe(|| match self {
            Self::Condense(content_type) => check(&Case::from_bytes(content_type, bytes)),
            Self::Requests => requests::check(bytes),
            Self::Streams => streams::check(bytes),
            Self::Pointers => pointers::check(bytes),
            Self::Results => results::check(bytes),
        }));
        checked.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            vec![format!("panic: {said}")]
        })
    }

    /// A new case in bytes.
    pub(super) fn generate(self, random: &mut Random) -> Vec<u8> {
        match self {
            Self::Condense(content_type) => mutate::generate(content_type, random),
            Self::Requests => requests::generate(random),
            Self::Streams => streams::generate(random),
            Self::Pointers => pointers::generate(random),
            Self::Results => results::generate(random),
        }
    }
}

/// One byte of a case's head; 0 where the case is shorter.
pub(super) fn head(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().filter(|_| at < HEAD).unwrap_or(0)
}

/// The text of a case: what follows the head.
pub(super) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(HEAD..).unwrap_or_default()).into_owned()
}
