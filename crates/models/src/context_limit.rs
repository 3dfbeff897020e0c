//! What a provider's refusal of a prompt as too long says about the model: the number of tokens that it takes. Knows how
//! servers word it; knows no HTTP.

use serde_json::Value;

/// How refusals begin, and the words directly before the number of tokens that the model takes, in lower case. A message
/// must begin in one of these ways: refusals may quote what the client wrote. Sources: the servers' code, or replies quoted
/// in reports of their users.
const SPELLINGS: [(&str, &str); 22] = [
    // OpenAI, Azure, DeepSeek, Groq, vLLM, LM Studio
    ("this model's maximum context length is", "maximum context length is"),
    // OpenAI, of the prompt alone
    ("input tokens exceed the configured limit of", "configured limit of"),
    // OpenRouter
    ("this endpoint's maximum context length is", "maximum context length is"),
    // xAI
    ("this model's maximum prompt length is", "maximum prompt length is"),
    // Anthropic
    ("prompt is too long:", ">"),
    ("input length and `max_tokens` exceed context limit:", ">"),
    // Google
    ("the input token count", "maximum number of tokens allowed"),
    // Mistral
    ("prompt contains", "too large for model with"),
    // Kimi
    ("your request exceeded model token limit:", "model token limit:"),
    ("invalid request: your request exceeded model token limit:", "model token limit:"),
    // DashScope (Qwen)
    ("range of input length should be [1,", "[1,"),
    ("<400> internalerror.algo.invalidparameter: range of input length should be [1,", "[1,"),
    // llama.cpp
    ("request (", "exceeds the available context size ("),
    // vLLM
    ("'max_tokens' or 'max_completion_tokens' is too large", "maximum context length is"),
    ("the decoder prompt (length", "maximum model length of"),
    ("the prompt (total length", "(context length"),
    // SGLang
    ("the input (", "model's context length ("),
    ("requested token count exceeds the model's maximum context length of", "context length of"),
    // Text Generation Inference
    ("input validation error: `inputs` must have less than", "must have less than"),
    ("input validation error: `inputs` tokens + `max_new_tokens` must be", "<="),
    // Cohere
    ("too many tokens:", "cannot exceed"),
    // DeepInfra
    ("requested input length", "maximum input length"),
];

/// The places of the message in the body of an error: OpenAI, Anthropic and Google; Mistral and older vLLM; Text Generation
/// Inference; FastAPI.
const PLACES: [&str; 4] = ["/error/message", "/message", "/error", "/detail"];

/// The tokens that the model takes, if the body of an error reply refuses a prompt as too long and names them: of prompt and
/// reply together, or of the prompt alone where the provider limits that.
pub fn context_limit(body: &str) -> Option<u64> {
    let body: Value = serde_json::from_str(body).ok()?;
    // Google's streams and batches answer with a list.
    let body = body.get(0).unwrap_or(&body);
    // llama.cpp before it named the number in its message.
    let field = || {
        let error = body.get("error")?;
        let is_ours = error.get("type")?.as_str()? == "exceed_context_size_error";
        error.get("n_ctx")?.as_u64().filter(|_| is_ours)
    };
    PLACES.iter().filter_map(|place| body.pointer(place)?.as_str()).find_map(in_message).or_else(field)
}

