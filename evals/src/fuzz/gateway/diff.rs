//! How a body that leaves differs from the one that came in, judged by the two texts alone.

use std::borrow::Cow;

use larder_proxy::wire::{ApiDialect, REHYDRATE, rehydrate_tool_json};
use larder_text::json::{self, Edit, Kind, Value};

use super::cut;

/// The field of ours that never leaves.
const OWN_FIELD: &str = "summarizable";

/// What was changed, as far as it may be.
pub(super) struct Diff {
    /// Texts that were replaced, each with its replacement.
    pub replaced: Vec<(String, String)>,
    /// Our tool was added, to the tools or to a list of allowed ones.
    pub offered: bool,
    /// Something was taken out: a field of ours, or a text whose place another one took.
    pub removed: bool,
    /// The edits by which the one body becomes the other, unless something was taken out.
    pub edits: Vec<Edit>,
    tool: Cow<'static, str>,
}

impl Diff {
    /// Compares two bodies; `tool` is the name of ours.
    ///
    /// # Errors
    /// What differs that must not.
    pub(super) fn of(
        dialect: ApiDialect,
        tool: &str,
        before: Value<'_, '_>,
        after: Value<'_, '_>,
    ) -> Result<Self, String> {
        let tool = rehydrate_tool_json(dialect, tool);
        let mut diff = Self { replaced: Vec::new(), offered: false, removed: false, edits: Vec::new(), tool };
        diff.values(before, after)?;
        Ok(diff)
    }

    fn values(&mut self, before: Value<'_, '_>, after: Value<'_, '_>) -> Result<(), String> {
        if before.raw() == after.raw() {
            return Ok(());
        }
        match (before.kind(), after.kind()) {
            (Kind::String, Kind::String) => {
                let text = |value: Value<'_, '_>| value.text().unwrap_or_default().into_owned();
                self.replaced.push((text(before), text(after)));
                self.edits.push(Edit::replace(before.span(), after.raw()));
                Ok(())
            }
            (Kind::Object, Kind::Object) => self.objects(before, after),
            (Kind::Array, Kind::Array) => self.arrays(before, after),
            (Kind::Null, Kind::Array) if after.raw() == format!("[{}]", self.tool) => {
                self.offered = true;
                self.edits.push(Edit::replace(before.span(), after.raw()));
                Ok(())
            }
            _ => Err(format!("{} became {}", cut(before.raw()), cut(after.raw()))),
        }
    }

    fn objects(&mut self, before: Value<'_, '_>, after: Value<'_, '_>) -> Result<(), String> {
        let mut rest = after.members();
        let mut next = rest.next();
        for (name, value) in before.members() {
            match next {
                Some((same, then)) if same.raw() == name.raw() => {
                    self.values(value, then)?;
                    next = rest.next();
                }
                _ if name.is(OWN_FIELD) => self.removed = true,
                _ => return Err(format!("the field {} is missing", name.raw())),
            }
        }
        match next {
            None => Ok(()),
            Some((name, tools)) if name.is("tools") && tools.raw() == format!("[{}]", self.tool) => {
                self.offered = true;
                self.edits.push(json::add_members(before, &format!("{}:{}", name.raw(), tools.raw())));
                rest.next().map_or(Ok(()), |(name, _)| Err(format!("the field {} is new", name.raw())))
            }
            Some((name, _)) => Err(format!("the field {} is new", name.raw())),
        }
    }

    fn arrays(&mut self, before: Value<'_, '_>, after: Value<'_, '_>) -> Result<(), String> {
        let (old, mut new): (Vec<_>, Vec<_>) = (before.items().collect(), after.items().collect());
        if new.len() == old.len() + 1
            && let Some(last) = new.pop()
        {
            if last.raw() != self.tool && !(last.raw().len() < 100 && last.raw().contains(REHYDRATE)) {
                return Err(format!("{} is new", cut(last.raw())));
            }
            self.offered = true;
            self.edits.push(json::append_to(before, last.raw()));
        }
        if new.len() == old.len() {
            return old.into_iter().zip(new).try_for_each(|(old, new)| self.values(old, new));
        }
        let mut old = old.into_iter();
        for new in new {
            loop {
                let Some(candidate) = old.next() else {
                    return Err(format!("{} was added", cut(new.raw())));
                };
                let (replaced, edits) = (self.replaced.len(), self.edits.len());
                if self.values(candidate, new).is_ok() {
                    break;
                }
                self.replaced.truncate(replaced);
                self.edits.truncate(edits);
                self.take_out(candidate)?;
            }
        }
        old.try_for_each(|gone| self.take_out(gone))
    }

    /// A text whose place another one took may go.
    fn take_out(&mut self, part: Value<'_, '_>) -> Result<(), String> {
        let kind = part.get("type").and_then(Value::text).unwrap_or_default();
        if !["text", "input_text", "output_text"].contains(&&*kind) {
            return Err(format!("{} is missing", cut(part.raw())));
        }
        self.removed = true;
        Ok(())
    }
}
