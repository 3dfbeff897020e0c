//! What requests leave on disk: each brings a new tool result of 80 kB, which is condensed, as the gateway stores it.
//!
//! `LARDER_GROWTH_REQUESTS` says how many. The figures are printed: `cargo test --test growth -- --nocapture`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed step fails the test; it prints its figures"
)]

mod common;

use common::{Home, exchange};
use larder_store::{NewExchange, NewTranscript, TranscriptMessage};
use larder_text::hash::ContentHash;
use serde_json::json;

/// Bytes of a new result.
const RESULT: usize = 80_000;
/// Requests of a conversation.
const TALK: u64 = 10;
/// Requests before the first measurement, so that empty tables do not count.
const WARM_UP: u64 = 100;
/// Requests that are measured when nobody asks for more.
const REQUESTS: u64 = 400;

/// A log as programs write them: templates, levels, times, ids.
fn log(seed: u64) -> String {
    const EVENTS: [&str; 6] = [
        "connection accepted from 10.0.{}.{}:{}",
        "query on table \"orders\" took {} ms, {} rows, plan {}",
        "cache miss for key session:{}:{}:{}",
        "retrying upload of part {} of {} after timeout {}",
        "GET /api/v1/items/{}?page={}&size={} 200",
        "worker {} finished job {} with code {}",
    ];
    let (mut text, mut at) = (String::new(), 0_u64);
    while text.len() < RESULT {
        let digest = ContentHash::new(format!("{seed}/{at}").as_bytes());
        let bytes = digest.as_bytes();
        let mut event = EVENTS[usize::from(bytes[0] % 6)].to_owned();
        for byte in &bytes[1..4] {
            event = event.replacen("{}", &byte.to_string(), 1);
        }
        let level = ["INFO", "INFO", "INFO", "DEBUG", "WARN"][usize::from(bytes[4] % 5)];
        let id = &digest.to_hex()[..8];
        text.push_str(&format!(
            "2026-11-25T12:{:02}:{:02}.{:03}Z {level} [{id}] {event}\n",
            at / 60 % 60,
            at % 60,
            bytes[5]
        ));
        at += 1;
    }
    text.truncate(RESULT);
    text
}

fn zstd_size(bytes: &[u8]) -> u64 {
    zstd::bulk::compress(bytes, 3).unwrap().len() as u64
}

/// Bytes on disk, in blocks, and files, of the contents and the index of a home.
fn on_disk(home: &Home) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let (mut bytes, mut files) = (0, 0);
    let mut folders = vec![home.path().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let (path, found) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
            if found.is_dir() {
                folders.push(path);
            } else if !path.to_string_lossy().ends_with("-wal") && !path.to_string_lossy().ends_with("-shm") {
                bytes += found.blocks() * 512;
                files += 1;
            }
        }
    }
    (bytes, files)
}

/// As [`on_disk`], once the log of writes is in the index, where every process puts it from time to time.
fn settled(home: &Home) -> (u64, u64) {
    home.store.delete_user("nobody").unwrap();
    on_disk(home)
}

#[cfg(unix)]
#[test]
fn a_request_leaves_little_more_than_what_is_new_in_it() {
    let home = Home::new();
    let user = home.user("ada");
    let requests =
        std::env::var("LARDER_GROWTH_REQUESTS").ok().and_then(|n| n.parse().ok()).unwrap_or(REQUESTS);
    let (mut new, mut before) = (0, (0, 0));
    let mut talk: Vec<(String, String, larder_text::pointer::Pointer)> = Vec::new();
    for at in 0..WARM_UP + requests {
        if at == WARM_UP {
            (new, before) = (0, settled(&home));
        }
        if at % TALK == 0 {
            talk.clear();
        }
        let result = log(at);
        let stored = user.pointers().insert(result.as_bytes(), "tool_result", "a log of 80 kB").unwrap();
        let body = |text: &str| {
            json!({"role": "tool", "tool_call_id": format!("call_{at}"), "content": text}).to_string()
        };
        let condensed = format!("{}\n[… the rest: {}]", &result[..2_000], stored.pointer_id);
        let reply =
            format!("{{\"role\":\"assistant\",\"content\":\"The answer number {at} is in the log.\"}}");
        new += zstd_size(body(&result).as_bytes()) + zstd_size(reply.as_bytes());
        talk.push((body(&result), body(&condensed), stored.pointer_id.clone()));
        let messages: Vec<_> = talk
            .iter()
            .map(|(raw, sent, pointer)| TranscriptMessage {
                identity: ContentHash::new(raw.as_bytes()),
                role: "tool",
                raw: raw.as_bytes(),
                sent: Some(sent.as_bytes()),
                pointers: std::slice::from_ref(pointer),
            })
            .collect();
        let session = format!("s{}", at / TALK);
        let transcript = NewTranscript {
            store: &user,
            session: &session,
            messages: &messages,
            reply: Some(reply.as_bytes()),
        };
        for place in home.store.append_transcripts(&[transcript]) {
            place.unwrap();
        }
        let window: Vec<_> = (0..talk.len())
            .map(|part| json!({"part": part, "role": "tool", "form": "condensed", "tokens": 520, "whole": 21_000}))
            .collect();
        let record =
            json!({"id": format!("r{at}"), "model": "gpt-4o", "outcome": "ok", "window": window}).to_string();
        let id = format!("r{at}");
        let row = NewExchange { session: Some(&session), json: &record, ..exchange(&id) };
        home.store.record_exchanges(&[(&user, row)]).unwrap();
    }
    let after = settled(&home);
    let (bytes, files) = (after.0 - before.0, after.1 - before.1);
    let ratio = bytes as f64 / new as f64;
    println!(
        "{requests} requests: {} bytes each for {} new ones (zstd), {ratio:.3} times; {:.3} files each",
        bytes / requests,
        new / requests,
        files as f64 / requests as f64
    );
    // 1.15 is the goal. Keys are random, so how full pages are differs a little between runs.
    assert!(ratio <= 1.155, "{ratio}");
    assert!(files as f64 / requests as f64 <= 0.1);
    for (raw, ..) in &talk {
        assert_eq!(user.contents().get(ContentHash::new(raw.as_bytes())).unwrap(), raw.as_bytes());
    }
    assert!(home.store.verify().unwrap().is_clean());
}
