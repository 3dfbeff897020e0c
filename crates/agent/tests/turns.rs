//! Golden turns: each flow of `turns/stories` runs with the replies of an excellent model, and the whole folder of the
//! turn is compared with `turns/golden` byte by byte. `LARDER_BLESS=1` writes the golden folders anew.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod turn_support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use larder_agent::turn::background::Background;
use larder_agent::turn::{TurnEvent, TurnOutcome};
use larder_engine::executor::NoopObserver;
use larder_testkit::layers::with_vectors;
use larder_testkit::lived_in;
use larder_testkit::vectors::{DIMENSIONS, ScriptedVectors};
use larder_text::sections::{SectionId, Sections};
use larder_text::tokens::Counter;
use larder_vault::context::{self, TaskPlan, ToolLog, Validation};
use larder_vault::{Mode, TurnMetrics, VaultPath};
use turn_support::story::{self, After, Reply, Story};
use turn_support::{Events, Say, World};

/// What a flow came to.
struct Ran {
    world: World,
    outcome: TurnOutcome,
    files: BTreeMap<String, Vec<u8>>,
}

async fn run(story: &Story, replies: &[Reply]) -> Ran {
    run_in(story.world().await, story, replies).await
}

async fn run_in(world: World, story: &Story, replies: &[Reply]) -> Ran {
    world.says(replies.iter().map(Reply::text));
    let outcome = world.turns.run(&story.request(&world), &world.events).await.unwrap();
    finish(world, outcome, replies).await
}

async fn finish(world: World, outcome: TurnOutcome, replies: &[Reply]) -> Ran {
    if replies.last().is_some_and(|reply| reply.recipe == "phase7_summarizer") {
        world.work_off().await;
    }
    world.cancel_jobs();
    let files = world.files(&outcome.folder);
    Ran { world, outcome, files }
}

impl Ran {
    fn text(&self, name: &str) -> &str {
        let bytes = self.files.get(name).unwrap_or_else(|| panic!("there is no {name}"));
        std::str::from_utf8(bytes).unwrap()
    }

    /// The recipes that ran, by the names that replies use.
    fn check_recipes(&self, replies: &[Reply]) {
        let project = &self.world.turns.engine.project;
        let metrics: TurnMetrics = serde_json::from_str(self.text("metrics.json")).unwrap();
        let ran: Vec<String> = metrics.runs.iter().map(|run| run.recipe.clone()).collect();
        let expected: Vec<String> = replies
            .iter()
            .filter(|reply| reply.recipe != "phase7_summarizer")
            .map(|reply| project.recipe(&reply.recipe).unwrap().id())
            .collect();
        assert_eq!(ran, expected, "recipes");
        assert!(self.world.model.script.lock().unwrap().is_empty(), "replies are left");
    }

    fn check(&self, story: &Story, replies: &[Reply]) {
        self.check_recipes(replies);
        self.check_outcome(&story.after);
        self.check_documents(&story.after);
        self.check_prompts(story, replies);
        assert_eq!(self.outcome.turn, story.turn);
        assert_eq!(
            larder_vault::original_query(self.text("context.md")).as_deref(),
            Some(story.query.as_str())
        );
        assert_eq!(self.world.broken_links(), Vec::<String>::new(), "links of {}", story.story);
        if let Some(most) = story.after.section4_tokens_at_most {
            check_section4(self, most);
        }
    }

    fn check_documents(&self, after: &After) {
        let text = self.text("context.md");
        let at = VaultPath::new(&format!("{}/context.md", self.outcome.folder)).unwrap();
        let sections = Sections::parse(text);
        for (name, count) in &after.attempts {
            let id = SectionId::ALL.into_iter().find(|id| id.heading() == format!("## {name}")).unwrap();
            assert_eq!(sections.attempts(id).count(), *count, "{name}");
        }
        let plan = context::read_newest::<TaskPlan>(text, &at).map(|read| read.value.unwrap());
        assert_eq!(plan.map(|plan| plan.next), after.route, "route");
        let log = context::read_newest::<ToolLog>(text, &at).map(|read| read.value.unwrap());
        let end = log.and_then(|log| log.termination);
        assert_eq!(end.as_ref().map(|end| end.iterations.to_string()), after.iterations, "iterations");
        assert_eq!(end.as_ref().map(|end| end.tool_calls.to_string()), after.tool_calls, "calls");
        if let Some(quality) = after.overall_quality {
            let verdict = context::read_newest::<Validation>(text, &at).unwrap().value.unwrap();
            assert_eq!(verdict.overall_quality().unwrap().get(), quality);
        }
        has("context.md", text, &after.context_has, &after.context_lacks);
    }

