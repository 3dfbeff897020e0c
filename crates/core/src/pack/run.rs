//! The run of older messages of a slot, as one part: how it is written, and which form it takes.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::choose::{Choice, MIN_CONDENSED};
use super::compose::{Planned, Standing};
use super::fold::{Fold, FoldInput, Folded, fold};
use super::packing::Packing;
use super::part::{Frame, Part, PartKind};
use super::receipt::{PartReason, Rendition};
use super::render::Rendered;
use super::slot::{Cap, Slot};
use larder_condense::ContentType;
use larder_text::call_links::Linker;
use larder_text::message::Role;
use larder_text::transcript::{self, Entry};

/// Tokens of a line that points to older messages.
const POINTER: usize = 96;
/// Steps of tokens in which the room of messages shrinks where other parts take what their cap would allow: smaller ones
/// where that would be more than an eighth of it.
const SQUEEZED_STEP: usize = 256;
/// The tag around the text of older messages.
const TAG: &str = "earlier_messages";

/// Older messages written as one text.
#[derive(Debug)]
pub(super) struct Run {
    pub part: Part,
    /// The messages, by part of the request, and the bytes of each.
    pub members: Vec<usize>,
    pub bodies: Vec<Range<usize>>,
}

/// A run in a plan.
#[derive(Debug, Clone)]
pub(super) struct PlannedRun {
    pub run: Arc<Run>,
    /// The part of the request before which it stands; `None` if it is last in its slot.
    pub before: Option<usize>,
    /// Its form: condensed, or a pointer.
    pub rendered: Rendered,
    pub reason: PartReason,
}

/// Older messages as a part without pins.
fn run_part(id: &str, slot: &Arc<str>, text: String) -> Part {
    let mut part = Part::new(id, Arc::clone(slot), text);
    part.content_type = ContentType::Chat;
    part.kind = PartKind::Context;
    part.frame = Frame::Tagged { name: TAG.to_owned(), attributes: Vec::new() };
    part
}

/// What messages may take of `left` tokens, in steps.
fn squeezed(left: usize) -> usize {
    let step = (left / 8 + 1).next_power_of_two().min(SQUEEZED_STEP);
    left / step * step
}

impl<'a> Packing<'a> {
    /// Fills a slot of messages within `allowed` tokens, of which it would need `whole`.
    pub(super) fn fill_messages(
        &mut self,
        slot_index: usize,
        (allowed, whole): (usize, usize),
        over: PartReason,
        planned: &mut Planned,
        wanted: Option<&mut BTreeSet<(usize, usize)>>,
    ) {
        let slot = &self.request.slots[slot_index];
        let members = self.slot_parts[slot_index].clone();
        let mark = self.mark_cost(slot).max(if slot.overflow.point { POINTER } else { 0 });
        // A cap in tokens is the same for every prompt. What other parts leave is not: it is cut to steps, so that it
        // seldom changes, and where it binds, the receipt says that the prefix may have moved.
        let (most, cap, is_steady) = match slot.cap {
            Cap::Tokens(cap) if whole.min(cap) <= allowed => (cap, cap.saturating_sub(mark), true),
            Cap::Share(_) | Cap::Flexible if whole <= allowed => (usize::MAX, usize::MAX, true),
            _ => {
                let cap = squeezed(allowed.saturating_sub(mark));
                (cap, cap, false)
            }
        };
        let mut decided = self.folded(slot, &members, (most, cap));
        decided.epoch.moved_prefix |= !is_steady;
        if let Some(ledger) = planned.slots.get_mut(slot_index) {
            let reached = |soft: f64| decided.used as f64 > decided.high as f64 * soft;
            ledger.soft_trigger = slot.soft.is_some_and(reached);
        }
        let at = decided.epoch.at_message;
        planned.epoch = planned.epoch.or(Some(decided.epoch));
        let Some(fold) = &decided.fold else {
            members
                .iter()
                .for_each(|&part| self.stand(part, Choice::Whole, &mut 0, (slot, over), planned, None));
            return;
        };
        let is_kept = |(position, part): (usize, usize)| {
            position >= fold.until || fold.kept == Some(position) || self.is_critical(part)
        };
        let (kept, older): (Vec<_>, Vec<_>) =
            members.iter().copied().enumerate().partition(|&one| is_kept(one));
        for (position, part) in kept {
            let level = if position < at { fold.level } else { usize::MAX };
            self.stand(part, self.shortened(part, level, slot), &mut 0, (slot, over), planned, None);
        }
        if older.is_empty() {
            return;
        }
        // The mark would be longer than the messages it replaces.
        let whole = older.iter().map(|&(_, part)| self.ladders[part].size).fold(0, usize::saturating_add);
        if whole <= fold.allowance.min(self.mark_cost(slot)) {
            let stays = older.iter().map(|&(_, part)| part);
            stays.for_each(|part| self.stand(part, Choice::Whole, &mut 0, (slot, over), planned, None));
            return;
        }
        let index = self.run_of(slot, &older);
        let asked = members[..at].iter().rev().map(|&part| &self.request.parts[part]);
        let query = asked.filter(|part| part.role == Role::User).map(|part| &*part.text).next();
        let rendered = self.render_run(index, fold, slot, query, wanted);
        let run = Arc::clone(&self.runs[index - self.request.parts.len()]);
        let standing = if rendered.rendition == Rendition::Absent {
            Standing { rendition: Rendition::Absent, tokens: 0, reason: over }
        } else {
            Standing { rendition: Rendition::Condensed, tokens: 0, reason: PartReason::Summarized }
        };
        run.members.iter().for_each(|&part| planned.standings[part] = standing);
        if rendered.rendition != Rendition::Absent {
            let before = members.get(fold.until).copied();
            planned.runs.insert(slot_index, PlannedRun { run, before, rendered, reason: over });
        }
    }

