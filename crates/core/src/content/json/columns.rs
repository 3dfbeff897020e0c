//! Like values under each other: which values are rows of a table, and what their columns are.
//!
//! Knows names, values and how they repeat; does not know tokens or what is shown. Columns of objects in objects get
//! names with a dot, columns of objects in arrays names with `[]`.

use std::borrow::Cow;
use std::cmp::Ordering;

use hashbrown::{HashMap, HashSet};

use super::scan::{Kind, Tree, unquoted};

/// Fewer values are no table.
const FEWEST_ROWS: usize = 3;
/// Objects deeper inside a row are columns of their own, whole.
const DEEPEST: usize = 4;
/// Per cent of all members that belong to names which at least half of the rows have.
const ALIKE: usize = 60;
/// Values of a longer column, in bytes on average, identify no row.
const LONGEST_ID: usize = 80;
/// Strings longer than this on average are no names unless the column says so, in bytes.
const LONGEST_NAME: usize = 28;
/// From how many columns others may be derived.
const MOST_SOURCES: usize = 12;
/// No value derives from a shorter one: that would be chance.
const SHORTEST_SOURCE: usize = 2;

/// Rows under common names.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) rows: Vec<usize>,
    pub(super) columns: Vec<Column>,
    /// The column that tells the rows apart; without one their places do.
    pub(super) id: Option<usize>,
    /// All columns together say all there is.
    pub(super) exact: bool,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Text,
    Number,
    /// `true`, `false`, `null`.
    Word,
    Mixed,
    /// At least one object or array.
    Nested,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// Row and value, by row; several values of one row in columns of lists.
    pub(super) cells: Vec<(usize, usize)>,
    /// The names of the rows themselves, which are members of an object.
    pub(super) is_key: bool,
    pub(super) is_list: bool,
    pub(super) sort: Sort,
    pub(super) distinct: usize,
    pub(super) bytes: usize,
    /// Smallest and largest number.
    pub(super) extremes: Option<(usize, usize)>,
    /// The value is a copy of another column's with the same text before and after it in every row.
    pub(super) derived: Option<Derived>,
}

/// `before`, the value of the column `from`, `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Derived {
    pub(super) from: usize,
    pub(super) before: String,
    pub(super) after: String,
}

impl Column {
    /// The value of a cell as it stands, without quotes.
    pub(super) fn text<'t>(&self, tree: &Tree<'t>, node: usize) -> &'t str {
        if self.is_key { tree.key(node) } else { unquoted(tree.raw(node)) }
    }

    /// The cells of one row.
    pub(super) fn of_row(&self, row: usize) -> &[(usize, usize)] {
        let start = self.cells.partition_point(|&(other, _)| other < row);
        let len = self.cells[start..].iter().take_while(|&&(other, _)| other == row).count();
        &self.cells[start..start + len]
    }

    /// Every row has the same value.
    pub(super) fn is_constant(&self, rows: usize) -> bool {
        !self.is_list && self.distinct == 1 && self.cells.len() == rows && self.sort != Sort::Nested
    }

    /// Its name says that its values are names.
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

impl Table {
    /// The values in `node` as rows, if they are alike.
    pub(super) fn of(tree: &Tree<'_>, node: usize) -> Option<Self> {
        let count = tree.node(node).children as usize;
        if count < FEWEST_ROWS || !tree.is_container(node) {
            return None;
        }
        let rows: Vec<usize> = tree.children(node).collect();
        if !rows.iter().all(|&row| is_filled(tree, row, Kind::Object)) || !alike(tree, &rows) {
            return None;
        }
        let exact = !tree.node(node).irregular;
        let mut table = Self { rows, columns: Vec::new(), id: None, exact };
        let cells: Vec<(usize, usize)> = table.rows.iter().copied().enumerate().collect();
        let in_object = tree.node(node).kind == Kind::Object;
        if in_object {
            table.push(tree, String::from("(name)"), cells.clone(), false, true);
        }
        table.expand(tree, "", &cells, false, 0);
        table.id = if in_object { Some(0) } else { table.identifying() };
        table.derive(tree);
        Some(table)
    }

    /// The values that a told rule stands for, sorted.
    pub(super) fn in_words(&self) -> Vec<usize> {
        let derived = self.columns.iter().filter(|column| column.derived.is_some());
        let mut cells: Vec<usize> =
            derived.flat_map(|column| column.cells.iter().map(|&(_, cell)| cell)).collect();
        cells.sort_unstable();
        cells
    }

