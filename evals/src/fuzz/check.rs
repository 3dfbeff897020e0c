//! Properties of every condensation, for any text, type, target and pins, checked from outside.

use std::time::{Duration, Instant};

use larder_condense::{CondenseError, CondenseRequest, Condensed, ContentType, GapUnit, condense};
use larder_text::tokens::Counter;

use super::Case;
use crate::measure;

/// Longer than this and so much a byte is slow, on any machine and under any load seen so far.
const SLOW_BASE: Duration = Duration::from_millis(1_500);
const SLOW_PER_BYTE: Duration = Duration::from_nanos(20_000);

fn run(
    case: &Case,
    text: &str,
    content_type: ContentType,
    target: usize,
    counter: &Counter,
) -> Result<Condensed, CondenseError> {
    let key = measure::key();
    condense(&CondenseRequest {
        text,
        content_type,
        target,
        query: case.query,
        pins: &case.pins,
        counter,
        key: &key,
    })
}

/// Condenses the case and says what is wrong; empty if nothing is.
pub(super) fn check(case: &Case) -> Vec<String> {
    let counter = case.counter();
    let started = Instant::now();
    let outcome = run(case, &case.text, case.content_type, case.target, &counter);
    let spent = started.elapsed();
    let mut faults = match &outcome {
        Ok(condensed) => of_result(case, condensed, &counter),
        Err(refusal) => of_refusal(case, refusal, &counter),
    };
    faults.extend(slow(spent, case.text.len()));
    if run(case, &case.text, case.content_type, case.target, &counter) != outcome {
        faults.push("determinism: the same request gave another result".to_owned());
    }
    faults
}

/// What is wrong if so many bytes took so long.
pub(super) fn slow(spent: Duration, bytes: usize) -> Option<String> {
    let length = u32::try_from(bytes).unwrap_or(u32::MAX);
    (spent > SLOW_BASE + SLOW_PER_BYTE * length).then(|| format!("slow: {spent:?} for {length} bytes"))
}

fn of_refusal(case: &Case, refusal: &CondenseError, counter: &Counter) -> Vec<String> {
    match refusal {
        CondenseError::PinsExceedTarget { needed, target } => {
            if *target != case.target || needed <= target {
                return vec![format!("refusal: {refusal}")];
            }
            match run(case, &case.text, case.content_type, *needed, counter) {
                Ok(condensed) if condensed.tokens <= *needed => Vec::new(),
                other => vec![format!("refusal: {needed} tokens were asked for and give {:?}", other.err())],
            }
        }
        other => vec![format!("refusal: {other}")],
    }
}

fn of_result(case: &Case, condensed: &Condensed, counter: &Counter) -> Vec<String> {
    let text = case.text.as_str();
    let mut faults = Vec::new();
    let counted = counter.count(&condensed.text);
    if counted != condensed.tokens || counted > case.target {
        faults.push(format!("target: says {}, has {counted}, target {}", condensed.tokens, case.target));
    }
    let before = counter.count(text);
    if condensed.original_tokens != before || condensed.tokens > before {
        faults.push(format!(
            "size: {} of {}, said to be {before}",
            condensed.tokens, condensed.original_tokens
        ));
    }
    if before <= case.target && condensed.text != text {
        faults.push("whole: a text that fits was changed".to_owned());
    }
    if condensed.probes.lost > 0 {
        faults.push(format!("probes: {} lost", condensed.probes.lost));
    }
    faults.extend(
        case.pins
            .iter()
            .filter(|pin| !condensed.text.contains(*pin))
            .map(|pin| format!("pin: {pin:?} is lost")),
    );
    for (_, pointer) in measure::key().find_in(text) {
        if !condensed.text.contains(&pointer.to_string()) {
            faults.push(format!("pointer: {pointer} is lost"));
        }
    }
    // Under another counter the check of tokens is the one above.
    let others = measure::faults(text, condensed, usize::MAX);
    faults.extend(
        others
            .into_iter()
            .filter(|fault| !fault.contains("tokens"))
            .map(|fault| format!("way back: {fault}")),
    );
    faults.extend(of_marks(condensed));
    faults.extend(of_a_second_pass(case, condensed, counter));
    faults
}

/// Every gap says its range in the text, unless there is room for the bare form only.
fn of_marks(condensed: &Condensed) -> Option<String> {
    let bare = condensed.text.starts_with("[…");
    let unmarked = condensed.gaps.iter().find(|gap| {
        let unit = match gap.unit {
            GapUnit::Line => 'L',
            GapUnit::Byte => 'B',
        };
        !condensed.text.contains(&format!("{unit}{}-{}", gap.range.0, gap.range.1))
    });
    unmarked.filter(|_| !bare).map(|gap| format!("mark: the text does not say {}", gap.pointer))
}

/// Given again, it is unchanged; made smaller still, it keeps the pointer.
fn of_a_second_pass(case: &Case, condensed: &Condensed, counter: &Counter) -> Vec<String> {
    let mut faults = Vec::new();
    match run(case, &condensed.text, case.content_type, case.target, counter) {
        Ok(again) if again.text == condensed.text => {}
        Ok(_) => faults.push("second pass: not the same text".to_owned()),
        Err(refusal) => faults.push(format!("second pass: {refusal}")),
    }
    let id = condensed.pointer.id.as_str();
    if let Ok(smaller) = run(case, &condensed.text, ContentType::Generic, case.target / 2, counter)
        && condensed.text.contains(id)
        && !smaller.text.contains(id)
    {
        faults.push("second pass: the pointer is lost".to_owned());
    }
    faults
}