    /// Decides which messages stay: all of them within `most` tokens, or some within `cap`.
    fn folded(&self, slot: &Slot, members: &[usize], (most, cap): (usize, usize)) -> Folded {
        let mut linker = Linker::default();
        let link = |(at, &part): (usize, &usize)| {
            let part = &self.request.parts[part];
            let calls = part.shell.tool_calls.iter().map(|call| (call.id.as_str(), ()));
            let link = linker.link(at, part.role, calls, part.shell.tool_call_id.as_deref());
            (link.group, link.settled)
        };
        let (group_of, settled): (Vec<usize>, Vec<bool>) = members.iter().enumerate().map(link).unzip();
        let sizes: Vec<usize> = members.iter().map(|&part| self.ladders[part].size).collect();
        let least = |&part: &usize| {
            let ladder = &self.ladders[part];
            if ladder.summarizable { ladder.cheapest(slot.overflow).min(ladder.size) } else { ladder.size }
        };
        let is_request = |&part: &usize| self.request.parts[part].role == Role::User;
        let overflow = slot.overflow;
        let empty = run_part("", &slot.name, String::new());
        let least_text = MIN_CONDENSED + self.renderer.frame_cost(&empty);
        let text = (overflow.condense || overflow.truncate).then_some(least_text);
        fold(
            &FoldInput {
                whole: most,
                sizes: &sizes,
                least: &members.iter().map(least).collect::<Vec<_>>(),
                group_of: &group_of,
                settled: &settled,
                critical: &members.iter().map(|&part| self.is_critical(part)).collect::<Vec<_>>(),
                request: if text.is_some() || overflow.point {
                    members.iter().position(is_request)
                } else {
                    None
                },
                protect_last: slot.protect_last,
                text,
                soft: slot.soft,
                ahead: self.ahead,
            },
            cap,
        )
    }

    /// The form of a message that stays, within `level` tokens.
    fn shortened(&self, part: usize, level: usize, slot: &Slot) -> Choice {
        let ladder = &self.ladders[part];
        if ladder.size <= level || self.is_critical(part) || !ladder.summarizable {
            return Choice::Whole;
        }
        match ladder.least_condensed(slot.overflow) {
            Some(least) if least <= level => Choice::Condensed(level),
            _ if ladder.can_point(slot.overflow) => Choice::Pointer,
            _ => Choice::Whole,
        }
    }

    /// The index of the run of these messages, with their positions in the slot, as a part.
    fn run_of(&mut self, slot: &Slot, older: &[(usize, usize)]) -> usize {
        let parts: Vec<usize> = older.iter().map(|&(_, part)| part).collect();
        let known = self.runs.iter().position(|run| run.members == parts);
        let at = known.unwrap_or_else(|| {
            let entry = |&(position, part): &(usize, usize)| {
                let part = &self.request.parts[part];
                Entry {
                    number: position + 1,
                    role: part.role,
                    text: &part.text,
                    calls: &part.shell.tool_calls,
                }
            };
            let entries: Vec<Entry<'_>> = older.iter().map(entry).collect();
            let (text, bodies) = transcript::write(&entries);
            let (first, last) = (older.first().map_or(0, |one| one.0), older.last().map_or(0, |one| one.0));
            let mut part = run_part(&format!("messages {}-{}", first + 1, last + 1), &slot.name, text);
            let pins: BTreeSet<&String> =
                parts.iter().flat_map(|&part| &self.request.parts[part].pins).collect();
            part.pins = pins.into_iter().cloned().collect();
            self.runs.push(Arc::new(Run { part, members: parts, bodies }));
            self.runs.len() - 1
        });
        let index = self.request.parts.len() + at;
        if slot.overflow.truncate && !slot.overflow.condense {
            self.renderer.only_cut.insert(index);
        }
        index
    }

    /// The run in the first form that the slot allows and its allowance has room for.
    fn render_run(
        &mut self,
        index: usize,
        fold: &Fold,
        slot: &Slot,
        query: Option<&str>,
        wanted: Option<&mut BTreeSet<(usize, usize)>>,
    ) -> Rendered {
        let run = Arc::clone(&self.runs[index - self.request.parts.len()]);
        let (part, target) = (&run.part, fold.allowance);
        let inner = target.saturating_sub(self.renderer.frame_cost(part));
        if (slot.overflow.condense || slot.overflow.truncate) && inner >= MIN_CONDENSED {
            if let Some(wanted) = wanted.filter(|_| slot.overflow.condense)
                && self.renderer.written(index, inner).is_none()
                && !self.refused_by_model.contains(&index)
            {
                wanted.insert((index, target));
                return Rendered::nothing(Rendition::Absent);
            }
            let made = self.renderer.condensed(index, part, target, query).ok();
            if let Some(made) = made.filter(|made| made.tokens <= target) {
                let pointer = Some(self.renderer.pointer_to(part));
                return Rendered { rendition: Rendition::Condensed, pointer, ..made };
            }
        }
        if slot.overflow.point { self.renderer.pointer(part) } else { Rendered::nothing(Rendition::Absent) }
    }

    /// A part of the request, or a run.
    pub(super) fn part(&self, index: usize) -> &Part {
        let parts = &self.request.parts;
        parts.get(index).unwrap_or_else(|| &self.runs[index - parts.len()].part)
    }
}
