//! Condensing by a model, with a model that does what a test needs: its words are taken when they keep every
//! guarantee, and otherwise the text is condensed by rule.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use larder_condense::rewrite::HISTORY_HEADINGS;
use larder_condense::{CondenseRequest, Condensed, ContentType};
use larder_core::pack::Rendition;
use larder_engine::executor::{CondensingTally, NoopObserver};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_models::chat::{ChatModel, ModelError};
use larder_store::{RunFilter, RunRecord, Store, StoreOptions};
use larder_testkit::events::Events;
use larder_testkit::layers::{Answering, every_layer};
use larder_testkit::scripted::{Act, ScriptedModel, text};
use larder_text::tokens::Counter;
use tempfile::TempDir;

struct Shop {
    engine: Engine,
    _dir: TempDir,
}

fn shop(model: Arc<dyn ChatModel>, policy: RunPolicy) -> Shop {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap().user("tester").unwrap();
    let models = every_layer(model, dir.path(), 8_000, 1_000);
    let project = Project::builtin(&Counter::cl100k());
    let engine = Engine::new(project, models, store, policy, Box::new(|_| None)).unwrap();
    Shop { engine, _dir: dir }
}

fn by_model() -> RunPolicy {
    RunPolicy { use_llm_summarizer: true, ..RunPolicy::default() }
}

