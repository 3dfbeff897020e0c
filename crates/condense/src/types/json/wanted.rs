//! Which columns a reader wants first: titles, names, authors, states, times, amounts and texts come before opaque ids,
//! addresses of pictures, styling and counters; what the query asks for comes before all.
//!
//! Knows names of columns and samples of their values, whatever the source; does not know budgets.

use super::columns::TableColumn;
use super::facts::Sort;
use super::grid::Grid;
use super::view::JsonView;
use larder_text::json::Kind;
use larder_text::json::meaning::{MOST_POINTS, Sense, points_of_name, words_of_name};

/// How many values of a column are looked at.
const SAMPLE: usize = 48;
/// The first width of a text, in characters: what fits in a glance.
const GLANCE: usize = 16;
/// The first width of a nested value, whose names come before its values.
const NESTED: usize = 28;
/// The first width of a time: its minutes.
const MINUTES: usize = 16;
/// The price of a token per row, in points.
const TOKEN: f32 = 0.3;
/// Points for a column that the query names in full.
const NAMED: f32 = 30.0;
/// Points for a column whose last name the query contains.
const LAST_NAMED: f32 = 16.0;
/// Columns with so many points are asked for.
pub(super) const ASKED: f32 = 12.0;
/// Points for a column that the query names in part.
const PARTLY_NAMED: f32 = 2.0;
/// Points for a column with a value that contains a word of the query.
const VALUE_NAMED: f32 = 8.0;
/// How many words of the query are looked up in columns.
const MOST_HITS: usize = 64;

/// A column, how much a reader wants it, and the width in characters that says the essential.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) place: usize,
    pub(super) score: f32,
    pub(super) width: usize,
}

/// All columns, the most wanted first.
pub(super) fn ranked(view: &JsonView<'_>, grid: &Grid) -> Vec<Wanted> {
    let by_value = named_by_value(view, grid);
    let columns = &grid.table.columns;
    let mut ranked: Vec<(Wanted, Sense)> =
        (0..columns.len()).map(|place| judged(view, grid, place)).collect();
    by_value.into_iter().for_each(|place| ranked[place].0.score += VALUE_NAMED);
    sort(&mut ranked);
    // What repeats a more wanted column says little more: the login of another person, a further time.
    let mut seen: Vec<(&str, Sense)> = Vec::new();
    for (wanted, sense) in &mut ranked {
        let name = last_name(&columns[wanted.place].name);
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let again =
            seen.iter().any(|&(known, other)| known == stem || *sense == other && *sense == Sense::Time);
        let told = *sense == Sense::Text && seen.iter().any(|(_, other)| *other == Sense::Phrase);
        if seen.len() < SAMPLE {
            seen.push((stem, *sense));
        }
        if wanted.score < ASKED {
            wanted.score -= if again { 2.0 } else { 0.0 } + if told { 3.0 } else { 0.0 };
        }
    }
    sort(&mut ranked);
    ranked.into_iter().map(|(wanted, _)| wanted).collect()
}

fn sort(ranked: &mut [(Wanted, Sense)]) {
    ranked.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
}

fn last_name(name: &str) -> &str {
    name.trim_end_matches("[]").rsplit('.').next().unwrap_or_default()
}

fn judged(view: &JsonView<'_>, grid: &Grid, place: usize) -> (Wanted, Sense) {
    let (column, rows) = (&grid.table.columns[place], grid.table.rows.len().max(1));
    let (sense, filled, bytes) = sampled(view, column);
    let width = match sense {
        Sense::Text | Sense::Phrase | Sense::List => GLANCE,
        Sense::Nested => NESTED,
        Sense::Time => MINUTES,
        _ if column.is_list => GLANCE,
        _ => usize::MAX,
    };
    let depth = column.name.matches('.').count() as f32;
    let filled = filled * (column.cells.len().min(rows) as f32 / rows as f32);
    let distinct = if column.distinct <= 1 { -2.0 } else { 0.0 };
    let names = if column.names_things() && column.distinct == rows { 3.0 } else { 0.0 };
    let listed = if column.is_list { 2.5 } else { 0.0 };
    let price = TOKEN * view.estimate(bytes.min(width)) as f32;
    let score = sense.points() + points_of_name(last_name(&column.name)) + names + distinct
        - 0.7 * depth
        - listed
        - 3.0 * (1.0 - filled)
        - price
        + asked(view, &column.name, sense);
    (Wanted { place, score, width }, sense)
}

