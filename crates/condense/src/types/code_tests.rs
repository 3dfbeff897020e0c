//! Tests of source code: languages, outlines and what stays.

use super::outline::LineRole;
use super::*;

/// The lines of a text with their roles.
fn roles(text: &str, annotate: impl Fn(&mut CodeOutline<'_>)) -> Vec<(String, LineRole)> {
    let mut outline = CodeOutline::of(text);
    annotate(&mut outline);
    let rows = (0..outline.rows()).filter(|&row| !outline.is_blank(row));
    rows.map(|row| (outline.line(row).trim().to_owned(), outline.role(row))).collect()
}

fn role_of(roles: &[(String, LineRole)], beginning: &str) -> Option<LineRole> {
    roles.iter().find(|(line, _)| line.starts_with(beginning)).map(|&(_, role)| role)
}

const RUST: &str = "use std::fmt;\n\n/// A frame.\npub struct Frame {\n    width: u32,\n}\n\nimpl Frame {\n    fn area(&self) -> u32 {\n        let mut a = 1;\n        if a > 2 {\n            a = 3;\n        }\n        a\n    }\n}\n";
const PYTHON: &str = "import os\n\nclass Frame:\n    \"\"\"A frame.\"\"\"\n    def _area(self):\n        if self.x is None:\n            return 1\n        return 2\n\n@cached\ndef main():\n    self.y = 2\n";

#[test]
fn languages_are_detected_by_their_signs() {
    for (text, language) in [
        (RUST.repeat(3), Language::Rust),
        (PYTHON.repeat(3), Language::Python),
        ("package a\n\nimport (\n)\n\nfunc b() error {\n\tc := 1\n\tif err != nil {\n\t}\n}\n".repeat(3), Language::Go),
        ("import java.util.List;\npublic class A {\n  private final String b;\n  @Override\n  public void c() { }\n}\n".repeat(3), Language::Java),
        ("#include <stdio.h>\n#define A 1\nstatic int b(char *c) { return c == NULL; }\n".repeat(3), Language::C),
        ("#include <string>\nnamespace a {\nclass B { public: virtual void c(std::string d); };\n}\n".repeat(3), Language::Cpp),
        ("const a = require('b');\nfunction c(d) { return d === 1; }\nmodule.exports = c;\n".repeat(3), Language::JavaScript),
        ("import { a } from './b';\nexport interface C { readonly d: string; e: number }\n".repeat(3), Language::TypeScript),
    ] {
        assert_eq!(Language::of(&text), Some(language), "{text}");
        assert!(language.parse(&text).is_some(), "{text}");
    }
    for text in ["", "It was late, and the train had gone.", "puts 'a'\nreturn 1\n    return 2\n"] {
        assert_eq!(Language::of(text), None, "{text}");
    }
}

#[test]
fn tree_and_indentation_agree_on_what_matters() {
    let (_, tree) = Language::Rust.parse(RUST).unwrap();
    let by_tree = roles(RUST, |outline| tree::annotate(&tree, Language::Rust, outline));
    let by_indent = roles(RUST, |outline| lexical::annotate(Some(Language::Rust), outline));
    for roles in [by_tree, by_indent] {
        for (line, role) in [
            ("use std", LineRole::Import),
            ("/// A", LineRole::Comment),
            ("pub struct", LineRole::Public),
            ("width", LineRole::Field),
            ("impl", LineRole::Public),
            ("fn area", LineRole::Private),
            ("let mut", LineRole::Statement),
            ("if a", LineRole::Statement),
            ("}", LineRole::Close),
        ] {
            assert_eq!(role_of(&roles, line), Some(role), "{line} in {roles:?}");
        }
    }
    let (_, tree) = Language::Python.parse(PYTHON).unwrap();
    let roles = roles(PYTHON, |outline| tree::annotate(&tree, Language::Python, outline));
    for (line, role) in [
        ("import", LineRole::Import),
        ("class", LineRole::Public),
        ("\"\"\"", LineRole::Doc),
        ("def _area", LineRole::Private),
        ("if self", LineRole::Statement),
        ("@cached", LineRole::Public),
        ("def main", LineRole::Public),
    ] {
        assert_eq!(role_of(&roles, line), Some(role), "{line} in {roles:?}");
    }
}

#[test]
fn text_that_is_in_no_language_of_the_grammars_is_read_by_indentation() {
    let ruby = "require 'a'\nmodule B\n  class C\n    def d(e)\n      if e\n        raise 'f'\n      end\n    end\n  end\nend\n";
    let roles = roles(ruby, |outline| lexical::annotate(None, outline));
    for (line, role) in [
        ("require", LineRole::Import),
        ("module", LineRole::Public),
        ("class", LineRole::Public),
        ("def", LineRole::Public),
        ("if", LineRole::Statement),
        ("raise", LineRole::Statement),
    ] {
        assert_eq!(role_of(&roles, line), Some(role), "{line} in {roles:?}");
    }
}

#[test]
fn unparsable_source_is_abandoned() {
    for text in ["(".repeat(50_000), "fn a( {{ ) let [\n".repeat(3_000), "\"".repeat(30_001)] {
        assert!(Language::Rust.parse(&text).is_none());
    }
}

#[test]
fn every_pattern_compiles() {
    outline::compile_patterns();
}
