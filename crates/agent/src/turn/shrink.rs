//! Shortens §4 along its own structure (R0-26.6, R1-3.17): every round keeps its calls and their status; results are
//! shortened first, then the reasoning, and finally the oldest rounds become one line and what failed in them. Errors
//! stay before all else. Links to the full results stay links.

use larder_condense::salience::{self, ErrorSense, SpanKind};
use larder_text::tokens::Counter;
use larder_text::words::counted;
use larder_vault::VaultPath;
use larder_vault::context::{CallStatus, Iteration, ToolLog};
use larder_vault::links::DualLink;

/// Tokens of each result at the first step.
pub(super) const LONGEST_RESULT: usize = 150;
/// What each step keeps: tokens of each result, characters of reasoning and of calls.
const STEPS: [(usize, usize, usize); 4] =
    [(LONGEST_RESULT, 300, 200), (80, 160, 160), (40, 60, 100), (16, 0, 60)];
/// Tokens of the compaction's heading and frame.
const FRAME: usize = 80;
/// Characters of a line that is kept because it reports an error or states a price or an address.
const KEPT_LINE: usize = 160;
/// Failures that a line about dropped rounds repeats.
const MAX_FAILURES: usize = 4;

/// Makes a result shorter: its text in at most so many tokens, or `None` if that is impossible.
pub(super) type ShortenResult<'a> = dyn Fn(&str, usize) -> Option<String> + 'a;

