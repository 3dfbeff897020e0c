//! Why a run returned no answer. Knows no exit codes and no HTTP: those tables are at the edge.

use larder_condense::CondenseError;
use larder_core::output;
use larder_core::pack::PackError;
use larder_core::recipe::RecipeError;
use larder_models::chat::ModelError;
use larder_store::{LOCAL_USER, RunId, StoreError};

use super::outcome::{FailedCall, RunReceipt};
use crate::prepare::PrepareError;

/// A run without an answer. Its record, if there is one, is in the store.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The recipe does not exist or has errors; an intervention was raised (R0-18.2).
    #[error("{source}{}", hint(source))]
    Recipe {
        /// What is wrong.
        source: RecipeError,
        /// The intervention's id.
        intervention: u64,
    },
    /// The recipe to explain, or of a run in the background, does not exist or has errors.
    #[error("{source}{}", hint(source))]
    Unknown {
        /// What is wrong.
        source: RecipeError,
    },
    /// The inputs do not fit the recipe.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The parts are inconsistent.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The prompt cannot fit; nothing was sent.
    #[error("nothing was sent: {}", refused(receipt))]
    Refused {
        /// The receipt, which shows what was tried.
        receipt: Box<RunReceipt>,
        /// The run's record.
        run_id: RunId,
    },
    /// No model could be reached, including fallbacks.
    #[error("{}{source}{}{}", before(&around.earlier), around.fix, not_asked(around.withheld.as_ref()))]
    Model {
        /// The last failure.
        source: ModelError,
        /// What else is to be said of it.
        around: Box<AroundFailure>,
        /// The run's record.
        run_id: RunId,
    },
    /// No model is bound to the layer.
    #[error(
        "layer {layer} is bound to no model; bind it under [models.layers] in larder.toml, or start from a table that \
         ships, with `table = \"embedded\"` under [models]"
    )]
    Unbound {
        /// The layer.
        layer: &'static str,
    },
    /// Every answer failed its gates; an intervention was raised (R0-13.6).
    #[error(
        "no answer passed the checks of recipe {recipe}: {failures}; see `larder interventions show {intervention}{}`",
        whose(user)
    )]
    Gates {
        /// The recipe.
        recipe: String,
        /// The problems of the last answer.
        failures: String,
        /// What the last answer cites although it was not given it.
        unknown_citations: Box<[String]>,
        /// The intervention's id.
        intervention: u64,
        /// The user it belongs to.
        user: String,
        /// The run's record.
        run_id: RunId,
    },
    /// A planning or condensing call returned nothing useful, and rules take over; or a run in the background did, and its
    /// queue repeats it.
    #[error("recipe {recipe} returned nothing useful: {failures}")]
    Unusable {
        /// The recipe.
        recipe: String,
        /// The problems of the answer.
        failures: String,
        /// The run's record.
        run_id: RunId,
    },
    /// No answer passed its checks before the spending limit was reached.
    #[error(
        "no answer of recipe {recipe} passed its checks before the spending limit was reached: {failures}"
    )]
    Spent {
        /// The recipe.
        recipe: String,
        /// The problems of the last answer.
        failures: String,
        /// The run's record.
        run_id: RunId,
    },
    /// The next call may take more than the caller permits; it was not made.
    #[error("the next call, of recipe {recipe}, was not made: {why}")]
    Unaffordable {
        /// The recipe.
        recipe: String,
        /// What it may take, and what is left.
        why: String,
        /// The run's record.
        run_id: RunId,
    },
    /// A text cannot be condensed to its target.
    #[error(transparent)]
    Condense(#[from] CondenseError),
    /// The recipe's schema cannot be compiled.
    #[error("recipe {recipe}: {source}")]
    Schema {
        /// The recipe.
        recipe: String,
        /// What is wrong.
        source: output::SchemaError,
    },
    /// Something that must be persisted could not be.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is said of a failure besides itself.
#[derive(Debug)]
pub struct AroundFailure {
    /// The failures before it.
    pub earlier: Vec<FailedCall>,
    /// What sets the limit that it passed; may be empty.
    pub fix: String,
    /// The fallback that was not asked because of the recipe's risk.
    pub withheld: Option<WithheldFallback>,
}

/// A fallback that needs a human's consent.
#[derive(Debug)]
pub struct WithheldFallback {
    /// The model's name in the table.
    pub fallback: String,
    /// The intervention's id.
    pub intervention: u64,
    /// The user it belongs to.
    pub user: String,
}

impl RunError {
    /// Whether the failed call may have been processed and billed nevertheless.
    pub const fn may_be_billed(&self) -> bool {
        matches!(self, Self::Model { source, .. } if is_open(source))
    }
}

/// Whether a call that failed this way may have been processed nevertheless: its outcome is unknown.
pub(crate) const fn is_open(error: &ModelError) -> bool {
    matches!(error, ModelError::Timeout { .. })
}

/// Whether a call that failed this way used no tokens: nothing was sent, or the provider refused it.
pub(crate) const fn used_nothing(error: &ModelError) -> bool {
    match error {
        ModelError::Timeout { .. } | ModelError::Protocol { .. } => false,
        // A model works until its time is up, and a proxy's timeout does not mean that it has stopped.
        ModelError::Server { status, .. } => !matches!(*status, 408 | 504 | 524),
        _ => true,
    }
}

/// Failures that another model's followed.
fn before(earlier: &[FailedCall]) -> String {
    earlier.iter().map(|call| format!("{}; ", call.error)).collect()
}

fn not_asked(withheld: Option<&WithheldFallback>) -> String {
    let said = |WithheldFallback { fallback, intervention, user }: &WithheldFallback| {
        format!(
            "; the recipe has risk_level high, so its fallback {fallback} was not asked; see `larder interventions show \
             {intervention}{}`",
            whose(user)
        )
    };
    withheld.map(said).unwrap_or_default()
}

fn hint(error: &RecipeError) -> String {
    if error.help().is_empty() { String::new() } else { format!("; {}", error.help()) }
}

/// The option that makes a command look up an id of this user, quoted for a shell.
fn whose(user: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "-_.@+".contains(char);
    match user {
        LOCAL_USER => String::new(),
        user if user.chars().all(plain) => format!(" --user {user}"),
        user => format!(" --user '{}'", user.replace('\'', "'\\''")),
    }
}

fn refused(receipt: &RunReceipt) -> String {
    receipt.receipt.refused.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// The class of an error, as stored in records; never its payload (C104).
pub fn class(error: &RunError) -> &'static str {
    match error {
        RunError::Recipe { .. } | RunError::Unknown { .. } => "recipe",
        RunError::Prepare(_) | RunError::Pack(_) => "input",
        RunError::Refused { .. } => "refused",
        RunError::Unbound { .. } => "unbound_layer",
        RunError::Gates { .. } | RunError::Unusable { .. } | RunError::Spent { .. } => "gates",
        RunError::Unaffordable { .. } => "unaffordable",
        RunError::Condense(_) => "condense",
        RunError::Schema { .. } => "schema",
        RunError::Store(_) => "store",
        RunError::Model { source, .. } => class_of_model(source),
    }
}

/// The class of a failed call.
pub const fn class_of_model(error: &ModelError) -> &'static str {
    match error {
        ModelError::Timeout { .. } => "timeout",
        ModelError::RateLimited { .. } => "rate_limited",
        ModelError::Server { .. } => "server",
        ModelError::Unreachable { .. } => "unreachable",
        ModelError::WindowExceeded { .. } => "window_exceeded",
        _ => "model",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_user_unless_it_would_look_there_anyway() {
        for (user, words) in
            [(LOCAL_USER, ""), ("ada@x.example", " --user ada@x.example"), ("o'b", r" --user 'o'\''b'")]
        {
            assert_eq!(whose(user), words);
        }
    }
}
