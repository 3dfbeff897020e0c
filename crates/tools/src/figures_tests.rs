//! What is found in answers, and what is not.

use super::*;

#[test]
fn values_of_the_documents_are_supported_however_they_are_written() {
    let known =
        "Lenovo LOQ 15 costs $1,299.50, seen 2026-01-05. HP Victus 15 costs $649. Sold by Acme Stores.";
    for answer in [
        "The Lenovo LOQ 15 costs 1299,50 USD [1, 12] and the HP Victus $649.00 [context.md§2].",
        "As of 5.1.2026 it costs $1,299.50, seen 12 hours ago.",
        "Together $1,299.50 and $649 are $1,948.50, a difference of $650.50.",
        "It is sold by Acme Stores.",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
}

#[test]
fn what_no_document_states_is_found() {
    let known = "Lenovo LOQ 15 costs $697. Stand: 2026-01-05.";
    for (answer, found) in [
        ("It costs $599.00.", vec!["$599.00"]),
        ("It was released on 2025-11-30.", vec!["2025-11-30"]),
        ("There are 42 reviews.", vec!["42"]),
        ("You can buy it at Bobs Boats in Reykjavik for $697.", vec!["Bobs Boats"]),
        ("See https://example.org/loq.", vec!["https://example.org/loq"]),
    ] {
        assert_eq!(unsupported(known, answer), found, "{answer}");
    }
}

#[test]
fn what_follows_from_known_numbers_is_recomputed() {
    let known = "A crate costs $12.50. In May 80 came, in June 100, of 3 kinds.";
    for answer in [
        "Three crates at $12.50 cost $37.50.",
        "From 80 in May to 100 in June is a rise of 25 %.",
        "80 of 100 are 80 %; 100 at $12.50 are $1,250.",
        "The mean of 80 and 100 is 90.",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
    assert_eq!(unsupported(known, "From 80 to 100 is a rise of 37 %."), ["37 %"]);
}

#[test]
fn numbers_of_any_length_are_read() {
    let long = "123456789012345678901234567890123456";
    for id in [long.to_owned(), long.repeat(3), format!("{long}.{long}")] {
        assert_eq!(unsupported(&format!("It is {id}."), &format!("It is {id}.")), Vec::<String>::new());
        assert_eq!(unsupported("Nothing is known.", &format!("It is {id}.")).len(), 1, "{id}");
    }
}

#[test]
fn a_count_is_recomputed() {
    let list: String = (0..14).map(|at| format!("- board {at}\n")).collect();
    assert_eq!(unsupported(&list, "There are 14 boards."), Vec::<String>::new());
    assert_eq!(unsupported(&list, "There are 15 boards."), ["15"]);
}

#[test]
fn prices_follow_from_prices_as_a_sum_a_difference_or_a_total_only() {
    let known = "A Lenovo costs $100, a Dell $250.50. Which 3 are cheap?\n\n- a\n- b\n- c\n- d\n- e\n- f\n- g\n- h\n- i\n- j\n- k\n- l\n";
    for answer in [
        "Both are $350.50, and the Dell costs $150.50 more: $100 against $250.50.",
        "3 of the Lenovo at $100 cost $300.",
        "Three at $100 are $300.",
        "| item | price |\n|---|---|\n| Lenovo | $100 |\n| Dell | $250.50 |\n| together | $350.50 |\n",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
    for (answer, found) in [
        ("The Lenovo costs $100 and the HP costs $300.", "$300"),
        ("The Lenovo costs $100 and the HP costs $200.", "$200"),
        ("The Lenovo costs $100, the Dell $250.50, the HP $25,050.", "$25,050"),
        ("The HP costs $12.", "$12"),
        ("Of $100 and $250.50 the HP is the mean, $175.25.", "$175.25"),
        ("7 of the Lenovo at $100 cost $700.", "$700"),
    ] {
        assert!(unsupported(known, answer).contains(&found.to_owned()), "{answer}");
    }
}

#[test]
fn a_date_is_one_that_is_stated() {
    let known = "Seen 2026-01-05T10:00:00Z. Released 12 March 2025, due on 1.10.2026. Version 28.";
    for answer in
        ["On 5.1.2026.", "On January 5, 2026.", "On 2025-03-12.", "Am 12. März 2025.", "On October 1."]
    {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
    for answer in ["On 2026-03-05.", "On 2025-10-12.", "On 12 January.", "On 28.1.2026."] {
        assert_eq!(unsupported(known, answer).len(), 1, "{answer}");
    }
}

#[test]
fn a_single_digit_is_checked_where_it_counts_something() {
    let known = "The Victus 5 costs $649.90, the LOQ 15 costs $697 since 2026-01-09.";
    for answer in [
        "9 are in stock.",
        "There are **9 left**.",
        "- HP: 4 reviews",
        "| HP | 4 reviews |\n|---|---|\n| HP | 4 reviews |",
    ] {
        assert_eq!(unsupported(known, answer).len(), 1, "{answer}");
    }
    for answer in [
        "1. The Victus 5 costs $649.90.\n2. The LOQ 15 costs $697.\n\nThese are the 2 cheapest.",
        "There are 2 laptops, the Victus 5 and the LOQ 15.",
        "Section 4 and step 3) say so, as does USB 3 on page 9.",
        "It has 5 of them.",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
    assert_eq!(unsupported("Nine are left.", "9 are left."), Vec::<String>::new());
}

#[test]
fn names_are_found_in_emphasised_text_and_in_tables() {
    let known = "The boat costs $450 at Acme Stores.";
    for answer in [
        "It is sold by **Bobs Boats**.",
        "> It is sold by *Bobs Boats* for $450.",
        "Run `cargo test`, says Bobs Boats of it.",
        "| Boat | Seller |\n|---|---|\n| the boat | Bobs Boats |\n",
        "**Seller:** one is Bobs Boats",
        "**Bobs Boats** sells it.",
        "- **Bobs Boats** sells it.\n- It is at Acme Stores.",
        "It is there.\n\n**Bobs Boats**",
        "It is sold at $450 by\n\nBobs Boats",
    ] {
        assert_eq!(unsupported(known, answer), ["Bobs Boats"], "{answer}");
    }
    for answer in [
        "## Best Value\n\n**Great Value Pick:** the boat at Acme Stores.",
        "- **Very Good Choice** at $450",
        "**Great Value Pick**: the boat at Acme Stores.",
        "- **Battery Life**\n  It is fine, and the boat is at Acme Stores.",
        "It is the boat.\n\nKind Regards",
        "| Total Amount | Unit Sold |\n|---|---|\n| Great Value | $450 |\n",
        "Call `New Boat` of it.",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
}

#[test]
fn an_amount_has_its_currency_and_its_scale() {
    let known = "Lenovo LOQ 15 costs $697, shipping 4.99. The maker sold 1.5 million of them for $2bn.";
    for answer in
        ["€697", "£697", "¥697", "697 yen", "697 EUR", "$697k", "$697 thousand", "$697 million", "$69", "$6"]
    {
        assert_eq!(unsupported(known, &format!("The LOQ costs {answer}.")).len(), 1, "{answer}");
    }
    for answer in [
        "It costs $697, 697 dollars, USD 697, **$697.00**, and $4.99 more.",
        "1,500,000 were sold, or 1.5 million, for $2 billion.",
        "At 697 it is cheap.",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
    for (known, answer) in [
        ("Revenue, in millions of dollars\n\n| 2025 | 697 |", "In 2025 revenue was $697 million."),
        ("commit a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", "It came with commit a1b2c3d."),
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
}

#[test]
fn names_are_found_where_sentences_begin_and_after_titles() {
    let known = "New: Acer Nitro from $749 at Acme Stores in town. Ada Lovelace founded it.";
    for (answer, found) in [
        ("Jane Doe runs it.", "Jane Doe"),
        ("The owner, Dr. Jane Doe, is in town.", "Dr. Jane Doe"),
        ("It ships from New York.", "New York"),
        ("Buy the Acer Aspire now.", "Acer Aspire"),
        ("See corner-shop.example for more.", "corner-shop.example"),
    ] {
        assert_eq!(unsupported(known, answer), [found], "{answer}");
    }
    for answer in [
        "Ada Lovelace founded it, and Acme Stores sells it.",
        "The Acer Nitro is new. Buy Acer.",
        "Unfortunately Berlin has none.",
        "Key Features: new, from $749.\n\nBottom Line\n\n- Battery Life: fine",
        "Founder Lovelace sells it. Laut Hersteller Acer ist es neu.",
        "Acer Nitros are at Acme Store.",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
}

#[test]
fn ordinary_answers_over_other_documents_state_no_names() {
    let known = "The Lenovo LOQ 15 costs $697 at Acme Stores. 70 billion parameters, 1.5\nmillion users.";
    for answer in [
        "Zum Beispiel kostet der Lenovo LOQ 15 $697. Wenn Sie mehr wissen wollen, hilft Ihr Budget.",
        "Den Preis nennt Acme Stores am Montag; für Sie ist das die beste Wahl, und alle Modelle sind da.",
        "Keine Angaben zu Rabatten, laut Hersteller Lenovo.",
        "Dear Customer, it is the LOQ. Best Regards",
        "It has 70B parameters and 1.5M users, or 1.5 million of them.",
        "The model with 70 billion parameters is **1.5** million times used.",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
    for answer in ["Hi Ada! How can I help?", "Guten Morgen!", "Vielen Dank!", "Hello Larder!"] {
        assert!(states_nothing(answer), "{answer}");
    }
    assert_eq!(
        unsupported("used in millions of homes, costs $697", "It is worth $697 billion."),
        ["$697 billion"]
    );
    assert_eq!(unsupported("joann@x.example", "Write to ann@x.example, it is right."), ["ann@x.example"]);
    assert_eq!(unsupported("€ 12k", "It is € 12k."), Vec::<String>::new());
    let large = "20,000 trillion and 20,000 trillion";
    assert_eq!(unsupported(large, &format!("{large} are 7 times 412.")), ["7", "412"]);
    assert_eq!(
        are_stated(known, &["It costs $697.", "It costs $12.", "Bobs Boats sells it."]),
        [true, false, true]
    );
}

#[test]
fn values_are_taken_out_of_a_text_however_they_are_written() {
    let text = "The LOQ costs $612, or 612.00 USD, says Jane Doe; the Victus costs $649 (id 6120).";
    let left = without(text, &["$612".to_owned(), "Jane Doe".to_owned()]);
    assert_eq!(left.len(), text.len());
    assert_eq!(unsupported(&left, "$612 $649 6120"), ["$612"]);
    assert!(!left.contains("Jane"), "{left}");
    assert_eq!(without("$649 in 1999, 9 left", &["9".to_owned()]), "$649 in 1999,   left");
    assert_eq!(without("LOQ 15 for $15", &["$15".to_owned()]), "LOQ 15 for    ");
}

#[test]
fn values_are_taken_out_in_every_notation_that_would_state_them() {
    let plain = |text: &str| text.replace(|char: char| !char.is_alphanumeric(), "");
    for (value, written) in [
        ("Jane Doe", "JANE DOE"),
        ("Jane Doe", "jane  doe"),
        ("Jane Doe", "Mrs. Doe"),
        ("Jane Doe", "Professor **Doe**"),
        ("3 May 2031", "2031-05-03"),
        ("3 May 2031", "May 3, 2031"),
        ("2031-05-03", "3.5.2031"),
        ("May 2031", "Mai 2031"),
        ("1,299.50", "1.299,50"),
        ("12 thousand", "12,000"),
        ("$1.5 million", "1,500,000"),
    ] {
        let (before, after) = ("It says", "here; 5 of 12 at Acme, July 2031, John Doe.");
        let left = without(&format!("{before} {written} {after}"), &[value.to_owned()]);
        assert_eq!(plain(&left), plain(&format!("{before}{after}")), "{value} as {written}: {left}");
    }
}

#[test]
fn a_price_is_that_of_its_currency_and_no_number_of_something_else() {
    let boat = "A boat costs 25 € a day, 120 € a week. Page 1 of 3.";
    let shop = r#"{"name": "Nitro 5", "price": "697.00", "priceCurrency": "USD", "stock": 9} | LOQ | $599 |"#;
    let saw = "Price$1,249.00 12 in stock, 3 May 2026";
    let table = "| laptop | price (USD) | stock |\n|---|---|---|\n| LOQ | 45 | 9 |";
    for (known, answer, found) in [
        (boat, "A boat costs 8 € a day.", "8 €"),
        (boat, "Das Boot kostet 9 € am Tag.", "9 €"),
        (boat, "It costs 1 €.", "1 €"),
        (boat, "It costs $25.", "$25"),
        (shop, "It costs 697 euros.", "697 euros"),
        (shop, "It costs £697.", "£697"),
        (shop, "It costs 697,00 €.", "697,00 €"),
        (shop, "It costs $9.", "$9"),
        (shop, "It costs $5.", "$5"),
        (saw, "It costs 1249 Euro.", "1249 Euro"),
        (saw, "It costs €1,249.00.", "€1,249.00"),
        (saw, "It costs 1.249,00 €.", "1.249,00 €"),
        (saw, "It costs $2026.", "$2026"),
        ("A lamp for $30.00, founded in 1987, 1.2 kg, item 48213", "It costs $1987.", "$1987"),
        ("A lamp for $30.00, founded in 1987, 1.2 kg, item 48213", "It costs $1.20.", "$1.20"),
        ("A lamp for $30.00, founded in 1987, 1.2 kg, item 48213", "It costs $48,213.", "$48,213"),
        (table, "The LOQ costs $9.", "$9"),
        (table, "The LOQ costs €45.", "€45"),
    ] {
        assert_eq!(unsupported(known, answer), [found], "{answer}");
    }
    for (known, answer) in [
        (boat, "25 € a day, 120 EUR a week; both together 145 €."),
        (shop, "It costs $697, USD 697.00 or 697 dollars."),
        (saw, "It costs $1,249.00, and 12 are in stock."),
        (table, "The LOQ costs $45; 9 are in stock."),
        ("Price: 45", "It costs $45."),
        ("Rent: 25 € per day. I need it for drei Tage.", "Drei Tage: drei × 25 € = 75 €."),
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
}

#[test]
fn day_month_and_year_of_a_date_are_each_checked() {
    let known =
        "Lieferung ab 4. Dezember 2026, seen 3 May 2026, open 1. Mai to 30. September, 12/04/2027; 25 €, 15.";
    for (answer, found) in [
        ("Lieferung bis 6. Dezember 2026.", "6. Dezember 2026"),
        ("Delivery by 12 December 2026.", "12 December 2026"),
        ("On 6 May 2026.", "6 May 2026"),
        ("Open from 25. Mai.", "25. Mai"),
        ("On 2026-03-05.", "2026-03-05"),
        ("On 5 March 2026.", "5 March 2026"),
        ("On March 5, 2026.", "March 5, 2026"),
        ("Am 12.4.2026.", "12.4.2026"),
        ("Am 2.6. geht es los.", "2.6."),
        ("Am 15. Dezember.", "15. Dezember"),
    ] {
        assert_eq!(unsupported(known, answer), [found], "{answer}");
    }
    for answer in [
        "Geöffnet vom 1.5. bis 30.9.",
        "Am 04.12.26, am 4.12.2026, am 4.12. und am 4. Dez. 2026.",
        "On December 4, 2026, and the 3rd of May 2026.",
        "Either 12 April 2027 or 4 December 2027.",
        "In May 2026 or December.",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
}

#[test]
fn a_title_makes_no_name_known() {
    let known = "Ihre Ansprechpartnerin ist Frau Dr. Annegret Schulz. Ask Mrs. Jane Doe.";
    for (answer, found) in [
        ("Ansprechpartnerin ist Frau Sabine Krüger.", "Frau Sabine Krüger"),
        ("Bitte fragen Sie Herrn Krüger.", "Herrn Krüger"),
        ("Ask Mrs. Krüger about it.", "Mrs. Krüger"),
        ("Fragen Sie Frau Dr. Krüger.", "Dr. Krüger"),
    ] {
        assert_eq!(unsupported(known, answer), [found], "{answer}");
    }
    for answer in
        ["Fragen Sie Frau Schulz.", "Frau Dr. Schulz und Herr Doe.", "Ask Mrs. Doe.", "Miss the bus."]
    {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
}

#[test]
fn a_date_is_named_whole() {
    let known = "The ledger is due in May.";
    for (answer, date) in [
        ("It is due on 3 May 2031.", "3 May 2031"),
        ("It is due on May 3, 2031.", "May 3, 2031"),
        ("It is due on 2031-05-03.", "2031-05-03"),
        ("It is due in May 2031.", "May 2031"),
    ] {
        assert_eq!(unsupported(known, answer), [date]);
    }
}

#[test]
fn what_is_rounded_multiplied_or_averaged_in_sight_is_supported() {
    let known = "A boat costs 25 € a day. The Dell is $649, the LOQ $697, the HP $700. A bag costs 89,90 €, oars on 14.11.2028.";
    for answer in [
        "A week costs 175 € (7 × 25 €).",
        "A week costs 175 € (7 x 25 €).",
        "The bag costs about 90 €.",
        "Die Tasche kostet rund 90 Euro.",
        "The bag is roughly **€90**.",
        "The Dell is $649, the LOQ $697 and the HP $700, on average $682.",
        "The oars come in November 2028.",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
    for (answer, found) in [
        ("The bag costs 90 €.", "90 €"),
        ("The bag costs about 80 €.", "80 €"),
        ("The bag costs about $90.", "$90"),
        ("A week costs 180 € (7 × 25 €).", "180 €"),
        ("The Dell is $649, the LOQ $697 and the HP $700, on average $612.", "$612"),
    ] {
        assert!(unsupported(known, answer).contains(&found.to_owned()), "{answer}");
    }
}

#[test]
fn what_a_link_shows_is_checked_and_its_address_too() {
    let known = "https://shop.example/plain says $45.50, and Marta Kowalska sells it.";
    let link = "https://shop.example/plain";
    for (shown, value) in [
        ("The lamp costs [$46.50](LINK). [1]", "$46.50"),
        ("| [Lamp L3 - $999.99](LINK) | [1] |", "$999.99"),
        ("Seller: [Peter Meier](LINK)", "Peter Meier"),
        ("Launched in [2019](LINK).", "2019"),
        ("Write to [peter@x.example](mailto:peter@x.example).", "peter@x.example"),
        ("It costs [$45.50](https://other.example/plain).", "https://other.example/plain"),
    ] {
        let found = unsupported(known, &shown.replace("LINK", link));
        assert!(found.iter().any(|found| found == value), "{shown}: {found:?}");
    }
    for shown in ["It costs [$45.50](LINK) [1].", "[Marta Kowalska](LINK) sells it.[^1]", "See [1](LINK)."] {
        assert_eq!(unsupported(known, &shown.replace("LINK", link)), Vec::<String>::new(), "{shown}");
    }
}

#[test]
fn groups_of_digits_are_one_number() {
    for known in [
        "1\u{202f}149,00 €",
        "1 149,00 €",
        "1\u{a0}149 €",
        "EUR 1’149.–",
        "1'149 EUR",
        "1,149.00 EUR",
        "1149 €",
    ] {
        for answer in ["1149 €", "€1,149", "1.149,00 Euro", "1 149 €", "1\u{a0}149 €", "1’149 EUR"]
        {
            assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{known}: {answer}");
        }
        assert_eq!(unsupported(known, "149 €").len(), 1, "{known}");
    }
    for known in ["The Google Pixel 9 799 € is new.", "Kettle 2 799,00", "Pixel 9: 799 €"] {
        assert_eq!(unsupported(known, "It costs 799 €."), Vec::<String>::new(), "{known}");
    }
    assert_eq!(unsupported("$25 200 seats", "$25"), Vec::<String>::new());
    assert_eq!(without_prices("Pixel 9 799 €"), "Pixel 9 (old price)");
    assert_eq!(unsupported(&"123 ".repeat(200_000), "It has 456 rooms."), ["456"]);
    assert_eq!(unsupported("12,500 objects", "12 500 objects"), Vec::<String>::new());
    assert_eq!(unsupported("12 500 objects", "12,500 objects"), Vec::<String>::new());
    assert_eq!(unsupported("Call +49 381 555 0199.", "+49 381 555 0199"), Vec::<String>::new());
    assert!(!without("It was 1 149 €.", &["1149 €".to_owned()]).contains("149"));
}

#[test]
fn every_currency_is_one() {
    for amount in [
        "45.50 PLN",
        "45,50 zł",
        "45.50 kr",
        "45.50 SEK",
        "45.50 Kč",
        "45.50 ₽",
        "R$45.50",
        "₩45.50",
        "Fr. 45.50",
    ] {
        assert_eq!(unsupported("It costs $45.50.", amount).len(), 1, "{amount}");
        assert_eq!(unsupported(&format!("It costs {amount}."), amount), Vec::<String>::new(), "{amount}");
    }
    assert_eq!(unsupported("199 kr", "199 SEK"), Vec::<String>::new(), "crowns of some country");
    assert_eq!(unsupported("Rs. 1,29,900", "₹129900"), Vec::<String>::new());
    for (known, answer) in [
        ("Try 45.50 of it", "45.50 of it"),
        ("It is 20 feet long.", "It is 20 ft long."),
        ("Montag bis Freitag 10 bis 17 Uhr", "Mo.–Fr. 10–17 Uhr"),
        ("Ziehzeit 30 Sekunden", "Ziehzeit 30 Sek."),
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "no currency: {answer}");
    }
    assert!(!states_price("Ziehzeit 30 Sek., Länge 20 ft"));
    for price in
        ["CHF 329.00", "NOK 329,00", "SEK 329", "USD 329.00", "EUR 329", "A$329", "Rs. 329", "329 zł"]
    {
        assert!(states_money(&format!("The garden chair Vela: {price}")), "{price}");
    }
}

#[test]
fn a_price_is_stated_as_one() {
    let page = "Golden Syrian hamster: $24.50\nCage\nPrice 1,250\nBred at 14 Mill Lane since 1998. Food: £3.10\nHouse: 1 299 €";
    for price in
        ["1 299 €", "1.299 €", "£3.10 for 2", "$24.50", "$24.5", "24,50 $", "USD 24.50", "1250", "£3.10", ""]
    {
        assert!(has_price(page, price), "{price}");
    }
    for price in ["$14", "$1998", "£24.50", "$24.50 thousand", "twenty dollars", "$31.00"] {
        assert!(!has_price(page, price), "{price}");
    }
}

#[test]
fn an_age_follows_from_dates() {
    let known = "Built in 1949. Today is 27 November 2026; it was seen on 20 November 2026.";
    for age in ["It is 77 years old.", "Das Museum ist 76 Jahre alt.", "Seen 7 days ago.", "Vor 1 Woche."] {
        assert_eq!(unsupported(known, age), Vec::<String>::new(), "{age}");
    }
    assert_eq!(unsupported(known, "2000000000000000000 weeks ago").len(), 1);
    for age in [
        "It is 87 years old.",
        "That was 260 years ago.",
        "Das Museum ist 50 Jahre alt.",
        "Seen 30 days ago.",
    ] {
        assert_eq!(unsupported(known, age).len(), 1, "{age}");
    }
}

#[test]
fn a_time_is_one_that_is_stated() {
    let known = "Tours begin at 14:30 and end at 4 pm; doors 2026-05-03T09:05:00Z.";
    for time in ["2:30 pm", "14.30 Uhr", "2:30", "16:00", "9:05 am", "09:05"] {
        assert_eq!(unsupported(known, time), Vec::<String>::new(), "{time}");
    }
    for (known, time) in [
        ("um 14:30 am Haupteingang", "14:30"),
        ("at 2026-05-03T09:05:00.000Z", "09:05"),
        ("14:30/16:00/18:30", "18:30"),
        ("until 11:30 P.M.", "23:30"),
        ("Gruppe 3: Montag", "Gruppe 3 am Montag"),
    ] {
        assert_eq!(unsupported(known, time), Vec::<String>::new(), "{time}");
    }
    for time in ["1:30 pm", "3:30", "4:30 pm", "15:30", "14:00"] {
        assert_eq!(unsupported(known, time), [time], "{time}");
    }
}

#[test]
fn a_stretch_of_dates_has_one_year() {
    let known = "Open from 1 May to 30 September 2026.";
    assert_eq!(unsupported(known, "It opens on 2026-05-01."), Vec::<String>::new());
    assert_eq!(unsupported(known, "It opens on 1 May 2025."), ["1 May 2025"]);
    let known = "Closed from 28 December to 3 January 2027.";
    assert_eq!(unsupported(known, "28 December 2026"), Vec::<String>::new());
    assert_eq!(unsupported(known, "28 December 2027"), ["28 December 2027"]);
    let known = "Opens: 1 May. Closes: 30 September 2026.";
    assert_eq!(unsupported(known, "Open 1 May to 30 September 2026"), Vec::<String>::new());
}

#[test]
fn numbers_that_may_be_dates_stay_numbers() {
    for (known, answer) in [
        ("GDP grew by 2.3. Prices rose.", "GDP grew by 2.3 percent."),
        ("It costs 12.10. It is red.", "It costs $12.10."),
        ("Up to 10 may enter.", "10 people may enter."),
        ("In May 12 rooms were renovated.", "12 rooms"),
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
    assert_eq!(unsupported("Opened on 12/04/2026.", "It has 12 rooms.").len(), 1);
}

#[test]
fn a_measure_is_known_in_every_unit() {
    let known = "Weight: 1200 g. Length 2.5 m, 1.5 h on one charge, 512 MiB, 2000 MB, 750W.";
    let same =
        "It weighs 1.2 kg, is 250 cm long, runs 90 minutes, takes 0.5 GiB and 2 GB, and draws 0.75 kW.";
    assert_eq!(unsupported(known, same), Vec::<String>::new());
    let other = "It weighs 12 kg, is 25 cm long, runs 80 minutes, takes 5 GiB, and draws 75 kW.";
    assert_eq!(unsupported(known, other), ["12 kg", "25 cm", "80 minutes", "5 GiB", "75 kW"]);
    assert_eq!(unsupported("1200 g", "1.2 km"), ["1.2 km"], "a measure of something else");
}

#[test]
fn a_name_after_a_label_is_checked() {
    let known = "Der Verleih am See. Kontakt: Annegret Schulz, Telefon 25.";
    for answer in [
        "Kontakt: Sabine Krüger",
        "- **Contact:** Sabine Krüger, am See",
        "Der Verleih ist am See.\n\nAnsprechpartnerin: Sabine Krüger",
        "| Contact | Ort |\n|---|---|\n| Sabine Krüger | am See |\n",
    ] {
        assert_eq!(unsupported(known, answer), ["Sabine Krüger"], "{answer}");
    }
    for answer in [
        "Kontakt: Annegret Schulz",
        "Kontakt: Keine Angaben",
        "Fazit: Gute Wahl",
        "| Boot | Ort |\n|---|---|\n| Großes Ruderboot | am See |\n",
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
}

#[test]
fn the_fields_of_rows_are_numbers_of_their_own() {
    const ROWS: &str = "sku,name,price_eur,stock\n1300,Gadget cc,378.00,77\n1301,Gadget dd,378,177\n";
    for answer in [
        "Gadget cc costs 378.00 EUR.",
        "77 of Gadget cc are in stock, 177 of Gadget dd.",
        "Gadget cc costs 378.00 EUR and 77 are in stock, 177 of Gadget dd.",
    ] {
        assert_eq!(unsupported(ROWS, answer), Vec::<String>::new(), "{answer}");
    }
    assert_eq!(unsupported(ROWS, "There are 378,177 of Gadget dd."), ["378,177"]);
    assert_eq!(unsupported(ROWS, "It costs 377.00 EUR."), ["377.00 EUR"]);
}

#[test]
fn dates_are_read_in_the_notations_of_logs() {
    for known in [
        "10.0.0.7 - - [14/Oct/2026:10:00:11 +0200] GET /",
        "Thu Oct 14 10:00:11 2026 daemon started",
        "Thu Oct 14 10:00:11 CEST 2026 daemon started",
        "20261014T100011Z daemon started",
        "backup-20261014 done",
    ] {
        assert_eq!(unsupported(known, "It was on 14 October 2026."), Vec::<String>::new(), "{known}");
        assert_eq!(unsupported(known, "It was on 15 October 2026.").len(), 1, "{known}");
        assert_eq!(unsupported(known, "It was on 14 October 2025.").len(), 1, "{known}");
    }
    assert_eq!(unsupported("Part 20,261,014 is new.", "It is 20261014."), Vec::<String>::new());
}

#[test]
fn a_part_of_a_percentage_is_recomputed() {
    for (known, answer) in [
        ("The share is 15% of 80 members.", "15% of 80 is 12. [1]"),
        ("VAT 19% on 250 EUR", "19% of 250 EUR is 47.50 EUR. [1]"),
        ("VAT 19% on 250 EUR", "250 EUR + 19% = 297.50 EUR. [1]"),
        ("VAT 19% on 250 EUR", "250 EUR + 19% VAT makes 297.50 EUR. [1]"),
    ] {
        assert_eq!(unsupported(known, answer), Vec::<String>::new(), "{answer}");
    }
    assert_eq!(unsupported("VAT 19% on 250 EUR", "19% of 250 EUR is 57.50 EUR.").len(), 1);
}

#[test]
fn prices_are_taken_out_of_a_text() {
    assert_eq!(
        without_prices("A boat @ $697, or 600 Euro, of 3."),
        "A boat @ (old price), or (old price), of 3."
    );
    for (text, expected) in [
        (
            r#"{"name": "T9", "price":"129.95","priceCurrency":"EUR", "weight": 1.25}"#,
            r#"{"name": "T9", "price":"(old price)","priceCurrency":"EUR", "weight": 1.25}"#,
        ),
        ("product:price:amount: 219.00\nrooms: 12", "product:price:amount: (old price)\nrooms: 12"),
        ("Price: 45.50 Weight 1.2 kg", "Price: (old price) Weight 1.2 kg"),
        (
            "| Model | Price (EUR) | Stock |\n|---|---|---|\n| Falter 4 | 749.00 | 3 |\n",
            "| Model | Price (EUR) | Stock |\n|---|---|---|\n| Falter 4 | (old price) | 3 |\n",
        ),
        ("Preis: EUR 1.299,-", "Preis: EUR (old price),-"),
    ] {
        assert_eq!(without_prices(text), expected);
    }
}
