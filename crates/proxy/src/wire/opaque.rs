//! What of a message is not text: its kind, and what of it counts. Knows no tokens.

use larder_text::json::Value;

/// Something that is not text.
#[derive(Debug, Clone, Copy)]
pub struct Opaque<'b> {
    /// Its kind, for counting.
    pub kind: OpaqueKind,
    /// Its JSON.
    pub raw: &'b str,
    /// As much of that as the model is shown: thoughts without their signature.
    pub counted: &'b str,
}

/// The kind of an opaque part, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpaqueKind {
    /// A picture: its cost does not depend on its bytes.
    Image,
    /// A document or video, in base64 or elsewhere.
    File,
    /// Sound.
    Audio,
    /// Reasoning, readable or redacted: at most as many tokens as its text.
    Reasoning,
    /// Reasoning that only the provider can read: its length says how long it is.
    Sealed,
    /// Anything else: at most as many tokens as its text.
    Other,
}

impl OpaqueKind {
    /// The kind of a value, and what of it counts.
    pub(super) fn read<'d, 't>(value: Value<'d, 't>) -> (Self, Value<'d, 't>) {
        let within = |path: &[&str]| path.iter().try_fold(value, |value, name| value.given(name));
        let is = |path: &[&str], kind: &str| within(path).is_some_and(|value| value.is(kind));
        let name = value.given("type").and_then(Value::text);
        let kind = match name.as_deref().unwrap_or_default() {
            "image" | "image_url" | "input_image" | "computer_screenshot" | "image_generation_call" => {
                Self::Image
            }
            "audio" | "input_audio" => Self::Audio,
            // A document may be text, whole or in blocks.
            "document" if is(&["source", "type"], "text") || is(&["source", "type"], "content") => {
                Self::Other
            }
            "document" | "file" | "input_file" | "video_url" | "container_upload" => Self::File,
            "web_fetch_tool_result" if is(&["content", "content", "source", "type"], "base64") => Self::File,
            "thinking" | "redacted_thinking" | "reasoning" => {
                if let Some(seal) = value.given("encrypted_content") {
                    return (Self::Sealed, seal);
                }
                return (Self::Reasoning, value.given("thinking").unwrap_or(value));
            }
            _ => Self::Other,
        };
        (kind, value)
    }
}
