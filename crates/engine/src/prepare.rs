//! Turns a recipe and a run's inputs into slots and parts. Knows recipes and packs; knows no model and no store.

mod checks;
mod error;
pub(crate) mod levels;
mod messages;
mod pinned;
mod ranking;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use larder_condense::ContentType;
use larder_core::pack::{
    CallBudget, CallFraming, Cap, Frame, Overflow, PackRequest, Part, PartKind, Protection, Slot,
};
use larder_core::recipe::own_slots::OUTPUT_SCHEMA;
pub(crate) use larder_core::recipe::own_slots::{NOTE, QUERY as QUERY_SLOT};
use larder_core::recipe::{
    InputDoc, PromptInputs, PromptTemplate, QueryFormat, Recipe, SlotSource, SlotSpec,
};
use larder_text::message::{Role, ToolDef};
use larder_text::sections::SectionId;
use larder_text::tokens::Counter;
use larder_text::words::is_blank;

use self::checks::{check_inputs, check_mode, check_prompt};
pub use self::error::PrepareError;
use crate::evidence::{CITING, how_to_cite};
use crate::inputs::{InputDocument, RunInput};

/// The document that is read by sections.
const CONTEXT: &str = "context.md";
/// What precedes the schema of an answer, where the prompt has to state it.
const ANSWER_SCHEMA: &str = include_str!("../cookbook/prompts/engine/answer_schema.md");
/// The slot of the documents of a recipe without `slots`.
const DOCUMENTS_SLOT: &str = "documents";
/// The newest section of `context.md` is shortened after the others (C27).
const NEWEST_SECTION_PRIORITY: u8 = 80;

/// What a recipe needs to know about the model that will answer.
#[derive(Debug, Clone, Copy)]
pub struct ModelLimits {
    /// Tokens of the window.
    pub window: usize,
    /// Tokens of the prompt, where the provider limits them apart from the reply.
    pub input_limit: Option<usize>,
    /// Maximum tokens of the model's reply.
    pub max_output: usize,
    /// Whether the provider enforces the schema itself; otherwise the prompt has to state it.
    pub enforces_schema: bool,
    /// Whether an enforced schema uses tokens of the window.
    pub schema_in_prompt: bool,
}

/// A prepared call: what to pack, and its query.
#[derive(Debug, Clone)]
pub struct PreparedPrompt {
    /// The request to the packer.
    pub request: PackRequest,
    /// Maximum tokens of the reply.
    pub max_output: usize,
    /// The parts that an answer may cite.
    pub citable: BTreeSet<String>,
    /// The tools that the model may call.
    pub tools: Vec<ToolDef>,
    /// Those that the recipe names and that it may not call.
    pub not_offered: Vec<String>,
    /// The setting by which condensing is switched off, where it could make the prompt smaller.
    pub switched_off: Option<&'static str>,
    /// Whether the tool that opens pointers may be among them.
    pub opens: bool,
    /// Tokens of the response reserve that are kept for what calls of tools add to the prompt.
    pub reserved: usize,
}

/// For whom a prompt is prepared, and what it may say that its model can call.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The user.
    pub user: &'a str,
    /// The tools that the run offers; `None` if those that the recipe names are not called by its model.
    pub tools: Option<&'a [String]>,
}

