//! The rule for routes of a provider's that Larder only forwards: what the provider does with what it is sent, and what
//! that counts against the budget of a key. One table, which the guide repeats. Knows no server and no key.

use axum::http::Method;

/// What a provider does with what it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteState {
    /// It answers, and keeps nothing that another request could read.
    Answers,
    /// It keeps something under the account of the key, such as files and batches.
    Keeps,
}

/// What a request counts against the budget of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteCharge {
    /// Nothing.
    Free,
    /// Nothing yet: what a batch has used is charged when its results are read.
    Later,
    /// What the results of a batch report.
    Results,
    /// The catalogue's price of what the request states, by the picture or the character.
    Unit,
    /// Nothing that could be counted, so that a key with a budget is refused.
    Unknown,
}

/// What holds of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteRule {
    /// What the provider does with what it is sent.
    pub state: RouteState,
    /// What a request counts.
    pub charge: RouteCharge,
}

use RouteCharge::{Free, Later, Results, Unit, Unknown};
use RouteState::{Answers, Keeps};

/// Method (`*`: any), path (`*`: one segment, `**`: any rest) and rule; the first that matches holds.
const RULES: [(&str, &str, RouteState, RouteCharge); 22] = [
    ("GET", "/v1/models", Answers, Free),
    ("GET", "/v1/models/**", Answers, Free),
    ("POST", "/v1/moderations", Answers, Free),
    ("POST", "/v1/responses/input_tokens", Answers, Free),
    ("POST", "/v1/completions", Answers, Unknown),
    ("POST", "/v1/images/generations", Answers, Unit),
    ("POST", "/v1/images/*", Answers, Unknown),
    ("POST", "/v1/audio/speech", Answers, Unit),
    ("POST", "/v1/audio/transcriptions", Answers, Unknown),
    ("POST", "/v1/audio/translations", Answers, Unknown),
    ("POST", "/model/**", Answers, Unknown),
    ("GET", "/v1/files/*/content", Keeps, Results),
    ("GET", "/v1/messages/batches/*/results", Keeps, Results),
    ("POST", "/v1/files", Keeps, Free),
    ("POST", "/v1/uploads/**", Keeps, Free),
    ("POST", "/v1/batches", Keeps, Later),
    ("POST", "/v1/messages/batches", Keeps, Later),
    ("POST", "/v1/batches/*/cancel", Keeps, Free),
    ("POST", "/v1/messages/batches/*/cancel", Keeps, Free),
    ("GET", "**", Keeps, Free),
    ("DELETE", "**", Keeps, Free),
    ("*", "**", Keeps, Unknown),
];

impl RouteRule {
    /// The rule for a request.
    pub fn of(method: &Method, path: &str) -> Self {
        // What a server makes of escapes is its own affair.
        let is_plain = !path.contains('%');
        let method = if matches!(*method, Method::HEAD | Method::OPTIONS) { "GET" } else { method.as_str() };
        let found =
            RULES.iter().find(|(of, pattern, ..)| (*of == "*" || *of == method) && matches(pattern, path));
        match found {
            Some(&(_, _, state, charge)) if is_plain || state == Answers => Self { state, charge },
            _ => Self { state: Keeps, charge: Unknown },
        }
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    for part in pattern.split('/') {
        match (part, segments.next()) {
            ("**", _) => return true,
            ("*", Some(segment)) if !segment.is_empty() => {}
            (part, Some(segment)) if part == segment => {}
            _ => return false,
        }
    }
    segments.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_the_rule_of_every_route() {
        let guide = include_str!("../../../../docs/guide/gateway.md");
        for (method, path, state, charge) in RULES {
            let route = match (method, path) {
                ("*", _) => "everything else".to_owned(),
                (_, "**") => format!("any other `{method}`"),
                _ => format!(
                    "`{method} {}`",
                    path.replace("/**", "/…").replace('*', "ID").replace("images/ID", "images/…")
                ),
            };
            let state = if state == Answers { "any key" } else { "see below" };
            let charge = match charge {
                Free => "nothing",
                Later => "nothing yet",
                Results => "what the results report",
                Unit => "its price, if the request states all that it depends on",
                Unknown => "refused",
            };
            let row = format!("| {route} | {state} | {charge} |");
            assert!(guide.contains(&row), "the guide lacks: {row}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_holds() {
        let rule = |method: &Method, path: &str| {
            let rule = RouteRule::of(method, path);
            (rule.state, rule.charge)
        };
        assert_eq!(rule(&Method::POST, "/v1/images/generations"), (Answers, Unit));
        assert_eq!(rule(&Method::POST, "/v1/images/edits"), (Answers, Unknown));
        assert_eq!(rule(&Method::POST, "/v1/images/edits/x"), (Keeps, Unknown));
        assert_eq!(rule(&Method::HEAD, "/v1/files"), (Keeps, Free));
        assert_eq!(rule(&Method::GET, "/v1/files/f-1/content"), (Keeps, Results));
        assert_eq!(rule(&Method::GET, "/v1/files/f-1/%63ontent"), (Keeps, Unknown), "escaped");
        assert_eq!(rule(&Method::POST, "/v1/threads"), (Keeps, Unknown));
        assert_eq!(rule(&Method::POST, "/model/titan%3A0/invoke"), (Answers, Unknown));
        assert_eq!(rule(&Method::GET, "/v1/models/a/b"), (Answers, Free));
    }
}
