//! `larder run`: one recipe, run and recorded. Also reads the inputs that `explain` shares.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use larder_core::pack::layout;
use larder_core::recipe::Mode;
use larder_engine::Engine;
use larder_engine::executor::{RunError, RunOutcome};
use larder_engine::history;
use larder_engine::inputs::{InputDocument, RunInput};
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_store::ModelUsage;
use larder_text::picture::Picture;
use larder_text::sections::{SectionId, Sections, starts_section};
use larder_text::words::counted;

use crate::args::{Format, InputArgs, ModeArg, RunArgs};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::progress::Spinner;
use crate::recipe_tools::{self, ToolAccess};
use crate::turns::confirm;
use crate::{commands, files, output, stop};

/// Endings of names of pictures.
const PICTURES: [&str; 10] = ["png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic", "avif"];

pub async fn run(context: &CommandContext, args: RunArgs) -> Result<(), CliError> {
    let input = read_input(context, &args.input)?;
    let layers = || {
        let engine = context.engine()?;
        // The run itself reports a missing recipe.
        let recipe = engine.find(&args.input.recipe, input.mode);
        Ok(recipe.map(|recipe| engine.answering_layers(recipe, None)).unwrap_or_default())
    };
    context.ensure_weights(args.yes, layers).await?;
    let spinner = Spinner::new(args.explain);
    let confirm = confirm::by(args.yes, &Arc::default(), spinner.clone());
    let access = ToolAccess { confirm, workspace: args.workspace };
    let store = context.whole_store()?;
    let engine = recipe_tools::engine(context, store, &args.input.recipe, &input, access).await?;
    note_on_project(context, &engine);
    if args.until_done {
        let work = (args.input.recipe.as_str(), input);
        return commands::until_done::run(context, &engine, work, &args.repeat, &spinner).await;
    }
    let outcome = or_stopped(engine.run(&args.input.recipe, &input, &spinner)).await;
    spinner.done();
    let outcome = outcome?;
    note_on_reduction(context, &outcome);
    print(context, &outcome, false)
}

/// The outcome of a run, unless the process is asked to stop before.
pub async fn or_stopped(
    run: impl Future<Output = Result<RunOutcome, RunError>>,
) -> Result<RunOutcome, CliError> {
    tokio::select! {
        outcome = run => Ok(outcome?),
        () = stop::requested() => Err(CliError::Stopped),
    }
}

/// Says what a run does not follow: recipes with errors, and a setting that holds for the gateway only.
pub fn note_on_project(context: &CommandContext, engine: &Engine) {
    let found = &engine.project.check().diagnostics;
    let files: BTreeSet<&str> =
        found.iter().filter(|found| found.is_error()).map(|found| found.file.as_str()).collect();
    if let Some(first) = files.first() {
        let more = match files.len() - 1 {
            0 => String::new(),
            1 => " and 1 more file".to_owned(),
            more => format!(" and {more} more files"),
        };
        output::say(&format!("{first}{more} cannot be used; `larder check` says why"));
    }
    if context.config.context_policy().dry_run {
        output::say("policy.dry_run holds for the gateway; recipes condense what does not fit");
    }
}

/// Says what of a prompt was not sent whole.
pub fn note_on_reduction(context: &CommandContext, outcome: &RunOutcome) {
    if let Some(notice) = outcome.receipt.reduction_notice() {
        context.note(&output::visible(&format!("note: {notice}")));
    }
}

