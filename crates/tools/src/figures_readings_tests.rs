//! Scales of amounts in many languages, what a table or list gives to what, and numbers that support no others.

use super::*;

/// Checks each answer: with what is found in it, separated by `; `, or nothing.
fn check(known: &str, cases: &[(&str, &str)]) {
    for (answer, found) in cases {
        assert_eq!(unsupported(known, answer).join("; "), *found, "{known}: {answer}");
    }
}

#[test]
fn scales_are_read_in_every_language() {
    let report = "Revenue rose to $4.2 million from $3.5 million. The order book is worth DKK 88 million. Profit was \
                  $310,000, the debt €1.2 billion.";
    check(
        report,
        &[
            ("Los ingresos fueron de 4,2 millones de dólares.", ""),
            ("I ricavi sono saliti a 4,2 milioni di dollari.", ""),
            ("As receitas foram de 4,2 milhões de dólares.", ""),
            ("De omzet steeg tot 4,2 miljoen dollar.", ""),
            ("Intäkterna steg till 4,2 miljoner dollar.", ""),
            ("Omsætningen steg til 4,2 millioner dollar.", ""),
            ("Les revenus ont atteint 4,2 millions de dollars.", ""),
            ("Der Umsatz stieg von 3,5 auf 4,2 Millionen Dollar.", ""),
            ("Der Umsatz betrug 4,2 Mio. US-Dollar, also 4,2 Millionen US-Dollar.", ""),
            ("La cartera de pedidos vale 88 millones de coronas danesas.", ""),
            ("Das Auftragsbuch umfasst 88 Millionen dänische Kronen.", ""),
            ("Revenue rose from 3.5 to 4.2 million dollars.", ""),
            ("Revenue: $3.5 → $4.2 million.", ""),
            ("Revenue went from $3.5 to $4.2 million.", ""),
            ("La deuda es de 1200 millones de euros, o 1,2 mil millones.", ""),
            ("La dette est de 1,2 milliard d'euros, le bénéfice de 310 mille dollars.", ""),
            ("Il debito è di 1,2 miliardi di euro.", ""),
            ("De schuld is 1,2 miljard euro.", ""),
            ("Skulden är 1,2 miljarder euro.", ""),
            ("A dívida é de 1,2 bilhões de euros, ou 1,2 mil milhões de euros.", ""),
            ("Los ingresos fueron de 4,3 millones de dólares.", "4,3 millones de dólares"),
            ("I ricavi sono saliti a 4,3 milioni.", "4,3 milioni"),
            ("De omzet steeg tot 4,2 miljard dollar.", "4,2 miljard dollar"),
            ("Les revenus ont atteint 4,2 millions d'euros.", "4,2 millions d'euros"),
            ("Revenue was $4.3 million.", "$4.3 million"),
            ("Revenue was $4.2 billion.", "$4.2 billion"),
            ("Revenue rose from 3.6 to 4.2 million dollars.", "3.6"),
            ("Revenue: $3.6 → $4.2 million.", "$3.6"),
            ("Der Gewinn betrug 9 Millionen Dollar.", "9 Millionen Dollar"),
            ("Der Gewinn betrug 9 Millionen.", "9 Millionen"),
        ],
    );
    for known in [
        "Der Umsatz stieg auf 4,2 Millionen Euro nach 3 Millionen. Die Investitionen betrugen 1,2 Milliarden Kronen.",
        "Le chiffre d'affaires a atteint 4,2 millions d'euros, contre 3 millions. La dette est de 1,2 milliard de couronnes.",
        "Los ingresos subieron de 3 a 4,2 millones de euros. La deuda es de 1.200 millones de coronas.",
        "Los ingresos subieron a 4,2 M€ desde 3 M€. La deuda es de 1,2 mil millones de coronas.",
        "I ricavi sono saliti a 4,2 milioni di euro da 3 milioni. Il debito ammonta a 1,2 miliardi di corone.",
        "De omzet steeg van 3 tot 4,2 miljoen euro. De schuld bedraagt 1,2 miljard kronen.",
        "As receitas subiram de 3 para 4,2 milhões de euros. A dívida é de 1,2 mil milhões de coroas.",
        "Omsetningen steg fra 3 til 4,2 millioner euro. Gjelden er 1,2 milliarder kroner.",
    ] {
        check(
            known,
            &[
                ("Revenue rose to €4.2 million from €3 million; debt is 1.2 billion kroner.", ""),
                ("Revenue rose from 3 to 4.2 million euros.", ""),
                ("Der Umsatz erreichte 4,2 Millionen Euro, die Schulden 1,2 Mrd. Kronen.", ""),
                ("Revenue rose to €4.8 million.", "€4.8 million"),
                ("Revenue rose to €42 million.", "€42 million"),
                ("Revenue rose to €4.2.", "€4.2"),
                ("Debt is 1.2 million kroner.", "1.2 million kroner"),
            ],
        );
    }
}

