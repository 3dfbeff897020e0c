//! `larder gc`: removes what has expired, or says what would go.

use std::collections::BTreeMap;

use larder_agent::turn::TurnHost;
use larder_conversation::catalog::TypeCatalog;
use larder_conversation::expiry;
use larder_engine::project::Project;
use larder_store::{Collected, RetentionClass};
use larder_text::tokens::Counter;
use larder_text::words::counted;
use serde_json::json;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub fn run(context: &CommandContext, dry_run: bool) -> Result<(), CliError> {
    context.note_missing_store();
    let (store, documents) = if dry_run {
        (context.store_to_read()?, context.documents_to_read()?)
    } else {
        context.require_writable()?;
        let store = context.whole_store()?;
        let documents = TurnHost::documents(&store, &context.config)?;
        (store, documents)
    };
    let retention = context.config.retention();
    let counter = Counter::cl100k();
    let types = TypeCatalog::load(&context.project()?, &Project::builtin(&counter), &counter);
    let of = (&store, &documents, &types);
    let report = if dry_run {
        expiry::preview(of, &retention)?
    } else {
        // A server may be running on the same home: it gets half of the store's time.
        expiry::collect(of, &retention, &|took| {
            std::thread::sleep(took);
            true
        })?
    };
    if !dry_run && !store.empty_log()? {
        output::say("note: the log of writes was not emptied, because another process reads the store");
    }
    if context.global.format == Format::Json {
        return output::json(&json!({"dry_run": dry_run, "report": report}));
    }
    let verb = if dry_run { "would remove" } else { "removed" };
    let gone = [("by age", &report.by_age), ("by size", &report.by_size)];
    for (reason, classes) in gone {
        for line in lines(classes) {
            output::line(&format!("{verb} {reason}: {line}"))?;
        }
    }
    if gone.iter().all(|(_, classes)| classes.is_empty()) {
        output::line("nothing has expired")?;
    }
    output::line(&format!("{} bytes remain", report.bytes))?;
    if report.over_limit {
        output::say(
            "this is more than retention.max_gb, but the rest was used within 24 hours or documents or messages refer to it; \
             raise retention.max_gb",
        );
    }
    Ok(())
}

fn lines(classes: &BTreeMap<RetentionClass, Collected>) -> Vec<String> {
    let items = |class: &RetentionClass, count: u64| match class {
        RetentionClass::Originals => counted(count, "original"),
        RetentionClass::Transcripts => counted(count, "transcript"),
        RetentionClass::Records => counted(count, "record"),
        RetentionClass::Conversations => format!("{} of conversations", counted(count, "side")),
        RetentionClass::Facts => counted(count, "fact"),
    };
    classes
        .iter()
        .map(|(class, collected)| {
            format!("{}, {}", items(class, collected.items), counted(collected.bytes, "byte"))
        })
        .collect()
}
