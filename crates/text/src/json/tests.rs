//! Tests of reading, decoding and editing JSON text.

use std::ops::Range;

use proptest::prelude::*;
use serde_json::Value as Json;

use super::literal::literal_is;
use super::*;

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<i32>().prop_map(|eighths| Json::from(f64::from(eighths) / 8.0)),
        any_text().prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::vec((any_text(), inner), 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

fn any_text() -> impl Strategy<Value = String> {
    // The last kind is longer than the blocks in which strings are read.
    prop_oneof![
        "[a-z]{0,8}",
        any::<String>(),
        "[\"\\\\/\n\r\t\u{1}\u{7f}é😀]{0,6}",
        "[a-d]{0,90}[a-z\"\\\\\n\u{1}é😀]{30,90}[a-d]{0,90}",
    ]
}

/// The same value, read back through our own spans.
fn rebuilt(value: Value<'_, '_>) -> Json {
    match value.kind() {
        Kind::Object => {
            let members = value.members().map(|(key, value)| (key.text().into_owned(), rebuilt(value)));
            Json::Object(members.collect())
        }
        Kind::Array => Json::Array(value.items().map(rebuilt).collect()),
        Kind::String => Json::String(value.text().unwrap().into_owned()),
        _ => serde_json::from_str(value.raw()).unwrap(),
    }
}

fn spans_of(text: &str) -> Vec<Range<usize>> {
    let doc = Document::parse(text).unwrap();
    let values = doc.nodes.iter().map(|node| node.start as usize..node.end as usize);
    values.chain(doc.names.iter().map(|&(start, end)| start as usize..end as usize)).collect()
}

proptest! {
    #[test]
    fn any_json_is_read_back_as_it_was_written(json in any_json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&json) } else { serde_json::to_string(&json) }.unwrap();
        let doc = Document::parse(&text).unwrap();
        prop_assert_eq!(doc.root().raw(), text.as_str());
        prop_assert_eq!(rebuilt(doc.root()), json);
    }

    #[test]
    fn exactly_what_another_parser_accepts_is_accepted(
        json in any_json(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[]\\[{}:,\"\\\\ 0-9eE.+\\-tfnu\n\u{1}é]"), 0..4),
    ) {
        let mut text = serde_json::to_string(&json).unwrap();
        for (at, with) in changes {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let at = places[at.index(places.len())];
            let end = at + text[at..].chars().next().map_or(0, char::len_utf8);
            text.replace_range(at..end, &with);
            if text.is_empty() {
                text.push(' ');
            }
        }
        // Skipped values are not decoded, so halves of surrogate pairs do not matter.
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text);
        let ours = Document::parse(&text);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{}: {:?} {:?}", text, ours.err(), theirs.err());
    }

    #[test]
    fn any_text_is_encoded_as_others_decode_it(text in any_text()) {
        let literal = encoded(&text);
        prop_assert_eq!(serde_json::from_str::<String>(&literal).unwrap(), text.as_str());
        prop_assert_eq!(decode(&literal), text.as_str());
        prop_assert!(literal_is(&literal, &text));
    }

    #[test]
    fn the_shortest_literal_of_a_text_is_the_one_that_others_write(
        text in any_text(),
        at in any::<prop::sample::Index>(),
        escape in prop_oneof![Just("\\/"), Just("\\u0041"), Just("\\u000A"), Just("\\u001F"), Just("\\u00e9"), Just("\\n")],
    ) {
        let literal = serde_json::to_string(&text).unwrap();
        prop_assert!(is_shortest(&literal));
        let places: Vec<usize> = (1..literal.len()).filter(|&at| literal.is_char_boundary(at)).collect();
        let place = places[at.index(places.len())];
        let spelled = [&literal[..place], escape, &literal[place..]].concat();
        if let Ok(text) = serde_json::from_str::<String>(&spelled) {
            prop_assert_eq!(is_shortest(&spelled), serde_json::to_string(&text).unwrap() == spelled, "{}", spelled);
        }
        let with_control = [&literal[..place], "\u{1f}", &literal[place..]].concat();
        prop_assert!(!is_shortest(&with_control));
    }

    #[test]
    fn the_longest_literal_is_a_whole_string(json in any_json()) {
        fn lengths(json: &Json) -> Vec<usize> {
            let length = |text: &str| serde_json::to_string(text).unwrap().len();
            match json {
                Json::String(text) => vec![length(text)],
                Json::Array(items) => items.iter().flat_map(lengths).collect(),
                Json::Object(members) => {
                    let of = |(name, value): (&String, &Json)| [vec![length(name)], lengths(value)].concat();
                    members.iter().flat_map(of).collect()
                }
                _ => Vec::new(),
            }
        }
        let text = json.to_string();
        let longest = longest_literal(&text);
        prop_assert_eq!(longest.as_ref().map(Range::len), lengths(&json).into_iter().max());
        prop_assert!(longest.is_none_or(|range| serde_json::from_str::<String>(&text[range]).is_ok()));
    }

    #[test]
    fn edits_change_their_bytes_and_no_others(
        json in any_json(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), any_text()), 0..5),
    ) {
        let text = serde_json::to_string(&json).unwrap();
        let spans = spans_of(&text);
        let mut taken: Vec<(Range<usize>, String)> = Vec::new();
        for (pick, with) in picks {
            let span = spans[pick.index(spans.len())].clone();
            if taken.iter().all(|(other, _)| other.end <= span.start || span.end <= other.start) {
                taken.push((span, encoded(&with)));
            }
        }
        let edits = taken.iter().map(|(span, with)| Edit::replace(span.clone(), with.clone())).collect();
        let changed = apply(&text, edits).unwrap();
        // The same from behind, one after the other.
        let mut expected = text.clone();
        taken.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        for (span, with) in taken {
            expected.replace_range(span, &with);
        }
        prop_assert_eq!(&changed, &expected);
        prop_assert!(serde_json::from_str::<Json>(&changed).is_ok() || changed.contains(':'));
    }

    #[test]
    fn taking_items_out_leaves_an_array_of_the_others(
        items in prop::collection::vec(any_json(), 0..8),
        gone in prop::collection::vec(any::<bool>(), 8),
        added in prop::collection::vec(any::<i64>(), 0..3),
        pretty in any::<bool>(),
    ) {
        let json = Json::from(items.clone());
        let text = if pretty { serde_json::to_string_pretty(&json) } else { serde_json::to_string(&json) }.unwrap();
        let doc = Document::parse(&text).unwrap();
        let new = added.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        let changed = apply(&text, splice(doc.root(), &new, |at| gone[at])).unwrap();
        let kept = items.into_iter().enumerate().filter(|(at, _)| !gone[*at]).map(|(_, item)| item);
        let expected: Vec<Json> = added.into_iter().map(Json::from).chain(kept).collect();
        prop_assert_eq!(serde_json::from_str::<Json>(&changed).unwrap(), Json::from(expected));
    }
}

