//! Phase 4: the coordinator's loop (R1-3.38 to R1-3.45, R1-3.83, R0-26, C29). Each round is one run, its calls, and one
//! piece of §4; it is saved before the next. The loop ends whatever the model says: by DONE, by the limits of rounds
//! and calls, or by a ceiling of the turn; and §4 says by which.

use larder_condense::sections::SectionId;
use larder_vault::context::{
    self, Action, CallResult, CallStatus, Claim, GoalId, Iteration, Quota, TaskPlan, Termination, ToolLog,
};
use serde_json::json;

use super::answers::{CONFIDENCE_THRESHOLD, IterationAnswer};
use super::calls::Called;
use super::error::Stop;
use super::goals;
use super::machine::{Done, Machine};
use super::recipes::Offer;
use super::state::{Round, Rounds, Step};
use larder_engine::answer::{self, Unusable};

/// Tokens that §4 may hold (R0-26.2).
const BUDGET: usize = SectionId::ToolExecution.token_budget();
/// What older rounds are compacted to, if the newest leaves so much (R0-26.2, C29).
const OLDER: usize = 1_500;
/// What the newest round may take at most, so that a word of the older ones always fits beside it.
pub(super) const NEWEST: usize = BUDGET - 300;

impl Machine<'_> {
    /// Goes round until the loop ends.
    pub(super) async fn coordinate(&mut self) -> Result<Done, Stop> {
        loop {
            if let Some(reason) = self.round().await? {
                return self.end_rounds(&reason);
            }
            self.checkpoint().map_err(Stop::Error)?;
        }
    }

    pub(super) fn rounds(&mut self) -> &mut Rounds {
        self.state.rounds.get_or_insert_default()
    }

    /// Why no round may follow.
    fn over(&mut self) -> Option<String> {
        let limits = self.turns.limits;
        let rounds = self.rounds();
        if let Some(reason) = rounds.ended.take() {
            return Some(reason);
        }
        if rounds.iterations >= limits.iterations {
            return Some(format!("the limit of {} iterations is reached", limits.iterations));
        }
        if rounds.calls >= limits.tool_calls {
            return Some(format!("the limit of {} tool calls is reached", limits.tool_calls));
        }
        self.ceiling()
    }

    /// One round; gives why the loop ends, if it does. A round that was interrupted goes on after its last call.
    async fn round(&mut self) -> Result<Option<String>, Stop> {
        if self.rounds().under_way.is_none() {
            if let Some(reason) = self.over() {
                return Ok(Some(reason));
            }
            self.begin_round().await?;
        }
        self.carry_out().await?;
        Ok(None)
    }

    /// Asks what to do in the next round.
    async fn begin_round(&mut self) -> Result<(), Stop> {
        let number = self.rounds().iterations + 1;
        let plan = self.task_plan();
        let name = self.by_mode("phase4_coordinator");
        let outcome = self.ask(&name, self.round_offer(&name, number)).await?;
        let read = answer::read::<IterationAnswer>(&outcome.output).and_then(|mut answer| {
            if answer.action == Action::ToolCall && answer.goal.is_none() {
                answer.goal = goals::focus(self.state.goals()).map(|goal| goal.id.0);
            }
            let (_, claims) = answer.iteration(number, &plan)?;
            Ok((answer, claims))
        });
        match read {
            Ok((answer, claims)) => {
                self.add_claims(claims);
                let has_calls = !answer.calls.is_empty();
                let round = Round { number, answer, called: Vec::new(), begun: false };
                self.rounds().under_way = Some(round);
                if has_calls {
                    self.checkpoint().map_err(Stop::Error)?;
                }
            }
            Err(unusable) => {
                self.note_unusable(number, &unusable)?;
                self.rounds().iterations = number;
            }
        }
        Ok(())
    }

    fn round_offer(&self, name: &str, number: u32) -> Offer {
        let calls = self.state.rounds.as_ref().map_or(0, |rounds| rounds.calls);
        let left = self.turns.limits.tool_calls.saturating_sub(calls);
        Offer {
            documents: self.result_document().into_iter().collect(),
            values: vec![
                ("tool_list", json!(self.tools_for(name))),
                ("goals", json!(goals::standing(self.state.goals()).join("\n"))),
                ("iteration", json!(number)),
                ("calls_left", json!(left)),
            ],
            ..Offer::default()
        }
    }

    /// The plan as §3 holds it, with the goals as they stand.
    pub(super) fn task_plan(&self) -> TaskPlan {
        let read = context::read_newest::<TaskPlan>(&self.context, &self.at()).and_then(|read| read.value);
        let mut plan = read.unwrap_or_else(|| TaskPlan {
            previous_failure: None,
            new_approach: None,
            goal: self.resolved().to_owned(),
            intent: larder_vault::Intent::Informational,
            confidence: None,
            steps: Vec::new(),
            goals: Vec::new(),
            focus: None,
            next: context::NextStep::Coordinator,
            question: None,
            ticket: None,
        });
        plan.goals = self.state.goals().to_vec();
        plan
    }

    /// Makes the calls of the round under way that are not made yet, and writes the round.
    async fn carry_out(&mut self) -> Result<(), Stop> {
        let Some(round) = self.rounds().under_way.clone() else { return Ok(()) };
        let Round { number, answer, called, mut begun } = round;
        // The plan is the one that the answer was read with.
        let read = answer.iteration(number, &self.task_plan());
        let (mut iteration, _) = read.map_err(|unusable| Stop::Fail(unusable.to_string()))?;
        let goal = iteration.goal.as_ref().map(|goal| goal.id);
        let waits = goal.map(|goal| goals::waits_for(self.state.goals(), goal)).unwrap_or_default();
        for request in answer.calls.iter().skip(called.len()) {
            let made = match self.refusal(goal, &waits) {
                _ if std::mem::take(&mut begun) => self.call_of_unknown_end(request, number, goal)?,
                Some(reason) => Called::denied(request, reason),
                None => self.call(request, number, goal).await?,
            };
            if let Some(round) = &mut self.rounds().under_way {
                round.called.push(made);
                round.begun = false;
            }
            self.checkpoint().map_err(Stop::Error)?;
            *self.call_begun.get_mut() = false;
        }
        let called = self.rounds().under_way.take().map(|round| round.called).unwrap_or_default();
        let called =
            called.into_iter().map(|called| self.with_content(called)).collect::<Result<Vec<_>, _>>()?;
        iteration.calls = called.iter().map(|called| called.text.clone()).collect();
        self.shown_results(&mut iteration, &called);
        self.write_round(&iteration)?;
        self.note_goal(answer.action, goal, answer.goal_confidence);
        self.rounds().iterations = number;
        Ok(())
    }

    /// Why a call is not made.
    fn refusal(&mut self, goal: Option<GoalId>, waits: &[GoalId]) -> Option<String> {
        let limit = self.turns.limits.tool_calls;
        if let (Some(goal), false) = (goal, waits.is_empty()) {
            return Some(format!("{goal} waits for {}", goals::names(waits)));
        }
        if self.rounds().calls >= limit {
            return Some(format!("the limit of {limit} tool calls is reached"));
        }
        self.ceiling()
    }

    /// A goal is reached when its round says DONE or is sure enough of it; DONE without a goal, or of the last goal,
    /// ends the loop.
    fn note_goal(&mut self, action: Action, goal: Option<GoalId>, confidence: Option<larder_vault::Score>) {
        let done = action == Action::Done;
        let sure = confidence.is_some_and(|confidence| confidence.get() >= CONFIDENCE_THRESHOLD);
        let goals = self.state.plan.as_mut().map(|plan| &mut plan.goals).filter(|goals| !goals.is_empty());
        let Some(goals) = goals else {
            if done {
                self.rounds().ended = Some("DONE".to_owned());
            }
            return;
        };
        if let Some(goal) = goal.filter(|goal| (done || sure) && goals::waits_for(goals, *goal).is_empty()) {
            goals::reached(goals, goal);
        }
        let open = goals::open(goals);
        if done && (goal.is_none() || open.is_empty()) {
            self.rounds().ended = Some(match open.as_slice() {
                [] => "DONE: all goals are reached".to_owned(),
                open => format!("DONE with {} not reached", goals::names(open)),
            });
        }
    }

    /// A round whose answer keeps to its schema and cannot be used: it counts, and the next one reads why.
    fn note_unusable(&mut self, number: u32, unusable: &Unusable) -> Result<(), Stop> {
        self.warn(format!("the answer of iteration {number} cannot be used: {unusable}"));
        self.write_round(&Iteration {
            number,
            action: Action::ToolCall,
            goal: None,
            reasoning: String::new(),
            calls: Vec::new(),
            results: vec![CallResult { status: CallStatus::Error, text: unusable.to_string(), full: None }],
            confidence: None,
            progress: None,
        })
    }

    /// Adds a round to §4, which is held to its budget before the round is added (R0-26.3).
    fn write_round(&mut self, iteration: &Iteration) -> Result<(), Stop> {
        let body = iteration.write(&self.at());
        self.add_to_log(&body)
    }

    /// Adds to §4; what stands there is compacted first where both would not fit (R0-26.2, R0-26.4).
    fn add_to_log(&mut self, body: &str) -> Result<(), Stop> {
        if !self.log_is_open() {
            let section = larder_vault::append_section(&self.context, SectionId::ToolExecution, body);
            self.context += &section;
            return Ok(());
        }
        let new = self.counter.count(body);
        if self.tokens_of(SectionId::ToolExecution) + new > BUDGET {
            self.compact_log(OLDER.min(BUDGET.saturating_sub(new)))?;
        }
        self.extend(SectionId::ToolExecution, body)
    }

    /// Whether the last section is §4.
    fn log_is_open(&self) -> bool {
        let sections = larder_condense::sections::Sections::parse(&self.context);
        sections.sections.last().is_some_and(|section| section.id == SectionId::ToolExecution)
    }

    /// Compacts §4 by its own structure: every round stays, with less of what it said.
    fn compact_log(&mut self, target: usize) -> Result<(), Stop> {
        let at = self.at();
        let log = context::read_newest::<ToolLog>(&self.context, &at).and_then(|read| read.value);
        let log = log.unwrap_or_default();
        let results = self.link(self.draft.place.tool_results());
        let short = super::shrink::shrunk(&log, &results, &at, &self.counter, target);
        self.compact(SectionId::ToolExecution, target, short)
    }

    /// Writes the claims and how the loop ended.
    fn end_rounds(&mut self, reason: &str) -> Result<Done, Stop> {
        let rounds = self.state.rounds.take().unwrap_or_default();
        let at = self.at();
        let limits = self.turns.limits;
        let termination = Termination {
            reason: reason.to_owned(),
            iterations: Quota { done: rounds.iterations, limit: limits.iterations },
            tool_calls: Quota { done: rounds.calls, limit: limits.tool_calls },
        };
        // In one piece: room for the end is not made by putting the claims out of sight.
        let claims = (!rounds.claims.is_empty()).then(|| Claim::write_all(&rounds.claims, &at));
        let pieces: Vec<String> = claims.into_iter().chain([termination.write()]).collect();
        self.add_to_log(&pieces.join("\n"))?;
        self.settle(SectionId::ToolExecution)?;
        let text = format!("{reason}; {} iterations, {} tool calls", rounds.iterations, rounds.calls);
        Ok(Done::new(Step::Synthesize, text))
    }
}
