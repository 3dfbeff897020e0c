//! Line numbers of byte positions. Knows nothing of the lines' content.

use std::ops::Range;

/// The lines of a text, without their ends, as [`str::lines`] has them. In large texts the ends are found several times
/// as fast.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes());
    let mut start = 0;
    ends.chain((!text.is_empty() && !text.ends_with('\n')).then_some(text.len())).map(move |end| {
        let line = &text[start..end];
        start = end + 1;
        // The last line may lack its line break, and then keeps what stands before one.
        if end < text.len() { line.strip_suffix('\r').unwrap_or(line) } else { line }
    })
}

/// Where the lines of a text are, each with its line break; they tile the text.
pub fn spans(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
    ends.chain(std::iter::once(text.len())).filter_map(move |end| {
        let range = std::mem::replace(&mut start, end)..end;
        (!range.is_empty()).then_some(range)
    })
}

/// Byte offsets of line starts; lines end at `\n` and are counted from 1.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<usize>,
    len: usize,
    /// The lines before the text.
    before: usize,
}

impl LineIndex {
    /// The lines of a text.
    pub fn of(text: &str) -> Self {
        let starts = std::iter::once(0)
            .chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1))
            .filter(|&start| start < text.len())
            .collect();
        Self { starts, len: text.len(), before: 0 }
    }

    /// The same lines, counted in a longer text that has so many lines before them.
    pub fn after(self, lines: usize) -> Self {
        Self { before: lines, ..self }
    }

    /// The length of the original in bytes.
    pub const fn text_len(&self) -> usize {
        self.len
    }

    /// The number of the line that contains byte `at`.
    pub fn number(&self, at: usize) -> usize {
        self.before + self.starts.partition_point(|&start| start <= at)
    }

    /// The numbers of the first and last line touched by `range`.
    pub fn touched(&self, range: &Range<usize>) -> (usize, usize) {
        (self.number(range.start), self.number(range.end.saturating_sub(1).max(range.start)))
    }

    /// Whether a line starts, or the text ends, at byte `at`.
    pub fn is_boundary(&self, at: usize) -> bool {
        at == self.len || self.starts.binary_search(&at).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{lines, spans};

    #[test]
    fn lines_are_those_of_the_standard_library() {
        for text in ["", "\n", "a", "a\n", "a\nb", "\na\r\n\r\nb\r", "a\r\n", "\r", "é\r\n\n\nß"] {
            assert_eq!(lines(text).collect::<Vec<_>>(), text.lines().collect::<Vec<_>>(), "{text:?}");
            let whole: Vec<&str> = spans(text).map(|span| &text[span]).collect();
            assert_eq!(whole, text.split_inclusive('\n').collect::<Vec<_>>(), "{text:?}");
        }
    }
}
