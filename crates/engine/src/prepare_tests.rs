//! Inputs of a run as slots and parts.

use larder_core::pack::Slice;
use larder_text::hash::ContentHash;

use super::*;
use crate::project::Project;

const LIMITS: ModelLimits = ModelLimits {
    window: 8_000,
    input_limit: None,
    max_output: 1_000,
    enforces_schema: false,
    schema_in_prompt: true,
};

const ANN: Caller<'_> = Caller { user: "ann", tools: None };

fn prepared(recipe: &str, input: &RunInput, limits: ModelLimits) -> Result<PreparedPrompt, PrepareError> {
    let counter = Counter::cl100k();
    let project = Project::builtin(&counter);
    prepare(project.recipe(recipe).unwrap(), input, limits, (&counter, &counter), None, ANN)
}

fn passage(text: &str) -> InputDocument {
    let slice = Slice {
        document: ContentHash::new(text.as_bytes()),
        text: text.into(),
        bytes: 0..text.len(),
        lines: (1, 2),
    };
    InputDocument { slice: Some(slice), ..InputDocument::whole("passages", "notes.md", text) }
}

fn question(documents: Vec<InputDocument>) -> RunInput {
    RunInput { query: Some("When did it leave?".into()), documents, ..RunInput::default() }
}

#[test]
fn inputs_that_the_recipe_does_not_declare_are_named() {
    let unknown = question(vec![InputDocument::whole("minutes", "minutes.txt", "x")]);
    let error = prepared("ask/answer", &unknown, LIMITS).unwrap_err();
    assert!(
        matches!(&error, PrepareError::UnknownDocument { name, takes, .. } if name == "minutes" && takes == "passages"),
        "{error}"
    );

    let missing = prepared("ask/answer", &question(Vec::new()), LIMITS).unwrap_err();
    assert!(
        matches!(&missing, PrepareError::MissingDocument { name, .. } if name == "passages"),
        "{missing}"
    );

    let mut value = question(vec![passage("It left at noon.")]);
    value.values.insert("tone".into(), "dry".into());
    let error = prepared("ask/answer", &value, LIMITS).unwrap_err();
    assert!(matches!(&error, PrepareError::UnknownValue { name, .. } if name == "tone"), "{error}");

    let silent = RunInput { query: Some(" \n".into()), ..question(vec![passage("It left at noon.")]) };
    assert!(matches!(prepared("ask/answer", &silent, LIMITS), Err(PrepareError::NoQuery { .. })));
}

#[test]
fn slices_get_short_ids_and_only_they_can_be_cited() {
    let input = question(vec![passage("The barge came at nine."), passage("It left at noon.")]);
    let prepared = prepared("ask/answer", &input, LIMITS).unwrap();
    assert!(prepared.citable.iter().eq(["p1", "p2"]), "{:?}", prepared.citable);
    assert_eq!(prepared.max_output, 250, "the recipe's output, which is below the model's");
}

#[test]
fn the_schema_is_stated_unless_the_provider_enforces_it_and_the_query_is_last() {
    let input = question(vec![passage("It left at noon.")]);
    let slots = |enforces_schema| {
        let limits = ModelLimits { enforces_schema, ..LIMITS };
        let request = prepared("ask/answer", &input, limits).unwrap().request;
        request.slots.iter().map(|slot| slot.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(slots(false), ["system", "output_schema", "documents", "query"]);
    assert_eq!(slots(true), ["system", "documents", "query"]);
}

#[test]
fn a_note_follows_the_query() {
    let counter = Counter::cl100k();
    let project = Project::builtin(&counter);
    let recipe = project.recipe("ask/answer").unwrap();
    let input = question(vec![passage("It left at noon.")]);
    let prepared =
        prepare(recipe, &input, LIMITS, (&counter, &counter), Some("Answer in JSON."), ANN).unwrap();
    let [.., query, note] = &prepared.request.slots[..] else { panic!("slots") };
    assert_eq!((&*query.name, &*note.name), (QUERY_SLOT, NOTE));
    assert!(!prepared.citable.contains(NOTE));
}

#[test]
fn tags_are_named_after_inputs() {
    for (input, tag) in [
        ("context.md", "context"),
        ("build logs", "build_logs"),
        ("passages", "passage"),
        (".md", "document"),
    ] {
        assert_eq!(tag_of(input), tag);
    }
}

#[test]
fn a_prompt_with_a_limit_of_its_own_is_packed_for_it() {
    let input = question(vec![passage("It left at noon.")]);
    let window = |limits| prepared("ask/answer", &input, limits).unwrap().request.budget.window;
    let split = ModelLimits { window: 400_000, input_limit: Some(2_000), ..LIMITS };
    let left = 2_000 + 250 + prepared("ask/answer", &input, split).unwrap().request.budget.response_reserve;
    assert_eq!((window(split), window(LIMITS)), (left, 8_000));
}

#[test]
fn documents_of_one_input_count_by_the_words_of_the_query_unless_they_are_ranked() {
    let files = |texts: &[&str]| {
        let file = |text: &&str| InputDocument::whole("source_files", "a.rs", *text);
        RunInput {
            query: Some("Who keeps the granary ledger?".into()),
            documents: texts.iter().map(file).collect(),
            ..RunInput::default()
        }
    };
    let relevance = |input: &RunInput| {
        let limits = ModelLimits { window: 100_000, max_output: 8_000, ..LIMITS };
        let parts = prepared("card/card_agent", input, limits).unwrap().request.parts;
        let files = parts.iter().filter(|part| part.id.starts_with("source_files"));
        files.map(|part| part.relevance).collect::<Vec<_>>()
    };
    let input =
        files(&["Rows of the cache.", "Ada keeps the ledger of the granary.", "The ledger of a ship."]);
    let found = relevance(&input);
    assert!(found[0] < found[2] && found[2] < found[1], "{found:?}");
    assert!((found[0] - 0.25).abs() < 1e-9 && (found[1] - 1.0).abs() < 1e-9, "{found:?}");

    // A single document, documents without a word of the query, and those that the caller has ranked.
    let neutral = |texts: &[&str]| relevance(&files(texts)).iter().all(|one| (one - 1.0).abs() < 1e-9);
    assert!(neutral(&["Rows."]) && neutral(&["Rows.", "Columns."]));
    let mut ranked = input;
    ranked.documents[1].relevance = 0.5;
    assert_eq!(relevance(&ranked), [1.0, 0.5, 1.0]);
}
