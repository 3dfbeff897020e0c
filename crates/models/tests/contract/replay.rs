//! The contract of recorded replies: what a provider said is said again, byte for byte, whole and streamed.

use std::sync::Arc;

use larder_models::chat::{ChatModel, ChatReply, ModelError, StopReason, Usage};
use larder_models::connect::Models;
use larder_models::replay::{ReplayRecorder, recording_path};
use larder_models::secret::Secret;
use larder_models::table::ModelTable;
use larder_testkit::scripted::{Act, ScriptedModel};
use larder_testkit::stub::Answer;

use crate::openai::OpenAiModel;
use crate::support::{KEY, Wire, events, read, reply, request, stubbed, two_calls, with_tools};

/// The recordings in a folder.
pub fn replayed(folder: &std::path::Path) -> Arc<dyn ChatModel> {
    let toml = "[models.m]\nprovider = \"replay\"\nfolder = \"replies\"\nid = \"model-1\"\nwindow = 1000\nmax_output = 100\n";
    let table = ModelTable::parse(toml).unwrap_or_else(|problems| panic!("{problems}"));
    Models::new(table, folder, &|_| None).chat("m").expect("a folder needs no key")
}

#[tokio::test]
async fn every_kind_of_reply_comes_back_as_it_was() {
    let usage = Usage {
        input: 1_000,
        cached_input: 600,
        cache_write: 100,
        output: 50,
        reasoning: 20,
        ..Usage::default()
    };
    let replies = [
        reply("Grüße\r\n\0 \u{1f980}"),
        two_calls(),
        ChatReply { usage, stop: StopReason::Length, ..reply("") },
        ChatReply { stop: StopReason::Refusal, ..reply("I cannot.") },
    ];
    for said in replies {
        let folder = tempfile::tempdir().expect("a folder");
        let model = ScriptedModel::new([Act::Say(Ok(said.clone()))]);
        let recorder = ReplayRecorder::new(Arc::new(model), folder.path().join("replies"), Vec::new());
        recorder.chat(&with_tools()).await.expect("a reply");
        let replay = replayed(folder.path());
        assert_eq!(replay.chat(&with_tools()).await, Ok(said.clone()));
        assert_eq!(read(&events(&*replay, &with_tools()).await.expect("a stream")), said);
        assert!(
            matches!(replay.chat(&request()).await, Err(ModelError::NotConfigured { .. })),
            "other tools"
        );
    }
}

#[tokio::test]
async fn a_real_provider_is_recorded_without_its_key() {
    let said = reply(&format!("your key is {KEY}"));
    let stub = stubbed(&OpenAiModel, [Answer::events(OpenAiModel.streamed(&said))]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let secrets = vec![Secret::new(KEY).expect("a key")];
    let recorder = ReplayRecorder::new(Arc::clone(&stub.model), folder.path().join("replies"), secrets);
    events(&recorder, &request()).await.expect("a stream");
    let file = recording_path(&folder.path().join("replies"), &request());
    assert!(!std::fs::read_to_string(file).expect("a recording").contains(KEY));
    let again = replayed(folder.path()).chat(&request()).await.expect("a reply");
    assert_eq!(again, reply("your key is ***"));
}

#[tokio::test]
async fn errors_are_not_recorded() {
    let error = ModelError::Protocol { provider: "m".to_owned(), detail: "broke off".to_owned() };
    let model = ScriptedModel::new([
        Act::Break(vec!["Half a".to_owned()], error.clone()),
        Act::Say(Err(error.clone())),
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    let recorder = ReplayRecorder::new(Arc::new(model), folder.path(), Vec::new());
    assert_eq!(events(&recorder, &request()).await, Err(error.clone()));
    assert_eq!(recorder.chat(&request()).await, Err(error));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
