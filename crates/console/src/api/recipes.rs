//! Recipes over REST: what there is, and one whole.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use larder_core::recipe::{Diagnostic, Recipe};
use larder_gateway::app::App;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::Path;

/// The endpoints of recipes.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, list, one);
}

/// Every recipe, and what is wrong with those that cannot be used.
#[derive(Debug, Serialize, ToSchema)]
pub struct Recipes {
    /// Those that can be used, by name.
    pub recipes: Vec<RecipeSummary>,
    /// Errors and warnings of the project's files.
    pub problems: Vec<Diagnostic>,
}

/// One recipe in a list.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecipeSummary {
    /// `category/name`; `model: "recipe/category/name"` runs it.
    pub id: String,
    /// What it is for.
    pub description: String,
    /// The layer whose model runs it.
    pub layer: String,
    /// Changes with any byte of the recipe or its prompts.
    pub version: String,
    /// Tokens of one call in all.
    pub total_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
    /// Documents that it reads.
    pub documents: Vec<String>,
}

impl From<&Recipe> for RecipeSummary {
    fn from(recipe: &Recipe) -> Self {
        Self {
            id: recipe.id(),
            description: recipe.description.clone(),
            layer: recipe.layer.as_str().to_owned(),
            version: recipe.version.to_hex(),
            total_tokens: recipe.budget.total as u64,
            output_tokens: recipe.budget.output as u64,
            documents: recipe.input_docs.iter().map(|doc| doc.name.clone()).collect(),
        }
    }
}

/// List recipes
#[utoipa::path(
    get, path = "/api/v1/recipes", tag = "recipes",
    responses((status = 200, description = "Every recipe", body = Recipes))
)]
pub async fn list(State(app): State<Arc<App>>) -> Json<Recipes> {
    let project = app.project();
    let report = project.check();
    let recipes = report.recipes.iter().map(RecipeSummary::from).collect();
    Json(Recipes { recipes, problems: report.diagnostics.clone() })
}

/// Show one recipe, including its prompts
#[utoipa::path(
    get, path = "/api/v1/recipes/{category}/{name}", tag = "recipes",
    params(("category" = String, Path, description = "Its folder"), ("name" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "The checked recipe", body = Object),
        (status = 404, description = "No such recipe, or it has errors", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn one(
    State(app): State<Arc<App>>,
    Path((category, name)): Path<(String, String)>,
) -> Result<Json<Recipe>, Problem> {
    let project = app.project();
    let found = project.recipe(&format!("{category}/{name}"));
    found.cloned().map(Json).map_err(|error| {
        let help = error.help();
        Problem::not_found(if help.is_empty() { error.to_string() } else { format!("{error}; {help}") })
    })
}
