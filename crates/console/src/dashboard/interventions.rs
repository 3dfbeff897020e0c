//! The queue of requests for a human, and the form that resolves them; below it, the background jobs.

use axum::response::{Html, Redirect};
use axum::{Extension, Form};
use larder_gateway::auth::Caller;
use larder_store::{Intervention, Job, JobState};
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{moment, name, short_id};
use super::layout::{NavItem, PageError, page};
use super::ui::{chip, empty, heading, panel, panel_with_tools, untitled_panel};
use crate::api::{InterventionListParams, Path, Problem, Query, blocking};

/// `/interventions`
pub async fn list(
    Extension(caller): Extension<Caller>,
    Query(InterventionListParams { all }): Query<InterventionListParams>,
) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let found = blocking(move || Ok((store.interventions().list(!all)?, store.jobs().list()?)));
    let (found, jobs) = found.await?;
    let other = if all {
        ("/interventions", "Open ones only")
    } else {
        ("/interventions?all=true", "Settled ones too")
    };
    let tools = html! { a href=(other.0) { (other.1) } };
    let content = html! {
        (heading("Interventions", "Runs that stopped because a person has to decide.", Some(tools)))
        @if found.is_empty() {
            (untitled_panel(empty("Nothing waits for you", "Requests for a human are listed here.")))
        }
        @for one in &found { (card(one)) }
        @if !jobs.is_empty() {
            (panel("jobs", "Background jobs", html! { @for job in &jobs { (line(job)) } }))
        }
    };
    Ok(page(&caller, NavItem::Interventions, "Interventions", &content))
}

fn card(one: &Intervention) -> Markup {
    let state = if one.resolved_at.is_some() { chip("good", "settled") } else { chip("warn", "open") };
    let title = html! { "#" (one.id) " " (name(&one.kind)) };
    panel_with_tools(
        &format!("intervention-{}", one.id),
        title,
        state,
        html! {
            p { (name(&one.message)) }
            p.muted {
                "raised " (moment(one.created))
                @if let Some(recipe) = &one.recipe { " · recipe " (name(recipe)) }
                @if let Some(run) = &one.run_id { " · " a href={ "/runs/" (run) } { "run " (short_id(run.as_str())) } }
            }
            @match (&one.resolved_at, &one.resolution) {
                (Some(when), resolution) => p {
                    strong { "Settled " } (moment(*when)) ": " (name(resolution.as_deref().unwrap_or_default()))
                },
                (None, _) => form method="post" action={ "/interventions/" (one.id) } {
                    label for={ "resolution-" (one.id) } { "What was decided" }
                    textarea id={ "resolution-" (one.id) } name="resolution" required {}
                    button type="submit" { "Settle" }
                },
            }
        },
    )
}

/// A job, and the buttons that repeat or remove it.
fn line(job: &Job) -> Markup {
    let state = match job.state {
        JobState::Waiting => chip("", "waiting"),
        JobState::Running => chip("", "running"),
        JobState::Failed => chip("bad", "failed"),
    };
    html! {
        form method="post" action={ "/jobs/" (job.id) } {
            p {
                (state) " #" (job.id) " " (name(&job.key)) " "
                span.muted { "due " (moment(job.due)) " · attempts: " (job.attempts) }
            }
            @if let Some(reason) = &job.reason { p { (name(reason)) } }
            @if job.state != JobState::Running {
                button type="submit" name="action" value="retry" { "Do it now" } " "
                button type="submit" name="action" value="cancel" { "Remove" }
            }
        }
    }
}

/// What a button of a job does.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum JobAction {
    Retry,
    Cancel,
}

/// The field of the form of a job.
#[derive(Debug, Deserialize)]
pub struct JobForm {
    action: JobAction,
}

/// `POST /jobs/{id}`
pub async fn act_on_job(
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
    form: Result<Form<JobForm>, axum::extract::rejection::FormRejection>,
) -> Result<Redirect, PageError> {
    let Form(JobForm { action }) = form.map_err(Problem::from)?;
    blocking(move || match action {
        JobAction::Retry => caller.store.jobs().retry(id),
        JobAction::Cancel => caller.store.jobs().cancel(id),
    })
    .await?;
    Ok(Redirect::to("/interventions#jobs"))
}

/// The fields of the form.
#[derive(Debug, Deserialize)]
pub struct ResolutionForm {
    resolution: String,
}

/// `POST /interventions/{id}`
pub async fn resolve(
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
    form: Result<Form<ResolutionForm>, axum::extract::rejection::FormRejection>,
) -> Result<Redirect, PageError> {
    let Form(ResolutionForm { resolution }) = form.map_err(Problem::from)?;
    blocking(move || caller.store.interventions().resolve(id, &resolution)).await?;
    Ok(Redirect::to("/interventions"))
}
