//! Applies changes to a request as edits of its bytes. Decides nothing: the policy decides what to change.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use larder_core::policy::MessageForm;
use larder_text::json::{self, Edit, Id, Kind, Value, encoded};

use super::dialect::ApiDialect;
use super::request::{Item, OWN_FIELD, Request};
use super::tool::rehydrate_tool_json;

/// What to remove, and its replacement.
#[derive(Default)]
struct EditPlan {
    edits: Vec<Edit>,
    /// Elements of arrays that are removed.
    gone: BTreeSet<Id>,
    /// Their arrays.
    arrays: BTreeSet<Id>,
    /// Ranges in which nothing else is edited.
    closed: Vec<Range<usize>>,
}

impl<'b> Request<'b> {
    /// Why Larder's tool cannot be offered, so that nothing may be replaced by a pointer; `None` if it can.
    pub const fn unofferable(&self) -> Option<&'static str> {
        self.unofferable
    }

    /// The service that it asks its provider for.
    pub fn service_tier(&self) -> Option<Cow<'_, str>> {
        let root = self.doc.root();
        let tier = root.given("service_tier").or_else(|| root.given("serviceTier")?.given("type"));
        tier.and_then(Value::text)
    }

    /// Its fields, each with its JSON.
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, &'b str)> {
        self.doc.root().members().map(|(name, value)| (name.text(), value.raw()))
    }

    /// What the client notes under a name in the request's `metadata`.
    pub fn metadata(&self, name: &str) -> Option<Cow<'_, str>> {
        self.doc.root().given("metadata")?.given(name)?.text()
    }

    /// Replaces the model's name; `None` if the request names none.
    pub fn set_model(&self, name: &str) -> Option<Edit> {
        let at = self.doc.value(self.model?.at).span();
        Some(Edit::replace(at, encoded(name)))
    }

    /// Names the response that the provider holds under `id` where the client names the first round of the same reply.
    pub fn continue_from(&self, id: &str) -> Option<Edit> {
        let named = self.doc.root().given("previous_response_id")?;
        (!id.is_empty() && !named.is(id)).then(|| Edit::replace(named.span(), encoded(id)))
    }

    /// Offers Larder's tool after the client's own, and adds it to a list of allowed tools. `tool_choice` is
    /// unchanged: a client that forbids tools or forces one gets what it asks for.
    pub fn offer(&self) -> Vec<Edit> {
        if self.unofferable.is_some() {
            return Vec::new();
        }
        let name = self.tool_name;
        let tool = &rehydrate_tool_json(self.dialect, name);
        let root = self.doc.root();
        let tools = self.tools_at.map(|at| self.doc.value(at)).or_else(|| root.get("tools"));
        let offer = match tools {
            Some(tools) if tools.kind() == Kind::Array => json::append_to(tools, tool),
            Some(tools) if tools.kind() == Kind::Null => Edit::replace(tools.span(), format!("[{tool}]")),
            Some(_) => return Vec::new(),
            None => json::add_members(root, &self.dialect.format().tools_member(&format!("[{tool}]"))),
        };
        let allowed = self.allowed_at.map(|at| self.doc.value(at));
        let allowed =
            allowed.map(|allowed| json::append_to(allowed, &self.dialect.format().tool_reference(name)));
        std::iter::once(offer).chain(allowed).collect()
    }

    /// Applies these forms to items, each named by its index at most once, and removes Larder's own fields, since
    /// providers reject unknown ones. Must be called even if nothing changes. A replaced text leaves non-text parts
    /// and cache breakpoints in place; a dropped item is removed with its calls.
    pub fn rewrite(&self, forms: &[(usize, &MessageForm)]) -> Vec<Edit> {
        let forms: BTreeMap<usize, &MessageForm> = forms.iter().copied().collect();
        let mut plan = EditPlan::default();
        self.drop_items(&forms, &mut plan);
        for (&at, form) in &forms {
            if let (Some(item), MessageForm::Replaced(with)) = (self.items.get(at), form) {
                self.replace_text(item, &with.text, &mut plan);
            }
        }
        plan.closed.sort_by_key(|span| span.start);
        let own: BTreeSet<Id> = self.own.iter().copied().collect();
        for object in own.into_iter().map(|id| self.doc.value(id)) {
            if !plan.is_closed(object.span().start) {
                plan.edits.extend(json::without(object, &[OWN_FIELD]));
            }
        }
        for &array in &plan.arrays {
            let items: Vec<_> = self.doc.value(array).items().collect();
            let spans: Vec<_> = items.iter().map(|item| item.span()).collect();
            let gone = |at: usize| items.get(at).is_some_and(|item| plan.gone.contains(&item.id()));
            plan.edits.extend(json::remove_from(&spans, gone));
        }
        plan.edits
    }

    /// Removes messages that become empty, and blocks of the others.
    fn drop_items(&self, forms: &BTreeMap<usize, &MessageForm>, plan: &mut EditPlan) {
        let dropped = |at: usize| forms.get(&at).is_some_and(|form| **form == MessageForm::Dropped);
        let mut at = 0;
        while let Some(first) = self.items.get(at) {
            // The items of one message.
            let message = first.message;
            let count = if message.is_none() {
                1
            } else {
                self.items[at..].iter().take_while(|item| item.message == message).count()
            };
            let all = at..at + count;
            let element = message.and_then(|message| self.elements.get(message).copied());
            match (element, self.list) {
                (Some(element), Some(list)) if all.clone().all(dropped) => {
                    plan.take(self, list, element);
                }
                (Some(element), _) => {
                    for (&item, form) in forms.range(all) {
                        self.drop_item(&self.items[item], form, element, plan);
                    }
                }
                _ => {}
            }
            at += count;
        }
    }

    fn drop_item(&self, item: &Item<'_>, form: &MessageForm, element: Id, plan: &mut EditPlan) {
        let text = match form {
            MessageForm::Whole | MessageForm::Replaced(_) => return,
            MessageForm::Dropped => None,
            MessageForm::DroppedFor(with) => Some(encoded(&with.text)),
        };
        let Some((blocks, content)) = item.blocks.as_ref().zip(self.doc.value(element).get("content")) else {
            if let Some(text) = text {
                let content = match self.dialect {
                    ApiDialect::Converse => format!("[{}]", self.dialect.format().text_block(&text)),
                    _ => text,
                };
                let message = format!(r#"{{"role":"assistant","content":{content}}}"#);
                plan.replace(self, element, message);
            }
            return;
        };
        let mut blocks = blocks.iter();
        if let (Some(text), Some(&first)) = (text, blocks.as_slice().first()) {
            plan.replace(self, first, self.dialect.format().text_block(&text));
            blocks.next();
        }
        for &block in blocks {
            plan.take(self, content.id(), block);
        }
    }

    fn replace_text(&self, item: &Item<'_>, text: &str, plan: &mut EditPlan) {
        // The part with a breakpoint keeps its place, so that the provider's cache ends where the client wants it to.
        let marked = item.texts.iter().rfind(|text| text.part.is_some_and(|(_, marked)| marked));
        let Some(kept) = marked.or_else(|| item.texts.first()) else { return };
        plan.edits.push(Edit::replace(self.doc.value(kept.at).span(), encoded(text)));
        let Some(content) = item.content else { return };
        for other in item.texts.iter().filter(|text| text.at != kept.at) {
            if let Some((part, _)) = other.part {
                plan.take(self, content, part);
            }
        }
    }
}

impl EditPlan {
    fn take(&mut self, request: &Request<'_>, array: Id, element: Id) {
        self.gone.insert(element);
        self.arrays.insert(array);
        self.closed.push(request.doc.value(element).span());
    }

    /// Whether byte `at` is in a removed range; `closed` is sorted.
    fn is_closed(&self, at: usize) -> bool {
        let before = self.closed.partition_point(|span| span.start <= at);
        self.closed[..before].last().is_some_and(|span| span.contains(&at))
    }

    fn replace(&mut self, request: &Request<'_>, value: Id, with: String) {
        let span = request.doc.value(value).span();
        self.closed.push(span.clone());
        self.edits.push(Edit::replace(span, with));
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
