//! Costs of requests and runs by day, by model and by recipe, each next to what it would have cost without Larder; and those
//! of conversations by conversation, type and stage.

use std::sync::Arc;

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_models::price::Usd;
use larder_store::{ConversationCostRow, CostRow, DaySpend, KeyLimits};
use larder_text::words::plural;
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{counted, moment, money, money_saved, name, number, short};
use super::layout::{NavItem, PageError, page};
use super::ui::{self, Column, card, empty, heading, panel, untitled_panel};
use crate::api::{self, Costs, Priced, Query, ReadBack, ReadBackCost, blocking};

const DAY_MS: u64 = 86_400_000;
/// Periods to choose from, in days.
const PERIODS: [u64; 4] = [7, 30, 90, 365];
/// Where the record does not say whose result was read.
const UNKNOWN_TOOL: &str = "(unknown)";
/// Where no recipe ran.
const DIRECT: &str = "(no recipe)";

/// The period.
#[derive(Debug, Deserialize)]
pub struct CostPageParams {
    days: Option<u64>,
}

/// Sums of some of the rows.
#[derive(Debug, Clone, Copy, Default)]
struct CostSum {
    requests: u64,
    unpriced: u64,
    tokens: u64,
    cost: Usd,
    without: Usd,
}

impl CostSum {
    fn add(&mut self, row: &Priced<CostRow>) {
        self.requests = self.requests.saturating_add(row.sums.requests);
        self.unpriced = self.unpriced.saturating_add(row.sums.unpriced);
        self.tokens = self.tokens.saturating_add(row.sums.tokens_in).saturating_add(row.sums.tokens_out);
        self.cost = self.cost + row.cost;
        self.without = self.without + row.cost_without;
    }
}

fn by<'a>(rows: &'a [Priced<CostRow>], key: impl Fn(&'a CostRow) -> &'a str) -> BTreeMap<&'a str, CostSum> {
    let mut sums: BTreeMap<&str, CostSum> = BTreeMap::new();
    for row in rows {
        sums.entry(key(&row.sums)).or_default().add(row);
    }
    sums
}

/// `/costs`
pub async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(CostPageParams { days }): Query<CostPageParams>,
) -> Result<Html<String>, PageError> {
    let days = days.unwrap_or(api::DAYS);
    let store = caller.store.clone();
    let (rows, read_back, talks) = blocking(move || {
        let talks = store
            .conversations()
            .costs((store.store().now().as_millis() / DAY_MS).saturating_sub(days.saturating_sub(1)))?;
        Ok((Costs::read(&store, days)?.costs, ReadBack::read(&store, days)?.tools, talks))
    })
    .await?;
    let asking = caller.clone();
    let spent = blocking(move || app.auth.spent(&asking)).await?;
    let mut all = CostSum::default();
    rows.iter().for_each(|row| all.add(row));
    let content = html! {
        (heading("Costs", about(days), Some(period(days))))
        dl.cards {
            (card("", "Cost", money(all.cost), format!("{} or run{}", counted(all.requests, "request"), plural(all.requests))))
            (card(
                "good",
                "Saved",
                money_saved(all.cost, all.without),
                format!("net of cache effects, of {}", money(all.without)),
            ))
            (card(
                "",
                "Without a price",
                number(all.unpriced),
                "requests and runs whose model has no price in the table, or that reported nothing",
            ))
        }
        @if let Some(spent) = spent { (key_budget(&caller.limits, &spent)) }
        @if rows.is_empty() {
            (untitled_panel(empty("Nothing yet", "The requests and runs of these days are summed up here.")))
        } @else {
            (table("by-model", "By model", "Model", &by(&rows, |row| &row.model), false))
            (table("by-recipe", "By recipe", "Recipe", &by(&rows, |row| row.recipe.as_deref().unwrap_or(DIRECT)), false))
            (table("by-day", "By day", "Day (UTC)", &by(&rows, |row| &row.day), true))
            (read_back_table(&read_back))
        }
        @if !talks.is_empty() { (conversations(&talks)) }
    };
    Ok(page(&caller, NavItem::Costs, "Costs", &content))
}

fn about(days: u64) -> String {
    format!(
        "The last {days} days, in US dollars at the prices of the model table: requests through the gateway, and runs \
         of recipes for questions, turns and summaries."
    )
}

