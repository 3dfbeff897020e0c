//! What an answer may cite: the parts that its model could read. Knows packs and schemas; knows no model.

use std::collections::BTreeSet;

use larder_core::pack::{Pack, PartReceipt, Rendition};
use serde_json::Value;

/// Part ids that a schema offers for citation at most; a longer list costs more than it helps.
const CITABLE_IDS: usize = 24;

/// The schema with its citations bound to the parts that can be cited, so that a model whose output is constrained
/// cannot cite anything else.
pub(super) fn citing(schema: &Value, citable: &BTreeSet<String>) -> Value {
    let mut schema = schema.clone();
    let items = schema.pointer_mut("/properties/citations/items").and_then(Value::as_object_mut);
    if let Some(items) = items.filter(|items| items.get("type").is_some_and(|kind| kind == "string")) {
        let ids: Vec<&String> = citable.iter().take(CITABLE_IDS).collect();
        if !ids.is_empty() {
            *items = serde_json::Map::from_iter([("enum".to_owned(), serde_json::json!(ids))]);
        }
    }
    schema
}

/// Parts that an answer may cite: those the model could read at least in part.
pub(super) fn shown(pack: &Pack, citable: &BTreeSet<String>) -> BTreeSet<String> {
    let readable = |part: &&PartReceipt| matches!(part.rendition, Rendition::Whole | Rendition::Condensed);
    pack.receipt
        .parts
        .iter()
        .filter(readable)
        .map(|part| part.id.to_string())
        .filter(|id| citable.contains(id))
        .collect()
}
