//! What an answer states and none of its documents does (R0-14.8): numbers, prices, dates, addresses and names, unless
//! code recomputes them as a sum, a difference or a count. Plain functions of texts.

use std::collections::BTreeSet;

use larder_condense::salience::{self, ErrorSense, SpanKind};

/// Numbers with fewer digits may just be list numbers.
const SALIENT_DIGITS: usize = 2;
/// Numbers with more digits before their decimals are not computed with.
const MOST_DIGITS: usize = 15;
/// With more numbers than this in an answer, almost any number is a product or a quotient of two of them.
const MOST_SHOWN: i128 = 12;
/// Findings that are reported.
const MAX_FOUND: usize = 5;
/// Words of time after which a quantity is an age, which follows from a date and the present.
const AGE_ENDS: [&str; 4] = ["ago", "old", "alt", "earlier"];
/// Words of time before which it is one.
const AGE_STARTS: [&str; 3] = ["vor", "seit", "since"];

/// The values of `answer` that `known` neither states nor yields, in order.
pub(crate) fn unsupported(known: &str, answer: &str) -> Vec<String> {
    let text = without_citations(answer);
    let known_numbers: BTreeSet<i128> = numbers(known).collect();
    let known_digits: BTreeSet<&str> = digits(known).collect();
    let derived = derived(&text, &known_numbers, known);
    let mut found: Vec<(usize, String)> = Vec::new();
    for span in salience::scan(&text, ErrorSense::Strict) {
        let value = &text[span.range.clone()];
        let is_supported = match span.kind {
            SpanKind::Error => true,
            SpanKind::Number if value.bytes().filter(u8::is_ascii_digit).count() < SALIENT_DIGITS => true,
            SpanKind::Date => known.contains(value) || digits(value).all(|run| known_digits.contains(run)),
            SpanKind::Number | SpanKind::Quantity | SpanKind::Price => {
                let is_known = |number| known_numbers.contains(&number) || derived.contains(&number);
                known.contains(value)
                    || numbers(value).next().is_some() && numbers(value).all(is_known)
                    || is_age(&text, &span.range)
            }
            _ => known.contains(value),
        };
        if !is_supported {
            found.push((span.range.start, value.to_owned()));
        }
    }
    let known = known.to_lowercase();
    found.extend(names(&text).into_iter().filter(|(_, name)| is_unknown(&known, name)));
    found.sort();
    found.dedup_by(|a, b| a.1 == b.1);
    found.into_iter().map(|(_, value)| value).take(MAX_FOUND).collect()
}

/// The answer with its markers of citations, such as `[1, 2]` and `[context.md§2]`, replaced by spaces.
fn without_citations(answer: &str) -> String {
    let mut text = answer.to_owned();
    let mut from = 0;
    while let Some(start) = text[from..].find('[').map(|at| from + at) {
        let Some(end) = text[start..].find(']').map(|at| start + at + 1) else { break };
        let inner = &text[start + 1..end - 1];
        let numbers = |char: char| char.is_ascii_digit() || matches!(char, ',' | ' ' | 'p' | '-');
        let is_citation =
            !text[end..].starts_with('(') && (inner.chars().all(numbers) || inner.contains('§'));
        if is_citation {
            text.replace_range(start..end, &" ".repeat(end - start));
        }
        from = if is_citation { end } else { start + 1 };
    }
    text
}

/// Every run of digits, without leading zeros: what `2026-01-05` and `5.1.2026` have in common.
fn digits(text: &str) -> impl Iterator<Item = &str> {
    let runs = text.split(|char: char| !char.is_ascii_digit()).filter(|run| !run.is_empty());
    runs.map(|run| run.trim_start_matches('0'))
}

