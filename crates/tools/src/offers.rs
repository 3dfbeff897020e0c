//! What changes within hours, whatever anybody says of it: prices and stock (R1-3.68, R1-4.8). A plain function of texts.

use std::collections::BTreeSet;

use larder_vault::Stock;

use crate::figures;
use crate::quotes::{contains_number, numbers};

/// Whether a text states a price or whether something can be had.
pub(super) fn is_offer(text: &str) -> bool {
    const STOCK: [&str; 13] = [
        "in stock",
        "in-stock",
        "out of stock",
        "out-of-stock",
        "sold out",
        "back-order",
        "backorder",
        "pre-order",
        "left in stock",
        "auf lager",
        "vorrätig",
        "ausverkauft",
        "nicht lieferbar",
    ];
    let lower = text.to_lowercase();
    STOCK.iter().any(|words| lower.contains(words)) || figures::states_price(text)
}

/// What a page says of whether each of these products can be had: the first words for it in a line that names the product
/// and no other, or in the lines after it down to one that names another.
pub(super) fn stocks(page: &str, products: &[&str]) -> Vec<Stock> {
    let names: Vec<BTreeSet<String>> = products.iter().map(|name| name_words(name)).collect();
    let mut found: Vec<Option<Stock>> = vec![None; products.len()];
    let mut here: Option<&BTreeSet<String>> = None;
    for line in page.lines() {
        let said = words(line);
        let all: BTreeSet<String> = said.iter().cloned().collect();
        let named: Vec<&BTreeSet<String>> =
            names.iter().filter(|name| !name.is_empty() && name.is_subset(&all)).collect();
        // The name that says most is meant, unless the line names others besides.
        if let Some(longest) = named.iter().max_by_key(|name| name.len()) {
            here = named.iter().all(|name| name.is_subset(longest)).then_some(*longest);
        }
        let Some(stated) = here.and_then(|_| stated_stock(&said)) else { continue };
        for (_, found) in names.iter().zip(&mut found).filter(|(name, _)| here == Some(*name)) {
            found.get_or_insert(stated);
        }
    }
    found.into_iter().map(|stock| stock.unwrap_or(Stock::Unknown)).collect()
}

/// Whether a page has more than half of the words of a product's name, and a price at which it may be had: not only in
/// lines that name others of `products` and not it.
pub(super) fn is_offered(page: &str, (product, price): (&str, &str), products: &[&str]) -> bool {
    let (name, all) = (name_words(product), name_words(page));
    let others: Vec<BTreeSet<String>> =
        products.iter().map(|other| name_words(other)).filter(|other| *other != name).collect();
    let amounts = numbers(price);
    let has_price =
        |line: &&str| !amounts.is_empty() && amounts.iter().all(|number| contains_number(number, line));
    let lines: Vec<BTreeSet<String>> = page.lines().filter(has_price).map(name_words).collect();
    let is_its_own = |line: &BTreeSet<String>| {
        name.is_subset(line) || !others.iter().any(|other| !other.is_empty() && other.is_subset(line))
    };
    2 * name.intersection(&all).count() > name.len() && (lines.is_empty() || lines.iter().any(is_its_own))
}

/// The words by which a name is found.
fn name_words(text: &str) -> BTreeSet<String> {
    words(text).into_iter().filter(|word| word != "(").collect()
}

/// The words of a text in small letters, and `(` as a word of its own: parentheses usually speak of a variant.
fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('(', " ( ");
    let words = text.split(|char: char| !char.is_alphanumeric() && char != '(');
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// What the words of a line say of whether something can be had; unknown if they say both.
fn stated_stock(line: &[String]) -> Option<Stock> {
    const YES: [&str; 15] = [
        "in stock",
        "instock",
        "add to cart",
        "add to basket",
        "add to bag",
        "auf lager",
        "lagernd",
        "vorrätig",
        "lieferbar",
        "in den warenkorb",
        "en stock",
        "disponibile",
        "op voorraad",
        "available now",
        "available today",
    ];
    const NO: [&str; 19] = [
        "out of stock",
        "outofstock",
        "sold out",
        "soldout",
        "back order",
        "backorder",
        "pre order",
        "preorder",
        "unavailable",
        "not available",
        "no longer available",
        "discontinued",
        "ausverkauft",
        "vergriffen",
        "nicht verfügbar",
        "rupture de stock",
        "agotado",
        "esaurito",
        "uitverkocht",
    ];
    /// Little before the words of the first list, or right behind them, these make them those of the second …
    const NOT: [&str; 11] = ["not", "no", "0", "nicht", "nein", "kein", "plus", "niet", "non", "pas", "geen"];
    /// … and these say nothing of now.
    const LATER: [&str; 11] =
        ["back", "again", "when", "if", "expected", "soon", "wieder", "bald", "ab", "bientôt", "weer"];
    /// Words before it that may change what a phrase says.
    const NEAR: usize = 3;
    // Where phrases begin, and how many words they have.
    let places = |phrases: &[&str]| -> Vec<(usize, usize)> {
        let at = |at: usize| {
            let found = phrases.iter().filter(|phrase| {
                let mut said = line[at..].iter();
                phrase.split(' ').all(|word| said.next().is_some_and(|said| said == word))
            });
            found.map(|phrase| phrase.split(' ').count()).max().map(|length| (at, length))
        };
        (0..line.len()).filter_map(at).collect()
    };
    let is_one_of = |word: &String, words: &[&str]| words.contains(&word.as_str());
    let before = |at: usize, words: &[&str]| {
        line[at.saturating_sub(NEAR)..at].iter().any(|word| is_one_of(word, words))
    };
    let is_bracketed = |at: usize| at > 0 && line[at - 1] == "(";
    let (mut yes, mut no) = (false, false);
    for (at, length) in places(&YES).into_iter().filter(|(at, _)| !before(*at, &LATER) && !is_bracketed(*at))
    {
        let is_denied = before(at, &NOT) || line.get(at + length).is_some_and(|word| is_one_of(word, &NOT));
        if is_denied { no = true } else { yes = true }
    }
    no |= places(&NO).into_iter().any(|(at, _)| !is_bracketed(at));
    match (yes, no) {
        (true, true) => Some(Stock::Unknown),
        (true, false) => Some(Stock::Yes),
        (false, true) => Some(Stock::No),
        (false, false) => None,
    }
}

