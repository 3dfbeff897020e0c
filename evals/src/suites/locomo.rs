//! LoCoMo: conversations of two people over months, with questions and the messages that answer them. Knows the form of the
//! corpus, not what is measured with it.

use std::collections::HashMap;
use std::path::Path;

use larder_text::tokens::Counter;
use serde_json::Value;

use crate::{Failure, corpora};

/// Kinds of questions, by their numbers from 1.
pub(super) const KINDS: [&str; 5] = ["multi-hop", "temporal", "open", "single-hop", "adversarial"];

/// A message of a conversation.
pub(super) struct DialogueMessage {
    pub(super) shown: String,
    pub(super) speaker: String,
    /// What was said, pictures included.
    pub(super) text: String,
    pub(super) session: usize,
    /// When its session was, as the corpus writes it.
    pub(super) date: String,
    pub(super) tokens: usize,
}

/// A question with the messages that answer it.
pub(super) struct MemoryQuestion {
    pub(super) text: String,
    pub(super) kind: usize,
    pub(super) evidence: Vec<usize>,
}

/// A conversation with its questions.
pub(super) struct LocomoConversation {
    pub(super) name: String,
    pub(super) turns: Vec<DialogueMessage>,
    pub(super) questions: Vec<MemoryQuestion>,
}

/// All conversations of the corpus.
pub(super) fn conversations() -> Result<Vec<LocomoConversation>, Failure> {
    let folder = corpora::folder("memory")?.join("locomo");
    let corrections = corrections(&corpora::json(&folder.join("corrections.json"))?);
    let mut conversations = Vec::new();
    for path in corpora::files(&folder, &[".json"])? {
        if corpora::name(&path) != "corrections.json" {
            conversations.push(conversation(&path, &corrections)?);
        }
    }
    Ok(conversations)
}

/// The corrected evidence of questions, by conversation and place.
fn corrections(list: &Value) -> HashMap<(String, u64), Value> {
    let entries = list.as_array().into_iter().flatten();
    entries
        .filter_map(|entry| {
            let key = (entry["sample_id"].as_str()?.to_owned(), entry["qa_index"].as_u64()?);
            Some((key, entry["correct_evidence"].clone()))
        })
        .collect()
}

fn conversation(
    path: &Path,
    corrections: &HashMap<(String, u64), Value>,
) -> Result<LocomoConversation, Failure> {
    let file = corpora::json(path)?;
    let said = &file["conversation"];
    let (mut turns, mut ids) = (Vec::new(), HashMap::new());
    for session in (1..).take_while(|session| said.get(format!("session_{session}_date_time")).is_some()) {
        let date = said[format!("session_{session}_date_time")].as_str().unwrap_or_default();
        for turn in said[format!("session_{session}")].as_array().into_iter().flatten() {
            let text = |field: &str| turn[field].as_str().unwrap_or_default();
            ids.insert(text("dia_id").to_owned(), turns.len());
            let mut said_text = text("text").to_owned();
            if !text("blip_caption").is_empty() {
                said_text += &format!(" [image: {}]", text("blip_caption"));
            }
            let shown = format!("[{date}] {}: {said_text}", text("speaker"));
            let tokens = Counter::o200k().count(&shown) + 1;
            turns.push(DialogueMessage {
                shown,
                speaker: text("speaker").to_owned(),
                text: said_text,
                session,
                date: date.to_owned(),
                tokens,
            });
        }
    }
    let name = file["sample_id"].as_str().unwrap_or_default().to_owned();
    let mut questions = Vec::new();
    for (place, asked) in (0..).zip(file["qa"].as_array().into_iter().flatten()) {
        let evidence = evidence(corrections.get(&(name.clone(), place)).unwrap_or(&asked["evidence"]), &ids);
        if !evidence.is_empty() {
            let text = asked["question"].as_str().unwrap_or_default().to_owned();
            let kind = asked["category"].as_u64().and_then(|kind| usize::try_from(kind).ok()).unwrap_or(0);
            questions.push(MemoryQuestion { text, kind, evidence });
        }
    }
    if turns.is_empty() || questions.is_empty() {
        return Err(format!("{}: holds no turns or no questions", path.display()).into());
    }
    Ok(LocomoConversation { name, turns, questions })
}

/// Ids of messages, of which a string may contain several; others are dropped.
fn evidence(list: &Value, ids: &HashMap<String, usize>) -> Vec<usize> {
    let mut evidence = Vec::new();
    for text in list.as_array().into_iter().flatten().filter_map(Value::as_str) {
        for id in text.split([';', ',', ' ', '\n']) {
            let id = id.strip_prefix("D:").map_or(id.to_owned(), |rest| format!("D{rest}"));
            if let Some(&turn) = ids.get(&id)
                && !evidence.contains(&turn)
            {
                evidence.push(turn);
            }
        }
    }
    evidence
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn evidence_is_read_from_any_spelling_once() {
        let ids = HashMap::from([("D1:3".to_owned(), 2), ("D2:1".to_owned(), 7)]);
        assert_eq!(evidence(&json!(["D1:3; D2:1", "D:1:3", "D1:3", "D9:9", 4]), &ids), [2, 7]);
        assert!(evidence(&json!(null), &ids).is_empty());
    }
}
