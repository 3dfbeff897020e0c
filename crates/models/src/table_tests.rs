//! The shipped tables hold what the requirements say, and a wrong table says everything that is wrong with it.

use proptest::prelude::*;

use super::*;

fn problems(toml: &str) -> Vec<TableProblem> {
    ModelTable::parse(toml).unwrap_err().0
}

/// `code line:column` of every problem.
fn places(toml: &str) -> Vec<String> {
    problems(toml).iter().map(|p| format!("{:?} {}:{}", p.code, p.line, p.column)).collect()
}

#[test]
fn every_shipped_table_is_sound_and_binds_every_layer() {
    for (name, text) in SHIPPED {
        let table = ModelTable::parse(text).unwrap_or_else(|problems| panic!("{name}: {problems}"));
        for (_, layer) in Layer::ALL {
            assert!(table.resolve(layer, None).is_some(), "{name} leaves {layer:?} unbound");
        }
    }
    assert_eq!(ModelTable::parse("").unwrap(), ModelTable::shipped(DEFAULT_TABLE).unwrap());
    assert_eq!(ModelTable::parse("[other]\nx = 1\n").unwrap(), ModelTable::shipped(DEFAULT_TABLE).unwrap());
}

#[test]
fn the_five_models_are_those_of_the_specification() {
    let table = ModelTable::shipped("five-model").unwrap();
    let rows: Vec<_> = table
        .layers()
        .map(|(layer, binding)| {
            let spec = table.model(&binding.model).unwrap();
            (layer as u8, layer.as_str(), spec.id.rsplit('/').next().unwrap(), spec.size.as_deref().unwrap())
        })
        .collect();
    let expected = [
        (0, "REFLEX", "Qwen3-0.6B", "~0.2GB"),
        (1, "NERVES", "Youtu-LLM-2B-Base", "~0.5GB"),
        (2, "MIND", "Qwen3-Coder-30B-A3B-Instruct", "~1.0GB"),
        (4, "VOICE", "Llama-3.1-8B-Instruct", "~4.0GB"),
        (6, "EYES", "Qwen3-VL-8B-Instruct", "~4.0GB"),
    ];
    assert_eq!(rows, expected, "R0-3.1 to R0-3.6");
    let reflex = table.resolve(Layer::Reflex, None).unwrap();
    assert_eq!(reflex.target, Some(Duration::from_millis(100)), "R0-3.2");
    assert!(reflex.spec.can(Capability::AlwaysHot));
    assert!(table.resolve(Layer::Nerves, None).unwrap().spec.can(Capability::AlwaysHot), "R0-20.2");
    assert!(!table.resolve(Layer::Eyes, None).unwrap().spec.can(Capability::AlwaysHot), "R0-3.6: cold");
}

#[test]
fn the_single_mind_has_a_temperature_per_role_and_a_server_for_code() {
    let table = ModelTable::shipped("single-mind").unwrap();
    let temperature = |layer| table.resolve(layer, None).unwrap().temperature;
    assert_eq!(temperature(Layer::Reflex), Some(0.3), "R1-2.11");
    assert_eq!(temperature(Layer::Nerves), Some(0.1), "R1-2.12");
    assert_eq!(temperature(Layer::Mind), Some(0.5), "R1-2.13");
    assert_eq!(temperature(Layer::Voice), Some(0.7), "R1-2.14");
    assert_eq!(table.resolve(Layer::Mind, Some(Mode::Chat)).unwrap().name, "mind");
    let code = table.resolve(Layer::Mind, Some(Mode::Code)).unwrap();
    assert_eq!((code.name, code.spec.fallback.as_deref()), ("server", Some("mind")), "C56");
    assert_eq!(table.resolve(Layer::Nerves, Some(Mode::Code)).unwrap().name, "mind");
}

