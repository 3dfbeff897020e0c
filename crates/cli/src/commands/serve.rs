//! `larder serve`: runs the gateway in the foreground until it is stopped.

use std::net::SocketAddr;

use larder_core::recipe::Diagnostic;
use larder_engine::config::{ConfigError, catalogue_file};
use larder_gateway::app::{App, Load, Loaded};
use larder_gateway::reload::WatchedFiles;
use larder_gateway::serve;
use larder_store::{LOCAL_USER, Store};
use tokio::net::TcpListener;

use crate::args::{Global, ServeArgs};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

/// Files in the project folder whose changes cause a reload.
const WATCHED: [&str; 4] = ["larder.toml", "recipes", "prompts", "routes"];

pub async fn run(global: Global, args: &ServeArgs) -> Result<(), CliError> {
    let flags = flags(args);
    let context = CommandContext::with_flags(global.clone(), &flags)?;
    let store = context.whole_store()?;
    let project = WATCHED.iter().map(|name| context.folder().join(name));
    let watched = WatchedFiles::new(project.chain([catalogue_file(context.config.home())]).collect());
    let app = App::new(store.clone(), loader(global, flags, store))?;
    let gateway = app.current().gateway.clone();
    let address = gateway.listen;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        CliError::Fixable(format!(
            "cannot listen on {address}: {error}; choose another address with --listen"
        ))
    })?;
    let extra = larder_console::routes(&app);
    let asked = serve::asked_to_stop();
    greet(&app, listener.local_addr().unwrap_or(address))?;
    note_on_counting(&context, &app);
    let cut = serve::run(app, extra, listener, watched, asked).await;
    if cut > 0 {
        output::say(&format!(
            "{cut} connections were cut: their requests did not finish within gateway.drain_s"
        ));
    }
    Ok(())
}

fn flags(args: &ServeArgs) -> Vec<(&'static str, String)> {
    let given = [
        ("gateway.listen", &args.listen),
        ("gateway.openai", &args.openai),
        ("gateway.anthropic", &args.anthropic),
    ];
    given.into_iter().filter_map(|(key, value)| Some((key, value.clone()?))).collect()
}

/// Reloads settings, recipes and models.
pub(super) fn loader(global: Global, flags: Vec<(&'static str, String)>, store: Store) -> Box<Load> {
    Box::new(move || {
        let words = |error: CliError| error.to_string();
        let context = CommandContext::with_flags(global.clone(), &flags).map_err(words)?;
        let project = context.project().map_err(words)?;
        let errors: Vec<Diagnostic> =
            project.check().diagnostics.iter().filter(|found| found.is_error()).cloned().collect();
        if !errors.is_empty() {
            return Err(project.render(&errors));
        }
        let unusable = context.config.unusable_upstreams(&context.models());
        if !unusable.is_empty() {
            return Err(ConfigError::Problems(unusable).to_string());
        }
        let user = store.user(&context.global.user).map_err(|error| error.to_string())?;
        let engine = context.engine_over(project, user, context.config.policy()).map_err(words)?;
        Ok(Loaded { config: context.config, engine })
    })
}

/// Points out models whose tokens are estimated by bytes, which wastes most of their windows.
fn note_on_counting(context: &CommandContext, app: &App) {
    let current = app.current();
    for (name, spec) in current.routes.models().filter(|(_, spec)| spec.max_output > 0) {
        context.note_on_counting(name, current.shared().counter(spec).name());
    }
}

/// Prints what is served and how to point clients at it.
fn greet(app: &App, address: SocketAddr) -> Result<(), CliError> {
    let current = app.current();
    output::line(&format!("larder serves http://{address}"))?;
    output::line(&format!("  OpenAI clients     OPENAI_BASE_URL=http://{address}/v1"))?;
    output::line(&format!("  Anthropic clients  ANTHROPIC_BASE_URL=http://{address}"))?;
    output::line(&format!("  MCP clients        http://{address}/mcp"))?;
    output::line(&format!("  dashboard          http://{address}/"))?;
    let models: Vec<&str> = current.routes.models().map(|(name, _)| name).collect();
    let recipes = current.shared().project.check().recipes.iter().count();
    let models = if models.is_empty() { "none in larder.toml".to_owned() } else { models.join(", ") };
    output::line(&format!("models: {models}; recipes: {recipes}, as recipe/<category>/<name>"))?;
    for upstream in &current.gateway.upstreams() {
        let format = upstream.provider.info().server.and_then(|server| server.gateway_format);
        let format = format.map_or("other formats", |(name, _)| name);
        output::line(&format!("other models in {format}: {}", upstream.base_url))?;
    }
    if current.gateway.upstreams().is_empty() {
        output::line(
            "other models: refused; to forward them, pass --openai URL or --anthropic URL, or set openai or anthropic \
             under [gateway] in larder.toml",
        )?;
    }
    output::line(&admission(app.keys_required(), app.store.keys().any_created()?))
}

/// Whether calls need a key, and who callers without one are.
fn admission(required: Option<bool>, created: bool) -> String {
    if required.unwrap_or(created) {
        return "every request needs a key; `larder keys create` creates one".to_owned();
    }
    let why = if created { "keys are not required" } else { "no keys yet" };
    format!(
        "{why}: any program on this machine that can reach this port is user {LOCAL_USER}, and so is everyone behind a \
         proxy on this machine that sends no forwarding header; see `larder keys create` and gateway.require_keys"
    )
}
