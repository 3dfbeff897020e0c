//! `larder models show`, `larder models search` and `larder models update`: what the catalogue knows about models, and
//! where it comes from.

use std::path::Path;

use larder_engine::config::{
    SettingOrigin, catalogue_file, home_setting, install_catalogue, remove_catalogue, window_key,
};
use larder_models::catalogue::{Catalogue, Entry, Kind, LimitRule, PriceTier, Source};
use larder_models::table::ModelSpec;
use larder_store::{Clock, SystemClock};
use larder_text::family::OTHER_TOKENIZER;
use larder_text::price::Usd;
use larder_text::words::counted;
use serde_json::{Map, Value, json};

use crate::args::{Format, Global};
use crate::context::{CommandContext, env, project_dir};
use crate::error::CliError;
use crate::{files, output};

/// Stores the table in `from` as the catalogue, or removes the stored one. Reads no settings: they cannot be read where
/// the stored catalogue is broken.
pub fn update(global: &Global, from: Option<&Path>) -> Result<(), CliError> {
    let dir = project_dir(global).unwrap_or_else(|| ".".into());
    let home = home_setting(global.home.as_deref(), &dir, &env).value;
    let home = Path::new(&home);
    let catalogue = match from {
        Some(path) => {
            let catalogue = read(path)?;
            install_catalogue(home, &catalogue)?;
            catalogue
        }
        None => {
            remove_catalogue(home)?;
            Catalogue::built_in()
        }
    };
    let count = catalogue.ids().count();
    if global.format == Format::Json {
        let file = from.map(|_| catalogue_file(home));
        return output::json(&json!({"source": catalogue.source(), "models": count, "file": file}));
    }
    let kept =
        if from.is_some() { format!("in {}", catalogue_file(home).display()) } else { "built in".to_owned() };
    output::line(&format!("{} from {catalogue} ({kept})", counted(count as u64, "model")))
}

/// A table of models by others, named after its file.
fn read(path: &Path) -> Result<Catalogue, CliError> {
    let text = files::read_text(path)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let source = Source {
        format: 0,
        source: format!("litellm's table {name}"),
        date: SystemClock.now().date(),
        license: "MIT".to_owned(),
    };
    let refused = |error| CliError::Fixable(format!("{}: {error}; nothing was changed", path.display()));
    Catalogue::read(&text, source).map_err(refused)
}

/// Prints ids that contain all of the words, each with its limits.
pub fn search(context: &CommandContext, words: &[String]) -> Result<(), CliError> {
    let catalogue = context.config.models().catalogue();
    let found = catalogue.search(words);
    if found.is_empty() {
        return Err(CliError::Fixable(format!(
            "no model of the catalogue has an id with {}{}",
            words.join(" and "),
            suggestion(catalogue.nearest(&words.join("-")))
        )));
    }
    if context.global.format == Format::Json {
        return output::json(&json!({"models": found}));
    }
    for id in found {
        let limits = catalogue.find(id).and_then(|entry| Some((entry.limits?, entry.row.max_output)));
        let limits = limits.map_or_else(String::new, |(limits, output)| {
            format!("  window {} prompt {} reply {}", limits.window, limits.input, known(output))
        });
        output::line(&format!("{id}{limits}"))?;
    }
    Ok(())
}

/// Prints the entry of a model, and what settings have in its place.
pub fn show(context: &CommandContext, id: &str) -> Result<(), CliError> {
    let table = context.config.models();
    let catalogue = table.catalogue();
    let own = table.model(id);
    let asked = own.map_or(id, |spec| &spec.id);
    let Some(entry) = catalogue.find(asked) else {
        let near = suggestion(catalogue.nearest(asked));
        let Some(spec) = own else {
            if let Some((window, origin)) = learned(context, asked)? {
                return show_learned(context, asked, &window, &origin);
            }
            return Err(CliError::Fixable(format!("the catalogue has no model {asked:?}{near}")));
        };
        output::say(&format!(
            "only [models.{id}] describes {asked:?}, which the catalogue does not have{near}"
        ));
        if context.global.format == Format::Json {
            return output::json(&json!({"asked": asked, "settings": [{"name": id, "model": spec}]}));
        }
        output::line(asked)?;
        return output::line(&of_settings(id, spec));
    };
    let settings: Vec<(&str, &ModelSpec)> =
        table.models().filter(|(_, spec)| spec.id == asked || spec.id == entry.matched.id).collect();
    match context.global.format {
        Format::Json => output::json(&described(asked, &entry, catalogue.source(), &settings)),
        Format::Plain => text(asked, &entry, catalogue.source(), &settings),
    }
}

/// The window of a model that was learned from its provider, and the revision that has it.
fn learned(context: &CommandContext, id: &str) -> Result<Option<(String, SettingOrigin)>, CliError> {
    let (config, _) = context.learned()?;
    if config.learned_window(id).is_none() {
        return Ok(None);
    }
    let key = window_key(id);
    let setting = config.settings().into_iter().find(|setting| setting.key == key);
    Ok(setting.map(|setting| (setting.value, setting.origin)))
}

/// Prints what is known of a model that is in no table.
fn show_learned(
    context: &CommandContext,
    id: &str,
    window: &str,
    origin: &SettingOrigin,
) -> Result<(), CliError> {
    if context.global.format == Format::Json {
        let tokens: Option<u64> = window.parse().ok();
        return output::json(&json!({
            "asked": id, "settings": [], "learned": {"window": tokens, "from": origin.to_string()},
        }));
    }
    output::say(&format!("the catalogue does not have {id:?}; its provider named its window"));
    output::line(id)?;
    output::line(&format!("  window     {window} (learned, {origin})"))
}

