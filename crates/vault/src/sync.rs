//! Updates the lines of a list in a document that people edit: Larder's lines are identified by a key, and every
//! other byte is preserved.

use std::ops::Range;

use super::blocks::item;

/// A line that should be in the list.
pub(super) struct ListItem<K> {
    pub key: K,
    pub line: String,
}

/// `text` with the entries under the heading `head`. Lines with an entry's key become that entry; lines with any
/// other key are kept if `keep` accepts them, and removed otherwise; a new entry is placed after the preceding entry.
/// If the heading is missing, it is added at the end.
pub(super) fn sync<K: PartialEq>(
    text: &str,
    head: &str,
    entries: &[ListItem<K>],
    key: impl Fn(&str) -> Option<K>,
    keep: impl Fn(&K) -> bool,
) -> String {
    let Some(section) = section(text, head) else {
        let gap = match text {
            "" => "",
            text if text.ends_with("\n\n") => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let lines: String = entries.iter().map(|entry| entry.line.clone() + "\n").collect();
        return format!("{text}{gap}{head}\n\n{lines}");
    };
    let mut lines: Vec<ParsedLine> = Vec::new();
    for line in text[section.clone()].split_inclusive('\n') {
        let found = key(line.trim_end());
        let place = found.as_ref().and_then(|found| entries.iter().position(|entry| entry.key == *found));
        let first = place.is_some_and(|place| !lines.iter().any(|line| line.entry == Some(place)));
        match (found, place) {
            (_, Some(place)) if first => {
                let end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
                let same = line.trim_end() == entries[place].line;
                let text = if same { line.to_owned() } else { format!("{}{end}", entries[place].line) };
                lines.push(ParsedLine { entry: Some(place), known: true, text });
            }
            (Some(found), None) if keep(&found) => {
                lines.push(ParsedLine { entry: None, known: true, text: line.to_owned() })
            }
            (Some(_), _) => {}
            (None, _) => lines.push(ParsedLine { entry: None, known: false, text: line.to_owned() }),
        }
    }
    for (place, entry) in entries.iter().enumerate() {
        insert(&mut lines, place, &entry.line);
    }
    let before = &text[..section.start];
    let gap = if before.ends_with('\n') || lines.is_empty() { "" } else { "\n" };
    let lines: String = lines.into_iter().map(|line| line.text).collect();
    format!("{before}{gap}{lines}{}", &text[section.end..])
}

struct ParsedLine {
    /// The entry it represents.
    entry: Option<usize>,
    /// Whether it has a key.
    known: bool,
    text: String,
}

impl ParsedLine {
    /// Whether it continues the list item above it.
    fn goes_on(&self) -> bool {
        !self.known
            && !self.text.trim().is_empty()
            && !self.text.starts_with('#')
            && item(self.text.trim()).is_none()
    }
}

/// Inserts entry `place` after the previous one, if it has no line yet. The first goes before all others but after
/// any text people wrote above them: text directly after a list item would belong to it.
fn insert(lines: &mut Vec<ParsedLine>, place: usize, text: &str) {
    if lines.iter().any(|line| line.entry == Some(place)) {
        return;
    }
    let before =
        place.checked_sub(1).and_then(|before| lines.iter().position(|line| line.entry == Some(before)));
    let at = match before {
        Some(before) => before + 1 + lines[before + 1..].iter().take_while(|line| line.goes_on()).count(),
        None => lines.iter().position(|line| line.known).unwrap_or_else(|| {
            let deeper = lines.iter().position(|line| line.text.starts_with('#')).unwrap_or(lines.len());
            let written = lines[..deeper].iter().rposition(|line| !line.text.trim().is_empty());
            written.map_or(usize::from(deeper > 0), |last| last + 1)
        }),
    };
    if let Some(line) =
        at.checked_sub(1).and_then(|above| lines.get_mut(above)).filter(|line| !line.text.ends_with('\n'))
    {
        line.text.push('\n');
    }
    lines.insert(at, ParsedLine { entry: Some(place), known: true, text: format!("{text}\n") });
}

/// The content under the heading, up to the next heading of the same or a higher level.
fn section(text: &str, head: &str) -> Option<Range<usize>> {
    let depth = |line: &str| line.bytes().take_while(|byte| *byte == b'#').count();
    let mut at = 0;
    let mut start = None;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        match start {
            None if line.trim_end() == head => start = Some(range.end),
            Some(start) if (1..=depth(head)).contains(&depth(line)) => return Some(start..range.start),
            _ => {}
        }
    }
    Some(start?..text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(line: &str) -> Option<char> {
        line.strip_prefix("- ")?.chars().next()
    }

    fn synced(text: &str, lines: &[&str]) -> String {
        let entries: Vec<_> =
            lines.iter().map(|line| ListItem { key: key(line).unwrap(), line: (*line).to_owned() }).collect();
        sync(text, "## L", &entries, key, |key| *key == 'z')
    }

    #[test]
    fn lines_are_known_by_their_key_and_others_stay() {
        let text =
            "# T\n\n## L\n\nmine\r\n- a old\r\n- b\nmore\n- z kept\n\n### deeper\n- c gone\n## Next\n- a\n";
        assert_eq!(
            synced(text, &["- a new", "- d", "- b"]),
            "# T\n\n## L\n\nmine\r\n- a new\r\n- d\n- b\nmore\n- z kept\n\n### deeper\n## Next\n- a\n"
        );
        assert_eq!(synced("## L\n\ntext", &["- a"]), "## L\n\ntext\n- a\n");
        assert_eq!(synced("## L\n\n\n### deeper\n", &["- a"]), "## L\n\n- a\n\n### deeper\n");
        assert_eq!(synced("## L", &["- a"]), "## L\n- a\n");
        assert_eq!(synced("## L\n- b\nmore", &["- b", "- a", "- c"]), "## L\n- b\nmore\n- a\n- c\n");
        assert_eq!(synced("x", &["- a"]), "x\n\n## L\n\n- a\n");
        assert_eq!(synced(&synced(text, &["- a new"]), &["- a new"]), synced(text, &["- a new"]));
    }
}
