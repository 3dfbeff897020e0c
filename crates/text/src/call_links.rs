//! Which messages of a conversation belong together: the model's steps, and calls with their results. Used both for
//! slots of messages and for forwarded conversations.
//!
//! Knows roles and ids; does not know texts, costs or decisions.

use hashbrown::HashMap;

use crate::message::Role;

/// How a message relates to those before it. `C` is the caller's representation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLink<C> {
    /// The index of the first message of its group. A group is dropped as a unit.
    pub group: usize,
    /// No call is waiting for a result after this message.
    pub settled: bool,
    /// The index of the message that made the answered call, and the call.
    pub answers: Option<(usize, C)>,
}

/// Links the messages of one conversation in order. A step of the model (its consecutive messages and their results)
/// forms one group.
pub struct Linker<'a, C> {
    /// Calls waiting for a result: the index of their message, its group, and the call.
    open: HashMap<&'a str, (usize, usize, C)>,
    /// The first message of the model's latest step.
    step: Option<usize>,
    /// Someone other than the model has spoken since.
    answered: bool,
}

impl<C> Default for Linker<'_, C> {
    fn default() -> Self {
        Self { open: HashMap::new(), step: None, answered: false }
    }
}

impl<'a, C> Linker<'a, C> {
    /// Links message `at`, which must follow the last one linked.
    pub fn link(
        &mut self,
        at: usize,
        role: Role,
        calls: impl Iterator<Item = (&'a str, C)>,
        result_of: Option<&str>,
    ) -> CallLink<C> {
        let (mut group, mut answers) = (at, None);
        match role {
            Role::Assistant => {
                if self.answered {
                    // The model has moved on, so calls that are still open never receive a result.
                    self.open.clear();
                    self.step = None;
                }
                self.answered = false;
                group = *self.step.get_or_insert(at);
                self.open.extend(calls.map(|(id, call)| (id, (at, group, call))));
            }
            Role::Tool => {
                self.answered = true;
                if let Some((by, step, call)) = result_of.and_then(|id| self.open.remove(id)) {
                    group = step;
                    answers = Some((by, call));
                }
            }
            Role::User | Role::System => self.answered = true,
        }
        CallLink { group, settled: self.open.is_empty(), answers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Message = (Role, &'static [&'static str], Option<&'static str>);

    fn linked(messages: &[Message]) -> Vec<CallLink<()>> {
        let mut linker = Linker::default();
        let link = |(at, (role, calls, result_of)): (usize, &Message)| {
            linker.link(at, *role, calls.iter().map(|id| (*id, ())), *result_of)
        };
        messages.iter().enumerate().map(link).collect()
    }

    #[test]
    fn a_step_of_the_model_and_its_results_form_one_group() {
        let links = linked(&[
            (Role::User, &[], None),
            (Role::Assistant, &["a"], None),
            (Role::Assistant, &["b"], None),
            (Role::Tool, &[], Some("b")),
            (Role::Tool, &[], Some("a")),
            (Role::Assistant, &[], None),
        ]);
        assert_eq!(links.iter().map(|link| link.group).collect::<Vec<_>>(), [0, 1, 1, 1, 1, 5]);
        let settled: Vec<bool> = links.iter().map(|link| link.settled).collect();
        assert_eq!(settled, [true, false, false, false, true, true]);
        assert_eq!(links[3].answers, Some((2, ())));
    }

    #[test]
    fn a_result_of_an_abandoned_call_is_a_group_of_its_own() {
        let links = linked(&[
            (Role::Assistant, &["a"], None),
            (Role::User, &[], None),
            (Role::Assistant, &[], None),
            (Role::Tool, &[], Some("a")),
        ]);
        assert!(!links[0].settled && !links[1].settled && links[2].settled);
        assert_eq!((links[3].group, links[3].answers), (3, None));
    }
}