fn of_settings(name: &str, spec: &ModelSpec) -> String {
    let ModelSpec { window, max_output, .. } = spec;
    format!("  settings   [models.{name}] window {window} reply {max_output}")
}

fn suggestion(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}

fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "unknown".to_owned(), |number| number.to_string())
}

fn tokenizer(entry: &Entry) -> &'static str {
    entry.family.map_or(OTHER_TOKENIZER, |family| family.tokenizer)
}

/// The prices of a tier that are known, by name, in dollars per million tokens.
fn prices(tier: &PriceTier) -> impl Iterator<Item = (&'static str, Usd)> {
    let names = ["input", "output", "cache_read", "cache_write", "cache_write_1h"];
    let prices = [tier.input, tier.output, tier.cache_read, tier.cache_write, tier.cache_write_1h];
    let per_million = |picos: u64| Usd::from_picos(picos.saturating_mul(1_000_000));
    names.into_iter().zip(prices).filter_map(move |(name, price)| Some((name, per_million(price?))))
}

fn described(asked: &str, entry: &Entry, source: Option<&Source>, settings: &[(&str, &ModelSpec)]) -> Value {
    let row = &entry.row;
    let tier = |tier: &PriceTier| {
        let mut object = Map::from_iter([
            ("service".to_owned(), json!(tier.service)),
            ("above".to_owned(), json!(tier.above)),
        ]);
        object.extend(prices(tier).map(|(name, price)| (name.to_owned(), json!(price))));
        Value::Object(object)
    };
    json!({
        "asked": asked,
        "id": entry.matched.id,
        "steps": entry.matched.steps,
        "provider": row.provider,
        "kind": row.kind,
        "limits": entry.limits,
        "limits_from": entry.limits_from,
        "max_input": row.max_input,
        "max_output": row.max_output,
        "price_per_unit": row.unit.map(Usd::from_picos),
        "prices_per_million": row.prices.iter().map(tier).collect::<Vec<_>>(),
        "capabilities": row.capabilities,
        "dimensions": row.dimensions,
        "tokenizer": tokenizer(entry),
        "cache_minimum": entry.cache_minimum(),
        "cache_lifetimes_s": entry.family.map_or(&[][..], |family| &family.cache_lifetimes),
        "family_source": entry.family.map(|family| family.source),
        "overridden": entry.overridden,
        "source": source,
        "settings": settings.iter().map(|(name, spec)| json!({"name": name, "model": spec})).collect::<Vec<_>>(),
    })
}

fn text(
    asked: &str,
    entry: &Entry,
    source: Option<&Source>,
    settings: &[(&str, &ModelSpec)],
) -> Result<(), CliError> {
    let row = &entry.row;
    let line = |name: &str, text: &str| output::line(&format!("  {name:<10} {text}"));
    output::line(asked)?;
    if !entry.matched.steps.is_empty() {
        line(
            "found as",
            &format!("{} (without or respelled: {})", entry.matched.id, entry.matched.steps.join(", ")),
        )?;
    }
    let kind = serde_json::to_value(row.kind).unwrap_or_default();
    let provider = if row.provider.is_empty() { "unknown" } else { &row.provider };
    line("provider", &format!("{provider}, {}", kind.as_str().unwrap_or_default()))?;
    if let Some(limits) = entry.limits {
        let rule = match limits.rule {
            LimitRule::Shared => "prompt and reply share it",
            LimitRule::Separate => "the prompt has its own limit, whatever the reply asks for",
        };
        let doubt =
            if limits.uncertain { "; uncertain: the source contradicts itself or the maker" } else { "" };
        line("window", &format!("{} ({rule}{doubt})", limits.window))?;
        line("prompt", &limits.input.to_string())?;
        if let Some(maker) = &entry.limits_from {
            line("", &format!("limits from {maker}"))?;
        }
    } else {
        line("window", "unknown")?;
    }
    line("reply", &known(row.max_output))?;
    let of_family =
        entry.family.map_or("no family: what holds for every vocabulary measured", |family| family.source);
    line("tokenizer", &format!("{} ({of_family})", tokenizer(entry)))?;
    if let Some(tokens) = entry.cache_minimum() {
        line("cache", &format!("prompts from {tokens} tokens"))?;
    }
    if entry.overridden {
        line("settings", &format!("[models.catalogue.\"{}\"] comes first", entry.matched.id))?;
    }
    let capabilities: Vec<String> = row.capabilities.iter().map(ToString::to_string).collect();
    line("can", &capabilities.join(", "))?;
    if let Some(picos) = row.unit {
        let unit = if row.kind == Kind::Speech { "character" } else { "picture" };
        line(&format!("$ / {unit}"), &Usd::from_picos(picos).to_string())?;
    } else if row.prices.is_empty() {
        line("prices", "unknown")?;
    }
    for tier in &row.prices {
        let above = if tier.above > 0 { format!(" above {} tokens", tier.above) } else { String::new() };
        let prices: Vec<String> = prices(tier).map(|(name, price)| format!("{name} {price}")).collect();
        line("$ / million", &format!("{}{above}: {}", tier.service, prices.join(", ")))?;
    }
    for (name, spec) in settings {
        output::line(&of_settings(name, spec))?;
    }
    source.map_or(Ok(()), |source| line("source", &format!("{}, {}", source.source, source.date)))
}
