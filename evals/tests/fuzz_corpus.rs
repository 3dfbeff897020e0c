//! Every case that once broke something, and the seeds of the fuzzers, hold now.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may stop and say why")]

use std::path::Path;

use larder_evals::fuzz::Target;

#[test]
fn kept_cases_hold() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut cases = 0;
    for (name, target) in Target::all() {
        let Ok(folder) = std::fs::read_dir(corpus.join(name)) else { continue };
        for entry in folder {
            let path = entry.unwrap().path();
            let faults = target.check(&std::fs::read(&path).unwrap());
            assert!(faults.is_empty(), "{}: {faults:?}", path.display());
            cases += 1;
        }
    }
    assert!(cases > 0, "{} holds no case", corpus.display());
}
