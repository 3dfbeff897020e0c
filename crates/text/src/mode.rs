//! The mode of a recipe and of a turn. Does not know what either mode runs.

use serde::{Deserialize, Serialize};

/// What a conversation is for: it selects recipes, models and the tools that may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Conversation; nothing is written.
    #[serde(alias = "Chat", alias = "CHAT")]
    Chat,
    /// Work on code; tools may write files.
    #[serde(alias = "Code", alias = "CODE")]
    Code,
}

impl Mode {
    /// The word in recipes and stored documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Code => "code",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