fn answering(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Shop {
    shop(Arc::new(Answering::new(answer)), by_model())
}

fn scripted(acts: impl IntoIterator<Item = Act>) -> (Shop, Arc<ScriptedModel>) {
    let model = Arc::new(ScriptedModel::new(acts));
    (shop(Arc::clone(&model) as Arc<dyn ChatModel>, by_model()), model)
}

impl Shop {
    async fn condense(
        &self,
        words: &str,
        content_type: ContentType,
        target: usize,
    ) -> (Condensed, CondensingTally) {
        self.condense_with(words, content_type, target, &[]).await
    }

    async fn condense_with(
        &self,
        words: &str,
        content_type: ContentType,
        target: usize,
        pins: &[String],
    ) -> (Condensed, CondensingTally) {
        let counter = Counter::cl100k();
        let key = self.engine.store.key();
        let request =
            CondenseRequest { text: words, content_type, target, query: None, pins, counter: &counter, key };
        let (condensed, tally) = self.engine.condense(&request, "notes.txt", &NoopObserver).await.unwrap();
        assert!(condensed.tokens <= target && condensed.tokens == counter.count(&condensed.text));
        assert!(pins.iter().all(|pin| condensed.text.contains(pin.as_str())));
        let original = self.engine.store.pointers().resolve(&condensed.pointer).unwrap();
        assert_eq!(original, words.as_bytes(), "the way back");
        (condensed, tally)
    }

    /// Condenses a text that the model cannot handle: it must come out by rule, and say why.
    async fn condense_by_rule(&self, why: &str) -> CondensingTally {
        let (condensed, tally) = self.condense(&prose(120), ContentType::Prose, 200).await;
        assert_eq!(condensed.author, None);
        assert!(tally.failures.iter().any(|failure| failure.contains(why)), "{why}: {tally:?}");
        assert_eq!(tally.renditions, 0);
        assert!(self.engine.store.interventions().list(false).unwrap().is_empty(), "no human is troubled");
        tally
    }

    fn runs(&self) -> Vec<RunRecord> {
        self.engine.store.runs().list(&RunFilter::default()).unwrap()
    }
}

/// About 13 tokens a sentence.
fn prose(sentences: usize) -> String {
    let one = "The council met in the old hall and talked about the bridge again. ";
    one.repeat(sentences).trim_end().to_owned()
}

#[tokio::test]
async fn good_summaries_are_taken_and_say_who_wrote_them() {
    let shop = answering(|_| "The council talked about the bridge. ".repeat(6));
    let (condensed, tally) = shop.condense(&prose(120), ContentType::Prose, 300).await;
    let author = condensed.author.unwrap();
    assert_eq!((author.model.as_str(), author.recipe.as_str()), ("m", "compress/generic"));
    assert!(condensed.text.contains("The council talked about the bridge."));
    assert!(tally.calls >= 1, "{tally:?}");
    assert!(tally.cost.is_some() && tally.usage.input > 0 && tally.failures.is_empty(), "{tally:?}");
    let runs = shop.runs();
    assert_eq!(runs.len(), tally.calls, "each call has its record");
    assert!(
        runs.iter()
            .all(|run| run.facts.recipe == "generic"
                && run.facts.tokens.prompt + run.facts.tokens.input <= 800)
    );
}

#[tokio::test]
async fn the_second_time_comes_from_the_cache() {
    // One chunk: the shares of several differ with the tokens of the pointer, which the key of the store decides.
    let (shop, words) = (answering(|_| "The council talked about the bridge. ".repeat(8)), prose(14));
    let (first, tally) = shop.condense(&words, ContentType::Prose, 150).await;
    assert_eq!(tally.calls, 1);
    let (second, tally) = shop.condense(&words, ContentType::Prose, 150).await;
    assert_eq!(first, second);
    assert_eq!((tally.calls, tally.cached, tally.renditions), (0, 1, 1));
    let (_, other) = shop.condense(&words, ContentType::Prose, 140).await;
    assert_eq!((other.calls, other.cached), (0, 0), "a chunk's summary serves for less room");
    let pins = ["The council met in the old hall".to_owned()];
    let (_, other) = shop.condense_with(&words, ContentType::Prose, 150, &pins).await;
    assert!(other.calls > 0, "so are other pins");
}

#[tokio::test]
async fn what_was_refused_is_not_asked_for_again() {
    let shop = answering(|_| "The bridge costs $48,000.".to_owned());
    let first = shop.condense_by_rule("$48,000").await;
    assert!(first.calls > 0);
    let again = shop.condense_by_rule("what the model wrote before was refused").await;
    assert_eq!(again.calls, 0, "{again:?}");
    // A longer text begins with the same chunk.
    let (condensed, longer) = shop.condense(&prose(300), ContentType::Prose, 600).await;
    assert_eq!((condensed.author, longer.calls), (None, 0), "{longer:?}");
    let another = prose(120).replace("bridge", "harbour");
    let (_, other) = shop.condense(&another, ContentType::Prose, 200).await;
    assert!(other.calls > 0, "{other:?}");
}

#[tokio::test]
async fn pins_and_pointers_that_the_model_drops_are_put_back_by_code() {
    let shop = answering(|_| "They met. ".repeat(14));
    let pointer =
        shop.engine.store.pointers().insert(b"other", "part", "other").unwrap().pointer_id.to_string();
    let pin = "Budget line 7 must not be cut".to_owned();
    let words = format!("{} {pin}. {} {pointer} {}", prose(30), prose(30), prose(30));
    let (condensed, _) = shop.condense_with(&words, ContentType::Prose, 300, &[pin]).await;
    assert!(condensed.author.is_some() && condensed.text.contains(&pointer), "{}", condensed.text);
}

#[tokio::test]
async fn tags_repeated_by_the_model_are_removed() {
    let shop = answering(|_| {
        format!("<text_to_compress id=\"x\">\n{}\n</text_to_compress>", "They met. ".repeat(28).trim_end())
    });
    let (condensed, _) = shop.condense(&prose(30), ContentType::Prose, 200).await;
    assert!(
        condensed.text.contains("]\nThey met.") && condensed.text.ends_with("They met.\n"),
        "{}",
        condensed.text
    );
}

#[tokio::test]
async fn telling_details_that_the_model_drops_are_put_back_while_there_is_room() {
    let shop = answering(|_| "They met. ".repeat(24));
    let words = format!("{} See https://bridge.example/plan for $12,500.75. {}", prose(20), prose(20));
    let (condensed, _) = shop.condense(&words, ContentType::Prose, 300).await;
    assert!(condensed.author.is_some());
    assert!(condensed.text.contains("https://bridge.example/plan") && condensed.text.contains("$12,500.75"));
    assert_eq!(condensed.probes.lost, 0);
}

#[tokio::test]
async fn a_model_that_only_repeats_is_replaced() {
    let shop = answering(|_| "and they talked and talked about the bridge ".repeat(60));
    let tally = shop.condense_by_rule("smaller").await;
    assert!(tally.calls > 0);
}

#[tokio::test]
async fn a_model_that_makes_up_a_number_is_replaced() {
    let shop = answering(|_| "The bridge costs $48,000.".to_owned());
    shop.condense_by_rule("$48,000").await;
}

#[tokio::test]
async fn an_empty_reply_and_an_error_are_replaced_and_stop_the_other_calls() {
    let failures = [
        (Act::Say(Ok(text(""))), "generic"),
        (Act::Say(Ok(text("   \n "))), "generic"),
        (
            Act::Say(Err(ModelError::Server { provider: "m".into(), status: 500, detail: "broken".into() })),
            "500",
        ),
    ];
    for (act, why) in failures {
        let (shop, model) = scripted(vec![act; 4]);
        let tally = shop.condense_by_rule(if why == "500" { "500" } else { "" }).await;
        assert!(tally.calls <= 4, "{tally:?}");
        assert_eq!(model.requests().len(), tally.calls, "no other layer is asked");
        assert!(shop.runs().iter().all(|run| run.facts.status != larder_store::RunStatus::Intervention));
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_is_left_at_its_timeout() {
    let (shop, _) = scripted([Act::Hang, Act::Hang, Act::Hang, Act::Hang]);
    shop.condense_by_rule("no answer within 30000 ms").await;
    assert!(shop.runs().iter().all(|run| run.facts.error.as_deref() == Some("timeout")));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_all_calls_together_is_bounded() {
    let slow = Act::After(
        Duration::from_secs(20),
        Box::new(Act::Say(Ok(text("They met in the old hall and talked about the bridge.")))),
    );
    let model = Arc::new(ScriptedModel::new(vec![slow; 100]));
    let policy = RunPolicy { summarizer_timeout: Duration::from_secs(30), ..by_model() };
    let shop = shop(Arc::clone(&model) as Arc<dyn ChatModel>, policy);
    let (condensed, tally) = shop.condense(&prose(1200), ContentType::Prose, 1000).await;
    assert_eq!(condensed.author, None);
    assert!(tally.failures[0].contains("summarizer_timeout_s"), "{tally:?}");
    assert!(tally.calls <= 8, "four at a time, two times 20 s: {tally:?}");
}

#[tokio::test]
async fn a_text_that_would_take_too_many_calls_is_condensed_by_rule_at_once() {
    let (shop, _) = scripted([]);
    let (condensed, tally) = shop.condense(&prose(9_000), ContentType::Prose, 1000).await;
    assert_eq!((condensed.author, tally.calls), (None, 0));
    assert!(tally.failures[0].contains("200"), "{tally:?}");
}

#[tokio::test]
async fn a_text_that_fits_needs_no_model() {
    let (shop, _) = scripted([]);
    let (condensed, tally) = shop.condense("Short.", ContentType::Prose, 300).await;
    assert_eq!((condensed.text.as_str(), tally), ("Short.", CondensingTally::default()));
}

#[tokio::test]
async fn summaries_that_are_still_too_long_are_summarised_again() {
    let round = Mutex::new(0);
    let shop = answering(move |prompt| {
        let mut round = round.lock().unwrap();
        *round += 1;
        let again = prompt.contains("They talked of the bridge.");
        if again { "Bridge talk. ".repeat(14) } else { "They talked of the bridge. ".repeat(12) }
    });
    let (condensed, tally) = shop.condense(&prose(300), ContentType::Prose, 200).await;
    assert!(condensed.author.is_some(), "{tally:?}");
    assert!(
        condensed.text.contains("Bridge talk.") && !condensed.text.contains("They talked"),
        "{}",
        condensed.text
    );
}

#[tokio::test]
async fn a_context_keeps_its_query_its_headings_and_its_newest_section() {
    let shop = answering(|_| "Talk of bridges. ".repeat(6));
    let words = format!(
        "# Context\n\n## 0. User Query\nWhich bridge is the oldest?\n\n## 2. Gathered Context\n{}\n\n## 5. Synthesis\nThe stone bridge, most likely.\n",
        prose(100)
    );
    let (condensed, _) = shop.condense(&words, ContentType::ContextDoc, 250).await;
    let author = condensed.author.unwrap();
    assert_eq!(author.recipe, "compress/compress_context");
    for kept in [
        "## 0. User Query\nWhich bridge is the oldest?\n",
        "## 2. Gathered Context\nTalk of bridges.",
        "## 5. Synthesis\nThe stone bridge, most likely.\n",
    ] {
        assert!(condensed.text.contains(kept), "{kept:?} in {}", condensed.text);
    }
}

#[tokio::test]
async fn a_conversation_becomes_one_summary_under_five_headings() {
    let mut sections = HISTORY_HEADINGS.map(|heading| format!("{heading}\nNone."));
    sections[0] = format!("{}\n{}", HISTORY_HEADINGS[0], "Mend the bridge page and ".repeat(45));
    let summary = sections.join("\n\n");
    let shop = answering(move |_| summary.clone());
    let words = "user: please mend the bridge page\nassistant: it is mended\n".repeat(400);
    let (condensed, tally) = shop.condense(&words, ContentType::Chat, 500).await;
    assert!(tally.calls >= 3, "three chunks: {tally:?}");
    assert_eq!(condensed.author.unwrap().recipe, "compress/compress_history");
    assert_eq!(condensed.text.matches("## Key Decisions").count(), 1);
}

#[tokio::test]
async fn zones_of_low_confidence_are_left_out_of_a_page() {
    let zones = r#"{"zones": [{"type": "pricing", "confidence": 0.9, "content": "Lamp of brass with a shade of green glass, made by hand in the old workshop by the river, sold with a cord of two metres and a bulb that lasts for years"}, {"type": "navigation", "confidence": 0.3, "content": "Home"}]}"#;
    let shop = answering(move |_| zones.to_owned());
    let page = format!(
        "## pricing (0.9)\nLamp of brass\n\n## navigation (0.3)\nHome\n\n## reviews (0.9)\n{}",
        prose(14)
    );
    let (condensed, tally) = shop.condense(&page, ContentType::PageDoc, 100).await;
    assert!(condensed.author.is_some(), "{tally:?}");
    assert!(condensed.text.contains("pricing (confidence 0.9): Lamp") && !condensed.text.contains("Home"));
}

/// A run of a recipe whose document is far too long, with a model that summarises chunks and answers the query.
async fn run_with(policy: RunPolicy) -> (Shop, larder_engine::executor::RunOutcome) {
    let answer = |prompt: &str| {
        let chunk = prompt.contains("shortened text alone");
        if chunk {
            "The council talked about the bridge. ".repeat(20)
        } else {
            "It was about the bridge.".to_owned()
        }
    };
    let shop = shop(Arc::new(Answering::new(answer)), policy);
    let mut input = RunInput { query: Some("What was it about?".to_owned()), ..RunInput::default() };
    input.documents.push(InputDocument::whole("document", "minutes.txt", prose(900)));
    let outcome = shop.engine.run("summarize/summarize", &input, &NoopObserver).await.unwrap();
    (shop, outcome)
}

#[tokio::test]
async fn a_run_condenses_by_model_where_the_policy_asks_for_it() {
    let (shop, outcome) = run_with(by_model()).await;
    assert_eq!(outcome.reply.trim(), "It was about the bridge.");
    let receipt = &outcome.receipt.receipt;
    let part = receipt.parts.iter().find(|part| &*part.source == "minutes.txt").unwrap();
    assert_eq!(part.rendition, Rendition::Condensed);
    assert_eq!(part.author.as_ref().unwrap().recipe, "compress/generic");
    assert!(receipt.total <= receipt.budget.available);
    let tally = outcome.receipt.condensing.as_ref().unwrap();
    assert!(tally.calls > 0 && tally.cost.is_some() && tally.renditions == 1, "{tally:?}");
    let original = shop.engine.store.pointers().resolve(part.pointer.as_ref().unwrap()).unwrap();
    assert_eq!(original, prose(900).into_bytes());
    assert_eq!(shop.runs().len(), tally.calls + 1);
}

#[tokio::test]
async fn section_4_is_condensed_by_the_recipe_for_tool_results() {
    let shop = answering(|_| "The council talked about the bridge. ".repeat(20));
    let context = format!(
        "## 0. User Query\n\n**Original:** What was said?\n\n## 4. Tool Execution\n\n{}\n\n## 5. Synthesis\n\nThe bridge.\n",
        prose(300)
    );
    let mut input = RunInput::default();
    input.documents.push(InputDocument::whole("context.md", "context.md", context));
    // Whatever becomes of the answer, the prompt was packed.
    let _ = shop.engine.run("pipeline/phase6_validator", &input, &NoopObserver).await;
    let recipes: Vec<String> = shop.runs().into_iter().map(|run| run.facts.recipe).collect();
    assert!(recipes.iter().any(|recipe| recipe == "compress_tool_result"), "{recipes:?}");
}

#[tokio::test]
async fn a_run_condenses_by_rule_where_the_policy_does_not_ask() {
    let (shop, outcome) = run_with(RunPolicy::default()).await;
    assert!(outcome.receipt.condensing.is_none());
    assert!(outcome.receipt.receipt.parts.iter().all(|part| part.author.is_none()));
    assert_eq!(shop.runs().len(), 1);
}

#[tokio::test]
async fn condensing_logs_sizes_and_names_only() {
    let events = Events::default();
    let logging = tracing::subscriber::set_default(events.clone());
    let (_shop, outcome) = run_with(by_model()).await;
    drop(logging);
    let parts = &outcome.receipt.receipt.parts;
    let part = parts.iter().find(|part| &*part.source == "minutes.txt").unwrap();
    let logged = events.named("smart_summarization");
    let [event] = logged.as_slice() else { panic!("one part was condensed: {logged:?}") };
    for (field, value) in [
        ("event", "compressed"),
        ("compressed_tokens", part.tokens.to_string().as_str()),
        ("recipe", "compress/generic"),
        ("model_layer", "NERVES"),
        ("run_id", outcome.run_id.as_str()),
    ] {
        assert_eq!(event[field], value, "{field}");
    }
    let original: usize = event["original_tokens"].parse().unwrap();
    assert!(original >= Counter::cl100k().count(&prose(900)), "{event:?}");
    assert_eq!(event["compression_ratio"], (part.tokens as f64 / original as f64).to_string());
    assert!(!event["content_type"].is_empty() && !event.values().any(|value| value.contains("bridge")));
}
