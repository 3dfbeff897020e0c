//! Recorded replies: a folder of JSON files that replaces a provider, and the wrapper that records them. Knows
//! no provider.
//!
//! A file is found by the hash of the request (model, messages, tools, schema, `max_output`), so a prompt that
//! changed by a single byte finds none, and the error names the expected file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use larder_text::hash::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError};
use crate::decode;
use crate::secret::Secret;

/// The version of the file format.
const VERSION: u32 = 1;
/// Hexadecimal digits of the hash that file names carry.
const NAME_DIGITS: usize = 16;
/// Bytes a recording may have.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// One file.
#[derive(Debug, Serialize, Deserialize)]
struct Recording {
    version: u32,
    /// Hash of the request before redaction.
    hash: ContentHash,
    /// The request, for human readers; matching uses the hash.
    request: Value,
    reply: ChatReply,
}

/// A folder of recordings that answers like the recorded model.
#[derive(Debug)]
pub struct Replay {
    folder: PathBuf,
}

impl Replay {
    /// Answers from the recordings in `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn find(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let hash = hash(request);
        let path = self.folder.join(file_name(&request.model, hash));
        let wrong = |detail: String| ModelError::NotConfigured { provider: "replay".to_owned(), detail };
        let size = match std::fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let detail = format!(
                    "no reply is recorded for this request; expected the file {}. A prompt, tool or schema has \
                     changed, or the request is new: record it again",
                    path.display(),
                );
                return Err(wrong(detail));
            }
            Err(error) => return Err(wrong(format!("{}: {error}", path.display()))),
        };
        if size > MAX_FILE_BYTES {
            return Err(wrong(format!("{}: a recording has at most {MAX_FILE_BYTES} bytes", path.display())));
        }
        let recording =
            std::fs::read(&path).map_err(|error| wrong(format!("{}: {error}", path.display())))?;
        let recording: Recording = serde_json::from_slice(&recording)
            .map_err(|error| wrong(format!("{} is not a recording: {error}", path.display())))?;
        if recording.version != VERSION || recording.hash != hash {
            let detail = "its version or hash does not match the request it is named after: record it again";
            return Err(wrong(format!("{}: {detail}", path.display())));
        }
        Ok(recording.reply)
    }
}

impl ChatModel for Replay {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        ready(self.find(request)).boxed()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        decode::whole(self.chat(request))
    }
}

/// A model whose complete replies are recorded as they arrive. Errors are not recorded.
pub struct ReplayRecorder {
    inner: Arc<dyn ChatModel>,
    folder: PathBuf,
    secrets: Vec<Secret>,
}

impl ReplayRecorder {
    /// Records the replies of `inner` into `folder`; `secrets` are never written to a file.
    pub fn new(inner: Arc<dyn ChatModel>, folder: impl Into<PathBuf>, secrets: Vec<Secret>) -> Self {
        Self { inner, folder: folder.into(), secrets }
    }

    fn record(&self, request: &ChatRequest, reply: &ChatReply) -> Result<(), ModelError> {
        self.write(request, reply).map_err(|error| ModelError::NotConfigured {
            provider: "replay".to_owned(),
            detail: format!("the reply cannot be recorded in {}: {error}", self.folder.display()),
        })
    }

    fn write(&self, request: &ChatRequest, reply: &ChatReply) -> std::io::Result<()> {
        let hash = hash(request);
        let recording =
            Recording { version: VERSION, hash, request: canonical(request), reply: reply.clone() };
        let mut text = serde_json::to_string_pretty(&recording)?;
        for secret in &self.secrets {
            text = secret.redact(&text);
        }
        text.push('\n');
        std::fs::create_dir_all(&self.folder)?;
        let name = file_name(&request.model, hash);
        // A reader never sees a partial file, and of two writers one wins entirely.
        let draft = self.folder.join(format!(".{name}.{}", std::process::id()));
        let mut file = std::fs::File::create(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, self.folder.join(name))
    }
}

impl ChatModel for ReplayRecorder {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        async move {
            let reply = self.inner.chat(request).await?;
            self.record(request, &reply)?;
            Ok(reply)
        }
        .boxed()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        let record = move |event| async move {
            if let ChatEvent::Done(reply) = &event {
                self.record(request, reply)?;
            }
            Ok(event)
        };
        self.inner.stream(request).and_then(record).boxed()
    }
}

/// The hash that a request is matched by.
pub fn hash(request: &ChatRequest) -> ContentHash {
    ContentHash::new(canonical(request).to_string().as_bytes())
}

/// The parts of a request that identify it, with sorted object keys.
fn canonical(request: &ChatRequest) -> Value {
    sorted(json!({
        "model": request.model,
        "messages": request.messages,
        "tools": request.tools,
        "schema": request.schema,
        "max_output": request.max_output,
    }))
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(Map::from_iter(entries))
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

/// `gpt-x-0123456789abcdef.json`: readable, and safe for any model id.
fn file_name(model: &str, hash: ContentHash) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let slug: String = model.chars().map(safe).take(48).collect();
    let hex = hash.to_hex();
    format!("{}-{}.json", slug.trim_matches(['-', '.']), &hex[..NAME_DIGITS])
}

/// The file in `folder` that answers `request`.
pub fn recording_path(folder: &Path, request: &ChatRequest) -> PathBuf {
    folder.join(file_name(&request.model, hash(request)))
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
