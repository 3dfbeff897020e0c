//! The replies of the golden turns pass the gates of their recipes and become documents; a story goes with each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use larder_core::output::{self, GateFailure, Schemas};
use larder_engine::answer::{UnusableAnswer, read};
use larder_engine::project::Project;
use larder_text::tokens::Counter;
use larder_vault::context::TaskPlan;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;

fn files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/turns").join(folder);
    let mut files: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Ids that a pack with some evidence has.
fn citable() -> BTreeSet<String> {
    let sections = (0..=6).map(|number| format!("context.md§{number}"));
    (1..=9).map(|number| format!("p{number}")).chain(sections).collect()
}

/// Runs a reply through the conversion of its recipe's role.
fn convert(
    role: &str,
    output: &Value,
    plan: &mut Option<TaskPlan>,
    plans: &mut u32,
) -> Result<(), UnusableAnswer> {
    match role {
        "query_analyzer" => read::<QueryAnswer>(output).map(|answer| drop(answer.analysis("query"))),
        "reflection" => read::<ReflectionAnswer>(output)?.reflection().map(drop),
        "context_gatherer_retrieval" => read::<RetrievalAnswer>(output).map(drop),
        "context_gatherer_synthesis" => read::<GatheringAnswer>(output).map(drop),
        "planner" => {
            *plans += 1;
            *plan = Some(read::<PlanAnswer>(output)?.plan(*plans)?);
            Ok(())
        }
        "coordinator" => read::<IterationAnswer>(output)?
            .iteration(1, plan.as_ref().expect("a plan before rounds"))
            .map(drop),
        "synthesizer" => Ok(()),
        "validation" => read::<ValidationAnswer>(output)?
            .validation(plan.as_ref().expect("a plan before verdicts"))
            .map(drop),
        "summarizer" => read::<SummaryAnswer>(output).map(drop),
        other => Err(UnusableAnswer::new(format!("{other} is no role of a turn"))),
    }
}

#[test]
fn recorded_replies_pass_their_gates_and_become_documents() {
    let project = Project::builtin(&Counter::cl100k());
    let schemas = Schemas::default();
    for file in files("replies") {
        let (mut plan, mut plans) = (None, 0);
        for entry in json(&file).as_array().unwrap() {
            let name = entry["recipe"].as_str().unwrap();
            let at = format!("{}, {name}", file.display());
            let recipe = project.recipe(name).unwrap();
            let said = entry["reply"].as_str().map_or_else(|| entry["reply"].to_string(), str::to_owned);
            let parsed = output::parse(&recipe.output, &said).unwrap();
            let gates =
                output::evaluate(Ok(&parsed), &recipe.output, &recipe.gates, &schemas, &citable()).unwrap();
            let failures = gates.failures.iter();
            let failures: Vec<_> =
                failures.filter(|failure| !matches!(failure, GateFailure::LowConfidence { .. })).collect();
            assert!(failures.is_empty(), "{at}: {failures:?}");
            let role = recipe.role.as_deref().unwrap();
            convert(role, &parsed.value, &mut plan, &mut plans)
                .unwrap_or_else(|error| panic!("{at}: {error}"));
        }
    }
}

#[test]
fn every_story_has_its_replies_and_calls_the_tools_it_scripts() {
    let names =
        |folder| files(folder).iter().map(|file| file.file_name().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(names("stories"), names("replies"));
    for file in files("stories") {
        let story = json(&file);
        let at = file.display();
        let replies = json(Path::new(&file.to_string_lossy().replace("/stories/", "/replies/")));
        let rounds =
            replies.as_array().unwrap().iter().filter_map(|entry| entry["reply"]["calls"].as_array());
        let called: Vec<(Value, Value)> =
            rounds.flatten().map(|call| (call["tool"].clone(), call["arguments"].clone())).collect();
        let scripted: Vec<(Value, Value)> = story["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| (tool["tool"].clone(), tool["arguments"].clone()))
            .collect();
        assert_eq!(called, scripted, "{at}");
        let after: Vec<Value> = called.into_iter().map(|(tool, _)| tool).collect();
        assert_eq!(story["after"]["tools_called"], Value::Array(after), "{at}");
        for turn in story["before"]["turns"].as_array().unwrap() {
            read_as::<larder_vault::TurnMetadata>(&turn["metadata"]);
            if !turn["research"].is_null() {
                read_as::<larder_vault::Research>(&turn["research"]);
            }
            for page in turn["pages"].as_array().unwrap() {
                read_as::<larder_vault::Manifest>(&page["manifest"]);
            }
        }
        for preference in story["before"]["memory"]["preferences"].as_array().unwrap() {
            read_as::<larder_vault::PreferenceRecord>(preference);
        }
        for tool in story["tools"].as_array().unwrap() {
            for claim in tool["claims"].as_array().into_iter().flatten() {
                read_as::<larder_vault::context::Claim>(claim);
            }
        }
    }
}

fn read_as<T: DeserializeOwned>(value: &Value) {
    read::<T>(value).map(drop).unwrap_or_else(|error| panic!("{error}: {value}"));
}
