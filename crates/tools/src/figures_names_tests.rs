//! Names of answers: which words are none, and whose name it is.

use super::*;

/// Checks each answer: with what is found in it, or nothing.
fn check(known: &str, cases: &[(&str, &str)]) {
    for (answer, found) in cases {
        let wanted: Vec<&str> = Some(*found).filter(|found| !found.is_empty()).into_iter().collect();
        assert_eq!(unsupported(known, answer), wanted, "{answer}");
    }
}

#[test]
fn what_is_counted_or_measured_is_no_name() {
    let known = "Fjell Outdoor was founded in 1998 in the town of Bergen. The fund holds 4.2 million dollars and 88 million \
                 kroner, 1.7 litres of water go into the kettle, and 181,000 tonnes of carbon dioxide are saved. 3 of 12 \
                 shops sold 40 pairs of shoes in October. It costs 4.99 dollars.";
    check(
        known,
        &[
            ("Der Fonds hält 4,2 Millionen Dollar.", ""),
            ("Es sind 88 Millionen Kronen im Fonds.", ""),
            ("In den Kessel passen 1,7 Liter Wasser.", ""),
            ("Gespart werden **181.000 Tonnen Kohlendioxid**.", ""),
            ("- Wasser: 1,7 Liter Leitungswasser", ""),
            ("Rund 4,2 Millionen US-Dollar liegen im Fonds.", ""),
            ("Verkauft wurden 40 Paar Wanderschuhe, und zwar Anfang Oktober.", ""),
            ("In 3 Filialen Norwegens gibt es sie, und das Ende Oktober.", ""),
            ("Der Fonds wird von Ingrid Vestergaard geleitet.", "Ingrid Vestergaard"),
            ("Geleitet wird der Fonds von Thorsten Brandt.", "Thorsten Brandt"),
            ("Geleitet wird der Fonds von Charlotte Brandt.", "Charlotte Brandt"),
            ("Geleitet wird der Fonds von Hans Brandt.", "Hans Brandt"),
            ("Ihr Ansprechpartner ist Herr Peter Brandt.", "Herr Peter Brandt"),
            ("Seit 1998 Ingrid Vestergaard gehört der Laden ihr.", "Ingrid Vestergaard"),
            ("4,2 Millionen Dollar hat Northwind Trading im Fonds.", "Northwind Trading"),
            ("Das Unternehmen Northwind Trading hält 88 Millionen Kronen.", "Unternehmen Northwind Trading"),
            ("Die Marke Sigrid Halvorsen verkauft 40 Paar Schuhe.", "Sigrid Halvorsen"),
            ("The fund holds 4.2 Million Dollars.", ""),
        ],
    );
}

#[test]
fn ordinary_words_in_title_case_are_no_name() {
    let known = "Order 4471: one item at $49.99, freight $6.50, sum $56.49. Lenovo LOQ 15, 512 GB, lasts 9 hours. Results of 2025.";
    check(
        known,
        &[
            ("The Total Cost is $56.49.", ""),
            ("Its Battery Life is 9 hours.", ""),
            ("It has a Solid State Drive with 512 GB and Random Access Memory.", ""),
            ("The Sale Price is $49.99.", ""),
            ("These are the results in Fiscal Year 2025.", ""),
            ("It has a Noise-Cancelling Microphone and an Operating System.", ""),
            ("See the Return Policy and the Terms of Service, or ask Customer Support.", ""),
            ("El Precio Total es de $56.49.", ""),
            ("The owner is Ingrid Vestergaard.", "Ingrid Vestergaard"),
            ("It is sold by Northwind Traders.", "Northwind Traders"),
            ("Get the Moor Light for $49.99.", "Moor Light"),
            ("It ships from New York.", "New York"),
            ("It is made by John Stone.", "John Stone"),
            ("Ask Anne-Marie Dupont about it.", "Anne-Marie Dupont"),
            ("It is by Summit Valley.", "Summit Valley"),
            ("Take the Acer Aspire.", "Acer Aspire"),
        ],
    );
}

#[test]
fn whoever_is_cued_is_a_name_however_ordinary_the_words() {
    let firm = "Die Firma hat ein Büro in Berlin und ist bekannt.";
    for given in ["Ernst", "Leo", "Theo", "Ida", "Tim", "Karin", "Vera", "Clement", "Hans-Christian"] {
        let name = format!("{given} Vogler");
        check(firm, &[(&format!("Geschäftsführer ist {name}."), &name)]);
        if given != "Clement" {
            check(firm, &[(&format!("Die Firma wird von {name} geleitet."), &name)]);
        }
    }
    check(firm, &[("Hans-Christian Vogler leitet die Firma in Berlin.", "Hans-Christian Vogler")]);
    let company = "The company has an office in Oslo. Its boss is known to all.";
    for name in ["Grace Young", "Hope Fisher", "Bill Banks", "Mila Rand", "Mila Crown", "Mil Pound"] {
        check(company, &[(&format!("The boss of the company is {name}."), name)]);
        check(company, &[(&format!("The boss, {name}, is known."), name)]);
    }
    check(
        company,
        &[
            ("Contact: Lance Fisher", "Lance Fisher"),
            ("Your contact is Art Wood.", "Art Wood"),
            ("It is made by General Motors.", "General Motors"),
            ("It was bought by Capital One.", "Capital One"),
            ("The owner of General Motors is known.", "General Motors"),
            ("It is paid by Credit Card.", ""),
            ("The price of the Red Cross walk is known.", ""),
            ("The boss is not known, and it is the Total Cost that matters.", ""),
            ("Ask the manager or contact Customer Support.", ""),
            ("The best way to contact them is Live Chat.", ""),
            ("The default theme of the editor is Dark Blue.", ""),
            ("In the manager, the first tab is Total Cost.", ""),
            ("In Oslo its new boss was Grace Young.", "Grace Young"),
            ("The boss and owner of the company is Grace Young.", "Grace Young"),
        ],
    );
    check(
        "General Motors makes it, Grace Young sells it.",
        &[("It is made by General Motors.", ""), ("The seller is Grace Young.", "")],
    );
}

