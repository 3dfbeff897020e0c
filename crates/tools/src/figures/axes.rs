//! Which axis of a table has the things that its numbers are of: the rows, as in `| | Price | Stock |`, or the columns, as in
//! `| | Basic | Pro |`. Plain functions of texts.

use std::collections::BTreeSet;

use super::{amounts, numbers, units};

/// Columns and rows of a table that are read.
const MOST_COLUMNS: usize = 50;
const MOST_ROWS: usize = 500;
/// What begins the words of what is said of things.
const ATTRIBUTES: [&str; 120] = [
    "price",
    "preis",
    "prix",
    "precio",
    "prezzo",
    "preço",
    "prijs",
    "cost",
    "kost",
    "fee",
    "gebühr",
    "rent",
    "miete",
    "loyer",
    "weight",
    "gewicht",
    "poids",
    "peso",
    "height",
    "höhe",
    "hauteur",
    "altura",
    "altezza",
    "hoogte",
    "width",
    "breite",
    "largeur",
    "ancho",
    "larghezza",
    "breedte",
    "depth",
    "tiefe",
    "length",
    "länge",
    "longueur",
    "longitud",
    "lunghezza",
    "lengte",
    "size",
    "größe",
    "taille",
    "tamaño",
    "misura",
    "maat",
    "stock",
    "lager",
    "bestand",
    "vorrat",
    "voorraad",
    "disponib",
    "akku",
    "batter",
    "power",
    "leistung",
    "puissance",
    "potencia",
    "potenza",
    "vermogen",
    "speed",
    "geschwindigkeit",
    "vitesse",
    "velocidad",
    "velocità",
    "snelheid",
    "range",
    "reichweite",
    "autonom",
    "memory",
    "speicher",
    "mémoire",
    "memoria",
    "storage",
    "warranty",
    "garant",
    "capacity",
    "kapazität",
    "capaci",
    "volume",
    "inhalt",
    "duration",
    "dauer",
    "durée",
    "duraci",
    "durata",
    "users",
    "nutzer",
    "benutzer",
    "utilisateur",
    "usuario",
    "utenti",
    "gebruikers",
    "rating",
    "bewertung",
    "review",
    "sales",
    "umsatz",
    "revenue",
    "profit",
    "gewinn",
    "material",
    "colour",
    "color",
    "farbe",
    "couleur",
    "screen",
    "display",
    "delivery",
    "lieferzeit",
    "livraison",
    "entrega",
    "consegna",
    "levertijd",
    "shipping",
    "versand",
    "temperatur",
    "seats",
    "runtime",
    "laufzeit",
    "ladezeit",
    "distan",
];
/// Headings of what is computed of the others, which tell nothing.
const NEUTRAL: [&str; 8] = ["total", "sum", "summe", "gesamt", "average", "durchschnitt", "moyenne", "media"];

/// Where the things of a table are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Rows,
    /// With their names by the number of marks before them; nothing for cells that are none.
    Columns(Vec<String>),
    /// In the rows, or in these columns.
    Either(Vec<String>),
}

impl Axis {
    /// The axis of the table of these lines, the first of which is its heading.
    pub(super) fn of(lines: &[&str], name: impl Fn(&str) -> String) -> Self {
        let rows: Vec<Vec<&str>> = lines.iter().take(MOST_ROWS).map(|line| cells(line)).collect();
        let Some((heading, rows)) = rows.split_first() else { return Self::Rows };
        let is_named = heading.get(1).is_some_and(|corner| !corner.is_empty());
        let rows: Vec<&Vec<&str>> = rows.iter().filter(|row| !is_rule(row)).collect();
        if heading.len() < 4 || rows.is_empty() {
            return Self::Rows;
        }
        let columns: Vec<String> = heading.iter().map(|cell| name(cell)).collect();
        if !columns.iter().any(|name| name.contains(char::is_alphabetic)) {
            return Self::Rows;
        }
        let heads = heading[2..].iter().any(|cell| is_attribute(cell));
        let labels = labels_of(&rows).into_iter().any(is_attribute);
        let of_rows = rows.iter().all(|row| are_alike(row[1..].iter().skip(1).copied()));
        let in_column = |column: usize| rows.iter().filter_map(move |row| row.get(column)).copied();
        let of_columns = (2..heading.len()).all(|column| are_alike(in_column(column)));
        match (heads, labels) {
            (true, false) => Self::Rows,
            (false, true) => Self::Columns(columns),
            // `| City | Oslo | Bergen |`: where the corner says what the rows are, they are the things unless they are plainly
            // what is said of the columns.
            _ if is_named => Self::Rows,
            _ if of_columns && !of_rows => Self::Rows,
            _ if of_rows && !of_columns => Self::Columns(columns),
            _ => match (are_titles(&heading[2..]), are_titles(&labels_of(&rows))) {
                (Some(true), Some(false)) => Self::Columns(columns),
                (Some(false), Some(true)) => Self::Rows,
                _ => Self::Either(columns),
            },
        }
    }
}

/// The cells of a row, before each of which are as many marks as its place says.
pub(super) fn cells(line: &str) -> Vec<&str> {
    line.trim().split('|').take(MOST_COLUMNS).map(str::trim).collect()
}

/// The first cells of rows.
fn labels_of<'c>(rows: &[&Vec<&'c str>]) -> Vec<&'c str> {
    rows.iter().filter_map(|row| row.get(1)).copied().collect()
}

/// Whether all of some cells, or none, have a digit or a space, as the names of models have and those of what is said of them
/// rarely.
fn are_titles(cells: &[&str]) -> Option<bool> {
    let is_title = |cell: &&str| cell.contains(|char: char| char.is_ascii_digit() || char == ' ');
    let cells: Vec<&&str> = cells.iter().filter(|cell| !cell.is_empty()).collect();
    let titles = cells.iter().filter(|cell| is_title(cell)).count();
    (titles == cells.len()).then_some(true).or((titles == 0).then_some(false))
}

/// Whether a row is the rule under a heading.
pub(super) fn is_rule(row: &[&str]) -> bool {
    row.concat().chars().all(|char| matches!(char, '-' | ':' | ' '))
}

/// Whether a cell names what is said of things, or ends with a unit.
pub(super) fn is_attribute(cell: &str) -> bool {
    let lower = cell.to_lowercase();
    let mut words = lower.split(|char: char| !char.is_alphabetic()).filter(|word| !word.is_empty());
    let has_unit = !units::rows_of_heading(cell).is_empty();
    let is_neutral = NEUTRAL.iter().any(|neutral| lower.starts_with(neutral));
    !is_neutral && (has_unit || words.any(|word| ATTRIBUTES.iter().any(|start| word.starts_with(start))))
}

/// Whether all cells with a number have the same currency or unit.
pub(super) fn are_alike<'c>(cells: impl Iterator<Item = &'c str>) -> bool {
    let kind = |cell: &str| {
        let (at, _) = numbers(cell).next()?;
        let currency = amounts::amounts(cell, &(at..amounts::end(cell, at))).next()?.currency();
        let unit = units::unit_after(cell, at);
        Some((currency, if units::is_unit(&unit) { unit } else { String::new() }))
    };
    cells.filter_map(kind).collect::<BTreeSet<_>>().len() < 2
}
