//! What currencies are written as: their signs, codes and names. Plain functions of texts.

/// What a currency is written as, before or after a number; one line for each currency. Codes in capitals are words
/// otherwise.
const CURRENCIES: [&[&str]; 40] = [
    &["$", "us$", "usd", "dollar", "dollars", "dólar", "dólares", "dollaro", "dollari"],
    &["€", "eur", "euro", "euros"],
    &["£", "gbp", "pound", "pounds"],
    &["¥", "￥", "円", "jpy", "yen"],
    &["₹", "inr", "rs", "rupee", "rupees"],
    &["chf", "fr", "sfr", "franken", "franc", "francs"],
    &["cny", "rmb", "yuan"],
    &["c$", "ca$", "cad"],
    &["a$", "au$", "aud"],
    &[
        "kr",
        "krone",
        "kroner",
        "krona",
        "kronor",
        "kronen",
        "crown",
        "crowns",
        "couronne",
        "couronnes",
        "corona",
        "coronas",
        "corone",
        "coroa",
        "coroas",
    ],
    &["SEK"],
    &["NOK"],
    &["DKK"],
    &["ISK"],
    &["kč", "CZK", "koruna", "koruny", "korun"],
    &["zł", "PLN", "zloty", "zlotys", "złoty", "złote", "złotych"],
    &["Ft", "HUF", "forint", "forints"],
    &["lei", "RON"],
    &["лв", "BGN"],
    &["₽", "RUB", "ruble", "rubles", "rouble", "roubles", "rubel"],
    &["₴", "UAH", "hryvnia"],
    &["₺", "TRY", "lira"],
    &["₪", "ILS", "shekel", "shekels"],
    &["AED", "dirham", "dirhams"],
    &["SAR", "riyal", "riyals"],
    &["r$", "BRL", "reais"],
    &["peso", "pesos"],
    &["mx$", "MXN"],
    &["ARS"],
    &["CLP"],
    &["₩", "KRW"],
    &["nt$", "TWD"],
    &["hk$", "HKD"],
    &["s$", "SGD"],
    &["nz$", "NZD"],
    &["฿", "THB", "baht"],
    &["rp", "IDR", "rupiah"],
    &["₫", "VND"],
    &["ZAR", "rand"],
    &["₿", "BTC", "bitcoin", "bitcoins"],
];
/// Stands only after a number.
pub(super) const YEN: char = '円';
/// Names of several currencies, and what those are written as.
const FAMILIES: [(&str, &[&str]); 2] =
    [("kr", &["SEK", "NOK", "DKK", "ISK", "CZK"]), ("peso", &["MXN", "ARS", "CLP"])];
/// Names of currencies of two letters; others next to a number are units or the like.
const SHORT_NAMES: [&str; 4] = ["kr", "rs", "Ft", "rp"];
/// Whether two names may mean the same currency.
pub(super) fn may_be_same(one: usize, other: usize) -> bool {
    let is_of = |(family, members): &(&str, &[&str]), one, other| {
        named(family) == Some(one) && members.iter().any(|member| named(member) == Some(other))
    };
    one == other || FAMILIES.iter().any(|family| is_of(family, one, other) || is_of(family, other, one))
}

/// Whether a word is the name of a currency.
pub(super) fn is_currency(word: &str) -> bool {
    named(word).is_some()
}

pub(super) fn named(word: &str) -> Option<usize> {
    if word.is_empty() {
        return None;
    }
    let lower = word.to_lowercase();
    CURRENCIES.iter().position(|written| written.contains(&word) || written.contains(&lower.as_str()))
}

/// Whether a word is long enough to be the name of a currency next to a number.
pub(super) fn is_name(word: &str) -> bool {
    word.len() >= 3 || SHORT_NAMES.contains(&word) || SHORT_NAMES.contains(&word.to_lowercase().as_str())
}

pub(super) const fn is_sign(char: char) -> bool {
    matches!(char, '$' | '€' | '£' | '¥' | '￥' | '₹' | '₽' | '₴' | '₺' | '₪' | '₩' | '฿' | '₫' | '₿')
}
