//! Whether the end of a Markdown text that arrives piece by piece is inside code: a span between backticks on one line, or
//! on several between three or more, or a fenced block, also in a quotation. Any chunking of the text gives the same answer.

/// The state after some text.
#[derive(Debug, Clone, Copy, Default)]
pub struct CodeState {
    /// The fence of the open block: its character and length.
    fence: Option<(char, usize)>,
    /// The length of the backticks that opened a span.
    span: Option<usize>,
    /// A run of backticks or tildes at the end of the text.
    run: Option<Run>,
    /// Whether this line has more than white space.
    in_line: bool,
    /// A run at the start of this line that opens a block, or ends one, if the rest of the line permits it.
    begins: Option<(char, usize)>,
    closes: bool,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    char: char,
    len: usize,
    starts_line: bool,
}

/// The length of the shortest fence.
const SHORTEST: usize = 3;

impl CodeState {
    /// Adds the next piece of the text.
    pub fn read(&mut self, text: &str) {
        for char in text.chars() {
            match &mut self.run {
                Some(run) if run.char == char => {
                    run.len += 1;
                    continue;
                }
                _ => self.end_run(),
            }
            match char {
                '`' | '~' => self.run = Some(Run { char, len: 1, starts_line: !self.in_line }),
                '\n' => self.end_line(),
                _ => {}
            }
            // A quotation may hold a block.
            if !char.is_whitespace() && (char != '>' || self.in_line) {
                self.in_line = true;
                // A run that follows decides for itself.
                self.closes &= matches!(char, '`' | '~');
            }
        }
    }

    /// Whether what follows is in code.
    pub fn is_inside(mut self) -> bool {
        self.end_run();
        self.fence.is_some() || self.span.is_some() || self.begins.is_some()
    }

    fn end_run(&mut self) {
        let Some(Run { char, len, starts_line }) = self.run.take() else { return };
        match (self.fence, self.begins) {
            (Some((fence, shortest)), _) => {
                self.closes = starts_line && char == fence && len >= shortest;
            }
            (None, _) if starts_line && char == '`' && self.span == Some(len) => self.span = None,
            (None, _) if starts_line && len >= SHORTEST => self.begins = Some((char, len)),
            // Backticks further on make a span of what began like a block.
            (None, Some(('`', opened))) if char == '`' => {
                self.begins = None;
                self.span = Some(opened).filter(|opened| *opened != len);
            }
            (None, None) if char == '`' => match self.span {
                None => self.span = Some(len),
                Some(opened) if opened == len => self.span = None,
                Some(_) => {}
            },
            _ => {}
        }
    }

    fn end_line(&mut self) {
        if self.closes {
            self.fence = None;
        }
        let fence = self.fence.or(self.begins);
        // A run as long as a fence opens a span of several lines, up to the end of the paragraph.
        let span = self.span.filter(|&len| len >= SHORTEST && self.in_line);
        *self = Self { fence, span, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_fences_are_code_and_nothing_else() {
        for (text, inside) in [
            ("", false),
            ("say `", true),
            ("say `x` and ", false),
            ("say ``a ` b", true),
            ("a lone ` on a line\n", false),
            ("```", true),
            ("```sh\n", true),
            ("text\n  ~~~\ncode\n", true),
            ("```\ncode\n``` no end\n", true),
            ("```\ncode\n```\n", false),
            ("````\n```\n", true),
            ("```a``` and ", false),
            ("~~struck~~ ", false),
            ("Run ```sh\ncode\n", true),
            ("Run ```sh\ncode\n``` later", false),
            ("Run ```sh\n\nlater", false),
            ("> ```\n> code\n", true),
            ("> ```\n> code\n> ```\nlater", false),
        ] {
            let mut whole = CodeState::default();
            whole.read(text);
            let mut pieces = CodeState::default();
            text.chars().for_each(|char| pieces.read(char.encode_utf8(&mut [0; 4])));
            assert_eq!((whole.is_inside(), pieces.is_inside()), (inside, inside), "{text:?}");
        }
    }
}
