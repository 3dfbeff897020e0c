//! The window of a request or of a run as a picture (parts side by side, as wide as their tokens, in the colour of
//! their rendition) and as a table.

use larder_core::pack::{PartReceipt, Receipt, Rendition};
use larder_proxy::record::{RequestRecord, WindowPart};
use maud::{Markup, html};

use super::figures::{counted, name, number, segment, share};
use super::ui::{self, Column, Row, disclosure, rendition};

/// Parts that a picture and its table show at most; the API lists all of them.
const MAX_PARTS: usize = 1_000;
/// The renditions in the order of the legend, with their meaning.
const LEGEND: [(&str, &str); 4] = [
    ("whole", "every byte"),
    ("condensed", "smaller, with marked gaps"),
    ("pointer", "one line that leads to the original"),
    ("absent", "left out; the original is kept"),
];

/// A window to draw.
#[derive(Debug)]
pub struct WindowMap {
    /// Its parts, in its order.
    pub parts: Vec<WindowPart>,
    /// Tokens as it came.
    pub before: u64,
    /// Tokens as sent.
    pub after: u64,
    /// Tokens that it may have; 0 if it has no limit.
    pub budget: u64,
    /// Tokens kept free in addition to the reply.
    pub reserve: u64,
    /// The reply, at most.
    pub output: u64,
}

impl From<&RequestRecord> for WindowMap {
    fn from(exchange: &RequestRecord) -> Self {
        let tokens = exchange.summary.tokens;
        Self {
            parts: exchange.window.clone(),
            before: tokens.before,
            after: tokens.after,
            budget: tokens.budget,
            reserve: tokens.reserve,
            output: tokens.output,
        }
    }
}

impl From<&Receipt> for WindowMap {
    fn from(receipt: &Receipt) -> Self {
        let limits = receipt.budget.limits;
        let parts: Vec<WindowPart> = receipt.own_parts().map(part_of_run).collect();
        let saved: u64 = parts.iter().map(|part| part.original_tokens.saturating_sub(part.tokens)).sum();
        Self {
            before: (receipt.total as u64).saturating_add(saved),
            after: receipt.total as u64,
            budget: receipt.budget.available as u64,
            reserve: limits.response_reserve as u64,
            output: limits.output as u64,
            parts,
        }
    }
}

impl WindowMap {
    /// The window of a run whose record says that all its parts together saved `saved` tokens. A part that is larger
    /// than the whole budget was not counted out when it was packed; where there is one such part, the rest is its.
    pub fn of_run(receipt: &Receipt, saved: u64) -> Self {
        let mut window = Self::from(receipt);
        let more = saved.saturating_sub(window.before.saturating_sub(window.after));
        let both = window.parts.iter_mut().zip(receipt.own_parts());
        let mut uncounted = both.filter(|(_, packed)| packed.original_tokens.is_none());
        if let (Some((part, _)), None) = (uncounted.next(), uncounted.next()) {
            part.original_tokens = part.original_tokens.saturating_add(more);
            window.before = window.before.saturating_add(more);
        }
        window
    }
}

fn part_of_run(part: &PartReceipt) -> WindowPart {
    let label = match part.lines {
        Some((first, last)) => format!("{}:{first}-{last}", part.source),
        None => part.source.to_string(),
    };
    WindowPart {
        slot: part.slot.to_string().into(),
        role: "".into(),
        label,
        rendition: part.rendition,
        tokens: part.tokens as u64,
        // A part that is larger than the whole budget was not counted out.
        original_tokens: part.original_tokens.unwrap_or(part.tokens) as u64,
        reason: part.reason.as_str().into(),
        pointer: part.pointer.clone(),
        message: None,
        epoch: 0,
        items: 1,
    }
}

/// How the tokens of a part changed: `1,204 → 212`, or one number.
fn change(part: &WindowPart) -> String {
    if part.rendition == Rendition::Whole || part.original_tokens == part.tokens {
        number(part.tokens)
    } else {
        format!("{} → {}", number(part.original_tokens), number(part.tokens))
    }
}

