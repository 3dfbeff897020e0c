//! Spans that must survive, found in texts of every kind.

use super::*;

fn found(text: &str) -> Vec<(&str, SpanKind)> {
    scan(text, ErrorSense::Strict).into_iter().map(|span| (&text[span.range], span.kind)).collect()
}

fn salient(text: &str) -> Vec<&str> {
    found(text).into_iter().filter(|(_, kind)| kind.is_salient()).map(|(span, _)| span).collect()
}

#[test]
fn every_kind_is_recognised_with_its_exact_bytes() {
    use SpanKind::*;
    for (text, expected) in [
        ("see https://example.org/a?b=1&c=2.", vec![("https://example.org/a?b=1&c=2", Url)]),
        ("(www.example.org)", vec![("www.example.org", Url)]),
        ("mail ann@example.org, please", vec![("ann@example.org", Email)]),
        ("in src/main.rs:12:5: oops", vec![("src/main.rs:12:5", Path)]),
        ("open /etc/hosts now", vec![("/etc/hosts", Path)]),
        ("C:\\Temp\\a.txt", vec![("C:\\Temp\\a.txt", Path)]),
        ("costs $1,299.00!", vec![("$1,299.00", Price)]),
        ("costs 20 euros", vec![("20 euros", Price)]),
        ("nur €50", vec![("€50", Price)]),
        ("took 12ms", vec![("12ms", Quantity)]),
        ("took 3.5 hours", vec![("3.5 hours", Quantity)]),
        ("up 45%.", vec![("45%", Quantity)]),
        ("on 2024-05-01,", vec![("2024-05-01", Date)]),
        ("on 12 March", vec![("12 March", Date)]),
        ("in July, 1805, and", vec![("July, 1805", Date)]),
        ("1905年に", vec![("1905年", Date)]),
        ("commit 3ea751c087f3", vec![("3ea751c087f3", Hash)]),
        ("order ORD-2024-0017 is", vec![("ORD-2024-0017", Id)]),
        ("see #4711", vec![("#4711", Id)]),
        ("version 1.10.2", vec![("1.10.2", Id)]),
        ("edit notes.txt first. Then", vec![("notes.txt", Path)]),
        ("as 1.E.8. says, the 15_th", vec![("1.E.8", Number), ("15_th", Number)]),
        ("chapter 12 ends", vec![("12", Number)]),
        ("at 12:30:05.123", vec![("12:30:05.123", Number)]),
        ("and/or <b>he/she</b> 24/7", vec![("24/7", Number)]),
        ("ValueError: bad input\n", vec![("ValueError: bad input", Error)]),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn minified_data_is_looked_into() {
    let text = r#"{"url":"https://example.org/x","price":"$12.50","id":"ab12-cd34-0001","note":"none"}"#;
    assert_eq!(salient(text), ["https://example.org/x", "$12.50", "ab12-cd34-0001"]);
}

#[test]
fn people_may_write_of_errors_but_machines_report_them() {
    let novel = "It was an error in judgment, and the attack failed.";
    assert!(salient(novel).is_empty());
    let spans = scan(novel, ErrorSense::Loose);
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0].kind, SpanKind::Error);
}

#[test]
fn an_overlong_error_line_is_kept_around_its_word() {
    let text = format!("{} ERROR disk full {}", "é".repeat(1_000), "x ".repeat(1_000));
    let spans = scan(&text, ErrorSense::Strict);
    let error = spans.iter().find(|span| span.kind == SpanKind::Error).map(|span| &text[span.range.clone()]);
    assert!(error.is_some_and(|line| line.contains("ERROR disk full") && line.len() <= 240));
}

#[test]
fn hostile_runs_are_scanned_in_linear_time_without_panic() {
    for unit in
        ["1", "/", "@", "\0", "é1", "://", "$", "\"=", "1,", "ERROR", "E\n", "年1", "a/b.c:", "\\", "#"]
    {
        let text = unit.repeat(200_000 / unit.len());
        let spans = scan(&text, ErrorSense::Loose);
        assert!(
            spans
                .iter()
                .all(|span| text.is_char_boundary(span.range.start) && text.is_char_boundary(span.range.end))
        );
    }
}

#[test]
fn what_begins_like_a_report_of_failure_is_one() {
    let reports = [
        "Error: no such table: users",
        "  \nTraceback (most recent call last):\n  File \"a.py\", line 3",
        "ValueError: 3 is not a colour",
        "[ERROR] cannot connect",
        "java.lang.IllegalStateException: closed",
        "fatal: not a git repository",
        "Error executing tool read_file: no such file",
        "Failed to connect to 10.0.0.7",
        r#"{"error": {"code": 404}}"#,
        r#"{ "errors": [{"path": "a"}] }"#,
        r#"{"error":true,"reason":"late"}"#,
    ];
    reports.iter().for_each(|text| assert!(reports_failure(text), "{text}"));
    let others = [
        "",
        "No errors found.",
        "src/a.rs:12: return Err(ValueError)",
        "errors_of_the_past.txt",
        "error.rs\nfatal.rs",
        "failed: 0, passed: 230",
        "ERROR,count\n3,4",
        "Error handling in five chapters",
        r#"{"error": null, "rows": []}"#,
        r#"{"error": "", "rows": []}"#,
        r#"{"errors": [], "rows": []}"#,
        r#"{"rows": [{"error": 1}]}"#,
        "Failure is a good teacher",
    ];
    others.iter().for_each(|text| assert!(!reports_failure(text), "{text}"));
}
