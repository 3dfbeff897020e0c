//! What an answer may cite: the parts visible to its model. Knows packs and schemas; knows no model.

use std::collections::BTreeSet;

use larder_core::pack::{Pack, PartReceipt, Rendition};
use larder_core::recipe::{OutputFormat, Recipe};
use larder_text::tokens::Counter;
use serde_json::Value;

/// Maximum part ids that a schema offers for citation; a longer list costs more than it helps.
const CITABLE_IDS: usize = 24;
/// The slot and part that say how to cite.
pub(crate) use larder_core::recipe::own_slots::CITING;

/// The instruction for a model that has to cite in text; in data, the schema says where ids belong.
pub(crate) fn how_to_cite(recipe: &Recipe, citable: &BTreeSet<String>) -> Option<String> {
    let in_text = !matches!(recipe.output.format, OutputFormat::Json | OutputFormat::Yaml);
    let example = citable.first().filter(|_| in_text && recipe.gates.evidence_required)?;
    Some(format!("Cite every part you use by the id in its tag, in square brackets, as in [{example}]."))
}

/// The schema with citations restricted to the citable parts, so that a model with constrained output cannot cite
/// anything else.
pub(crate) fn citing(schema: &Value, citable: &[String]) -> Value {
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

/// Maximum tokens that [`citing`] adds, whichever parts end up being shown.
pub(crate) fn citing_cost(schema: &Value, citable: &BTreeSet<String>, counter: &Counter) -> usize {
    let ids: Vec<String> = citable.iter().cloned().collect();
    if citing(schema, &ids) == *schema {
        return 0;
    }
    let cost = |id: &String| counter.count(&format!("{},", Value::from(id.as_str())));
    let mut costs: Vec<usize> = citable.iter().map(cost).collect();
    costs.sort_unstable_by(|a, b| b.cmp(a));
    counter.count("{\"enum\":[]}") + costs.iter().take(CITABLE_IDS).sum::<usize>()
}

/// The citable parts: those that the model could read at least in part, in prompt order. If a schema cannot offer all
/// of them, it offers the first.
pub(crate) fn shown(pack: &Pack, citable: &BTreeSet<String>) -> Vec<String> {
    let readable = |part: &&PartReceipt| matches!(part.rendition, Rendition::Whole | Rendition::Condensed);
    pack.receipt
        .parts
        .iter()
        .filter(readable)
        .map(|part| part.id.to_string())
        .filter(|id| citable.contains(id))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cost_of_citations_in_a_schema_is_bounded_in_advance() {
        let schema = json!({"type": "object", "properties": {
            "citations": {"type": "array", "items": {"type": "string"}}}});
        let counter = Counter::o200k();
        let ids: Vec<String> =
            (1..=40).map(|number| format!("quarterly_report_{}-{number}", number * number)).collect();
        let most = citing_cost(&schema, &ids.iter().cloned().collect(), &counter);
        let bare = counter.count(&schema.to_string());
        for from in 0..ids.len() {
            let sent = counter.count(&citing(&schema, &ids[from..]).to_string());
            assert!(sent <= bare + most, "{sent} of {bare} and {most}");
        }
        let other = json!({"type": "object"});
        assert_eq!(citing_cost(&other, &ids.into_iter().collect(), &counter), 0);
    }

    #[test]
    fn a_schema_offers_the_first_parts_of_the_prompt() {
        let schema = json!({"properties": {"citations": {"items": {"type": "string"}}}});
        let ids: Vec<String> = (1..=30).map(|number| format!("p{number}")).collect();
        let offered = citing(&schema, &ids);
        assert_eq!(offered.pointer("/properties/citations/items/enum"), Some(&json!(ids[..CITABLE_IDS])));
    }
}
