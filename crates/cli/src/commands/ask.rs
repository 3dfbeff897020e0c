//! `larder ask`: a question over files and folders of any size.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use larder_agent::ask::{
    AskAnswer, AskError, Asker, GroundedClaim, Question, Quote, SearchReport, SkippedFile,
};
use larder_condense::salience::{ErrorSense, SpanKind, scan};
use larder_core::pack::layout;
use larder_engine::settings::{AnswerMode, AskLimits, AskSettings, Planner};
use larder_text::words::counted;
use larder_text::words::is_blank;

use crate::args::{AskArgs, Format, PlannerArg};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::progress::Spinner;
use crate::{commands, output};

/// Passages that `--quote` prints.
const QUOTED: usize = 5;
/// Files that could not be read and are named one by one.
const SKIPPED_NAMED: usize = 10;

pub async fn run(context: &CommandContext, args: AskArgs) -> Result<(), CliError> {
    let Some((question, paths)) = args.inputs.split_last().filter(|(_, paths)| !paths.is_empty()) else {
        return Err(CliError::Usage("expected files or folders, then the question".to_owned()));
    };
    if is_blank(question) {
        return Err(CliError::Usage("the question, which comes last, is empty".to_owned()));
    }
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    let configured = context.config.asking();
    let limits = configured.limits;
    let asking = AskSettings {
        answer: if args.generate { AnswerMode::Generate } else { configured.answer },
        planner: args.planner.map_or(configured.planner, |planner| match planner {
            PlannerArg::Auto => Planner::Auto,
            PlannerArg::Rules => Planner::Rules,
            PlannerArg::Model => Planner::Model,
        }),
        limits: AskLimits {
            depth: args.max_depth.unwrap_or(limits.depth),
            calls: args.max_calls.unwrap_or(limits.calls),
            tokens: args.max_tokens.unwrap_or(limits.tokens),
        },
    };
    let question = Question { text: question, paths: &paths, recipe: &args.recipe, asking };
    let mut engine = context.engine()?;
    let layers = question.layers(&engine).map_err(failed)?;
    if !args.quote && !layers.is_empty() {
        context.ensure_weights(args.yes, || Ok(layers)).await?;
        // Counts by the tokenizer that came with the weights.
        engine = context.engine()?;
    }
    let spinner = Spinner::new(false);
    if args.quote {
        let quotes = Asker::new(&engine, &spinner).quote(&question, QUOTED);
        spinner.done();
        let (quotes, search) = quotes.map_err(failed)?;
        return print_quotes(context.global.format, &quotes, &search);
    }
    let answer = Asker::new(&engine, &spinner).ask(&question).await;
    spinner.done();
    print(context, &answer.map_err(failed)?, args.explain)
}

/// Errors of a run keep the exit code of runs; everything else is for the user to fix.
fn failed(error: AskError) -> CliError {
    match error {
        AskError::Run(error) => error.into(),
        AskError::Store(error) => error.into(),
        error => CliError::Fixable(error.to_string()),
    }
}

fn print(context: &CommandContext, answer: &AskAnswer, explain: bool) -> Result<(), CliError> {
    say(&answer.search);
    if context.global.format == Format::Json {
        context.note_on_counting(&answer.outcome.receipt.model, &answer.outcome.receipt.tokenizer);
        return output::json(answer);
    }
    let is_quoted = answer.outcome.receipt.model.is_empty();
    if is_quoted {
        print_quoted(answer, explain)?;
    } else {
        print_claims(&answer.quotes)?;
        if !answer.quotes.is_empty() {
            output::line(&format!("\n{} writes:", answer.outcome.receipt.model))?;
        }
        commands::run::print(context, &answer.outcome, explain)?;
        for claim in &answer.claims {
            output::text(&format!("  {:?}\n    {}{}", claim.text, place(claim), claim.doubt()))?;
        }
    }
    match (answer.verified, is_quoted) {
        (true, _) => Ok(()),
        // The reply says it already.
        (_, true) if answer.claims.is_empty() => Ok(()),
        (_, true) => output::line("unverified: this covers little of the question and may not answer it"),
        (_, false) => output::line(&format!("unverified: {}", doubt(&answer.claims))),
    }
}

