//! The first page: live totals, the last window, the last requests. The same pieces go out again as events, so there
//! is one way to write them.

use std::sync::Arc;

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event;
use axum::response::{Html, IntoResponse};
use larder_engine::config::Setting;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::live_stats::{LiveUpdate, Totals};
use larder_proxy::record::{RequestSummary, Tokens};
use maud::{Markup, html};

use super::figures::{counted, money, money_saved, name, number, percent, share, short};
use super::layout::{NavItem, page};
use super::requests;
use super::ui::{card, empty, heading, live_controls, panel, panel_with_tools};
use crate::api;

/// Requests of the chart.
const BARS: usize = 60;
/// Requests of the table.
const ROWS: usize = 25;
/// Height of the chart in its own units.
const HEIGHT: &str = "120";

/// `/`
pub async fn show(State(app): State<Arc<App>>, Extension(caller): Extension<Caller>) -> Html<String> {
    let degraded = app.degraded().await;
    let news = app.telemetry.live.user(caller.store.user()).news(0);
    let about = html! { "Since the gateway started, for " bdi { (caller.store.user()) } "." };
    let content = html! {
        (heading("What your models see", about, Some(live_controls())))
        @if let Some(why) = degraded {
            p.notice role="alert" {
                "The store cannot write (" (why) "). Requests that fit go whole, others are refused; the gateway's log says "
                "what to do."
            }
        }
        (status(&app.settings()))
        div data-live="/live" {
            @for (id, piece) in pieces(&news) { div id=(id) { (piece) } }
        }
    };
    page(&caller, NavItem::Overview, "Overview", &content)
}

/// Settings of the policy that are always in view (R3-4.10, R3-5.7), with their words here.
const STATUS: [(&str, &str); 4] = [
    ("policy.enabled", "Policy on"),
    ("policy.dry_run", "Dry run"),
    ("policy.prompt_budget_override", "Prompt budget override"),
    ("policy.response_reserve", "Response reserve"),
];

fn status(settings: &[Setting]) -> Markup {
    let shown = STATUS.iter().filter_map(|(key, words)| {
        let setting = settings.iter().find(|setting| setting.key == *key)?;
        Some((words, setting))
    });
    html! {
        ul.status aria-label="Policy" {
            @for (words, setting) in shown {
                li title=(setting.help) {
                    a href={ "/policy#setting-" (setting.key) } { (words) } " "
                    @if setting.value.is_empty() { "none" } @else { (name(&setting.value)) }
                }
            }
        }
    }
}

/// `/live`: the pieces of the page as they change, as server-sent events called `pieces`: id → HTML.
pub async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> impl IntoResponse {
    let live = app.telemetry.live.user(caller.store.user());
    api::stream(&app, &caller, &headers, move |_| {
        let pieces: BTreeMap<_, _> =
            pieces(&live.news(0)).into_iter().map(|(id, piece)| (id, piece.into_string())).collect();
        Event::default().event("pieces").json_data(pieces).ok()
    })
}

