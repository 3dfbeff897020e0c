//! Source code: what stays of it, that it reads as code, and that no source breaks the guarantees.
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
use larder_condense::ContentType::Code;
use larder_condense::{Condensed, GapUnit, Reason, UnitOutcome, explain};
use larder_text::tokens::Counter;
use proptest::prelude::*;

const COUNTERS: [fn() -> Counter; 2] = [Counter::o200k, Counter::bytes];

fn condensed(text: &str, target: usize, query: Option<&str>) -> Condensed {
    let case = Case { text, content_type: Code, target, query, pins: &[] };
    checked(&case, &Counter::o200k()).expect("nothing is pinned")
}

/// Statements that say nothing in particular.
fn filler(from: usize, indent: &str, end: &str) -> String {
    const NAMES: [&str; 6] = ["left", "width", "margin", "offset", "height", "border"];
    (from..from + 14)
        .map(|n| format!("{indent}{} = {} + {n}{end}\n", NAMES[n % 6], NAMES[(n * 5 + 1) % 6]))
        .collect()
}

fn rust(functions: usize) -> String {
    let mut text = String::from(
        "//! Sizes of things.\n\nuse std::fmt;\nuse std::io::Read;\n\npub struct Frame {\n    pub width: u32,\n}\n\nimpl Frame {\n",
    );
    for n in 0..functions {
        let visibility = if n % 2 == 0 { "pub " } else { "" };
        text.push_str(&format!(
            "    /// Measures side {n}.\n    ///\n    /// It takes long, and then it is done, as one would think.\n    /// Nothing else is known of it.\n    {visibility}fn measure_{n}(&self, other: &Frame) -> u32 {{\n{}        width\n    }}\n\n",
            filler(n, "        let ", ";")
        ));
    }
    text.push_str("}\n");
    text
}

fn python(functions: usize) -> String {
    let mut text =
        String::from("import os\nfrom sys import path\n\n\nclass Frame:\n    \"\"\"A frame.\"\"\"\n\n");
    for n in 0..functions {
        let name = if n % 2 == 0 { format!("measure_{n}") } else { format!("_measure_{n}") };
        text.push_str(&format!(
            "    def {name}(self, other):\n        \"\"\"Measures side {n}.\"\"\"\n{}        return width\n\n",
            filler(n, "        ", "")
        ));
    }
    text
}

fn braces(functions: usize, opening: &str, signature: impl Fn(usize) -> String) -> String {
    let functions: String = (0..functions)
        .map(|n| format!("{} {{\n{}    return width;\n}}\n\n", signature(n), filler(n, "    ", ";")))
        .collect();
    format!("{opening}\n{functions}")
}

fn sources() -> Vec<(&'static str, String, String)> {
    vec![
        ("rust", rust(12), "pub fn measure_4(&self, other: &Frame) -> u32 {".into()),
        ("python", python(12), "def measure_4(self, other):".into()),
        (
            "javascript",
            braces(12, "const fs = require('fs');\n", |n| format!("export function measure_{n}(a, b)")),
            "export function measure_4(a, b) {".into(),
        ),
        (
            "typescript",
            braces(12, "import { x } from './x';\ninterface Frame { readonly width: number }\n", |n| {
                format!("export function measure_{n}(a: number, b: string): number")
            }),
            "export function measure_4(a: number, b: string): number {".into(),
        ),
        (
            "go",
            braces(12, "package main\n\nimport (\n\t\"fmt\"\n)\n", |n| {
                format!("func (f *Frame) Measure_{n}(a int) int")
            }),
            "func (f *Frame) Measure_4(a int) int {".into(),
        ),
        (
            "c",
            braces(12, "#include <stdio.h>\n#define SIZE 3\n", |n| {
                format!("int measure_{n}(const char *a, unsigned b)")
            }),
            "int measure_4(const char *a, unsigned b) {".into(),
        ),
        (
            "cpp",
            braces(12, "#include <string>\nnamespace a { class B; }\n", |n| {
                format!("std::string measure_{n}(const std::string& a)")
            }),
            "std::string measure_4(const std::string& a) {".into(),
        ),
        (
            "kotlin",
            braces(12, "package a\n\nimport b.c\n", |n| format!("fun measure_{n}(a: Int): Int")),
            "fun measure_4(a: Int): Int {".into(),
        ),
    ]
}

#[test]
fn signatures_of_every_language_go_before_bodies() {
    for (language, text, signature) in sources() {
        let whole = Counter::o200k().count(&text);
        let condensed = condensed(&text, whole / 3, None);
        assert!(condensed.text.contains(&signature), "{language}:\n{}", condensed.text);
        let shown = condensed.text.to_lowercase().matches("measure_").count();
        assert!(shown >= 10, "{language}: {shown} of 12 signatures in\n{}", condensed.text);
    }
}

