//! A request as it would leave, with nothing known from before: for measurements and for callers without a server or a store.

use std::cell::RefCell;
use std::collections::HashMap;

use bytes::Bytes;
use larder_core::policy::{ContextBudgetPolicy, Memo, SessionUsage};
use larder_text::pointer::PointerKey;
use larder_text::time::Timestamp;
use larder_text::tokens::Counter;

use super::{Forms, Refusal, WindowBuilder};
use crate::record::{Endpoint, Outcome, RequestRecord};
use crate::wire::{self, ApiDialect};

/// A request as it would leave.
#[derive(Debug)]
pub struct Preview {
    /// Its body.
    pub body: String,
    /// Whether our tool is offered in it.
    pub offered: bool,
    /// What must be stored before it leaves: the originals of the pointers in it.
    pub originals: Vec<String>,
    /// What would be recorded of it.
    pub exchange: RequestRecord,
}

/// Makes of a body what would be sent under a policy.
///
/// # Errors
/// Why nothing would be sent.
pub fn preview(
    format: ApiDialect,
    body: &str,
    policy: &ContextBudgetPolicy,
    counter: &Counter,
    key: &PointerKey,
) -> Result<Preview, Refusal> {
    let request = wire::read(format, body)?;
    let wire = match format {
        ApiDialect::Chat => Endpoint::Chat,
        ApiDialect::Responses => Endpoint::Responses,
        ApiDialect::Messages => Endpoint::Messages,
    };
    let mut exchange = RequestRecord::blank("", Timestamp::from_millis(0), "", wire);
    let counted = RefCell::new(HashMap::new());
    let bench = WindowBuilder {
        memo: &Memo::default(),
        counts: &|key, count| *counted.borrow_mut().entry(key).or_insert_with(count),
        policy,
        counter,
        key,
        last: &Forms::default(),
        rehydrates: true,
        body: &Bytes::copy_from_slice(body.as_bytes()),
        counts_only: false,
        transcribes: true,
        is_stored: &|_| false,
    };
    let prepared = bench.prepare(&request, None, &mut exchange)?;
    exchange.summary.outcome = Outcome::Ok;
    let prompt = exchange.summary.tokens.after;
    exchange.summary.record_round(policy, &mut SessionUsage::default(), prompt);
    Ok(Preview {
        // A body that was read as text, with texts put into it.
        body: String::from_utf8_lossy(&prepared.body).into_owned(),
        offered: prepared.offered,
        originals: prepared.missing.into_iter().map(|missing| missing.text).collect(),
        exchange: exchange.sealed(),
    })
}