    fn check_outcome(&self, after: &After) {
        assert_eq!(self.outcome.status, after.status);
        assert_eq!(self.outcome.unverified, after.unverified, "unverified");
        let answer = self.outcome.answer.clone().unwrap_or_default();
        has("the answer", &answer, &after.answer_has, &after.answer_lacks);
        if let Some(question) = &after.question {
            assert_eq!(self.outcome.question.as_ref(), Some(question));
        }
        let tools = &self.world.tools;
        assert_eq!(*tools.wrong.lock().unwrap(), Vec::<String>::new(), "calls");
        assert_eq!(*tools.called.lock().unwrap(), after.tools_called, "tools");
        assert!(tools.given.lock().unwrap().is_empty(), "results are left");
    }

    /// Expected text is in one of the recipe's prompts, such as that of a second attempt; excluded text is in none.
    fn check_prompts(&self, story: &Story, replies: &[Reply]) {
        let prompts = self.world.model.prompts.lock().unwrap();
        let of = |recipe: &str| {
            let own: Vec<&str> = prompts
                .iter()
                .zip(replies)
                .filter(|(_, reply)| reply.recipe == recipe)
                .map(|(p, _)| p.as_str())
                .collect();
            own.join("\n\u{0}\n")
        };
        for (recipe, wanted) in &story.after.prompts_have {
            has(&format!("each prompt of {recipe}"), &of(recipe), wanted, &[]);
        }
        for (recipe, unwanted) in &story.after.prompts_lack {
            has(&format!("a prompt of {recipe}"), &of(recipe), &[], unwanted);
        }
        for (prompt, reply) in prompts.iter().zip(replies) {
            assert!(prompt.contains(&story.query), "{} does not hold the query", reply.recipe);
        }
    }
}

fn has(what: &str, text: &str, wanted: &[String], unwanted: &[String]) {
    for piece in wanted {
        assert!(text.contains(piece), "{what} lacks {piece:?}:\n{text}");
    }
    for piece in unwanted {
        assert!(!text.contains(piece), "{what} holds {piece:?}:\n{text}");
    }
}

/// Everything that must hold after a flow.
async fn check(flow: &str) {
    let (story, replies) = story::read(flow);
    let ran = run(&story, &replies).await;
    ran.check(&story, &replies);
    compare(flow, &ran.files);
}

#[tokio::test]
async fn every_flow_goes_the_same_way_after_a_year_of_other_turns() {
    let mut flows: Vec<(Story, String)> =
        story::flows().into_iter().map(|flow| (story::read(&flow).0, flow)).collect();
    flows.sort_by_key(|(story, _)| story.now);
    let mut world = World::lived_in("henry", "2025-12-06T00:00:00Z", Mode::Chat);
    for (_, flow) in flows {
        let newest = world.turns.documents.catalog().recent_turns(1, None, None).unwrap()[0].number;
        let (story, replies) = story::read_after(newest, &flow);
        world = story.within(world.later(&story.user, &story.now.to_string(), story.mode)).await;
        let ran = run_in(world, &story, &replies).await;
        ran.check(&story, &replies);
        let prompts = ran.world.model.prompts.lock().unwrap().join("\n");
        for turn in 1..=lived_in::OTHER {
            let secret = lived_in::subject(lived_in::OTHERS_SUBJECTS + turn).secret;
            assert!(!prompts.contains(&secret), "{flow}: of another user: {secret}");
        }
        world = ran.world;
    }
}

/// §4 as every prompt saw it.
fn check_section4(ran: &Ran, most: usize) {
    let counter = Counter::cl100k();
    let prompts = ran.world.model.prompts.lock().unwrap();
    let mut seen = 0;
    for prompt in prompts.iter() {
        let Some(start) = prompt.find(SectionId::ToolExecution.heading()) else { continue };
        let rest = &prompt[start..];
        let end = [SectionId::Synthesis.heading(), "<evidence", "<toolresults"];
        let end = end.iter().filter_map(|mark| rest.find(mark)).min().unwrap_or(rest.len());
        let tokens = counter.count(&rest[..end]);
        assert!(tokens <= most, "§4 takes {tokens} tokens:\n{}", &rest[..end]);
        seen += 1;
    }
    assert!(seen > 1);
    let compacted = |event: &TurnEvent| matches!(event, TurnEvent::Compacted { section: 4, .. });
    assert!(ran.world.events.all().iter().any(compacted), "nothing was compacted");
}

