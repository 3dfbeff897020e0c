//! Detects the programming language of a text by words common in one language and rare in others, and provides its
//! grammar.
//!
//! Knows language signs and node classes; does not know lines or units.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use Language::{C, Cpp, Go, Java, JavaScript, Python, Rust, Tsx, TypeScript};
use tree_sitter::{ParseOptions, ParseState, Parser, Tree, TreeCursor};

use super::signs::{Language, SIGNS};

/// Bytes of a text that are sampled.
const SAMPLE: usize = 24 << 10;
/// Bytes parsed to choose between two languages.
const TRIAL: usize = 6 << 10;
/// Maximum count per sign, so that a word in a long comment does not decide.
const MAX_COUNTED: usize = 8;
/// Fewer votes, or votes from fewer signs, are chance.
const MIN_VOTES: usize = 8;
const MIN_SIGNS: usize = 3;
/// The runner-up is tried if it has this share of the winner's votes, in per cent.
const CLOSE: usize = 50;
/// Maximum progress callbacks per KiB before a parse is abandoned. Well-formed source takes about 10 in every
/// language.
const MAX_STEPS_PER_KIB: usize = 60;
/// More than one misread place per this many lines makes a tree useless.
const LINES_PER_ERROR: usize = 10;
const CHILDREN_PER_ERROR: usize = 4;

/// The class of a grammar node, as it matters to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Imports names from another file.
    Import,
    /// Has a signature and contains further definitions.
    Container,
    /// Has a signature.
    Definition,
    /// Wraps a definition: `export`, decorators, `template`.
    Wrapper,
    /// A sequence of statements or members.
    Block,
    Comment,
    Attribute,
    Other,
}

/// A grammar with the class of each node kind.
pub(super) struct NodeGrammar {
    language: tree_sitter::Language,
    classes: Vec<Class>,
}

impl Language {
    /// The language with the most votes; of two close ones, the one whose grammar parses the beginning better.
    pub(super) fn of(text: &str) -> Option<Self> {
        let sample = &text[..text.floor_char_boundary(SAMPLE)];
        let mut votes = SIGNS.map(|(language, signs)| (votes(sample, signs), language));
        votes.sort_by_key(|&(votes, _)| std::cmp::Reverse(votes));
        let [(most, first), (next, second), ..] = votes;
        if most < MIN_VOTES {
            return None;
        }
        if next * 100 < most * CLOSE {
            return Some(first);
        }
        let trial = &text[..text.floor_char_boundary(TRIAL)];
        let errors = |language: Self| language.tree(trial).map_or(usize::MAX, |tree| errors(&tree));
        Some(if errors(second) < errors(first) { second } else { first })
    }

    /// The syntax tree of `text`; `None` if it is not in this language or cannot be parsed in bounded time.
    pub(super) fn parse(self, text: &str) -> Option<(Self, Tree)> {
        let lines = text.bytes().filter(|&b| b == b'\n').count() + 1;
        let tree = self.tree(text)?;
        (errors(&tree) <= lines / LINES_PER_ERROR).then_some((self, tree))
    }

    fn tree(self, text: &str) -> Option<Tree> {
        let mut parser = Parser::new();
        parser.set_language(&self.grammar().language).ok()?;
        let bytes = text.as_bytes();
        let (mut steps, most) = (0, (bytes.len() / 1_024 + 1) * MAX_STEPS_PER_KIB);
        let mut count = |_: &ParseState| {
            steps += 1;
            if steps > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut count);
        parser.parse_with_options(&mut |at, _| &bytes[at.min(bytes.len())..], None, Some(options))
    }

    /// The grammar, a constant that is computed when first needed. If jobs owned grammars, each would classify
    /// hundreds of node kinds anew.
    pub(super) fn grammar(self) -> &'static NodeGrammar {
        macro_rules! grammar {
            ($language:expr) => {{
                static GRAMMAR: LazyLock<NodeGrammar> = LazyLock::new(|| NodeGrammar::new($language.into()));
                &GRAMMAR
            }};
        }
        match self {
            Rust => grammar!(tree_sitter_rust::LANGUAGE),
            Python => grammar!(tree_sitter_python::LANGUAGE),
            TypeScript => grammar!(tree_sitter_typescript::LANGUAGE_TYPESCRIPT),
            // JavaScript with elements is part of TSX; a grammar of its own would add 0.4 MB.
            JavaScript | Tsx => grammar!(tree_sitter_typescript::LANGUAGE_TSX),
            Go => grammar!(tree_sitter_go::LANGUAGE),
            Java => grammar!(tree_sitter_java::LANGUAGE),
            C => grammar!(tree_sitter_c::LANGUAGE),
            Cpp => grammar!(tree_sitter_cpp::LANGUAGE),
        }
    }

    /// Whether a definition that starts like this is visible outside its file.
    pub(super) fn is_public(self, header: &str) -> bool {
        let words =
            || header.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let says = |word: &str| words().any(|said| said == word);
        match self {
            Rust => says("pub") || says("macro_export") || header.trim_start().starts_with("impl"),
            Python => {
                let name = words().skip_while(|word| !matches!(*word, "def" | "class")).nth(1);
                !name.or_else(|| words().next()).unwrap_or_default().starts_with('_')
            }
            Go => {
                let unreceived = header.split_once("func (").and_then(|(_, rest)| rest.split_once(')'));
                let rest = unreceived.map_or(header, |(_, rest)| rest);
                let words = rest.split(|c: char| !c.is_alphanumeric() && c != '_');
                let keyword = |word: &&str| !matches!(*word, "" | "func" | "type" | "const" | "var");
                words.into_iter().find(keyword).is_some_and(|name| name.starts_with(char::is_uppercase))
            }
            JavaScript | TypeScript | Tsx => says("export") || says("exports"),
            Java => says("public") || says("protected"),
            C | Cpp => !says("static"),
        }
    }
}

