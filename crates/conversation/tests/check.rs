//! Golden tests of the check of conversation types: each folder of `check/broken` is a project with mistakes and, in
//! `expected.txt`, all that is printed about it. Recipes and prompts are those of `check/base`. Adding a case needs no Rust:
//! make the folder, run with `LARDER_BLESS=1`, read the result.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use larder_conversation::catalog::{TypeCatalog, TypeError};
use larder_conversation::kind::ConversationType;
use larder_core::recipe::DiagnosticCode;
use larder_engine::project::Project;
use larder_text::tokens::Counter;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check").join(name)
}

fn open(dir: &Path) -> Project {
    Project::open(dir, &Counter::o200k()).unwrap()
}

fn base() -> Project {
    open(&folder("base"))
}

fn broken() -> Vec<PathBuf> {
    let mut cases: Vec<_> =
        fs::read_dir(folder("broken")).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

#[test]
fn every_broken_type_prints_what_is_expected() {
    let bless = std::env::var_os("LARDER_BLESS").is_some();
    let base = base();
    let mut wrong = Vec::new();
    let mut codes = BTreeSet::new();
    for case in broken() {
        let project = open(&case);
        let types = TypeCatalog::load(&project, &base, &Counter::o200k());
        assert!(!types.diagnostics().is_empty(), "{}", case.display());
        codes.extend(types.diagnostics().iter().map(|found| found.code));
        let printed = project.render(types.diagnostics());
        let expected = case.join("expected.txt");
        if bless {
            fs::write(&expected, &printed).unwrap();
        } else if fs::read_to_string(&expected).ok().as_deref() != Some(&printed) {
            wrong.push(format!("{}:\n{printed}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "run with LARDER_BLESS=1 if this is right:\n{}", wrong.join("\n"));
    let own = [
        DiagnosticCode::UnknownReference,
        DiagnosticCode::UnfitRecipe,
        DiagnosticCode::Contradiction,
        DiagnosticCode::Flow,
    ];
    assert!(own.iter().all(|code| codes.contains(code)), "each code has a case: {codes:?}");
}

#[test]
fn a_type_without_mistakes_is_found_by_its_name() {
    let base = base();
    let types = TypeCatalog::load(&base, &base, &Counter::o200k());
    assert_eq!(base.render(types.diagnostics()), "");
    let chat = types.find("chat").unwrap();
    assert_eq!(chat.text("prompts/talk/overview.md"), "There are two stages.");
    assert_eq!(chat.kind.stages.len(), 3);
    let Err(TypeError::NotFound { help, .. }) = types.find("chet") else { panic!("it does not exist") };
    assert_eq!(help, "did you mean `chat`?");
}

#[test]
fn a_broken_type_is_not_reported_as_missing_and_hides_the_one_that_ships() {
    let case = broken().into_iter().find(|case| case.ends_with("02-names")).unwrap();
    let types = TypeCatalog::load(&open(&case), &base(), &Counter::o200k());
    assert_eq!(types.find("chat").unwrap_err(), TypeError::Invalid { name: "chat".to_owned() });
}

/// Every key of the format is in the schema with a description, so that editors can show it.
#[test]
fn the_schema_describes_every_key() {
    fn undescribed(place: &str, schema: &serde_json::Value, missing: &mut Vec<String>) {
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            let place = format!("{place}.{key}");
            if inner["description"].as_str().is_none_or(str::is_empty) {
                missing.push(place.clone());
            }
            undescribed(&place, inner, missing);
            undescribed(&place, &inner["items"], missing);
            undescribed(&place, &inner["additionalProperties"], missing);
        }
    }
    let mut missing = Vec::new();
    undescribed("", &ConversationType::schema(), &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}
