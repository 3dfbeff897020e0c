//! YAML as a tree with the span of each value.
//!
//! Supports a plain subset: no anchors, aliases, tags or directives, so a file cannot expand to more than it
//! contains. Problems that leave the structure readable are reported and skipped.

use std::collections::BTreeSet;

use granit_parser::{Event, Parser, ScalarStyle};

use super::code::DiagnosticCode;
use super::diagnostic::{DiagnosticSink, Span};

/// Maximum nesting depth, separately for block and flow collections.
const MAX_DEPTH: usize = 32;
/// Maximum number of values in a file.
const MAX_NODES: usize = 20_000;

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct YamlNode<'s> {
    pub kind: YamlKind<'s>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum YamlKind<'s> {
    /// Text as written; only a plain scalar may also be a number, boolean or null.
    Scalar {
        text: std::borrow::Cow<'s, str>,
        style: ScalarStyle,
    },
    List(Vec<YamlNode<'s>>),
    /// In document order; every key is a unique scalar.
    Map(Vec<(Spelt<'s>, YamlNode<'s>)>),
}

/// A key and its place.
#[derive(Debug, Clone)]
pub(crate) struct Spelt<'s> {
    pub text: std::borrow::Cow<'s, str>,
    pub span: Span,
}

impl<'s> YamlNode<'s> {
    /// The type of the value in plain English.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            YamlKind::List(_) => "a list",
            YamlKind::Map(_) => "a mapping",
            YamlKind::Scalar { .. } => match self.to_json() {
                serde_json::Value::Null => "nothing",
                serde_json::Value::Bool(_) => "true/false",
                serde_json::Value::Number(_) => "a number",
                _ => "text",
            },
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(&self.kind, YamlKind::Scalar { text, style: ScalarStyle::Plain } if is_null(text))
    }

    /// The value of `key` in a mapping.
    pub fn get(&self, key: &str) -> Option<&YamlNode<'s>> {
        match &self.kind {
            YamlKind::Map(entries) => {
                entries.iter().find(|(name, _)| name.text == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// Converts the value to JSON, by the YAML 1.2 core rules for plain scalars.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.kind {
            YamlKind::Scalar { text, style: ScalarStyle::Plain } => plain_to_json(text),
            YamlKind::Scalar { text, .. } => text.clone().into(),
            YamlKind::List(items) => items.iter().map(Self::to_json).collect(),
            YamlKind::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.text.to_string(), value.to_json()));
                serde_json::Value::Object(entries.collect())
            }
        }
    }

    /// The node that a JSON pointer refers to, or its nearest existing ancestor.
    pub fn at_pointer(&self, pointer: &str) -> &YamlNode<'s> {
        let mut node = self;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match &node.kind {
                YamlKind::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => node.get(&step),
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn plain_to_json(text: &str) -> serde_json::Value {
    match text {
        text if is_null(text) => serde_json::Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        text => {
            let digits = text.trim_start_matches(['-', '+']);
            let numeric = digits.starts_with(|c: char| c.is_ascii_digit()) || digits.starts_with('.');
            let number = numeric.then(|| {
                text.parse::<i64>()
                    .map(serde_json::Value::from)
                    .or_else(|_| text.parse::<u64>().map(serde_json::Value::from))
                    .ok()
                    .or_else(|| {
                        text.parse::<f64>().ok().filter(|n| n.is_finite()).map(serde_json::Value::from)
                    })
            });
            number.flatten().unwrap_or_else(|| text.into())
        }
    }
}

/// The only document of the sink's source; `None` if it cannot be parsed as one.
pub(crate) fn parse<'s>(sink: &mut DiagnosticSink<'s>) -> Option<YamlNode<'s>> {
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        disallow_directives: true,
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder =
        YamlBuilder { stack: Vec::new(), root: None, documents: 0, nodes: 0, refused: BTreeSet::new() };
    for event in Parser::new_from_str_with_options(sink.source(), options) {
        match event {
            Ok((event, span)) => {
                let span = span.byte_range().unwrap_or(0..0);
                if !builder.push(event, span, sink) {
                    return None;
                }
            }
            Err(error) => {
                report_scan_error(&error, sink);
                return None;
            }
        }
    }
    if builder.documents != 1 || builder.root.as_ref().is_some_and(YamlNode::is_null) {
        let help = "such a file contains exactly one mapping, starting with `name:`";
        sink.report(DiagnosticCode::NotOneDocument, &(0..0), "the file contains no YAML document", help);
        return None;
    }
    builder.root
}

