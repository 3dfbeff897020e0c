//! Golden tests of the check of conversation types: each folder of `check/broken` is a project with mistakes and, in
//! `expected.txt`, all that is printed about it. Recipes and prompts are those of `check/base`. Adding a case needs no Rust:
//! make the folder, run with `LARDER_BLESS=1`, read the result.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use larder_conversation::catalog::{TypeCatalog, TypeError};
use larder_conversation::intent::{self, MemoryIntent};
use larder_conversation::kind::{CallTime, ConversationType, Depth, Limit};
use larder_core::recipe::{DiagnosticCode, PromptInputs};
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

/// The types that ship have no mistakes, and differ so much that nothing of one can be built in.
#[test]
fn the_types_that_ship_are_clean() {
    let cookbook = Project::builtin(&Counter::o200k());
    let types = TypeCatalog::load(&cookbook, &cookbook, &Counter::o200k());
    assert_eq!(cookbook.render(types.diagnostics()), "");
    let names: Vec<&str> = types.iter().map(|one| one.kind.name.as_str()).collect();
    assert_eq!(names, ["mediation", "support", "tutor"]);
    let (mut tags, mut stages, mut categories) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for one in types.iter() {
        assert!(tags.insert(&one.kind.fields.tag), "the tag of {}", one.kind.name);
        assert!(
            one.kind.stages.iter().all(|stage| stages.insert(&stage.name)),
            "stages of {}",
            one.kind.name
        );
        let own = one.kind.memory.categories.iter().filter(|category| category.name != "Other");
        assert!(own.into_iter().all(|category| categories.insert(&category.name)), "{}", one.kind.name);
    }
}

/// The numbers of the requirements are in the type of the mediation (R4-3.1 to R4-3.29, R4-4.18 to R4-4.25, R4-5.5 to R4-5.9,
/// R4-6.12 to R4-6.14, R4-7.4).
#[test]
fn the_mediation_has_the_numbers_of_the_requirements() {
    let cookbook = Project::builtin(&Counter::o200k());
    let types = TypeCatalog::load(&cookbook, &cookbook, &Counter::o200k());
    let kind = &types.find("mediation").unwrap().kind;
    let stage = |name: &str| kind.stage(name).unwrap();
    let buffers = ["witnessing", "perspective", "needs", "repair"].map(|name| stage(name).buffer_turns);
    assert_eq!(buffers, [5, 4, 4, 5]);
    let titan = |name: &str| stage(name).retrieval.thresholds["amazon.titan-embed-text-v2:0"];
    let names = ["onboarding", "witnessing", "perspective", "needs", "repair"];
    assert_eq!(names.map(titan), [0.60, 0.65, 0.55, 0.50, 0.50]);
    let numbers: Vec<Option<u8>> = names.iter().map(|name| stage(name).number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4].map(Some));
    let depths = names.map(|name| (stage(name).retrieval.depth_in(1), stage(name).retrieval.depth_in(9)));
    let (minimal, light, full) = (Depth::Minimal, Depth::Light, Depth::Full);
    assert_eq!(depths, [(minimal, minimal), (minimal, light), (light, light), (full, full), (full, full)]);
    assert_eq!(stage("inner_thoughts").retrieval.linked_boost, 0.3);
    let summary = |name: &str| {
        let rules = kind.summary_in(stage(name));
        (rules.after_messages, rules.after_tokens, rules.again_after, rules.keep, rules.words)
    };
    assert_eq!(summary("witnessing"), (30, Some(3_500), 20, 15, 500));
    assert_eq!(summary("inner_thoughts"), (20, Some(3_500), 15, 12, 500));
    let window = kind.window;
    assert_eq!((window.protected, window.with_summary, window.without_summary), (12, 16, 24));
    assert_eq!(window.message_chars, 2_000);
    let limits = [window.from_other_sessions, window.from_this_session, window.from_before];
    assert_eq!(limits, [10, 5, 10].map(Limit::Messages));
    let memory = &kind.memory;
    assert_eq!((memory.per_session, memory.per_profile, memory.profile_tokens), (20, 50, 500));
    assert_eq!((memory.shown_facts, memory.shown_preferences, memory.shown_reflections), (5, 5, 2));
    let categories: Vec<&str> = memory.categories.iter().map(|category| category.name.as_str()).collect();
    assert_eq!(categories, ["Emotional", "People", "Logistics", "Conflict", "History"]);
    let intents = &kind.intents;
    assert_eq!((intents.avoid_recall.messages, intents.stage_enforcement.messages), (Some(0), Some(4)));
    let distress = &intents.high_distress;
    assert_eq!((distress.depth, kind.safety.from_intensity), (Some(Depth::None), Some(9)));
    let commitment = &intents.commitment_reference;
    assert_eq!((commitment.depth, commitment.across_sessions), (Some(Depth::Full), Some(true)));
    assert_eq!((kind.calls.planning.runs, kind.calls.planning.timeout_ms), (CallTime::Before, Some(2_000)));
    assert_eq!((kind.calls.references.runs, kind.calls.reply.runs), (CallTime::Behind, CallTime::Reply));
    let small = kind.small.as_ref().unwrap();
    assert_eq!((small.system_tokens, small.protected), (1_500, 6));
    assert_eq!(kind.for_window(4_096).1, "converse/mediation_small");
    assert_eq!(kind.for_window(200_000).1, "converse/mediation");
}

