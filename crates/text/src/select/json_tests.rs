//! Tests of paths into JSON.

use super::*;
use proptest::prelude::*;

fn select(source: &[u8], path: &str) -> Result<String, SelectError> {
    JsonQuery::parse(path)?.select(source).map(|bytes| String::from_utf8(bytes).unwrap())
}

const SOURCE: &str = "{ \"items\" : [ {\"id\":1.50, \"n\\u0061me\" : \"a\\tb\"} ,\r\n {\"id\" : 12345678901234567890123,\"name\":null}],\n \"a/b\":{\"~\":[ ]}, \"\":\"empty\" }";

#[test]
fn one_value_comes_in_its_own_bytes() {
    for (path, expected) in [
        ("/items/0/id", "1.50"),
        ("/items/1/id", "12345678901234567890123"),
        ("/items/0/name", r#""a\tb""#),
        ("/a~1b/~0", "[ ]"),
        ("/", r#""empty""#),
        ("$", SOURCE),
        ("$.items[0].id", "1.50"),
        ("$.items[-1]", "{\"id\" : 12345678901234567890123,\"name\":null}"),
        ("$['a/b']", r#"{"~":[ ]}"#),
        ("$.items[?@.id == 1.5].name", r#""a\tb""#),
    ] {
        assert_eq!(select(SOURCE.as_bytes(), path).as_deref(), Ok(expected), "{path}");
    }
}

#[test]
fn the_only_json_among_lines_of_text_is_what_a_path_leads_into() {
    let json = "{\n  \"items\": [\n    {\"id\": 1.50},\n    {\"id\": 2}\n  ]\n}";
    for text in [
        format!("Found 2 items.\n{json}\nThat is all."),
        format!("Found 2 items.\n{json}"),
        format!("{json}\r\n{{not json}}\n[see above]\n"),
        format!("\u{feff}[1] is the first of\n{json}\n"),
    ] {
        assert_eq!(select(text.as_bytes(), "$.items[0].id").as_deref(), Ok("1.50"), "{text}");
        assert_eq!(select(text.as_bytes(), "/items/1").as_deref(), Ok("{\"id\": 2}"), "{text}");
        assert_eq!(select(text.as_bytes(), "$").as_deref(), Ok(json), "{text}");
    }
    // Which of two is meant, nobody knows; what goes on behind it is no value.
    let two = format!("One:\n{json}\nand:\n{json}\n");
    let more = format!("One:\n{json}, and so on");
    let late = format!("{}{json}", "[2026-11-30] started\n".repeat(MAX_STARTS));
    for text in [two.as_str(), &more, &late, "one\n12\ntwo", "one\ntwo"] {
        assert!(matches!(select(text.as_bytes(), "$.items"), Err(SelectError::NotJson { .. })), "{text}");
    }
}

#[test]
fn json_lines_are_an_array_of_their_lines() {
    let lines = b"\n{\"id\":1.50,\"a\":\"x\\ny\"}\r\n\n {\"id\":2}\n[3]\n";
    assert_eq!(select(lines, "$[1].id").unwrap(), "2");
    assert_eq!(select(lines, "/0/id").unwrap(), "1.50");
    assert_eq!(select(lines, "$[-1]").unwrap(), "[3]");
    assert_eq!(select(lines, "$[*].id").unwrap(), "[1.50,2]");
    assert!(select(b"{\"id\":1}\n{\"id\":2}\nnot json", "$[0]").is_err());
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_value() {
    assert_eq!(select(b"\xef\xbb\xbf{\"a\":[1,2]}", "$.a").unwrap(), "[1,2]");
    assert_eq!(select(b"\xef\xbb\xbf1\n2\n", "$[1]").unwrap(), "2");
}

#[test]
fn several_values_come_as_an_array() {
    assert_eq!(select(SOURCE.as_bytes(), "$.items[*].id").unwrap(), "[1.50,12345678901234567890123]");
    assert_eq!(select(SOURCE.as_bytes(), "$..id").unwrap(), "[1.50,12345678901234567890123]");
    assert_eq!(select(b"[1,2,3]", "$[2,0]").unwrap(), "[3,1]");
}

#[test]
fn of_members_with_one_name_the_last_counts() {
    assert_eq!(select(br#"{"a":{"b":1},"a":{"b":2 }}"#, "/a").unwrap(), r#"{"b":2 }"#);
    assert_eq!(select(br#"{"a":{"b":1},"a":{"b":2 }}"#, "$.a.b").unwrap(), "2");
    assert_eq!(select(br#"{"a":7,"a":[1,{"b": 3}]}"#, "$.a[1].b").unwrap(), "3");
}

#[test]
fn missing_paths_and_invalid_json_are_reported() {
    assert!(matches!(select(b"{}", "/a"), Err(SelectError::NothingThere { .. })));
    assert!(matches!(select(b"{}", "$..a"), Err(SelectError::NothingThere { .. })));
    for source in [&b""[..], b"{", b"text", b"\xff", b"{} {}", b"\0", &[b'['; 100_000]] {
        assert!(matches!(select(source, "$"), Err(SelectError::NotJson { .. })));
    }
}

#[test]
fn hostile_paths_are_refused_at_once() {
    let deep = format!("$[?{}@.a{}]", "(".repeat(400), ")".repeat(400));
    let long = format!("$.{}", "a".repeat(2_000));
    let wide = format!("${}", "[*,*]".repeat(60));
    for path in [
        "",
        "items",
        "$.",
        "$..*..*",
        "$[?@.a == $.b]",
        "$[?match(@.a, 'x')]",
        &deep,
        &long,
        &wide,
        "$['",
        "é",
    ] {
        assert!(matches!(select(b"{}", path), Err(SelectError::BadPath { .. })), "{path}");
    }
    assert_eq!(select(br#"{"$..,..(((((((":1}"#, "$['$..,..(((((((']").unwrap(), "1");
    let all = "0,".repeat(60);
    assert_eq!(select(b"[7]", &format!("$[{all}0]")).unwrap().matches('7').count(), 61);
    assert_eq!(select(br#"{"'":1}"#, r"$['\'']").unwrap(), "1");
}

#[test]
fn a_path_to_too_many_values_is_refused() {
    let source = format!("[{}0]", "0,".repeat(MAX_MATCHES));
    let error = select(source.as_bytes(), "$[*]").unwrap_err();
    assert!(error.to_string().contains("make it more specific"), "{error}");
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        r#"[\\"/~{}\[\],: aé]{0,5}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((r#"[\\"/~ab]{0,2}"#, inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_is_found_in_place(root in json(), pretty in any::<bool>()) {
        let source = if pretty { serde_json::to_vec_pretty(&root) } else { serde_json::to_vec(&root) }.unwrap();
        let read: Value = serde_json::from_slice(&source).unwrap();
        let path = JsonPath::parse("$..*").unwrap();
        for located in path.query_located(&read).all() {
            let pointer = located.location().to_json_pointer();
            let bytes = JsonQuery::parse(&pointer).unwrap().select(&source).unwrap();
            prop_assert_eq!(&serde_json::from_slice::<Value>(&bytes).unwrap(), located.node());
            prop_assert_eq!(bytes.trim_ascii(), &bytes[..]);
        }
        let all = path.query(&read).all();
        if all.len() > 1 {
            let bytes = JsonQuery::parse("$..*").unwrap().select(&source).unwrap();
            let values: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
            prop_assert_eq!(values.iter().collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn no_bytes_and_no_path_make_it_panic(source in prop::collection::vec(any::<u8>(), 0..60), path in "[$/.*?@a\\[\\]()'\",0-9:=]{0,12}") {
        let _ = select(&source, &path);
    }
}
