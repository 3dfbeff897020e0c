//! What stands before the user's message, in the order of R4-6: one labelled document for each block that has something to
//! say. Pure.

use std::fmt::Write as _;

use crate::kind::{Block as Input, FieldRules};
use crate::state::ParticipantState;

/// A document of the reply's recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The input of the recipe that it fills.
    pub input: Input,
    /// Its text.
    pub text: String,
}

/// Everything that blocks are made of. What may not be sent is not in here.
#[derive(Debug, Clone, Default)]
pub struct BlockSources {
    /// Texts that only this turn needs: the process, the new stage, what was just shared, safety (R4-2.9, R4-2.12, R4-2.13).
    pub pieces: Vec<String>,
    /// The summary of the session.
    pub summary: Option<serde_json::Value>,
    /// What the person wants to be honored.
    pub preferences: Vec<String>,
    /// Facts with their categories.
    pub facts: Vec<(String, String)>,
    /// What the person thought by themselves.
    pub reflections: Vec<String>,
    /// What was shared and what is consented to, line by line.
    pub shared: Vec<String>,
    /// Messages of this session that are looked up, a line each, oldest first.
    pub earlier: Vec<String>,
    /// Messages of other sessions that are looked up, a line each below the day of their session, oldest first.
    pub related: Vec<String>,
    /// What the model shall know of this memory.
    pub guidance: Option<String>,
}

/// The blocks, in order; empty ones are absent (R4-6.16).
pub fn blocks(rules: &FieldRules, state: &ParticipantState, sources: &BlockSources) -> Vec<Block> {
    let list = |items: &[String]| {
        items.iter().map(|item| format!("- {}", plain(item))).collect::<Vec<_>>().join("\n")
    };
    let facts: Vec<String> =
        sources.facts.iter().map(|(category, fact)| format!("[{category}] {fact}")).collect();
    let milestones: Vec<String> =
        state.milestones.iter().map(|reached| format!("turn {}: {}", reached.turn, reached.text)).collect();
    let texts = [
        (Input::Pieces, sources.pieces.join("\n\n")),
        (Input::State, standing(rules, state)),
        (Input::Summary, sources.summary.as_ref().map(summary).unwrap_or_default()),
        (Input::Preferences, list(&sources.preferences)),
        (Input::Facts, list(&facts)),
        (Input::Reflections, list(&sources.reflections)),
        (Input::Shared, list(&sources.shared)),
        (Input::Milestones, list(&milestones)),
        (Input::Guidance, sources.guidance.clone().unwrap_or_default()),
        (Input::Earlier, sources.earlier.join("\n")),
        (Input::Related, sources.related.join("\n")),
    ];
    let has_text = |(_, text): &(Input, String)| !text.trim().is_empty();
    texts.into_iter().filter(has_text).map(|(input, text)| Block { input, text }).collect()
}

/// `Intensity: 6/10 (stable) | Turn 7` (R4-6.3); without an intensity, the turn alone.
fn standing(rules: &FieldRules, state: &ParticipantState) -> String {
    let turn = format!("Turn {}", state.turns.saturating_add(1));
    match state.intensity().filter(|_| rules.intensity.is_some()) {
        Some(intensity) => format!("Intensity: {intensity}/10 ({}) | {turn}", state.trend(rules)),
        None => turn,
    }
}

/// The summary as lines: the narrative, then each field that has entries.
pub(crate) fn summary(value: &serde_json::Value) -> String {
    let Some(fields) = value.as_object() else {
        return value.as_str().map(plain).unwrap_or_default();
    };
    let mut text = String::new();
    for (name, value) in fields {
        let entries: Vec<String> = match value {
            serde_json::Value::String(text) => vec![plain(text)],
            serde_json::Value::Array(items) => {
                items.iter().map(entry).filter(|entry| !entry.is_empty()).collect()
            }
            _ => Vec::new(),
        };
        match entries.as_slice() {
            [] => {}
            [one] if value.is_string() => drop(writeln!(text, "{one}")),
            all => drop(writeln!(text, "{}: {}", spaced(name), all.join("; "))),
        }
    }
    text.trim_end().to_owned()
}

/// An entry of a list: its text, with the messages it came from.
fn entry(item: &serde_json::Value) -> String {
    let text =
        item.as_str().or_else(|| item.get("text").and_then(serde_json::Value::as_str)).unwrap_or_default();
    let numbers: Vec<String> = item
        .get("messages")
        .and_then(serde_json::Value::as_array)
        .map(|numbers| numbers.iter().map(ToString::to_string).collect())
        .unwrap_or_default();
    if numbers.is_empty() {
        plain(text)
    } else {
        format!("{} (messages {})", plain(text), numbers.join(", "))
    }
}

/// `keyThemes` → `Key themes`.
fn spaced(name: &str) -> String {
    let mut text = String::new();
    for (at, c) in name.chars().enumerate() {
        match c {
            '_' => text.push(' '),
            c if at == 0 => text.extend(c.to_uppercase()),
            c if c.is_uppercase() => text.extend(std::iter::once(' ').chain(c.to_lowercase())),
            c => text.push(c),
        }
    }
    text
}

/// A text on one line, so that it can neither end its block nor begin another one.
pub fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
