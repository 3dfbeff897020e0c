//! How fast the embedded model is on this machine: opening, reading a prompt, writing freely and under a schema.
//!
//! `cargo run --release -p larder-local --example speed`

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use larder_local::Embedded;
use larder_models::chat::{ChatModel, ChatReply, ChatRequest};
use larder_models::weights::{CHAT_MODEL, WeightSource, Weights};
use larder_text::message::{Message, Role};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let env = |name: &str| std::env::var(name).ok();
    let folder =
        Weights::shared(None, &env).pull(CHAT_MODEL, &WeightSource::Any, &env, &mut |_, _| {}).await?;
    let mut out = std::io::stdout();
    let start = Instant::now();
    let model = Embedded::open(&folder)?;
    writeln!(out, "open: {} ms", start.elapsed().as_millis())?;

    let text = "The ship left the harbour at dawn, and nobody on the quay could say where she was bound. "
        .repeat(68);
    let mut request = request(&format!("{text}\nSummarise this."), 1);
    let (reading, _) = timed(&model, &request, &mut out, "read").await?;
    request.max_output = 120;
    let (writing, free) = timed(&model, &request, &mut out, "write freely").await?;
    let per_token = |time: Duration, tokens: u64| tokens as f64 / time.as_secs_f64();
    writeln!(out, "reading: {:.0} tokens/s", per_token(reading, free.usage.input))?;
    writeln!(out, "writing: {:.0} tokens/s", per_token(writing, free.usage.output))?;

    // A prompt that shares no beginning with the others, and a schema compiled for the first time.
    let mut request = self::request(&format!("Read this. {text}\nJudge it."), 120);
    request.schema = Some(serde_json::json!({"type": "object", "properties": {
        "reason": {"type": "string", "minLength": 360}, "verdict": {"enum": ["approve", "reject"]},
        "score": {"type": "number", "minimum": 0, "maximum": 1}}, "required": ["reason", "verdict", "score"]}));
    timed(&model, &request, &mut out, "read and write JSON").await?;
    Ok(())
}

fn request(text: &str, max_output: u32) -> ChatRequest {
    ChatRequest::new(CHAT_MODEL, vec![Message::text(Role::User, text)], max_output, Duration::from_secs(600))
}

async fn timed(
    model: &Embedded,
    request: &ChatRequest,
    out: &mut impl Write,
    what: &str,
) -> Result<(Duration, ChatReply), Box<dyn Error>> {
    let start = Instant::now();
    let reply = model.chat(request).await?;
    let took = start.elapsed();
    let usage = reply.usage;
    writeln!(
        out,
        "{what}: {} ms, {} tokens read ({} known), {} written",
        took.as_millis(),
        usage.input,
        usage.cached_input,
        usage.output
    )?;
    Ok((took, reply))
}
