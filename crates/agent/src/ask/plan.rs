//! The planner by model: recipe `ask/plan` says what to do next, this does it, until the model has enough or a limit
//! is reached. Whatever it does wrong, what was found by rule stays.

use std::collections::BTreeSet;

use futures::future::{BoxFuture, FutureExt};
use larder_core::recipe::{Layer, Recipe};
use larder_models::table::{Capability, ModelSpec, Provider};
use larder_store::Selection;
use serde::Deserialize;
use serde_json::Value;

use super::passages::{Finding, Passages, Place};
use super::{AskError, Asker, Question, SearchReport, run_input};
use larder_engine::Engine;
use larder_engine::executor::{Purpose, Reach};
use larder_engine::settings::Planner;

/// The recipe that plans.
const PLAN_RECIPE: &str = "ask/plan";
/// A model with a smaller window has no room for what it finds.
const ABLE_WINDOW: usize = 8_000;
/// Passages that one action adds at most.
const PER_ACTION: usize = 8;
/// Actions in a row that find nothing new, after which there is nothing more to be had.
const FRUITLESS: usize = 2;
/// Characters of a step that its log line shows.
const SHOWN_CHARS: usize = 120;
/// What a passage counts for that a model asked for: as much as the best by rule.
const ASKED_FOR: f64 = 1.0;

/// What a model wants next, as recipe `ask/plan` has it say.
#[derive(Debug, Deserialize)]
struct Wish {
    action: Action,
    #[serde(default)]
    text: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    first_line: usize,
    #[serde(default)]
    last_line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Search,
    Grep,
    Read,
    Json,
    Ask,
    Answer,
}

/// What one level of planning may still spend, and what it has found.
struct State<'a> {
    question: &'a str,
    depth: usize,
    calls: usize,
    tokens: u64,
    found: Vec<Finding>,
    seen: BTreeSet<Place>,
}

impl Question<'_> {
    /// Every model that answering may ask. It asks none where its recipe is not there.
    pub fn reach(&self, engine: &Engine) -> Reach {
        let recipe = engine.own_or_shipped(self.recipe);
        let is_quoted = recipe.is_ok_and(|recipe| self.is_quoted(engine, recipe));
        let planning = self.is_planned_by_model(engine, is_quoted).then_some(PLAN_RECIPE);
        let answering = (!is_quoted).then_some(self.recipe);
        let mut reach = Reach::default();
        for name in planning.into_iter().chain(answering) {
            if let Ok(recipe) = engine.own_or_shipped(name) {
                reach.join(engine.reach(recipe, None));
            }
        }
        reach
    }

    /// Whether answering asks a model.
    ///
    /// # Errors
    /// When its recipe is not there.
    pub fn asks_model(&self, engine: &Engine) -> Result<bool, AskError> {
        let is_quoted = self.is_quoted(engine, engine.own_or_shipped(self.recipe)?);
        Ok(!is_quoted || self.is_planned_by_model(engine, is_quoted))
    }

    /// A quoted answer asks no model unless the question says so.
    fn is_planned_by_model(&self, engine: &Engine, is_quoted: bool) -> bool {
        let able = || engine.candidate(Layer::Mind, None).is_ok_and(|candidate| is_able(&candidate.spec));
        match self.asking.planner {
            Planner::Model => true,
            Planner::Rules => false,
            Planner::Auto => !is_quoted && able(),
        }
    }
}

