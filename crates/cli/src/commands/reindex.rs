//! `larder reindex`: rebuilds the index over the documents and computes missing embeddings.

use larder_agent::turn::TurnHost;
use larder_engine::embedding::{Embedder, EmbeddingError};
use larder_engine::executor::{Meter, NoopObserver, ProgressObserver};
use larder_store::Documents;
use larder_text::words::counted;
use serde_json::json;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::{output, progress};

pub async fn run(context: &CommandContext) -> Result<(), CliError> {
    let documents = TurnHost::documents(&context.whole_store()?, &context.config)?;
    let bar = progress::spinner();
    let report = documents.reindex(&|turns| bar.set_message(counted(turns, "turn")));
    let embedding = context.config.embedding().filter(|_| report.is_ok());
    let meter = Meter::new(&NoopObserver, None, None);
    let progress = |made| bar.set_message(counted(made, "vector"));
    let vectors = match embedding {
        Some(name) => Some(embed(context, &documents, name, &meter, &progress).await),
        None => None,
    };
    bar.finish_and_clear();
    let taken = meter.total();
    if taken.tokens() > 0 {
        let cost = taken.cost.map(|cost| format!(", {cost} US dollars")).unwrap_or_default();
        output::say(&format!("the vectors used {}{cost}", counted(taken.tokens(), "token")));
    }
    let (report, vectors) = (report?, vectors.transpose());
    let made = vectors.as_ref().ok().copied().flatten();
    for file in &report.unreadable_files {
        output::say(&format!("{file} does not have the expected format and was left out"));
    }
    if context.global.format == Format::Json {
        let mut report = json!(report);
        if let Some(made) = made {
            report["vectors"] = json!(made);
        }
        output::json(&report)?;
    } else {
        let made = made.map(|made| format!("; computed {}", counted(made, "vector"))).unwrap_or_default();
        output::line(&format!(
            "{}, {}, {}; {} could not be read{made}",
            counted(report.documents, "document"),
            counted(report.turns, "turn"),
            counted(report.users, "user"),
            counted(report.unreadable, "file")
        ))?;
    }
    // Documents without a vector are still found by their words, so the index is complete without them.
    Ok(vectors.map(drop)?)
}

async fn embed(
    context: &CommandContext,
    documents: &Documents,
    name: &str,
    observer: &dyn ProgressObserver,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<u64, EmbeddingError> {
    let embedder = Embedder::open(&context.models(), name)?;
    let mut all = 0;
    for user in documents.users()? {
        all += embedder.fill_all(&user, observer, &|made| progress(all + made)).await?;
    }
    Ok(all)
}