/// The recipes of the mediation: budgets (R4-5.2, R4-5.4, C34), the order of the system prompt (R4-2.2), the tags and fields
/// (R4-2.27 to R4-2.35), the blocks and the last line (R4-6.4 to R4-6.11), the answers of summaries (R4-3.23 to R4-3.26), and
/// the length of stage prompts (R4-2.15 to R4-2.24).
#[test]
fn the_recipes_of_the_mediation_are_those_of_the_requirements() {
    let cookbook = Project::builtin(&Counter::o200k());
    let recipe = cookbook.recipe("converse/mediation").unwrap();
    let budget = recipe.budget;
    assert_eq!((budget.total, budget.prompt, budget.output), (40_000, 4_000, 2_048));
    let shared = [
        "simple_language",
        "constitution",
        "privacy",
        "memory_requests",
        "facilitator_rules",
        "lateral_probing",
    ];
    let mut whole = Vec::new();
    for (stage, most) in [
        ("onboarding", 1_200),
        ("invitation", 1_800),
        ("witnessing", 2_500),
        ("perspective", 3_200),
        ("needs", 2_800),
        ("repair", 2_600),
        ("inner_work", 3_500),
        ("inner_thoughts", 4_000),
    ] {
        let prompts = &recipe.variants[stage].system;
        let names: Vec<&str> =
            prompts.iter().map(|prompt| prompt.name.strip_prefix("mediation/").unwrap()).collect();
        let (own, rules) = (format!("stages/{stage}"), format!("rules/{stage}"));
        let expected: Vec<&str> =
            [own.as_str()].into_iter().chain(shared).chain([rules.as_str(), "protocol"]).collect();
        assert_eq!(names, expected);
        let of_stage = prompts.iter().filter(|prompt| prompt.name.ends_with(&format!("/{stage}")));
        let chars: usize = of_stage.map(|prompt| prompt.text.chars().count()).sum();
        assert!(chars <= most, "{stage}: {chars} characters of {most}");
        let inputs = PromptInputs { variant: Some(stage), ..PromptInputs::default() };
        let rendered = recipe.render(&inputs).unwrap();
        let protocol = &rendered.variant.last().unwrap().text;
        assert_eq!(protocol.contains("FeelHeardCheck"), stage == "witnessing");
        assert_eq!(protocol.contains("ReadyShare"), stage == "perspective");
        whole.push(rendered.variant.iter().map(|prompt| prompt.text.len()).sum::<usize>());
    }
    assert!(whole.iter().all(|bytes| *bytes < 8_000), "{whole:?}");
    let tags: Vec<(&str, bool)> =
        recipe.output.tags.iter().map(|tag| (tag.name.as_str(), tag.hidden)).collect();
    assert_eq!(tags, [("thinking", true), ("draft", false), ("dispatch", true)]);
    let labels: Vec<&str> = recipe.input_docs.iter().filter_map(|doc| doc.label.as_deref()).collect();
    assert_eq!(
        labels,
        [
            "",
            "",
            "--- Rolling summary ---",
            "--- User preferences to honor ---",
            "--- Notable facts ---",
            "--- Private reflections ---",
            "--- Shared/consent state ---",
            "--- Milestones ---",
            "",
            "[Earlier in this conversation]",
            "[Related content from previous sessions]",
        ]
    );
    let format = recipe.query_format.as_ref().unwrap();
    assert_eq!((format.before.as_str(), format.after.as_str()), ("User message: \"", "\""));
    let summary = cookbook.recipe("converse/mediation_summary").unwrap();
    assert_eq!(summary.budget.output, 2_048);
    let fields = summary.output.schema.as_ref().unwrap()["properties"].as_object().unwrap();
    for field in [
        "narrative",
        "keyThemes",
        "emotionalJourney",
        "unresolvedTopics",
        "agreedFacts",
        "userNeeds",
        "partnerNeeds",
        "openQuestions",
        "agreements",
    ] {
        assert!(fields.contains_key(field), "{field}");
    }
}

