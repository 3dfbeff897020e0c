//! `larder keys`: who may call the gateway, and for how much a day. Shows the keys of all users: access to the home
//! folder means control of the gateway.

use larder_gateway::auth::{create_key, create_operator_key};
use larder_models::price::Usd;
use larder_store::{DaySpend, KeyLimits, KeyRecord, Store};
use serde_json::{Value, json};

use crate::args::{Format, KeysCommand};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::keyboard::Keyboard;
use crate::output;

/// How to use a key.
const NEXT: [&str; 2] = [
    "Clients send it as their API key. The provider's key then comes from gateway.openai_key_env or \
     gateway.anthropic_key_env, or from the client in the other of the headers `authorization` and `x-api-key`.",
    "Data created before there were keys belongs to user local: `larder keys create --user local` creates a key to it.",
];

pub async fn run(context: &CommandContext, command: Option<KeysCommand>) -> Result<(), CliError> {
    match command {
        None => list(context, &context.store_to_read()?),
        Some(KeysCommand::Create { label, tokens_per_day, usd_per_day, operator, yes }) => {
            let user = context.store()?;
            agree(context, user.store(), yes).await?;
            let limits = KeyLimits { tokens_per_day, picos_per_day: usd_per_day.map(Usd::picos) };
            let create = if operator { create_operator_key } else { create_key };
            let (key, record) = create(user.store(), user.user(), &label, limits)?;
            if context.global.format == Format::Json {
                let mut shown = describe(&record);
                shown["key"] = json!(key.reveal());
                return output::json(&shown);
            }
            output::say(&format!("key {} of user {}; it will not be shown again:", record.id, record.user));
            output::line(key.reveal())?;
            for line in NEXT {
                output::say(line);
            }
            Ok(())
        }
        Some(KeysCommand::Revoke { id }) => {
            let id = id.parse().map_err(|error| CliError::Usage(format!("{id:?}: {error}")))?;
            let record = context.whole_store()?.keys().revoke(&id)?;
            if context.global.format == Format::Json {
                return output::json(&describe(&record));
            }
            output::line(&format!("key {} of user {} is revoked", record.id, record.user))
        }
    }
}

/// Asks before the first key is created, because all clients need a key from then on.
async fn agree(context: &CommandContext, store: &Store, yes: bool) -> Result<(), CliError> {
    let gateway = context.config.gateway();
    // If keys are required already, or are not required regardless of keys, this one locks no one out.
    if gateway.keys_required().is_some() || store.keys().any_created()? {
        return Ok(());
    }
    output::say(&format!(
        "This is the first key. Once it exists, every request to the gateway needs a key: clients, `larder top`, \
         /metrics (an operator's: --operator) and the dashboard, where you sign in at http://{}/sign-in.",
        gateway.listen
    ));
    if yes {
        return Ok(());
    }
    if !output::is_interactive() {
        return Err(CliError::Fixable(
            "no key was created; pass --yes to create the first key without a terminal".to_owned(),
        ));
    }
    output::say("Create it? [y/N]");
    let line = Keyboard::default().line().await?;
    match line.as_deref().map(str::trim) {
        Some("y" | "Y" | "yes") => Ok(()),
        _ => Err(CliError::Fixable("no key was created".to_owned())),
    }
}

fn list(context: &CommandContext, store: &Store) -> Result<(), CliError> {
    let keys = store.keys().list()?;
    if context.global.format == Format::Json {
        let mut shown = Vec::new();
        for record in &keys {
            let today = store.keys().day_spend(&record.id)?;
            let mut one = describe(record);
            one["today"] = json!({
                "tokens": today.used.tokens,
                "usd": Usd::from_picos(today.used.picos),
                "held_tokens": today.held.tokens,
                "held_usd": Usd::from_picos(today.held.picos),
                "resets": today.resets,
            });
            shown.push(one);
        }
        return output::json(&shown);
    }
    if keys.is_empty() {
        let needs_key = match context.config.gateway().keys_required() {
            Some(required) => required,
            None => store.keys().any_created()?,
        };
        output::say(if needs_key {
            "no keys: every request is refused until `larder keys create` makes one"
        } else {
            "no keys: only programs on this machine may call, as user local; `larder keys create` creates one"
        });
    }
    for record in keys {
        let operator = if record.operator { "operator " } else { "" };
        output::line(&format!(
            "{} {} {:<16} {:<24} {operator}{}",
            record.id,
            record.created,
            record.user,
            spent(store, &record)?,
            record.label
        ))?;
    }
    Ok(())
}

/// The spending of a key today, with the reservations of calls in progress and its limits.
fn spent(store: &Store, record: &KeyRecord) -> Result<String, CliError> {
    if let Some(revoked) = record.revoked {
        return Ok(format!("revoked {revoked}"));
    }
    let DaySpend { used, held, .. } = store.keys().day_spend(&record.id)?;
    let KeyLimits { tokens_per_day, picos_per_day } = record.limits;
    let tokens = tokens_per_day
        .map(|limit| format!("{} used and {} held of {limit} tokens", used.tokens, held.tokens));
    let dollars = picos_per_day.map(|limit| {
        let [used, held, limit] = [used.picos, held.picos, limit].map(Usd::from_picos);
        format!("{used} used and {held} held of {limit} dollars")
    });
    let limited: Vec<String> = tokens.into_iter().chain(dollars).collect();
    Ok(if limited.is_empty() { "no limits".to_owned() } else { format!("{} today", limited.join(", ")) })
}

fn describe(record: &KeyRecord) -> Value {
    json!({
        "id": record.id,
        "user": record.user,
        "label": record.label,
        "tokens_per_day": record.limits.tokens_per_day,
        "usd_per_day": record.limits.picos_per_day.map(Usd::from_picos),
        "operator": record.operator,
        "created": record.created,
        "revoked": record.revoked,
    })
}