#[test]
fn a_billion_may_be_a_million_millions_where_it_is_not_english() {
    check(
        "The debt is $1.2 trillion, the profit $5 billion.",
        &[
            ("La dette est de 1,2 billion de dollars.", ""),
            ("Die Schulden betragen 1,2 Billionen Dollar, der Gewinn 5 Milliarden.", ""),
            ("La deuda es de 1,2 billones de dólares.", ""),
            ("Die Schulden betragen 1,2 Billion Dollar.", ""),
            ("The debt is $1.2 billion.", "$1.2 billion"),
            ("The debt is $1.2 Billion.", "$1.2 Billion"),
            ("Debt: $1.2 Billion", "$1.2 Billion"),
            ("The profit is $5 trillion.", "$5 trillion"),
        ],
    );
    check("The debt is $1.2 Billion.", &[("The debt is $1.2 trillion.", "$1.2 trillion")]);
    check("Die Kasse hat 1 Billion Euro.", &[("It has 1 trillion euros.", "")]);
    check("The debt is $1,200 trillion.", &[("The debt is $1,200 billion.", "$1,200 billion")]);
    check("The debt is $1,200 billion.", &[("The debt is $1,200 trillion.", "$1,200 trillion")]);
    check("In 2024 Mila opened 40 shops.", &[("In 2024 Mila opened 40.", ""), ("It sold 2024.", "")]);
}

#[test]
fn a_number_of_other_things_is_no_money_with_its_scale_either() {
    for (known, answer, found) in [
        ("It earned €4.2 million and sold 3 million cars.", "It earned €3 million.", "€3 million"),
        ("It earned €4.2 million and sold 3 million cars.", "It sold 3 million cars.", ""),
        ("It earned €4.2 million and makes 3 million kWh.", "It earned €3 million.", "€3 million"),
        ("It earned €4.2 million and sold 3 million worldwide.", "It earned €3 million.", "€3 million"),
        ("It earned €4.2 million in 2024 and 3 million in 2023.", "It earned €3 million in 2023.", ""),
        ("It earned $4.2 million, up from 3.5 million last year.", "It had earned $3.5 million.", ""),
        (
            "Le bénéfice est de 4,2 millions d'euros, contre 3 millions un an plus tôt.",
            "It was €3 million.",
            "",
        ),
        ("Mila has 5 to 20 million users.", "Mila made a profit of $5 million.", "$5 million"),
        ("Mila has 5 to 20 million users.", "Mila has 5 million users.", ""),
        ("It cost from 3 to 4.2 million euros.", "It cost €3 million.", ""),
        ("It cost from 3 to 4.2 million euros.", "It cost $3 million.", "$3 million"),
        ("Between 5 and 20 million people live there.", "5 million people live there.", ""),
        ("Zwischen 5 und 20 Millionen Menschen leben dort.", "5 million people live there.", ""),
        ("Between 5 and 20 million people live there.", "It costs €5 million.", "€5 million"),
        ("The team has 12 and 4 million dollars.", "It has 12 million dollars.", "12 million dollars"),
        ("The 5m cable is red.", "It costs $5 million.", "$5 million"),
        ("They have 12 500 objects.", "It costs $12,500.", "$12,500"),
        ("Three hundred people came.", "It costs $300.", "$300"),
        ("It costs three hundred dollars.", "It costs $300.", ""),
        ("It costs $4.2 million.", "It costs $1 million.", "$1 million"),
        ("It has 4.2 million users.", "It has 1 million users.", "1 million"),
        ("Umsatz: 4,2 Mio. Euro (Vorjahr: 3,5 Mio.)", "It was €3.5 million the year before.", ""),
        ("It had $4.2 million revenue and 3 million profit.", "Its profit was $3 million.", ""),
        ("It raised $4 million, of which 3 million went to Oslo.", "$3 million went to Oslo.", ""),
        ("It earned $9 million, and 3 million came from Oslo.", "$3 million came from Oslo.", ""),
        ("It earned $9 million, about 3 million online.", "It earned $3 million online.", ""),
        ("The bill is $9 million, with 3 million already paid.", "$3 million is already paid.", ""),
        ("Es sind 9 Mio. Euro, 3 Mio. entfallen auf Oslo.", "3 Mio. Euro entfallen auf Oslo.", ""),
        ("It earned €4.2 million from 3 million new cars.", "It earned €3 million.", "€3 million"),
        ("It earned €4.2 million from 3 million people.", "It earned €3 million.", "€3 million"),
        ("Es sind 9 Mio. Euro von 3 Mio. neuen Kunden.", "Es sind 3 Mio. Euro.", "3 Mio. Euro"),
    ] {
        check(known, &[(answer, found)]);
    }
}

