//! Model selection: the model bound to a layer, its fallbacks, and the next layer to try.

use std::time::Duration;

use larder_core::recipe::{Layer, Mode};
use larder_models::table::{Capability, ModelSpec, Provider};

use crate::engine::Engine;
use crate::prepare::ModelLimits;
use crate::run::RunError;

/// A model that may answer a run.
pub struct ModelCandidate {
    /// Its name in the model table.
    pub name: String,
    pub(crate) layer: Layer,
    /// Its entry in the model table.
    pub spec: ModelSpec,
    pub(crate) temperature: Option<f32>,
    pub(crate) thinking_budget: Option<u32>,
    /// How fast its layer should answer.
    pub(crate) target: Option<Duration>,
}

impl ModelCandidate {
    /// What packing needs to know about the model.
    pub(crate) fn limits(&self) -> ModelLimits {
        ModelLimits {
            window: self.spec.window,
            input_limit: self.spec.input_limit,
            max_output: usize::try_from(self.spec.max_output).unwrap_or(usize::MAX),
            enforces_schema: self.spec.can(Capability::JsonSchema),
            // The embedded model is constrained by a grammar; its prompt does not contain the schema.
            schema_in_prompt: self.spec.provider != Provider::Embedded,
        }
    }
}

/// The layer that is tried if this one produces no answer that passes.
pub(crate) const fn next_layer(layer: Layer) -> Option<Layer> {
    match layer {
        Layer::Reflex | Layer::Nerves => Some(Layer::Mind),
        Layer::Mind => Some(Layer::Voice),
        Layer::Voice | Layer::Eyes => None,
    }
}

impl Engine {
    /// The model that a layer is bound to.
    ///
    /// # Errors
    /// If the table binds no model to the layer.
    pub fn candidate(&self, layer: Layer, mode: Option<Mode>) -> Result<ModelCandidate, RunError> {
        let found =
            self.models.table().resolve(layer, mode).ok_or(RunError::Unbound { layer: layer.as_str() })?;
        Ok(ModelCandidate {
            name: found.name.to_owned(),
            layer,
            spec: found.spec.clone(),
            temperature: found.temperature,
            thinking_budget: found.thinking_budget,
            target: found.target,
        })
    }
}
