//! Numbers of a type that must not contradict each other, or what its recipes say.

use larder_core::recipe::{DiagnosticCode, PromptInputs, Recipe, SlotSource};
use larder_text::words::counted;

use super::Check;
use crate::kind::{CallTime, CallWhen, SummaryRules};

impl Check<'_> {
    pub(super) fn numbers(&mut self) {
        let kind = self.kind;
        let window = kind.window;
        self.at_most("/window/protected", "protected", window.protected, "with_summary", window.with_summary);
        let (with, without) = (window.with_summary, window.without_summary);
        self.at_most("/window/with_summary", "with_summary", with, "without_summary", without);
        self.summary("/summary", &kind.summary, "");
        for (at, stage) in kind.stages.iter().enumerate().filter(|(_, stage)| stage.summary.is_some()) {
            self.summary(&format!("/stages/{at}/summary"), &kind.summary_in(stage), &stage.name);
        }
        let memory = &kind.memory;
        self.at_most(
            "/memory/shown_facts",
            "shown_facts",
            memory.shown_facts,
            "per_session",
            memory.per_session,
        );
        if let Some(later) = kind
            .stages
            .iter()
            .position(|stage| stage.retrieval.later.is_some_and(|later| later.depth <= stage.retrieval.depth))
        {
            let message = "`later` goes no further than `depth`";
            self.report(
                &format!("/stages/{later}/retrieval/later"),
                DiagnosticCode::Contradiction,
                message,
                "",
            );
        }
        for (at, stage) in kind.stages.iter().enumerate() {
            for (model, threshold) in &stage.retrieval.thresholds {
                if !(0.0..=1.0).contains(threshold) {
                    let pointer = format!("/stages/{at}/retrieval/thresholds/{}", model.replace('/', "~1"));
                    let message = format!("the threshold for `{model}` must be between 0 and 1");
                    self.report(&pointer, DiagnosticCode::OutOfRange, message, "");
                }
            }
        }
        self.protected("/recipe", &kind.recipe, "window.protected", window.protected);
        if let Some(small) = &kind.small {
            self.protected("/small/recipe", &small.recipe, "small.protected", small.protected);
            self.at_most(
                "/small/protected",
                "small.protected",
                small.protected,
                "window.protected",
                window.protected,
            );
            self.small_prompts(&small.recipe, small.system_tokens);
        }
        self.waiting();
    }

    fn at_most(&mut self, pointer: &str, what: &str, value: usize, other: &str, most: usize) {
        if value > most {
            let message = format!("`{what}` is {value}, more than `{other}`, which is {most}");
            self.report(
                pointer,
                DiagnosticCode::Contradiction,
                message,
                format!("lower it, or raise `{other}`"),
            );
        }
    }

    fn summary(&mut self, pointer: &str, rules: &SummaryRules, stage: &str) {
        let of = if stage.is_empty() { String::new() } else { format!(" in stage {stage}") };
        let protected = self.kind.window.protected;
        let SummaryRules { after_messages, keep, .. } = *rules;
        let kept = counted(keep as u64, "message");
        if keep >= after_messages {
            let message = format!("the summary{of} keeps {kept} out, and starts after {after_messages}");
            let help = "a summary must have something to cover: lower `keep`, or raise `after_messages`";
            self.report(&format!("{pointer}/keep"), DiagnosticCode::Contradiction, message, help);
        }
        if keep < protected {
            let message = format!("the summary{of} keeps {kept} out, and {protected} are protected");
            let help =
                format!("raise `keep` to {protected}, so that a new summary does not move what is sent");
            self.report(&format!("{pointer}/keep"), DiagnosticCode::Contradiction, message, help);
        }
    }

    /// The recipe's slot of messages must protect as many as the type.
    fn protected(&mut self, pointer: &str, recipe: &str, key: &str, protected: usize) {
        let Ok(recipe) = self.known.recipe(recipe) else { return };
        let slot = recipe.slots.iter().find(|slot| slot.source == SlotSource::Messages);
        let Some(own) = slot.map(|slot| slot.slot.protect_last) else { return };
        if own != protected {
            let message =
                format!("`{key}` is {protected}, and `protect_last` of recipe {} is {own}", recipe.id());
            self.report(pointer, DiagnosticCode::Contradiction, message, "write the same number in both");
        }
    }

    /// The prompts of the small recipe must leave room for the conversation.
    fn small_prompts(&mut self, name: &str, most: usize) {
        let Ok(recipe) = self.known.recipe(name) else { return };
        for stage in &self.kind.stages {
            let tokens = self.system_tokens(recipe, &stage.name);
            if let Some(tokens) = tokens.filter(|tokens| *tokens > most) {
                let message = format!("the system prompt of stage {} has {tokens} tokens", stage.name);
                let help =
                    format!("`small.system_tokens` is {most}; shorten the prompt in recipe {}", recipe.id());
                self.report("/small/system_tokens", DiagnosticCode::Contradiction, message, help);
            }
        }
    }

    fn system_tokens(&self, recipe: &Recipe, stage: &str) -> Option<usize> {
        let values = recipe.inputs.iter().map(|name| (name.clone(), "".into())).collect();
        let documents: Vec<String> = recipe.input_docs.iter().map(|doc| doc.name.clone()).collect();
        let inputs = PromptInputs {
            variant: Some(stage),
            documents: &documents,
            values: Some(&values),
            ..Default::default()
        };
        let rendered = recipe.render(&inputs).ok()?;
        let texts: Vec<&str> =
            rendered.system.iter().chain(&rendered.variant).map(|prompt| prompt.text.as_str()).collect();
        Some(self.known.counter.count(&texts.join("\n\n")))
    }

    /// What a reply waits for must end.
    fn waiting(&mut self) {
        for (key, call) in self.kind.calls.all() {
            let pointer = format!("/calls/{key}");
            let expected: &[CallTime] = match key {
                "intents" | "context" => &[CallTime::Before],
                "reply" => &[CallTime::Reply],
                "planning" => &[CallTime::Before, CallTime::Off],
                "facts" | "summary" | "embedding" => &[CallTime::Behind, CallTime::Off],
                _ => &[CallTime::Before, CallTime::Behind, CallTime::Off],
            };
            if !expected.contains(&call.runs) {
                let why = match key {
                    "reply" => "it is the reply itself",
                    "planning" => "it serves the reply to the same message",
                    "intents" | "context" => "the prompt is made of what it finds",
                    _ => "no reply waits for it",
                };
                let message = format!("`calls.{key}` cannot run then: {why}");
                self.report(&format!("{pointer}/runs"), DiagnosticCode::Contradiction, message, "");
            }
            let is_guarded = matches!(key, "references" | "planning");
            let unheeded = [
                ("when", !call.when.is_empty() && !is_guarded),
                ("timeout_ms", call.timeout_ms.is_some() && !is_guarded),
                ("breaker", call.breaker.is_some() && !is_guarded),
            ];
            for (name, _) in unheeded.into_iter().filter(|(_, is_given)| *is_given) {
                let message = format!("nothing heeds `{name}` of `calls.{key}`");
                let help = "remove it; only references and planning are left out or given up";
                self.report(&format!("{pointer}/{name}"), DiagnosticCode::Contradiction, message, help);
            }
            let detected = call.when.iter().position(|when| *when == CallWhen::ReferenceDetected);
            if let Some(at) = detected.filter(|_| key == "references") {
                let message = "`calls.references` waits for what it is to detect itself".to_owned();
                let help = "write `undecided`, or remove it";
                let pointer = format!("{pointer}/when/{at}");
                self.report(&pointer, DiagnosticCode::Contradiction, message, help);
            }
            if call.recipe.is_some() && call.runs == CallTime::Before && call.timeout_ms.is_none() {
                let message = format!("a reply waits for `calls.{key}` without limit");
                self.report(&pointer, DiagnosticCode::MissingField, message, "add `timeout_ms`");
            }
        }
    }
}
