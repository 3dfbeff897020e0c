//! Long texts: exact tiling by chunks, ranges that come back byte for byte, needles, and speed.

use std::path::Path;
use std::time::Instant;

use larder_condense::rank::RankIndex;
use larder_text::chunk::{Chunk, chunks};
use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;
use larder_text::tokens::Counter;

use crate::report::{Better, Report, ReportColumn};
use crate::{Failure, corpora, measure};

/// Tokens of a chunk at most.
const CHUNK: usize = 500;
/// Where the needle is put, in per cent of the text.
const DEPTHS: [usize; 5] = [0, 25, 50, 75, 100];
/// Lines of a range, one after another over the whole text.
const RANGE: usize = 97;

const ENGLISH: (&str, &str) =
    ("The brass zeppelin was moored to the lighthouse of Vardø. ", "Where was the zeppelin moored?");
const JAPANESE: (&str, &str) = ("真鍮の飛行船は灯台に繋がれていた。", "飛行船はどこに繋がれていたか");

/// Measures all books.
///
/// # Errors
/// The corpus is missing.
pub fn measure() -> Result<Report, Failure> {
    let folder = corpora::folder("text")?;
    let mut report = Report {
        suite: "text",
        title: format!("Long texts in chunks of {CHUNK} tokens, with a needle at five depths"),
        columns: vec![
            ReportColumn::shown("MB", 2),
            ReportColumn::shown("chunks", 0),
            ReportColumn::higher("tokens a chunk", 5.0).digits(0),
            ReportColumn {
                better: Better::Lower,
                accepted: Some(1.0),
                ..ReportColumn::shown("worst rank", 0)
            },
            ReportColumn { better: Better::Lower, slack: 25.0, ..ReportColumn::shown("tokens read", 0) },
            ReportColumn::shown("MB/s chunked", 1),
            ReportColumn::shown("MB/s indexed", 1),
            ReportColumn::shown("ms to search", 2),
        ],
        rows: Vec::new(),
        total: Vec::new(),
        faults: Vec::new(),
    };
    Counter::o200k().count("ready");
    let mut worst = 0.0_f64;
    for path in corpora::files(&folder, &[".txt.gz"])? {
        let (row, faults) = book(&path)?;
        worst = worst.max(row.get(3).copied().unwrap_or_default());
        let name = corpora::name(&path).replace(".txt.gz", "");
        report.faults.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
        report.rows.push((name, row.into_iter().map(Some).collect()));
    }
    report.total = vec![None, None, None, Some(worst), None, None, None, None];
    Ok(report)
}

fn book(path: &Path) -> Result<(Vec<f64>, Vec<String>), Failure> {
    let book = corpora::text(path)?;
    let (needle, question) = if corpora::name(path).contains(".ja.") { JAPANESE } else { ENGLISH };
    let mut faults = Vec::new();
    let (mut worst, mut read) = (0, 0);
    let (mut fastest_chunks, mut fastest_index, mut searched) = (f64::MAX, f64::MAX, f64::MAX);
    let (mut count, mut tokens) = (0, 0);
    for depth in DEPTHS {
        let at = book.ceil_char_boundary(measure::share_of(book.len(), depth));
        let text = format!("{}{needle}{}", &book[..at], &book[at..]);
        let started = Instant::now();
        let chunks = chunks(&text, CHUNK, &Counter::o200k())?;
        fastest_chunks = fastest_chunks.min(started.elapsed().as_secs_f64());
        faults.extend(tiling(&text, &chunks));
        let started = Instant::now();
        let mut index = RankIndex::default();
        chunks.iter().for_each(|chunk| index.add(&text[chunk.bytes.clone()]));
        fastest_index = fastest_index.min(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let hits = index.search(question, 0);
        searched = searched.min(started.elapsed().as_secs_f64());
        let found =
            hits.iter().position(|hit| text[chunks[hit.passage].bytes.clone()].contains(needle.trim_end()));
        match found {
            Some(rank) => {
                worst = worst.max(rank + 1);
                read = read.max(hits[..=rank].iter().map(|hit| chunks[hit.passage].tokens).sum());
            }
            None => faults.push(format!("the needle at {depth} % is not found")),
        }
        (count, tokens) = (chunks.len(), chunks.iter().map(|chunk| chunk.tokens).sum());
    }
    faults.extend(ranges(&book));
    let megabytes = book.len() as f64 / 1e6;
    let row = vec![
        megabytes,
        count as f64,
        tokens as f64 / count.max(1) as f64,
        worst as f64,
        read as f64,
        megabytes / fastest_chunks,
        megabytes / fastest_index,
        searched * 1e3,
    ];
    Ok((row, faults))
}

/// Chunks joined are the text; each is small enough and comes back through its pointer, written out and read in.
fn tiling(text: &str, chunks: &[Chunk]) -> Vec<String> {
    let id = measure::key().mint(ContentHash::new(text.as_bytes()));
    let (mut faults, mut at) = (Vec::new(), 0);
    for chunk in chunks {
        if chunk.bytes.start != at || chunk.tokens > CHUNK {
            faults.push(format!("chunk {:?} of {} tokens does not follow {at}", chunk.bytes, chunk.tokens));
        }
        at = chunk.bytes.end;
        faults.extend(back(
            text,
            &Pointer::bytes(id.clone(), chunk.bytes.clone()),
            &text[chunk.bytes.clone()],
        ));
    }
    if at != text.len() {
        faults.push(format!("the chunks end at {at} of {}", text.len()));
    }
    faults
}

/// Ranges of lines over the whole text come back through their pointers.
fn ranges(text: &str) -> Vec<String> {
    let id = measure::key().mint(ContentHash::new(text.as_bytes()));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut faults, mut first) = (Vec::new(), 1);
    // Looking a line up reads the text from its start, so not every range is tried in a long text.
    for part in lines.chunks(RANGE) {
        let last = first + part.len() - 1;
        if (first / RANGE).is_multiple_of(16) || last == lines.len() {
            faults.extend(back(text, &Pointer::lines(id.clone(), first, last), &part.concat()));
        }
        first = last + 1;
    }
    faults
}

fn back(text: &str, pointer: &Pointer, expected: &str) -> Option<String> {
    let written = pointer.to_string();
    let given = written.parse::<Pointer>().ok().and_then(|pointer| measure::resolve(text, &pointer));
    (given != Some(expected)).then(|| format!("{written} does not give its bytes back"))
}
