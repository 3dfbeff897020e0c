//! The paragraphs of a query and what they are by their form: quotations, mails, records of a program, code, listings.
//! By rule, the same each time. Does not decide whose a paragraph is.

use std::ops::Range;

use larder_condense::structure_of;

use super::requests::{is_closing, reads_as_request};

/// Lines from which a paragraph may be a listing.
const LISTING: usize = 4;
/// Bytes from which a paragraph of fewer lines may be data, such as JSON in one line.
const LONG: usize = 400;
/// Lines of a list from which on nobody has typed it: shorter ones may be what the user asks for.
const LIST: usize = 25;
/// Names of mail headers, in the languages of the common mail programs.
const HEADERS: [&str; 38] = [
    "from",
    "to",
    "cc",
    "sent",
    "date",
    "subject",
    "reply-to",
    "von",
    "an",
    "gesendet",
    "datum",
    "betreff",
    "de",
    "objet",
    "envoyé",
    "envoyé le",
    "envoye",
    "à",
    "para",
    "enviado",
    "enviado el",
    "enviado em",
    "enviada em",
    "enviada",
    "asunto",
    "assunto",
    "fecha",
    "data",
    "da",
    "inviato",
    "oggetto",
    "per",
    "van",
    "aan",
    "verzonden",
    "onderwerp",
    "ämne",
    "skickat",
];
/// How lines of programs begin that end like sentences.
const KEYWORDS: [&str; 14] = [
    "import ", "from ", "def ", "class ", "fn ", "use ", "let ", "const ", "var ", "#include", "package ",
    "@", "//", "# ",
];
/// How a mail greets, in lower case.
const SALUTATIONS: [&str; 28] = [
    "dear ",
    "hi ",
    "hello ",
    "hey ",
    "good morning",
    "sehr geehrte",
    "liebe ",
    "lieber ",
    "hallo ",
    "guten tag",
    "guten morgen",
    "moin ",
    "bonjour",
    "bonsoir",
    "cher ",
    "chère ",
    "madame,",
    "monsieur,",
    "hola",
    "estimado",
    "estimada",
    "querido ",
    "querida ",
    "buenos días",
    "caro ",
    "cara ",
    "gentile ",
    "olá",
];

#[derive(Debug)]
pub(super) struct Paragraph {
    pub(super) bytes: Range<usize>,
    pub(super) is_bulk: bool,
    /// The user's own although it may be bulk.
    pub(super) is_own: bool,
}

/// The paragraphs of a text; a fenced block is one.
pub(super) fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let (mut at, mut fence, mut is_new) = (0, None, true);
    for line in text.split_inclusive('\n') {
        let bytes = at..at + line.trim_end().len();
        at += line.len();
        let mark = fence_of(line)
            .filter(|mark| fence.is_some() || text[at..].lines().any(|line| fence_of(line) == Some(mark)));
        let is_inside = fence.is_some();
        if line.trim().is_empty() && !is_inside {
            is_new = true;
            continue;
        }
        match found.last_mut().filter(|_| is_inside || !is_new && mark.is_none()) {
            Some(last) => last.bytes.end = bytes.end.max(last.bytes.end),
            None => found.push(Paragraph { bytes, is_bulk: mark.is_some(), is_own: false }),
        }
        if is_inside && mark == fence {
            (fence, is_new) = (None, true);
        } else if !is_inside {
            (fence, is_new) = (mark, false);
        }
    }
    split_lines(text, &mut found);
    for paragraph in &mut found {
        paragraph.is_bulk |= is_bulk(&text[paragraph.bytes.clone()]);
    }
    found
}

