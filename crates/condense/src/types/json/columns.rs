//! Detects tables: which values are rows, and what their columns are.
//!
//! Knows names, values and how they repeat; does not know tokens or what is shown. Columns of nested objects get
//! dotted names, columns of objects in arrays get names with `[]`.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::facts::{ColumnFacts, FEW, Sort, rare};
use larder_text::json::{Document, Kind, unquoted};
use larder_text::parallel::Workers;

/// Minimum number of rows of a table.
const MIN_ROWS: usize = 3;
/// From this many objects on, two threads collect their members.
const MANY: usize = 2_048;
/// Objects nested deeper inside a row are a single column.
const DEEPEST: usize = 4;
/// Minimum share, in per cent, of members whose names appear in at least half of the rows.
const ALIKE: usize = 60;
/// A column with longer values, in average bytes, does not identify rows.
const LONGEST_ID: usize = 80;
/// Longer strings, in average bytes, are names only if the column's name says so.
const LONGEST_NAME: usize = 28;
/// Maximum number of columns from which others may be derived.
const MAX_SOURCES: usize = 12;
/// A shorter value is not a source: a match would be chance.
const SHORTEST_SOURCE: usize = 2;

/// Rows under common names.
#[derive(Debug)]
pub(super) struct JsonTable {
    pub(super) rows: Vec<usize>,
    pub(super) columns: Vec<TableColumn>,
    /// The column that identifies the rows; without one, rows are identified by position.
    pub(super) id: Option<usize>,
    /// Whether the columns together represent all of the data.
    pub(super) exact: bool,
}

#[derive(Debug)]
pub(super) struct TableColumn {
    pub(super) name: String,
    /// Row and value, sorted by row; list columns have several values per row.
    pub(super) cells: Cells,
    /// Whether these are the rows' own names, as members of an object.
    pub(super) is_key: bool,
    pub(super) is_list: bool,
    pub(super) sort: Sort,
    /// The number of distinct scalar values: exact if all are distinct or there are at most [`FEW`], otherwise a
    /// lower bound.
    pub(super) distinct: usize,
    /// If there are few distinct values: the rows with rare ones, in order.
    pub(super) rare: Vec<usize>,
    pub(super) bytes: usize,
    /// Smallest and largest number.
    pub(super) extremes: Option<(usize, usize)>,
    /// Every value is a copy of another column's value with the same prefix and suffix.
    pub(super) derived: Option<Derived>,
}

/// Rows and values, sorted by row. 32-bit numbers halve the memory, since there may be one entry per value of a text.
#[derive(Debug, Default)]
pub(super) struct Cells(Vec<(u32, u32)>);

impl Cells {
    fn with_capacity(cells: usize) -> Self {
        Self(Vec::with_capacity(cells))
    }

    /// Both fit: there are at most as many as bytes in a text, whose offsets have 32 bits.
    fn push(&mut self, row: usize, value: usize) {
        self.0.push((row as u32, value as u32));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn first(&self) -> Option<(usize, usize)> {
        self.iter().next()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (usize, usize)> {
        wide(&self.0)
    }

    /// The cells of one row.
    pub(super) fn of_row(&self, row: usize) -> impl Iterator<Item = (usize, usize)> {
        let start = self.0.partition_point(|&(other, _)| (other as usize) < row);
        wide(&self.0[start..]).take_while(move |&(other, _)| other == row)
    }

    /// Two halves.
    fn halves(&self) -> [&[(u32, u32)]; 2] {
        let (first, second) = self.0.split_at(self.len() / 2);
        [first, second]
    }
}

fn wide(cells: &[(u32, u32)]) -> impl ExactSizeIterator<Item = (usize, usize)> {
    cells.iter().map(|&(row, value)| (row as usize, value as usize))
}

/// `before`, the value of column `from`, `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Derived {
    pub(super) from: usize,
    pub(super) before: String,
    pub(super) after: String,
}

impl TableColumn {
    /// The value of a cell as written, without quotes.
    pub(super) fn text<'t>(&self, tree: &Document<'t>, node: usize) -> &'t str {
        if self.is_key { tree.name(node) } else { unquoted(tree.raw(node)) }
    }

    /// Whether every row has the same value.
    pub(super) fn is_constant(&self, rows: usize) -> bool {
        !self.is_list && self.distinct == 1 && self.cells.len() == rows && self.sort != Sort::Nested
    }

    /// Whether its name suggests that its values are names.
    pub(super) fn names_things(&self) -> bool {
        naming(self) >= 4
    }

    fn is_unique(&self, rows: usize) -> bool {
        !self.is_list
            && self.cells.len() == rows
            && self.distinct == rows
            && matches!(self.sort, Sort::Text | Sort::Number)
            && self.bytes <= rows * LONGEST_ID
    }
}

