//! Recipes as prompts: their arguments, and the messages of their packs.

use larder_core::recipe::{Recipe, SlotSource};
use larder_engine::executor::RunError;
use larder_text::message::Role as Speaker;
use rmcp::model::{ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use super::sources::{CallError, Inputs, unfit_inputs};
use super::{McpCaller, brief};

const QUERY: &str = "query";
const VARIANT: &str = "variant";
const HISTORY: &str = "history";
/// The document of recipes with sections.
const CONTEXT: &str = "context.md";
/// How to give a document.
const SOURCE: &str = "a pointer, a path, or the text itself if it contains a line break";

/// Every recipe of the project.
pub(super) fn list(caller: &McpCaller) -> Vec<Prompt> {
    caller.engine.project.check().recipes.iter().map(prompt).collect()
}

fn prompt(recipe: &Recipe) -> Prompt {
    Prompt::new(recipe.id(), Some(recipe.description.clone()), Some(arguments(recipe)))
}

/// The arguments of a recipe. Arguments of prompts are texts, so a document is given by its source.
fn arguments(recipe: &Recipe) -> Vec<PromptArgument> {
    let argument = |name: &str, what: String, required| {
        PromptArgument::new(name).with_description(what).with_required(required)
    };
    // A context.md holds the query too.
    let has_context = !recipe.input_sections.is_empty();
    let mut found = Vec::new();
    if recipe.needs_query {
        found.push(argument(QUERY, "The user's query, verbatim".to_owned(), !has_context));
    }
    for doc in &recipe.input_docs {
        found.push(argument(&doc.name, format!("A document: {SOURCE}"), doc.required));
    }
    if has_context && !recipe.input_docs.iter().any(|doc| doc.name == CONTEXT) {
        found.push(argument(CONTEXT, format!("The document of the turn: {SOURCE}"), false));
    }
    for name in &recipe.inputs {
        let required = recipe.requires_value(name);
        found.push(argument(name, "A value of the recipe's prompts".to_owned(), required));
    }
    if takes_history(recipe) {
        let what = "The messages so far, a JSON array as OpenAI's or Anthropic's API writes it: a pointer, a path, or the \
                    array itself";
        found.push(argument(HISTORY, what.to_owned(), false));
    }
    if !recipe.variants.is_empty() {
        let stages: Vec<&str> = recipe.variants.keys().map(String::as_str).collect();
        found.push(argument(VARIANT, format!("The stage: {}", stages.join(", ")), false));
    }
    found
}

/// Whether a recipe has a place for a conversation, and no document or value of that name.
fn takes_history(recipe: &Recipe) -> bool {
    let is_taken = recipe.inputs.contains(HISTORY) || recipe.input_docs.iter().any(|doc| doc.name == HISTORY);
    !is_taken && recipe.slots.iter().any(|spec| spec.source == SlotSource::Messages)
}

/// The messages of a recipe's pack, within its budget and with every pointer stored.
pub(super) fn get(
    caller: &McpCaller,
    name: &str,
    arguments: JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let unfit = |words: String| ErrorData::invalid_params(words, None);
    let recipe = caller.engine.recipe_or_builtin(name).map_err(|error| {
        unfit(format!(
            "{}; prompts/list names the existing ones. {}",
            brief(&error.to_string()),
            error.help()
        ))
    })?;
    let inputs = inputs(recipe, arguments).map_err(|CallError(words)| unfit(words))?;
    let input = inputs.read(caller).map_err(|CallError(words)| unfit(words))?;
    let receipt = match caller.engine.explain(&recipe.id(), &input) {
        Ok(receipt) => receipt,
        Err(error @ RunError::Store(_)) => return Err(ErrorData::internal_error(error.to_string(), None)),
        Err(error) => return Err(unfit(unfit_inputs(&error))),
    };
    if let Some(refusal) = &receipt.receipt.refused {
        return Err(unfit(refusal.to_string()));
    }
    let messages = receipt.messages.iter().map(|message| {
        // The protocol has no system role, so system messages come first, as user messages.
        let role = if message.role == Speaker::Assistant { Role::Assistant } else { Role::User };
        PromptMessage::new_text(role, message.joined_text())
    });
    Ok(GetPromptResult::new(messages.collect()).with_description(recipe.description.clone()))
}

fn inputs(recipe: &Recipe, arguments: JsonObject) -> Result<Inputs, CallError> {
    let known = self::arguments(recipe);
    let mut inputs = Inputs::default();
    for (name, value) in arguments {
        let Value::String(value) = value else {
            return Err(CallError(format!("argument {:?} is not a string", brief(&name))));
        };
        if !known.iter().any(|argument| argument.name == name) {
            let names: Vec<&str> = known.iter().map(|argument| argument.name.as_str()).collect();
            return Err(CallError(format!(
                "{} takes no {:?}; it takes {}",
                recipe.id(),
                brief(&name),
                names.join(", ")
            )));
        }
        let is_document = name == CONTEXT || recipe.input_docs.iter().any(|doc| doc.name == name);
        if is_document {
            inputs.documents.push((name, value));
        } else if recipe.inputs.contains(&name) {
            inputs.values.insert(name, value);
        } else if name == HISTORY {
            inputs.history = Some(value);
        } else if name == VARIANT {
            inputs.variant = Some(value);
        } else {
            inputs.query = Some(value);
        }
    }
    Ok(inputs)
}
