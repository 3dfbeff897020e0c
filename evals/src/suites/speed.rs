//! How long condensing takes, all in, and how far it can go. Machines differ, so the limit on time is held in milliseconds
//! of a reference machine.

use larder_condense::ContentType;
use larder_text::tokens::Counter;

use crate::report::{Report, ReportColumn};
use crate::{Failure, corpora, made, measure};

/// Times each case is run; the median is reported.
const ROUNDS: usize = 9;
const MEGABYTE: usize = 1_000_000;
/// Tokens to which a megabyte is condensed.
const TARGET: usize = 2_000;
/// The sizes of two published cases: a diff of 88,000 tokens to 247, and 5 MB of JSON of 134,000 tokens to 237.
const DIFF_TOKENS: usize = 88_000;
const DIFF_TARGET: usize = 247;
const JSON_BYTES: usize = 5_000_000;
const JSON_TARGET: usize = 237;
/// Milliseconds of the reference machine that the JSON may take (R3-5.18).
const JSON_MS: f64 = 700.0;

/// Measures made-up inputs of every type, and the diff of a book where the corpus is there.
///
/// # Errors
/// None of its own.
pub fn measure() -> Result<Report, Failure> {
    Counter::o200k().count("ready");
    let mut report = Report {
        suite: "speed",
        title: format!("Condensing, all in, median of {ROUNDS} runs; 1 MB of each type to {TARGET} tokens"),
        columns: vec![
            ReportColumn::shown("MB", 2),
            ReportColumn::shown("tokens", 0),
            ReportColumn::shown("target", 0),
            ReportColumn::shown("out", 0),
            ReportColumn::shown("ms", 1),
            ReportColumn::shown("ms of a tenth", 1),
            ReportColumn::shown("times", 1),
        ],
        rows: Vec::new(),
        total: Vec::new(),
        faults: Vec::new(),
    };
    for (name, content_type) in made::TYPES {
        let text = made::text(content_type, 1, MEGABYTE);
        let tenth = made::text(content_type, 1, MEGABYTE / 10);
        case(&mut report, name, &text, content_type, TARGET, Some(&tenth));
    }
    let diff = diff_of_a_book()?;
    case(&mut report, "diff of 88 K tokens", &diff, ContentType::Diff, DIFF_TARGET, None);
    let json = made::wide_json(JSON_BYTES);
    report.faults.extend(too_slow(&json));
    case(&mut report, "JSON of 5 MB", &json, ContentType::Json, JSON_TARGET, None);
    Ok(report)
}

fn case(
    report: &mut Report,
    name: &str,
    text: &str,
    content_type: ContentType,
    target: usize,
    tenth: Option<&str>,
) {
    match measure::run(text, content_type, target) {
        Ok(first) => {
            let wrong = measure::faults(text, &first.condensed, target);
            report.faults.extend(wrong.into_iter().map(|fault| format!("{name}: {fault}")));
            let ms = median(text, content_type, target);
            let tenth = tenth.map(|tenth| median(tenth, content_type, target));
            let figures = [text.len() as f64 / 1e6, first.condensed.original_tokens as f64, target as f64];
            let figures = figures.into_iter().chain([first.condensed.tokens as f64, ms]).map(Some);
            report
                .rows
                .push((name.to_owned(), figures.chain([tenth, tenth.map(|tenth| ms / tenth)]).collect()));
        }
        Err(refusal) => report.faults.push(format!("{name}: refused: {refusal}")),
    }
}

fn median(text: &str, content_type: ContentType, target: usize) -> f64 {
    let runs = (0..ROUNDS).filter_map(|_| measure::run(text, content_type, target).ok());
    measure::median(runs.map(|run| run.ms).collect())
}

/// The fault if the JSON takes longer than it may.
fn too_slow(json: &str) -> Option<String> {
    let mut clock = measure::ReferenceClock::new();
    let run = |_| {
        clock.tick();
        measure::run(json, ContentType::Json, JSON_TARGET).ok().map(|run| run.ms)
    };
    let times: Vec<f64> = (0..ROUNDS).filter_map(run).collect();
    let ms = clock.reference_ms(measure::median(times));
    (ms.is_nan() || ms > JSON_MS).then(|| {
        format!("JSON of 5 MB: {ms:.0} ms on the reference machine, more than the {JSON_MS} that it may take")
    })
}

/// The diff that adds the beginning of a book, or made-up prose where the corpus is missing.
fn diff_of_a_book() -> Result<String, Failure> {
    let book = match corpora::folder("text") {
        Ok(folder) => corpora::text(&folder.join("war_and_peace.txt.gz"))?,
        Err(_) => made::text(ContentType::Prose, 1, MEGABYTE),
    };
    let counter = Counter::o200k();
    let (mut low, mut high) = (0, book.len());
    while high - low > 1_000 {
        let middle = low.midpoint(high);
        let diff = made::diff_adding("book.txt", &book[..book.floor_char_boundary(middle)]);
        if counter.count(&diff) > DIFF_TOKENS { high = middle } else { low = middle }
    }
    Ok(made::diff_adding("book.txt", &book[..book.floor_char_boundary(low)]))
}
