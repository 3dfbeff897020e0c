//! Tests of conversations: what is read as one, and what stays of it.

use super::*;
use crate::types::chat::messages::Speaker::{Assistant, Other, System, Tool, User};

fn roles(text: &str) -> Vec<Speaker> {
    ChatTranscript::of(text).messages.iter().map(|message| message.role).collect()
}

const LINES: &str = "User: please fix the build\nAssistant: which one?\nUser: the nightly\nAssistant: done\n";
const HEADED: &str =
    "## User\n\nfix it\n\n## Assistant (12:01)\n\nok\n\n## User\n\nand test\n\n## Assistant\n\nyes\n";
const BOLD: &str = "**User:** a\n\n**Assistant:** b\n\n**User:** c\n\n**Assistant:** d\n";

#[test]
fn messages_are_found_however_they_are_written() {
    for text in [LINES, HEADED, BOLD] {
        assert_eq!(roles(text), [User, Assistant, User, Assistant], "{text}");
        assert!(looks_like(text), "{text}");
    }
    let json = r#"{"model": "m", "messages": [{"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "say \"role\": {x}"}]},
        {"content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}], "role": "assistant"},
        {"role": "tool", "content": "ok"}]}"#;
    assert_eq!(roles(json), [System, User, Assistant, Tool]);
    assert!(looks_like(json));
    assert!(looks_like(
        "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n"
    ));
    assert_eq!(roles("Ann: hi\nBob: hello\nAnn: so\nBob: yes\n"), [Other, Other, Other, Other]);
}

#[test]
fn an_unknown_speaker_must_recur() {
    let text = "Ann: hi\nNote: this is no turn\nann smith: nor is this\nAnn: so\n";
    assert_eq!(roles(text), [Other, Other]);
}

#[test]
fn text_that_only_resembles_a_conversation_is_rejected() {
    for text in [
        "",
        "User: one line\n",
        "ERROR: a\nINFO: b\nERROR: c\nINFO: d\nERROR: e\n",
        "Name: x\nVersion: 1\nName: y\nVersion: 2\nName: z\n",
        "[{\"role\": \"admin\", \"content\": \"x\"}, {\"role\": \"owner\", \"content\": \"y\"}]",
        "[{\"id\": 1, \"role\": \"user\"}, {\"id\": 2, \"role\": \"user\"}]",
        "{\"rows\": [1, 2, 3], \"role\": \"user\"}",
        "A: 1\nA: 2\nA: 3\nA: 4\n",
        "{{{{{{\"role\"",
        "[\"role\":\"",
    ] {
        assert!(!looks_like(text), "{text}");
    }
}

#[test]
fn messages_and_labels_are_ordered_and_contiguous() {
    let json = r#"[{"role":"user","content":"a"} , {"content":"long before the role","role":"assistant"},{"role":"user","content":""}]"#;
    for text in [LINES, HEADED, BOLD, json] {
        let messages = ChatTranscript::of(text).messages;
        for pair in messages.windows(2) {
            assert_eq!(pair[0].range.end, pair[1].range.start);
        }
        for message in &messages {
            assert!(message.range.start <= message.label.start && message.label.end <= message.range.end);
        }
    }
}

#[test]
fn pieces_of_a_json_string_tile_it_and_cut_no_escape() {
    let text = r#"first line, quite long\\n not an end\nsecond line, also long\u00e9\n"third" 猫\"#;
    let lines = escaped_lines(text, 0..text.len());
    let joined: String = lines.iter().map(|line| &text[line.clone()]).collect();
    assert_eq!(joined, text);
    assert!(lines.iter().any(|line| text[line.clone()].ends_with(r"not an end\n")));
}

#[test]
fn words_that_matter_outweigh_talk() {
    for sentence in [
        "We decided to keep SQLite because it needs no server.",
        "The build failed with exit code 101.",
        "All 14 tests are passing.",
        "Still need to write the migration.",
    ] {
        assert!(cues::worth(sentence) > 1.0, "{sentence}");
    }
    for sentence in ["Sure! I'd be happy to help.", "Thanks!", "Great question."] {
        assert!(cues::worth(sentence) < 1.0, "{sentence}");
    }
    assert!((cues::worth("The sky over the harbour was grey") - 1.0).abs() < f32::EPSILON);
}
