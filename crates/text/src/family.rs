//! What holds for a family of models: the tokenizer or how to estimate its counts, limits apart from the window, and
//! the prompt cache. Reads `data/families.tsv`, which names the source of each line. Knows no single model.

use std::sync::LazyLock;

use crate::model_id::ModelId;

static FAMILIES: LazyLock<Vec<Family>> =
    LazyLock::new(|| include_str!("../data/families.tsv").lines().filter_map(Family::read).collect());

/// The tokenizer that counts for a model of the catalogue whose family has no line.
pub const OTHER_TOKENIZER: &str = "open";

/// A family of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    beginnings: Vec<Vec<Word>>,
    /// The name of the tokenizer, as the token registry has it.
    pub tokenizer: &'static str,
    /// How its counts are estimated; `None` if the vocabulary is built in.
    pub estimate: Option<FamilyEstimate>,
    /// Windows with a limit of their own for the prompt.
    pub windows: Vec<SeparateLimits>,
    /// Tokens of the smallest prompt prefix that is cached, unless the model's own entry says otherwise.
    pub cache_minimum: Option<usize>,
    /// How many seconds a cached prefix is kept after its last use: one number for each kind that is sold.
    pub cache_lifetimes: Vec<u64>,
    /// Where the facts come from.
    pub source: &'static str,
}

/// How the counts of a vocabulary that is not built in follow from o200k_base, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FamilyEstimate {
    /// Whether the vocabulary has a token for every digit, where o200k_base has one for up to three.
    pub single_digits: bool,
    /// The mean for prose.
    pub prose: usize,
    /// The mean for JSON.
    pub json: usize,
    /// The mean for code.
    pub code: usize,
    /// The upper end, which is charged.
    pub upper: usize,
}

/// A window in which the prompt has a limit of its own, whatever the reply asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeparateLimits {
    /// Tokens of the window as the maker publishes it.
    pub window: u64,
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
}

/// One word of the beginning of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Exactly(String),
    From(u32),
    Prefix(&'static str),
    /// Any version of what comes before that is lower.
    Below(u32, u32),
}

impl Family {
    /// The family of a model.
    pub fn of(id: &ModelId) -> Option<&'static Self> {
        let words: Vec<&str> = id.key.split(['-', ':']).collect();
        let matched = FAMILIES.iter().filter_map(|family| Some((family.matched(&words)?, family)));
        // The first of equals, so that the order of the file decides.
        matched.rev().max_by_key(|(length, _)| *length).map(|(_, family)| family)
    }

    /// All families, in the order of the file.
    pub fn all() -> &'static [Self] {
        &FAMILIES
    }

    /// How many words of a key the longest beginning covers.
    fn matched(&self, words: &[&str]) -> Option<usize> {
        let covers = |beginning: &Vec<Word>| {
            let fits =
                beginning.iter().enumerate().all(|(at, word)| word.fits(&words[at.min(words.len())..]));
            fits.then_some(beginning.len())
        };
        self.beginnings.iter().filter_map(covers).max()
    }

    fn read(line: &'static str) -> Option<Self> {
        let columns: Vec<&'static str> = line.split('\t').collect();
        let [models, tokenizer, estimate, windows, cache, source] = columns[..] else { return None };
        let mut cache = cache.split(' ').filter_map(|number| number.parse().ok());
        Some(Self {
            beginnings: models.split(' ').map(beginning).collect(),
            tokenizer,
            estimate: FamilyEstimate::read(estimate),
            windows: windows.split(' ').filter_map(SeparateLimits::read).collect(),
            cache_minimum: cache.next().and_then(|tokens: u64| usize::try_from(tokens).ok()),
            cache_lifetimes: cache.collect(),
            source,
        })
    }
}

impl FamilyEstimate {
    fn read(text: &str) -> Option<Self> {
        let (base, factors) = text.split_once(' ')?;
        let factors: Vec<usize> = factors.split(' ').filter_map(|factor| factor.parse().ok()).collect();
        let [prose, json, code, upper] = factors[..] else { return None };
        Some(Self { single_digits: base == "digits", prose, json, code, upper })
    }
}

impl SeparateLimits {
    fn read(text: &str) -> Option<Self> {
        let (window, parts) = text.split_once('=')?;
        let (input, output) = parts.split_once('+')?;
        Some(Self { window: window.parse().ok()?, input: input.parse().ok()?, output: output.parse().ok()? })
    }
}

