//! Puts a conversation into a slot of messages.

use std::sync::Arc;

use larder_core::pack::{Cap, Part, PartKind, Protection, Slot};
use larder_core::recipe::SlotSpec;
use larder_text::message::{Message, Role};
use larder_text::picture::Picture;

use super::Build;

/// Pictures of a conversation may take one part in so many of its slot and of the prompt: they must not push out words.
pub(super) const PICTURE_SHARE: usize = 2;

impl Build<'_> {
    /// The pictures that each message of the conversation is sent with: the newest, as many as have room. The others stay
    /// marks.
    fn pictures_of_history(&self, slot: &Slot) -> Vec<Vec<Picture>> {
        let mut shown = vec![Vec::new(); self.input.history.len()];
        let Some((prompt, counter)) = self.pictures else { return shown };
        let mut room = match slot.cap {
            Cap::Tokens(cap) => prompt.min(cap / PICTURE_SHARE),
            Cap::Share(_) | Cap::Flexible => prompt,
        };
        'all: for (message, shown) in self.input.history.iter().zip(&mut shown).rev() {
            for content in message.content.iter().rev() {
                let Some(picture) = Picture::in_message(content) else { continue };
                let alone = Message { content: vec![content.clone()], ..Message::text(message.role, "") };
                let Some(left) = room.checked_sub(counter.count_message(&alone)) else { break 'all };
                room = left;
                shown.insert(0, picture);
            }
        }
        shown
    }

    /// Adds the conversation: tool results are shortened first, user messages last.
    pub(super) fn messages(&mut self, spec: &SlotSpec) {
        self.slots.push(spec.slot.clone());
        let input = self.input;
        let pictures = self.pictures_of_history(&spec.slot);
        for (at, message) in input.history.iter().enumerate() {
            let mut part =
                Part::new(format!("message {}", at + 1), Arc::clone(&spec.slot.name), message.joined_text());
            part.role = message.role;
            part.content_type = larder_condense::detect(None, &part.id, false, &part.text);
            part.shell.tool_calls.clone_from(&message.tool_calls);
            part.shell.tool_call_id.clone_from(&message.tool_call_id);
            part.pictures.clone_from(&pictures[at]);
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
