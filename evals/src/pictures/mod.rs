//! The pictures of the guide: a made-up text before condensing, which of its lines stay, and what the model reads.
//!
//! Knows how to draw; the texts are our own. The same build draws the same bytes.

mod samples;

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use crate::{Failure, measure};

/// Characters and lines of a panel.
const WIDE: usize = 72;
const HIGH: usize = 26;
/// Units of the picture: a character's advance, a line's height, margins, the heading of a panel, the strip between.
const ADVANCE: f64 = 6.0;
const LINE: f64 = 13.0;
const MARGIN: f64 = 10.0;
const HEADING: f64 = 22.0;
const STRIP: f64 = 60.0;

const STYLE: &str = "\
.bg{fill:#fff}.panel{fill:#f6f8fa;stroke:#d0d7de}.kept{fill:#0969da}.gone{fill:#d0d7de}\
text{font:10px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}\
.h{font:bold 12px system-ui,sans-serif}.s{font:10px system-ui,sans-serif}.mark{fill:#9a6700}\
@media(prefers-color-scheme:dark){.bg{fill:#0d1117}.panel{fill:#161b22;stroke:#30363d}.kept{fill:#4493f8}\
.gone{fill:#30363d}text{fill:#e6edf3}.mark{fill:#d29922}}";

/// Draws a picture for every sample into `docs/guide/pictures`.
///
/// # Errors
/// A sample cannot be condensed, or a file cannot be written.
pub fn command() -> Result<(), Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/pictures");
    std::fs::create_dir_all(&folder)?;
    for sample in samples::all() {
        let measured = measure::run(&sample.text, sample.content_type, sample.target)?;
        let condensed = &measured.condensed;
        let faults = measure::faults(&sample.text, condensed, sample.target);
        if !faults.is_empty() {
            return Err(format!("{}: {}", sample.name, faults.join("; ")).into());
        }
        let gaps: Vec<Range<usize>> = condensed.gaps.iter().map(|gap| gap.bytes.clone()).collect();
        let picture = draw(
            &sample.text,
            &format!("Before: {} tokens", condensed.original_tokens),
            &gaps,
            &condensed.text,
            &format!("What the model reads: {} tokens", condensed.tokens),
        );
        std::fs::write(folder.join(format!("{}.svg", sample.name)), picture)?;
    }
    Ok(())
}

fn draw(
    before: &str,
    before_heading: &str,
    gaps: &[Range<usize>],
    after: &str,
    after_heading: &str,
) -> String {
    let (left, right) = (panel(before), panel(after));
    let rows = left.len().max(right.len());
    let width = WIDE as f64 * ADVANCE + 2.0 * MARGIN;
    let height = HEADING + rows as f64 * LINE + 2.0 * MARGIN;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {height:.0}\" role=\"img\" aria-label=\"{before_heading}. {after_heading}.\"><style>{STYLE}</style><rect class=\"bg\" width=\"100%\" height=\"100%\"/>",
        2.0 * width + STRIP
    );
    write_panel(&mut out, 0.0, before_heading, &left, height);
    write_panel(&mut out, width + STRIP, after_heading, &right, height);
    write_strip(&mut out, width, height, before, gaps);
    out.push_str("</svg>\n");
    out
}

/// The lines that a panel shows: long ones wrapped, the rest counted.
fn panel(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let all: Vec<&str> = text.lines().collect();
    for (at, line) in all.iter().enumerate() {
        let chars: Vec<char> = line.replace('\t', "    ").chars().collect();
        let wrapped: Vec<String> = chars.chunks(WIDE).map(|part| part.iter().collect()).collect();
        if lines.len() + wrapped.len().max(1) > HIGH {
            lines.push(format!("(and {} more)", all.len() - at));
            break;
        }
        if wrapped.is_empty() {
            lines.push(String::new());
        }
        lines.extend(wrapped);
    }
    lines
}

fn write_panel(out: &mut String, x: f64, heading: &str, lines: &[String], height: f64) {
    let width = WIDE as f64 * ADVANCE + 2.0 * MARGIN;
    let _ = writeln!(
        out,
        "<rect class=\"panel\" x=\"{x:.0}.5\" y=\"{:.0}.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"4\"/><text class=\"h\" x=\"{:.0}\" y=\"15\">{}</text>",
        HEADING,
        width - 1.0,
        height - HEADING - 2.0,
        x + 4.0,
        escaped(heading)
    );
    for (row, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let class =
            if line.contains("[…") || line.starts_with("[Condensed") { " class=\"mark\"" } else { "" };
        let _ = writeln!(
            out,
            "<text{class} x=\"{:.0}\" y=\"{:.0}\" xml:space=\"preserve\">{}</text>",
            x + MARGIN,
            HEADING + MARGIN + (row as f64 + 0.8) * LINE,
            escaped(line)
        );
    }
}

/// The original from top to bottom, by bytes: what is left out is grey.
fn write_strip(out: &mut String, x: f64, height: f64, text: &str, gaps: &[Range<usize>]) {
    let (top, tall) = (HEADING + MARGIN, height - HEADING - 2.0 * MARGIN - 16.0);
    let per_byte = tall / text.len().max(1) as f64;
    let bar = |out: &mut String, class: &str, bytes: Range<usize>| {
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{:.0}\" y=\"{:.1}\" width=\"20\" height=\"{:.1}\"/>",
            x + STRIP / 2.0 - 10.0,
            top + bytes.start as f64 * per_byte,
            bytes.len() as f64 * per_byte
        );
    };
    bar(out, "kept", 0..text.len());
    gaps.iter().for_each(|gap| bar(out, "gone", gap.clone()));
    let _ = writeln!(
        out,
        "<text class=\"s\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">stays</text>",
        x + STRIP / 2.0,
        height - MARGIN + 2.0
    );
}

fn escaped(text: &str) -> String {
    let printable: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    printable.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_wraps_long_lines_and_counts_the_rest() {
        let text = format!("{}\n{}", "x".repeat(WIDE + 1), "y\n".repeat(HIGH));
        let lines = panel(&text);
        assert_eq!(lines[1], "x");
        assert_eq!(lines.last().unwrap(), "(and 2 more)");
    }

    #[test]
    fn text_content_is_not_markup() {
        assert!(draw("<b>&", "a", &[], "\0", "b").contains("&lt;b&gt;&amp;"));
    }
}