/// Puts a run's inputs of a caller into slots. The first counter is the model's, the second that of what a recipe allots.
/// `note` is shown to the model after the query: why its last answer was rejected.
pub fn prepare(
    recipe: &Recipe,
    input: &RunInput,
    limits: ModelLimits,
    (counter, sizes): (&Counter, &Counter),
    note: Option<&str>,
    caller: Caller<'_>,
) -> Result<PreparedPrompt, PrepareError> {
    check_mode(recipe, input.mode)?;
    check_inputs(recipe, input)?;
    let query = query_of(recipe, input)?;
    let names: Vec<String> = input.documents.iter().map(|document| document.name.clone()).collect();
    let rendered = recipe.render(&PromptInputs {
        query: query.as_deref().unwrap_or_default(),
        mode: input.mode,
        variant: input.variant.as_deref(),
        session_id: input.session_id.as_deref().unwrap_or_default(),
        turn_id: input.turn_id.as_deref().unwrap_or_default(),
        user: caller.user,
        tools: caller.tools,
        documents: &names,
        values: Some(&input.values),
    })?;
    check_prompt(recipe, &rendered, sizes)?;
    let max_output = recipe.budget.output.min(limits.max_output);
    let mut build = Build {
        recipe,
        input,
        query: query.as_deref(),
        slots: Vec::new(),
        parts: Vec::new(),
        ids: BTreeMap::new(),
    };
    if recipe.slots.is_empty() {
        let prompts = rendered.system.into_iter().chain(rendered.variant);
        build.prompt_slot(Slot::new("system").overflow(Overflow::REFUSE), Role::System, prompts);
        build.plain_inputs(query.as_deref().filter(|_| recipe.needs_query));
    } else {
        let query = query.as_deref().filter(|_| recipe.needs_query);
        for spec in &recipe.slots {
            build.slot(spec, &rendered.system, &rendered.variant, query);
        }
    }
    if let (false, Some(schema)) = (limits.enforces_schema, &recipe.output.schema) {
        let text = format!("{ANSWER_SCHEMA}{schema}");
        build.critical(OUTPUT_SCHEMA, OUTPUT_SCHEMA, Role::System, text, 0);
    }
    if let Some(query) = query.as_deref().filter(|_| recipe.needs_query) {
        let at = build.slots.len();
        build.critical(QUERY_SLOT, QUERY_SLOT, Role::User, query.to_owned(), at);
        if let Some(part) = build.parts.last_mut() {
            part.pictures.clone_from(&input.pictures);
        }
    }
    if let Some(note) = note {
        let at = build.slots.len();
        build.critical(NOTE, NOTE, Role::User, note.to_owned(), at);
    }
    let citable: BTreeSet<String> = build
        .parts
        .iter()
        .filter(|part| part.role == Role::User && !matches!(&*part.slot, QUERY_SLOT | NOTE))
        .map(|part| part.id.to_string())
        .collect();
    if recipe.gates.evidence_required && citable.is_empty() {
        let docs = recipe.input_docs.iter().map(|doc| doc.name.as_str());
        let takes: Vec<&str> = docs.chain((!recipe.input_sections.is_empty()).then_some(CONTEXT)).collect();
        let takes = if takes.is_empty() { "a conversation".to_owned() } else { takes.join(", ") };
        return Err(PrepareError::NothingToCite { recipe: recipe.id(), takes });
    }
    if let Some(text) = how_to_cite(recipe, &citable) {
        build.critical(CITING, CITING, Role::System, text, 0);
    }
    let schema = recipe.output.schema.as_ref().filter(|_| limits.enforces_schema && limits.schema_in_prompt);
    let budget = CallBudget {
        total: recipe.budget.total,
        // A prompt that has a limit of its own gets it in addition to the reply.
        window: limits.input_limit.map_or(limits.window, |input| {
            let beside = max_output.saturating_add(recipe.budget.response_reserve);
            limits.window.min(input.saturating_add(beside))
        }),
        output: max_output,
        response_reserve: recipe.budget.response_reserve,
        emergency_floor: 0,
        declared: None,
    };
    let request = PackRequest {
        slots: build.slots,
        parts: build.parts,
        budget,
        framing: CallFraming::for_call(counter, &[], schema),
        query,
        by_model: false,
        trigger: None,
        layer: None,
    };
    Ok(PreparedPrompt {
        request,
        max_output,
        citable,
        tools: Vec::new(),
        not_offered: Vec::new(),
        switched_off: None,
        opens: false,
        reserved: 0,
    })
}

/// Whether a document is read by sections instead of whole.
fn is_by_section(recipe: &Recipe, doc: &InputDoc) -> bool {
    doc.name == CONTEXT && !recipe.input_sections.is_empty()
}

/// The slots of a recipe without `slots` whose caps the settings may replace, by their names in layouts: section 0 holds
/// the query, which is always whole.
pub(crate) fn derived_slots(recipe: &Recipe) -> Vec<String> {
    let sections = recipe.input_sections.iter().filter(|number| **number > 0);
    let mut names: Vec<String> = sections.map(|number| format!("§{number}")).collect();
    if recipe.input_docs.iter().any(|doc| !is_by_section(recipe, doc)) {
        names.push(DOCUMENTS_SLOT.to_owned());
    }
    names
}

/// Whether a document is read in this stage.
fn is_read_in(doc: &InputDoc, variant: Option<&str>) -> bool {
    doc.variants.is_empty() || doc.variants.iter().any(|name| variant == Some(name))
}

/// The given query, or the one in section 0 of `context.md`.
fn query_of(recipe: &Recipe, input: &RunInput) -> Result<Option<String>, PrepareError> {
    let stored = || {
        let context = input.documents.iter().find(|document| document.input == CONTEXT)?;
        larder_vault::original_query(&context.text)
    };
    let query = input.query.clone().or_else(stored).filter(|query| !is_blank(query));
    if recipe.needs_query && query.is_none() {
        return Err(PrepareError::NoQuery { recipe: recipe.id() });
    }
    Ok(query)
}

