//! The names that dashboards rely on, and labels that cannot grow without end.

use larder_core::policy::BudgetStatus;
use larder_proxy::record::Outcome;
use larder_testkit::records::exchange;

use super::*;

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

/// The end of what is written by hand.
const HEAD: &str = "|---|---|---|---|---|\n";

/// The names of the labels of a metric, from series of it.
fn labels(text: &str, series: &str) -> String {
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix('{')?.split_once('}'));
    let Some((labels, _)) = found else { return String::new() };
    let names = labels.split("\",").map(|label| format!("`{}`", label.split('=').next().unwrap_or_default()));
    names.collect::<Vec<_>>().join(", ")
}

/// The reference follows from the registry. `LARDER_BLESS=1` writes it anew; read the diff.
#[test]
fn the_page_of_telemetry_has_every_metric() {
    let metrics = Metrics::default();
    metrics.record(&exchange("a", 1), true);
    let text = metrics.text().unwrap();
    let mut expected = String::new();
    let mut told = text.lines().filter_map(|line| line.strip_prefix("# "));
    while let (Some(help), Some(kind)) = (told.next().filter(|line| *line != "EOF"), told.next()) {
        let (name, help) = help.strip_prefix("HELP ").and_then(|rest| rest.split_once(' ')).unwrap();
        let kind = kind.rsplit(' ').next().unwrap();
        let ends: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        let series: Vec<String> = ends.iter().map(|end| format!("`{name}{end}`")).collect();
        let labels =
            if kind == "histogram" { String::new() } else { labels(&text, &format!("{name}{}", ends[0])) };
        let (series, help) = (series.join(", "), help.trim_end_matches('.'));
        expected += &format!("| `{name}` | {kind} | {series} | {labels} | {help} |\n");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/telemetry.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, rows) = page.split_once(HEAD).unwrap();
    if std::env::var_os("LARDER_BLESS").is_some() {
        std::fs::write(path, format!("{head}{HEAD}{expected}")).unwrap();
        return;
    }
    assert_eq!(rows, expected, "docs/reference/telemetry.md; LARDER_BLESS=1 writes it anew");
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
        ("larder_read_back_total{tool=\"search\"}", 1.0),
        ("larder_read_back_tokens_total{tool=\"search\"}", 900.0),
        ("larder_read_back_cost_usd_total{tool=\"search\"}", 0.0004),
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
fn what_did_not_happen_moves_nothing() {
    let metrics = Metrics::default();
    for (outcome, dry_run) in [(Outcome::Ok, true), (Outcome::Refused, false)] {
        let mut exchange = exchange("a", 1);
        exchange.compactions[0].to = Rendition::Condensed;
        exchange.summary.outcome = outcome;
        exchange.summary.decision.as_mut().unwrap().dry_run = dry_run;
        metrics.record(&exchange, true);
    }
    let text = metrics.text().unwrap();
    for series in [
        "compression_invocations_total",
        "summary_count_total",
        "tokens_saved_count",
        "compression_latency_ms_count",
        "compactions_per_session",
    ] {
        assert_eq!(value(&text, series), 0.0, "{series}");
    }
    assert_eq!(value(&text, "context_budget_decision_total{status=\"needs_summary\",dry_run=\"true\"}"), 1.0);
}

#[test]
fn every_round_that_left_over_its_budget_is_a_violation() {
    let metrics = Metrics::default();
    let mut exchange = exchange("a", 1);
    exchange.summary.violations = 2;
    metrics.record(&exchange, true);
    assert_eq!(value(&metrics.text().unwrap(), "context_budget_violation_total"), 2.0);
}

#[test]
fn runs_and_texts_condensed_on_their_own_count() {
    let metrics = Metrics::default();
    let shrunk = |to, before, after| ReducedText { to, before, after };
    metrics.run_ended(&RunReport {
        status: Some(BudgetStatus::NeedsSummary),
        violates: false,
        shrunk: vec![shrunk(Rendition::Condensed, 900, 300), shrunk(Rendition::Pointer, 500, 20)],
        packing: Duration::from_millis(4),
    });
    metrics.run_ended(&RunReport { status: Some(BudgetStatus::Reject), ..RunReport::default() });
    metrics.run_ended(&RunReport::default());
    metrics.text_condensed(shrunk(Rendition::Condensed, 100, 50), Duration::from_millis(1));
    let text = metrics.text().unwrap();
    for (series, expected) in [
        ("context_budget_decision_total{status=\"needs_summary\",dry_run=\"false\"}", 1.0),
        ("context_budget_decision_total{status=\"reject\",dry_run=\"false\"}", 1.0),
        ("overflow_warnings_total", 1.0),
        ("context_budget_violation_total", 0.0),
        ("compression_invocations_total", 2.0),
        ("summary_count_total", 2.0),
        ("pointer_count_total", 1.0),
        ("tokens_saved_sum", 1_130.0),
        ("compression_latency_ms_sum", 5.0),
        ("compression_latency_ms_count", 2.0),
    ] {
        assert!((value(&text, series) - expected).abs() < 1e-9, "{series}\n{text}");
    }
}

#[test]
fn client_text_never_becomes_a_label() {
    let metrics = Metrics::default();
    let mut hostile = exchange("mallory", 1);
    hostile.summary.model = "evil\"} 1\nmodel".to_owned();
    hostile.summary.session = Some("evil session".to_owned());
    hostile.summary.recipe = Some("evil/recipe".to_owned());
    hostile.summary.answered_by = None;
    hostile.summary.outcome = Outcome::Invalid;
    metrics.record(&hostile, false);
    let text = metrics.text().unwrap();
    assert!(!text.contains("evil") && !text.contains("mallory"), "{text}");
    assert_eq!(value(&text, "larder_requests_total{wire=\"chat\",model=\"none\",outcome=\"invalid\"}"), 1.0);
}

#[test]
fn models_that_the_table_does_not_have_get_labels_once_their_provider_knows_them_and_not_without_end() {
    let metrics = Metrics::default();
    let record = |name: &str, is_known, outcome| {
        let mut exchange = exchange("a", 1);
        let model = exchange.summary.answered_by.as_mut().unwrap();
        (model.name, model.server) = (name.to_owned(), Some("openai".to_owned()));
        exchange.summary.model_is_known = is_known;
        exchange.summary.outcome = outcome;
        metrics.record(&exchange, false);
    };
    record("gpt-4o", false, Outcome::Ok);
    record("gpt-4o-mini", true, Outcome::UpstreamError);
    record("gpt-typo", false, Outcome::UpstreamError);
    for number in 0..MAX_UNLISTED + 9 {
        record(&format!("model-{number}"), false, Outcome::Ok);
    }
    let text = metrics.text().unwrap();
    let requests = |model: &str, outcome: &str| {
        value(
            &text,
            &format!("larder_requests_total{{wire=\"chat\",model=\"{model}\",outcome=\"{outcome}\"}}"),
        )
    };
    assert_eq!(requests("gpt-4o", "ok"), 1.0);
    assert_eq!(requests("gpt-4o-mini", "upstream_error"), 1.0);
    assert_eq!(requests("other", "upstream_error"), 1.0);
    assert_eq!(requests("other", "ok"), 11.0, "the rest, and two places were taken");
    assert!(!text.contains("gpt-typo"));
}

#[test]
fn tables_that_change_for_ever_add_no_labels_for_ever() {
    let metrics = Metrics::default();
    for number in 0..MAX_MODELS as u64 + 50 {
        let mut exchange = exchange("a", number);
        exchange.summary.answered_by.as_mut().unwrap().name = format!("model {number}");
        metrics.record(&exchange, false);
    }
    let text = metrics.text().unwrap();
    let series = text.lines().filter(|line| line.starts_with("larder_requests_total{")).count();
    assert_eq!(series, MAX_MODELS + 1);
    assert_eq!(value(&text, "larder_requests_total{wire=\"chat\",model=\"other\",outcome=\"ok\"}"), 50.0);
}

#[test]
fn tools_that_are_read_back_from_add_labels_only_as_names_of_tools_and_not_without_end() {
    let metrics = Metrics::default();
    for at in 0..MAX_TOOLS + 7 {
        let mut exchange = exchange("a", 1);
        exchange.rehydrations[0].tool = format!("tool_{at}");
        metrics.record(&exchange, false);
    }
    let mut exchange = exchange("a", 1);
    for tool in ["no such name", "", &"x".repeat(65)] {
        exchange.rehydrations[0].tool = tool.to_owned();
        metrics.record(&exchange, false);
    }
    let text = metrics.text().unwrap();
    assert_eq!(value(&text, "larder_read_back_total{tool=\"tool_0\"}"), 1.0);
    assert_eq!(value(&text, "larder_read_back_total{tool=\"other\"}"), 9.0);
    assert_eq!(value(&text, "larder_read_back_total{tool=\"none\"}"), 1.0);
}
