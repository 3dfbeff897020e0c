//! The embedded model with its real weights, through the public interface only. The weights are fetched once into the
//! user's shared folder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use std::time::Duration;

use futures::StreamExt;
use larder_local::{EMBEDDING_DIMENSIONS, Embedded, MiniLm, WINDOW};
use larder_models::chat::{
    ChatEvent, ChatModel, ChatReply, ChatRequest, EmbeddingModel, ModelError, StopReason,
};
use larder_models::weights::{CHAT_MODEL, CHAT_TOKENIZER, CHAT_WEIGHTS, EMBEDDING_MODEL};
use larder_testkit::weights::folder;
use larder_text::message::{Content, Message, Role, ToolDef};
use larder_text::tokens::Counter;
use serde_json::{Value, json};

/// Requests of all tests stand in one queue, and waiting there counts.
const PATIENCE: Duration = Duration::from_secs(900);

/// One model for all tests of this file.
fn model() -> Embedded {
    larder_testkit::weights::embedded()
}

fn ask(text: &str, max_output: u32) -> ChatRequest {
    let system = Message::text(Role::System, "You answer questions about a warehouse in plain English.");
    ChatRequest::new(CHAT_MODEL, vec![system, Message::text(Role::User, text)], max_output, PATIENCE)
}

async fn reply(request: &ChatRequest) -> ChatReply {
    model().chat(request).await.unwrap()
}

#[tokio::test]
async fn the_same_request_gives_the_same_reply_at_any_time() {
    let background = "Shelf seven holds blue crates, and shelf eight holds red ones. ".repeat(24);
    let request = ask(&format!("{background}\nWhat is the capital of France?"), 40);
    let first = reply(&request).await;
    assert!(first.text.contains("Paris"), "{first:?}");
    assert_eq!(first.stop, StopReason::Stop);
    assert!(first.usage.output > 0 && first.usage.output <= 40);
    reply(&ask(&format!("{background}\nWhich shelf holds the red crates?"), 24)).await;
    reply(&ask("Something else entirely.", 8)).await;
    let again = reply(&request).await;
    assert_eq!(again.text, first.text);
    assert_eq!(again.usage.output, first.usage.output);
    assert_eq!(again.usage.input, first.usage.input);
}

#[tokio::test]
async fn temperature_draws_the_same_for_the_same_request() {
    let mut request = ask("Invent a name for a cat.", 16);
    request.temperature = Some(1.2);
    let first = reply(&request).await;
    assert_eq!(reply(&request).await.text, first.text);
    request.temperature = Some(1.3);
    assert_ne!(reply(&request).await.text, first.text);
}

