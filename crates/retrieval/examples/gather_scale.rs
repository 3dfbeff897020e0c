//! How long gathering takes as a user's turns grow: `find` and `follow` over vaults of 1,000, 10,000 and 100,000 turns.
//!
//! ```sh
//! cargo run --release -p larder --example gather_scale            # or with the sizes: … gather_scale 1000 10000
//! cargo run --release -p larder --example gather_scale vectors    # with vectors of 384 numbers for all that is said
//! ```
//!
//! The turns are written as files and indexed in one go, as `larder reindex` does. Every query is asked once of a warm
//! index; times are in milliseconds, memory in MiB of this process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measure prints, and stops where something is wrong"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use larder_retrieval::{Grant, LinkToFollow, Retrieval};
use larder_store::{DocumentPlace, Documents, Store, StoreOptions, TextVector, TurnDraft, UserDocuments};
use larder_testkit::lived_in::{self, dense};
use larder_text::tokens::Counter;
use larder_vault::Mode;

/// Queries asked of each vault.
const QUERIES: u32 = 100;
/// The name under which vectors are kept, and their numbers.
const MODEL: &str = "random";
const DIMENSIONS: usize = 384;
/// The goal for `find` and `follow` together at 100,000 turns, in milliseconds.
const GOAL: f64 = 50.0;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (words, given): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument == "vectors");
    let given: Vec<u32> = given.iter().map(|size| size.parse().unwrap()).collect();
    let sizes = if given.is_empty() { vec![1_000, 10_000, 100_000] } else { given };
    println!(
        "|   turns | build s | find p50 | find p95 | follow p50 | follow p95 | both p95 | found | MiB before | MiB after |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for turns in sizes {
        measure(turns, !words.is_empty()).await;
    }
    println!("goal: both p95 < {GOAL} ms at 100,000 turns, and memory that does not grow with them");
}

async fn measure(turns: u32, with_vectors: bool) {
    let folder = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let store = Store::open(&folder.path().join("home"), StoreOptions::default()).unwrap();
    let root = folder.path().join("vault");
    let all = Documents::open(&store, &DocumentPlace::Folder(root.clone())).unwrap();
    let documents = all.user("henry").unwrap();
    (1..=turns).for_each(|number| write(&root, &documents, number));
    all.reindex(&|_| {}).unwrap();
    if with_vectors {
        embed(&documents, turns);
    }
    let built = started.elapsed().as_secs_f64();
    let before = resident();
    let (mut finds, mut follows, mut both, mut found) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let counter = Counter::cl100k();
    let retrieval = Retrieval::new(
        &documents,
        &counter,
        dense().moment(turns).plus_seconds(dense().step),
        Grant::Gatherer,
    );
    for at in 0..=QUERIES {
        let number = (1 + at * (turns / QUERIES)).min(turns);
        let it = lived_in::subject(number);
        let query = format!("what was the {} that you suggested for my {}?", it.property, it.thing);
        let vector = with_vectors.then(|| TextVector { model: MODEL.to_owned(), numbers: asked(number) });
        let retrieval = retrieval.with_vector(vector.as_ref());
        let started = Instant::now();
        let candidates = retrieval.find(&query, turns + 1, Some("session-1"), None).await.unwrap();
        let find = started.elapsed().as_secs_f64() * 1_000.0;
        let best = candidates.turn_index.iter().take(4).map(|turn| LinkToFollow {
            path: turn.context.to_string(),
            sections_to_extract: vec!["§2".to_owned(), "§5".to_owned()],
        });
        let links: Vec<LinkToFollow> = best.collect();
        let started = Instant::now();
        let followed = retrieval.follow(&links, 6_400).await.unwrap();
        let follow = started.elapsed().as_secs_f64() * 1_000.0;
        assert!(!followed.documents.is_empty());
        // The first warms the caches of the process.
        if at > 0 {
            found += u32::from(candidates.turn_index.iter().any(|turn| turn.turn == number));
            finds.push(find);
            follows.push(follow);
            both.push(find + follow);
        }
    }
    let [find_50, find_95] = percentiles(&mut finds);
    let [follow_50, follow_95] = percentiles(&mut follows);
    let [_, both_95] = percentiles(&mut both);
    println!(
        "| {turns} | {built:.1} | {find_50:.1} | {find_95:.1} | {follow_50:.1} | {follow_95:.1} | {both_95:.1} | {found} of {QUERIES} | {before:.0} | {:.0} |",
        resident()
    );
}

/// Puts a vector in for everything that turns and research say.
fn embed(documents: &UserDocuments, turns: u32) {
    for first in (1..=turns).step_by(1_000) {
        let gists = documents.vectors().missing(MODEL, first..=first.saturating_add(999)).unwrap();
        let vectors: Vec<_> = gists.into_iter().map(|gist| (gist.clone(), vector(&gist.text))).collect();
        documents.vectors().insert(MODEL, &vectors).unwrap();
    }
}

/// Numbers that follow from a text.
fn vector(text: &str) -> Vec<f32> {
    let seed = text.bytes().fold(7_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..DIMENSIONS).map(|_| next()).collect()
}

/// The vector of a query for a turn: beside that of what the turn says.
fn asked(number: u32) -> Vec<f32> {
    let it = lived_in::subject(number);
    let said = format!(
        "{}\nRecommended a {} for the {}.\n{}",
        dense().query(number),
        it.property,
        it.thing,
        dense().topic(number).replace(['.', '_'], " ")
    );
    vector(&said).into_iter().zip(vector("apart")).map(|(a, b)| a + b).collect()
}

/// Writes a turn's files where a commit would put them.
fn write(root: &Path, documents: &UserDocuments, number: u32) {
    let mut draft = TurnDraft {
        number,
        place: documents.place().turn(number),
        mode: Mode::Chat,
        session: Some(format!("session-{}", number / 25)),
        query: dense().query(number),
        created_at: dense().moment(number),
        phase: Some(7),
        state: serde_json::Value::Null,
        files: BTreeMap::new(),
    };
    dense().fill(&mut draft, documents);
    for (name, bytes) in draft.files {
        let path = root.join(draft.place.folder()).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

fn percentiles(times: &mut [f64]) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [50, 95].map(|share| times[(times.len() * share / 100).min(times.len() - 1)])
}

/// MiB of this process that lie in memory; 0 where the system does not say.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1_024.0
}