#[test]
fn the_things_of_a_table_are_those_that_nothing_else_is_said_of() {
    let stock = "| | In stock | Weight kg |\n|---|---|---|\n| Lamp | 12 | 20 |\n| Desk | 15 | 90 |\n";
    check(
        stock,
        &[
            ("The lamp weighs 90 kg.", "90"),
            ("The lamp weighs 20 kg.", ""),
            ("In stock are the 20 kg lamp and the 90 kg desk.", ""),
            ("In stock: 90 kg desks.", ""),
            ("Of the desk, 15 are left, each of 90 kg.", ""),
        ],
    );
    let plans = "| | Basic | Plus | Pro |\n|---|---|---|---|\n| Price | $100 | $150 | $200 |\n| Users | 5 | 25 | 80 |\n";
    check(
        plans,
        &[
            ("Basic costs $150.", "150"),
            ("Basic costs $100.", ""),
            ("The Basic plan allows 80 users.", "80"),
            ("The Pro plan costs $200, Basic $100.", ""),
            ("Price: $100, $150 or $200.", ""),
            ("Pro Monat sind es $100.", ""),
        ],
    );
    for (known, answer, found) in [
        ("| | Nova | Terra |\n|---|---|---|\n| Price | €199 | €349 |\n", "The Nova costs €349.", "349"),
        ("| | Lamp | Desk |\n|---|---|---|\n| Price | $20 | $90 |\n", "The Lamp costs $90.", "90"),
        ("| | Lampe | Tisch |\n|---|---|---|\n| Gewicht | 2 kg | 30 kg |\n", "Die Lampe wiegt 30 kg.", "30"),
        (
            "| | Nova S | Terra S | Total |\n|---|---|---|---|\n| Price | €199 | €349 | €548 |\n",
            "The Nova S costs €349.",
            "349",
        ),
        (
            "| | Nova | Terra |\n|---|---|---|\n| Yearly | €199 | €349 |\n| Span | 80 km | 95 km |\n",
            "The Nova costs €349.",
            "349",
        ),
        ("| | Nova | Terra |\n|---|---|---|\n| Zest | 12 | 15 |\n| Grip | 20 | 90 |\n", "Zest is 90.", "90"),
        (
            "| | Nova | Terra |\n|---|---|---|\n| Zest | 12 | 15 |\n| Grip | 20 | 90 |\n",
            "The Nova has 90.",
            "90",
        ),
        (
            "| | Nova | Terra |\n|---|---|---|\n| Zest | 12 | 15 |\n| Grip | 20 | 90 |\n",
            "Zest for the Terra is 15.",
            "",
        ),
        (
            "| | Nova | Terra |\n|---|---|---|\n| Zest | 12 | 15 |\n| Grip | 20 | 90 |\n",
            "Nova gets 90 as Terra does.",
            "",
        ),
        (
            "| | Size EU | Size UK |\n|---|---|---|\n| Small | 36 | 23 |\n| Large | 44 | 30 |\n",
            "Small is 23.",
            "",
        ),
        (
            "| | Size EU | Size UK |\n|---|---|---|\n| Small | 36 | 23 |\n| Large | 44 | 30 |\n",
            "Small is 30.",
            "30",
        ),
        (
            "| | Size EU | Size UK |\n|---|---|---|\n| Small | 36 | 23 |\n| Large | 44 | 30 |\n",
            "Size EU 36 is 23 in UK sizes.",
            "",
        ),
        (
            "| | Price | Weight |\n|---|---|---|\n| Battery | $20 | 1 kg |\n| Screen | $50 | 2 kg |\n",
            "The battery costs $50.",
            "50",
        ),
        (
            "| | Price | Weight |\n|---|---|---|\n| Battery | $20 | 1 kg |\n| Screen | $50 | 2 kg |\n",
            "The battery weighs 1 kg.",
            "",
        ),
        (
            "| | Jan 2026 | Feb 2026 |\n|---|---|---|\n| Sales | 120 | 340 |\n",
            "In Jan 2026, sales grew to 340 by February.",
            "",
        ),
    ] {
        check(known, &[(answer, found)]);
    }
}

