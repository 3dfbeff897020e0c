//! An embedding model whose vectors the test defines, and that records its requests.

use std::sync::Mutex;

use futures::future::{BoxFuture, FutureExt, Shared, ready};
use larder_models::chat::{EmbeddingModel, Embeddings, ModelError, Usage};

/// Numbers of a vector.
pub const DIMENSIONS: usize = 256;

type Make = dyn Fn(&str) -> Vec<f32> + Send + Sync;

/// The model. Its usage counts words.
pub struct ScriptedVectors {
    make: Box<Make>,
    refused: Option<String>,
    after: Shared<BoxFuture<'static, ()>>,
    texts: Mutex<Vec<String>>,
}

impl ScriptedVectors {
    /// A model that maps each text to the vector of its `meaning`: texts with the same meaning have the same vector,
    /// and others are unrelated.
    pub fn of(meaning: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(move |text| random(&meaning(text))),
            refused: None,
            after: ready(()).boxed().shared(),
            texts: Mutex::default(),
        }
    }

    /// The same model, rejecting calls with a text that contains `word`.
    pub fn refusing(self, word: &str) -> Self {
        Self { refused: Some(word.to_owned()), ..self }
    }

    /// The same model, answering only after something else has happened.
    pub fn after(self, event: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { after: event.boxed().shared(), ..self }
    }

    /// All requests, in order.
    pub fn texts(&self) -> Vec<String> {
        self.texts.lock().unwrap().clone()
    }
}

impl EmbeddingModel for ScriptedVectors {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        async move {
            self.texts.lock().unwrap().extend_from_slice(texts);
            let refused = self.refused.as_ref();
            if refused.is_some_and(|word| texts.iter().any(|text| text.contains(word))) {
                let (provider, detail) = ("vectors".to_owned(), "the text is too long".to_owned());
                return Err(ModelError::BadRequest { provider, status: 413, detail });
            }
            self.after.clone().await;
            let vectors = texts.iter().map(|text| (self.make)(text)).collect();
            let input = texts.iter().map(|text| text.split_whitespace().count() as u64).sum();
            Ok(Embeddings { vectors, usage: Usage { input, ..Usage::default() } })
        }
        .boxed()
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }
}

/// Numbers from -1 to 1 that follow from a text.
fn random(text: &str) -> Vec<f32> {
    let mut state = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    }) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..DIMENSIONS).map(|_| next()).collect()
}
