//! Requests whose model is a recipe: the user's last message is the query, everything before it is the history. Runs
//! go through the engine, as everywhere; knows nothing of its internals.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use larder_agent::recipe_tools::RunTools;
use larder_core::recipe::{Recipe, RecipeError, Risk, suggest};
use larder_engine::executor::{
    Meter, NoopObserver, ProgressObserver, RunError, RunOutcome, RunReceipt, Spending, max_call_usage,
};
use larder_engine::history::{self, Question};
use larder_engine::inputs::RunInput;
use larder_engine::settings::CallableTools;
use larder_engine::{Engine, blocking};
use larder_models::chat::Usage;
use larder_models::connect::Models;
use larder_models::price::Usd;
use larder_models::table::ModelSpec;
use larder_proxy::record::{AnsweredBy, RequestSummary, Tokens};
use larder_proxy::wire::{ApiDialect, RecipeReply, Request};
use larder_text::pointer::PointerKey;
use larder_tools::{RECIPES_OF_TOOLS, ToolClass};
use tokio_util::sync::CancellationToken;

use crate::app::Snapshot;
use crate::error::RequestError;
use crate::request::active::ActiveRequest;
use crate::request::fields::{self, Answerer, Fields};
use crate::request::reply;

/// A recipe to be run for a request.
pub struct RecipeRequest {
    /// `category/name`.
    recipe: String,
    input: RunInput,
    stream: bool,
    include_usage: bool,
}

/// Whether a request can ask a recipe anything: it has room for words, but for no documents and no values, and a model
/// answers.
pub fn can_be_asked(recipe: &Recipe, models: &Models) -> bool {
    let reads = !recipe.input_sections.is_empty() || recipe.input_docs.iter().any(|doc| doc.required);
    !reads && recipe.inputs.is_empty() && has_model(recipe, models)
}

/// Whether a model is bound to the layer of a recipe, and its weights are there, or those of a fallback, which may not take
/// over at high risk.
pub fn has_model(recipe: &Recipe, models: &Models) -> bool {
    let table = models.table();
    let bound = table.resolve(recipe.layer, recipe.mode).map(|bound| bound.name);
    let may_fall_back = recipe.risk != Risk::High;
    let fallback = |name: &&str| table.model(name)?.fallback.as_deref().filter(|_| may_fall_back);
    std::iter::successors(bound, fallback).any(|name| models.has_weights(name))
}

/// Maps a request to a recipe run. What it cannot take is an error; what it leaves out is listed in the record, here and
/// in that of the run.
///
/// # Errors
/// All that is wrong with the request: fields and messages that a recipe cannot take, or no question.
pub fn job(
    recipe: &str,
    request: &Request<'_>,
    session: String,
    record: &mut RequestSummary,
    key: &PointerKey,
) -> Result<RecipeRequest, RequestError> {
    let Fields { max_output, mut ignored, mut problems } = Fields::judge(request, Answerer::Recipe);
    let read = history::question(request.body, key);
    let Question { query, pictures, history, unread } = read.unwrap_or_else(|found| {
        problems.extend(found);
        Question::default()
    });
    if !problems.is_empty() {
        let problems = fields::capped(problems);
        return Err(RequestError::invalid(format!("nothing was sent: {}", problems.join("; "))));
    }
    ignored.extend(unread.iter().map(|name| fields::shown(name)));
    let ignored = fields::capped(ignored);
    record.ignored.clone_from(&ignored);
    // The request is kept where the prompt does not hold all of it.
    let is_kept = !history.messages.is_empty() || !ignored.is_empty();
    let input = RunInput {
        query: Some(query),
        pictures,
        history: history.messages,
        history_originals: if is_kept { history.originals } else { Vec::new() },
        session_id: Some(session),
        max_output,
        ignored,
        request_id: Some(record.id.clone()),
        ..RunInput::default()
    };
    let (stream, include_usage) = (request.stream, request.include_usage);
    Ok(RecipeRequest { recipe: recipe.to_owned(), input, stream, include_usage })
}

