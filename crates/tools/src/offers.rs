//! What changes within hours, whatever anybody says of it: prices and stock (R1-3.68, R1-4.8). A plain function of texts.

use crate::figures;

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
}
