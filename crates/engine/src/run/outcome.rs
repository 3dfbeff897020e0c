//! What a run returns: its answer, its citations and the receipt of its prompt. Plain data; knows no model.

use std::collections::BTreeMap;

use larder_core::pack::{BudgetAssessment, Pack, PartReason, PartReceipt, Receipt, Rendition, SlotLedger};
use larder_core::recipe::{Layer, Recipe};
use larder_core::route::RouteDecision;
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_store::{ModelUsage, RunId};
use larder_text::message::Message;
use larder_text::pointer::Pointer;
use larder_text::words::counted;
use serde::{Deserialize, Serialize};

/// The receipt of a prompt, with the recipe and the model it was packed for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReceipt {
    /// The recipe: `category/name`.
    pub recipe: String,
    /// The recipe's version.
    pub version: String,
    /// The layer it was packed for; `None` in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub layer: Option<Layer>,
    /// Why this layer, if a router chose it (R4-9.9).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub route: Option<RouteDecision>,
    /// The model's name in the table.
    pub model: String,
    /// The tokenizer that counted.
    pub tokenizer: String,
    /// The outcome for each part.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// How far the prompt exceeded its budget, and by which levels it was reduced.
    #[serde(default)]
    pub assessment: BudgetAssessment,
    /// The messages of the prompt; empty if it was refused.
    pub messages: Vec<Message>,
    /// The pointer to the conversation as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// What its caller asked for and the run left out, such as `temperature`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// What condensing by a model cost, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub condensing: Option<CondensingTally>,
    /// The calls of models that failed, so that a fallback answered or the run ended.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failed: Vec<FailedCall>,
    /// The tools that its model is offered.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tools: Vec<ToolReceipt>,
    /// The tools that the recipe names and that its model is not offered.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_offered: Vec<String>,
    /// What its model called: tools of the recipe, and originals that it read back.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub calls: Vec<CallReceipt>,
}

/// A call of a model that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCall {
    /// The model's name in the table.
    pub model: String,
    /// What failed; it begins with the model's name.
    pub error: String,
}

/// A tool that the model of a run is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReceipt {
    /// Its name, as the model reads it.
    pub name: String,
    /// Tokens of its definition, which are part of the framing.
    pub tokens: usize,
}

/// A call of a tool by the model of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallReceipt {
    /// The call, with its arguments.
    pub call: String,
    /// `success`, `error`, `denied` or `timeout`.
    pub status: String,
    /// The result in a line.
    pub summary: String,
    /// Tokens of the result in the prompt of the next call of the model.
    pub tokens: usize,
    /// Where the whole result is; what was read back has its own pointer in the call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pointer: Option<Pointer>,
    /// The documents that the call made, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub files: BTreeMap<String, Pointer>,
}

impl RunReceipt {
    /// The receipt of a prompt for `model`; `packed` is the pack, or the receipt of its refusal.
    pub(crate) fn new(
        recipe: &Recipe,
        layer: Layer,
        model: &str,
        tokenizer: &str,
        packed: Result<&Pack, &Receipt>,
    ) -> Self {
        let (receipt, messages) = match packed {
            Ok(pack) => (pack.receipt.clone(), pack.messages.clone()),
            Err(receipt) => (receipt.clone(), Vec::new()),
        };
        Self {
            recipe: recipe.id(),
            version: recipe.version.to_hex(),
            layer: Some(layer),
            route: None,
            model: model.to_owned(),
            tokenizer: tokenizer.to_owned(),
            assessment: receipt.assessment(),
            receipt,
            messages,
            history: None,
            ignored: Vec::new(),
            condensing: None,
            failed: Vec::new(),
            tools: Vec::new(),
            not_offered: Vec::new(),
            calls: Vec::new(),
        }
    }
}

impl RunReceipt {
    /// A line for the user if a model failed and another one answered.
    pub fn fallback_notice(&self) -> Option<String> {
        let failed: Vec<&str> = self.failed.iter().map(|call| call.error.as_str()).collect();
        (!failed.is_empty()).then(|| format!("{}; {} answered instead", failed.join("; "), self.model))
    }

    /// A line for the user if anything was condensed or left out of the prompt: how much, and how to see it.
    pub fn reduction_notice(&self) -> Option<String> {
        let is_reduced = |part: &&PartReceipt| {
            part.rendition != Rendition::Whole
                && !matches!(part.reason, PartReason::Terse | PartReason::StandsAbove)
        };
        let reduced: Vec<&PartReceipt> = self.receipt.own_parts().filter(is_reduced).collect();
        let (condensed, out): (Vec<_>, Vec<_>) =
            reduced.iter().copied().partition(|part| part.rendition == Rendition::Condensed);
        // A part that is not counted to the end has more tokens than the prompt may have.
        let whole = |parts: &[&PartReceipt]| -> (usize, bool) {
            let least =
                parts.iter().map(|part| part.original_tokens.unwrap_or(self.receipt.budget.available)).sum();
            (least, parts.iter().all(|part| part.original_tokens.is_some()))
        };
        let named = |parts: &[&PartReceipt]| match parts {
            [one] => one.source.to_string(),
            many => format!("{} parts", many.len()),
        };
        let mut said = Vec::new();
        if !condensed.is_empty() {
            let tokens: usize = condensed.iter().map(|part| part.tokens).sum();
            let (before, parts) = (whole(&condensed), named(&condensed));
            said.push(match before {
                (before, true) => format!("condensed {parts} from {before} to {tokens} tokens"),
                (least, false) => format!("condensed {parts} to {tokens} of more than {least} tokens"),
            });
        }
        if !out.is_empty() {
            let (tokens, is_exact) = whole(&out);
            let about = if is_exact { "" } else { "more than " };
            said.push(format!("left out {} ({about}{tokens} tokens)", named(&out)));
        }
        let largest = reduced
            .iter()
            .filter(|part| part.pointer.is_some())
            .max_by_key(|part| part.original_tokens.unwrap_or(usize::MAX).saturating_sub(part.tokens));
        let back = largest.and_then(|part| Some((&part.source, part.pointer.as_ref()?)));
        let back = back.map(|(source, pointer)| {
            let what = if reduced.len() == 1 { "it".to_owned() } else { source.to_string() };
            format!(", and `larder rehydrate '{pointer}'` reads {what} whole")
        });
        (!said.is_empty()).then(|| {
            let shows = "`larder explain` with the same arguments lists every part";
            format!("{}; {shows}{}", said.join(", and "), back.unwrap_or_default())
        })
    }
}

