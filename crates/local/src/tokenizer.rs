//! SmolLM2's tokenizer, built from the vocabulary inside the GGUF file: digits are split one by one, then byte-level
//! BPE without a leading space. Texts are ordinary text throughout: a marker of the chat template that stands in a
//! text is never read as the marker.

use std::collections::HashMap;

use serde_json::{Map, Value};
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::{
    DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, TokenizerImpl,
};

use super::closing::is_closer;

/// `token_type` of control tokens in a GGUF vocabulary.
const CONTROL: u64 = 3;

type TokenizerEngine =
    TokenizerImpl<ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Turns text into tokens and tokens into bytes.
pub(super) struct Tokenizer {
    engine: TokenizerEngine,
    /// The bytes of each token; markers have none.
    bytes: Vec<Vec<u8>>,
    /// Tokens that close what a JSON text has open and open nothing.
    closers: Vec<u32>,
    /// Markers that are neither text nor the end of it.
    silent: Vec<u32>,
    /// `<|endoftext|>`.
    text_end: u32,
    /// `<|im_start|>`.
    pub turn_start: u32,
    /// `<|im_end|>`: the model is done.
    pub turn_end: u32,
}

impl Tokenizer {
    /// The tokenizer that the metadata of a GGUF file describes; the error says what is missing.
    pub(super) fn from_metadata(metadata: &Map<String, Value>) -> Result<Self, String> {
        let tokens = strings(metadata, "tokenizer.ggml.tokens")?;
        let merges = strings(metadata, "tokenizer.ggml.merges")?
            .into_iter()
            .filter_map(|merge| {
                merge.split_once(' ').map(|(left, right)| (left.to_owned(), right.to_owned()))
            })
            .collect();
        let kinds = array(metadata, "tokenizer.ggml.token_type")?;
        let is_control = |id: usize| kinds.get(id).and_then(Value::as_u64) == Some(CONTROL);
        let unbyte = byte_alphabet();
        let bytes = tokens.iter().enumerate().map(|(id, token)| match is_control(id) {
            true => Vec::new(),
            false => token.chars().filter_map(|char| unbyte.get(&char).copied()).collect(),
        });
        let marker = |text: &str| {
            let id = tokens.iter().position(|token| *token == text);
            id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| format!("the vocabulary has no `{text}`"))
        };
        let (turn_start, turn_end) = (marker("<|im_start|>")?, marker("<|im_end|>")?);
        let text_end = marker("<|endoftext|>")?;
        let bytes: Vec<Vec<u8>> = bytes.collect();
        let closers =
            (0..).zip(&bytes).filter(|(_, bytes)| is_closer(bytes)).map(|(token, _)| token).collect();
        let is_silent = |id: &u32| ![turn_end, text_end].contains(id);
        let silent = (0..)
            .zip(&bytes)
            .filter(|(_, bytes)| bytes.is_empty())
            .map(|(id, _)| id)
            .filter(is_silent)
            .collect();
        let vocabulary = tokens.iter().zip(0_u32..).filter(|(_, id)| !is_control(*id as usize));
        let vocabulary = vocabulary.map(|(token, id)| ((*token).to_owned(), id));
        let model = BPE::builder()
            .vocab_and_merges(vocabulary.collect::<Vocab>(), merges)
            .build()
            .map_err(|error| format!("the vocabulary is broken: {error}"))?;
        let mut engine = TokenizerEngine::new(ModelWrapper::BPE(model));
        engine.with_pre_tokenizer(Some(PreTokenizerWrapper::Sequence(Sequence::new(vec![
            PreTokenizerWrapper::Digits(Digits::new(true)),
            PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, true, true)),
        ]))));
        Ok(Self { engine, bytes, closers, silent, text_end, turn_start, turn_end })
    }

    /// The tokens of a text.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        let encoding = self.engine.encode_fast(text, false).map_err(|error| error.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The bytes of a token; none for a marker or an unknown number.
    pub(super) fn bytes(&self, token: u32) -> &[u8] {
        self.bytes.get(token as usize).map_or(&[], Vec::as_slice)
    }

    /// Tokens that close what a JSON text has open and open nothing.
    pub(super) fn closers(&self) -> &[u32] {
        &self.closers
    }

    /// Whether the model has said all with this token.
    pub(super) fn ends_turn(&self, token: u32) -> bool {
        token == self.turn_end || token == self.text_end
    }

    /// Markers that are neither text nor the end of it.
    pub(super) fn silent(&self) -> &[u32] {
        &self.silent
    }

    /// Tokens in the vocabulary, markers included.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }
}

fn array<'m>(metadata: &'m Map<String, Value>, key: &str) -> Result<&'m [Value], String> {
    let value = metadata.get(key).and_then(Value::as_array);
    value.map(Vec::as_slice).ok_or_else(|| format!("`{key}` is missing"))
}

fn strings<'m>(metadata: &'m Map<String, Value>, key: &str) -> Result<Vec<&'m str>, String> {
    let strings = array(metadata, key)?.iter().map(Value::as_str);
    strings.collect::<Option<_>>().ok_or_else(|| format!("`{key}` is not a list of strings"))
}

/// GPT-2's printable stand-ins for the 256 bytes.
fn byte_alphabet() -> HashMap<char, u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let shifted = (0..=u8::MAX).filter(|&byte| !printable(byte));
    let shifted = shifted.zip(256_u32..).filter_map(|(byte, code)| Some((char::from_u32(code)?, byte)));
    (0..=u8::MAX)
        .filter(|&byte| printable(byte))
        .map(|byte| (char::from(byte), byte))
        .chain(shifted)
        .collect()
}
