//! What is found in answers in other languages than the documents, where sentences begin, and of the time of the answer.

use super::*;

const NONE: Vec<String> = Vec::new();
const FORUM: &str = "Which rope? oldsalt, 54 points: Take 14 mm polyester. mireille_r: Nylon stretches.";

#[test]
fn a_date_is_read_in_any_of_these_languages() {
    let known = "By Halvard Nygaard, 2 September 2026";
    for date in [
        "El 2 de septiembre de 2026 escribió Halvard Nygaard.",
        "Scritto il 2 settembre 2026.",
        "Scritto il 2 set. 2026.",
        "Écrit le 2 septembre 2026.",
        "Em 2 de setembro de 2026.",
        "Geschreven op 2 september 2026.",
        "Napisano 2 września 2026.",
        "2026年9月2日",
        "9月2日に書かれた",
        "2026년 9월 2일",
    ] {
        assert_eq!(unsupported(known, date), NONE, "{date}");
    }
    for (answer, date) in [
        ("Écrit le 2 octobre 2026.", "2 octobre 2026"),
        ("Écrit le 2 févr. 2026.", "2 févr. 2026"),
        ("Écrit le 1er septembre 2026.", "1er septembre 2026"),
        ("Escrito el 2 de mayo de 2026.", "2 de mayo de 2026"),
        ("Escrito el 2 de mayo.", "2 de mayo"),
        ("Scritto il 2 ottobre 2026.", "2 ottobre 2026"),
        ("Escrito em 2 de março de 2026.", "2 de março de 2026"),
        ("Geschreven op 2 maart 2026.", "2 maart 2026"),
        ("Napisano 2 maja 2026.", "2 maja 2026"),
        ("2026年11月2日に", "2026年11月2日"),
    ] {
        assert_eq!(unsupported(known, answer), [date], "{answer}");
    }
    let known = "Livraison prévue le 17 décembre 2026, stockage dès le 1er décembre. 発送日：2026年12月9日。";
    for answer in ["Delivery: 17 December 2026.", "Ab 1. Dezember.", "It ships on 9 December 2026."] {
        assert_eq!(unsupported(known, answer), NONE, "{answer}");
    }
    assert_eq!(unsupported("He left 3 years ago. Set 5 out of 9.", "3 ago, 5 out of 9, set 5"), NONE);
}

#[test]
fn the_present_supports_ages_and_what_is_called_today() {
    let known = Evidence::new("It was founded in 2000 and supports plugins.").at("2026-11-27T12:35:07Z");
    for answer in [
        "It supports 12 plugins.",
        "There are 35 plugins.",
        "It was published on 27 November 2026.",
        "It is open at 12:35.",
        "It costs 2026 points.",
    ] {
        assert_eq!(known.unsupported(answer).len(), 1, "{answer}");
    }
    for answer in [
        "It is 26 years old.",
        "Today is 27 November 2026.",
        "As of 27 November 2026, it supports plugins.",
        "Stand: 27.11.2026",
        "It supports plugins (as of November 2026).",
        "Heute, am 27. November 2026, gibt es Plugins.",
    ] {
        assert_eq!(known.unsupported(answer), NONE, "{answer}");
    }
}

#[test]
fn the_length_of_a_table_is_that_of_its_rows() {
    let known =
        "| Tent | Price |\n|---|---|\n| Fjell | 329.00 |\n| Moor | 449.50 |\n| Camp | 198.00 |\n\nmore";
    assert_eq!(unsupported(known, "There are 3 tents."), NONE);
    for count in ["5", "4", "6"] {
        assert_eq!(unsupported(known, &format!("There are {count} tents.")), [count]);
    }
}

#[test]
fn a_digit_after_a_noun_counts_what_follows() {
    let known = "Lieferzeit 3 Werktage.";
    for answer in ["Lieferzeit 4 Werktage.", "Die Lieferzeit: Frist 4 Wochen", "Vorrat 4 Stück"] {
        assert_eq!(unsupported(known, answer), ["4"], "{answer}");
    }
    for answer in ["Lieferzeit 3 Werktage.", "See Section 4 and USB 3 on page 9.", "The Pixel 9 Pro is out."]
    {
        assert_eq!(unsupported(known, answer), NONE, "{answer}");
    }
}

