//! What a page counts in its text: its pages and its comments. Knows English words only.

/// The number of a page and how many there are, of a text in small letters: `page 1 of 3`, `page 1/3`.
pub fn page_of(text: &str) -> Option<(u64, u64)> {
    let (_, after) = text.split_once("page ")?;
    let mut numbers = after.splitn(2, |char: char| !char.is_ascii_digit());
    let current: u64 = numbers.next()?.parse().ok()?;
    let rest = numbers.next()?.trim_start();
    let rest = rest.strip_prefix("of ").unwrap_or_else(|| rest.trim_start_matches('/')).trim_start();
    let total: u64 = rest.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()?;
    let between = after[after.find(|char: char| !char.is_ascii_digit())?..].trim_start();
    let joined = between.starts_with("of ") || between.starts_with('/');
    (joined && current >= 1 && current <= total).then_some((current, total))
}

/// The number of comments that a text in small letters states: `8 comments`, `1,204 replies`.
pub fn comments_in(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let counted = matches!(
            words.peek().map(|next| next.trim_matches(|char: char| !char.is_alphanumeric())),
            Some("comment" | "comments" | "reply" | "replies")
        );
        if counted {
            let digits: String = word.chars().filter(|char| !matches!(char, ',' | '.' | '(')).collect();
            return digits.parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_prose_is_not() {
        assert_eq!(page_of("page 2 of 14"), Some((2, 14)));
        assert_eq!(page_of("you are on page 1/3."), Some((1, 3)));
        for none in ["page of 3", "page 4 of 3", "page 1, 3 of them", "web page 12", "page "] {
            assert_eq!(page_of(none), None, "{none}");
        }
        assert_eq!(comments_in("(1,204 comments)"), Some(1204));
        assert_eq!(comments_in("no comments"), None);
    }
}
