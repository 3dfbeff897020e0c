//! Condensing and scoring on request, for a comparison with peers: requests come in as lines of JSON, results go out
//! so. Does not know who else is compared.

use std::io::{BufRead, Write};

use larder_condense::ContentType;
use larder_text::tokens::Counter;
use serde_json::{Value, json};

use crate::{Failure, corpora, measure, suites};

/// Answers every request on standard input:
/// `{"corpus": C, "file": F}` is condensed as the suite C does, `{"corpus": C, "file": F, "text": T}` is a condensed
/// form by someone else. Both are scored alike. C is `logs`, `json` or `diffs`.
///
/// # Errors
/// A line is not a request, or its file cannot be read.
pub fn command() -> Result<(), Failure> {
    Counter::o200k().count("ready");
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", answer(&request)?)?;
        out.flush()?;
    }
    Ok(())
}

fn answer(request: &Value) -> Result<Value, Failure> {
    let field =
        |name: &str| request[name].as_str().ok_or_else(|| format!("{request}: {name:?} is not a text"));
    let file = field("file")?;
    let (folder, content_type) = match field("corpus")? {
        "logs" => ("logs", ContentType::Log),
        "json" => ("json", ContentType::Json),
        "diffs" => ("diffs", ContentType::Diff),
        other => return Err(format!("there is no corpus {other:?} to compare on").into()),
    };
    let folder = corpora::folder(folder)?;
    let original = corpora::text(&folder.join(file))?;
    let (text, own) = match request["text"].as_str() {
        Some(text) => (text.to_owned(), None),
        None => {
            let target = suites::target_of(content_type, &original);
            let mut best = measure::run(&original, content_type, target)?;
            for _ in 0..2 {
                let again = measure::run(&original, content_type, target)?;
                best.ms = best.ms.min(again.ms);
            }
            let exact = measure::faults(&original, &best.condensed, target).is_empty();
            (best.condensed.text, Some((best.ms, exact)))
        }
    };
    let (kept, of) = suites::kept(content_type, &folder, file, &original, &text)?;
    Ok(json!({
        "tokens": Counter::o200k().count(&original),
        "out": Counter::o200k().count(&text),
        "kept": kept,
        "of": of,
        "ms": own.map(|(ms, _)| ms),
        "exact": own.map(|(_, exact)| exact),
    }))
}
