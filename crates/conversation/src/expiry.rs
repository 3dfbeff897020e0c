//! What of conversations goes by its age: conversations at rest, as if each of their users had deleted them, and facts that
//! their category keeps for so many days. It goes before what is collected of the rest of the store.

use std::time::{Duration, Instant};

use larder_store::{
    Collected, CollectionReport, Documents, RestingSide, Retention, RetentionClass, Store, StoreError,
    Timestamp, Track,
};

use crate::catalog::TypeCatalog;
use crate::memory::Eraser;

const MILLIS_PER_DAY: u64 = 86_400_000;

/// Removes what has expired of conversations, and then of the rest of the store; see [`Documents::collect`].
///
/// # Errors
/// The store fails; the next collection goes on.
pub fn collect(
    (store, documents, types): (&Store, &Documents, &TypeCatalog),
    retention: &Retention,
    go_on: &dyn Fn(Duration) -> bool,
) -> Result<CollectionReport, StoreError> {
    let sides = expire(store, retention, go_on)?;
    let facts = Collected { items: expire_facts(store, types, false)?, bytes: 0 };
    let mut report = documents.collect(retention, go_on)?;
    store.expire_run_notes()?;
    for (class, gone) in [(RetentionClass::Conversations, sides), (RetentionClass::Facts, facts)] {
        if gone.items > 0 {
            report.by_age.insert(class, gone);
        }
    }
    Ok(report)
}

/// What [`collect`] would remove now. Facts of conversations that go themselves count, too. Changes nothing.
///
/// # Errors
/// Reading fails.
pub fn preview(
    (store, documents, types): (&Store, &Documents, &TypeCatalog),
    retention: &Retention,
) -> Result<CollectionReport, StoreError> {
    let mut report = documents.preview_collection(retention)?;
    let facts = Collected { items: expire_facts(store, types, true)?, bytes: 0 };
    if facts.items > 0 {
        report.by_age.insert(RetentionClass::Facts, facts);
    }
    let Some(since) = resting_since(store, retention) else { return Ok(report) };
    let sides = store.resting_sides(since)?;
    if !sides.is_empty() {
        report.by_age.insert(RetentionClass::Conversations, sum(&sides));
    }
    Ok(report)
}

fn sum(sides: &[RestingSide]) -> Collected {
    Collected { items: sides.len() as u64, bytes: sides.iter().map(|side| side.bytes).sum() }
}

/// A conversation in which nothing was said since this moment goes.
fn resting_since(store: &Store, retention: &Retention) -> Option<Timestamp> {
    let keep = u64::try_from(retention.conversations?.as_millis()).unwrap_or(u64::MAX);
    Some(Timestamp::from_millis(store.now().as_millis().saturating_sub(keep.max(MILLIS_PER_DAY))))
}

/// Erases users' sides of conversations at rest, one after the other.
fn expire(
    store: &Store,
    retention: &Retention,
    go_on: &dyn Fn(Duration) -> bool,
) -> Result<Collected, StoreError> {
    let Some(since) = resting_since(store, retention) else { return Ok(Collected::default()) };
    let mut gone = Vec::new();
    for side in store.resting_sides(since)? {
        let started = Instant::now();
        match erase(store, &side, since) {
            Ok(true) => gone.push(side),
            // What is left of the user goes with the deletion.
            Ok(false) | Err(StoreError::BeingDeleted { .. }) => {}
            Err(error) => return Err(error),
        }
        if !go_on(started.elapsed()) {
            break;
        }
    }
    Ok(sum(&gone))
}

/// Erases a side that nobody is working on, unless something was said meanwhile.
fn erase(store: &Store, side: &RestingSide, since: Timestamp) -> Result<bool, StoreError> {
    let user = store.user(&side.user)?;
    let talks = user.conversations();
    let mut leases = Vec::new();
    for participant in talks.get(&side.conversation)?.participants {
        if participant.user == side.user {
            let track = Track { conversation: &side.conversation, participant: &participant.name };
            match talks.take_lease(track)? {
                Some(lease) => leases.push(lease),
                None => return Ok(false),
            }
        }
    }
    if !store.is_resting(&side.conversation, since)? {
        return Ok(false);
    }
    Eraser { store: &user }.conversation(&side.conversation)?;
    Ok(true)
}

/// Removes the facts that their categories no longer keep, or only counts them.
fn expire_facts(store: &Store, types: &TypeCatalog, dry_run: bool) -> Result<u64, StoreError> {
    let now = store.now().as_millis();
    let mut gone = 0;
    for loaded in types.iter() {
        let kept = loaded.kind.memory.categories.iter();
        for (category, days) in kept.filter_map(|category| Some((&category.name, category.keep_days?))) {
            let before = now.saturating_sub(u64::from(days) * MILLIS_PER_DAY);
            let of = (loaded.kind.name.as_str(), category.as_str());
            gone += store.expire_facts(of, Timestamp::from_millis(before), dry_run)?;
        }
    }
    Ok(gone)
}