fn pieces(news: &LiveUpdate) -> [(&'static str, Markup); 3] {
    [
        ("live-totals", totals(&news.totals)),
        ("live-window", last_window(news.totals.last.as_deref())),
        ("live-requests", recent(&news.recent)),
    ]
}

/// R3-2.6, R3-4.36, R3-6.5 to R3-6.7.
fn totals(totals: &Totals) -> Markup {
    let last = totals.last.as_deref();
    let tokens = last.map(|last| last.tokens).unwrap_or_default();
    let shape = last.map(|last| last.shape).unwrap_or_default();
    let of_budget = match last.is_some_and(|last| last.unknown_window) {
        true => "in the last window, whose limit is unknown".to_owned(),
        false => {
            format!("{} of {} in the last window", percent(tokens.after, tokens.budget), short(tokens.budget))
        }
    };
    let pointers = format!("in the last window; {} condensed there", counted(shape.parts.condensed, "part"));
    let saved = format!("{} of what came", percent(totals.tokens_saved, totals.tokens_before));
    let summaries = format!(
        "parts that were condensed; {}, {:.1} a session",
        counted(totals.compactions, "compaction"),
        totals.compactions as f64 / totals.sessions.max(1) as f64
    );
    let paid =
        format!("net of cache effects: {} instead of {}", money(totals.cost), money(totals.cost_without));
    let requests = format!(
        "{} under way, {} refused, {} failed; {}",
        totals.in_flight,
        totals.refused,
        totals.failed,
        counted(totals.sessions, "session")
    );
    let violations = match totals.violations {
        0 => "no prompt left over its budget",
        _ => "prompts left over their budget: please report this",
    };
    let decisions = format!(
        "{} fitted, {} had to shrink, {} could not",
        number(totals.decisions.ok),
        number(totals.decisions.needs_summary),
        number(totals.decisions.reject)
    );
    let decided = totals.decisions.ok.saturating_add(totals.decisions.needs_summary);
    let decided = decided.saturating_add(totals.decisions.reject);
    let alarm = if totals.violations == 0 { "good" } else { "bad" };
    html! {
        section aria-label="Live totals" {
            dl.cards {
                (card("", "Prompt tokens", number(tokens.after), &of_budget))
                (card("", "Response reserve", number(tokens.reserve), "tokens kept free in the last window"))
                (card("", "Pointers", number(shape.pointers), &pointers))
                (card("good", "Tokens saved", short(totals.tokens_saved), &saved))
                (card("", "Summaries", number(totals.summaries), &summaries))
                (card("good", "Money saved", money_saved(totals.cost, totals.cost_without), &paid))
                (card("", "Requests", number(totals.requests), &requests))
                (card("", "Decisions", number(decided), &decisions))
                (card("", "Originals asked back", number(totals.refetches), "by models, through their pointers"))
                (card(alarm, "Budget violations", number(totals.violations), violations))
            }
        }
    }
}

/// One bar: what the last window is made of.
fn last_window(last: Option<&RequestSummary>) -> Markup {
    let Some(head) = last else {
        return panel(
            "last-window",
            "The last window",
            empty(
                "Nothing has come through yet",
                html! {
                    "Point a client at this address (" code { "/v1" } " for OpenAI's format, this host for Anthropic's), and \
                     its windows appear here."
                },
            ),
        );
    };
    let Tokens { system, tools, messages, after, budget, reserve, output, .. } = head.tokens;
    let full = after.max(budget).saturating_add(reserve).saturating_add(output);
    let free = budget.saturating_sub(after);
    let rest = after.saturating_sub(system).saturating_sub(tools).saturating_sub(messages);
    let stretches = [
        ("system", "System prompt", system, "fill-pointer"),
        ("tools", "Tools", tools, "fill-condensed"),
        ("messages", "Messages", messages.saturating_add(rest), "fill-whole"),
        ("free", "Free", free, ""),
        ("reserve", "Reserve", reserve, "fill-reserve"),
        ("output", "Reply", output, "fill-saved"),
    ];
    let mut at = 0_u64;
    let placed: Vec<_> = stretches
        .into_iter()
        .map(|(id, words, tokens, fill)| {
            let from = at;
            at = at.saturating_add(tokens);
            (id, words, tokens, fill, from)
        })
        .collect();
    let alternative = placed.iter().map(|(_, words, tokens, ..)| format!("{words} {}", number(*tokens)));
    let alternative = alternative.collect::<Vec<_>>().join(", ");
    let link = html! { a href={ "/requests/" (head.id) } { "Show it part by part" } };
    html! {
        (panel_with_tools("last-window", "The last window", link, html! {
            svg.bar width="100%" height="48" role="img" aria-label=(alternative) {
                rect.track width="100%" height="100%" {}
                @for (_, words, tokens, fill, from) in &placed {
                    @if *tokens > 0 && !fill.is_empty() {
                        rect x=(share(*from, full)) width=(share(*tokens, full)) height="100%"
                            fill={ "url(#" (fill) ")" } { title { (words) ": " (number(*tokens)) } }
                    }
                }
            }
            ul.legend aria-hidden="true" {
                @for (_, words, tokens, fill, _) in &placed {
                    li {
                        svg width="18" height="18" {
                            rect.track width="18" height="18" rx="3" {}
                            @if !fill.is_empty() { rect width="18" height="18" rx="3" fill={ "url(#" (fill) ")" } {} }
                        }
                        span { strong { (words) } " " (number(*tokens)) }
                    }
                }
            }
        }))
    }
}

/// The last requests: how much came, how much was sent, and each as a row.
fn recent(recent: &[RequestSummary]) -> Markup {
    let rows: Vec<&RequestSummary> = recent.iter().rev().take(ROWS).collect();
    panel_with_tools(
        "recent",
        "The last requests",
        html! { a href="/requests" { "All requests" } },
        html! {
            @if rows.is_empty() { p.muted { "None yet." } } @else {
                (chart(&recent[recent.len().saturating_sub(BARS)..]))
                (requests::table(&rows))
            }
        },
    )
}

/// Bars from the oldest to the newest: the whole height came, the solid part was sent.
fn chart(recent: &[RequestSummary]) -> Markup {
    // What was refused was sent nowhere, and saved nothing.
    let recent: Vec<&RequestSummary> = recent.iter().filter(|head| head.outcome.sent()).collect();
    let most = recent.iter().map(|head| head.tokens.before.max(head.tokens.after)).max().unwrap_or(0);
    let before = recent.iter().fold(0_u64, |sum, head| sum.saturating_add(head.tokens.before));
    let after = recent.iter().fold(0_u64, |sum, head| sum.saturating_add(head.tokens.after));
    let words = format!(
        "{} sent last: {} came, {} went out",
        counted(recent.len() as u64, "request"),
        counted(before, "token"),
        number(after)
    );
    html! {
        svg.chart width="100%" height=(HEIGHT) role="img" aria-label=(words) {
            @for (at, head) in recent.iter().enumerate() {
                (bar(at, head.tokens.before, most, "url(#fill-saved)"))
                (bar(at, head.tokens.after, most, "url(#fill-whole)"))
            }
        }
        p.caption { (words) "; the hatched part was saved." }
    }
}

fn bar(at: usize, tokens: u64, most: u64, fill: &str) -> Markup {
    let slot = BARS as u64 * 4;
    let x = share(at as u64 * 4 + 1, slot);
    let top = share(most.saturating_sub(tokens), most);
    html! { rect x=(x) width=(share(3, slot)) y=(top) height=(share(tokens, most)) fill=(fill) {} }
}
