//! The recipes that a type names: whether they exist, have the stages as variants, take what they are given, and answer
//! with the fields and tags that the type reads.

use larder_core::recipe::{DiagnosticCode, OutputFormat, Recipe, RecipeError, SlotSource};

use super::Check;
use crate::kind::{Block, CallTime};

/// The category of recipes of replies.
const CATEGORY: &str = "converse";

impl<'a> Check<'a> {
    pub(super) fn recipes(&mut self) {
        let kind = self.kind;
        self.reply("/recipe", &kind.recipe);
        if let Some(small) = &kind.small {
            self.reply("/small/recipe", &small.recipe);
        }
        self.data("/summary/recipe", &kind.summary.recipe);
        for (at, stage) in kind.stages.iter().enumerate() {
            if let Some(recipe) = stage.summary.as_ref().and_then(|summary| summary.recipe.as_ref()) {
                self.data(&format!("/stages/{at}/summary/recipe"), recipe);
            }
            if let Some(opening) = &stage.opening {
                let pointer = format!("/stages/{at}/opening");
                if let Some(recipe) = self.recipe(&pointer, opening) {
                    self.has_variant(&pointer, recipe, &stage.name);
                }
            }
            for (number, field) in stage.fields.iter().enumerate() {
                self.field(&format!("/stages/{at}/fields/{number}"), field);
            }
        }
        let memory = &kind.memory;
        let named = [
            ("facts", Some(&memory.facts)),
            ("consolidate", Some(&memory.consolidate)),
            ("formatter", memory.formatter.as_ref()),
            ("validator", memory.validator.as_ref()),
            ("people", memory.people.as_ref()),
        ];
        for (key, name) in named.into_iter().filter_map(|(key, name)| Some((key, name?))) {
            self.data(&format!("/memory/{key}"), name);
        }
        if let Some(attacks) = &kind.safety.attacks {
            self.data("/safety/attacks", attacks);
        }
        self.memory_requests();
        self.calls();
        for (name, action) in &kind.actions {
            let pointer = format!("/actions/{}", name.replace('~', "~0").replace('/', "~1"));
            if let Some(recipe) = self.recipe(&format!("{pointer}/recipe"), &action.recipe) {
                self.reads(&pointer, recipe, &action.reads);
            }
        }
        self.fields();
    }

