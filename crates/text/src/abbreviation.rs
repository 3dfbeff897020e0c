//! Full stops that do not end a sentence: in abbreviations, initials and ordinals, in English and German.
//!
//! Knows the words on both sides of a full stop; does not know where sentences begin.

use crate::months;

/// Abbreviations whose full stop rarely ends a sentence.
const KNOWN: [&str; 63] = [
    "Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Sr", "Jr", "vs", "etc", "e.g", "i.e", "cf", "Fig", "No", "Vol",
    "pp", "Inc", "Ltd", "Co", "Capt", "Gen", "Col", "Lt", "Sgt", "Rev", "Gov", "Sen", "Rep", "Sec", "Ch",
    "Eq", "approx", "al", "ca", "Nr", "Abs", "Art", "Bd", "Kap", "Str", "Tel", "Hr", "Fr", "Dipl", "Ing",
    "Mag", "bzw", "vgl", "inkl", "exkl", "evtl", "ggf", "zzgl", "bspw", "d.h", "z.B", "u.a", "o.ä", "i.d.R",
    "u.U", "s.o", "s.u",
];
/// First letters of German abbreviations written with spaces: `z. B.`, `u. U.`, `v. Chr.`
const SPACED: [&str; 6] = ["z", "u", "v", "n", "d", "o"];
/// Words that make the following number an ordinal in German: `im 19. Jahrhundert`, `der 2. Band`.
const BEFORE_ORDINALS: [&str; 26] = [
    "der", "den", "dem", "des", "das", "die", "im", "vom", "zum", "zur", "beim", "ein", "eine", "einen",
    "einem", "einer", "eines", "jeder", "jeden", "jedem", "jedes", "seit", "bis", "ab", "ihr", "sein",
];
/// Maximum digits of an ordinal; four digits are a year, which can end a sentence.
const ORDINAL_DIGITS: usize = 3;

/// Whether the full stop between `before` and `after` belongs to the last word of `before`, so that the sentence
/// continues. `after` starts just after the full stop, white space included.
pub fn is_abbreviation(before: &str, after: &str) -> bool {
    let word = last_word(before);
    if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
        let before = before[..before.len() - word.len()].trim_end_matches([' ', '\t']);
        return is_list_number(before) || word.len() <= ORDINAL_DIGITS && is_ordinal(before, after);
    }
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    initial || KNOWN.contains(&word) || SPACED.contains(&word) && after.starts_with([' ', '\u{a0}'])
}

/// Scans backwards from the word, so that a long indentation is not read again for every full stop.
fn is_list_number(before: &str) -> bool {
    before.trim_end().is_empty()
}

/// Whether a number with a full stop is an ordinal: a day before a month (three letters of it are enough), or a number
/// after a German article.
fn is_ordinal(before: &str, after: &str) -> bool {
    let next: String = after.trim_start().chars().take_while(|c| c.is_alphanumeric()).collect();
    let next = next.to_lowercase();
    let short = next.chars().count() == 3;
    let mut months = months::ENGLISH.iter().chain(&months::GERMAN);
    let is_month = next == "sept" || months.any(|month| *month == next || short && month.starts_with(&next));
    // 14. 3. 2025
    let is_date = next.bytes().all(|byte| byte.is_ascii_digit())
        && (1..=2).contains(&next.len())
        && after.trim_start()[next.len()..].starts_with('.');
    let article = last_word(before).to_lowercase();
    is_month || is_date || BEFORE_ORDINALS.contains(&article.as_str())
}

fn last_word(text: &str) -> &str {
    let ends = |c: char| c.is_whitespace() || matches!(c, '(' | '"' | '\'' | '-' | '„' | '“' | '»' | '«');
    text.rsplit(ends).next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_and_ordinals_go_on_and_numbers_end_sentences() {
        for text in [
            "auf den 14.| März",
            "am 3.| Oktober 1990",
            "im 19.| Jahrhundert",
            "14.| 3. 2025",
            "z.| B. Milch",
            "z. B.| Milch",
            "Dr.| Smith",
            "(e.g.| This",
            "vgl.| Kapitel",
            "J.| Smith",
            "  1.| One",
        ] {
            let (before, after) = text.split_once(".|").unwrap();
            assert!(is_abbreviation(before, after), "{text}");
        }
        for text in
            ["It was 2019.| The", "He paid 14.| The", "plan b.| Then", "It was 14.| Marvellous!", "end.| New"]
        {
            let (before, after) = text.split_once(".|").unwrap();
            assert!(!is_abbreviation(before, after), "{text}");
        }
    }
}