/// The whole folder, byte by byte.
fn compare(flow: &str, files: &BTreeMap<String, Vec<u8>>) {
    let golden = story::root().join("golden").join(flow);
    if std::env::var_os("LARDER_BLESS").is_some() {
        let _ = fs::remove_dir_all(&golden);
        for (name, bytes) in files {
            let path = golden.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        return;
    }
    let mut expected = BTreeMap::new();
    turn_support::walk(&golden, &golden, &mut expected);
    let mut differences = String::new();
    for name in expected.keys().chain(files.keys().filter(|name| !expected.contains_key(*name))) {
        let (was, is) = (expected.get(name), files.get(name));
        if was != is {
            let shown = |bytes: Option<&Vec<u8>>| {
                bytes.map_or("(absent)".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
            };
            let _ = writeln!(differences, "--- {flow}/{name}\n{}\n+++\n{}", shown(was), shown(is));
        }
    }
    assert!(differences.is_empty(), "{differences}\nIf this is meant, run again with LARDER_BLESS=1.");
}

macro_rules! flows {
    ($($name:ident),+ $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            check(stringify!($name)).await;
        })+

        #[test]
        fn every_story_is_run() {
            assert_eq!(story::flows(), [$(stringify!($name)),+]);
        }
    };
}

flows! {
    cached_research, clarify, code_mode, fail, follow_up, multi_goal, over_budget_section4, page_fact, retry,
    revise_twice, single_goal, stock_navigates,
}

