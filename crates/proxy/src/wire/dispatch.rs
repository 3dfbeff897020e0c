//! From a dialect to its format. The one place that names every format; no module imports it, since what it adds are
//! methods of [`ApiDialect`].

use larder_text::provider::Provider;

use super::dialect::ApiDialect;
use super::format::WireFormat;
use super::{chat, messages, responses};

impl ApiDialect {
    /// What the dialect has of its own.
    pub(super) fn format(self) -> &'static dyn WireFormat {
        match self {
            Self::Chat => &chat::Chat,
            Self::Responses => &responses::Responses,
            Self::Messages => &messages::Messages,
        }
    }

    /// The name in records, metrics and pages.
    pub fn as_str(self) -> &'static str {
        self.format().name()
    }

    /// The path to which requests are posted.
    pub fn path(self) -> &'static str {
        self.format().path()
    }

    /// The provider whose servers understand it.
    pub fn provider(self) -> Provider {
        self.format().provider()
    }

    /// Whether the request may have a history in which the model has answered. Guessed by its bytes, before it is read; no
    /// such request is missed but for odd escapes.
    pub fn may_have_history(self, body: &str) -> bool {
        self.format().answer_marks().iter().any(|mark| body.contains(mark))
    }
}
