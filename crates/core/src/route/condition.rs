//! When a factor or a requirement holds: a rule over what is known of a request.

use std::collections::BTreeMap;

use serde_json::Value;

use super::phrases::Phrase;
use super::text::{RouteRequest, Words};

/// Something of a request that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Characters of the message.
    Chars,
    /// Words of the message.
    Words,
    /// Numbers in the message.
    Numbers,
    /// Question marks in the message.
    Questions,
    /// Messages before it.
    History,
    /// Attached texts.
    Documents,
    /// Tokens of attached texts.
    DocumentTokens,
    /// Attached pictures.
    Images,
    /// Tools that may be called.
    Tools,
}

impl Measure {
    /// Every measure, with its key.
    pub const ALL: [(&'static str, Self); 9] = [
        ("chars", Self::Chars),
        ("words", Self::Words),
        ("numbers", Self::Numbers),
        ("questions", Self::Questions),
        ("history_messages", Self::History),
        ("documents", Self::Documents),
        ("document_tokens", Self::DocumentTokens),
        ("images", Self::Images),
        ("tools", Self::Tools),
    ];

    fn of(self, request: &RouteRequest, words: &Words) -> usize {
        match self {
            Self::Chars => request.message.chars().count(),
            Self::Words => {
                words.message.words.iter().filter(|word| word.starts_with(char::is_alphanumeric)).count()
            }
            Self::Numbers => words
                .message
                .words
                .iter()
                .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
                .count(),
            Self::Questions => words.message.words.iter().filter(|word| *word == "?").count(),
            Self::History => request.history.len(),
            Self::Documents => request.documents.len(),
            Self::DocumentTokens => request.documents.iter().map(|document| document.tokens).sum(),
            Self::Images => request.images,
            Self::Tools => request.tools,
        }
    }
}

/// An inclusive range; a bound that is missing does not bind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Between {
    /// The least.
    pub from: Option<f64>,
    /// The most.
    pub to: Option<f64>,
}

impl Between {
    fn contains(self, value: f64) -> bool {
        self.from.is_none_or(|from| value >= from) && self.to.is_none_or(|to| value <= to)
    }
}

/// What a field must be.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldIs {
    /// A number in a range.
    Between(Between),
    /// One of these texts, in any case.
    OneOf(Vec<String>),
}

/// Phrases of which some must be found.
#[derive(Debug, Clone, PartialEq)]
pub struct Says {
    /// The phrases.
    pub phrases: Vec<Phrase>,
    /// How many of them must be found.
    pub at_least: usize,
    /// Where they are looked for.
    pub place: Place,
}

/// Where phrases are looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// In the message.
    #[default]
    Message,
    /// In the newest messages before it.
    History,
    /// In both together.
    Either,
}

impl Place {
    /// Every place, with its key.
    pub const ALL: [(&'static str, Self); 3] =
        [("message", Self::Message), ("history", Self::History), ("either", Self::Either)];
}

impl Says {
    /// The phrases that are found, if they are enough.
    fn found(&self, words: &Words) -> Option<String> {
        let is_in = |phrase: &&Phrase| {
            self.place != Place::History && phrase.is_in(&words.message)
                || self.place != Place::Message && phrase.is_in(&words.history)
        };
        let found: Vec<&str> = self.phrases.iter().filter(is_in).map(|phrase| phrase.text.as_str()).collect();
        (found.len() >= self.at_least).then(|| found.join(", "))
    }
}

/// All that is given must hold. Without anything it always holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition {
    /// The task has one of these names.
    pub tasks: Vec<String>,
    /// The stage is one of these.
    pub stages: Vec<String>,
    /// The answer has one of these forms.
    pub outputs: Vec<String>,
    /// A document of one of these kinds is attached.
    pub kinds: Vec<String>,
    /// What is counted is in range.
    pub measures: BTreeMap<Measure, Between>,
    /// Fields that the caller knows; one that is missing does not match.
    pub fields: BTreeMap<String, FieldIs>,
    /// What is said.
    pub says: Option<Says>,
    /// One of these holds.
    pub any: Vec<Condition>,
    /// This does not hold.
    pub not: Option<Box<Condition>>,
}

impl Condition {
    /// What made it hold, in words of the preset and never of the request (C104); `None` if it does not.
    pub(super) fn reason(&self, request: &RouteRequest, words: &Words) -> Option<String> {
        let mut reasons = Vec::new();
        one_of(&self.tasks, request.tasks.iter(), "task", &mut reasons)?;
        one_of(&self.stages, request.stage.iter(), "stage", &mut reasons)?;
        one_of(&self.outputs, request.output.iter(), "output", &mut reasons)?;
        one_of(
            &self.kinds,
            request.documents.iter().map(|document| &document.kind),
            "documents",
            &mut reasons,
        )?;
        for (measure, range) in &self.measures {
            let value = measure.of(request, words);
            if !range.contains(value as f64) {
                return None;
            }
            let name = Measure::ALL.iter().find(|(_, known)| known == measure).map_or("", |(name, _)| name);
            reasons.push(format!("{name} {value}"));
        }
        for (name, wanted) in &self.fields {
            let value = request.fields.get(name)?;
            match wanted {
                FieldIs::Between(range) if value.as_f64().is_some_and(|value| range.contains(value)) => {
                    reasons.push(format!("{name} {value}"));
                }
                FieldIs::OneOf(texts) => {
                    let found = texts.iter().find(|text| is_text(value, text))?;
                    reasons.push(format!("{name} {found}"));
                }
                FieldIs::Between(_) => return None,
            }
        }
        if let Some(says) = &self.says {
            reasons.push(says.found(words)?);
        }
        if !self.any.is_empty() {
            reasons.push(self.any.iter().find_map(|one| one.reason(request, words))?);
        }
        if self.not.as_ref().is_some_and(|not| not.reason(request, words).is_some()) {
            return None;
        }
        if reasons.is_empty() {
            reasons.push("absent".to_owned());
        }
        Some(reasons.join("; "))
    }
}

fn is_text(value: &Value, text: &str) -> bool {
    value.as_str().is_some_and(|value| value.trim().to_lowercase() == text.to_lowercase())
}

/// Adds which of `wanted` is among `given`; `None` if none is, and some are wanted.
fn one_of<'a>(
    wanted: &[String],
    mut given: impl Iterator<Item = &'a String>,
    what: &str,
    reasons: &mut Vec<String>,
) -> Option<()> {
    if !wanted.is_empty() {
        let found = given.find(|given| wanted.contains(given))?;
        reasons.push(format!("{what} {found}"));
    }
    Some(())
}
