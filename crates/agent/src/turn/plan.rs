//! Phase 3: the plan, and the phase that follows from it (R1-3.35 to R1-3.37, R1-3.81, R1-3.82, C12, C13, C22).

use larder_engine::answer::topic;
use larder_vault::Ticket;
use larder_vault::context::{NextStep, TaskPlan};
use serde_json::json;

use super::answers::PlanAnswer;
use super::ending;
use super::error::Stop;
use super::files;
use super::phase::{PhaseContext, PhaseOutcome};
use super::recipes::PhaseInputs;
use super::state::{PlanSummary, RoundsState, TurnState};
use super::turn_phase::TurnPhase;

/// Plans, writes the full plan to `ticket.md`, and proceeds as the planner says.
pub(super) async fn run(cx: &mut PhaseContext<'_>) -> Result<PhaseOutcome, Stop> {
    let attempt = cx.state.attempt(TurnPhase::Plan);
    let name = cx.by_mode("phase3_planner");
    let inputs = PhaseInputs {
        values: vec![("tool_list", json!(cx.tools_for(&name))), ("attempt", json!(attempt))],
        hints: std::mem::take(&mut cx.state.hints),
        ..PhaseInputs::default()
    };
    let convert = |answer: &PlanAnswer| answer.plan(attempt);
    let (answer, mut plan) = cx.recipes().decide(&name, inputs, convert).await?;
    let circular = answer.circular();
    if answer.goals.len() > 1 && !circular.is_empty() {
        cx.events.warn(format!(
            "the planner made goals {circular:?} depend on each other in a circle; they are worked on in their order"
        ));
    }
    let (ticket, meta) = (cx.draft.place.ticket(), cx.meta("ticket"));
    if attempt > 1 {
        let kept = cx.draft.place.earlier_ticket(attempt - 1);
        files::keep(&mut cx.draft, &ticket, &kept);
    }
    files::insert_document(&mut cx.draft, &ticket, meta, Ticket(plan.clone()));
    plan.ticket = Some(files::link(ticket));
    cx.document.append(&plan).await?;
    let topic = Some(topic(&answer.topic));
    cx.state.plan =
        Some(PlanSummary { intent: plan.intent, topic, goals: plan.goals.clone(), unreached: Vec::new() });
    cx.state.rounds = None;
    Ok(route(&mut cx.state, plan))
}

fn route(state: &mut TurnState, plan: TaskPlan) -> PhaseOutcome {
    let text = format!("{}: {}", plan.next, plan.goal);
    match plan.next {
        NextStep::Clarify => ending::clarify(state, plan.question.unwrap_or_default()),
        NextStep::Synthesis => PhaseOutcome::new(TurnPhase::Synthesize, text),
        NextStep::Coordinator => {
            state.rounds = Some(RoundsState::default());
            PhaseOutcome::new(TurnPhase::Coordinate, text)
        }
    }
}

/// The plan as stored in §3, with the current status of its goals.
pub(super) fn task_plan(cx: &PhaseContext<'_>) -> TaskPlan {
    let mut plan = cx.document.newest().unwrap_or_else(|| TaskPlan {
        previous_failure: None,
        new_approach: None,
        goal: cx.query().to_owned(),
        intent: larder_vault::Intent::Informational,
        confidence: None,
        steps: Vec::new(),
        goals: Vec::new(),
        focus: None,
        next: NextStep::Coordinator,
        question: None,
        ticket: None,
    });
    plan.goals = cx.state.goals().to_vec();
    plan
}