struct Build<'a> {
    recipe: &'a Recipe,
    input: &'a RunInput,
    query: Option<&'a str>,
    slots: Vec<Slot>,
    parts: Vec<Part>,
    ids: BTreeMap<String, usize>,
}

impl Build<'_> {
    /// A unique id: the name, numbered from the second occurrence on.
    fn id(&mut self, name: &str) -> String {
        let seen = self.ids.entry(name.to_owned()).or_insert(0);
        *seen += 1;
        if *seen == 1 { name.to_owned() } else { format!("{name}-{seen}") }
    }

    fn critical(&mut self, slot: &str, id: &str, role: Role, text: String, at: usize) {
        let mut part = Part::new(id, slot, text);
        part.role = role;
        part.protection = Protection::Critical;
        part.kind = if slot == QUERY_SLOT { PartKind::Query } else { PartKind::Policy };
        if let (QUERY_SLOT, Some(QueryFormat { before, after })) = (slot, &self.recipe.query_format) {
            part.frame = Frame::Within { before: before.clone(), after: after.clone() };
        }
        self.parts.push(part);
        let at = if role == Role::System {
            self.slots.iter().take_while(|slot| matches!(&*slot.name, "system" | "agent")).count()
        } else {
            at
        };
        self.slots.insert(at, Slot::new(slot).overflow(Overflow::REFUSE));
    }

    fn prompt_slot(&mut self, slot: Slot, role: Role, prompts: impl Iterator<Item = PromptTemplate>) {
        for prompt in prompts {
            let id = self.id(&format!("prompt:{}", prompt.name));
            let mut part = Part::new(id, Arc::clone(&slot.name), prompt.text);
            part.role = role;
            part.protection = Protection::Critical;
            part.kind = PartKind::RolePrompt;
            self.parts.push(part);
        }
        self.slots.push(slot);
    }

    /// Adds the documents and sections of a recipe that declares no slots.
    fn plain_inputs(&mut self, query: Option<&str>) {
        self.sections(query, None);
        let docs: Vec<&InputDoc> =
            self.recipe.input_docs.iter().filter(|doc| !is_by_section(self.recipe, doc)).collect();
        if docs.is_empty() {
            return;
        }
        self.slots.push(Slot::new(DOCUMENTS_SLOT).cap(self.derived_cap(DOCUMENTS_SLOT, Cap::Flexible)));
        for doc in docs {
            self.documents(doc, DOCUMENTS_SLOT);
        }
    }

    /// The cap that the settings give a slot of a recipe without `slots`, or the usual one.
    fn derived_cap(&self, slot: &str, usual: Cap) -> Cap {
        self.recipe.derived_caps.get(slot).map_or(usual, |&tokens| Cap::Tokens(tokens))
    }

    /// Adds the selected sections: to a slot of the recipe, or one slot for each, capped at the section's own budget
    /// (R0-25.1). Section 0 always (R0-12.7), but without the query if `query`, which is a message of its own, repeats
    /// it.
    fn sections(&mut self, query: Option<&str>, slot: Option<&str>) {
        let input = self.input;
        if self.recipe.input_sections.is_empty() {
            return;
        }
        for document in input.documents.iter().filter(|document| document.input == CONTEXT) {
            self.sections_of(document, query, slot);
        }
    }

    fn sections_of(&mut self, document: &InputDocument, query: Option<&str>, slot: Option<&str>) {
        let selected =
            SectionId::ALL.into_iter().filter(|id| self.recipe.input_sections.contains(&id.number()));
        let view = larder_vault::select(&document.text, selected);
        let newest = view.sections.last().map(|section| section.id);
        let is_repeated = query.is_some() && query == larder_vault::original_query(&document.text).as_deref();
        for section in &view.sections {
            let number = section.id.number();
            let name = slot.map_or_else(|| format!("§{number}"), str::to_owned);
            // Named after the input, not its path: a model has to repeat it, and no prompt should depend on a vault's
            // location.
            let id = self.id(&format!("{}§{number}", document.input));
            let mut text = view.text_of(section);
            if section.id == SectionId::UserQuery && is_repeated {
                text = larder_vault::without_query(&text).into();
            }
            let mut part = Part::new(id, name.as_str(), text);
            part.source.name = format!("{}§{number}", document.name).into();
            part.content_type = match section.id {
                SectionId::ToolExecution => ContentType::ToolResult,
                _ => ContentType::Markdown,
            };
            part.kind = PartKind::Context;
            if section.id == SectionId::UserQuery {
                part.protection = Protection::Critical;
            } else {
                part.pins = pinned::lines(section.id, &part.text);
                if self.recipe.compression.preserve.contains(&format!("section_{number}")) {
                    part.protection = Protection::Protected;
                }
            }
            if Some(section.id) == newest {
                part.priority = NEWEST_SECTION_PRIORITY;
            }
            self.parts.push(part);
            if slot.is_none() {
                let budget = Cap::Tokens(section.id.token_budget());
                let is_query = section.id == SectionId::UserQuery;
                let cap = if is_query { Cap::Flexible } else { self.derived_cap(&name, budget) };
                self.slots.push(Slot::new(name).cap(cap));
            }
        }
    }

    fn documents(&mut self, doc: &InputDoc, slot: &str) {
        let input = self.input;
        let variant = self.recipe.variant(input.variant.as_deref()).map(|(name, _)| name);
        if !is_read_in(doc, variant) {
            return;
        }
        let documents = input.documents.iter().filter(|document| document.input == doc.name);
        let documents: Vec<&InputDocument> = documents.collect();
        let relevance = ranking::relevance(&documents, self.query);
        for (document, relevance) in documents.into_iter().zip(relevance) {
            let mut part = self.document(doc, document, slot);
            part.relevance = relevance;
            self.parts.push(part);
        }
    }

    fn document(&mut self, doc: &InputDoc, document: &InputDocument, slot: &str) -> Part {
        let short = doc.name.strip_suffix(".md").unwrap_or(&doc.name);
        let id = if document.slice.is_some() { self.numbered() } else { self.id(short) };
        let mut part = Part::new(id.as_str(), slot, Arc::clone(&document.text));
        part.source.name = document.name.as_str().into();
        part.source.slice.clone_from(&document.slice);
        part.content_type = larder_condense::detect(doc.content_type, &document.name, true, &document.text);
        part.kind = match part.content_type {
            _ if doc.name == CONTEXT => PartKind::Context,
            ContentType::ToolResult => PartKind::ToolResults,
            _ => PartKind::LinkedDocs,
        };
        part.priority = doc.priority;
        part.min_remaining = doc.min_remaining;
        if doc.protect || document.picture.is_some() {
            part.protection = Protection::Critical;
        }
        part.pictures.extend(document.picture.clone());
        let mut attributes = vec![("id".to_owned(), id), ("source".to_owned(), document.name.clone())];
        if let Some(slice) = &document.slice {
            attributes.push(("lines".to_owned(), format!("{}-{}", slice.lines.0, slice.lines.1)));
        }
        part.frame = match (&doc.label, &doc.heading) {
            (Some(label), _) => {
                Frame::Bare { heading: Some(label.clone()).filter(|label| !label.is_empty()) }
            }
            (None, Some(heading)) => Frame::Fenced { heading: format!("## {heading}") },
            (None, None) => Frame::Tagged { name: tag_of(&doc.name), attributes },
        };
        part
    }

    /// A short id for a slice of a document: a model has to repeat it.
    fn numbered(&mut self) -> String {
        let count = self.ids.entry("p".to_owned()).or_insert(0);
        *count += 1;
        format!("p{count}")
    }

    fn slot(
        &mut self,
        spec: &SlotSpec,
        system: &[PromptTemplate],
        variant: &[PromptTemplate],
        query: Option<&str>,
    ) {
        match spec.source {
            SlotSource::Prompt => self.prompt_slot(spec.slot.clone(), spec.role, system.iter().cloned()),
            SlotSource::Variant => self.prompt_slot(spec.slot.clone(), spec.role, variant.iter().cloned()),
            SlotSource::Messages => self.messages(spec),
            SlotSource::Documents => {
                self.slots.push(spec.slot.clone());
                let recipe = self.recipe;
                if spec.docs.iter().any(|name| name == CONTEXT) {
                    self.sections(query, Some(&spec.slot.name));
                }
                let is_inside =
                    |doc: &&InputDoc| spec.docs.contains(&doc.name) && !is_by_section(recipe, doc);
                let docs: Vec<&InputDoc> = recipe.input_docs.iter().filter(is_inside).collect();
                docs.into_iter().for_each(|doc| self.documents(doc, &spec.slot.name));
            }
        }
    }
}

/// A tag name from an input's name: `build_logs`, `context.md` → `context`.
fn tag_of(input: &str) -> String {
    let stem = input.split('.').next().unwrap_or(input);
    let tag: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    match tag.strip_suffix('s').filter(|singular| input == "passages" && !singular.is_empty()) {
        Some(singular) => singular.to_owned(),
        None if tag.is_empty() => "document".to_owned(),
        None => tag,
    }
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
