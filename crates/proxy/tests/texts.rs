//! Results of several texts, seen from outside: each is condensed as what it is, in every wire format.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop and say why")]

use larder_core::policy::{ContextBudgetPolicy, ModelProfile, PolicySettings};
use larder_proxy::window::{Preview, preview};
use larder_proxy::wire::ApiDialect;
use larder_text::hash::ContentHash;
use larder_text::pointer::PointerKey;
use larder_text::select::Selection;
use larder_text::tokens::Counter;
use serde_json::{Value, json};

const FOUND: &str = "Found 300 shipments in 2 warehouses.";
const STOCK: &str = "Their stock by depot follows.";
const CAP: usize = 1_200;

/// 30 kB on one line.
fn shipments() -> String {
    let town = ["Aarhus", "Bergen", "Cork", "Delft", "Esbjerg", "Faro"];
    let row = |at: usize| json!({"id": 1_000 + at, "town": town[at % 6], "crates": at * 7 % 97, "note": format!("dock {} bay {}", at % 9, at % 31)});
    json!({"shipments": (0..400).map(row).collect::<Vec<_>>()}).to_string()
}

fn stock() -> String {
    let row = |at: usize| format!("depot {at},{},{}\n", at * 31 % 4_001, ["open", "closed"][at % 2]);
    format!("depot,crates,state\n{}", (0..300).map(row).collect::<String>())
}