#[test]
fn an_item_has_its_value_only_where_a_clause_says_just_that() {
    for (known, answer, found) in [
        ("- Phone: $697\n- Shipping: $9.50\n", "The phone ships for $9.50.", ""),
        ("- Phone: $697\n- Shipping: $9.50\n", "The phone costs $9.50.", "9.50"),
        ("- Battery: 10 hours\n- Charging: 2 hours\n", "The battery charges in 2 hours.", ""),
        ("- Battery: 10 hours\n- Charging: 2 hours\n", "The battery is charged: 2 hours.", ""),
        ("- Battery: 10 hours\n- Charging: 2 hours\n", "The battery lasts 2 hours.", "2"),
        ("- Ticket: €25\n- Audio guide: €4\n", "Ticket holders get a guide for €4.", ""),
        ("- Ticket: €25\n- Audio guide: €4\n", "Tickets are €25.", ""),
        ("- Ticket: €25\n- Audio guide: €4\n", "The ticket is only €4.", "4"),
        ("- Laptop: 1.8 kg\n- Charger: 0.4 kg\n", "The laptop comes with a 0.4 kg charger.", ""),
        ("- Zimmer: 120 €\n- Frühstück: 15 €\n", "Zimmergäste zahlen 15 €.", ""),
        ("- Zimmer: 120 €\n- Frühstück: 15 €\n", "Das Zimmer kostet 15 €.", "15"),
        ("- Chambre : 120 €\n- Dîner : 15 €\n", "La chambre coûte 15 €.", "15"),
        ("- Standard: $5\n- Express: $12\n", "Standard customers can switch to $12 shipping.", ""),
    ] {
        check(known, &[(answer, found)]);
    }
}

#[test]
fn a_value_of_one_of_several_equals_is_that_of_no_other_whatever_the_verb() {
    for answer in [
        "The lamp is priced at $90.",
        "The lamp goes for $90.",
        "The lamp currently costs $90.",
        "The lamp will cost $90.",
        "The lamp costs about $90.",
        "The price of the lamp is $90.",
        "The lamp is yours for $90.",
    ] {
        check("- Lamp: $20\n- Desk: $90\n", &[(answer, "90")]);
    }
    for answer in [
        "The lamp is priced at $20.",
        "The lamp goes well with the desk for $90.",
        "The lamp is cheaper than $90.",
        "Instead of the lamp, take the one for $90.",
        "The lamp and the desk cost $20 and $90.",
        "Three of it, with the lamp at $20, come to $60.",
    ] {
        check("- Lamp: $20\n- Desk: $90\n", &[(answer, "")]);
    }
    let plans = "- Basic: $5 per month\n- Pro: $19 per month\n- Team: $10 per month\n";
    check(
        plans,
        &[
            ("The Basic plan costs $19 per month.", "19"),
            ("Basic (19 $)", "19"),
            ("The Basic plan for two costs $10.", ""),
            ("The Basic plan costs $5 per month.", ""),
        ],
    );
    for known in [
        "- Coffee: $3\n- Cake: $50\n",
        "- Coffee: $3\n- Charger: $50\n",
        "- Coffee: $3\n- Pirate costume: $50\n",
    ] {
        check(known, &[("A coffee costs $50.", "50"), ("A coffee costs $3.", "")]);
    }
    check(
        "| | Rover X1 | Rover X2 |\n|---|---|---|\n| Payload | 120 | 150 |\n| Gears | 24 | 38 |\n",
        &[
            ("The Rover X2 carries 120.", "120"),
            ("The Rover X2 has a payload of 120.", "120"),
            ("The Rover X2 has a payload of 150.", ""),
            ("The payload is 120 or 150.", ""),
        ],
    );
    check(
        "| | Nova | Terra |\n|---|---|---|\n| Zest | 12 | 15 |\n| Grip | 20 | 90 |\n",
        &[("The Nova achieves 90 in this test.", "90"), ("The Nova achieves 20 in this test.", "")],
    );
}

