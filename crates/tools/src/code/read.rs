//! `file.read`: a text file of the workspace, whole or a range of lines.

use std::io::{BufRead, BufReader};

use larder_condense::ContentType;
use schemars::JsonSchema;
use serde::Deserialize;

use super::workspace::Workspace;
use crate::context::ToolContext;
use crate::private::PrivatePaths;
use crate::spec::{ToolError, ToolModes, ToolOutput, ToolSpec};
use crate::typed::TypedTool;

/// Bytes of a file that one call returns.
const MAX_BYTES: usize = 400_000;
/// Bytes that are read to reach the requested lines.
const MAX_SKIPPED: usize = 200_000_000;

pub(super) struct FileRead(pub(super) PrivatePaths);

/// Read a text file of the workspace, whole or a range of lines.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileReadArgs {
    /// the file, from the root of the workspace
    #[schemars(length(min = 1, max = 4_096))]
    path: String,
    /// first line, from 1
    #[schemars(range(min = 1, max = 1_000_000_000))]
    from: Option<usize>,
    /// last line
    #[schemars(range(min = 1, max = 1_000_000_000))]
    to: Option<usize>,
}

impl TypedTool for FileRead {
    type Args = FileReadArgs;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            max_bytes: MAX_BYTES + 1_000,
            modes: ToolModes::Code,
            ..ToolSpec::from_args::<FileReadArgs>("file.read")
        }
    }

    async fn run(&self, args: FileReadArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let FileReadArgs { path, from, to } = args;
        let file = Workspace::of(context, &self.0)?.file(&path)?;
        let first = from.unwrap_or(1).max(1);
        let last = to.unwrap_or(usize::MAX);
        // Reading blocks, so it runs on a thread that may.
        let reading = tokio::task::spawn_blocking(move || lines(&file, first, last));
        let read = reading.await.map_err(|error| ToolError::Failed(error.to_string()))?;
        let read = read.map_err(|error| ToolError::Failed(format!("{path:?} cannot be read: {error}")))?;
        read.output(&path, first)
    }
}

/// Consecutive lines of a file.
struct LineRange {
    bytes: Vec<u8>,
    count: usize,
    /// There is more than was read.
    cut: bool,
}

fn lines(file: &std::path::Path, first: usize, last: usize) -> std::io::Result<LineRange> {
    let mut reader = BufReader::new(std::fs::File::open(file)?);
    let mut read = LineRange { bytes: Vec::new(), count: 0, cut: false };
    let (mut line, mut number, mut passed) = (Vec::new(), 0, 0_usize);
    while number < last {
        line.clear();
        // A line may be as long as a file, so no more of it is read than could be kept.
        let length = std::io::Read::take(&mut reader, MAX_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        passed += length;
        let whole = line.ends_with(b"\n");
        if number + 1 >= first {
            if read.bytes.len() + length > MAX_BYTES {
                let room = MAX_BYTES - read.bytes.len();
                read.bytes.extend_from_slice(&line[..room.min(length)]);
                read.cut = true;
                break;
            }
            read.bytes.extend_from_slice(&line);
            read.count += 1;
        }
        if passed > MAX_SKIPPED {
            read.cut = true;
            break;
        }
        number += usize::from(whole);
    }
    Ok(read)
}

impl LineRange {
    fn output(mut self, path: &str, first: usize) -> Result<ToolOutput, ToolError> {
        if self.bytes.contains(&0) {
            return Err(ToolError::Failed(format!("{path:?} is not a text file")));
        }
        let end = first.saturating_add(self.count).saturating_sub(1);
        let mut summary = format!("{path}: lines {first} to {end}");
        if self.count == 0 && !self.cut {
            summary = format!("{path} has no line {first}");
        }
        if self.cut {
            summary = format!("{summary}; there is more: read on from line {}", end + 1);
            let note = format!("\n[cut after {} bytes; read on with from]\n", self.bytes.len());
            self.bytes.extend_from_slice(note.as_bytes());
        }
        Ok(ToolOutput::success(summary, self.bytes).typed(ContentType::Code))
    }
}