/// A conversation in which a tool has answered with these texts, and then with others `more` times.
fn body(dialect: ApiDialect, texts: &[String], more: usize) -> String {
    let results: Vec<Vec<String>> = std::iter::once(texts.to_vec())
        .chain(
            (0..more)
                .map(|at| vec![format!("Page {at}."), shipments().replace("dock", &format!("dock {at}"))]),
        )
        .collect();
    let mut messages = Vec::new();
    let said = |role: &str, text: &str| match dialect {
        ApiDialect::Converse => json!({"role": role, "content": [{"text": text}]}),
        _ => json!({"role": role, "content": text}),
    };
    messages.push(said("user", "Which shipments go to Cork?"));
    for (at, texts) in results.iter().enumerate() {
        let (id, name) = (format!("call_{at}"), "list_shipments");
        let block = |kind: &str| -> Vec<Value> {
            texts.iter().map(|text| json!({"type": kind, "text": text})).collect()
        };
        match dialect {
            ApiDialect::Chat => {
                let call =
                    json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
                messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": block("text")}));
            }
            ApiDialect::Responses => {
                messages
                    .push(json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{}"}));
                messages.push(
                    json!({"type": "function_call_output", "call_id": id, "output": block("input_text")}),
                );
            }
            ApiDialect::Messages | ApiDialect::Invoke => {
                let call = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                messages.push(json!({"role": "assistant", "content": [call]}));
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": block("text")});
                messages.push(json!({"role": "user", "content": [result]}));
            }
            ApiDialect::Converse => {
                let call = json!({"toolUse": {"toolUseId": id, "name": name, "input": {}}});
                messages.push(json!({"role": "assistant", "content": [call]}));
                let blocks: Vec<Value> = texts.iter().map(|text| json!({"text": text})).collect();
                let result = json!({"toolResult": {"toolUseId": id, "content": blocks}});
                messages.push(json!({"role": "user", "content": [result]}));
            }
        }
    }
    let list = if dialect == ApiDialect::Responses { "input" } else { "messages" };
    json!({"model": "m", "max_tokens": 500, list: messages}).to_string()
}

/// The text of the first result as it is sent.
fn result(dialect: ApiDialect, sent: &str) -> String {
    let body: Value = serde_json::from_str(sent).unwrap();
    let list = if dialect == ApiDialect::Responses { "input" } else { "messages" };
    let message = &body[list][2];
    let content = match dialect {
        ApiDialect::Chat => &message["content"],
        ApiDialect::Responses => &message["output"],
        ApiDialect::Messages | ApiDialect::Invoke => &message["content"][0]["content"],
        ApiDialect::Converse => &message["content"][0]["toolResult"]["content"],
    };
    let blocks = content.as_array().unwrap_or_else(|| panic!("{dialect:?}: {message}"));
    blocks.iter().map(|block| block["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

fn key() -> PointerKey {
    PointerKey::new([7; 32])
}

fn sent(dialect: ApiDialect, body: &str) -> Preview {
    let settings = PolicySettings { entry_cap: Some(CAP), ..PolicySettings::default() };
    let model = ModelProfile { window: 200_000, input_limit: None, max_output: None, cache: None };
    let policy = ContextBudgetPolicy::from_settings(&settings, &model);
    preview(dialect, body, &policy, &Counter::o200k(), &key()).unwrap()
}

/// What the model reads where it appends the range of a gap to the pointer of a result.
fn read_back(original: &str, range: &str) -> String {
    let selection = match range.split_at(1) {
        ("L", lines) => Selection::lines(lines),
        (_, bytes) => Selection::bytes(bytes),
    };
    String::from_utf8(selection.unwrap().apply(original.as_bytes()).unwrap()).unwrap()
}

/// The ranges of the gaps that a text marks.
fn gaps(shown: &str) -> Vec<&str> {
    let marks = shown.split("[… ").skip(1);
    marks.filter_map(|mark| mark.split([']', ' ', ',']).next()).collect()
}

#[test]
fn each_text_of_a_result_is_condensed_as_what_it_is() {
    let texts = [FOUND.to_owned(), shipments(), STOCK.to_owned(), stock()];
    let original = texts.join("\n");
    for dialect in ApiDialect::ALL {
        let preview = sent(dialect, &body(dialect, &texts, 0));
        let shown = result(dialect, &preview.body);
        assert!(Counter::o200k().count(&shown) <= CAP, "{dialect:?}: {shown}");
        // The sentences are whole, each before what it announces.
        let (found, rest) =
            shown.split_once(&format!("{FOUND}\n")).unwrap_or_else(|| panic!("{dialect:?}: {shown}"));
        let (json, csv) =
            rest.split_once(&format!("{STOCK}\n")).unwrap_or_else(|| panic!("{dialect:?}: {shown}"));
        assert_eq!(found, "");
        // Rows are rows, whatever writes them.
        assert!(json.contains("\nshipments: rows 0-399: id\n"), "{json}");
        assert!(csv.contains("\nrows 0-299: depot\n"), "{csv}");
        // Each has a fair share of the tokens, and nothing else is stored than what the client sent.
        for part in [json, csv] {
            let tokens = Counter::o200k().count(part);
            assert!((CAP * 2 / 5..=CAP * 3 / 5).contains(&tokens), "{tokens}: {part}");
        }
        assert_eq!(preview.originals, [original.as_str()]);
        let pointer = key().mint(ContentHash::new(original.as_bytes()));
        assert!(key().find_in(&shown).iter().all(|(_, found)| found.id == pointer));
        // What is left out can be read back by the range in its marker.
        let hidden: String = gaps(csv).into_iter().map(|range| read_back(&original, range)).collect();
        let rows = stock();
        assert!(!hidden.is_empty() && hidden.lines().all(|line| rows.contains(line)), "{hidden}");
        // The head names the columns, in other words.
        for row in rows.lines().skip(1) {
            assert!(csv.contains(row) || hidden.contains(row), "{row} is neither shown nor hidden");
        }
        let hidden: String = gaps(json).into_iter().map(|range| read_back(&original, range)).collect();
        for at in 0..400 {
            let id = (1_000 + at).to_string();
            assert!(json.contains(&id) || hidden.contains(&id), "{id} is neither shown nor hidden");
        }
        assert_eq!(preview.record.compactions[0].content_type, "json");
    }
}

#[test]
fn a_result_of_several_texts_keeps_its_bytes_while_the_conversation_grows() {
    let texts = [FOUND.to_owned(), shipments()];
    for dialect in ApiDialect::ALL {
        let first = sent(dialect, &body(dialect, &texts, 0)).body;
        let grown = sent(dialect, &body(dialect, &texts, 3)).body;
        assert_eq!(result(dialect, &first), result(dialect, &grown), "{dialect:?}");
        assert_eq!(first, sent(dialect, &body(dialect, &texts, 0)).body);
    }
}

/// What reads as one text is condensed as one: the records of a list that a tool gives one by one.
#[test]
fn records_in_texts_of_their_own_are_one_list() {
    let records: Value = serde_json::from_str(&shipments()).unwrap();
    let texts: Vec<String> =
        records["shipments"].as_array().unwrap().iter().map(ToString::to_string).collect();
    let shown = result(ApiDialect::Chat, &sent(ApiDialect::Chat, &body(ApiDialect::Chat, &texts, 0)).body);
    assert_eq!(shown.matches("[Condensed").count(), 1, "{shown}");
    assert!(shown.contains("\nrows 0-399: id"), "{shown}");
}

/// So many that nothing of each could be shown are condensed together.
#[test]
fn more_texts_than_the_cap_has_room_for_are_condensed_as_one() {
    let texts: Vec<String> = (0..40)
        .flat_map(|at| [format!("Page {at}."), shipments()[..3_000].to_owned(), stock()[..2_000].to_owned()])
        .collect();
    let preview = sent(ApiDialect::Chat, &body(ApiDialect::Chat, &texts, 0));
    let shown = result(ApiDialect::Chat, &preview.body);
    assert!(Counter::o200k().count(&shown) <= CAP, "{shown}");
    assert_eq!(preview.originals, [texts.join("\n")]);
}
