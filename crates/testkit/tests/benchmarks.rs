//! `docs/benchmarks.md` says of recorded runs what the committed baselines hold, which `.ci/run` measures again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop and say why")]

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The numbers of the first row of the page that begins so.
fn row(page: &str, name: &str) -> Vec<f64> {
    let row = page
        .lines()
        .find(|line| line.starts_with(&format!("| {name}")))
        .unwrap_or_else(|| panic!("no row {name}"));
    let cells = row.split('|').skip(2).map(|cell| cell.trim().trim_end_matches(" %").replace(',', ""));
    cells.filter_map(|cell| cell.parse().ok()).collect()
}

/// The tokens of runs as they came and as they were sent, and what agents need of them (R3-9.2).
#[test]
fn the_page_of_benchmarks_says_what_the_baselines_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/benchmarks.md")).unwrap();
    let baseline = |suite: &str| -> Value {
        let path = root.join(format!("evals/baselines/{suite}.json"));
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let needs = baseline("needs");
    for (name, key) in [
        ("coding agent", "coding"),
        ("SWE-agent", "swe-agent"),
        ("tau-bench", "tau-bench"),
        ("agent-sdk", "agent-sdk"),
    ] {
        let (said, held) = (row(&page, name), &needs["rows"][key]);
        for (said, key) in said.iter().zip(["net cost", "with tool"]) {
            let held = held[key].as_f64().unwrap();
            assert!((said - held).abs() < 0.0006, "{name}, {key}: {said} on the page, {held} measured");
        }
        assert_eq!(
            (held["in view %"].as_f64(), held["reading back %"].as_f64()),
            (Some(100.0), Some(0.0)),
            "{name}"
        );
    }
    // A baseline holds the worst that is accepted; the page says what was measured last.
    let traces = baseline("traces");
    let (_, page) = page.split_once("`larder-evals traces`").unwrap();
    for (name, key) in [
        ("unchanged", "as it is"),
        ("all but the last three", "masked but the last 3"),
        ("Larder |", "larder"),
    ] {
        let (said, held) = (row(page, name), &traces["rows"][key]);
        let cost = held["cost"].as_f64().unwrap();
        assert!((said[0] - cost).abs() <= cost / 100.0, "{name}: {} on the page, {cost} measured", said[0]);
        let kept = held["retained %"].as_f64().unwrap();
        assert!(
            said[1..].iter().any(|said| (said - kept).abs() < 0.1),
            "{name}: {kept} % of the values kept"
        );
        assert_eq!(said.last().copied(), held["lost"].as_f64(), "{name}: what is lost");
    }
}
