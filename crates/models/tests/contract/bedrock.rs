//! How Amazon Bedrock's Converse API says things, and what only it says.

use larder_models::chat::{ChatReply, ChatRequest, ModelError, StopReason, Usage};
use larder_testkit::stub::{Answer, Seen};
use larder_text::frames;
use serde_json::{Value, json};

use crate::support::{Class, KEY, Wire, events, only_request, read, reply, request, stubbed, stubbed_with};

pub struct Bedrock;

impl Wire for Bedrock {
    fn provider(&self) -> &'static str {
        "bedrock"
    }

    fn whole(&self, reply: &ChatReply) -> Value {
        let thought = json!({"reasoningText": {"text": "hidden", "signature": "s"}});
        let mut content = vec![json!({"reasoningContent": thought}), json!({"text": reply.text})];
        content.extend(reply.tool_calls.iter().map(|call| {
            let input: Value = serde_json::from_str(&call.arguments).expect("sample arguments are JSON");
            json!({"toolUse": {"toolUseId": call.id, "name": call.name, "input": input}})
        }));
        json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": stop_reason(reply.stop),
            "usage": usage(&reply.usage), "metrics": {"latencyMs": 7}})
    }

    fn streamed(&self, reply: &ChatReply) -> Vec<u8> {
        let mut body = self.unfinished(&reply.text);
        body.extend(event("contentBlockStop", json!({"contentBlockIndex": 1})));
        for (index, call) in reply.tool_calls.iter().enumerate() {
            let index = index + 2;
            let start = json!({"toolUse": {"toolUseId": call.id, "name": call.name}});
            body.extend(event("contentBlockStart", json!({"contentBlockIndex": index, "start": start})));
            for piece in call.arguments.chars().collect::<Vec<_>>().chunks(3) {
                let delta = json!({"toolUse": {"input": piece.iter().collect::<String>()}});
                body.extend(event("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta})));
            }
            body.extend(event("contentBlockStop", json!({"contentBlockIndex": index})));
        }
        body.extend(event("messageStop", json!({"stopReason": stop_reason(reply.stop)})));
        let metadata = json!({"usage": usage(&reply.usage), "metrics": {"latencyMs": 7}, "p": "abc"});
        [body, event("metadata", metadata)].concat()
    }

    /// A thinking block, which must not show, and the text so far.
    fn unfinished(&self, text: &str) -> Vec<u8> {
        let mut body = event("messageStart", json!({"role": "assistant"}));
        for delta in [json!({"text": "hidden"}), json!({"signature": "s"})] {
            let delta = json!({"contentBlockIndex": 0, "delta": {"reasoningContent": delta}});
            body.extend(event("contentBlockDelta", delta));
        }
        body.extend(event("contentBlockStop", json!({"contentBlockIndex": 0})));
        for piece in text.chars().collect::<Vec<_>>().chunks(4) {
            let delta = json!({"text": piece.iter().collect::<String>()});
            body.extend(event("contentBlockDelta", json!({"contentBlockIndex": 1, "delta": delta})));
            body.extend(event("aKindOfTomorrow", json!({})));
        }
        body
    }

    fn spellings(&self, body: &[u8]) -> Vec<Vec<u8>> {
        // What follows the last event does not matter.
        vec![[body, &event("aKindOfTomorrow", json!({}))].concat()]
    }

    fn error(&self, kind: &str, message: &str) -> Value {
        json!({"__type": kind, "message": message})
    }

    fn late_errors(&self) -> Vec<(Vec<u8>, Class)> {
        let failure = |kind: &str, message: &str| {
            frames::exception(kind, json!({"message": message}).to_string().as_bytes())
        };
        let error =
            [(":message-type", "error"), (":error-code", "InternalFailure"), (":error-message", "oops")];
        vec![
            (failure("throttlingException", "slow down"), |e| matches!(e, ModelError::RateLimited { .. })),
            (failure("modelStreamErrorException", "m"), |e| {
                matches!(e, ModelError::Server { status: 424, .. })
            }),
            (failure("internalServerException", "m"), |e| {
                matches!(e, ModelError::Server { status: 500, .. })
            }),
            (failure("serviceUnavailableException", "m"), |e| {
                matches!(e, ModelError::Server { status: 503, .. })
            }),
            (failure("validationException", "m"), |e| {
                matches!(e, ModelError::BadRequest { status: 400, .. })
            }),
            (failure("validationException", "Input is too long for requested model."), |e| {
                matches!(e, ModelError::WindowExceeded { .. })
            }),
            (frames::frame(&error, b""), |e| matches!(e, ModelError::Server { status: 500, .. })),
        ]
    }

    fn window_errors(&self) -> Vec<Answer> {
        let messages = [
            "Input is too long for requested model.",
            "The model returned the following errors: prompt is too long: 1100 tokens > 1000 maximum",
        ];
        messages.map(|message| Answer::json(400, &json!({"message": message}))).into()
    }

    fn schema(&self, request: &Value) -> Option<Value> {
        let schema = request.pointer("/outputConfig/textFormat/structure/jsonSchema/schema")?;
        serde_json::from_str(schema.as_str()?).ok()
    }

    fn wants_stream(&self, request: &Seen) -> bool {
        request.line.ends_with("/converse-stream")
    }

    fn settings(&self, request: &Seen) -> [Value; 3] {
        let model = request.line.split('/').nth(2).unwrap_or_default();
        let config = &request.json()["inferenceConfig"];
        [json!(model), config["maxTokens"].clone(), config["temperature"].clone()]
    }

    fn tools(&self, request: &Value) -> usize {
        request["toolConfig"]["tools"].as_array().map_or(0, Vec::len)
    }

    /// Reasoning is not counted apart.
    fn told(&self, usage: Usage) -> Usage {
        Usage { reasoning: 0, ..usage }
    }

    fn key_header(&self) -> (&'static str, String) {
        ("authorization", format!("Bearer {KEY}"))
    }

    fn texts(&self, request: &Value) -> Vec<String> {
        let texts = |blocks: &Value| {
            let blocks = blocks.as_array().cloned().unwrap_or_default();
            let text = |block: Value| block["text"].as_str().map(str::to_owned);
            blocks.into_iter().filter_map(text).collect::<Vec<_>>()
        };
        let messages = request["messages"].as_array().expect("messages");
        let said = messages.iter().flat_map(|message| texts(&message["content"]));
        texts(&request["system"]).into_iter().chain(said).collect()
    }
}

fn event(kind: &str, payload: Value) -> Vec<u8> {
    frames::event(kind, payload.to_string().as_bytes())
}

fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Stop => "end_turn",
        StopReason::Length | StopReason::Closed => "max_tokens",
        StopReason::ToolCalls => "tool_use",
        StopReason::Refusal => "guardrail_intervened",
    }
}

