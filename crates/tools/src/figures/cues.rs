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
/// Bytes before a name that are searched.
const NEAR: usize = 120;

/// Whether a word, in small letters, is that of a role.
fn is_role(word: &str) -> bool {
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
        || IS.contains(&last) && (is_role(before) || words.any(is_role))
}
