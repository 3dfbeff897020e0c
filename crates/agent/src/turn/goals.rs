//! Several goals with dependencies (R1-3.82, R1-3.83): which can be worked on, which wait, and the status of each. Plain
//! functions of the goals; the planner's answer has no cycles and no unknown goals.

use larder_vault::context::{Goal, GoalId, GoalStatus};

/// The goals that must be reached before this one can be worked on.
pub(super) fn waits_for(goals: &[Goal], id: GoalId) -> Vec<GoalId> {
    let reached = |id: &GoalId| goals.iter().any(|goal| goal.id == *id && goal.status == GoalStatus::Done);
    let goal = goals.iter().find(|goal| goal.id == id);
    let needed = goal.map(|goal| goal.dependencies.as_slice()).unwrap_or_default();
    needed.iter().filter(|id| !reached(id)).copied().collect()
}

/// The goals that can be worked on: neither reached nor given up, and waiting for none.
pub(super) fn workable(goals: &[Goal]) -> impl Iterator<Item = &Goal> {
    let is_open = |goal: &Goal| !matches!(goal.status, GoalStatus::Done | GoalStatus::Failed);
    goals.iter().filter(move |goal| is_open(goal) && waits_for(goals, goal.id).is_empty())
}

/// The goal to work on: the first that can be.
pub(super) fn focus(goals: &[Goal]) -> Option<&Goal> {
    workable(goals).next()
}

/// Marks a goal as reached and starts the next one.
pub(super) fn reached(goals: &mut [Goal], id: GoalId) {
    end(goals, id, GoalStatus::Done);
}

/// Marks a goal as given up and starts the next one.
pub(super) fn given_up(goals: &mut [Goal], id: GoalId) {
    end(goals, id, GoalStatus::Failed);
}

fn end(goals: &mut [Goal], id: GoalId, status: GoalStatus) {
    if let Some(goal) = goals.iter_mut().find(|goal| goal.id == id) {
        goal.status = status;
    }
    let next = focus(goals).map(|goal| goal.id);
    if let Some(goal) = goals.iter_mut().find(|goal| Some(goal.id) == next) {
        goal.status = GoalStatus::InProgress;
    }
}

/// The status of each goal, for the coordinator: `GOAL_2 waits for GOAL_1`.
pub(super) fn status_lines(goals: &[Goal]) -> Vec<String> {
    let focus = focus(goals).map(|goal| goal.id);
    let line = |goal: &Goal| {
        let waits = waits_for(goals, goal.id);
        if goal.status == GoalStatus::Done {
            format!("{} is reached.", goal.id)
        } else if goal.status == GoalStatus::Failed {
            format!("{} was given up: no call for it had a result.", goal.id)
        } else if !waits.is_empty() {
            format!("{} waits for {}.", goal.id, names(&waits))
        } else if Some(goal.id) == focus {
            format!("{} is next: {}", goal.id, goal.description)
        } else {
            format!("{} may be worked at: {}", goal.id, goal.description)
        }
    };
    goals.iter().map(line).collect()
}

/// The goals that were not reached.
pub(super) fn open(goals: &[Goal]) -> Vec<GoalId> {
    goals.iter().filter(|goal| goal.status != GoalStatus::Done).map(|goal| goal.id).collect()
}

/// `GOAL_1, GOAL_2`.
pub(super) fn names(ids: &[GoalId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goals(dependencies: &[&[u32]]) -> Vec<Goal> {
        let goal = |(at, needs): (usize, &&[u32])| Goal {
            id: GoalId(u32::try_from(at).unwrap() + 1),
            description: format!("goal {}", at + 1),
            status: GoalStatus::Pending,
            dependencies: needs.iter().copied().map(GoalId).collect(),
        };
        dependencies.iter().enumerate().map(goal).collect()
    }

    #[test]
    fn goals_are_worked_on_in_the_order_of_their_dependencies() {
        let mut goals = goals(&[&[3], &[1], &[], &[2, 3]]);
        let mut order = Vec::new();
        while let Some(next) = focus(&goals).map(|goal| goal.id) {
            order.push(next.0);
            reached(&mut goals, next);
        }
        assert_eq!(order, [3, 1, 2, 4]);
        assert!(open(&goals).is_empty());
    }

    #[test]
    fn a_goal_waits_for_what_is_not_reached() {
        let mut goals = goals(&[&[], &[1], &[1, 2]]);
        assert_eq!(waits_for(&goals, GoalId(3)), [GoalId(1), GoalId(2)]);
        reached(&mut goals, GoalId(1));
        assert_eq!(waits_for(&goals, GoalId(3)), [GoalId(2)]);
        assert_eq!(goals[1].status, GoalStatus::InProgress);
        assert_eq!(
            status_lines(&goals),
            ["GOAL_1 is reached.", "GOAL_2 is next: goal 2", "GOAL_3 waits for GOAL_2."]
        );
        assert!(waits_for(&goals, GoalId(9)).is_empty());
    }
}
