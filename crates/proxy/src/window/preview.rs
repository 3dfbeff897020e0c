//! A request as it would be sent without any earlier state: for measurements, and for callers without a server or a
//! store.

use std::cell::RefCell;
use std::collections::HashMap;

use bytes::Bytes;
use larder_core::policy::{ContextBudgetPolicy, Memo, SessionUsage};
use larder_text::pointer::PointerKey;
use larder_text::time::Timestamp;
use larder_text::tokens::Counter;

use super::{LastRenditions, WindowBuilder, WindowError};
use crate::record::{Endpoint, Outcome, RequestRecord};
use crate::wire::{self, ApiDialect};

/// A request as it would be sent.
#[derive(Debug)]
pub struct Preview {
    /// Its body.
    pub body: String,
    /// Whether Larder's tool is offered in it.
    pub offered: bool,
    /// What must be stored before it leaves: the originals of the pointers in it.
    pub originals: Vec<String>,
    /// What would be recorded of it.
    pub record: RequestRecord,
}

/// Computes what would be sent for a body under a policy.
///
/// # Errors
/// Why nothing would be sent.
pub fn preview(
    dialect: ApiDialect,
    body: &str,
    policy: &ContextBudgetPolicy,
    counter: &Counter,
    key: &PointerKey,
) -> Result<Preview, WindowError> {
    let request = wire::read(dialect, body)?;
    let mut record = RequestRecord::blank("", Timestamp::from_millis(0), "", Endpoint::Generate(dialect));
    let counted = RefCell::new(HashMap::new());
    let builder = WindowBuilder {
        memo: &Memo::default(),
        counts: &|key, count| *counted.borrow_mut().entry(key).or_insert_with(count),
        policy,
        counter,
        key,
        last: &LastRenditions::default(),
        rehydrates: true,
        holds_pointers: false,
        body: &Bytes::copy_from_slice(body.as_bytes()),
        writes: request.cache_writes(),
        counts_only: false,
        transcribes: true,
        is_stored: &|_| false,
        ahead: None,
    };
    let decided = builder.decide(&request, None);
    decided.report.write_to(&mut record);
    let prepared = decided.outcome?;
    record.summary.outcome = Outcome::Ok;
    let prompt = record.summary.tokens.after;
    record.summary.record_round(policy, &mut SessionUsage::default(), prompt);
    record.seal();
    Ok(Preview {
        // The body was read as text, and only text was inserted.
        body: String::from_utf8_lossy(&prepared.body).into_owned(),
        offered: prepared.offered.is_some(),
        originals: prepared.missing.into_iter().filter_map(|missing| missing.text).collect(),
        record,
    })
}