impl Asker<'_> {
    /// What was found by rule, and before it what a model adds, if one is to plan.
    pub(super) async fn planned(
        &self,
        question: &Question<'_>,
        recipe: &Recipe,
        passages: &mut Passages,
        found: Vec<Finding>,
        search: &mut SearchReport,
    ) -> Vec<Finding> {
        if !question.is_planned_by_model(self.engine, question.is_quoted(self.engine, recipe)) {
            return found;
        }
        let plan = match self.engine.own_or_shipped(PLAN_RECIPE) {
            Ok(plan) => plan,
            Err(error) => {
                search.steps.push(format!("no planning: {error}"));
                return found;
            }
        };
        let limits = question.asking.limits;
        let state = State {
            question: question.text,
            depth: limits.depth,
            // The answer is a call too.
            calls: limits.calls.saturating_sub(1),
            tokens: limits.tokens.saturating_sub(recipe.budget.total as u64),
            seen: found.iter().map(|finding| finding.place.clone()).collect(),
            found,
        };
        let mut exploration = Exploration { asker: *self, plan, recipe, passages, search, state };
        exploration.explore().await;
        exploration.state.found
    }
}

/// One level of planning: a question or a sub-question, with what all levels share.
struct Exploration<'a> {
    asker: Asker<'a>,
    plan: &'a Recipe,
    recipe: &'a Recipe,
    passages: &'a mut Passages,
    search: &'a mut SearchReport,
    state: State<'a>,
}

impl Exploration<'_> {
    /// Asks the model what to do and does it, within the limits.
    async fn explore(&mut self) {
        let first_step = self.search.steps.len();
        let mut fruitless = 0;
        while self.may_go_on() && fruitless < FRUITLESS {
            let Some(wish) = self.wish(first_step).await else { return };
            if wish.action == Action::Answer {
                return self.note("answer: enough was found".to_owned());
            }
            let new = self.perform(&wish).await;
            fruitless = if new == 0 { fruitless + 1 } else { 0 };
        }
    }

    fn may_go_on(&self) -> bool {
        self.state.calls > 0 && self.state.tokens >= self.plan.budget.total as u64
    }

    fn note(&mut self, step: String) {
        self.search.steps.push(step);
    }

    /// What the model wants next; nothing where it fails.
    async fn wish(&mut self, first_step: usize) -> Option<Wish> {
        let mut input = run_input(self.state.question, self.plan, self.passages, &self.state.found);
        let steps = self.search.steps.get(first_step..).unwrap_or_default().join("\n");
        input.values.insert("steps".to_owned(), Value::from(steps));
        input.values.insert("sub_questions".to_owned(), Value::from(self.state.depth > 0));
        self.asker.observer.stage(&format!("planning, {} calls left", self.state.calls));
        let before = self.search.tokens();
        let outcome =
            self.asker.engine.run_recipe(self.plan, &input, self.asker.observer, Purpose::Planning).await;
        match &outcome {
            Ok(outcome) => self.search.count(outcome),
            Err(_) => self.search.failed(self.plan, &self.asker.engine.reach(self.plan, None)),
        }
        self.state.spend(1, self.search.tokens() - before);
        let wish = outcome.map_err(|error| error.to_string());
        let wish = wish.and_then(|run| serde_json::from_value(run.output).map_err(|error| error.to_string()));
        wish.map_err(|error| self.note(format!("planning stopped: {error}"))).ok()
    }

    /// Does what the model wants, notes it, and gives how many passages are new.
    async fn perform(&mut self, wish: &Wish) -> usize {
        if wish.action == Action::Ask {
            return self.sub_question(&wish.text).await;
        }
        let (what, found) = act(wish, self.passages);
        let new = self.state.add(found);
        let what: String = what.chars().take(SHOWN_CHARS).collect();
        self.note(format!("{what}: {new} new passages"));
        new
    }

    /// A sub-question with half of what is left: its passages count, and its answer is noted.
    fn sub_question<'f>(&'f mut self, text: &'f str) -> BoxFuture<'f, usize> {
        async move {
            let (calls, tokens) = (self.state.calls / 2, self.state.tokens / 2);
            let answering = self.recipe.budget.total as u64;
            if self.state.depth == 0 || calls == 0 || tokens < answering || text.trim().is_empty() {
                self.note("ask: no sub-question is allowed any more".to_owned());
                return 0;
            }
            let mut found = self.passages.search(text);
            found.truncate(PER_ACTION);
            if found.is_empty() {
                // A recipe needs documents: the beginnings are the best guess, as for the question itself.
                found = self.passages.beginning(PER_ACTION);
            }
            let seen = found.iter().map(|finding| finding.place.clone()).collect();
            let (calls, tokens) = (calls - 1, tokens - answering);
            let (calls_before, tokens_before) = (self.search.calls, self.search.tokens());
            let state = State { question: text, depth: self.state.depth - 1, calls, tokens, found, seen };
            let mut below = Exploration {
                asker: self.asker,
                plan: self.plan,
                recipe: self.recipe,
                passages: &mut *self.passages,
                search: &mut *self.search,
                state,
            };
            below.explore().await;
            let found = below.state.found;
            let answer = self.asker.answer(text, self.recipe, self.passages, &found).await;
            let answer = match answer {
                Ok(outcome) => {
                    self.search.count(&outcome);
                    let answer = outcome.output.get("answer").and_then(Value::as_str);
                    answer.unwrap_or(&outcome.reply).to_owned()
                }
                Err(error) => {
                    self.search.failed(self.recipe, &self.asker.engine.reach(self.recipe, None));
                    error.to_string()
                }
            };
            self.state.spend(self.search.calls - calls_before, self.search.tokens() - tokens_before);
            let short = |text: &str| text.chars().take(SHOWN_CHARS * 2).collect::<String>();
            self.note(format!("ask {:?}: {}", short(text), short(&answer)));
            self.state.add(found)
        }
        .boxed()
    }
}

