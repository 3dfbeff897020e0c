//! Tests of listing requests and of summing them.

use tempfile::TempDir;

use super::*;
use crate::StoreOptions;

fn store() -> (TempDir, UserStore) {
    let dir = tempfile::tempdir().unwrap();
    let user = Store::open(dir.path(), StoreOptions::default()).unwrap().user("a").unwrap();
    (dir, user)
}

/// A request that cost a picodollar, with its id as its document.
fn new<'a>(id: &'a str, millis: u64, session: Option<&'a str>, model: &'a str) -> NewExchange<'a> {
    NewExchange {
        id,
        session,
        time: Timestamp::from_millis(millis),
        model,
        recipe: None,
        status: 200,
        tokens_in: 10,
        tokens_out: 2,
        tokens_before: 30,
        tokens_after: 10,
        cost_picos: Some(1),
        without_picos: Some(3),
        compactions: 1,
        used: &[],
        json: id,
    }
}

fn record(user: &UserStore, requests: &[NewExchange<'_>]) -> usize {
    let batch: Vec<_> = requests.iter().map(|request| (user, *request)).collect();
    user.store().record_exchanges(&batch).unwrap()
}

#[test]
fn pages_follow_each_other_also_among_requests_of_one_moment() {
    let (_dir, user) = store();
    let ids = ["a", "b", "c", "d", "e"];
    let requests: Vec<_> =
        ids.iter().zip([1, 2, 2, 2, 3]).map(|(id, time)| new(id, time, None, "m")).collect();
    assert_eq!(record(&user, &requests), 5);
    assert_eq!(record(&user, &requests[..1]), 0, "an id counts once");
    let (mut before, mut seen) = (None, Vec::new());
    loop {
        let filter = ExchangeFilter { before: before.clone(), limit: Some(2), ..ExchangeFilter::default() };
        let page = user.exchanges().list(&filter).unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.clone());
        seen.extend(page);
    }
    assert_eq!(seen, ["e", "d", "c", "b", "a"]);
    let unknown = ExchangeFilter { before: Some("x".to_owned()), ..ExchangeFilter::default() };
    assert!(user.exchanges().list(&unknown).unwrap().is_empty());
}

#[test]
fn filters_narrow_a_list_together() {
    let (_dir, user) = store();
    record(&user, &[new("a", 1, Some("s"), "m"), new("b", 2, Some("s"), "n"), new("c", 3, None, "m")]);
    let list = |session: Option<&str>, model: Option<&str>, since: Option<u64>| {
        let filter = ExchangeFilter {
            session: session.map(str::to_owned),
            model: model.map(str::to_owned),
            since: since.map(Timestamp::from_millis),
            ..ExchangeFilter::default()
        };
        user.exchanges().list(&filter).unwrap().concat()
    };
    assert_eq!(list(Some("s"), None, None), "ba");
    assert_eq!(list(Some("s"), Some("m"), None), "a");
    assert_eq!(list(None, Some("m"), Some(2)), "c");
    assert_eq!(list(Some("other"), None, None), "");
    assert_eq!(user.exchanges().get("b").unwrap().as_deref(), Some("b"));
    assert_eq!(user.exchanges().get("x").unwrap(), None);
}

#[test]
fn sessions_and_days_are_summed() {
    let (_dir, user) = store();
    let day = MILLIS_PER_DAY;
    let unpriced = NewExchange { cost_picos: None, without_picos: None, ..new("d", day + 2, None, "m") };
    record(
        &user,
        &[
            new("a", 1, Some("s"), "m"),
            new("b", day, Some("s"), "m"),
            new("c", day + 1, Some("t"), "n"),
            unpriced,
        ],
    );
    let sessions = user.exchanges().sessions(9).unwrap();
    let named: Vec<_> =
        sessions.iter().map(|one| (one.session.as_str(), one.requests, one.cost_picos)).collect();
    assert_eq!(named, [("t", 1, 1), ("s", 2, 2)]);
    assert_eq!((sessions[1].first.as_millis(), sessions[1].last.as_millis()), (1, day));
    let costs = user.exchanges().costs(Timestamp::from_millis(0)).unwrap();
    let rows: Vec<_> =
        costs.iter().map(|row| (row.day.as_str(), row.model.as_str(), row.requests, row.unpriced)).collect();
    assert_eq!(rows, [("1970-01-02", "m", 2, 1), ("1970-01-02", "n", 1, 0), ("1970-01-01", "m", 1, 0)]);
    assert_eq!(user.exchanges().costs(Timestamp::from_millis(day)).unwrap().len(), 2);
}

#[test]
fn what_was_read_back_is_summed_by_tool() {
    let (_dir, user) = store();
    let read = |tool: &str, tokens: u64, cost: Option<&str>| serde_json::json!({"tool": tool, "tokens": tokens, "spent_tokens": 10 * tokens, "cost": cost});
    let document = |read: &[serde_json::Value]| {
        serde_json::json!({"label": "\"rehydrations\":[{", "rehydrations": read}).to_string()
    };
    let documents = [
        document(&[read("shell", 100, Some("0.002")), read("search", 40, None)]),
        document(&[read("shell", 50, Some("0.001"))]),
        document(&[]),
        document(&[serde_json::json!({"tokens": 7})]),
        "not JSON, \"rehydrations\":[".to_owned(),
    ];
    let ids = ["a", "b", "c", "d", "e"];
    let requests: Vec<_> =
        ids.iter().zip(&documents).map(|(id, json)| NewExchange { json, ..new(id, 5, None, "m") }).collect();
    record(&user, &requests);
    let rows = user.exchanges().read_back(Timestamp::from_millis(5)).unwrap();
    let figures: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.tool.as_str(),
                row.readings,
                row.requests,
                row.tokens,
                row.spent_tokens,
                row.unpriced,
                row.cost_picos,
            )
        })
        .collect();
    assert_eq!(
        figures,
        [
            ("shell", 2, 2, 150, 1_500, 0, 3_000_000_000),
            ("search", 1, 1, 40, 400, 1, 0),
            ("", 1, 1, 7, 0, 1, 0),
        ]
    );
    assert!(user.exchanges().read_back(Timestamp::from_millis(6)).unwrap().is_empty());
}

#[test]
fn users_see_their_own_requests() {
    let (_dir, user) = store();
    record(&user, &[new("a", 1, Some("s"), "m")]);
    let other = user.store().user("b").unwrap();
    assert_eq!(other.exchanges().get("a").unwrap(), None);
    assert!(other.exchanges().list(&ExchangeFilter::default()).unwrap().is_empty());
    assert!(other.exchanges().sessions(9).unwrap().is_empty());
    assert!(other.exchanges().costs(Timestamp::from_millis(0)).unwrap().is_empty());
}
