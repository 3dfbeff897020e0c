//! Proposes settings of the policy from a user's recorded transcripts: replays them under other settings through the
//! windows that the gateway decides, and keeps what costs less and hides nothing that the next step needs.
//!
//! Knows stores, routes and settings; does not know how a replay is measured.

mod search;
mod transcripts;

use std::collections::BTreeMap;

use larder_engine::Engine;
use larder_engine::config::{Config, LearnedValue, Standing};
use larder_proxy::replay::NetCost;
use larder_store::UserStore;
use serde::Serialize;

use crate::model_route::Routes;
use crate::revisions::RevisedSettings;

use self::search::Search;
use self::transcripts::read;

/// The fewest runs and turns to propose anything from: with fewer, one turn more or less that reads back decides.
const FEWEST_RUNS: usize = 10;
const FEWEST_TURNS: usize = 300;
/// The fewest needs: of fewer, a single hidden one is more than the limit of harm of 0.5 %.
const FEWEST_NEEDS: usize = 200;
/// The least share of the cost that all changes together must save to be worth a revision.
const LEAST_SAVED: f64 = 0.005;

/// What replaying transcripts under other settings showed.
#[derive(Debug, Serialize)]
pub struct Tuning {
    /// Runs that were replayed.
    pub runs: usize,
    /// Recorded runs that were not, and why.
    pub skipped: Vec<SkippedRuns>,
    /// Under the settings as they are.
    pub current: Trial,
    /// Under the proposed settings; `None` if nothing is proposed.
    pub proposed: Option<Trial>,
    /// Why nothing is proposed, or what the proposal leaves alone.
    pub note: Option<String>,
    /// Everything that was tried for all tools alike, in order.
    pub tried: Vec<Trial>,
    /// Every tool with results enough to judge it by, those with the most tokens first.
    pub tools: Vec<ToolTuning>,
}

/// What was found about a cap for the results of one tool.
#[derive(Debug, Serialize)]
pub struct ToolTuning {
    /// Its name, which is untrusted text.
    pub tool: String,
    /// Its results in the recorded runs.
    pub results: usize,
    /// Their tokens.
    pub tokens: usize,
    /// The same as a share of those of all tools.
    pub share: f64,
    /// The cap that it has of its own so far; `None` if that for all tools applies.
    pub cap: Option<usize>,
    /// The cheapest cap that hides nothing needed on the even runs, if there is one.
    pub judged: Option<CapTrial>,
    /// Whether that is proposed.
    pub proposed: bool,
    /// Why not; empty if it is.
    pub why: &'static str,
    /// Everything that was tried, in order.
    pub tried: Vec<CapTrial>,
}

/// A cap for the results of one tool, and what the recorded runs cost with it.
#[derive(Debug, Clone, Serialize)]
pub struct CapTrial {
    /// Tokens.
    pub cap: usize,
    /// With the settings that were found best before it.
    #[serde(flatten)]
    pub trial: Trial,
}

/// Runs that were not replayed.
#[derive(Debug, Serialize)]
pub struct SkippedRuns {
    /// How many.
    pub runs: usize,
    /// Why.
    pub why: String,
}

/// Settings, and what the recorded runs cost under them.
#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    /// Settings that differ from those in use, as texts by key.
    pub settings: BTreeMap<String, String>,
    /// The cost as a share of sending everything, with readings back and the definition of Larder's tool.
    pub net_cost: f64,
    /// The share of needs in view; `None` if there were none.
    pub needs_in_view: Option<f64>,
    /// The share of turns that read something back.
    pub turns_reading_back: f64,
    /// Whether this is within the limit of harm, on all runs and on each half of them.
    pub harmless: bool,
    /// Turns that were replayed.
    pub turns: usize,
    /// Texts that these turns took from earlier results.
    pub needs: usize,
}

/// Replays the newest `most` recorded runs of a user under the settings in use and under others. `progress` is called with
/// the replays that are done, and all. Blocks for seconds to minutes.
///
/// # Errors
/// When the store fails or the settings contradict themselves; in words.
pub fn tune(
    config: &Config,
    engine: &Engine,
    user: &UserStore,
    most: usize,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Tuning, String> {
    let store = user.store();
    let newest = store.revisions().newest().map_err(|error| error.to_string())?;
    let revised = RevisedSettings::read(config, store, newest).map_err(|error| error.to_string())?;
    let routes = Routes::to_decide(config, &config.gateway(), engine)?;
    let recorded = read(user, &routes, engine, &revised, most).map_err(|error| error.to_string())?;
    let runs = recorded.runs.len();
    let learned = store.revisions().settings(newest).map_err(|error| error.to_string())?;
    let changed = |changes: &BTreeMap<String, String>| {
        let mut all = learned.clone();
        all.extend(changes.clone());
        let (revised, values) = config.revised(newest.saturating_add(1), &all);
        let is_used =
            |value: &LearnedValue| value.standing == Standing::Used || !changes.contains_key(&value.key);
        values.iter().all(is_used).then(|| revised.context_policy())
    };
    let mut search = Search::new(recorded.runs, &changed, progress);
    let current = search.current().ok_or("the settings in use cannot be replayed")?;
    let Trial { turns, needs, .. } = current.trial;
    let mut tuning = Tuning {
        runs,
        skipped: recorded.skipped,
        current: current.trial.clone(),
        proposed: None,
        note: None,
        tried: Vec::new(),
        tools: Vec::new(),
    };
    if runs < FEWEST_RUNS || turns < FEWEST_TURNS {
        tuning.note = Some(format!(
            "{runs} recorded runs with {turns} turns are too few to judge by: {FEWEST_RUNS} runs with {FEWEST_TURNS} \
             turns are needed (gateway.transcripts records them)"
        ));
        return Ok(tuning);
    }
    if needs < FEWEST_NEEDS {
        tuning.note = Some(format!(
            "{needs} needs are too few to judge by: in {turns} turns at least {FEWEST_NEEDS} texts must come from earlier \
             results"
        ));
        return Ok(tuning);
    }
    let (best, tried) = search.alike(current);
    let (best, tools) = search.by_tool(best);
    let best = best.trial;
    (tuning.tried, tuning.tools) = (tried, tools);
    let saved = tuning.current.net_cost - best.net_cost;
    let repairs = best.harmless && !tuning.current.harmless;
    if best.settings.is_empty() || !(repairs || saved >= LEAST_SAVED) {
        tuning.note = Some(format!(
            "no other settings that hide nothing needed save {} % or more",
            LEAST_SAVED * 100.0
        ));
    } else {
        tuning.proposed = Some(best);
    }
    Ok(tuning)
}

impl Trial {
    fn new(settings: BTreeMap<String, String>, net: &NetCost, harmless: bool) -> Self {
        Self {
            settings,
            net_cost: net.share_with_tool(),
            needs_in_view: (net.needs > 0).then(|| net.needs_in_view()),
            turns_reading_back: net.reading_back(),
            harmless,
            turns: net.turns,
            needs: net.needs,
        }
    }
}