/// The form that chooses the period.
fn period(days: u64) -> Markup {
    html! {
        form.inline method="get" {
            div {
                label.visually-hidden for="days" { "Period" }
                select #days name="days" {
                    @for period in PERIODS {
                        option value=(period) selected[period == days] { (period) " days" }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

/// The budget of the caller's key today, and what is left of it.
fn key_budget(limits: &KeyLimits, spent: &DaySpend) -> Markup {
    let columns = [
        Column::text("Of").heading(),
        Column::number("Used"),
        Column::number("Reserved for calls under way"),
        Column::number("Left"),
        Column::number("A day"),
        Column::bar("Used and reserved as a bar"),
    ];
    let row = |what: &str, used: u64, held: u64, limit: Option<u64>, words: &dyn Fn(u64) -> String| {
        let taken = used.saturating_add(held);
        let or_none = |amount: Option<u64>| amount.map_or_else(|| "no limit".to_owned(), words);
        [
            html! { (what) },
            html! { (words(used)) },
            html! { (words(held)) },
            html! { (or_none(limit.map(|limit| limit.saturating_sub(taken)))) },
            html! { (or_none(limit)) },
            ui::bar((taken, "reserve"), (used, "whole"), limit.unwrap_or(0)),
        ]
    };
    let dollars = |picos: u64| money(Usd::from_picos(picos));
    let DaySpend { used, held, resets } = spent;
    let title = "The budget of your key today";
    panel(
        "key",
        title,
        html! {
            p.muted { "Larder refuses a request that would exceed it. It resets " (moment(*resets)) "." }
            (ui::table(title, columns, [
                row("Tokens", used.tokens, held.tokens, limits.tokens_per_day, &number),
                row("Money", used.picos, held.picos, limits.picos_per_day, &dollars),
            ]))
        },
    )
}

/// What rows of conversations are summed by.
type RowKey = fn(&ConversationCostRow) -> &str;

/// What conversations cost: replies, and the calls behind them.
fn conversations(rows: &[ConversationCostRow]) -> Markup {
    let keys: [(&str, RowKey); 4] = [
        ("Conversation", |row| &row.conversation),
        ("Type", |row| &row.kind),
        ("Stage", |row| &row.stage),
        ("Call", |row| &row.call),
    ];
    let tables = keys.map(|(what, key)| {
        let mut sums: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
        for row in rows {
            let sum = sums.entry(key(row)).or_default();
            let amounts = [row.calls, row.input.saturating_add(row.output), row.cached_input, row.picos];
            sum.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum = sum.saturating_add(amount));
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, [.., picos])| std::cmp::Reverse(*picos));
        let columns = [
            Column::text(what).heading(),
            Column::number("Calls"),
            Column::number("Tokens"),
            Column::number("Cached").wide(),
            Column::number("Cost"),
        ];
        let rows = sums.into_iter().map(|(key, [calls, tokens, cached, picos])| {
            [
                html! {
                    @if what == "Conversation" { a href={ "/conversations/" (key) } { (name(key)) } }
                    @else { (name(key)) }
                },
                html! { (number(calls)) },
                html! { (short(tokens)) },
                html! { (short(cached)) },
                html! { (money(Usd::from_picos(picos))) },
            ]
        });
        ui::table(&format!("Conversations by {}", what.to_lowercase()), columns, rows)
    });
    panel(
        "conversations",
        "Conversations",
        html! {
            p.muted { "Replies and what follows behind them. Runs of recipes above contain the same calls." }
            @for table in tables { (table) }
        },
    )
}

/// What models read back, by tool: the price of having hidden it.
fn read_back_table(tools: &[ReadBackCost]) -> Markup {
    let title = "Read back";
    if tools.is_empty() {
        let words = "No model has asked for an original that Larder had shortened or left out.";
        return panel("read-back", title, empty("Nothing", words));
    }
    let most = tools.iter().map(|tool| tool.sums.spent_tokens).max().unwrap_or_default();
    let columns = [
        Column::text("Tool").heading(),
        Column::number("Readings"),
        Column::number("Requests"),
        Column::number("Tokens read").wide(),
        Column::number("Tokens spent on it"),
        Column::number("Cost"),
        Column::bar("Tokens spent as a bar"),
    ];
    let rows = tools.iter().map(|ReadBackCost { sums, cost }| {
        [
            name(if sums.tool.is_empty() { UNKNOWN_TOOL } else { &sums.tool }),
            html! { (number(sums.readings)) },
            html! { (number(sums.requests)) },
            html! { (short(sums.tokens)) },
            html! { (short(sums.spent_tokens)) },
            html! { @if sums.unpriced == sums.readings { "no price" } @else { (money(*cost)) } },
            ui::bar((sums.spent_tokens, "reserve"), (sums.tokens, "whole"), most),
        ]
    });
    panel(
        "read-back",
        title,
        html! {
            p.muted {
                "What models asked for again after Larder had shortened it, and what the further calls cost. If a tool \
                 is high up here, give its results more room (policy.tool_caps) or leave them whole \
                 (policy.opt_out_tools); `larder policy tune` works out what pays."
            }
            (ui::table(title, columns, rows))
        },
    )
}

fn table(id: &str, title: &str, what: &str, sums: &BTreeMap<&str, CostSum>, newest_first: bool) -> Markup {
    let most = sums.values().map(|sum| sum.cost.max(sum.without)).max().unwrap_or_default().picos();
    let mut rows: Vec<_> = sums.iter().collect();
    if newest_first {
        rows.reverse();
    } else {
        rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.cost));
    }
    let columns = [
        Column::text(what).heading(),
        Column::number("Requests and runs"),
        Column::number("Tokens").wide(),
        Column::number("Cost"),
        Column::number("Saved"),
        Column::bar("Cost and savings as a bar"),
    ];
    let rows = rows.into_iter().map(|(key, sum)| {
        [
            name(key),
            html! { (number(sum.requests)) },
            html! { (short(sum.tokens)) },
            html! { (money(sum.cost)) },
            html! { (money_saved(sum.cost, sum.without)) },
            ui::bar((sum.without.picos(), "saved"), (sum.cost.picos(), "whole"), most),
        ]
    });
    panel(id, title, ui::table(title, columns, rows))
}
