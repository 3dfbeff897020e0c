//! Which tokenizer counts for which model. Knows model families by their ids; the table that maps layers to models is
//! elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::engine::OpenAi;
use super::{Counter, Pictures, TokenError};
use crate::family::Family;
use crate::model_id::ModelId;
use crate::parallel::Workers;

/// The tokenizer used when a recipe or call names none and its model is not recognised.
pub const DEFAULT_TOKENIZER: &str = "cl100k_base";

/// The maximum edit distance at which a name is suggested.
const NEAR: usize = 4;

/// Counters by tokenizer name and by model. Clones share the counters and their caches.
#[derive(Debug, Clone)]
pub struct Registry {
    tokenizers: BTreeMap<String, Counter>,
    models: BTreeMap<String, Counter>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Registry {
    /// The built-in tokenizers: cl100k_base, o200k_base, the estimates for families of models and for unknown models,
    /// and the byte bound. A vocabulary is unpacked on its first count.
    pub fn builtin() -> Self {
        let workers = Arc::<Workers>::default();
        let o200k = Counter::openai(OpenAi::O200k, Arc::clone(&workers));
        let digits = Counter::single_digits(Arc::clone(&workers));
        let family = |family: &Family| {
            let single_digits = family.estimate?.single_digits;
            Some(if single_digits { &digits } else { &o200k }.as_family(family))
        };
        let families = Family::all().iter().filter_map(family);
        let others =
            [Counter::openai(OpenAi::Cl100k, workers), o200k.as_unknown(), o200k.clone(), Counter::bytes()];
        let counters = families.chain(others);
        let tokenizers = counters.map(|counter| (counter.name().to_owned(), counter)).collect();
        Self { tokenizers, models: BTreeMap::new() }
    }

    /// Uses `counter` for `model` from now on, and registers it under its own name.
    pub fn register(&mut self, model: &str, counter: Counter) {
        self.tokenizers.insert(counter.name().to_owned(), counter.clone());
        self.models.insert(model.to_owned(), counter);
    }

    /// The counter for a model id, however it is spelled: as registered, exact for OpenAI's models, an estimate with a
    /// stated margin for other known families, the proven bound for any other.
    pub fn for_model(&self, model: &str) -> Counter {
        if let Some(counter) = self.models.get(model) {
            return counter.clone();
        }
        let family = Family::of(&ModelId::parse(model));
        let counter = family.and_then(|family| self.tokenizers.get(family.tokenizer));
        counter.map_or_else(|| self.own(Counter::bytes()), |counter| self.for_pictures(counter, model))
    }

    /// [`Counter::unknown`] with the registry's own vocabulary, so that it reuses cached counts.
    pub fn unknown(&self) -> Counter {
        self.own(Counter::unknown())
    }

    /// The registry's own counter with the same name, which shares its cache with all counters handed out.
    fn own(&self, counter: Counter) -> Counter {
        self.tokenizers.get(counter.name()).cloned().unwrap_or(counter)
    }

    /// The counter for a model whose tokenizer is configured by name: pictures are charged as that model charges
    /// them.
    pub fn for_pictures(&self, counter: &Counter, model: &str) -> Counter {
        let id = model.to_ascii_lowercase();
        let is_openai = Family::of(&ModelId::parse(model)).is_some_and(|family| family.estimate.is_none());
        // Open models that share a family's name have their own charges.
        match is_openai && counter.framing().pictures == Pictures::OPENAI {
            true => counter.with_pictures(Pictures::of_openai(bare(&id))),
            false => counter.clone(),
        }
    }

    /// The tokenizer with that name.
    ///
    /// # Errors
    /// [`TokenError::Unknown`] with the nearest name.
    pub fn by_name(&self, name: &str) -> Result<Counter, TokenError> {
        self.tokenizers.get(name).cloned().ok_or_else(|| TokenError::Unknown {
            name: name.to_owned(),
            nearest: self.nearest(name),
            known: self.names().collect::<Vec<_>>().join(", "),
        })
    }

    /// All tokenizer names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tokenizers.keys().map(String::as_str)
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let distance = |known: &str| edits(&name.to_ascii_lowercase(), known);
        let (distance, nearest) = self.names().map(|known| (distance(known), known)).min()?;
        (distance <= NEAR.min(nearest.len() / 2)).then(|| nearest.to_owned())
    }
}

/// A model id in lower case, without provider and fine-tuning prefixes.
fn bare(id: &str) -> &str {
    let bare = id.rsplit('/').next().unwrap_or(id);
    bare.strip_prefix("ft:").unwrap_or(bare)
}

/// The edit distance of two names. Only the start of a hostile name is compared.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (&b, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(a != b);
            diagonal = *cell;
            left = replaced.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
        row[0] = i + 1;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Label;

    #[test]
    fn models_find_their_tokenizer() {
        let registry = Registry::builtin();
        for (model, tokenizer) in [
            ("gpt-4o-mini", "o200k_base"),
            ("openai/gpt-4.1", "o200k_base"),
            ("gpt-5.2-codex", "o200k_base"),
            ("ft:gpt-4o-2024-08-06:acme::abc", "o200k_base"),
            ("o3-mini", "o200k_base"),
            ("gpt-4-turbo", "cl100k_base"),
            ("gpt-3.5-turbo-0125", "cl100k_base"),
            ("text-embedding-3-small", "cl100k_base"),
            ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-4.6"),
            ("claude-opus-4-7", "claude"),
            ("llama-3.3-70b", "llama"),
            ("gemini-2.5-pro", "open"),
            ("o365-helper", "bytes"),
            ("", "bytes"),
        ] {
            assert_eq!(registry.for_model(model).name(), tokenizer, "{model}");
        }
        assert_eq!(registry.for_model("mystery").label(), Label::Bounded);
        assert!(registry.by_name(DEFAULT_TOKENIZER).is_ok());
    }

    #[test]
    fn pictures_cost_what_they_cost_the_model() {
        let registry = Registry::builtin();
        let most = |counter: Counter| counter.framing().pictures.max_tokens();
        for (model, tokens) in [
            ("gpt-4o", 1_445),
            ("openai/gpt-4o-mini", 48_169),
            ("ft:gpt-4o-mini-2024-07-18:acme::abc", 48_169),
            ("claude-opus-4-7", 4_784),
        ] {
            assert_eq!(most(registry.for_model(model)), tokens, "{model}");
        }
        let named = registry.by_name("o200k_base").unwrap();
        assert_eq!(most(registry.for_pictures(&named, "GPT-4o-mini")), 48_169);
        assert_eq!(most(registry.for_pictures(&named, "my-model-mini")), 1_445);
    }

    #[test]
    fn a_registered_model_is_found_by_model_and_by_name() {
        let mut registry = Registry::builtin();
        registry.register("llama-3.3-70b", Counter::o200k());
        assert_eq!(registry.for_model("llama-3.3-70b").name(), "o200k_base");
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let registry = Registry::builtin();
        let error = registry.by_name("o200_base").unwrap_err().to_string();
        assert!(error.contains("did you mean \"o200k_base\"?"), "{error}");
        let error = registry.by_name(&"x".repeat(1 << 20)).unwrap_err();
        assert!(matches!(error, TokenError::Unknown { nearest: None, .. }));
    }

    #[test]
    fn edits_are_counted() {
        for (a, b, distance) in
            [("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("same", "same", 0)]
        {
            assert_eq!(edits(a, b), distance, "{a} {b}");
        }
    }
}