/// Every number of a text in thousandths, except ids and the like with too many digits to count with. `1,299.50` and
/// `1.299,50` are the same.
fn numbers(text: &str) -> impl Iterator<Item = i128> {
    let is_part = |char: char| char.is_ascii_digit() || matches!(char, '.' | ',');
    let runs = text.split(move |char: char| !is_part(char));
    runs.filter(|run| run.contains(|char: char| char.is_ascii_digit())).filter_map(number)
}

fn number(text: &str) -> Option<i128> {
    let text = text.trim_matches(['.', ',']);
    let marks: Vec<(usize, char)> = text.char_indices().filter(|(_, char)| !char.is_ascii_digit()).collect();
    // The last mark separates decimals unless exactly three digits follow it or it occurs twice.
    let decimal = marks.last().filter(|(at, mark)| {
        text.len() - at - 1 != 3 && marks.iter().filter(|(_, other)| other == mark).count() == 1
    });
    let (whole, decimals) = decimal.map_or((text, ""), |(at, _)| (&text[..*at], &text[at + 1..]));
    let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
    let decimals: String = decimals.chars().chain("000".chars()).take(3).collect();
    (digits.len() <= MOST_DIGITS).then(|| format!("{digits}{decimals}").parse().ok()).flatten()
}

/// What can be computed from known numbers that the answer shows: sums, differences, products, quotients and percentages
/// of two, small multiples of one, sum and mean of all, and the length of its lists and of those in its documents.
fn derived(answer: &str, known: &BTreeSet<i128>, documents: &str) -> BTreeSet<i128> {
    let shown: BTreeSet<i128> = numbers(answer).filter(|number| known.contains(number)).collect();
    let pairs = shown.iter().flat_map(|a| shown.iter().map(move |b| (a, b)));
    let mut derived: BTreeSet<i128> = pairs.flat_map(|(a, b)| [a + b, (a - b).abs()]).collect();
    let (sum, count) = (shown.iter().sum::<i128>(), shown.len() as i128);
    derived.insert(sum);
    if count <= MOST_SHOWN {
        derived.extend(shown.iter().flat_map(|a| (2..=12).map(move |times| a * times)));
        let pairs = shown.iter().flat_map(|a| shown.iter().map(move |b| (*a, *b)));
        for (a, b) in pairs.filter(|(_, b)| *b != 0) {
            let per_cent = |part: i128| part * 100_000 / b;
            let exact = [a * b / 1_000, a * 1_000 / b, per_cent(a), per_cent((a - b).abs())];
            derived.extend(exact.into_iter().flat_map(rounded));
        }
        derived.extend(rounded(sum / count.max(1)));
    }
    let is_item = |line: &str| line.trim_start().starts_with(['-', '*', '|']) || starts_with_number(line);
    for text in [answer, documents] {
        for list in text.split("\n\n") {
            let items = list.lines().filter(|line| is_item(line)).count() as i128;
            // A table has a heading and a rule besides its rows.
            derived.extend([items * 1_000, items.saturating_sub(2) * 1_000]);
        }
    }
    derived
}

/// A number of thousandths, and as people round it.
fn rounded(exact: i128) -> [i128; 4] {
    let to = |unit: i128| (exact + unit / 2) / unit * unit;
    [exact, to(10), to(100), to(1_000)]
}

fn starts_with_number(line: &str) -> bool {
    let rest = line.trim_start().trim_start_matches(|char: char| char.is_ascii_digit());
    rest.len() < line.trim_start().len() && rest.starts_with(['.', ')'])
}

/// Whether the quantity is an age, such as `2 hours ago`.
fn is_age(text: &str, range: &std::ops::Range<usize>) -> bool {
    let word = |text: &str| text.trim_matches(|char: char| !char.is_alphanumeric()).to_lowercase();
    let mut after = text[range.end..].split_whitespace().take(2).map(word);
    let before = text[..range.start].split_whitespace().next_back().map(word).unwrap_or_default();
    AGE_STARTS.contains(&before.as_str()) || after.any(|word| AGE_ENDS.contains(&word.as_str()))
}

