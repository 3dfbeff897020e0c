//! Requests whose model is a recipe: the last words of the user are the query, what was said before is the history.
//! Runs go through the engine, as everywhere; knows nothing of how it works.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use larder::engine::Engine;
use larder::executor::{RunOutcome, Silent};
use larder::inputs::RunInput;
use larder_core::message::{Content, Message, Role, ToolCall};
use larder_core::recipe::Recipe;
use larder_models::table::ModelTable;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::app::Snapshot;
use crate::exchange::{AnsweredBy, Bill, Tokens};
use crate::gateway::bill::Pricing;
use crate::gateway::fault::Fault;
use crate::gateway::ledger::Ledger;
use crate::gateway::made::Answer;
use crate::gateway::reply;
use crate::wire::{Format, Item, Request};

/// A recipe to be run for a request.
pub struct Job {
    /// `category/name`.
    recipe: String,
    input: RunInput,
    stream: bool,
    include_usage: bool,
}

/// Whether a request can ask a recipe anything: it has room for words, but for no documents and no values, and a model
/// must answer.
pub fn can_be_asked(recipe: &Recipe, models: &ModelTable) -> bool {
    let reads = !recipe.input_sections.is_empty() || recipe.input_docs.iter().any(|doc| doc.required);
    !reads && recipe.inputs.is_empty() && models.resolve(recipe.layer, recipe.mode).is_some()
}

/// What a request asks a recipe.
///
/// # Errors
/// When nobody asks anything.
pub fn job(recipe: &str, request: &Request<'_>, session: String) -> Result<Job, Fault> {
    let asks = |item: &Item<'_>| item.role() == Role::User && !item.text().trim().is_empty();
    let Some(last) = request.items.iter().rposition(asks) else {
        return Err(Fault::invalid("a recipe needs a message of the user: its text is the query"));
    };
    let before = request.items.iter().take(last).filter(|item| item.role() != Role::System);
    let input = RunInput {
        query: request.items.get(last).map(|item| item.text().to_owned()),
        history: before.map(message).collect(),
        session_id: Some(session),
        ..RunInput::default()
    };
    let (stream, include_usage) = (request.stream, request.include_usage);
    Ok(Job { recipe: recipe.to_owned(), input, stream, include_usage })
}

fn message(item: &Item<'_>) -> Message {
    let call = |call: &crate::wire::Call<'_>| ToolCall {
        id: call.id.to_string(),
        name: call.name.to_string(),
        arguments: call.arguments.to_string(),
    };
    Message {
        role: item.role(),
        content: item.texts.iter().map(|text| Content::Text { text: text.text().into_owned() }).collect(),
        tool_calls: item.calls.iter().map(call).collect(),
        tool_call_id: item.result.as_ref().map(|result| result.id.to_string()),
    }
}

/// Runs a recipe and answers in the request's own format. The run ends when its client leaves.
pub async fn run(mut ledger: Ledger, format: Format, job: Job, current: &Snapshot) -> Response<Body> {
    let engine = current.engine(&ledger.caller.store);
    ledger.exchange.head.recipe = Some(job.recipe.clone());
    if let Err(fault) = set_aside(&mut ledger, &engine, &job) {
        return reply::refuse(ledger, format, fault);
    }
    ledger.leaves();
    let (gone, runtime) = (CancellationToken::new(), Handle::current());
    let leaves = gone.clone().drop_guard();
    let (recipe, input) = (job.recipe.clone(), job.input.clone());
    // A run reads and writes the store between its calls of models.
    let running = tokio::task::spawn_blocking(move || {
        runtime.block_on(gone.run_until_cancelled(engine.run(&recipe, &input, &Silent)))
    });
    let ended = running.await;
    drop(leaves);
    match ended {
        Ok(Some(Ok(outcome))) => answer(ledger, format, &job, &outcome),
        Ok(Some(Err(error))) => reply::refuse(ledger, format, error.into()),
        Ok(None) => reply::refuse(ledger, format, Fault::bug("a run was cancelled while its client waited")),
        Err(error) => reply::refuse(ledger, format, Fault::bug(&error.to_string())),
    }
}

/// Sets aside what one call of the recipe's model may take.
fn set_aside(ledger: &mut Ledger, engine: &Engine, job: &Job) -> Result<(), Fault> {
    // The run itself says what is wrong with a recipe, and raises what is to be raised.
    let Ok(recipe) = engine.own_or_shipped(&job.recipe) else { return Ok(()) };
    let number = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
    let output = number(recipe.budget.output);
    let after = number(recipe.budget.total).saturating_sub(output);
    ledger.exchange.head.tokens = Tokens { after, output, budget: after, ..Tokens::default() };
    if let Some(found) = engine.models.table().resolve(recipe.layer, recipe.mode) {
        ledger.pricing = found.spec.prices.map(|prices| Pricing { prices, before: 0 });
        ledger.exchange.head.answered_by = Some(AnsweredBy {
            name: found.name.to_owned(),
            id: found.spec.id.clone(),
            provider: found.spec.provider,
        });
    }
    ledger.reserve()
}

fn answer(mut ledger: Ledger, format: Format, job: &Job, outcome: &RunOutcome) -> Response<Body> {
    let receipt = &outcome.receipt.receipt;
    let number = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
    let whole = receipt.parts.iter().map(|part| number(part.original_tokens.unwrap_or(part.tokens)));
    let head = &mut ledger.exchange.head;
    head.run = Some(outcome.run_id.clone());
    head.usage = Some(outcome.usage);
    // Nothing says what the recipe would have cost without being packed, so nothing is claimed.
    head.bill = outcome.cost.map(|cost| Bill { cost, without: cost });
    head.tokens.after = number(receipt.total);
    head.tokens.before = whole.fold(0, u64::saturating_add).max(head.tokens.after);
    ledger.pricing = None;
    ledger.end(StatusCode::OK);
    let (id, model) = (ledger.exchange.head.id.clone(), ledger.exchange.head.model.clone());
    let answer = Answer {
        id: &id,
        created: ledger.exchange.head.time.as_millis() / 1_000,
        model: &model,
        text: &outcome.reply,
        usage: outcome.usage,
        include_usage: job.include_usage,
    };
    let (kind, body) = match job.stream {
        true => ("text/event-stream", answer.events(format)),
        false => ("application/json", answer.whole(format)),
    };
    let mut response =
        Response::builder().header(CONTENT_TYPE, kind).body(Body::from(body)).unwrap_or_default();
    response.headers_mut().extend(reply::ours(&ledger.exchange));
    response
}
