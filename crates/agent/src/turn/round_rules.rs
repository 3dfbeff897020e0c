//! The rules of the coordinator's loop: when it ends, which calls are refused, when a goal is reached. Pure functions
//! of the loop's state.

use larder_engine::settings::TurnLimits;
use larder_vault::Score;
use larder_vault::context::{Action, Goal, GoalId};
use serde::{Deserialize, Serialize};

use super::answers::CONFIDENCE_THRESHOLD;
use super::goals;
use super::state::RoundsState;

/// How the loop ends by the model's word.
pub(super) const DONE: &str = "DONE";
/// The name of a goal that is the only one.
pub(super) const ONLY_GOAL: &str = "the goal";

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
    /// One was carried out, whatever it found.
    #[serde(default)]
    pub(super) succeeded: bool,
    /// One found or did something.
    pub(super) had_result: bool,
}

/// The calls of the rounds so far by goal, and those without one.
pub(super) type CallsByGoal = [(Option<GoalId>, GoalCalls)];

/// Marks the goal of a round as reached if the round says DONE or is confident enough, and earlier calls for it had a
/// result: a confidence stated before any result says nothing. A goal that is DONE although none of its calls had a
/// result is given up; DONE without a goal ends all work, and reaches the goals whose calls had a result. Returns whether
/// the loop ends: by DONE without a goal, or by DONE for the last one that can be worked on.
pub(super) fn note_progress(
    goals: &mut [Goal],
    action: Action,
    goal: Option<GoalId>,
    confidence: Option<Score>,
    before: &CallsByGoal,
) -> bool {
    let done = action == Action::Done;
    let confident = confidence.is_some_and(|confidence| confidence.get() >= CONFIDENCE_THRESHOLD);
    if let Some(goal) = goal.filter(|goal| goals::waits_for(goals, *goal).is_empty()) {
        let calls = calls_for(before, Some(goal));
        // Without calls, what was gathered before answers the goal.
        if calls.had_result && confident || done && (calls.had_result || !calls.made) {
            goals::reached(goals, goal);
        } else if done {
            goals::given_up(goals, goal);
        }
    }
    if done && goal.is_none() {
        let with_result = |goals: &[Goal]| {
            let mut open = goals::workable(goals);
            open.find(|goal| calls_for(before, Some(goal.id)).had_result).map(|goal| goal.id)
        };
        while let Some(goal) = with_result(goals) {
            goals::reached(goals, goal);
        }
    }
    done && (goal.is_none() || goals::focus(goals).is_none())
}

fn calls_for(calls: &CallsByGoal, goal: Option<GoalId>) -> GoalCalls {
    calls.iter().find(|(of, _)| *of == goal).map(|(_, calls)| *calls).unwrap_or_default()
}

/// What the loop did not reach: goals by their names, or `the goal` of a plan with one, if all calls failed. With one
/// goal, that nothing was found is for the answer to say.
pub(super) fn unreached(goals: &[Goal], calls: &CallsByGoal) -> Vec<String> {
    if !goals.is_empty() {
        return goals::open(goals).iter().map(ToString::to_string).collect();
    }
    let calls = calls_for(calls, None);
    if calls.made && !calls.succeeded { vec![ONLY_GOAL.to_owned()] } else { Vec::new() }
}

/// Why the loop ended, with what it did not reach.
pub(super) fn termination(reason: &str, goals: &[Goal], unreached: &[String]) -> String {
    match unreached {
        [] if reason == DONE && !goals.is_empty() => format!("{DONE}: all goals are reached"),
        [] => reason.to_owned(),
        unreached => format!("{reason}; not reached: {}", unreached.join(", ")),
    }
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

    const FOUND: GoalCalls = GoalCalls { made: true, succeeded: true, had_result: true };
    const EMPTY: GoalCalls = GoalCalls { made: true, succeeded: true, had_result: false };
    const FAILED: GoalCalls = GoalCalls { made: true, succeeded: false, had_result: false };

    #[test]
    fn a_goal_is_reached_by_results_with_done_or_confidence() {
        let mut two = goals(&[&[], &[1]]);
        let (sure, unsure) = (Score::new(CONFIDENCE_THRESHOLD), Score::new(0.5));
        let (first, second) = (Some(GoalId(1)), Some(GoalId(2)));
        let found = [(first, FOUND), (second, FOUND)];
        let mut note = |action, goal, confidence, calls: &CallsByGoal| {
            let ended = note_progress(&mut two, action, goal, confidence, calls);
            (ended, two[0].status, two[1].status)
        };
        let pending = (false, GoalStatus::Pending, GoalStatus::Pending);
        assert_eq!(note(Action::ToolCall, first, unsure, &found), pending);
        for calls in [&[][..], &[(first, FAILED)], &[(first, EMPTY)], &[(second, FOUND)]] {
            assert_eq!(note(Action::ToolCall, first, sure, calls), pending, "no result yet: {calls:?}");
        }
        assert_eq!(note(Action::ToolCall, second, sure, &found), pending, "a goal that waits is not reached");
        let reached = (false, GoalStatus::Done, GoalStatus::InProgress);
        assert_eq!(note(Action::ToolCall, first, sure, &found), reached);
        assert_eq!(note(Action::Done, second, None, &found), (true, GoalStatus::Done, GoalStatus::Done));
        assert!(unreached(&two, &found).is_empty());
        assert_eq!(termination(DONE, &two, &[]), "DONE: all goals are reached");
    }

    #[test]
    fn a_goal_without_results_is_given_up() {
        for calls in [FAILED, EMPTY] {
            let mut three = goals(&[&[], &[1], &[]]);
            let before = [(Some(GoalId(1)), calls)];
            assert!(!note_progress(&mut three, Action::Done, Some(GoalId(1)), None, &before));
            assert_eq!(three[0].status, GoalStatus::Failed);
            assert!(note_progress(&mut three, Action::Done, Some(GoalId(3)), None, &before));
            assert_eq!(unreached(&three, &before), ["GOAL_1", "GOAL_2"]);
            assert_eq!(three[2].status, GoalStatus::Done, "it was known before");
        }
    }

    #[test]
    fn done_without_a_goal_ends_the_loop_and_reaches_what_has_results() {
        assert!(note_progress(&mut [], Action::Done, None, None, &[]));
        assert!(!note_progress(&mut [], Action::ToolCall, None, Score::new(1.0), &[]));
        let mut four = goals(&[&[2], &[], &[], &[3]]);
        let found = [1, 2, 4].map(|id| (Some(GoalId(id)), FOUND));
        assert!(note_progress(&mut four, Action::Done, None, None, &found));
        assert_eq!(unreached(&four, &found), ["GOAL_3", "GOAL_4"], "the last waits for one without results");
        let why = termination("the limit of 10 iterations is reached", &four, &unreached(&four, &found));
        assert_eq!(why, "the limit of 10 iterations is reached; not reached: GOAL_3, GOAL_4");
    }

    #[test]
    fn the_only_goal_is_not_reached_if_every_call_failed() {
        assert_eq!(unreached(&[], &[(None, FAILED)]), [ONLY_GOAL]);
        for calls in [&[][..], &[(None, EMPTY)], &[(None, FOUND)]] {
            assert!(unreached(&[], calls).is_empty());
        }
        assert_eq!(termination(DONE, &[], &[ONLY_GOAL.to_owned()]), "DONE; not reached: the goal");
        assert_eq!(termination(DONE, &[], &[]), DONE);
    }
}