    /// The recipe with this name; one that cannot be used is reported.
    fn recipe(&mut self, pointer: &str, name: &str) -> Option<&'a Recipe> {
        let known = self.known;
        match known.recipe(name) {
            Ok(recipe) => Some(recipe),
            Err(RecipeError::NotFound { help, .. }) => {
                let message = format!("there is no recipe `{name}`");
                self.report(pointer, DiagnosticCode::UnknownReference, message, help);
                None
            }
            Err(error @ RecipeError::Invalid { .. }) => {
                self.report(
                    pointer,
                    DiagnosticCode::UnknownReference,
                    error.to_string(),
                    "correct the recipe",
                );
                None
            }
        }
    }

    /// A recipe whose answer is read as data.
    fn data(&mut self, pointer: &str, name: &str) {
        let Some(recipe) = self.recipe(pointer, name) else { return };
        if !matches!(recipe.output.format, OutputFormat::Json | OutputFormat::Yaml) {
            let message = format!("recipe {} answers with text where data is read", recipe.id());
            self.unfit(
                pointer,
                message,
                "write `output_format: json` with the schema of the answer in the recipe",
            );
        }
    }

    fn unfit(&mut self, pointer: &str, message: String, help: impl Into<String>) {
        self.report(pointer, DiagnosticCode::UnfitRecipe, message, help);
    }

    fn has_variant(&mut self, pointer: &str, recipe: &Recipe, stage: &str) {
        if !recipe.variants.is_empty() && recipe.variant(Some(stage)).is_none() {
            let message = format!("recipe {} has no variant `{stage}`", recipe.id());
            self.unfit(
                pointer,
                message,
                "add it under `variants` of the recipe, with the prompts of the stage",
            );
        }
    }

    /// A recipe of replies: a variant for each stage, the messages, and every block.
    fn reply(&mut self, pointer: &str, name: &str) {
        let Some(recipe) = self.recipe(pointer, name) else { return };
        let id = recipe.id();
        if recipe.category != CATEGORY {
            let message = format!("recipe {id} answers participants and is not of category {CATEGORY}");
            self.unfit(pointer, message, format!("move it to recipes/{CATEGORY}/"));
        }
        if recipe.variants.is_empty() {
            let message = format!("recipe {id} has no variants for the stages");
            self.unfit(pointer, message, "add `variants`, one for each stage");
        }
        for stage in &self.kind.stages {
            self.has_variant(pointer, recipe, &stage.name);
        }
        if !recipe.slots.iter().any(|slot| slot.source == SlotSource::Messages) {
            let message = format!("recipe {id} takes no messages");
            self.unfit(pointer, message, "add a slot with `from: messages`");
        }
        let docs: Vec<&str> = recipe.input_docs.iter().map(|doc| doc.name.as_str()).collect();
        let missing: Vec<&str> =
            Block::OF_REPLY.iter().map(|block| block.as_str()).filter(|name| !docs.contains(name)).collect();
        if !missing.is_empty() {
            let message = format!("recipe {id} does not read {}", missing.join(", "));
            self.unfit(pointer, message, "list each under `input_docs`, with `required: false`");
        }
        for doc in recipe.input_docs.iter().filter(|doc| doc.required) {
            let message = format!("recipe {id} needs `{}`, which a reply may lack", doc.name);
            self.unfit(pointer, message, "write `required: false`: empty blocks are left out");
        }
    }

    fn memory_requests(&mut self) {
        let memory = &self.kind.memory;
        let asks = !self.kind.intents.memory_request.phrases.is_empty();
        if asks && (memory.formatter.is_none() || memory.validator.is_none()) {
            let message = "participants may ask to remember something, but nothing checks what";
            let help = "name recipes as `memory.formatter` and `memory.validator`, or remove the phrases";
            self.report("/intents/memory_request", DiagnosticCode::Flow, message, help);
        }
    }

    fn calls(&mut self) {
        for (key, call) in self.kind.calls.all() {
            let pointer = format!("/calls/{key}");
            let asks_model = matches!(key, "references" | "planning");
            match &call.recipe {
                Some(name) if asks_model => {
                    self.data(&format!("{pointer}/recipe"), name);
                }
                Some(_) => {
                    let message = format!("`calls.{key}` has no recipe of its own");
                    let help = "remove it; other keys name the recipes of replies, facts and summaries";
                    self.report(&format!("{pointer}/recipe"), DiagnosticCode::Contradiction, message, help);
                }
                None if asks_model && call.runs != CallTime::Off => {
                    let message = format!("Missing required field: calls.{key}.recipe");
                    self.report(
                        &pointer,
                        DiagnosticCode::MissingField,
                        message,
                        "add it, or write `runs: off`",
                    );
                }
                None => {}
            }
        }
    }

    /// What an action reads is what its recipe takes.
    fn reads(&mut self, pointer: &str, recipe: &Recipe, reads: &[Block]) {
        let docs: Vec<(&str, bool)> =
            recipe.input_docs.iter().map(|doc| (doc.name.as_str(), doc.required)).collect();
        for (at, block) in reads.iter().enumerate() {
            let name = block.as_str();
            if !docs.iter().any(|(doc, _)| *doc == name) {
                let message = format!("recipe {} does not read `{name}`", recipe.id());
                let help = "add it to `input_docs` of the recipe, or remove it here";
                self.unfit(&format!("{pointer}/reads/{at}"), message, help);
            }
        }
        let lacking = docs
            .iter()
            .filter(|(doc, required)| *required && !reads.iter().any(|block| block.as_str() == *doc));
        for (doc, _) in lacking {
            let message = format!("recipe {} needs `{doc}`", recipe.id());
            self.unfit(&format!("{pointer}/reads"), message, format!("add `{doc}` to `reads`"));
        }
    }

    /// The tags and fields that the type reads are declared by the recipe.
    fn fields(&mut self) {
        let kind = self.kind;
        let Ok(recipe) = self.known.recipe(&kind.recipe) else { return };
        let named =
            [("tag", &kind.fields.tag), ("draft", &kind.fields.draft), ("dispatch", &kind.fields.dispatch)];
        let tags: Vec<&str> = recipe.output.tags.iter().map(|tag| tag.name.as_str()).collect();
        for (key, tag) in named.into_iter().filter_map(|(key, tag)| Some((key, tag.as_deref()?))) {
            let pointer = format!("/fields/{key}");
            if recipe.output.format != OutputFormat::Tagged {
                let message = format!("recipe {} answers without tags", recipe.id());
                self.unfit(&pointer, message, "write `output_format: tagged` in the recipe");
            } else {
                self.expect(&pointer, "tag", tag, tags.iter().copied());
            }
        }
        let hidden = |name: &str| recipe.output.tags.iter().any(|tag| tag.name == name && !tag.hidden);
        if kind.fields.tag.as_deref().is_some_and(hidden) {
            let message = "participants would see the tag with the fields";
            self.unfit("/fields/tag", message.to_owned(), "write `hidden: true` for it in the recipe");
        }
        if let Some(field) = &kind.fields.intensity {
            self.field("/fields/intensity", field);
        }
    }

    /// Reports a value that the schema of a field does not allow.
    pub(super) fn value(&mut self, pointer: &str, field: &str, value: &str) {
        let Ok(recipe) = self.known.recipe(&self.kind.recipe) else { return };
        let tag = recipe.output.tags.iter().find(|spec| Some(&spec.name) == self.kind.fields.tag.as_ref());
        let schema = tag.and_then(|tag| tag.schema.as_ref()?.get("properties")?.get(field));
        let Some(allowed) = schema.and_then(|schema| schema.get("enum")?.as_array()) else { return };
        let allowed: Vec<String> =
            allowed.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)).collect();
        if !allowed.iter().any(|one| one.eq_ignore_ascii_case(value)) {
            let message = format!("the field `{field}` is never `{value}`");
            self.report(
                pointer,
                DiagnosticCode::UnknownReference,
                message,
                format!("use {}", allowed.join(", ")),
            );
        }
    }

    /// Reports a field that the recipe's tag does not declare.
    pub(super) fn field(&mut self, pointer: &str, name: &str) {
        let kind = self.kind;
        let Ok(recipe) = self.known.recipe(&kind.recipe) else { return };
        let Some(tag) = kind.fields.tag.as_deref() else {
            let message = format!("`{name}` is a field, but `fields.tag` names no tag");
            return self.report(pointer, DiagnosticCode::UnknownReference, message, "add `fields: {tag: …}`");
        };
        let spec = recipe.output.tags.iter().find(|spec| spec.name == tag);
        let declared = spec.and_then(|spec| spec.schema.as_ref()?.get("properties")?.as_object());
        let declared: Vec<&str> =
            declared.map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default();
        self.expect(pointer, "field", name, declared.iter().copied());
    }
}
