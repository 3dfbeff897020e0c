//! The results of a round as §4 shows them: each in full if all fit, otherwise the beginning of each with the place of the
//! rest.

use larder_vault::context::{CallResult, Iteration};

use super::calls::CallRecord;
use super::condense::{CondensedText, TurnCondenser};
use super::documents::TurnDocument;
use super::tool_log::NEWEST;

/// With fewer tokens, the beginning of a result says nothing.
const MIN_SHOWN: usize = 40;

/// Fits the results into a round so that its part of §4 has at most [`NEWEST`] tokens.
pub(super) fn fit(iteration: &mut Iteration, called: &[CallRecord], document: &TurnDocument<'_>) {
    let TurnDocument { at, condenser, .. } = document;
    iteration.results = called.iter().map(|record| result(record, 0, condenser).0).collect();
    let room = NEWEST.saturating_sub(condenser.counter.count(&iteration.write(at)));
    // Characters that a list escapes take extra tokens, so the first share may prove too large.
    for part in [room, room * 3 / 4, room / 2, room / 4] {
        let share = part / called.len().max(1);
        let with = called.iter().map(|record| result(record, share, condenser));
        let (with, condensed): (Vec<CallResult>, Vec<Option<CondensedText>>) = with.unzip();
        let bare = std::mem::replace(&mut iteration.results, with);
        if condenser.counter.count_up_to(&iteration.write(at), NEWEST).is_some() {
            condensed.iter().flatten().for_each(|condensed| condenser.report(condensed));
            return;
        }
        iteration.results = bare;
    }
}

/// A result in at most `room` tokens, and how it was condensed for that.
fn result(
    record: &CallRecord,
    room: usize,
    condenser: &TurnCondenser<'_>,
) -> (CallResult, Option<CondensedText>) {
    let content = record.content.as_deref().filter(|_| room >= MIN_SHOWN);
    let fits = |content: &&str| condenser.counter.count_up_to(content, room).is_some();
    let whole = content.filter(fits);
    let condensed = content.filter(|_| whole.is_none() && record.summarizable);
    let condensed = condensed.and_then(|content| condenser.condense(content, record.content_type, room));
    let shown = whole.or(condensed.as_ref().map(|condensed| condensed.result.text.as_str()));
    let text = match (shown, &record.pointer) {
        (Some(shown), _) => format!("{}\n{shown}", record.summary),
        (None, Some(pointer)) if record.content.is_some() => format!("{} ({pointer})", record.summary),
        (None, _) => record.summary.clone(),
    };
    (CallResult { status: record.status, text, full: record.full.clone() }, condensed)
}