/// Names: two or more capitalised words next to each other within a sentence. Headings and emphasised text are not
/// searched, since they may capitalise any word.
fn names(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if line.trim_start().starts_with(['#', '|', '>']) || line.contains("**") || line.contains('`') {
            continue;
        }
        let mut run: Vec<&str> = Vec::new();
        let mut is_inside = false;
        for word in line.split_inclusive(char::is_whitespace) {
            let bare = word.trim().trim_matches(|char: char| !char.is_alphanumeric());
            let is_name = bare.chars().next().is_some_and(char::is_uppercase)
                && bare.chars().count() > 1
                && bare.chars().skip(1).any(char::is_lowercase);
            if is_inside && is_name {
                run.push(bare);
            }
            let ends = word.trim().ends_with(['.', '!', '?', ':', ',', ';', ')']);
            if run.len() > 1 && (!is_name || ends || word.ends_with('\n')) {
                found.push((start, run.join(" ")));
            }
            if !is_name || ends {
                run.clear();
            }
            // The first word of a sentence is capitalised anyway.
            is_inside = !bare.is_empty() && !word.trim().ends_with(['.', '!', '?', ':']);
        }
    }
    found
}

/// Whether no word of the name appears in the documents.
fn is_unknown(known: &str, name: &str) -> bool {
    name.split(' ').all(|word| !known.contains(&word.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_documents_are_supported_however_they_are_written() {
        let known =
            "Lenovo LOQ 15 costs $1,299.50, seen 2026-01-05. HP Victus 15 costs $649. Sold by Acme Stores.";
        for answer in [
            "The Lenovo LOQ 15 costs 1299,50 USD [1, 12] and the HP Victus $649.00 [context.md§2].",
            "As of 5.1.2026 it costs $1,299.50, seen 12 hours ago.",
            "Together $1,299.50 and $649 are $1,948.50, a difference of $650.50.",
            "It is sold by Acme Stores.",
        ] {
            assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
        }
    }

    #[test]
    fn what_no_document_states_is_found() {
        let known = "Lenovo LOQ 15 costs $697. Stand: 2026-01-05.";
        for (answer, found) in [
            ("It costs $599.00.", vec!["$599.00"]),
            ("It was released on 2025-11-30.", vec!["2025-11-30"]),
            ("There are 42 reviews.", vec!["42"]),
            ("You can buy it at Bobs Boats in Reykjavik for $697.", vec!["Bobs Boats"]),
            ("See https://example.org/loq.", vec!["https://example.org/loq"]),
        ] {
            assert_eq!(unsupported(known, answer), found, "{answer}");
        }
    }

    #[test]
    fn what_follows_from_known_numbers_is_recomputed() {
        let known = "A crate costs $12.50. In May 80 came, in June 100, of 3 kinds.";
        for answer in [
            "Three crates at $12.50 cost $37.50.",
            "From 80 in May to 100 in June is a rise of 25 %.",
            "80 of 100 are 80 %; 100 at $12.50 are $1,250.",
            "The mean of 80 and 100 is 90.",
        ] {
            assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
        }
        assert_eq!(unsupported(known, "From 80 to 100 is a rise of 37 %."), ["37 %"]);
    }

    #[test]
    fn numbers_of_any_length_are_read() {
        let long = "123456789012345678901234567890123456";
        for id in [long.to_owned(), long.repeat(3), format!("{long}.{long}")] {
            assert_eq!(unsupported(&format!("It is {id}."), &format!("It is {id}.")), Vec::<String>::new());
            assert_eq!(unsupported("Nothing is known.", &format!("It is {id}.")).len(), 1, "{id}");
        }
    }

    #[test]
    fn a_count_is_recomputed() {
        let list: String = (0..14).map(|at| format!("- board {at}\n")).collect();
        assert_eq!(unsupported(&list, "There are 14 boards."), Vec::<String>::new());
        assert_eq!(unsupported(&list, "There are 15 boards."), ["15"]);
    }
}
