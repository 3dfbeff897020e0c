//! What is counted over the requests of a run, and what the figures are. Knows no policy.

use super::*;

#[derive(Default)]
pub(super) struct Figures {
    pub(super) requests: usize,
    pub(super) pairs: (usize, usize),
    pub(super) pairs_outside: (usize, usize),
    pub(super) sent: usize,
    pub(super) uncached: usize,
    /// The same with the definition of our tool, which precedes the messages.
    pub(super) with_tool: (usize, usize),
    pub(super) unpaired: usize,
    pub(super) exact: (usize, usize),
    pub(super) probes: usize,
    pub(super) retained: usize,
    pub(super) recoverable: usize,
    pub(super) lost: usize,
    pub(super) replaced: usize,
    pub(super) epochs: usize,
    pub(super) refused: usize,
    pub(super) violations: usize,
    pub(super) ms: f64,
    pub(super) faults: Vec<String>,
}

impl Figures {
    pub(super) fn add(&mut self, run: &Run, way: &Way, counter: &Counter) -> Result<(), Failure> {
        let tool = rehydrate_tool();
        let tool = json!({ "type": "function", "function": tool });
        let bench =
            Bench { counter, key: measure::key(), memo: Memo::default(), tool: counter.count(&line(&tool)) };
        let mut last: Option<(Vec<String>, usize)> = None;
        let mut offered = 0;
        let mut epochs = 0;
        for until in run.requests() {
            let started = Instant::now();
            let sent = bench.send(run, until, way);
            self.ms += started.elapsed().as_secs_f64() * 1e3;
            self.requests += 1;
            self.faults.extend(sent.faults.iter().map(|fault| format!("{} at {until}: {fault}", run.name)));
            self.violations += usize::from(sent.over);
            let Some(messages) = sent.messages else {
                self.refused += 1;
                continue;
            };
            self.unpaired += unpaired(&messages, run.known.get(until - 1));
            let lines: Vec<String> = messages.iter().map(line).collect();
            let tokens: Vec<usize> = lines.iter().map(|line| counter.count(line)).collect();
            let all = tokens.iter().sum::<usize>();
            let uncached = match &last {
                None => all,
                Some((before, _)) => {
                    let same = before.iter().zip(&lines).take_while(|(a, b)| a == b).count();
                    tokens[same..].iter().sum()
                }
            };
            self.sent += all;
            self.uncached += uncached;
            // A new definition of a tool moves everything behind it.
            let moves = last.is_none() || sent.before != offered;
            self.with_tool.0 += all + sent.before;
            self.with_tool.1 += if moves { all + sent.before } else { uncached };
            offered = sent.before;
            if let Some((before, length)) = &last {
                let (before, now) = (before.concat(), lines.concat());
                let before = before.trim_end_matches('\n');
                let kept = before.bytes().zip(now.bytes()).take_while(|(a, b)| a == b).count();
                let pair = (kept, before.len());
                self.pairs = (self.pairs.0 + pair.0, self.pairs.1 + pair.1);
                if sent.epoch.1 <= *length {
                    self.pairs_outside = (self.pairs_outside.0 + pair.0, self.pairs_outside.1 + pair.1);
                }
            }
            epochs = epochs.max(sent.epoch.0);
            if until == run.messages.len() {
                self.replaced += sent.replaced;
                self.exact.1 += sent.replaced;
                self.exact.0 += sent.replaced - sent.faults.len().min(sent.replaced);
            }
            last = Some((lines, until));
        }
        self.epochs += epochs;
        self.probe(run, way, &bench)
    }

    /// Looks for what later calls take from earlier results.
    pub(super) fn probe(&mut self, run: &Run, way: &Way, bench: &Bench<'_>) -> Result<(), Failure> {
        for (at, known) in run.known.iter().enumerate().filter(|(_, known)| !known.calls.is_empty()) {
            let values: Vec<String> =
                known.calls.iter().flat_map(|[.., arguments]| scalars(arguments)).collect();
            let stood = |value: &String| {
                run.results()
                    .take_while(|&result| result < at)
                    .any(|result| run.known[result].text.contains(value))
            };
            let probes: Vec<String> = values.into_iter().filter(stood).collect();
            if probes.is_empty() {
                continue;
            }
            let sent = bench.send(run, at, way);
            let Some(messages) = sent.messages else { continue };
            let text = said(&messages);
            for probe in probes {
                self.probes += 1;
                if text.contains(&probe) {
                    self.retained += 1;
                } else if sent.behind.iter().any(|text| text.contains(&probe)) {
                    self.recoverable += 1;
                } else {
                    self.lost += 1;
                }
            }
        }
        Ok(())
    }

    pub(super) fn row(&self) -> Vec<Option<f64>> {
        let cost = |sent: usize, uncached: usize| uncached as f64 + (sent - uncached) as f64 * CACHED;
        let figures = [
            self.requests as f64,
            measure::percent(self.pairs.0, self.pairs.1),
            measure::percent(self.pairs_outside.0, self.pairs_outside.1),
            self.sent as f64,
            self.uncached as f64,
            cost(self.sent, self.uncached),
            cost(self.with_tool.0, self.with_tool.1),
            self.unpaired as f64,
            measure::percent(self.exact.0, self.exact.1),
            self.probes as f64,
            measure::percent(self.retained, self.probes),
            self.recoverable as f64,
            self.lost as f64,
            self.replaced as f64,
            self.epochs as f64,
            self.refused as f64,
            self.violations as f64,
            self.ms / self.requests.max(1) as f64,
        ];
        figures.map(Some).to_vec()
    }
}

/// Calls without a result and results without a call; a call that the request ends with waits for its own.
fn unpaired(messages: &[Value], newest: Option<&Known>) -> usize {
    let mut open: Vec<&str> = Vec::new();
    let mut faults = 0;
    for message in messages {
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        open.extend(calls.iter().filter_map(|call| call["id"].as_str()));
        if let Some(id) = message["tool_call_id"].as_str() {
            match open.iter().rposition(|call| *call == id) {
                Some(at) => drop(open.remove(at)),
                None => faults += 1,
            }
        }
    }
    let waiting = newest.map_or(0, |known| known.calls.len());
    faults + open.len().saturating_sub(waiting)
}

/// The numbers and longer strings in the arguments of a call.
fn scalars(arguments: &str) -> Vec<String> {
    pub(super) fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Number(number) => found.push(number.to_string()),
            Value::String(text) if text.chars().count() >= SHORTEST_PROBE => found.push(text.clone()),
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            Value::Object(values) => values.values().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    if let Ok(value) = serde_json::from_str(arguments) {
        collect(&value, &mut found);
    }
    found
}
