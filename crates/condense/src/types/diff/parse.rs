//! Parses a diff into files, hunks and the text between them, as ranges of lines.
//!
//! Accepts any text: lines outside diffs are notes. Reads git's forms (including combined diffs), `diff -u`, `diff
//! -r` and svn's. A hunk's own line counts determine its end, so a diff of diffs is parsed correctly. Knows nothing
//! of tokens.

use std::ops::Range;

use larder_text::lines::spans;

/// The change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Added,
    Deleted,
    Modified,
    Renamed,
    Copied,
}

impl Status {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Deleted => "deleted",
            Self::Modified => "modified",
            Self::Renamed => "renamed",
            Self::Copied => "copied",
        }
    }
}

/// One hunk; its first line is the header.
#[derive(Debug)]
pub(super) struct Hunk {
    pub(super) lines: Range<usize>,
}

/// One file of a diff.
#[derive(Debug)]
pub(super) struct DiffFile {
    /// From its first header line to the last line before the next file.
    pub(super) lines: Range<usize>,
    /// The header lines, which the rendered name, status and counts replace.
    pub(super) header: Range<usize>,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    pub(super) status: Status,
    pub(super) binary: bool,
    pub(super) modes: [Option<String>; 2],
    pub(super) added: usize,
    pub(super) removed: usize,
    pub(super) hunks: Vec<Hunk>,
}

impl DiffFile {
    fn new(at: usize) -> Self {
        Self {
            lines: at..at,
            header: at..at,
            old: None,
            new: None,
            status: Status::Modified,
            binary: false,
            modes: [None, None],
            added: 0,
            removed: 0,
            hunks: Vec::new(),
        }
    }

    /// The name after the change, or the earlier one if the file was removed.
    pub(super) fn name(&self) -> &str {
        let named = match self.status {
            Status::Deleted => self.old.as_deref().or(self.new.as_deref()),
            _ => self.new.as_deref().or(self.old.as_deref()),
        };
        named.unwrap_or("(unnamed)")
    }
}

/// A parsed diff, by lines.
#[derive(Debug)]
pub(super) struct ParsedDiff {
    /// Every line with its line break.
    pub(super) lines: Vec<Range<usize>>,
    pub(super) files: Vec<DiffFile>,
    /// Text outside files and hunks, such as commit messages.
    pub(super) notes: Vec<Range<usize>>,
    /// Whether each line is added or removed.
    pub(super) changes: Vec<Option<FileChange>>,
    /// The numbers of lines added and removed before each line, and in all.
    pub(super) sums: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileChange {
    Added,
    Removed,
}

impl ParsedDiff {
    pub(super) fn parse(text: &str) -> Self {
        let lines: Vec<Range<usize>> = spans(text).collect();
        let changes = vec![None; lines.len()];
        let diff = Self { lines, files: Vec::new(), notes: Vec::new(), changes, sums: Vec::new() };
        let mut reader = DiffReader { text, diff, at: 0 };
        reader.read();
        let mut diff = reader.diff;
        let sums = diff.changes.iter().scan((0, 0), |(added, removed), change| {
            *added += usize::from(*change == Some(FileChange::Added));
            *removed += usize::from(*change == Some(FileChange::Removed));
            Some((*added, *removed))
        });
        diff.sums = std::iter::once((0, 0)).chain(sums).collect();
        diff
    }
}

/// Whether a line starts a file header in any supported form.
pub(super) fn starts_file(line: &str) -> bool {
    ["diff --git ", "diff --cc ", "diff --combined ", "diff -", "Index: "]
        .iter()
        .any(|sign| line.starts_with(sign))
}

/// Parses a hunk header: the line count of each old side, then of the new one, and the number of prefix columns.
pub(super) fn hunk_header(line: &str) -> Option<Vec<u64>> {
    let signs = line.bytes().take_while(|&byte| byte == b'@').count();
    if !(2..=17).contains(&signs) {
        return None;
    }
    let (ranges, _) = line[signs..].strip_prefix(' ')?.split_once(&line[..signs])?;
    let mut counts = Vec::new();
    for (index, range) in ranges.split_ascii_whitespace().enumerate() {
        let side = if index + 1 < signs { '-' } else { '+' };
        let mut numbers = range.strip_prefix(side)?.splitn(2, ',').map(|n| n.parse::<u64>().ok());
        numbers.next()??;
        counts.push(numbers.next().unwrap_or(Some(1))?);
    }
    (counts.len() == signs).then_some(counts)
}

struct DiffReader<'t> {
    text: &'t str,
    diff: ParsedDiff,
    at: usize,
}

