//! The mode of a recipe and of a turn. Does not know what each mode runs.

use serde::{Deserialize, Serialize};

/// The purpose of a conversation: it selects recipes, models and permitted tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Conversation; tools write no files.
    #[serde(alias = "Chat", alias = "CHAT")]
    Chat,
    /// Work on code; tools may write files.
    #[serde(alias = "Code", alias = "CODE")]
    Code,
}

impl Mode {
    /// The mode's name in recipes and stored documents.
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
