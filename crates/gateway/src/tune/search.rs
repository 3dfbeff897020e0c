//! Searches for settings under which recorded runs cost less, within the limit of harm: one setting after the other, each
//! with the best values of those before. Knows neither stores nor routes.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread;

use larder_core::policy::PolicySettings;
use larder_proxy::replay::NetCost;

use super::Trial;
use super::transcripts::ReplayableRun;

/// The settings that are varied, with the values to try.
const CANDIDATES: [(&str, &[&str]); 2] = [
    ("policy.offer_tool", &["with_tools"]),
    ("policy.entry_cap", &["150", "220", "300", "400", "600", "800", "1200", "2000", "4000"]),
];

/// Settings that differ from those in use, as texts by key.
type Changes = BTreeMap<String, String>;

/// A search over recorded runs.
pub(super) struct Search<'s> {
    runs: Vec<ReplayableRun>,
    /// The settings with changes; `None` if a change would not be used.
    changed: &'s dyn Fn(&Changes) -> Option<PolicySettings>,
    /// Called with the trials that are done, and all.
    progress: &'s mut dyn FnMut(usize, usize),
    done: usize,
}

impl<'s> Search<'s> {
    pub fn new(
        runs: Vec<ReplayableRun>,
        changed: &'s dyn Fn(&Changes) -> Option<PolicySettings>,
        progress: &'s mut dyn FnMut(usize, usize),
    ) -> Self {
        Self { runs, changed, progress, done: 0 }
    }

    /// Replays all runs with these changes; `None` if they would not be used.
    pub fn try_out(&mut self, changes: Changes) -> Option<Trial> {
        let settings = (self.changed)(&changes)?;
        let planned = 1 + CANDIDATES.iter().map(|(_, values)| values.len()).sum::<usize>();
        let nets = replay_all(&mut self.runs, &settings);
        self.done += 1;
        (self.progress)(self.done, planned.max(self.done));
        let [mut all, mut even, mut odd] = <[NetCost; 3]>::default();
        for (at, net) in nets.iter().enumerate() {
            all += net;
            *if at % 2 == 0 { &mut even } else { &mut odd } += net;
        }
        let harmless = [&all, &even, &odd].iter().all(|net| net.is_harmless());
        Some(Trial::new(changes, &all, harmless))
    }

    /// The cheapest harmless settings, and everything that was tried.
    pub fn best(&mut self, current: &Trial) -> (Trial, Vec<Trial>) {
        let (mut best, mut tried) = (current.clone(), Vec::new());
        for (key, values) in CANDIDATES {
            let before = best.settings.clone();
            for value in values {
                let mut changes = before.clone();
                changes.insert(key.to_owned(), (*value).to_owned());
                let Some(trial) = self.try_out(changes) else { break };
                if trial.harmless && (!best.harmless || trial.net_cost < best.net_cost) {
                    best = trial.clone();
                }
                tried.push(trial);
            }
        }
        (best, tried)
    }
}

/// What each run costs under these settings, on all processors.
fn replay_all(runs: &mut [ReplayableRun], settings: &PolicySettings) -> Vec<NetCost> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = runs.len().div_ceil(threads).max(1);
    let replay = |ReplayableRun { run, policy, replayer }: &mut ReplayableRun| {
        replayer.replay(run, &policy.revised(settings, None), true)
    };
    thread::scope(|scope| {
        let parts: Vec<_> = runs
            .chunks_mut(share)
            .map(|part| scope.spawn(move || part.iter_mut().map(replay).collect()))
            .collect();
        let joined = parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.collect::<Vec<Vec<NetCost>>>().concat()
    })
}
