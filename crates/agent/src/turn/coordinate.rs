//! Phase 4: the coordinator's loop (R1-3.38 to R1-3.45, R1-3.83, R0-26, C29). Each round is one run, its calls, and one
//! piece of §4, and is saved before the next. The loop always ends: by DONE, by the limits of rounds and calls, or by a
//! limit of the turn; §4 states which.

use larder_engine::answer;
use larder_vault::context::{Action, CallResult, CallStatus, Claim, GoalId, Iteration, Quota, Termination};
use serde_json::json;

use super::answers::IterationAnswer;
use super::calls::{self, CallRecord};
use super::error::Stop;
use super::evidence;
use super::goals;
use super::phase::{PhaseContext, PhaseOutcome};
use super::plan::task_plan;
use super::recipes::PhaseInputs;
use super::round_rules::{self, DONE, GoalCalls};
use super::shown_results;
use super::state::{PendingRound, RoundsState};
use super::tool_log;
use super::turn_phase::TurnPhase;

/// Runs round after round until the loop ends.
pub(super) async fn run(cx: &mut PhaseContext<'_>) -> Result<PhaseOutcome, Stop> {
    loop {
        // An interrupted round continues after its last call.
        if cx.state.rounds().under_way.is_none() {
            if let Some(reason) = round_rules::end(cx.state.rounds(), &cx.turns.limits) {
                return end(cx, &reason).await;
            }
            if let Some(reason) = cx.budget.reached(&cx.state) {
                return end(cx, &reason).await;
            }
            begin_round(cx).await?;
        }
        carry_out(cx).await?;
        cx.checkpoint().map_err(Stop::Error)?;
    }
}

/// Asks what to do in the next round.
async fn begin_round(cx: &mut PhaseContext<'_>) -> Result<(), Stop> {
    let number = cx.state.rounds().iterations + 1;
    let plan = task_plan(cx);
    let name = cx.by_mode("phase4_coordinator");
    let inputs = inputs(cx, &name, number);
    let outcome = cx.recipes().run(&name, inputs).await?;
    let read = answer::read::<IterationAnswer>(&outcome.output).and_then(|mut answer| {
        if answer.action == Action::ToolCall && answer.goal.is_none() {
            answer.goal = goals::focus(cx.state.goals()).map(|goal| goal.id.0);
        }
        let (_, claims) = answer.iteration(number, &plan)?;
        Ok((answer, claims))
    });
    match read {
        Ok((answer, claims)) => {
            evidence::add_claims(cx, claims);
            let has_calls = !answer.calls.is_empty();
            let round = PendingRound { number, answer, called: Vec::new(), begun: false };
            cx.state.rounds().under_way = Some(round);
            if has_calls {
                cx.checkpoint().map_err(Stop::Error)?;
            }
        }
        // An answer that satisfies its schema and cannot be used counts as a round, and the next round reads why.
        Err(unusable) => {
            cx.events.warn(format!("the answer of iteration {number} cannot be used: {unusable}"));
            tool_log::add_round(&mut cx.document, &cx.draft, &failed_round(number, unusable.to_string()))
                .await?;
            cx.state.rounds().iterations = number;
        }
    }
    Ok(())
}

fn inputs(cx: &mut PhaseContext<'_>, name: &str, number: u32) -> PhaseInputs {
    let left = cx.turns.limits.tool_calls.saturating_sub(cx.state.rounds().calls);
    PhaseInputs {
        documents: evidence::result_document(&cx.draft).into_iter().collect(),
        values: vec![
            ("tool_list", json!(cx.tools_for(name))),
            ("goals", json!(goals::status_lines(cx.state.goals()).join("\n"))),
            ("iteration", json!(number)),
            ("calls_left", json!(left)),
        ],
        ..PhaseInputs::default()
    }
}

fn failed_round(number: u32, reason: String) -> Iteration {
    Iteration {
        number,
        action: Action::ToolCall,
        goal: None,
        reasoning: String::new(),
        calls: Vec::new(),
        results: vec![CallResult { status: CallStatus::Error, text: reason, full: None }],
        confidence: None,
        progress: None,
    }
}

