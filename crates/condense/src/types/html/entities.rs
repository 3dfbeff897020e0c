//! Character references: `&amp;`, `&#8217;`, `&#x2019;`.
//!
//! Knows those that pages use; an unknown one stays unchanged, which loses nothing.

/// No reference is longer, in bytes.
const LONGEST: usize = 12;

/// The character that the reference at the beginning of `text` represents, and the reference's length in bytes.
pub(super) fn reference(text: &str) -> Option<(char, usize)> {
    let body = text.strip_prefix('&')?;
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'#';
    let name_end = body.bytes().take(LONGEST).take_while(in_name).count();
    let name = &body[..name_end];
    let closed = body[name_end..].starts_with(';');
    let c = match name.strip_prefix('#') {
        Some(number) => numeric(number)?,
        None if closed || matches!(name, "amp" | "lt" | "gt" | "quot" | "nbsp") => named(name)?,
        None => return None,
    };
    Some((c, 1 + name_end + usize::from(closed)))
}

fn numeric(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    let code = code.ok()?;
    // What Windows-1252 has at 128 to 159, as pages mean it.
    let code = match code {
        0x80..=0x9f => u32::from(WINDOWS_1252.get(code as usize - 0x80).copied()?),
        _ => code,
    };
    char::from_u32(code).filter(|c| !c.is_control() || c.is_whitespace())
}

const WINDOWS_1252: [char; 32] = [
    '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž', '\u{fffd}',
    '\u{fffd}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{fffd}', 'ž', 'Ÿ',
];

/// Sorted by name, upper case first.
const NAMED: [(&str, char); 122] = [
    ("AElig", 'Æ'),
    ("Aacute", 'Á'),
    ("Acirc", 'Â'),
    ("Agrave", 'À'),
    ("Aring", 'Å'),
    ("Atilde", 'Ã'),
    ("Auml", 'Ä'),
    ("Ccedil", 'Ç'),
    ("Eacute", 'É'),
    ("Ecirc", 'Ê'),
    ("Egrave", 'È'),
    ("Euml", 'Ë'),
    ("Iacute", 'Í'),
    ("Icirc", 'Î'),
    ("Igrave", 'Ì'),
    ("Iuml", 'Ï'),
    ("NewLine", '\n'),
    ("Ntilde", 'Ñ'),
    ("Oacute", 'Ó'),
    ("Ocirc", 'Ô'),
    ("Ograve", 'Ò'),
    ("Oslash", 'Ø'),
    ("Otilde", 'Õ'),
    ("Ouml", 'Ö'),
    ("Tab", '\t'),
    ("Uacute", 'Ú'),
    ("Ucirc", 'Û'),
    ("Ugrave", 'Ù'),
    ("Uuml", 'Ü'),
    ("Yacute", 'Ý'),
    ("aacute", 'á'),
    ("acirc", 'â'),
    ("acute", '´'),
    ("aelig", 'æ'),
    ("agrave", 'à'),
    ("amp", '&'),
    ("apos", '\''),
    ("aring", 'å'),
    ("asymp", '≈'),
    ("atilde", 'ã'),
    ("auml", 'ä'),
    ("bdquo", '„'),
    ("bull", '•'),
    ("ccedil", 'ç'),
    ("cent", '¢'),
    ("colon", ':'),
    ("commat", '@'),
    ("copy", '©'),
    ("darr", '↓'),
    ("deg", '°'),
    ("divide", '÷'),
    ("dollar", '$'),
    ("eacute", 'é'),
    ("ecirc", 'ê'),
    ("egrave", 'è'),
    ("emsp", '\u{2003}'),
    ("ensp", '\u{2002}'),
    ("euml", 'ë'),
    ("euro", '€'),
    ("frac12", '½'),
    ("frac14", '¼'),
    ("frac34", '¾'),
    ("ge", '≥'),
    ("gt", '>'),
    ("hellip", '…'),
    ("iacute", 'í'),
    ("icirc", 'î'),
    ("iexcl", '¡'),
    ("igrave", 'ì'),
    ("infin", '∞'),
    ("iquest", '¿'),
    ("iuml", 'ï'),
    ("laquo", '«'),
    ("larr", '←'),
    ("ldquo", '“'),
    ("le", '≤'),
    ("lpar", '('),
    ("lsaquo", '‹'),
    ("lsquo", '‘'),
    ("lt", '<'),
    ("mdash", '—'),
    ("micro", 'µ'),
    ("middot", '·'),
    ("minus", '−'),
    ("nbsp", '\u{a0}'),
    ("ndash", '–'),
    ("ne", '≠'),
    ("ntilde", 'ñ'),
    ("num", '#'),
    ("oacute", 'ó'),
    ("ocirc", 'ô'),
    ("ograve", 'ò'),
    ("ordf", 'ª'),
    ("ordm", 'º'),
    ("oslash", 'ø'),
    ("otilde", 'õ'),
    ("ouml", 'ö'),
    ("para", '¶'),
    ("percnt", '%'),
    ("plusmn", '±'),
    ("pound", '£'),
    ("quot", '"'),
    ("raquo", '»'),
    ("rarr", '→'),
    ("rdquo", '”'),
    ("reg", '®'),
    ("rpar", ')'),
    ("rsaquo", '›'),
    ("rsquo", '’'),
    ("sect", '§'),
    ("shy", '\u{ad}'),
    ("sup2", '²'),
    ("sup3", '³'),
    ("szlig", 'ß'),
    ("thinsp", '\u{2009}'),
    ("times", '×'),
    ("trade", '™'),
    ("uacute", 'ú'),
    ("ucirc", 'û'),
    ("ugrave", 'ù'),
    ("uuml", 'ü'),
    ("yen", '¥'),
];

fn named(name: &str) -> Option<char> {
    NAMED.binary_search_by(|(known, _)| known.cmp(&name)).ok().map(|at| NAMED[at].1)
}

/// `text` with its references resolved and every run of white space one blank.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for_each_char(text, |_, c| {
        if !c.is_whitespace() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    });
    out.truncate(out.trim_end().len());
    out
}

/// Calls `each` with every character that `text` represents and where in `text` it appears.
pub(super) fn for_each_char(text: &str, mut each: impl FnMut(std::ops::Range<usize>, char)) {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let (c, len) = match c {
            '&' => reference(&text[at..]).unwrap_or((c, 1)),
            _ => (c, c.len_utf8()),
        };
        each(at..at + len, c);
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        assert!(NAMED.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn references_are_resolved_and_what_is_none_stays() {
        for (text, expected) in [
            ("Q&amp;A &lt;b&gt;", "Q&A <b>"),
            ("it&#8217;s &#x2014; &#146;so", "it’s — ’so"),
            ("a&nbsp;\n b", "a b"),
            ("R&D, AT&T; &unknown; &", "R&D, AT&T; &unknown; &"),
            ("&#0; &#xFFFFFFFF; &#55555;", "&#0; &#xFFFFFFFF; &#55555;"),
            ("a&ampb &copy &amp", "a&ampb &copy &"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
}
