//! Models that make vectors, over the wire: what is sent, what is read, and what goes wrong.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at what it does not expect"
)]

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use larder_models::chat::{EmbeddingModel, ModelError};
use larder_models::connect::Models;
use larder_models::table::ModelTable;
use larder_testkit::stub::{Answer, End, StubServer};
use serde_json::{Value, json};

const KEY: &str = "k3y-of-the-tests";
/// Texts that one request holds at most.
const BATCH: usize = 256;

async fn model(
    provider: &str,
    answers: impl IntoIterator<Item = Answer>,
) -> (Arc<dyn EmbeddingModel>, StubServer) {
    let server = StubServer::start(answers).await;
    let toml = format!(
        "[models.m]\nprovider = \"{provider}\"\nbase_url = \"{}\"\nid = \"amazon.titan/v2:0\"\nwindow = 8192\n\
         dimensions = 2\napi_key_env = \"TEST_KEY\"\nretries = 0\ntimeout_ms = 500\ncapabilities = [\"embedding\"]\n",
        server.address()
    );
    let table = ModelTable::parse(&toml).unwrap_or_else(|problems| panic!("{problems}"));
    let models = Models::new(table, ".", &|name| (name == "TEST_KEY").then(|| KEY.to_owned()));
    (models.embedding("m").expect("the model connects"), server)
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("Grüße {at}\r\n")).collect()
}

/// The vector that these tests give to the text of that number.
fn vector(at: usize) -> Vec<f32> {
    vec![at as f32, -0.5]
}

fn base64_of(vector: &[f32]) -> String {
    STANDARD.encode(vector.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>())
}

/// An answer of `/embeddings` with the vectors of some texts.
fn openai(numbers: impl IntoIterator<Item = usize>) -> Answer {
    let item =
        |(index, at)| json!({"object": "embedding", "index": index, "embedding": base64_of(&vector(at))});
    let data: Vec<Value> = numbers.into_iter().enumerate().map(item).collect();
    let tokens = data.len() * 3;
    Answer::json(
        200,
        &json!({"object": "list", "data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}),
    )
}

fn titan(at: usize) -> Answer {
    Answer::json(200, &json!({"embedding": vector(at), "inputTextTokenCount": 3}))
}

#[tokio::test]
async fn openai_is_asked_for_all_texts_of_a_batch_at_once() {
    let (model, server) = model("openai", [openai(0..BATCH), openai(BATCH..BATCH + 4)]).await;
    let texts = texts(BATCH + 4);
    let all = model.embed(&texts).await.expect("vectors");
    assert_eq!(model.dimensions(), 2);
    assert_eq!(all.vectors, (0..BATCH + 4).map(vector).collect::<Vec<_>>());
    assert_eq!(all.usage.input, (BATCH as u64 + 4) * 3);
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].line, "POST /embeddings");
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let sent = seen[1].json();
    let expected =
        json!({"model": "amazon.titan/v2:0", "input": texts[BATCH..], "encoding_format": "base64"});
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn openai_vectors_find_their_texts_in_any_order_and_either_encoding() {
    let body = json!({"data": [{"index": 1, "embedding": [1, -0.5]}, {"index": 0, "embedding": base64_of(&vector(0))}]});
    let (model, _server) = model("openai", [Answer::json(200, &body)]).await;
    let all = model.embed(&texts(2)).await.expect("vectors");
    assert_eq!(all.vectors, [vector(0), vector(1)]);
}

#[tokio::test]
async fn openai_answers_that_hold_no_vector_for_each_text_are_broken() {
    let item = |index: u64, vector: Value| json!({"index": index, "embedding": vector});
    let bodies = [
        json!({"data": [item(0, json!([1, 2]))]}),
        json!({"data": [item(0, json!([1, 2])), item(2, json!([1, 2]))]}),
        json!({"data": [item(0, json!([1, 2])), item(1, json!([1, 2, 3]))]}),
        json!({"data": [item(0, json!([1, 2])), item(1, json!("AAAA"))]}),
        json!({"data": "none"}),
        json!({}),
    ];
    for body in bodies {
        let (model, _server) = model("openai", [Answer::json(200, &body)]).await;
        let error = model.embed(&texts(2)).await.unwrap_err();
        assert!(matches!(error, ModelError::Protocol { .. }), "{body}: {error:?}");
    }
}

#[tokio::test]
async fn titan_is_asked_for_one_text_at_a_time() {
    let (model, server) = model("bedrock", (0..3).map(titan)).await;
    let texts = texts(3);
    let all = model.embed(&texts).await.expect("vectors");
    assert_eq!((all.vectors, all.usage.input), ((0..3).map(vector).collect(), 9));
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0].line, "POST /model/amazon.titan%2Fv2%3A0/invoke");
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen[2].json(), json!({"inputText": texts[2], "dimensions": 2, "normalize": true}));
}

#[tokio::test]
async fn titan_answers_that_hold_no_vector_are_broken() {
    for body in
        [json!({"embedding": [1]}), json!({"embedding": [1, null]}), json!({"message": "?"}), json!([])]
    {
        let (model, _server) = model("bedrock", [Answer::json(200, &body)]).await;
        let error = model.embed(&texts(1)).await.unwrap_err();
        assert!(matches!(error, ModelError::Protocol { .. }), "{body}: {error:?}");
    }
}

#[tokio::test]
async fn no_texts_need_no_request() {
    for provider in ["openai", "bedrock"] {
        let (model, server) = model(provider, []).await;
        assert_eq!(model.embed(&[]).await.expect("nothing").vectors, [[0_f32; 0]; 0]);
        assert!(server.seen().is_empty());
    }
}

#[tokio::test]
async fn errors_have_the_classes_of_chat() {
    type Class = fn(&ModelError) -> bool;
    let message = json!({"error": {"message": format!("no, {KEY}")}, "message": format!("no, {KEY}")});
    let cases: [(Answer, Class); 6] = [
        (Answer::json(400, &message), |e| matches!(e, ModelError::BadRequest { status: 400, .. })),
        (Answer::json(401, &message), |e| matches!(e, ModelError::Auth { .. })),
        (Answer::json(429, &message), |e| matches!(e, ModelError::RateLimited { .. })),
        (Answer::json(500, &message), |e| matches!(e, ModelError::Server { status: 500, .. })),
        (Answer::new(200, "application/json", "{\"data\": ["), |e| matches!(e, ModelError::Protocol { .. })),
        (Answer::json(200, &json!({})).ending(End::Hang), |e| matches!(e, ModelError::Timeout { .. })),
    ];
    for provider in ["openai", "bedrock"] {
        for (answer, is_right) in cases.clone() {
            let (model, _server) = model(provider, [answer]).await;
            let error = model.embed(&texts(1)).await.unwrap_err();
            assert!(is_right(&error), "{provider}: {error:?}");
            assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
        }
    }
}
