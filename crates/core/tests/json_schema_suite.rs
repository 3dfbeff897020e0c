//! The official JSON Schema test suite: required cases of drafts 7 and 2020-12, `remotes/` registered, no network.
//!
//! The suite is not part of this repository. `LARDER_CORPORA` names the folder that holds
//! `json-schema-test-suite/`; without it the test says so and passes. Failures are compared with a committed
//! baseline, which any change, better or worse, must update: `LARDER_BLESS=1` writes it.

#![allow(clippy::unwrap_used, reason = "a suite that cannot be read fails the test")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use larder_core::output::{JsonSchemaDraft, Schemas};
use serde_json::Value;

const BASELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/json_schema_suite.baseline");

#[test]
fn required_cases_have_the_right_verdict() {
    let suite =
        std::env::var_os("LARDER_CORPORA").map(|root| PathBuf::from(root).join("json-schema-test-suite"));
    let Some(suite) = suite.filter(|suite| suite.is_dir()) else {
        // Past the capture of test output, which would hide that nothing was checked.
        let missing = "skipped: LARDER_CORPORA names no folder with json-schema-test-suite/";
        return writeln!(std::io::stderr(), "{missing}").unwrap();
    };
    let mut report = String::new();
    for (folder, draft) in
        [("draft7", JsonSchemaDraft::Draft7), ("draft2020-12", JsonSchemaDraft::Draft202012)]
    {
        let schemas = Schemas::new(draft, remotes(&suite.join("remotes")));
        let (cases, failures) = run(&suite.join(folder), folder, &schemas);
        let share = 100.0 * (cases - failures.len()) as f64 / cases as f64;
        println!("{folder}: {} of {cases} cases right ({share:.2} %)", cases - failures.len());
        writeln!(report, "{folder} {cases} {}", failures.len()).unwrap();
        for failure in failures {
            writeln!(report, "{failure}").unwrap();
        }
    }
    if std::env::var_os("LARDER_BLESS").is_some() {
        std::fs::write(BASELINE, &report).unwrap();
    }
    let baseline = std::fs::read_to_string(BASELINE).unwrap_or_default();
    assert_eq!(report, baseline, "the failures differ from the baseline; LARDER_BLESS=1 writes it anew");
}

/// Counts the cases and gives the ids of those judged wrongly: `folder/file#group.case`, numbers from 0.
fn run(folder: &Path, name: &str, schemas: &Schemas) -> (usize, Vec<String>) {
    let (mut cases, mut failures) = (0, Vec::new());
    for file in files(folder) {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (group_at, group) in read(&file).as_array().unwrap().iter().enumerate() {
            let schema = schemas.compile(&group["schema"]);
            for (case_at, case) in group["tests"].as_array().unwrap().iter().enumerate() {
                cases += 1;
                let verdict = schema.as_ref().map(|schema| schema.violations(&case["data"]).is_empty());
                if verdict.ok() != case["valid"].as_bool() {
                    failures.push(format!("{name}/{stem}#{group_at}.{case_at}"));
                }
            }
        }
    }
    (cases, failures)
}

fn remotes(folder: &Path) -> Vec<(String, Value)> {
    let relative = |file: &PathBuf| file.strip_prefix(folder).unwrap().to_string_lossy().replace('\\', "/");
    files(folder)
        .iter()
        .map(|file| (format!("http://localhost:1234/{}", relative(file)), read(file)))
        .collect()
}

/// All JSON files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            _ if path.is_dir() => found.extend(files(&path)),
            Some(extension) if extension == "json" => found.push(path),
            _ => {}
        }
    }
    found.sort();
    found
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}
