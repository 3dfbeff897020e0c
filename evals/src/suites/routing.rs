//! The router on requests that someone who saw no factor labelled with the smallest tier that suffices.
//!
//! Two sets: `requests.jsonl`, as requests arrive in an ordinary week, and `hard.jsonl`, made so that length and form do
//! not betray the tier. Weights were fitted on the requests that the lists of development name, those whose SHA-256 of the
//! id ends in an even byte. The total is that of the default preset on the other half of the first set.

use std::collections::BTreeSet;

use larder_core::route::{Preset, RouteDecision, RouteDocument, RouteRequest};
use larder_engine::project::Project;
use larder_engine::routing;
use larder_models::table::ModelTable;
use larder_text::tokens::Counter;
use serde::Deserialize;

use crate::Failure;
use crate::report::{Better, Report, ReportColumn};

const REQUESTS: &str = include_str!("../../routing/requests.jsonl");
const DEVELOPMENT: &str = include_str!("../../routing/development.txt");
const HARD: &str = include_str!("../../routing/hard.jsonl");
const HARD_DEVELOPMENT: &str = include_str!("../../routing/hard-development.txt");
/// The models of a conversation product, whose large model costs three times what the small one does (R4-1.4, R4-1.5).
const TABLE: &str = include_str!("../../../cookbook/models/conversation.toml");
/// Tokens of a picture, and of the definition of a tool.
const IMAGE: usize = 1000;
const TOOL: usize = 150;
/// Thresholds next to that of the preset.
const CURVE: [f64; 5] = [5.0, 6.0, 6.5, 7.5, 8.0];
/// Shuffles whose mean counts.
const SHUFFLES: usize = 50;
/// Points by which shuffled factor scores must be worse.
const MARGIN: f64 = 5.0;

/// A request as labelled.
#[derive(Debug, Deserialize)]
struct Labelled {
    id: String,
    kind: String,
    task: String,
    stage: Option<String>,
    intensity: Option<u8>,
    history: Vec<Said>,
    documents: Vec<RouteDocument>,
    images: usize,
    tools: usize,
    message: String,
    tier: String,
}

#[derive(Debug, Deserialize)]
struct Said {
    text: String,
}

/// A labelled request, what the router decided, and what either tier costs.
struct Case {
    needs_large: bool,
    decision: RouteDecision,
    /// The score of each factor.
    factors: Vec<f64>,
    cost: [f64; 2],
}

/// Measures once.
///
/// # Errors
/// The requests or the table are not as expected.
pub(super) fn measure() -> Result<Report, Failure> {
    let project = Project::builtin(&Counter::cl100k());
    let preset = |name: &str| project.routers().get(name).ok_or(format!("there is no preset {name}"));
    let (default, seed) = (preset("default")?, preset("seed")?);
    let table = ModelTable::parse(TABLE).map_err(|error| format!("{error:?}"))?;
    let (fitted, held) = halves(REQUESTS, DEVELOPMENT)?;
    let (fitted_hard, held_hard) = halves(HARD, HARD_DEVELOPMENT)?;
    let cases = |preset: &Preset, requests: &[Labelled]| -> Result<Vec<Case>, Failure> {
        requests.iter().map(|request| case(preset, &table, request)).collect()
    };
    let held_back = cases(default, &held)?;
    let threshold = default.tiers.iter().filter_map(|tier| tier.from).next_back().unwrap_or_default();
    let routed = |cases: &[Case]| figures(cases, |case| f64::from(u8::from(case.decision.tier == "large")));
    let total = routed(&held_back);
    let mut rows = vec![
        ("seed".to_owned(), routed(&cases(seed, &held)?)),
        ("development half".to_owned(), routed(&cases(default, &fitted)?)),
        ("hard set".to_owned(), routed(&cases(default, &held_hard)?)),
        ("hard set, development half".to_owned(), routed(&cases(default, &fitted_hard)?)),
    ];
    rows.extend(CURVE.map(|from| {
        let row = figures(&held_back, |case| f64::from(u8::from(case.decision.score >= from)));
        (format!("from {from}"), row)
    }));
    let large_share = total[2].unwrap_or_default() / 100.0;
    let shuffled = shuffled(&held_back, threshold);
    rows.push(("shuffled factors".to_owned(), shuffled.clone()));
    rows.push(("chance".to_owned(), figures(&held_back, |_| large_share)));
    rows.push(("always small".to_owned(), figures(&held_back, |_| 0.0)));
    rows.push(("always large".to_owned(), figures(&held_back, |_| 1.0)));
    rows.push(("as labelled".to_owned(), figures(&held_back, |case| f64::from(u8::from(case.needs_large)))));
    let mut faults = Vec::new();
    let sufficient = |row: &[Option<f64>]| row[0].unwrap_or_default();
    if sufficient(&shuffled) > sufficient(&total) - MARGIN {
        faults.push(
            "with shuffled factor scores the router is about as good: its factors say nothing".to_owned(),
        );
    }
    let unexplained = |case: &&Case| case.decision.factors.len() != default.factors.len();
    if held_back.iter().any(|case| unexplained(&case)) {
        faults.push("a decision does not list every factor".to_owned());
    }
    Ok(Report {
        suite: "routing",
        title: format!(
            "{} held-back requests, {} that need the large model; the share given a sufficient tier, and the cost of \
             always asking the large model, in per cent",
            held_back.len(),
            held_back.iter().filter(|case| case.needs_large).count()
        ),
        columns: vec![
            ReportColumn::higher("sufficient", 0.0),
            ReportColumn { better: Better::Lower, ..ReportColumn::higher("cost", 0.0) },
            ReportColumn::shown("asks large", 1),
            ReportColumn::shown("large of small", 1),
            ReportColumn::shown("small of large", 1),
        ],
        rows,
        total,
        faults,
    })
}

