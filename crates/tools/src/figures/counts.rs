//! What a number of an answer counts, by the words next to it.

use std::ops::Range;

use larder_condense::salience::SpanKind;

use super::tables::Tables;
use super::{amounts, units, worded};

/// What begins the words of what is counted; after one of them, a digit is no part of the name before it.
const COUNTED: [&str; 39] = [
    "day", "week", "month", "year", "hour", "minute", "second", "night", "working", "business", "piece",
    "item", "review", "star", "person", "people", "unit", "percent", "tag", "werktag", "woche", "monat",
    "jahr", "stunde", "sekunde", "stück", "nacht", "nächte", "sterne", "prozent", "jour", "semaine", "mois",
    "día", "semana", "mes", "giorni", "dagen", "dias",
];

/// Signs that join a number and a word.
pub(super) const HYPHENS: [char; 3] = ['-', '\u{2010}', '\u{2011}'];
/// What begins the words of reviews, and of pieces in stock, of which a number is no measure of anything else.
const REVIEWED: [&str; 28] = [
    "review",
    "rating",
    "rated",
    "vote",
    "customer",
    "bewertung",
    "rezension",
    "stimme",
    "kunde",
    "avis",
    "client",
    "évaluation",
    "reseña",
    "opinion",
    "valoraci",
    "recension",
    "avaliaç",
    "beoordeling",
    "piece",
    "item",
    "stück",
    "artikel",
    "pièce",
    "pieza",
    "unidad",
    "pezzi",
    "unità",
    "stuks",
];
/// What says of the number before or after it that it is in stock.
const IN_STOCK: [&str; 10] = [
    "in stock",
    "stock",
    "auf lager",
    "lager",
    "lagerbestand",
    "en stock",
    "existencias",
    "op voorraad",
    "voorraad",
    "em estoque",
];
/// The same after a number, and as the only word of a label: `Memory available` is of no stock.
const AVAILABLE: [&str; 4] = ["available", "disponible", "disponibili", "vorrätig"];
/// Number words that are more often other words.
const DOUBTFUL: [&str; 4] = ["elf", "neuf", "sept", "dos"];
/// Words after a number that are not counted by it, or in idioms such as `four-wheel drive`.
const NO_NOUNS: [&str; 96] = [
    "and", "are", "for", "from", "had", "has", "have", "more", "less", "other", "others", "out", "per",
    "plus", "than", "that", "the", "then", "times", "was", "were", "which", "who", "with", "wheel", "figure",
    "figures", "fold", "key", "main", "point", "percent", "als", "aber", "auf", "bis", "das", "dem", "den",
    "der", "des", "die", "für", "mal", "mehr", "mit", "oder", "pro", "sind", "und", "uhr", "von", "weitere",
    "avec", "dans", "fois", "heures", "par", "pour", "sont", "con", "más", "por", "que", "son", "veces",
    "after", "against", "before", "compared", "during", "each", "earlier", "last", "this", "until", "versus",
    "while", "gegen", "nach", "vom", "vor", "zuvor", "letztes", "alors", "après", "avant", "contre",
    "depuis", "contra", "desde", "frente", "hace", "contro", "rispetto", "tegen",
];
/// Words before the hour of a time of day, and before things that are known.
const CLOCKS: [&str; 19] = [
    "other", "first", "last", "next", "at", "past", "till", "until", "to", "by", "around", "about", "all",
    "um", "gegen", "nach", "vor", "halb", "alle",
];
/// Words before the number of people that something is for.
const HOLDS: [&str; 12] = [
    "sleeps",
    "sleep",
    "seats",
    "seat",
    "fits",
    "holds",
    "accommodates",
    "employs",
    "for",
    "für",
    "pour",
    "para",
];
/// What stands between a rating and the end of its scale, and the ends of scales.
const OF_SCALE: [&str; 8] = ["out of", "of", "von", "sur", "de", "su", "van", "/"];
const SCALES: [&str; 3] = ["5", "10", "100"];
/// What begins the word after a number of stars.
const STARS: [&str; 8] = ["★", "star", "stern", "étoile", "estrella", "estrela", "stell", "sterren"];
/// Bytes of a label before a number, such as `In stock:`.
const LABEL: usize = 32;

