//! Tests of logs: templates, records and proof.

use proptest::prelude::*;

use super::*;
use crate::content_type::ContentType;
use crate::engine::verify::check_draft;

proptest! {
    #[test]
    fn every_draft_is_proved(
        lines in prop::collection::vec("( |\t)?(1:02 )?(INFO )?[a-e]{1,2} [a-e]{0,2}[0-9]{0,3}\r?|Caused by: x|[\0-\u{ff}]{0,20}", 0..80),
        target in 20..400_usize,
    ) {
        check_draft(CONDENSER, ContentType::Log, &lines.join("\n"), target);
    }
}

#[test]
fn only_lines_with_times_or_levels_look_like_a_log() {
    let log = "2024-05-01 12:00:01 INFO a\n2024-05-01 12:00:02 WARN b\n".repeat(5);
    assert!(looks_like(&log));
    assert!(looks_like(&"[INFO] started\n[WARNING] slow\n    at x\n".repeat(5)));
    assert!(looks_like(&log.replace('\n', "\r\n")));
    for other in [
        "".to_owned(),
        "one line at 12:00\n".to_owned(),
        "The train left at 12:30.\nNobody saw it.\n".repeat(9),
        "2024-05-01 12:00:01,1.5,7\n".repeat(50),
        "fn main() {}\n".repeat(50),
        "\0".repeat(5_000),
        "\n".repeat(5_000),
    ] {
        assert!(!looks_like(&other), "{other:.40?}");
    }
}

/// Output of `lines` alike with a failure in the middle.
fn output(line: &dyn Fn(usize) -> String, failure: &str) -> String {
    (0..60).map(|at| if at == 30 { failure.to_owned() } else { line(at) + "\n" }).collect()
}

#[test]
fn output_of_compilers_and_tests_is_a_log() {
    let moved =
        "error[E0382]: borrow of moved value: `cfg`\n  --> src/main.rs:42:20\n   |\n42 |     cfg.run();\n";
    let missing = "src/core/alloc.c:212:17: error: no member named capcity\n  212 |     p->capcity\n";
    let cart = "FAIL src/cart/Cart.test.tsx\n  ● Cart › adds totals\n\n    Expected: 30\n    Received: 3010\n\n    > 42 |   expect(total)\n";
    for text in [
        output(&|at| format!("   Compiling crate{at} v0.{at}.1"), moved),
        output(&|at| format!("cc -O2 -c src/mod{at}/file{at}.c -o build/file{at}.o"), missing),
        output(&|at| format!("PASS src/components/C{at}.test.tsx"), cart),
        output(&|at| format!("✓ transformed src/components/C{at}.tsx"), "npm ERR! code ELIFECYCLE\n"),
        output(
            &|at| format!("ok  \texample.com/pkg{at}\t0.{at:03}s"),
            "--- FAIL: TestTotal (0.00s)\n    a_test.go:4: no\n",
        ),
        output(
            &|at| format!("tests/test_m{at}.py .... [ {at}%]"),
            "FAILED tests/test_a.py::test_b - assert 1 == 2\n",
        ),
        missing.repeat(9),
    ] {
        assert!(looks_like(&text), "{text}");
    }
}

#[test]
fn texts_that_quote_a_failure_are_no_logs() {
    let words = ["lamp", "desk", "chair", "crane", "ship", "gate", "storm", "clerk", "barge", "roof", "mill"];
    let word = |at: usize| words[at * 7 % words.len()];
    let failure = "error[E0382]: borrow of moved value: `cfg`\n";
    let trace = "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: bad\n";
    for text in [
        output(
            &|at| format!("The {} stood by the {}, and its {}.", word(at), word(at / 3), word(at / 7)),
            failure,
        ),
        output(
            &|at| {
                format!("def {}_{}(self):\n    {} = {}", word(at), word(at / 3), word(at + 1), word(at / 7))
            },
            trace,
        ),
        output(&|at| format!("{}.{}: {}", word(at), word(at / 5), word(at / 7)), "error: it failed\n"),
        output(&|at| format!("src/m{at}.py:{at}:    raise error({at})"), ""),
        output(&|at| format!("-rw-r--r-- 1 root root {at} error{at}.log"), ""),
    ] {
        assert!(!looks_like(&text), "{text}");
    }
}
