//! What the lenient reader finds in JSON, and how far it reads texts that are broken.

use super::*;

fn tree(text: &str) -> Document<'_> {
    Document::parse_lenient(text).unwrap()
}

fn kinds(text: &str) -> Vec<Kind> {
    let tree = tree(text);
    (0..tree.len()).map(|node| tree.kind(node)).collect()
}

fn is_irregular(text: &str) -> bool {
    tree(text).is_irregular(0)
}

#[test]
fn values_follow_each_other_in_the_order_of_the_text() {
    use Kind::{Array, Bool, Null, Number, Object, Stream, String, Word};
    assert_eq!(kinds(r#"{"a": [1, "b"], "c": null}"#), [Stream, Object, Array, Number, String, Null]);
    assert_eq!(kinds("[true, NaN]"), [Stream, Array, Bool, Word]);
    assert_eq!(kinds("1\n2\n"), [Stream, Number, Number]);
    assert_eq!(kinds(""), [Stream]);
}

#[test]
fn spans_keys_and_children_are_those_of_the_text() {
    let tree = tree(r#"{"name": "Ada", "tags": ["x", "y"]}"#);
    let [name, tags] = tree.children(1).collect::<Vec<_>>()[..] else { panic!("{tree:?}") };
    assert_eq!((tree.name(name), tree.raw(name)), ("name", r#""Ada""#));
    assert_eq!(&tree.text()[tree.inner(name)], "Ada");
    assert_eq!((tree.name(tags), tree.raw(tags)), ("tags", r#"["x", "y"]"#));
    assert_eq!(tree.children(tags).map(|tag| tree.raw(tag)).collect::<Vec<_>>(), [r#""x""#, r#""y""#]);
    assert_eq!(tree.after(tags), tree.len());
    assert_eq!(tree.leaves(0).count(), 3);
}

#[test]
fn dense_sizes_leave_out_the_white_space_between_values() {
    let tree = tree("{ \"a\" : [ 1 , 2 ] }");
    assert_eq!(tree.dense(1), r#"{"a":[1,2]}"#.len());
    assert_eq!(tree.children(1).count(), 1);
}

#[test]
fn a_place_belongs_to_the_last_value_that_begins_before_it() {
    let text = r#"[10, "twenty"]"#;
    let tree = tree(text);
    assert_eq!(tree.raw(tree.at(text.find("went").unwrap())), r#""twenty""#);
    assert_eq!(tree.at(0), 1);
}

#[test]
fn strings_end_at_the_first_quote_without_a_backslash() {
    for length in 0..40 {
        let text = format!(r#"["{}\"\\", 7]"#, "x".repeat(length));
        let tree = tree(&text);
        assert_eq!(tree.children(1).count(), 2, "{text}");
        assert!(!tree.is_irregular(0), "{text}");
    }
}

#[test]
fn departures_from_the_grammar_are_irregular() {
    for text in [r#"{"a" 1}"#, "[1 2]", "[1,]", r#"{"a": 1, 2}"#, "[1}", "[nil]", "1, 2", r#"{"a":}"#] {
        assert!(is_irregular(text), "{text}");
    }
    for text in [r#"{"a": {"b": []}}"#, "[]", "1 2", "\u{feff}[true]", "-1.5e+3"] {
        assert!(!is_irregular(text), "{text}");
    }
}

#[test]
fn truncated_texts_are_read_to_their_end() {
    let text = r#"[{"a": 1}, {"a": "tw"#;
    let tree = tree(text);
    assert!(tree.is_irregular(0) && !tree.is_irregular(2));
    assert_eq!(tree.span(1), 0..text.len());
    assert_eq!(tree.raw(tree.len() - 1), r#""tw"#);
}

#[test]
fn deep_nesting_needs_no_recursion() {
    let text = "[".repeat(200_000);
    assert_eq!(tree(&text).len(), 200_001);
}

#[test]
fn rows_of_fields_are_an_array_of_objects() {
    let text = "id,price\na,1.5\nb,x\n";
    let rows = [vec![0..2, 3..8], vec![9..10, 11..14], vec![15..16, 17..18]];
    let tree = Document::from_rows(text, &rows).unwrap();
    let objects: Vec<usize> = tree.children(1).collect();
    assert_eq!(objects.len(), 2);
    let cells: Vec<(&str, &str, Kind)> =
        tree.children(objects[0]).map(|cell| (tree.name(cell), tree.raw(cell), tree.kind(cell))).collect();
    assert_eq!(cells, [("id", "a", Kind::String), ("price", "1.5", Kind::Number)]);
    assert!(!tree.is_irregular(0));
}

#[test]
fn numbers_are_recognised() {
    for number in ["0", "-1", "1.5", "2e10", "1E-3"] {
        assert!(is_number(number.as_bytes()), "{number}");
    }
    for word in ["", "-", "1.", ".5", "0x1f", "NaN", "1a"] {
        assert!(!is_number(word.as_bytes()), "{word}");
    }
}

#[test]
fn a_text_looks_like_json_if_its_beginning_is() {
    assert!(looks_like(r#" {"a": 1, "b": [2, 3]}"#));
    assert!(looks_like(&format!("[{}", r#"{"id": 12},"#.repeat(20_000))), "a truncated text");
    for shift in 0..40 {
        let rows = r#"{"name" : "Ada", "age": 36, "ok": true}, "#.repeat(2_000);
        let text = format!(r#"[{{"shift": "{}"}}, {rows}"#, "x".repeat(shift));
        assert!(looks_like(&text), "the sample may end anywhere: {:?}", &text[SAMPLE - 20..SAMPLE]);
    }
    assert!(!looks_like("[note] see (a) and (b)"));
    assert!(!looks_like("[1]"), "too few values");
    assert!(!looks_like("plain text"));
}
