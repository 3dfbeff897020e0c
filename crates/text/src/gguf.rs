//! The header of a GGUF model file: its metadata and the locations of its tensors. Knows how they are encoded, not
//! what they mean.

use std::collections::BTreeMap;
use std::io::Read;

use serde_json::{Map, Value};

/// Longest string accepted: chat templates have a few kilobytes, tokens a few bytes.
const LONGEST_STRING: u64 = 8 << 20;
/// Longest array accepted; the largest vocabularies have about 500,000 merges.
const LONGEST_ARRAY: u64 = 8 << 20;
/// Maximum number of metadata entries accepted; real files have a few dozen.
const MAX_ENTRIES: u64 = 1 << 16;

/// Maximum number of tensors accepted; real files have a few hundred.
const MAX_TENSORS: u64 = 1 << 16;
/// Maximum number of dimensions of a tensor.
const MAX_DIMENSIONS: u32 = 4;
/// Default alignment of the tensor data in bytes, used unless `general.alignment` overrides it.
pub const ALIGNMENT: u64 = 32;

/// Everything before the tensors.
#[derive(Debug, Clone, PartialEq)]
pub struct GgufHeader {
    /// Metadata by key.
    pub metadata: Map<String, Value>,
    /// Tensors by name.
    pub tensors: BTreeMap<String, TensorInfo>,
    /// Offset of the tensor data from the start of the file, in bytes.
    pub data: u64,
}

/// The description of one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Sizes, starting with the length of a row.
    pub dimensions: Vec<u64>,
    /// GGML's type number: 0 is f32, 3 is Q4_1, 8 is Q8_0.
    pub kind: u32,
    /// Offset from the start of the tensor data, in bytes.
    pub offset: u64,
}

impl GgufHeader {
    /// Reads the start of a file up to its tensors.
    ///
    /// # Errors
    /// If the file is truncated, is not GGUF, or declares sizes that no real model has.
    pub fn read(file: impl Read) -> Result<Self, std::io::Error> {
        let (mut reader, tensors, metadata) = start(file)?;
        if tensors > MAX_TENSORS {
            return Err(invalid(&format!("{tensors} tensors")));
        }
        let tensors = (0..tensors).map(|_| reader.tensor()).collect::<Result<_, _>>()?;
        let alignment = metadata.get("general.alignment").and_then(Value::as_u64).filter(|&bytes| bytes > 0);
        let data = reader.1.next_multiple_of(alignment.unwrap_or(ALIGNMENT));
        Ok(Self { metadata, tensors, data })
    }
}

/// Reads only the metadata.
///
/// # Errors
/// If the file is truncated, is not GGUF, or declares sizes that no real model has.
pub fn read_metadata(file: impl Read) -> Result<Map<String, Value>, std::io::Error> {
    start(file).map(|(_, _, metadata)| metadata)
}

/// A reader positioned after the metadata, the number of tensors, and the metadata.
type Start<R> = (CountingReader<R>, u64, Map<String, Value>);

/// Reads the metadata and stops before the tensor descriptions.
fn start<R: Read>(file: R) -> Result<Start<R>, std::io::Error> {
    let mut reader = CountingReader(file, 0);
    if &reader.bytes::<4>()? != b"GGUF" {
        return Err(invalid("it does not start with GGUF"));
    }
    let version = reader.u32()?;
    if !(2..=3).contains(&version) {
        return Err(invalid(&format!("GGUF version {version} is not 2 or 3")));
    }
    let tensors = reader.u64()?;
    let entries = reader.u64()?;
    if entries > MAX_ENTRIES {
        return Err(invalid(&format!("{entries} metadata entries")));
    }
    let mut metadata = Map::new();
    for _ in 0..entries {
        let key = reader.string()?;
        let kind = reader.u32()?;
        let value = reader.value(kind, true)?;
        metadata.insert(key, value);
    }
    Ok((reader, tensors, metadata))
}

fn invalid(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what)
}

/// A file and the number of bytes read so far.
struct CountingReader<R>(R, u64);

impl<R: Read> CountingReader<R> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], std::io::Error> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        self.1 += N as u64;
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
        // Reads what is actually there rather than allocating what the length claims.
        let mut bytes = Vec::new();
        (&mut self.0).take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.1 += length;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads a value of a GGUF type. Arrays do not nest in real files, so nested ones are rejected.
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

    fn tensor(&mut self) -> Result<(String, TensorInfo), std::io::Error> {
        let (name, dimensions) = (self.string()?, self.u32()?);
        if dimensions > MAX_DIMENSIONS {
            return Err(invalid(&format!("a tensor of {dimensions} dimensions")));
        }
        let dimensions = (0..dimensions).map(|_| self.u64()).collect::<Result<_, _>>()?;
        Ok((name, TensorInfo { dimensions, kind: self.u32()?, offset: self.u64()? }))
    }
}