/// The rounds of `log` in at most `target` tokens, its frame counted; `None` if not even a line fits.
pub(super) fn shrunk(
    log: &ToolLog,
    results: &DualLink,
    at: &VaultPath,
    (counter, shorten): (&Counter, &ShortenResult<'_>),
    target: usize,
) -> Option<String> {
    let target = target.checked_sub(FRAME)?;
    let fits = |text: &String| counter.count_up_to(text, target).is_some();
    let written = |iterations: &[Iteration], step: (usize, usize, usize)| {
        let shorter = iterations.iter().map(|iteration| shorter(iteration, step, counter, shorten).write(at));
        shorter.collect::<Vec<_>>().join("\n")
    };
    if let Some(text) = STEPS.iter().map(|step| written(&log.iterations, *step)).find(fits) {
        return Some(text);
    }
    let last = STEPS[STEPS.len() - 1];
    (1..=log.iterations.len()).find_map(|dropped| {
        let (old, kept) = log.iterations.split_at(dropped);
        let failures = failures(old);
        let with = |failures: &[String]| {
            format!("{}\n{}\n{}", line(old, results, at), failures.concat(), written(kept, last))
        };
        (0..=failures.len()).rev().map(|count| with(&failures[..count])).find(fits)
    })
}

fn shorter(
    iteration: &Iteration,
    (results, reasons, calls): (usize, usize, usize),
    counter: &Counter,
    shorten: &ShortenResult<'_>,
) -> Iteration {
    let mut short = iteration.clone();
    short.reasoning = cut(&short.reasoning, reasons);
    short.progress = short.progress.map(|progress| cut(&progress, reasons.max(60)));
    short.calls.iter_mut().for_each(|call| *call = cut(call, calls));
    for result in &mut short.results {
        if counter.count_up_to(&result.text, results).is_none() {
            result.text =
                shorten(&result.text, results).unwrap_or_else(|| kept_lines(&result.text, results, counter));
        }
    }
    short
}

/// The first line of a result, cut, then the lines that report errors, those with prices and addresses, and others, as
/// far as they fit, in their order; at least the first error.
fn kept_lines(text: &str, tokens: usize, counter: &Counter) -> String {
    let rank = |line: &str| {
        let kinds = salience::scan(line, ErrorSense::Loose).into_iter().map(|span| span.kind);
        kinds.filter(|kind| *kind >= SpanKind::Url).max()
    };
    let lines = text.lines().enumerate().map(|(at, line)| (at, line.trim()));
    let mut lines: Vec<(Option<SpanKind>, usize, &str)> = lines
        // What condensed the result before says where the rest is; the link after the result does too.
        .filter(|(_, line)| !line.is_empty() && !line.starts_with("[Condensed") && !line.starts_with("[…"))
        .map(|(at, line)| (if at == 0 { Some(SpanKind::Error) } else { rank(line) }, at, line))
        .collect();
    lines.sort_by_key(|(rank, at, _)| (std::cmp::Reverse(*rank), *at));
    let mut left = tokens;
    let mut kept = Vec::new();
    for (place, (rank, at, line)) in lines.into_iter().enumerate() {
        let line = cut(line, if at == 0 { tokens * 2 } else { KEPT_LINE });
        let cost = counter.count(&line) + 1;
        if cost > left && !(place < 2 && rank == Some(SpanKind::Error)) {
            continue;
        }
        left = left.saturating_sub(cost);
        kept.push((at, line));
    }
    kept.sort_by_key(|(at, _)| *at);
    kept.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

/// What failed in rounds that are dropped: one item for each call without a result, and for each error in a result.
fn failures(iterations: &[Iteration]) -> Vec<String> {
    let results = iterations.iter().flat_map(|iteration| &iteration.results);
    let failed = results.filter_map(|result| {
        let line = match result.status {
            CallStatus::Success => result.text.lines().find(|line| salience::reports_failure(line))?,
            _ => result.text.lines().next().unwrap_or_default(),
        };
        Some(format!("- {}: {}\n", result.status, larder_vault::escape(&cut(line.trim(), KEPT_LINE))))
    });
    failed.take(MAX_FAILURES).collect()
}

/// The rounds that are dropped, in a line.
fn line(iterations: &[Iteration], results: &DualLink, at: &VaultPath) -> String {
    let called: usize = iterations.iter().map(|iteration| iteration.calls.len()).sum();
    let all = iterations.iter().flat_map(|iteration| &iteration.results);
    let fine = all.filter(|result| result.status == CallStatus::Success).count();
    let (first, last) = (iterations.first(), iterations.last());
    let (first, last) = (first.map_or(0, |round| round.number), last.map_or(0, |round| round.number));
    // Without calls there is no document of results.
    let whole = if called == 0 { String::new() } else { format!(" in {}", results.both(at)) };
    {
        let called = counted(called as u64, "call");
        format!("Iterations {first} to {last}: {called}, {fine} with a result{whole}.")
    }
}

fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((0, _)) => String::new(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use larder_vault::context::{Action, CallResult};

    use super::*;

    fn log(rounds: u32) -> ToolLog {
        let iteration = |number| Iteration {
            number,
            action: Action::ToolCall,
            goal: None,
            reasoning: "because it is so ".repeat(40),
            calls: vec![format!("doc.search(query=\"{}\")", "word ".repeat(30))],
            results: vec![CallResult {
                status: CallStatus::Success,
                text: "found a lot of things ".repeat(100),
                full: None,
            }],
            confidence: None,
            progress: None,
        };
        ToolLog { iterations: (1..=rounds).map(iteration).collect(), claims: Vec::new(), termination: None }
    }

    #[test]
    fn a_log_meets_every_target_down_to_a_line() {
        let turn = larder_vault::layout::UserPlace::new("ann").turn(1);
        let (at, counter) = (turn.context(), Counter::cl100k());
        let results = DualLink::new(turn.tool_results(), "results");
        let none = |_: &str, _: usize| None;
        for target in [1_500, 800, 400, 200] {
            let text = shrunk(&log(9), &results, &at, (&counter, &none), target).unwrap();
            assert!(counter.count(&text) + FRAME <= target);
        }
        let most = shrunk(&log(3), &results, &at, (&counter, &none), 1_500).unwrap();
        assert_eq!(most.matches("### Iteration").count(), 3);
        let least = shrunk(&log(9), &results, &at, (&counter, &none), 200).unwrap();
        assert!(least.starts_with("Iterations 1 to"), "{least}");
        assert_eq!(shrunk(&log(9), &results, &at, (&counter, &none), 60), None);
    }

    #[test]
    fn errors_stay_at_every_size() {
        let turn = larder_vault::layout::UserPlace::new("ann").turn(1);
        let (at, counter) = (turn.context(), Counter::cl100k());
        let results = DualLink::new(turn.tool_results(), "results");
        let mut log = log(4);
        for (at, iteration) in log.iterations.iter_mut().enumerate() {
            let lines = "INFO nothing happened here\n".repeat(40);
            iteration.results[0].text =
                format!("Read a log\n{lines}ERROR 50{at} payment was declined\n{lines}");
        }
        for target in [1_500, 900, 500, 320] {
            let text = shrunk(&log, &results, &at, (&counter, &|_, _| None), target).unwrap();
            for at in 0..4 {
                assert!(text.contains(&format!("ERROR 50{at} payment was declined")), "{target}: {text}");
            }
        }
    }
}
