//! Tests of reading answers: every format, any chunking, hostile input.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::recipe::{OutputFormat, TagSpec};

fn spec(format: OutputFormat) -> OutputSpec {
    OutputSpec { format, schema: None, tags: Vec::new() }
}

fn tag(name: &str, required: bool, multiple: bool, hidden: bool) -> TagSpec {
    TagSpec { name: name.to_owned(), required, multiple, hidden, inline: false, schema: None }
}

/// The tags of a conversation reply and the completion signal.
fn tagged() -> OutputSpec {
    let mut thinking = tag("thinking", false, false, true);
    thinking.schema = Some(json!({"type": "object", "properties": {"UserIntensity": {"type": "integer"}}}));
    let tags = vec![
        thinking,
        tag("draft", false, true, false),
        tag("dispatch", false, false, false),
        tag("promise", false, false, true),
    ];
    OutputSpec { format: OutputFormat::Tagged, schema: None, tags }
}

fn json_of(answer: &str) -> Result<Value, OutputError> {
    parse(&spec(OutputFormat::Json), answer).map(|parsed| parsed.value)
}

fn yaml_of(answer: &str) -> Result<Value, OutputError> {
    parse(&spec(OutputFormat::Yaml), answer).map(|parsed| parsed.value)
}

fn problem(result: Result<Value, OutputError>) -> String {
    result.map_or_else(|error| error.to_string(), |value| format!("read as {value}"))
}

#[test]
fn json_is_found_in_what_models_put_around_it() {
    for answer in [
        r#"{"a": [1, "]"]}"#,
        "\u{feff} \n{\"a\": [1, \"]\"]}\r\n",
        "```json\n{\"a\": [1, \"]\"]}\n```",
        "Sure! Here [as asked] it is:\r\n\r\n```JSON\r\n{\"a\": [1, \"]\"]}\r\n```\r\nDone {ok}.",
        "```\n{\"a\": [1, \"]\"]}\n```",
        "See [1] and [2026-01-01 10:00], {name}: {\"a\": [1, \"]\"]} [sic]",
    ] {
        assert_eq!(json_of(answer), Ok(json!({"a": [1, "]"]})), "{answer}");
    }
    assert_eq!(json_of("The list: [1, 2]"), Ok(json!([1, 2])));
    assert_eq!(json_of(" 42 "), Ok(json!(42)));
}

#[test]
fn the_reply_of_data_is_the_data_as_written() {
    let parsed = parse(&spec(OutputFormat::Json), "Here:\n```json\n{\"a\":  1}\n```\n").unwrap();
    assert_eq!(parsed.reply, "{\"a\":  1}");
}