#[test]
fn the_conversation_table_has_ids_prices_and_one_toggle() {
    let mut table = ModelTable::shipped("conversation").unwrap();
    let per_1k = |name: &str, usage: crate::chat::Usage| {
        table.model(name).unwrap().prices.as_ref().unwrap().cost(&usage).total.to_string()
    };
    let input = crate::chat::Usage { input: 1_000, ..Default::default() };
    let output = crate::chat::Usage { output: 1_000, ..Default::default() };
    for (name, id, in_price, out_price) in [
        ("sonnet", "anthropic.claude-3-5-sonnet-20241022-v2:0", "0.003", "0.015"),
        ("haiku", "anthropic.claude-3-5-haiku-20241022-v1:0", "0.001", "0.005"),
        ("titan", "amazon.titan-embed-text-v2:0", "0.00002", "0"),
        ("kimi", "moonshotai.kimi-k2.5", "0.002", "0.01"),
    ] {
        assert_eq!(table.model(name).unwrap().id, id);
        assert_eq!(
            (per_1k(name, input), per_1k(name, output)),
            (in_price.to_owned(), out_price.to_owned()),
            "{name}"
        );
    }
    let embedding = table.models().find(|(_, spec)| spec.can(Capability::Embedding)).unwrap();
    assert_eq!(embedding.1.dimensions, Some(1024), "R4-1.6");
    assert_eq!(table.resolve(Layer::Voice, None).unwrap().name, "sonnet");
    table.set_use_alternative(true);
    for layer in [Layer::Reflex, Layer::Nerves, Layer::Mind, Layer::Voice] {
        assert_eq!(table.resolve(layer, None).unwrap().name, "kimi", "R4-1.14");
    }
    assert_eq!(
        ModelTable::shipped("coding").unwrap().resolve(Layer::Nerves, None).unwrap().name,
        "claude-3-haiku"
    );
}

#[test]
fn a_file_can_start_from_a_shipped_table_and_change_single_values() {
    let toml = "[models]\ntable = \"single-mind\"\n[models.layers]\nMIND = { temperature = 0.9 }\nEYES = \"mind\"\n\
                [models.mind]\nwindow = 8_192\nmax_output = 0x400\n";
    let table = ModelTable::parse(toml).unwrap();
    let shipped = ModelTable::shipped("single-mind").unwrap();
    let mind = table.resolve(Layer::Mind, None).unwrap();
    assert_eq!((mind.temperature, mind.spec.window, mind.spec.max_output), (Some(0.9), 8192, 1024));
    assert_eq!(mind.spec.id, shipped.model("mind").unwrap().id);
    assert_eq!(table.resolve(Layer::Mind, Some(Mode::Code)).unwrap().name, "server");
    assert_eq!(table.resolve(Layer::Eyes, None).unwrap().name, "mind");
    assert_eq!(table.model("server"), shipped.model("server"));
}

#[test]
fn all_problems_come_at_once_with_their_places() {
    let toml = r#"
[models]
tabel = "embedded"
[models.layers]
MIND = "mnid"
MINT = "mind"
VOICE = { temperature = 3 }
[models.mind]
provider = "opneai"
id = "x"
widnow = 5
window = -1
max_output = 10
capabilities = ["json_shema", 3]
prices = { inptu = 1, output = 1e-9 }
api_key = "sk-1"
api_key_env = "sk-abcdef"
extra_body = { max_tokens = 5, since = 2026-01-01 }
"#;
    let found = places(toml);
    let expected = [
        "M002 3:1",
        "M005 6:1",
        "M004 7:9",
        "M003 7:25",
        "M003 9:12",
        "M002 11:1",
        "M003 12:10",
        "M003 14:17",
        "M003 14:31",
        "M004 15:10",
        "M002 15:12",
        "M003 15:32",
        "M007 16:1",
        "M007 17:15",
        "M006 18:16",
        "M003 18:40",
    ];
    for place in expected {
        assert!(found.iter().any(|found| found == place), "{place} is missing in {found:#?}");
    }
    let text = ModelTable::parse(toml).unwrap_err().to_string();
    for words in
        ["did you mean `table`?", "did you mean `MIND`?", "did you mean `openai`?", "did you mean `window`?"]
    {
        assert!(text.contains(words), "{words} is missing in\n{text}");
    }
    assert!(!text.contains("sk-"), "a key in the wrong place is not repeated");
}

