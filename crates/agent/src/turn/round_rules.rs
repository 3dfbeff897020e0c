//! The rules of the coordinator's loop: when it ends, which calls are refused, when a goal is reached. Pure functions
//! of the loop's state.

use larder_engine::settings::TurnLimits;
use larder_vault::Score;
use larder_vault::context::{Action, Goal, GoalId};
use serde::{Deserialize, Serialize};

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

/// What the calls for a goal came to in the rounds before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GoalCalls {
    pub(super) made: bool,
    pub(super) had_result: bool,
}

/// Marks the goal of a round as reached if the round says DONE or is confident enough, and earlier calls for it had a
/// result: a confidence stated before any result says nothing. A goal that is DONE although none of its calls had a
/// result is given up. Returns why the loop ends, if it does: by DONE without a goal, or by DONE for the last one that
/// can be worked on.
pub(super) fn note_progress(
    goals: &mut [Goal],
    action: Action,
    goal: Option<GoalId>,
    confidence: Option<Score>,
    calls: GoalCalls,
) -> Option<String> {
    let done = action == Action::Done;
    if goals.is_empty() {
        let failed = calls.made && !calls.had_result;
        let reason = if failed { "DONE with the goal not reached: no call had a result" } else { "DONE" };
        return done.then(|| reason.to_owned());
    }
    let confident = confidence.is_some_and(|confidence| confidence.get() >= CONFIDENCE_THRESHOLD);
    if let Some(goal) = goal.filter(|goal| goals::waits_for(goals, *goal).is_empty()) {
        // Without calls, what was gathered before answers the goal.
        if calls.had_result && confident || done && (calls.had_result || !calls.made) {
            goals::reached(goals, goal);
        } else if done {
            goals::given_up(goals, goal);
        }
    }
    let open = goals::open(goals);
    (done && (goal.is_none() || goals::focus(goals).is_none())).then(|| match open.as_slice() {
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

    const FOUND: GoalCalls = GoalCalls { made: true, had_result: true };
    const FAILED: GoalCalls = GoalCalls { made: true, had_result: false };

    #[test]
    fn a_goal_is_reached_by_results_with_done_or_confidence() {
        let mut two = goals(&[&[], &[1]]);
        let (sure, unsure) = (Score::new(CONFIDENCE_THRESHOLD), Score::new(0.5));
        let (first, second) = (Some(GoalId(1)), Some(GoalId(2)));
        assert_eq!(note_progress(&mut two, Action::ToolCall, first, unsure, FOUND), None);
        assert_eq!(note_progress(&mut two, Action::ToolCall, first, sure, GoalCalls::default()), None);
        assert_eq!(note_progress(&mut two, Action::ToolCall, first, sure, FAILED), None);
        assert_eq!(two[0].status, GoalStatus::Pending, "no result yet");
        assert_eq!(note_progress(&mut two, Action::ToolCall, second, sure, FOUND), None);
        assert_eq!(two[1].status, GoalStatus::Pending, "a goal that waits is not reached");
        assert_eq!(note_progress(&mut two, Action::ToolCall, first, sure, FOUND), None);
        assert_eq!((two[0].status, two[1].status), (GoalStatus::Done, GoalStatus::InProgress));
        let ended = note_progress(&mut two, Action::Done, second, None, FOUND);
        assert_eq!(ended.as_deref(), Some("DONE: all goals are reached"));
    }

    #[test]
    fn a_goal_without_results_is_given_up() {
        let mut three = goals(&[&[], &[1], &[]]);
        assert_eq!(note_progress(&mut three, Action::Done, Some(GoalId(1)), None, FAILED), None);
        assert_eq!(three[0].status, GoalStatus::Failed);
        let ended = note_progress(&mut three, Action::Done, Some(GoalId(3)), None, GoalCalls::default());
        assert_eq!(ended.as_deref(), Some("DONE with GOAL_1, GOAL_2 not reached"));
        assert_eq!(three[2].status, GoalStatus::Done, "it was known before");
    }

    #[test]
    fn done_without_a_goal_ends_the_loop() {
        let none = GoalCalls::default();
        let ended = note_progress(&mut [], Action::Done, None, None, none);
        assert_eq!(ended.as_deref(), Some("DONE"));
        let ended = note_progress(&mut [], Action::Done, None, None, FAILED).unwrap();
        assert!(ended.starts_with("DONE with the goal not reached"), "{ended}");
        let ended = note_progress(&mut goals(&[&[], &[]]), Action::Done, None, None, none);
        assert_eq!(ended.as_deref(), Some("DONE with GOAL_1, GOAL_2 not reached"));
        assert_eq!(note_progress(&mut [], Action::ToolCall, None, Score::new(1.0), none), None);
    }
}
