//! The fields of a request that a recipe or a conversation answers: which are obeyed, which are left out and listed, and
//! which are refused. Knows the names of all formats, and no messages.

use std::collections::BTreeSet;

use larder_proxy::wire::Request;
use serde_json::Value;

/// Characters of a name in a list, and entries of a list.
const SHOWN: usize = 64;
/// Characters of any other entry of a list.
const LONGEST: usize = 400;

/// What answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerer {
    /// A recipe.
    Recipe,
    /// A conversation type.
    Conversation,
}

/// The fields of a request as they were judged.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The most tokens that the reply may have.
    pub max_output: Option<usize>,
    /// Fields that are left out, such as `temperature`.
    pub ignored: Vec<String>,
    /// What is wrong with others, each with its name and what to do.
    pub problems: Vec<String>,
}

/// What becomes of a field that is not at its default.
enum Fate {
    /// It is obeyed, or means nothing without other fields.
    Obeyed,
    /// The most tokens of the reply.
    MaxOutput,
    /// Its members are fields themselves.
    Group,
    /// Left out and listed: a setting of the model, or unknown.
    Ignored,
    /// Refused, since the reply would have another form than the client expects, with the reason.
    Refused(Refusal),
}

enum Refusal {
    Choices,
    Tools,
    Form,
    Stop,
    Probabilities,
    Text,
    Background,
    Held,
    Place,
    Guardrails,
}

impl Fields {
    /// Judges every field of a request.
    pub fn judge(request: &Request<'_>, by: Answerer) -> Self {
        let mut judged = Self::default();
        // The messages themselves are read elsewhere: those of the first name here.
        let list = request.fields().any(|(name, raw)| name == "messages" && raw != "null");
        let read = if list { ["messages", "system"] } else { ["input", "instructions"] };
        for (name, raw) in request.fields().filter(|(name, _)| !read.contains(&&**name)) {
            let value = serde_json::from_str(raw).unwrap_or_else(|_| Value::from(raw));
            judged.field(&name, &value, by);
        }
        for list in [&mut judged.ignored, &mut judged.problems] {
            let mut seen = BTreeSet::new();
            list.retain(|entry| seen.insert(entry.clone()));
        }
        judged
    }

    fn field(&mut self, name: &str, value: &Value, by: Answerer) {
        if is_default(name, value) {
            return;
        }
        match fate(name) {
            Fate::Obeyed if name == "stream" && !value.is_boolean() => {
                self.problems.push(format!("{name}: send true or false, or leave it out"));
            }
            Fate::Obeyed => {}
            Fate::MaxOutput => match whole(value) {
                Some(most) if most > 0 => {
                    self.max_output = Some(self.max_output.map_or(most, |other| other.min(most)));
                }
                _ => self.problems.push(format!(
                    "{name}: it is the most tokens of the reply; send 1 or more, or leave it out"
                )),
            },
            Fate::Group if !value.is_object() => self.ignored.push(shown(name)),
            Fate::Group => {
                for (member, value) in value.as_object().into_iter().flatten() {
                    self.field(&format!("{name}.{member}"), value, by);
                }
            }
            Fate::Ignored => self.ignored.push(shown(name)),
            Fate::Refused(why) => self.problems.push(format!("{name}: {}", why.words(by))),
        }
    }
}

/// A name for a header and a record.
pub fn shown(name: &str) -> String {
    let ascii = |c: char| if c.is_ascii_graphic() && c != ',' || c == ' ' { c } else { '?' };
    name.chars().take(SHOWN).map(ascii).collect()
}

/// A list as it is reported, whose length does not follow that of the request.
pub fn capped(mut list: Vec<String>) -> Vec<String> {
    let more = list.len().saturating_sub(SHOWN);
    list.truncate(SHOWN);
    for entry in &mut list {
        if let Some((end, _)) = entry.char_indices().nth(LONGEST) {
            entry.replace_range(end.., "…");
        }
    }
    list.extend((more > 0).then(|| format!("and {more} more")));
    list
}

