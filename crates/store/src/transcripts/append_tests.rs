//! Tests of finding a history in its session and of what is added to it.

use larder_text::hash::ContentHash;
use tempfile::TempDir;

use super::*;
use crate::StoreOptions;

/// A user's store, and the folder that it is in.
fn store() -> (TempDir, UserStore) {
    let dir = tempfile::tempdir().unwrap();
    let user = Store::open(dir.path(), StoreOptions::default()).unwrap().user("a").unwrap();
    (dir, user)
}

/// A message that goes upstream as it came.
fn message(text: &str) -> TranscriptMessage<'_> {
    TranscriptMessage {
        identity: ContentHash::new(text.as_bytes()),
        role: "user",
        raw: text.as_bytes(),
        sent: None,
        pointers: &[],
    }
}

fn messages<'a>(texts: &[&'a str]) -> Vec<TranscriptMessage<'a>> {
    texts.iter().map(|text| message(text)).collect()
}

fn append(user: &UserStore, texts: &[&str]) -> (u32, u32) {
    let place = user.transcripts().append("s", &messages(texts), None).unwrap();
    (place.branch, place.added)
}

#[test]
fn a_growing_history_adds_its_new_messages_only() {
    let (_dir, user) = store();
    assert_eq!(append(&user, &["a", "b"]), (1, 2));
    assert_eq!(append(&user, &["a", "b", "c", "d"]), (1, 2));
    assert_eq!(append(&user, &["a", "b", "c", "d"]), (1, 0), "the same request again");
    assert_eq!(append(&user, &["a", "b"]), (1, 0), "an earlier request again");
    let lines = user.transcripts().lines("s").unwrap();
    assert_eq!(lines.iter().map(|line| line.message).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn a_reply_is_a_line_of_the_last_message_and_of_no_history() {
    let (_dir, user) = store();
    let place = user.transcripts().append("s", &messages(&["a"]), Some(b"reply")).unwrap();
    assert_eq!(place.added, 2);
    let lines = user.transcripts().lines("s").unwrap();
    assert_eq!((lines[1].kind, lines[1].message), (LineKind::Reply, 1));
    assert_eq!(user.transcripts().branch("s", 1).unwrap(), lines[..1]);
}

#[test]
fn a_history_that_leaves_a_branch_forks_after_the_last_shared_message() {
    let (_dir, user) = store();
    append(&user, &["a", "b", "c"]);
    assert_eq!(append(&user, &["a", "b", "x"]), (2, 1));
    assert_eq!(append(&user, &["a", "b", "x", "y"]), (2, 1), "the new branch grows");
    assert_eq!(append(&user, &["z"]), (3, 1), "a history that shares nothing");
    let lines = user.transcripts().lines("s").unwrap();
    let forks: Vec<_> = lines.iter().filter_map(|line| line.forked_from).collect();
    assert_eq!(forks, [ForkPoint { branch: 1, message: 2 }]);
    let second = user.transcripts().branch("s", 2).unwrap();
    let texts: Vec<Vec<u8>> = second.iter().map(|line| user.contents().get(line.raw.hash).unwrap()).collect();
    assert_eq!(texts, [b"a", b"b", b"x", b"y"]);
}

#[test]
fn the_shared_prefix_is_found_at_any_length() {
    let (_dir, user) = store();
    let names: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    append(&user, &known);
    for shared in 0..=known.len() {
        for fresh in [0, 1, 7] {
            let mut texts = known[..shared].to_vec();
            texts.extend(&["new"; 7][..fresh]);
            let chains = TranscriptMessage::histories(&messages(&texts));
            let found = user.index().read(|tx| user.transcripts().known(tx, "s", &chains)).unwrap();
            assert_eq!(found, (shared, (shared > 0).then_some(1)), "{shared} known, {fresh} new");
        }
    }
}

#[test]
fn a_message_that_goes_upstream_in_another_form_adds_one_rendition() {
    let (_dir, user) = store();
    append(&user, &["a", "b"]);
    let condensed = |with: &'static [u8]| {
        let mut history = messages(&["a", "b"]);
        history[0].sent = Some(with);
        user.transcripts().append("s", &history, None).unwrap().added
    };
    assert_eq!(condensed(b"short"), 1);
    assert_eq!(condensed(b"short"), 0, "the form is known");
    assert_eq!(condensed(b"shorter"), 1);
    assert_eq!(append(&user, &["a", "b"]), (1, 1), "back to the original");
    let kinds: Vec<_> = user.transcripts().lines("s").unwrap().iter().map(|line| line.kind).collect();
    assert_eq!(kinds[2..], [LineKind::Rendition; 3]);
    let last = user.transcripts().branch("s", 1).unwrap();
    assert_eq!((last.len(), last[0].sent), (2, None));
}

/// A log of so many lines, of which no two are alike.
fn log(lines: u32) -> String {
    let hash = |at: u32| ContentHash::new(&at.to_le_bytes()).to_hex();
    (0..lines).map(|at| format!("\"{at}\"\t{}\n", hash(at))).collect()
}

#[test]
fn a_message_whose_original_is_lost_is_kept_whole() {
    let (_dir, user) = store();
    let log = log(60_000);
    let stored = user.pointers().insert(log.as_bytes(), "log", "").unwrap();
    let file = user.blobs().path(user.folder(), stored.content);
    std::fs::remove_file(file).unwrap();
    let (raw, pointers) = (serde_json::json!({"content": log}).to_string(), [stored.pointer_id]);
    let message = TranscriptMessage { pointers: &pointers, ..message(&raw) };
    user.transcripts().append("s", &[message], None).unwrap();
    let line = &user.transcripts().lines("s").unwrap()[0];
    assert_eq!(user.contents().get(line.raw.hash).unwrap(), raw.as_bytes());
}

#[test]
fn a_message_with_a_stored_original_is_kept_as_what_is_around_it() {
    let (_dir, user) = store();
    let folder_bytes = || -> u64 {
        let files = std::fs::read_dir(user.segments().root().join(user.folder())).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    // One that fits into the window of zstd, one that does not, and one that is a file of its own.
    for (lines, session) in [(500, "short"), (14_000, "long"), (60_000, "file")] {
        let log = log(lines);
        let pointer = user.pointers().insert(log.as_bytes(), "log", "").unwrap().pointer_id;
        let (raw, sent) = (
            serde_json::json!({"role": "tool", "content": log}).to_string(),
            serde_json::json!({"role": "tool", "content": format!("500 lines\n[{pointer}]")}).to_string(),
        );
        let before = folder_bytes();
        let pointers = [pointer];
        let message = TranscriptMessage { sent: Some(sent.as_bytes()), pointers: &pointers, ..message(&raw) };
        user.transcripts().append(session, &[message], None).unwrap();
        assert!(folder_bytes() - before < 500, "{} bytes", folder_bytes() - before);
        let line = &user.transcripts().lines(session).unwrap()[0];
        assert_eq!(user.contents().get(line.raw.hash).unwrap(), raw.as_bytes());
        assert_eq!(user.contents().get(line.sent.unwrap().hash).unwrap(), sent.as_bytes());
    }
    assert!(user.store().verify().unwrap().is_clean());
}

#[test]
fn of_many_histories_each_succeeds_or_fails_alone() {
    let (_dir, user) = store();
    let (good, large) = (messages(&["a"]), "x".repeat(MAX_ROW_BYTES + 1));
    let large = messages(&[large.as_str()]);
    let new = |session, messages| NewTranscript { store: &user, session, messages, reply: Some(b"reply") };
    let all = [new("s", &good[..]), new("", &good[..]), new("large", &large[..]), new("none", &[])];
    let added: Vec<_> = user
        .store()
        .append_transcripts(&all)
        .into_iter()
        .map(|place| place.ok().map(|it| it.added))
        .collect();
    assert_eq!(added, [Some(2), None, Some(2), Some(0)]);
    let lines = |session| user.transcripts().lines(session).unwrap().len();
    assert_eq!((lines("s"), lines("large")), (2, 2), "what failed has nothing added twice");
}
