//! The rules of the coordinator's loop: when it ends, which calls are refused, when a goal is reached. Pure functions
//! of the loop's state.

use larder_engine::settings::TurnLimits;
use larder_vault::Score;
use larder_vault::context::{Action, Goal, GoalId};

use super::answers::CONFIDENCE_THRESHOLD;
use super::goals;
use super::state::RoundsState;

/// Why no round may follow.
pub(super) fn end(rounds: &mut RoundsState, limits: &TurnLimits) -> Option<String> {
    if let Some(reason) = rounds.ended.take() {
        return Some(reason);
    }
    if rounds.iterations >= limits.iterations {
        return Some(format!("the limit of {} iterations is reached", limits.iterations));
    }
    (rounds.calls >= limits.tool_calls).then(|| calls_used_up(limits))
}

/// Why the next call of a round for `goal`, which is waiting for `waits`, is not made.
pub(super) fn refusal(
    rounds: &RoundsState,
    limits: &TurnLimits,
    goal: Option<GoalId>,
    waits: &[GoalId],
) -> Option<String> {
    if let (Some(goal), false) = (goal, waits.is_empty()) {
        return Some(format!("{goal} waits for {}", goals::names(waits)));
    }
    (rounds.calls >= limits.tool_calls).then(|| calls_used_up(limits))
}

fn calls_used_up(limits: &TurnLimits) -> String {
    format!("the limit of {} tool calls is reached", limits.tool_calls)
}

/// Marks the goal of a round as reached if the round says DONE or is confident enough. Returns why the loop ends, if
/// it does: by DONE without a goal, or by DONE for the last one.
pub(super) fn note_progress(
    goals: &mut [Goal],
    action: Action,
    goal: Option<GoalId>,
    confidence: Option<Score>,
) -> Option<String> {
    let done = action == Action::Done;
    if goals.is_empty() {
        return done.then(|| "DONE".to_owned());
    }
    let confident = confidence.is_some_and(|confidence| confidence.get() >= CONFIDENCE_THRESHOLD);
    if let Some(goal) = goal.filter(|goal| (done || confident) && goals::waits_for(goals, *goal).is_empty()) {
        goals::reached(goals, goal);
    }
    let open = goals::open(goals);
    (done && (goal.is_none() || open.is_empty())).then(|| match open.as_slice() {
        [] => "DONE: all goals are reached".to_owned(),
        open => format!("DONE with {} not reached", goals::names(open)),
    })
}

#[cfg(test)]
mod tests {
    use larder_vault::context::GoalStatus;

    use super::*;

    fn limits() -> TurnLimits {
        TurnLimits { iterations: 2, tool_calls: 3, ..TurnLimits::default() }
    }

    fn goals(dependencies: &[&[u32]]) -> Vec<Goal> {
        let goal = |(at, needs): (usize, &&[u32])| Goal {
            id: GoalId(u32::try_from(at).unwrap() + 1),
            description: String::new(),
            status: GoalStatus::Pending,
            dependencies: needs.iter().copied().map(GoalId).collect(),
        };
        dependencies.iter().enumerate().map(goal).collect()
    }

    #[test]
    fn the_loop_ends_by_its_reason_then_by_its_limits() {
        let mut rounds = RoundsState::default();
        assert_eq!(end(&mut rounds, &limits()), None);
        rounds.calls = 3;
        assert_eq!(end(&mut rounds, &limits()).unwrap(), "the limit of 3 tool calls is reached");
        rounds.iterations = 2;
        assert_eq!(end(&mut rounds, &limits()).unwrap(), "the limit of 2 iterations is reached");
        rounds.ended = Some("DONE".to_owned());
        assert_eq!(end(&mut rounds, &limits()).unwrap(), "DONE");
    }

    #[test]
    fn calls_are_refused_for_waiting_goals_and_beyond_the_limit() {
        let mut rounds = RoundsState { calls: 2, ..RoundsState::default() };
        let goal = Some(GoalId(2));
        assert_eq!(refusal(&rounds, &limits(), goal, &[]), None);
        assert_eq!(refusal(&rounds, &limits(), goal, &[GoalId(1)]).unwrap(), "GOAL_2 waits for GOAL_1");
        rounds.calls = 3;
        assert_eq!(refusal(&rounds, &limits(), None, &[]).unwrap(), "the limit of 3 tool calls is reached");
    }

    #[test]
    fn a_goal_is_reached_by_done_or_by_confidence() {
        let mut two = goals(&[&[], &[1]]);
        let sure = Score::new(CONFIDENCE_THRESHOLD);
        assert_eq!(note_progress(&mut two, Action::ToolCall, Some(GoalId(1)), Score::new(0.5)), None);
        assert_eq!(two[0].status, GoalStatus::Pending);
        assert_eq!(note_progress(&mut two, Action::ToolCall, Some(GoalId(2)), sure), None);
        assert_eq!(two[1].status, GoalStatus::Pending, "a goal that waits is not reached");
        assert_eq!(note_progress(&mut two, Action::ToolCall, Some(GoalId(1)), sure), None);
        assert_eq!((two[0].status, two[1].status), (GoalStatus::Done, GoalStatus::InProgress));
        let ended = note_progress(&mut two, Action::Done, Some(GoalId(2)), None);
        assert_eq!(ended.as_deref(), Some("DONE: all goals are reached"));
    }

    #[test]
    fn done_without_a_goal_ends_the_loop() {
        let ended = note_progress(&mut [], Action::Done, None, None);
        assert_eq!(ended.as_deref(), Some("DONE"));
        let ended = note_progress(&mut goals(&[&[], &[]]), Action::Done, None, None);
        assert_eq!(ended.as_deref(), Some("DONE with GOAL_1, GOAL_2 not reached"));
        assert_eq!(note_progress(&mut [], Action::ToolCall, None, Score::new(1.0)), None);
    }
}
