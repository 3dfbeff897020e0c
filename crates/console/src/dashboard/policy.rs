//! The policy: settings with their help, the budget of each model, and the decision about a pasted request.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Html;
use axum::{Extension, Form};
use larder_core::policy::BudgetStatus;
use larder_engine::config::Setting;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::model_budget::ModelBudget;
use larder_proxy::record::{Endpoint, RequestRecord};
use larder_proxy::wire::ApiDialect;
use larder_store::Revision;
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{moment, name, number};
use super::layout::{NavItem, PageError, page};
use super::map::PartLink;
use super::requests;
use super::ui::{self, Column, Row, heading, panel, payload};
use crate::api::{OPERATORS_ONLY, Problem, Query, RevisionList, RevisionListParams, blocking, look};

/// Formats of pasted requests, with their names.
const PASTED: [(Endpoint, &str); 3] = [
    (Endpoint::Generate(ApiDialect::Chat), "OpenAI chat completions"),
    (Endpoint::Generate(ApiDialect::Responses), "OpenAI responses"),
    (Endpoint::Generate(ApiDialect::Messages), "Anthropic messages"),
];

/// The fields of the form.
#[derive(Debug, Deserialize)]
pub struct InspectForm {
    #[serde(rename = "wire")]
    endpoint: Endpoint,
    body: String,
}

/// `/policy`
pub async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(which): Query<RevisionListParams>,
) -> Result<Html<String>, PageError> {
    let learned = learned(&app, &caller, which).await?;
    Ok(page(&caller, NavItem::Policy, "Policy", &whole(&app, &caller, &learned, None)))
}

/// What was learned at run time; it belongs to all users.
async fn learned(
    app: &Arc<App>,
    caller: &Caller,
    which: RevisionListParams,
) -> Result<RevisionList, Problem> {
    if !caller.operator {
        return Ok(RevisionList::default());
    }
    let store = app.store.clone();
    blocking(move || RevisionList::read(&store, &which)).await
}

/// `POST /policy`: the decision about the pasted request.
pub async fn inspect(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    form: Result<Form<InspectForm>, axum::extract::rejection::FormRejection>,
) -> Result<Html<String>, PageError> {
    let Form(pasted) = form.map_err(Problem::from)?;
    let looked = look(app.clone(), caller.clone(), pasted.endpoint, pasted.body.clone()).await;
    let learned = learned(&app, &caller, RevisionListParams::default()).await?;
    Ok(page(&caller, NavItem::Policy, "Policy", &whole(&app, &caller, &learned, Some((&pasted, &looked)))))
}

fn whole(
    app: &Arc<App>,
    caller: &Caller,
    learned: &RevisionList,
    inspected: Option<(&InspectForm, &Result<RequestRecord, Problem>)>,
) -> Markup {
    html! {
        (heading("Policy", "What a prompt may take under each model, and the settings behind it.", None))
        @if let Some(problems) = app.refused().filter(|_| caller.operator) {
            section.notice.panel aria-labelledby="refused" {
                h2 #refused { "The last change of the settings was refused" }
                p { "The previous settings stay in effect. Larder reads the file again once this is fixed:" }
                (payload("What is wrong", &problems))
            }
        }
        @if let Some((_, looked)) = inspected { (result(looked)) }
        (inspector(inspected.map(|(pasted, _)| pasted)))
        @if caller.operator {
            (budgets(&app.budgets()))
            (revisions(learned))
            (settings(&app.settings()))
        } @else {
            (panel("settings", "Settings", html! { p.muted { (OPERATORS_ONLY) } }))
        }
    }
}

fn inspector(pasted: Option<&InspectForm>) -> Markup {
    let endpoint = pasted.map_or(Endpoint::Generate(ApiDialect::Chat), |pasted| pasted.endpoint);
    panel(
        "inspect",
        "What would become of a request?",
        html! {
            p.muted { "Larder decides about it as if it came in, but neither sends nor stores it." }
            form method="post" action="/policy#inspected" {
                label for="wire" { "Format" }
                select #wire name="wire" {
                    @for (each, words) in PASTED {
                        option value=(each.as_str()) selected[each == endpoint] { (words) }
                    }
                }
                label for="body" { "The request as JSON" }
                textarea.large #body name="body" required spellcheck="false"
                    placeholder=r#"{"model": "…", "messages": […]}"# {
                    (pasted.map(|pasted| pasted.body.as_str()).unwrap_or_default())
                }
                button type="submit" { "Inspect" }
            }
        },
    )
}

