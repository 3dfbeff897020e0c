//! Which results of a history are out of date: the same call was made again, or the file that was read has been edited
//! since. An epoch gives these up first. Knows calls; does not know costs.

use std::collections::HashSet;

use super::items::{ItemCall, LinkedItem};

/// Words in the names of tools that change files.
const EDITS: [&str; 7] = ["edit", "write", "patch", "replace", "create", "insert", "update"];
/// What commands that change files contain.
const EDITING: [&str; 4] = ["sed -i", "> ", "apply_patch", "tee "];
/// Minimum bytes of a word that is taken for a path.
const SHORTEST_PATH: usize = 4;

/// For each message, whether it is a result that later ones supersede.
pub(super) fn superseded(entries: &[LinkedItem<'_>]) -> Vec<bool> {
    // From the newest to the oldest: what has been called and edited after a message.
    let mut called: HashSet<(&str, &str)> = HashSet::new();
    let mut edited: HashSet<&str> = HashSet::new();
    let mut out_of_date = vec![false; entries.len()];
    for (at, entry) in entries.iter().enumerate().rev() {
        if let Some(answered) = entry.answers {
            let call = (&*answered.call.name, &*answered.call.arguments);
            let again = !called.insert(call);
            let is_edit = changes_files(answered.call);
            let old = !is_edit && paths(&answered.call.arguments).any(|path| edited.contains(path));
            out_of_date[at] = again || old;
            if is_edit {
                edited.extend(paths(&answered.call.arguments));
            }
        }
    }
    out_of_date
}

fn changes_files(call: &ItemCall<'_>) -> bool {
    let name = call.name.to_ascii_lowercase();
    EDITS.iter().any(|word| name.contains(word)) || EDITING.iter().any(|sign| call.arguments.contains(sign))
}

/// The words of a call's arguments that look like paths of files.
fn paths(arguments: &str) -> impl Iterator<Item = &str> {
    arguments
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-')))
        .filter(|word| word.len() >= SHORTEST_PATH && word.trim_matches('.').contains(['/', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::items::{ConversationItem, link};
    use larder_text::hash::ContentHash;
    use larder_text::message::Role;
    use larder_text::tokens::Counter;

    /// Which results of these calls, made one after the other, are out of date.
    fn of(calls: &[(&'static str, &'static str)]) -> Vec<bool> {
        let ids: Vec<String> = (0..calls.len()).map(|at| at.to_string()).collect();
        let made: Vec<[ItemCall<'_>; 1]> = calls
            .iter()
            .zip(&ids)
            .map(|((name, arguments), id)| {
                [ItemCall { id: id.as_str().into(), name: (*name).into(), arguments: (*arguments).into() }]
            })
            .collect();
        let item = |role, calls, result_of| ConversationItem {
            role,
            text: "text",
            hash: ContentHash::new(b"text"),
            tokens: 1,
            sampled: false,
            opaque_tokens: 0,
            opaque: &[],
            calls,
            result_of,
            texts: &[],
            is_error: false,
            summarizable: true,
            spared: false,
            rehydrated: false,
        };
        let items: Vec<ConversationItem<'_>> = made
            .iter()
            .zip(&ids)
            .flat_map(|(calls, id)| {
                [item(Role::Assistant, calls.as_slice(), None), item(Role::Tool, &[], Some(id.as_str()))]
            })
            .collect();
        let all = superseded(&link(&items, usize::MAX, &|_| Some(usize::MAX), &Counter::default()));
        all.into_iter().skip(1).step_by(2).collect()
    }

    #[test]
    fn a_call_made_again_supersedes_its_earlier_results() {
        let calls =
            [("shell", "pytest -q"), ("shell", "ls src"), ("shell", "pytest -q"), ("shell", "pytest -q")];
        assert_eq!(of(&calls), [true, false, true, false]);
    }

    #[test]
    fn an_edit_supersedes_what_was_read_of_the_file_before() {
        let calls = [
            ("read", r#"{"path": "src/a.rs"}"#),
            ("read", r#"{"path": "src/b.rs"}"#),
            ("edit_file", r#"{"path": "src/a.rs", "with": "x"}"#),
            ("shell", "cat src/b.rs"),
            ("shell", "sed -i s/x/y/ src/b.rs"),
            ("read", r#"{"path": "src/a.rs"}"#),
        ];
        assert_eq!(of(&calls), [true, true, false, true, false, false]);
    }
}