#[test]
fn json_is_exact_about_the_value() {
    for (answer, expected) in [
        (r#"{"a": 1, "a": 2}"#, "line 1, column 12: duplicate key \"a\""),
        (r#"x {"a": {"b": 1, "b": 2}}"#, "duplicate key \"b\""),
        ("{\"a\": NaN}", "line 1, column 7: expected value"),
        ("{\"a\": 1e999}", "number out of range"),
        ("{\"a\": 1,}", "trailing comma"),
        ("{\"a\": [1, 2], \"b\": \"unfin", "ends before the value does"),
        ("[1, {\"a\": 1}, x]", "expected value"),
        ("{'a': 1}", "no JSON value found"),
        ("```json\n{\"a\": 1} and more\n```", "line 2, column 10: trailing characters"),
        ("{\"a\": 1} {\"b\": 2}", "a second JSON value starts at line 1, column 10"),
        ("```json\n{}\n```\n\n```json\n{}\n```", "a second JSON value starts at line 6, column 1"),
        ("{\"b\": 2}\n```json\n{}\n```", "a second JSON value starts at line 1, column 1"),
        ("[1] [2]", "a second JSON value"),
        ("I cannot help with that.", "no JSON value found"),
        ("NaN", "no JSON value found"),
        (" \r\n", "the answer is empty"),
        ("\0", "no JSON value found"),
        ("{\"a\0\": 1}", "control character"),
    ] {
        let problem = problem(json_of(answer));
        assert!(problem.contains(expected), "{answer}: {problem}");
    }
}

#[test]
fn deep_json_is_an_error_not_an_overflow() {
    for deep in [
        "[".repeat(10_000),
        "{\"a\":".repeat(10_000),
        format!("x {}1{}", "[".repeat(10_000), "]".repeat(10_000)),
    ] {
        assert!(problem(json_of(&deep)).contains("recursion limit exceeded"));
        assert!(json_of(&format!("```json\n{deep}\n```")).is_err());
    }
    let fine = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    assert!(json_of(&fine).is_ok());
}

#[test]
fn huge_answers_are_read_in_one_pass() {
    let n = 2 << 20;
    for unit in
        ["a", "[", "{", "[]", "[x ", "{\"", "\"", "```json\n", "<", "</thinking ", "\\", "\0", " ", "- ", "é"]
    {
        let answer = unit.repeat(n / unit.len());
        for format in [OutputFormat::Json, OutputFormat::Text] {
            let _ = parse(&spec(format), &answer);
        }
        let _ = parse(&tagged(), &answer);
    }
    let n = 10 << 20;
    let list = format!("{{\"a\": [{}1]}}", "1,".repeat(n / 2));
    assert!(json_of(&list).is_ok());
    let prose = format!("{}{list}", "[note] ".repeat(n / 7));
    assert!(json_of(&prose).is_ok());
}

#[test]
fn yaml_is_read_with_and_without_a_fence() {
    for answer in
        ["a: [1, x]\nb: no\n", "```yaml\na: [1, x]\nb: no\n```\n", "---\r\na:\r\n  - 1\r\n  - x\r\nb: no\r\n"]
    {
        assert_eq!(yaml_of(answer), Ok(json!({"a": [1, "x"], "b": "no"})), "{answer}");
    }
}

#[test]
fn yaml_is_exact_about_the_value() {
    for (answer, expected) in [
        ("a: 1\na: 2", "YAML error at line 2, column 1"),
        ("```yaml\na: 1\na: 2\n```", "YAML error at line 3, column 1"),
        ("a: .nan", "YAML error"),
        ("a: [1", "YAML error"),
        ("a: 1\n---\nb: 2", "YAML error"),
        ("a: &x 1\nb: *x", "YAML error"),
        ("\u{feff}\n", "the answer is empty"),
        ("a: \0", "YAML error"),
    ] {
        let problem = problem(yaml_of(answer));
        assert!(problem.contains(expected), "{answer}: {problem}");
    }
}

#[test]
fn yaml_bombs_are_refused() {
    let mut bomb = "a0: &a0 [x, x]\n".to_owned();
    for n in 1..40 {
        bomb += &format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1);
    }
    assert!(yaml_of(&bomb).is_err());
    assert!(yaml_of(&"[".repeat(10_000)).is_err());
    assert!(yaml_of(&"- ".repeat(10_000)).is_err());
    let steps: String = (0..1_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert!(yaml_of(&steps).is_err());
}

#[test]
fn tags_are_taken_out_and_the_rest_is_the_reply() {
    let answer = "<thinking>\nMode: NEEDS\nUserIntensity: 7\nStrategy: go slow\n  and ask\n</thinking>\n\
        <draft>I hear you</draft>\n\n<Draft >again</DRAFT>\nTell me <b>more</b> if 1 < 2.\n\n<promise>COMPLETE</promise>\n";
    let parsed = parse(&tagged(), answer).unwrap();
    assert_eq!(parsed.reply, "Tell me <b>more</b> if 1 < 2.");
    let thinking = json!({"Mode": "NEEDS", "UserIntensity": 7, "Strategy": "go slow\nand ask"});
    assert_eq!(
        parsed.value,
        json!({"thinking": thinking, "draft": ["I hear you", "again"], "promise": "COMPLETE"})
    );
}

#[test]
fn a_tag_inside_a_tag_is_its_text() {
    let parsed = parse(&tagged(), "<draft>a <dispatch>b</dispatch> </thinking> <draft></draft>c").unwrap();
    assert_eq!(parsed.value["draft"], json!(["a <dispatch>b</dispatch> </thinking> <draft>"]));
    assert_eq!(parsed.reply, "c");
}

#[test]
fn an_inline_tag_is_text_in_its_place_in_which_other_tags_count() {
    let mut spec = tagged();
    spec.tags[1] = TagSpec { inline: true, multiple: false, ..tag("draft", false, false, false) };
    let parsed = parse(&spec, "One.\n<draft>\na <thinking>Mode: A</thinking>b</draft>\nTwo.").unwrap();
    assert_eq!((parsed.reply.as_str(), &parsed.value["draft"]), ("One.\n\na b\nTwo.", &json!("a b")));
    for (answer, reply) in [
        ("One <draft>two", "One two"),
        ("One</draft> two", "One two"),
        ("<draft>a</thinking> b</draft>", "a b"),
        ("a< thinking >secret</ thinking> b</thinki", "a b"),
        ("a </thinking mode", "a"),
    ] {
        assert_eq!(salvage(&spec, answer).reply, reply, "{answer}");
    }
}

#[test]
fn what_only_looks_like_a_tag_is_text() {
    let long = format!("<draft {}>", "a=b ".repeat(40));
    for text in
        ["<draft of a letter>", "<drafty>", "<draft/>", "<dra", "<draft\u{a0}>", "<é>", "a < b", &long]
    {
        assert_eq!(parse(&tagged(), text).unwrap().reply, text);
    }
}

#[test]
fn broken_tags_are_named_with_their_place() {
    let mut spec = tagged();
    spec.tags[2].required = true;
    for (answer, expected) in [
        ("é <thinking>secret", "<thinking>, opened at byte 3, is never closed"),
        ("secret</thinking> hi", "</thinking> at byte 6 closes nothing"),
        ("<dispatch>A</dispatch><dispatch>B</dispatch>", "<dispatch> stands a second time at byte 22"),
        ("hello", "<dispatch>…</dispatch> is missing"),
        ("<dispatch>A</dispatch><thinking>no field</thinking>", "line 1 of <thinking> is no field"),
        (
            "<dispatch>A</dispatch><thinking>Mode: A\nMode: B</thinking>",
            "line 2 of <thinking> is the same field again",
        ),
    ] {
        let error = parse(&spec, answer).unwrap_err().to_string();
        assert!(error.contains(expected), "{answer}: {error}");
    }
}

#[test]
fn hidden_tags_never_reach_the_user_however_carelessly_written() {
    for answer in [
        "<thinking>secret</thinking>hi",
        "<thinking mode=\"x\">secret</thinking>hi",
        "<THINKING >secret</Thinking\n>hi",
        "<thinking>secret",
        "<thinking>secret</think>hi",
    ] {
        let mut stream = OutputStream::new(&tagged());
        let mut events = stream.push(answer.as_bytes());
        let (last, _) = stream.end();
        events.extend(last);
        assert!(!format!("{events:?}").contains("secret"), "{answer}: {events:?}");
    }
}

#[test]
fn invalid_utf8_is_an_error_with_its_position() {
    for (bytes, offset) in [(&b"ab\xff"[..], 2), (b"ab\xc3", 2), (b"\xed\xa0\x80", 0), (b"a\xc3(", 1)] {
        for format in [OutputFormat::Text, OutputFormat::Json, OutputFormat::Tagged] {
            let mut stream = OutputStream::new(&spec(format));
            for byte in bytes {
                stream.push(&[*byte]);
            }
            assert_eq!(stream.finish(), Err(OutputError::NotUtf8 { offset }), "{bytes:?}");
        }
    }
}

/// What a reader sees: adjacent pieces of the reply are one.
fn joined(events: impl IntoIterator<Item = OutputEvent>) -> Vec<OutputEvent> {
    let mut joined: Vec<OutputEvent> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(OutputEvent::Reply(last)), OutputEvent::Reply(next)) => last.push_str(&next),
            (_, event) => joined.push(event),
        }
    }
    joined
}