/// Runs a recipe and answers in the request's own format. The run ends when its client leaves.
pub async fn run(
    active: ActiveRequest,
    dialect: ApiDialect,
    job: RecipeRequest,
    current: &Snapshot,
) -> Response<Body> {
    let engine = match with_tools(&active, &job, current).await {
        Ok(engine) => engine,
        Err(problem) => return reply::refuse(active, dialect, RequestError::bug(&problem)),
    };
    let engine = engine.paid_by(active.caller.key.clone());
    let gone = CancellationToken::new();
    let leaves = gone.clone().drop_guard();
    // A run reads and writes the store, before and between its calls of models.
    let running = blocking::spawn(async move {
        let mut active = active;
        let ended = ended(&mut active, &engine, &job, &gone).await;
        (active, job, ended)
    });
    let ran = running.await;
    drop(leaves);
    match ran {
        Ok((active, job, Ok(outcome))) => answer(active, dialect, &job, &outcome),
        Ok((active, _, Err(error))) => reply::refuse(active, dialect, error),
        Err(error) => reply::error(dialect, &RequestError::bug(&error.to_string())),
    }
}

/// The engine of a run, with the tools that its recipe names and the settings allow over HTTP.
async fn with_tools(
    active: &ActiveRequest,
    job: &RecipeRequest,
    current: &Snapshot,
) -> Result<Engine, String> {
    let engine = current.engine(&active.caller.store);
    let most = match current.gateway.recipe_tools {
        CallableTools::None => return Ok(engine),
        CallableTools::Read => ToolClass::Read,
        CallableTools::Write => ToolClass::Write,
    };
    let names_tools = engine.recipe_or_builtin(&job.recipe).is_ok_and(|recipe| !recipe.tools.is_empty());
    if !names_tools {
        return Ok(engine);
    }
    let turns = active.app().turns(&active.caller).await.map_err(|problem| problem.detail)?;
    Ok(engine.with_tools(Some(Arc::new(RunTools::new(&turns, None, most)))))
}

/// Runs a recipe, and records its usage. Blocks between its await points.
async fn ended(
    active: &mut ActiveRequest,
    engine: &Engine,
    job: &RecipeRequest,
    gone: &CancellationToken,
) -> Result<RunOutcome, RequestError> {
    active.record.summary.recipe = Some(job.recipe.clone());
    let call = reserve_call(active, engine, job)?;
    // Should this thread panic, as much counts as was reserved.
    active.record_run(Spending::default(), call);
    let (ended, taken, by_model, open) = {
        let account = RunBudget::new(active, call);
        let ended = gone.run_until_cancelled(engine.run(&job.recipe, &job.input, &account)).await;
        // Most likely the client left during a call.
        let under_way = u64::from(ended.is_none());
        (ended, account.meter.total(), account.meter.by_model(), account.open(under_way))
    };
    active.record_run(taken, open);
    active.record_models(&by_model);
    if let Some(Ok(outcome)) = &ended {
        let answered = engine.models.table().model(&outcome.receipt.model);
        active.record.summary.answered_by = answered
            .map(|spec| answered_by(&outcome.receipt.model, spec))
            .or(active.record.summary.answered_by.take());
    }
    ended
        .ok_or_else(|| RequestError::bug("a run was cancelled while its client waited"))?
        .map_err(|error| with_names(error, engine).into())
}

/// The error for a recipe that is not there, with the names of those that a request can ask.
fn with_names(error: RunError, engine: &Engine) -> RunError {
    let RunError::Recipe { source: RecipeError::NotFound { name, .. }, intervention } = error else {
        return error;
    };
    let recipes = engine.project.check().recipes.iter();
    let asked = recipes.filter(|recipe| can_be_asked(recipe, &engine.models));
    let names: Vec<String> = asked.map(Recipe::id).collect();
    let help = suggest(&name, names.iter().map(String::as_str));
    RunError::Recipe { source: RecipeError::NotFound { name, help }, intervention }
}

/// Reserves the maximum usage of one recipe call, and returns it: tokens and their price.
fn reserve_call(
    active: &mut ActiveRequest,
    engine: &Engine,
    job: &RecipeRequest,
) -> Result<(u64, Usd), RequestError> {
    // The run itself reports a broken recipe and raises the intervention.
    let Ok(recipe) = engine.recipe_or_builtin(&job.recipe) else { return Ok(Default::default()) };
    active.record.summary.model_is_known = true;
    let number = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
    let output = recipe.budget.output;
    let output = number(job.input.max_output.map_or(output, |most| most.min(output)));
    let after = number(recipe.budget.total).saturating_sub(output);
    active.record.summary.tokens = Tokens { after, output, budget: after, ..Tokens::default() };
    if let Some(found) = engine.models.table().resolve(recipe.layer, recipe.mode) {
        active.record.summary.answered_by = Some(answered_by(found.name, found.spec));
    }
    let mut reach = engine.reachable_models(recipe, None);
    let mut most = Usage { input: after, output, ..Usage::default() };
    // A call of a tool may run recipes itself.
    let inner = RECIPES_OF_TOOLS.iter().filter(|_| engine.calls_tools() && !recipe.tools.is_empty());
    for recipe in inner.filter_map(|name| engine.recipe_or_builtin(name).ok()) {
        reach.join(engine.reachable_models(recipe, None));
        let max = max_call_usage(recipe);
        (most.input, most.output) = (most.input.max(max.input), most.output.max(max.output));
    }
    let now = active.app().store.now();
    active.caller.may_ask(&reach).map_err(|error| RequestError::from_auth(&error, now))?;
    let cost = reach.most(&most);
    let call = (most.input.saturating_add(most.output), cost);
    active.reserve_amount(call.0, call.1)?;
    Ok(call)
}

