//! Selecting places in files and stored texts: they come in order, with pointers that resolve, and reading stops when
//! the caller stops waiting.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use larder_agent::ask::{AskAnswer, AskError, Asker, Question};
use larder_engine::config::Config;
use larder_engine::executor::{NoopObserver, ProgressObserver, RunReceipt};
use larder_engine::project::Project;
use larder_engine::settings::{AnswerMode, AskLimits, AskSettings, Planner};
use larder_engine::{Engine, RunPolicy};
use larder_models::connect::Models;
use larder_models::table::ModelTable;
use larder_store::{Selection, Store, StoreOptions};
use larder_testkit::scripted::ScriptedModel;
use larder_text::tokens::Counter;
use tempfile::TempDir;

fn shop() -> (Engine, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap().user("ann").unwrap();
    let models = Models::new(Config::builtin().models().clone(), dir.path(), &|_| None);
    let project = Project::builtin(&Counter::cl100k());
    let engine = Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap();
    for (name, text) in [
        ("a.txt", "one\ntwo\nthree\n"),
        ("b.json", r#"{"items": [{"id": 1}, {"id": [2, 3]}]}"#),
        ("c.txt", "two again"),
    ] {
        let path = dir.path().join("files").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    (engine, dir)
}

#[test]
fn places_come_in_order_with_pointers_that_hold() {
    let (engine, dir) = shop();
    let stored = engine.store.pointers().insert(b"zero\nor two\n", "document", "held").unwrap().pointer_id;
    let paths = [PathBuf::from(stored.to_string()), dir.path().join("files")];
    for (selection, most, wanted) in [
        (Selection::grep("two").unwrap(), 9, &[("or two\n", 2), ("two\n", 2), ("two again", 1)][..]),
        (Selection::grep("two").unwrap(), 2, &[("or two\n", 2), ("two\n", 2)]),
        (Selection::path("$.items[1]..*").unwrap(), 9, &[("[2, 3]", 1), ("2", 1), ("3", 1)]),
        (Selection::lines("3:3").unwrap(), 9, &[("three\n", 3)]),
        (Selection::grep("four").unwrap(), 9, &[]),
    ] {
        let (quotes, search) = Asker::new(&engine, &NoopObserver).select(&paths, &selection, most).unwrap();
        let found: Vec<_> = quotes.iter().map(|quote| (quote.text.as_str(), quote.lines.0)).collect();
        assert_eq!(found, wanted, "{selection:?}");
        assert!(search.files >= 2, "{search:?}");
        for quote in quotes {
            assert_eq!(engine.store.pointers().resolve(&quote.pointer).unwrap(), quote.text.as_bytes());
        }
    }
}

struct Gone;

impl ProgressObserver for Gone {
    fn stage(&self, _: &str) {}
    fn packed(&self, _: &RunReceipt) {}
    fn is_wanted(&self) -> bool {
        false
    }
}

#[test]
fn reading_stops_when_the_caller_leaves() {
    let (engine, dir) = shop();
    let paths = [dir.path().join("files")];
    let selected = Asker::new(&engine, &Gone).select(&paths, &Selection::grep("two").unwrap(), 9);
    assert!(matches!(selected, Err(AskError::Cancelled)));
    let asking = Config::builtin().asking();
    let question = Question { text: "two?", paths: &paths, recipe: "ask/answer", asking };
    assert!(matches!(Asker::new(&engine, &Gone).quote(&question, 9), Err(AskError::Cancelled)));
}

/// Keeps what is reported.
#[derive(Default)]
struct Reports(std::sync::Mutex<Vec<String>>);

impl ProgressObserver for Reports {
    fn stage(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
    fn progress(&self, done: u64, total: u64) {
        self.stage(&format!("{done} of {total}"));
    }
    fn packed(&self, _: &RunReceipt) {
        self.stage("packed");
    }
}

#[tokio::test]
async fn a_written_answer_reports_what_was_read_and_whom_it_waits_for() {
    let (mut engine, dir) = shop();
    let model = ScriptedModel::saying([r#"{"answer": "After one comes two.", "citations": ["p1"]}"#]);
    engine.models = Arc::new(Models::single(Arc::new(model), "cl100k_base", 8_000, 1_000).unwrap());
    let limits = AskLimits::default();
    let asking = AskSettings { answer: AnswerMode::Generate, planner: Planner::Rules, limits };
    let paths = [dir.path().join("files")];
    let question = Question { text: "What comes after one?", paths: &paths, recipe: "ask/answer", asking };
    let reports = Reports::default();
    Asker::new(&engine, &reports).ask(&question).await.unwrap();
    let reports = reports.0.into_inner().unwrap();
    assert_eq!(
        reports,
        ["looking for files", "reading 3 files", "61 of 61", "packed", "asking own"],
        "the model is asked last"
    );
}

const TABLE: &str = "
[models.layers]
MIND = \"big\"
VOICE = \"voice\"

[models.big]
provider = \"embedded\"
id = \"big\"
window = 32000
max_output = 1000
fallback = \"spare\"

[models.spare]
provider = \"replay\"
folder = \"none\"
id = \"spare\"
window = 8000
max_output = 1000

[models.voice]
provider = \"embedded\"
id = \"voice\"
window = 8000
max_output = 1000
";

#[test]
fn a_question_reaches_its_planner_where_a_model_plans() {
    let (mut engine, dir) = shop();
    engine.models = Arc::new(Models::new(ModelTable::parse(TABLE).unwrap(), dir.path(), &|_| None));
    let names = |planner| {
        let asking = AskSettings { answer: AnswerMode::Generate, planner, limits: AskLimits::default() };
        let question = Question { text: "Who?", paths: &[], recipe: "ask/answer", asking };
        question.reach(&engine).names().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(Planner::Rules), ["voice"]);
    assert_eq!(names(Planner::Model), ["big", "spare", "voice"]);
}

/// Answers by quoting from one file.
async fn quoted(name: &str, text: &str, question: &str) -> AskAnswer {
    let (engine, dir) = shop();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let limits = AskLimits::default();
    let asking = AskSettings { answer: AnswerMode::Quote, planner: Planner::Rules, limits };
    let question = Question { text: question, paths: &[path], recipe: "ask/answer", asking };
    Asker::new(&engine, &NoopObserver).ask(&question).await.unwrap()
}

#[tokio::test]
async fn words_that_a_sentence_begins_with_find_it() {
    let notes = "# Notes\n\nThe import of old orders fails with ERROR 1205. Bread costs 3 EUR.\n";
    for question in ["import of old orders", "The import of old orders fails"] {
        let answer = quoted("notes.md", notes, question).await;
        let text = answer.claims.first().map(|claim| claim.text.as_str()).unwrap_or_default();
        assert!(text.contains("ERROR 1205"), "{question}: {answer:?}");
    }
}

#[tokio::test]
async fn a_number_counts_for_what_it_is_the_number_of() {
    let gate = |at: usize| {
        format!(
            "# Gate {at}\n\nThe warden of gate {at} is Person{at}. The toll is {} crowns since 2020.\n\n",
            at * 3
        )
    };
    let notes: String = (1..20).map(gate).collect();
    for (question, told) in [
        ("How high is the toll at gate 12?", "36 crowns"),
        ("How many crowns at gate 3?", "9 crowns"),
        ("warden of gate 12", "Person12"),
        ("warden of gate 1?", "Person1."),
    ] {
        let answer = quoted("gates.md", &notes, question).await;
        let text = answer.claims.first().map(|claim| claim.text.as_str()).unwrap_or_default();
        assert!(text.contains(told), "{question}: {answer:?}");
    }
}

#[tokio::test]
async fn a_question_that_a_file_only_repeats_is_not_answered_by_it() {
    let question = "What is the capital of France?";
    let code = "//! Tests of the model.\n\nfn asks() {\n    let request = ask(&format!(\"{text}\\nWhat is the capital of France?\"), 40);\n    model.chat(&request);\n}\n";
    let answer = quoted("model.rs", code, question).await;
    assert!(!answer.verified, "{answer:?}");
    assert!(answer.claims.iter().all(|claim| !claim.text.contains("France")), "{answer:?}");
    let other = "Under it are other names: variables in capitals, keys in small letters.\n";
    let answer = quoted("settings.md", other, question).await;
    assert!(!answer.verified, "{answer:?}");
    let notes = "What is the capital of France? Many ask that.\n\nThe capital of France is Paris.\n";
    let answer = quoted("notes.md", notes, question).await;
    assert!(answer.verified, "{answer:?}");
    assert_eq!(answer.claims[0].text, "The capital of France is Paris.");
}
