//! The panel of the vault on what is shared with all users, and its forms.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use axum::{Extension, Form};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::Publication;
use larder_tools::ShareCandidate;
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{moment, name, number};
use super::layout::PageError;
use super::ui::panel;
use crate::api::{Path, Problem, SharedList, blocking, publish_seen};

/// The panel; nothing where nothing is shared and nothing may be.
pub(super) fn shared(caller: &Caller, shared: &SharedList) -> Option<Markup> {
    let own = |known: &Publication| caller.operator || known.published_by == caller.store.user();
    let is_empty = shared.candidates.is_empty() && shared.published.is_empty();
    (!is_empty).then(|| {
        let content = html! {
            @for candidate in &shared.candidates { (offered(candidate)) }
            @for publication in &shared.published { (published(publication, own(publication))) }
        };
        panel("shared", "Shared with all users", content)
    })
}

fn offered(candidate: &ShareCandidate) -> Markup {
    let seen = serde_json::Value::from(candidate.statements.clone()).to_string();
    html! {
        form method="post" action={ "/shared/" (candidate.id) } {
            (statements(&candidate.statements))
            p.muted { (name(&candidate.source)) " · " (number(candidate.uses.into())) " uses" }
            input type="hidden" name="statements" value=(seen);
            button type="submit" { "Publish for all users" }
        }
    }
}

fn published(publication: &Publication, may_revoke: bool) -> Markup {
    html! {
        form method="post" action={ "/shared/" (publication.id) "/revoke" } {
            (statements(&publication.statements))
            p.muted {
                "published by " (name(&publication.published_by)) " " (moment(publication.published_at)) " · "
                (name(&publication.source))
            }
            @if may_revoke { button type="submit" { "Revoke" } }
        }
    }
}

fn statements(statements: &[String]) -> Markup {
    html! { ul { @for statement in statements { li { (name(statement)) } } } }
}

/// The field of the form that publishes: the statements that the page showed, as JSON.
#[derive(Debug, Deserialize)]
pub struct PublishForm {
    statements: String,
}

/// `POST /shared/{id}`
pub async fn publish(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    form: Result<Form<PublishForm>, axum::extract::rejection::FormRejection>,
) -> Result<Redirect, PageError> {
    let Form(PublishForm { statements }) = form.map_err(Problem::from)?;
    // Anything else is not what the page showed.
    let statements = serde_json::from_str(&statements).unwrap_or_default();
    publish_seen(app, caller, id, statements).await?;
    Ok(Redirect::to("/vault#shared"))
}

/// `POST /shared/{id}/revoke`
pub async fn revoke(
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
) -> Result<Redirect, PageError> {
    blocking(move || caller.store.publications().revoke(id, caller.operator)).await?;
    Ok(Redirect::to("/vault#shared"))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::StatusCode;
    use larder_testkit::gateway::{TestApp, ask, ask_with_key, get, post, read};
    use serde_json::json;

    use super::*;

    async fn vault(fake: &TestApp, router: &Router, user: &str) -> String {
        read(ask_with_key(fake, router, user, get("/vault")).await).await.2
    }

    #[tokio::test]
    async fn the_vault_publishes_what_it_shows_and_revokes_it() {
        let fake = Arc::new(TestApp::new());
        let router = super::super::router(Arc::clone(&fake.app));
        let fact = json!({"id": "^fact-001", "category": "Pets", "fact": "Hamsters sleep by day", "scope": "user",
            "confidence": 0.9, "uses": 12, "ttl": "evergreen", "created_at": "2020-01-05T10:00:00Z",
            "updated_at": "2020-01-05T10:00:00Z"});
        let documents = fake.vault("a");
        let records = json!({"facts": [fact]}).to_string();
        documents.files().write(&documents.place().memory("facts"), records.as_bytes(), None).unwrap();
        let submit = |user: &'static str, path: &'static str, form: &'static str| {
            let form = post(path, "application/x-www-form-urlencoded", form);
            let (fake, router) = (&fake, &router);
            async move { ask_with_key(fake, router, user, form).await.status() }
        };
        let shown = vault(&fake, &router, "a").await;
        assert!(
            shown.contains("Hamsters sleep by day</bdi></li>") && shown.contains("Publish for all users")
        );
        assert!(!vault(&fake, &router, "b").await.contains("Hamsters"));
        let other = submit("a", "/shared/fact-001", "statements=%5B%22Another+text%22%5D").await;
        assert_eq!(other, StatusCode::CONFLICT, "the page showed something else");
        let form = "statements=%5B%22Hamsters+sleep+by+day%22%5D";
        assert_eq!(submit("b", "/shared/fact-001", form).await, StatusCode::NOT_FOUND);
        assert_eq!(submit("a", "/shared/fact-001", form).await, StatusCode::SEE_OTHER);
        let seen = vault(&fake, &router, "b").await;
        assert!(
            seen.contains("Hamsters sleep by day")
                && seen.contains("published by <bdi class=\"name\">a</bdi>"),
            "{seen}"
        );
        assert!(!seen.contains("Revoke") && vault(&fake, &router, "a").await.contains("Revoke"));
        assert_eq!(submit("b", "/shared/1/revoke", "").await, StatusCode::NOT_FOUND);
        assert_eq!(submit("a", "/shared/1/revoke", "").await, StatusCode::SEE_OTHER);
        assert!(!vault(&fake, &router, "b").await.contains("Hamsters"));
        assert_eq!(submit("a", "/shared/fact-001", form).await, StatusCode::SEE_OTHER);
        let operator = post("/shared/2/revoke", "application/x-www-form-urlencoded", "");
        assert_eq!(ask(&fake, &router, "b", operator).await.status(), StatusCode::SEE_OTHER);
    }
}
