//! What a request adds to the transcript of its conversation (R3-4.35): its messages, and its reply as the client got it.

use larder_proxy::window::Transcript;
use larder_store::{NewTranscript, Store, StoreError, TranscriptMessage, UserStore};

/// Bytes of a reply that a transcript keeps.
const MOST_TOLD: usize = 1 << 20;

/// A transcript with its conversation and the reply, to be kept when the request has ended.
pub struct TranscriptEntry {
    /// The conversation.
    pub session: String,
    /// The messages of the request.
    pub transcript: Transcript,
    /// What its client was told.
    pub reply: Option<Vec<u8>>,
}

impl TranscriptEntry {
    /// Keeps many; gives the branches of their conversations that they are.
    pub fn keep(store: &Store, all: &[(&UserStore, &Self)]) -> Vec<Result<u32, StoreError>> {
        let messages: Vec<_> = all.iter().map(|(_, said)| messages(&said.transcript)).collect();
        let batch: Vec<_> = all
            .iter()
            .zip(&messages)
            .map(|((store, said), messages)| NewTranscript {
                store,
                session: &said.session,
                messages,
                reply: said.reply.as_deref(),
            })
            .collect();
        store.append_transcripts(&batch).into_iter().map(|place| Ok(place?.branch)).collect()
    }
}

/// A reply as its client gets it. Of a long one the beginning is kept, and a last line that says what is not.
#[derive(Debug, Default)]
pub struct CapturedReply {
    kept: Vec<u8>,
    missing: usize,
}

impl CapturedReply {
    /// Takes down more of it.
    pub fn add(&mut self, bytes: &[u8]) {
        let (kept, missing) = bytes.split_at(bytes.len().min(MOST_TOLD.saturating_sub(self.kept.len())));
        self.kept.extend_from_slice(kept);
        self.missing = self.missing.saturating_add(missing.len());
    }

    /// What is to be kept of it, if anything was said.
    pub fn close(mut self) -> Option<Vec<u8>> {
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

fn messages(transcript: &Transcript) -> Vec<TranscriptMessage<'_>> {
    let messages = transcript.lines().map(|(line, raw)| TranscriptMessage {
        identity: line.identity,
        role: line.role,
        raw,
        sent: line.sent.as_deref().map(str::as_bytes),
        pointers: &line.pointers,
    });
    messages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_kept_whole_or_says_where_it_is_cut() {
        let told = |pieces: &[usize]| {
            let mut told = CapturedReply::default();
            pieces.iter().for_each(|size| told.add(&vec![b'x'; *size]));
            told.close()
        };
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[MOST_TOLD - 1, 1]), Some(vec![b'x'; MOST_TOLD]));
        // A piece that fits after one that did not would leave a hole.
        let cut = told(&[MOST_TOLD - 10, 100, 5]).unwrap();
        let note = format!("\n[larder: cut at {MOST_TOLD} bytes; 95 more came and are not kept]\n");
        assert_eq!(cut, [vec![b'x'; MOST_TOLD], note.into_bytes()].concat());
    }
}
