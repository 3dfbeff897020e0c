//! Fills a vault with generated turns of one user, and reports how long commits and queries take and how much memory
//! they need: `cargo run --release -p larder-store --example scale -- 1000 10000 100000`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "an example that measures and prints")]

use std::time::{Duration, Instant};

use larder_store::{DocumentPlace, Documents, Store, StoreOptions, TurnDraft, UserDocuments};
use larder_vault::layout::UserPlace;
use larder_vault::links::DualLink;
use larder_vault::{
    Document, Intent, Meta, Mode, Research, Response, Score, TurnMetadata, TurnStatus, write_json,
};

const USER: &str = "u";
/// Distinct words with a natural frequency distribution, so that a few appear nearly everywhere.
const VOCABULARY: u64 = 30_000;
/// Commits and questions that are timed at each size.
const TIMED: usize = 400;

/// The same numbers on every machine (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A word; the one with rank r has a frequency of about 1/r.
    fn word(&mut self) -> String {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = ((VOCABULARY as f64).powf(share) - 1.0) as u64;
        format!("w{rank}")
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

fn fill(draft: &mut TurnDraft) {
    let (number, at, place) = (draft.number, draft.created_at, draft.place.clone());
    let mut numbers = Numbers(u64::from(number));
    let topic = format!("topic{}.sub{}", numbers.next() % 40, numbers.next() % 8);
    let mut context = Meta::for_turn(number, "context", USER, at).write().as_str().to_owned();
    context.push_str(&format!("# Turn\n\n{}\n", numbers.text(350)));
    for _ in 0..2.min(number - 1) {
        let earlier = 1 + numbers.next() as u32 % (number - 1);
        let link = DualLink::new(UserPlace::new(USER).turn(earlier).context(), "earlier");
        context.push_str(&format!("- {}\n", link.both(&place.context())));
    }
    let response = Document::new(
        Meta::for_turn(number, "response", USER, at),
        Response { text: numbers.text(200), ..Response::default() },
    );
    let metadata = TurnMetadata {
        turn_number: number,
        user_id: USER.to_owned(),
        session_id: None,
        mode: Mode::Chat,
        status: TurnStatus::Complete,
        created_at: at,
        finished_at: None,
        query: numbers.text(10),
        summary: Some(numbers.text(12)),
        topic: Some(topic.clone()),
        intent: Some(Intent::Informational),
        quality: Score::new(0.9),
        invented: Vec::new(),
        unverified: false,
        last_phase: Some(7),
        revisions: 0,
        retries: 0,
    };
    if number.is_multiple_of(5) {
        let research = Research {
            id: format!("research_{number}_x"),
            turn: number,
            session: USER.to_owned(),
            query: metadata.query.clone(),
            topic,
            intent: Intent::Informational,
            quality: Score::new(0.8).unwrap(),
            created: at,
            expires: None,
            supersedes: None,
            write_up: None,
            sources: Vec::new(),
            facts: (0..8).map(|_| numbers.text(15)).collect(),
            listings: Vec::new(),
            claims: Vec::new(),
            linked_from: Vec::new(),
        };
        let meta = Meta::for_turn(number, "research", USER, at);
        let text = Document::new(meta, research.clone()).write(&place.research());
        draft.files.insert("research.md".to_owned(), text.into_bytes());
        draft.files.insert("research.json".to_owned(), write_json(&research).into_bytes());
    }
    draft.files.insert("context.md".to_owned(), context.into_bytes());
    draft.files.insert("response.md".to_owned(), response.write(&place.response()).into_bytes());
    draft.files.insert("metadata.json".to_owned(), write_json(&metadata).into_bytes());
}

fn commit(user: &UserDocuments) -> Duration {
    let mut draft = user.drafts().begin(Mode::Chat, None, "a question").unwrap();
    fill(&mut draft);
    let started = Instant::now();
    user.drafts().commit(&draft).unwrap();
    started.elapsed()
}

/// p50 and p95 in milliseconds.
fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1_000.0;
    format!("{:7.2} {:7.2}", at(50), at(95))
}

fn timed(mut work: impl FnMut(&mut Numbers)) -> String {
    let mut numbers = Numbers(7);
    let mut times = Vec::new();
    for _ in 0..TIMED {
        let started = Instant::now();
        work(&mut numbers);
        times.push(started.elapsed());
    }
    quantiles(times)
}

/// Resident memory in MiB, where the system says so.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1_024
}

fn measure(user: &UserDocuments, turns: u32) {
    let commits = quantiles((0..TIMED).map(|_| commit(user)).collect());
    let search = timed(|numbers| {
        let query = numbers.text(8);
        user.catalog().search(&query, &[], 20).unwrap();
    });
    let recent = timed(|numbers| {
        let before = 1 + numbers.next() as u32 % turns;
        user.catalog().recent_turns(20, Some(before), None).unwrap();
    });
    let links = timed(|numbers| {
        let turn = user.place().turn(1 + numbers.next() as u32 % turns).context();
        user.catalog().links_from(&turn).unwrap();
        user.catalog().links_to(&turn).unwrap();
    });
    let research = timed(|numbers| {
        user.catalog().research(Some(&format!("topic{}", numbers.next() % 40)), 10).unwrap();
    });
    println!("{turns:>7} | {commits} | {search} | {recent} | {links} | {research} | {:>5}", resident());
}

fn main() {
    let sizes: Vec<u32> = std::env::args().skip(1).map(|size| size.parse().unwrap()).collect();
    let dir = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
    let store = Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap();
    let documents = Documents::open(&store, &DocumentPlace::Folder(dir.path().join("vault"))).unwrap();
    documents.recover().unwrap();
    let user = documents.user(USER).unwrap();
    println!("milliseconds, p50 and p95; memory in MiB");
    println!(
        "  turns |     commit      |     search      |  recent_turns   |      links      |    research     |   RSS"
    );
    let mut turns = 0;
    for size in sizes {
        while turns < size {
            commit(&user);
            turns += 1;
        }
        measure(&user, turns);
        turns += TIMED as u32;
    }
    let started = Instant::now();
    let report = documents.reindex(&|_| {}).unwrap();
    println!(
        "reindex of {} turns: {:.1} s, {} MiB",
        report.turns,
        started.elapsed().as_secs_f64(),
        resident()
    );
}
