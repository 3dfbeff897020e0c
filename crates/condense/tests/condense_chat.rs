//! Conversations: what stays of them, whatever way they are written, and that none breaks the guarantees.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

mod guarantees;

use guarantees::{Case, check_explained, check_twice, checked, mutated, mutations, pins_of};
use larder_condense::ContentType::{Chat, ToolResult};
use larder_condense::{Condensed, UnitOutcome, explain};
use larder_text::message::Role;
use larder_text::tokens::Counter;
use larder_text::transcript::{self, Entry};
use proptest::prelude::*;

const COUNTERS: [fn() -> Counter; 2] = [Counter::o200k, Counter::bytes];
const SUBJECTS: [&str; 7] = ["harbour", "library", "market", "orchard", "railway", "theatre", "observatory"];

fn condensed(text: &str, target: usize, query: Option<&str>) -> Condensed {
    let case = Case { text, content_type: Chat, target, query, pins: &[] };
    checked(&case, &Counter::o200k()).expect("nothing is pinned")
}

fn talk(n: usize) -> String {
    let (a, b) = (SUBJECTS[n % 7], SUBJECTS[(n / 7) % 7]);
    format!("Certainly, one may look at the {a} from the side of the {b} and see much the same. ")
}

/// Turns of a conversation about a piece of work: a request, things that matter, and much talk.
fn turns(count: usize) -> Vec<(&'static str, String)> {
    (0..count)
        .map(|n| match n {
            0 => {
                ("user", "Please move the importer to streaming, and keep its memory below 64 MB.".to_owned())
            }
            n if n == count / 4 => (
                "assistant",
                format!("{}We decided to keep SQLite because it needs no server. {}", talk(n), talk(n + 1)),
            ),
            n if n == count / 3 => (
                "user",
                "It failed: error[E0502]: cannot borrow `rows` as mutable in import.rs:88".to_owned(),
            ),
            n if n == count / 2 => (
                "assistant",
                format!(
                    "{}\n\nThis now works:\n\n```rust\nlet rows = std::mem::take(&mut self.rows);\n```\n\n{}",
                    talk(n),
                    talk(n + 2)
                ),
            ),
            n if n + 3 == count => {
                ("assistant", format!("{}Still need to write the migration for version 7.", talk(n)))
            }
            n if n + 1 == count => ("user", "What is left to do?".to_owned()),
            n => (["user", "assistant"][n % 2], talk(n).repeat(if n % 2 == 0 { 1 } else { 4 })),
        })
        .collect()
}

fn lines(turns: &[(&str, String)]) -> String {
    let name = |role: &str| if role == "user" { "User" } else { "Assistant" };
    turns.iter().map(|(role, said)| format!("{}: {said}\n\n", name(role))).collect()
}

fn headed(turns: &[(&str, String)]) -> String {
    turns.iter().map(|(role, said)| format!("## {role}\n\n{said}\n\n")).collect()
}

fn json(turns: &[(&str, String)]) -> String {
    let messages: Vec<serde_json::Value> =
        turns.iter().map(|(role, said)| serde_json::json!({"role": role, "content": said})).collect();
    serde_json::to_string(&messages).unwrap()
}

fn writings(turns: &[(&str, String)]) -> [String; 3] {
    [lines(turns), headed(turns), json(turns)]
}

#[test]
fn what_a_developer_needs_to_go_on_is_kept() {
    for text in writings(&turns(46)) {
        let condensed = condensed(&text, Counter::o200k().count(&text) / 5, None);
        for kept in [
            "move the importer to streaming, and keep its memory below 64 MB",
            "We decided to keep SQLite because it needs no server.",
            "error[E0502]: cannot borrow `rows` as mutable",
            "let rows = std::mem::take(&mut self.rows);",
            "Still need to write the migration for version 7.",
            "What is left to do?",
        ] {
            assert!(condensed.text.contains(kept), "{kept} in\n{}", condensed.text);
        }
    }
}