#[test]
fn words_that_look_like_a_number_are_none() {
    for (known, answer, found) in [
        ("La remise est de 20 %.", "Vous économisez 20 pour cent une fois abonné.", ""),
        ("Vous avez 10 pour cent.", "Remise de dix pour cent une fois inscrit.", ""),
        ("Eins zu eins übertragbar.", "Die Antwort kommt nach 1 Sekunde, das sind 1000 ms.", "1000 ms"),
        ("Die Stadt hat viele Einw.", "It needs 1000 mW.", "1000"),
        ("The laser has 5 mW.", "It has 5,000 kW.", "5,000 kW"),
        ("The turbine has 5 MW.", "It has 5,000 kW.", ""),
        ("The dose is .045 mg.", "The dose is 0.045 mg.", ""),
        ("The dose is 0.045 mg.", "The dose is .045 mg.", ""),
        ("The dose is .045 mg.", "The dose is 45 mg.", "45 mg"),
        ("Der Preis je Einh. ist hoch.", "It takes 60 minutes.", "60 minutes"),
        ("Eine einjährige Garantie.", "It has a 12-month warranty.", ""),
        ("Eine einstündige Fahrt.", "It takes 60 minutes.", ""),
    ] {
        check(known, &[(answer, found)]);
    }
}

#[test]
fn a_price_is_multiplied_on_either_side() {
    let lamp = "A lamp costs 25 €.";
    for product in [
        "25 EUR × 7",
        "25 € x 7",
        "25 € * 7",
        "25 €/Stück × 7",
        "25 € pro Stück × 7",
        "7 Stück × 25 €",
        "7 lamps x 25 €",
        "7 * €25",
    ] {
        check(
            lamp,
            &[
                (&format!("Altogether {product} = 175 €."), ""),
                (&format!("Altogether {product} = 195 €."), "195 €"),
            ],
        );
    }
    for answer in
        ["A lamp is **25 €** 7 or so: 175 €.", "Altogether 25 € × 7,5 = 175 €.", "Max 25 €, so 175 €."]
    {
        assert!(unsupported(lamp, answer).contains(&"175 €".to_owned()), "{answer}");
    }
    check(
        "Each is €89.00, shipping €4.95.",
        &[
            ("3 × €89.00 + €4.95 = €271.95.", ""),
            ("€89.00 × 3 + €4.95 = €271.95.", ""),
            ("€89.00 + €4.95 = €93.95.", ""),
            ("3 × €89.00 + €4.95 = €93.95.", "€93.95"),
        ],
    );
}

#[test]
fn a_number_that_a_hyphen_joins_to_a_noun_is_a_number() {
    check(
        "The course has 12 lessons, the processor 16 cores, the hotel 30 rooms and the gearbox 10 speeds. Sleeps 4.",
        &[
            ("It is a 12-lesson course with a 16-core processor.", ""),
            ("A 30-room hotel and a 10-speed gearbox.", ""),
            ("It is a 4-person tent.", ""),
            ("It is a 14-lesson course.", "14"),
            ("It is a 6-person tent.", "6"),
            ("It is a 1-click order.", ""),
        ],
    );
}

