//! What an agent's message needs of earlier tool results: the lines, arguments and names in it that occur there and in no
//! message of another kind. Knows texts only.

use std::collections::BTreeSet;

use memchr::memmem;
use serde_json::Value;

/// The shortest line that is a need, in characters.
const SHORTEST_LINE: usize = 12;
/// The shortest argument or name, in characters.
const SHORTEST_WORD: usize = 4;
/// What a name may end or begin with and is not part of it.
const AROUND: [char; 3] = ['.', '/', '-'];

/// A text that a message takes from an earlier result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Need {
    /// The text.
    pub text: String,
    /// The number of the newest result that contains it.
    pub result: usize,
}

/// What a message with these texts and arguments of calls needs: what is in one of the `results` and not in `others`, the
/// texts of all other messages before it.
pub(super) fn needs<'t>(
    texts: impl Iterator<Item = &'t str>,
    arguments: impl Iterator<Item = &'t str>,
    results: &[String],
    others: &str,
) -> Vec<Need> {
    let mut candidates: BTreeSet<String> = BTreeSet::new();
    let mut said = String::new();
    for text in texts {
        candidates.extend(long_lines(text));
        said.push_str(text);
        said.push('\n');
    }
    for argument in arguments {
        match serde_json::from_str(argument) {
            Ok(value) => scalars(&value, &mut candidates),
            Err(_) => scalars(&Value::String(argument.to_owned()), &mut candidates),
        }
    }
    for candidate in &candidates {
        said.push_str(candidate);
        said.push('\n');
    }
    candidates.extend(names(&said));
    let needed = candidates.into_iter().filter_map(|text| {
        let find = memmem::Finder::new(&text);
        if find.find(others.as_bytes()).is_some() {
            return None;
        }
        let result = results.iter().rposition(|result| find.find(result.as_bytes()).is_some())?;
        Some(Need { text, result })
    });
    needed.collect()
}

fn long_lines(text: &str) -> impl Iterator<Item = String> + '_ {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| is_long(line, SHORTEST_LINE)).map(str::to_owned)
}

fn is_long(text: &str, characters: usize) -> bool {
    text.chars().nth(characters - 1).is_some()
}

/// The numbers and texts in the arguments of a call; of a text with several lines each line.
fn scalars(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| scalars(value, found)),
        Value::Object(values) => values.values().for_each(|value| scalars(value, found)),
        Value::Number(number) => {
            found.extend(Some(number.to_string()).filter(|text| is_long(text, SHORTEST_WORD)))
        }
        Value::String(text) if !is_long(text, SHORTEST_WORD) => {}
        Value::String(text) if text.trim_end().contains('\n') => found.extend(long_lines(text)),
        Value::String(text) => drop(found.insert(text.clone())),
        Value::Bool(_) | Value::Null => {}
    }
}

/// The words that look like code, paths or numbers.
fn names(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_' || AROUND.contains(&c);
    let words = text.split(move |c| !is_inside(c)).filter_map(|word| {
        let start = word.find(|c: char| c.is_ascii_alphanumeric() || c == '_')?;
        Some(&word[start..])
    });
    let words = words.filter(|word| is_long(word, SHORTEST_WORD));
    let words = words.map(|word| word.trim_matches(AROUND));
    words.filter(|word| is_long(word, SHORTEST_WORD) && is_name(word)).map(str::to_owned)
}

fn is_name(word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut before = [None, None];
    for c in word.chars() {
        let joined = before[1] == Some('.') && before[0].is_some_and(is_word) && is_word(c);
        let camel = before[1].is_some_and(|c| c.is_ascii_lowercase()) && c.is_ascii_uppercase();
        if c == '_' || c == '/' || c.is_numeric() || joined || camel {
            return true;
        }
        before = [before[1], Some(c)];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(said: &str, arguments: &[&str], results: &[&str], others: &str) -> Vec<(String, usize)> {
        let results: Vec<String> = results.iter().map(|text| (*text).to_owned()).collect();
        let needs = needs(std::iter::once(said), arguments.iter().copied(), &results, others);
        needs.into_iter().map(|need| (need.text, need.result)).collect()
    }

    #[test]
    fn lines_arguments_and_names_of_earlier_results_are_needed() {
        let results = ["def area(shape):\n    return shape.width\n", "order W123 of user mei_12"];
        let said = "I change\n    return shape.width\nfor area.";
        assert_eq!(
            found(said, &[r#"{"user": "mei_12", "order": {"id": "W123"}, "limit": 12}"#], &results, ""),
            [
                ("W123".to_owned(), 1),
                ("mei_12".to_owned(), 1),
                ("return shape.width".to_owned(), 0),
                ("shape.width".to_owned(), 0),
            ]
        );
    }

    #[test]
    fn what_another_message_says_is_not_needed() {
        assert_eq!(found("see shape.width", &[], &["x shape.width y"], "the user wrote shape.width"), []);
        assert_eq!(found("see height", &[], &["the height"], ""), [], "an ordinary word");
        assert_eq!(
            found("see src/a.rs.", &[], &["src/a.rs\nsrc/b.rs", "src/a.rs"], "")[0].1,
            1,
            "the newest"
        );
    }
}