/// The number that a hyphen joins to what it counts, as in `9-litre tank`: with its unit, or without another word.
pub(super) fn joined(text: &str, range: &Range<usize>) -> Option<(Range<usize>, SpanKind)> {
    let end = amounts::end(text, range.start);
    let hyphen = text[end..].chars().next().filter(|char| HYPHENS.contains(char) && end > range.start)?;
    let after = &text[end + hyphen.len_utf8()..];
    let length = after.find(|char: char| !char.is_alphabetic()).unwrap_or(after.len());
    let word = &after[..length];
    let whole = end + hyphen.len_utf8() + length;
    // What goes on behind the word is the id, path or address that it looks like.
    if word.chars().count() < 2 || !word.chars().all(char::is_lowercase) || range.end > whole {
        return None;
    }
    if units::is_unit(&units::unit_from(word)) {
        return Some((range.start..whole, SpanKind::Quantity));
    }
    // `1-click` and the like count nothing.
    let is_one = &text[range.start..end] == "1";
    (may_be_counted(word) || !is_one).then_some((range.start..end, SpanKind::Number))
}

/// Whether a number without a unit supports none with one: a rating or the end of its scale, as in `4.6 of 5`, or a count
/// of reviews or of pieces in stock.
pub(super) fn is_unmeasured(text: &str, tables: &Tables, at: usize) -> bool {
    let end = amounts::end(text, at);
    let from = (at.saturating_sub(LABEL)..at).find(|from| text.is_char_boundary(*from)).unwrap_or(at);
    let before = text[from..at].rsplit(['\n', '|', ',', ';', '.']).next().unwrap_or_default().to_lowercase();
    let label = before.trim_end_matches(|char: char| !char.is_alphanumeric());
    let after: String = text[end..].chars().take(LABEL).collect::<String>().to_lowercase();
    let after = after.split(['\n', '|', ',', ';', '.']).next().unwrap_or_default();
    let noun = after.trim_start_matches(|char: char| !char.is_alphanumeric());
    let starts = |word: &&str| noun.starts_with(*word);
    let is_counted = || [&REVIEWED[..], &IN_STOCK, &AVAILABLE].iter().any(|words| words.iter().any(starts));
    // `Reviews: 312` and `In stock (37)`, but no `review of 5 kg`.
    let is_labelled = || label.len() < before.trim_end().len() && heads_counts(label);
    let is_under = || tables.column(text, at).is_some_and(|column| column.is_count);
    is_rating(text, at, end) || is_counted() || is_labelled() || is_under()
}