    fn expand(
        &mut self,
        tree: &Tree<'_>,
        prefix: &str,
        objects: &[(usize, usize)],
        in_list: bool,
        depth: usize,
    ) {
        for (name, cells) in self.group(tree, objects) {
            let name = label(name);
            let path = if prefix.is_empty() { name.into_owned() } else { format!("{prefix}.{name}") };
            if in_list && cells.len() < objects.len() {
                self.exact = false; // values would stand under the wrong items
                continue;
            }
            let all = |kind| cells.iter().all(|&(_, cell)| is_filled(tree, cell, kind));
            if depth < DEEPEST && all(Kind::Object) && alike_cells(tree, &cells) {
                self.expand(tree, &path, &cells, in_list, depth + 1);
            } else if let Some(items) = (!in_list && depth < DEEPEST).then(|| items(tree, &cells)).flatten() {
                self.exact &= all(Kind::Array); // an empty list would look like none
                self.expand(tree, &format!("{path}[]"), &items, true, depth + 1);
            } else {
                self.push(tree, path, cells, in_list, false);
            }
        }
    }

    /// The members of `objects` by name, in the order in which the names first stand.
    fn group<'t>(
        &mut self,
        tree: &Tree<'t>,
        objects: &[(usize, usize)],
    ) -> Vec<(&'t str, Vec<(usize, usize)>)> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut groups: Vec<(&str, Vec<(usize, usize)>)> = Vec::new();
        let mut last_holder: Vec<usize> = Vec::new();
        for &(row, object) in objects {
            self.exact &= !tree.node(object).irregular;
            let mut expected = 0;
            for member in tree.children(object) {
                let key = tree.key(member);
                // Most objects have the names of the first one, in its order.
                let place = match groups.get(expected) {
                    Some(&(name, _)) if name == key => expected,
                    _ => *places.entry(key).or_insert_with(|| {
                        groups.push((key, Vec::new()));
                        last_holder.push(usize::MAX);
                        groups.len() - 1
                    }),
                };
                expected = place + 1;
                if std::mem::replace(&mut last_holder[place], object) == object {
                    self.exact = false; // a name that stands twice
                } else {
                    groups[place].1.push((row, member));
                }
            }
        }
        groups
    }

    fn push(
        &mut self,
        tree: &Tree<'_>,
        name: String,
        cells: Vec<(usize, usize)>,
        is_list: bool,
        is_key: bool,
    ) {
        let mut seen = HashSet::with_capacity(cells.len());
        let (mut sort, mut bytes, mut extremes) = (None, 0, None);
        for &(_, cell) in &cells {
            let raw = if is_key { tree.key(cell) } else { tree.raw(cell) };
            seen.insert(raw);
            bytes += if is_key { raw.len() } else { tree.dense(cell) };
            let kind = match tree.node(cell).kind {
                _ if is_key => Sort::Text,
                Kind::Text => Sort::Text,
                Kind::Number => Sort::Number,
                Kind::Word => Sort::Word,
                Kind::Object | Kind::Array | Kind::Stream => Sort::Nested,
            };
            if kind == Sort::Number {
                extremes = Some(stretch(tree, extremes, cell));
            }
            sort = Some(match sort {
                None => kind,
                Some(before) if before == kind => kind,
                Some(Sort::Nested) => Sort::Nested,
                _ if kind == Sort::Nested => Sort::Nested,
                _ => Sort::Mixed,
            });
        }
        let (sort, distinct) = (sort.unwrap_or(Sort::Mixed), seen.len());
        self.columns.push(Column {
            name,
            cells,
            is_key,
            is_list,
            sort,
            distinct,
            bytes,
            extremes,
            derived: None,
        });
    }

    /// The best column to call the rows by.
    fn identifying(&self) -> Option<usize> {
        let unique = self.columns.iter().enumerate().filter(|(_, column)| column.is_unique(self.rows.len()));
        let best = unique.max_by_key(|&(place, column)| (naming(column), std::cmp::Reverse(place)));
        best.filter(|(_, column)| naming(column) > 0).map(|(place, _)| place)
    }

    fn derive(&mut self, tree: &Tree<'_>) {
        let sources: Vec<usize> = (0..self.columns.len())
            .filter(|&place| {
                let column = &self.columns[place];
                let scalar = matches!(column.sort, Sort::Text | Sort::Number);
                scalar
                    && !column.is_list
                    && column.distinct > 1
                    && column.bytes <= column.cells.len() * LONGEST_ID / 2
            })
            .take(MOST_SOURCES)
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

    fn derivation(&self, tree: &Tree<'_>, place: usize, source: usize) -> Option<Derived> {
        let (column, from) = (&self.columns[place], &self.columns[source]);
        if column.cells.len() != from.cells.len() || column.distinct < 2 {
            return None;
        }
        let (&(_, first), &(_, origin)) = (column.cells.first()?, from.cells.first()?);
        let (text, part) = (column.text(tree, first), from.text(tree, origin));
        let at = text.rfind(part).filter(|_| part.len() >= SHORTEST_SOURCE || part == text)?;
        let (before, after) = (&text[..at], &text[at + part.len()..]);
        let holds = |(&(row, cell), &(other, origin)): (&(usize, usize), &(usize, usize))| {
            let inner =
                column.text(tree, cell).strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            row == other && inner == Some(from.text(tree, origin))
        };
        let derived = Derived { from: source, before: before.to_owned(), after: after.to_owned() };
        column.cells.iter().zip(&from.cells).all(holds).then_some(derived)
    }
}

