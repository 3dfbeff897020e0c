//! Loads weights from the GGUF file into memory. The shipped file is Q4_1, for which there is no fast kernel on x86;
//! on first use it is re-quantised to Q8_0 and stored next to the original. Knows the two file layouts and nothing of
//! how the weights are used.

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use larder_text::gguf::{ALIGNMENT, GgufHeader, TensorInfo, read_metadata};
use larder_text::hash::ContentHash;
use serde_json::{Map, Value};

use super::llama::{LayerWeights, LlamaShape, LlamaWeights};
use super::matrix::{BLOCK, BLOCK_BYTES, Matrix};

/// Changed with the layout of the re-quantised file, so that older files are rebuilt.
const LAYOUT: &str = "larder-q8_0-1";

/// The contents of the weights file: shape, weights, and other metadata (vocabulary, merges, template).
pub(super) struct Imported {
    pub shape: LlamaShape,
    pub weights: LlamaWeights,
    pub metadata: Map<String, Value>,
}

/// Why weights could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImportError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: not the expected model file: {source}", path.display())]
    Format { path: PathBuf, source: std::io::Error },
    #[error("{}: not the expected model file: `{key}` is missing or not as expected", path.display())]
    Metadata { path: PathBuf, key: String },
}

/// Reads the re-quantised copy of `original`, making it first if it is missing, damaged or outdated.
pub(super) fn import(original: &Path) -> Result<Imported, ImportError> {
    let cache = Cached::beside(original)?;
    let bytes = match cache.read() {
        Some(bytes) => bytes,
        None => cache.make(original)?,
    };
    let file = BufReader::new(File::open(original).map_err(io(original))?);
    read(&bytes, read_metadata(file).map_err(format(original))?, original)
}

/// The re-quantised copy and the note that proves it whole.
struct Cached {
    weights: PathBuf,
    note: PathBuf,
    original_size: u64,
}

impl Cached {
    fn beside(original: &Path) -> Result<Self, ImportError> {
        let size = fs::metadata(original).map_err(io(original))?.len();
        Ok(Self {
            weights: original.with_extension("q8_0.gguf"),
            note: original.with_extension("q8_0.check"),
            original_size: size,
        })
    }

    fn note_for(&self, bytes: &[u8]) -> String {
        format!("{LAYOUT} {} {}\n", self.original_size, ContentHash::new(bytes))
    }

    fn read(&self) -> Option<Vec<u8>> {
        let note = fs::read_to_string(&self.note).ok()?;
        let bytes = fs::read(&self.weights).ok()?;
        (note == self.note_for(&bytes)).then_some(bytes)
    }

    /// Re-quantises `original`. Other processes that need the result wait for it. If the folder is not writable, only
    /// the cache is lost.
    fn make(&self, original: &Path) -> Result<Vec<u8>, ImportError> {
        let turn =
            File::create(original.with_extension("q8_0.lock")).and_then(|file| file.lock().map(|()| file));
        if let Some(bytes) = turn.as_ref().ok().and_then(|_| self.read()) {
            return Ok(bytes);
        }
        let bytes = requantize(original)?;
        let keep = |_: &File| {
            replace(&self.weights, &bytes)?;
            replace(&self.note, self.note_for(&bytes).as_bytes())
        };
        if let Err(error) = turn.and_then(|turn| keep(&turn)) {
            tracing::warn!(path = %self.weights.display(), %error, "the re-quantised weights could not be stored");
        }
        Ok(bytes)
    }
}

/// Writes a file atomically; the caller holds the lock.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let aside = path.with_extension("new");
    let mut file = File::create(&aside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&aside, path)
}

fn requantize(original: &Path) -> Result<Vec<u8>, ImportError> {
    let bytes = fs::read(original).map_err(io(original))?;
    let file = TensorFile::read(&bytes, original)?;
    let mut tensors = vec![file.stacked("token_embd.weight", &["token_embd.weight".to_owned()])?];
    tensors.push(file.copied("output_norm.weight")?);
    for layer in 0..shape(&file.header.metadata, original)?.layers {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        for (fused, parts) in FUSED {
            let parts: Vec<String> = parts.iter().map(|part| name(part)).collect();
            tensors.push(file.stacked(&name(fused), &parts)?);
        }
        for norm in ["attn_norm", "ffn_norm"] {
            tensors.push(file.copied(&name(norm))?);
        }
    }
    Ok(write(&tensors))
}

/// A tensor to write: its name, its sizes with that of the rows first, GGML's number of its format, and its bytes.
struct WrittenTensor {
    name: String,
    dimensions: Vec<u64>,
    kind: u32,
    bytes: Vec<u8>,
}