/// Whether a heading or label says that its numbers count reviews or what is in stock: not `Weight per item`.
pub(super) fn heads_counts(heading: &str) -> bool {
    let lower = heading.trim().to_lowercase();
    let last = lower.rsplit(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
    let is_reviewed = REVIEWED.iter().any(|start| last.starts_with(start));
    is_reviewed && lower.split_whitespace().count() < 3
        || IN_STOCK.contains(&last)
        || AVAILABLE.contains(&lower.as_str())
}

/// Whether a number is a rating or the end of its scale, without a unit.
fn is_rating(text: &str, at: usize, end: usize) -> bool {
    let (before, after) = (text[..at].trim_end(), text[end..].trim_start());
    let noun = after.chars().take(LABEL).collect::<String>().to_lowercase();
    let number_before = || {
        let of = OF_SCALE.iter().find_map(|of| before.strip_suffix(of));
        of.is_some_and(|before| before.trim_end().ends_with(|char: char| char.is_ascii_digit()))
    };
    let scale_after = || {
        let scale = OF_SCALE.iter().find_map(|of| after.strip_prefix(of)).map(str::trim_start)?;
        let length = scale.find(|char: char| !char.is_ascii_digit()).unwrap_or(scale.len());
        let has_unit = units::is_unit(&units::unit_from(&scale[length..]));
        Some(SCALES.contains(&&scale[..length]) && !has_unit)
    };
    let is_of_stars = || STARS.iter().any(|star| noun.starts_with(star));
    SCALES.contains(&&text[at..end]) && number_before() || scale_after() == Some(true) || is_of_stars()
}

/// Whether a digit counts something, as in `9 are in stock`: not the number of a list item or a part of a name, unless a
/// unit follows, or a noun where nouns are capitalised.
pub(super) fn is_count(text: &str, range: &Range<usize>, is_english: bool) -> bool {
    let (before, after) = (&text[..range.start], &text[range.end..]);
    let stands_alone = range.len() == 1
        && before
            .chars()
            .next_back()
            .is_none_or(|char| char.is_whitespace() || matches!(char, '(' | '*' | '|'));
    let is_joined = after.starts_with(HYPHENS);
    let unit = after.trim_start_matches('*');
    let unit = unit.strip_prefix(' ').or_else(|| unit.strip_prefix(HYPHENS)).unwrap_or_default();
    let follows_name = || {
        before.split_whitespace().next_back().is_some_and(|word| {
            let is_sentence_end = word.ends_with(['.', '!', '?', ':', '|', '*', '-']);
            !is_sentence_end
                && word.chars().all(char::is_alphanumeric)
                && word.starts_with(char::is_uppercase)
        })
    };
    let word = unit.split(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
    // `7 x 25 €` and `7 Stück × 25 €`
    let sign = unit[word.len()..].trim_start_matches(' ');
    let is_factor =
        unit.starts_with("x ") || sign.starts_with('×') || sign.starts_with("x ") || sign.starts_with("* ");
    let lower = word.to_lowercase();
    let is_noun = || {
        may_be_counted(&lower)
            || !is_english
                && word.starts_with(char::is_uppercase)
                && word.chars().skip(1).all(char::is_lowercase)
    };
    stands_alone
        && !is_factor
        && unit.starts_with(char::is_alphabetic)
        && (is_joined || !follows_name() || word.chars().count() > 2 && is_noun())
}

/// Whether a small number in words counts something: before a noun, as in `eight offices` and `six-person tent`, or after
/// a verb that says for how many something is, as in `sleeps eight`. Not `Section Four`, `four of them` and `at eight`.
pub(super) fn counts_noun(text: &str, range: &Range<usize>, is_english: bool) -> bool {
    let (before, after) = (text[..range.start].trim_end_matches(' '), &text[range.end..]);
    let begins = before.is_empty() || before.ends_with(|char: char| !char.is_alphanumeric() && char != ',');
    let number = text[range.clone()].to_lowercase();
    let is_read =
        if is_english { worded::is_english_number(&number) } else { !DOUBTFUL.contains(&number.as_str()) };
    if !is_read || !begins && text[range.clone()].starts_with(char::is_uppercase) {
        return false;
    }
    let word = before.rsplit(|char: char| !char.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    let noun =
        after.strip_prefix(HYPHENS).or_else(|| after.strip_prefix([' ', '\u{a0}'])).unwrap_or_default();
    let noun = &noun[..noun.find(|char: char| !char.is_alphabetic()).unwrap_or(noun.len())];
    let is_noun = is_noun(noun) && !(is_english && noun.starts_with(char::is_uppercase));
    let ends = after.is_empty() || after.starts_with(['.', ',', ';', '!', '?', ')', '\n']);
    is_noun && !CLOCKS.contains(&word.as_str()) && !before.ends_with("out of")
        || ends && HOLDS.contains(&word.as_str())
}

/// Whether a word after a number may be what it counts.
pub(super) fn is_noun(word: &str) -> bool {
    word.chars().count() > 2 && !NO_NOUNS.contains(&word.to_lowercase().as_str())
}

/// Whether a word, in small letters, is of what is counted.
pub(super) fn may_be_counted(word: &str) -> bool {
    COUNTED.iter().any(|start| word.starts_with(start))
}

/// Whether the word after a number says that it counts the lines of a text.
pub(super) fn says_lines(after: &str) -> bool {
    const LINES: [&str; 20] = [
        "line",
        "lines",
        "row",
        "rows",
        "record",
        "records",
        "entry",
        "entries",
        "zeile",
        "zeilen",
        "einträge",
        "datensätze",
        "ligne",
        "lignes",
        "línea",
        "líneas",
        "fila",
        "filas",
        "righe",
        "linhas",
    ];
    let word = after.trim_start().split(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
    LINES.contains(&word.to_lowercase().as_str())
}