fn report_scan_error(error: &granit_parser::ScanError, sink: &mut DiagnosticSink<'_>) {
    use granit_parser::ErrorKind;
    let at = error.marker().byte_offset().unwrap_or(0);
    let span = at..at.saturating_add(1);
    match error.kind() {
        ErrorKind::DirectiveDisallowed => {
            sink.report(
                DiagnosticCode::YamlFeature,
                &span,
                "YAML directives are not allowed",
                "remove the line",
            );
        }
        ErrorKind::RecursionLimitExceeded => {
            let message = format!("collections nest deeper than {MAX_DEPTH} levels");
            sink.report(DiagnosticCode::TooDeep, &span, message, "flatten the value");
        }
        kind => sink.report(DiagnosticCode::Syntax, &span, format!("not valid YAML: {kind}"), ""),
    }
}

/// A collection under construction.
enum OpenNode<'s> {
    List(Span, Vec<YamlNode<'s>>),
    Map {
        span: Span,
        entries: Vec<(Spelt<'s>, YamlNode<'s>)>,
        key: Option<YamlNode<'s>>,
        seen: BTreeSet<String>,
    },
}

struct YamlBuilder<'s> {
    stack: Vec<OpenNode<'s>>,
    root: Option<YamlNode<'s>>,
    documents: usize,
    nodes: usize,
    /// Which of anchors, aliases and tags have been reported; each is reported once.
    refused: BTreeSet<&'static str>,
}

impl<'s> YamlBuilder<'s> {
    /// Processes one event; false if parsing should stop.
    fn push(&mut self, event: Event<'s>, span: Span, sink: &mut DiagnosticSink<'_>) -> bool {
        if event.is_node() {
            self.nodes += 1;
            if self.nodes > MAX_NODES {
                sink.report(
                    DiagnosticCode::TooDeep,
                    &span,
                    format!("the file contains more than {MAX_NODES} values"),
                    "",
                );
                return false;
            }
            self.refuse_features(&event, &span, sink);
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents == 2 {
                    let help = "put each into a file of its own";
                    sink.report(
                        DiagnosticCode::NotOneDocument,
                        &span,
                        "a second YAML document starts here",
                        help,
                    );
                    return false;
                }
            }
            Event::Scalar(text, style, ..) => {
                self.place(YamlNode { kind: YamlKind::Scalar { text, style }, span }, sink)
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                let kind = YamlKind::Scalar { text: "".into(), style: ScalarStyle::DoubleQuoted };
                self.place(YamlNode { kind, span }, sink);
            }
            Event::SequenceStart(..) => self.stack.push(OpenNode::List(span, Vec::new())),
            Event::MappingStart(..) => {
                self.stack.push(OpenNode::Map {
                    span,
                    entries: Vec::new(),
                    key: None,
                    seen: BTreeSet::new(),
                });
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span.end, sink),
            _ => {}
        }
        true
    }

    fn close(&mut self, end: usize, sink: &mut DiagnosticSink<'_>) {
        let (start, kind) = match self.stack.pop() {
            Some(OpenNode::List(span, items)) => (span.start, YamlKind::List(items)),
            Some(OpenNode::Map { span, entries, .. }) => (span.start, YamlKind::Map(entries)),
            None => return,
        };
        let text = sink.source().get(start..end.max(start)).unwrap_or("");
        self.place(YamlNode { kind, span: start..start + text.trim_end().len() }, sink);
    }

    fn place(&mut self, node: YamlNode<'s>, sink: &mut DiagnosticSink<'_>) {
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(OpenNode::List(_, items)) => items.push(node),
            Some(OpenNode::Map { entries, key, seen, .. }) => match key.take() {
                None => *key = Some(node),
                Some(YamlNode { kind: YamlKind::Scalar { text, .. }, span }) => {
                    if seen.insert(text.to_string()) {
                        entries.push((Spelt { text, span }, node));
                    } else {
                        let help = "keep one of the two";
                        sink.report(
                            DiagnosticCode::DuplicateKey,
                            &span,
                            format!("duplicate key `{text}`"),
                            help,
                        );
                    }
                }
                Some(other) => {
                    let message = format!("a key must be text, not {}", other.describe());
                    let help = "quote text that contains braces, as in \"{{ name }}\"";
                    sink.report(DiagnosticCode::WrongType, &other.span, message, help);
                }
            },
        }
    }

    fn refuse_features(&mut self, event: &Event<'_>, span: &Span, sink: &mut DiagnosticSink<'_>) {
        let what = if event.is_alias() {
            "aliases"
        } else if event.anchor_id().is_some() {
            "anchors"
        } else if event.tag().is_some() {
            "tags"
        } else {
            return;
        };
        if self.refused.insert(what) {
            let help = "write the value out; quote text that starts with & * or !";
            sink.report(DiagnosticCode::YamlFeature, span, format!("YAML {what} are not allowed"), help);
        }
    }
}
