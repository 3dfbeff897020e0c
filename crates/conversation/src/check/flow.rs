//! Names inside a type: stages, transitions, milestones, actions, categories and prompt files.

use std::collections::BTreeSet;

use larder_core::recipe::DiagnosticCode;

use super::Check;
use crate::kind::{Action, Aside, Condition, Gives, Sight, Trigger};

/// The action that every type with sharing has.
const SHARE: &str = "share";

impl Check<'_> {
    pub(super) fn flow(&mut self) {
        for (pointer, path) in self.named_prompts() {
            self.prompt(&pointer, &path);
        }
        self.unique("/stages", "stage", self.kind.stages.iter().map(|stage| stage.name.as_str()).collect());
        let milestones = self.kind.milestones.iter().map(|milestone| milestone.name.as_str());
        self.unique("/milestones", "milestone", milestones.collect());
        let categories = self.kind.memory.categories.iter().map(|category| category.name.as_str());
        self.unique("/memory/categories", "category", categories.collect());
        self.stages();
        for (at, milestone) in self.kind.milestones.iter().enumerate() {
            self.condition(&format!("/milestones/{at}/when"), &milestone.when);
        }
        for (name, action) in &self.kind.actions {
            self.action(name, action);
        }
        self.sharing();
        self.router();
    }

    /// The preset of the router, and the tier of it that safety demands.
    fn router(&mut self) {
        let (kind, known) = (self.kind, self.known);
        let preset = match &kind.router {
            Some(name) => {
                self.expect("/router", "router", name, known.routers());
                known.router(name)
            }
            None => None,
        };
        let Some(tier) = &kind.safety.tier else { return };
        if let Some(preset) = preset {
            let tiers = preset.tiers.iter().map(|tier| tier.name.as_str());
            self.expect("/safety/tier", "tier", tier, tiers);
        } else if kind.router.is_none() {
            let message = format!("`{tier}` is a tier, but `router` names no preset");
            let help = "add `router: default`, or remove the tier: then the layer of the recipe answers";
            self.report("/safety/tier", DiagnosticCode::UnknownReference, message, help);
        }
    }

    fn unique(&mut self, pointer: &str, what: &str, names: Vec<&str>) {
        let mut seen = BTreeSet::new();
        for (at, name) in names.into_iter().enumerate() {
            if !seen.insert(name) {
                let message = format!("a second {what} is called `{name}`");
                self.report(
                    &format!("{pointer}/{at}/name"),
                    DiagnosticCode::Duplicate,
                    message,
                    "rename one",
                );
            }
        }
    }

    fn stages(&mut self) {
        let kind = self.kind;
        if kind.stages.first().is_some_and(|stage| stage.aside != Aside::No) {
            let message = "a participant starts in the first stage, which is an aside";
            let help = "list a stage of the main line first";
            self.report("/stages/0/aside", DiagnosticCode::Flow, message, help);
        }
        let names: Vec<&str> = kind.stages.iter().map(|stage| stage.name.as_str()).collect();
        for (at, stage) in kind.stages.iter().enumerate() {
            let pointer = format!("/stages/{at}");
            if stage.aside != Aside::No && !stage.next.is_empty() {
                let message = format!("the aside `{}` leads to other stages", stage.name);
                let help =
                    "remove `next`: an aside ends with its session, and the main line goes on where it was";
                self.report(&format!("{pointer}/next"), DiagnosticCode::Flow, message, help);
            }
            if stage.retrieval.linked_boost > 0.0 && stage.aside != Aside::Linked {
                let message = format!("`{}` has a linked_boost, but is linked to no session", stage.name);
                let pointer = format!("{pointer}/retrieval/linked_boost");
                self.report(&pointer, DiagnosticCode::Flow, message, "write `aside: linked`, or remove it");
            }
            for (number, next) in stage.next.iter().enumerate() {
                let place = format!("{pointer}/next/{number}");
                if self.expect(&format!("{place}/to"), "stage", &next.to, names.iter().copied())
                    && kind.stage(&next.to).is_some_and(|to| to.aside != Aside::No)
                {
                    let message = format!("`{}` is an aside, which no transition leads to", next.to);
                    let help = "an aside is begun as a session of its own";
                    self.report(&format!("{place}/to"), DiagnosticCode::Flow, message, help);
                }
                self.condition(&format!("{place}/when"), &next.when);
            }
        }
        self.reachable();
    }

    fn reachable(&mut self) {
        let Some(first) = self.kind.stages.first() else { return };
        let (mut reached, mut open) = (BTreeSet::new(), vec![first.name.as_str()]);
        while let Some(name) = open.pop() {
            if reached.insert(name)
                && let Some(stage) = self.kind.stage(name)
            {
                open.extend(stage.next.iter().map(|next| next.to.as_str()));
            }
        }
        for (at, stage) in self.kind.stages.iter().enumerate() {
            if stage.aside == Aside::No && !reached.contains(stage.name.as_str()) {
                let message = format!("no transition leads to the stage `{}`", stage.name);
                let help = "add one under `next` of another stage, or `aside` if it is a session of its own";
                self.report(&format!("/stages/{at}/name"), DiagnosticCode::Flow, message, help);
            }
        }
    }

    fn condition(&mut self, pointer: &str, when: &Condition) {
        let kind = self.kind;
        let names: Vec<&str> = kind.stages.iter().map(|stage| stage.name.as_str()).collect();
        for (key, stage) in [("stage", &when.stage), ("others_at", &when.others_at)] {
            if let Some(stage) = stage {
                self.expect(&format!("{pointer}/{key}"), "stage", stage, names.iter().copied());
            }
        }
        if when.others_at.is_some() && kind.participants.most < 2 {
            let message = "there are no other participants to wait for";
            let help = "raise participants.most, or remove the condition";
            self.report(&format!("{pointer}/others_at"), DiagnosticCode::Flow, message, help);
        }
        if let Some(field) = &when.field {
            self.field(&format!("{pointer}/field/name"), &field.name);
            self.value(&format!("{pointer}/field/value"), &field.name, &field.value);
        }
        if when.intensity_at_most.is_some() && kind.fields.intensity.is_none() {
            let message = "a condition reads the intensity, but `fields.intensity` names no field";
            let pointer = format!("{pointer}/intensity_at_most");
            self.report(
                &pointer,
                DiagnosticCode::UnknownReference,
                message,
                "name the field, or remove the condition",
            );
        }
    }

    fn action(&mut self, name: &str, action: &Action) {
        let kind = self.kind;
        let pointer = format!("/actions/{}", name.replace('~', "~0").replace('/', "~1"));
        if name == SHARE {
            let message = "`share` is the act of sharing, which every type with `sees: [shared]` has";
            self.report(&pointer, DiagnosticCode::NameTaken, message, "choose another name");
        }
        let names: Vec<&str> = kind.stages.iter().map(|stage| stage.name.as_str()).collect();
        for (at, stage) in action.stages.iter().enumerate() {
            self.expect(&format!("{pointer}/stages/{at}"), "stage", stage, names.iter().copied());
        }
        if let Some(then) = &action.then
            && self.expect(
                &format!("{pointer}/then"),
                "action",
                then,
                kind.actions.keys().map(String::as_str),
            )
            && kind.actions.get(then).is_some_and(|next| !next.on.contains(&Trigger::Action))
        {
            let message = format!("`{then}` is not started by other actions");
            self.report(
                &format!("{pointer}/then"),
                DiagnosticCode::Flow,
                message,
                "add `action` to its `on`",
            );
        }
        let has = |trigger| action.on.contains(&trigger);
        let at = format!("{pointer}/on");
        if has(Trigger::Dispatch) && kind.fields.dispatch.is_none() {
            let message = format!("replies cannot start `{name}`: `fields.dispatch` names no tag");
            self.report(&at, DiagnosticCode::Flow, message, "name the tag under `fields`");
        }
        if has(Trigger::Share) && action.gives != Gives::Verdict {
            let message = format!("`{name}` runs before something is shared and gives no verdict");
            self.report(&format!("{pointer}/gives"), DiagnosticCode::Flow, message, "write `gives: verdict`");
        }
        let shares = kind.participants.sees.contains(&Sight::Shared);
        for trigger in
            [Trigger::Share, Trigger::Released].into_iter().filter(|trigger| has(*trigger) && !shares)
        {
            let what = if trigger == Trigger::Share { "shared" } else { "released" };
            let message = format!("`{name}` waits for something {what}, but participants share nothing");
            self.report(&at, DiagnosticCode::Flow, message, "add `shared` to `participants.sees`");
        }
    }

    fn sharing(&mut self) {
        let kind = self.kind;
        if kind.participants.most < 2 && !kind.participants.sees.is_empty() {
            let message = "there are no other participants of whom something could be seen";
            self.report(
                "/participants/sees",
                DiagnosticCode::Flow,
                message,
                "raise `most`, or remove `sees`",
            );
        }
    }
}
