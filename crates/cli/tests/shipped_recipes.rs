//! The recipes and prompts that ship, as the API lists them and as models are asked by them.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::scholar::{Role, asked};
use support::served::Served;
use support::{Shop, reply};

const LAYERS: [&str; 5] = ["REFLEX", "NERVES", "MIND", "VOICE", "EYES"];

/// A folder without recipes of its own, whose model plays every layer and always says the same.
fn shop(answer: Value) -> Shop {
    let shop = Shop::responding(move |_| reply(&answer));
    shop.configure_layers(&LAYERS, "", "");
    let settings = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    shop.write(
        "larder.toml",
        settings.replace("window = 8000", "window = 32000").replace("= 1000\n", "= 4000\n"),
    );
    shop
}

fn get(served: &Served, path: &str) -> Value {
    let (status, body) = served.get(path);
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn recipe(served: &Served, id: &str) -> Value {
    get(served, &format!("/api/v1/recipes/{id}"))
}

/// All files below a folder.
fn below(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, files);
        } else {
            files.insert(path);
        }
    }
}

#[test]
fn every_recipe_that_ships_is_listed_with_what_it_is_for_and_its_prompts() {
    let served = Served::start(&shop(json!({})), &[]);
    let listed = get(&served, "/api/v1/recipes")["recipes"].as_array().unwrap().clone();
    assert!(listed.len() > 50);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cookbook/prompts");
    for id in listed.iter().map(|listed| listed["id"].as_str().unwrap()) {
        let recipe = recipe(&served, id);
        assert_eq!(format!("{}/{}", recipe["category"], recipe["name"]).replace('"', ""), id);
        assert!(!recipe["description"].as_str().unwrap().is_empty(), "R0-5.2: {id}");
        assert!(recipe["role"].is_string() || recipe["category"] != "pipeline", "R0-5.2: {id}");
        assert!(["low", "medium", "high"].contains(&recipe["risk"].as_str().unwrap()), "R0-5.4: {id}");
        // A model reads the text of the files (R0-6.2).
        for (name, text) in recipe["includes"].as_object().unwrap() {
            let file = std::fs::read_to_string(root.join(format!("{name}.md"))).unwrap();
            assert_eq!(text.as_str().unwrap().trim_end(), file.trim_end(), "{id}: {name}");
        }
        // A phase has its rules in common with the others, and a longest time (R0-6.3, R0-14.9).
        if recipe["category"] == "pipeline" {
            assert!(recipe["includes"].get("pipeline/guard").is_some(), "{id}");
            assert!(recipe["gates"]["timeout_ms"].as_u64().unwrap() >= 10_000, "{id}");
        }
    }
}