#[test]
fn names_and_numbers_must_fit_together() {
    let model = |name: &str, rest: &str| {
        format!("[models.{name}]\nprovider = \"openai\"\nid = \"x\"\nwindow = 100\nmax_output = 10\n{rest}\n")
    };
    let embed = "[models.e]\nprovider = \"openai\"\nid = \"x\"\nwindow = 100\ndimensions = 4\ncapabilities = [\"embedding\"]\n";
    for (toml, words) in [
        (model("a", "fallback = \"b\""), "there is no model `b`"),
        (model("a", "fallback = \"b\"") + &model("b", "fallback = \"a\""), "leads back to itself"),
        (model("a", "fallback = \"a\""), "leads back to itself"),
        (model("a", "fallback = \"e\"") + embed, "is an embedding model"),
        (model("a", "folder = \"f\""), "only provider `replay` uses"),
        (model("a", "api_key_env = \"A\"\napi_key_file = \"f\""), "keep one"),
        (model("layer", "").replace("id = \"x\"\n", ""), "if this is not a model"),
        (embed.replace("dimensions = 4\n", ""), "lacks `dimensions`"),
        (
            "[models.a]\nprovider = \"openai\"\nid = \"gpt-5.2\"\nwindow = 50000".to_owned(),
            "[models.a] needs `max_output`: the catalogue's, 128000, leaves no prompt in its window of 50000",
        ),
        (
            "[models.a]\nprovider = \"openai\"\nid = \"gpt-5.2\"\nwindow = 50000".to_owned(),
            "state a `max_output` of less than 50000, or leave out `window`",
        ),
        (
            "[models.a]\nprovider = \"openai\"\nid = \"gpt-4.1-mni\"".to_owned(),
            "the catalogue has no \"gpt-4.1-mni\"; did you mean \"gpt-4.1-mini\"?",
        ),
        (embed.replace("openai", "anthropic"), "its provider does not offer"),
        (model("a", "aws_profile = \"p\""), "only provider `bedrock` uses"),
        (
            model("a", "aws_profile = \"p\"\napi_key_env = \"A\"").replace("openai", "bedrock"),
            "requests carry a key or are signed",
        ),
        (model("a", "").replace("max_output = 10", "max_output = 100"), "no prompt or no reply"),
        (model("a", "").replace("openai", "replay"), "lacks `folder`"),
        (model("a", "base_url = \"http://x\"").replace("openai", "embedded"), "provider does not use"),
        ("[models.layers]\nMIND = \"x\"".to_owned(), "the file defines no model"),
        ("[models]\ntable = \"fife-model\"".to_owned(), "did you mean `five-model`?"),
    ] {
        let text = ModelTable::parse(&toml).map(|_| ()).unwrap_err().to_string();
        assert!(text.contains(words), "{words} is missing in\n{text}\nfor\n{toml}");
    }
}

#[test]
fn a_value_that_cannot_be_used_is_not_reported_as_missing_too() {
    let toml = "[models.x]\nprovider = \"openia\"\nid = \"x\"\nwindow = 100\nmax_output = 10\n";
    let text = ModelTable::parse(toml).unwrap_err().to_string();
    assert!(
        text.contains("there is no provider `openia`") && text.contains("did you mean `openai`?"),
        "{text}"
    );
    assert!(!text.contains("lacks"), "{text}");
}

#[test]
fn layers_under_a_misspelled_name_are_no_model_that_lacks_everything() {
    for name in ["layer", "Layers"] {
        let found = problems(&format!("[models]\ntable = \"five-model\"\n[models.{name}]\nMIND = \"x\"\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].help.contains("`layers`"), "{found:?}");
    }
}

#[test]
fn hostile_files_are_refused_in_time() {
    for toml in [
        "\0".to_owned(),
        "models".to_owned(),
        "[models]\n[models]".to_owned(),
        "models = 1".to_owned(),
        format!("models.a = {}1{}", "[".repeat(50_000), "]".repeat(50_000)),
        format!("[models.{}]", "a.".repeat(1_000) + "a"),
        "x".repeat(2 << 20),
        (0..30_000).map(|i| format!("[models.m{i}]\n")).collect(),
        format!("[models]\n{}", (0..30_000).map(|i| format!("k{i} = 1\n")).collect::<String>()),
        format!("[models.\"{}\"]\nid = \"\u{202e}\"", "é".repeat(10_000)),
    ] {
        let problems = ModelTable::parse(&toml).unwrap_err();
        assert!((1..=100).contains(&problems.0.len()));
    }
    let crlf = "[models]\r\ntable = \"coding\"\r\n";
    assert!(ModelTable::parse(crlf).is_ok());
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "(\\[models(\\.[a-z]{1,3})?\\]\n|(provider|id|layers|MIND|prices) = [\"{}\\[0-9a-z.]{0,6}\n|.){0,12}") {
        let _ = ModelTable::parse(&text);
    }
}