/// Divides the first line from the first paragraph, and the last one from the last, where it is a request and what is
/// next to it is none.
fn split_lines(text: &str, paragraphs: &mut Vec<Paragraph>) {
    let is_other = |text: &str| is_bulk(text) || is_code(text);
    let is_data = |line: Option<&str>| line.is_some_and(is_bulk);
    let new = |bytes| Paragraph { bytes, is_bulk: false, is_own: false };
    if let Some(Paragraph { bytes, is_bulk: false, .. }) = paragraphs.last() {
        let bytes = bytes.clone();
        if let Some((rest, line)) = text[bytes.clone()].rsplit_once('\n')
            && line.starts_with(char::is_alphabetic)
            && reads_as_request(line, false)
            && (is_other(rest)
                || is_data(rest.lines().last())
                || rest.lines().any(is_closing)
                || rest.lines().last().is_some_and(is_rule))
        {
            let end = bytes.start + rest.trim_end().len();
            paragraphs.pop();
            paragraphs.extend([new(bytes.start..end), new(bytes.end - line.len()..bytes.end)]);
        }
    }
    if let Some(Paragraph { bytes, is_bulk: false, .. }) = paragraphs.first() {
        let bytes = bytes.clone();
        let whole = &text[bytes.clone()];
        let is_first = |line: &str, rest: &str| {
            let (line, next) = (line.trim_end(), rest.lines().next());
            let is_request = reads_as_request(line.trim_end_matches(':'), false)
                && !next.is_some_and(|next| reads_as_request(next, false));
            line.starts_with(char::is_alphabetic)
                && (is_request || line.ends_with(':') && !is_other(whole))
                && (is_other(rest) || is_data(next))
        };
        if let Some((line, rest)) = whole.split_once('\n')
            && is_first(line, rest)
        {
            let end = bytes.start + line.trim_end().len();
            paragraphs.splice(0..1, [new(bytes.start..end), new(bytes.end - rest.len()..bytes.end)]);
        }
    }
}

pub(super) fn fence_of(line: &str) -> Option<&'static str> {
    // What ends in the line that it begins in is no fence, such as the comment of a function.
    let is_fence =
        |mark: &&str| line.trim_start().strip_prefix(mark).is_some_and(|rest| !rest.contains(mark));
    ["```", "~~~", "\"\"\""].into_iter().find(is_fence)
}

/// Whether most lines of a text are lines of a program.
pub(super) fn is_code(text: &str) -> bool {
    let is_line = |line: &&str| {
        let end = line.trim_end();
        line.starts_with(['\t', '}'])
            || line.starts_with("  ")
            || end.ends_with(['{', '}', ';', '(', ')', '[', ']'])
            || end.contains(" = ")
            || end.contains("()")
            || KEYWORDS.iter().any(|word| line.starts_with(word))
    };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.len() >= LISTING && lines.iter().filter(|line| is_line(line)).count() * 2 > lines.len()
}

/// Whether a paragraph by itself is no prose of the user: quoted lines, headers of a mail, records of a program, or a
/// listing.
pub(super) fn is_bulk(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let most = |test: fn(&str) -> bool| lines.iter().filter(|line| test(line)).count() * 2 > lines.len();
    let is_entry = |line: &str| {
        let line = line.trim();
        let columns =
            line.contains("  ") || line.contains('\t') || line.contains(" | ") || line.contains(';');
        columns || line.starts_with(['-', '*', '+', '•']) || line.contains(|char: char| char.is_ascii_digit())
    };
    most(|line| line.starts_with('>'))
        || has_headers(text)
        || (lines.len() >= LISTING || text.len() >= LONG) && structure_of(text).is_some()
        || lines.len() >= LIST && most(is_entry)
}

pub(super) fn has_headers(text: &str) -> bool {
    let is_header = |line: &&str| {
        let name = line.trim_start_matches(['*', '>', ' ']).split_once(':').map(|(name, _)| name);
        name.is_some_and(|name| HEADERS.contains(&name.trim_matches('*').trim().to_lowercase().as_str()))
    };
    text.lines().filter(is_header).count() >= 2
}

/// A line of dashes, `-----Original Message-----`, or a line that attributes a quotation.
pub(super) fn is_rule(line: &str) -> bool {
    let dashes = line.len() - line.trim_start_matches(['-', '=', '_', '*']).len();
    let lower = line.to_lowercase();
    let wrote = [" wrote", " schrieb", " a écrit", " escribió", " ha scritto", " escreveu", " schreef"];
    let is_attribution = line.trim_end().ends_with(':') && wrote.iter().any(|wrote| lower.contains(wrote));
    dashes >= 3 && !line.contains('|') || is_attribution || lower.starts_with("begin forwarded message")
}

pub(super) fn is_salutation(line: &str) -> bool {
    let lower = line.to_lowercase();
    line.ends_with([',', '!', ':']) && SALUTATIONS.iter().any(|start| lower.starts_with(start))
}
