//! The recipe that condenses each content type. The cookbook contains all of them; a project may override each. Runs
//! nothing.

use larder_condense::ContentType;
use larder_core::recipe::{Recipe, RecipeError};

/// The recipe with which a model condenses texts of a type (C40, R0-23.1).
pub(crate) const fn recipe_name(content_type: ContentType) -> &'static str {
    match content_type {
        ContentType::ContextDoc => "compress/compress_context",
        ContentType::ResearchDoc => "compress/compress_research",
        ContentType::PageDoc => "compress/compress_page_doc",
        ContentType::PriorTurn => "compress/compress_prior_turn",
        ContentType::Chat => "compress/compress_history",
        ContentType::ToolResult
        | ContentType::Json
        | ContentType::Log
        | ContentType::Diff
        | ContentType::Code
        | ContentType::Table => "compress/compress_tool_result",
        ContentType::Prose | ContentType::Markdown | ContentType::Html | ContentType::Generic => {
            "compress/generic"
        }
    }
}

/// A content type that a model should condense has no usable recipe.
#[derive(Debug, thiserror::Error)]
#[error(
    "content type {content_type} has no usable compression recipe {recipe}: {source}; fix it, or set \
     policy.use_llm_summarizer to false"
)]
pub struct MissingRecipe {
    /// The content type.
    pub content_type: &'static str,
    /// The recipe that is missing.
    pub recipe: &'static str,
    /// Why the recipe cannot be used.
    pub source: RecipeError,
}

/// Looks up the recipe of every content type, so that a missing one is found at startup and not during a run.
pub(crate) fn check<'r>(find: impl Fn(&str) -> Result<&'r Recipe, RecipeError>) -> Result<(), MissingRecipe> {
    ContentType::ALL.into_iter().try_for_each(|content_type| {
        let recipe = recipe_name(content_type);
        let missing = |source| MissingRecipe { content_type: content_type.as_str(), recipe, source };
        find(recipe).map(drop).map_err(missing)
    })
}

#[cfg(test)]
mod tests {
    use larder_text::tokens::Counter;

    use super::*;
    use crate::project::Project;

    #[test]
    fn the_recipe_of_every_content_type_ships() {
        let project = Project::builtin(&Counter::cl100k());
        check(|name| project.recipe(name)).unwrap();
    }

    #[test]
    fn a_missing_recipe_is_named_with_its_content_type() {
        let missing = |name: &str| -> Result<&'static Recipe, RecipeError> {
            Err(RecipeError::NotFound { name: name.to_owned(), help: String::new() })
        };
        let error = check(missing).unwrap_err().to_string();
        assert!(error.contains("context_doc") && error.contains("compress/compress_context"), "{error}");
    }

    #[test]
    fn compression_recipes_do_without_the_query_and_take_one_document() {
        let project = Project::builtin(&Counter::cl100k());
        for content_type in ContentType::ALL {
            let recipe = project.recipe(recipe_name(content_type)).unwrap();
            assert!(!recipe.needs_query && recipe.input_docs.len() == 1, "{content_type:?}");
            assert!(
                recipe.inputs.iter().eq(["preserve", "target_tokens"]),
                "{content_type:?}: {:?}",
                recipe.inputs
            );
        }
        let small = project.recipe("compress/compress_context").unwrap().budget;
        assert_eq!((small.total, small.prompt, small.input, small.output), (1000, 300, 500, 200), "R0-11.11");
    }
}
