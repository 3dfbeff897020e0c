//! Which values are tables, and what is found out about their columns.

use super::*;

fn table(text: &str) -> Option<JsonTable> {
    let tree = Document::parse_lenient(text).unwrap();
    JsonTable::of(&tree, 1, &Workers::default())
}

fn names(table: &JsonTable) -> Vec<&str> {
    table.columns.iter().map(|column| column.name.as_str()).collect()
}

fn column<'t>(table: &'t JsonTable, name: &str) -> &'t TableColumn {
    table.columns.iter().find(|column| column.name == name).unwrap()
}

/// `rows` objects whose members `of` gives.
fn objects(rows: usize, of: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..rows).map(|row| format!("{{{}}}", of(row))).collect::<Vec<_>>().join(","))
}

#[test]
fn like_objects_are_rows() {
    let table = table(&objects(5, |n| format!(r#""id": "r{n}", "size": {n}"#))).unwrap();
    assert_eq!(names(&table), ["id", "size"]);
    assert_eq!((table.rows.len(), table.id, table.exact), (5, Some(0), true));
    assert_eq!(column(&table, "size").sort, Sort::Number);
    assert_eq!(column(&table, "id").distinct, 5);
}

#[test]
fn few_or_unlike_values_are_not_a_table() {
    assert!(table(&objects(2, |n| format!(r#""id": {n}"#))).is_none(), "too few");
    assert!(table("[1, 2, 3, 4]").is_none(), "numbers");
    assert!(table(&objects(9, |n| format!(r#""only{n}": {n}"#))).is_none(), "no common name");
    assert!(table(r#"[{"a": 1}, {"a": 2}, 3]"#).is_none(), "a number among objects");
}

#[test]
fn members_of_objects_and_lists_get_names_of_their_own() {
    let text =
        objects(4, |n| format!(r#""id": "r{n}", "at": {{"x": {n}}}, "tags": [{{"t": "a"}}, {{"t": "b"}}]"#));
    let table = table(&text).unwrap();
    assert!(names(&table).contains(&"at.x"), "{:?}", names(&table));
    assert!(names(&table).contains(&"tags[].t"), "{:?}", names(&table));
    let tags = column(&table, "tags[].t");
    assert!(tags.is_list && tags.cells.len() == 8 && tags.cells.of_row(2).count() == 2);
}

#[test]
fn the_members_of_an_object_are_rows_by_their_names() {
    let text = r#"{"alpha": {"n": 1}, "beta": {"n": 2}, "gamma": {"n": 3}}"#;
    let table = table(text).unwrap();
    let tree = Document::parse_lenient(text).unwrap();
    assert_eq!(table.id, Some(0));
    let keys: Vec<&str> =
        table.columns[0].cells.iter().map(|(_, cell)| table.columns[0].text(&tree, cell)).collect();
    assert_eq!(keys, ["alpha", "beta", "gamma"]);
}

#[test]
fn constant_and_derived_columns_are_found() {
    let text =
        objects(6, |n| format!(r#""name": "item{n}", "kind": "box", "url": "https://x.test/item{n}.html""#));
    let table = table(&text).unwrap();
    assert!(column(&table, "kind").is_constant(6) && !column(&table, "name").is_constant(6));
    let derived = column(&table, "url").derived.clone().unwrap();
    assert_eq!((derived.before.as_str(), derived.after.as_str()), ("https://x.test/", ".html"));
    assert_eq!(table.columns[derived.from].name, "name");
    assert_eq!(table.in_words().len(), 6);
}

#[test]
fn a_missing_member_leaves_a_table_exact_and_a_departure_does_not() {
    let gap =
        objects(6, |n| if n == 3 { r#""id": "x""#.into() } else { format!(r#""id": "r{n}", "v": {n}"#) });
    let table_with_gap = table(&gap).unwrap();
    assert_eq!(column(&table_with_gap, "v").cells.len(), 5);
    assert!(column(&table_with_gap, "v").cells.of_row(3).next().is_none());
    let twice = objects(6, |n| format!(r#""id": "r{n}", "v": {n}, "v": {n}"#));
    assert!(table(&twice).is_none_or(|table| !table.exact), "a name twice in an object");
}

#[test]
fn extremes_are_the_smallest_and_largest_number() {
    let text = objects(5, |n| format!(r#""id": "r{n}", "t": {}"#, [7, -3, 100, 2, 50][n]));
    let (tree, table) = (Document::parse_lenient(&text).unwrap(), table(&text).unwrap());
    let (low, high) = column(&table, "t").extremes.unwrap();
    assert_eq!((tree.raw(low), tree.raw(high)), ("-3", "100"));
}

#[test]
fn many_rows_give_the_same_columns_as_few() {
    let rows = MANY + 5;
    let table = table(&objects(rows, |n| format!(r#""id": "r{n}", "kind": "k{}""#, n % 3))).unwrap();
    assert_eq!((names(&table), table.rows.len()), (vec!["id", "kind"], rows));
    let (id, kind) = (column(&table, "id"), column(&table, "kind"));
    assert_eq!((id.cells.len(), kind.cells.len(), kind.distinct), (rows, rows, 3));
    assert!(id.cells.iter().map(|(row, _)| row).eq(0..rows), "rows in order");
}
