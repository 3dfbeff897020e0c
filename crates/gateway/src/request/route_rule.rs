//! The rule for routes of a provider's that Larder only forwards: what the provider does with what it is sent, and what
//! that counts against the budget of a key. One table, which the guide repeats. Knows no server and no key.

use axum::http::Method;
use percent_encoding::percent_decode_str;

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
        let rule = Self::of_literal(method, path);
        // Servers may match a route before or after they decode the path.
        let is_certain = !path.contains('%')
            || rule.state == Answers
                && decoded(path).is_some_and(|path| Self::of_literal(method, &path) == rule);
        if is_certain { rule } else { Self { state: Keeps, charge: Unknown } }
    }

    fn of_literal(method: &Method, path: &str) -> Self {
        let method = if matches!(*method, Method::HEAD | Method::OPTIONS) { "GET" } else { method.as_str() };
        let found =
            RULES.iter().find(|(of, pattern, ..)| (*of == "*" || *of == method) && matches(pattern, path));
        let (state, charge) = found.map_or((Keeps, Unknown), |&(_, _, state, charge)| (state, charge));
        Self { state, charge }
    }
}

/// Whether every parser of URLs takes the path for the same route: only then is the route that is judged here the one that
/// a server serves. Parsers resolve `.` and `..`, escaped ones too, some servers after parameters (`..;`) are cut off or
/// escapes are decoded once more; some take `\` for `/` and leave out empty segments.
pub fn is_unambiguous(path: &str) -> bool {
    // What RFC 3986 allows: parsers escape other characters, or change their meaning.
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%/".contains(&byte);
    let is_dots = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
    let has_empty_segment = path.ends_with('/') || path.contains("//");
    let is_resolved = |path: String| !path.contains('\\') && !path.split('/').any(is_dots);
    path.bytes().all(is_allowed) && !has_empty_segment && decoded(path).is_some_and(is_resolved)
}

/// The path behind all of its escapes; `None` if it is escaped more than twice, for which no client has a reason.
fn decoded(path: &str) -> Option<String> {
    let mut path = path.to_owned();
    for _ in 0..3 {
        let decoded = percent_decode_str(&path).decode_utf8_lossy().into_owned();
        if decoded == path {
            return Some(path);
        }
        path = decoded;
    }
    None
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
    use proptest::prelude::*;
    use reqwest::Url;

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
        assert_eq!(rule(&Method::POST, "/v1/images/edits%2Fx"), (Keeps, Unknown), "another route if decoded");
        assert_eq!(rule(&Method::POST, "/v1/threads"), (Keeps, Unknown));
        assert_eq!(rule(&Method::POST, "/model/titan%3A0/invoke"), (Answers, Unknown));
        assert_eq!(rule(&Method::GET, "/v1/models/a/b"), (Answers, Free));
        assert_eq!(rule(&Method::GET, "/v1/models/a%2Fb"), (Answers, Free));
    }

    #[test]
    fn paths_that_a_parser_may_resolve_otherwise_are_ambiguous() {
        for path in [
            "/v1/models/../files/f",
            "/v1/models/%2e%2E/files/f",
            "/v1/models/.%2e/files/f",
            "/v1/models/%252e%252e/files/f",
            "/v1/models/%25252e%25252e/files/f",
            "/v1/models/x%2F..%2F..%2Ffiles",
            "/v1/models/..;x/files",
            "/v1/images/..\\batches",
            "/v1/images/..%5Cbatches",
            "/v1/images/x%5Cy",
            "/v1/files/./f",
            "/v1/files//f",
            "/v1/files/",
            "/v1/files/.",
            "/v1/files/{f}",
            "/v1/files/\u{e9}",
        ] {
            assert!(!is_unambiguous(path), "{path}");
        }
        for path in [
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fa/invoke",
            "/model/amazon.nova:0/invoke",
            "/v1/models/%2Fmodels%2Fllama",
            "/v1/models/a...b/..c/100%25",
        ] {
            assert!(is_unambiguous(path), "{path}");
        }
    }

    proptest! {
        /// The parser is the one that requests are sent with.
        #[test]
        fn the_path_that_is_judged_is_the_path_that_is_sent(path in "(/(\\.|%2[eEfF]|%252[eEfF]|%5[cC]|%|[\\\\;a-f\"{^|]|é|models|files){0,5}){1,6}") {
            let path = format!("/v1{path}");
            let mut url = Url::parse("http://localhost/").unwrap();
            url.set_path(&path);
            if is_unambiguous(&path) {
                prop_assert_eq!(url.path(), &path);
                url.set_path(&decoded(&path).unwrap());
                let of_decoded =
                    RouteRule::of_literal(&Method::GET, &percent_decode_str(url.path()).decode_utf8_lossy());
                let rule = RouteRule::of(&Method::GET, &path);
                let strictest = RouteRule { state: Keeps, charge: Unknown };
                prop_assert!(rule == of_decoded || rule == strictest);
            }
        }
    }
}
