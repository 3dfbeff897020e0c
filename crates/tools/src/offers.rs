//! What changes within hours, whatever anybody says of it: prices and stock (R1-3.68, R1-4.8). A plain function of texts.

use std::collections::BTreeSet;

use larder_vault::Stock;

use crate::figures;

/// Words by which pages say that something can be had …
const IN_STOCK: [&str; 12] = [
    "in stock",
    "in-stock",
    "instock",
    "add to cart",
    "add to basket",
    "add to bag",
    "auf lager",
    "vorrätig",
    "in den warenkorb",
    "en stock",
    "disponibile",
    "op voorraad",
];
/// … and that it cannot, or not yet.
const OUT_OF_STOCK: [&str; 21] = [
    "out of stock",
    "out-of-stock",
    "outofstock",
    "not in stock",
    "sold out",
    "soldout",
    "back-order",
    "backorder",
    "pre-order",
    "preorder",
    "currently unavailable",
    "no longer available",
    "ausverkauft",
    "nicht lieferbar",
    "nicht vorrätig",
    "rupture de stock",
    "agotado",
    "esaurito",
    "non disponibile",
    "niet op voorraad",
    "uitverkocht",
];

/// Whether a text states a price or whether something can be had.
pub(super) fn is_offer(text: &str) -> bool {
    stated_stock(&text.to_lowercase()) != Stock::Unknown || figures::states_price(text)
}

/// What a page says of whether `product` can be had: the first words for it in a line that names the product, or in those
/// after it down to one that names another of `products`.
pub(super) fn stock(page: &str, product: &str, products: &[&str]) -> Stock {
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let names: Vec<BTreeSet<String>> = products.iter().map(|name| words(name)).collect();
    let product = words(product);
    let mut is_here = false;
    for line in page.lines() {
        let said = words(line);
        // The name that says most is meant.
        let named = names.iter().filter(|name| name.is_subset(&said)).max_by_key(|name| name.len());
        is_here = named.map_or(is_here, |named| *named == product);
        let stated = if is_here { stated_stock(&line.to_lowercase()) } else { Stock::Unknown };
        if stated != Stock::Unknown {
            return stated;
        }
    }
    Stock::Unknown
}

/// What the first words for it in a text of small letters say.
fn stated_stock(lower: &str) -> Stock {
    let first = |words: &[&str]| words.iter().filter_map(|words| lower.find(words)).min();
    match (first(&IN_STOCK), first(&OUT_OF_STOCK)) {
        (Some(there), Some(gone)) if there < gone => Stock::Yes,
        (_, Some(_)) => Stock::No,
        (Some(_), None) => Stock::Yes,
        (None, None) => Stock::Unknown,
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
        let page = "[Page: \"Pumps\"; InStock]\n# Pumps\n\n## Rule 1100\n$74.00\nSold out\nNotify me\n\n## Rule 2000\n6 left in stock\n\n\
            | Rule 3700 | $120 | nicht vorrätig |\n\n## Rule 500\n$31";
        let all = ["Rule 1100", "Rule 2000", "rule 3700", "Rule 500", "Rule 5000"];
        let found = all.map(|product| stock(page, product, &all));
        assert_eq!(found, [Stock::No, Stock::Yes, Stock::No, Stock::Unknown, Stock::Unknown]);
        assert_eq!(stock("Not in stock. Add to cart", "", &[""]), Stock::No);
    }
}
