//! Whole-project checks in memory: what a clean recipe becomes, hostile input, determinism.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::pack::{Cap, Overflow, SlotForm};
use crate::recipe::{Layer, PromptInputs, SlotSource, render_plain};
use larder_condense::ContentType;
use larder_text::message::Role;

const RECIPE: &str = r#"name: planner_chat
aliases: [strategist]
description: Plan the next step.
role: planner
model_layer: MIND
mode: chat
token_budget: {total: 5750, prompt: 1540, input: 2000, output: 2000, response_reserve: 200}
prompt_files: [prompts/planner/common.md]
input_docs: [query_analysis.json, {name: notes, priority: 90, required: false, content_type: prose}]
input_sections: ["§2", "§0", "§1"]
variables: {session: "{{ customer }} in {{ session_id }} of {{ user }}, {{ turn_id }}", tone: "{{ tone | default('plain') }}"}
output_format: json
output_schema:
  type: object
  required: [next_step]
  properties: {next_step: {enum: [coordinator, synthesis, clarify]}, confidence: {type: number}}
quality_gates: {confidence_threshold: 0.7}
tools_available: [internet.research]
slots:
  - {name: system, from: prompt, cap: 1540}
  - {name: history, from: messages, cap: 60%, protect_last: 12}
  - {name: rest, from: documents, cap: flexible, docs: [query_analysis.json, notes, context.md]}
variants: {deep: {prompt_files: [prompts/pipeline/planner/deep.md]}}
default_variant: deep
"#;

fn project(recipe: &str, prompt: &str) -> ProjectFiles {
    let files = [
        ("recipes/pipeline/phase3_planner_chat.yaml", recipe),
        ("prompts/pipeline/planner/common.md", prompt),
        ("prompts/pipeline/planner/deep.md", "Think twice."),
        ("prompts/shared/style.md", "Style: {{ tone }}.\n"),
    ];
    files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into()
}

fn with_variant_slot() -> String {
    RECIPE.replace("cap: 1540}\n", "cap: 1000}\n  - {name: stage, from: variant, cap: 540}\n")
}

const PROMPT: &str =
    "Session {{ session }}.\n{% include \"shared/style\" %}\nTools: {{ tools | join(', ') }}.\n";

fn checked() -> CheckReport {
    let report = check(&project(&with_variant_slot(), PROMPT), &Counter::o200k());
    assert_eq!(report.diagnostics, []);
    report
}

#[test]
fn a_clean_recipe_becomes_what_it_says() {
    let report = checked();
    let recipe = report.recipes.find("planner_chat").unwrap();
    assert_eq!(recipe.id(), "pipeline/planner_chat");
    assert_eq!((recipe.layer, recipe.mode, recipe.budget.total), (Layer::Mind, Some(Mode::Chat), 5750));
    assert_eq!(recipe.input_sections, [0, 1, 2]);
    assert_eq!(recipe.input_docs[1].content_type, Some(ContentType::Prose));
    assert_eq!((recipe.input_docs[1].priority, recipe.input_docs[0].required), (90, true));
    assert_eq!(recipe.inputs.iter().collect::<Vec<_>>(), ["customer", "tone"]);
    let history = &recipe.slots[2];
    assert_eq!((history.slot.cap, history.slot.soft, history.slot.protect_last), (Cap::Share(0.6), None, 12));
    assert_eq!((history.role, history.source), (Role::User, SlotSource::Messages));
    let condense_or_drop = Overflow { condense: true, ..Overflow::DROP };
    assert_eq!((history.slot.overflow, history.slot.form), (condense_or_drop, SlotForm::Messages));
    assert_eq!(recipe.variant(None).unwrap().0, "deep");
    assert_eq!(recipe.variant(Some("Deep")).unwrap().0, "deep");
    assert!(recipe.variant(Some("unheard_of")).is_none());
}

#[test]
fn every_name_of_a_recipe_loads_it() {
    let report = checked();
    let names = ["planner_chat", "strategist", "phase3_planner_chat", "pipeline/phase3_planner_chat.yaml"];
    for name in names {
        assert_eq!(report.recipes.find(name).unwrap().name, "planner_chat", "{name}");
    }
    assert_eq!(report.recipes.for_mode("planner", Mode::Chat).unwrap().name, "planner_chat");
    let missing = report.recipes.for_mode("planner", Mode::Code).unwrap_err();
    assert_eq!(missing.to_string(), "Recipe not found: planner_code");
}

#[test]
fn prompts_render_with_variables_and_includes() {
    let report = checked();
    let recipe = report.recipes.find("planner_chat").unwrap();
    let values = [("customer".to_owned(), "{{ query }}".into())].into();
    let place = PromptInputs { session_id: "s1", turn_id: "turn_000004", user: "ann", ..Default::default() };
    let rendered = recipe.render(&PromptInputs { values: Some(&values), ..place }).unwrap();
    // A value that looks like a template stays what it is.
    assert_eq!(
        rendered.system[0].text,
        "Session {{ query }} in s1 of ann, turn_000004.\nStyle: plain.\nTools: internet.research."
    );
    assert_eq!(rendered.variant[0].text, "Think twice.");
    let error = recipe.render(&PromptInputs::default()).unwrap_err();
    assert_eq!((error.template.as_str(), error.line), ("variables.session", 1));
    assert!(error.help.contains("--set"), "{error}");
}

