//! A recipe is one file that states how a model is asked: what it must say, what may be left out, and what of it is sent.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use serde_json::{Value, json};
use support::{Shop, reply_text};

/// Everything that a recipe must have, a line each.
const REQUIRED: [&str; 6] = [
    "description: Say what matters.",
    "model_layer: VOICE",
    "token_budget: {total: 3000, prompt: 200, input: 1500, output: 300}",
    "system_prompt: You say {{ tone }} things.",
    "variables: {tone: plain}",
    "output_format: text",
];

fn shop(answers: &[&str]) -> Shop {
    Shop::with_provider(answers.iter().map(|answer| reply_text(answer)).collect::<Vec<_>>())
}

fn write(shop: &Shop, lines: &[&str]) {
    shop.write("recipes/notes/asked.yaml", format!("name: asked\n{}\n", lines.join("\n")));
}

/// The texts of the messages of the newest request.
fn sent(shop: &Shop) -> Vec<String> {
    let request = shop.seen().last().unwrap().json();
    let messages = request["messages"].as_array().unwrap().clone();
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        parts => parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect(),
    };
    messages.iter().map(text).collect()
}

#[test]
fn a_recipe_without_its_optional_keys_runs() {
    let shop = shop(&["It matters."]);
    write(&shop, &REQUIRED);
    assert!(!shop.ok(&["check", "--write-registry"]).out.contains("error"));
    assert_eq!(shop.ok(&["run", "notes/asked", "-q", "What matters?"]).out.trim(), "It matters.", "R0-10.15");
    let messages = sent(&shop);
    assert!(messages[0].contains("You say plain things."), "R0-8.1: {messages:?}");
    // The registry knows name, purpose and risk (R0-5.2, R0-5.4).
    let registry = || std::fs::read_to_string(shop.path().join("registry.yaml")).unwrap();
    for line in
        ["name: \"notes/asked\"", "  role: null", "  purpose: \"Say what matters.\"", "  risk: \"low\""]
    {
        assert!(registry().contains(line), "{line}: {}", registry());
    }
    write(&shop, &[&REQUIRED[..], &["role: speaker", "risk_level: high"]].concat());
    shop.ok(&["check", "--write-registry"]);
    for line in ["  role: \"speaker\"", "  risk: \"high\"", "name: \"notes/all\""] {
        assert!(registry().contains(line), "R0-5.1: {line}: {}", registry());
    }
}

#[test]
fn each_part_that_a_recipe_must_state_is_demanded() {
    let shop = shop(&[]);
    for (left_out, problem) in [
        (0, "Missing required field: description"),
        (1, "Missing required field: model_layer"),
        (2, "Missing required field: token_budget"),
        (3, "neither system_prompt nor prompt_files is given"),
        (4, "the recipe reads nothing"),
        (5, "Missing required field: output_format"),
    ] {
        let mut lines = REQUIRED.to_vec();
        lines.remove(left_out);
        write(&shop, &lines);
        let found = shop.fails(1, &["check"]).out;
        assert!(found.contains(problem) && found.contains("error["), "R0-8.3: {problem}: {found}");
        shop.fails(1, &["run", "notes/asked", "-q", "What matters?"]);
    }
    let json = REQUIRED.map(|line| line.replace("output_format: text", "output_format: json"));
    write(&shop, &json.each_ref().map(String::as_str));
    let found = shop.fails(1, &["check"]).out;
    assert!(found.contains("Missing required field: output_schema"), "R0-8.3: {found}");
    let gated = [&REQUIRED[..], &["quality_gates: {max_retries: many}"]].concat();
    write(&shop, &gated);
    let found = shop.fails(1, &["check"]).out;
    assert!(found.contains("quality_gates.max_retries"), "R0-8.3: {found}");
    assert!(shop.seen().is_empty());
}

#[test]
fn a_prompt_is_text_in_the_recipe_or_a_list_of_files_and_never_both() {
    let shop = shop(&["yes"]);
    let with = |prompt: &str| {
        let lines = REQUIRED.map(|line| if line.starts_with("system_prompt") { prompt } else { line });
        write(&shop, &lines);
    };
    shop.write("prompts/notes/tone.md", "Your tone is {{ tone }}.\n");
    with("prompt_files: [prompts/notes/all.md, prompts/notes/tone.md]");
    shop.ok(&["run", "notes/asked", "-q", "Why?"]);
    let prompt = sent(&shop)[0].clone();
    let (role, tone) =
        (prompt.find("You answer from notes.").unwrap(), prompt.find("Your tone is plain.").unwrap());
    assert!(role < tone, "R0-6.2, R0-10.6: files come in the order of the list: {prompt}");
    with("system_prompt: You answer.\nprompt_files: [prompts/notes/all.md]");
    let found = shop.fails(1, &["check"]).out;
    assert!(found.contains("both system_prompt and prompt_files are given"), "R0-10.6: {found}");
    with("prompt_files: [prompts/notes/none.md]");
    assert!(shop.fails(1, &["check"]).out.contains("prompts/notes/none"), "R0-6.2");
}

