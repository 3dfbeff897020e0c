//! Paths that name the model and say whether the reply is streamed, as Amazon Bedrock's do. Knows no body.

use super::dialect::ApiDialect;

/// The beginning of these paths.
pub(super) const PREFIX: &str = "/model/";
/// The last part of each, its dialect, and whether it asks for a stream.
const OPERATIONS: [(&str, ApiDialect, bool); 4] = [
    ("converse", ApiDialect::Converse, false),
    ("converse-stream", ApiDialect::Converse, true),
    ("invoke", ApiDialect::Invoke, false),
    ("invoke-with-response-stream", ApiDialect::Invoke, true),
];
/// What the ids of models have that take Anthropic's messages by `InvokeModel`; each maker has a format of its own.
const ANTHROPIC: &str = "anthropic.";

/// The model and the operation that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPath {
    /// What the body is written in.
    pub dialect: ApiDialect,
    /// The model, or an inference profile, by id or ARN.
    pub model: String,
    /// Whether the reply is to be streamed.
    pub stream: bool,
    operation: &'static str,
}

impl ModelPath {
    /// Reads a path, without its query.
    pub fn read(path: &str) -> Option<Self> {
        let (model, last) = path.strip_prefix(PREFIX)?.rsplit_once('/')?;
        let &(operation, dialect, stream) = OPERATIONS.iter().find(|(operation, ..)| *operation == last)?;
        let model = decoded(model)?;
        let is_known = dialect != ApiDialect::Invoke || model.contains(ANTHROPIC);
        (is_known && !model.is_empty()).then_some(Self { dialect, model, stream, operation })
    }

    /// The path of the same operation of another model.
    pub fn with_model(&self, model: &str) -> String {
        let byte = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        };
        format!("{PREFIX}{}/{}", model.bytes().map(byte).collect::<String>(), self.operation)
    }
}

/// The text behind percent escapes.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_named_in_any_spelling() {
        let arn = "arn:aws:bedrock:us-east-1:1:application-inference-profile/a";
        for (path, model, dialect, stream) in [
            (
                "/model/us.anthropic.claude-v1%3A0/converse",
                "us.anthropic.claude-v1:0",
                ApiDialect::Converse,
                false,
            ),
            ("/model/amazon.nova:0/converse-stream", "amazon.nova:0", ApiDialect::Converse, true),
            (
                "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fa/converse",
                arn,
                ApiDialect::Converse,
                false,
            ),
            ("/model/anthropic.claude/invoke", "anthropic.claude", ApiDialect::Invoke, false),
            (
                "/model/anthropic.claude/invoke-with-response-stream",
                "anthropic.claude",
                ApiDialect::Invoke,
                true,
            ),
        ] {
            let read = ModelPath::read(path).unwrap();
            assert_eq!((read.model.as_str(), read.dialect, read.stream), (model, dialect, stream));
            assert_eq!(ModelPath::read(&read.with_model(arn)).map(|path| path.model).as_deref(), {
                (dialect == ApiDialect::Converse).then_some(arn)
            });
        }
    }

    #[test]
    fn other_paths_name_none() {
        for path in [
            "/model/amazon.titan-embed-text-v2%3A0/invoke",
            "/model/m/count-tokens",
            "/model//converse",
            "/model/%zz/converse",
            "/model/%ff/converse",
            "/model/converse",
            "/v1/messages",
            "",
        ] {
            assert_eq!(ModelPath::read(path), None, "{path}");
        }
    }
}
