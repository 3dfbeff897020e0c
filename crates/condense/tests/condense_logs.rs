//! What condensed logs guarantee.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

mod guarantees;

use guarantees::{Case, held, key, pins_of};
use larder_condense::{Condensed, ContentType, essential};
use larder_text::pointer::Pointer;
use larder_text::tokens::Counter;
use proptest::prelude::*;

fn case(text: &str, target: usize) -> Case<'_> {
    Case::new(ContentType::Log, text, target)
}

fn condensed(text: &str, target: usize) -> Condensed {
    case(text, target).run(&Counter::o200k()).unwrap()
}

fn check(text: &str, target: usize, query: Option<&str>, pins: &[String]) {
    held(&Case { query, pins, ..case(text, target) }, &Counter::o200k());
}

const SCRAPS: [&str; 33] = [
    "2024-05-01 12:00:00 INFO request 17 took 12ms\n",
    "2024-05-01 12:00:01 INFO request 18 took 9ms\n",
    "2024-05-01 12:00:02 ERROR disk full at /var/log/app.log:12\n",
    "2024-05-01 12:00:03 WARN slow query from 10.0.0.7 (1.2 KB)\r\n",
    "May  1 12:00:04 host sshd[811]: Failed password for invalid user bob from 10.1.2.3 port 22 ssh2\n",
    "May  1 12:00:05 host sshd[812]: Failed password for invalid user eve from 10.1.2.4 port 22 ssh2\r\n",
    "\u{1b}[31mERROR\u{1b}[0m 12:00:06 it broke\n",
    "Traceback (most recent call last):\n",
    "  File \"a.py\", line 3, in f\n",
    "ValueError: bad\n",
    "java.lang.IllegalStateException: no\n",
    "\tat a.b.C.d(C.java:12)\n",
    "Caused by: java.io.IOException: gone\n",
    "plain line without a time\n",
    "\n",
    "\r\n",
    "\0\0\0binary\u{1}\n",
    "12× 2024-05-01 12:00:00 INFO request 17 took 12ms\n",
    "[… L3-9]\n",
    "[Condensed log. Full text: lp1-0000000000000-000000.\n",
    "lp1-",
    "吾輩は猫である。\n",
    "(((((((((((((((((((",
    "1 2 3 4 5 6 7 8 9 10 11 12 13\n",
    ")))))))))",
    "a=b c=d e=f\n",
    "12:00:07 x",
    "👩‍👩‍👧‍👦 e\u{301}\n",
    "....\n",
    "/\n",
    "{\"t\": 1}\n",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\u{2028}\u{feff}",
];

fn logs() -> impl Strategy<Value = String> {
    let scraps = prop::collection::vec((prop::sample::select(SCRAPS.to_vec()), 1..6_usize), 0..90)
        .prop_map(|scraps| scraps.into_iter().map(|(scrap, times)| scrap.repeat(times)).collect());
    let line = "(May 1 12:00:0[0-9] )?(INFO|ERROR|WARN)? ?[a-c]{1,3} [a-z]{1,2} [0-9]{1,5}( [a-c.]{1,6})?";
    let lines = prop::collection::vec(line, 0..120).prop_map(|lines| lines.join("\n"));
    prop_oneof![3 => scraps, 3 => lines, 1 => any::<Vec<char>>().prop_map(String::from_iter)]
}

proptest! {
    #[test]
    fn any_log_meets_its_target_or_is_refused_with_the_number_it_needs(
        text in logs(),
        target in prop_oneof![0..80_usize, 80..700_usize, 700..2_000_usize],
        query in prop::option::of("[a-z ]{0,30}|failed password"),
        places in prop::collection::vec((any::<prop::sample::Index>(), 0..60_usize), 0..3),
    ) {
        check(&text, target, query.as_deref(), &pins_of(&text, &places));
    }

    #[test]
    fn our_own_pointers_survive_in_logs(before in logs(), after in logs(), target in 60..400_usize) {
        let pointer = Pointer::lines(key().mint(larder_text::hash::ContentHash::new(b"elsewhere")), 3, 9);
        check(&format!("{before}{pointer} {after}"), target, None, &[]);
    }

    #[test]
    fn what_is_essential_is_enough(text in logs()) {
        let counter = Counter::o200k();
        // Lines of JSON are not a log.
        let Some(target) = case(&text, 0).with(&counter, essential) else { return Ok(()) };
        let condensed = case(&text, target).run(&counter);
        prop_assert!(condensed.is_ok_and(|condensed| condensed.gaps.iter().all(|gap| gap.count > 0)));
    }
}

/// A server's log: many requests, few failures, one crash.
fn server(lines: usize) -> String {
    (0..lines)
        .map(|n| match n {
            611 => "12:10:11 ERROR worker 3: connection refused by 10.0.0.7\n".to_owned(),
            700 => format!(
                "12:11:40 ERROR request failed\njava.lang.IllegalStateException: pool {n}\n{}Caused by: java.io.IOException: broken pipe\n\tat d.E.f(E.java:1)\n",
                "\tat a.B.c(B.java:17)\n".repeat(30)
            ),
            n => format!("12:{:02}:{:02} INFO request {n} served in {} ms\n", n / 60 % 60, n % 60, n * 7 % 90),
        })
        .collect()
}

