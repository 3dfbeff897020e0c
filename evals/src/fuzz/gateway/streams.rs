//! Replies: the pieces in which a stream comes make no difference, what holds no call of ours leaves byte for byte, and
//! a request to go on is one that can be read.

use std::time::Instant;

use larder_proxy::wire::{
    self, ApiDialect, ApiError, ApiErrorKind, REHYDRATE, ReadError, ReplyPlace, StreamedReply, WholeReply,
};
use larder_text::json::Document;

use super::super::check::slow;
use super::super::mutate;
use super::super::target::{HEAD, head};
use super::{bodies, format_of};
use crate::made::Random;

/// Stands between the replies of one request.
const NEXT: u8 = 0x1e;
/// Replies of one request that are looked at.
const ROUNDS: usize = 4;
/// Set in the second byte of a case whose replies come whole.
const WHOLE: u8 = 1;
/// Set in the second byte of a case in which our tool was not offered.
const PLAIN: u8 = 2;
/// What a text without a call of ours does not hold.
const OURS: [&str; 2] = ["larder", "\\u"];

pub(in super::super) fn check(bytes: &[u8]) -> Vec<String> {
    let dialect = format_of(head(bytes, 0));
    let (whole, hide) = (head(bytes, 1) & WHOLE != 0, head(bytes, 1) & PLAIN == 0);
    let text = bytes.get(HEAD..).unwrap_or_default();
    let rounds: Vec<&[u8]> = text.split(|byte| *byte == NEXT).take(ROUNDS).collect();
    let started = Instant::now();
    let mut faults = match whole {
        true => of_whole(dialect, hide, &rounds),
        false => of_stream(dialect, hide, &rounds, u64::from(head(bytes, 2))),
    };
    faults.extend(slow(started.elapsed(), text.len()));
    faults
}

/// A first request of the format.
fn request(dialect: ApiDialect) -> String {
    let list = if dialect == ApiDialect::Responses { "input" } else { "messages" };
    format!(r#"{{"model":"m","{list}":[{{"role":"user","content":"go"}}],"kept":1.0}}"#)
}

/// What a client gets, and the requests that were made for it.
#[derive(PartialEq)]
struct Driven {
    out: Vec<u8>,
    sent: Vec<String>,
    hidden: usize,
}

/// Pushes replies in pieces of the sizes that `size` gives, answers, and continues.
fn drive(
    dialect: ApiDialect,
    hide: bool,
    rounds: &[&[u8]],
    mut size: impl FnMut() -> usize,
) -> Result<Driven, String> {
    let mut stream = StreamedReply::new(dialect, hide.then_some(REHYDRATE));
    let (mut out, mut sent) = (Vec::new(), vec![request(dialect)]);
    for reply in rounds {
        let mut rest = *reply;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(size().clamp(1, rest.len()));
            stream.push(piece, &mut out);
            rest = more;
        }
        stream.end(&mut out);
        let answers = stream.rounds().calls().iter().map(|call| format!("answer to {}", call.id)).collect();
        stream.rounds().answer(answers);
        let last = sent.last().map(String::as_str).unwrap_or_default();
        match stream.next(last).map_err(|error| format!("next: {error}"))? {
            Some(next) => sent.push(next),
            None => break,
        }
    }
    let hidden = stream.rounds().hidden(&ReplyPlace::default()).len();
    let _ = (stream.known(), stream.rounds().usage(), stream.rounds().last());
    // A stream that broke off while the model was to go on ends with an error.
    if sent.len() > rounds.len() {
        stream.fail(&ApiError::new(ApiErrorKind::Upstream, "gone"), &mut out);
    } else {
        stream.close(&mut out);
    }
    Ok(Driven { out, sent, hidden })
}

fn of_stream(dialect: ApiDialect, hide: bool, rounds: &[&[u8]], seed: u64) -> Vec<String> {
    let at_once = match drive(dialect, hide, rounds, || usize::MAX) {
        Ok(driven) => driven,
        Err(fault) => return vec![fault],
    };
    let mut faults = of_requests(dialect, &at_once.sent);
    let mut random = Random::new(seed);
    let most = random.below(200) + 2;
    for (name, pieces) in [
        ("bytes", drive(dialect, hide, rounds, || 1)),
        ("pieces", drive(dialect, hide, rounds, || 1 + random.below(most))),
    ] {
        if pieces.as_ref() != Ok(&at_once) {
            faults.push(format!("chunks: in {name} another stream comes out"));
        }
    }
    let first = rounds.first().copied().unwrap_or_default();
    let alone = at_once.sent.len() == 1 && at_once.hidden == 0;
    if alone && (!hide || holds_none(first)) && at_once.out != first {
        faults.push(format!("alone: {} bytes became {}", first.len(), at_once.out.len()));
    }
    if !hide && !alone {
        faults.push("plain: a call was taken for ours where our tool was not offered".to_owned());
    }
    faults
}

