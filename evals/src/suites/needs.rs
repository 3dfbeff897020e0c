//! What the policy costs agents (measure M12): recorded runs replayed turn by turn through the windows that the gateway
//! decides, with the price of reading back what the next step needs and does not see.

use std::time::Instant;

use larder_core::policy::{ContextBudgetPolicy, Mechanisms, ModelProfile, PolicySettings, ToolOffer};
use larder_proxy::replay::{NetCost, RecordedRun, Replayer};
use larder_proxy::wire::ApiDialect;
use larder_text::price::CacheShares;
use larder_text::tokens::Counter;
use serde_json::Value;

use crate::report::{Better, Report, ReportColumn};
use crate::{Failure, corpora, measure};

/// The sources, with the folder and the beginning of the names of their runs.
const SOURCES: [(&str, &str, &str); 4] = [
    ("coding", "coding", ""),
    ("swe-agent", "openai", "swe-agent"),
    ("tau-bench", "openai", "tau-bench"),
    ("agent-sdk", "openai", "agent-sdk"),
];
/// A common window, its longest reply, and the usual price of a cached token as a share of an uncached one.
const WINDOW: usize = 200_000;
const MAX_OUTPUT: usize = 100_000;
const CACHE: CacheShares = CacheShares { minimum: 0, read: 0.1, write: 1.0, write_hour: 1.0 };
/// A window that long runs do not fit into, so that older results have to be condensed.
const SMALL_WINDOW: usize = 24_000;

/// Milliseconds of the reference machine that the policy and condensing may add to a turn, as a median over runs (R3-2.5).
const TURN_MS: f64 = 50.0;

/// Runs of one source.
struct Source {
    name: &'static str,
    runs: Vec<RecordedRun>,
}

/// What is measured: settings, mechanisms, a window, and whether the model can read back.
#[derive(Clone)]
struct Way {
    settings: PolicySettings,
    mechanisms: Mechanisms,
    window: usize,
    rehydrates: bool,
}

impl Default for Way {
    fn default() -> Self {
        Self {
            settings: PolicySettings::default(),
            mechanisms: Mechanisms::default(),
            window: WINDOW,
            rehydrates: true,
        }
    }
}

/// Measures the defaults for every source.
///
/// # Errors
/// The corpus is missing or not as expected.
pub fn measure() -> Result<Report, Failure> {
    let sources = sources()?;
    let (mut all, mut rows, mut faults, mut seconds) = (NetCost::default(), Vec::new(), Vec::new(), 0.0);
    for source in &sources {
        let started = Instant::now();
        let net = replayed(source, &Way::default());
        let took = started.elapsed().as_secs_f64();
        faults.extend(faults_of(source.name, &net));
        rows.push((source.name.to_owned(), row(&net, took)));
        all += &net;
        seconds += took;
    }
    faults.extend(too_slow(&sources));
    Ok(Report {
        suite: "needs",
        title: "Agent runs, replayed turn by turn: cost as a share of sending everything, a cached token at a tenth, \
                readings back included"
            .to_owned(),
        columns: columns(),
        rows,
        total: row(&all, seconds),
        faults,
    })
}

/// Measures the policy without one of its mechanisms at a time, in a common window and in one that is too small.
///
/// # Errors
/// As [`measure`].
pub fn ablations() -> Result<Report, Failure> {
    let sources = sources()?;
    let mut rows = Vec::new();
    for (window, label) in [(WINDOW, ""), (SMALL_WINDOW, "small window, ")] {
        for (name, way) in ways(window) {
            let nets: Vec<NetCost> = sources.iter().map(|source| replayed(source, &way)).collect();
            let mut values: Vec<Option<f64>> = nets.iter().map(|net| Some(net.share())).collect();
            let mut all = NetCost::default();
            nets.iter().for_each(|net| all += net);
            values.extend([
                Some(all.share_with_tool()),
                Some(100.0 * all.needs_in_view()),
                Some(100.0 * all.reading_back()),
                Some(100.0 * all.prefix_kept()),
            ]);
            rows.push((format!("{label}{name}"), values));
        }
    }
    let shares = SOURCES.map(|(name, ..)| ReportColumn::shown(name, 3));
    let others = [("all, with tool", 3), ("in view %", 2), ("reading back %", 2), ("prefix kept %", 1)];
    let columns = shares.into_iter().chain(others.map(|(name, digits)| ReportColumn::shown(name, digits)));
    Ok(Report {
        suite: "needs",
        title: "Net cost as a share of sending everything, without one mechanism of the policy at a time"
            .to_owned(),
        columns: columns.collect(),
        rows,
        total: Vec::new(),
        faults: Vec::new(),
    })
}