/// How much a column's name says that its values are names: whole numbers and strings only.
fn naming(column: &Column) -> i32 {
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

/// A member's name as a part of a column's: in quotes where it might be taken for more than one part, or for what
/// stands around it.
fn label(name: &str) -> Cow<'_, str> {
    let clashes = ['.', ',', '|', ';', '=', '{', '[', '…', '\n'];
    if name.contains(clashes) { Cow::Owned(format!("\"{name}\"")) } else { Cow::Borrowed(name) }
}

fn stretch(tree: &Tree<'_>, extremes: Option<(usize, usize)>, cell: usize) -> (usize, usize) {
    let Some((low, high)) = extremes else { return (cell, cell) };
    let less = |a: usize, b: usize| compared(tree.raw(a), tree.raw(b)).is_lt();
    (if less(cell, low) { cell } else { low }, if less(high, cell) { cell } else { high })
}

/// Two numbers as they are written, compared exactly where they are whole: beyond 2^53 a float cannot tell
/// neighbours apart.
pub(super) fn compared(a: &str, b: &str) -> Ordering {
    let whole = |text: &str| text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    if !whole(a) || !whole(b) {
        let float = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        return float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal);
    }
    let size = |text: &'_ str| {
        let digits = text.trim_start_matches('-').trim_start_matches('0').to_owned();
        (digits.len(), digits)
    };
    let is_negative = |text: &str, digits: usize| digits > 0 && text.starts_with('-');
    let (left, right) = (size(a), size(b));
    match (is_negative(a, left.0), is_negative(b, right.0)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (true, true) => right.cmp(&left),
        (false, false) => left.cmp(&right),
    }
}

/// A regular value of this kind that is not empty; rows may be irregular, then nothing is claimed of them.
fn is_filled(tree: &Tree<'_>, node: usize, kind: Kind) -> bool {
    tree.node(node).kind == kind && tree.node(node).children > 0
}

/// The items of all lists, if every value is a list, some are filled, and all items are objects that are alike.
fn items(tree: &Tree<'_>, cells: &[(usize, usize)]) -> Option<Vec<(usize, usize)>> {
    let mut items = Vec::new();
    for &(row, list) in cells {
        if tree.node(list).kind != Kind::Array {
            return None;
        }
        for item in tree.children(list) {
            if !is_filled(tree, item, Kind::Object) {
                return None;
            }
            items.push((row, item));
        }
    }
    (!items.is_empty() && alike_cells(tree, &items)).then_some(items)
}

fn alike_cells(tree: &Tree<'_>, cells: &[(usize, usize)]) -> bool {
    let nodes: Vec<usize> = cells.iter().map(|&(_, node)| node).collect();
    alike(tree, &nodes)
}

/// Whether most members of `objects` have names that most objects have.
fn alike(tree: &Tree<'_>, objects: &[usize]) -> bool {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut all = 0;
    for &object in objects {
        for member in tree.children(object) {
            *counts.entry(tree.key(member)).or_default() += 1;
            all += 1;
        }
    }
    let common: usize = counts.values().filter(|&&count| 2 * count >= objects.len()).sum();
    common * 100 >= all * ALIKE
}
