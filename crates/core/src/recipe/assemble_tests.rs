//! Finding prompts, following includes, and what the version of a recipe depends on.

use super::*;

fn prompts(found: &[(&str, &str, &[&str])]) -> BTreeMap<String, PromptFile> {
    let prompt = |&(name, text, includes): &(&str, &str, &[&str])| {
        let includes = includes.iter().map(|&name| name.to_owned()).collect();
        let path = format!("prompts/{name}.md");
        (
            name.to_owned(),
            PromptFile { path, text: text.to_owned(), includes, sound: true, ..PromptFile::default() },
        )
    };
    found.iter().map(prompt).collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn includes_are_followed_to_the_end_and_in_circles() {
    let prompts =
        prompts(&[("a", "", &["b"]), ("b", "", &["c", "missing"]), ("c", "", &["a"]), ("d", "", &[])]);
    assert_eq!(reach(&prompts, &names(&["a"])), names(&["a", "b", "c", "missing"]));
    assert_eq!(reach(&prompts, &names(&["d"])), names(&["d"]));
}

#[test]
fn a_prompt_is_found_by_its_path_or_by_the_only_one_that_ends_in_it() {
    let prompts = prompts(&[("ask/main", "", &[]), ("chat/main", "", &[]), ("pipeline/ask/tone", "", &[])]);
    let find = |path: &str| {
        let mut sink = DiagnosticSink::new("recipes/a/b.yaml", path);
        let found =
            find_prompt(&Spanned { value: path.to_owned(), span: 0..path.len() }, &prompts, &mut sink);
        let code = sink.into_found().first().map(|diagnostic| diagnostic.code);
        (found, code)
    };
    assert_eq!(find("prompts/ask/main.md"), (Some("ask/main".to_owned()), None));
    assert_eq!(find("prompts/ask/tone.md"), (Some("pipeline/ask/tone".to_owned()), None));
    assert_eq!(find("prompts/main.md"), (None, Some(DiagnosticCode::PromptAmbiguous)));
    assert_eq!(find("prompts/mian.md"), (None, Some(DiagnosticCode::PromptNotFound)));
}

#[test]
fn a_version_changes_with_every_byte_it_depends_on_and_with_nothing_else() {
    let all = |text| prompts(&[("a", text, &[]), ("b", "other", &[])]);
    let reached = names(&["a"]);
    let first = version(b"recipe", &reached, &all("text"));
    assert_eq!(version(b"recipe", &reached, &all("text")), first);
    assert_ne!(version(b"recipes", &reached, &all("text")), first);
    assert_ne!(version(b"recipe", &reached, &all("texts")), first);
    assert_ne!(version(b"recipe", &names(&["a", "b"]), &all("text")), first);
    // Names and lengths are part of it, so bytes cannot move from one text to the next.
    let moved = prompts(&[("a", "te", &[]), ("xt", "", &[])]);
    assert_ne!(version(b"recipe", &names(&["a", "xt"]), &moved), first);
}
