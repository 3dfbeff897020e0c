//! Which recipe condenses which content type. The cookbook ships them all; a project may bring its own.

use larder_condense::ContentType;
use larder_core::recipe::{Recipe, RecipeError};

use crate::engine::Engine;

/// Content type, its name, and the recipe by which a model condenses it (C40, R0-23.1).
pub const COMPRESSION_RECIPES: [(ContentType, &str, &str); 15] = [
    (ContentType::ContextDoc, "context_doc", "compress/compress_context"),
    (ContentType::ResearchDoc, "research_doc", "compress/compress_research"),
    (ContentType::PageDoc, "page_doc", "compress/compress_page_doc"),
    (ContentType::ToolResult, "tool_result", "compress/compress_tool_result"),
    (ContentType::PriorTurn, "prior_turn", "compress/compress_prior_turn"),
    (ContentType::Prose, "prose", "compress/generic"),
    (ContentType::Markdown, "markdown", "compress/generic"),
    (ContentType::Chat, "chat", "compress/compress_history"),
    (ContentType::Json, "json", "compress/compress_tool_result"),
    (ContentType::Log, "log", "compress/compress_tool_result"),
    (ContentType::Diff, "diff", "compress/compress_tool_result"),
    (ContentType::Code, "code", "compress/compress_tool_result"),
    (ContentType::Html, "html", "compress/generic"),
    (ContentType::Table, "table", "compress/compress_tool_result"),
    (ContentType::Generic, "generic", "compress/generic"),
];

/// A content type that no model could condense, though the settings ask for it.
#[derive(Debug, thiserror::Error)]
#[error(
    "content type {content_type} has no usable compression recipe {recipe}: {source}; mend it, or set \
     policy.use_llm_summarizer to false"
)]
pub struct MissingRecipe {
    /// The content type.
    pub content_type: &'static str,
    /// The recipe it needs.
    pub recipe: &'static str,
    /// What is wrong.
    pub source: RecipeError,
}

/// The name of a content type, as recipes and the command line write it.
pub(super) fn name(content_type: ContentType) -> &'static str {
    row(content_type).1
}

fn row(content_type: ContentType) -> (ContentType, &'static str, &'static str) {
    let found = COMPRESSION_RECIPES.into_iter().find(|(known, ..)| *known == content_type);
    found.unwrap_or((ContentType::Generic, "generic", "compress/generic"))
}

/// Finds the recipe of every content type, so that a missing one stops the start and not a run.
pub(crate) fn check<'r>(find: impl Fn(&str) -> Result<&'r Recipe, RecipeError>) -> Result<(), MissingRecipe> {
    COMPRESSION_RECIPES.into_iter().try_for_each(|(_, content_type, recipe)| {
        find(recipe).map(drop).map_err(|source| MissingRecipe { content_type, recipe, source })
    })
}

impl Engine {
    /// The recipe by which a model condenses this content type.
    pub(super) fn compression_recipe(&self, content_type: ContentType) -> Result<&Recipe, RecipeError> {
        self.recipe_or_builtin(row(content_type).2)
    }
}

#[cfg(test)]
mod tests {
    use larder_text::tokens::Counter;

    use super::*;
    use crate::project::Project;

    #[test]
    fn every_content_type_has_its_row_and_its_recipe_ships() {
        for (content_type, name, _) in COMPRESSION_RECIPES {
            assert_eq!(serde_json::to_value(content_type).ok(), Some(name.into()));
        }
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
        for (_, name, recipe) in COMPRESSION_RECIPES {
            let recipe = project.recipe(recipe).unwrap();
            assert!(!recipe.needs_query && recipe.input_docs.len() == 1, "{name}");
            assert!(recipe.inputs.iter().eq(["preserve", "target_tokens"]), "{name}: {:?}", recipe.inputs);
        }
        let small = project.recipe("compress/compress_context").unwrap().budget;
        assert_eq!((small.total, small.prompt, small.input, small.output), (1000, 300, 500, 200), "R0-23.2");
    }
}