impl<'t> DiffReader<'t> {
    fn line(&self, at: usize) -> Option<&'t str> {
        let range = self.diff.lines.get(at)?.clone();
        Some(self.text[range].trim_end_matches(['\n', '\r']))
    }

    fn read(&mut self) {
        while let Some(line) = self.line(self.at) {
            let next = self.line(self.at + 1).unwrap_or_default();
            if starts_file(line) || line.starts_with("--- ") && next.starts_with("+++ ") {
                self.read_file();
            } else if let Some(note) = bare_note(line) {
                self.at += 1;
                let mut file = DiffFile::new(self.at - 1);
                file.new = Some(note.0);
                file.binary = note.1;
                self.close(file, self.at);
            } else if hunk_header(line).is_some() {
                // A hunk without a file header.
                let file = DiffFile::new(self.at);
                self.read_hunks(file);
            } else {
                self.note();
            }
        }
    }

    /// Adds a line that belongs to no file.
    fn note(&mut self) {
        match self.diff.notes.last_mut() {
            Some(last) if last.end == self.at => last.end += 1,
            _ => self.diff.notes.push(self.at..self.at + 1),
        }
        self.at += 1;
    }

    fn read_file(&mut self) {
        let mut file = DiffFile::new(self.at);
        let first = self.line(self.at).unwrap_or_default();
        if !first.starts_with("--- ") {
            (file.old, file.new) = names_of_first_line(first);
            self.at += 1;
        }
        while let Some(line) = self.line(self.at) {
            let paired =
                line.starts_with("--- ") && self.line(self.at + 1).is_some_and(|l| l.starts_with("+++ "));
            if paired {
                let new = self.line(self.at + 1).unwrap_or_default();
                sides(&mut file, line, new);
                self.at += 2;
                break;
            }
            if !extend(&mut file, line) {
                break;
            }
            self.at += 1;
        }
        file.header.end = self.at;
        self.read_hunks(file);
    }

    fn read_hunks(&mut self, mut file: DiffFile) {
        while let Some(counts) = self.line(self.at).and_then(hunk_header) {
            let start = self.at;
            self.at += 1;
            self.read_body(&mut file, counts);
            file.hunks.push(Hunk { lines: start..self.at });
        }
        let end = self.at;
        self.close(file, end);
        self.read_binary();
    }

    /// Skips the rest of a binary patch, which belongs to its file and is never shown.
    fn read_binary(&mut self) {
        if self.line(self.at) != Some("GIT binary patch") {
            return;
        }
        while self.line(self.at).is_some_and(|line| !starts_file(line)) {
            self.at += 1;
        }
        if let Some(file) = self.diff.files.last_mut() {
            file.binary = true;
            file.lines.end = self.at;
        }
    }

    fn close(&mut self, mut file: DiffFile, end: usize) {
        file.lines.end = end;
        file.header.end = file.header.end.max(file.header.start);
        if file.header.is_empty() && file.hunks.is_empty() {
            file.header.end = end;
        }
        self.diff.files.push(file);
    }

    /// Reads the lines of a hunk, as many as its header states.
    fn read_body(&mut self, file: &mut DiffFile, mut left: Vec<u64>) {
        let columns = left.len() - 1;
        while let Some(line) = self.line(self.at) {
            if line.starts_with('\\') {
                self.at += 1;
                continue;
            }
            if left.iter().all(|&count| count == 0) {
                break;
            }
            // Some tools strip the leading space of an empty context line.
            let prefix: &[u8] =
                if line.is_empty() { b"" } else { line.as_bytes().get(..columns).unwrap_or(b"x") };
            if !prefix.iter().all(|byte| matches!(byte, b' ' | b'+' | b'-')) {
                break;
            }
            let sign = |at: usize| prefix.get(at).copied().unwrap_or(b' ');
            let removed = prefix.contains(&b'-');
            for (parent, count) in left[..columns].iter_mut().enumerate() {
                let stands = if removed { sign(parent) == b'-' } else { sign(parent) == b' ' };
                *count = count.saturating_sub(u64::from(stands));
            }
            left[columns] = left[columns].saturating_sub(u64::from(!removed));
            if removed {
                file.removed += 1;
                self.diff.changes[self.at] = Some(FileChange::Removed);
            } else if prefix.contains(&b'+') {
                file.added += 1;
                self.diff.changes[self.at] = Some(FileChange::Added);
            }
            self.at += 1;
        }
    }
}

