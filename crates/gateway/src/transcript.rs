//! What a request adds to the transcript of its conversation (R3-4.35): its messages, and the reply as the client
//! received it.

use larder_proxy::window::Transcript;
use larder_store::{NewTranscript, Store, StoreError, TranscriptMessage, UserStore};

/// Maximum bytes of a reply in a transcript.
const MAX_REPLY_BYTES: usize = 1 << 20;

/// The messages of a request, and its reply so far.
pub struct TranscriptCapture {
    session: String,
    messages: Transcript,
    reply: CapturedReply,
}

impl TranscriptCapture {
    /// Starts a capture for a request of this conversation, with an empty reply.
    pub fn new(session: String, messages: Transcript) -> Self {
        Self { session, messages, reply: CapturedReply::default() }
    }

    /// Records more of the reply, as its client gets it.
    pub fn add(&mut self, bytes: &[u8]) {
        self.reply.add(bytes);
    }

    /// Bytes that it holds on to.
    pub fn size(&self) -> usize {
        self.messages.size().saturating_add(self.reply.kept.len())
    }

    /// The transcript entry at the end of the request.
    pub fn into_entry(self) -> TranscriptEntry {
        let Self { session, messages, reply } = self;
        TranscriptEntry { session, messages, reply: reply.into_bytes() }
    }
}

/// What a request adds to the transcript of its conversation.
pub struct TranscriptEntry {
    session: String,
    messages: Transcript,
    /// The reply as its client got it.
    reply: Option<Vec<u8>>,
}

impl TranscriptEntry {
    /// The bytes it holds in memory.
    pub fn size(&self) -> usize {
        self.messages.size().saturating_add(self.reply.as_ref().map_or(0, Vec::len))
    }

    /// Appends many to their transcripts; returns for each the branch that it became part of.
    pub fn append_all(store: &Store, all: &[(&UserStore, &Self)]) -> Vec<Result<u32, StoreError>> {
        let messages: Vec<Vec<TranscriptMessage<'_>>> =
            all.iter().map(|(_, entry)| entry.messages.messages().collect()).collect();
        let batch: Vec<_> = all
            .iter()
            .zip(&messages)
            .map(|((store, entry), messages)| NewTranscript {
                store,
                session: &entry.session,
                messages,
                reply: entry.reply.as_deref(),
            })
            .collect();
        store.append_transcripts(&batch).into_iter().map(|place| Ok(place?.branch)).collect()
    }
}

/// A reply as received by its client. Of a long one the beginning is kept, followed by a line that says how much is
/// missing.
#[derive(Debug, Default)]
struct CapturedReply {
    kept: Vec<u8>,
    missing: usize,
}

impl CapturedReply {
    fn add(&mut self, bytes: &[u8]) {
        let (kept, missing) =
            bytes.split_at(bytes.len().min(MAX_REPLY_BYTES.saturating_sub(self.kept.len())));
        self.kept.extend_from_slice(kept);
        self.missing = self.missing.saturating_add(missing.len());
    }

    fn into_bytes(mut self) -> Option<Vec<u8>> {
        if self.missing > 0 {
            let note = format!(
                "\n[larder: cut at {} bytes; {} more came and are not kept]\n",
                self.kept.len(),
                self.missing
            );
            self.kept.extend(note.into_bytes());
        }
        Some(self.kept).filter(|kept| !kept.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_kept_whole_or_says_where_it_is_cut() {
        let captured = |pieces: &[usize]| {
            let mut reply = CapturedReply::default();
            pieces.iter().for_each(|size| reply.add(&vec![b'x'; *size]));
            reply.into_bytes()
        };
        assert_eq!(captured(&[]), None);
        assert_eq!(captured(&[MAX_REPLY_BYTES - 1, 1]), Some(vec![b'x'; MAX_REPLY_BYTES]));
        // A piece that fits after one that did not would leave a hole.
        let cut = captured(&[MAX_REPLY_BYTES - 10, 100, 5]).unwrap();
        let note = format!("\n[larder: cut at {MAX_REPLY_BYTES} bytes; 95 more came and are not kept]\n");
        assert_eq!(cut, [vec![b'x'; MAX_REPLY_BYTES], note.into_bytes()].concat());
    }
}
