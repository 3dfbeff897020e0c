//! Why a run cannot be prepared, and how to repair it.

use larder_core::recipe::{Mode, TemplateError};
use larder_text::sections::SectionId;

/// A run that cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A template needs a value that was not provided.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A recipe that requires the user's query has none.
    #[error(
        "recipe {recipe} needs the user's query; pass --query, or a context.md whose section 0 contains it"
    )]
    NoQuery {
        /// The recipe.
        recipe: String,
    },
    /// The values of the call make the prompt longer than the recipe allots to it.
    #[error(
        "the prompt of recipe {recipe} takes {tokens} tokens with the values of this call, {} more than \
         token_budget.prompt, which is {limit}; shorten the values, or raise token_budget.prompt",
        tokens - limit
    )]
    PromptTooLong {
        /// The recipe.
        recipe: String,
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens allotted to it.
        limit: usize,
    },
    /// A required document is missing.
    #[error("recipe {recipe} needs a document named `{name}`; pass it with --doc {name}=PATH")]
    MissingDocument {
        /// The recipe.
        recipe: String,
        /// The input's name.
        name: String,
    },
    /// A required document without text.
    #[error(
        "recipe {recipe} requires the document `{name}`, but {file} is empty; pass one with text with --doc {name}=PATH, or \
         set `required: false` for this input of the recipe"
    )]
    EmptyDocument {
        /// The recipe.
        recipe: String,
        /// The input's name.
        name: String,
        /// The document.
        file: String,
    },
    /// A document of sections without any that the recipe reads.
    #[error(
        "recipe {recipe} reads {sections} of {name}, but it has {}, so nothing of it is read; sections begin with lines \
         such as {:?}",
        if *has_some { "none of these sections" } else { "no section" },
        SectionId::UserQuery.heading()
    )]
    UnreadContext {
        /// The recipe.
        recipe: String,
        /// The document.
        name: String,
        /// The sections that the recipe reads.
        sections: String,
        /// Whether it has others.
        has_some: bool,
    },
    /// A recipe of one mode in a run of the other.
    #[error(
        "recipe {recipe} is for mode {} only, and this run is in mode {}; leave the mode out, or pass --mode {}",
        declared.as_str(),
        chosen.as_str(),
        declared.as_str()
    )]
    WrongMode {
        /// The recipe.
        recipe: String,
        /// Its mode.
        declared: Mode,
        /// The mode of the run.
        chosen: Mode,
    },
    /// A recipe whose answers must cite, and nothing to cite.
    #[error(
        "recipe {recipe} requires evidence, but nothing that an answer could cite was given, so none could pass; pass \
         {takes}, or remove quality_gates.evidence_required from the recipe"
    )]
    NothingToCite {
        /// The recipe.
        recipe: String,
        /// What it reads.
        takes: String,
    },
    /// A document that the recipe does not accept.
    #[error("recipe {recipe} accepts no document called {name}; it accepts {takes}{example}")]
    UnknownDocument {
        /// The recipe.
        recipe: String,
        /// The given name.
        name: String,
        /// What the recipe accepts.
        takes: String,
        /// How to give it on the command line; empty if the recipe accepts none.
        example: String,
    },
    /// A document that the chosen stage of the recipe does not read.
    #[error(
        "recipe {recipe} reads the document {name} in no {} but {}, and this run is in {chosen}; pass --variant {}, or leave \
         the document out",
        if readers.len() == 1 { "variant" } else { "variants" },
        readers.join(", "),
        readers.join(" or --variant ")
    )]
    UnreadDocument {
        /// The recipe.
        recipe: String,
        /// The input's name.
        name: String,
        /// The stage of the run, in words.
        chosen: String,
        /// The stages that read it.
        readers: Vec<String>,
    },
    /// A picture for a model that does not see.
    #[error(
        "recipe {recipe} is given the picture {picture}, but {model}, the model of layer {layer}, does not see; bind a \
         model with the capability `vision` to the layer under [models.layers]{}",
        if *layer == "EYES" { "" } else { ", or use a recipe of layer EYES" }
    )]
    Blind {
        /// The recipe.
        recipe: String,
        /// The picture's name.
        picture: String,
        /// The model.
        model: String,
        /// Its layer.
        layer: &'static str,
    },
    /// A stage that the recipe does not have.
    #[error("recipe {recipe} has no variant {name}; {takes}")]
    UnknownVariant {
        /// The recipe.
        recipe: String,
        /// The given name.
        name: String,
        /// The variants it has.
        takes: String,
    },
    /// A conversation for a recipe without a place for one.
    #[error(
        "recipe {recipe} has no slot of messages, so it takes no conversation, and {messages} came before the question; add a \
         slot with `from: messages`, or send the question alone"
    )]
    NoConversation {
        /// The recipe.
        recipe: String,
        /// How many messages were given, in words.
        messages: String,
    },
    /// A value that the recipe's prompts do not use.
    #[error("recipe {recipe} has no variable {name}; it accepts {takes}")]
    UnknownValue {
        /// The recipe.
        recipe: String,
        /// The given name.
        name: String,
        /// What the recipe accepts.
        takes: String,
    },
}