#[test]
fn a_name_without_a_known_word_is_found_wherever_it_stands() {
    for answer in [
        "Bernard Whitlock recommends polyester.",
        "Bernard Whitlock empfiehlt Nylon.",
        "**Bernard Whitlock** recommends polyester.",
        "- Bernard Whitlock: polyester\n- Take nylon.",
        "| Who | Rope |\n|---|---|\n| Bernard Whitlock | polyester |\n",
        "Votre conseiller est Bernard Whitlock.",
    ] {
        assert_eq!(unsupported(FORUM, answer), ["Bernard Whitlock"], "{answer}");
    }
    for (answer, name) in [
        ("La Sra. Etxeberria recomienda nylon.", "Sra. Etxeberria"),
        ("Votre conseillère est Mme Whitlock.", "Mme Whitlock"),
        ("Votre conseiller est M. Whitlock.", "M. Whitlock"),
        ("It is sold by E. Whitlock.", "E. Whitlock"),
        ("El Sr. Whitlock lo dice.", "Sr. Whitlock"),
    ] {
        assert_eq!(unsupported(FORUM, answer), [name], "{answer}");
    }
}

#[test]
fn ordinary_words_are_no_names() {
    for answer in [
        "## Final Verdict\n\nBattery Life: fine\n\nKey Features: polyester",
        "- **Delivery Time:** fine\n- Shipping Costs: none",
        "Weitere Informationen finden Sie unten. Zusätzliche Angaben fehlen. Gute Wahl!",
        "Ergonomisches Design und hochwertige Materialien. Kurze Zusammenfassung: Nylon.",
        "| Versandkosten Deutschland | keine |\n|---|---|\n| Hochwertige Materialien | ja |\n",
        "Nous recommandons le nylon. Votre Conseillère le dit.",
        "Great Value: polyester. Take vitamin C. Nylon stretches.",
        "A. Polyester is strong.\nB. Nylon stretches.",
        "Empfehlung: Polyester. Ihre Mireille_r.",
    ] {
        assert_eq!(unsupported(FORUM, answer), NONE, "{answer}");
    }
}

#[test]
fn a_sum_that_is_written_out_needs_stated_prices() {
    let known = "| Tent | Price (EUR) | Stock |\n|---|---|---|\n| Fjell | 329.00 | 7 |\n| Moor | 449.50 | 0 |\n| Camp | 198.00 | 12 |\n";
    for answer in [
        "The three cost €976.50 (329 + 449.50 + 198).",
        "329 + 449.50 + 198 = 976.50 EUR",
        "329 € + 449,50 € + 198 € = 976,50 €.",
    ] {
        assert_eq!(unsupported(known, answer), NONE, "{answer}");
    }
    for (answer, found) in [
        ("The three cost €986.50 (329 + 449.50 + 198).", "€986.50"),
        ("The three cost $976.50 (329 + 449.50 + 198).", "$976.50"),
        ("They cost €341 (329 + 12).", "€341"),
    ] {
        assert!(unsupported(known, answer).contains(&found.to_owned()), "{answer}");
    }
}

#[test]
fn lines_are_counted() {
    let known = Evidence::new("id;price\n").with_lines(&[4_001]);
    for answer in ["There are 4001 lines.", "Es sind 4.000 Zeilen.", "It has 4,000 rows."] {
        assert_eq!(known.unsupported(answer), NONE, "{answer}");
    }
    assert_eq!(known.unsupported("It has 4000 users."), ["4000"]);
    assert_eq!(known.unsupported("There are 3998 rows."), ["3998"]);
}

#[test]
fn names_need_the_text_of_names() {
    let known = "Egbert Winterbottom sells the rack at 500 Euro.";
    let lacking = unstated_words(known, "The rack costs 500 €.");
    assert_eq!(lacking, ["egbert", "euro", "winterbottom"]);
    let names = without_words(known, &lacking);
    let evidence = Evidence::new(known).with_names(&names);
    for (answer, found) in [
        ("The rack is sold by Egbert Winterbottom for 500 Euro.", "Egbert Winterbottom"),
        ("Ask Mr. Winterbottom for it.", "Mr. Winterbottom"),
        ("Ask for E. Winterbottom.", "E. Winterbottom"),
    ] {
        assert_eq!(evidence.unsupported(answer), [found], "{answer}");
    }
}

#[test]
fn what_is_left_of_a_name_is_taken_out_too() {
    let names = ["Egbert Winterbottom".to_owned()];
    for text in ["Ask Winterbottom.", "Ask E. Winterbottom.", "It is of Mr. Winterbottom."] {
        assert!(!without(text, &names).contains("Winterbottom"), "{text}");
    }
    assert!(without("Ada Winterbottom sells it.", &names).contains("Winterbottom"));
}
