//! The names that dashboards rely on, and labels that cannot grow without end.

use super::*;
use crate::desk::fake::exchange;
use crate::exchange::Outcome;

/// The value of a series, by how its line begins.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
    line.unwrap_or_else(|| panic!("no series {series} in\n{text}"))
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn every_name_of_the_requirements_is_there_from_the_start() {
    let text = Metrics::default().text().unwrap();
    for series in [
        "context_budget_violation_total",
        "context_budget_decision_total{status=\"ok\",dry_run=\"false\"}",
        "context_budget_decision_total{status=\"needs_summary\",dry_run=\"true\"}",
        "context_budget_decision_total{status=\"reject\",dry_run=\"false\"}",
        "overflow_warnings_total",
        "compression_invocations_total",
        "compression_latency_ms_count",
        "tokens_saved_count",
        "summary_count_total",
        "pointer_count_total",
        "pointer_refetch_count_total",
        "compactions_per_session",
        "larder_gateway_overhead_seconds_count",
    ] {
        assert_eq!(value(&text, series), 0.0, "{series}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn a_request_moves_what_it_should() {
    let metrics = Metrics::default();
    let guard = metrics.begin();
    metrics.record(&exchange("a", 1), true);
    let text = metrics.text().unwrap();
    for (series, expected) in [
        ("larder_requests_total{wire=\"chat\",model=\"main\",outcome=\"ok\"}", 1.0),
        ("larder_requests_in_flight", 1.0),
        ("context_budget_decision_total{status=\"needs_summary\",dry_run=\"false\"}", 1.0),
        ("context_budget_violation_total", 0.0),
        ("compression_invocations_total", 0.0),
        ("compression_latency_ms_sum", 1.5),
        ("tokens_saved_sum", 260.0),
        ("pointer_count_total", 1.0),
        ("summary_count_total", 0.0),
        ("pointer_refetch_count_total", 1.0),
        ("compactions_per_session", 1.0),
        ("larder_gateway_overhead_seconds_bucket{le=\"0.0025\"}", 1.0),
        ("larder_gateway_overhead_seconds_bucket{le=\"0.001\"}", 0.0),
        ("larder_prompt_tokens_total{model=\"main\",kind=\"before\"}", 2_340.0),
        ("larder_prompt_tokens_total{model=\"main\",kind=\"after\"}", 1_440.0),
        ("larder_usage_tokens_total{model=\"main\",kind=\"cached_input\"}", 1_000.0),
        ("larder_cost_usd_total{model=\"main\"}", 0.002),
        ("larder_cost_without_usd_total{model=\"main\"}", 0.0035),
    ] {
        assert!((value(&text, series) - expected).abs() < 1e-9, "{series}\n{text}");
    }
    drop(guard);
    assert_eq!(value(&metrics.text().unwrap(), "larder_requests_in_flight"), 0.0);
}

#[test]
fn what_clients_write_becomes_no_label() {
    let metrics = Metrics::default();
    let mut hostile = exchange("mallory", 1);
    hostile.head.model = "evil\"} 1\nmodel".to_owned();
    hostile.head.session = Some("evil session".to_owned());
    hostile.head.recipe = Some("evil/recipe".to_owned());
    hostile.head.answered_by = None;
    hostile.head.outcome = Outcome::Invalid;
    metrics.record(&hostile, false);
    let text = metrics.text().unwrap();
    assert!(!text.contains("evil") && !text.contains("mallory"), "{text}");
    assert_eq!(value(&text, "larder_requests_total{wire=\"chat\",model=\"none\",outcome=\"invalid\"}"), 1.0);
}

#[test]
fn models_that_the_table_does_not_have_get_labels_once_their_provider_knows_them_and_not_without_end() {
    let metrics = Metrics::default();
    let record = |name: &str, outcome| {
        let mut exchange = exchange("a", 1);
        let model = exchange.head.answered_by.as_mut().unwrap();
        (model.name, model.server) = (name.to_owned(), Some("openai".to_owned()));
        exchange.head.outcome = outcome;
        metrics.record(&exchange, false);
    };
    record("gpt-4o", Outcome::Ok);
    record("gpt-typo", Outcome::UpstreamError);
    for number in 0..MAX_UNLISTED + 9 {
        record(&format!("model-{number}"), Outcome::Ok);
    }
    let text = metrics.text().unwrap();
    let requests = |model: &str, outcome: &str| {
        value(
            &text,
            &format!("larder_requests_total{{wire=\"chat\",model=\"{model}\",outcome=\"{outcome}\"}}"),
        )
    };
    assert_eq!(requests("gpt-4o", "ok"), 1.0);
    assert_eq!(requests("openai", "upstream_error"), 1.0);
    assert_eq!(requests("openai", "ok"), 10.0, "the rest, and gpt-4o has taken one place");
    assert!(!text.contains("gpt-typo"));
}

#[test]
fn tables_that_change_for_ever_add_no_labels_for_ever() {
    let metrics = Metrics::default();
    for number in 0..MAX_MODELS as u64 + 50 {
        let mut exchange = exchange("a", number);
        exchange.head.answered_by.as_mut().unwrap().name = format!("model {number}");
        metrics.record(&exchange, false);
    }
    let text = metrics.text().unwrap();
    let series = text.lines().filter(|line| line.starts_with("larder_requests_total{")).count();
    assert_eq!(series, MAX_MODELS + 1);
    assert_eq!(value(&text, "larder_requests_total{wire=\"chat\",model=\"other\",outcome=\"ok\"}"), 50.0);
}
