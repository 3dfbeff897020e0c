//! Searches for settings under which recorded runs cost less, within the limit of harm: one setting after the other, each
//! with the best values of those before, then the caps of single tools. Every value is chosen on one half of the runs and
//! kept only if the other half confirms it. Knows neither stores nor routes.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;

use larder_core::policy::PolicySettings;
use larder_engine::config::tool_caps_value;
use larder_proxy::replay::NetCost;

use super::transcripts::ReplayableRun;
use super::{CapTrial, ToolTuning, Trial};

/// The settings that are varied, with the values to try.
const CANDIDATES: [(&str, &[&str]); 2] = [
    ("policy.offer_tool", &["with_tools"]),
    ("policy.entry_cap", &["150", "220", "300", "400", "600", "800", "1200", "2000", "4000"]),
];
/// The setting of the caps of single tools, and the caps to try. Above the last one a result is a flood, whatever its tool.
const TOOL_CAPS: &str = "policy.tool_caps";
const CAPS: [usize; 7] = [100, 200, 400, 800, 1_600, 4_000, 20_000];
/// The fewest results of a tool to judge it by, and the least share of all tokens of results: less cannot save much.
const FEWEST_RESULTS: usize = 20;
const LEAST_SHARE: f64 = 0.02;
/// The most tools that get a cap, those with the most tokens first.
const MOST_TOOLS: usize = 12;
/// The longest name of a tool that gets a cap, in bytes: providers allow no longer ones.
const LONGEST_NAME: usize = 128;
/// The least share of the cost that the cap of a single tool must save, on each half of the runs.
pub(super) const LEAST_SAVED_BY_TOOL: f64 = 0.002;

/// Settings that differ from those in use, as texts by key.
type Changes = BTreeMap<String, String>;

/// A search over recorded runs.
pub(super) struct Search<'s> {
    runs: Vec<ReplayableRun>,
    /// The settings with changes; `None` if a change would not be used.
    changed: &'s dyn Fn(&Changes) -> Option<PolicySettings>,
    /// Called with the replays of runs that are done, and all.
    progress: &'s mut dyn FnMut(usize, usize),
    done: usize,
    planned: usize,
}

/// Settings that were tried, with what each run cost under them.
#[derive(Clone)]
pub(super) struct Tried {
    pub trial: Trial,
    nets: Vec<NetCost>,
    /// Of the even and of the odd runs.
    halves: [NetCost; 2],
}

/// Results of one tool in the recorded runs.
struct ToolResults {
    name: String,
    count: usize,
    tokens: usize,
    longest: usize,
    /// The runs that have some.
    runs: BTreeSet<usize>,
}

/// What became of the values that were tried for one setting.
enum Verdict {
    /// The number of the one that is kept.
    Kept(usize),
    /// Why none is; the best of them.
    Rejected(&'static str, Option<usize>),
}

impl<'s> Search<'s> {
    pub fn new(
        runs: Vec<ReplayableRun>,
        changed: &'s dyn Fn(&Changes) -> Option<PolicySettings>,
        progress: &'s mut dyn FnMut(usize, usize),
    ) -> Self {
        let trials = 1 + CANDIDATES.iter().map(|(_, values)| values.len()).sum::<usize>();
        let planned = trials.saturating_mul(runs.len());
        // Long before the first replay is done.
        progress(0, planned);
        Self { runs, changed, progress, done: 0, planned }
    }

    /// Replays all runs under the settings in use; `None` if they cannot be.
    pub fn current(&mut self) -> Option<Tried> {
        let all = (0..self.runs.len()).collect();
        self.try_out(Changes::new(), &[], &all)
    }

