//! The position of each key in a TOML text. Knows no setting.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// Maximum depth of keys: `tools.mcp.files.command`.
const DEPTH: usize = 4;

/// Line and column of each key of a text, from 1, by its dotted path.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyPlaces(BTreeMap<String, (usize, usize)>);

impl KeyPlaces {
    /// The positions in a text; empty if it is not TOML.
    pub(super) fn of(text: &str) -> Self {
        let Ok(document) = DeTable::parse(text) else { return Self::default() };
        let starts: Vec<usize> =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let place = |at: usize| {
            let line = starts.partition_point(|start| *start <= at);
            let start = starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
            (line, text.get(start..at).unwrap_or_default().chars().count() + 1)
        };
        let mut places = BTreeMap::new();
        let mut tables = vec![(String::new(), document.get_ref(), 1)];
        while let Some((path, table, depth)) = tables.pop() {
            for (key, value) in table {
                let name = key.get_ref();
                let full = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
                if let (DeValue::Table(inner), true) = (value.get_ref(), depth < DEPTH) {
                    tables.push((full.clone(), inner, depth + 1));
                }
                places.insert(full, place(key.span().start));
            }
        }
        Self(places)
    }

    /// The position of a key, if it exists.
    pub(super) fn find(&self, key: &str) -> Option<(usize, usize)> {
        self.0.get(key).copied()
    }

    /// The position of a key, or the start of the text.
    pub(super) fn get(&self, key: &str) -> (usize, usize) {
        self.find(key).unwrap_or((1, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_key_has_its_place() {
        let text = "# policy\npolicy.a = 1\r\n\n[models]\n  table = \"x\"\n[models.layers] # VOICE\nEYES = 1\n\"VOICE\" = { model = 2 }\n";
        let places = KeyPlaces::of(text);
        for (key, place) in [
            ("policy.a", (2, 8)),
            ("models", (4, 2)),
            ("models.table", (5, 3)),
            ("models.layers", (6, 9)),
            ("models.layers.VOICE", (8, 1)),
        ] {
            assert_eq!(places.find(key), Some(place), "{key}");
        }
        assert_eq!(places.get("models.layers.MIND"), (1, 1));
        assert_eq!(KeyPlaces::of("= no TOML").find("policy"), None);
    }
}
