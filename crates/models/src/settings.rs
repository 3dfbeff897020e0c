//! What a provider must know of a model in addition to its address: capabilities and extra fields of the body.

use std::collections::BTreeSet;

use larder_text::message::Content;
use serde_json::{Map, Value};

use crate::chat::{ChatRequest, ModelError};
use crate::table::Capability;

/// A model's part of the model table, as its provider needs it.
#[derive(Debug, Clone, Default)]
pub struct ProviderSettings {
    /// What the model can do.
    pub capabilities: BTreeSet<Capability>,
    /// Fields that are added to every request body (`extra_body`).
    pub extra_body: Map<String, Value>,
}

impl ProviderSettings {
    /// Whether the model has a capability.
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Whether replies are streamed.
    pub fn streams(&self) -> bool {
        self.can(Capability::Streaming)
    }

    /// Rejects what the model cannot do and must not be dropped silently. A schema is not rejected: the caller that
    /// requests one also validates the reply.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] for pictures without sight and tools without tool use.
    pub fn check(&self, request: &ChatRequest, name: &str) -> Result<(), ModelError> {
        let has_image = |content: &Content| matches!(content, Content::Image { .. });
        let images = request.messages.iter().any(|message| message.content.iter().any(has_image));
        let missing = if images && !self.can(Capability::Vision) {
            Some(("a picture", Capability::Vision))
        } else if !request.tools.is_empty() && !self.can(Capability::Tools) {
            Some(("tools", Capability::Tools))
        } else {
            None
        };
        if let Some((what, capability)) = missing {
            let detail = format!(
                "the request holds {what}, but the model is not marked `{capability}`; use a model that is, or add it \
                 to this model's `capabilities` in larder.toml",
            );
            return Err(ModelError::NotConfigured { provider: name.to_owned(), detail });
        }
        Ok(())
    }

    /// The thinking budget, if the model supports one; otherwise logs this (R4-9.7).
    pub fn thinking_budget(&self, request: &ChatRequest, name: &str) -> Option<u32> {
        let budget = request.thinking_budget?;
        if !self.can(Capability::Thinking) {
            tracing::info!(
                model = name,
                budget,
                "thinking budget ignored: the model has no `thinking` capability"
            );
            return None;
        }
        Some(budget)
    }

    /// Adds `extra_body` to a request body.
    pub fn add_extra(&self, body: &mut Map<String, Value>) {
        body.extend(self.extra_body.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}