/// Whether it cannot contain a call of ours.
fn holds_none(reply: &[u8]) -> bool {
    let text = String::from_utf8_lossy(reply);
    !OURS.iter().any(|ours| text.contains(ours))
}

/// Each request to go on can be read, and begins as the one before.
fn of_requests(dialect: ApiDialect, sent: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    for pair in sent.windows(2) {
        let [before, after] = pair else { continue };
        match wire::read(dialect, after) {
            // The provider's own words are sent back to it as they are.
            Ok(_) | Err(ReadError::Twice { .. } | ReadError::Shape { .. }) => {}
            Err(error) => faults.push(format!("next: the request to go on cannot be read: {error}")),
        }
        let end = before.rfind(']').unwrap_or_default();
        if !after.starts_with(&before[..end]) || !after.ends_with(r#"],"kept":1.0}"#) {
            faults.push("next: the request to go on is not the one before with more behind it".to_owned());
        }
    }
    faults
}

fn of_whole(dialect: ApiDialect, hide: bool, rounds: &[&[u8]]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut reply = WholeReply::new(dialect, hide.then_some(REHYDRATE));
    let mut sent = vec![request(dialect)];
    let (mut taken, mut last) = (0, String::new());
    for bytes in rounds {
        let Ok(text) = std::str::from_utf8(bytes) else { break };
        if reply.take(text).is_err() {
            break;
        }
        (taken, last) = (taken + 1, text.to_owned());
        let answers = reply.rounds().calls().iter().map(|call| format!("answer to {}", call.id)).collect();
        reply.rounds().answer(answers);
        match reply.next(sent.last().map(String::as_str).unwrap_or_default()) {
            Ok(Some(next)) => sent.push(next),
            Ok(None) => break,
            Err(error) => return vec![format!("next: {error}")],
        }
    }
    faults.extend(of_requests(dialect, &sent));
    if taken == 0 {
        return faults;
    }
    let hidden = reply.rounds().hidden(&ReplyPlace::default()).len();
    match reply.close() {
        Err(error) => faults.push(format!("close: {error}")),
        Ok(body) if taken == 1 && hidden == 0 && (!hide || holds_none(last.as_bytes())) && body != last => {
            faults.push("alone: a reply without calls of ours changed".to_owned());
        }
        Ok(body) => {
            faults.extend(Document::parse(&body).err().map(|error| format!("close: {error}")));
        }
    }
    faults
}

/// What a stream is broken with.
const SCRAPS: [&str; 20] = [
    "\n\n",
    "\r\n\r\n",
    "\r",
    ": ping\n\n",
    "data: [DONE]\n\n",
    "data:\n",
    "data: {}\n\n",
    "data",
    "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"\"}}\n\n",
    "data: {\"type\":\"ping\"}\n\n",
    "id: 7\n",
    "retry: 10\n",
    "\u{feff}",
    "larder_rehydrate",
    "\"name\":\"larder_\"",
    "\"finish_reason\":\"length\"",
    "\u{1e}",
    "\u{e9}",
    "\\u006carder_rehydrate",
    "null",
];

pub(in super::super) fn generate(random: &mut Random) -> Vec<u8> {
    let (dialect, how) = (random.next() as u8, random.next() as u8);
    let mut text = Vec::new();
    for round in 0..=random.below(3) {
        if round > 0 {
            text.push(NEXT);
        }
        let parts = bodies::parts(random);
        let reply = match how & WHOLE {
            0 => bodies::stream(format_of(dialect), round, &parts),
            _ => bodies::whole(format_of(dialect), round, &parts),
        };
        text.extend(match random.below(5) {
            0 => reply.replace('\n', "\r\n").into_bytes(),
            1 => reply.replace('\n', "\r").into_bytes(),
            _ => reply.into_bytes(),
        });
    }
    for _ in 0..random.below(6).saturating_sub(2) {
        match random.below(3) {
            0 => text.truncate(random.below(text.len() + 1)),
            1 => {
                let at = random.below(text.len() + 1);
                text.splice(at..at, random.one(&SCRAPS).bytes());
            }
            _ => mutate::change(&mut text, random),
        }
    }
    text.truncate(mutate::MOST_BYTES);
    let mut bytes = vec![dialect, how, random.next() as u8, 0];
    bytes.extend(text);
    bytes
}