impl NodeGrammar {
    fn new(language: tree_sitter::Language) -> Self {
        let kinds = u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
        let named = |id| language.node_kind_for_id(id).filter(|_| language.node_kind_is_named(id));
        let classes = (0..kinds).map(|id| named(id).map_or(Class::Other, class)).collect();
        Self { language, classes }
    }

    pub(super) fn class(&self, id: u16) -> Class {
        self.classes.get(usize::from(id)).copied().unwrap_or(Class::Other)
    }
}

fn votes(sample: &str, signs: &[(&str, usize)]) -> usize {
    let counts = signs.iter().map(|(sign, weight)| sample.matches(sign).take(MAX_COUNTED).count() * weight);
    let votes: Vec<usize> = counts.filter(|&count| count > 0).collect();
    if votes.len() < MIN_SIGNS { 0 } else { votes.iter().sum() }
}

/// The number of places the grammar could not parse.
fn errors(tree: &Tree) -> usize {
    let mut cursor = tree.walk();
    let mut errors = 0;
    loop {
        let node = cursor.node();
        errors += usize::from(node.is_missing());
        if node.is_error() {
            // A single node may contain all unparsed text along with parsed text.
            errors += 1 + node.child_count() as usize / CHILDREN_PER_ERROR;
        }
        let below = node.has_error() && cursor.goto_first_child();
        if !below && !go_on(&mut cursor) {
            return errors;
        }
    }
}

/// Advances to the next node that is not a descendant; false at the end.
pub(super) fn go_on(cursor: &mut TreeCursor<'_>) -> bool {
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return false;
        }
    }
    true
}

/// The node names of all grammars; none is ambiguous.
fn class(kind: &str) -> Class {
    match kind {
        "use_declaration"
        | "extern_crate_declaration"
        | "import_statement"
        | "import_from_statement"
        | "future_import_statement"
        | "import_declaration"
        | "package_clause"
        | "package_declaration"
        | "preproc_include"
        | "using_declaration"
        | "import_spec_list" => Class::Import,
        "impl_item"
        | "trait_item"
        | "mod_item"
        | "foreign_mod_item"
        | "class_definition"
        | "class_declaration"
        | "abstract_class_declaration"
        | "interface_declaration"
        | "record_declaration"
        | "enum_declaration"
        | "annotation_type_declaration"
        | "class_specifier"
        | "struct_specifier"
        | "union_specifier"
        | "namespace_definition"
        | "linkage_specification"
        | "internal_module"
        | "module" => Class::Container,
        "function_item"
        | "function_signature_item"
        | "function_definition"
        | "function_declaration"
        | "generator_function_declaration"
        | "function_signature"
        | "method_definition"
        | "method_declaration"
        | "method_signature"
        | "abstract_method_signature"
        | "constructor_declaration"
        | "compact_constructor_declaration"
        | "struct_item"
        | "enum_item"
        | "union_item"
        | "macro_definition"
        | "enum_specifier"
        | "type_item"
        | "type_alias_declaration"
        | "type_declaration"
        | "type_definition"
        | "const_item"
        | "static_item"
        | "const_declaration"
        | "var_declaration"
        | "lexical_declaration"
        | "variable_declaration"
        | "declaration"
        | "alias_declaration"
        | "concept_definition"
        | "preproc_def"
        | "preproc_function_def" => Class::Definition,
        "export_statement" | "decorated_definition" | "template_declaration" | "ambient_declaration" => {
            Class::Wrapper
        }
        "block"
        | "declaration_list"
        | "field_declaration_list"
        | "enum_variant_list"
        | "statement_block"
        | "class_body"
        | "interface_body"
        | "object_type"
        | "enum_body"
        | "enum_body_declarations"
        | "compound_statement"
        | "constructor_body"
        | "match_block"
        | "switch_body"
        | "switch_block"
        | "enumerator_list"
        | "annotation_type_body"
        | "source_file"
        | "program"
        | "translation_unit"
        | "preproc_if"
        | "preproc_ifdef"
        | "preproc_else"
        | "preproc_elif"
        | "statement_list"
        | "interface_type" => Class::Block,
        "comment" | "line_comment" | "block_comment" => Class::Comment,
        "attribute_item" | "inner_attribute_item" => Class::Attribute,
        _ => Class::Other,
    }
}