    /// Replays these runs with these changes, the others having cost what they did `before`; `None` if the changes would not
    /// be used.
    fn try_out(&mut self, changes: Changes, before: &[NetCost], which: &BTreeSet<usize>) -> Option<Tried> {
        let settings = (self.changed)(&changes)?;
        let mut nets = before.to_vec();
        nets.resize_with(self.runs.len(), NetCost::default);
        let (before, planned, progress) = (self.done, self.planned, &mut self.progress);
        let mut report = |replayed: usize| progress(before + replayed, planned.max(before + replayed));
        for (at, net) in replay(&mut self.runs, which, &settings, &mut report) {
            nets[at] = net;
        }
        self.done += which.len();
        let (mut all, mut halves) = (NetCost::default(), <[NetCost; 2]>::default());
        for (at, net) in nets.iter().enumerate() {
            all += net;
            halves[at % 2] += net;
        }
        let harmless = all.is_harmless() && halves.iter().all(NetCost::is_harmless);
        Some(Tried { trial: Trial::new(changes, &all, harmless), nets, halves })
    }

    /// The best settings for all tools alike, and everything that was tried.
    pub fn alike(&mut self, current: Tried) -> (Tried, Vec<Trial>) {
        let (mut best, mut tried) = (current, Vec::new());
        let all: BTreeSet<usize> = (0..self.runs.len()).collect();
        for (key, values) in CANDIDATES {
            let mut found = Vec::new();
            for value in values {
                let mut changes = best.trial.settings.clone();
                changes.insert(key.to_owned(), (*value).to_owned());
                let Some(one) = self.try_out(changes, &[], &all) else { break };
                tried.push(one.trial.clone());
                found.push(one);
            }
            if let Verdict::Kept(at) = judge(&best, &found, 0.0) {
                best = found.swap_remove(at);
            }
        }
        (best, tried)
    }

    /// These settings with caps for single tools where they pay, and what was found about each tool that has enough results.
    pub fn by_tool(&mut self, best: Tried) -> (Tried, Vec<ToolTuning>) {
        let mut best = best;
        let all = self.tools();
        let total: usize = all.iter().map(|tool| tool.tokens).sum();
        let share = |tool: &ToolResults| tool.tokens as f64 / total.max(1) as f64;
        let fits = |tool: &ToolResults| {
            tool.count >= FEWEST_RESULTS && share(tool) >= LEAST_SHARE && may_be_named(&tool.name)
        };
        let tools: Vec<ToolResults> = all.into_iter().filter(fits).take(MOST_TOOLS).collect();
        let replays = |tool: &ToolResults| caps_for(tool).count().saturating_mul(tool.runs.len());
        self.planned = self.done + tools.iter().map(replays).sum::<usize>();
        let mut rows = Vec::new();
        for tool in &tools {
            let Some(settings) = (self.changed)(&best.trial.settings) else { break };
            let mut row = ToolTuning {
                tool: tool.name.clone(),
                results: tool.count,
                tokens: tool.tokens,
                share: share(tool),
                cap: settings.tool_cap(&tool.name),
                judged: None,
                proposed: false,
                why: "",
                tried: Vec::new(),
            };
            let mut found = Vec::new();
            for cap in caps_for(tool).filter(|cap| row.cap != Some(*cap)) {
                let mut caps = settings.tool_caps.clone();
                caps.insert(tool.name.clone(), cap);
                let mut changes = best.trial.settings.clone();
                changes.insert(TOOL_CAPS.to_owned(), tool_caps_value(&caps));
                let Some(one) = self.try_out(changes, &best.nets, &tool.runs) else {
                    row.why = "policy.tool_caps is set";
                    break;
                };
                row.tried.push(CapTrial { cap, trial: one.trial.clone() });
                found.push(one);
            }
            match judge(&best, &found, LEAST_SAVED_BY_TOOL) {
                _ if found.is_empty() => {}
                Verdict::Kept(at) => {
                    best = found.swap_remove(at);
                    row.proposed = true;
                    row.judged = Some(row.tried[at].clone());
                }
                Verdict::Rejected(why, nearest) => {
                    row.why = why;
                    row.judged = nearest.map(|at| row.tried[at].clone());
                }
            }
            rows.push(row);
        }
        (best, rows)
    }

