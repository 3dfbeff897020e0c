//! Guided by coverage: any bytes are a case, and every case must hold. `LARDER_FUZZ_TYPE` names the content type.
#![no_main]
#![allow(clippy::panic, reason = "a fuzz target says by a panic that a case is broken")]

use std::sync::LazyLock;

use larder_evals::fuzz::Target;
use larder_evals::made::type_of;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("LARDER_FUZZ_TYPE").unwrap_or_default();
    let content_type = type_of(&name);
    Target::Condense(
        content_type.unwrap_or_else(|| panic!("LARDER_FUZZ_TYPE must name a content type, not {name:?}")),
    )
});

fuzz_target!(|bytes: &[u8]| {
    let faults = TARGET.check(bytes);
    assert!(faults.is_empty(), "{faults:?}");
});
