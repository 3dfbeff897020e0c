//! A content as one zstd frame that states its size, checked against its hash. Knows nothing of files or rows.

use std::io::{self, Read};
use std::path::Path;

use larder_text::hash::ContentHash;
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

use crate::StoreError;

/// The default of zstd: about 3 times smaller text at some 300 MB/s.
pub const COMPRESSION_LEVEL: i32 = 3;
/// Contents of at least this size are compressed at the fastest level, since a caller waits for them.
const LARGE: usize = 1 << 18;
const FASTEST: i32 = 1;
/// Bytes that are packed at a time.
const PIECE: usize = 1 << 17;

/// The frame of one content.
pub fn compress(content: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(content, level(content))
}

fn level(content: &[u8]) -> i32 {
    if content.len() < LARGE { COMPRESSION_LEVEL } else { FASTEST }
}

/// As [`compress`], with a call of `between` after each piece.
fn compress_in_pieces(content: &[u8], mut between: impl FnMut()) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::new(level(content))?;
    encoder.set_pledged_src_size(Some(content.len() as u64))?;
    let mut frame = Vec::with_capacity(zstd::zstd_safe::compress_bound(content.len()));
    let mut output = OutBuffer::around(&mut frame);
    for piece in content.chunks(PIECE) {
        let mut input = InBuffer::around(piece);
        while input.pos() < piece.len() {
            encoder.run(&mut input, &mut output)?;
        }
        between();
    }
    match encoder.finish(&mut output, true)? {
        0 => Ok(frame),
        left => Err(io::Error::other(format!("zstd has no room for {left} bytes"))),
    }
}

/// A content that is packed ahead of the call that stores it.
#[derive(Debug)]
pub struct PackedContent {
    hash: ContentHash,
    bytes: usize,
    frame: Vec<u8>,
}

impl PackedContent {
    /// Packs a content that has this hash. Calls `between` every now and then, for what is more urgent.
    ///
    /// # Errors
    /// If zstd fails, such as for lack of memory.
    pub fn new(content: &[u8], hash: ContentHash, between: impl FnMut()) -> Result<Self, StoreError> {
        let frame = compress_in_pieces(content, between);
        let frame = frame.map_err(StoreError::io(Path::new("zstd"), "compressing a content"))?;
        Ok(Self { hash, bytes: content.len(), frame })
    }
}

/// A content to be stored: as it is, or packed.
#[derive(Debug, Clone, Copy)]
pub enum NewBytes<'a> {
    /// As it is.
    Plain(&'a [u8]),
    /// Packed ahead.
    Packed(&'a PackedContent),
}

impl<'a> From<&'a [u8]> for NewBytes<'a> {
    fn from(content: &'a [u8]) -> Self {
        Self::Plain(content)
    }
}

impl NewBytes<'_> {
    /// Its hash.
    pub fn hash(self) -> ContentHash {
        match self {
            Self::Plain(content) => ContentHash::new(content),
            Self::Packed(packed) => packed.hash,
        }
    }

    /// Its length in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Plain(content) => content.len(),
            Self::Packed(packed) => packed.bytes,
        }
    }
}

/// Creates the frames of many contents with one compressor, which is created only if needed.
#[derive(Default)]
pub struct Compressor(Option<FrameWriter>);

impl Compressor {
    /// The frame of a content.
    ///
    /// # Errors
    /// If zstd fails, such as for lack of memory.
    pub fn frame(&mut self, content: NewBytes<'_>) -> Result<Vec<u8>, StoreError> {
        let frame = match (content, &mut self.0) {
            (NewBytes::Packed(packed), _) => Ok(packed.frame.clone()),
            (NewBytes::Plain(content), _) if content.len() >= LARGE => compress(content),
            (NewBytes::Plain(content), Some(writer)) => writer.write(content),
            (NewBytes::Plain(content), none) => {
                FrameWriter::new().and_then(|writer| none.insert(writer).write(content))
            }
        };
        frame.map_err(StoreError::io(Path::new("zstd"), "compressing a content"))
    }
}

/// Creates frames. Setting one up costs more than compressing a small content: reuse it for many.
pub struct FrameWriter(zstd::bulk::Compressor<'static>);

impl FrameWriter {
    /// A writer at the usual level.
    pub fn new() -> io::Result<Self> {
        zstd::bulk::Compressor::new(COMPRESSION_LEVEL).map(Self)
    }

    /// The frame of a content.
    pub fn write(&mut self, content: &[u8]) -> io::Result<Vec<u8>> {
        self.0.compress(content)
    }
}

/// Reads frames in memory. Setting one up costs more than reading a small frame: reuse it for many.
pub struct FrameReader(zstd::bulk::Decompressor<'static>);

impl FrameReader {
    /// A reader.
    pub fn new() -> Result<Self, StoreError> {
        let made = zstd::bulk::Decompressor::new();
        made.map(Self).map_err(StoreError::io(Path::new("zstd"), "making a decompressor"))
    }

    /// The content of a frame, at most `limit` bytes long, or why it is invalid.
    pub fn read(&mut self, frame: &[u8], limit: usize, hash: ContentHash) -> Result<Vec<u8>, String> {
        let content = self.0.decompress(frame, limit).map_err(|error| error.to_string())?;
        if ContentHash::new(&content) != hash {
            return Err(other_hash());
        }
        Ok(content)
    }
}

/// Passes the content of a frame to `sink` piece by piece and returns its length, or why it cannot be read. What
/// `sink` received is valid only if this returns `Ok`: the hash is known at the end.
pub fn stream(frame: impl Read, hash: ContentHash, mut sink: impl FnMut(&[u8])) -> Result<u64, String> {
    let mut decoder = zstd::stream::read::Decoder::new(frame).map_err(|error| error.to_string())?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; zstd::zstd_safe::DCtx::out_size()];
    loop {
        let read = decoder.read(&mut buffer).map_err(|error| error.to_string())?;
        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
        hasher.update(piece);
        sink(piece);
    }
    if hasher.finalize().as_bytes() != hash.as_bytes() {
        return Err(other_hash());
    }
    Ok(hasher.count())
}

/// Why a content is not the one that is named.
pub fn other_hash() -> String {
    "its content has another hash".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_in_pieces_is_read_like_any_frame() {
        // Of a generator, so that zstd cannot shorten it.
        let bytes: Vec<u8> = (0..3 * PIECE as u64 + 1)
            .map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_mul(at | 1) >> 56) as u8)
            .collect();
        for length in [0, 1, PIECE, PIECE + 1, bytes.len()] {
            let content = &bytes[..length];
            let (hash, mut calls) = (ContentHash::new(content), 0);
            let packed = PackedContent::new(content, hash, || calls += 1).unwrap();
            assert_eq!(calls, length.div_ceil(PIECE));
            let frame = Compressor::default().frame(NewBytes::Packed(&packed)).unwrap();
            assert_eq!(zstd::zstd_safe::get_frame_content_size(&frame).unwrap(), Some(length as u64));
            assert_eq!(FrameReader::new().unwrap().read(&frame, length, hash).unwrap(), content);
        }
    }
}
