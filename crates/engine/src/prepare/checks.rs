//! What a run is refused for before its prompt is made: inputs that the recipe does not take, or does not read, a mode that is
//! not its own, a prompt that its values make too long.

use larder_core::pack::Cap;
use larder_core::recipe::{Mode, Recipe, RenderedPrompts, SlotSource};
use larder_text::sections::{SectionId, Sections};
use larder_text::tokens::Counter;
use larder_text::words::is_blank;

use super::{CONTEXT, PrepareError, is_read_in};
use crate::inputs::{InputDocument, RunInput};

/// Refuses a prompt that the values of a call make larger than the recipe allots to it, unless its slot has a cap of its
/// own. Counted as `larder check` does, so that a prompt that passes there fits whichever model answers.
pub(super) fn check_prompt(
    recipe: &Recipe,
    rendered: &RenderedPrompts,
    counter: &Counter,
) -> Result<(), PrepareError> {
    let has_cap = |source: SlotSource| {
        recipe.slots.iter().any(|spec| spec.source == source && matches!(spec.slot.cap, Cap::Tokens(_)))
    };
    let prompts = [(SlotSource::Prompt, &rendered.system), (SlotSource::Variant, &rendered.variant)];
    let prompts = prompts.into_iter().filter(|(source, _)| !has_cap(*source)).map(|(_, prompts)| {
        let texts: Vec<&str> = prompts.iter().map(|prompt| prompt.text.as_str()).collect();
        texts.join("\n\n")
    });
    let (tokens, limit) = (prompts.map(|text| counter.count(&text)).sum(), recipe.budget.prompt);
    if tokens > limit {
        return Err(PrepareError::PromptTooLong { recipe: recipe.id(), tokens, limit });
    }
    Ok(())
}

/// Refuses a recipe of one mode in the other: its prompt and its tools are made for its own.
pub(super) fn check_mode(recipe: &Recipe, chosen: Option<Mode>) -> Result<(), PrepareError> {
    match (recipe.mode, chosen) {
        (Some(declared), Some(chosen)) if declared != chosen => {
            Err(PrepareError::WrongMode { recipe: recipe.id(), declared, chosen })
        }
        _ => Ok(()),
    }
}

pub(super) fn check_inputs(recipe: &Recipe, input: &RunInput) -> Result<(), PrepareError> {
    let context = !recipe.input_sections.is_empty();
    let takes: Vec<&str> =
        recipe.input_docs.iter().map(|doc| doc.name.as_str()).chain(context.then_some(CONTEXT)).collect();
    for document in &input.documents {
        if !takes.contains(&document.input.as_str()) {
            let listed = if takes.is_empty() { "no documents".to_owned() } else { takes.join(", ") };
            // `runbook.md` is most likely the input `runbook`.
            let name = &document.input;
            let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
            let meant = takes.iter().find(|known| **known == stem).or(takes.first());
            let example = meant.map(|meant| format!("; to pass it as one of them, use --doc {meant}=PATH"));
            return Err(PrepareError::UnknownDocument {
                recipe: recipe.id(),
                name: document.input.clone(),
                takes: listed,
                example: example.unwrap_or_default(),
            });
        }
    }
    for doc in recipe.input_docs.iter().filter(|doc| doc.required) {
        if !input.documents.iter().any(|document| document.input == doc.name) {
            return Err(PrepareError::MissingDocument { recipe: recipe.id(), name: doc.name.clone() });
        }
    }
    check_context(recipe, input)?;
    let takes_messages = recipe.slots.iter().any(|spec| spec.source == SlotSource::Messages);
    if !input.history.is_empty() && !takes_messages {
        let messages = match input.history.len() {
            1 => "one message".to_owned(),
            many => format!("{many} messages"),
        };
        let recipe = recipe.id();
        return Err(PrepareError::NoConversation { recipe, messages });
    }
    if let Some(name) = input.variant.as_deref().filter(|name| recipe.variant(Some(name)).is_none()) {
        let known: Vec<&str> = recipe.variants.keys().map(String::as_str).collect();
        return Err(PrepareError::UnknownVariant {
            recipe: recipe.id(),
            name: name.to_owned(),
            takes: if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("use {}", known.join(", "))
            },
        });
    }
    let chosen = recipe.variant(input.variant.as_deref()).map(|(name, _)| name);
    for doc in recipe.input_docs.iter().filter(|doc| !is_read_in(doc, chosen)) {
        if input.documents.iter().any(|document| document.input == doc.name) {
            let is_default = if input.variant.is_none() { ", the default" } else { "" };
            return Err(PrepareError::UnreadDocument {
                recipe: recipe.id(),
                name: doc.name.clone(),
                chosen: chosen.map_or_else(|| "none".to_owned(), |chosen| format!("{chosen}{is_default}")),
                readers: doc.variants.clone(),
            });
        }
    }
    for name in input.values.keys() {
        if !recipe.inputs.contains(name) {
            let takes: Vec<&str> = recipe.inputs.iter().map(String::as_str).collect();
            return Err(PrepareError::UnknownValue {
                recipe: recipe.id(),
                name: name.clone(),
                takes: if takes.is_empty() { "none".to_owned() } else { takes.join(", ") },
            });
        }
    }
    Ok(())
}

/// Refuses a document of sections that has none of those that the recipe reads.
fn check_context(recipe: &Recipe, input: &RunInput) -> Result<(), PrepareError> {
    let numbers = &recipe.input_sections;
    let is_read = |document: &InputDocument| {
        let selected = SectionId::ALL.into_iter().filter(|id| numbers.contains(&id.number()));
        is_blank(&document.text) || !larder_vault::select(&document.text, selected).sections.is_empty()
    };
    let given = |document: &&InputDocument| !numbers.is_empty() && document.input == CONTEXT;
    let Some(unread) = input.documents.iter().filter(given).find(|document| !is_read(document)) else {
        return Ok(());
    };
    let listed: Vec<String> = numbers.iter().map(|number| format!("§{number}")).collect();
    Err(PrepareError::UnreadContext {
        recipe: recipe.id(),
        name: unread.name.clone(),
        sections: listed.join(", "),
        has_some: !Sections::parse(&unread.text).sections.is_empty(),
    })
}