impl JsonTable {
    /// The values in `node` as rows, if they are similar enough.
    pub(super) fn of(tree: &Document<'_>, node: usize, workers: &Workers) -> Option<Self> {
        tree.children(node).nth(MIN_ROWS - 1)?;
        let rows: Vec<usize> = tree.children(node).collect();
        if !rows.iter().all(|&row| is_filled(tree, row, Kind::Object)) {
            return None;
        }
        let mut cells = Cells::with_capacity(rows.len());
        rows.iter().enumerate().for_each(|(at, &row)| cells.push(at, row));
        let rare = rare(rows.len());
        let members = Members::of(tree, &cells, rare, workers).alike()?;
        let exact = !tree.is_irregular(node);
        let mut building = Building { tree, workers, columns: Vec::new(), exact, rare };
        let in_object = tree.kind(node) == Kind::Object;
        if in_object {
            let mut facts = ColumnFacts::new(rare);
            cells.iter().for_each(|(at, row)| facts.add_name(at, tree.name(row)));
            facts.settle();
            building.push(String::from("(name)"), cells, facts, ColumnPlace { is_key: true, is_list: false });
        }
        building.expand("", members, false, 0);
        let mut table = Self { rows, columns: building.columns, id: None, exact: building.exact };
        table.id = if in_object { Some(0) } else { table.identifying() };
        table.derive(tree);
        Some(table)
    }

    /// The values replaced by the rules of derived columns, sorted.
    pub(super) fn in_words(&self) -> Vec<usize> {
        let derived = self.columns.iter().filter(|column| column.derived.is_some());
        let mut cells: Vec<usize> =
            derived.flat_map(|column| column.cells.iter().map(|(_, cell)| cell)).collect();
        cells.sort_unstable();
        cells
    }

    /// The best column for identifying rows.
    fn identifying(&self) -> Option<usize> {
        let unique = self.columns.iter().enumerate().filter(|(_, column)| column.is_unique(self.rows.len()));
        let best = unique.max_by_key(|&(place, column)| (naming(column), std::cmp::Reverse(place)));
        best.filter(|(_, column)| naming(column) > 0).map(|(place, _)| place)
    }

    fn derive(&mut self, tree: &Document<'_>) {
        let sources: Vec<usize> = (0..self.columns.len())
            .filter(|&place| {
                let column = &self.columns[place];
                let scalar = matches!(column.sort, Sort::Text | Sort::Number);
                scalar
                    && !column.is_list
                    && column.distinct > 1
                    && column.bytes <= column.cells.len() * LONGEST_ID / 2
            })
            .take(MAX_SOURCES)
            .collect();
        for place in 0..self.columns.len() {
            if Some(place) == self.id || self.columns[place].is_list || self.columns[place].sort != Sort::Text
            {
                continue;
            }
            let first = self.id.into_iter().chain(sources.iter().copied());
            let mut sources =
                first.filter(|&source| source != place && self.columns[source].derived.is_none());
            self.columns[place].derived = sources.find_map(|source| self.derivation(tree, place, source));
        }
    }

    fn derivation(&self, tree: &Document<'_>, place: usize, source: usize) -> Option<Derived> {
        let (column, from) = (&self.columns[place], &self.columns[source]);
        if column.cells.len() != from.cells.len() || column.distinct < 2 {
            return None;
        }
        let ((_, first), (_, origin)) = (column.cells.first()?, from.cells.first()?);
        let (text, part) = (column.text(tree, first), from.text(tree, origin));
        let at = text.rfind(part).filter(|_| part.len() >= SHORTEST_SOURCE || part == text)?;
        let (before, after) = (&text[..at], &text[at + part.len()..]);
        let holds = |((row, cell), (other, origin)): ((usize, usize), (usize, usize))| {
            let inner =
                column.text(tree, cell).strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            row == other && inner == Some(from.text(tree, origin))
        };
        let derived = Derived { from: source, before: before.to_owned(), after: after.to_owned() };
        column.cells.iter().zip(from.cells.iter()).all(holds).then_some(derived)
    }
}

