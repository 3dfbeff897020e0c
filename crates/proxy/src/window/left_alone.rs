//! What a window leaves alone, and why: for the request's record. Decides nothing.

use larder_core::policy::{ConversationItem, PointerReader};
use larder_text::message::Role;
use larder_text::words::counted;

use super::WindowBuilder;
use crate::record::{LeftAlone, cut_name};
use crate::wire::Request;

/// What the policy does not shorten in this request although it is text of a tool, or refer to although it is there.
pub fn list(
    builder: &WindowBuilder<'_>,
    request: &Request<'_>,
    reader: PointerReader,
    items: &[ConversationItem<'_>],
) -> Vec<LeftAlone> {
    let mut all = Vec::new();
    let mut note = |what: String, why: String| all.push(LeftAlone { what, why });
    let settings = builder.policy.settings();
    if !settings.enabled || settings.dry_run {
        let why = if settings.enabled { "this is a dry run" } else { "condensing is switched off" };
        note("everything".to_owned(), why.to_owned());
        return all;
    }
    let unoffered = builder.unoffered(request).unwrap_or_default();
    match (reader, request.reader_of_client()) {
        (PointerReader::Larder, _) => {}
        (PointerReader::Client, Some(tool)) => {
            let why = format!("{unoffered}; the model opens pointers with {}", cut_name(tool));
            note("the list of tools".to_owned(), why);
        }
        (PointerReader::Client | PointerReader::Nobody, _) => note(
            "tool results, as long as the prompt fits".to_owned(),
            format!("{unoffered}, so the model could not open a pointer"),
        ),
    }
    if request.history_elsewhere {
        note("messages that the provider holds".to_owned(), "they are not in the request".to_owned());
    }
    if let Some(field) = request.edited_elsewhere {
        let why = format!("the provider may remove that text ({field})");
        note("results that repeat text above".to_owned(), why);
    }
    let results: Vec<_> =
        request.items.iter().zip(items).filter(|(item, _)| item.role() == Role::Tool).collect();
    let mut count = |why: &str, is_kept: &dyn Fn(&crate::wire::Item<'_>, &ConversationItem<'_>) -> bool| {
        let kept = results.iter().filter(|(wire, item)| is_kept(wire, item)).count();
        if kept > 0 {
            let what = counted(kept as u64, "tool result");
            note(what, why.to_owned());
        }
    };
    count("the model or the client read them back", &|_, item| item.rehydrated);
    count("the request says summarizable: false", &|wire, item| {
        !item.rehydrated && wire.result.as_ref().is_some_and(|result| !result.summarizable)
    });
    count("something else, such as a picture, stands between their texts", &|wire, item| {
        !item.rehydrated && wire.interleaved
    });
    count("their tools opt out (policy.opt_out_tools)", &|wire, item| {
        let name = wire.result.as_ref().and_then(|result| result.name.as_deref());
        item.summarizable && !item.rehydrated && name.is_some_and(|name| builder.policy.opts_out(name))
    });
    if reader != PointerReader::Nobody {
        let why = "the provider holds their calls, so their tools may have opted out; they are shortened only where \
                   the prompt would not fit";
        count(why, &|_, item| item.spared);
    }
    all
}