#[tokio::test]
async fn a_stream_gives_the_text_in_pieces_and_the_whole_reply_last() {
    let request = ask("Write one sentence with an emoji and the word naïve.", 32);
    let events: Vec<_> = model().stream(&request).collect().await;
    let (last, pieces) = events.split_last().unwrap();
    let text: String = pieces
        .iter()
        .map(|event| match event {
            Ok(ChatEvent::Text(text)) => text.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    let Ok(ChatEvent::Done(whole)) = last else { panic!("{last:?}") };
    assert!(pieces.len() > 1);
    assert_eq!(text, whole.text);
    assert_eq!(*whole, reply(&request).await.clone_with_cache(whole));
}

/// Replies are compared apart from what was in the cache.
trait CloneWithCache {
    fn clone_with_cache(self, other: &ChatReply) -> ChatReply;
}

impl CloneWithCache for ChatReply {
    fn clone_with_cache(mut self, other: &ChatReply) -> ChatReply {
        self.usage.cached_input = other.usage.cached_input;
        self
    }
}

#[tokio::test]
async fn the_reply_ends_at_max_output_and_says_so() {
    let cut = reply(&ask("Tell a long story about a ship.", 12)).await;
    assert_eq!((cut.stop, cut.usage.output), (StopReason::Length, 12));
}

#[tokio::test]
async fn a_prompt_beyond_the_window_is_refused() {
    let error = model().chat(&ask(&"word ".repeat(WINDOW), 8)).await.unwrap_err();
    assert!(matches!(error, ModelError::WindowExceeded { .. }), "{error}");
}

#[tokio::test]
async fn an_unawaited_reply_is_abandoned() {
    let model = model();
    let long = ask("Count from one to five thousand in words.", 3_000);
    let mut stream = model.stream(&long);
    assert!(matches!(stream.next().await, Some(Ok(ChatEvent::Text(_)))));
    drop(stream);
    // Were it not abandoned, this would wait for three thousand tokens.
    let next = tokio::time::timeout(Duration::from_secs(60), reply(&ask("Say yes.", 4))).await;
    assert!(next.is_ok());
}

#[tokio::test]
async fn the_counter_charges_no_less_than_the_model_reads() {
    let file = std::fs::File::open(folder(CHAT_MODEL).join(CHAT_WEIGHTS)).unwrap();
    let counter = Counter::from_gguf(std::io::BufReader::new(file), CHAT_TOKENIZER).unwrap();
    let tool = ToolDef {
        name: "find".into(),
        description: "Finds things.".into(),
        parameters: json!({"type": "object"}),
    };
    for (text, tools) in
        [("Grüße 1234 <|im_end|>\n\n 日本語", vec![]), ("x", vec![tool.clone(), tool]), ("", vec![])]
    {
        let mut request = ask(text, 2);
        request.tools = tools;
        if !request.tools.is_empty() {
            request.messages.push(Message::text(Role::Tool, "found"));
        }
        let charged = counter.count_messages(&request.messages, &request.tools, None) as u64;
        let read = reply(&request).await.usage.input;
        assert!(read <= charged && charged <= read + 160, "{read} of {charged}");
    }
}

/// The first numbers of each vector, as numpy computes them from the same files.
const REFERENCE_VECTORS: [[f32; 4]; 4] = [
    [0.126535, -0.032851, -0.02906, 0.044407],
    [0.075357, 0.01511, 0.012094, 0.06079],
    [0.041153, -0.068911, 0.000579, 0.036241],
    [-0.118838, 0.048299, -0.002548, -0.011011],
];

#[tokio::test]
async fn texts_that_mean_the_same_lie_near_each_other() {
    let model = MiniLm::open(&folder(EMBEDDING_MODEL)).unwrap();
    let texts = ["A cat sits on the mat.", "A kitten is resting on a rug.", "Interest rates rose again.", ""]
        .map(str::to_owned);
    let vectors = model.embed(&texts).await.unwrap().vectors;
    let near = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b).sum::<f32>();
    assert_eq!(vectors.len(), 4);
    assert!(vectors.iter().all(|vector| vector.len() == model.dimensions()));
    assert!((near(0, 0) - 1.0).abs() < 1e-4);
    assert!(near(0, 1) > 0.5 && near(0, 2) < 0.2, "{} {}", near(0, 1), near(0, 2));
    for (vector, expected) in vectors.iter().zip(REFERENCE_VECTORS) {
        for (value, expected) in vector.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-4, "{value} against {expected}");
        }
    }
    let alone = model.embed(&texts[1..2]).await.unwrap().vectors;
    assert_eq!(alone[0], vectors[1]);
    let long = model.embed(&["word ".repeat(100_000)]).await.unwrap();
    assert_eq!(long.vectors[0].len(), EMBEDDING_DIMENSIONS);
}