/// What people write when they decide.
const DECISIONS: [&str; 10] = [
    "Decision: we use rust_decimal for amounts because f64 loses cents.",
    "**Decision:** amounts are integers of cents.",
    "Decided: no floats in the exporter.",
    "We agreed on semicolons because Excel wants them.",
    "We will use rust_decimal because f64 loses cents.",
    "Entscheidung: Beträge werden als Ganzzahlen gespeichert.",
    "Wir verwenden rust_decimal, weil f64 Cent verliert.",
    "Wir nehmen Postgres, weil es schon läuft.",
    "We decided to keep the public API.",
    "Let's go with quoted fields.",
];

#[test]
fn decisions_requests_and_failures_precede_output_that_repeats_itself() {
    let compiled = |step: usize| -> String {
        (0..40).map(|n| format!("   Compiling dep-{n} v0.{n}.{step}\n")).collect()
    };
    let failure = |step: usize| {
        format!(
            "error[E0308]: mismatched types\n  --> src/export.rs:{}:13\n   |\n{0} |     let x: u32 = a;\n",
            100 + step
        )
    };
    for decision in DECISIONS {
        let mut turns = vec![("user", "Build the invoice exporter.".to_owned())];
        for step in 0..60 {
            turns.push(("assistant", format!("Step {step}: I run it.")));
            let failed = if step % 7 == 3 { failure(step) } else { String::new() };
            turns.push(("tool", compiled(step) + &failed));
            match step {
                20 => turns.push(("assistant", format!("Tests pass.\n\n{decision}"))),
                33 => turns.push(("user", "Please do not rename Row.".to_owned())),
                _ => {}
            }
        }
        let entries: Vec<Entry<'_>> = turns
            .iter()
            .zip(1..)
            .map(|((role, text), number)| Entry {
                number,
                role: match *role {
                    "user" => Role::User,
                    "tool" => Role::Tool,
                    _ => Role::Assistant,
                },
                text,
                calls: &[],
            })
            .collect();
        let text = transcript::write(&entries).0;
        for query in [None, Some("Which dep does the step compile?")] {
            let condensed = condensed(&text, 2_500, query);
            let failures: Vec<String> = (0..60)
                .filter(|step| step % 7 == 3)
                .map(|step| format!("src/export.rs:{}:13", 100 + step))
                .collect();
            for kept in [decision, "do not rename Row"].into_iter().chain(failures.iter().map(String::as_str))
            {
                assert!(condensed.text.contains(kept), "{query:?} {kept} in\n{}", condensed.text);
            }
        }
    }
}

#[test]
fn a_failure_that_an_assistant_reports_is_kept_whatever_the_query_is() {
    let words: Vec<&str> =
        "the parser reads an order from its queue and the table has a column for each buffer while stream \
                            and lexer walk over the ledger with a cursor in a quiet thread"
            .split(' ')
            .collect();
    let mut state = 9_u32;
    let mut next = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize % below
    };
    let mut prose = |paragraphs: usize| -> String {
        let mut text = String::new();
        for _ in 0..paragraphs {
            for _ in 0..13 {
                let said: Vec<&str> = (0..7 + next(9)).map(|_| words[next(words.len())]).collect();
                text += &format!("It is {}. ", said.join(" "));
            }
            text += "\n\n";
        }
        text
    };
    for report in [
        "error[E0308]: mismatched types in export.rs line 42",
        "The build failed with error[E0308]: mismatched types in export.rs line 42.",
        "```text\nerror[E0308]: mismatched types\n  --> src/export.rs:42:9\n```",
    ] {
        let mut turns = vec![("user", "Build the CSV export.".to_owned())];
        for n in 1..46 {
            let said = if n == 11 { format!("{}{report}\n\n{}", prose(n), prose(n + 50)) } else { prose(n) };
            turns.push((if n % 2 == 1 { "assistant" } else { "user" }, said));
        }
        let entries = turns.iter().zip(1..).map(|((role, text), number)| Entry {
            number,
            role: if *role == "user" { Role::User } else { Role::Assistant },
            text,
            calls: &[],
        });
        let text = transcript::write(&entries.collect::<Vec<_>>()).0;
        let condensed = condensed(&text, 3_800, Some(&turns[44].1));
        assert!(condensed.text.contains("E0308"), "{report}");
    }
}

