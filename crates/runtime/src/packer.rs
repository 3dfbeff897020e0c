//! Drives the packing machine to its end. The machine decides; this only supplies what it asks for.

use larder_core::pack::{Pack, PackError, PackRequest, Packing, Receipt, Step};
use larder_core::pointer::PointerKey;
use larder_core::tokens::Counter;

/// Packs by rule alone: `request.by_model` is off. `Err` inside is the receipt of a refusal.
pub(crate) fn pack(
    request: &PackRequest,
    counter: &Counter,
    key: &PointerKey,
) -> Result<Result<Box<Pack>, Box<Receipt>>, PackError> {
    let mut packing = Packing::new(request, counter, key)?;
    loop {
        match packing.step() {
            Step::Done(pack) => return Ok(Ok(pack)),
            Step::Refused(receipt) => return Ok(Err(receipt)),
            Step::Need(wanted) => {
                wanted.into_iter().for_each(|rendition| packing.supply(rendition.key, None))
            }
        }
    }
}
