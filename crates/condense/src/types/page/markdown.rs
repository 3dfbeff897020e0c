//! Page captures stored as Markdown: `# Page Content: …`, lines of metadata, and a heading for every zone.
//!
//! Knows headings, lines that are fields, and where a zone gives its confidence.

use std::ops::Range;

use super::{FULL, KEY_FIELDS, Role, ZoneKind, ZoneStretch, is_key_field};

/// How many lines of a zone are searched for its confidence.
const CONFIDENCE_LINES: usize = 6;

/// The ranges of `text`.
pub(super) fn stretches(text: &str) -> Vec<ZoneStretch> {
    let mut stretches: Vec<ZoneStretch> = Vec::new();
    let lines = lines(text);
    let mut zone = Zone::preamble();
    for (index, line) in lines.iter().enumerate() {
        let content = text[line.clone()].trim();
        if content.starts_with("##") {
            let body = lines[index..].iter().take(CONFIDENCE_LINES).map(|line| &text[line.clone()]);
            zone = Zone::of(zone.number + 1, content, body);
        }
        let role = zone.role(content);
        match stretches.last_mut().filter(|last| last.role == role && last.zone == zone.number) {
            // Consecutive lines with the same zone and role form one range.
            Some(last) => last.range.end = line.end,
            None => stretches.push(ZoneStretch {
                range: line.clone(),
                role,
                zone: zone.number,
                kind: zone.kind,
                confidence: zone.confidence,
            }),
        }
    }
    stretches
}

fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let line = |line: &str| {
        let range = start..start + line.len();
        start = range.end;
        range
    };
    text.split_inclusive('\n').map(line).collect()
}

struct Zone {
    number: usize,
    kind: ZoneKind,
    confidence: f64,
}

impl Zone {
    /// The part before the first zone: title, address, times.
    const fn preamble() -> Self {
        Self { number: 0, kind: ZoneKind::Other, confidence: 1.0 }
    }

    fn of<'t>(number: usize, heading: &str, mut body: impl Iterator<Item = &'t str>) -> Self {
        let own = body.next().and_then(confidence);
        let below = body.take_while(|line| !line.trim_start().starts_with('#')).find_map(confidence);
        Self { number, kind: ZoneKind::of(heading), confidence: own.or(below).unwrap_or(1.0) }
    }

    fn role(&self, line: &str) -> Role {
        let field = line.starts_with("- ")
            || line.starts_with("* ")
            || line.starts_with('|')
            || line.starts_with("**");
        match (self.number, field || line.starts_with('#')) {
            _ if self.confidence < KEY_FIELDS || self.confidence.is_nan() => Role::Dropped,
            (0, true) => Role::Metadata,
            (_, true) if self.confidence >= FULL || line.starts_with('#') || is_key_field(name(line)) => {
                Role::Structured
            }
            (_, true) => Role::Dropped,
            _ if self.confidence < FULL && !line.is_empty() => Role::Dropped,
            (0, false) if line.is_empty() => Role::Metadata,
            _ => Role::Text,
        }
    }
}

/// The name of the field in `line`.
fn name(line: &str) -> &str {
    line.split([':', '=']).next().unwrap_or(line)
}

/// The number after the word "confidence" in `line`; percentages become fractions.
fn confidence(line: &str) -> Option<f64> {
    let lower = line.to_ascii_lowercase();
    let after = &lower[lower.find("confidence")?..];
    let digits = &after[after.find(|c: char| c.is_ascii_digit())?..];
    let len = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let number: f64 = digits[..len].trim_end_matches('.').parse().ok()?;
    Some(if digits[len..].starts_with('%') { number / 100.0 } else { number })
}
