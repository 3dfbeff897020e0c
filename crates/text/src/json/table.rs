//! Rows of fields, such as CSV, as the tree of an array of objects. Does not know how rows and fields were found.

use std::ops::Range;

use super::{Document, JsonNode, Kind};

impl<'t> Document<'t> {
    /// Builds the tree that an equivalent array of objects would have from the rows of a text that is not JSON. The
    /// first of `rows` names the columns; fields may be quoted and are in document order. `None` if there are no
    /// rows, or the text exceeds 4 GiB.
    pub fn from_rows(text: &'t str, rows: &[Vec<Range<usize>>]) -> Option<Self> {
        let end = u32::try_from(text.len()).ok()?;
        let at = |at: usize| at as u32; // checked above: no place in the text is larger
        let (columns, rows) = rows.split_first()?;
        let names = columns.iter().map(|name| (at(name.start), at(name.end))).collect();
        let list = JsonNode { start: 0, end, next: 0, name: 0, kind: Kind::Array, irregular: false };
        let mut nodes = vec![JsonNode { kind: Kind::Stream, ..list }, list];
        let mut dense = vec![end; 2];
        for row in rows {
            let (Some(first), Some(last)) = (row.first(), row.last()) else { continue };
            let (start, end) = (at(first.start), at(last.end));
            let irregular = row.len() != columns.len();
            let next = at(nodes.len() + 1 + row.len().min(columns.len()));
            nodes.push(JsonNode { start, end, next, name: 0, kind: Kind::Object, irregular });
            nodes[1].irregular |= irregular;
            dense.push(end - start);
            for (name, field) in (1..).zip(row.iter().take(columns.len())) {
                let (start, end) = (at(field.start), at(field.end));
                let kind = match text[field.clone()].parse::<f64>() {
                    Ok(number) if number.is_finite() => Kind::Number,
                    _ => Kind::String,
                };
                let next = at(nodes.len() + 1);
                nodes.push(JsonNode { start, end, next, name, kind, irregular: false });
                dense.push(end - start);
            }
        }
        let next = at(nodes.len());
        nodes[..2].iter_mut().for_each(|node| node.next = next);
        Some(Self { text, nodes, names, dense, fields: true })
    }
}
