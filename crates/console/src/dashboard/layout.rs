//! The frame of every page, the parameters that pages share, and error pages.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use larder_gateway::auth::Caller;
use maud::{DOCTYPE, Markup, html};
use serde::Deserialize;

use crate::api::Problem;

/// An entry of the main navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NavItem {
    Overview,
    Requests,
    Sessions,
    Conversations,
    Runs,
    Documents,
    Costs,
    Interventions,
    Policy,
}

const NAV_ITEMS: [(NavItem, &str, &str); 9] = [
    (NavItem::Overview, "/", "Overview"),
    (NavItem::Requests, "/requests", "Requests"),
    (NavItem::Sessions, "/sessions", "Sessions"),
    (NavItem::Conversations, "/conversations", "Conversations"),
    (NavItem::Runs, "/runs", "Runs"),
    (NavItem::Documents, "/documents", "Documents"),
    (NavItem::Costs, "/costs", "Costs"),
    (NavItem::Interventions, "/interventions", "Interventions"),
    (NavItem::Policy, "/policy", "Policy"),
];

/// Whether the script asks for the fragment alone, to put it into the page it has.
#[derive(Debug, Deserialize)]
pub struct FragmentParams {
    #[serde(default)]
    pub piece: bool,
}

/// A page for a signed-in caller.
pub fn page(caller: &Caller, place: NavItem, title: &str, content: &Markup) -> Html<String> {
    frame(title, Some((caller, place)), content)
}

/// A page for anybody.
pub fn bare(title: &str, content: &Markup) -> Html<String> {
    frame(title, None, content)
}

fn frame(title: &str, known: Option<(&Caller, NavItem)>, content: &Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Larder" }
                link rel="stylesheet" href="/assets/style.css";
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                script src="/assets/script.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.site-header {
                    a.brand href="/" {
                        img src="/assets/icon.svg" alt="" width="28" height="28";
                        span { "Larder" }
                    }
                    @if let Some((caller, place)) = known { (menu(caller, place)) }
                }
                main #main tabindex="-1" { (content) }
                footer.site-footer {
                    span { "Larder " (env!("CARGO_PKG_VERSION")) }
                    a href="/api/v1/openapi.json" { "API" }
                    @if known.is_some_and(|(caller, _)| caller.operator) { a href="/metrics" { "Metrics" } }
                }
                (patterns())
            }
        }
    };
    Html(page.into_string())
}

fn menu(caller: &Caller, current: NavItem) -> Markup {
    html! {
        nav aria-label="Main" {
            ul {
                @for (place, address, words) in NAV_ITEMS {
                    li { a href=(address) aria-current=[(place == current).then_some("page")] { (words) } }
                }
            }
        }
        @if caller.key.is_some() {
            form.sign-out method="post" action="/sign-out" {
                bdi.user-name { (caller.store.user()) }
                button.secondary type="submit" { "Sign out" }
            }
        }
    }
}

/// The fills of renditions in pictures: a colour each, and a pattern for readers who do not see colours.
fn patterns() -> Markup {
    html! {
        svg.patterns width="0" height="0" aria-hidden="true" focusable="false" {
            defs {
                pattern #fill-whole width="8" height="8" patternUnits="userSpaceOnUse" {
                    rect.ground-whole width="8" height="8" {}
                }
                pattern #fill-condensed width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect.ground-condensed width="8" height="8" {}
                    rect.mark width="2" height="8" {}
                }
                pattern #fill-pointer width="8" height="8" patternUnits="userSpaceOnUse" {
                    rect.ground-pointer width="8" height="8" {}
                    circle.mark cx="4" cy="4" r="1.6" {}
                }
                pattern #fill-absent width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)" {
                    rect.ground-absent width="8" height="8" {}
                    rect.mark width="4" height="8" {}
                }
                pattern #fill-saved width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)" {
                    rect.ground-saved width="8" height="8" {}
                    rect.mark-saved width="1.5" height="8" {}
                }
                pattern #fill-reserve width="6" height="6" patternUnits="userSpaceOnUse" {
                    rect.ground-reserve width="6" height="6" {}
                    rect.mark-saved width="6" height="1.5" {}
                }
            }
        }
    }
}

/// An error that is shown as a page.
#[derive(Debug)]
pub struct PageError(Problem);

impl From<Problem> for PageError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        problem_page(self.0.status(), &self.0.title, &self.0.detail)
    }
}

/// A page that reports a problem to someone who was let in: with a key, or where none is needed.
pub fn problem_page(status: StatusCode, title: &str, detail: &str) -> Response {
    let content = html! {
        section.panel.narrow {
            h1 { (title) }
            p { (detail) }
            p { a href="/" { "Overview" } }
        }
    };
    (status, bare(title, &content)).into_response()
}
