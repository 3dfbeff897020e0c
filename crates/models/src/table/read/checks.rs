//! Consistency checks between the values of a table.

use std::collections::BTreeSet;

use toml::de::DeTable;

use super::super::{Capability, ModelTable, Provider, ProviderInfo, TableProblemCode};
use super::walk::{Span, TableWalk};
use super::{Catalogue, ModelDraft, TABLE_KEYS};

/// One model by itself.
pub(super) fn model(walk: &mut TableWalk<'_>, name: &str, draft: &ModelDraft, catalogue: &Catalogue) {
    let embeds = draft.capabilities.contains(&Capability::Embedding);
    let needs_folder = draft.provider.is_some_and(|provider| provider.info().needs_folder);
    let too_long = catalogue_output(draft, catalogue).filter(|_| draft.max_output.is_none() && !embeds);
    let required = [
        ("provider", draft.provider.is_none()),
        ("id", draft.id.is_none()),
        ("window", draft.window.is_none()),
        ("max_output", draft.max_output.is_none() && too_long.is_none() && !embeds),
        ("dimensions", draft.dimensions.is_none() && embeds),
        ("folder", draft.folder.is_none() && needs_folder),
    ];
    // A key with an illegal value has its own problem.
    let is_missing = |&(key, is_unset): &(&str, bool)| is_unset && !draft.stated.contains(key);
    let missing: Vec<String> =
        required.into_iter().filter(is_missing).map(|(key, _)| format!("`{key}`")).collect();
    if !missing.is_empty() {
        let message = format!("[models.{name}] lacks {}", missing.join(", "));
        let close = TABLE_KEYS.iter().any(|key| strsim::damerau_levenshtein(name, key) == 1);
        let unknown = draft.id.as_deref().filter(|id| catalogue.find(id).is_none());
        let help = match unknown.and_then(|id| Some((id, catalogue.nearest(id)?))) {
            _ if close => {
                "if this is not a model: the keys other than models are table, use_alternative, layers, catalogue".to_owned()
            }
            Some((id, near)) => format!("the catalogue has no {id:?}; did you mean {near:?}?"),
            None => String::new(),
        };
        walk.problem(TableProblemCode::M004, draft.span.clone(), message, help);
    }
    if let (Some(output), Some(window), false) = (too_long, draft.window, draft.stated.contains("max_output"))
    {
        let message = format!(
            "[models.{name}] needs `max_output`: the catalogue's, {output}, leaves no prompt in its window of {window}"
        );
        let help = format!("state a `max_output` of less than {window}, or leave out `window`");
        walk.problem(TableProblemCode::M006, draft.span.clone(), message, help);
    }
    if let (Some(window), Some(max_output), false) = (draft.window, draft.max_output, embeds)
        && (max_output == 0 || usize::try_from(max_output).is_ok_and(|output| output >= window))
    {
        let message =
            format!("`max_output` of [models.{name}] is {max_output}, which leaves no prompt or no reply");
        let help = format!("it must be at least 1 and less than the window of {window}");
        walk.problem(TableProblemCode::M006, draft.span.clone(), message, help);
    }
    if draft.input_limit.zip(draft.window).is_some_and(|(limit, window)| limit > window) {
        let message = format!("`input_limit` of [models.{name}] is greater than its window");
        walk.problem(TableProblemCode::M006, draft.span.clone(), message, "the prompt is part of the window");
    }
    contradictions(walk, name, draft);
}

/// The longest reply of the catalogue, where it is not taken over because it fills the window that the settings state.
fn catalogue_output(draft: &ModelDraft, catalogue: &Catalogue) -> Option<u64> {
    let is_remote = draft.provider.is_none_or(Provider::is_remote);
    let output = catalogue.find(draft.id.as_deref().filter(|_| is_remote)?)?.row.max_output?;
    let window = u64::try_from(draft.window?).ok()?;
    Some(output).filter(|output| *output >= window)
}