/// The title of a part: its label, else its role, else its slot.
pub fn title(part: &WindowPart) -> &str {
    let names = [&*part.label, &*part.role, &*part.slot];
    names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
}

/// The rendition of a part and the reason for it, in one line.
fn explanation(part: &WindowPart) -> String {
    let title = title(part);
    let role =
        if part.role.is_empty() || part.role == title { String::new() } else { format!(" ({})", part.role) };
    let form = part.rendition.as_str();
    format!("{title}{role}: {form}, {} tokens; {}", change(part), part.reason)
}

/// The picture: as it came, as sent, and slot by slot.
pub fn picture(window: &WindowMap) -> Markup {
    let full = window.before.max(window.after).max(window.budget);
    let parts: Vec<_> = window.parts.iter().enumerate().take(MAX_PARTS).collect();
    html! {
        div.map data-map="" {
            (lane("As it came", window.before, full, window, &parts, |part| part.original_tokens))
            (lane("As sent", window.after, full, window, &parts, |part| part.tokens))
            p.caption {
                @if window.budget > 0 {
                    span.budget-mark aria-hidden="true" {}
                    "budget " strong { (number(window.budget)) } " tokens; reserve "
                    strong { (number(window.reserve)) } "; reply up to " strong { (number(window.output)) }
                } @else { "no limit on this window" }
            }
            @if slots(window).len() > 1 {
                h3 { "Slot by slot" }
                @let most = slots(window).iter().map(|slot| slot.1).max().unwrap_or(0);
                @for (slot, tokens) in slots(window) {
                    @let own: Vec<_> = parts.iter().copied().filter(|(_, part)| part.slot == slot).collect();
                    (slot_lane(slot, tokens, most, &own))
                }
            }
            output.explanation aria-live="polite" data-why-line="" {
                "Point at a part, or move to one with the arrow keys, to see its rendition and the reason."
            }
            (legend())
        }
    }
}

/// Slots in the order of their first parts, with their tokens.
fn slots(window: &WindowMap) -> Vec<(&str, u64)> {
    let mut slots: Vec<(&str, u64)> = Vec::new();
    for part in &window.parts {
        match slots.iter_mut().find(|(slot, _)| *slot == part.slot) {
            Some((_, sum)) => *sum = sum.saturating_add(part.tokens),
            None => slots.push((&part.slot, part.tokens)),
        }
    }
    slots
}

type Numbered<'a> = (usize, &'a WindowPart);

