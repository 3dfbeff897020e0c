//! Planning by a model: recipe `ask/plan` chooses an action, this module performs it, until the model has enough or a
//! limit is reached. Passages found by rule are kept whatever the model does.

use std::collections::BTreeSet;

use futures::future::{BoxFuture, FutureExt};
use larder_core::recipe::{Layer, Recipe};
use larder_models::table::{Capability, ModelSpec, Provider};
use larder_store::Selection;
use serde::Deserialize;
use serde_json::Value;

use super::passages::{Finding, PassagePlace, Passages};
use super::{AskError, Asker, Question, SearchReport, run_input};
use larder_engine::Engine;
use larder_engine::executor::{ModelSet, RunKind};
use larder_engine::settings::Planner;
use larder_text::words::counted;

/// The recipe that plans.
const PLAN_RECIPE: &str = "ask/plan";
/// A model with a smaller window has no room for its findings.
const ABLE_WINDOW: usize = 8_000;
/// Maximum number of passages that one action adds.
const PER_ACTION: usize = 8;
/// Actions in a row without a new passage after which planning stops.
const FRUITLESS: usize = 2;
/// Characters of a step that its log line shows.
const SHOWN_CHARS: usize = 120;
/// The relevance of a passage that a model requested: that of the best one found by rule.
const ASKED_FOR: f64 = 1.0;

/// The next action, as recipe `ask/plan` answers it.
#[derive(Debug, Deserialize)]
struct PlannerAction {
    #[serde(rename = "action")]
    kind: ActionKind,
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
enum ActionKind {
    Search,
    Grep,
    Read,
    Json,
    Ask,
    Answer,
}

/// The remaining budget of one level of planning, and its findings.
struct PlanningState<'a> {
    question: &'a str,
    depth: usize,
    calls: usize,
    tokens: u64,
    found: Vec<Finding>,
    seen: BTreeSet<PassagePlace>,
}

impl Question<'_> {
    /// Every model that answering may call; empty if the recipe does not exist.
    pub fn reach(&self, engine: &Engine) -> ModelSet {
        let recipe = engine.recipe_or_builtin(self.recipe);
        let is_quoted = recipe.is_ok_and(|recipe| self.is_quoted(engine, recipe));
        let planning = self.is_planned_by_model(engine, is_quoted).then_some(PLAN_RECIPE);
        let answering = (!is_quoted).then_some(self.recipe);
        let mut reach = ModelSet::default();
        for name in planning.into_iter().chain(answering) {
            if let Ok(recipe) = engine.recipe_or_builtin(name) {
                reach.join(engine.reachable_models(recipe, None));
            }
        }
        reach
    }

    /// The layers that answering asks; none if the answer is quoted.
    ///
    /// # Errors
    /// When its recipe does not exist.
    pub fn layers(&self, engine: &Engine) -> Result<Vec<Layer>, AskError> {
        let recipe = engine.recipe_or_builtin(self.recipe)?;
        let is_quoted = self.is_quoted(engine, recipe);
        let mut asked = if is_quoted { Vec::new() } else { engine.answering_layers(recipe, None) };
        if self.is_planned_by_model(engine, is_quoted) {
            asked.push(Layer::Mind);
        }
        Ok(asked)
    }

    /// A quoted answer calls no model unless a planner was requested.
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
    /// The findings of a model, if one is to plan, followed by those of the rules.
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
        let plan = match self.engine.recipe_or_builtin(PLAN_RECIPE) {
            Ok(plan) => plan,
            Err(error) => {
                search.steps.push(format!("no planning: {error}"));
                return found;
            }
        };
        let limits = question.asking.limits;
        let state = PlanningState {
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
    state: PlanningState<'a>,
}