#[test]
fn a_name_after_a_role_or_a_verb_has_the_first_name_of_the_documents() {
    let known =
        "Mayor Birgit Fischer and Engineer Sven Lindqvist wrote it. Call Erik Johansson, or ask Klara Weber.";
    check(
        known,
        &[
            ("Mayor Jonas Fischer wrote it.", "Mayor Jonas Fischer"),
            ("It is by Engineer Lars Lindqvist.", "Engineer Lars Lindqvist"),
            ("Call Nils Johansson.", "Nils Johansson"),
            ("Ask Lena Weber.", "Lena Weber"),
            ("Mayor Birgit Fischer wrote it, and Engineer Sven Lindqvist.", ""),
            ("Call Erik Johansson, or ask Klara Weber.", ""),
        ],
    );
}

#[test]
fn a_name_in_an_address_is_no_name_by_itself() {
    for address in [
        "birgit@halvorsen.example",
        "info@halvorsen.com",
        "b@h.example",
        "mailto:office@halvorsen.example",
        "https://www.halvorsen.example/claims",
        "halvorsen.example",
    ] {
        let known = format!("From: Birgit Halvorsen <{address}>\n\nPlease see my claim of May.");
        check(
            &known,
            &[
                ("The claim is by Ingrid Halvorsen.", "Ingrid Halvorsen"),
                ("Der Antrag ist von Ingrid Halvorsen.", "Ingrid Halvorsen"),
                ("The claim is by Birgit Halvorsen.", ""),
                ("The claim is by B. Halvorsen.", ""),
                ("The claim is by Ms. Halvorsen.", ""),
            ],
        );
    }
    // An address may be of somebody else.
    for address in ["ingrid.halvorsen@shop.example", "https://shop.example/team/ingrid-halvorsen"] {
        let known = format!("Birgit Halvorsen wrote: ask my sister at {address}.");
        check(
            &known,
            &[("Ask Ingrid Halvorsen.", ""), ("You may ask Sigrid Halvorsen.", "Sigrid Halvorsen")],
        );
    }
    check(
        "Birgit Halvorsen and all of halvorsen will be there.",
        &[("The claim is by Ingrid Halvorsen.", "")],
    );
}

#[test]
fn a_value_is_that_of_the_row_and_the_column_that_a_clause_names() {
    let known = "| Item | Member | Guest | Child |\n|---|---|---|---|\n| Sauna | – | $12 | $6 |\n| Pool | $4 | – | $3 |\n\
                 | Gym | $5 | $9 | $9 |\n\nLockers: $1.\n";
    check(
        known,
        &[
            ("Members pay $12 for the sauna.", "12"),
            ("A guest pays $3 for the pool.", "3"),
            ("For the gym a child pays $6.", "6"),
            ("Guests pay $12 for the sauna and members $5 for the gym.", ""),
            ("The gym costs guests and children $9.", ""),
            ("A guest pays more than $3 for the pool.", ""),
            ("A locker for guests of the sauna is $1.", ""),
            ("Two children pay $12 for the sauna.", ""),
        ],
    );
    let known = "| Region | 2024 | 2025 |\n|---|---|---|\n| North | 410 | 480 |\n| South | 275 | 260 |\n\n";
    check(known, &[("North had 410 in 2025.", "410"), ("North had 480 in 2025.", "")]);
    let known = "| Plan | Users | Storage | Boards |\n|---|---|---|---|\n| Basic | 5 | 10 GB | 3 |\n| Team | 10 | 50 GB | 8 |\n";
    check(known, &[("Users on the Basic plan get 10 GB.", ""), ("Basic users have 3 boards.", "")]);
}

#[test]
fn a_departure_is_the_name_of_its_row() {
    let known = "| Departure | Price |\n|---|---|\n| 09:15 | 9.80 EUR |\n| 13:30 | 14.20 EUR |\n";
    check(
        known,
        &[
            ("The 13:30 ferry costs 9.80 EUR.", "9.80"),
            ("The 13:30 ferry costs 14.20 EUR.", ""),
            ("1. 09:15: 9.80 EUR", ""),
        ],
    );
    check("1. Lamp: $20\n2. Shade: $35\n", &[("The lamp costs $35.", "35"), ("The shade costs $35.", "")]);
}
