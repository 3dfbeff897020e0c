//! Whether a short text reads as a request: a question, or a sentence that begins with an imperative, in English and
//! in German. By rule, the same each time. Knows only text, not where it comes from.

use crate::ask::sentences::sentences;

/// Words of a request that stands next to what is pasted.
const WORDS: usize = 60;
/// Sentences of which any may ask; of more, the first one does.
const SENTENCES: usize = 3;
/// What may stand before an imperative.
const SOFTENERS: [&str; 22] = [
    "please", "kindly", "just", "simply", "now", "then", "and", "also", "so", "first", "finally", "ok",
    "thanks", "bitte", "nun", "jetzt", "dann", "und", "auch", "zuerst", "danke", "mal",
];
/// Imperatives that ask for an answer or say how it shall be. Without those that a mail or a page uses for its own
/// ends, such as "send", "confirm", "visit" or "ignore".
const IMPERATIVES: &[&str] = &[
    "add",
    "analyse",
    "analyze",
    "answer",
    "assess",
    "avoid",
    "be",
    "calculate",
    "change",
    "check",
    "choose",
    "cite",
    "classify",
    "collect",
    "compare",
    "complete",
    "compute",
    "condense",
    "continue",
    "convert",
    "correct",
    "count",
    "create",
    "decide",
    "describe",
    "don't",
    "dont",
    "draft",
    "estimate",
    "evaluate",
    "exclude",
    "explain",
    "extract",
    "find",
    "fix",
    "focus",
    "format",
    "generate",
    "give",
    "group",
    "help",
    "highlight",
    "identify",
    "improve",
    "include",
    "keep",
    "leave",
    "limit",
    "list",
    "make",
    "mention",
    "merge",
    "name",
    "never",
    "outline",
    "phrase",
    "pick",
    "proofread",
    "propose",
    "quote",
    "rank",
    "rate",
    "refactor",
    "remove",
    "rename",
    "rephrase",
    "replace",
    "reply",
    "respond",
    "return",
    "review",
    "rewrite",
    "say",
    "shorten",
    "show",
    "simplify",
    "sort",
    "split",
    "suggest",
    "sum",
    "summarise",
    "summarize",
    "tell",
    "tldr",
    "transform",
    "translate",
    "turn",
    "update",
    "use",
    "verify",
    "write",
];
/// The same in German, without their endings.
const STEMS: &[&str] = &[
    "achte",
    "analysier",
    "antwort",
    "beacht",
    "beantwort",
    "begründ",
    "behalt",
    "benutz",
    "berechn",
    "beschreib",
    "bewert",
    "entwerf",
    "entwirf",
    "ergänz",
    "erklär",
    "ersetz",
    "erstell",
    "erwähn",
    "extrahier",
    "fass",
    "find",
    "formulier",
    "geb",
    "gib",
    "gliedr",
    "halt",
    "helf",
    "hilf",
    "korrigier",
    "kürz",
    "lass",
    "liest",
    "list",
    "mach",
    "nenn",
    "nutz",
    "nimm",
    "ordn",
    "prüf",
    "sag",
    "schlag",
    "schreib",
    "sortier",
    "stell",
    "streich",
    "such",
    "übersetz",
    "überarbeit",
    "verbesser",
    "vereinfach",
    "vergleich",
    "vermeid",
    "verwend",
    "wandl",
    "wandel",
    "zähl",
    "zeig",
    "zitier",
];
/// Those of them that are English words, too: German is a sentence with one of [`GERMAN`], or an umlaut.
const ENGLISH_STEMS: [&str; 7] = ["such", "sage", "mach", "halt", "lass", "find", "list"];
const GERMAN: [&str; 40] = [
    "der", "die", "das", "dem", "ein", "eine", "einen", "einem", "mir", "mich", "dich", "uns", "es", "ihm",
    "ihr", "sie", "alle", "alles", "nicht", "bitte", "nur", "auf", "aus", "zu", "daraus", "davon", "wer",
    "wie", "wo", "kurz", "weiter", "kein", "keine", "dies", "diese", "diesen", "dieses", "und", "mit", "von",
];
/// Imperatives that may be the subject of a sentence, or the first part of one.
const NOUNS: [&str; 26] = [
    "answer", "change", "count", "draft", "estimate", "find", "fix", "focus", "format", "group", "help",
    "limit", "list", "name", "pick", "quote", "rank", "rate", "return", "review", "show", "split", "sum",
    "turn", "update", "use",
];
/// Verbs that follow a subject.
const FINITE: [&str; 30] = [
    "is", "are", "was", "were", "isn't", "aren't", "wasn't", "weren't", "has", "had", "does", "did", "can",
    "could", "will", "would", "must", "should", "apply", "applies", "applied", "came", "comes", "went",
    "goes", "became", "becomes", "begins", "began", "arrived",
];
/// How the object of an imperative begins that is a sentence: `show what is open`.
const CLAUSES: [&str; 16] = [
    "what", "who", "which", "when", "where", "why", "how", "that", "if", "whether", "it", "this", "these",
    "they", "there", "all",
];
/// How a person asks without an imperative; only next to what is clearly no words of theirs.
const WISHES: [&str; 24] = [
    "i need ",
    "i want ",
    "i'd like ",
    "i would like ",
    "i only need ",
    "we need ",
    "ich brauche ",
    "ich möchte ",
    "ich will ",
    "ich hätte gern",
    "wir brauchen ",
    "only ",
    "no ",
    "nothing but ",
    "nur ",
    "kein ",
    "keine ",
    "what ",
    "who ",
    "why ",
    "how ",
    "was ",
    "wer ",
    "wie ",
];
/// What mails say in their last paragraphs, and pages in their footers.
const FOOTERS: [&str; 9] = [
    "before printing",
    "before you print",
    "an die umwelt",
    "unsubscribe",
    "intended recipient",
    "notify the sender",
    "not reply to this",
    "nicht auf diese",
    "find attached",
];
/// How mails end, at the beginning of a line.
const CLOSINGS: [&str; 32] = [
    "best regards",
    "kind regards",
    "warm regards",
    "regards",
    "best wishes",
    "all the best",
    "best,",
    "sincerely",
    "yours ",
    "cheers",
    "many thanks",
    "thanks",
    "thank you",
    "mit freundlichen",
    "mit besten",
    "viele grüße",
    "liebe grüße",
    "beste grüße",
    "herzliche grüße",
    "mfg",
    "cordialement",
    "bien cordialement",
    "bien à vous",
    "un saludo",
    "saludos",
    "atentamente",
    "cordiali saluti",
    "distinti saluti",
    "cordialmente",
    "atenciosamente",
    "met vriendelijke groet",
    "hilsen",
];

