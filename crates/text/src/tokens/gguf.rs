//! The vocabulary inside a GGUF model file. Reads the metadata at its start, never the weights.

use std::io::Read;

use serde_json::{Map, Value, json};

use super::hub::{self, Hub};

/// Longest string believed: chat templates are some kilobytes, tokens some bytes.
const LONGEST_STRING: u64 = 8 << 20;
/// Longest array believed; the largest vocabularies have some 500,000 merges.
const LONGEST_ARRAY: u64 = 8 << 20;
/// Most metadata entries believed; real files have some dozens.
const MAX_ENTRIES: u64 = 1 << 16;

/// GGUF's own numbers of the kinds of tokens that are not text.
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// Builds the tokenizer that a GGUF file carries.
pub(super) fn read(file: impl Read) -> Result<Hub, String> {
    let metadata = metadata(file).map_err(|error| format!("its metadata cannot be read: {error}"))?;
    Hub::build(&mut tokenizer_json(&metadata)?)
}

/// The entries under `tokenizer.`; of the rest only the shape is read.
fn metadata(file: impl Read) -> Result<Map<String, Value>, std::io::Error> {
    let mut reader = GgufReader(file);
    if &reader.bytes::<4>()? != b"GGUF" {
        return Err(invalid("it does not start with GGUF"));
    }
    let version = reader.u32()?;
    if !(2..=3).contains(&version) {
        return Err(invalid(&format!("GGUF version {version} is not 2 or 3")));
    }
    let _tensors = reader.u64()?;
    let entries = reader.u64()?;
    if entries > MAX_ENTRIES {
        return Err(invalid(&format!("{entries} metadata entries")));
    }
    let mut metadata = Map::new();
    for _ in 0..entries {
        let key = reader.string()?;
        let kind = reader.u32()?;
        let value = reader.value(kind, true)?;
        if key.starts_with("tokenizer.") {
            metadata.insert(key, value);
        }
    }
    Ok(metadata)
}

fn invalid(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what)
}

struct GgufReader<R>(R);

impl<R: Read> GgufReader<R> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], std::io::Error> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, std::io::Error> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, std::io::Error> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn string(&mut self) -> Result<String, std::io::Error> {
        let length = self.u64()?;
        if length > LONGEST_STRING {
            return Err(invalid(&format!("a string of {length} bytes")));
        }
        // Reads what is there instead of trusting the length with memory.
        let mut bytes = Vec::new();
        (&mut self.0).take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A value of GGUF's numbered kinds; arrays do not nest in the files that exist, and may not here.
    fn value(&mut self, kind: u32, may_be_array: bool) -> Result<Value, std::io::Error> {
        Ok(match kind {
            0 => self.bytes().map(u8::from_le_bytes)?.into(),
            1 => self.bytes().map(i8::from_le_bytes)?.into(),
            2 => self.bytes().map(u16::from_le_bytes)?.into(),
            3 => self.bytes().map(i16::from_le_bytes)?.into(),
            4 => self.u32()?.into(),
            5 => self.bytes().map(i32::from_le_bytes)?.into(),
            6 => self.bytes().map(f32::from_le_bytes)?.into(),
            7 => (self.bytes::<1>()? != [0]).into(),
            8 => self.string()?.into(),
            9 if may_be_array => {
                let (kind, length) = (self.u32()?, self.u64()?);
                if length > LONGEST_ARRAY {
                    return Err(invalid(&format!("an array of {length} values")));
                }
                (0..length).map(|_| self.value(kind, false)).collect::<Result<Vec<Value>, _>>()?.into()
            }
            10 => self.u64()?.into(),
            11 => self.bytes().map(i64::from_le_bytes)?.into(),
            12 => self.bytes().map(f64::from_le_bytes)?.into(),
            _ => return Err(invalid(&format!("a value of unknown kind {kind}"))),
        })
    }
}

/// The same tokenizer in the format `tokenizer.json`.
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
        array.iter().map(|v| v.as_str().ok_or(format!("{key} holds a value that is not a string"))).collect()
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

/// Normalizer and pre-tokenizer for the name in `tokenizer.ggml.pre`.
fn pipeline(pre: &str) -> Result<(Value, Value), String> {
    let byte_level = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
    let split = |pattern: &str| {
        json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            byte_level(false)]})
    };
    Ok(match pre {
        "default" | "gpt-2" | "gpt2" => (Value::Null, byte_level(true)),
        // Digits one by one, then GPT-2's pattern, without the leading space that GPT-2 code often adds.
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" => {
            let digits = json!({"type": "Digits", "individual_digits": true});
            (Value::Null, json!({"type": "Sequence", "pretokenizers": [digits, byte_level(true)]}))
        }
        "llama-bpe" | "llama3" | "llama-v3" | "smaug-bpe" | "lfm2" => (Value::Null, split(hub::LLAMA3)),
        "qwen2" => (json!({"type": "NFC"}), split(hub::QWEN2)),
        "gpt-4o" => (Value::Null, split(hub::GPT4O)),
        other => {
            return Err(format!(
                "its tokenizer.ggml.pre is {other:?}; known are default, gpt-2, smollm, starcoder, refact, \
                 command-r, codeshell, llama-bpe, qwen2 and gpt-4o: give the model's tokenizer.json instead"
            ));
        }
    })
}
