//! Names in an answer: two or more capitalised words next to each other. Headings, the labels of lists and tables, and code
//! are not searched, since they may capitalise any word. Knows no document.

/// The names of a text, each with the start of its line.
pub(super) fn of(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut at, mut rows) = (0, 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let plain = without_code(line.trim());
        rows = if plain.starts_with('|') { rows + 1 } else { 0 };
        let names = match rows {
            _ if plain.starts_with('#') => Vec::new(),
            0 => in_text(&plain, false),
            1 => Vec::new(),
            // The first column says what the others are about.
            _ => plain.split('|').skip(2).flat_map(|cell| in_text(cell, true)).collect(),
        };
        found.extend(names.into_iter().map(|name| (start, name)));
    }
    found
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    let pieces = line.split('`').enumerate();
    pieces.map(|(at, piece)| if at % 2 == 0 { piece } else { " - " }).collect()
}

/// The names of a line, or of a cell whose first word may begin one.
fn in_text(text: &str, mut is_inside: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut run: Vec<&str> = Vec::new();
    let mut is_label = false;
    for word in text.split_whitespace() {
        let plain = word.trim_matches(['*', '_']);
        let bare = plain.trim_matches(|char: char| !char.is_alphanumeric());
        // Emphasised text at the start of a sentence is a label.
        is_label |= !is_inside && word.starts_with("**");
        let is_name = !is_label
            && bare.chars().next().is_some_and(char::is_uppercase)
            && bare.chars().count() > 1
            && bare.chars().skip(1).any(char::is_lowercase);
        if !is_name {
            found.push(std::mem::take(&mut run));
        } else if is_inside {
            run.push(bare);
        }
        if plain.ends_with(['.', '!', '?', ':', ',', ';', ')']) {
            found.push(std::mem::take(&mut run));
        }
        is_label &= !word.trim_start_matches('*').contains("**");
        // The first word of a sentence is capitalised anyway.
        is_inside = !bare.is_empty() && !plain.ends_with(['.', '!', '?', ':']);
    }
    found.push(run);
    found.into_iter().filter(|run| run.len() > 1).map(|run| run.join(" ")).collect()
}