/// Prints an outcome: the answer on stdout; for people also its citations.
pub fn print(context: &CommandContext, outcome: &RunOutcome, explain: bool) -> Result<(), CliError> {
    context.note_on_counting(&outcome.receipt.model, &outcome.receipt.tokenizer);
    if let Some(notice) = outcome.receipt.fallback_notice() {
        context.note(&output::visible(&format!("note: {notice}")));
    }
    if let Some(notice) = outcome.receipt.condensing.as_ref().and_then(|tally| tally.notice(&outcome.run_id))
    {
        context.note(&output::visible(&format!("note: {notice}")));
    }
    if context.global.format == Format::Json {
        return output::json(outcome);
    }
    let answer = outcome.output.get("answer").and_then(|answer| answer.as_str()).unwrap_or(&outcome.reply);
    output::text(answer)?;
    for signal in &outcome.signals {
        output::text(signal)?;
    }
    for citation in &outcome.citations {
        let lines = citation.lines.map(|(first, last)| format!(":{first}-{last}")).unwrap_or_default();
        let bytes = citation.bytes.map(|(start, end)| format!(" (bytes {start}-{end})")).unwrap_or_default();
        output::text(&format!("  [{}] {}{lines}{bytes}", citation.part, citation.source))?;
    }
    if explain {
        output::line("")?;
        output::line(&layout(&outcome.receipt.receipt))?;
    }
    // Each call that condenses has a record of its own, so the run's usage is without it.
    let condensing = outcome.receipt.condensing.as_ref().filter(|tally| tally.calls > 0);
    let condensing = condensing.map(|tally| {
        let calls = counted(tally.calls as u64, "call");
        format!(" · condensing: {calls}, {}", spent(tally.usage, tally.cost))
    });
    output::say(&format!(
        "run {} · {} · {}{}{} · {:.1} s",
        outcome.run_id.as_str(),
        outcome.receipt.model,
        spent(outcome.usage, outcome.cost),
        by_model(&outcome.models).map(|models| format!(" ({models})")).unwrap_or_default(),
        condensing.unwrap_or_default(),
        outcome.latency_ms as f64 / 1000.0
    ));
    Ok(())
}

fn spent(usage: Usage, cost: Option<Usd>) -> String {
    let cost = cost.map(|cost| format!(", ${cost}")).unwrap_or_default();
    format!("{} tokens in, {} out{cost}", usage.input, usage.output)
}

