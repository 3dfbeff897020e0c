//! The chat template of SmolLM2-Instruct (ChatML): which tokens a conversation is. Knows messages and the tokenizer.
//!
//! Unlike the template in the weights file, it adds no system message of its own: every byte the model sees came from
//! a pack, and was counted there.

use larder_text::message::{Content, Message, Role, ToolDef};

use super::tokenizer::Tokenizer;

/// The prompt of a conversation, up to where the model's answer starts.
pub(super) fn render(
    messages: &[Message],
    tools: &[ToolDef],
    tokenizer: &Tokenizer,
) -> Result<Vec<u32>, String> {
    let mut prompt = ChatPrompt { tokens: Vec::new(), tokenizer };
    let manual = (!tools.is_empty()).then(|| tool_manual(tools));
    let has_system = messages.first().is_some_and(|message| message.role == Role::System);
    if let Some(manual) = manual.as_ref().filter(|_| !has_system) {
        prompt.turn("system", manual)?;
    }
    for (index, message) in messages.iter().enumerate() {
        let mut text = said(message)?;
        if let Some(manual) = manual.as_ref().filter(|_| index == 0 && has_system) {
            text = format!("{text}\n\n{manual}");
        }
        prompt.turn(role(message.role), &text)?;
    }
    prompt.open("assistant\n")?;
    Ok(prompt.tokens)
}

struct ChatPrompt<'a> {
    tokens: Vec<u32>,
    tokenizer: &'a Tokenizer,
}

impl ChatPrompt<'_> {
    fn open(&mut self, text: &str) -> Result<(), String> {
        self.tokens.push(self.tokenizer.turn_start);
        self.tokens.extend(self.tokenizer.encode(text)?);
        Ok(())
    }

    fn turn(&mut self, role: &str, text: &str) -> Result<(), String> {
        self.open(&format!("{role}\n{text}"))?;
        self.tokens.push(self.tokenizer.turn_end);
        self.tokens.extend(self.tokenizer.encode("\n")?);
        Ok(())
    }
}

pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// The text of a message; calls are written in the model's own notation.
fn said(message: &Message) -> Result<String, String> {
    if message.content.iter().any(|content| matches!(content, Content::Image { .. })) {
        return Err(
            "the model cannot see pictures: send them to a model with the capability `vision`".to_owned()
        );
    }
    let mut text = message.joined_text();
    for call in &message.tool_calls {
        let name = serde_json::Value::from(call.name.as_str());
        text.push_str(&format!("{{\"tool\":{name},\"arguments\":{}}}", call.arguments));
    }
    Ok(text)
}

fn tool_manual(tools: &[ToolDef]) -> String {
    let mut manual = "Call one of these tools by answering {\"tool\": name, \"arguments\": {…}}:".to_owned();
    for tool in tools {
        manual.push_str(&format!("\n{}: {}\n{}", tool.name, tool.description, tool.parameters));
    }
    manual
}
