//! Phase 3: the plan, and where the turn goes (R1-3.35 to R1-3.37, R1-3.81, R1-3.82, C12, C13, C22).

use larder_vault::Ticket;
use larder_vault::context::{NextStep, TaskPlan};
use serde_json::json;

use super::answers::PlanAnswer;
use super::error::Stop;
use super::machine::{Done, Machine};
use super::recipes::Offer;
use super::state::{Plan, Rounds, Step};
use larder_engine::answer::topic;

impl Machine<'_> {
    /// Plans, writes the plan whole to `ticket.md`, and goes where the planner says.
    pub(super) async fn plan(&mut self) -> Result<Done, Stop> {
        let attempt = self.state.attempt(Step::Plan);
        let name = self.by_mode("phase3_planner");
        let offer = Offer {
            values: vec![("tool_list", json!(self.tools_for(&name))), ("attempt", json!(attempt))],
            hints: std::mem::take(&mut self.state.hints),
            ..Offer::default()
        };
        let make = |answer: &PlanAnswer| answer.plan(attempt);
        let (answer, mut plan) = self.decide(&name, offer, make).await?;
        let ticket = self.draft.place.ticket();
        self.write(&ticket, "ticket", Ticket(plan.clone()));
        plan.ticket = Some(self.link(ticket));
        self.append(&plan)?;
        self.state.plan =
            Some(Plan { intent: plan.intent, topic: Some(topic(&answer.topic)), goals: plan.goals.clone() });
        self.state.rounds = None;
        Ok(self.route(plan))
    }

    fn route(&mut self, plan: TaskPlan) -> Done {
        let text = format!("{}: {}", plan.next, plan.goal);
        match plan.next {
            NextStep::Clarify => self.clarify(plan.question.unwrap_or_default()),
            NextStep::Synthesis => Done::new(Step::Synthesize, text),
            NextStep::Coordinator => {
                self.state.rounds = Some(Rounds::default());
                Done::new(Step::Coordinate, text)
            }
        }
    }

    /// The tools that a recipe may be told about, as it reads them.
    pub(super) fn tools_for(&self, recipe: &str) -> String {
        let named = self.recipe(recipe).map(|recipe| recipe.tools.clone()).unwrap_or_default();
        larder_tools::describe(&self.turns.tools.specs(self.draft.mode, &named))
    }
}
