//! Keys that mean something only together with others: where nothing heeds one, it is reported.

use larder_core::recipe::DiagnosticCode;
use larder_text::words::counted;

use super::Check;
use crate::kind::{Action, Block, Gives, Intent, Trigger};

/// What only the intents that withhold the past have.
const MESSAGES: &str = "messages";
/// What only the intents that change retrieval have.
const RETRIEVAL: [&str; 2] = ["depth", "across_sessions"];
const INTENSITY: &str = "intensity";

impl Check<'_> {
    pub(super) fn heeded(&mut self) {
        let kind = self.kind;
        let rules = &kind.intents;
        let (withholding, retrieving) = ([MESSAGES, INTENSITY], [RETRIEVAL[0], RETRIEVAL[1], INTENSITY]);
        let intents: [(&str, &Intent, &[&str]); 7] = [
            ("avoid_recall", &rules.avoid_recall, &withholding),
            ("stage_enforcement", &rules.stage_enforcement, &withholding),
            ("high_distress", &rules.high_distress, &retrieving),
            ("commitment_reference", &rules.commitment_reference, &retrieving),
            ("past_reference", &rules.past_reference, &[]),
            ("process_question", &rules.process_question, &[]),
            ("memory_request", &rules.memory_request, &[]),
        ];
        for (name, intent, takes) in intents {
            self.intent(name, intent, takes);
        }
        for (name, action) in &kind.actions {
            let pointer = format!("/actions/{}", name.replace('~', "~0").replace('/', "~1"));
            self.started(&pointer, name, action);
        }
        let safety = &kind.safety;
        for (key, is_given) in [("text", safety.text.is_some()), ("tier", safety.tier.is_some())] {
            if is_given && safety.from_intensity.is_none() {
                let help = "add `from_intensity`, from which it counts, or remove it";
                self.unheeded(&format!("/safety/{key}"), format!("nothing heeds `safety.{key}`"), help);
            }
        }
        let key = "attack_phrases_not_with";
        if !safety.attack_phrases_not_with.is_empty() && safety.attack_phrases.is_empty() {
            let help = "add `attack_phrases`, or remove it";
            self.unheeded(&format!("/safety/{key}"), format!("nothing heeds `safety.{key}`"), help);
        }
    }

    fn unheeded(&mut self, pointer: &str, message: String, help: &str) {
        self.report(pointer, DiagnosticCode::Contradiction, message, help);
    }

    /// An intent takes what changes where it is found, and what it has no use for is no part of it.
    fn intent(&mut self, name: &str, intent: &Intent, takes: &[&str]) {
        let given = [
            ("not_after", !intent.not_after.is_empty()),
            (MESSAGES, intent.messages.is_some()),
            (RETRIEVAL[0], intent.depth.is_some()),
            (RETRIEVAL[1], intent.across_sessions.is_some()),
            (INTENSITY, intent.intensity.is_some()),
        ];
        for (key, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
            let pointer = format!("/intents/{name}/{key}");
            let message = format!("nothing heeds `{key}` of `intents.{name}`");
            if key != "not_after" && !takes.contains(&key) {
                let help = match takes {
                    [] => "remove it; this intent has phrases alone".to_owned(),
                    takes => format!("remove it; this intent takes {}", takes.join(", ")),
                };
                self.unheeded(&pointer, message, &help);
            } else if intent.phrases.is_empty() {
                self.unheeded(&pointer, message, "add `phrases` by which the intent is found, or remove it");
            }
        }
        let (messages, most) = (intent.messages.unwrap_or(0), self.kind.window.without_summary);
        if messages > most && takes.contains(&MESSAGES) {
            let sent = counted(messages as u64, "message");
            let message = format!("`{name}` sends {sent} without a summary, more than `without_summary`");
            let help = format!("lower it to {most}, or raise `window.without_summary`");
            self.unheeded(&format!("/intents/{name}/{MESSAGES}"), message, &help);
        }
    }

    /// What an action has no use for, by what starts it.
    fn started(&mut self, pointer: &str, name: &str, action: &Action) {
        let on = |triggers: &[Trigger]| action.on.iter().any(|trigger| triggers.contains(trigger));
        let is_chain = on(&[Trigger::Request, Trigger::Released, Trigger::Action]);
        let is_data = matches!(action.gives, Gives::Data | Gives::Verdict);
        let unheeded = [
            (
                "stages",
                !action.stages.is_empty()
                    && !on(&[Trigger::Request, Trigger::Dispatch, Trigger::Share, Trigger::Released]),
                "remove it; the start and other actions lead to it in any stage",
            ),
            (
                "then",
                action.then.is_some() && !is_chain && !on(&[Trigger::Start]),
                "remove it; nothing follows what a reply or an act of sharing starts",
            ),
            (
                "entries_about",
                action.entries_about.is_some() && !(is_data && is_chain),
                "remove it; only data that a participant asks for or releases has entries about others",
            ),
            (
                "gives",
                is_data && on(&[Trigger::Dispatch]),
                "write `gives: reply` or `draft`: what a reply starts takes its place; or remove `dispatch`",
            ),
        ];
        for (key, _, help) in unheeded.into_iter().filter(|(_, is_unheeded, _)| *is_unheeded) {
            self.unheeded(
                &format!("{pointer}/{key}"),
                format!("nothing heeds `{key}` of action `{name}`"),
                help,
            );
        }
        for (at, block) in action.reads.iter().enumerate() {
            let (is_there, when) = match block {
                Block::Draft => (on(&[Trigger::Share]), "`on: [share]`"),
                Block::Released => (on(&[Trigger::Released]), "`on: [released]`"),
                Block::Result => (on(&[Trigger::Action]), "`on: [action]`"),
                Block::Process => {
                    let always = on(&[Trigger::Request, Trigger::Dispatch, Trigger::Start]);
                    (always || is_chain, "another trigger than `share`")
                }
                _ => (is_chain || on(&[Trigger::Dispatch]), "another trigger than `share` and `start`"),
            };
            if !is_there {
                let message = format!("`{}` is never there for action `{name}`", block.as_str());
                let help = format!("remove it, or start the action with {when}");
                self.unheeded(&format!("{pointer}/reads/{at}"), message, &help);
            }
        }
    }
}
