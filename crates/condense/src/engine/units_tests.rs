//! How units are divided around what must be shown, and how long ones are divided.

use super::*;
use crate::analysis::salience::SpanKind;

const TEXT: &str =
    "The crane waited all morning, the barge was late again, and order 4711 was refused; nobody knew why.";

fn unit() -> TextPiece {
    TextPiece::plain(0..TEXT.len(), 1.0)
}

fn find(part: &str) -> Range<usize> {
    let at = TEXT.find(part).unwrap();
    at..at + part.len()
}

/// The pieces of [`TEXT`], which are checked to tile it, with their tiers.
fn pieces(
    required: &[Range<usize>],
    salient: Option<&str>,
    seen: &[Range<usize>],
    grain: Grain,
) -> Vec<(&'static str, Tier)> {
    let span = salient.map(|part| SalientSpan { range: find(part), kind: SpanKind::Id });
    let pieces = refine(TEXT, &[unit()], required, &Vec::from_iter(&span), seen, (grain, None));
    assert!(pieces.windows(2).all(|pair| pair[0].range.end == pair[1].range.start));
    assert_eq!((pieces[0].range.start, pieces.last().unwrap().range.end), (0, TEXT.len()));
    pieces.into_iter().map(|piece| (&TEXT[piece.range], piece.tier)).collect()
}

fn of_tier(pieces: &[(&'static str, Tier)], tier: Tier) -> &'static str {
    pieces.iter().find(|(_, held)| *held == tier).unwrap().0
}

#[test]
fn every_finer_grain_cuts_closer_than_the_unit() {
    let widths = Grain::LADDER.map(|grain| {
        let held = of_tier(&pieces(&[], Some("4711"), &[], grain), Tier::Salient);
        assert!(held.contains("4711"), "{held:?}");
        held.len()
    });
    let [unit, clause, phrase, exact] = widths;
    assert!(unit == TEXT.len() && clause < unit && phrase < unit && exact < clause.min(phrase), "{widths:?}");
}

#[test]
fn required_spans_are_cut_exactly_and_salient_ones_at_words() {
    let pieces = pieces(&[find("barge was")], Some("711"), &[], Grain::Exact);
    assert_eq!(of_tier(&pieces, Tier::Required), "barge was");
    assert_eq!(of_tier(&pieces, Tier::Salient).trim(), "4711");
    assert!(pieces.iter().any(|(_, tier)| *tier == Tier::Plain));
}

#[test]
fn text_seen_before_is_never_shown_unless_required() {
    let seen = vec![std::ops::Range { start: 0, end: find("the barge").start }];
    assert_eq!(
        of_tier(&pieces(&[], None, &seen, Grain::Unit), Tier::Never),
        "The crane waited all morning, "
    );
    assert_eq!(of_tier(&pieces(&[find("crane")], None, &seen, Grain::Exact), Tier::Required), "crane");
}

#[test]
fn indivisible_units_stay_whole() {
    let unit = TextPiece { divisible: false, ..unit() };
    let pieces = refine(TEXT, &[unit], &[find("crane")], &[], &[], (Grain::Exact, None));
    assert_eq!((pieces.len(), pieces[0].tier), (1, Tier::Required));
}

#[test]
fn needs_point_at_the_first_piece_of_the_needed_unit() {
    let middle = find("and order").start;
    let second = TextPiece { needs: [Some(0), None], ..TextPiece::plain(middle..TEXT.len(), 1.0) };
    let units = [TextPiece::plain(0..middle, 1.0), second];
    let pieces = refine(TEXT, &units, &[find("barge"), find("4711")], &[], &[], (Grain::Exact, None));
    assert!(pieces.len() > 4);
    assert!(pieces.iter().filter(|piece| piece.unit == 1).all(|piece| piece.needs == [Some(0), None]));
}

#[test]
fn long_units_are_divided_into_about_equal_parts_between_words() {
    let text = "word ".repeat(200);
    let parts = split_long(&text, 0..text.len(), 300);
    assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!((parts[0].start, parts.last().unwrap().end), (0, text.len()));
    assert!(
        parts.iter().all(|part| (100..=300).contains(&part.len()) && text[part.clone()].ends_with(' ')),
        "{parts:?}"
    );
    assert_eq!(split_long(&text, 5..10, 300), std::slice::from_ref(&(5..10)));
    let wide = "港".repeat(200);
    assert!(
        split_long(&wide, 0..wide.len(), 100)
            .iter()
            .all(|part| part.len() <= 100 && !wide[part.clone()].is_empty())
    );
}