impl State<'_> {
    fn spend(&mut self, calls: usize, tokens: u64) {
        self.calls = self.calls.saturating_sub(calls);
        self.tokens = self.tokens.saturating_sub(tokens);
    }

    /// Puts what is new before what was there; gives how many.
    fn add(&mut self, found: Vec<Finding>) -> usize {
        let new: Vec<Finding> = found
            .into_iter()
            .filter(|finding| self.seen.insert(finding.place.clone()))
            .map(|finding| Finding { relevance: ASKED_FOR, ..finding })
            .collect();
        let count = new.len();
        self.found.splice(0..0, new);
        count
    }
}

/// What an action finds, and how the log calls it.
fn act(wish: &Wish, passages: &mut Passages) -> (String, Vec<Finding>) {
    let source = wish.source.trim();
    let file = passages.library.find(source);
    let unknown = || (format!("{:?} {source:?}: there is no such document", wish.action), Vec::new());
    if !source.is_empty() && file.is_none() {
        return unknown();
    }
    let place = if source.is_empty() { "everything" } else { source };
    let (what, selection) = match wish.action {
        Action::Search => {
            let mut found = passages.search(&wish.text);
            found.truncate(PER_ACTION);
            return (format!("search {:?}", wish.text), found);
        }
        Action::Grep => (format!("grep {:?} in {place}", wish.text), Selection::grep(&wish.text)),
        Action::Json => (format!("json {:?} in {place}", wish.text), Selection::path(&wish.text)),
        _ => {
            let lines = format!("{}:{}", wish.first_line, wish.last_line.max(wish.first_line));
            (format!("read lines {lines} of {place}"), Selection::lines(&lines))
        }
    };
    if file.is_none() && wish.action == Action::Read {
        return unknown();
    }
    match selection {
        Ok(selection) => (what, passages.select(file, &selection, PER_ACTION)),
        Err(error) => (format!("{what}: {error}"), Vec::new()),
    }
}

/// Whether a model is likely to plan well: replies that keep to a schema, and a window with room for what it finds.
/// The embedded model keeps to schemas and decides nothing well.
fn is_able(spec: &ModelSpec) -> bool {
    spec.provider != Provider::Embedded && spec.can(Capability::JsonSchema) && spec.window >= ABLE_WINDOW
}
