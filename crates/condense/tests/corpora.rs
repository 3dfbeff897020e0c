//! Conversations by other people, read in place where `LARDER_CORPORA` names their folder; skipped
//! with a message elsewhere. No text of theirs is kept here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use larder_condense::rank::RankIndex;
use larder_text::tokens::Counter;
use serde_json::Value;

fn corpora(folder: &str) -> Option<PathBuf> {
    let path = std::env::var_os("LARDER_CORPORA")
        .map(|root| Path::new(&root).join(folder))
        .filter(|path| path.is_dir());
    if path.is_none() {
        // Past the capture of test output, which would hide that nothing was checked.
        let mut stderr = std::io::stderr();
        let _ = writeln!(stderr, "skipped: LARDER_CORPORA names no folder with {folder}/");
    }
    path
}

/// Recall of the turns that answer a question, within a number of tokens (`corpora/README.md`, M2).
#[test]
fn questions_about_conversations_find_their_evidence() {
    let Some(folder) = corpora("memory/locomo") else { return };
    let read = |name: String| -> Value {
        serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
    };
    let corrections: HashMap<(String, u64), Value> = read("corrections.json".to_owned())
        .as_array()
        .unwrap()
        .iter()
        .map(|c| ((c["sample_id"].as_str().unwrap().to_owned(), c["qa_index"].as_u64().unwrap()), c.clone()))
        .collect();
    let budgets = [250, 500, 1_000, 2_000, 4_000];
    for neighbours in 0..=2 {
        let (mut recall, mut all, mut questions) = ([0.0; 5], 0, 0);
        for sample in ["conv-26", "conv-30", "conv-41", "conv-42", "conv-43"] {
            let sample = read(format!("{sample}.json"));
            let (turns, index) = turns(&sample);
            let counter = Counter::o200k();
            for (number, qa) in sample["qa"].as_array().unwrap().iter().enumerate() {
                let key = (sample["sample_id"].as_str().unwrap().to_owned(), number as u64);
                let evidence =
                    corrections.get(&key).and_then(|c| c.get("correct_evidence")).unwrap_or(&qa["evidence"]);
                let evidence = ids(evidence, &turns);
                if evidence.is_empty() {
                    continue;
                }
                questions += 1;
                let hits = index.search(qa["question"].as_str().unwrap(), neighbours);
                for (budget, recall) in budgets.iter().zip(&mut recall) {
                    let mut left = *budget;
                    let taken: HashSet<&str> = hits
                        .iter()
                        .map(|hit| &turns[hit.passage])
                        .map_while(|(id, text)| {
                            left = usize::checked_sub(left, counter.count(text) + 1)?;
                            Some(id.as_str())
                        })
                        .collect();
                    let found = evidence.iter().filter(|id| taken.contains(id.as_str())).count();
                    *recall += found as f64 / evidence.len() as f64;
                    all += usize::from(*budget == 1_000 && found == evidence.len());
                }
            }
        }
        let percent = recall.map(|sum| (1000.0 * sum / f64::from(questions)).round() / 10.0);
        println!(
            "±{neighbours} turns, {questions} questions: {percent:?} at {budgets:?} tokens; all evidence at 1,000: {:.1}",
            100.0 * f64::from(all as u32) / f64::from(questions)
        );
        assert!(percent[2] >= [69.0, 77.0, 80.0][neighbours], "recall fell");
    }
}

fn turns(sample: &Value) -> (Vec<(String, String)>, RankIndex) {
    let (mut turns, mut index) = (Vec::new(), RankIndex::default());
    let conversation = sample.get("conversation").unwrap_or(sample);
    for session in 1.. {
        let Some(messages) = conversation.get(format!("session_{session}")).and_then(Value::as_array) else {
            if session > 60 { break } else { continue }
        };
        let date = conversation[format!("session_{session}_date_time")].as_str().unwrap_or_default();
        index.start_document();
        for turn in messages {
            let picture = turn["blip_caption"]
                .as_str()
                .map(|caption| format!(" [image: {caption}]"))
                .unwrap_or_default();
            let text = format!(
                "[{date}] {}: {}{picture}",
                turn["speaker"].as_str().unwrap(),
                turn["text"].as_str().unwrap_or_default()
            );
            index.add(&text);
            turns.push((turn["dia_id"].as_str().unwrap().to_owned(), text));
        }
    }
    (turns, index)
}

/// The evidence that names turns there are.
fn ids(evidence: &Value, turns: &[(String, String)]) -> HashSet<String> {
    let known: HashSet<&str> = turns.iter().map(|(id, _)| id.as_str()).collect();
    let entries: Vec<&str> = match evidence {
        Value::Array(entries) => entries.iter().filter_map(Value::as_str).collect(),
        Value::String(entry) => vec![entry],
        _ => Vec::new(),
    };
    entries
        .iter()
        .flat_map(|entry| entry.split([';', ',', ' ']))
        .map(|id| id.trim().replacen("D:", "D", 1))
        .filter(|id| known.contains(id.as_str()))
        .collect()
}
