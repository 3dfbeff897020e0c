//! `file.search`: lines of the workspace that match a pattern, as grep finds them. Links are not followed, and what
//! `.gitignore` names is passed over.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use larder_condense::ContentType;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::workspace::Workspace;
use crate::arguments;
use crate::context::ToolContext;
use crate::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};

/// Larger files are passed over.
const LARGEST_FILE: u64 = 2_000_000;
/// Matches that are shown when nobody says how many, and at most.
const MATCHES: usize = 100;
const MOST_MATCHES: u64 = 1_000;
/// Characters of one line that are shown.
const LONGEST_LINE: usize = 300;
/// Bytes that a compiled pattern may take.
const LARGEST_PATTERN: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Search {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    limit: Option<usize>,
}

impl Search {
    pub(super) fn new() -> Self {
        let fields = json!({
            "pattern": arguments::text("a regular expression, matched within single lines", 1_000),
            "path": arguments::text("only below this folder, or in this file; everywhere if left out", 4_096),
            "literal": {"type": "boolean", "description": "take the pattern as plain text"},
            "ignore_case": {"type": "boolean", "description": "take capitals and small letters as the same"},
            "limit": arguments::number("how many lines to show; 100 if left out", 1, MOST_MATCHES),
        });
        let spec = ToolSpec {
            name: "file.search".to_owned(),
            description: "Find lines in the files of the workspace. Gives path, line number and line."
                .to_owned(),
            parameters: arguments::object(&["pattern"], fields),
            class: ToolClass::Read,
            summarizable: true,
            timeout: TIMEOUT + Duration::from_secs(5),
            max_bytes: 400_000,
            modes: ToolModes::Code,
        };
        Self { spec }
    }
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let Arguments { pattern, path, literal, ignore_case, limit } = arguments::read(arguments)?;
            let written = if literal { regex::escape(&pattern) } else { pattern };
            let mut builder = RegexBuilder::new(&written);
            builder.case_insensitive(ignore_case).size_limit(LARGEST_PATTERN);
            let pattern = builder.build().map_err(|error| {
                ToolError::Arguments(format!(
                    "the pattern cannot be used: {error}; set literal for plain text"
                ))
            })?;
            let workspace = Workspace::of(context)?;
            let start = match &path {
                Some(path) => workspace.place(path)?,
                None => workspace.root().to_owned(),
            };
            let until = Instant::now() + context.budget.time(TIMEOUT);
            let root = workspace.root().to_owned();
            let limit = limit.unwrap_or(MATCHES);
            let search = Job { root, pattern, limit, until };
            let searching = tokio::task::spawn_blocking(move || search.below(&start));
            let found = searching.await.map_err(|error| ToolError::Failed(error.to_string()))?;
            Ok(found.output())
        }
        .boxed()
    }
}

struct Job {
    root: PathBuf,
    pattern: Regex,
    limit: usize,
    until: Instant,
}

#[derive(Default)]
struct Found {
    lines: String,
    matches: usize,
    files: usize,
    searched: usize,
    /// Why the search ended before its end.
    ended: Option<&'static str>,
}

impl Job {
    fn below(&self, start: &Path) -> Found {
        let mut found = Found::default();
        let mut walk = ignore::WalkBuilder::new(start);
        walk.follow_links(false).require_git(false).max_filesize(Some(LARGEST_FILE));
        walk.sort_by_file_name(std::ffi::OsStr::cmp);
        for entry in walk.build().flatten() {
            if Instant::now() > self.until {
                found.ended = Some("time");
                break;
            }
            // A link is no file here, even one that is named as the place to begin.
            let plain = entry.path().symlink_metadata().is_ok_and(|data| data.is_file());
            if plain && !self.file(entry.path(), &mut found) {
                found.ended = Some("limit");
                break;
            }
        }
        found
    }

    /// False when the limit is reached.
    fn file(&self, path: &Path, found: &mut Found) -> bool {
        let Ok(bytes) = std::fs::read(path) else { return true };
        if bytes.iter().take(8_192).any(|byte| *byte == 0) {
            return true;
        }
        found.searched += 1;
        let name = path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&bytes);
        let before = found.matches;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| self.pattern.is_match(line)) {
            if found.matches >= self.limit {
                return false;
            }
            let shown: String = line.chars().take(LONGEST_LINE).collect();
            found.lines.push_str(&format!("{name}:{}: {shown}\n", number + 1));
            found.matches += 1;
        }
        found.files += usize::from(found.matches > before);
        true
    }
}

impl Found {
    fn output(self) -> ToolOutput {
        let Self { lines, matches, files, searched, ended } = self;
        let mut summary = format!("{matches} lines in {files} files; {searched} files searched");
        match ended {
            Some("limit") => summary.push_str("; there are more: narrow the pattern or the path"),
            Some(_) => summary.push_str("; not all: the time was up"),
            None => {}
        }
        ToolOutput::success(summary, lines).typed(ContentType::Generic)
    }
}
