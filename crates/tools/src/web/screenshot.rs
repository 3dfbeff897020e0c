//! Pages that draw what they say: the screenshot of a page with little text is read by a recipe of layer EYES, where a model
//! that sees is bound to it (R1-2.16).

use std::time::Duration;

use larder_core::recipe::Layer;
use larder_engine::executor::Meter;
use larder_engine::inputs::InputDocument;
use larder_models::table::Capability;
use larder_text::picture::Picture;
use serde::Deserialize;
use tokio::time::Instant;

use super::capture::Visited;
use crate::context::ToolContext;
use crate::sub_run::run_recipe;

/// The recipe that reads screenshots.
pub(crate) const RECIPE: &str = "eyes/describe_capture";
/// Time for one screenshot.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);
/// Characters other than white space below which a page has little text.
const LITTLE: usize = 200;

/// What the recipe answers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Screenshot {
    text: String,
    description: String,
}

/// Adds what the screenshot of a page with little text shows. The user's query is in the prompt (R1-3.67).
pub(super) async fn complete(page: &mut Visited, context: &ToolContext<'_>) {
    let has_little = page.text.chars().filter(|char| !char.is_whitespace()).count() < LITTLE;
    let sees =
        |layer| context.engine.candidate(layer, None).is_ok_and(|eyes| eyes.spec.can(Capability::Vision));
    let Some(picture) =
        page.picture().filter(|_| has_little && sees(Layer::Eyes)).and_then(Picture::from_file)
    else {
        return;
    };
    let meter = Meter::new(context.observer, context.budget.tokens, context.budget.cost);
    let document = InputDocument::picture("picture", page.url.clone(), picture);
    let until = Instant::now() + context.budget.time(TIMEOUT);
    match run_recipe::<Screenshot>(context, &meter, RECIPE, vec![document], &[], until).await {
        Ok(Screenshot { text, description }) => {
            let shown = [text.trim(), description.trim()].join("\n\n");
            page.add_seen(shown.trim());
        }
        Err(why) => page.notes.push(format!("its screenshot was not read: {why}")),
    }
}
