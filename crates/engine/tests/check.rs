//! Golden tests of `check`: each folder of `check/broken` is a project with mistakes and, in `expected.txt`, all that
//! is printed about it. Adding a case needs no Rust: make the folder, run with `LARDER_BLESS=1`, read the result.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use larder_core::recipe::{DiagnosticCode, Layer, MAX_FILE_BYTES, Mode, PromptInputs, RecipeError, Severity};
use larder_engine::project::{Project, ProjectError};
use larder_text::tokens::Counter;

/// Codes that no folder here can show: tests below hold the first two, those of the crate of conversations the others.
const WITHOUT_GOLDEN: [DiagnosticCode; 6] = [
    DiagnosticCode::TooLarge,
    DiagnosticCode::Unreadable,
    DiagnosticCode::UnknownReference,
    DiagnosticCode::UnfitRecipe,
    DiagnosticCode::Contradiction,
    DiagnosticCode::Flow,
];

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/broken");
    let mut cases: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn open(dir: &Path) -> Result<Project, ProjectError> {
    Project::open(dir, &Counter::o200k())
}

/// A folder with one recipe that has no mistakes.
fn good_folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let recipe = "name: answer\ndescription: Answer.\nmodel_layer: VOICE\n\
                  token_budget: {total: 2000, prompt: 300, input: 1250, output: 250}\n\
                  prompt_files: [prompts/ask/answer.md]\ninput_docs: [passages]\noutput_format: text\n";
    for (path, text) in [("recipes/ask/answer.yaml", recipe), ("prompts/ask/answer.md", "Answer.\n")] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

