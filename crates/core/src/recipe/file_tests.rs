//! One recipe file alone: which field is read how, and which diagnostic each mistake gets.

use super::*;

const GOOD: &str = "name: sum\ndescription: ' Adds. '\nmodel_layer: MIND\n\
    token_budget: {total: 1000, prompt: 300, input: 300, output: 200}\nsystem_prompt: Add {{ query }}.\n\
    input_docs: [numbers.txt]\noutput_format: text\n";

/// The recipe, if any, and the codes and messages of what is wrong with it.
fn parsed(text: &str, total: Option<usize>) -> (Option<RecipeFile>, Vec<(DiagnosticCode, String)>) {
    let mut sink = DiagnosticSink::new("recipes/math/sum.yaml", text);
    let file = parse("recipes/math/sum.yaml", ("math", "sum"), total, &mut sink);
    let found = sink.into_found().into_iter().map(|diagnostic| (diagnostic.code, diagnostic.message));
    (file, found.collect())
}

fn codes(text: &str) -> Vec<DiagnosticCode> {
    parsed(text, None).1.into_iter().map(|(code, _)| code).collect()
}

#[test]
fn a_short_recipe_has_the_defaults() {
    let (file, found) = parsed(GOOD, None);
    let file = file.unwrap();
    assert_eq!(found, []);
    assert_eq!((file.description.as_deref(), file.layer), (Some("Adds."), Some(Layer::Mind)));
    let tokens = file.budget.unwrap().tokens;
    assert_eq!((tokens.total, tokens.output, tokens.response_reserve), (1_000, 200, 0));
    assert_eq!((file.risk, file.needs_query, file.mode.is_none()), (Risk::Low, true, true));
    assert_eq!((file.gates, file.compression), (Gates::default(), Compression::default()));
}

#[test]
fn every_missing_field_is_reported_at_once() {
    let (_, found) = parsed("input_docs: [a.txt]\n", None);
    let missing: Vec<&str> =
        found.iter().filter_map(|(_, message)| message.strip_prefix("Missing required field: ")).collect();
    assert_eq!(missing, ["name", "description", "model_layer", "token_budget", "output_format"]);
}

#[test]
fn a_total_may_be_missing_only_where_there_is_a_default() {
    let text = GOOD.replace("total: 1000, ", "");
    assert_eq!(codes(&text), [DiagnosticCode::MissingField]);
    let (file, found) = parsed(&text, Some(2_000));
    assert_eq!((file.unwrap().budget.unwrap().tokens.total, found), (2_000, vec![]));
}

#[test]
fn the_parts_of_a_budget_have_to_fit_its_total() {
    assert_eq!(codes(&GOOD.replace("output: 200", "output: 401")), [DiagnosticCode::BudgetExceeded]);
    assert_eq!(codes(&GOOD.replace("output: 200", "output: 400")), [DiagnosticCode::SmallReserve]);
    assert_eq!(
        codes(&GOOD.replace("output: 200", "output: 200, response_reserve: 201")),
        [DiagnosticCode::BudgetExceeded]
    );
}

#[test]
fn a_recipe_has_exactly_one_source_of_its_prompt() {
    let files = "prompt_files: [prompts/math/sum.md]\n";
    assert_eq!(codes(&format!("{GOOD}{files}")), [DiagnosticCode::PromptSource]);
    assert_eq!(codes(&GOOD.replace("system_prompt: Add {{ query }}.\n", "")), [DiagnosticCode::PromptSource]);
    assert_eq!(codes(&GOOD.replace("system_prompt: Add {{ query }}.\n", files)), []);
}

#[test]
fn paths_of_prompts_stay_inside_the_project() {
    for path in ["../secret.md", "/etc/passwd", "prompts/../x.md", "prompts/a b.md", "prompts/x.txt"] {
        let text = GOOD.replace("system_prompt: Add {{ query }}.", &format!("prompt_files: ['{path}']"));
        assert_eq!(codes(&text), [DiagnosticCode::BadName], "{path}");
    }
}

#[test]
fn only_recipes_that_condense_do_without_the_query() {
    assert_eq!(codes(&format!("{GOOD}needs_query: false\n")), [DiagnosticCode::QueryRequired]);
}

#[test]
fn condensing_runs_on_one_layer_and_preserves_what_is_known() {
    let with = |value: &str| codes(&format!("{GOOD}compression: {value}\n"));
    assert_eq!(with("{enabled: false, model_layer: NERVES, preserve: [urls, section_6]}"), []);
    assert_eq!(with("{model_layer: MIND}"), [DiagnosticCode::CompressionLayer]);
    assert_eq!(with("{preserve: [section_7]}"), [DiagnosticCode::NotOneOf]);
}