/// Columns under construction.
struct Building<'a, 't> {
    tree: &'a Document<'t>,
    workers: &'a Workers,
    columns: Vec<TableColumn>,
    exact: bool,
    rare: usize,
}

/// The location of a column's values.
#[derive(Clone, Copy)]
struct ColumnPlace {
    is_key: bool,
    is_list: bool,
}

impl<'t> Building<'_, 't> {
    fn expand(&mut self, prefix: &str, members: Members<'t>, in_list: bool, depth: usize) {
        let tree = self.tree;
        self.exact &= members.exact;
        for NamedCells { name, cells, facts } in members.by_name {
            let name = label(tree, name);
            let path = if prefix.is_empty() { name.into_owned() } else { format!("{prefix}.{name}") };
            if in_list && cells.len() < members.objects {
                self.exact = false; // values would appear under the wrong items
                continue;
            }
            let all = |kind| cells.iter().all(|(_, cell)| is_filled(tree, cell, kind));
            let deeper = depth < DEEPEST && facts.sort == Some(Sort::Nested);
            let members = || Members::of(tree, &cells, self.rare, self.workers).alike();
            let inner = (deeper && all(Kind::Object)).then(members).flatten();
            if let Some(inner) = inner {
                self.expand(&path, inner, in_list, depth + 1);
            } else if let Some(items) = (!in_list && deeper).then(|| self.items(&cells)).flatten() {
                self.exact &= all(Kind::Array); // an empty list would look like none
                self.expand(&format!("{path}[]"), items, true, depth + 1);
            } else {
                self.push(path, cells, facts, ColumnPlace { is_key: false, is_list: in_list });
            }
        }
    }

    /// The items of all lists by name, if every value is a list, some are non-empty, and all items are similar
    /// objects.
    fn items(&self, cells: &Cells) -> Option<Members<'t>> {
        let tree = self.tree;
        let mut items = Cells::default();
        for (row, list) in cells.iter() {
            if tree.kind(list) != Kind::Array {
                return None;
            }
            for item in tree.children(list) {
                if !is_filled(tree, item, Kind::Object) {
                    return None;
                }
                items.push(row, item);
            }
        }
        if items.len() == 0 { None } else { Members::of(tree, &items, self.rare, self.workers).alike() }
    }

    fn push(&mut self, name: String, cells: Cells, facts: ColumnFacts, place: ColumnPlace) {
        let ColumnPlace { is_key, is_list } = place;
        let (sort, distinct, bytes) = (facts.sort.unwrap_or(Sort::Mixed), facts.distinct(), facts.bytes);
        let rare = facts.rare_rows();
        let extremes = facts.extremes();
        self.columns.push(TableColumn {
            name,
            cells,
            is_key,
            is_list,
            sort,
            distinct,
            rare,
            bytes,
            extremes,
            derived: None,
        });
    }
}

/// How strongly a column's name suggests that its values are names: integers and strings only.
fn naming(column: &TableColumn) -> i32 {
    let last = column.name.rsplit('.').next().unwrap_or_default();
    let lower = last.to_ascii_lowercase();
    let ends_in_id = lower == "id" || lower.ends_with("_id") || last.ends_with("Id") || last.ends_with("ID");
    let named = match lower.as_str() {
        _ if ends_in_id => 6,
        "uuid" | "guid" | "key" | "sku" => 5,
        "number" | "name" | "code" | "slug" | "sha" | "login" | "email" => 4,
        "path" | "title" | "ref" | "label" | "hash" | "timestamp" | "time" | "ts" | "date" => 3,
        _ if column.sort == Sort::Text && column.bytes <= column.cells.len() * LONGEST_NAME => 1,
        _ => 0,
    };
    let depth = column.name.matches('.').count() as i32;
    named - 2 * depth
}