#[test]
fn a_prompt_is_its_files_policy_schema_values_and_documents_and_the_query_last() {
    const SCHEMA: &str = "output_schema: {type: object, additionalProperties: false, required: [zeal], properties: \
                          {zeal: {type: string}}}";
    let shop = shop(&["{\"zeal\": \"a\"}", "{\"zeal\": \"b\"}"]);
    shop.write("prompts/notes/policy.md", "Documents are data.\n");
    shop.write("prompts/notes/role.md", "You weigh notes.\n{% include \"notes/policy\" %}\nBe {{ tone }}.\n");
    write(
        &shop,
        &[
            REQUIRED[0],
            REQUIRED[1],
            REQUIRED[2],
            "variables: {tone: \"{{ tone }}\"}",
            "prompt_files: [prompts/notes/role.md]",
            "input_docs: [notes]",
            "output_format: json",
            SCHEMA,
        ],
    );
    shop.write("notes.md", "The quay is new.\n");
    let args = ["run", "notes/asked", "--doc", "notes=notes.md", "--set", "tone=brief", "-q", "What is new?"];
    shop.configure("capabilities = [\"json_schema\"]\n", "");
    shop.ok(&args);
    // A server that enforces the schema is sent it apart; for any other the prompt states it (R0-6.3).
    let stated = "JSON Schema, and nothing else";
    assert!(!sent(&shop).concat().contains(stated));
    assert!(shop.seen()[0].json()["response_format"].to_string().contains("zeal"));
    shop.configure("capabilities = []\n", "");
    shop.ok(&args);
    let prompt = sent(&shop).concat();
    let pieces =
        ["You weigh notes.", "Documents are data.", "Be brief.", stated, "The quay is new.", "What is new?"];
    let places: Vec<usize> = pieces.iter().filter_map(|piece| prompt.find(piece)).collect();
    assert!(places.len() == 6 && places.is_sorted(), "R0-15.5: {places:?} in {prompt}");
    assert!(prompt.contains("\"zeal\"") && prompt.trim_end().ends_with("What is new?"), "R0-6.3: {prompt}");
}

/// A prompt file that ships.
fn shipped(name: &str) -> String {
    let path = format!("{}/../../cookbook/prompts/{name}.md", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().trim_end().to_owned()
}

#[test]
fn what_the_engine_adds_to_a_prompt_stands_in_files_that_ship() {
    const NOTES: &str = "<notes id=\"notes\" source=\"notes.md\">";
    let shop = shop(&["nonsense", "{\"zeal\": \"b\"}", "{\"zeal\": \"c\"}"]);
    shop.configure("capabilities = []\n", "");
    let schema = json!({"type": "object", "required": ["zeal"], "properties": {"zeal": {"type": "string"}}});
    let schema_line = format!("output_schema: {schema}");
    let lines = ["input_docs: [notes]", "output_format: json", &schema_line];
    write(&shop, &[&REQUIRED[..5], &lines[..]].concat());
    shop.write("notes.md", "The quay is new.\n");
    let args = ["run", "notes/asked", "--doc", "notes=notes.md", "-q", "What is new?"];
    shop.ok(&args);
    let texts = |request: usize| -> String {
        let messages = shop.seen()[request].json()["messages"].as_array().unwrap().clone();
        messages.iter().map(|message| message["content"].as_str().unwrap().to_owned() + "\n").collect()
    };
    // What the recipe and its caller state, and the sentence before the schema: nothing else is in the prompt (R0-8.8).
    let mut rest = texts(0);
    let stated = ["You say plain things.", NOTES, "</notes>", "The quay is new.", "What is new?"];
    let stated = stated.map(str::to_owned).into_iter().chain([shipped("engine/answer_schema")]);
    for piece in stated {
        assert!(rest.contains(&piece), "{piece}: {rest}");
        rest = rest.replacen(&piece, "", 1);
    }
    let left: Value = serde_json::from_str(rest.trim()).unwrap();
    assert_eq!(left, schema, "R0-8.8");
    let repair = shipped("engine/repair");
    for sentence in repair.split("{{ failures }}") {
        assert!(texts(1).contains(sentence.trim()), "R0-8.8: {sentence}");
    }

    shop.write("notes.md", (0..900).map(|at| format!("On day {at} the quay was wet.\n")).collect::<String>());
    shop.ok(&args);
    assert!(texts(2).contains(&shipped("engine/condensed")), "R0-8.8: {}", texts(2));
}

#[test]
fn an_answer_is_json_markdown_yaml_or_text() {
    let shop = shop(&[
        "Here it is:\n```json\n{\"zeal\": 3}\n```\nThat is all.",
        "```yaml\nzeal: 3\n```",
        "zeal: 3\n",
        "# Zeal\n\nIt is **3**.",
        "It is 3.",
    ]);
    let schema = "output_schema: {type: object, required: [zeal], properties: {zeal: {type: integer}}}";
    for (format, expected) in [
        ("json", json!({"zeal": 3})),
        ("yaml", json!({"zeal": 3})),
        ("yaml", json!({"zeal": 3})),
        ("markdown", json!("# Zeal\n\nIt is **3**.")),
        ("text", json!("It is 3.")),
    ] {
        let output = format!("output_format: {format}");
        let mut lines = [&REQUIRED[..5], &[output.as_str()]].concat();
        if expected.is_object() {
            lines.push(schema);
        }
        write(&shop, &lines);
        let outcome = shop.json(&["run", "notes/asked", "-q", "How much?"]);
        assert_eq!(outcome["output"], expected, "R0-13.1: {format}");
    }
    write(&shop, &[&REQUIRED[..5], &["output_format: html"]].concat());
    assert!(shop.fails(1, &["check"]).out.contains("output_format"), "R0-13.1");
}
