//! The grammar of tagged answers, for models whose decoder can be held to one: the required tags in order, the others where
//! the model wants them, then the reply. In the Lark notation that llguidance and servers built on it read.

use std::fmt::Write as _;

use serde_json::Value;

use crate::recipe::{OutputFormat, OutputSpec, TagSpec};

/// Most characters of a text or field without a limit of its own.
const MAX_TEXT: u64 = 4_000;
const MAX_FIELD: u64 = 300;
/// Most alternatives that a range of integers is written out as.
const MAX_RANGE: i64 = 200;

/// The grammar of answers in a tagged format with a required tag; `None` for every other, which needs no help or has a
/// schema.
pub fn grammar(spec: &OutputSpec) -> Option<String> {
    let is_held = spec.format == OutputFormat::Tagged && spec.tags.iter().any(|tag| tag.required);
    if !is_held {
        return None;
    }
    let mut rules = Rules::default();
    let mut start = String::from("start:");
    // What must be there comes first: a model that has begun its reply seldom returns to its notes.
    let required = spec.tags.iter().filter(|tag| tag.required);
    for tag in required.chain(spec.tags.iter().filter(|tag| !tag.required)) {
        let body = rules.tag(tag)?;
        let _ = match (tag.required, tag.multiple) {
            (true, false) => write!(start, " {body}"),
            (true, true) => write!(start, " {body}+"),
            (false, false) => write!(start, " {body}?"),
            (false, true) => write!(start, " {body}*"),
        };
    }
    // A `<` that may begin a tag is none of the reply's.
    start.push_str(" REPLY\nREPLY: /[^ \\n<]([^<]|<[ =0-9])*/\n");
    Some(start + &rules.text)
}

#[derive(Default)]
struct Rules {
    text: String,
    count: usize,
}

impl Rules {
    fn add(&mut self, name: &str, body: &str) -> String {
        self.count += 1;
        // Terminals are upper case, rules lower case.
        let name = format!("{name}{}", self.count);
        let _ = writeln!(self.text, "{name}: {body}");
        name
    }

    fn tag(&mut self, tag: &TagSpec) -> Option<String> {
        let (open, close) = (quoted(&format!("<{}>\n", tag.name))?, quoted(&format!("</{}>\n\n", tag.name))?);
        let content = match &tag.schema {
            Some(schema) if schema.get("type").is_none_or(|kind| kind != "string") => self.fields(schema)?,
            schema => {
                let text = schema.as_ref().and_then(options).map_or_else(
                    || Some(text("[^<]", limit(schema.as_ref(), MAX_TEXT))),
                    |options| alternatives(&options),
                );
                format!("{} \"\\n\"", self.add("TEXT", &text?))
            }
        };
        Some(self.add("tag", &format!("{open} {content} {close}")))
    }

    /// The `Name: value` lines of an object.
    fn fields(&mut self, schema: &Value) -> Option<String> {
        let properties = schema.get("properties")?.as_object()?;
        let is_required =
            |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let mut lines = Vec::new();
        for (name, property) in properties {
            let value = self.value(property)?;
            let label = quoted(&format!("{name}: "))?;
            let line = self.add("line", &format!("{label} {value} \"\\n\""));
            lines.push(if is_required(name) { line } else { format!("{line}?") });
        }
        Some(lines.join(" "))
    }

    fn value(&mut self, property: &Value) -> Option<String> {
        let bound = |key: &str| property.get(key).and_then(Value::as_i64);
        let body = match (options(property), property["type"].as_str()) {
            (Some(options), _) => alternatives(&options)?,
            (None, Some("boolean")) => "\"true\" | \"false\"".to_owned(),
            (None, Some("integer")) => match (bound("minimum"), bound("maximum")) {
                (Some(min), Some(max)) if min <= max && max - min <= MAX_RANGE => {
                    alternatives(&(min..=max).map(|number| number.to_string()).collect::<Vec<_>>())?
                }
                _ => "/-?[0-9]{1,9}/".to_owned(),
            },
            (None, Some("number")) => "/-?[0-9]{1,9}(\\.[0-9]{1,6})?/".to_owned(),
            _ => text("[^\\n<]", limit(Some(property), MAX_FIELD)),
        };
        Some(self.add("VALUE", &body))
    }
}

fn options(schema: &Value) -> Option<Vec<String>> {
    let texts = schema.get("enum")?.as_array()?.iter();
    Some(texts.filter_map(|option| Some(option.as_str()?.to_owned())).collect())
}

fn limit(schema: Option<&Value>, most: u64) -> u64 {
    let declared = schema.and_then(|schema| schema.get("maxLength")?.as_u64());
    declared.unwrap_or(most).clamp(1, most)
}

/// At least one visible character, and at most so many in all.
fn text(class: &str, most: u64) -> String {
    format!("/[^ \\n<]{class}{{0,{}}}/", most.saturating_sub(1))
}

fn alternatives(texts: &[String]) -> Option<String> {
    let quoted: Option<Vec<String>> = texts.iter().map(|text| quoted(text)).collect();
    quoted.filter(|all| !all.is_empty()).map(|all| all.join(" | "))
}

/// A literal of the grammar.
fn quoted(text: &str) -> Option<String> {
    serde_json::to_string(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tagged_answer_is_its_required_tag_then_the_others_then_the_reply() {
        let tag = |name: &str, required: bool, schema: Option<Value>| TagSpec {
            name: name.to_owned(),
            required,
            multiple: false,
            hidden: required,
            inline: false,
            schema,
        };
        let fields = json!({
            "type": "object",
            "required": ["Mode", "Level"],
            "properties": {
                "Mode": {"type": "string", "enum": ["ASK", "TELL"]},
                "Level": {"type": "integer", "minimum": 1, "maximum": 3},
                "Why": {"type": "string", "maxLength": 20},
            },
        });
        let tags = vec![
            tag("draft", false, Some(json!({"type": "string", "maxLength": 9}))),
            tag("notes", true, Some(fields)),
        ];
        let spec = OutputSpec { format: OutputFormat::Tagged, schema: None, tags };
        let expected = r#"start: tag7 tag9? REPLY
REPLY: /[^ \n<]([^<]|<[ =0-9])*/
VALUE1: "ASK" | "TELL"
line2: "Mode: " VALUE1 "\n"
VALUE3: "1" | "2" | "3"
line4: "Level: " VALUE3 "\n"
VALUE5: /[^ \n<][^\n<]{0,19}/
line6: "Why: " VALUE5 "\n"
tag7: "<notes>\n" line2 line4 line6? "</notes>\n\n"
TEXT8: /[^ \n<][^<]{0,8}/
tag9: "<draft>\n" TEXT8 "\n" "</draft>\n\n"
"#;
        assert_eq!(grammar(&spec).unwrap(), expected);
        let free = OutputSpec { tags: vec![tag("promise", false, None)], ..spec };
        assert_eq!(grammar(&free), None, "nothing must be there");
    }
}
