//! `larder ask`: a question over files and folders of any size.

use std::path::PathBuf;

use larder_agent::ask::{Answer, AskError, Asker, Question, Quote, Search};
use larder_engine::settings::{AskLimits, Planner};

use crate::args::{AskArgs, Format, PlannerArg};
use crate::context::Context;
use crate::error::CliError;
use crate::progress::Spinner;
use crate::{commands, output};

/// Passages that `--quote` prints.
const QUOTED: usize = 5;

pub async fn run(context: &Context, args: AskArgs) -> Result<(), CliError> {
    let Some((question, paths)) = args.inputs.split_last().filter(|(_, paths)| !paths.is_empty()) else {
        return Err(CliError::Usage("expected files or folders, then the question".to_owned()));
    };
    if question.trim().is_empty() {
        return Err(CliError::Usage("the question, which comes last, is empty".to_owned()));
    }
    if !args.quote {
        context.ensure_weights(args.yes).await?;
    }
    let engine = context.engine()?;
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    let (planner, limits) = context.config.asking();
    let question = Question {
        text: question,
        paths: &paths,
        recipe: &args.recipe,
        planner: args.planner.map_or(planner, |planner| match planner {
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

/// What went wrong in a run keeps the exit code of runs; everything else is the user's to mend.
fn failed(error: AskError) -> CliError {
    match error {
        AskError::Run(error) => error.into(),
        AskError::Store(error) => error.into(),
        error => CliError::Fixable(error.to_string()),
    }
}

fn print(context: &Context, answer: &Answer, explain: bool) -> Result<(), CliError> {
    say(&answer.search);
    if context.global.format == Format::Json {
        context.note_on_counting(&answer.outcome.receipt.model, &answer.outcome.receipt.tokenizer);
        return output::json(answer);
    }
    commands::run::print(context, &answer.outcome, explain)?;
    for claim in &answer.claims {
        let doubt = if claim.supported { "" } else { " (no words in common)" };
        let (first, last) = claim.lines;
        let (start, end) = claim.bytes;
        output::line(&format!(
            "  {:?}\n    ← {}:{first}-{last} (bytes {start}-{end}) {}{doubt}",
            claim.text, claim.source, claim.pointer
        ))?;
    }
    Ok(())
}

fn print_quotes(format: Format, quotes: &[Quote], search: &Search) -> Result<(), CliError> {
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
        output::line(&format!("{}:{first}-{last} (bytes {start}-{end}) {}", quote.source, quote.pointer))?;
        output::line(&format!("{}\n", quote.text.trim_end()))?;
    }
    Ok(())
}

fn say(search: &Search) {
    for note in &search.skipped {
        tracing::warn!("{note}");
    }
    output::say(&search.summary());
    for step in &search.steps {
        output::say(&format!("  {step}"));
    }
}