fn fate(name: &str) -> Fate {
    match name {
        "model"
        | "stream"
        | "stream_options"
        | "user"
        | "metadata"
        | "requestMetadata"
        | "safety_identifier"
        | "prompt_cache_key"
        | "prompt_cache_options"
        | "prompt_cache_retention"
        | "cache_control"
        | "parallel_tool_calls"
        | "max_tool_calls"
        | "anthropic_version"
        | "anthropic_beta" => Fate::Obeyed,
        "max_tokens" | "max_completion_tokens" | "max_output_tokens" | "inferenceConfig.maxTokens" => {
            Fate::MaxOutput
        }
        "text" | "output_config" | "inferenceConfig" | "outputConfig" | "toolConfig" => Fate::Group,
        "n" => Fate::Refused(Refusal::Choices),
        "tools"
        | "tool_choice"
        | "functions"
        | "function_call"
        | "mcp_servers"
        | "container"
        | "web_search_options"
        | "toolConfig.tools"
        | "toolConfig.toolChoice" => Fate::Refused(Refusal::Tools),
        "response_format"
        | "text.format"
        | "output_format"
        | "output_config.format"
        | "outputConfig.textFormat"
        | "guided_json"
        | "guided_regex"
        | "guided_choice"
        | "guided_grammar"
        | "structured_outputs" => Fate::Refused(Refusal::Form),
        "stop" | "stop_sequences" | "inferenceConfig.stopSequences" => Fate::Refused(Refusal::Stop),
        "logprobs" | "top_logprobs" => Fate::Refused(Refusal::Probabilities),
        "modalities" | "audio" | "image" => Fate::Refused(Refusal::Text),
        "background" => Fate::Refused(Refusal::Background),
        "previous_response_id"
        | "conversation"
        | "prompt"
        | "thread"
        | "promptVariables"
        | "messages"
        | "input" => Fate::Refused(Refusal::Held),
        "inference_geo" => Fate::Refused(Refusal::Place),
        "guardrailConfig" | "moderation" => Fate::Refused(Refusal::Guardrails),
        _ => Fate::Ignored,
    }
}

impl Refusal {
    fn words(&self, by: Answerer) -> String {
        let owner = match by {
            Answerer::Recipe => "recipe",
            Answerer::Conversation => "conversation type",
        };
        match self {
            Self::Choices => format!("a {owner} gives one reply to a request; leave it out or send 1"),
            Self::Tools => format!("a {owner} offers its model no tools of the client; leave it out"),
            Self::Form => format!("a {owner} sets the form of its reply itself; leave it out"),
            Self::Stop => format!("a {owner} gives its whole reply; leave it out and cut the reply yourself"),
            Self::Probabilities => format!("a {owner} gives no probabilities; leave it out"),
            Self::Text => format!("a {owner} replies in text alone; leave it out"),
            Self::Background => format!("a {owner} replies while the client waits; leave it out"),
            Self::Held => {
                let or = match by {
                    Answerer::Recipe => "",
                    Answerer::Conversation => ", or name the conversation in the header x-larder-session",
                };
                format!("a {owner} reads only what the request holds; send the messages themselves{or}")
            }
            Self::Place => "the model table says where a model runs; leave it out".to_owned(),
            Self::Guardrails => {
                format!("nothing checks the reply of a {owner} on behalf of the client; leave it out")
            }
        }
    }
}

/// Whether a value is what holds without the field, so that it changes nothing.
fn is_default(name: &str, value: &Value) -> bool {
    let (text, number) = (value.as_str(), value.as_f64());
    let kind = value["type"].as_str();
    match name {
        // Even an empty object asks for a search.
        "web_search_options" => value.is_null(),
        _ if is_empty(value) => true,
        "stop" | "stop_sequences" => text == Some(""),
        // Local servers take it for no limit.
        "max_tokens" | "max_completion_tokens" | "max_output_tokens" => number == Some(-1.0),
        "n" | "top_p" | "repetition_penalty" | "inferenceConfig.topP" => number == Some(1.0),
        "presence_penalty" | "frequency_penalty" | "top_logprobs" => number == Some(0.0),
        "logprobs" | "background" | "store" => *value == Value::Bool(false),
        "tool_choice" | "function_call" => matches!(text.or(kind), Some("auto" | "none")),
        "response_format" | "text.format" | "outputConfig.textFormat" => kind == Some("text"),
        "thinking" => kind == Some("disabled"),
        "truncation" => text == Some("disabled"),
        "service_tier" | "serviceTier" => matches!(text.or(kind), Some("auto" | "default")),
        "modalities" => value.as_array().is_some_and(|all| all.iter().all(|one| one == "text")),
        _ => false,
    }
}

/// A whole number, which some clients write as `1000.0`.
fn whole(value: &Value) -> Option<usize> {
    let text = value.as_number()?.to_string();
    text.strip_suffix(".0").unwrap_or(&text).parse().ok()
}

/// Whether a value says nothing: null, or a list or an object of nothing else.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => false,
    }
}