/// The phrases of the types find what people write, and leave alone what only looks like it.
#[test]
fn the_phrases_of_the_mediation_find_what_is_meant() {
    let cookbook = Project::builtin(&Counter::o200k());
    let types = TypeCatalog::load(&cookbook, &cookbook, &Counter::o200k());
    let rules = &types.find("mediation").unwrap().kind.intents;
    let memory = |text: &str| intent::find(rules, text).memory;
    for (text, expected) in [
        ("Please don't bring up the past again.", Some(MemoryIntent::AvoidRecall)),
        ("Let's start fresh today", Some(MemoryIntent::AvoidRecall)),
        ("Can we skip this step?", Some(MemoryIntent::StageEnforcement)),
        ("I can’t take it anymore", Some(MemoryIntent::HighDistress)),
        ("But we agreed on Sundays!", Some(MemoryIntent::CommitmentReference)),
        ("If we agreed on anything it would be a miracle", None),
        ("He never listens to me.", None),
        ("We started dating in March.", None),
    ] {
        assert_eq!(memory(text), expected, "{text}");
    }
    for (text, process, remember, past) in [
        ("How does this work?", true, false, false),
        ("Please remember that I hate phone calls", false, true, false),
        ("I remember that evening well", false, false, false),
        ("She did it again last week", false, false, true),
        ("who can read this", true, false, false),
    ] {
        let found = intent::find(rules, text);
        assert_eq!(
            (found.asks_about_process, found.asks_to_remember, found.refers_to_past),
            (process, remember, past),
            "{text}"
        );
    }
}

/// The schema for editors and the page of keys are those of the code.
#[test]
fn the_schema_and_the_page_of_keys_are_current() {
    fn rows(place: &str, schema: &serde_json::Value, page: &mut String) {
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
            let required =
                schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == key));
            let about = inner["description"].as_str().unwrap_or_default();
            let values: Vec<String> = ["oneOf", "enum"]
                .iter()
                .flat_map(|key| {
                    inner[key].as_array().or(inner["items"][key].as_array()).into_iter().flatten()
                })
                .filter_map(|value| {
                    let name = value["const"].as_str().or(value.as_str())?;
                    let about = value["description"].as_str().unwrap_or_default().trim_end_matches('.');
                    Some(if about.is_empty() { format!("`{name}`") } else { format!("`{name}`: {about}") })
                })
                .collect();
            let values = if values.is_empty() { String::new() } else { format!(" {}.", values.join("; ")) };
            page.push_str(&format!(
                "| `{place}` | {} | {about}{values} |\n",
                if required { "yes" } else { "" }
            ));
            rows(&place, inner, page);
            rows(&format!("{place}[]"), &inner["items"], page);
            rows(&format!("{place}.NAME"), &inner["additionalProperties"], page);
        }
    }
    let schema = ConversationType::schema();
    let mut page = String::from(
        "# Keys of a conversation type\n\nGenerated from the code by a test. [Conversations](../guide/conversations.md) says \
         how to write a type, and [`conversation.schema.json`](conversation.schema.json) is the same for editors. `[]` is an \
         entry of a list, `NAME` a name of your own.\n\n| key | required | |\n|---|---|---|\n",
    );
    rows("", &schema, &mut page);
    let written = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (name, text) in [("conversation-types.md", page), ("conversation.schema.json", written)] {
        if std::env::var_os("LARDER_BLESS").is_some() {
            fs::write(docs.join(name), &text).unwrap();
        }
        let found = fs::read_to_string(docs.join(name)).unwrap_or_default();
        assert!(found == text, "docs/reference/{name} is out of date: run this test with LARDER_BLESS=1");
    }
}
