//! What means the same in other words is found by vectors, and by nothing else.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use larder_engine::embedding::Embedder;
use larder_engine::executor::NoopObserver;
use larder_local::MiniLm;
use larder_models::chat::{EmbeddingModel, Embeddings, ModelError};
use larder_models::weights::EMBEDDING_MODEL;
use larder_retrieval::{Candidates, Grant};
use larder_store::TextVector;
use larder_testkit::layers::{Answering, with_vectors};
use larder_testkit::vectors::ScriptedVectors;
use larder_testkit::weights::folder;

use super::Vault;
use larder_testkit::lived_in::{PROPERTIES, THINGS, subject};

/// No turn holds one of these words; the turn that is asked for recommended a supplier for a mattress.
const PARAPHRASE: (&str, u32) = ("Where did we buy bedding?", 10);
/// The same for research that no newer research has superseded: a budget for a mattress.
const OF_RESEARCH: (&str, u32) = ("How costly may bedding get?", 70);

/// What a text is about: a thing and its property.
fn meaning(text: &str) -> String {
    if let Some((_, turn)) = [PARAPHRASE, OF_RESEARCH].iter().find(|(query, _)| *query == text) {
        let it = subject(*turn);
        return format!("{} {}", it.thing, it.property);
    }
    let named = |names: &'static [&'static str]| {
        names.iter().find(|name| text.contains(**name)).copied().unwrap_or_default()
    };
    format!("{} {}", named(&THINGS), named(&PROPERTIES))
}

fn embedder(model: Arc<dyn EmbeddingModel>) -> Embedder {
    let chat = Arc::new(Answering::new(|_| String::new()));
    let models = with_vectors(chat, model, std::path::Path::new("."), 32_000, 60_000);
    Embedder::open(&models, "vectors").unwrap()
}

impl Vault {
    async fn found(&self, query: &str, vector: Option<&TextVector>) -> Candidates {
        let retrieval = self.retrieval(Grant::Gatherer).with_vector(vector);
        retrieval.find(query, u32::MAX, None, None).await.unwrap()
    }
}

fn turns(found: &Candidates) -> Vec<u32> {
    found.turn_index.iter().map(|turn| turn.turn).collect()
}

#[tokio::test]
async fn a_paraphrase_is_found_with_vectors_and_not_without() {
    let vault = Vault::of(80).await;
    let embedder = embedder(Arc::new(ScriptedVectors::of(meaning)));
    let made = embedder.fill_all(&vault.documents, &NoopObserver, &|_| {}).await.unwrap();
    assert_eq!(made, 80 + 16, "turns and research");
    assert_eq!(embedder.fill(&vault.documents, 1..=80, &NoopObserver).await.unwrap(), 0);
    let (query, meant) = PARAPHRASE;
    let without = vault.found(query, None).await;
    assert!(!turns(&without).contains(&meant));
    let vector = embedder.query(query, &NoopObserver).await.unwrap();
    let found = vault.found(query, Some(&vector)).await;
    let first = &found.turn_index[0];
    assert_eq!((first.turn, first.why.as_str()), (meant, "its meaning is near the query"));
    assert_eq!(turns(&found)[1..], turns(&without)[..found.turn_index.len() - 1]);
    let logged = found.considered.iter().find(|entry| entry.document == first.context.as_str()).unwrap();
    assert!(logged.used && logged.why == first.why);
    let again = serde_json::to_string(&vault.found(query, Some(&vector)).await).unwrap();
    assert_eq!(again, serde_json::to_string(&found).unwrap());

    let (query, meant) = OF_RESEARCH;
    let without = vault.found(query, None).await;
    assert!(without.research_hits.is_empty() && without.cached_intel.is_empty());
    let vector = embedder.query(query, &NoopObserver).await.unwrap();
    let found = vault.found(query, Some(&vector)).await;
    assert_eq!(found.research_hits.iter().map(|research| research.turn).collect::<Vec<_>>(), [meant]);
    let logged = found.considered.iter().find(|entry| entry.kind == "research").unwrap();
    assert_eq!(logged.why, "active; its meaning is near the query");
}

