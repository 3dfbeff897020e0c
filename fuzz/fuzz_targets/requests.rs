//! Guided by coverage: any bytes are a case, and every case must hold. The cases are bodies of requests in all formats.
#![no_main]

use larder_evals::fuzz::Target;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let faults = Target::Requests.check(bytes);
    assert!(faults.is_empty(), "{faults:?}");
});
