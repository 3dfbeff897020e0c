//! Shortens §4 along its own structure (R0-26.6, R1-3.17): every round keeps its calls and their status; the text of
//! results is cut first, then the reasoning, and finally the oldest rounds become one line. Links to the full results
//! stay links. A pure function of the log.

use larder_text::tokens::Counter;
use larder_vault::VaultPath;
use larder_vault::context::{CallStatus, Iteration, ToolLog};
use larder_vault::links::DualLink;

/// How many characters of each text a step keeps: of results, of reasoning, of calls.
const STEPS: [(usize, usize, usize); 4] = [(600, 300, 200), (240, 160, 160), (100, 60, 100), (40, 0, 60)];
/// Tokens of the compaction's heading and frame.
const FRAME: usize = 80;

/// The rounds of `log` in at most `target` tokens, its frame counted; `None` if not even a line fits.
pub(super) fn shrunk(
    log: &ToolLog,
    results: &DualLink,
    at: &VaultPath,
    counter: &Counter,
    target: usize,
) -> Option<String> {
    let target = target.checked_sub(FRAME)?;
    let fits = |text: &String| counter.count_up_to(text, target).is_some();
    let all = |step: &(usize, usize, usize)| written(&log.iterations, *step, at);
    if let Some(text) = STEPS.iter().map(all).find(fits) {
        return Some(text);
    }
    let last = STEPS[STEPS.len() - 1];
    let fewer = (1..=log.iterations.len()).map(|dropped| {
        let (old, kept) = log.iterations.split_at(dropped);
        format!("{}\n\n{}", line(old, results, at), written(kept, last, at))
    });
    fewer.into_iter().find(fits)
}

fn written(iterations: &[Iteration], step: (usize, usize, usize), at: &VaultPath) -> String {
    let pieces: Vec<String> = iterations.iter().map(|iteration| shorter(iteration, step).write(at)).collect();
    pieces.join("\n")
}

fn shorter(iteration: &Iteration, (results, reasons, calls): (usize, usize, usize)) -> Iteration {
    let mut short = iteration.clone();
    short.reasoning = cut(&short.reasoning, reasons);
    short.progress = short.progress.map(|progress| cut(&progress, reasons.max(60)));
    short.calls.iter_mut().for_each(|call| *call = cut(call, calls));
    short.results.iter_mut().for_each(|result| result.text = cut(&result.text, results));
    short
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
    format!("Iterations {first} to {last}: {called} calls, {fine} with a result{whole}.")
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
        for target in [1_500, 800, 400, 200] {
            let text = shrunk(&log(9), &results, &at, &counter, target).unwrap();
            assert!(counter.count(&text) + FRAME <= target);
        }
        let most = shrunk(&log(3), &results, &at, &counter, 1_500).unwrap();
        assert_eq!(most.matches("### Iteration").count(), 3);
        let least = shrunk(&log(9), &results, &at, &counter, 200).unwrap();
        assert!(least.starts_with("Iterations 1 to"), "{least}");
        assert_eq!(shrunk(&log(9), &results, &at, &counter, 60), None);
    }
}