/// The words of a beginning, spelled as in keys.
fn beginning(text: &'static str) -> Vec<Word> {
    let (text, below) = match text.split_once('<') {
        Some((text, version)) => (text, version.split_once('.')),
        None => (text, None),
    };
    let below = below.and_then(|(major, minor)| Some(Word::Below(major.parse().ok()?, minor.parse().ok()?)));
    let words = text.split(['-', '.']).map(|word| {
        let from = word.strip_suffix('+').and_then(|number| number.parse().ok()).map(Word::From);
        from.or_else(|| word.strip_suffix('*').map(Word::Prefix))
            .unwrap_or_else(|| Word::Exactly(word.to_owned()))
    });
    words.chain(below).collect()
}

impl Word {
    /// Whether the word fits the first of these words of a key, or for a version all of them.
    fn fits(&self, words: &[&str]) -> bool {
        let first = words.first().copied();
        match self {
            Self::Exactly(word) => first == Some(word),
            Self::From(least) => first.and_then(number).is_some_and(|number| number >= *least),
            Self::Prefix(prefix) => first.is_some_and(|word| word.starts_with(prefix)),
            Self::Below(major, minor) => {
                let mut numbers = words
                    .iter()
                    .map(|word| word.trim_start_matches('v'))
                    .skip_while(|word| number(word).is_none())
                    .map_while(number);
                let version = numbers.next().map(|first| (first, numbers.next().unwrap_or(0)));
                version.is_some_and(|version| version < (*major, *minor))
            }
        }
    }
}

/// A number of a version, unlike a date.
fn number(word: &str) -> Option<u32> {
    (word.len() <= 2).then(|| word.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokenizer(id: &str) -> Option<&'static str> {
        Family::of(&ModelId::parse(id)).map(|family| family.tokenizer)
    }

    #[test]
    fn every_line_is_read_and_has_a_source() {
        let text = include_str!("../data/families.tsv");
        let lines = text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(Family::all().len(), lines);
        for family in Family::all() {
            assert!(family.source.len() > 10, "{}", family.tokenizer);
            let built_in = ["o200k_base", "cl100k_base"].contains(&family.tokenizer);
            assert_eq!(family.estimate.is_none(), built_in, "{}", family.tokenizer);
            for limits in &family.windows {
                assert_eq!(limits.input + limits.output, limits.window);
            }
        }
        assert!(Family::all().iter().any(|family| family.tokenizer == OTHER_TOKENIZER));
    }

    #[test]
    fn a_model_belongs_to_the_family_of_its_generation() {
        for (id, name) in [
            ("gpt-4", "cl100k_base"),
            ("gpt-4-0613", "cl100k_base"),
            ("gpt-4-turbo", "cl100k_base"),
            ("gpt-4.5-preview", "o200k_base"),
            ("gpt-4.1-mini", "o200k_base"),
            ("gpt-4o-mini", "o200k_base"),
            ("gpt-5.2-codex", "o200k_base"),
            ("gpt-6-sol", "o200k_base"),
            ("gpt-6.1-sol", "o200k_base"),
            ("o4-mini", "o200k_base"),
            ("openrouter/openai/gpt-oss-120b:free", "o200k_base"),
            ("claude-opus-4.5", "claude-4.6"),
            ("claude-sonnet-4-6", "claude-4.6"),
            ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-4.6"),
            ("claude-instant-v1", "claude-4.6"),
            ("anthropic.claude-v2:1", "claude-4.6"),
            ("claude-opus-4-7", "claude"),
            ("claude-opus-4.8-fast", "claude"),
            ("claude-sonnet-5", "claude"),
            ("claude-haiku-5.5", "claude"),
            ("claude-opus-latest", "claude"),
            ("meta.llama3-1-70b-instruct-v1:0", "llama"),
            ("ollama/llama3.1:8b", "llama"),
            ("deepseek-r1-distill-qwen-32b", "qwen"),
            ("deepseek.v3-v1:0", "deepseek"),
            ("gemini-2.5-pro", "open"),
        ] {
            assert_eq!(tokenizer(id), Some(name), "{id}");
        }
        for unknown in ["o365-helper", "gpt-50o", "my-claude", "not-gpt-4", "", "gpt"] {
            assert_eq!(tokenizer(unknown), None, "{unknown}");
        }
    }
}
