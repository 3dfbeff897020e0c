//! The command `larder-evals`: runs suites, compares with the baselines, fuzzes, draws pictures.
//!
//! Ends with 0 if all is well, 1 if a figure is worse than accepted, 2 if called wrongly, 3 if a corpus is missing.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its terminal")]

use std::process::{Command, ExitCode};

use larder_evals::suites::{self, SUITES, Suite};
use larder_evals::{Failure, corpora, fuzz, peer, pictures, report};

const USAGE: &str = "\
larder-evals SUITE… [--bless] [--format json]   measure; SUITE is logs, json, diffs, html, captures, text, markdown,
                                                traces, needs, cards, memory, conversations, talk, linked,
                                                routing, speed, schema or all
larder-evals needs --ablations                  the same without one mechanism of the policy at a time
larder-evals fuzz TARGET… [--seconds N] [--seed N]  break what takes texts of others; TARGET is a type as in
                                                `larder condense --type`, requests, streams, pointers, results or all
larder-evals peer                               JSON lines in and out, for evals/peers/compare.py
larder-evals pictures                           write the pictures of docs/guide/condensing.md

LARDER_CORPORA names the folder of the corpora; see evals/README.md.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] | ["-h" | "--help"] => {
            println!("{USAGE}");
            Ok(u8::from(words.is_empty()) * 2)
        }
        ["fuzz", rest @ ..] => fuzz::command(rest),
        ["peer"] => peer::command().map(|()| 0),
        ["pictures"] => pictures::command().map(|()| 0),
        ["needs", "--ablations"] => suites::ablations().map(|report| {
            println!("{}", report.table());
            0
        }),
        words => measure(words),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(if failure.is::<corpora::Missing>() { 3 } else { 2 })
        }
    }
}

fn measure(words: &[&str]) -> Result<u8, Failure> {
    let (mut names, mut bless, mut as_json) = (Vec::new(), false, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--bless" => bless = true,
            "--format" => as_json = words.next() == Some(&"json"),
            "all" => names.extend(SUITES.map(|(name, _)| name).into_iter().chain(["schema"])),
            name => names.push(name),
        }
    }
    let mut worst = 0;
    for name in names {
        let suite = SUITES.into_iter().find(|(suite, _)| *suite == name).map(|(_, suite)| suite);
        worst = worst.max(match suite {
            Some(suite) => one(suite, bless, as_json)?,
            None if name == "schema" => schema()?,
            None => return Err(format!("there is no suite {name:?}\n\n{USAGE}").into()),
        });
    }
    Ok(worst)
}

fn one(suite: Suite, bless: bool, as_json: bool) -> Result<u8, Failure> {
    let report = suite()?;
    if bless {
        report::bless(&report)?;
    }
    let problems = report.problems(report::baseline(report.suite)?.as_ref());
    if as_json {
        println!("{:#}", report.json(&problems));
    } else {
        println!("{}", report.table());
        problems.iter().for_each(|problem| println!("WORSE {problem}"));
        println!();
    }
    Ok(u8::from(!problems.is_empty()))
}

/// The suite of JSON Schema is a test of the core, with a baseline of its own.
fn schema() -> Result<u8, Failure> {
    corpora::folder("json-schema-test-suite")?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([
        "test",
        "--release",
        "-p",
        "larder-core",
        "--test",
        "json_schema_suite",
        "--",
        "--nocapture",
    ]);
    Ok(u8::from(!cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status()?.success()))
}