/// Why none of these claims is supported.
fn doubt(claims: &[GroundedClaim]) -> String {
    let unstated: BTreeSet<&str> =
        claims.iter().flat_map(|claim| &claim.unstated).map(String::as_str).collect();
    if claims.is_empty() {
        return "the answer cites nothing that could be checked".to_owned();
    }
    if unstated.is_empty() {
        return "the answer has no word in common with what it cites".to_owned();
    }
    let is_amount = |value: &str| {
        let spans = scan(value, ErrorSense::Strict);
        spans.iter().any(|span| matches!(span.kind, SpanKind::Price | SpanKind::Quantity))
    };
    let (amounts, mut values): (Vec<&str>, Vec<&str>) =
        unstated.into_iter().partition(|value| is_amount(value));
    let note = if amounts.is_empty() { "" } else { " (with that currency or unit)" };
    values.extend(amounts);
    format!("what the answer cites does not state {}{note}", values.join(", "))
}

fn print_quoted(answer: &AskAnswer, explain: bool) -> Result<(), CliError> {
    let outcome = &answer.outcome;
    print_claims(&answer.claims)?;
    if answer.claims.is_empty() {
        output::text(&outcome.reply)?;
    }
    if explain {
        output::line("")?;
        output::line(&layout(&outcome.receipt.receipt))?;
    }
    let asked = match answer.search.calls {
        0 => "no model was asked".to_owned(),
        calls => format!(
            "quoted; planning took {}, {} tokens",
            counted(calls as u64, "call"),
            answer.search.tokens()
        ),
    };
    let seconds = outcome.latency_ms as f64 / 1000.0;
    output::say(&format!("run {} · {asked} · {seconds:.1} s", outcome.run_id.as_str()));
    Ok(())
}

fn print_claims(claims: &[GroundedClaim]) -> Result<(), CliError> {
    claims.iter().try_for_each(|claim| output::text(&format!("{}\n  {}", claim.text, place(claim))))
}

/// Where a claim comes from.
fn place(claim: &GroundedClaim) -> String {
    let ((first, last), (start, end)) = (claim.lines, claim.bytes);
    format!("← {}:{first}-{last} (bytes {start}-{end}) {}", claim.source, claim.pointer)
}

fn print_quotes(format: Format, quotes: &[Quote], search: &SearchReport) -> Result<(), CliError> {
    say(search);
    if format == Format::Json {
        return output::json(&quotes);
    }
    if quotes.is_empty() {
        output::say("no passage shares a word with the question");
    }
    for quote in quotes {
        let (first, last) = quote.lines;
        let (start, end) = quote.bytes;
        output::text(&format!("{}:{first}-{last} (bytes {start}-{end}) {}", quote.source, quote.pointer))?;
        output::text(&format!("{}\n", quote.text.trim_end()))?;
    }
    Ok(())
}

fn say(search: &SearchReport) {
    output::say(&search.summary());
    for step in &search.steps {
        output::say(&format!("  {step}"));
    }
    say_skipped(&search.skipped);
}

/// Lists files that could not be read, and counts those that are never read by reason.
fn say_skipped(skipped: &[SkippedFile]) {
    let failed: Vec<&SkippedFile> = skipped.iter().filter(|skipped| !skipped.is_expected).collect();
    for skipped in failed.iter().take(SKIPPED_NAMED) {
        output::say(&format!("skipped {skipped}"));
    }
    if failed.len() > SKIPPED_NAMED {
        let more = failed.len() - SKIPPED_NAMED;
        output::say(&format!("skipped {more} more; --format json lists them"));
    }
    let mut expected: BTreeMap<&str, usize> = BTreeMap::new();
    for skipped in skipped.iter().filter(|skipped| skipped.is_expected) {
        *expected.entry(&skipped.reason).or_default() += 1;
    }
    if !expected.is_empty() {
        let counts: Vec<String> =
            expected.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        output::say(&format!("not read: {}", counts.join(", ")));
    }
}