#[test]
fn older_talk_goes_first_and_gaps_name_messages() {
    for text in writings(&turns(46)) {
        let condensed = condensed(&text, Counter::o200k().count(&text) / 4, None);
        assert!(
            condensed.text.contains(", messages ") || condensed.text.contains(", message "),
            "{}",
            condensed.text
        );
        let share = |range: std::ops::Range<usize>| {
            let hidden = |gap: &std::ops::Range<usize>| {
                gap.end.min(range.end).saturating_sub(gap.start.max(range.start))
            };
            let hidden: usize = condensed.gaps.iter().map(|gap| hidden(&gap.bytes)).sum();
            hidden as f64 / range.len() as f64
        };
        let (older, newer) = (share(0..text.len() / 2), share(text.len() / 2..text.len()));
        assert!(older > newer, "{older} and {newer}");
    }
}

#[test]
fn messages_are_shown_with_their_speaker() {
    let text = lines(&turns(46));
    let condensed = condensed(&text, 500, Some("SQLite server"));
    let at = condensed.text.find("We decided").unwrap();
    let speaker = condensed.text[..at].rfind(['\n']).map(|line| &condensed.text[line + 1..at]).unwrap();
    assert!(condensed.text[..at].rfind("Assistant: ") > condensed.text[..at].rfind("User: "), "{speaker}");
}

#[test]
fn the_turn_that_answers_the_query_is_kept() {
    let mut turns = turns(60);
    turns[21].1 = format!("{}The staging password rotates on the second Tuesday. {}", talk(3), talk(4));
    for text in writings(&turns) {
        let condensed = condensed(&text, 600, Some("When does the staging password rotate?"));
        assert!(condensed.text.contains("rotates on the second Tuesday"), "{}", condensed.text);
    }
}

#[test]
fn a_tool_result_that_is_a_conversation_is_condensed_as_one() {
    for text in writings(&turns(46)) {
        let as_tool = Case { text: &text, content_type: ToolResult, target: 700, query: None, pins: &[] };
        let as_chat = Case { content_type: Chat, ..as_tool };
        let counter = Counter::o200k();
        assert_eq!(as_tool.run(&counter).unwrap().text, as_chat.run(&counter).unwrap().text);
    }
}

#[test]
fn marks_and_pointers_of_an_earlier_condensation_survive_another() {
    let text = lines(&turns(46));
    let once = condensed(&text, 900, None);
    let grown = format!("{}{}", once.text, lines(&turns(20)));
    let twice = condensed(&grown, 900, None);
    let header = once.text.lines().next().unwrap();
    assert!(twice.text.contains(header), "{}", twice.text);
}

#[test]
fn the_newest_turns_are_explained_as_going_first() {
    let text = json(&turns(46));
    let case = Case { text: &text, content_type: Chat, target: 600, query: None, pins: &[] };
    let explanation = case.with(&Counter::o200k(), |request| explain(request, 200)).unwrap();
    let last =
        explanation.units.iter().rev().find(|unit| text[unit.bytes.clone()].contains("left to do")).unwrap();
    assert!(
        last.outcome == UnitOutcome::Shown && last.reasons.contains(&larder_condense::Reason::First),
        "{last:?}"
    );
    assert!(explanation.units.iter().any(|unit| unit.outcome == UnitOutcome::LeftOut));
}

#[test]
fn hostile_conversations_are_condensed() {
    let deep =
        format!("[{{\"role\":\"user\",\"content\":{}1{}}}]", "[{\"a\":".repeat(10_000), "}]".repeat(10_000));
    let long = format!("User: {}\nAssistant: b\nUser: c\nAssistant: d\n", "x".repeat(1_000_000));
    let cut = json(&turns(46));
    let cut = &cut[..cut.floor_char_boundary(cut.len() * 2 / 3)];
    for text in [
        deep.as_str(),
        &long,
        cut,
        &"User:".repeat(20_000),
        &"User:\n".repeat(20_000),
        &"User: a\nAssistant: b\n".repeat(5_000),
        &"{\"role\":".repeat(20_000),
        &"[{\"role\":\"user\",\"content\":\"\\".repeat(9_000),
        &"\"".repeat(30_001),
        &"\\".repeat(30_001),
        &lines(&turns(46)).replace('\n', "\r\n"),
        &lines(&turns(46)).replace(' ', "\0"),
        &"User: [… L3-9] a\nAssistant: b\n".repeat(900),
    ] {
        assert!(condensed(text, 300, Some("a b")).tokens <= 300);
    }
}