/// What most of the sampled values are, the share of rows that have one, and their average size in bytes.
fn sampled(view: &JsonView<'_>, column: &TableColumn) -> (Sense, f32, usize) {
    let step = column.cells.len().div_ceil(SAMPLE).max(1);
    let mut counts: Vec<(Sense, usize)> = Vec::new();
    let (mut all, mut bytes) = (0, 0);
    for (_, cell) in column.cells.iter().step_by(step) {
        let text = column.text(view.tree, cell);
        let sense = match view.tree.kind(cell) {
            _ if column.is_key => Sense::of(text),
            Kind::Number => Sense::Number,
            Kind::Array if view.tree.children(cell).all(|item| !view.tree.is_container(item)) => Sense::List,
            Kind::Object | Kind::Array => Sense::Nested,
            _ => Sense::of(text),
        };
        all += 1;
        if sense == Sense::Nothing || view.tree.is_container(cell) && !view.tree.has_children(cell) {
            continue;
        }
        bytes += view.tree.dense(cell).min(text.len());
        match counts.iter_mut().find(|(known, _)| *known == sense) {
            Some((_, count)) => *count += 1,
            None => counts.push((sense, 1)),
        }
    }
    let filled: usize = counts.iter().map(|(_, count)| count).sum();
    let bytes = bytes / filled.max(1);
    let most = counts.iter().max_by_key(|(_, count)| *count).map_or(Sense::Nothing, |(sense, _)| *sense);
    let sense = if most == Sense::Phrase && bytes > Sense::LONGEST_PHRASE { Sense::Text } else { most };
    (sense, filled as f32 / all.max(1) as f32, bytes)
}

/// Points for being named by the query.
fn asked(view: &JsonView<'_>, name: &str, sense: Sense) -> f32 {
    let Some(query) = view.job.request.query else { return 0.0 };
    let is_asked = |word: &str| !view.words.within(word).is_empty();
    if names(query, name) {
        return NAMED;
    }
    let path: Vec<&str> = name.split('.').collect();
    let (last, parents) = path.split_last().unwrap_or((&"", &[]));
    let long = |part: &str| words_of_name(part).filter(|word| word.len() > 2).collect::<Vec<_>>();
    let all = |part: &str| !long(part).is_empty() && long(part).iter().all(|word| is_asked(word));
    let parent = parents.last().is_some_and(|parent| all(parent));
    // `author.name` is the author.
    let is_name = points_of_name(last) == MOST_POINTS;
    // What is asked of a nested value is inside it.
    let inside = sense == Sense::Nested && long(last).iter().any(|word| is_asked(word));
    if all(last) || parent && is_name || inside {
        LAST_NAMED
    } else if parent || long(last).iter().any(|word| is_asked(word)) {
        PARTLY_NAMED
    } else {
        0.0
    }
}

/// Whether `query` contains the whole name, as `user.login`; `items[0].name` is the name of a list's column.
fn names(query: &str, name: &str) -> bool {
    let is_list = name.contains("[]");
    let plain = |text: &str| {
        let mut inside = false;
        let outside = |c: &char| {
            inside = is_list && (*c == '[' || inside && *c != ']');
            !(inside || is_list && *c == ']')
        };
        text.chars().filter(outside).flat_map(char::to_lowercase).collect::<String>()
    };
    let (query, name) = (plain(query), plain(name));
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && query.match_indices(&name).any(|(at, _)| {
            let after = query[at + name.len()..].strip_prefix('.').unwrap_or(&query[at + name.len()..]);
            !query[..at].ends_with(|c| joins(c) || c == '.') && !after.starts_with(joins)
        })
}

/// The columns with values that contain words of the query.
fn named_by_value(view: &JsonView<'_>, grid: &Grid) -> Vec<usize> {
    let table = &grid.table;
    let naming = naming(view, grid);
    let hits: Vec<usize> = view
        .hits
        .within(&view.tree.span(grid.node))
        .iter()
        .filter(|(_, word, _)| naming.get(*word) == Some(&false))
        .map(|&(place, ..)| place)
        .collect();
    let mut found: Vec<usize> = Vec::new();
    for &place in hits.iter().step_by(hits.len().div_ceil(MOST_HITS).max(1)) {
        let node = view.tree.at(place);
        let Some(row) = table.rows.partition_point(|&row| row <= node).checked_sub(1) else { continue };
        let holds = |column: &TableColumn| {
            column.sort != Sort::Nested && column.cells.of_row(row).any(|(_, cell)| cell == node)
        };
        found.extend(table.columns.iter().position(holds).filter(|_| view.tree.span(node).contains(&place)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Which words of the query appear in names of columns: these ask for columns and say nothing about rows.
pub(super) fn naming(view: &JsonView<'_>, grid: &Grid) -> Vec<bool> {
    let mut naming = vec![false; view.words.count()];
    for name in grid.table.columns.iter().flat_map(|column| words_of_name(&column.name).collect::<Vec<_>>()) {
        view.words.within(&name).into_iter().for_each(|word| naming[word] = true);
    }
    naming
}
