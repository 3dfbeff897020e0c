//! The embedded model keeps what it has read of a beginning that requests share. Alone in its process: the requests of
//! other tests would stand between these two.
#![allow(clippy::unwrap_used, reason = "a test may stop and say why")]

use std::time::Duration;

use larder_models::chat::{ChatModel, ChatRequest};
use larder_models::weights::CHAT_MODEL;
use larder_text::message::{Message, Role};

#[tokio::test]
async fn a_shared_beginning_is_read_once() {
    let background = "Shelf seven holds blue crates, and shelf eight holds red ones. ".repeat(24);
    let model = larder_testkit::weights::embedded();
    let ask = |question: &str| {
        let message = Message::text(Role::User, format!("{background}\n{question}"));
        ChatRequest::new(CHAT_MODEL, vec![message], 24, Duration::from_secs(300))
    };
    model.chat(&ask("What is the capital of France?")).await.unwrap();
    let related = model.chat(&ask("Which shelf holds the red crates?")).await.unwrap();
    assert!(related.usage.cached_input >= 128, "the shared beginning was read again: {related:?}");
}
