//! `file.read`: a text file of the workspace, whole or a range of lines.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_condense::ContentType;
use serde::Deserialize;
use serde_json::{Value, json};

use super::workspace::Workspace;
use crate::arguments;
use crate::context::ToolContext;
use crate::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};

/// Bytes of one file that are read out.
const MOST_BYTES: usize = 400_000;
/// Bytes that are read to get to the lines that are wanted.
const MOST_PASSED: usize = 200_000_000;

pub(super) struct Read {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    from: Option<usize>,
    to: Option<usize>,
}

impl Read {
    pub(super) fn new() -> Self {
        let fields = json!({
            "path": arguments::text("the file, from the root of the workspace", 4_096),
            "from": arguments::number("first line, from 1", 1, 1_000_000_000),
            "to": arguments::number("last line", 1, 1_000_000_000),
        });
        let spec = ToolSpec {
            name: "file.read".to_owned(),
            description: "Read a text file of the workspace, whole or a range of lines.".to_owned(),
            parameters: arguments::object(&["path"], fields),
            class: ToolClass::Read,
            summarizable: true,
            timeout: Duration::from_secs(30),
            max_bytes: MOST_BYTES + 1_000,
            modes: ToolModes::Code,
        };
        Self { spec }
    }
}

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let Arguments { path, from, to } = arguments::read(arguments)?;
            let file = Workspace::of(context)?.file(&path)?;
            let first = from.unwrap_or(1).max(1);
            let last = to.unwrap_or(usize::MAX);
            // Reading blocks, so it is done where that holds nobody up.
            let reading = tokio::task::spawn_blocking(move || lines(&file, first, last));
            let read = reading.await.map_err(|error| ToolError::Failed(error.to_string()))?;
            let read =
                read.map_err(|error| ToolError::Failed(format!("{path:?} cannot be read: {error}")))?;
            read.output(&path, first)
        }
        .boxed()
    }
}

/// Lines of a file.
struct Lines {
    bytes: Vec<u8>,
    count: usize,
    /// There is more than was read.
    cut: bool,
}

fn lines(file: &std::path::Path, first: usize, last: usize) -> std::io::Result<Lines> {
    let mut reader = BufReader::new(std::fs::File::open(file)?);
    let mut read = Lines { bytes: Vec::new(), count: 0, cut: false };
    let (mut line, mut number, mut passed) = (Vec::new(), 0, 0_usize);
    while number < last {
        line.clear();
        // A line may be as long as a file, so no more of it is read than could be kept.
        let length = std::io::Read::take(&mut reader, MOST_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        passed += length;
        let whole = line.ends_with(b"\n");
        if number + 1 >= first {
            if read.bytes.len() + length > MOST_BYTES {
                let room = MOST_BYTES - read.bytes.len();
                read.bytes.extend_from_slice(&line[..room.min(length)]);
                read.cut = true;
                break;
            }
            read.bytes.extend_from_slice(&line);
            read.count += 1;
        }
        if passed > MOST_PASSED {
            read.cut = true;
            break;
        }
        number += usize::from(whole);
    }
    Ok(read)
}

impl Lines {
    fn output(mut self, path: &str, first: usize) -> Result<ToolOutput, ToolError> {
        if self.bytes.contains(&0) {
            return Err(ToolError::Failed(format!("{path:?} is no text file")));
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
