//! Vocabularies in the `tokenizer.json` format. Understands the pipeline as far as needed to prove properties of its
//! counts; the crate `tokenizers` does the encoding.

use serde_json::Value;

use super::TokenError;
use super::engine::{CountShape, TokenEngine};

/// Composition can merge three bytes into one, and decomposition can expand one into three (UAX #15, table of
/// expansion factors).
const NFC_FACTOR: usize = 3;
/// A byte-level vocabulary has at least one token per byte value.
const BYTES: usize = 256;

/// A tokenizer loaded from `tokenizer.json`.
pub(super) struct Hub {
    tokenizer: tokenizers::Tokenizer,
    shape: CountShape,
}

impl Hub {
    /// Parses `tokenizer.json`; `name` is for error messages.
    pub(super) fn read(json: &[u8], name: &str) -> Result<Self, TokenError> {
        let bad = |reason: String| TokenError::TokenizerJson { name: name.to_owned(), reason };
        let mut json: Value = serde_json::from_slice(json).map_err(|error| bad(error.to_string()))?;
        Self::build(&mut json).map_err(bad)
    }

    /// Builds a tokenizer from the parsed file.
    pub(super) fn build(json: &mut Value) -> Result<Self, String> {
        let root = json.as_object_mut().ok_or("the file does not contain a JSON object")?;
        // Count the whole text, whatever length the model was trained on.
        root.insert("truncation".to_owned(), Value::Null);
        root.insert("padding".to_owned(), Value::Null);
        check_ids(json)?;
        let shape = shape(json);
        let mut tokenizer: tokenizers::Tokenizer =
            serde_json::from_value(json.take()).map_err(|error| error.to_string())?;
        tokenizer.set_encode_special_tokens(true);
        let hub = Self { tokenizer, shape };
        hub.try_count("A probe: 12 words?\n").map_err(|error| format!("it cannot encode text: {error}"))?;
        Ok(hub)
    }

    fn try_count(&self, text: &str) -> Result<usize, String> {
        let encoding = self.tokenizer.encode_fast(text, false).map_err(|error| error.to_string())?;
        Ok(encoding.len())
    }
}

impl TokenEngine for Hub {
    fn count(&self, text: &str) -> usize {
        // A text that the pipeline rejects (for example at a regex limit) is charged by its bytes.
        self.try_count(text).unwrap_or(text.len())
    }

    fn shape(&self) -> CountShape {
        self.shape
    }
}

/// Ids index tables, so a file with an id far beyond its vocabulary is rejected before those tables are allocated.
fn check_ids(json: &Value) -> Result<(), String> {
    let vocabulary = json.pointer("/model/vocab").ok_or("it has no model.vocab")?;
    let added = json.get("added_tokens").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let size = match vocabulary {
        Value::Object(entries) => entries.len(),
        Value::Array(entries) => entries.len(),
        _ => return Err("model.vocab is neither an object nor an array".to_owned()),
    };
    let most = 2 * (size + added.len()) as u64 + 65_536;
    let ids = vocabulary.as_object().into_iter().flat_map(|entries| entries.values());
    match ids
        .chain(added.iter().filter_map(|token| token.get("id")))
        .find(|id| id.as_u64().is_none_or(|id| id > most))
    {
        Some(id) => {
            Err(format!("token id {id} is not in 0..={most}, as a vocabulary of {size} entries allows"))
        }
        None => Ok(()),
    }
}

/// The properties that the pipeline's parts allow us to prove. Nothing is proven about unfamiliar parts, so their
/// texts are counted whole.
fn shape(json: &Value) -> CountShape {
    let unproven = CountShape { per_byte: None, longest: None, cuts: false };
    let factor = match json.pointer("/normalizer/type").and_then(Value::as_str) {
        None => 1,
        Some("NFC") => NFC_FACTOR,
        Some(_) => return unproven,
    };
    if json.pointer("/model/type").and_then(Value::as_str) != Some("BPE") || !is_byte_level(json) {
        return unproven;
    }
    let Some(tokens) = json.pointer("/model/vocab").and_then(Value::as_object) else { return unproven };
    let single = tokens.keys().filter(|token| token.chars().nth(1).is_none()).count();
    if single < BYTES {
        return unproven;
    }
    let matched = json.get("added_tokens").and_then(Value::as_array).into_iter().flatten();
    let mut matched = matched.filter(|token| token.get("special").and_then(Value::as_bool) != Some(true));
    if matched.any(|token| !is_whole(token)) {
        return CountShape { per_byte: Some(factor), ..unproven };
    }
    // In the byte-level alphabet, each character of a token stands for one byte.
    let longest = tokens.keys().map(|token| token.chars().count()).max().unwrap_or(1);
    CountShape { per_byte: Some(factor), longest: Some(longest * factor), cuts: true }
}

/// Whether an added token, which is matched before the pattern applies, can never span a safe cut.
fn is_whole(token: &Value) -> bool {
    let takes_spaces =
        ["lstrip", "rstrip"].iter().any(|key| token.get(*key).and_then(Value::as_bool) == Some(true));
    let content = token.get("content").and_then(Value::as_str).unwrap_or_default();
    !takes_spaces && (content.chars().all(|c| c == ' ') || content.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// Whether the pre-tokenizer is byte-level with a pattern whose pieces never span a safe cut.
fn is_byte_level(json: &Value) -> bool {
    let Some(pre) = json.get("pre_tokenizer") else { return false };
    let steps = match pre.get("pretokenizers").and_then(Value::as_array) {
        Some(steps) => steps.as_slice(),
        None => std::slice::from_ref(pre),
    };
    let Some((last, first)) = steps.split_last() else { return false };
    let kind = |step: &Value| step.get("type").and_then(Value::as_str).map(str::to_owned).unwrap_or_default();
    let is_true = |step: &Value, key: &str| step.get(key).and_then(Value::as_bool) == Some(true);
    let splits = first.iter().all(|step| match kind(step).as_str() {
        "Digits" => true,
        "Split" => {
            let pattern = step.pointer("/pattern/Regex").and_then(Value::as_str);
            step.get("behavior").and_then(Value::as_str) == Some("Isolated")
                && step.get("invert").and_then(Value::as_bool) != Some(true)
                && pattern.is_some_and(|pattern| PATTERNS.contains(&pattern))
        }
        _ => false,
    });
    // Without `use_regex`, an earlier split has to separate words.
    let divided = step_uses_regex(last) || first.iter().any(|step| kind(step) == "Split");
    kind(last) == "ByteLevel" && splits && divided && !is_true(last, "add_prefix_space")
}

fn step_uses_regex(step: &Value) -> bool {
    step.get("use_regex").and_then(Value::as_bool) != Some(false)
}

/// Llama 3.
pub(super) const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Qwen 2 to 3.
pub(super) const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// GPT-4o and gpt-oss.
pub(super) const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Mistral's tekken.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const PATTERNS: [&str; 4] = [LLAMA3, QWEN2, GPT4O, TEKKEN];