fn streamed(
    spec: &OutputSpec,
    bytes: &[u8],
    cuts: &[usize],
) -> (Vec<OutputEvent>, Result<Parsed, OutputError>) {
    let mut stream = OutputStream::new(spec);
    let (mut events, mut from) = (Vec::new(), 0);
    for &cut in cuts.iter().chain([&bytes.len()]) {
        let cut = cut.clamp(from, bytes.len());
        events.extend(stream.push(&bytes[from..cut]));
        from = cut;
    }
    let (last, parsed) = stream.end();
    events.extend(last);
    (joined(events), parsed)
}

fn tag_soup() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        Just("<thinking>"),
        Just("</thinking>"),
        Just("<draft >"),
        Just("<draft a=1>"),
        Just("</DRAFT>"),
        Just("<dispatch>"),
        Just("</dispatch>"),
        Just("<promise>COMPLETE</promise>"),
        Just("<"),
        Just("</"),
        Just("<think"),
        Just("<b>"),
        Just(" \n"),
        Just("Mode: A\n"),
        Just("é🦀"),
        Just("日本"),
        Just("\0\r\n"),
    ];
    let piece = prop_oneof![
        20 => text.prop_map(|text| text.as_bytes().to_vec()),
        4 => "\\PC{0,5}".prop_map(String::into_bytes),
        1 => Just(vec![0xff]),
    ];
    proptest::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events(
        bytes in tag_soup(),
        cuts in proptest::collection::vec(0..200_usize, 0..8),
        format in 0..5_usize,
    ) {
        use OutputFormat::{Json, Markdown, Tagged, Text, Yaml};
        let format = [Tagged, Text, Markdown, Json, Yaml][format];
        let spec = if format == Tagged { tagged() } else { spec(format) };
        let whole = streamed(&spec, &bytes, &[]);
        let mut cuts = cuts;
        cuts.sort_unstable();
        prop_assert_eq!(&streamed(&spec, &bytes, &cuts), &whole);
        let every: Vec<usize> = (0..bytes.len()).collect();
        prop_assert_eq!(&streamed(&spec, &bytes, &every), &whole);
        for cut in 0..bytes.len() {
            prop_assert_eq!(&streamed(&spec, &bytes, &[cut]), &whole);
        }
    }

    #[test]
    fn the_streamed_reply_is_the_parsed_reply(bytes in tag_soup()) {
        let (events, parsed) = streamed(&tagged(), &bytes, &[]);
        if let Ok(parsed) = parsed {
            let shown: String = events
                .iter()
                .filter_map(|event| match event { OutputEvent::Reply(text) => Some(text.as_str()), OutputEvent::Tag { .. } => None })
                .collect();
            prop_assert_eq!(shown, parsed.reply);
        }
    }

    #[test]
    fn a_json_value_is_read_as_serde_reads_it(value in any_json(), before in "[a-z .\n]{0,20}", fenced: bool) {
        let written = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(json_of(&written), Ok(value.clone()));
        if value.is_object() {
            let answer = if fenced { format!("{before}\n```json\n{written}\n```\n{before}") } else { format!("{before}{written}{before}") };
            prop_assert_eq!(json_of(&answer), Ok(value));
        }
    }

    #[test]
    fn a_value_cut_short_is_never_read_as_less(value in any_json(), cut in 0..400_usize) {
        let written = value.to_string();
        if (value.is_object() || value.is_array()) && cut < written.len() && written.is_char_boundary(cut) {
            prop_assert!(json_of(&written[..cut]).is_err(), "{}", &written[..cut]);
        }
    }

    #[test]
    fn mutated_answers_never_panic(value in any_json(), at in 0..400_usize, with in "\\PC{0,3}", yaml: bool) {
        let mut written = value.to_string();
        let at = written.floor_char_boundary(at);
        let end = written.ceil_char_boundary((at + 1).min(written.len()));
        written.replace_range(at..end, &with);
        let _ = if yaml { yaml_of(&written) } else { json_of(&written) };
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
        "\\PC{0,8}|[\\[\\]{}\"\\\\`\n]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec(("[a-z{\"\\[]{0,4}", inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}