#[test]
fn readings_without_a_sign_are_percentages_and_models_are_none() {
    for (known, answer, found) in [
        ("Humidity 45, temperature 20", "Humidity is 45%.", ""),
        ("Battery 80", "The battery is at 80 %.", ""),
        ("BATT 80 TEMP 21", "The battery is at 80 %, at 21 °C.", ""),
        ("Luftfeuchte 45", "Die Luftfeuchte beträgt 45 %.", ""),
        ("Humidity 45, temperature 20", "Humidity is 46%.", "46%"),
        ("The LOQ 15 is a laptop.", "The discount is 15%.", "15%"),
        ("The LOQ 15 is a laptop.", "It has a 15-hour battery.", "15-hour"),
        ("The iPhone 15 is new.", "It takes 15 days.", "15 days"),
        ("The Desk D5 is of oak.", "It has a 5-year warranty.", "5-year"),
        ("Poles: 7001-T6 aluminium.", "It sleeps six, or 6 people.", "six; 6"),
        ("The Desk D5 weighs 5 kg.", "The Desk D5 weighs 5 kg.", ""),
        ("VOLTAGE 230", "It runs at 230 V.", ""),
        ("HEIGHT 180, WIDTH 60, POWER 65", "It is 60 cm wide and needs 65 W.", ""),
        ("BREITE 60", "Es ist 60 cm breit.", ""),
        ("IT TAKES 45 FROM THE STATION", "It takes 45 minutes.", ""),
        ("Take the LOQ 15 with you.", "It has a 15-hour battery.", "15-hour"),
        ("HP 15 laptop, black", "The laptop weighs 15 kg and lasts 15 hours.", "15 kg; 15 hours"),
        ("- ASUS 15\n- HP 17\n", "It weighs 17 kg.", "17 kg"),
        ("BMW 320 for sale", "It has 320 km of range.", "320 km"),
        ("PS 5 console", "It weighs 5 kg.", "5 kg"),
        ("FIFA 23 for PC", "It takes 23 hours.", "23 hours"),
        ("SPEED 45", "It goes 45 km/h.", ""),
        ("OLED 55", "It has a 55-inch screen.", ""),
        ("LADEZEIT 45", "Es lädt in 45 Minuten.", ""),
        ("It has a USB 3 port.", "It has 3 USB ports.", "3"),
        ("重さは320グラム", "It weighs 320 g.", ""),
    ] {
        check(known, &[(answer, found)]);
    }
}

#[test]
fn ratings_and_counts_of_stock_are_no_measures() {
    for known in
        ["Rated 4.6 of 5.", "Rated 4.4/5.", "Rated 4 out of 5.", "4,4 von 5 Sternen.", "Noté 4,4 sur 5."]
    {
        check(
            known,
            &[("It has a 5-year warranty.", "5-year"), ("It weighs 5 kg.", "5 kg"), ("It got 5 stars.", "")],
        );
    }
    for known in [
        "37 pieces in stock.",
        "In stock: 37",
        "37 Stück auf Lager",
        "37 en stock",
        "| Item | Stock |\n|---|---|\n| Lamp | 37 |\n",
        "(37 reviews)",
        "37 avis",
    ] {
        check(
            known,
            &[
                ("It weighs 37 kg.", "37 kg"),
                ("Delivery takes 37 days.", "37 days"),
                ("There are 37 of it.", ""),
            ],
        );
    }
    check(
        "Rated by 1,284 customers (312 reviews).",
        &[("It weighs 312 kg.", "312 kg"), ("It has 312 reviews.", "")],
    );
    check(
        "Lieferzeit 3 Werktage. Weight: 15. 24/7 support.",
        &[("It takes 3 days, weighs 15 kg and has 24-hour support.", ""), ("It takes 4 days.", "4 days")],
    );
    check("Weight per piece: 15", &[("A piece weighs 15 kg.", "")]);
    check(
        "| Laptop | Memory available |\n|---|---|\n| A1 | 16 |\n",
        &[("It has 16 GB of memory.", ""), ("It has 16 of it.", "")],
    );
    check("Available: 37", &[("It weighs 37 kg.", "37 kg"), ("There are 37 of it.", "")]);
    check("Use 3 of 5 litres.", &[("Use 3 litres of 5 litres.", "")]);
}