/// Whether a paragraph reads as a request. Set `is_apart` where what is around it is clearly of another kind, so that
/// less is needed.
pub(super) fn reads_as_request(text: &str, is_apart: bool) -> bool {
    if text.split_whitespace().count() > WORDS || is_of_a_mail(text) {
        return false;
    }
    let all = sentences(text);
    let tried = if is_apart || all.len() <= SENTENCES { all.len() } else { 1 };
    all.into_iter().take(tried).any(|sentence| {
        let sentence = &text[sentence];
        asks(sentence) || is_imperative(sentence) || is_apart && is_wish(sentence)
    })
}

/// Whether a line ends a mail.
pub(super) fn is_closing(line: &str) -> bool {
    let lower = line.trim().to_lowercase();
    lower.split_whitespace().count() <= 4 && CLOSINGS.iter().any(|start| lower.starts_with(start))
}

/// Whether a sentence ends in a question mark.
pub(super) fn asks(sentence: &str) -> bool {
    let is_mark = |char: char| matches!(char, '?' | '？');
    sentence.trim_end_matches(|char: char| !char.is_alphanumeric() && !is_mark(char)).ends_with(is_mark)
}

fn is_of_a_mail(text: &str) -> bool {
    let lower = text.to_lowercase();
    // After a closing comes a name; a last line that thanks may be anybody's.
    let mut lines = text.lines();
    lines.next_back();
    lines.any(is_closing)
        || lower.starts_with("p.s.")
        || lower.starts_with("ps:")
        || FOOTERS.iter().any(|footer| lower.contains(footer))
}

fn is_wish(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    WISHES.iter().any(|start| lower.starts_with(start))
}

fn is_imperative(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let is_edge = |char: char| !char.is_alphanumeric();
    let words: Vec<&str> = lower.split_whitespace().map(|word| word.trim_start_matches(is_edge)).collect();
    // A line of a program may begin with such a word, too: `return x`, `list = []`.
    let is_typed_small = sentence.starts_with(char::is_lowercase);
    if is_typed_small && (words.len() < 3 || sentence.contains(['=', '{', '}', ';', '[', '\\', '$'])) {
        return false;
    }
    let polite = words.iter().take_while(|word| SOFTENERS.contains(&word.trim_end_matches(is_edge))).count();
    let Some(first) = words.get(polite) else { return false };
    let ends_politely =
        words.last().is_some_and(|last| matches!(last.trim_end_matches(is_edge), "please" | "bitte"));
    if ends_politely {
        return true;
    }
    let verb = first.trim_end_matches(['.', ',', '!', '…']);
    let next = words.get(polite + 1).map_or("", |word| word.trim_end_matches(is_edge));
    match (verb, next) {
        ("can" | "could" | "would" | "will", "you") | ("do", "not") => true,
        ("kannst" | "könntest" | "würdest" | "können" | "könnten" | "würden", "du" | "sie") => true,
        // What pages and mails say at their end.
        ("find", "out" | "us" | "more" | "attached" | "enclosed") | ("keep" | "be", "in" | "well") => false,
        _ if ENGLISH_STEMS.contains(&verb) && is_german_sentence(&words) => true,
        _ if NOUNS.contains(&verb) && is_subject(&words[polite + 1..]) => false,
        _ => {
            IMPERATIVES.contains(&verb) || !ENGLISH_STEMS.contains(&verb) && is_german(verb, next, polite > 0)
        }
    }
}

fn bare(word: &str) -> &str {
    word.trim_end_matches(|char: char| !char.is_alphanumeric())
}

fn is_german_sentence(words: &[&str]) -> bool {
    words.iter().any(|word| GERMAN.contains(&bare(word)) || word.contains(['ä', 'ö', 'ü', 'ß']))
}

/// Whether a verb follows a noun, or a noun and another one, so that they are no imperative.
fn is_subject(rest: &[&str]) -> bool {
    let is_finite = |word: Option<&&str>| word.is_some_and(|word| FINITE.contains(&bare(word)));
    let begins_clause = rest.first().is_some_and(|word| CLAUSES.contains(&bare(word)));
    is_finite(rest.first()) || !begins_clause && is_finite(rest.get(1))
}

/// A German imperative: `schreib`, `schreibe`, and `schreiben` where it is one.
fn is_german(verb: &str, next: &str, is_polite: bool) -> bool {
    STEMS.iter().any(|stem| match verb.strip_prefix(stem) {
        Some("" | "e") => true,
        Some("en" | "n") => is_polite || matches!(next, "sie" | "wir"),
        _ => false,
    })
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
