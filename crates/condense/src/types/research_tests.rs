//! Tests of research notes.

use super::*;

fn pieces(text: &str) -> Vec<TextPiece> {
    let mut pieces = Vec::new();
    markdown::divide(text, 0..text.len(), &mut pieces);
    weigh(text, &mut pieces);
    bind(text, &mut pieces);
    pieces
}

fn piece<'p>(text: &str, pieces: &'p [TextPiece], holds: &str) -> (usize, &'p TextPiece) {
    pieces.iter().enumerate().find(|(_, piece)| text[piece.range.clone()].contains(holds)).unwrap()
}

#[test]
fn a_claim_and_the_source_below_it_need_each_other() {
    let text = "## Lamps\n\n- The brass lamp is made in Porto by hand.\n- Source: https://lamps.example/brass\n- Another line about something.\n";
    let pieces = pieces(text);
    let (claim, _) = piece(text, &pieces, "brass lamp");
    let (source, _) = piece(text, &pieces, "Source:");
    assert_eq!(pieces[claim].needs[1], Some(source));
    assert_eq!(pieces[source].needs[1], Some(claim));
    assert_eq!(piece(text, &pieces, "Another").1.needs[1], None);
}

#[test]
fn a_citation_needs_its_note() {
    let text = "The lamp is made in Porto by hand [2]. It is [heavy](https://x.example).\n\n[1]: https://a.example\n\n[2] https://b.example/porto\n";
    let pieces = pieces(text);
    let (note, _) = piece(text, &pieces, "b.example");
    assert_eq!(piece(text, &pieces, "Porto by hand").1.needs[1], Some(note));
    assert_eq!(piece(text, &pieces, "heavy").1.needs[1], None);
}

#[test]
fn advertising_comes_last_and_status_first() {
    let text = "An amazing lamp that will elevate every room you own.\n\nIt is out of stock until the spring comes.\n\nThe base is round.\n";
    let pieces = pieces(text);
    assert_eq!(piece(text, &pieces, "amazing").1.tier, Tier::Last);
    assert_eq!(piece(text, &pieces, "out of stock").1.tier, Tier::Salient);
    assert_eq!(piece(text, &pieces, "round").1.tier, Tier::Plain);
}
