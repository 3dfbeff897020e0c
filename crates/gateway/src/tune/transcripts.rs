//! Reads the recorded runs of a user from the transcripts of the gateway, each with the policy of its model. Knows no
//! measure.

use std::collections::BTreeMap;

use larder_core::policy::ContextBudgetPolicy;
use larder_engine::Engine;
use larder_proxy::record::RequestSummary;
use larder_proxy::replay::{RecordedRun, Replayer};
use larder_store::{ExchangeFilter, StoreError, TranscriptLine, UserStore, branch_of};

use crate::model_route::Routes;
use crate::revisions::RevisedSettings;

use super::SkippedRuns;

/// The most bytes of one run: a replay sends it once for every turn.
const LARGEST_RUN: u64 = 8 << 20;
/// The most messages of one run, for the same reason.
const MOST_MESSAGES: usize = 2_000;
/// The fewest messages of a run with a result that something may need: a call, its result, and what follows.
const FEWEST_MESSAGES: usize = 4;

/// A run with what it is replayed with.
pub(super) struct ReplayableRun {
    pub run: RecordedRun,
    pub policy: ContextBudgetPolicy,
    pub replayer: Replayer,
}

/// The runs of a user, newest session first.
pub(super) struct Recorded {
    pub runs: Vec<ReplayableRun>,
    pub skipped: Vec<SkippedRuns>,
}

/// Reads the newest `most` runs.
///
/// # Errors
/// When the store fails.
pub(super) fn read(
    user: &UserStore,
    routes: &Routes,
    engine: &Engine,
    revised: &RevisedSettings,
    most: usize,
) -> Result<Recorded, StoreError> {
    let (mut runs, mut skipped) = (Vec::new(), BTreeMap::<String, usize>::new());
    let mut skip = |why: String| *skipped.entry(why).or_default() += 1;
    'sessions: for session in user.exchanges().sessions(most as u64)? {
        let filter = ExchangeFilter {
            session: Some(session.session.clone()),
            limit: Some(1),
            ..ExchangeFilter::default()
        };
        let newest = user.exchanges().list(&filter)?;
        let Some(head) = newest.first().and_then(|json| serde_json::from_str::<RequestSummary>(json).ok())
        else {
            continue;
        };
        let Some(dialect) = head.endpoint.dialect() else { continue };
        let route = match routes.find(head.endpoint, &head.model, engine) {
            Ok(route) => route.revised(revised),
            Err(error) => {
                skip(format!("the model {} is not served any more: {}", head.model, error.message));
                continue;
            }
        };
        let lines = user.transcripts().lines(&session.session)?;
        let mut branches: Vec<u32> = lines.iter().map(|line| line.branch).collect();
        branches.sort_unstable();
        branches.dedup();
        for branch in branches.into_iter().rev() {
            let history = branch_of(&lines, branch);
            if history.len() < FEWEST_MESSAGES {
                continue;
            }
            if history.iter().map(|line| line.raw.bytes).sum::<u64>() > LARGEST_RUN {
                skip(format!("longer than {} MB", LARGEST_RUN >> 20));
                continue;
            }
            if history.len() > MOST_MESSAGES {
                skip(format!("longer than {MOST_MESSAGES} messages"));
                continue;
            }
            let messages = match messages(user, &history) {
                Err(error) if error.is_damage() => {
                    skip("a stored message is damaged or missing: see `larder verify`".to_owned());
                    continue;
                }
                messages => messages?,
            };
            match RecordedRun::new(dialect, messages.iter().map(String::as_str)) {
                Ok(run) => runs.push(ReplayableRun {
                    run,
                    policy: route.policy.clone(),
                    replayer: Replayer::new(route.counter.clone(), user.key().clone()),
                }),
                Err(error) => skip(error.to_string()),
            }
            if runs.len() >= most {
                break 'sessions;
            }
        }
    }
    let skipped = skipped.into_iter().map(|(why, runs)| SkippedRuns { runs, why }).collect();
    Ok(Recorded { runs, skipped })
}

fn messages(user: &UserStore, history: &[TranscriptLine]) -> Result<Vec<String>, StoreError> {
    let text = |line: &TranscriptLine| {
        let bytes = user.contents().get(line.raw.hash)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    history.iter().map(text).collect()
}
