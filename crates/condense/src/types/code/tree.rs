//! Turns a syntax tree into lines with roles.
//!
//! Knows node classes, not languages; uses a cursor and an explicit stack, so depth costs no recursion.

use tree_sitter::{Node, Tree};

use super::language::{Class, NodeGrammar, go_on};
use super::outline::{CodeOutline, LineRole};
use super::signs::Language;

/// Deeper nesting is not distinguished.
const DEEPEST: usize = 24;
/// Longer headers are shown up to this many lines.
const MAX_HEADER_ROWS: usize = 12;
/// Longer statements are divided at the statements inside.
const LONGEST_STATEMENT: usize = 6;

/// The context of a node's children.
#[derive(Debug, Clone, Copy)]
struct Context {
    /// The row they depend on.
    under: Option<usize>,
    /// Whether they are consecutive units.
    listed: bool,
    /// Whether definitions among them are signatures, which they are not inside a function.
    members: bool,
    /// Whether other members are fields.
    fields: bool,
    /// The start of the wrapper around a definition.
    wrapper: Option<usize>,
    depth: usize,
}

/// Assigns a role to every row of the outline.
pub(super) fn annotate(tree: &Tree, language: Language, outline: &mut CodeOutline<'_>) {
    let reader = TreeReader { grammar: language.grammar(), language };
    let mut cursor = tree.walk();
    let root = Context { under: None, listed: true, members: true, fields: false, wrapper: None, depth: 0 };
    // The context of the nodes on each level of the cursor.
    let mut contexts = vec![root];
    if !cursor.goto_first_child() {
        return;
    }
    loop {
        let context = contexts.last().copied().unwrap_or(root);
        let inside = reader.visit(&cursor.node(), context, outline);
        if let Some(inside) = inside
            && cursor.goto_first_child()
        {
            contexts.push(inside);
            continue;
        }
        let before = cursor.depth();
        if !go_on(&mut cursor) {
            return;
        }
        let up = before.saturating_sub(cursor.depth()) as usize;
        contexts.truncate(contexts.len().saturating_sub(up));
        if cursor.depth() == 0 {
            return;
        }
    }
}

struct TreeReader {
    grammar: &'static NodeGrammar,
    language: Language,
}

/// The first row, and the row after the last.
fn rows(node: &Node<'_>) -> (usize, usize) {
    let (start, end) = (node.start_position(), node.end_position());
    let last = if end.column == 0 && end.row > start.row { end.row } else { end.row + 1 };
    (start.row, last)
}

impl TreeReader {
    /// Records the roles of the node's rows; returns the context of its children if they should be visited.
    fn visit(&self, node: &Node<'_>, context: Context, outline: &mut CodeOutline<'_>) -> Option<Context> {
        let (first, end) = rows(node);
        if first >= outline.rows() || !node.is_named() {
            return None;
        }
        let deeper = Context { depth: context.depth + 1, ..context };
        match self.grammar.class(node.kind_id()) {
            _ if node.is_error() => (context.depth < DEEPEST).then_some(deeper),
            Class::Comment if context.listed => {
                outline.unit(first..end, LineRole::Comment, context.under);
                None
            }
            Class::Attribute if context.listed => {
                outline.unit(first..end, LineRole::Attribute, context.under);
                None
            }
            Class::Import if context.listed => {
                outline.unit(first..end, LineRole::Import, context.under);
                None
            }
            Class::Wrapper if context.members => {
                let role = self.role(outline, first, end);
                outline.unit(first..end.min(first + MAX_HEADER_ROWS), role, context.under);
                (context.depth < DEEPEST).then_some(Context { wrapper: Some(first), listed: false, ..deeper })
            }
            class @ (Class::Definition | Class::Container) if context.members => {
                self.definition(node, class, context, outline)
            }
            Class::Block => self.block(node, context, outline),
            _ => self.other(node, context, outline),
        }
    }

    fn role(&self, outline: &CodeOutline<'_>, first: usize, end: usize) -> LineRole {
        // Attributes and decorators precede the part that shows whether it is public.
        let header = (first..end.min(outline.rows())).map(|row| outline.line(row));
        let salient = |line: &&str| !line.trim_start().starts_with(['@', '#']);
        let header = header.into_iter().find(salient).unwrap_or_default();
        if self.language.is_public(header) { LineRole::Public } else { LineRole::Private }
    }

