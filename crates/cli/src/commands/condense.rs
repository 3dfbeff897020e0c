//! `larder condense`: a smaller text, with the original stored behind its pointer first.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::ops::Range;

use larder_condense::{CondenseRequest, Condensed, ContentType, Explanation};
use larder_engine::executor::CondensingTally;
use larder_text::Layer;
use larder_text::words::counted;
use serde::Serialize;

use crate::args::{CondenseArgs, Format, TokenTarget};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::progress::Spinner;
use crate::{files, output};

/// Characters of a unit that are printed to recognise it by.
const BEGINNING: usize = 60;

#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    condensed: &'a Condensed,
    #[serde(skip_serializing_if = "Option::is_none")]
    condensing: Option<CondensingTally>,
}

pub async fn run(context: &CommandContext, args: CondenseArgs) -> Result<(), CliError> {
    if args.by_model {
        context.ensure_weights(args.yes, || Ok(vec![Layer::Nerves])).await?;
    }
    let counter = context.counter(&args.tokenizer)?;
    let text = files::read_text(&args.file)?;
    let explicit = args.content_type.as_deref().map(parse_type).transpose()?;
    if explicit == Some(ContentType::Json) && !text.trim_start().starts_with(['{', '[']) {
        let file = args.file.display();
        return Err(CliError::Usage(format!(
            "--type json: {file} does not begin with {{ or [; leave out --type"
        )));
    }
    let name = args.file.to_string_lossy();
    let store = context.store()?;
    let mut request = CondenseRequest {
        text: &text,
        content_type: larder_condense::detect(explicit, &name, false, &text),
        target: 0,
        query: args.query.as_deref(),
        pins: &args.pins,
        counter: &counter,
        key: store.key(),
    };
    request.target = match args.to {
        TokenTarget::Tokens(tokens) => tokens,
        TokenTarget::Auto => larder_condense::essential(&request).ok_or_else(|| {
            CliError::Usage(
                "--to auto: this content type has no kinds of units to keep; give a number of tokens instead"
                    .to_owned(),
            )
        })?,
    };
    if args.explain {
        let explanation = larder_condense::explain(&request, args.more)?;
        return match context.global.format {
            Format::Json => output::json(&explanation),
            Format::Plain => output::bytes(table(&explanation, &text).as_bytes()),
        };
    }
    let (condensed, condensing) = if args.by_model {
        let (condensed, tally) = by_model(context, &request, &name).await?;
        (condensed, Some(tally))
    } else {
        let condensed = larder_condense::condense(&request)?;
        // The pointers in the text must resolve before anybody reads it.
        store.pointers().insert(text.as_bytes(), "document", &name)?;
        (condensed, None)
    };
    match context.global.format {
        Format::Json => output::json(&Printed { condensed: &condensed, condensing }),
        Format::Plain => {
            let fits = |text: &str| counter.count_up_to(text, request.target).is_some();
            let breaks =
                |printed: &str| std::io::stdout().is_terminal() || (text.ends_with('\n') && fits(printed));
            output::bytes(shown(&condensed.text, breaks).as_bytes())
        }
    }
}

/// The text, with a line break at its end where `breaks` allows it: on a terminal, so that the shell's prompt starts a
/// new line, and elsewhere if the original ends in one and the target has room for it.
fn shown(text: &str, breaks: impl FnOnce(&str) -> bool) -> Cow<'_, str> {
    if text.is_empty() || text.ends_with('\n') {
        return Cow::Borrowed(text);
    }
    let broken = format!("{text}\n");
    if breaks(&broken) { Cow::Owned(broken) } else { Cow::Borrowed(text) }
}

async fn by_model(
    context: &CommandContext,
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
        "condensed {who}: {original_tokens} → {tokens} tokens · {}, {} tokens in, {} out{cost}",
        counted(tally.calls as u64, "call"),
        usage.input,
        usage.output
    ));
    tally.failures.iter().for_each(|failure| output::say(&format!("by rule, because {failure}")));
    Ok((condensed, tally))
}

/// One line for each unit: its lines, outcome, tokens, reasons and beginning.
fn table(explanation: &Explanation, text: &str) -> String {
    let mut out = String::new();
    for unit in &explanation.units {
        let (first, last) = unit.lines;
        let reasons: Vec<String> = unit.reasons.iter().map(word).collect();
        let beginning: String = text[unit.bytes.clone()].trim().chars().take(BEGINNING).collect();
        let beginning = beginning.replace(char::is_control, " ");
        out.push_str(&format!(
            "L{first}-{last}\t{}\t{} tokens\t{}{}\t{beginning}\n",
            word(&unit.outcome),
            unit.tokens,
            reasons.join(", "),
            if unit.terms.is_empty() { String::new() } else { format!(" ({})", unit.terms.join(" ")) },
        ));
    }
    let further: usize = explanation.further.iter().map(Range::len).sum();
    out.push_str(&format!("{} more tokens would show {further} more bytes\n", explanation.more));
    for range in &explanation.further {
        let beginning: String = text[range.clone()].trim().chars().take(BEGINNING).collect();
        out.push_str(&format!(
            "B{}-{}\t{}\n",
            range.start,
            range.end,
            beginning.replace(char::is_control, " ")
        ));
    }
    out
}

/// As in JSON.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn parse_type(name: &str) -> Result<ContentType, CliError> {
    serde_json::from_value(serde_json::Value::from(name.replace('-', "_")))
        .map_err(|error| CliError::Usage(format!("--type {name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_with_a_line_break_where_one_is_allowed() {
        let always = |_: &str| true;
        assert_eq!(shown("a\n[… L2-9]", always), "a\n[… L2-9]\n");
        assert_eq!((shown("a\n", always), shown("", always)), ("a\n".into(), "".into()));
        assert_eq!(shown("a", |printed| printed.len() <= 1), "a", "it does not fit");
    }
}
