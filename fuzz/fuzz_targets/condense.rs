//! Guided by coverage: any bytes are a case, and every case must hold. `LARDER_FUZZ_TYPE` names the content type.
#![no_main]
#![allow(clippy::panic, reason = "a fuzz target says by a panic that a case is broken")]

use std::sync::LazyLock;

use larder_core::content::ContentType;
use larder_evals::fuzz::{Case, check};
use larder_evals::made::type_of;
use libfuzzer_sys::fuzz_target;

static TYPE: LazyLock<ContentType> = LazyLock::new(|| {
    let name = std::env::var("LARDER_FUZZ_TYPE").unwrap_or_default();
    type_of(&name).unwrap_or_else(|| panic!("LARDER_FUZZ_TYPE must name a content type, not {name:?}"))
});

fuzz_target!(|bytes: &[u8]| {
    let faults = check(&Case::from_bytes(*TYPE, bytes));
    assert!(faults.is_empty(), "{faults:?}");
});