    fn definition(
        &self,
        node: &Node<'_>,
        class: Class,
        context: Context,
        outline: &mut CodeOutline<'_>,
    ) -> Option<Context> {
        let (start, end) = rows(node);
        let first = context.wrapper.unwrap_or(start);
        let body = node.child_by_field_name("body").or_else(|| self.last_block(node));
        let head_end = match body {
            Some(body) => {
                let row = body.start_position().row;
                let braced = outline.line(row.min(outline.rows() - 1)).contains('{') || row == start;
                if braced { row + 1 } else { row.max(start + 1) }
            }
            None if end - start <= LONGEST_STATEMENT => end,
            None => start + 1,
        };
        let head_end = head_end.clamp(first + 1, (first + MAX_HEADER_ROWS).max(start + 1));
        let mut role = self.role(outline, start, head_end);
        if context.wrapper.is_some() && outline.role(first) == LineRole::Public {
            role = LineRole::Public;
        }
        outline.unit(head_end..end.max(head_end), LineRole::Statement, Some(first));
        outline.unit(first..head_end, role, context.under);
        let members = class == Class::Container;
        let inside = Context {
            under: Some(first),
            listed: false,
            members,
            fields: !self.is_code(node),
            wrapper: None,
            depth: context.depth + 1,
        };
        (end > head_end && context.depth < DEEPEST).then_some(inside)
    }

    /// Whether the node's body is executable code rather than a list of members.
    fn is_code(&self, node: &Node<'_>) -> bool {
        ["function", "method", "constructor", "lexical", "variable"]
            .iter()
            .any(|kind| node.kind().starts_with(kind))
    }

    fn last_block<'n>(&self, node: &Node<'n>) -> Option<Node<'n>> {
        let count = u32::try_from(node.named_child_count()).unwrap_or(u32::MAX);
        let last = node.named_child(count.checked_sub(1)?)?;
        (self.grammar.class(last.kind_id()) == Class::Block).then_some(last)
    }

    fn block(&self, node: &Node<'_>, context: Context, outline: &mut CodeOutline<'_>) -> Option<Context> {
        let (first, end) = rows(node);
        if context.under.is_some_and(|header| first > header) && outline.line(first).contains('{') {
            // `} else {` is a unit of its own, unless the header extends that far.
            if !outline.role(first).is_signature() {
                outline.begin(first);
            }
        }
        let last = end - 1;
        let closes = last > first
            && last < outline.rows()
            && outline.line(last).trim_start().starts_with(['}', ')', ']']);
        if closes {
            outline.unit(last..end, LineRole::Close, context.under);
        }
        let inside = Context { listed: true, wrapper: None, depth: context.depth + 1, ..context };
        (end > first + 1 && context.depth < DEEPEST).then_some(inside)
    }

    /// A statement, a field, or part of one.
    fn other(&self, node: &Node<'_>, context: Context, outline: &mut CodeOutline<'_>) -> Option<Context> {
        let (first, end) = rows(node);
        let long = end - first > LONGEST_STATEMENT && context.depth < DEEPEST;
        if !context.listed {
            return long.then_some(Context { depth: context.depth + 1, ..context });
        }
        if context.under.is_some_and(|header| header == first) {
            return None;
        }
        let line = outline.line(first).trim_start();
        if ["\"\"\"", "'''", "r\"\"\""].iter().any(|quote| line.starts_with(quote)) {
            outline.unit(first..end, LineRole::Comment, context.under);
            outline.unit(first..first + 1, LineRole::Doc, context.under);
            return None;
        }
        let role = if context.fields { LineRole::Field } else { LineRole::Statement };
        outline.unit(first..end, role, context.under);
        let inside = Context {
            under: Some(first),
            listed: false,
            members: false,
            depth: context.depth + 1,
            ..context
        };
        long.then(|| {
            outline.begin(first + 1);
            for row in first + 1..end.min(outline.rows()) {
                outline.put_under(row, first);
            }
            inside
        })
    }
}