fn answered_by(name: &str, spec: &ModelSpec) -> AnsweredBy {
    AnsweredBy { name: name.to_owned(), id: spec.id.clone(), server: None, provider: spec.provider }
}

/// The usage of a run, and its reservation.
struct RunBudget<'a> {
    /// What answered calls used.
    meter: Meter<'static>,
    /// Calls whose outcome is unknown.
    unanswered: AtomicU64,
    /// What one call may use.
    call: (u64, Usd),
    /// The request, and its reservation.
    held: Mutex<(&'a mut ActiveRequest, u64, Usd)>,
}

impl<'a> RunBudget<'a> {
    /// The budget of a run for whose first call enough is reserved.
    fn new(active: &'a mut ActiveRequest, call: (u64, Usd)) -> Self {
        let meter = Meter::new(&NoopObserver, None, None);
        Self { meter, unanswered: AtomicU64::new(0), call, held: Mutex::new((active, call.0, call.1)) }
    }

    /// The maximum usage of calls with an unknown outcome and of `more` further calls, at the reservation of one call
    /// each.
    fn open(&self, more: u64) -> (u64, Usd) {
        let calls = self.unanswered.load(Ordering::Relaxed).saturating_add(more);
        let cost = Usd::from_picos(self.call.1.picos().saturating_mul(calls));
        (self.call.0.saturating_mul(calls), cost)
    }
}

impl ProgressObserver for RunBudget<'_> {
    fn stage(&self, _: &str) {}

    fn packed(&self, _: &RunReceipt) {}

    fn spent(&self, model: &str, usage: Usage, cost: Option<Usd>) {
        self.meter.spent(model, usage, cost);
    }

    fn unanswered(&self, _: Usage, _: Option<Usd>) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    /// Reserves more if the reservation does not cover a further call.
    fn may_spend(&self) -> bool {
        let taken = self.meter.total();
        // In addition to known usage: what may have been used, and the further call.
        let beside = self.open(1);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (active, tokens, cost) = &mut *held;
        let more = taken.tokens().saturating_add(beside.0).saturating_sub(*tokens);
        let needed = taken.cost.unwrap_or_default() + beside.1;
        let dearer = Usd::from_picos(needed.picos().saturating_sub(cost.picos()));
        if (more, dearer) == Default::default() {
            return true;
        }
        let is_held = active.reserve_amount(more, dearer).is_ok();
        if is_held {
            (*tokens, *cost) = (tokens.saturating_add(more), *cost + dearer);
        }
        is_held
    }
}

fn answer(
    mut active: ActiveRequest,
    dialect: ApiDialect,
    job: &RecipeRequest,
    outcome: &RunOutcome,
) -> Response<Body> {
    let receipt = &outcome.receipt.receipt;
    let number = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
    let whole = receipt.own_parts().map(|part| number(part.original_tokens.unwrap_or(part.tokens)));
    let head = &mut active.record.summary;
    head.run = Some(outcome.run_id.to_string());
    head.tokens.after = number(receipt.total);
    head.tokens.before = whole.fold(0, u64::saturating_add).max(head.tokens.after);
    active.complete(StatusCode::OK);
    let (id, model) = (active.record.summary.id.clone(), active.record.summary.model.clone());
    let text = outcome.text();
    let answer = RecipeReply {
        id: &id,
        created: active.record.summary.time.as_millis() / 1_000,
        model: &model,
        text: &text,
        draft: None,
        is_cut: outcome.is_cut,
        usage: outcome.usage,
        include_usage: job.include_usage,
    };
    let (kind, body) = match job.stream {
        true => (dialect.stream_type(), answer.events(dialect)),
        false => ("application/json", answer.whole(dialect).into_bytes()),
    };
    let mut response =
        Response::builder().header(CONTENT_TYPE, kind).body(Body::from(body)).unwrap_or_default();
    response.headers_mut().extend(reply::ours(&active.record));
    active.finish();
    response
}