/// What each model used, if a run asked several.
pub fn by_model(models: &[ModelUsage]) -> Option<String> {
    let one = |usage: &ModelUsage| {
        let cost = usage.cost_usd.map_or_else(|| "no price".to_owned(), |cost| format!("${cost}"));
        let calls = counted(usage.calls.into(), "call");
        let ModelUsage { model, input_tokens, output_tokens, .. } = usage;
        format!("{model}: {calls}, {input_tokens} tokens in, {output_tokens} out, {cost}")
    };
    (models.len() > 1).then(|| models.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// Reads everything a recipe is given.
pub fn read_input(context: &CommandContext, args: &InputArgs) -> Result<RunInput, CliError> {
    let mut input = RunInput {
        query: args.query.clone(),
        variant: args.variant.clone(),
        mode: args.mode.map(|mode| match mode {
            ModeArg::Chat => Mode::Chat,
            ModeArg::Code => Mode::Code,
        }),
        session_id: args.session.clone(),
        ..RunInput::default()
    };
    check_piped(args)?;
    for doc in &args.docs {
        input.documents.push(read_document(doc)?);
    }
    for value in &args.values {
        let (name, value) = value
            .split_once('=')
            .ok_or_else(|| CliError::Usage(format!("--set {value}: expected NAME=VALUE")))?;
        input.values.insert(name.to_owned(), serde_json::Value::from(value));
    }
    if let Some(path) = &args.history {
        let of_file = |problems: Vec<String>| {
            let lines: Vec<String> =
                problems.iter().map(|problem| format!("{}: {problem}", path.display())).collect();
            CliError::Fixable(lines.join("\n"))
        };
        let text = files::read_text(path)?;
        let history = history::read(&text, context.store()?.key()).map_err(of_file)?;
        history.notes.iter().for_each(|note| output::say(&format!("{}: {note}", path.display())));
        (input.history, input.history_originals) = (history.messages, history.originals);
    }
    Ok(input)
}

/// Refuses to read standard input twice.
fn check_piped(args: &InputArgs) -> Result<(), CliError> {
    let is_piped = |path: &Path| path.as_os_str() == "-";
    let docs = args.docs.iter().filter(|doc| is_piped(placed(doc).1)).map(|doc| format!("--doc {doc}"));
    let history = args.history.iter().filter(|path| is_piped(path)).map(|_| "--history -".to_owned());
    let mut piped = docs.chain(history);
    match (piped.next(), piped.next()) {
        (Some(first), Some(second)) => Err(CliError::Usage(format!(
            "{first} and {second} both read standard input, which can be read only once; give one of them a file"
        ))),
        _ => Ok(()),
    }
}

/// The name and the path of a `--doc`.
fn placed(doc: &str) -> (String, &Path) {
    match doc.split_once('=') {
        Some((name, path)) if !name.contains(['/', '\\']) => (name.to_owned(), Path::new(path)),
        _ => {
            let path = Path::new(doc);
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            (name, path)
        }
    }
}

fn read_document(doc: &str) -> Result<InputDocument, CliError> {
    let (name, path) = placed(doc);
    let bytes = files::read(path)?;
    if let Some(picture) = picture(path, &bytes)? {
        return Ok(InputDocument::picture(name, path.to_string_lossy(), picture));
    }
    let text = files::text(path, bytes)?;
    if text.contains('\0') {
        let path = path.display();
        return Err(CliError::Fixable(format!(
            "{path} is not text: it contains NUL bytes; give its text instead"
        )));
    }
    if name == "context.md" {
        for unread in unread_parts(&text) {
            output::say(&format!("{}: {unread}", path.display()));
        }
        for (line, heading, id) in near_headings(&text) {
            let path = path.display();
            output::say(&format!(
                "{path}:{line}: {heading:?} starts no section and is read as text of the one before it; did you mean {:?}?",
                id.heading()
            ));
        }
    }
    Ok(InputDocument::whole(name, path.to_string_lossy(), text))
}

/// The picture in a file; `None` if neither its content nor its name is that of one.
fn picture(path: &Path, bytes: &[u8]) -> Result<Option<Picture>, CliError> {
    let found = Picture::from_file(bytes);
    let is_named = || {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        ending.is_some_and(|ending| PICTURES.contains(&ending.as_str()))
    };
    let problem = match &found {
        Some(picture) if !picture.is_readable() => {
            format!(
                "its header is not one of {} that can be read; the file may be incomplete",
                picture.media_type()
            )
        }
        None if is_named() => "by its content it is no PNG, JPEG, GIF or WebP; convert it".to_owned(),
        _ => return Ok(found),
    };
    Err(CliError::Fixable(format!("{} cannot be sent as a picture: {problem}", path.display())))
}

/// What of a `context.md` no recipe reads: text before the first section, and all but the newest of a section.
fn unread_parts(text: &str) -> Vec<String> {
    let sections = Sections::parse(text);
    let is_said = |line: &&str| !line.trim().is_empty() && !line.starts_with(['#', '*', '-', '|', '>']);
    let mut unread = Vec::new();
    // Without any section, the run is refused.
    if !sections.sections.is_empty() && text[sections.preamble.clone()].lines().any(|line| is_said(&line)) {
        unread.push("has text before the first section, which is not read".to_owned());
    }
    if sections.attempts(SectionId::UserQuery).count() > 1 {
        unread.push(format!("has more than one {:?}; the last is read", SectionId::UserQuery.heading()));
    }
    unread
}

/// Lines that look like the heading of a section and are none, such as `## 1. Reflection` or `## Gathered Context`: the
/// line's number from 1, the line, and the section whose heading it resembles.
fn near_headings(text: &str) -> impl Iterator<Item = (usize, &str, SectionId)> {
    let first = |text: &str| text.split_whitespace().next().map(str::to_lowercase);
    let near = move |line: &str| {
        let rest = line.strip_prefix("## ")?;
        let name =
            rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '§' | '.' | ':' | ' '));
        let resembles = |id: &SectionId| {
            let expected = id.heading().split_once(". ").map_or("", |(_, name)| name);
            first(name).is_some() && first(name) == first(expected)
        };
        SectionId::ALL.into_iter().find(resembles).filter(|_| !starts_section(line))
    };
    text.lines().enumerate().filter_map(move |(at, line)| Some((at + 1, line, near(line)?)))
}
