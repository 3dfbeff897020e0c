//! Spending what the made renditions of a slot left over, so that a budget is used up.

use super::assemble::Planned;
use super::packing::Packing;
use super::receipt::{Reason, Rendition};
use super::slot::Slot;

/// Times a slot tries to spend what its renditions left over.
const TOP_UPS: usize = 8;
/// Fewer spare tokens than this are not worth another rendition.
const MIN_SPARE: usize = 4;

impl Packing<'_> {
    /// Spends what the made renditions left over: enlarges what is condensed, then condenses what is not there.
    pub(super) fn top_up(&mut self, slot: &Slot, members: &[usize], mut spare: usize, planned: &mut Planned) {
        let mut tries = TOP_UPS;
        for &part in members {
            while spare >= MIN_SPARE && tries > 0 {
                let Some(target) = self.larger(part, slot, spare, planned) else { break };
                tries -= 1;
                let Some(gained) = self.grow(part, target, spare, planned) else { break };
                spare -= gained;
            }
        }
    }

    /// The size to which a part could grow with what is spare, if that is worth trying.
    fn larger(&self, part: usize, slot: &Slot, spare: usize, planned: &Planned) -> Option<usize> {
        let (rendered, reason) = planned.renditions[part].as_ref()?;
        let least = self.ladders[part].least_condensed(slot.overflow)?;
        let target = (rendered.tokens + spare).min(self.ladders[part].size);
        let worth = match rendered.rendition {
            Rendition::Whole => false,
            Rendition::Condensed => true,
            Rendition::Pointer | Rendition::Absent => target >= least && *reason != Reason::PinsTooLarge,
        };
        worth.then_some(target)
    }

    /// Makes a larger rendition; gives the tokens it took.
    fn grow(&mut self, part: usize, target: usize, spare: usize, planned: &mut Planned) -> Option<usize> {
        let (before, reason) =
            planned.renditions[part].as_ref().map(|(made, reason)| (made.tokens, *reason))?;
        let made = match self.ladders[part].whole {
            Some(whole) if whole <= target => Ok(self.renderer.whole(&self.request.parts[part])),
            _ => self.renderer.condensed(part, &self.request.parts[part], target),
        };
        let rendered = made.ok().filter(|made| made.tokens > before && made.tokens <= before + spare)?;
        let gained = rendered.tokens - before;
        let reason = if rendered.rendition == Rendition::Whole { Reason::Fits } else { reason };
        planned.renditions[part] = Some((rendered, reason));
        Some(gained)
    }
}