    /// The tools of the runs, those with the most tokens first.
    fn tools(&self) -> Vec<ToolResults> {
        let mut tools: BTreeMap<&str, ToolResults> = BTreeMap::new();
        for (at, run) in self.runs.iter().enumerate() {
            for (name, tokens) in run.replayer.results(&run.run) {
                let tool = tools.entry(name).or_insert_with(|| ToolResults {
                    name: name.to_owned(),
                    count: 0,
                    tokens: 0,
                    longest: 0,
                    runs: BTreeSet::new(),
                });
                tool.count += 1;
                tool.tokens += tokens;
                tool.longest = tool.longest.max(tokens);
                tool.runs.insert(at);
            }
        }
        let mut tools: Vec<ToolResults> = tools.into_values().collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.tokens));
        tools
    }
}

/// Whether a name can stand in the settings for one tool alone. Names in transcripts are untrusted text.
fn may_be_named(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains('*')
}

/// The caps to try for a tool: of those that none of its results reaches, one is enough.
fn caps_for(tool: &ToolResults) -> impl Iterator<Item = usize> {
    let reached = CAPS.iter().filter(|cap| **cap < tool.longest).count();
    CAPS.into_iter().take(reached + 1)
}

/// Chooses the cheapest harmless settings on the even runs, and keeps them if they are as harmless on the odd ones and
/// save at least this share of the cost on each half. Settings that repair harm need not save.
fn judge(best: &Tried, found: &[Tried], least: f64) -> Verdict {
    let cost = |one: &Tried, half: usize| one.halves[half].share_with_tool();
    let saved = |one: &Tried, half: usize| cost(best, half) - cost(one, half);
    let chosen = (0..found.len())
        .filter(|&at| found[at].halves[0].is_harmless())
        .min_by(|&one, &other| cost(&found[one], 0).total_cmp(&cost(&found[other], 0)));
    let Some(at) = chosen else { return Verdict::Rejected("every cap hides too much", None) };
    let one = &found[at];
    let pays = |half: usize| !best.trial.harmless || saved(one, half) > least;
    match (pays(0), one.trial.harmless && pays(1)) {
        (true, true) => Verdict::Kept(at),
        (true, false) => Verdict::Rejected("not confirmed by the other half", Some(at)),
        (false, _) => Verdict::Rejected("saves too little", Some(at)),
    }
}

/// What these runs cost under these settings, on all processors. `report` gets the number of runs that are replayed.
fn replay(
    runs: &mut [ReplayableRun],
    which: &BTreeSet<usize>,
    settings: &PolicySettings,
    report: &mut dyn FnMut(usize),
) -> Vec<(usize, NetCost)> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut wanted: Vec<(usize, &mut ReplayableRun)> =
        runs.iter_mut().enumerate().filter(|(at, _)| which.contains(at)).collect();
    let share = wanted.len().div_ceil(threads).max(1);
    let (replayed, done) = mpsc::channel();
    let replay = |(at, run): &mut (usize, &mut ReplayableRun), replayed: &mpsc::Sender<()>| {
        let ReplayableRun { run, policy, replayer } = &**run;
        let net = replayer.replay(run, &policy.revised(settings, None), true);
        // Nobody is left to hear it where the thread that reports has panicked.
        let _ = replayed.send(());
        (*at, net)
    };
    thread::scope(|scope| {
        let parts: Vec<_> = wanted
            .chunks_mut(share)
            .map(|part| {
                let replayed = replayed.clone();
                scope.spawn(move || part.iter_mut().map(|run| replay(run, &replayed)).collect())
            })
            .collect();
        drop(replayed);
        for (number, ()) in done.iter().enumerate() {
            report(number + 1);
        }
        let joined = parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.collect::<Vec<Vec<(usize, NetCost)>>>().concat()
    })
}