/// Makes the remaining calls of the current round, and writes the round to §4.
async fn carry_out(cx: &mut PhaseContext<'_>) -> Result<(), Stop> {
    let Some(round) = cx.state.rounds().under_way.clone() else { return Ok(()) };
    let PendingRound { number, answer, called, mut begun } = round;
    // The answer was parsed with this same plan.
    let read = answer.iteration(number, &task_plan(cx));
    let (mut iteration, _) = read.map_err(|unusable| Stop::Fail(unusable.to_string()))?;
    let goal = iteration.goal.as_ref().map(|goal| goal.id);
    let waits = goal.map(|goal| goals::waits_for(cx.state.goals(), goal)).unwrap_or_default();
    for request in answer.calls.iter().skip(called.len()) {
        let refusal = round_rules::refusal(cx.state.rounds(), &cx.turns.limits, goal, &waits);
        let record = match refusal.or_else(|| cx.budget.reached(&cx.state)) {
            _ if std::mem::take(&mut begun) => calls::interrupted(cx, request, number, goal)?,
            Some(reason) => CallRecord::denied(request, reason),
            None => calls::call(cx, request, number, goal).await?,
        };
        if let Some(round) = &mut cx.state.rounds().under_way {
            round.called.push(record);
            round.begun = false;
        }
        cx.checkpoint().map_err(Stop::Error)?;
    }
    let called = cx.state.rounds().under_way.take().map(|round| round.called).unwrap_or_default();
    let store = &cx.turns.engine.store;
    let called: Vec<CallRecord> =
        called.into_iter().map(|record| record.with_content(store)).collect::<Result<_, _>>()?;
    let before = cx.state.rounds().by_goal.clone();
    note_calls(cx.state.rounds(), goal, &called);
    iteration.calls = called.iter().map(|record| record.text.clone()).collect();
    shown_results::fit(&mut iteration, &called, &cx.document);
    tool_log::add_round(&mut cx.document, &cx.draft, &iteration).await?;
    let goals = cx.state.plan.as_mut().map(|plan| plan.goals.as_mut_slice()).unwrap_or_default();
    let ended = round_rules::note_progress(goals, answer.action, goal, answer.goal_confidence, &before);
    cx.state.rounds().ended = ended.then(|| DONE.to_owned());
    cx.state.rounds().iterations = number;
    Ok(())
}

/// Adds what the calls of a round came to.
fn note_calls(rounds: &mut RoundsState, goal: Option<GoalId>, called: &[CallRecord]) {
    let known = rounds.by_goal.iter().position(|(of, _)| *of == goal).unwrap_or_else(|| {
        rounds.by_goal.push((goal, GoalCalls::default()));
        rounds.by_goal.len() - 1
    });
    let calls = &mut rounds.by_goal[known].1;
    calls.made |= !called.is_empty();
    calls.succeeded |= called.iter().any(|record| record.status == CallStatus::Success);
    calls.had_result |= called.iter().any(|record| record.has_result);
}

/// Writes the claims and how the loop ended.
async fn end(cx: &mut PhaseContext<'_>, reason: &str) -> Result<PhaseOutcome, Stop> {
    let rounds = cx.state.rounds.take().unwrap_or_default();
    let limits = cx.turns.limits;
    let unreached = round_rules::unreached(cx.state.goals(), &rounds.by_goal);
    let reason = round_rules::termination(reason, cx.state.goals(), &unreached);
    if let Some(plan) = &mut cx.state.plan {
        plan.unreached = unreached;
    }
    let termination = Termination {
        reason: reason.clone(),
        iterations: Quota { done: rounds.iterations, limit: limits.iterations },
        tool_calls: Quota { done: rounds.calls, limit: limits.tool_calls },
    };
    // In one piece: compacting for the termination must not hide the claims.
    let claims = (!rounds.claims.is_empty()).then(|| Claim::write_all(&rounds.claims, &cx.document.at));
    let pieces: Vec<String> = claims.into_iter().chain([termination.write()]).collect();
    tool_log::finish(&mut cx.document, &cx.draft, &pieces.join("\n")).await?;
    let text = format!("{reason}; {} iterations, {} tool calls", rounds.iterations, rounds.calls);
    Ok(PhaseOutcome::new(TurnPhase::Synthesize, text))
}