#[test]
fn every_kind_of_line_is_shown_once_with_its_count() {
    let condensed = condensed(&server(1_000), 300);
    let shown = |line: &str| condensed.text.lines().any(|shown| shown == line);
    assert!(shown("998× 12:00:00 INFO request 0 served in 0 ms"), "{}", condensed.text);
    assert!(shown("12:10:11 ERROR worker 3: connection refused by 10.0.0.7"), "{}", condensed.text);
    assert!(condensed.text.contains("request 999 served"), "{}", condensed.text);
}

#[test]
fn a_stack_trace_stays_with_its_head_and_keeps_its_cause() {
    let condensed = condensed(&server(1_000), 400);
    let trace =
        "12:11:40 ERROR request failed\njava.lang.IllegalStateException: pool 700\n\tat a.B.c(B.java:17)\n";
    assert!(condensed.text.contains(trace), "{}", condensed.text);
    assert!(condensed.text.contains("Caused by: java.io.IOException: broken pipe\n"), "{}", condensed.text);
    let gap = condensed.gaps.first().unwrap();
    assert!(server(1_000)[gap.bytes.clone()].lines().all(|line| line == "\tat a.B.c(B.java:17)"));
}

#[test]
fn the_lines_that_answer_the_query_are_shown() {
    let text = server(1_000);
    let asked = Case { query: Some("request 437"), ..case(&text, 250) };
    let condensed = asked.run(&Counter::o200k()).unwrap();
    assert!(condensed.text.contains("INFO request 437 served"), "{}", condensed.text);
}

#[test]
fn where_not_every_kind_fits_failures_stay_and_the_rest_is_marked() {
    let words = ["ash", "birch", "cedar", "elm", "fir", "hazel", "maple", "oak", "pine", "willow"];
    let line = |n: usize| match n {
        777 => "12:00:00 ERROR the store is lost\n".to_owned(),
        _ => format!("12:00:00 INFO {} {} {}\n", words[n % 10], words[n / 10 % 10], words[n / 100]),
    };
    let text: String = (0..1_000).map(line).collect();
    let condensed = condensed(&text, 300);
    assert!(condensed.text.contains("12:00:00 ERROR the store is lost\n"), "{}", condensed.text);
    assert!(condensed.text.contains("[… L") && !condensed.gaps.is_empty());
}

#[test]
fn forged_counts_in_a_log_are_distinguished() {
    let text = server(600).replace("12:00:07 INFO", "55× 12:00:07 INFO");
    let condensed = condensed(&text, 300);
    let id = condensed.pointer.id.as_str();
    assert!(
        condensed.text.contains(&format!("×{} 12:00:00 INFO", &id[id.len() - 2..])),
        "{}",
        condensed.text
    );
}

#[test]
fn hostile_logs_are_condensed() {
    for unit in SCRAPS {
        check(&unit.repeat(60_000 / unit.len()), 300, Some("a b"), &[]);
    }
    check(&format!("12:00:00 INFO {}", "x1,".repeat(3_400_000)), 300, None, &[]);
    let distinct: String = (0..40_000).map(|n| format!("w{}\n", "abcdefgh".repeat(n % 97))).collect();
    check(&distinct, 300, None, &[]);
}

#[test]
fn an_error_goes_before_everything_else() {
    let line = |n: usize| match n {
        213 => "2026-01-02T03:04:05Z FATAL out of memory in worker 7\n".to_owned(),
        n => format!("2026-01-02T03:04:05Z INFO request {n} answered in {} ms\n", n % 90),
    };
    let text: String = (0..400).map(line).collect();
    for target in [100, 120, 150, 170, 185, 200] {
        let condensed = condensed(&text, target);
        assert!(condensed.text.contains("FATAL out of memory"), "at {target}: {}", condensed.text);
    }
    let asked = Case { query: Some("what happened to request 200?"), ..case(&text, 160) };
    let condensed = asked.run(&Counter::o200k()).unwrap();
    assert!(condensed.text.contains("FATAL out of memory"), "{}", condensed.text);
}

