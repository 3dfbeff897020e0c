//! `registry.yaml`: the generated index of recipes and prompts, and their version history.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::catalog::Catalog;
use super::diagnostic::DiagnosticSink;
use super::model::{PromptTemplate, Recipe};
use super::yaml::{self, YamlKind, YamlNode};
use larder_text::hash::ContentHash;

/// Its path within a project.
pub const REGISTRY_PATH: &str = "registry.yaml";
/// Maximum number of earlier versions kept per entry.
const MAX_HISTORY: usize = 50;

/// Versions by name.
#[derive(Default)]
struct Past {
    recipes: BTreeMap<String, Vec<String>>,
    prompts: BTreeMap<String, Vec<String>>,
}

/// Generates the registry of these recipes and prompts, continuing the histories in `old`.
pub(super) fn generate(
    recipes: &Catalog,
    prompts: &BTreeMap<String, ContentHash>,
    paths: &BTreeMap<String, String>,
    old: Option<&str>,
) -> String {
    let past = old.map(read).unwrap_or_default();
    let mut out = String::from(
        "# Generated from recipes/ and prompts/; do not edit. `larder check --write-registry` brings it up to date.\n",
    );
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for recipe in recipes.iter() {
        counts.entry(&recipe.category).or_default().0 += 1;
    }
    for name in prompts.keys() {
        counts.entry(name.split('/').next().unwrap_or("")).or_default().1 += 1;
    }
    out.push_str("counts:\n");
    for (category, (recipes, prompts)) in counts {
        let _ = writeln!(out, "  {category}: {}", json!({"recipes": recipes, "prompts": prompts}));
    }
    out.push_str("recipes:\n");
    for recipe in recipes.iter() {
        let path = paths.get(&recipe.id()).map_or("", String::as_str);
        let history = history(&past.recipes, &recipe.id(), &recipe.version.to_hex());
        entry(&mut out, &recipe_fields(recipe, path, &history));
    }
    out.push_str("prompts:\n");
    for (name, version) in prompts {
        let used_by: Vec<String> =
            recipes.iter().filter(|recipe| uses(recipe, name)).map(Recipe::id).collect();
        let history = history(&past.prompts, name, &version.to_hex());
        entry(
            &mut out,
            &[
                ("name", name.as_str().into()),
                ("file", format!("prompts/{name}.md").into()),
                ("used_by", used_by.into()),
                ("version", version.to_hex().into()),
                ("history", history.into()),
            ],
        );
    }
    out
}

fn recipe_fields<'a>(recipe: &'a Recipe, path: &str, history: &[String]) -> Vec<(&'a str, Value)> {
    let names =
        |templates: &[PromptTemplate]| templates.iter().map(|prompt| prompt.name.clone()).collect::<Vec<_>>();
    let docs: Vec<&str> = recipe.input_docs.iter().map(|doc| doc.name.as_str()).collect();
    let variants: BTreeMap<_, _> =
        recipe.variants.iter().map(|(stage, variant)| (stage, names(&variant.system))).collect();
    let output = json!({"format": recipe.output.format, "schema": recipe.output.schema});
    vec![
        ("name", recipe.id().into()),
        ("file", path.into()),
        ("aliases", recipe.aliases.clone().into()),
        ("role", recipe.role.clone().into()),
        ("purpose", recipe.description.clone().into()),
        ("risk", json!(recipe.risk)),
        ("layer", json!(recipe.layer)),
        ("mode", json!(recipe.mode)),
        ("budget", json!(recipe.budget)),
        ("input", json!({"docs": docs, "sections": recipe.input_sections, "values": recipe.inputs})),
        ("output", output),
        ("prompts", names(&recipe.system).into()),
        ("variants", json!(variants)),
        ("version", recipe.version.to_hex().into()),
        ("history", history.to_vec().into()),
    ]
}

/// Writes one list item; JSON values are valid YAML.
fn entry(out: &mut String, fields: &[(&str, Value)]) {
    for (index, (key, value)) in fields.iter().enumerate() {
        let lead = if index == 0 { "- " } else { "  " };
        let _ = writeln!(out, "{lead}{key}: {value}");
    }
}

fn uses(recipe: &Recipe, prompt: &str) -> bool {
    let staged = recipe.variants.values().flat_map(|variant| &variant.system);
    recipe.includes.contains_key(prompt) || recipe.system.iter().chain(staged).any(|own| own.name == prompt)
}

/// Earlier versions, newest first: the current version of the old registry, if it differs, then its history.
fn history(past: &BTreeMap<String, Vec<String>>, name: &str, version: &str) -> Vec<String> {
    let versions = past.get(name).map(Vec::as_slice).unwrap_or_default();
    let earlier = if versions.first().is_some_and(|current| current == version) { 1 } else { 0 };
    versions.iter().skip(earlier).take(MAX_HISTORY).cloned().collect()
}

fn read(text: &str) -> Past {
    let mut sink = DiagnosticSink::new(REGISTRY_PATH, text);
    let Some(root) = yaml::parse(&mut sink) else { return Past::default() };
    Past { recipes: versions(root.get("recipes")), prompts: versions(root.get("prompts")) }
}

/// Name → current version followed by its history.
fn versions(list: Option<&YamlNode<'_>>) -> BTreeMap<String, Vec<String>> {
    let Some(YamlNode { kind: YamlKind::List(entries), .. }) = list else { return BTreeMap::new() };
    let read = entries.iter().filter_map(|entry| {
        let entry = entry.to_json();
        let hashes = std::iter::once(entry.get("version")?).chain(entry.get("history")?.as_array()?);
        let hashes = hashes.filter_map(|hash| hash.as_str()).map(str::to_owned).collect();
        Some((entry.get("name")?.as_str()?.to_owned(), hashes))
    });
    read.collect()
}
