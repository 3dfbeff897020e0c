//! The readable text of a stored message or reply, in any of the formats, complete or streamed. Reads
//! leniently; anything it does not understand is kept unchanged.

use larder_text::message::ToolCall;
use serde_json::Value;

/// The content of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MessageText {
    /// Its text. Anything else is named: `[image_url]`.
    pub text: String,
    /// The tools that it calls.
    pub calls: Vec<ToolCall>,
    /// The ids of the calls whose results it contains.
    pub answers: Vec<String>,
    /// Of each call, its index in a stream of chat completions.
    indexes: Vec<Option<u64>>,
}

/// Calls that are read of one streamed reply.
const MAX_CALLS: usize = 1_024;

/// Members in which messages, replies, items and parts have their text.
const PLACES: [&str; 13] = [
    "reasoning_content",
    "reasoningContent",
    "reasoningText",
    "thinking",
    "summary",
    "text",
    "refusal",
    "content",
    "output",
    "message",
    "choices",
    "tool_calls",
    "error",
];

impl MessageText {
    /// A message with only this text.
    pub fn from_text(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// Parses stored bytes.
    pub fn read(payload: &[u8]) -> Self {
        let text = String::from_utf8_lossy(payload);
        let mut words = Self::default();
        if let Ok(message @ Value::Object(_)) = serde_json::from_str(&text) {
            words.take(&message);
            return words;
        }
        if text.lines().any(|line| line.starts_with("data:")) {
            text.lines().for_each(|line| words.line(line));
        }
        if words == Self::default() {
            words.text = text.into_owned();
        }
        words
    }

    fn say(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn take(&mut self, of: &Value) {
        let kind = text(of, "type");
        let id = ["tool_call_id", "tool_use_id"].into_iter().find(|key| of[key].is_string());
        let id = id.or_else(|| kind.ends_with("_call_output").then_some("call_id"));
        self.answers.extend(id.map(|key| text(of, key).to_owned()));
        if kind == "tool_use" || (kind.ends_with("_call") && of["call_id"].is_string()) {
            let id = if kind == "tool_use" { "id" } else { "call_id" };
            return self.call(text(of, id), of, kind);
        }
        if let Some(call) = of.get("toolUse") {
            return self.call(text(call, "toolUseId"), call, kind);
        }
        if let Some(result) = of.get("toolResult") {
            self.answers.push(text(result, "toolUseId").to_owned());
            return self.within(&result["content"]);
        }
        if let Some(inner) = ["function", "custom"].into_iter().find_map(|key| of.get(key)) {
            return self.call(text(of, "id"), inner, kind);
        }
        if let Some(inner) = of.get("function_call").filter(|call| call.is_object()) {
            self.call("", inner, kind);
        }
        let mut known = false;
        for place in PLACES {
            let Some(said) = of.get(place) else { continue };
            known = true;
            match said {
                Value::Array(_) if place == "choices" => {
                    first_choice(said).into_iter().for_each(|choice| self.take(choice));
                }
                _ => self.within(said),
            }
        }
        if !known && !kind.is_empty() {
            self.say(&format!("[{kind}]"));
        }
    }

    fn within(&mut self, said: &Value) {
        match said {
            Value::String(text) => self.say(text),
            Value::Array(all) => all.iter().for_each(|one| self.within(one)),
            Value::Object(_) => self.take(said),
            _ => {}
        }
    }

    fn call(&mut self, id: &str, of: &Value, kind: &str) {
        let name = Some(text(of, "name")).filter(|name| !name.is_empty()).unwrap_or(kind);
        let arguments = ["arguments", "input", "action", "operation"].into_iter().find_map(|key| of.get(key));
        let arguments =
            arguments.map(|given| given.as_str().map_or_else(|| given.to_string(), str::to_owned));
        let (id, name) = (id.to_owned(), name.to_owned());
        self.push(ToolCall { id, name, arguments: arguments.unwrap_or_default() }, None);
    }

    /// A line of a stream, or the note after a truncated one.
    fn line(&mut self, line: &str) {
        if line.starts_with("[larder: ") {
            return self.say(line);
        }
        let event = line.strip_prefix("data:").and_then(|data| serde_json::from_str(data).ok());
        if let Some(event @ Value::Object(_)) = event {
            self.event(&event);
        }
    }

    fn event(&mut self, event: &Value) {
        match text(event, "type") {
            // The whole reply once more.
            "response.completed" | "response.incomplete" | "response.failed" => {
                *self = Self::default();
                self.take(&event["response"]);
            }
            "response.output_text.delta" | "response.refusal.delta" => self.text += text(event, "delta"),
            "content_block_start" => {
                let block = &event["content_block"];
                self.take(block);
                if let Some(call) = self.calls.last_mut().filter(|_| block["type"] == "tool_use") {
                    // They arrive in pieces.
                    call.arguments.clear();
                }
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                self.text += text(delta, "thinking");
                self.text += text(delta, "text");
                if let Some(call) = self.calls.last_mut() {
                    call.arguments += text(delta, "partial_json");
                }
            }
            "error" => self.take(event),
            _ => match first_choice(&event["choices"]) {
                Some(choice) => self.delta(&choice["delta"]),
                None => self.block(event),
            },
        }
    }

    /// An event of Bedrock's `ConverseStream`.
    fn block(&mut self, event: &Value) {
        if let Some(call) = event["start"].get("toolUse") {
            self.call(text(call, "toolUseId"), call, "");
        }
        let delta = &event["delta"];
        self.text += text(&delta["reasoningContent"], "text");
        self.text += text(delta, "text");
        if let Some(call) = self.calls.last_mut() {
            call.arguments += text(&delta["toolUse"], "input");
        }
    }

    /// A piece of a streamed chat completion.
    fn delta(&mut self, delta: &Value) {
        self.text += text(delta, "reasoning_content");
        self.text += text(delta, "content");
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let (id, inner) = (text(piece, "id"), &piece["function"]);
            if let Some(call) = self.call_of(id, piece["index"].as_u64()) {
                call.name += text(inner, "name");
                call.arguments += text(inner, "arguments");
            }
        }
    }

    fn push(&mut self, call: ToolCall, index: Option<u64>) {
        self.calls.push(call);
        self.indexes.push(index);
    }

    /// The call that a fragment belongs to. Some servers send no index, or the same one for every call: then a
    /// different id starts a new call.
    fn call_of(&mut self, id: &str, index: Option<u64>) -> Option<&mut ToolCall> {
        let known = match index {
            Some(_) => self.indexes.iter().rposition(|known| *known == index),
            None => self.calls.len().checked_sub(1),
        };
        let same = |call: &ToolCall| id.is_empty() || call.id.is_empty() || call.id == id;
        let at = known.filter(|at| self.calls.get(*at).is_some_and(same)).unwrap_or(self.calls.len());
        if at == self.calls.len() && at < MAX_CALLS {
            let (id, name, arguments) = Default::default();
            self.push(ToolCall { id, name, arguments }, index);
        }
        let call = self.calls.get_mut(at)?;
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        Some(call)
    }
}

/// The first of several choices, whose index identifies it if nothing else does. A chunk may contain none of it.
fn first_choice(choices: &Value) -> Option<&Value> {
    let numbered = |(at, choice): &(u64, &Value)| choice["index"].as_u64().unwrap_or(*at) == 0;
    (0..).zip(choices.as_array()?).find(numbered).map(|(_, choice)| choice)
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, the calls as `name(arguments)`, and the answers.
    fn read(payload: &str) -> (String, Vec<String>, Vec<String>) {
        let words = MessageText::read(payload.as_bytes());
        let calls = words.calls.iter().map(|call| format!("{} {}({})", call.id, call.name, call.arguments));
        (words.text, calls.collect(), words.answers)
    }

    #[test]
    fn messages_of_every_format_are_read() {
        for (message, text, calls, answers) in [
            (r#"{"role":"user","content":"one\ntwo"}"#, "one\ntwo", "", ""),
            (
                r#"{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{}}]}"#,
                "see\n[image_url]",
                "",
                "",
            ),
            (
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}"#,
                "",
                r#"c f({"a":1})"#,
                "",
            ),
            (r#"{"role":"tool","tool_call_id":"c","content":"got"}"#, "got", "", "c"),
            (
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":""},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]}"#,
                "hm",
                r#"t f({"a":1})"#,
                "",
            ),
            (
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"got"}]}]}"#,
                "got",
                "",
                "t",
            ),
            (r#"{"type":"function_call","call_id":"r","name":"f","arguments":"{}"}"#, "", "r f({})", ""),
            (r#"{"type":"function_call_output","call_id":"r","output":"got"}"#, "got", "", "r"),
            ("[… L1-9 lp1-x]", "[… L1-9 lp1-x]", "", ""),
            ("{\"cut\": \"in\n[larder: cut]", "{\"cut\": \"in\n[larder: cut]", "", ""),
        ] {
            let list = |one: &str| Some(one.to_owned()).filter(|one| !one.is_empty()).into_iter().collect();
            assert_eq!(read(message), (text.to_owned(), list(calls), list(answers)), "{message}");
        }
    }

    #[test]
    fn replies_are_read_whole_and_streamed() {
        let whole =
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello."}}],"object":"x"}"#;
        assert_eq!(read(whole).0, "Hello.");
        let whole = r#"{"object":"response","text":{"dialect":{"type":"text"}},"output":[{"type":"message","content":[{"type":"output_text","text":"Hello."}]}]}"#;
        assert_eq!(read(whole).0, "Hello.");
        let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"lo.\",\
            \"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n\
            data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]}}]}\n\ndata: [DONE]\n\n";
        assert_eq!(read(chat), ("Hello.".to_owned(), vec!["c f({})".to_owned()], vec![]));
        let messages = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
            data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello.\"}}\n\n\
            data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}\n\n\
            data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n";
        assert_eq!(read(messages), ("Hello.".to_owned(), vec!["t f({})".to_owned()], vec![]));
        let responses = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hel\"}\n\n\
            data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hello.\"}]}]}}\n\n";
        assert_eq!(read(responses).0, "Hello.");
    }

    #[test]
    fn of_several_choices_the_first_is_read() {
        let whole = r#"{"choices":[{"index":1,"message":{"content":"Two."}},{"index":0,"message":{"content":"One."}}]}"#;
        assert_eq!(read(whole).0, "One.");
        let unnumbered = r#"{"choices":[{"message":{"content":"One."}},{"message":{"content":"Two."}}]}"#;
        assert_eq!(read(unnumbered).0, "One.");
        let chunk = |index: u64, text: &str| {
            format!("data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
        };
        let streamed = [chunk(0, "On"), chunk(1, "Tw"), chunk(1, "o."), chunk(0, "e.")].concat();
        assert_eq!(read(&streamed).0, "One.");
    }

    #[test]
    fn a_new_id_starts_a_new_call_at_any_index() {
        let piece = |index: &str, id: &str, name: &str, arguments: &str| {
            let function = serde_json::json!({"name": name, "arguments": arguments});
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{{index}\"id\":\"{id}\",\"function\":{function}}}]}}}}]}}\n\n"
            )
        };
        for index in ["\"index\":0,", ""] {
            let stream =
                [piece(index, "a", "f", "{"), piece(index, "", "", "}"), piece(index, "b", "g", "[]")];
            assert_eq!(read(&stream.concat()).1, ["a f({})", "b g([])"], "{index}");
        }
        let apart = |at: u64| format!("\"index\":{at},");
        let stream = [
            piece(&apart(0), "a", "f", ""),
            piece(&apart(1), "b", "g", ""),
            piece(&apart(0), "", "", "{}"),
            piece(&apart(1), "b", "", "[]"),
        ];
        assert_eq!(read(&stream.concat()).1, ["a f({})", "b g([])"]);
    }

    #[test]
    fn a_stream_that_was_cut_says_so() {
        let cut = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"cho\n[larder: cut at 9 bytes]\n";
        assert_eq!(read(cut).0, "Hel\n[larder: cut at 9 bytes]");
    }
}