/// The policy, and the policy without each of its mechanisms.
fn ways(window: usize) -> Vec<(&'static str, Way)> {
    let all = Mechanisms::default();
    let usual = Way { window, ..Way::default() };
    let without = |mechanisms| Way { mechanisms, ..usual.clone() };
    let offered = PolicySettings { offer_tool: ToolOffer::WithTools, ..PolicySettings::default() };
    let nothing = PolicySettings { enabled: false, ..PolicySettings::default() };
    vec![
        ("larder", usual.clone()),
        ("without references to lines above", without(Mechanisms { references: false, ..all })),
        ("without terse JSON", without(Mechanisms { terse_json: false, ..all })),
        ("without caps", without(Mechanisms { caps: false, ..all })),
        ("without superseded first", without(Mechanisms { superseded_first: false, ..all })),
        ("without epochs that pay", without(Mechanisms { epochs: false, ..all })),
        ("without the price of the tool", without(Mechanisms { tool_pays: false, ..all })),
        ("tool from the first request", Way { settings: offered, ..usual.clone() }),
        ("without the tool", Way { rehydrates: false, ..usual.clone() }),
        ("policy off", Way { settings: nothing, ..usual }),
    ]
}

fn sources() -> Result<Vec<Source>, Failure> {
    let traces = corpora::folder("traces")?;
    let read = |(name, folder, start): (&'static str, &str, &str)| -> Result<Source, Failure> {
        let files = corpora::files(&traces.join(folder), &[".json", ".json.gz"])?;
        let files = files.into_iter().filter(|file| corpora::name(file).starts_with(start));
        let run = |file: std::path::PathBuf| -> Result<RecordedRun, Failure> {
            let Value::Array(messages) = corpora::json(&file)? else {
                return Err(format!("{} is not a list of messages", file.display()).into());
            };
            let messages: Vec<String> = messages.iter().map(Value::to_string).collect();
            let run = RecordedRun::new(ApiDialect::Chat, messages.iter().map(String::as_str));
            run.map_err(|error| format!("{}: {error}", file.display()).into())
        };
        Ok(Source { name, runs: files.map(run).collect::<Result<_, _>>()? })
    };
    SOURCES.into_iter().map(read).collect()
}

fn replayed(source: &Source, way: &Way) -> NetCost {
    replayed_runs(&source.runs, way)
}

fn replayed_runs(runs: &[RecordedRun], way: &Way) -> NetCost {
    let profile = ModelProfile {
        window: way.window,
        input_limit: None,
        max_output: Some(MAX_OUTPUT.min(way.window / 2)),
        cache: Some(CACHE),
    };
    let policy = ContextBudgetPolicy::from_settings(&way.settings, &profile).with_mechanisms(way.mechanisms);
    let replayer = Replayer::new(Counter::o200k(), measure::key());
    let mut all = NetCost::default();
    for run in runs {
        all += &replayer.replay(run, &policy, way.rehydrates);
    }
    all
}

/// The fault if turns take longer than they may. A replayed turn is the decision of the gateway and the search for needs.
fn too_slow(sources: &[Source]) -> Option<String> {
    let mut clock = measure::ReferenceClock::new();
    let mut times = Vec::new();
    for run in sources.iter().flat_map(|source| &source.runs) {
        let started = Instant::now();
        let net = replayed_runs(std::slice::from_ref(run), &Way::default());
        times.push(started.elapsed().as_secs_f64() * 1e3 / net.turns.max(1) as f64);
        clock.tick();
    }
    let ms = clock.reference_ms(measure::median(times));
    (ms.is_nan() || ms > TURN_MS).then(|| {
        format!("a turn takes {ms:.1} ms on the reference machine, more than the {TURN_MS} that it may take")
    })
}

/// The limits that hold for every source.
fn faults_of(source: &str, net: &NetCost) -> Vec<String> {
    let mut faults = Vec::new();
    if !net.is_harmless() {
        let first = net.unseen.first();
        let example = first.map(|need| format!(", such as {:?} of a result of {}", need.text, need.tool));
        faults.push(format!(
            "{source}: {} of {} needs are in view and {} of {} turns read back{}",
            net.in_view,
            net.needs,
            net.turns_reading_back,
            net.turns,
            example.unwrap_or_default()
        ));
    }
    if net.share_with_tool() > 1.0 {
        faults.push(format!("{source}: the policy costs more than sending everything"));
    }
    faults
}

fn columns() -> Vec<ReportColumn> {
    let lower = |name, slack, digits| ReportColumn {
        better: Better::Lower,
        slack,
        ..ReportColumn::shown(name, digits)
    };
    vec![
        ReportColumn::shown("runs", 0),
        ReportColumn::shown("turns", 0),
        ReportColumn::shown("needs", 0),
        lower("net cost", 0.002, 3),
        lower("with tool", 0.002, 3),
        ReportColumn::higher("in view %", 0.1).least(99.5).digits(2),
        ReportColumn { accepted: Some(0.3), ..lower("reading back %", 0.05, 2) },
        ReportColumn::higher("prefix kept %", 0.1),
        lower("refused", 0.0, 0),
        ReportColumn::shown("s", 1),
    ]
}

fn row(net: &NetCost, seconds: f64) -> Vec<Option<f64>> {
    let figures = [
        net.runs as f64,
        net.turns as f64,
        net.needs as f64,
        net.share(),
        net.share_with_tool(),
        100.0 * net.needs_in_view(),
        100.0 * net.reading_back(),
        100.0 * net.prefix_kept(),
        net.refused as f64,
        seconds,
    ];
    figures.map(Some).to_vec()
}