#[test]
fn every_broken_project_prints_what_is_expected() {
    let bless = std::env::var_os("LARDER_BLESS").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let project = open(&case).unwrap();
        let printed = project.render(&project.check().diagnostics);
        let expected = case.join("expected.txt");
        if bless {
            fs::write(&expected, &printed).unwrap();
        } else if fs::read_to_string(&expected).ok().as_deref() != Some(&printed) {
            wrong.push(format!("{}:\n{printed}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "run with LARDER_BLESS=1 if this is right:\n{}", wrong.join("\n"));
}

#[test]
fn there_are_at_least_forty_cases_and_each_finds_something() {
    assert!(cases().len() >= 40);
    for case in cases() {
        assert!(!open(&case).unwrap().check().diagnostics.is_empty(), "{}", case.display());
    }
}

#[test]
fn every_code_has_a_case() {
    let reports = cases().into_iter().flat_map(|case| open(&case).unwrap().check().diagnostics.clone());
    let shown: BTreeSet<DiagnosticCode> =
        reports.map(|diagnostic| diagnostic.code).chain(WITHOUT_GOLDEN).collect();
    let missing: Vec<_> = DiagnosticCode::ALL.iter().filter(|code| !shown.contains(code)).collect();
    assert!(missing.is_empty(), "no case shows {missing:?}");
}

#[test]
fn every_code_is_on_its_page_once() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/diagnostics.md"));
    let page = page.unwrap();
    let codes: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| L")?.split(' ').next()).collect();
    let known = DiagnosticCode::ALL.iter().map(|code| &code.as_str()[1..]).chain(["070"]);
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    assert_eq!(codes, known, "L070 is that of settings");
}

#[test]
fn diagnostics_serialize_for_scripts() {
    let case = cases().into_iter().find(|case| case.ends_with("20-unknown-layer")).unwrap();
    let project = open(&case).unwrap();
    let json = serde_json::to_value(&project.check().diagnostics).unwrap();
    assert_eq!(json[0]["code"], "L013");
    assert_eq!(json[0]["severity"], "error");
    assert_eq!(json[0]["file"], "recipes/ask/answer.yaml");
    assert_eq!((json[0]["line"].as_u64(), json[0]["column"].as_u64()), (Some(3), Some(14)));
    assert_eq!(json[0]["help"], "did you mean `VOICE`?");
}

/// Recipes whose budgets the requirements fix (R0-11.4 to R0-11.10) without room for the advised reserve (R0-11.2).
const WITHOUT_SLACK: [&str; 7] = [
    "recipes/pipeline/phase0_query_analyzer.yaml",
    "recipes/pipeline/phase1_reflection.yaml",
    "recipes/pipeline/phase2_context_gatherer_retrieval.yaml",
    "recipes/pipeline/phase2_context_gatherer_synthesis.yaml",
    "recipes/pipeline/phase5_synthesizer_chat.yaml",
    "recipes/pipeline/phase5_synthesizer_code.yaml",
    "recipes/pipeline/phase6_validator.yaml",
];

#[test]
fn the_built_in_project_has_no_errors_and_only_the_known_warnings() {
    let project = Project::builtin(&Counter::o200k());
    let found = &project.check().diagnostics;
    let unexpected: Vec<_> =
        found.iter().filter(|found| found.code != DiagnosticCode::SmallReserve).cloned().collect();
    assert!(unexpected.is_empty(), "{}", project.render(&unexpected));
    let fixed = |file: &str| file.starts_with("recipes/compress/") || WITHOUT_SLACK.contains(&file);
    let unexpected: Vec<_> = found.iter().filter(|found| !fixed(&found.file)).cloned().collect();
    assert!(unexpected.is_empty(), "{}", project.render(&unexpected));
    for name in ["ask/answer", "summarize/summarize", "extract/extract", "card/agent", "compress/generic"] {
        assert!(project.recipe(name).is_ok(), "{name}");
    }
}

/// Phases are addressed by file stem, by name, by the names they once had, and by mode (C1, C73, R0-17.4).
#[test]
fn every_phase_is_found_by_each_of_its_names() {
    let project = Project::builtin(&Counter::o200k());
    let name = |id: &str| project.recipe(id).unwrap().name.clone();
    for (id, expected) in [
        ("pipeline/phase0_query_analyzer", "query_analyzer"),
        ("pipeline/phase1_reflection", "reflection"),
        ("pipeline/phase2_reflection", "reflection"),
        ("pipeline/phase2_context_gatherer_retrieval", "context_gatherer_retrieval"),
        ("context_gatherer_retrieval", "context_gatherer_retrieval"),
        ("pipeline/phase1_context_gatherer", "context_gatherer_retrieval"),
        ("pipeline/phase2_context_gatherer_synthesis", "context_gatherer_synthesis"),
        ("pipeline/phase6_validator", "validator"),
        ("pipeline/phase7_summarizer", "summarizer"),
        ("research/plan_research", "plan_research"),
        ("research/select_sources", "select_sources"),
        ("research/extract_claims", "extract_claims"),
        ("research/write", "write_research"),
        ("memory/remember", "remember"),
    ] {
        assert_eq!(name(id), expected);
    }
    for phase in ["pipeline/phase3_planner", "pipeline/phase4_coordinator", "pipeline/phase5_synthesizer"] {
        for mode in [Mode::Chat, Mode::Code] {
            assert_eq!(project.recipe_for_mode(phase, mode).unwrap().mode, Some(mode), "{phase}");
        }
    }
}

/// What the requirements say of the phases: layer and budget (R0-11.4 to R0-11.10), sections (R1-3.54
/// to R1-3.60), gates (R0-14.2 to R0-14.8).
#[test]
fn phases_have_the_budgets_sections_and_gates_of_the_requirements() {
    let project = Project::builtin(&Counter::o200k());
    for (id, layer, [total, prompt, input, output], sections) in [
        ("phase0_query_analyzer", Layer::Reflex, [1_500, 500, 700, 300], 0..0),
        ("phase1_reflection", Layer::Reflex, [2_200, 600, 1_200, 400], 0..1),
        ("phase2_context_gatherer_retrieval", Layer::Mind, [10_500, 2_000, 6_000, 2_500], 0..2),
        ("phase2_context_gatherer_synthesis", Layer::Mind, [10_500, 2_000, 6_000, 2_500], 0..2),
        ("phase3_planner_chat", Layer::Mind, [5_750, 1_540, 2_000, 2_000], 0..3),
        ("phase3_planner_code", Layer::Mind, [5_750, 1_540, 2_000, 2_000], 0..3),
        ("phase4_coordinator_chat", Layer::Mind, [12_000, 2_500, 3_500, 2_000], 0..5),
        ("phase4_coordinator_code", Layer::Mind, [12_000, 2_500, 3_500, 2_000], 0..5),
        ("phase5_synthesizer_chat", Layer::Voice, [10_000, 1_318, 5_500, 3_000], 0..5),
        ("phase5_synthesizer_code", Layer::Voice, [10_000, 1_318, 5_500, 3_000], 0..5),
        ("phase6_validator", Layer::Mind, [6_000, 1_500, 4_000, 500], 0..6),
    ] {
        let recipe = project.recipe(id).unwrap();
        let budget = recipe.budget;
        assert_eq!(
            [budget.total, budget.prompt, budget.input, budget.output],
            [total, prompt, input, output],
            "{id}"
        );
        assert_eq!((recipe.layer, &recipe.input_sections), (layer, &sections.collect()), "{id}");
        let unsure = matches!(id, "phase1_reflection" | "phase6_validator").then_some(0.7);
        assert_eq!(recipe.gates.confidence_threshold, unsure, "{id}");
        assert_eq!(recipe.gates.evidence_required, id.starts_with("phase5"), "{id}");
        assert!(
            recipe.needs_query && recipe.compression.preserve.iter().any(|entry| entry == "section_0"),
            "{id}"
        );
    }
}

/// The page of phases has the numbers of every recipe, and what a typical turn may take in all (R0-11.12).
#[test]
fn the_page_of_phases_is_that_of_the_recipes() {
    let page = include_str!("../../../docs/guide/phases.md");
    let number = |tokens: usize| match tokens {
        0..1_000 => tokens.to_string(),
        _ => format!("{},{:03}", tokens / 1_000, tokens % 1_000),
    };
    let project = Project::builtin(&Counter::o200k());
    let pipeline = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../cookbook/recipes/pipeline"));
    let mut typical = 0;
    for entry in pipeline.unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stem = name.trim_end_matches(".yaml");
        let recipe = project.recipe(stem).unwrap();
        let budget = recipe.budget;
        let [total, prompt, input, output] =
            [budget.total, budget.prompt, budget.input, budget.output].map(number);
        let layer = recipe.layer.as_str();
        let sections: Vec<String> = recipe.input_sections.iter().map(|number| format!("§{number}")).collect();
        let sections = if sections.is_empty() { "none".to_owned() } else { sections.join(" ") };
        let documents: Vec<&str> = recipe.input_docs.iter().map(|document| document.name.as_str()).collect();
        let documents = if documents.is_empty() { "none".to_owned() } else { documents.join(", ") };
        let row = format!(
            "| `{stem}` | {layer} | {total} | {prompt} | {input} | {output} | {sections} | {documents} |"
        );
        assert!(page.contains(&row), "docs/guide/phases.md lacks this row:\n{row}");
        let rounds = if stem.starts_with("phase4") { 2 } else { 1 };
        let counts = !stem.ends_with("_code") && !stem.starts_with("phase7");
        typical += if counts { budget.total * rounds } else { 0 };
    }
    assert!(page.contains(&number(typical)), "a typical turn may take {typical} tokens");
}

/// Other vocabularies need more tokens for the same prompt than the one the check counts with.
#[test]
fn shipped_prompts_leave_room_for_other_tokenizers() {
    let counter = Counter::o200k();
    let project = Project::builtin(&counter);
    let mut tight = Vec::new();
    for recipe in project.check().recipes.iter() {
        let values = recipe.inputs.iter().map(|name| (name.clone(), "".into())).collect();
        let stages = recipe.variants.keys().map(Some).chain(recipe.variants.is_empty().then_some(None));
        for stage in stages {
            let inputs = PromptInputs {
                variant: stage.map(String::as_str),
                values: Some(&values),
                ..Default::default()
            };
            let rendered = recipe.render(&inputs).unwrap();
            let texts = rendered.system.iter().chain(&rendered.variant);
            let tokens: usize = texts.map(|prompt| counter.count(&prompt.text)).sum();
            println!("{} {stage:?}: {tokens} of {}", recipe.id(), recipe.budget.prompt);
            if tokens * 100 > recipe.budget.prompt * 85 {
                tight.push(recipe.id());
            }
        }
    }
    assert_eq!(tight, Vec::<String>::new());
}

#[test]
fn a_folder_without_mistakes_checks_clean_and_keeps_its_registry_current() {
    let dir = good_folder();
    let project = open(dir.path()).unwrap();
    assert_eq!(project.check().diagnostics, []);
    assert!(project.write_registry().unwrap());
    let first = fs::read_to_string(dir.path().join("registry.yaml")).unwrap();
    let project = open(dir.path()).unwrap();
    assert_eq!(project.check().diagnostics, []);
    assert!(!project.write_registry().unwrap());

    let old_version = project.recipe("answer").unwrap().version.to_hex();
    fs::write(dir.path().join("prompts/ask/answer.md"), "Answer briefly.\n").unwrap();
    let project = open(dir.path()).unwrap();
    assert_eq!(project.check().diagnostics[0].code, DiagnosticCode::RegistryStale);
    assert!(!project.check().has_errors());
    assert!(project.write_registry().unwrap());
    let second = fs::read_to_string(dir.path().join("registry.yaml")).unwrap();
    assert!(first.contains(&old_version) && second.contains(&format!("history: [\"{old_version}\"]")));
    assert_eq!(open(dir.path()).unwrap().check().diagnostics, []);
}

#[test]
fn a_missing_recipe_is_named_in_the_required_words() {
    let dir = good_folder();
    let project = open(dir.path()).unwrap();
    let error = project.recipe("ask/anwser").unwrap_err();
    assert_eq!(error.to_string(), "Recipe not found: ask/anwser");
    assert_eq!(error.intervention(), "Missing recipe: ask/anwser");
    assert_eq!(error.help(), "did you mean `ask/answer`?");
    for name in ["answer", "ask/answer", "ask/answer.yaml", "recipes/ask/answer.yaml"] {
        assert!(project.recipe(name).is_ok(), "{name}");
    }
    for hostile in ["../answer", "/etc/passwd", "ask/../ask/answer", "", "a\0b", "other/answer"] {
        assert!(matches!(project.recipe(hostile), Err(RecipeError::NotFound { .. })), "{hostile:?}");
    }
}

#[test]
fn a_recipe_with_errors_is_not_reported_as_missing() {
    let dir = good_folder();
    fs::write(dir.path().join("prompts/ask/answer.md"), "{{ nobody }}").unwrap();
    let project = open(dir.path()).unwrap();
    assert!(matches!(project.recipe("answer"), Err(RecipeError::Invalid { .. })));
    assert!(matches!(project.write_registry(), Err(ProjectError::HasErrors { count: 1 })));
    assert!(!dir.path().join("registry.yaml").exists());
}

#[test]
fn files_over_the_limit_are_refused_unread() {
    let dir = good_folder();
    fs::write(dir.path().join("recipes/ask/huge.yaml"), vec![b'#'; MAX_FILE_BYTES + 1000]).unwrap();
    let project = open(dir.path()).unwrap();
    let found = &project.check().diagnostics;
    assert_eq!((found.len(), found[0].code), (1, DiagnosticCode::TooLarge));
    assert_eq!(found[0].message, "the file has more than 1048576 bytes, which is the maximum");
    assert!(project.recipe("answer").is_ok());
}

#[cfg(unix)]
#[test]
fn symbolic_links_do_not_lead_out_of_the_project() {
    let (dir, outside) = (good_folder(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret.md"), "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("prompts/linked")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.md"), dir.path().join("prompts/ask/s.md"))
        .unwrap();
    let project = open(dir.path()).unwrap();
    let codes: Vec<_> =
        project.check().diagnostics.iter().map(|found| (found.code, found.severity)).collect();
    assert_eq!(codes, [(DiagnosticCode::Unreadable, Severity::Error); 2]);
    assert!(!project.files().values().any(|bytes| bytes == b"secret"));
}

#[test]
fn a_folder_without_a_project_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("it contains no recipes and no conversations"), "{error}");
    assert!(open(&dir.path().join("absent")).is_err());
}
