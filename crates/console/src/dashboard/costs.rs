//! What it all cost, requests and runs: by day, by model, by recipe, each beside what it would have cost without Larder.

use std::sync::Arc;

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_models::price::Usd;
use larder_store::{CostRow, DaySpend, KeyLimits};
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{moment, money, money_saved, name, number, share, short};
use super::layout::{NavItem, PageError, page};
use crate::api::{self, Costs, Priced, Query, blocking};

/// Periods to choose from, in days.
const PERIODS: [u64; 4] = [7, 30, 90, 365];
/// Where no recipe ran.
const DIRECT: &str = "(no recipe)";

/// For how long.
#[derive(Debug, Deserialize)]
pub struct CostPageParams {
    days: Option<u64>,
}

/// Sums of some of the rows.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    requests: u64,
    unpriced: u64,
    tokens: u64,
    cost: Usd,
    without: Usd,
}

impl Sum {
    fn add(&mut self, row: &Priced<CostRow>) {
        self.requests = self.requests.saturating_add(row.sums.requests);
        self.unpriced = self.unpriced.saturating_add(row.sums.unpriced);
        self.tokens = self.tokens.saturating_add(row.sums.tokens_in).saturating_add(row.sums.tokens_out);
        self.cost = self.cost + row.cost;
        self.without = self.without + row.cost_without;
    }
}

fn by<'a>(rows: &'a [Priced<CostRow>], key: impl Fn(&'a CostRow) -> &'a str) -> BTreeMap<&'a str, Sum> {
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
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
    let rows = blocking(move || Costs::read(&store, days)).await?.costs;
    let asking = caller.clone();
    let spent = blocking(move || app.auth.spent(&asking)).await?;
    let mut all = Sum::default();
    rows.iter().for_each(|row| all.add(row));
    let content = html! {
        div.head {
            div { h1 { "Costs" } p {
                    "The last " (days) " days, in US dollars by the prices of the model table: requests through the \
                     gateway, and runs of recipes for questions, turns and summaries."
                } }
            form.inline method="get" {
                div {
                    label.hidden for="days" { "Period" }
                    select #days name="days" {
                        @for period in PERIODS {
                            option value=(period) selected[period == days] { (period) " days" }
                        }
                    }
                }
                button type="submit" { "Show" }
            }
        }
        dl.cards {
            div.card { dt { "Cost" } dd.value { (money(all.cost)) } dd.note { (number(all.requests)) " requests and runs" } }
            div.card.good {
                dt { "Saved" }
                dd.value { (money_saved(all.cost, all.without)) }
                dd.note { "net of cache effects, of " (money(all.without)) }
            }
            div.card {
                dt { "Without a price" }
                dd.value { (number(all.unpriced)) }
                dd.note { "requests and runs whose model has no price in the table, or that reported nothing" }
            }
        }
        @if let Some(spent) = spent { (key_budget(&caller.limits, &spent)) }
        @if rows.is_empty() {
            section.panel { div.empty { strong { "Nothing yet" } "Requests and runs of these days are summed up here." } }
        } @else {
            (table("By model", "Model", &by(&rows, |row| &row.model), false))
            (table("By recipe", "Recipe", &by(&rows, |row| row.recipe.as_deref().unwrap_or(DIRECT)), false))
            (table("By day", "Day (UTC)", &by(&rows, |row| &row.day), true))
        }
    };
    Ok(page(&caller, NavItem::Costs, "Costs", &content))
}

/// What the caller's key may take today, and what is left of it.
fn key_budget(limits: &KeyLimits, spent: &DaySpend) -> Markup {
    let row = |what: &str, used: u64, held: u64, limit: Option<u64>, words: &dyn Fn(u64) -> String| {
        let left = limit.map(|limit| limit.saturating_sub(used.saturating_add(held)));
        let most = limit.unwrap_or(0);
        html! {
            tr {
                th scope="row" { (what) }
                td.figure { (words(used)) }
                td.figure { (words(held)) }
                td.figure { (left.map_or_else(|| "no limit".to_owned(), words)) }
                td.figure { (limit.map_or_else(|| "no limit".to_owned(), words)) }
                td.optional {
                    svg.bar.mini width="100%" height="12" aria-hidden="true" {
                        rect width=(share(used.saturating_add(held), most)) height="100%" fill="url(#fill-reserve)" {}
                        rect width=(share(used, most)) height="100%" fill="url(#fill-whole)" {}
                    }
                }
            }
        }
    };
    let dollars = |picos: u64| money(Usd::from_picos(picos));
    let DaySpend { used, held, resets } = spent;
    html! {
        section.panel aria-labelledby="key" {
            h2 #key { "The budget of your key today" }
            p.muted { "A request that would pass it is refused before it leaves. It is whole again " (moment(*resets)) "." }
            div.scroll role="group" aria-label="The budget of your key today" tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Of" }
                            th.figure scope="col" { "Used" }
                            th.figure scope="col" { "Held for calls under way" }
                            th.figure scope="col" { "Left" }
                            th.figure scope="col" { "A day" }
                            th.optional scope="col" { span.hidden { "Used and held as a bar" } }
                        }
                    }
                    tbody {
                        (row("Tokens", used.tokens, held.tokens, limits.tokens_per_day, &number))
                        (row("Money", used.picos, held.picos, limits.picos_per_day, &dollars))
                    }
                }
            }
        }
    }
}

fn table(title: &str, what: &str, sums: &BTreeMap<&str, Sum>, newest_first: bool) -> Markup {
    let most = sums.values().map(|sum| sum.cost.max(sum.without)).max().unwrap_or_default().picos();
    let mut rows: Vec<_> = sums.iter().collect();
    if newest_first {
        rows.reverse();
    } else {
        rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.cost));
    }
    html! {
        section.panel {
            h2 { (title) }
            div.scroll role="group" aria-label=(title) tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" { (what) }
                            th.figure scope="col" { "Requests and runs" }
                            th.figure.optional scope="col" { "Tokens" }
                            th.figure scope="col" { "Cost" }
                            th.figure scope="col" { "Saved" }
                            th.optional scope="col" { span.hidden { "Cost and savings as a bar" } }
                        }
                    }
                    tbody {
                        @for (key, sum) in rows {
                            tr {
                                th scope="row" { (name(key)) }
                                td.figure { (number(sum.requests)) }
                                td.figure.optional { (short(sum.tokens)) }
                                td.figure { (money(sum.cost)) }
                                td.figure { (money_saved(sum.cost, sum.without)) }
                                td.optional {
                                    svg.bar.mini width="100%" height="12" aria-hidden="true" {
                                        rect width=(share(sum.without.picos(), most)) height="100%" fill="url(#fill-saved)" {}
                                        rect width=(share(sum.cost.picos(), most)) height="100%" fill="url(#fill-whole)" {}
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
