//! Phase 1: proceed, or ask the user (R1-3.26 to R1-3.28, R1-11.1 to R1-11.3, C67).

use larder_core::recipe::Layer;
use larder_text::sections::SectionId;
use larder_vault::context::{Reflection, ReflectionDecision};

use super::answers::{CONFIDENCE_THRESHOLD, ReflectionAnswer};
use super::ending;
use super::error::Stop;
use super::phase::{PhaseContext, PhaseOutcome};
use super::recipes::PhaseInputs;
use super::turn_phase::TurnPhase;

/// Decides on the fast layer. If the confidence is below the threshold, the decision is repeated on MIND, and if it
/// is still too low, the user is asked. Both decisions are in the document.
pub(super) async fn run(cx: &mut PhaseContext<'_>) -> Result<PhaseOutcome, Stop> {
    let mut reflection = reflection(cx, None).await?;
    if reflection.confidence.get() < CONFIDENCE_THRESHOLD {
        reflection = self::reflection(cx, Some(Layer::Mind)).await?;
    }
    let text = format!("{} {}", reflection.decision, reflection.confidence);
    match reflection.decision {
        ReflectionDecision::Clarify => {
            Ok(ending::clarify(&mut cx.state, reflection.question.unwrap_or_default()))
        }
        ReflectionDecision::Proceed => Ok(PhaseOutcome::new(TurnPhase::Gather, text)),
    }
}

async fn reflection(cx: &mut PhaseContext<'_>, layer: Option<Layer>) -> Result<Reflection, Stop> {
    let inputs = PhaseInputs { layer, ..PhaseInputs::default() };
    let (_, mut reflection) =
        cx.recipes().decide("phase1_reflection", inputs, ReflectionAnswer::reflection).await?;
    reflection.block = cx.document.next_decision("reflection", SectionId::Reflection);
    cx.document.append(&reflection).await?;
    Ok(reflection)
}
