//! Puts a conversation into a slot of messages.

use std::sync::Arc;

use larder_core::pack::{Part, PartKind, Protection};
use larder_core::recipe::SlotSpec;
use larder_text::message::Role;

use super::Build;

impl Build<'_> {
    /// Adds the conversation: tool results are shortened first, user messages last.
    pub(super) fn messages(&mut self, spec: &SlotSpec) {
        self.slots.push(spec.slot.clone());
        let input = self.input;
        for (at, message) in input.history.iter().enumerate() {
            let mut part =
                Part::new(format!("message {}", at + 1), Arc::clone(&spec.slot.name), message.joined_text());
            part.role = message.role;
            part.content_type = larder_condense::detect(None, &part.id, false, &part.text);
            part.shell.tool_calls.clone_from(&message.tool_calls);
            part.shell.tool_call_id.clone_from(&message.tool_call_id);
            part.summarizable = message.tool_calls.is_empty();
            part.kind = match message.role {
                Role::Tool => PartKind::ToolResults,
                Role::System | Role::User | Role::Assistant => PartKind::Context,
            };
            part.priority = match message.role {
                Role::System => 100,
                Role::User => 80,
                Role::Assistant => 50,
                Role::Tool => 20,
            };
            if message.role == Role::System {
                part.protection = Protection::Critical;
            }
            self.parts.push(part);
        }
    }
}
