//! `file.search`: lines of the workspace that match a pattern, as grep finds them. Links are not followed, and what
//! `.gitignore` names is skipped, as is what is Larder's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use larder_condense::ContentType;
use larder_text::words::counted;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::workspace::Workspace;
use crate::context::ToolContext;
use crate::private::PrivatePaths;
use crate::spec::{ToolError, ToolModes, ToolOutput, ToolSpec};
use crate::typed::TypedTool;

/// Larger files are skipped.
const MAX_FILE_BYTES: u64 = 2_000_000;
/// Matches that are shown by default, and at most.
const MATCHES: usize = 100;
const MAX_MATCHES: u64 = 1_000;
/// Characters of one line that are shown.
const MAX_LINE_CHARS: usize = 300;
/// Bytes that a compiled pattern may occupy.
const MAX_PATTERN_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct FileSearch(pub(super) PrivatePaths);

/// Find lines in the files of the workspace. Gives path, line number and line.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSearchArgs {
    /// a regular expression, matched within single lines
    #[schemars(length(min = 1, max = 1_000))]
    pattern: String,
    /// only below this folder, or in this file; everywhere by default
    #[schemars(length(min = 1, max = 4_096))]
    path: Option<String>,
    /// take the pattern as plain text
    #[serde(default)]
    literal: bool,
    /// match capital and small letters alike
    #[serde(default)]
    ignore_case: bool,
    /// how many lines to show; 100 by default
    #[schemars(range(min = 1, max = MAX_MATCHES))]
    limit: Option<usize>,
}

impl TypedTool for FileSearch {
    type Args = FileSearchArgs;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            timeout: TIMEOUT + Duration::from_secs(5),
            modes: ToolModes::Code,
            ..ToolSpec::from_args::<FileSearchArgs>("file.search")
        }
    }

    async fn run(&self, args: FileSearchArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let FileSearchArgs { pattern, path, literal, ignore_case, limit } = args;
        let pattern = if literal { regex::escape(&pattern) } else { pattern };
        let mut builder = RegexBuilder::new(&pattern);
        builder.case_insensitive(ignore_case).size_limit(MAX_PATTERN_BYTES);
        let pattern = builder.build().map_err(|error| {
            ToolError::Arguments(format!("the pattern cannot be used: {error}; set literal for plain text"))
        })?;
        let workspace = Workspace::of(context, &self.0)?;
        let start = match &path {
            Some(path) => workspace.place(path)?,
            None => workspace.root().to_owned(),
        };
        let search = WorkspaceSearch {
            workspace,
            pattern,
            limit: limit.unwrap_or(MATCHES),
            until: Instant::now() + context.budget.time(TIMEOUT),
        };
        let searching = tokio::task::spawn_blocking(move || search.below(start));
        let found = searching.await.map_err(|error| ToolError::Failed(error.to_string()))?;
        Ok(found.output())
    }
}

struct WorkspaceSearch {
    workspace: Workspace,
    pattern: Regex,
    limit: usize,
    until: Instant,
}

#[derive(Default)]
struct Matches {
    lines: String,
    matches: usize,
    files: usize,
    searched: usize,
    /// Why the search stopped early.
    ended: Option<&'static str>,
}

impl WorkspaceSearch {
    fn below(self, start: PathBuf) -> Matches {
        let mut found = Matches::default();
        let mut walk = ignore::WalkBuilder::new(start);
        walk.follow_links(false).require_git(false).max_filesize(Some(MAX_FILE_BYTES));
        walk.sort_by_file_name(std::ffi::OsStr::cmp);
        // Whole folders are left out on the way. The walker asks its filter of no file when it checks their sizes.
        let private = Arc::clone(self.workspace.private());
        walk.filter_entry(move |entry| !private.cover(entry.path()));
        let is_open = |path: &Path| !self.workspace.private().cover(path);
        for entry in walk.build().flatten() {
            if Instant::now() > self.until {
                found.ended = Some("time");
                break;
            }
            // Links are not followed, not even one that is named as the start.
            let plain = entry.path().symlink_metadata().is_ok_and(|data| data.is_file());
            if plain && is_open(entry.path()) && !self.search_file(entry.path(), &mut found) {
                found.ended = Some("limit");
                break;
            }
        }
        found
    }

    /// Adds the matches of one file; false when the limit is reached.
    fn search_file(&self, path: &Path, found: &mut Matches) -> bool {
        let Ok(bytes) = std::fs::read(path) else { return true };
        if bytes.iter().take(8_192).any(|byte| *byte == 0) {
            return true;
        }
        found.searched += 1;
        let name = self.workspace.name(path).into_owned();
        let text = String::from_utf8_lossy(&bytes);
        let before = found.matches;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| self.pattern.is_match(line)) {
            if found.matches >= self.limit {
                return false;
            }
            let shown: String = line.chars().take(MAX_LINE_CHARS).collect();
            found.lines.push_str(&format!("{name}:{}: {shown}\n", number + 1));
            found.matches += 1;
        }
        found.files += usize::from(found.matches > before);
        true
    }
}

impl Matches {
    fn output(self) -> ToolOutput {
        let Self { lines, matches, files, searched, ended } = self;
        let mut summary = format!(
            "{} in {}; {} searched",
            counted(matches as u64, "line"),
            counted(files as u64, "file"),
            counted(searched as u64, "file")
        );
        match ended {
            Some("limit") => summary.push_str("; there are more: narrow the pattern or the path"),
            Some(_) => summary.push_str("; the search ran out of time"),
            None => {}
        }
        ToolOutput::success(summary, lines).typed(ContentType::Generic)
    }
}