#[test]
fn the_registry_of_a_project_lists_every_recipe_and_prompt() {
    let (shop, cookbook) = (Shop::new(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cookbook"));
    for folder in ["recipes", "prompts", "conversations", "routes"] {
        let mut files = BTreeSet::new();
        below(&cookbook.join(folder), &mut files);
        for file in files {
            let place = file.strip_prefix(&cookbook).unwrap().to_str().unwrap();
            shop.write(place, std::fs::read(&file).unwrap());
        }
    }
    shop.ok(&["check", "--write-registry"]);
    let registry = std::fs::read_to_string(shop.path().join("registry.yaml")).unwrap();
    let listed: BTreeSet<&str> = registry.lines().filter_map(|line| line.strip_prefix("  file: ")).collect();
    for folder in ["recipes", "prompts"] {
        let mut files = BTreeSet::new();
        below(&shop.path().join(folder), &mut files);
        for file in files {
            let place = file.strip_prefix(shop.path()).unwrap().to_str().unwrap().replace('\\', "/");
            assert!(listed.contains(json!(place).to_string().as_str()), "R0-5.1: {place}");
        }
    }
}

#[test]
fn each_role_has_the_layer_that_is_for_it() {
    let served = Served::start(&shop(json!({})), &[]);
    for (id, layer, row) in [
        ("compress/compress_context", "NERVES", "R0-3.3"),
        ("compress/compress_history", "NERVES", "R0-3.3"),
        ("pipeline/planner_chat", "MIND", "R0-3.4"),
        ("pipeline/planner_code", "MIND", "R0-3.4"),
        ("pipeline/validator", "MIND", "R0-3.4"),
        ("pipeline/synthesizer_chat", "VOICE", "R0-3.5"),
        ("pipeline/synthesizer_code", "VOICE", "R0-3.5"),
    ] {
        assert_eq!(recipe(&served, id)["layer"], layer, "{row}: {id}");
    }
}

/// Each layer is a model of its own, so that the provider sees who decides.
#[test]
fn each_decision_of_a_turn_is_made_by_a_prompt_on_the_model_of_its_layer() {
    let shop = Shop::with_scholar(|_, _| None);
    let layers: String = LAYERS.iter().map(|layer| format!("{layer} = \"{layer}\"\n")).collect();
    let model = |layer: &&str| {
        format!(
            "[models.{layer}]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\nid = \"{layer}\"\nretries = 0\n\
             tokenizer = \"o200k_base\"\nwindow = 32000\nmax_output = 4000\n",
            shop.address()
        )
    };
    let models: String = LAYERS.iter().map(model).collect();
    shop.write("larder.toml", format!("[models.layers]\n{layers}{models}"));
    shop.ok(&["turn", "Where does the ledger lie?"]);
    let deciders: Vec<(Role, String)> = shop
        .seen()
        .iter()
        .map(|seen| (asked(seen).0, seen.json()["model"].as_str().unwrap().to_owned()))
        .collect();
    for (role, layer, row) in [
        (Role::Reflection, "REFLEX", "R0-7.1"),
        (Role::Planner, "MIND", "R0-7.2"),
        (Role::Coordinator, "MIND", "R0-7.3"),
        (Role::Synthesizer, "VOICE", "R0-7.7"),
        (Role::Validator, "MIND", "R0-7.8"),
    ] {
        assert!(deciders.contains(&(role, layer.to_owned())), "{row}, R0-7.10: {role:?} in {deciders:?}");
    }
    // Two more decide where a turn does research and where a text is over its budget.
    let served = Served::start(&shop, &[]);
    for (id, layer, row) in [
        ("research/plan_research", "MIND", "R0-7.4"),
        ("research/select_sources", "MIND", "R0-7.4"),
        ("compress/compress_context", "NERVES", "R0-7.9"),
    ] {
        let recipe = recipe(&served, id);
        assert!(recipe["layer"] == layer && recipe["system"][0]["text"].is_string(), "{row}, R0-7.10: {id}");
    }
}

/// A document that every phase reads.
const CONTEXT: &str = "# Context Document\n\n## 0. User Query\n\n**Original:** Where is the ledger?\n\n\
                       ## 1. Reflection Decision\n\n**Decision:** PROCEED\n\n## 2. Gathered Context\n\nNothing is known.\n";

/// Whether a recipe takes this answer, and how often its model was asked.
fn taken(id: &str, answer: &Value) -> (bool, usize) {
    let shop = shop(answer.clone());
    shop.write("context.md", CONTEXT);
    let ran = shop.run(&["run", id, "--doc", "context.md", "-q", "Where is the ledger?"]);
    (ran.code == 0, shop.seen().len())
}

fn changed(answer: &Value, key: &str, value: Value) -> Value {
    let mut answer = answer.clone();
    answer[key] = value;
    answer
}

fn without(answer: &Value, key: &str) -> Value {
    let mut answer = answer.clone();
    answer.as_object_mut().unwrap().remove(key);
    answer
}

#[test]
fn a_planner_states_next_step_confidence_and_tasks_and_is_asked_twice_more() {
    let plan = json!({"goal": "Find it.", "intent": "informational", "confidence": 0.9, "next_step": "coordinator",
        "question": null, "goals": [], "tasks": [{"goal": null, "text": "Look."}], "focus": null,
        "previous_failure": null, "new_approach": null, "topic": "history"});
    for next_step in ["coordinator", "synthesis", "clarify"] {
        let answer = changed(&plan, "next_step", json!(next_step));
        assert_eq!(taken("pipeline/planner_chat", &answer), (true, 1), "R0-10.9, R0-16.7: {next_step}");
    }
    for wrong in [
        changed(&plan, "next_step", json!("elsewhere")),
        without(&plan, "next_step"),
        without(&plan, "confidence"),
        changed(&plan, "confidence", json!("sure")),
        without(&plan, "tasks"),
        changed(&plan, "tasks", json!("Look.")),
    ] {
        let (is_taken, asked) = taken("pipeline/planner_chat", &wrong);
        assert!(!is_taken, "R0-10.9, R0-16.7: {wrong}");
        assert_eq!(asked, 3, "R0-16.8: {wrong}");
    }
}

#[test]
fn a_decision_has_one_of_two_words_a_confidence_and_a_short_reason() {
    let decision = json!({"decision": "PROCEED", "confidence": 0.9, "is_action": false, "is_follow_up": false,
        "reasoning": "It is clear.", "question": null});
    let is_taken = |answer: &Value| taken("pipeline/reflection", answer).0;
    for right in [
        decision.clone(),
        changed(&decision, "decision", json!("CLARIFY")),
        changed(&decision, "confidence", json!(1)),
        changed(&decision, "reasoning", json!("é".repeat(500))),
    ] {
        assert!(is_taken(&right), "R0-13.3: {right}");
    }
    for wrong in [
        changed(&decision, "decision", json!("MAYBE")),
        changed(&decision, "confidence", json!(1.1)),
        changed(&decision, "confidence", json!(-0.1)),
        changed(&decision, "reasoning", json!("é".repeat(501))),
        without(&decision, "decision"),
        without(&decision, "confidence"),
        without(&decision, "reasoning"),
    ] {
        assert!(!is_taken(&wrong), "R0-13.3: {wrong}");
    }
}

/// The content types, a file that is one, and the recipe that condenses it.
const TYPES: [(&str, &str, &str); 6] = [
    ("context.md", "context_doc", "compress_context"),
    ("research.md", "research_doc", "compress_research"),
    ("page_doc_7.md", "page_doc", "compress_page_doc"),
    ("my_tool_result.txt", "tool_result", "compress_tool_result"),
    ("turn_000012.md", "prior_turn", "compress_prior_turn"),
    ("notes.bin", "generic", "generic"),
];

#[test]
fn each_content_type_is_detected_and_condensed_by_a_recipe_of_its_own() {
    let shop = shop(json!("Many lamps hang there, each with its price on a card."));
    let served = Served::start(&shop, &[]);
    let line = "Lamp {7|3} = <42>; /a_b/ [x] \\ #9 | ~ {8|1} = <43>.\n".repeat(60);
    for (file, content_type, name) in TYPES {
        let is_context = ["context_doc", "prior_turn"].contains(&content_type);
        shop.write(
            file,
            if is_context { format!("{CONTEXT}{line}\n## 3. Task Plan\n\nLook.\n") } else { line.clone() },
        );
        let before = shop.seen().len();
        let condensed = shop.json(&["condense", file, "--to", "300", "--by-model"]);
        assert_eq!(condensed["type"], content_type, "R0-22.6, R0-29.10: {file}");
        let recipe = recipe(&served, &format!("compress/{name}"));
        let prompt = recipe["system"][0]["text"].as_str().unwrap();
        let start = prompt.split(['{', '\n']).next().unwrap().trim();
        assert!(start.len() > 12, "{prompt}");
        let seen = shop.seen();
        assert!(seen.len() > before, "{file}: {}", condensed["condensing"]);
        let asked = seen[before].json()["messages"].to_string();
        assert!(
            asked.contains(&json!(start).to_string().replace('"', "")),
            "R0-29.9, {file}: {start}: {asked}"
        );
    }
    for (name, document, row) in [
        ("compress_context", "context_to_compress", "R0-23.2"),
        ("compress_research", "research_to_compress", "R0-23.8"),
    ] {
        let recipe = recipe(&served, &format!("compress/{name}"));
        let budget = &recipe["budget"];
        let budget = ["total", "prompt", "input", "output"].map(|part| budget[part].as_u64().unwrap());
        assert_eq!(budget, [1_000, 300, 500, 200], "{row}");
        assert_eq!(
            (&recipe["layer"], &recipe["output"]["format"]),
            (&json!("NERVES"), &json!("markdown")),
            "{row}"
        );
        let documents = recipe["input_docs"].as_array().unwrap();
        assert_eq!((documents.len(), &documents[0]["name"]), (1, &json!(document)), "{row}");
    }
}