#[test]
fn time_grows_in_proportion() {
    for write in [lines, json] {
        let (small, large) = (write(&turns(200)), write(&turns(2_000)));
        let counter = Counter::o200k();
        let time = |text: &str| {
            guarantees::seconds(|| {
                let case = Case { text, content_type: Chat, target: 500, query: Some("harbour"), pins: &[] };
                assert!(case.run(&counter).is_ok());
            })
        };
        let (fast, slow) = (time(&small), time(&large));
        let grown = large.len() as f64 / small.len() as f64;
        // 10 times the input in at most 12 times the time, and as much again for a busy machine.
        assert!(
            slow <= fast.max(0.000_5) * grown * 2.4,
            "{fast} s, then {slow} s for {grown} times the text"
        );
    }
}

#[test]
fn initials_behind_a_long_indentation_take_linear_time() {
    let text = |len: usize| " ".repeat(len / 2) + &"A. ".repeat(len / 6);
    let time = |text: &str| {
        guarantees::seconds(|| {
            let case = Case {
                text,
                content_type: larder_condense::ContentType::Prose,
                target: 300,
                query: None,
                pins: &[],
            };
            assert!(case.run(&Counter::o200k()).is_ok());
        })
    };
    let (fast, slow) = (time(&text(30_000)), time(&text(120_000)));
    // 4 times the text in at most 4.8 times the time, and as much again for a busy machine.
    assert!(slow <= fast.max(0.000_5) * 9.6, "{fast} s, then {slow} s for 4 times the text");
}

fn texts() -> impl Strategy<Value = String> {
    let said = prop::sample::select(vec![
        "Sure! ",
        "We decided to go. ",
        "error: no\n",
        "```rust\nlet a = 1;\n```\n",
        "$1,299.00 ",
        "猫である。",
        "\n\n",
        "\"quoted\" ",
        "\\n",
        "User: ",
        "## Heading\n",
        "- item\n",
        "TODO later. ",
        "https://example.org/a ",
        "a long sentence of nothing much at all. ",
        "\0",
        "{\"role\": \"user\"}",
        "[… L3-9]",
        "| a | b |\n|---|---|\n",
        "é",
    ]);
    let said = prop::collection::vec(said, 0..12).prop_map(|scraps| scraps.concat());
    let role = prop::sample::select(vec!["user", "assistant", "system", "tool", "Ann"]);
    let turns = prop::collection::vec((role, said), 0..30);
    (turns, 0..3_usize).prop_map(|(turns, writing)| {
        let turns: Vec<(&str, String)> = turns;
        let [lines, headed, json] = writings(&turns);
        [lines, headed, json][writing].clone()
    })
}

proptest! {
    #[test]
    fn any_conversation_meets_its_target_or_is_refused_with_the_number_it_needs(
        text in texts(),
        mutations in mutations(),
        target in prop_oneof![0..80_usize, 80..700_usize, 700..2_000_usize],
        counter in prop::sample::select(COUNTERS.to_vec()),
        query in prop::option::of("[a-z ]{0,20}|decided|猫である"),
        places in prop::collection::vec((any::<prop::sample::Index>(), 0..60_usize), 0..3),
    ) {
        let text = mutated(text, &mutations);
        let pins = pins_of(&text, &places);
        let case = Case { text: &text, content_type: Chat, target, query: query.as_deref(), pins: &pins };
        check_explained(&case, &counter());
    }

    #[test]
    fn a_condensed_conversation_survives_a_second_condenser(text in texts(), first in 80..500_usize, second in 60..400_usize) {
        check_twice(&Case::new(Chat, &text, first), second);
    }
}