/// A GGUF file of tensors without metadata.
fn write(tensors: &[WrittenTensor]) -> Vec<u8> {
    let mut file = b"GGUF".to_vec();
    file.extend(3_u32.to_le_bytes());
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend(0_u64.to_le_bytes());
    let mut offset = 0;
    for tensor in tensors {
        file.extend((tensor.name.len() as u64).to_le_bytes());
        file.extend(tensor.name.as_bytes());
        file.extend((tensor.dimensions.len() as u32).to_le_bytes());
        file.extend(tensor.dimensions.iter().flat_map(|size| size.to_le_bytes()));
        file.extend(tensor.kind.to_le_bytes());
        file.extend(u64::to_le_bytes(offset));
        offset += (tensor.bytes.len() as u64).next_multiple_of(ALIGNMENT);
    }
    for tensor in tensors {
        pad(&mut file);
        file.extend(&tensor.bytes);
    }
    pad(&mut file);
    file
}

fn pad(file: &mut Vec<u8>) {
    file.resize(file.len().next_multiple_of(ALIGNMENT as usize), 0);
}

/// Matrices of the re-quantised file, and the original matrices whose rows they stack.
const FUSED: [(&str, &[&str]); 4] = [
    ("attn_qkv", &["attn_q", "attn_k", "attn_v"]),
    ("attn_output", &["attn_output"]),
    ("ffn_gate_up", &["ffn_gate", "ffn_up"]),
    ("ffn_down", &["ffn_down"]),
];

/// GGML's numbers of the formats that are read: f32, and blocks of 32 weights of four or eight bits under a scale.
const F32: u32 = 0;
const Q4_1: u32 = 3;
const Q8_0: u32 = 8;
/// Bytes of a block of [`Q4_1`]: scale and minimum as f16, then two weights in each byte.
const Q4_1_BYTES: usize = 4 + BLOCK / 2;

fn read(bytes: &[u8], metadata: Map<String, Value>, path: &Path) -> Result<Imported, ImportError> {
    let shape = shape(&metadata, path)?;
    let file = TensorFile::read(bytes, path)?;
    let layers = (0..shape.layers).map(|layer| {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        Ok(LayerWeights {
            attention_norm: file.values(&name("attn_norm"))?,
            qkv: file.matrix(&name("attn_qkv"))?,
            attention_output: file.matrix(&name("attn_output"))?,
            feed_forward_norm: file.values(&name("ffn_norm"))?,
            gate_up: file.matrix(&name("ffn_gate_up"))?,
            down: file.matrix(&name("ffn_down"))?,
        })
    });
    let weights = LlamaWeights {
        embedding: file.matrix("token_embd.weight")?,
        layers: layers.collect::<Result<_, _>>()?,
        output_norm: file.values("output_norm.weight")?,
    };
    Ok(Imported { shape, weights, metadata })
}

/// A file of tensors in memory.
struct TensorFile<'a> {
    bytes: &'a [u8],
    header: GgufHeader,
    path: &'a Path,
}

impl<'a> TensorFile<'a> {
    fn read(bytes: &'a [u8], path: &'a Path) -> Result<Self, ImportError> {
        Ok(Self { bytes, header: GgufHeader::read(bytes).map_err(format(path))?, path })
    }

    fn missing(&self, name: &str) -> ImportError {
        ImportError::Metadata { path: self.path.to_owned(), key: name.to_owned() }
    }

    /// The header of a tensor, and its bytes.
    fn tensor(&self, name: &str) -> Result<(&TensorInfo, &'a [u8]), ImportError> {
        let found = self.header.tensors.get(name).and_then(|info| {
            let values =
                info.dimensions.iter().try_fold(1_u64, |product, &size| product.checked_mul(size))?;
            let values = usize::try_from(values).ok()?;
            let length = match info.kind {
                F32 => values.checked_mul(4)?,
                Q4_1 => values / BLOCK * Q4_1_BYTES,
                Q8_0 => values / BLOCK * BLOCK_BYTES,
                _ => return None,
            };
            let start = usize::try_from(self.header.data.checked_add(info.offset)?).ok()?;
            Some((info, self.bytes.get(start..start.checked_add(length)?)?))
        });
        found.ok_or_else(|| self.missing(name))
    }

    /// Outputs and inputs of a matrix, which the file stores in reverse order.
    fn sizes(&self, name: &str, info: &TensorInfo) -> Result<(usize, usize), ImportError> {
        let size = |size: u64| usize::try_from(size).map_err(|_| self.missing(name));
        match *info.dimensions.as_slice() {
            [inputs, outputs] => Ok((size(outputs)?, size(inputs)?)),
            _ => Err(self.missing(name)),
        }
    }

