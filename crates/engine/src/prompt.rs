//! The prompt of one call, ready to be packed for the model that will answer it. Calls no model.

use larder_core::pack::Overflow;
use larder_core::recipe::Recipe;
use larder_models::table::Capability;
use larder_text::tokens::Counter;

use crate::candidate::ModelCandidate;
use crate::engine::Engine;
use crate::evidence::citing_cost;
use crate::inputs::RunInput;
use crate::prepare::{PrepareError, PreparedPrompt, levels, prepare};
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
    let mut prepared = prepare(recipe, input, limits, (counter, &engine.sizes()), note, engine.store.user())?;
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
        budget.total = budget.total.min(most.saturating_add(beside));
    }
    if !engine.policy.condenses() || matches!(kind, RunKind::Condensing { .. }) {
        prepared.request.slots.iter_mut().for_each(|slot| slot.overflow = Overflow::REFUSE);
    } else {
        levels::limit(&mut prepared.request, counter);
    }
    Ok(prepared)
}