/// The requests of a set on which weights were fitted, and the others.
fn halves(requests: &str, development: &str) -> Result<(Vec<Labelled>, Vec<Labelled>), Failure> {
    let development: BTreeSet<&str> = development.lines().collect();
    let requests: Vec<Labelled> = requests.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok(requests.into_iter().partition(|request| development.contains(request.id.as_str())))
}

fn case(preset: &Preset, table: &ModelTable, request: &Labelled) -> Result<Case, Failure> {
    let tokens = |text: &str| text.len() / 4;
    // A system prompt of usual length.
    let system = match request.kind.as_str() {
        "conversation" => 2000,
        "recipe" => 600,
        _ => 400,
    };
    let output = match request.task.as_str() {
        "classify" => 50,
        "reply" | "describe_image" => 250,
        "compress" | "rewrite" | "draft" => 400,
        "code" | "plan" => 600,
        _ => 300,
    };
    let history = request.history.iter().map(|said| tokens(&said.text)).sum::<usize>();
    let documents = request.documents.iter().map(|document| document.tokens).sum::<usize>();
    let attached = documents + request.images * IMAGE + request.tools * TOOL;
    let input = system + history + tokens(&request.message) + attached;
    let asked = RouteRequest {
        message: request.message.clone(),
        history: request.history.iter().map(|said| said.text.clone()).collect(),
        tasks: vec![request.task.clone()],
        stage: request.stage.clone(),
        output: None,
        fields: request.intensity.map(|value| ("intensity".to_owned(), value.into())).into_iter().collect(),
        documents: request.documents.clone(),
        images: request.images,
        tools: request.tools,
        tokens: input + output,
    };
    let decision = routing::decide(preset, table, None, (&asked, output), None);
    let cost = |name: &str| -> Result<f64, Failure> {
        let prices = table.model(name).and_then(|spec| spec.prices.as_ref());
        let prices = prices.ok_or(format!("{name} has no price"))?;
        let usage = larder_models::chat::Usage {
            input: input as u64,
            output: output as u64,
            ..larder_models::chat::Usage::default()
        };
        Ok(prices.cost(&usage).total.picos() as f64)
    };
    Ok(Case {
        needs_large: request.tier == "large",
        factors: decision.factors.iter().map(|factor| factor.score).collect(),
        decision,
        cost: [cost("haiku")?, cost("sonnet")?],
    })
}

/// Sufficiency, cost, and how often the large model is asked: of all, of those for which the small one suffices, and how
/// often the small one is asked where it does not suffice. `large` is the probability that the large one is asked.
fn figures(cases: &[Case], large: impl Fn(&Case) -> f64) -> Vec<Option<f64>> {
    shares(&cases.iter().map(|case| (case, large(case))).collect::<Vec<_>>())
}

fn shares(cases: &[(&Case, f64)]) -> Vec<Option<f64>> {
    let all = cases.len() as f64;
    let sum =
        |of: &dyn Fn(&Case, f64) -> f64| cases.iter().map(|(case, large)| of(case, *large)).sum::<f64>();
    let needs = sum(&|case, _| f64::from(u8::from(case.needs_large)));
    let cost = sum(&|case, large| case.cost[0] * (1.0 - large) + case.cost[1] * large);
    let missed = sum(&|case, large| if case.needs_large { 1.0 - large } else { 0.0 });
    let wasted = sum(&|case, large| if case.needs_large { 0.0 } else { large });
    let per_cent = |part: f64, whole: f64| Some(100.0 * part / whole);
    vec![
        per_cent(all - missed, all),
        per_cent(cost, sum(&|case, _| case.cost[1])),
        per_cent(sum(&|_, large| large), all),
        per_cent(wasted, all - needs),
        per_cent(missed, needs),
    ]
}

/// The mean over shuffles in which every factor keeps its scores and loses the requests to which they belong.
fn shuffled(cases: &[Case], threshold: f64) -> Vec<Option<f64>> {
    let count = cases.len();
    let factors = cases.first().map_or(0, |case| case.factors.len());
    let asked = |at: usize, round: usize| {
        let score: f64 = (0..factors)
            .map(|factor| cases[(at + round * (2 * factor + 3) + factor) % count].factors[factor])
            .sum();
        f64::from(u8::from(score >= threshold))
    };
    let all: Vec<(&Case, f64)> = cases
        .iter()
        .enumerate()
        .map(|(at, case)| {
            let mean = (1..=SHUFFLES).map(|round| asked(at, round)).sum::<f64>() / SHUFFLES as f64;
            (case, mean)
        })
        .collect();
    shares(&all)
}
