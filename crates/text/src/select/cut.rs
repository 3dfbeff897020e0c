//! Selects lines and bytes from streamed content. Knows nothing of text encodings.

use std::fmt;

use crate::pointer::Fragment;

use super::SelectError;

/// Cuts one fragment out of a content that arrives in pieces, and buffers only that fragment.
///
/// A line ends with and includes `\n`; text after the last `\n` is a line too unless it is empty.
pub struct Cutter {
    wanted: Fragment,
    out: Vec<u8>,
    /// Bytes seen so far.
    bytes: usize,
    /// Line breaks seen so far.
    breaks: usize,
    /// Whether the last byte seen was no line break.
    in_line: bool,
}

impl Cutter {
    /// Cuts this fragment out.
    pub const fn new(wanted: Fragment) -> Self {
        Self { wanted, out: Vec::new(), bytes: 0, breaks: 0, in_line: false }
    }

    /// Processes the next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        match self.wanted {
            Fragment::Bytes { start, end } => {
                let within = |at: usize| at.saturating_sub(self.bytes).min(piece.len());
                self.out.extend_from_slice(piece.get(within(start)..within(end)).unwrap_or_default());
            }
            Fragment::Lines { first, last } => self.feed_lines(piece, first, last),
        }
        self.bytes = self.bytes.saturating_add(piece.len());
    }

    fn feed_lines(&mut self, piece: &[u8], first: usize, last: usize) {
        for line in piece.split_inclusive(|&byte| byte == b'\n') {
            if (first..=last).contains(&(self.breaks + 1)) {
                self.out.extend_from_slice(line);
            }
            self.in_line = line.last() != Some(&b'\n');
            self.breaks += usize::from(!self.in_line);
        }
    }

    /// The fragment, or the bounds within which it should have been.
    pub fn finish(self) -> Result<Vec<u8>, SelectError> {
        match self.wanted {
            Fragment::Bytes { start, end } if start > end || end > self.bytes => {
                Err(SelectError::BytesOutOfRange { start, end, bytes: self.bytes })
            }
            Fragment::Lines { first, last } => {
                let lines = self.breaks + usize::from(self.in_line);
                // Who asks for more than there is gets what there is.
                if first == 0 || first > last || first > lines {
                    return Err(SelectError::LinesOutOfRange { first, last, lines });
                }
                Ok(self.out)
            }
            Fragment::Bytes { .. } => Ok(self.out),
        }
    }
}

/// One fragment of a content that is in memory.
pub(crate) fn cut(content: &[u8], wanted: Fragment) -> Result<Vec<u8>, SelectError> {
    let mut cutter = Cutter::new(wanted);
    cutter.feed(content);
    cutter.finish()
}

impl fmt::Debug for Cutter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cutter")
            .field("wanted", &self.wanted)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
