//! What each provider says when it refuses, and what that means to Larder.

use super::*;

fn error(status: u16, body: &str) -> ModelError {
    ProviderFailure::from_body(status, body.as_bytes(), None, None).into_error("p")
}

#[test]
fn every_providers_words_for_a_full_window_are_known() {
    for (status, body) in [
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}"#,
        ),
        (
            400,
            r#"{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
        ),
        (400, r#"{"error":{"message":"the input length exceeds the context length"}}"#),
        (
            400,
            r#"{"error":{"type":"invalid_request_error","message":"Invalid request: Your request exceeded model token limit: 131072"}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
        ),
        (400, r#"{"message":"Input is too long for requested model."}"#),
        (400, r#"{"error":{"message":"Please reduce the length of the messages or completion."}}"#),
        (
            422,
            r#"{"message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}"#,
        ),
        (400, r#"{"error":"Trying to keep the first 5000 tokens when context the overflows."}"#),
    ] {
        assert!(matches!(error(status, body), ModelError::WindowExceeded { .. }), "{body}");
    }
    let other = error(400, r#"{"error":{"message":"messages: at least one message is required"}}"#);
    assert!(matches!(other, ModelError::BadRequest { status: 400, .. }));
}

#[test]
fn statuses_become_classes() {
    assert!(matches!(error(401, "{}"), ModelError::Auth { .. }));
    assert!(matches!(error(403, "{}"), ModelError::Auth { .. }));
    assert!(matches!(error(404, "no such model"), ModelError::BadRequest { status: 404, .. }));
    assert!(matches!(error(413, ""), ModelError::BadRequest { status: 413, .. }));
    assert!(matches!(error(429, ""), ModelError::RateLimited { .. }));
    assert!(matches!(error(408, ""), ModelError::Server { .. }));
    assert!(matches!(error(500, ""), ModelError::Server { status: 500, .. }));
    assert!(matches!(error(529, ""), ModelError::Server { status: 529, .. }));
    let spent =
        error(429, r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#);
    assert!(matches!(spent, ModelError::BadRequest { status: 429, .. }), "waiting does not help");
    assert_eq!(error(500, "").to_string(), "p: failed with status 500: no reason given");
}

#[test]
fn errors_inside_a_stream_have_a_status_of_their_own() {
    let event =
        |text: &str| ProviderFailure::from_event(&serde_json::from_str(text).unwrap(), None).into_error("p");
    let overloaded = event(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
    assert!(matches!(overloaded, ModelError::Server { status: 529, .. }));
    assert!(matches!(
        event(r#"{"error":{"message":"slow down","code":429}}"#),
        ModelError::RateLimited { .. }
    ));
    assert!(matches!(event(r#"{"error":"out of memory"}"#), ModelError::Server { status: 500, .. }));
    let full =
        event(r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens"}}"#);
    assert!(matches!(full, ModelError::WindowExceeded { .. }));
}

#[test]
fn details_hold_no_key_no_control_characters_and_have_an_end() {
    let secret = Secret::new("my-own-key").unwrap();
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-abc***xyz (my-own-key).\u001b[2J\n"}}"#;
    let failure = ProviderFailure::from_body(401, body.as_bytes(), None, Some(&secret));
    assert_eq!(failure.detail, "Incorrect API key provided: *** (***). [2J");
    let long = ProviderFailure::from_body(500, "é".repeat(1 << 20).as_bytes(), None, None);
    assert_eq!(long.detail.chars().count(), MAX_DETAIL_CHARS + 1);
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(ProviderFailure::from_body(500, deep.as_bytes(), None, None).detail.starts_with("[[["));
    assert!(ProviderFailure::from_body(500, b"\xff\0\xfe", None, None).detail.contains('\u{fffd}'));
}