#[test]
fn public_signatures_go_before_private_ones() {
    for text in [rust(40), python(40)] {
        let condensed = condensed(&text, 480, None);
        let (private, public): (Vec<_>, Vec<_>) =
            condensed.text.lines().filter(|line| line.contains("measure_")).partition(|line| {
                !line.contains("pub fn") && line.trim_start().starts_with("fn ") || line.contains("_measure_")
            });
        assert!(public.len() >= 8 && private.len() * 4 <= public.len(), "{}", condensed.text);
    }
}

#[test]
fn the_body_that_answers_the_query_is_shown_under_its_signature() {
    let text = rust(60).replacen(
        "let margin = border + 38;",
        "let margin = self.compensate_lens_distortion(border);",
        1,
    );
    let condensed = condensed(&text, 500, Some("where is lens distortion compensated?"));
    let at = condensed.text.find("compensate_lens_distortion").expect("the line is shown");
    let before = &condensed.text[..at];
    let signature = before.rfind("fn measure_").expect("its signature is shown");
    let original = text[..text.find("compensate_lens_distortion").unwrap()].rfind("fn measure_").unwrap();
    assert_eq!(&before[signature..signature + 14], &text[original..original + 14], "{}", condensed.text);
}

#[test]
fn gaps_are_whole_lines_indented_like_the_omitted_code() {
    let text = rust(20);
    let condensed = condensed(&text, 600, None);
    assert!(
        condensed.gaps.iter().filter(|gap| gap.unit == GapUnit::Line).count() * 10
            >= condensed.gaps.len() * 9
    );
    assert!(condensed.text.lines().any(|line| line.starts_with("        […")), "{}", condensed.text);
}

#[test]
fn short_comments_and_enclosing_classes_are_shown_with_their_method() {
    let text = format!(
        "{}\nclass Other:\n    # Turns it round.\n    def rotate(self, angle):\n{}",
        python(9),
        filler(3, "        ", "")
    );
    let condensed = condensed(&text, 260, Some("rotate angle"));
    assert!(
        condensed.text.contains("class Other:\n    # Turns it round.\n    def rotate(self, angle):\n"),
        "{}",
        condensed.text
    );
}

#[test]
fn failures_and_tasks_go_before_other_statements() {
    let text = rust(12).replacen("let margin = border + 8;", "return Err(Error::Empty(8));", 1).replacen(
        "let margin = border + 2;",
        "// TODO: measure twice",
        1,
    );
    let condensed = condensed(&text, 700, None);
    assert!(condensed.text.contains("TODO: measure twice"), "{}", condensed.text);
    assert!(condensed.text.contains("Err(Error::Empty(8))"), "{}", condensed.text);
}

#[test]
fn source_that_does_not_parse_is_condensed_by_what_can_be_read() {
    let broken = rust(12).replacen("-> u32 {", "-> u32 ((", 2).replacen('}', "", 3);
    let condensed = condensed(&broken, 500, None);
    assert!(condensed.text.matches("fn measure_").count() >= 8, "{}", condensed.text);
}

#[test]
fn deep_nesting_is_read_without_recursion() {
    for (open, close) in [("{", "}"), ("(", ")"), ("[", "]"), ("if (x) {\n", "}\n"), ("f(", ")")] {
        let deep = |text: String| {
            format!("fn main() {{\n    let mut a = 1;\n{text}\n}}\npub fn b() -> Result<(), ()> {{}}\n")
        };
        for text in [deep(open.repeat(10_000) + &close.repeat(10_000)), deep(open.repeat(10_000))] {
            assert!(condensed(&text, 200, None).tokens <= 200);
        }
    }
    let python: String =
        (0..10_000).map(|n| format!("{}if self.x is None:\n", " ".repeat(n % 900))).collect();
    assert!(condensed(&format!("def a():\n{python}"), 200, None).tokens <= 200);
}

#[test]
fn hostile_source_is_condensed() {
    let minified = "function a(b){return b===null?0:a(b-1)};".repeat(26_000);
    let carriage = rust(20).replace('\n', "\r\n");
    let binary: String = (0..40_000_u32).filter_map(|n| char::from_u32(n * 7 % 0x3ff)).collect();
    let marks = rust(20).replace("let left", "[… L3-9] let left");
    let unclosed = format!("fn a() {{ \"{}", rust(30));
    let lines = "x\n".repeat(100_000);
    for text in [
        minified,
        carriage,
        binary,
        marks,
        unclosed,
        lines,
        "\0".repeat(5_000),
        "}\n".repeat(9_000),
        "\"\"\"\n".repeat(5_001),
    ] {
        assert!(condensed(&text, 300, Some("measure")).tokens <= 300);
    }
}