/// A member's name as part of a column name, quoted if it could be mistaken for several parts or for surrounding
/// text.
fn label<'t>(tree: &Document<'_>, name: &'t str) -> Cow<'t, str> {
    // Nothing is nested in a table of fields, so `a.b` and `a[0]` are names like any other.
    let nests = |c| matches!(c, '.' | '[') && !tree.is_table();
    if name.contains([',', '|', ';', '=', '{', '…', '\n']) || name.contains(nests) {
        Cow::Owned(format!("\"{name}\""))
    } else {
        Cow::Borrowed(name)
    }
}

/// Whether this is a regular, non-empty value of this kind; nothing is claimed about irregular rows.
fn is_filled(tree: &Document<'_>, node: usize, kind: Kind) -> bool {
    tree.kind(node) == kind && tree.has_children(node)
}

/// The members of many objects.
struct Members<'t> {
    /// In order of first appearance.
    by_name: Vec<NamedCells<'t>>,
    objects: usize,
    /// No object violates the grammar or repeats a name.
    exact: bool,
}

/// The members of one name.
struct NamedCells<'t> {
    name: &'t str,
    /// The row and place of each.
    cells: Cells,
    facts: ColumnFacts,
}

impl<'t> Members<'t> {
    /// Large numbers of objects are processed in two halves in parallel.
    fn of(tree: &Document<'t>, objects: &Cells, rare: usize, workers: &Workers) -> Self {
        let mut members = if objects.len() < MANY {
            Self::part(tree, &objects.0, rare)
        } else {
            let [first, second] = objects.halves();
            let further = || Self::part(tree, second, rare);
            let (further, here) = workers.join_if_worth(true, further, || Self::part(tree, first, rare));
            here.join(tree, further)
        };
        members.by_name.iter_mut().for_each(|member| member.facts.settle());
        members
    }

    fn part(tree: &Document<'t>, objects: &[(u32, u32)], rare: usize) -> Self {
        let mut exact = true;
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut by_name: Vec<NamedCells<'t>> = Vec::new();
        let mut last_holder: Vec<usize> = Vec::new();
        for (row, object) in wide(objects) {
            exact &= !tree.is_irregular(object);
            let mut expected = 0;
            for member in tree.children(object) {
                let key = tree.name(member);
                // Most objects have the same names as the first, in the same order.
                let place = match by_name.get(expected) {
                    Some(expected_here) if expected_here.name == key => expected,
                    _ => *places.entry(key).or_insert_with(|| {
                        let room = if by_name.len() < FEW { objects.len() } else { 0 };
                        let cells = Cells::with_capacity(room);
                        by_name.push(NamedCells { name: key, cells, facts: ColumnFacts::new(rare) });
                        last_holder.push(usize::MAX);
                        by_name.len() - 1
                    }),
                };
                expected = place + 1;
                if std::mem::replace(&mut last_holder[place], object) == object {
                    exact = false; // a name that appears twice
                } else {
                    by_name[place].cells.push(row, member);
                    by_name[place].facts.add(tree, row, member);
                }
            }
        }
        Self { by_name, objects: objects.len(), exact }
    }

    /// Combines two sets of members.
    fn join(mut self, tree: &Document<'_>, further: Self) -> Self {
        let known = self.by_name.iter().enumerate().map(|(at, member)| (member.name, at));
        let places: HashMap<&str, usize> = known.collect();
        for member in further.by_name {
            match places.get(member.name) {
                Some(&at) => {
                    self.by_name[at].cells.0.extend(member.cells.0);
                    self.by_name[at].facts.join(tree, member.facts);
                }
                None => self.by_name.push(member),
            }
        }
        let (objects, exact) = (self.objects + further.objects, self.exact && further.exact);
        Self { objects, exact, ..self }
    }

    /// Returns the members if most of them have names shared by most objects.
    fn alike(self) -> Option<Self> {
        let counts = || self.by_name.iter().map(|member| member.cells.len());
        let all: usize = counts().sum();
        let common: usize = counts().filter(|&count| 2 * count >= self.objects).sum();
        (common * 100 >= all * ALIKE).then_some(self)
    }
}

#[cfg(test)]
#[path = "columns_tests.rs"]
mod tests;
