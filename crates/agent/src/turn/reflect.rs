//! Phase 1: go on, or ask the user (R1-3.26 to R1-3.28, R1-11.1 to R1-11.3, C67).

use larder_condense::sections::SectionId;
use larder_core::recipe::Layer;
use larder_vault::BlockId;
use larder_vault::context::{Reflection, ReflectionDecision};

use super::answers::{CONFIDENCE_THRESHOLD, ReflectionAnswer};
use super::error::Stop;
use super::machine::{Done, Machine};
use super::recipes::Offer;
use super::state::Step;

const RECIPE: &str = "phase1_reflection";

impl Machine<'_> {
    /// Decides on the fast layer; a decision that is not sure enough is made again on MIND, and if that is not sure
    /// either, the user is asked. Both stand in the document.
    pub(super) async fn reflect(&mut self) -> Result<Done, Stop> {
        let mut reflection = self.reflection(None).await?;
        if reflection.confidence.get() < CONFIDENCE_THRESHOLD {
            reflection = self.reflection(Some(Layer::Mind)).await?;
        }
        let text = format!("{} {}", reflection.decision, reflection.confidence);
        match (reflection.decision, reflection.question) {
            (ReflectionDecision::Clarify, question) => Ok(self.clarify(question.unwrap_or_default())),
            (ReflectionDecision::Proceed, _) => Ok(Done::new(Step::Gather, text)),
        }
    }

    async fn reflection(&mut self, layer: Option<Layer>) -> Result<Reflection, Stop> {
        let offer = Offer { layer, ..Offer::default() };
        let (_, mut reflection) = self.decide(RECIPE, offer, ReflectionAnswer::reflection).await?;
        reflection.block = self.decision("reflection", SectionId::Reflection);
        self.append(&reflection)?;
        Ok(reflection)
    }

    /// The block of a decision that is about to be written: `decision-reflection`, later ones with their number, since
    /// a block stands once in a document.
    pub(super) fn decision(&self, name: &str, section: SectionId) -> Option<BlockId> {
        match self.versions(section) {
            0 => BlockId::new(&format!("decision-{name}")),
            before => BlockId::new(&format!("decision-{name}-{}", before + 1)),
        }
    }
}
