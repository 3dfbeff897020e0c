//! `larder condense`: a smaller text, with the original stored behind its pointer first.

use larder::executor::CondensingTally;
use larder_core::content::{self, CondenseRequest, Condensed, ContentType};
use serde::Serialize;

use crate::args::{CondenseArgs, Format};
use crate::context::Context;
use crate::error::CliError;
use crate::progress::Spinner;
use crate::{files, output};

#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    condensed: &'a Condensed,
    #[serde(skip_serializing_if = "Option::is_none")]
    condensing: Option<CondensingTally>,
}

pub async fn run(context: &Context, args: CondenseArgs) -> Result<(), CliError> {
    if args.by_model {
        context.ensure_weights(args.yes).await?;
    }
    let counter = context.counter(args.tokenizer.as_deref())?;
    let text = files::read_text(&args.file)?;
    let explicit = args.content_type.as_deref().map(parse_type).transpose()?;
    let name = args.file.to_string_lossy();
    let store = context.store()?;
    let request = CondenseRequest {
        text: &text,
        content_type: content::detect(explicit, &name, false, &text),
        target: args.to,
        query: args.query.as_deref(),
        pins: &args.pins,
        counter: &counter,
        key: store.key(),
    };
    let (condensed, condensing) = if args.by_model {
        let (condensed, tally) = by_model(context, &request, &name).await?;
        (condensed, Some(tally))
    } else {
        let condensed = content::condense(&request)?;
        // The way back exists before the text is shown.
        store.put(text.as_bytes(), "document", &name)?;
        (condensed, None)
    };
    match context.global.format {
        Format::Json => output::json(&Printed { condensed: &condensed, condensing }),
        Format::Plain => output::bytes(condensed.text.as_bytes()),
    }
}

async fn by_model(
    context: &Context,
    request: &CondenseRequest<'_>,
    name: &str,
) -> Result<(Condensed, CondensingTally), CliError> {
    let mut policy = context.config.policy();
    policy.use_llm_summarizer = true;
    let engine = context.engine_with(policy)?;
    let spinner = Spinner::new(false);
    let condensed = engine.condense(request, name, &spinner).await;
    spinner.done();
    let (condensed, tally) = condensed?;
    let who = match &condensed.author {
        Some(author) => format!("by {} with {}", author.model, author.recipe),
        None => "by rule".to_owned(),
    };
    let cost = tally.cost.map(|cost| format!(", ${cost}")).unwrap_or_default();
    let Condensed { tokens, original_tokens, .. } = condensed;
    let usage = tally.usage;
    output::say(&format!(
        "condensed {who}: {original_tokens} → {tokens} tokens · {} calls, {} tokens in, {} out{cost}",
        tally.calls, usage.input, usage.output
    ));
    tally.failures.iter().for_each(|failure| output::say(&format!("by rule, because {failure}")));
    Ok((condensed, tally))
}

fn parse_type(name: &str) -> Result<ContentType, CliError> {
    serde_json::from_value(serde_json::Value::from(name.replace('-', "_")))
        .map_err(|error| CliError::Usage(format!("--type {name}: {error}")))
}