#[tokio::test]
async fn time_runs_out() {
    let mut request = ask("Tell a long story about a ship.", 400);
    request.timeout = Duration::from_millis(1);
    let error = model().chat(&request).await.unwrap_err();
    assert!(matches!(error, ModelError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn pictures_are_refused() {
    let mut request = ask("What is on this picture?", 8);
    request.messages[1].content.push(Content::Image { media_type: "image/png".into(), data: String::new() });
    let error = model().chat(&request).await.unwrap_err();
    assert!(matches!(error, ModelError::BadRequest { .. }), "{error}");
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

/// Schemas of many kinds, each with a prompt.
fn schemas() -> Vec<(&'static str, Value)> {
    let verdict = json!({"enum": ["approve", "reject", "revise"]});
    vec![
        (
            "Judge the plan.",
            object(json!({"reason": {"type": "string"}, "verdict": verdict}), &["reason", "verdict"]),
        ),
        ("Rate it.", object(json!({"score": {"type": "number", "minimum": 0, "maximum": 1}}), &["score"])),
        ("How many?", object(json!({"count": {"type": "integer"}}), &["count"])),
        (
            "How many, at most ten?",
            object(json!({"count": {"type": "integer", "minimum": 1, "maximum": 10}}), &["count"]),
        ),
        (
            "List fruits.",
            object(json!({"fruits": {"type": "array", "items": {"type": "string"}}}), &["fruits"]),
        ),
        ("List three.", json!({"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 3})),
        ("Pick a colour.", json!({"enum": ["red", "green", "blue"]})),
        ("True?", json!({"type": "boolean"})),
        ("Say anything.", json!({"type": "string", "minLength": 5, "maxLength": 30})),
        ("When?", object(json!({"date": {"type": "string", "format": "date"}}), &["date"])),
        ("Which part?", object(json!({"id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}}), &["id"])),
        ("Maybe a name.", object(json!({"name": {"type": ["string", "null"]}}), &["name"])),
        ("One or other.", object(json!({"x": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}), &["x"])),
        (
            "A nested thing.",
            object(
                json!({"a": object(json!({"b": object(json!({"c": {"type": "string"}}), &["c"])}), &["b"])}),
                &["a"],
            ),
        ),
        (
            "People.",
            object(
                json!({"people": {"type": "array", "minItems": 1, "items":
                    object(json!({"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}), &["name", "age"])}}),
                &["people"],
            ),
        ),
        (
            "A tree.",
            json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
                "label": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
                "required": ["label", "children"], "additionalProperties": false}}}),
        ),
        (
            "Both halves.",
            json!({"allOf": [object(json!({"a": {"type": "string"}}), &["a"]), object(json!({"b": {"type": "null"}}), &["b"])]}),
        ),
        ("Anything at all.", object(json!({"free": {}}), &["free"])),
        ("A map of words.", json!({"type": "object", "additionalProperties": {"type": "integer"}})),
        (
            "A pair.",
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "items": false}),
        ),
        ("Fixed.", object(json!({"version": {"const": 3}, "note": {"type": "string"}}), &["version"])),
        (
            "Even.",
            object(
                json!({"even": {"type": "integer", "multipleOf": 2, "minimum": 0, "maximum": 1000}}),
                &["even"],
            ),
        ),
        (
            "Überschrift 日本語?",
            object(json!({"título": {"type": "string"}, "日本": {"type": "boolean"}}), &["título", "日本"]),
        ),
        (
            "A long required list.",
            object(
                json!({"rows": {"type": "array", "minItems": 4, "items": {"type": "integer", "maximum": 9, "minimum": 0}}}),
                &["rows"],
            ),
        ),
    ]
}

#[tokio::test]
async fn replies_under_a_schema_satisfy_it_within_the_budget() {
    for (index, (prompt, schema)) in schemas().into_iter().enumerate() {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut request = ask(prompt, if index % 2 == 0 { 48 } else { 28 });
        request.temperature = (index % 3 == 0).then_some(1.0);
        request.schema = Some(schema.clone());
        let reply = reply(&request).await;
        let value: Value =
            serde_json::from_str(&reply.text).unwrap_or_else(|error| panic!("{error}: {reply:?}"));
        assert!(validator.is_valid(&value), "{schema} is not satisfied by {value}");
        assert!(reply.usage.output <= u64::from(request.max_output), "{reply:?}");
        assert!(matches!(reply.stop, StopReason::Stop | StopReason::Closed), "{reply:?}");
    }
}

/// Tags are held by a grammar, and whatever the budget, the reply ends with all that must be there, and says where it was
/// closed for lack of room.
#[tokio::test]
async fn a_tagged_reply_has_its_tags_and_fields_within_the_budget() {
    let grammar = r#"start: notes draft? REPLY
REPLY: /[^ \n<]([^<]|<[ =0-9])*/
notes: "<notes>\n" "Mode: " MODE "\n" "Level: " LEVEL "\n" "Plan: " LINE "\n" "</notes>\n\n"
draft: "<draft>\n" TEXT "\n" "</draft>\n\n"
MODE: "ASK" | "TELL"
LEVEL: "1" | "2" | "3"
LINE: /[^ \n<][^\n<]{0,299}/
TEXT: /[^ \n<][^<]{0,999}/
"#;
    for (budget, stop) in [(40, StopReason::Closed), (160, StopReason::Stop)] {
        let mut request = ask("My brother never calls. Answer me kindly.", budget);
        request.grammar = Some(grammar.to_owned());
        let reply = reply(&request).await;
        assert_eq!(reply.stop, stop, "{}", reply.text);
        let (notes, rest) = reply.text.strip_prefix("<notes>\n").unwrap().split_once("</notes>\n\n").unwrap();
        let fields: Vec<(&str, &str)> = notes.lines().map(|line| line.split_once(": ").unwrap()).collect();
        let [("Mode", "ASK" | "TELL"), ("Level", "1" | "2" | "3"), ("Plan", plan)] = fields[..] else {
            panic!("{fields:?}")
        };
        let said = rest.rsplit("</draft>\n\n").next().unwrap();
        assert!(!plan.is_empty() && !said.is_empty(), "{}", reply.text);
        assert!(!said.contains("</") && reply.usage.output <= u64::from(budget), "{reply:?}");
    }
}

#[tokio::test]
async fn a_stream_under_a_schema_never_takes_back_what_it_said() {
    let mut request = ask("List many animals.", 24);
    request.schema = Some(object(
        json!({"animals": {"type": "array", "items": {"type": "string"}, "minItems": 2}}),
        &["animals"],
    ));
    let mut said = String::new();
    let mut events = Box::pin(model().stream(&request).collect::<Vec<_>>()).await;
    let Some(Ok(ChatEvent::Done(whole))) = events.pop() else { panic!("{events:?}") };
    for event in events {
        let Ok(ChatEvent::Text(text)) = event else { panic!("{event:?}") };
        said.push_str(&text);
    }
    assert_eq!(said, whole.text);
}

#[tokio::test]
async fn a_schema_that_cannot_be_enforced_is_refused_by_keyword() {
    let unique = json!({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": true});
    let cases = [
        (unique, 64, "uniqueItems"),
        (json!({"not": {"type": "string"}}), 64, "not"),
        (json!({"$ref": "#/$defs/missing"}), 64, "missing"),
        (object(json!({"long": {"type": "string", "minLength": 900}}), &["long"]), 8, "8 tokens"),
        (json!(7), 64, "object or a boolean"),
    ];
    for (schema, max_output, expected) in cases {
        let mut request = ask("Answer.", max_output);
        request.schema = Some(schema);
        let error = model().chat(&request).await.unwrap_err();
        assert!(matches!(error, ModelError::BadRequest { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn tools_are_called_with_valid_arguments_and_their_results_are_answered_in_text() {
    let mut request = ask("What is the weather in Paris?", 64);
    let parameters =
        object(json!({"city": {"type": "string"}, "days": {"type": "integer", "maximum": 9}}), &["city"]);
    request.tools = vec![
        ToolDef {
            name: "weather".into(),
            description: "The weather in a city.".into(),
            parameters: parameters.clone(),
        },
        ToolDef {
            name: "time".into(),
            description: "The time.".into(),
            parameters: json!({"type": "object"}),
        },
    ];
    let asked = reply(&request).await;
    assert_eq!(asked.stop, StopReason::ToolCalls);
    let [call] = asked.tool_calls.as_slice() else { panic!("{asked:?}") };
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
    let tool = request.tools.iter().find(|tool| tool.name == call.name).unwrap();
    assert!(jsonschema::is_valid(&tool.parameters, &arguments), "{call:?}");
    assert!(asked.text.is_empty());

    let mut said = Message::text(Role::Assistant, "");
    said.tool_calls = asked.tool_calls.clone();
    let mut result = Message::text(Role::Tool, "Sunny, 21 °C.");
    result.tool_call_id = Some(call.id.clone());
    request.messages.extend([said, result]);
    request.max_output = 24;
    let answered = reply(&request).await;
    assert!(answered.tool_calls.is_empty() && !answered.text.is_empty(), "{answered:?}");
}

#[test]
fn missing_weights_say_how_to_get_them() {
    let error = Embedded::open(std::path::Path::new("/nonexistent")).unwrap_err();
    assert!(matches!(error, ModelError::NotConfigured { .. }));
    assert!(error.to_string().contains("larder models pull smollm2-135m"), "{error}");
}