#[tokio::test]
async fn words_and_meaning_together_come_first() {
    let vault = Vault::of(80).await;
    let embedder = embedder(Arc::new(ScriptedVectors::of(meaning)));
    embedder.fill_all(&vault.documents, &NoopObserver, &|_| {}).await.unwrap();
    let (_, meant) = PARAPHRASE;
    let it = subject(meant);
    let query = format!("the {} of the {}", it.property, it.thing);
    let vector = embedder.query(&query, &NoopObserver).await.unwrap();
    let found = vault.found(&query, Some(&vector)).await;
    let first = &found.turn_index[0];
    assert_eq!(
        (first.turn, first.why.as_str()),
        (meant, "it holds words of the query, and its meaning is near")
    );
    // A query that names nothing means nothing.
    let (vague, none) = ("and what of those?", None);
    assert_eq!(vault.found(vague, Some(&vector)).await, vault.found(vague, none).await);
    // Vectors of another model say nothing.
    let other = TextVector { model: "another".to_owned(), ..vector };
    assert_eq!(vault.found(&query, Some(&other)).await, vault.found(&query, None).await);
}

#[tokio::test]
async fn the_embedded_model_finds_what_means_the_same() {
    let vault = Vault::of(100).await;
    let embedder = embedder(Arc::new(MiniLm::open(&folder(EMBEDDING_MODEL)).unwrap()));
    embedder.fill_all(&vault.documents, &NoopObserver, &|_| {}).await.unwrap();
    for (query, meant) in [
        ("Does a fiddle come with a guarantee?", 24),
        ("looking after a fish tank: keeping it hygienic", 53),
        ("vendors of stargazing instruments", 5),
    ] {
        let without = vault.found(query, None).await;
        assert!(!turns(&without).contains(&meant), "{query}: words find it");
        let vector = embedder.query(query, &NoopObserver).await.unwrap();
        let near = vault.documents.vectors().near_turns(&vector, u32::MAX, 0.0, 5).unwrap();
        println!("{query}: {near:?}");
        let found = vault.found(query, Some(&vector)).await;
        assert!(turns(&found)[..3].contains(&meant), "{query}: {:?}, nearest {near:?}", turns(&found));
    }
}

#[tokio::test]
async fn a_rejected_text_does_not_block_others() {
    let vault = Vault::of(80).await;
    let refused = THINGS[0];
    let embedder = embedder(Arc::new(ScriptedVectors::of(meaning).refusing(refused)));
    let all = vault.documents.vectors().missing(embedder.identity(), 1..=80).unwrap();
    let refused = all.iter().filter(|gist| gist.text.contains(refused)).count();
    assert!(refused > 0 && refused < all.len());
    let made = embedder.fill_all(&vault.documents, &NoopObserver, &|_| {}).await.unwrap();
    let left = vault.documents.vectors().missing(embedder.identity(), 1..=80).unwrap().len();
    assert_eq!((made as usize, left), (all.len() - refused, refused));
}

/// A model that never answers.
struct Mute;

impl EmbeddingModel for Mute {
    fn embed<'a>(&'a self, _: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        futures::future::pending().boxed()
    }

    fn dimensions(&self) -> usize {
        3
    }
}

#[tokio::test(start_paused = true)]
async fn the_vector_of_a_query_has_a_short_timeout() {
    let (embedder, started) = (embedder(Arc::new(Mute)), tokio::time::Instant::now());
    let late = embedder.query("Does a fiddle come with a guarantee?", &NoopObserver).await;
    assert!(matches!(late, Err(ModelError::Timeout { .. })));
    assert_eq!(started.elapsed().as_secs(), 5);
}
