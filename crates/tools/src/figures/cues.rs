//! What before a name in an answer says that it is of a person or a company: a role and a verb, as in `the owner is`, how
//! something came about, as in `made by`, a role by itself, and labels such as `Contact:`. Plain functions of texts.

use std::ops::Range;

use super::strangers::is_noun;
use super::window;

/// What begins the words of roles and of labels that name somebody.
const ROLES: [&str; 42] = [
    "maintain",
    "conseill",
    "vendeu",
    "auteur",
    "contact",
    "kontakt",
    "ansprech",
    "owner",
    "inhaber",
    "eigentümer",
    "propriét",
    "propietari",
    "author",
    "autor",
    "manager",
    "gerente",
    "leiter",
    "leitung",
    "geschäftsführ",
    "vorstand",
    "vorsitzend",
    "founder",
    "gründer",
    "fondat",
    "fundador",
    "director",
    "directeur",
    "directrice",
    "direktor",
    "president",
    "präsident",
    "chairman",
    "chairwoman",
    "chairperson",
    "boss",
    "ceo",
    "cfo",
    "cto",
    "editor",
    "seller",
    "verkäufer",
    "designer",
];
/// Verbs between a role and a name.
const IS: [&str; 13] =
    ["is", "was", "are", "were", "named", "called", "ist", "war", "heißt", "est", "es", "era", "è"];
/// Words before a name of whom something is by, after one of [`WORKS`] or [`MADE`]; `von` needs none.
const BY: [&str; 3] = ["by", "par", "por"];
/// What begins words for what people and companies do, and more of them.
const WORKS: [&str; 42] = [
    "acquir", "approv", "author", "compos", "creat", "design", "develop", "direct", "distrib", "edit",
    "found", "head", "host", "invent", "launch", "maintain", "manag", "manufac", "operat", "organi", "own",
    "present", "produc", "publish", "recomm", "review", "sign", "suppl", "conç", "cré", "dirig", "écri",
    "fabri", "fond", "publi", "vend", "diseñ", "escri", "fund", "chair", "employ", "report",
];
const MADE: [&str; 15] = [
    "made", "sold", "run", "led", "written", "built", "bought", "held", "won", "drawn", "taught", "is",
    "was", "are", "were",
];
/// Words for nobody, for whom anybody may ask, and for how anybody pays or writes.
const ANYBODY: [&str; 28] = [
    "kein",
    "siehe",
    "see",
    "keine",
    "keinen",
    "nicht",
    "no",
    "not",
    "none",
    "unbekannt",
    "unknown",
    "available",
    "customer",
    "service",
    "support",
    "team",
    "staff",
    "sales",
    "marketing",
    "resources",
    "department",
    "office",
    "desk",
    "card",
    "transfer",
    "mail",
    "post",
    "phone",
];
/// English articles and the like, and those of other languages, some of which are of genitives.
const ARTICLES: [&str; 10] = ["the", "a", "an", "its", "our", "your", "their", "his", "her", "my"];
const OTHER_ARTICLES: [&str; 14] =
    ["der", "die", "das", "des", "den", "dem", "le", "la", "les", "l", "el", "los", "il", "lo"];
/// What ends the group of a noun, and at the beginning of a clause leads one that it is not about.
const PREPOSITIONS: [&str; 48] = [
    "of", "to", "for", "in", "on", "at", "from", "with", "by", "about", "behind", "under", "since", "as",
    "who", "that", "which", "von", "vom", "für", "bei", "im", "am", "aus", "zu", "zum", "zur", "mit", "seit",
    "de", "du", "del", "della", "di", "do", "da", "pour", "para", "per", "en", "au", "dans", "chez", "qui",
    "que", "van", "voor", "bij",
];
/// Bytes before a name that are searched.
const NEAR: usize = 120;

/// Whether a word, in small letters, is that of a role.
pub(super) fn is_role(word: &str) -> bool {
    ROLES.iter().any(|role| word.starts_with(role))
}

/// Whether a label says that somebody is named.
pub(super) fn says_who(label: &str) -> bool {
    label.split(|char: char| !char.is_alphanumeric()).any(|word| is_role(&word.to_lowercase()))
}

/// Whether a word names nobody in particular.
pub(super) fn is_anybody(word: &str) -> bool {
    ANYBODY.contains(&word.to_lowercase().as_str())
}

/// Whether the capitalised words at a place of a text are a person or a company, and those of them that are: without the
/// role before them.
pub(super) fn cued<'r, 't>(text: &str, at: usize, run: &'r [&'t str]) -> (bool, &'r [&'t str]) {
    if run.iter().any(|word| is_anybody(word)) {
        return (false, run);
    }
    let roles = run.iter().take_while(|word| is_role(&word.to_lowercase())).count();
    if roles > 0 && run.len() > roles + 1 {
        return (true, &run[roles..]);
    }
    (follows_cue(text, at, run), run)
}

fn follows_cue(text: &str, at: usize, run: &[&str]) -> bool {
    let Range { start, .. } = window(text, &(at..at), NEAR);
    let clause = text[start..at].rsplit(['\n', ';', '!', '?', '|']).next().unwrap_or_default();
    let clause = clause.rsplit(". ").next().unwrap_or_default().to_lowercase();
    let mut words = clause.split(|char: char| !char.is_alphabetic()).filter(|word| !word.is_empty()).rev();
    let (last, before) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_work = || WORKS.iter().any(|work| before.starts_with(work)) || MADE.contains(&before);
    is_role(last)
        // `von Norwegischen Gründern`
        || last == "von" && !run.first().is_some_and(|first| is_noun(first))
        || last == "of" && (is_role(before) || before == "head")
        || BY.contains(&last) && is_work()
        || IS.contains(&last) && has_role_as_subject(&clause)
}

/// Whether a clause that ends with a verb is about a role: the subject of its first part is one, or of the last after a comma
/// or `and`.
fn has_role_as_subject(clause: &str) -> bool {
    const AND: [&str; 5] = ["and", "und", "et", "y", "e"];
    let clause = clause.replace(',', " and ");
    let words: Vec<&str> =
        clause.split(|char: char| !char.is_alphabetic()).filter(|word| !word.is_empty()).collect();
    let end = words.iter().rposition(|word| !IS.contains(word)).map_or(0, |at| at + 1);
    let start = words[..end].iter().rposition(|word| IS.contains(word)).map_or(0, |at| at + 1);
    let mut parts = words[start..end].split(|word| AND.contains(word));
    [parts.next(), parts.next_back()].into_iter().flatten().filter_map(subject).any(is_role)
}

/// The noun that the first words of a clause are about: the last before a preposition or another article. An English article
/// begins it anew, as in `in Oslo the boss`.
fn subject<'t>(words: &[&'t str]) -> Option<&'t str> {
    let (mut noun, mut is_led) = (None, false);
    for word in words {
        match noun {
            Some(_) if ARTICLES.contains(word) => (noun, is_led) = (None, false),
            Some(_) if OTHER_ARTICLES.contains(word) || !is_led && PREPOSITIONS.contains(word) => break,
            None if PREPOSITIONS.contains(word) => is_led = true,
            None if ARTICLES.contains(word) || OTHER_ARTICLES.contains(word) => {}
            _ => noun = Some(*word),
        }
    }
    noun.filter(|_| !is_led)
}
