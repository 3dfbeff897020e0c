//! `larder-evals fuzz`: makes cases for a while, keeps what breaks, says how many there were.
#![allow(clippy::print_stdout, reason = "a command talks to its terminal")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::minimise::minimise;
use super::{Target, kept};
use crate::Failure;
use crate::made::Random;

const SECONDS: u64 = 60;
/// Broken cases of one kind that are kept; more say nothing new.
const MOST_OF_A_KIND: usize = 3;

/// Runs `fuzz TARGET… [--seconds N] [--seed N]`; gives 1 if anything broke.
///
/// # Errors
/// An unknown target or option, or a broken case that cannot be written.
pub fn command(words: &[&str]) -> Result<u8, Failure> {
    let (mut targets, mut seconds, mut seed) = (Vec::new(), SECONDS, 1);
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let number = |word: Option<&&str>| word.copied().unwrap_or_default().parse::<u64>();
        match word {
            "--seconds" => seconds = number(words.next())?,
            "--seed" => seed = number(words.next())?,
            "all" => targets.extend(Target::all()),
            name => targets.push(Target::named(name).ok_or_else(|| format!("there is no target {name:?}"))?),
        }
    }
    // What is caught is reported in one line; the standard report would bury it.
    std::panic::set_hook(Box::new(|_| {}));
    let mut broken = false;
    for (name, target) in targets {
        broken |= fuzz(name, target, Duration::from_secs(seconds), seed)?;
    }
    kept::clean();
    Ok(u8::from(broken))
}

fn fuzz(name: &str, target: Target, time: Duration, seed: u64) -> Result<bool, Failure> {
    let started = Instant::now();
    let mut random = Random::new(seed);
    let (mut cases, mut bytes) = (0_u64, 0_u64);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    while started.elapsed() < time {
        let case = target.generate(&mut random);
        cases += 1;
        bytes += case.len() as u64;
        let faults = target.check(&case);
        let Some(fault) = faults.first() else { continue };
        let kind = fault.split(':').next().unwrap_or_default().to_owned();
        let seen = kinds.entry(kind.clone()).or_default();
        *seen += 1;
        if *seen <= MOST_OF_A_KIND {
            let small = minimise(target, &case);
            let path = keep(name, &kind, &small)?;
            let again = target.check(&small);
            println!("{name}: {}\n    {path}", again.first().unwrap_or(fault));
        }
    }
    println!(
        "{name}: {cases} cases, {:.1} MB, {} s, seed {seed}: {}",
        bytes as f64 / 1e6,
        started.elapsed().as_secs(),
        if kinds.is_empty() { "nothing broke".to_owned() } else { format!("{kinds:?}") }
    );
    Ok(!kinds.is_empty())
}

/// Writes a broken case next to `fuzz/corpus`, where `cargo fuzz` puts its own.
fn keep(name: &str, kind: &str, case: &[u8]) -> Result<String, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/artifacts").join(name);
    std::fs::create_dir_all(&folder)?;
    let hash = larder_text::hash::ContentHash::new(case).to_hex();
    let path = folder.join(format!("{}-{}", kind.replace(' ', "-"), &hash[..12.min(hash.len())]));
    std::fs::write(&path, case)?;
    Ok(path.display().to_string())
}
