//! JSON Schema, drafts 7 and 2020-12: compiled once, and all violations of a value are reported together.
//!
//! A schema has no external access: a `$ref` to another document resolves only among registered documents.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::shorten;
use larder_text::hash::ContentHash;

/// Maximum number of violations reported per value; a model cannot fix a longer list at once.
pub const MAX_VIOLATIONS: usize = 20;
/// Maximum characters of a violation's message, which quotes the value.
const MESSAGE_CHARS: usize = 300;
/// Backtracking limit for a `pattern` with look-around; beyond it the value counts as not matching.
const BACKTRACK_LIMIT: usize = 100_000;
/// Number of compiled schemas kept. Recipes are few; the limit is for schemas that arrive with requests.
const CACHED_SCHEMAS: usize = 256;

/// The draft assumed for a schema without `$schema`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JsonSchemaDraft {
    /// Draft 7.
    Draft7,
    /// Draft 2020-12.
    #[default]
    Draft202012,
}

/// The schema is invalid, or refers to a document that is not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema is not usable at {path:?}: {problem}; expected a JSON Schema without outside references")]
pub struct SchemaError {
    /// JSON pointer into the schema; empty for its root.
    pub path: String,
    /// What is wrong.
    pub problem: String,
}

/// One way in which a value breaks its schema.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// JSON pointer into the value; empty for its root.
    pub path: String,
    /// The description of the violation, written for the model.
    pub message: String,
    /// JSON pointer to the violated keyword in the schema.
    pub keyword: String,
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
}

impl Schema {
    /// All violations in schema order, at most `MAX_VIOLATIONS`; empty if the value is valid. As in both drafts,
    /// `format` is an annotation and is not checked.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let errors = self.validator.iter_errors(value).take(MAX_VIOLATIONS);
        errors
            .map(|error| Violation {
                path: error.instance_path().to_string(),
                message: shorten(&error.to_string(), MESSAGE_CHARS),
                keyword: error.schema_path().to_string(),
            })
            .collect()
    }

    /// Whether the value satisfies the schema.
    pub fn accepts(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }
}

/// Compiles schemas and caches them.
#[derive(Debug, Default)]
pub struct Schemas {
    draft: JsonSchemaDraft,
    remotes: Remotes,
    compiled: Mutex<BTreeMap<ContentHash, Arc<Schema>>>,
}

impl Schemas {
    /// `draft` applies to schemas without `$schema`; `remotes` are the documents, by absolute URI without fragment,
    /// that a `$ref` may refer to in addition to the metaschemas.
    pub fn new(draft: JsonSchemaDraft, remotes: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self { draft, remotes: Remotes(Arc::new(remotes.into_iter().collect())), compiled: Mutex::default() }
    }

    /// The compiled schema, from the cache if possible.
    ///
    /// # Errors
    /// [`SchemaError`] if the schema is invalid or refers to an unregistered document.
    pub fn compile(&self, schema: &Value) -> Result<Arc<Schema>, SchemaError> {
        let key = ContentHash::new(schema.to_string().as_bytes());
        if let Some(known) = self.cache().get(&key) {
            return Ok(Arc::clone(known));
        }
        // Compiled outside the lock; two threads may do the same work, which is harmless.
        let compiled = Arc::new(Schema { validator: self.build(schema)? });
        let mut cache = self.cache();
        if cache.len() >= CACHED_SCHEMAS {
            cache.clear();
        }
        cache.insert(key, Arc::clone(&compiled));
        Ok(compiled)
    }

    fn build(&self, schema: &Value) -> Result<Validator, SchemaError> {
        let mut options = jsonschema::options()
            .with_retriever(self.remotes.clone())
            .should_validate_formats(false)
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT));
        if schema.get("$schema").is_none() {
            options = options.with_draft(self.draft.into());
        }
        options.build(schema).map_err(|error| SchemaError {
            path: error.instance_path().to_string(),
            problem: shorten(&error.to_string(), MESSAGE_CHARS),
        })
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, BTreeMap<ContentHash, Arc<Schema>>> {
        // The map is only inserted into and cleared, so it is intact even if a thread panicked while holding the
        // lock.
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<JsonSchemaDraft> for jsonschema::Draft {
    fn from(draft: JsonSchemaDraft) -> Self {
        match draft {
            JsonSchemaDraft::Draft7 => Self::Draft7,
            JsonSchemaDraft::Draft202012 => Self::Draft202012,
        }
    }
}

/// Resolves registered documents only.
#[derive(Debug, Clone, Default)]
struct Remotes(Arc<BTreeMap<String, Value>>);

impl jsonschema::Retrieve for Remotes {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        self.0.get(uri.as_str()).cloned().ok_or_else(|| format!("{uri} is not registered").into())
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
