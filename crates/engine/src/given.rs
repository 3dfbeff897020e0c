//! What a person gave a recipe, judged before a run: documents without text. Callers that fill inputs from their own state
//! decide themselves what an empty one means.

use larder_core::recipe::Recipe;
use larder_text::words::is_blank;

use crate::inputs::{InputDocument, RunInput};
use crate::prepare::PrepareError;

/// The documents without any text, for a note.
///
/// # Errors
/// All documents of a required input are without text.
pub fn blank_documents<'i>(
    recipe: &Recipe,
    input: &'i RunInput,
) -> Result<Vec<&'i InputDocument>, PrepareError> {
    let is_empty = |document: &InputDocument| document.picture.is_none() && is_blank(&document.text);
    for doc in recipe.input_docs.iter().filter(|doc| doc.required) {
        let mut given = input.documents.iter().filter(|document| document.input == doc.name).peekable();
        let Some(first) = given.peek().map(|first| first.name.clone()) else { continue };
        if given.all(is_empty) {
            return Err(PrepareError::EmptyDocument {
                recipe: recipe.id(),
                name: doc.name.clone(),
                file: first,
            });
        }
    }
    Ok(input.documents.iter().filter(|document| is_empty(document)).collect())
}