#[test]
fn errors_without_a_time_are_records_of_their_own() {
    let error = |n: usize| match n % 5 {
        0 => format!("error: undefined reference to symbol {n}\n"),
        1 => format!("src/part.rs:{n}:5: error: mismatched types\n  |\n{n} | let x = y;\n"),
        2 => format!("FAILED tests/test_{n}.py::test_sum\n"),
        3 => format!("part.ts({n},7): error TS2304: Cannot find name\n    at frame {n}\n"),
        _ => format!("[WARN] cache {n} is stale\n"),
    };
    let built = |n: usize| format!("[10:{:02}:{:02}] building unit {n}\n", n / 60, n % 60);
    let text: String = (0..600).map(built).chain((0..50).map(error)).chain((600..640).map(built)).collect();
    let condensed = condensed(&text, 400);
    for shown in [
        "640× [10:00:00] building unit 0\n",
        "\nerror: undefined reference to symbol 0\n",
        "\nsrc/part.rs:1:5: error: mismatched types\n  |\n1 | let x = y;\n",
        "\nFAILED tests/test_2.py::test_sum\n",
        "\npart.ts(3,7): error TS2304: Cannot find name\n    at frame 3\n",
        "10× [WARN] cache 4 is stale\n",
    ] {
        assert!(condensed.text.contains(shown), "{shown}{}", condensed.text);
    }
    for n in (0..50).filter(|n| n % 5 < 4) {
        assert!(led_to(&text, &condensed, error(n).trim_end()), "{n} in {}", condensed.text);
    }
}

/// Whether every occurrence of `part` is shown or behind the pointer of a gap that has a mark.
fn led_to(text: &str, condensed: &Condensed, part: &str) -> bool {
    let hidden = |at: usize| {
        let gap = condensed.gaps.iter().find(|gap| gap.bytes.start <= at && at + part.len() <= gap.bytes.end);
        gap.is_some_and(|gap| condensed.text.contains(&format!("{}-{}", gap.range.0, gap.range.1)))
    };
    condensed.text.contains(part) || text.match_indices(part).all(|(at, _)| hidden(at))
}

/// Failures as tools write them, each with the lines that locate and explain it.
const BLOCKS: [&str; 11] = [
    "error[E0425]: cannot find value `delim` in this scope\n  --> src/export.rs:212:27\n    |\n212 |     w.delimiter(delim);\n",
    "error[E0308]: mismatched types\n  --> src/lib.rs:14:5\n   |\n14 |     x\n",
    "error[E0308]: mismatched types\n  --> src/lib.rs:90:5\n   |\n90 |     x\n",
    "src/main.c:10:5: error: 'foo' undeclared\n   10 |     foo();\n      |     ^~~\n",
    "src/main.c:31:5: error: 'foo' undeclared\n   31 |     foo();\n      |     ^~~\n",
    "Traceback (most recent call last):\n  File \"job.py\", line 3, in run\n    total()\nValueError: no rows\n",
    "TypeError: rows is not a function\n    at load (/srv/app/load.js:7:11)\n    at main (/srv/app/main.js:3:1)\n",
    "Exception in thread \"main\" java.lang.IllegalStateException: closed\n\tat app.Pool.take(Pool.java:17)\n",
    "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.load(...)\n\t/srv/load.go:12 +0x1d\n",
    "--- FAIL: TestLoad (0.01s)\n    load_test.go:33: got 3, want 4\n",
    "thread 'main' panicked at src/main.rs:4:9:\nthe rows are gone\n",
];

#[test]
fn a_failure_keeps_the_lines_that_locate_it_whatever_the_query_is() {
    let warned =
        "warning: unused variable: `rows`\n  --> src/export.rs:55:9\n   |\n55 |     let rows = 3;\n\n";
    let built = |n: usize, indent: &str, stamp: &str| {
        format!("{stamp}{indent}Compiling crate-{n} v1.0.{} (/build/crate-{n})\n", n % 9)
    };
    for (indent, stamp) in [("   ", ""), ("", ""), ("   ", "2026-01-02T03:04:05.678Z ")] {
        let stamped =
            |block: &str| -> String { block.lines().map(|line| format!("{stamp}{line}\n")).collect() };
        let compiled: String = (0..400).map(|n| built(n, indent, stamp)).collect();
        let failures: String = BLOCKS.iter().map(|block| stamped(&format!("{block}\n"))).collect();
        let text = format!("{compiled}{}{failures}", stamped(warned));
        for query in [None, Some("Fix the nightly build"), Some("Why does it not compile?")] {
            for target in [2_200, 6_000] {
                let condensed = Case { query, ..case(&text, target) }.run(&Counter::o200k()).unwrap();
                for block in BLOCKS {
                    let shown = condensed.text.contains(stamped(block).trim_end());
                    assert!(shown, "{query:?} {target} {stamp}{block} in {}", condensed.text);
                }
            }
        }
    }
}

#[test]
fn what_pytest_says_of_each_failure_stays_whole() {
    let failed = |n: usize| {
        format!(
            "____________ test_{n} ____________\n\n    def test_{n}():\n>       assert tax(100) == 19\nE       assert 18.{n} == 19\n\ntests/test_tax.py:{n}: AssertionError\n"
        )
    };
    let passed: String =
        (0..300).map(|n| format!("tests/test_{n}.py::test_case PASSED [ {}%]\n", n / 3)).collect();
    let text = format!("{passed}=== FAILURES ===\n{}", (10..14).map(failed).collect::<String>());
    let asked = Case { query: Some("Which test cases passed?"), ..case(&text, 600) };
    let condensed = asked.run(&Counter::o200k()).unwrap();
    for n in 10..14 {
        assert!(condensed.text.contains(&failed(n)), "{n} in {}", condensed.text);
    }
}
