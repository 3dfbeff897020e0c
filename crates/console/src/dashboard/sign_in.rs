//! Signing in with a key, once keys exist. The key goes into a cookie that scripts cannot read.

use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use larder_gateway::app::App;
use larder_gateway::auth::ApiKey;
use maud::{Markup, html};
use serde::Deserialize;

use super::SIGN_IN;
use super::layout::{bare, problem_page};

/// The fields of the form. Not `Debug`: it holds a key.
#[derive(Deserialize)]
pub struct SignInForm {
    key: String,
}

/// `/sign-in`
pub async fn show() -> Response {
    bare("Sign in", &form(None)).into_response()
}

fn form(problem: Option<&str>) -> Markup {
    html! {
        section.panel.narrow {
            h1 { "Sign in" }
            p.muted { "With a key of this gateway; " code { "larder keys create" } " creates one." }
            @if let Some(problem) = problem { p.notice #problem role="alert" { (problem) } }
            form method="post" action=(SIGN_IN) {
                label for="key" { "Key" }
                input #key name="key" type="password" required autocomplete="current-password"
                    placeholder="lk-…" aria-describedby=[problem.map(|_| "problem")];
                button type="submit" { "Sign in" }
            }
        }
    }
}

/// `POST /sign-in`
pub async fn enter(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Form(SignInForm { key }): Form<SignInForm>,
) -> Response {
    let Some(key) = ApiKey::parse(key.trim()) else {
        return again(StatusCode::UNAUTHORIZED, "That is not a key: keys begin with lk-.");
    };
    let signed_in = larder_engine::blocking::run(move || app.auth.sign_in(&headers, &key)).await;
    match signed_in {
        Ok(Ok(cookie)) => ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response(),
        Ok(Err(error)) => again(error.status(), &error.to_string()),
        Err(error) => {
            tracing::error!(%error, "signing in failed");
            again(
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something failed here; the log of the gateway says what.",
            )
        }
    }
}

fn again(status: StatusCode, problem: &str) -> Response {
    (status, bare("Sign in", &form(Some(problem)))).into_response()
}

/// `POST /sign-out`
pub async fn leave(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let signed_out = larder_engine::blocking::run(move || app.auth.sign_out(&headers)).await;
    match signed_out {
        Ok(Ok(cookie)) => ([(header::SET_COOKIE, cookie)], Redirect::to(SIGN_IN)).into_response(),
        Ok(Err(error)) => problem_page(error.status(), "Not signed out", &error.to_string()),
        Err(error) => {
            tracing::error!(%error, "signing out failed");
            problem_page(
                StatusCode::INTERNAL_SERVER_ERROR,
                "Not signed out",
                "The log of the gateway says why.",
            )
        }
    }
}