/// `Only in a: b` and `Binary files a and b differ`, which `diff -r` writes without a header.
fn bare_note(line: &str) -> Option<(String, bool)> {
    if let Some((folder, name)) = line.strip_prefix("Only in ").and_then(|rest| rest.split_once(": ")) {
        return Some((format!("{folder}/{name} (only there)"), false));
    }
    let rest = line.strip_prefix("Binary files ").and_then(|rest| rest.strip_suffix(" differ"))?;
    Some((rest.rsplit_once(" and ")?.1.to_owned(), true))
}

fn names_of_first_line(line: &str) -> (Option<String>, Option<String>) {
    if let Some(rest) = line.strip_prefix("diff --git ") {
        return git_names(rest);
    }
    let rest = ["diff --cc ", "diff --combined ", "Index: "].iter().find_map(|sign| line.strip_prefix(sign));
    let name = rest.or_else(|| line.rsplit(' ').next());
    (None, name.map(unquoted))
}

/// Both names of `a/x b/x`; a name may contain spaces, so equal halves are tried first.
fn git_names(rest: &str) -> (Option<String>, Option<String>) {
    let both = |old: &str, new: &str| (Some(stripped(&unquoted(old))), Some(stripped(&unquoted(new))));
    if let Some(quoted) = rest.strip_prefix('"') {
        if let Some((old, new)) = quoted.split_once("\" ") {
            return both(&format!("\"{old}\""), new);
        }
        return (None, None);
    }
    let half = rest.len() / 2;
    if rest.as_bytes().get(half) == Some(&b' ') {
        let (old, new) = (&rest[..half], &rest[half + 1..]);
        if stripped(old) == stripped(new) {
            return both(old, new);
        }
    }
    rest.split_once(' ').map_or((None, None), |(old, new)| both(old, new))
}

/// Reads a line between the first header line and the hunks; false if it is not part of the header.
fn extend(file: &mut DiffFile, line: &str) -> bool {
    let after = |sign: &str| line.strip_prefix(sign).map(str::to_owned);
    if let Some(mode) = after("old mode ") {
        file.modes[0] = Some(mode);
    } else if let Some(mode) = after("new mode ") {
        file.modes[1] = Some(mode);
    } else if line.starts_with("deleted file mode ") {
        file.status = Status::Deleted;
    } else if line.starts_with("new file mode ") {
        file.status = Status::Added;
    } else if let Some(name) = after("rename from ") {
        (file.status, file.old) = (Status::Renamed, Some(unquoted(&name)));
    } else if let Some(name) = after("copy from ") {
        (file.status, file.old) = (Status::Copied, Some(unquoted(&name)));
    } else if let Some(name) = after("rename to ").or_else(|| after("copy to ")) {
        file.new = Some(unquoted(&name));
    } else if line.starts_with("Binary files ") || line.starts_with("Cannot display: file marked as a binary")
    {
        file.binary = true;
    } else {
        return ["index ", "similarity index ", "dissimilarity index ", "mode ", "=======", "svn:mime-type"]
            .iter()
            .any(|sign| line.starts_with(sign));
    }
    true
}

/// Reads the `---` and `+++` lines.
fn sides(file: &mut DiffFile, old: &str, new: &str) {
    let name = |line: &str| unquoted(line[4..].split('\t').next().unwrap_or_default());
    let (old, new) = (name(old), name(new));
    if old == "/dev/null" {
        file.status = Status::Added;
    } else if file.status != Status::Renamed && file.status != Status::Copied {
        file.old = Some(stripped(&old));
    }
    if new == "/dev/null" {
        file.status = Status::Deleted;
    } else if file.new.is_none() {
        file.new = Some(stripped(&new));
    }
}

/// The name without git's `a/` or `b/`.
fn stripped(name: &str) -> String {
    let bare = ["a/", "b/", "i/", "w/", "c/", "o/"].iter().find_map(|side| name.strip_prefix(side));
    bare.unwrap_or(name).to_owned()
}

/// Decodes a name quoted by git: in quotation marks, with octal escapes.
fn unquoted(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return name.to_owned();
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match (byte, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = &tail[3..];
            }
            (b'\\', [b'"' | b'\\', ..]) => {
                bytes.push(tail[0]);
                rest = &tail[1..];
            }
            _ => bytes.push(byte),
        }
    }
    // Control characters and invalid UTF-8 stay quoted, so that a name is one line.
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => text,
        _ => name.to_owned(),
    }
}
