//! Totals, what is remembered, and watching.

use std::time::Duration;

use larder_testkit::records::{NOW, exchange};

use super::*;

fn sealed(exchange: RequestRecord) -> RequestRecord {
    let RequestRecord { summary: head, window, compactions, rehydrations } = exchange;
    RequestRecord::new(head, window, compactions, rehydrations)
}

fn live() -> LiveStats {
    LiveStats::with_pace(NOW, Duration::ZERO)
}

#[test]
fn totals_are_the_sums_of_what_was_recorded() {
    let live = live();
    assert!(live.record(&exchange("a", 1)), "its session is new");
    assert!(!live.record(&exchange("a", 2)));
    let mut refused = exchange("a", 3);
    refused.summary.outcome = Outcome::Refused;
    refused.summary.usage = None;
    refused.summary.bill = None;
    refused.summary.decision.as_mut().unwrap().status = DecisionStatus::Reject;
    let refused = sealed(refused);
    live.record(&refused);
    let mut dry = exchange("b", 1);
    dry.summary.decision.as_mut().unwrap().dry_run = true;
    live.record(&sealed(dry));
    assert_eq!(live.user("b").news(0).totals.compactions, 0, "a dry run changes no form");
    let totals = live.user("a").news(0).totals;
    assert_eq!((totals.requests, totals.refused, totals.failed, totals.sessions), (3, 1, 0, 1));
    assert_eq!((totals.tokens_before, totals.prompt_tokens, totals.tokens_saved), (4_680, 2_880, 1_800));
    assert_eq!((totals.input_tokens, totals.cached_tokens, totals.output_tokens), (2_900, 2_000, 100));
    assert_eq!((totals.compactions, totals.refetches, totals.violations), (2, 3, 0));
    assert_eq!(totals.decisions, Decisions { ok: 0, needs_summary: 2, reject: 1 });
    assert_eq!((totals.cost.to_string(), totals.saved), ("0.004".to_owned(), "0.003".to_owned()));
    assert_eq!(totals.last.unwrap().id, refused.summary.id);
}

#[test]
fn no_user_sees_what_is_another_s() {
    let live = live();
    live.record(&exchange("a", 1));
    let news = live.user("b").news(0);
    assert_eq!((news.totals.requests, news.recent.len(), news.totals.last), (0, 0, None));
}

#[test]
fn what_is_remembered_is_bounded() {
    let live = live();
    for number in 0..SESSIONS as u64 + 10 {
        let mut exchange = exchange("a", number);
        exchange.summary.session = Some(format!("session {number}"));
        live.record(&exchange);
    }
    let user = live.user("a");
    assert_eq!(user.news(0).recent.len(), RECENT);
    assert_eq!(lock(&user.state).sessions.len(), SESSIONS);
    assert!(!lock(&user.state).sessions.contains_key("session 0"), "the oldest are forgotten first");
}

#[test]
fn requests_under_way_count_until_they_are_dropped() {
    let live = live();
    let (first, second) = (live.begin("a"), live.begin("a"));
    assert_eq!(live.user("a").news(0).totals.in_flight, 2);
    drop((first, second));
    assert_eq!(live.user("a").news(0).totals.in_flight, 0);
}

#[tokio::test]
async fn a_watcher_hears_at_once_then_of_what_is_new() {
    let live = live();
    live.record(&exchange("a", 1));
    let mut watcher = live.watch("a", 0);
    assert_eq!(watcher.next().await.unwrap().recent.len(), 1);
    live.record(&exchange("a", 2));
    live.record(&exchange("a", 3));
    let news = watcher.next().await.unwrap();
    assert_eq!(
        news.recent.iter().map(|head| head.time).collect::<Vec<_>>(),
        [2, 3].map(|n| exchange("a", n).summary.time)
    );
    let mut back = live.watch("a", news.sequence - 1);
    assert_eq!(back.next().await.unwrap().recent.len(), 1, "it goes on where it broke off");
    let mut stranger = live.watch("a", 1_000_000);
    assert_eq!(stranger.next().await.unwrap().recent.len(), 3, "numbers of an earlier process mean nothing");
}

#[tokio::test]
async fn closing_ends_watching_now_and_later() {
    let live = live();
    let mut watcher = live.watch("a", 0);
    watcher.next().await.unwrap();
    let waiting = watcher.next();
    live.close();
    assert_eq!(waiting.await, None);
    assert_eq!(live.watch("a", 0).next().await, None);
}
