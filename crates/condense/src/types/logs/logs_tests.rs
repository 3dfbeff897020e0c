//! Tests of logs: templates, records and proof.

use proptest::prelude::*;

use super::*;
use crate::content_type::ContentType;
use crate::engine::verify::check_draft;

proptest! {
    #[test]
    fn every_draft_is_proved(
        lines in prop::collection::vec("( |\t)?(1:02 )?(INFO )?[a-e]{1,2} [a-e]{0,2}[0-9]{0,3}\r?|Caused by: x|[\0-\u{ff}]{0,20}", 0..80),
        target in 20..400_usize,
    ) {
        check_draft(CONDENSER, ContentType::Log, &lines.join("\n"), target);
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