/// All parts in one bar, with what no part accounts for (framing) behind them, and the budget as a line.
fn lane(
    title: &str,
    total: u64,
    full: u64,
    window: &WindowMap,
    parts: &[Numbered<'_>],
    size: impl Fn(&WindowPart) -> u64,
) -> Markup {
    let sum = parts.iter().fold(0_u64, |sum, (_, part)| sum.saturating_add(size(part)));
    let rest = total.saturating_sub(sum);
    html! {
        div.lane {
            div.lane-head {
                span.lane-name { (title) }
                span.lane-figure { strong { (number(total)) } " tokens" }
            }
            svg.bar width="100%" height="44" role="group" aria-label={ (title) ": " (number(total)) " tokens" } {
                rect.track width="100%" height="100%" {}
                (segments(parts, full, size))
                @if rest > 0 {
                    rect.framing x=(share(sum, full)) width=(share(rest, full)) height="100%" {
                        title { "framing: " (number(rest)) " tokens" }
                    }
                }
                @if window.budget > 0 && window.budget < full {
                    line.budget x1=(share(window.budget, full)) x2=(share(window.budget, full)) y1="0" y2="100%" {}
                }
            }
        }
    }
}

fn slot_lane(slot: &str, tokens: u64, most: u64, parts: &[Numbered<'_>]) -> Markup {
    html! {
        div.lane.slot {
            div.lane-head {
                span.lane-name { (name(slot)) }
                span.lane-figure {
                    strong { (number(tokens)) } " tokens · " (counted(parts.len() as u64, "part"))
                }
            }
            svg.bar width="100%" height="26" role="group" aria-label={ (slot) ": " (number(tokens)) " tokens" } {
                rect.track width="100%" height="100%" {}
                (segments(parts, most, |part| part.tokens))
            }
        }
    }
}

/// Parts side by side; each leads to its row of the table.
fn segments(parts: &[Numbered<'_>], full: u64, size: impl Fn(&WindowPart) -> u64) -> Markup {
    let placed = parts.iter().scan(0_u64, |at, (index, part)| {
        let (from, width) = (*at, size(part));
        *at = at.saturating_add(width);
        Some((index, part, from, width))
    });
    html! {
        @for (index, part, from, width) in placed.filter(|(.., width)| *width > 0) {
            a.part href={ "#part-" (index) } aria-label=(explanation(part)) data-why=(explanation(part)) {
                rect x=(share(from, full)) width=(share(width, full)) height="100%"
                    fill={ "url(#fill-" (part.rendition.as_str()) ")" } {}
                title { (explanation(part)) }
            }
        }
    }
}

/// What the colours and patterns mean.
pub fn legend() -> Markup {
    html! {
        ul.legend aria-label="Renditions" {
            @for (word, means) in LEGEND {
                li {
                    svg width="18" height="18" aria-hidden="true" {
                        rect width="18" height="18" rx="3" fill={ "url(#fill-" (word) ")" } {}
                    }
                    span { strong { (word) } " " (means) }
                }
            }
        }
    }
}

/// What the rendition of a part opens to.
#[derive(Debug, Clone, Copy)]
pub enum PartLink<'a> {
    /// The text that was sent next to the original. Holds the address of the request.
    Request(&'a str),
    /// The original behind its pointer.
    Pointer,
    /// Nothing: it is not stored.
    Nothing,
}

/// The same as the picture, as a table.
pub fn table(window: &WindowMap, link: PartLink<'_>) -> Markup {
    let more = window.parts.len().saturating_sub(MAX_PARTS);
    let columns = [
        Column::text("Rendition"),
        Column::text("#"),
        Column::text("Slot"),
        Column::text("Part"),
        Column::number("Tokens"),
        Column::text("Why"),
    ];
    let row = |(index, part): (usize, &WindowPart)| {
        let cells = [
            badge(index, part, link),
            html! { (index + 1) },
            name(&part.slot),
            html! {
                (name(title(part)))
                @if !part.role.is_empty() && part.role != title(part) { " " span.muted { (part.role) } }
                @if part.items > 1 { span.muted { " · " (number(part.items)) " in a row" } }
            },
            html! { (change(part)) },
            html! {
                (part.reason)
                @if part.epoch > 0 { span.muted { " · epoch " (part.epoch) } }
            },
        ];
        Row::with_id(cells, format!("part-{index}"))
    };
    html! {
        (ui::table("Parts of the window", columns, window.parts.iter().enumerate().take(MAX_PARTS).map(row)))
        @if more > 0 { p.muted { "and " (number(more as u64)) " more parts, which the API lists" } }
    }
}

/// The rendition of a part, which opens to what is behind it.
fn badge(index: usize, part: &WindowPart, link: PartLink<'_>) -> Markup {
    let address = match (link, &part.pointer) {
        (PartLink::Request(base), pointer) if part.message.is_some() || pointer.is_some() => {
            format!("{base}/parts/{index}")
        }
        (PartLink::Pointer, Some(pointer)) => format!("/pointers/{}", segment(&pointer.to_string())),
        _ => return rendition(part.rendition),
    };
    disclosure(&address, rendition(part.rendition), "show what is behind it", "Open what is behind it")
}
