//! One model for every layer in place of the embedded one: what an engine needs to run recipes without a network.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;
use larder_models::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, EmbeddingModel, ModelError};
use larder_models::connect::{EmbeddedModels, Models};
use larder_models::table::{ModelSpec, ModelTable};

use crate::scripted::text;

/// Models in which `model` is bound to every layer: `window` tokens, an eighth of them for replies, at 1 and 2 US
/// dollars a million tokens. `home` is where it would look for weights.
pub fn every_layer(model: Arc<dyn ChatModel>, home: &Path, window: usize, timeout_ms: u64) -> Models {
    every_layer_and(model, "", home, window, timeout_ms)
}

/// As [`every_layer`], with more tables of models, which nothing is bound to.
pub fn every_layer_and(
    model: Arc<dyn ChatModel>,
    more: &str,
    home: &Path,
    window: usize,
    timeout_ms: u64,
) -> Models {
    let table = ModelTable::parse(&(table(window, timeout_ms) + more)).unwrap();
    Models::new(table, home, &|_| None).with_embedded(Arc::new(Only(model, None)))
}

/// As [`every_layer`], with a smaller window on layer NERVES.
pub fn small_nerves(
    model: Arc<dyn ChatModel>,
    home: &Path,
    (small, window): (usize, usize),
    timeout_ms: u64,
) -> Models {
    let one = table(small, timeout_ms);
    let one = one[one.find("[models.m]").unwrap()..].replace("[models.m]", "[models.s]");
    let all = table(window, timeout_ms).replace("NERVES = \"m\"", "NERVES = \"s\"") + &one;
    Models::new(ModelTable::parse(&all).unwrap(), home, &|_| None).with_embedded(Arc::new(Only(model, None)))
}

/// As [`every_layer`], with the embedding model `vectors` beside it, at 1 US dollar a million tokens.
pub fn with_vectors(
    model: Arc<dyn ChatModel>,
    vectors: Arc<dyn EmbeddingModel>,
    home: &Path,
    window: usize,
    timeout_ms: u64,
) -> Models {
    let table = format!(
        "{}
[models.vectors]
provider = \"embedded\"
id = \"vectors\"
window = 256
dimensions = {}
capabilities = [\"embedding\"]
prices = {{ input = 1 }}
timeout_ms = {timeout_ms}
retries = 0
",
        table(window, timeout_ms),
        vectors.dimensions(),
    );
    let table = ModelTable::parse(&table).unwrap();
    Models::new(table, home, &|_| None).with_embedded(Arc::new(Only(model, Some(vectors))))
}

fn table(window: usize, timeout_ms: u64) -> String {
    let output = window / 8;
    format!(
        "
[models.layers]
REFLEX = \"m\"
NERVES = \"m\"
MIND = \"m\"
VOICE = \"m\"
EYES = \"m\"

[models.m]
provider = \"embedded\"
id = \"m\"
tokenizer = \"cl100k_base\"
window = {window}
max_output = {output}
timeout_ms = {timeout_ms}
retries = 0
prices = {{ input = 1, output = 2 }}
"
    )
}

/// Opens the same model for every layer, and the embedding model if there is one.
struct Only(Arc<dyn ChatModel>, Option<Arc<dyn EmbeddingModel>>);

impl EmbeddedModels for Only {
    fn chat(&self, _: &ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError> {
        Ok(Arc::clone(&self.0))
    }

    fn embedding(&self, spec: &ModelSpec) -> Result<Arc<dyn EmbeddingModel>, ModelError> {
        self.1.clone().ok_or_else(|| ModelError::NotConfigured {
            provider: spec.id.clone(),
            detail: "no vectors".into(),
        })
    }
}

/// What a model does with a prompt.
pub enum Outcome {
    /// It answers with this text.
    Text(String),
    /// It answers with an error.
    Fails,
    /// It never answers.
    Never,
}

impl<T: Into<String>> From<T> for Outcome {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

type Answer = dyn Fn(&str) -> Outcome + Send + Sync;

/// Answers depending on its prompt, and records the prompts.
pub struct Answering {
    answer: Box<Answer>,
    prompts: Arc<Mutex<Vec<String>>>,
}

impl Answering {
    /// A model that answers a prompt with the result of `answer`.
    pub fn new(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::trying(move |prompt| Outcome::Text(answer(prompt)))
    }

    /// A model that may also fail, or never answer.
    pub fn trying(answer: impl Fn(&str) -> Outcome + Send + Sync + 'static) -> Self {
        Self { answer: Box::new(answer), prompts: Arc::default() }
    }

    /// The prompts so far; shared, so it keeps growing.
    pub fn prompts(&self) -> Arc<Mutex<Vec<String>>> {
        Arc::clone(&self.prompts)
    }
}

impl ChatModel for Answering {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let prompt: Vec<String> = request.messages.iter().map(|message| message.joined_text()).collect();
        let prompt = prompt.join("\n");
        let outcome = (self.answer)(&prompt);
        self.prompts.lock().unwrap().push(prompt);
        async move {
            match outcome {
                Outcome::Text(reply) => Ok(text(&reply)),
                Outcome::Fails => {
                    Err(ModelError::Protocol { provider: "m".into(), detail: "no sense".into() })
                }
                Outcome::Never => futures::future::pending().await,
            }
        }
        .boxed()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        let events = self.chat(request).map(|reply| match reply {
            Ok(reply) => vec![Ok(ChatEvent::Text(reply.text.clone())), Ok(ChatEvent::Done(reply))],
            Err(error) => vec![Err(error)],
        });
        Box::pin(events.map(futures::stream::iter).flatten_stream())
    }
}
