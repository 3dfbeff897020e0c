//! From the GGUF file on disk to weights in memory. The shipped file is Q4_1, for which there is no fast kernel on
//! x86; on the first open it is re-quantised to Q8_0 and kept beside the original. Knows the two file layouts and
//! nothing of how the weights are used.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufReader, Cursor, Write};
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{Content, Value, write};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use larder_text::hash::ContentHash;

use super::llama::{LayerWeights, Shape, Weights};
use super::matrix::{BLOCK, BLOCK_BYTES, Matrix};

/// Changed whenever the layout of the re-quantised file changes, so that older ones are made anew.
const LAYOUT: &str = "larder-q8_0-1";

/// What the weights file says: shape, weights, and the rest of its metadata (vocabulary, merges, template).
pub(super) struct Imported {
    pub shape: Shape,
    pub weights: Weights,
    pub metadata: HashMap<String, Value>,
}

/// Why weights could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImportError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: not the expected model file: {source}", path.display())]
    Format { path: PathBuf, source: candle_core::Error },
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
    read(&bytes, original)
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

    /// Re-quantises `original`. Others that need the same wait and take it. A folder that cannot be written costs the
    /// cache, not the model.
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
            tracing::warn!(path = %self.weights.display(), %error, "the re-quantised weights could not be kept");
        }
        Ok(bytes)
    }
}

/// Writes a file whole or not at all; the caller holds the lock.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let aside = path.with_extension("new");
    let mut file = File::create(&aside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&aside, path)
}

fn requantize(original: &Path) -> Result<Vec<u8>, ImportError> {
    let mut reader = BufReader::new(File::open(original).map_err(io(original))?);
    let content = Content::read(&mut reader).map_err(format(original))?;
    let shape = shape(&content.metadata, original)?;
    let mut convert = || -> candle_core::Result<Vec<u8>> {
        let mut tensor = |name: &str| content.tensor(&mut reader, name, &Device::Cpu);
        let mut tensors = vec![
            ("token_embd.weight".to_owned(), quantized(&[tensor("token_embd.weight")?])?),
            ("output_norm.weight".to_owned(), tensor("output_norm.weight")?),
        ];
        for layer in 0..shape.layers {
            let mut fuse = |parts: &[&str]| {
                let parts = parts.iter().map(|part| tensor(&format!("blk.{layer}.{part}.weight")));
                quantized(&parts.collect::<candle_core::Result<Vec<_>>>()?)
            };
            for (name, parts) in FUSED {
                tensors.push((format!("blk.{layer}.{name}.weight"), fuse(parts)?));
            }
            for name in ["attn_norm", "ffn_norm"] {
                let name = format!("blk.{layer}.{name}.weight");
                let norm = tensor(&name)?;
                tensors.push((name, norm));
            }
        }
        let mut metadata: Vec<_> =
            content.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        metadata.sort_unstable_by_key(|(key, _)| *key);
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let mut bytes = Cursor::new(Vec::new());
        write(&mut bytes, &metadata, &tensors)?;
        Ok(bytes.into_inner())
    };
    convert().map_err(format(original))
}

/// Matrices of the re-quantised file and the matrices of the original whose rows they stack.
const FUSED: [(&str, &[&str]); 4] = [
    ("attn_qkv", &["attn_q", "attn_k", "attn_v"]),
    ("attn_output", &["attn_output"]),
    ("ffn_gate_up", &["ffn_gate", "ffn_up"]),
    ("ffn_down", &["ffn_down"]),
];

fn quantized(parts: &[QTensor]) -> candle_core::Result<QTensor> {
    let parts =
        parts.iter().map(|part| part.dequantize(&Device::Cpu)).collect::<candle_core::Result<Vec<_>>>()?;
    QTensor::quantize(&Tensor::cat(&parts, 0)?, GgmlDType::Q8_0)
}

fn read(bytes: &[u8], path: &Path) -> Result<Imported, ImportError> {
    let content = Content::read(&mut Cursor::new(bytes)).map_err(format(path))?;
    let shape = shape(&content.metadata, path)?;
    let file = TensorFile { bytes, content: &content, path };
    let layers = (0..shape.layers).map(|layer| {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        Ok(LayerWeights {
            attention_norm: file.vector(&name("attn_norm"))?,
            qkv: file.matrix(&name("attn_qkv"))?,
            attention_output: file.matrix(&name("attn_output"))?,
            feed_forward_norm: file.vector(&name("ffn_norm"))?,
            gate_up: file.matrix(&name("ffn_gate_up"))?,
            down: file.matrix(&name("ffn_down"))?,
        })
    });
    let weights = Weights {
        embedding: file.matrix("token_embd.weight")?,
        layers: layers.collect::<Result<_, _>>()?,
        output_norm: file.vector("output_norm.weight")?,
    };
    Ok(Imported { shape, weights, metadata: content.metadata })
}

/// Tensors of a re-quantised file in memory.
struct TensorFile<'a> {
    bytes: &'a [u8],
    content: &'a Content,
    path: &'a Path,
}

impl TensorFile<'_> {
    fn matrix(&self, name: &str) -> Result<Matrix, ImportError> {
        let missing = || ImportError::Metadata { path: self.path.to_owned(), key: name.to_owned() };
        let info = self.content.tensor_infos.get(name).filter(|info| info.ggml_dtype == GgmlDType::Q8_0);
        let info = info.ok_or_else(missing)?;
        let (outputs, inputs) = info.shape.dims2().map_err(format(self.path))?;
        let start = self
            .content
            .tensor_data_offset
            .checked_add(info.offset)
            .and_then(|start| usize::try_from(start).ok());
        let bytes = start.and_then(|start| {
            let length = info.shape.elem_count() / BLOCK * BLOCK_BYTES;
            self.bytes.get(start..start.checked_add(length)?)
        });
        bytes.and_then(|bytes| Matrix::from_bytes(outputs, inputs, bytes)).ok_or_else(missing)
    }

    fn vector(&self, name: &str) -> Result<Tensor, ImportError> {
        let tensor = self.content.tensor(&mut Cursor::new(self.bytes), name, &Device::Cpu);
        tensor.and_then(|tensor| tensor.dequantize(&Device::Cpu)).map_err(format(self.path))
    }
}

fn shape(metadata: &HashMap<String, Value>, path: &Path) -> Result<Shape, ImportError> {
    let missing = |key: &str| ImportError::Metadata { path: path.to_owned(), key: key.to_owned() };
    let size = |key: &str| {
        let value = metadata.get(key).and_then(|value| value.to_u32().ok()).filter(|&value| value > 0);
        value.map(|value| value as usize).ok_or_else(|| missing(key))
    };
    let real =
        |key: &str| metadata.get(key).and_then(|value| value.to_f32().ok()).ok_or_else(|| missing(key));
    let shape = Shape {
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

fn format(path: &Path) -> impl Fn(candle_core::Error) -> ImportError + '_ {
    move |source| ImportError::Format { path: path.to_owned(), source }
}
