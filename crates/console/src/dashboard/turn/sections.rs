//! `context.md` section by section: the newest version of each is open, older ones and compactions are folded.

use larder_text::sections::{Section, SectionId, Sections};
use larder_vault::Note;
use maud::{Markup, html};
use serde_json::Value;

use super::super::figures::{name, number};
use super::super::links::heading_id;
use super::super::markdown::MarkdownPage;
use super::super::ui::{self, Column, chip, payload};

/// Bytes of one version of a section that are shown; the rest is in the document.
const SHOWN: usize = 256 * 1024;
/// How a compaction begins and ends. Text by others is escaped, so none of its lines begins like this.
const COMPACTION: &str = "### Compaction ";
const COMPACTION_END: &str = "### End of Compaction ";

/// All sections of a `context.md`.
pub fn all(context: &str, sheet: &mut MarkdownPage<'_>) -> Markup {
    let divided = Sections::parse(context);
    let preamble = context.get(divided.preamble.clone()).unwrap_or_default();
    html! {
        (properties(&Note::parse(context)))
        @if !preamble.trim().is_empty() { section.panel.prose { (sheet.show(preamble)) } }
        @for id in SectionId::ALL {
            @if let Some(newest) = divided.newest(id) { (section(context, &divided, id, newest, sheet)) }
        }
    }
}

fn section(
    context: &str,
    all: &Sections,
    id: SectionId,
    newest: &Section,
    sheet: &mut MarkdownPage<'_>,
) -> Markup {
    let heading = id.heading().trim_start_matches("## ");
    let older: Vec<&Section> = all.attempts(id).filter(|section| *section != newest).collect();
    let anchor = heading_id(heading);
    sheet.take(anchor.clone());
    sheet.stand_under(2);
    let shown = body(context, newest, sheet);
    html! {
        section.panel.prose.turn-section aria-labelledby=(anchor) {
            h2 id=(anchor) {
                (heading)
                @if newest.attempt > 1 { " " (chip("", format!("attempt {}", newest.attempt))) }
            }
            (shown)
            @for section in older.iter().rev() {
                @let title = format!("{heading} (Attempt {})", section.attempt);
                @let own = sheet.take(heading_id(&title));
                details.fold id=[own] {
                    summary { "Attempt " (section.attempt) ", which was rewritten" }
                    ({ sheet.stand_under(2); body(context, section, sheet) })
                }
            }
        }
    }
}

/// One version of a section, its compactions folded in place.
fn body(context: &str, section: &Section, sheet: &mut MarkdownPage<'_>) -> Markup {
    let whole = context.get(section.body.clone()).unwrap_or_default();
    let shown = &whole[..whole.floor_char_boundary(SHOWN)];
    let pieces = pieces(shown);
    let more = whole.len().saturating_sub(shown.len());
    html! {
        @for piece in &pieces {
            @match piece {
                SectionPiece::Written(text) => (sheet.show(text)),
                SectionPiece::Compaction { number, text } => details.fold.compaction {
                    summary { "Compaction " (number) ": what prompts see of everything above" }
                    (sheet.show(text))
                },
            }
        }
        @if more > 0 { p.muted { "and " (number_of(more)) " bytes more, in the document" } }
    }
}

fn number_of(bytes: usize) -> String {
    number(bytes as u64)
}

/// A piece of a section.
#[derive(Debug, PartialEq, Eq)]
enum SectionPiece<'t> {
    Written(&'t str),
    Compaction { number: &'t str, text: &'t str },
}

fn pieces(body: &str) -> Vec<SectionPiece<'_>> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    let mut open: Option<&str> = None;
    for line in body.split_inclusive('\n') {
        let end = at + line.len();
        if let Some(number) = line.strip_prefix(COMPACTION).filter(|_| open.is_none()) {
            pieces.push(SectionPiece::Written(&body[from..at]));
            (open, from) = (Some(number.trim()), end);
        } else if line.starts_with(COMPACTION_END)
            && let Some(number) = open.take()
        {
            pieces.push(SectionPiece::Compaction { number, text: &body[from..at] });
            from = end;
        }
        at = end;
    }
    match open {
        Some(number) => pieces.push(SectionPiece::Compaction { number, text: &body[from..] }),
        None => pieces.push(SectionPiece::Written(&body[from..])),
    }
    pieces.retain(|piece| !matches!(piece, SectionPiece::Written(text) if text.trim().is_empty()));
    pieces
}

/// The properties of a note as a table, or their text if they are not YAML.
pub fn properties(note: &Note) -> Markup {
    let front = &note.frontmatter;
    let keys = front.keys();
    html! {
        @if !front.as_str().is_empty() {
            details.fold.properties {
                summary { "Properties" }
                @if keys.is_empty() { (payload("Properties", front.as_str())) }
                @else {
                    (ui::table("Properties", [Column::text("Property").heading(), Column::text("Value")], keys.iter().map(|key| {
                        [name(key), value(front.get(key))]
                    })))
                }
            }
        }
    }
}

fn value(value: Option<Value>) -> Markup {
    match value {
        None => html! { span.muted { "cannot be read" } },
        Some(Value::Null) => html! { span.muted { "none" } },
        Some(Value::String(text)) => name(&text),
        Some(Value::Array(items)) => html! {
            ul.plain { @for item in &items { li { (name(&plain(item))) } } }
        },
        Some(other) => name(&plain(&other)),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compactions_are_separated_from_written_text() {
        let body = "a\n### Compaction 1\n\nshort\n### End of Compaction 1\nb\n\\### Compaction 2\nc\n";
        let expected = [
            SectionPiece::Written("a\n"),
            SectionPiece::Compaction { number: "1", text: "\nshort\n" },
            SectionPiece::Written("b\n\\### Compaction 2\nc\n"),
        ];
        assert_eq!(pieces(body), expected);
        assert_eq!(pieces("### Compaction 1\nx"), [SectionPiece::Compaction { number: "1", text: "x" }]);
        assert!(pieces("").is_empty());
    }
}