/// The API counts cached tokens apart from the rest.
fn usage(usage: &Usage) -> Value {
    let uncached = usage.input - usage.cached_input - usage.cache_write;
    json!({"inputTokens": uncached, "cacheReadInputTokens": usage.cached_input,
        "cacheWriteInputTokens": usage.cache_write, "outputTokens": usage.output,
        "totalTokens": usage.input + usage.output})
}

/// A reply that ended for this reason, whole and streamed.
async fn ending(reason: &str) -> [Result<ChatReply, ModelError>; 2] {
    let mut whole = Bedrock.whole(&reply("So far"));
    whole["stopReason"] = json!(reason);
    let stream = [Bedrock.unfinished("So far"), event("messageStop", json!({"stopReason": reason}))].concat();
    let stub = stubbed(&Bedrock, [Answer::json(200, &whole), Answer::events(stream)]).await;
    let said = stub.model.chat(&request()).await;
    [said, events(&*stub.model, &request()).await.map(|events| read(&events))]
}

#[tokio::test]
async fn every_stop_reason_has_its_meaning() {
    for (reason, stop) in [
        ("end_turn", StopReason::Stop),
        ("stop_sequence", StopReason::Stop),
        ("a_reason_of_tomorrow", StopReason::Stop),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("guardrail_intervened", StopReason::Refusal),
        ("content_filtered", StopReason::Refusal),
    ] {
        for said in ending(reason).await {
            let said = said.expect("a reply");
            assert_eq!((said.stop, said.text.as_str()), (stop, "So far"), "{reason}");
        }
    }
    for reason in ["malformed_model_output", "malformed_tool_use"] {
        for said in ending(reason).await {
            assert!(matches!(said, Err(ModelError::Protocol { .. })), "{reason}: {said:?}");
        }
    }
}

#[tokio::test]
async fn a_failing_model_is_a_failing_server() {
    let answer = Answer::json(424, &json!({"message": "The model failed", "originalStatusCode": 500}));
    let stub = stubbed(&Bedrock, [answer]).await;
    let error = stub.model.chat(&request()).await.unwrap_err();
    assert!(matches!(error, ModelError::Server { status: 424, .. }), "{error:?}");
}

#[tokio::test]
async fn inference_profiles_are_named_by_id_or_arn() {
    let arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2";
    for (id, path) in [
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", "us.anthropic.claude-3-5-haiku-20241022-v1%3A0"),
        (arn, "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fa1b2"),
    ] {
        let stub = stubbed(&Bedrock, [Answer::json(200, &Bedrock.whole(&reply("x")))]).await;
        stub.model.chat(&ChatRequest { model: id.to_owned(), ..request() }).await.expect("a reply");
        assert_eq!(only_request(&stub.server).line, format!("POST /model/{path}/converse"));
    }
}

#[tokio::test]
async fn a_thinking_budget_is_sent_only_to_models_that_take_one() {
    let asked = ChatRequest { max_output: 4_000, thinking_budget: Some(2_000), ..request() };
    for (capabilities, expected) in [
        (r#"["thinking"]"#, json!({"thinking": {"type": "enabled", "budget_tokens": 2000}})),
        ("[]", Value::Null),
    ] {
        let stub =
            stubbed_with(&Bedrock, capabilities, [Answer::json(200, &Bedrock.whole(&reply("x")))]).await;
        stub.model.chat(&asked).await.expect("a reply");
        assert_eq!(only_request(&stub.server).json()["additionalModelRequestFields"], expected);
    }
}

#[tokio::test]
async fn tokens_written_for_an_hour_are_counted_apart() {
    let mut whole = Bedrock.whole(&reply("x"));
    whole["usage"] = json!({"inputTokens": 10, "outputTokens": 2, "cacheWriteInputTokens": 30,
        "cacheDetails": [{"ttl": "5m", "inputTokens": 20}, {"ttl": "1h", "inputTokens": 10}]});
    whole["serviceTier"] = json!({"type": "flex"});
    let stub = stubbed(&Bedrock, [Answer::json(200, &whole)]).await;
    let usage = stub.model.chat(&request()).await.expect("a reply").usage;
    assert_eq!((usage.input, usage.cache_write, usage.cache_write_1h), (40, 30, 10));
    assert_eq!(usage.service.as_str(), "flex");
}
