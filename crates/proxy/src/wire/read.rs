//! Reading members of objects, each once, with errors that name the place. Knows no format.

use larder_text::json::{JsonError, Kind, Value};

/// A body that is not a request or reply of its dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON.
    #[error("the body is {0}")]
    Json(#[from] JsonError),
    /// A field has the wrong type.
    #[error("{path}: expected {expected} (byte {at} of the body)")]
    Shape {
        /// Where, as `messages[3].content`.
        path: String,
        /// What belongs there.
        expected: &'static str,
        /// The byte offset of the value, from 0.
        at: usize,
    },
    /// A field appears twice in one object. Parsers differ in which one they use, so what was counted might not be
    /// what is answered.
    #[error("{path}: this field appears twice in one object; send it once (byte {at} of the body)")]
    Twice {
        /// Where, as `messages[3].content`.
        path: String,
        /// The byte offset of the second value, from 0.
        at: usize,
    },
    /// There are too many messages.
    #[error("{count} messages; the maximum is {max} (max_messages under [gateway] in larder.toml)")]
    Messages {
        /// How many there are.
        count: usize,
        /// The maximum.
        max: usize,
    },
    /// An edit failed, which is a bug.
    #[error("the body could not be changed: {0}")]
    Edit(#[from] larder_text::json::EditError),
}

impl ReadError {
    pub(super) fn shape(path: impl Into<String>, value: Value<'_, '_>, expected: &'static str) -> Self {
        let path = Some(path.into()).filter(|path: &String| !path.is_empty());
        Self::Shape { path: path.unwrap_or_else(|| "the body".to_owned()), expected, at: value.span().start }
    }
}

/// The members of these names, `null` ones as if they were not there.
pub(super) fn fields<'d, 't, const N: usize>(
    object: Value<'d, 't>,
    path: &dyn Fn() -> String,
    names: [&str; N],
) -> Result<[Option<Value<'d, 't>>; N], ReadError> {
    let mut found: [Option<Value<'d, 't>>; N] = [None; N];
    if object.kind() != Kind::Object {
        return Err(ReadError::shape(path(), object, "an object"));
    }
    for (key, value) in object.members() {
        let Some(at) = names.iter().position(|name| key.is(name)) else { continue };
        if found[at].replace(value).is_some() {
            let path = join(&path(), names[at]);
            return Err(ReadError::Twice { path, at: value.span().start });
        }
    }
    Ok(found.map(|value| value.filter(|value| value.kind() != Kind::Null)))
}

/// The path of a member.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