fn in_message(message: &str) -> Option<u64> {
    let message = message.trim_start().to_ascii_lowercase();
    // Bedrock passes on what the model's own server says.
    let message = message.strip_prefix("the model returned the following errors: ").unwrap_or(&message);
    let (_, before) = SPELLINGS.iter().find(|(start, _)| message.starts_with(start))?;
    let (_, rest) = message.split_once(before)?;
    let digits = rest.trim_start_matches([' ', '(', ':']);
    let end = digits.find(|char: char| !char.is_ascii_digit() && char != ',').unwrap_or(digits.len());
    digits[..end].replace(',', "").parse().ok().filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_spelling_gives_its_number() {
        for (limit, message) in [
            (
                128_000,
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
            ),
            (
                4_097,
                "This model's maximum context length is 4097 tokens, however you requested 5000 tokens (904 in your prompt; 4096 for the completion).",
            ),
            (
                65_536,
                "This model's maximum context length is 65,536 tokens. However, you requested 70,000 tokens",
            ),
            (
                200_000,
                "This endpoint's maximum context length is 200000 tokens. However, you requested about 210000 tokens (209000 of text input, 1000 in the output).",
            ),
            (
                272_000,
                "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens. Please reduce the length of the messages.",
            ),
            (131_072, "Your request exceeded model token limit: 131072"),
            (262_144, "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)"),
            (98_304, "Range of input length should be [1, 98304]"),
            (
                983_616,
                "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
            ),
            (131_072, "This model's maximum prompt length is 131072 but the request contains 150000 tokens."),
            (200_000, "prompt is too long: 215000 tokens > 200000 maximum"),
            (
                200_000,
                "The model returned the following errors: prompt is too long: 215000 tokens > 200000 maximum",
            ),
            (
                204_698,
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 204698, decrease input length or `max_tokens` and try again",
            ),
            (
                1_048_576,
                "The input token count (1500000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            (1_048_575, "The input token count exceeds the maximum number of tokens allowed 1048575."),
            (
                32_768,
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            ),
            (
                4_096,
                "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            ),
            (
                2_048,
                "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 2048 tokens and your request has 100 input tokens (4096 > 2048 - 100).",
            ),
            (
                4_096,
                "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.",
            ),
            (
                8_192,
                "The prompt (total length 9000) is too long to fit into the model (context length 8192).",
            ),
            (4_096, "The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
            (
                8_192,
                "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens",
            ),
            (4_096, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"),
            (
                4_097,
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 20 `max_new_tokens`",
            ),
            (
                4_081,
                "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try using a shorter prompt",
            ),
            (32_767, "Requested input length 39818 exceeds maximum input length 32767"),
        ] {
            assert_eq!(
                context_limit(&json!({"error": {"message": message, "code": 400}}).to_string()),
                Some(limit),
                "{message}"
            );
            assert_eq!(
                context_limit(&json!({"object": "error", "message": message}).to_string()),
                Some(limit)
            );
            assert_eq!(context_limit(&json!([{"error": {"message": message}}]).to_string()), Some(limit));
        }
        let older = json!({"error": {"code": 400, "type": "exceed_context_size_error", "n_ctx": 4096,
            "message": "the request exceeds the available context size, try increasing it"}});
        assert_eq!(context_limit(&older.to_string()), Some(4_096));
        assert_eq!(
            context_limit(r#"{"error":"Input validation error: `inputs` must have less than 512 tokens."}"#),
            Some(512)
        );
    }

    #[test]
    fn other_errors_say_nothing() {
        for message in [
            "",
            "Invalid value: 'This model's maximum context length is 300 tokens'.",
            "max_tokens is too large: 9000. This model supports at most 4096 completion tokens, whereas you provided 9000.",
            "The maximum tokens you requested exceeds the model limit of 4096.",
            "Input is too long for requested model.",
            "This model's maximum context length is unknown",
            "This model's maximum context length is 0 tokens",
            "This model's maximum context length is 99999999999999999999999 tokens",
            "prompt is too long: 215000 tokens",
            "Input tokens exceed the configured limit. Your messages resulted in 289650 tokens.",
            "Output tokens exceed the configured limit of 4096 tokens.",
            "Invalid request: Your request exceeded model token limit (requested: 269030)",
            "Your request exceeded model request limit: 60",
            "Range of max_tokens should be [1, 8192]",
            "Range of input length should be [0, 1]",
            "Range of input length should be [1, many]",
            "Invalid request: 'Range of input length should be [1, 300]'",
            "Requested input length 39818 exceeds the maximum",
        ] {
            assert_eq!(context_limit(&json!({"error": {"message": message}}).to_string()), None, "{message}");
        }
        for body in ["", "null", "[]", "prompt is too long: 2 tokens > 1 maximum", r#"{"error":{"n_ctx":5}}"#]
        {
            assert_eq!(context_limit(body), None, "{body}");
        }
    }
}
