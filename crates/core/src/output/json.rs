//! Extracts one JSON value from an answer: tolerant of what models put around it, strict about the value itself.
//!
//! A ```` ```json ```` fence and prose around the value are skipped. Within the value, duplicate keys, nesting deeper
//! than 127, numbers that JSON does not allow and anything incomplete are errors: a value cut out of a malformed one
//! would be a wrong answer that looks right.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Number, Value};

use super::{OutputError, line_and_column, shorten};

const FORMAT: &str = "JSON";
/// Characters of a key that a message quotes.
const QUOTED_KEY_CHARS: usize = 60;

/// The single value in `answer` and its position.
pub(super) fn parse(answer: &str) -> Result<(Value, Range<usize>), OutputError> {
    let value = trimmed(answer, 0..answer.len());
    if value.is_empty() {
        return Err(OutputError::Empty { expected: "one JSON value" });
    }
    if let Ok(Strict(whole)) = serde_json::from_str(&answer[value.clone()]) {
        return Ok((whole, value));
    }
    let mut fences = fences(answer).into_iter();
    let Some(fence) = fences.next() else {
        return sole(answer, scan(answer, 0..answer.len(), true)?);
    };
    if let Some(second) = fences.next() {
        return Err(several(answer, second.start));
    }
    let inside = trimmed(answer, fence);
    let Strict(value) =
        serde_json::from_str(&answer[inside.clone()]).map_err(|e| syntax(answer, &inside, &e))?;
    // Prose around the fence may contain brackets, but a second object would make the choice a guess.
    for around in [0..inside.start, inside.end..answer.len()] {
        if let Some((_, second)) =
            scan(answer, around, false)?.into_iter().find(|(value, _)| value.is_object())
        {
            return Err(several(answer, second.start));
        }
    }
    Ok((value, inside))
}

/// `range` without leading and trailing white space and byte order marks.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start_matches(blank).len());
    start..start + part.trim_matches(blank).len()
}

/// The content of each ```` ```json ```` fence. JSON strings contain no raw line breaks, so a fence line is never
/// part of a value. An unclosed fence extends to the end.
fn fences(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let (mut open, mut at) = (None, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        match (line.trim().strip_prefix("```"), open) {
            (Some(info), None) => open = Some((end, info.trim().eq_ignore_ascii_case("json"))),
            (Some(""), Some((start, json))) => {
                open = None;
                found.extend(json.then_some(start..at));
            }
            _ => {}
        }
        at = end;
    }
    if let Some((start, true)) = open {
        found.push(start..text.len());
    }
    found
}

/// The outermost objects and arrays in `range`; stops after two objects. A bracket that starts no value is prose.
/// With `strict`, a value that starts well and breaks later is an error; otherwise it is skipped.
fn scan(text: &str, range: Range<usize>, strict: bool) -> Result<Vec<(Value, Range<usize>)>, OutputError> {
    let mut found: Vec<(Value, Range<usize>)> = Vec::new();
    let (mut at, mut objects, mut arrays) = (range.start, 0, 0);
    while let Some(start) = text[at..range.end].find(['{', '[']).map(|offset| at + offset) {
        let rest = &text[start..range.end];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Strict>();
        match stream.next() {
            Some(Ok(Strict(value))) => {
                at = start + stream.byte_offset();
                let count = if value.is_object() { &mut objects } else { &mut arrays };
                *count += 1;
                if *count <= 2 {
                    found.push((value, start..at));
                }
                if objects == 2 {
                    break;
                }
            }
            Some(Err(error)) => {
                let brackets = rest.find(|c: char| !matches!(c, '{' | '[') && !c.is_whitespace());
                let brackets = brackets.unwrap_or(rest.len());
                if strict && !is_prose(rest, brackets, &error) {
                    return Err(syntax(text, &(start..range.end), &error));
                }
                at = start + brackets;
            }
            None => break,
        }
    }
    Ok(found)
}

/// Whether text that starts with brackets and does not parse was never meant as a value: it fails within the first
/// scalar after its brackets, as `[sic]`, `{name}` and `[2026-01-01 10:00]` do.
fn is_prose(text: &str, brackets: usize, error: &serde_json::Error) -> bool {
    let failed = offset_of(text, error);
    error.classify() != Category::Eof
        && text.get(brackets..failed).is_some_and(|scalar| !scalar.starts_with('"') && !scalar.contains(','))
}

/// The intended value: the only object, or without objects the only array.
fn sole(text: &str, found: Vec<(Value, Range<usize>)>) -> Result<(Value, Range<usize>), OutputError> {
    let (objects, arrays): (Vec<_>, Vec<_>) = found.into_iter().partition(|(value, _)| value.is_object());
    let mut candidates = if objects.is_empty() { arrays } else { objects }.into_iter();
    let first = candidates.next().ok_or(OutputError::NoValue { format: FORMAT })?;
    match candidates.next() {
        Some((_, second)) => Err(several(text, second.start)),
        None => Ok(first),
    }
}

fn several(text: &str, offset: usize) -> OutputError {
    let (line, column) = line_and_column(text, offset);
    OutputError::SeveralValues { format: FORMAT, line, column }
}

/// The byte offset in `text` at which the parser stopped.
fn offset_of(text: &str, error: &serde_json::Error) -> usize {
    let lines_before = error.line().saturating_sub(1);
    let line_start: usize = text.split_inclusive('\n').take(lines_before).map(str::len).sum();
    text.floor_char_boundary(line_start.saturating_add(error.column()))
}

fn syntax(text: &str, range: &Range<usize>, error: &serde_json::Error) -> OutputError {
    let offset = range.start + offset_of(&text[range.clone()], error).saturating_sub(1);
    let (line, column) = line_and_column(text, offset);
    let message = error.to_string();
    let problem = message.rsplit_once(" at line ").map_or(message.as_str(), |(problem, _)| problem);
    let problem = match error.classify() {
        Category::Eof => "the answer ends before the value does".to_owned(),
        _ => problem.to_owned(),
    };
    OutputError::Syntax { format: FORMAT, line, column, problem }
}

/// A JSON value without duplicate keys in any object: another is an error.
#[derive(Debug)]
pub struct Strict(pub Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("NaN and infinity are no JSON numbers"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Strict(element)) = seq.next_element()? {
            array.push(element);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "duplicate key {:?}",
                    shorten(&key, QUOTED_KEY_CHARS)
                )));
            }
            let Strict(value) = map.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