fn contradictions(walk: &mut TableWalk<'_>, name: &str, draft: &ModelDraft) {
    let mut wrong = |text: &str, help: &str| {
        walk.problem(TableProblemCode::M006, draft.span.clone(), format!("[models.{name}] {text}"), help);
    };
    if draft.api_key_env.is_some() && draft.api_key_file.is_some() {
        wrong("has both `api_key_env` and `api_key_file`", "keep one");
    }
    if draft.aws_profile.is_some() && (draft.api_key_env.is_some() || draft.api_key_file.is_some()) {
        wrong("has both a key and `aws_profile`", "keep one: requests carry a key or are signed");
    }
    let Some(provider) = draft.provider else { return };
    let info = provider.info();
    if draft.aws_profile.is_some() && provider != Provider::Bedrock {
        wrong("sets `aws_profile`, which only provider `bedrock` uses", "remove it");
    }
    let remote_only = [
        ("base_url", draft.base_url.is_some()),
        ("api_key_env", draft.api_key_env.is_some()),
        ("api_key_file", draft.api_key_file.is_some()),
        ("key_header", draft.key_header.is_some()),
        ("extra_body", !draft.extra_body.is_empty()),
    ];
    for (key, is_set) in remote_only {
        if is_set && info.server.is_none() {
            wrong(&format!("sets `{key}`, which its provider does not use"), "remove it");
        }
    }
    if draft.folder.is_some() && !info.needs_folder {
        let users = listed(|info| info.needs_folder);
        wrong(&format!("sets `folder`, which only provider `{users}` uses"), "remove it");
    }
    let embeds = draft.capabilities.contains(&Capability::Embedding);
    if embeds && !info.embeds {
        let help = format!("use provider {}", listed(|info| info.embeds));
        wrong("has capability `embedding`, which its provider does not offer", &help);
    }
}

/// The names of the providers that `has` accepts.
fn listed(has: impl Fn(ProviderInfo) -> bool) -> String {
    let names = Provider::ALL.into_iter().map(Provider::info).filter(|info| has(*info)).map(|info| info.name);
    names.collect::<Vec<_>>().join(", ")
}

/// Names of models: each exists, chats, and no chain of fallbacks runs in a circle.
pub(super) fn names(walk: &mut TableWalk<'_>, table: &ModelTable, file: &DeTable<'_>) {
    let known: Vec<&str> = table.models.keys().map(String::as_str).collect();
    let place = |path: &[&str]| place(file, path);
    let mut used = Vec::new();
    for (layer, binding) in &table.layers {
        let layer = layer.as_str();
        used.push((Some(binding.model.as_str()), place(&["layers", layer, "model"])));
        used.push((binding.code_model.as_deref(), place(&["layers", layer, "code_model"])));
        used.push((binding.alternative.as_deref(), place(&["layers", layer, "alternative"])));
    }
    for (name, spec) in &table.models {
        used.push((spec.fallback.as_deref(), place(&[name, "fallback"])));
    }
    for (name, span) in used {
        let Some(name) = name.filter(|name| !name.is_empty() && !walk.is_broken(name)) else { continue };
        match table.models.get(name) {
            None => walk.unknown_name(TableProblemCode::M005, span, "model", name, &known),
            Some(spec) if spec.can(Capability::Embedding) => {
                let message = format!("the model `{name}` is an embedding model and cannot answer prompts");
                walk.problem(
                    TableProblemCode::M006,
                    span,
                    message,
                    "name a model without the capability `embedding`",
                );
            }
            Some(_) => {}
        }
    }
    for name in table.models.keys().filter(|name| in_circle(table, name)) {
        let message = format!("the fallback of `{name}` leads back to itself");
        walk.problem(
            TableProblemCode::M006,
            place(&[name, "fallback"]),
            message,
            "let the last model of the chain have none",
        );
    }
}

fn in_circle(table: &ModelTable, start: &str) -> bool {
    let next = |name: &str| table.models.get(name).and_then(|spec| spec.fallback.as_deref());
    let mut seen = BTreeSet::new();
    let mut at = next(start);
    while let Some(name) = at.filter(|name| seen.insert(*name)) {
        if name == start {
            return true;
        }
        at = next(name);
    }
    false
}

/// The place of the deepest key of `path` in the file; the built-in table may have supplied the rest.
fn place(file: &DeTable<'_>, path: &[&str]) -> Span {
    let mut span = 0..0;
    let mut table = Some(file);
    for key in path {
        let Some((_, value)) = table.and_then(|table| table.get_key_value(*key)) else { break };
        span = value.span();
        table = value.get_ref().as_table();
    }
    span
}