/// A resumed turn creates new ids of runs, so each is replaced by its position; and an abandoned phase counts in the
/// totals, which are therefore higher than those of an uninterrupted turn.
fn without_ids(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, String> {
    let metrics: TurnMetrics = serde_json::from_slice(&files["metrics.json"]).unwrap();
    let named = |(name, bytes): (&String, &Vec<u8>)| {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        for (at, run) in metrics.runs.iter().enumerate() {
            text = text.replace(&run.run, &format!("run {at}"));
        }
        if name.starts_with("metrics.json") {
            let lines = text
                .lines()
                .filter(|line| !["total_tokens", "total_cost"].iter().any(|it| line.contains(it)));
            text = lines.collect::<Vec<_>>().join("\n");
        }
        (name.clone(), text)
    };
    files.iter().map(named).collect()
}

/// Runs a flow that is stopped before its reply number `stop`, by a model that fails or by a caller that stops waiting.
async fn stopped(story: &Story, replies: &[Reply], stop: usize, hang: bool) -> Ran {
    let world = story.world().await;
    let end = if hang { Say::Hang } else { Say::Fail };
    let texts = |replies: &[Reply]| replies.iter().map(|reply| Say::Text(reply.text())).collect::<Vec<_>>();
    world.script(texts(&replies[..stop]).into_iter().chain([end]));
    let given = world.tools.given.lock().unwrap().clone();
    let request = story.request(&world);
    let turn = world.turns.run(&request, &world.events);
    let waited =
        tokio::time::timeout(std::time::Duration::from_millis(if hang { 1_500 } else { 60_000 }), turn).await;
    assert!(!matches!(waited, Ok(Ok(_))), "the turn was not stopped");
    let drafts = world.turns.documents.drafts().list().unwrap();
    assert_eq!(drafts.len(), 1);
    assert!(world.turns.documents.catalog().turn(story.turn).unwrap().is_none(), "half a turn is there");
    // Calls after the last checkpoint are made again.
    let made = checkpointed_calls(&world, story.turn);
    *world.tools.given.lock().unwrap() = given.into_iter().skip(made).collect();
    let again = replies_before(&world, story.turn);
    world.script(texts(&replies[again..]));
    let outcome = world.turns.resume(story.turn, &Events::default()).await.unwrap();
    assert_eq!(outcome.usage.input + outcome.usage.output, world.took(), "every answer is paid for once");
    finish(world, outcome, replies).await
}

fn checkpointed_calls(world: &World, turn: u32) -> usize {
    let draft = world.turns.documents.drafts().get(turn).unwrap().unwrap();
    usize::try_from(draft.state["tool_calls"].as_u64().unwrap()).unwrap()
}

fn replies_before(world: &World, turn: u32) -> usize {
    let draft = world.turns.documents.drafts().get(turn).unwrap().unwrap();
    draft.state["runs"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_turn_that_was_stopped_anywhere_goes_on_as_if_nothing_had_happened() {
    for flow in ["single_goal", "multi_goal", "retry", "over_budget_section4", "cached_research"] {
        let (story, replies) = story::read(flow);
        let whole = without_ids(&run(&story, &replies).await.files);
        let asked = replies.iter().filter(|reply| reply.recipe != "phase7_summarizer").count();
        for stop in 0..asked {
            let resumed = stopped(&story, &replies, stop, false).await;
            let files = without_ids(&resumed.files);
            for (name, text) in &whole {
                assert_eq!(files.get(name), Some(text), "{flow} stopped at {stop}: {name}");
            }
            assert_eq!(files.len(), whole.len());
        }
    }
}

#[tokio::test]
async fn stale_research_gives_section_2_no_prices() {
    let (story, replies) = story::read("cached_research");
    for (hours, is_stale) in [(0, false), (10, true)] {
        let world = story.world().await;
        world.clock.0.fetch_add(hours * 3_600_000, std::sync::atomic::Ordering::SeqCst);
        world.says(replies.iter().map(Reply::text));
        let outcome = world.turns.run(&story.request(&world), &world.events).await.unwrap();
        let context = world.text(&outcome.folder, "context.md");
        assert_eq!(context.contains("Top Results"), !is_stale, "{context}");
        assert_eq!(context.contains("Stale research, look up prices and stock again: "), is_stale);
    }
}

#[tokio::test]
async fn a_turn_whose_caller_left_goes_on() {
    let (story, replies) = story::read("single_goal");
    let whole = without_ids(&run(&story, &replies).await.files);
    for stop in [0, 5, 8] {
        let resumed = stopped(&story, &replies, stop.min(replies.len() - 2), true).await;
        assert_eq!(without_ids(&resumed.files), whole, "stopped at {stop}");
    }
}

#[tokio::test]
async fn a_turn_whose_query_has_no_vector_is_the_turn_that_it_would_be_without() {
    let (story, replies) = story::read("follow_up");
    let whole = without_ids(&run(&story, &replies).await.files);
    let mut world = story.world().await;
    world.turns.embedding = Some("vectors".to_owned());
    world.says(replies.iter().map(Reply::text));
    let outcome = world.turns.run(&story.request(&world), &world.events).await.unwrap();
    let said = |event: &TurnEvent| match event {
        TurnEvent::Warning { text } => {
            text.contains("searched by words only, since vectors returned no vector")
        }
        _ => false,
    };
    assert!(world.events.all().iter().any(said));
    let ran = finish(world, outcome, &replies).await;
    assert!(ran.text("receipts.json").contains("searched by words only"));
    let files = without_ids(&ran.files);
    assert_eq!(files.len(), whole.len());
    for (name, text) in whole.iter().filter(|(name, _)| !name.starts_with("receipts.json")) {
        assert_eq!(files.get(name), Some(text), "{name}");
    }
}

#[tokio::test]
async fn turns_get_vectors_behind_them_and_are_found_by_them() {
    let (story, replies) = story::read("follow_up");
    let mut world = story.world().await;
    let vectors = Arc::new(ScriptedVectors::of(|_| "everything means the same".to_owned()));
    let models = with_vectors(world.model.clone(), vectors.clone(), &world.vault(), 32_000, 2_000);
    world.turns.engine.models = Arc::new(models);
    world.turns.embedding = Some("vectors".to_owned());
    let background = Background {
        engine: world.turns.engine.clone(),
        documents: world.turns.documents.clone(),
        embedding: world.turns.embedding.clone(),
    };
    let earlier = background.embed(story.turn - 1, &NoopObserver).await.unwrap();
    assert!(earlier > 0);
    let asked = vectors.texts().len();
    world.says(replies.iter().map(Reply::text));
    let outcome = world.turns.run(&story.request(&world), &world.events).await.unwrap();
    let texts = &vectors.texts()[asked..];
    assert_eq!(texts.len(), 1, "the query");
    let words = texts[0].split_whitespace().count() as u64;
    assert_eq!(outcome.usage.input + outcome.usage.output, world.took() + words, "vectors are paid for");
    world.work_off().await;
    let kept = format!("embedded/vectors/{DIMENSIONS}");
    assert_eq!(world.turns.documents.vectors().missing(&kept, 1..=story.turn).unwrap(), []);
    assert!(vectors.texts().len() > asked + 1, "the turn says something");
    let ran = finish(world, outcome, &[]).await;
    assert!(ran.text("receipts.json").contains("its meaning is near"));
}

#[tokio::test]
async fn a_turn_that_may_spend_nothing_more_asks_for_no_vector() {
    let (story, replies) = story::read("follow_up");
    let mut world = story.world().await;
    let vectors = Arc::new(ScriptedVectors::of(str::to_owned));
    let models = with_vectors(world.model.clone(), vectors.clone(), &world.vault(), 32_000, 2_000);
    world.turns.engine.models = Arc::new(models);
    world.turns.embedding = Some("vectors".to_owned());
    world.turns.limits.tokens = Some(1);
    world.says(replies.iter().map(Reply::text));
    let _ = world.turns.run(&story.request(&world), &world.events).await;
    assert_eq!(vectors.texts(), Vec::<String>::new());
}
