//! The roles that models play. Does not know which model plays one.

use serde::{Deserialize, Serialize};

/// The role a model plays. The discriminants are the numbers of the layers (R0-3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Layer {
    /// Fast classification and gating.
    Reflex = 0,
    /// Condensing.
    Nerves = 1,
    /// Planning and reasoning.
    Mind = 2,
    /// Writing for the user.
    Voice = 4,
    /// Reading pictures.
    Eyes = 6,
}

impl Layer {
    /// Every layer, with the name recipes use.
    pub const ALL: [(&'static str, Self); 5] = [
        ("REFLEX", Self::Reflex),
        ("NERVES", Self::Nerves),
        ("MIND", Self::Mind),
        ("VOICE", Self::Voice),
        ("EYES", Self::Eyes),
    ];

    /// The name recipes use, such as `MIND`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reflex => "REFLEX",
            Self::Nerves => "NERVES",
            Self::Mind => "MIND",
            Self::Voice => "VOICE",
            Self::Eyes => "EYES",
        }
    }
}