    fn matrix(&self, name: &str) -> Result<Matrix, ImportError> {
        let (info, bytes) = self.tensor(name)?;
        let (outputs, inputs) = self.sizes(name, info)?;
        let matrix = Some(bytes).filter(|_| info.kind == Q8_0);
        let matrix = matrix.and_then(|bytes| Matrix::from_bytes(outputs, inputs, bytes));
        matrix.ok_or_else(|| self.missing(name))
    }

    /// The values of a tensor as numbers.
    fn values(&self, name: &str) -> Result<Vec<f32>, ImportError> {
        let (info, bytes) = self.tensor(name)?;
        match info.kind {
            F32 => Ok(bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()),
            Q4_1 => Ok(bytes.as_chunks().0.iter().flat_map(restore_q4_1).collect()),
            _ => {
                let (outputs, inputs) = self.sizes(name, info)?;
                let all: Vec<u32> = (0..outputs as u32).collect();
                let matrix = Matrix::from_bytes(outputs, inputs, bytes).ok_or_else(|| self.missing(name))?;
                Ok(matrix.rows(&all))
            }
        }
    }

    /// The rows of several matrices, concatenated and re-quantised as one.
    fn stacked(&self, name: &str, parts: &[String]) -> Result<WrittenTensor, ImportError> {
        let (mut values, mut outputs, mut inputs) = (Vec::new(), 0, 0);
        for part in parts {
            let (rows, columns) = self.sizes(part, self.tensor(part)?.0)?;
            values.extend(self.values(part)?);
            outputs += rows;
            inputs = columns;
        }
        let bytes = Matrix::quantize(&values).ok_or_else(|| self.missing(name))?;
        let dimensions = vec![inputs as u64, outputs as u64];
        Ok(WrittenTensor { name: name.to_owned(), dimensions, kind: Q8_0, bytes })
    }

    /// Copies an f32 tensor unchanged.
    fn copied(&self, name: &str) -> Result<WrittenTensor, ImportError> {
        let (info, bytes) = self.tensor(name)?;
        let dimensions = info.dimensions.clone();
        Ok(WrittenTensor { name: name.to_owned(), dimensions, kind: info.kind, bytes: bytes.to_vec() })
    }
}

/// The weights of a block of [`Q4_1`]: the low halves of all bytes, then the high halves.
fn restore_q4_1(block: &[u8; Q4_1_BYTES]) -> [f32; BLOCK] {
    let [a, b, c, d, weights @ ..] = block;
    let (scale, least) =
        (half::f16::from_le_bytes([*a, *b]).to_f32(), half::f16::from_le_bytes([*c, *d]).to_f32());
    let mut values = [0.0; BLOCK];
    let (low, high) = values.split_at_mut(BLOCK / 2);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(weights) {
        *low = f32::from(byte & 15) * scale + least;
        *high = f32::from(byte >> 4) * scale + least;
    }
    values
}

fn shape(metadata: &Map<String, Value>, path: &Path) -> Result<LlamaShape, ImportError> {
    let missing = |key: &str| ImportError::Metadata { path: path.to_owned(), key: key.to_owned() };
    let size = |key: &str| {
        let value = metadata.get(key).and_then(|value| value.as_u64()).filter(|&value| value > 0);
        value.and_then(|value| usize::try_from(value).ok()).ok_or_else(|| missing(key))
    };
    let real = |key: &str| {
        metadata.get(key).and_then(Value::as_f64).map(|value| value as f32).ok_or_else(|| missing(key))
    };
    let shape = LlamaShape {
        layers: size("llama.block_count")?,
        width: size("llama.embedding_length")?,
        heads: size("llama.attention.head_count")?,
        kv_heads: size("llama.attention.head_count_kv")?,
        feed_forward: size("llama.feed_forward_length")?,
        norm_epsilon: real("llama.attention.layer_norm_rms_epsilon")?,
        rope_base: real("llama.rope.freq_base")?,
    };
    if !shape.width.is_multiple_of(shape.heads) || !shape.heads.is_multiple_of(shape.kv_heads) {
        return Err(missing("llama.attention.head_count"));
    }
    Ok(shape)
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> ImportError + '_ {
    move |source| ImportError::Io { path: path.to_owned(), source }
}

fn format(path: &Path) -> impl Fn(std::io::Error) -> ImportError + '_ {
    move |source| ImportError::Format { path: path.to_owned(), source }
}
