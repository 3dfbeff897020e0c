//! Recordings: what matches, what does not, and what never reaches a file.

use std::time::Duration;

use larder_text::message::{Message, Role};

use super::*;
use crate::chat::{StopReason, Usage};

struct Fixed(ChatReply);

impl ChatModel for Fixed {
    fn chat<'a>(&'a self, _: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        ready(Ok(self.0.clone())).boxed()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        decode::whole(self.chat(request))
    }
}

fn reply(text: &str) -> ChatReply {
    let usage = Usage { input: 3, output: 1, ..Usage::default() };
    ChatReply { text: text.to_owned(), tool_calls: Vec::new(), stop: StopReason::Stop, usage }
}

fn request(text: &str) -> ChatRequest {
    ChatRequest::new("org/model:1", vec![Message::text(Role::User, text)], 10, Duration::from_secs(1))
}

#[tokio::test]
async fn only_recorded_replies_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = vec![Secret::new("sk-hidden").unwrap()];
    let recorder = ReplayRecorder::new(Arc::new(Fixed(reply("yes sk-hidden"))), folder.path(), secrets);
    let asked = request("is sk-hidden in here?");
    recorder.chat(&asked).await.unwrap();

    let path = recording_path(folder.path(), &asked);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("sk-hidden") && text.contains("***"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left behind");

    let replay = Replay::new(folder.path());
    assert_eq!(replay.chat(&asked).await.unwrap(), reply("yes ***"));
    let events: Vec<_> = replay.stream(&asked).try_collect().await.unwrap();
    assert_eq!(events, [ChatEvent::Text("yes ***".to_owned()), ChatEvent::Done(reply("yes ***"))]);

    let other = request("is it?");
    let error = replay.chat(&other).await.unwrap_err().to_string();
    let expected = recording_path(folder.path(), &other);
    assert!(error.contains(expected.to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn a_stream_is_recorded_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = ReplayRecorder::new(Arc::new(Fixed(reply("ok"))), folder.path().join("new"), Vec::new());
    let asked = request("q");
    let events: Vec<_> = recorder.stream(&asked).try_collect().await.unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(Replay::new(folder.path().join("new")).chat(&asked).await.unwrap(), reply("ok"));
}

#[tokio::test]
async fn broken_recordings_say_which_file_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording_path(folder.path(), &request("q"));
    for bad in ["", "{}", "\0\u{ff}", &"[".repeat(100_000)] {
        std::fs::write(&path, bad).unwrap();
        let error = Replay::new(folder.path()).chat(&request("q")).await.unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
    let recorder = ReplayRecorder::new(Arc::new(Fixed(reply("ok"))), folder.path(), Vec::new());
    recorder.chat(&request("other")).await.unwrap();
    std::fs::rename(recording_path(folder.path(), &request("other")), &path).unwrap();
    let error = Replay::new(folder.path()).chat(&request("q")).await.unwrap_err().to_string();
    assert!(error.contains("record it again"), "a renamed recording answers nothing: {error}");
}

#[test]
fn the_hash_ignores_key_order_and_what_does_not_change_the_question() {
    let with = |schema: Value| ChatRequest { schema: Some(schema), ..request("q") };
    let first = with(serde_json::from_str(r#"{"a":1,"b":{"c":2,"d":3}}"#).unwrap());
    let second = with(serde_json::from_str(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap());
    assert_eq!(hash(&first), hash(&second));
    assert_ne!(hash(&first), hash(&request("q")));
    let slow = ChatRequest { timeout: Duration::from_secs(9), temperature: Some(1.0), ..request("q") };
    assert_eq!(hash(&slow), hash(&request("q")));
    assert_ne!(hash(&ChatRequest { max_output: 11, ..request("q") }), hash(&request("q")));
}

#[test]
fn file_names_are_safe() {
    let name = file_name("../..//etc/\0passwd\u{202e}", ContentHash::new(b""));
    assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte)), "{name}");
    assert!(!name.starts_with('.'), "{name}");
}
