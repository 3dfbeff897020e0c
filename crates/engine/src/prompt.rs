//! The prompt of one call, ready to be packed for the model that will answer it. Calls no model.

use larder_core::pack::{Overflow, Slot};
use larder_core::recipe::{Mode, Recipe};
use larder_models::table::Capability;
use larder_text::tokens::Counter;

use crate::candidate::ModelCandidate;
use crate::engine::Engine;
use crate::evidence::citing_cost;
use crate::inputs::RunInput;
use crate::prepare::{Caller, PrepareError, PreparedPrompt, levels, prepare};
use crate::recipe_tools::{OfferedTools, PHASES};
use crate::run::{RunError, RunKind};

/// Puts inputs into slots for a candidate. With condensing disabled, a prompt that does not fit whole is refused (C50).
pub(crate) fn prepare_for(
    engine: &Engine,
    recipe: &Recipe,
    input: &RunInput,
    candidate: &ModelCandidate,
    counter: &Counter,
    note: Option<&str>,
    kind: RunKind,
) -> Result<PreparedPrompt, RunError> {
    let documents = input.documents.iter().filter(|document| document.picture.is_some());
    let pictures = documents.map(|document| document.name.as_str());
    let next_to_it = input.pictures.first().map(|_| "next to the question");
    if !candidate.spec.can(Capability::Vision)
        && let Some(picture) = pictures.chain(next_to_it).next()
    {
        let (picture, recipe) = (picture.to_owned(), recipe.id());
        let (model, layer) = (candidate.name.clone(), candidate.layer.as_str());
        return Err(PrepareError::Blind { recipe, picture, model, layer }.into());
    }
    let limits = candidate.limits();
    let offered = offered(engine, recipe, input, candidate, kind);
    let tools = offered.as_ref().map(|offered| &*offered.names);
    let caller = Caller { user: engine.store.user(), tools };
    let mut prepared = prepare(recipe, input, limits, (counter, &engine.sizes()), note, caller)?;
    if let Some(offered) = offered {
        (prepared.tools, prepared.not_offered) = (offered.definitions, offered.missing);
    }
    prepared.request.layer = Some(candidate.layer);
    if let Some(schema) = recipe.output.schema.as_ref().filter(|_| recipe.gates.evidence_required)
        && limits.enforces_schema
        && limits.schema_in_prompt
    {
        prepared.request.framing.per_call += citing_cost(schema, &prepared.citable, counter);
    }
    let budget = &mut prepared.request.budget;
    budget.emergency_floor = engine.policy.emergency_floor.unwrap_or(0);
    if let Some(most) = engine.policy.prompt_budget_override {
        let beside = budget.output + budget.response_reserve + budget.emergency_floor;
        let most = most.saturating_add(beside);
        if most < budget.total {
            budget.declared = Some(budget.total);
            budget.total = most;
        }
    }
    let could_shrink = |slot: &Slot| slot.overflow != Overflow::REFUSE;
    if prepared.request.slots.iter().any(could_shrink) {
        prepared.switched_off = engine.policy.switched_off();
    }
    if !engine.policy.condenses() || matches!(kind, RunKind::Condensing { .. }) {
        prepared.request.slots.iter_mut().for_each(|slot| slot.overflow = Overflow::REFUSE);
    } else {
        levels::limit(&mut prepared.request, counter);
    }
    prepared.request.framing.per_call += prepared.tool_tokens(counter);
    Ok(prepared)
}

/// What a run offers its model of the tools that the recipe names; `None` where the model calls none of them itself.
fn offered(
    engine: &Engine,
    recipe: &Recipe,
    input: &RunInput,
    candidate: &ModelCandidate,
    kind: RunKind,
) -> Option<OfferedTools> {
    if recipe.category == PHASES || kind != RunKind::Answer {
        return None;
    }
    let mode = input.mode.or(recipe.mode).unwrap_or(Mode::Chat);
    let tools = engine.tools.as_ref().filter(|_| candidate.spec.can(Capability::Tools));
    Some(tools.map_or_else(|| OfferedTools::none(recipe), |tools| tools.offered(recipe, mode)))
}
