//! What the names of fields and samples of their values say to a reader, whatever their source. Knows neither tables nor
//! budgets.

/// A string without spaces is opaque from this length on, if it is written like a number or a hash.
const SHORTEST_HASH: usize = 8;
/// The points of a name with a word of the first rank.
pub const MOST_POINTS: f32 = 5.0;

/// What most values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// Several words, more than a line.
    Text,
    /// Several words.
    Phrase,
    /// One word.
    Word,
    /// A date or time.
    Time,
    /// A number.
    Number,
    /// A string of digits.
    Digits,
    /// A list of plain values.
    List,
    /// `true` or `false`.
    Flag,
    /// An object, or a list of them.
    Nested,
    /// A hash, or an id for programs.
    Opaque,
    /// An address or a path.
    Link,
    /// Empty or `null`.
    Nothing,
}

impl Sense {
    /// Longer phrases, in average bytes, are texts.
    pub const LONGEST_PHRASE: usize = 60;

    /// How soon a reader asks for values of this kind.
    pub const fn points(self) -> f32 {
        match self {
            Self::Text | Self::Phrase => 6.0,
            Self::Word | Self::Time => 5.0,
            Self::Number | Self::List => 2.5,
            Self::Digits => 2.0,
            Self::Flag => 1.0,
            Self::Nested => 0.5,
            Self::Opaque => -1.0,
            Self::Link => -2.0,
            Self::Nothing => -6.0,
        }
    }

    /// What a value, as written without its quotes, is.
    pub fn of(text: &str) -> Self {
        let (mut digits, mut letters, mut hex, mut spaces, mut signs) = (0, 0, 0, 0, 0);
        for c in text.chars().take(4 * Self::LONGEST_PHRASE) {
            digits += usize::from(c.is_ascii_digit());
            letters += usize::from(c.is_alphabetic());
            hex += usize::from(c.is_ascii_hexdigit() || c == '-');
            spaces += usize::from(c == ' ');
            signs += usize::from(matches!(c, ':' | '-' | '/' | '.'));
        }
        let all = text.chars().take(4 * Self::LONGEST_PHRASE).count();
        let is_link = spaces == 0 && (text.contains("://") || text.contains('/') && digits + letters > 0);
        let by_form = all >= SHORTEST_HASH && (hex == all && digits > 0 || 2 * digits > all);
        let by_length = all >= 3 * SHORTEST_HASH && 5 * digits > all && signs == 0;
        let is_hash = spaces == 0 && (by_form || by_length);
        if matches!(text, "" | "null") {
            Self::Nothing
        } else if matches!(text, "true" | "false") {
            Self::Flag
        } else if text.starts_with(['{', '[']) {
            Self::Nested
        } else if is_time(text, digits, letters, signs) {
            Self::Time
        } else if is_link {
            Self::Link
        } else if letters == 0 {
            Self::Digits
        } else if is_hash {
            Self::Opaque
        } else if spaces > 0 {
            Self::Phrase
        } else {
            Self::Word
        }
    }
}

/// Whether `text` is a date or time in one of the usual forms, with or without names of days and months.
fn is_time(text: &str, digits: usize, letters: usize, signs: usize) -> bool {
    let bytes = text.as_bytes();
    let is_iso = bytes.len() >= 10
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[..4].iter().all(u8::is_ascii_digit);
    let is_clock = digits >= 4 && signs >= 2 && letters <= 9 && text.len() <= 40;
    is_iso && letters <= 3 || is_clock && text.contains(':') && !text.contains('/')
}

/// Words in names of columns, by how soon readers ask for what they name.
const WORDS: [(f32, &str); 5] = [
    (5.0, "name title subject headline login username label nickname handle"),
    (
        4.0,
        "author user owner sender from assignee creator reporter customer email mail status state outcome \
         conclusion question",
    ),
    (
        3.0,
        "body text message content description comment note notes summary amount price total company \
         organization team error reason severity priority created date time timestamp published when caption \
         answer msg cost",
    ),
    (
        2.0,
        "city country location region department brand product project repo repository language lang version \
         type kind category role level phase balance quantity score rating currency tags labels phone to \
         updated due model event action",
    ),
    (
        -4.0,
        "url uri href link links avatar gravatar image icon logo thumbnail picture photo color colour css sha \
         hash token etag cursor guid uuid digest md5 checksum signature background style width height indices \
         offset node hex",
    ),
];
/// Words that say that a column counts or refers, whatever else its name says.
const COUNTERS: [&str; 9] = ["id", "ids", "count", "counts", "index", "position", "size", "num", "str"];

/// Points for the words in a column's last name.
pub fn points_of_name(last: &str) -> f32 {
    let of_word = |word: &str| {
        let one = word.strip_suffix('s').unwrap_or(word);
        let rank =
            WORDS.iter().find(|(_, words)| words.split(' ').any(|known| known == word || known == one));
        rank.map_or(0.0, |(points, _)| *points)
    };
    let words: Vec<String> = words_of_name(last).collect();
    let points = || words.iter().map(|word| of_word(word));
    let worst = points().fold(0.0, f32::min);
    if worst < 0.0 {
        return worst;
    }
    let counts = words.iter().any(|word| COUNTERS.contains(&word.as_str()));
    points().fold(0.0, f32::max) - if counts { 3.0 } else { 0.0 }
}

/// The words of a name, in lower case: `createdAt`, `created_at` and `created-at` have the same.
pub fn words_of_name(name: &str) -> impl Iterator<Item = String> {
    let parts = name.split(|c: char| !c.is_alphabetic()).filter(|part| !part.is_empty());
    parts.flat_map(|part| {
        let mut words: Vec<String> = Vec::new();
        let mut before_lower = false;
        for c in part.chars() {
            match words.last_mut() {
                Some(word) if !(c.is_uppercase() && before_lower) => word.extend(c.to_lowercase()),
                _ => words.push(c.to_lowercase().collect()),
            }
            before_lower = c.is_lowercase();
        }
        words
    })
}
