//! Guided by coverage: any bytes are a case, and every case must hold. The cases are results of tools on their way through a request.
#![no_main]

use larder_evals::fuzz::Target;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let faults = Target::Results.check(bytes);
    assert!(faults.is_empty(), "{faults:?}");
});
