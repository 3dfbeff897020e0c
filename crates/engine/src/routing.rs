//! Applies a preset of the router to a run: what is known of its request and of the models, and the layer that follows.

use std::collections::BTreeMap;

use larder_core::recipe::{Layer, Mode, Recipe};
use larder_core::route::{Preset, RouteDecision, RouteDocument, RouteRequest, TierModel};
use larder_models::chat::Usage;
use larder_models::table::ModelTable;
use larder_text::message::{Message, Role};
use larder_text::tokens::Counter;

use crate::engine::Engine;
use crate::inputs::RunInput;

/// What the router of a run is told besides the inputs.
#[derive(Debug, Clone, Default)]
pub struct RouteInput {
    /// The preset; the recipe's if there is none.
    pub preset: Option<String>,
    /// Values such as `intensity`.
    pub fields: BTreeMap<String, serde_json::Value>,
    /// The smallest tier that may answer, because a rule for safety demands it; a name that the preset does not have means
    /// its largest.
    pub floor: Option<String>,
}

/// Decides by a preset which tier answers a request that may be answered with `output` tokens.
pub fn decide(
    preset: &Preset,
    models: &ModelTable,
    mode: Option<Mode>,
    (request, output): (&RouteRequest, usize),
    floor: Option<&str>,
) -> RouteDecision {
    preset.decide(request, floor, |tier| tier_model(models, tier.layer, mode, (request.tokens, output)))
}

fn tier_model(
    models: &ModelTable,
    layer: Layer,
    mode: Option<Mode>,
    (tokens, output): (usize, usize),
) -> Option<TierModel> {
    let found = models.resolve(layer, mode)?;
    let number = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
    let usage =
        Usage { input: number(tokens.saturating_sub(output)), output: number(output), ..Usage::default() };
    Some(TierModel {
        model: found.name.to_owned(),
        window: found.spec.window,
        capabilities: found.spec.capabilities.iter().map(ToString::to_string).collect(),
        cost: found.spec.prices.as_ref().map(|prices| prices.cost(&usage).total),
        latency_ms: found.target.and_then(|target| u64::try_from(target.as_millis()).ok()),
    })
}

impl Engine {
    /// The layer of a run, decided by its router; `None` if neither the recipe nor the inputs name one.
    pub fn route(&self, recipe: &Recipe, input: &RunInput) -> Option<RouteDecision> {
        let name = input.routing.preset.as_ref().or(recipe.router.as_ref())?;
        let Some(preset) = self.project.routers().get(name) else {
            tracing::warn!(
                router = name,
                "the router does not exist or has errors; the recipe's layer answers"
            );
            return None;
        };
        // Sizes are estimates, whatever tier answers.
        let mode = input.mode.or(recipe.mode);
        let model = self.models.table().resolve(recipe.layer, mode);
        let counter = model.map_or_else(Counter::bytes, |model| self.counter(model.spec));
        let request = request(recipe, input, &counter);
        let floor = input.routing.floor.as_deref();
        let decision = decide(preset, self.models.table(), mode, (&request, recipe.budget.output), floor);
        tracing::info!(
            event = "routed",
            router = name,
            tier = decision.tier,
            layer = decision.layer.as_str(),
            score = decision.score,
            recipe = recipe.id(),
            "model tier chosen"
        );
        Some(decision)
    }

    /// The layers that may answer a run of a recipe: those of its router's tiers, or its own.
    pub fn answering_layers(&self, recipe: &Recipe, preset: Option<&str>) -> Vec<Layer> {
        let router = preset.or(recipe.router.as_deref()).and_then(|name| self.project.routers().get(name));
        match router {
            Some(preset) => preset.tiers.iter().map(|tier| tier.layer).collect(),
            None => vec![recipe.layer],
        }
    }
}

/// What is known of a run before its call.
fn request(recipe: &Recipe, input: &RunInput, counter: &Counter) -> RouteRequest {
    let said = |message: &&Message| matches!(message.role, Role::User | Role::Assistant);
    let history: Vec<String> = input.history.iter().filter(said).map(Message::joined_text).collect();
    let message = input.query.clone().unwrap_or_default();
    let mut tokens =
        history.iter().chain([&message]).map(|text| counter.sampled(text)).fold(0, usize::saturating_add);
    let mut documents = Vec::new();
    for document in input.documents.iter().filter(|document| !document.text.trim().is_empty()) {
        let size = counter.sampled(&document.text);
        tokens = tokens.saturating_add(size);
        let declared = recipe.input_docs.iter().find(|doc| doc.name == document.input);
        // A block with a label is part of what is said, such as a summary, and nothing that was attached.
        if declared.is_none_or(|doc| doc.label.is_none()) {
            let declared = declared.and_then(|doc| doc.content_type);
            let kind = larder_condense::detect(declared, &document.name, true, &document.text);
            let kind = serde_json::to_value(kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
            documents.push(RouteDocument { kind: kind.unwrap_or_default(), tokens: size });
        }
    }
    // The packer makes everything fit the recipe's budget.
    let budget = recipe.budget;
    let prompt = tokens.saturating_add(budget.prompt).min(budget.total.saturating_sub(budget.output));
    let format = serde_json::to_value(recipe.output.format).ok();
    RouteRequest {
        message,
        history,
        tasks: vec![recipe.name.clone(), recipe.category.clone(), recipe.id()],
        stage: input.variant.clone().or_else(|| recipe.default_variant.clone()),
        output: format.and_then(|format| format.as_str().map(str::to_owned)),
        fields: input.routing.fields.clone(),
        images: input.pictures.len()
            + input.documents.iter().filter(|document| document.picture.is_some()).count(),
        tools: recipe.tools.len(),
        documents,
        tokens: prompt.saturating_add(budget.output),
    }
}