fn result(looked: &Result<RequestRecord, Problem>) -> Markup {
    html! {
        div #inspected {
            @match looked {
                Err(problem) => p.notice role="alert" { (problem.detail) },
                Ok(exchange) => {
                    (verdict(exchange))
                    (requests::windows(exchange, PartLink::Nothing))
                },
            }
        }
    }
}

fn verdict(exchange: &RequestRecord) -> Markup {
    let Some(decision) = &exchange.summary.decision else { return html! {} };
    let tokens = exchange.summary.tokens;
    let words = match decision.status {
        BudgetStatus::Ok if tokens.after < tokens.before => {
            "It fits, and would be sent with parts shortened."
        }
        BudgetStatus::Ok => "It would be sent unchanged.",
        BudgetStatus::NeedsSummary => "It would be sent, with parts condensed or replaced by pointers.",
        BudgetStatus::Reject => "It would be refused.",
    };
    html! {
        section.panel role="status" {
            h2 { (words) }
            p {
                (decision.reason)
                @if decision.deficit > 0 { "; " (number(decision.deficit as u64)) " tokens too many" }
                @if decision.dry_run { ". Dry run: this is only reported." }
            }
        }
    }
}

fn budgets(models: &[ModelBudget]) -> Markup {
    let most = models.iter().map(|model| model.window).max().unwrap_or(0);
    let columns = [
        Column::text("Model").heading(),
        Column::number("Window"),
        Column::number("Prompt budget"),
        Column::number("Reserve"),
        Column::number("Emergency floor"),
        Column::number("Compacts from"),
        Column::number("Reply up to"),
        Column::bar("Budget of the window as a bar"),
    ];
    let row = |model: &ModelBudget| {
        [
            html! {
                (name(&model.name))
                @if model.id != model.name { br; span.muted { (name(&model.id)) } }
            },
            html! { (number(model.window)) },
            html! { (number(model.budget)) },
            html! { (number(model.reserve)) },
            html! { (number(model.floor)) },
            html! { (number(model.trace_threshold)) },
            html! { (number(model.output)) },
            ui::bar((model.window, "reserve"), (model.budget, "whole"), most),
        ]
    };
    panel(
        "budgets",
        "Budgets",
        html! {
            @if models.is_empty() { p.muted { "The model table has no chat model." } }
            @else { (ui::table("Budgets", columns, models.iter().map(row))) }
        },
    )
}

fn revisions(learned: &RevisionList) -> Markup {
    let RevisionList { revisions, next } = learned;
    let older = next.map(|next| ("Older revisions", format!("/policy?before={next}#revisions")));
    let columns = [
        Column::number("Revision").heading(),
        Column::text("Written"),
        Column::text("Why"),
        Column::text("What it changed"),
    ];
    let row = |revision: &Revision| {
        let cells = [
            html! { (number(revision.number)) },
            moment(revision.created),
            html! { (name(&revision.cause)) },
            html! {
                @for (key, value) in &revision.changes {
                    div {
                        span.mono { (name(key)) } " "
                        @match value {
                            Some(value) => span.mono { (name(value)) },
                            None => span.muted { "no longer learned" },
                        }
                    }
                }
            },
        ];
        Row::with_id(cells, format!("revision-{}", revision.number))
    };
    panel(
        "revisions",
        "Learned at run time",
        html! {
            p.muted {
                "Each revision fills in what the settings leave open. New conversations use the newest; "
                code { "larder revisions revert N" } " goes back."
            }
            @if revisions.is_empty() { p.muted { "No others: in revision 0, nothing is learned and the settings apply alone." } }
            @else { (ui::table("Revisions", columns, revisions.iter().map(row))) }
            (ui::pager(older.as_slice()))
        },
    )
}

fn settings(settings: &[Setting]) -> Markup {
    let columns = [
        Column::text("Setting").heading(),
        Column::text("Value"),
        Column::text("From"),
        Column::text("What it does"),
    ];
    let row = |setting: &Setting| {
        let cells = [
            html! { span.mono { (name(&setting.key)) } },
            html! { span.mono { (name(&setting.value)) } },
            html! { span.muted { (name(&setting.origin.to_string())) } },
            html! { (setting.help) },
        ];
        Row::with_id(cells, format!("setting-{}", setting.key))
    };
    panel(
        "settings",
        "Settings",
        html! {
            p.muted {
                "Change them in " code { "larder.toml" } ". A valid change takes effect at once, an invalid one is refused."
            }
            (ui::table("Settings", columns, settings.iter().map(row)))
        },
    )
}
