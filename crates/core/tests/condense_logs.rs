//! What condensed logs guarantee, and what they keep of logs by other people.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use std::collections::{BTreeMap, BTreeSet};

use larder_core::content::{CondenseError, CondenseRequest, Condensed, ContentType, condense, essential};
use larder_core::pointer::{Fragment, Pointer, PointerKey};
use larder_core::tokens::Counter;
use proptest::prelude::*;

fn request<'a>(
    text: &'a str,
    target: usize,
    counter: &'a Counter,
    key: &'a PointerKey,
) -> CondenseRequest<'a> {
    CondenseRequest { text, content_type: ContentType::Log, target, query: None, pins: &[], counter, key }
}

/// One example of every template costs at most 7 % of the tokens of public logs and shows at least 99 % of the
/// templates that people found in them.
#[test]
fn public_logs_show_their_templates() {
    let Some(folder) =
        std::env::var_os("LARDER_CORPORA").map(|root| std::path::Path::new(&root).join("logs"))
    else {
        println!("skipped: LARDER_CORPORA is not set");
        return;
    };
    let (counter, key) = (Counter::o200k(), PointerKey::new([7; 32]));
    let mut all = [0_usize; 4];
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let events = std::fs::read_to_string(path.with_extension("line_event.csv")).unwrap();
        let events: Vec<&str> =
            events.lines().skip(1).map(|row| row.split_once(',').unwrap().1.trim()).collect();
        let target = essential(&request(&text, 0, &counter, &key)).unwrap();
        let started = std::time::Instant::now();
        let condensed = condense(&request(&text, target, &counter, &key)).unwrap();
        let took = started.elapsed();
        if let Some(folder) = std::env::var_os("LARDER_SHOW") {
            std::fs::write(std::path::Path::new(&folder).join(path.file_name().unwrap()), &condensed.text)
                .unwrap();
        }
        let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches('\r')).collect();
        let mut by_event: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (line, event) in lines.iter().zip(&events) {
            by_event.entry(event).or_default().insert(line);
        }
        let stands = |lines: &BTreeSet<&str>| lines.iter().any(|line| condensed.text.contains(*line));
        let visible = by_event.values().filter(|lines| stands(lines)).count();
        let figures = [condensed.original_tokens, condensed.tokens, by_event.len(), visible];
        println!(
            "{:<22} {figures:?} in {took:?}, saved {:.1} %",
            path.file_name().unwrap().display(),
            100.0 - 100.0 * condensed.tokens as f64 / condensed.original_tokens as f64
        );
        all.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
    }
    let [before, after, templates, visible] = all;
    println!(
        "all {all:?}, saved {:.2} %, visible {:.2} %",
        100.0 - 100.0 * after as f64 / before as f64,
        100.0 * visible as f64 / templates as f64
    );
    assert!(after * 100 <= before * 7 && visible * 100 >= templates * 99);
}

fn key() -> PointerKey {
    PointerKey::new([7; 32])
}

fn condensed(text: &str, target: usize) -> Condensed {
    condense(&request(text, target, &Counter::o200k(), &key())).unwrap()
}

/// The bytes that a pointer of a gap gives back.
fn rehydrated<'t>(text: &'t str, pointer: &Pointer) -> &'t str {
    match pointer.fragment {
        None => text,
        Some(Fragment::Bytes { start, end }) => &text[start..end],
        Some(Fragment::Lines { first, last }) => {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let start: usize = lines[..first - 1].iter().map(|line| line.len()).sum();
            let len: usize = lines[first - 1..last].iter().map(|line| line.len()).sum();
            &text[start..start + len]
        }
    }
}

/// Everything that holds of a condensed log, checked from outside.
fn check(text: &str, target: usize, query: Option<&str>, pins: &[String]) {
    let (counter, key) = (Counter::o200k(), key());
    let request = CondenseRequest { query, pins, ..request(text, target, &counter, &key) };
    let condensed = match condense(&request) {
        Ok(condensed) => condensed,
        Err(CondenseError::PinsExceedTarget { needed, target }) => {
            assert!(needed > target, "refused although {needed} fit into {target}");
            assert!(
                condense(&CondenseRequest { target: needed, ..request }).is_ok(),
                "{needed} are not enough"
            );
            return;
        }
        Err(other) => return assert_eq!(other.to_string(), "", "refused for another reason"),
    };
    assert_eq!(condensed.tokens, counter.count(&condensed.text));
    assert!(condensed.tokens <= target && condensed.tokens <= condensed.original_tokens);
    assert_eq!(condensed.probes.lost, 0);
    assert!(pins.iter().all(|pin| condensed.text.contains(pin.as_str())));
    for (_, pointer) in key.find_in(text) {
        assert!(condensed.text.contains(&pointer.to_string()), "{pointer} is gone");
    }
    let mut at = 0;
    for gap in &condensed.gaps {
        assert!(gap.bytes.start >= at && gap.bytes.start < gap.bytes.end, "gaps overlap or are empty");
        assert_eq!(rehydrated(text, &gap.pointer), &text[gap.bytes.clone()]);
        at = gap.bytes.end;
    }
    assert_eq!(condense(&request).as_ref(), Ok(&condensed), "not deterministic");
    let again = condense(&CondenseRequest { text: &condensed.text, ..request }).map(|again| again.text);
    assert_eq!(again.as_ref(), Ok(&condensed.text), "not idempotent");
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

fn pins_of(text: &str, places: &[(prop::sample::Index, usize)]) -> Vec<String> {
    let pin = |(place, len): &(prop::sample::Index, usize)| {
        let start = text.floor_char_boundary(place.index(text.len() + 1));
        text[start..text.floor_char_boundary((start + len).min(text.len()))].to_owned()
    };
    places.iter().map(pin).collect()
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
        let pointer = Pointer::lines(key().mint(larder_core::hash::ContentHash::of(b"elsewhere")), 3, 9);
        check(&format!("{before}{pointer} {after}"), target, None, &[]);
    }

    #[test]
    fn what_is_essential_is_enough(text in logs()) {
        let (counter, key) = (Counter::o200k(), key());
        // Lines of JSON are no log.
        let Some(target) = essential(&request(&text, 0, &counter, &key)) else { return Ok(()) };
        let condensed = condense(&request(&text, target, &counter, &key));
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
    let (text, counter, key) = (server(1_000), Counter::o200k(), key());
    let request = CondenseRequest { query: Some("request 437"), ..request(&text, 250, &counter, &key) };
    let condensed = condense(&request).unwrap();
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
fn a_log_that_imitates_counts_is_told_apart() {
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
    let (counter, key) = (Counter::o200k(), key());
    let asked = CondenseRequest {
        query: Some("what happened to request 200?"),
        ..request(&text, 160, &counter, &key)
    };
    let condensed = condense(&asked).unwrap();
    assert!(condensed.text.contains("FATAL out of memory"), "{}", condensed.text);
}