#[test]
fn members_keep_their_order_and_their_doubles() {
    let doc = Document::parse(r#" {"b":1, "\u0061":[2,{"x":null}],"b" : "three"} "#).unwrap();
    let names: Vec<_> = doc.root().members().map(|(key, _)| key.text()).collect();
    assert_eq!(names, ["b", "a", "b"]);
    assert!(doc.root().get("b").unwrap().is("three"));
    assert_eq!(doc.root().get("a").unwrap().raw(), r#"[2,{"x":null}]"#);
    assert!(doc.root().get("c").is_none());
    assert_eq!(apply(doc.text, without(doc.root(), &["b"])).unwrap(), r#" {"\u0061":[2,{"x":null}]} "#);
}

#[test]
fn surrogate_pairs_are_joined_and_halves_are_spelled_out() {
    assert_eq!(decode(r#""a😀b""#), "a😀b");
    assert_eq!(decode(r#""cut \ud83d""#), r"cut \ud83d");
    assert_eq!(decode(r#""\ude00\uD83D\n\ud83d\ude00""#), "\\ude00\\uD83D\n😀");
    assert_eq!(decode(r#""plain""#), "plain");
}

#[test]
fn a_fault_is_named_with_its_place() {
    let error = Document::parse("{\n  \"a\": 01}").unwrap_err();
    assert_eq!((error.line, error.column, error.at), (2, 9, 10));
    assert_eq!(error.to_string(), "not JSON: expected a comma or the end at line 2, column 9 (byte 10)");
    for text in
        ["", "[", "[1,]", "{\"a\"}", "\"a", "\"\\x\"", "nul", "1 2", "[1}", "]", "{,}", "\"\n\"", "-", "1."]
    {
        assert!(Document::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn nesting_ends_at_the_limit_without_a_deep_stack() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Document::parse(&nested(MAX_DEPTH)).is_ok());
    let error = Document::parse(&nested(1_000_000)).unwrap_err();
    assert!(error.what.contains("512 levels deep"));
}

#[test]
fn edits_that_overlap_or_leave_the_text_are_refused() {
    let text = "[1,2,é]";
    assert!(apply(text, vec![Edit::remove(1..3), Edit::remove(2..4)]).is_err());
    assert!(apply(text, vec![Edit::remove(6..7)]).is_err());
    assert!(apply(text, vec![Edit::remove(7..99)]).is_err());
    let twice = vec![Edit::insert(1, "a"), Edit::replace(1..2, "c"), Edit::insert(1, "b")];
    assert_eq!(apply(text, twice).unwrap(), "[abc,2,é]");
}

#[test]
fn a_large_literal_is_read_in_halves_as_others_read_it_whole() {
    let piece = r#"\ud83d\ude00é\n\\\"x"#;
    for shift in 0..piece.len() {
        let literal = format!("\"{}{}\"", "-".repeat(shift), piece.repeat(20_000));
        assert!(decode(&literal) == serde_json::from_str::<String>(&literal).unwrap(), "{shift}");
    }
    // Nowhere can it be cut.
    let literal = format!("\"{}\"", r"\n".repeat(200_000));
    assert!(decode(&literal) == "\n".repeat(200_000));
}

#[test]
fn a_request_has_no_more_values_than_their_places_may_take() {
    // The array is a value too.
    let numbers = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
    assert!(Document::parse_request(&numbers(MAX_VALUES)).is_ok());
    let more = numbers(MAX_VALUES + 1);
    let error = Document::parse_request(&more).unwrap_err();
    assert!(error.to_string().contains("more than 2,097,152 values"), "{error}");
    assert_eq!(error.at, more.len() - 1, "after the first that is too many");
    assert!(Document::parse(&more).is_ok(), "replies may be larger");
}
