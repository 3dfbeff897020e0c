//! The policy: settings with help, what each model may take, and what a pasted request would become before it bites.

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
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{name, number, share};
use super::layout::{NavItem, PageError, page};
use super::map::PartLink;
use super::requests;
use crate::api::{OPERATORS_ONLY, Problem, look};

/// Formats that can be pasted, with their names.
const PASTED: [(Endpoint, &str); 3] = [
    (Endpoint::Generate(ApiDialect::Chat), "OpenAI chat completions"),
    (Endpoint::Generate(ApiDialect::Responses), "OpenAI responses"),
    (Endpoint::Generate(ApiDialect::Messages), "Anthropic messages"),
];

/// What the form sends.
#[derive(Debug, Deserialize)]
pub struct InspectForm {
    wire: Endpoint,
    body: String,
}

/// `/policy`
pub async fn show(State(app): State<Arc<App>>, Extension(caller): Extension<Caller>) -> Html<String> {
    page(&caller, NavItem::Policy, "Policy", &whole(&app, &caller, None, None))
}

/// `POST /policy`: what the pasted request would become.
pub async fn inspect(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    form: Result<Form<InspectForm>, axum::extract::rejection::FormRejection>,
) -> Result<Html<String>, PageError> {
    let Form(pasted) = form.map_err(Problem::from)?;
    let looked = look(app.clone(), caller.clone(), pasted.wire, pasted.body.clone()).await;
    Ok(page(&caller, NavItem::Policy, "Policy", &whole(&app, &caller, Some(&pasted), Some(&looked))))
}

fn whole(
    app: &Arc<App>,
    caller: &Caller,
    pasted: Option<&InspectForm>,
    looked: Option<&Result<RequestRecord, Problem>>,
) -> Markup {
    html! {
        div.head { div { h1 { "Policy" } p { "What may stand in a window, and who says so." } } }
        @if let Some(problems) = app.refused().filter(|_| caller.operator) {
            section.notice.panel aria-labelledby="refused" {
                h2 #refused { "The last change was refused" }
                p { "What held before still holds. Mend this, and it is read again:" }
                pre.payload tabindex="0" role="group" aria-label="What is wrong" { (problems) }
            }
        }
        @if let Some(looked) = looked { (result(looked)) }
        (inspector(pasted))
        @if caller.operator {
            (budgets(&app.budgets()))
            (settings(&app.settings()))
        } @else {
            section.panel aria-labelledby="settings" {
                h2 #settings { "Settings" }
                p.muted { (OPERATORS_ONLY) }
            }
        }
    }
}

fn inspector(pasted: Option<&InspectForm>) -> Markup {
    let wire = pasted.map_or(Endpoint::Generate(ApiDialect::Chat), |pasted| pasted.wire);
    html! {
        section.panel aria-labelledby="inspect" {
            h2 #inspect { "What would become of a request?" }
            p.muted { "It is decided as if it came in, but neither sent nor stored." }
            form method="post" action="/policy#inspected" {
                label for="wire" { "It speaks" }
                select #wire name="wire" {
                    @for (each, words) in PASTED {
                        option value=(each.as_str()) selected[each == wire] { (words) }
                    }
                }
                label for="body" { "The request as JSON" }
                textarea.large #body name="body" required spellcheck="false"
                    placeholder=r#"{"model": "…", "messages": […]}"# {
                    (pasted.map(|pasted| pasted.body.as_str()).unwrap_or_default())
                }
                button type="submit" { "Inspect" }
            }
        }
    }
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
    let words = match decision.status {
        BudgetStatus::Ok => "It would be sent as it is.",
        BudgetStatus::NeedsSummary => "It would be sent, with parts condensed or pointed at.",
        BudgetStatus::Reject => "It would be refused.",
    };
    html! {
        section.panel role="status" {
            h2 { (words) }
            p {
                (decision.reason)
                @if decision.deficit > 0 { "; " (number(decision.deficit as u64)) " tokens too many" }
                @if decision.dry_run { ". The policy runs dry: this is only reported." }
            }
        }
    }
}

fn budgets(models: &[ModelBudget]) -> Markup {
    let most = models.iter().map(|model| model.window).max().unwrap_or(0);
    html! {
        section.panel aria-labelledby="budgets" {
            h2 #budgets { "Budgets" }
            @if models.is_empty() { p.muted { "The model table has no chat model." } } @else {
                div.scroll role="group" aria-label="Budgets" tabindex="0" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Model" }
                                th.figure scope="col" { "Window" }
                                th.figure scope="col" { "Prompt budget" }
                                th.figure scope="col" { "Reserve" }
                                th.figure scope="col" { "Emergency floor" }
                                th.figure scope="col" { "Compacts from" }
                                th.figure scope="col" { "Reply up to" }
                                th.optional scope="col" { span.hidden { "Budget of the window as a bar" } }
                            }
                        }
                        tbody {
                            @for model in models {
                                tr {
                                    th scope="row" {
                                        (name(&model.name))
                                        @if model.id != model.name { br; span.muted { (name(&model.id)) } }
                                    }
                                    td.figure { (number(model.window)) }
                                    td.figure { (number(model.budget)) }
                                    td.figure { (number(model.reserve)) }
                                    td.figure { (number(model.floor)) }
                                    td.figure { (number(model.trace_threshold)) }
                                    td.figure { (number(model.output)) }
                                    td.optional {
                                        svg.bar.mini width="100%" height="12" aria-hidden="true" {
                                            rect width=(share(model.window, most)) height="100%" fill="url(#fill-reserve)" {}
                                            rect width=(share(model.budget, most)) height="100%" fill="url(#fill-whole)" {}
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// R3-4.10: each setting with its help.
fn settings(settings: &[Setting]) -> Markup {
    html! {
        section.panel aria-labelledby="settings" {
            h2 #settings { "Settings" }
            p.muted { "They are changed in " code { "larder.toml" } "; a good change holds at once, a bad one is refused." }
            div.scroll role="group" aria-label="Settings" tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Setting" }
                            th scope="col" { "Value" }
                            th scope="col" { "From" }
                            th scope="col" { "What it does" }
                        }
                    }
                    tbody {
                        @for setting in settings {
                            tr id={ "setting-" (setting.key) } {
                                th.mono scope="row" { (name(&setting.key)) }
                                td.mono { (name(&setting.value)) }
                                td.muted { (name(&setting.origin.to_string())) }
                                td { (setting.help) }
                            }
                        }
                    }
                }
            }
        }
    }
}
