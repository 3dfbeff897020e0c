//! `larder revisions`: lists, shows, compares and reverts what is learned at run time.

use std::collections::BTreeMap;

use larder_engine::config::{LearnedValue, Standing};
use larder_store::{LearnedSettings, Revision};
use serde::Serialize;

use crate::args::{Format, RevisionsArgs, RevisionsCommand};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

/// Revision 0 is not stored.
const FIRST: &str = "the settings alone: nothing is learned";

/// A revision with everything learned in it.
#[derive(Serialize)]
struct Shown {
    number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<Revision>,
    learned: Vec<LearnedValue>,
}

/// A value that differs between two revisions.
#[derive(Serialize)]
struct Difference {
    from: Option<String>,
    to: Option<String>,
}

pub fn run(context: &CommandContext, args: RevisionsArgs) -> Result<(), CliError> {
    let RevisionsArgs { command, before } = args;
    match command {
        None => list(context, before),
        Some(RevisionsCommand::Show { number }) => show(context, number),
        Some(RevisionsCommand::Diff { from, to }) => diff(context, from, to),
        Some(RevisionsCommand::Revert { number }) => {
            let store = context.whole_store()?;
            let learned = store.revisions().settings(number)?;
            let checked = context.config.check_revision(number, &learned);
            checked.map_err(|error| CliError::Fixable(error.to_string()))?;
            let before = store.revisions().newest()?;
            let newest = store.revisions().revert(number)?;
            if newest == before {
                output::say(&format!(
                    "revision {newest} has learned the same as revision {number}: nothing changed"
                ));
            } else {
                output::say(&format!("revision {newest} learns again what revision {number} had"));
            }
            show(context, newest)
        }
    }
}

fn list(context: &CommandContext, before: Option<u64>) -> Result<(), CliError> {
    let mut revisions = context.store_to_read()?.revisions().list(before)?;
    revisions.reverse();
    match revisions.first().map(|revision| revision.number) {
        None if before.is_some() => output::say("there are no older revisions"),
        None => output::say("nothing has been learned: the settings apply alone, as revision 0"),
        Some(1) => {}
        Some(number) => output::say(&format!("older ones: larder revisions --before {number}")),
    }
    if context.global.format == Format::Json {
        return output::json(&revisions);
    }
    for Revision { number, created, cause, changes } in &revisions {
        output::text(&format!("{number:>5} {created} {cause}"))?;
        for (key, value) in changes {
            output::text(&format!("        {}", changed(key, value.as_deref())))?;
        }
    }
    Ok(())
}

fn changed(key: &str, value: Option<&str>) -> String {
    value.map_or_else(|| format!("{key} no longer learned"), |value| format!("{key} = {value}"))
}

fn show(context: &CommandContext, number: u64) -> Result<(), CliError> {
    let store = context.whole_store()?;
    let settings = store.revisions().settings(number)?;
    let revision = store.revisions().get(number)?;
    let (_, learned) = context.config.revised(number, &settings);
    let shown = Shown { number, revision, learned };
    if context.global.format == Format::Json {
        return output::json(&shown);
    }
    match &shown.revision {
        Some(Revision { created, cause, changes, .. }) => {
            output::text(&format!("revision {number} of {created}: {cause}"))?;
            for (key, value) in changes {
                output::text(&format!("  changed: {}", changed(key, value.as_deref())))?;
            }
        }
        None => output::line(&format!("revision {number}: {FIRST}"))?,
    }
    for LearnedValue { key, value, standing } in &shown.learned {
        let note = match standing {
            Standing::Used => "used".to_owned(),
            Standing::Overridden { by } => format!("not used: set by {by}, which takes precedence"),
            Standing::Unusable { reason } => format!("not used: {reason}"),
        };
        output::text(&format!("  {key} = {value}  ({note})"))?;
    }
    Ok(())
}

fn diff(context: &CommandContext, from: u64, to: u64) -> Result<(), CliError> {
    let store = context.whole_store()?;
    let differences = differences(store.revisions().settings(from)?, store.revisions().settings(to)?);
    if context.global.format == Format::Json {
        return output::json(&differences);
    }
    if differences.is_empty() {
        output::say(&format!("revisions {from} and {to} have learned the same"));
    }
    for (key, Difference { from, to }) in &differences {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not learned".to_owned());
        output::text(&format!("{key}: {} -> {}", value(from), value(to)))?;
    }
    Ok(())
}

fn differences(from: LearnedSettings, mut to: LearnedSettings) -> BTreeMap<String, Difference> {
    let mut all: BTreeMap<String, Difference> = BTreeMap::new();
    for (key, value) in from {
        let other = to.remove(&key);
        if other.as_deref() != Some(&value) {
            all.insert(key, Difference { from: Some(value), to: other });
        }
    }
    all.extend(to.into_iter().map(|(key, value)| (key, Difference { from: None, to: Some(value) })));
    all
}