#[test]
fn a_total_may_be_left_out_where_there_is_one_for_all() {
    let files = project(&with_variant_slot().replace("{total: 5750, ", "{"), PROMPT);
    let total = |report: &CheckReport| report.recipes.find("planner_chat").map(|recipe| recipe.budget.total);
    let report = check(&files, &Counter::o200k());
    assert!(report.has_errors() && total(&report).is_err());
    assert_eq!(
        total(&check_with(&files, &Counter::o200k(), Some(12_000), &BTreeSet::new())).unwrap(),
        12_000
    );
    // It is held to the same sums.
    assert!(check_with(&files, &Counter::o200k(), Some(5_000), &BTreeSet::new()).has_errors());
    assert_eq!(
        total(&check_with(
            &project(&with_variant_slot(), PROMPT),
            &Counter::o200k(),
            Some(9),
            &BTreeSet::new()
        ))
        .unwrap(),
        5_750
    );
}

#[test]
fn the_version_changes_with_every_byte_that_reaches_the_model() {
    let version = |prompt: &str, style: &str| {
        let mut files = project(&with_variant_slot(), prompt);
        files.insert("prompts/shared/style.md".to_owned(), style.into());
        check(&files, &Counter::o200k()).recipes.find("planner_chat").unwrap().version
    };
    let first = version(PROMPT, "Style: {{ tone }}.");
    assert_eq!(first, version(PROMPT, "Style: {{ tone }}."));
    assert_ne!(first, version(&PROMPT.replace("Tools", "tools"), "Style: {{ tone }}."));
    assert_ne!(first, version(PROMPT, "Style:  {{ tone }}."));
}

#[test]
fn a_template_cannot_run_or_grow_without_end() {
    let loops = "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}";
    let big = format!("{{% for a in range(100000) %}}{}{{% endfor %}}", "x".repeat(1000));
    for (prompt, why) in [(loops, "fuel"), (big.as_str(), "larger than")] {
        let prompt = format!("{{{{ session }}}}{{% if tone %}}{prompt}{{% endif %}}");
        let report = check(&project(&with_variant_slot(), &prompt), &Counter::o200k());
        let recipe = report.recipes.find("planner_chat").unwrap();
        let values = [("customer".to_owned(), "s".into()), ("tone".to_owned(), "t".into())].into();
        let error = recipe.render(&PromptInputs { values: Some(&values), ..Default::default() }).unwrap_err();
        assert!(format!("{error:?}").contains(why), "{error:?}");
    }
}

#[test]
fn hostile_files_are_refused_in_linear_time() {
    let million = 1_000_000;
    let recipes = [
        "[".repeat(million),
        "{a: ".repeat(million / 4),
        "- ".repeat(million / 2),
        "a: &a [*a]\n".repeat(million / 12),
        format!("{{{}}}", (0..90_000).map(|n| format!("k{n}: 1, ")).collect::<String>()),
        format!("system_prompt: '{}'", "{{ a".repeat(million / 4)),
        format!(
            "system_prompt: |\n{}",
            (0..60_000).map(|n| format!("  {{{{ v{n} }}}}\n")).collect::<String>()
        ),
        format!("name: {}", "é".repeat(million / 2)),
        "? ".repeat(million / 2),
        "\"".repeat(million),
    ];
    let prompts = [
        "{{".repeat(million / 2),
        "{% if a %}".repeat(million / 10),
        format!("{{{{ {} }}}}", "(".repeat(million)),
        (0..70_000).map(|n| format!("{{{{ v{n} }}}}")).collect(),
        "{% include \"a/b\" %}".repeat(million / 20),
        "{#".repeat(million / 2),
        "{% raw %}".repeat(million / 9),
    ];
    let limit = Duration::from_secs(120);
    for recipe in recipes {
        assert!(refused_within(limit, &project(&recipe, PROMPT)), "{:.40}", recipe);
    }
    for prompt in prompts {
        assert!(refused_within(limit, &project(&with_variant_slot(), &prompt)), "{:.40}", prompt);
    }
}

/// Whether a project is refused, and printed, within `limit` (generous: debug builds on shared machines).
fn refused_within(limit: Duration, files: &ProjectFiles) -> bool {
    let start = Instant::now();
    let report = check(files, &Counter::o200k());
    let printed = render_plain(&report.diagnostics, |path| files.get(path).map(Vec::as_slice));
    report.has_errors() && !printed.is_empty() && start.elapsed() < limit
}

proptest! {
    #[test]
    fn no_mutation_of_a_recipe_makes_the_check_panic_or_differ(
        cut in 0..RECIPE.len(), width in 0..40_usize, insert in "[\\PC\n\t{}%\"'&*!|>-]{0,12}", in_prompt: bool,
    ) {
        let mutate = |text: &str| {
            let start = text.floor_char_boundary(cut.min(text.len()));
            let end = text.floor_char_boundary((start + width).min(text.len()));
            format!("{}{insert}{}", &text[..start], &text[end.max(start)..])
        };
        let (recipe, prompt) = (with_variant_slot(), PROMPT.to_owned());
        let files = if in_prompt { project(&recipe, &mutate(&prompt)) } else { project(&mutate(&recipe), &prompt) };
        let report = check(&files, &Counter::o200k());
        let printed = render_plain(&report.diagnostics, |path| files.get(path).map(Vec::as_slice));
        let again = check(&files, &Counter::o200k());
        prop_assert_eq!(&report.diagnostics, &again.diagnostics);
        prop_assert_eq!(report.recipes.is_empty(), report.has_errors() );
        prop_assert_eq!(printed.is_empty(), report.diagnostics.is_empty());
    }

    #[test]
    fn no_bytes_make_the_check_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut files = project(&with_variant_slot(), PROMPT);
        files.insert("recipes/a/b.yaml".to_owned(), bytes.clone());
        files.insert("prompts/a/b.md".to_owned(), bytes);
        let report = check(&files, &Counter::o200k());
        prop_assert!(report.recipes.find("planner_chat").is_ok());
    }
}
