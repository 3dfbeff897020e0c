//! Terse JSON can be read back to the same value, whatever the value, and takes fewer tokens.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use larder_condense::terse_json;
use larder_text::tokens::Counter;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A reader of the terse form, written from its description.
struct Reader<'t>(&'t str);

impl<'t> Reader<'t> {
    fn took(&mut self, sign: &str) -> bool {
        let rest = self.0.strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn quoted(&mut self) -> Option<String> {
        if !self.0.starts_with('"') {
            return None;
        }
        let mut values = serde_json::Deserializer::from_str(self.0).into_iter::<String>();
        let text = values.next().unwrap().unwrap();
        self.0 = &self.0[values.byte_offset()..];
        Some(text)
    }

    fn until(&mut self, ends: &[char]) -> &'t str {
        let (text, rest) = self.0.split_at(self.0.find(ends).unwrap_or(self.0.len()));
        self.0 = rest;
        text
    }

    fn name(&mut self) -> String {
        self.quoted()
            .unwrap_or_else(|| self.until(&[',', '{', '}', '[', ']', '|', ':', '.', '\n']).to_owned())
    }

    fn value(&mut self, ends: &[char]) -> Value {
        if let Some(text) = self.quoted() {
            return Value::String(text);
        }
        if self.took("{") {
            let mut members = Map::new();
            while !self.took("}") {
                let name = self.name();
                assert!(self.took(":"), "{}", self.0);
                members.insert(name, self.value(&[',', '}']));
                self.took(", ");
            }
            return Value::Object(members);
        }
        if self.took("[") {
            if let Some(rows) = self.table() {
                return rows;
            }
            let mut items = Vec::new();
            while !self.took("]") {
                items.push(self.value(&[',', ']']));
                self.took(", ");
            }
            return Value::Array(items);
        }
        let bare = self.until(ends);
        serde_json::from_str(bare).unwrap_or_else(|_| Value::String(bare.to_owned()))
    }

    fn table(&mut self) -> Option<Value> {
        let start = self.0;
        let mut columns = vec![Vec::new()];
        loop {
            columns.last_mut()?.push(self.name());
            if self.took("|") {
                columns.push(Vec::new());
            } else if self.took("\n") {
                break;
            } else if !self.took(".") {
                self.0 = start;
                return None;
            }
        }
        let mut rows = Vec::new();
        while !self.took("]") {
            let mut row = Value::Object(Map::new());
            for (index, path) in columns.iter().enumerate() {
                assert!(index == 0 || self.took("|"), "{}", self.0);
                if self.0.starts_with(['|', '\n']) {
                    continue;
                }
                let cell = self.value(&['|', '\n']);
                *path.iter().fold(&mut row, |inside, name| &mut inside[name]) = cell;
            }
            assert!(self.took("\n"), "{}", self.0);
            rows.push(row);
        }
        Some(Value::Array(rows))
    }
}

fn read(terse: &str) -> Value {
    let mut reader = Reader(terse);
    let value = reader.value(&[]);
    assert_eq!(reader.0, "", "left over of {terse}");
    value
}

fn values() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "",
        " ",
        "a",
        "true",
        "null",
        "12",
        "007",
        "-1.5e3",
        "NaN",
        "a, b",
        "a|b",
        "a.b",
        "x:y",
        "[1]",
        "{",
        "]",
        "},",
        "\"",
        "\\",
        "line\nbreak",
        "é",
        "\u{1}",
        "2024-05-01T10:00:00Z",
        "https://example.org/?a=1&b=2",
        "two words",
        "\\ud800",
        "🦀",
    ]);
    let leaf = prop_oneof![
        words.clone().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 80, 6, move |inner| {
        let names = prop_oneof![words.clone().prop_map(str::to_owned), "[a-c]", "[a-c]\\.[a-c]"];
        let object = prop::collection::vec((names.clone(), inner.clone()), 0..5)
            .prop_map(|members| Value::Object(members.into_iter().collect()));
        let rows =
            (prop::collection::vec(names, 1..4), prop::collection::vec(inner.clone(), 8..24), 1..5_usize)
                .prop_map(|(names, values, rows)| {
                    let mut values = values.into_iter().cycle();
                    let row = |n: usize| {
                        let kept = names.iter().enumerate().filter(|(at, _)| at + n != 3);
                        kept.map(|(_, name)| (name.clone(), values.next().unwrap())).collect()
                    };
                    Value::Array((0..rows).map(row).map(Value::Object).collect())
                });
        prop_oneof![object, rows, prop::collection::vec(inner, 0..5).prop_map(Value::Array)]
    })
}

proptest! {
    #[test]
    fn any_value_is_read_back(value in values(), pretty: bool, ascii: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let escaped = |c: char| match c {
            ' '..='~' | '\n' => c.to_string(),
            _ => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        };
        let text = if ascii { text.chars().map(escaped).collect() } else { text };
        if let Some(terse) = terse_json(&text) {
            prop_assert!(terse.len() < text.len());
            prop_assert_eq!(read(&terse), serde_json::from_str::<Value>(&text).unwrap(), "{}", terse);
        }
    }
}

#[test]
fn what_could_be_confused_stays_apart() {
    let value = json!([
        {"zip": "04109", "count": 4109, "flag": true, "word": "true", "none": null, "empty": "", "n": {"a": "null"}},
        {"zip": "x|y", "count": 1.50, "flag": "a, b", "none": "[", "empty": [], "n": {"a": {"b": [{"c": 1}, {"c": 2}]}}},
    ]);
    let terse = terse_json(&serde_json::to_string(&value).unwrap()).unwrap();
    assert_eq!(
        terse,
        "[zip|count|flag|word|none|empty|n.a\n\
         \"04109\"|4109|true|\"true\"|null|\"\"|\"null\"\n\
         \"x|y\"|1.5|a, b||\"[\"|[]|{b:[{c:1}, {c:2}]}\n]"
    );
    assert_eq!(read(&terse), value);
}

#[test]
fn digits_are_copied_and_escapes_become_characters() {
    let text = r#"{"n": 1.50e+300, "big": 123456789012345678901234567890, "name": "J\u00fcrgen \ud83e\udd80", "cut": "\ud83e"}"#;
    let terse = r#"{n:1.50e+300, big:123456789012345678901234567890, name:Jürgen 🦀, cut:"\ud83e"}"#;
    assert_eq!(terse_json(text).as_deref(), Some(terse));
}

#[test]
fn other_texts_are_left_alone() {
    for text in
        ["", "335.0", "\"a string\"", "[1,", "{} {}", "Error: no such flight", "[]", "{\"a\": 1}\n{\"a\": 2}"]
    {
        assert_eq!(terse_json(text), None, "{text}");
    }
    assert!(terse_json(&"[".repeat(100_000)).is_none());
    assert_eq!(terse_json("{\"a\": 1, \"a\": 2}").as_deref(), Some("{a:1, a:2}"));
}

#[test]
fn records_take_few_tokens() {
    let flight = |n: usize| {
        json!({
            "flight_number": format!("HAT{n:03}"), "origin": "JFK", "status": "available",
            "departure": "06:00:00", "seats": {"economy": n % 17, "business": n % 5}, "prices": {"economy": 100 + n},
        })
    };
    let text = serde_json::to_string_pretty(&(0..20).map(flight).collect::<Vec<_>>()).unwrap();
    let (counter, terse) = (Counter::o200k(), terse_json(&text).unwrap());
    assert!(counter.count(&terse) * 100 < counter.count(&text) * 45, "{terse}");
}
