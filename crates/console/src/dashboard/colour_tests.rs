//! The colours of the style sheet can be told apart.

use std::collections::BTreeMap;

use super::*;

/// `--name: #rrggbb` of the style sheet, the first (light) or second (dark) time.
fn colours(dark: bool) -> BTreeMap<&'static str, [f64; 3]> {
    let mut found = BTreeMap::new();
    for line in STYLE.lines().map(str::trim).filter_map(|line| line.strip_prefix("--")) {
        let Some((name, value)) = line.split_once(": #") else { continue };
        let channel = |at: usize| f64::from(u8::from_str_radix(&value[at..at + 2], 16).unwrap()) / 255.0;
        let colour = [channel(0), channel(2), channel(4)];
        if dark || !found.contains_key(name) {
            found.insert(name, colour);
        }
    }
    found
}

fn luminance(colour: [f64; 3]) -> f64 {
    let linear = |c: f64| if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
    0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
}

fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// WCAG 2.2, 1.4.3 and 1.4.11, level AA.
#[test]
fn colours_have_enough_contrast_by_day_and_by_night() {
    for dark in [false, true] {
        let colours = colours(dark);
        let texts =
            ["ink", "muted", "accent", "good", "warn", "bad", "whole", "condensed", "pointer", "absent"];
        for ground in ["bg", "surface", "sunk"] {
            for text in texts {
                let found = contrast(colours[text], colours[ground]);
                assert!(found >= 4.5, "{text} on {ground}, dark {dark}: {found:.2}");
            }
            let found = contrast(colours["edge"], colours[ground]);
            assert!(found >= 3.0, "edges on {ground}, dark {dark}: {found:.2}");
        }
        assert!(contrast(colours["on-accent"], colours["accent"]) >= 4.5, "dark {dark}");
    }
}