impl Exploration<'_> {
    /// Asks the model for an action and performs it, within the limits.
    async fn explore(&mut self) {
        let first_step = self.search.steps.len();
        let mut fruitless = 0;
        while self.may_go_on() && fruitless < FRUITLESS {
            let Some(action) = self.next_action(first_step).await else { return };
            if action.kind == ActionKind::Answer {
                return self.note("answer: enough was found".to_owned());
            }
            let new = self.perform(&action).await;
            fruitless = if new == 0 { fruitless + 1 } else { 0 };
        }
    }

    fn may_go_on(&self) -> bool {
        self.state.calls > 0 && self.state.tokens >= self.plan.budget.total as u64
    }

    fn note(&mut self, step: String) {
        self.search.steps.push(step);
    }

    /// Asks for the next action; `None` where the model fails.
    async fn next_action(&mut self, first_step: usize) -> Option<PlannerAction> {
        let mut input = run_input(self.state.question, self.plan, self.passages, &self.state.found);
        let steps = self.search.steps.get(first_step..).unwrap_or_default().join("\n");
        input.values.insert("steps".to_owned(), Value::from(steps));
        input.values.insert("sub_questions".to_owned(), Value::from(self.state.depth > 0));
        self.asker.observer.stage(&format!("planning, {} left", counted(self.state.calls as u64, "call")));
        let before = self.search.tokens();
        let outcome = self
            .asker
            .engine
            .run_recipe(self.plan, &input, self.asker.observer, RunKind::Planning { until: None })
            .await;
        match &outcome {
            Ok(outcome) => self.search.count(outcome),
            Err(_) => self.search.failed(self.plan, &self.asker.engine.reachable_models(self.plan, None)),
        }
        self.state.spend(1, self.search.tokens() - before);
        let action = outcome.map_err(|error| error.to_string());
        let action =
            action.and_then(|run| serde_json::from_value(run.output).map_err(|error| error.to_string()));
        action.map_err(|error| self.note(format!("planning stopped: {error}"))).ok()
    }

    /// Performs an action, logs it, and returns the number of new passages.
    async fn perform(&mut self, action: &PlannerAction) -> usize {
        if action.kind == ActionKind::Ask {
            return self.sub_question(&action.text).await;
        }
        let (what, found) = act(action, self.passages);
        let new = self.state.add(found);
        let what: String = what.chars().take(SHOWN_CHARS).collect();
        self.note(format!("{what}: {new} new passages"));
        new
    }

    /// Answers a sub-question with half of the remaining budget: its passages are added and its answer is logged.
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
            let state =
                PlanningState { question: text, depth: self.state.depth - 1, calls, tokens, found, seen };
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
                    self.search.failed(self.recipe, &self.asker.engine.reachable_models(self.recipe, None));
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

impl PlanningState<'_> {
    fn spend(&mut self, calls: usize, tokens: u64) {
        self.calls = self.calls.saturating_sub(calls);
        self.tokens = self.tokens.saturating_sub(tokens);
    }

    /// Inserts new findings before the known ones; returns their number.
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

/// The log line of an action, and its findings.
fn act(action: &PlannerAction, passages: &mut Passages) -> (String, Vec<Finding>) {
    let source = action.source.trim();
    let file = passages.library.find(source);
    let unknown = || (format!("{:?} {source:?}: there is no such document", action.kind), Vec::new());
    if !source.is_empty() && file.is_none() {
        return unknown();
    }
    let place = if source.is_empty() { "everything" } else { source };
    let (what, selection) = match action.kind {
        ActionKind::Search => {
            let mut found = passages.search(&action.text);
            found.truncate(PER_ACTION);
            return (format!("search {:?}", action.text), found);
        }
        ActionKind::Grep => (format!("grep {:?} in {place}", action.text), Selection::grep(&action.text)),
        ActionKind::Json => (format!("json {:?} in {place}", action.text), Selection::path(&action.text)),
        _ => {
            let lines = format!("{}:{}", action.first_line, action.last_line.max(action.first_line));
            (format!("read lines {lines} of {place}"), Selection::lines(&lines))
        }
    };
    if file.is_none() && action.kind == ActionKind::Read {
        return unknown();
    }
    match selection {
        Ok(selection) => (what, passages.select(file, &selection, PER_ACTION)),
        Err(error) => (format!("{what}: {error}"), Vec::new()),
    }
}

/// Whether a model is likely to plan well: its replies satisfy a schema and its window has room for findings. The
/// embedded model satisfies schemas but decides poorly.
fn is_able(spec: &ModelSpec) -> bool {
    spec.provider != Provider::Embedded && spec.can(Capability::JsonSchema) && spec.window >= ABLE_WINDOW
}