/// The text of one slot of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromptSection {
    /// The slot's name.
    pub name: String,
    /// Its text as it is sent.
    pub content: String,
    /// Tokens it takes.
    pub tokens: usize,
}

impl RunReceipt {
    /// The prompt by slot, in order (R2-7.2); empty if it was refused.
    pub fn sections(&self) -> Vec<PromptSection> {
        let texts: Vec<String> = self.messages.iter().map(Message::joined_text).collect();
        let section = |slot: &SlotLedger| PromptSection {
            name: slot.name.clone(),
            content: slot
                .spans
                .iter()
                .filter_map(|span| texts.get(span.message)?.get(span.start..span.end))
                .collect::<Vec<_>>()
                .join("\n"),
            tokens: slot.tokens,
        };
        self.receipt.budget.slots.iter().map(section).collect()
    }
}

/// What condensing by a model cost. Each call has its own run record, so its tokens and price are not part of the run
/// that requested it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CondensingTally {
    /// Renditions that a model wrote.
    pub renditions: usize,
    /// How many of them came from the cache.
    pub cached: usize,
    /// Calls of the model.
    pub calls: usize,
    /// Tokens of these calls.
    pub usage: Usage,
    /// Price of these calls, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Usd>,
    /// Why renditions failed, as `part: reason`; these parts were condensed by rule.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failures: Vec<String>,
}

impl CondensingTally {
    /// What the user is told where a model's texts were of no use, with the run that lists them all.
    pub fn notice(&self, run: &RunId) -> Option<String> {
        let (first, more) = self.failures.split_first()?;
        let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
        // Without a call, a limit forbade it, or a text that was refused before is not asked for again.
        let why = match self.calls {
            0 => "there is no text of a model to use".to_owned(),
            calls => format!("what the model wrote in {} was of no use", counted(calls as u64, "call")),
        };
        Some(format!(
            "condensed by rule, since {why}: {first}{more}; `larder runs show {}` lists this under condensing.failures",
            run.as_str()
        ))
    }
}

/// A citation resolved to the range of the document that supports it (R0-14.8).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResolvedCitation {
    /// The id of the cited part.
    pub part: String,
    /// The name of the document.
    pub source: String,
    /// The content address of the document's version, if it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Byte range in the document, start and end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<(usize, usize)>,
    /// First and last line in the document, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<(usize, usize)>,
}

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RunOutcome {
    /// The id of the run's record.
    pub run_id: RunId,
    /// The checked answer: a JSON value, a string for text.
    pub output: serde_json::Value,
    /// The part of the answer that is meant for the user.
    pub reply: String,
    /// The visible tags of a tagged answer as the model writes them, such as `<promise>COMPLETE</promise>`: they are
    /// not part of the reply.
    #[serde(skip)]
    pub signals: Vec<String>,
    /// Whether the answer ends where its caller said ([`RunInput::max_output`](crate::inputs::RunInput::max_output)), or
    /// where the model's decoder closed it for lack of room.
    #[serde(skip)]
    pub is_cut: bool,
    /// What its model called on the way to the answer: each message with calls, followed by their results as it read them.
    #[serde(skip)]
    pub exchanged: Vec<Message>,
    /// What is wrong with an answer that was passed on while it was written; empty for every other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// What the answer cites.
    pub citations: Vec<ResolvedCitation>,
    /// How the last prompt was packed.
    pub receipt: RunReceipt,
    /// Tokens of all calls of the run.
    pub usage: Usage,
    /// Price of all calls, in US dollars.
    pub cost: Option<Usd>,
    /// What each model used, in the order in which they were first asked.
    pub models: Vec<ModelUsage>,
    /// Milliseconds from start to end, condensing included.
    pub latency_ms: u64,
}

impl RunOutcome {
    /// The answer as one text: the reply, then the visible tags.
    pub fn text(&self) -> String {
        let lines = std::iter::once(&self.reply).filter(|reply| !reply.is_empty()).chain(&self.signals);
        lines.map(String::as_str).collect::<Vec<_>>().join("\n\n")
    }
}

/// The visible tags of an answer, in the order in which the recipe declares them.
pub(crate) fn signals(recipe: &Recipe, output: &serde_json::Value) -> Vec<String> {
    let mut signals = Vec::new();
    for tag in recipe.output.tags.iter().filter(|tag| !tag.hidden && !tag.inline) {
        let found = match output.get(&tag.name) {
            Some(serde_json::Value::Array(all)) if tag.multiple => all.iter().collect(),
            found => found.into_iter().collect::<Vec<_>>(),
        };
        for content in found {
            let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
            signals.push(format!("<{0}>{text}</{0}>", tag.name));
        }
    }
    signals
}

/// An answer quoted from its documents without a model.
pub struct QuotedAnswer {
    /// The answer in the shape that the recipe declares.
    pub value: serde_json::Value,
    /// The text for the user.
    pub reply: String,
    /// Ids of the quoted parts.
    pub parts: Vec<String>,
}