/// Whether a fact of memory states one. What somebody has, earns, spends or has paid is no price, unless the fact speaks of
/// prices, too.
pub(super) fn is_remembered_offer(fact: &str) -> bool {
    const OF_PEOPLE: [&str; 18] = [
        "budget", "salary", "income", "earn", "spend", "spent", "afford", "paid", "bought", "owe", "saved",
        "gehalt", "verdien", "ausgeben", "bezahlt", "gekauft", "gespart", "schuldet",
    ];
    const OF_THINGS: [&str; 8] = ["cost", "price", "sell", "sold", "stock", "kost", "preis", "verkauf"];
    let lower = fact.to_lowercase();
    let has = |stems: &[&str]| {
        let mut words = lower.split(|char: char| !char.is_alphabetic());
        words.any(|word| stems.iter().any(|stem| word.starts_with(stem)))
    };
    is_offer(fact) && (has(&OF_THINGS) || !has(&OF_PEOPLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_an_offer_in_every_notation() {
        for text in
            ["The pot is $39.", "Preis: 89,90 €", "1.299,00 EUR inkl. MwSt.", "for 20 Euro", "£5", "sold out"]
        {
            assert!(is_offer(text), "{text}");
        }
        for text in ["It weighs 12 kg.", "Version 2.4 ships on 14 March 2025.", "European users"] {
            assert!(!is_offer(text), "{text}");
        }
    }

    #[test]
    fn stock_is_what_the_page_says_of_the_product() {
        let page = "[Page: \"Pumps\"; InStock]\n# Pumps\n\nRule 1100, Rule 2000: in stock\n\n## Rule 1100\n$74.00\nSold out\nAdd to cart\n\n\
            ## Rule 2000\n6 left in stock\n\n| Rule 3700 | $120 | nicht vorrätig |\n\n## Rule 500\n$31\nAdd to cart. Unavailable";
        let all = ["Rule 1100", "Rule 2000", "rule 3700", "Rule 500", "Rule 5000", ""];
        let expected = [Stock::No, Stock::Yes, Stock::No, Stock::Unknown, Stock::Unknown, Stock::Unknown];
        assert_eq!(stocks(page, &all), expected);
    }

    #[test]
    fn an_offer_is_of_a_product_that_the_page_has_at_a_price_that_is_its_own() {
        let page = "Golden Syrian hamster\n$24.50\nCream Syrian hamster: $31.00\n| Rug Vidde | $149.00 |\n| Rug Fjell | $119 |";
        let names = ["Golden Syrian hamster", "Cream Syrian hamster", "Rug Vidde", "Rug Fjell"];
        let offered = |product: &str, price: &str| is_offered(page, (product, price), &names);
        assert!(offered(names[0], "$24.50") && offered(names[1], "$31.00"));
        assert!(is_offered(page, ("Fjell rug (wool)", "119.00 $"), &names[..3]));
        for (product, price) in [
            ("Silver Siberian ferret", "$24.50"),
            ("Ghost hamster", ""),
            (names[0], "$31.00"),
            (names[3], "$149.00"),
        ] {
            assert!(!offered(product, price), "{product} {price}");
        }
    }

    #[test]
    fn words_for_stock_are_whole_words_and_may_be_negated() {
        for (line, expected) in [
            ("Now in stock!", Stock::Yes),
            ("Disponibile", Stock::Yes),
            ("No longer in stock", Stock::No),
            ("Nicht auf Lager", Stock::No),
            ("Niet meer op voorraad", Stock::No),
            ("Plus en stock", Stock::No),
            ("Temporarily unavailable", Stock::No),
            ("Not currently in stock", Stock::No),
            ("0 in stock", Stock::No),
            ("In stock: no", Stock::No),
            ("Derzeit nicht mehr vorrätig", Stock::No),
            ("Sofort lieferbar", Stock::Yes),
            ("Pas en stock", Stock::No),
            ("Notify me when back in stock", Stock::Unknown),
            ("Expected in stock in March", Stock::Unknown),
            ("Wieder auf Lager ab 12. Januar", Stock::Unknown),
            ("Usually in stock, currently sold out", Stock::Unknown),
            ("Size S, M (sold out), L", Stock::Unknown),
            ("in Stockholm, chicken stock, Weinstock", Stock::Unknown),
        ] {
            assert_eq!(stocks(&format!("The pump\n{line}"), &["The pump"]), [expected], "{line}");
        }
    }
}