#[test]
fn small_numbers_that_count_are_checked() {
    let tent =
        "The tent sleeps three, has 2 doors and comes in red, green, blue and black. Manager: Solveig Aasen.";
    check(
        tent,
        &[
            ("It sleeps three.", ""),
            ("It sleeps eight.", "eight"),
            ("The company has eight offices.", "eight"),
            ("The company has six directors.", "six"),
            ("It is a six-person tent.", "six"),
            ("It is a three-person tent.", ""),
            ("It is a 6-person tent.", "6"),
            ("It comes in four colours.", ""),
            ("It comes in five colours.", "five"),
            ("Das Zelt hat acht Fenster.", "acht"),
            ("La tente a cinq fenêtres.", "cinq"),
            ("La tienda tiene cinco ventanas.", "cinco"),
        ],
    );
    for answer in [
        "It is one of the best, in two ways; both doors open, and one more is closed.",
        "There are three things to say: it is red, it is light and it is cheap.",
        "There are four ways to pay: by card, by PayPal, in cash or by invoice.",
        "It opens at eight in the morning.",
        "Four of them are red, nine out of ten like it, and the other five stay.",
        "It is a four-wheel drive.",
        "An elf costume for the tent.",
        "Un vélo neuf avec une tente.",
        "Here are five tips:\n\n- a\n- b\n- c\n- d\n- e\n",
    ] {
        check(tent, &[(answer, "")]);
    }
    check(
        "Es nehmen Anna, Ben, Carla, Dirk und Eva teil.",
        &[
            ("Es nehmen fünf Personen teil.", ""),
            ("Five people take part: Anna, Ben, Carla, Dirk and Eva.", ""),
            ("Cinq personnes participent.", ""),
            ("Seven people take part.", "Seven"),
            ("Es nehmen neun Personen teil.", "neun"),
        ],
    );
    check(
        "| Tent | Price |\n|---|---|\n| A | 1 |\n| B | 2 |\n| C | 3 |\n| D | 4 |\n| E | 5 |\n| F | 6 |\n",
        &[
            ("There are six tents, and four tents are cheap.", ""),
            ("There are eight tents.", "eight"),
            ("The eight tents are cheap.", "eight"),
        ],
    );
    check("A dozen eggs cost $3.", &[("There are twelve eggs.", ""), ("There are 12 eggs.", "")]);
    check("It holds half a dozen eggs.", &[("It holds six eggs.", ""), ("It holds twelve eggs.", "twelve")]);
}

#[test]
fn an_enumeration_counts_what_its_sentence_is_about() {
    let office = "The office is in Berlin. It has red, green, blue, white and black walls.";
    check(
        office,
        &[
            ("The company has five offices.", "five"),
            ("The company has 5 offices.", "5"),
            ("It has five walls.", ""),
            ("There are five bright colours.", ""),
        ],
    );
    check(
        "Wheels: front left, front right, rear left, rear right",
        &[("The car has four wheels.", ""), ("The car has four doors.", "four")],
    );
    check("Open in summer, autumn, winter and spring.", &[("It has four offices.", "four")]);
    check(
        "The hotel offers a pool, a sauna, a gym and a bar.",
        &[("The hotel has 4 restaurants.", "4"), ("The hotel has four stars.", "four")],
    );
    for (known, answer) in [
        ("The dish contains flour, eggs, milk and butter.", "The dish needs four ingredients."),
        ("Available in red, green, blue and black.", "It comes in four shades."),
        ("The hotel offers a pool, a sauna, a gym and a bar.", "The hotel offers 4 amenities."),
        ("It runs on Linux, Windows, macOS and Android.", "It supports four platforms."),
        ("The kit includes a lamp, a cable, a plug and a manual.", "The kit has four parts."),
        ("Offices are in Oslo, Bergen, Stavanger and Tromsø.", "There are four locations."),
        ("Supported: PDF, DOCX, HTML and Markdown.", "It supports four formats."),
        ("Das Set enthält Lampe, Kabel, Stecker und Anleitung.", "Das Set hat vier Teile."),
    ] {
        check(known, &[(answer, "")]);
        for (four, five) in [("four", "five"), ("4", "5"), ("vier", "fünf")] {
            let wrong = answer.replace(four, five);
            check(known, &[(wrong.as_str(), if wrong == answer { "" } else { five })]);
        }
    }
}
