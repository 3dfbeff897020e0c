//! `[models.catalogue."ID"]`: what `larder.toml` states about single models of the catalogue, or about models that it
//! lacks. Knows no provider.

use std::collections::BTreeMap;

use larder_text::family::Family;
use larder_text::model_id::ModelId;
use toml::Spanned;
use toml::de::DeValue;

use super::super::TableProblemCode;
use super::walk::TableWalk;
use super::{CATALOGUE, MAX_WINDOW, prices};
use crate::catalogue::Override;

const KEYS: [&str; 5] = ["window", "input_limit", "max_output", "prices", "family"];

/// The entries, by id.
pub(super) fn read(walk: &mut TableWalk<'_>, value: &Spanned<DeValue<'_>>) -> BTreeMap<String, Override> {
    let Some(table) = walk.table(CATALOGUE, value) else { return BTreeMap::new() };
    let entries = table.iter().filter_map(|(id, value)| {
        Some((id.get_ref().clone().into_owned(), entry(walk, id.get_ref(), value)?))
    });
    entries.collect()
}

fn entry(walk: &mut TableWalk<'_>, id: &str, value: &Spanned<DeValue<'_>>) -> Option<Override> {
    let place = format!("[models.{CATALOGUE}.\"{id}\"]");
    let table = walk.table(&place, value)?;
    let mut own = Override::default();
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "window" => own.window = walk.integer("window", value, 1..=MAX_WINDOW),
            "input_limit" => own.input_limit = walk.integer("input_limit", value, 1..=MAX_WINDOW),
            "max_output" => own.max_output = walk.integer("max_output", value, 1..=MAX_WINDOW),
            "prices" => own.prices = prices::read(walk, value),
            "family" => own.family = family(walk, value),
            _ => walk.unknown_key(key, &place, &KEYS),
        }
    }
    if own.input_limit.zip(own.window).is_some_and(|(limit, window)| limit > window) {
        let message = format!("`input_limit` of {place} is greater than its window");
        walk.problem(TableProblemCode::M006, value.span(), message, "the prompt is part of the window");
    }
    Some(own)
}

/// An id of a model whose family is known.
fn family(walk: &mut TableWalk<'_>, value: &Spanned<DeValue<'_>>) -> Option<String> {
    let id = walk.string("family", value)?;
    if Family::of(&ModelId::parse(&id)).is_some() {
        return Some(id);
    }
    let message = format!("no family of models has `{id}`");
    let help = "name a model of the family, such as `gpt-5` or `claude-opus-4-7`";
    walk.problem(TableProblemCode::M005, value.span(), message, help);
    None
}
