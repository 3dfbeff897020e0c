//! Addresses of sites in an answer.

/// Top-level domains that make a word an address; others are rather parts of names of files or of code.
const TOP_LEVEL: [&str; 16] = [
    "com", "org", "net", "edu", "gov", "dev", "shop", "example", "eu", "uk", "ca", "de", "ch", "fr", "nl",
    "jp",
];

/// Addresses of sites without a scheme, such as `shop.example`, with their places. What stands between backticks is code.
pub(super) fn sites(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut at = 0;
    let pieces = text.split('`').enumerate().map(move |(number, piece)| {
        let start = at;
        at += piece.len() + 1;
        (start, if number % 2 == 0 { piece } else { "" })
    });
    let words = pieces.flat_map(|(start, piece)| {
        let mut at = start;
        piece.split_inclusive(char::is_whitespace).map(move |word| {
            let start = at;
            at += word.len();
            (start, word.trim_matches(|char: char| !char.is_alphanumeric()))
        })
    });
    let is_site = |word: &str| {
        let host = word.split('/').next().unwrap_or_default();
        let labels: Vec<&str> = host.split('.').collect();
        let is_label = |label: &&str| {
            !label.is_empty() && label.chars().all(|char| char.is_ascii_alphanumeric() || char == '-')
        };
        labels.len() > 1
            && labels.iter().all(is_label)
            && labels.last().is_some_and(|last| TOP_LEVEL.contains(&last.to_ascii_lowercase().as_str()))
    };
    words.filter(move |(_, word)| is_site(word)).map(|(start, word)| (start, word.to_owned()))
}
