//! Tests of logs: templates, records and proof.

use proptest::prelude::*;

use super::*;
use crate::content_type::ContentType;
use crate::engine::verify::verified;
use crate::request::CondenseRequest;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

proptest! {
    /// The plain condenser would hide a mistake: no draft of this one may need it.
    #[test]
    fn every_draft_is_proved(
        lines in prop::collection::vec("( |\t)?(1:02 )?(INFO )?[a-e]{1,2} [a-e]{0,2}[0-9]{0,3}\r?|Caused by: x|[\0-\u{ff}]{0,20}", 0..80),
        target in 20..400_usize,
    ) {
        let (text, counter, key) = (lines.join("\n"), Counter::o200k(), PointerKey::new([7; 32]));
        let request = CondenseRequest { text: &text, content_type: ContentType::Log, target, query: None, pins: &[], counter: &counter, key: &key };
        let tokens = counter.count(&text);
        let job = Job::new(&request, crate::KnownText::from_request(&request));
        if tokens > target && let Ok(draft) = CONDENSER.condense(&job) {
            let checked = verified(&job, CONDENSER, draft);
            prop_assert!(checked.is_ok(), "{:?}", checked);
        }
    }
}

#[test]
fn only_lines_with_times_or_levels_look_like_a_log() {
    let log = "2024-05-01 12:00:01 INFO a\n2024-05-01 12:00:02 WARN b\n".repeat(5);
    assert!(looks_like(&log));
    assert!(looks_like(&"[INFO] started\n[WARNING] slow\n    at x\n".repeat(5)));
    assert!(looks_like(&log.replace('\n', "\r\n")));
    for other in [
        "".to_owned(),
        "one line at 12:00\n".to_owned(),
        "The train left at 12:30.\nNobody saw it.\n".repeat(9),
        "2024-05-01 12:00:01,1.5,7\n".repeat(50),
        "fn main() {}\n".repeat(50),
        "\0".repeat(5_000),
        "\n".repeat(5_000),
    ] {
        assert!(!looks_like(&other), "{other:.40?}");
    }
}