#[test]
fn time_grows_in_proportion_on_either_side_of_the_largest_parsed_text() {
    for (small, large) in [(20, 200), (600, 6_000)] {
        let (small, large) = (rust(small), rust(large));
        let counter = Counter::o200k();
        let time = |text: &str| {
            guarantees::seconds(|| {
                let case = Case { text, content_type: Code, target: 500, query: Some("offset"), pins: &[] };
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
fn every_unit_is_explained_by_the_selection_that_was_made() {
    let text = rust(30);
    let case =
        Case { text: &text, content_type: Code, target: 500, query: Some("measure side 7"), pins: &[] };
    let explanation = case.with(&Counter::o200k(), |request| explain(request, 300)).unwrap();
    assert_eq!(explanation.condensed, case.run(&Counter::o200k()).unwrap());
    let mut at = 0;
    for unit in &explanation.units {
        assert_eq!(unit.bytes.start, at);
        at = unit.bytes.end;
        assert!(!unit.reasons.is_empty() && unit.score.is_some());
        let hidden = explanation
            .condensed
            .gaps
            .iter()
            .any(|gap| gap.bytes.start <= unit.bytes.start && unit.bytes.end <= gap.bytes.end);
        assert_eq!(hidden, unit.outcome == UnitOutcome::LeftOut, "{unit:?}");
    }
    assert_eq!(at, text.len());
    let answer =
        explanation.units.iter().find(|unit| text[unit.bytes.clone()].contains("measure_7(")).unwrap();
    assert!(answer.outcome == UnitOutcome::Shown && answer.reasons.contains(&Reason::Query), "{answer:?}");
    assert!(answer.terms.contains(&"measure".to_owned()) && answer.tokens > 0);
    let larger = Case { target: 800, ..case }.run(&Counter::o200k()).unwrap();
    assert!(!explanation.further.is_empty());
    for range in &explanation.further {
        assert!(larger.gaps.iter().all(|gap| gap.bytes.end <= range.start || range.end <= gap.bytes.start));
    }
}

#[test]
fn marks_of_an_earlier_condensation_survive_another() {
    let text = rust(40);
    let once = condensed(&text, 500, None);
    let around = format!("{}\n{}\n{}", python(12), once.text, python(12));
    let twice = condensed(&around, 1_500, None);
    let header = once.text.lines().next().unwrap();
    assert!(twice.text.contains(header), "{}", twice.text);
    let few = condensed(&text, 1_500, Some("measure side 7"));
    let again = condensed(&few.text, 1_200, None);
    assert!(again.text.contains(few.text.lines().next().unwrap()), "{}", again.text);
}

fn texts() -> impl Strategy<Value = String> {
    let scraps = prop::sample::select(vec![
        "fn a(b: u8) -> u8 {\n",
        "pub fn c() {\n",
        "}\n",
        "    let x = 1;\n",
        "impl A for B {\n",
        "use std::io;\n",
        "/// Doc.\n",
        "// TODO: x\n",
        "#[test]\n",
        "def f(x):\n",
        "    return x\n",
        "class C:\n",
        "    \"\"\"Doc.\"\"\"\n",
        "@decorator\n",
        "import os\n",
        "function f(a) {\n",
        "export const x = () => {\n",
        "};\n",
        "#include <a.h>\n",
        "int main(void) {\n",
        "template <typename T>\n",
        "package main\n",
        "func (a A) B() error {\n",
        "\treturn nil\n",
        "public class D {\n",
        "  private int e;\n",
        "else if (x) {\n",
        "} else {\n",
        "/* c\n",
        "*/\n",
        "\"unclosed\n",
        "'\n",
        "`${x}`\n",
        "\n",
        "\0",
        "((((",
        "))))",
        "{{",
        "}}",
        "    ",
        "\t",
        "猫 = 1\n",
        "r#\"",
        "<div>\n",
        "=> ",
        "; ",
        "raise ValueError(\"x\")\n",
        "https://example.org/x ",
        "if x:\n",
        "end\n",
        "switch (x) {\ncase 1:\n",
    ]);
    let lines = prop::collection::vec((scraps, 1..4_usize), 0..160)
        .prop_map(|scraps| scraps.into_iter().map(|(scrap, times)| scrap.repeat(times)).collect::<String>());
    let whole = (0..8_usize).prop_map(|which| sources().swap_remove(which).1);
    prop_oneof![2 => lines, 2 => whole, 1 => "\\PC{0,600}"]
}

proptest! {
    #[test]
    fn any_source_meets_its_target_or_is_refused_with_the_number_it_needs(
        text in texts(),
        mutations in mutations(),
        target in prop_oneof![0..80_usize, 80..700_usize, 700..2_000_usize],
        counter in prop::sample::select(COUNTERS.to_vec()),
        query in prop::option::of("[a-z ]{0,20}|measure side 3|raise"),
        places in prop::collection::vec((any::<prop::sample::Index>(), 0..60_usize), 0..3),
    ) {
        let text = mutated(text, &mutations);
        let pins = pins_of(&text, &places);
        let case = Case { text: &text, content_type: Code, target, query: query.as_deref(), pins: &pins };
        check_explained(&case, &counter());
    }

    #[test]
    fn a_condensed_source_survives_a_second_condenser(text in texts(), first in 80..500_usize, second in 60..400_usize) {
        check_twice(&Case::new(Code, &text, first), second);
    }
}

#[test]
fn a_chain_of_continued_blocks_is_walked_once() {
    let text = "const d = [{\n".to_owned() + &"  id: 1,\n}, {\n".repeat(50_000) + "}];\n";
    assert!(condensed(&text, 300, None).tokens <= 300);
}
