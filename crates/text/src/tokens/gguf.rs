//! The vocabulary inside a GGUF model file as a tokenizer. Knows what the metadata mean, not how they are encoded.

use std::io::Read;

use serde_json::{Map, Value, json};

use super::hub::{self, Hub};
use crate::gguf;

/// GGUF's type numbers for tokens that are not text.
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// Builds the tokenizer contained in a GGUF file.
pub(super) fn read(file: impl Read) -> Result<Hub, String> {
    let metadata =
        gguf::read_metadata(file).map_err(|error| format!("its metadata cannot be read: {error}"))?;
    Hub::build(&mut tokenizer_json(&metadata)?)
}

/// Converts the tokenizer to the `tokenizer.json` format.
fn tokenizer_json(metadata: &Map<String, Value>) -> Result<Value, String> {
    let text = |key: &str| metadata.get(key).and_then(Value::as_str);
    match text("tokenizer.ggml.model") {
        Some("gpt2") => {}
        Some(other) => {
            return Err(format!(
                "its tokenizer.ggml.model is {other:?}; only \"gpt2\" (byte-level BPE) is read from GGUF: \
                 give the model's tokenizer.json instead"
            ));
        }
        None => return Err("it has no tokenizer.ggml.model".to_owned()),
    }
    let strings = |key: &str| -> Result<Vec<&str>, String> {
        let array = metadata.get(key).and_then(Value::as_array).ok_or(format!("it has no array {key}"))?;
        array
            .iter()
            .map(|v| v.as_str().ok_or(format!("{key} contains a value that is not a string")))
            .collect()
    };
    let tokens = strings("tokenizer.ggml.tokens")?;
    let merges = strings("tokenizer.ggml.merges")?;
    let kinds = metadata.get("tokenizer.ggml.token_type").and_then(Value::as_array);
    let kind = |id: usize| kinds.and_then(|kinds| kinds.get(id)).and_then(Value::as_i64);
    let vocabulary: Map<String, Value> =
        tokens.iter().enumerate().map(|(id, token)| ((*token).to_owned(), id.into())).collect();
    let added: Vec<Value> = tokens
        .iter()
        .enumerate()
        .filter(|&(id, _)| matches!(kind(id), Some(CONTROL | USER_DEFINED)))
        .map(|(id, token)| {
            json!({"id": id, "content": token, "special": kind(id) == Some(CONTROL), "single_word": false,
                   "lstrip": false, "rstrip": false, "normalized": false})
        })
        .collect();
    let (normalizer, pre_tokenizer) = pipeline(text("tokenizer.ggml.pre").unwrap_or("default"))?;
    Ok(json!({
        "version": "1.0",
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                  "vocab": vocabulary, "merges": merges},
    }))
}

/// The normalizer and pre-tokenizer named by `tokenizer.ggml.pre`.
fn pipeline(pre: &str) -> Result<(Value, Value), String> {
    let byte_level = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
    let split = |pattern: &str| {
        json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            byte_level(false)]})
    };
    Ok(match pre {
        "default" | "gpt-2" | "gpt2" => (Value::Null, byte_level(true)),
        // Digits one by one, then GPT-2's pattern, without the optional leading space that GPT-2 code often adds.
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" => {
            let digits = json!({"type": "Digits", "individual_digits": true});
            (Value::Null, json!({"type": "Sequence", "pretokenizers": [digits, byte_level(true)]}))
        }
        "llama-bpe" | "llama3" | "llama-v3" | "smaug-bpe" | "lfm2" => (Value::Null, split(hub::LLAMA3)),
        "qwen2" => (json!({"type": "NFC"}), split(hub::QWEN2)),
        "gpt-4o" => (Value::Null, split(hub::GPT4O)),
        other => {
            return Err(format!(
                "its tokenizer.ggml.pre is {other:?}; supported are default, gpt-2, smollm, starcoder, refact, \
                 command-r, codeshell, llama-bpe, qwen2 and gpt-4o: give the model's tokenizer.json instead"
            ));
        }
    })
}
