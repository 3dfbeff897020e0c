//! Tests of finding, following and rewriting links.

use proptest::prelude::*;

use super::*;
use crate::quote::tests::hostile;
use crate::{BlockId, VaultPath};

fn path(text: &str) -> VaultPath {
    VaultPath::new(text).unwrap()
}

fn vault(files: &[&str]) -> Vault {
    Vault::new(files.iter().map(|file| path(file)))
}

fn targets(text: &str) -> Vec<String> {
    links(text)
        .iter()
        .map(|link| format!("{}{}", if link.embed { "!" } else { "" }, link.destination()))
        .collect()
}

#[test]
fn every_kind_of_link_is_found_and_none_in_code() {
    let text = "---\nup: \"[[Home]]\"\n# [[no]]\n---\n[a](b.md \"t\") ![i](<c d.png>) <https://x.example/> <me@x.example>\n\
        [r][L] [l][] [l] [[w]] ![[e#^b|t]] \\[[no]] `[[no]]` $[[no]]$ <img src=\"p.png\"> <!-- [[no]] --> [[]] [[|x]]\n\n\
        | t |\n|---|\n| [[cell\\|text]] |\n\n    [[no]] [no](no)\n\n```\n[[no]]\n```\n[l]: d.md 'x'\n[[# H ]] [[a [b]] [[open\n";
    assert_eq!(
        targets(text),
        [
            "Home",
            "b.md",
            "!c d.png",
            "https://x.example/",
            "mailto:me@x.example",
            "d.md",
            "d.md",
            "d.md",
            "w",
            "!e#^b",
            "!p.png",
            "cell",
            "#H"
        ]
        .map(str::to_owned)
        .into_iter()
        .filter(|target| !target.is_empty())
        .collect::<Vec<_>>()
    );
    for link in links(text) {
        if let Some(target) = &link.target {
            let path = if link.kind == LinkKind::Wiki { link.path.clone() } else { link.destination() };
            assert_eq!(text[target.clone()], path, "{link:?}");
        }
    }
}

#[test]
fn a_definition_and_a_wikilink_may_overlap() {
    let text = "[[note]]\n\n[note]: folder/note.md \"Note\"\n";
    let found = links(text);
    assert_eq!(found.iter().map(|link| link.kind).collect::<Vec<_>>(), [LinkKind::Wiki, LinkKind::Reference]);
    assert_eq!(&text[found[1].target.clone().unwrap()], "folder/note.md");
}

#[test]
fn wikilinks_lead_by_obsidians_rules() {
    let vault = vault(&[
        "note.md",
        "a/note.md",
        "a/b/note.md",
        "a/b/Other Note.md",
        "pic.png",
        "v1.2.md",
        "x/Nöte.md",
        "z/deep/only.md",
    ]);
    let from = path("a/b/here.md");
    let led = |wiki: &str| vault.wiki(&from, wiki).map(VaultPath::as_str);
    assert_eq!(led("note"), Some("note.md"), "a whole path goes first");
    assert_eq!(led("b/note"), Some("a/b/note.md"));
    assert_eq!(led("./note"), Some("a/b/note.md"));
    assert_eq!(led("../note.md"), Some("a/note.md"));
    assert_eq!(led("/note"), Some("note.md"));
    assert_eq!(led("other note"), Some("a/b/Other Note.md"));
    assert_eq!(led("pic.png"), Some("pic.png"));
    assert_eq!(led("v1.2"), Some("v1.2.md"));
    assert_eq!(led("No\u{308}te"), Some("x/Nöte.md"), "letters may be written in two ways");
    assert_eq!(led("eep/only"), None, "only whole names count");
    assert_eq!(led("../../../../etc/passwd"), None);
    assert_eq!(led(""), Some("a/b/here.md"));
    let near = Vault::new(["c/note.md", "aaaa/bbbb/note.md"].map(path));
    assert_eq!(near.wiki(&path("aaaa/x.md"), "note").map(VaultPath::as_str), Some("aaaa/bbbb/note.md"));
    assert_eq!(near.wiki(&path("x.md"), "note").map(VaultPath::as_str), Some("c/note.md"));
}

#[test]
fn links_of_commonmark_are_relative_and_stay_inside() {
    let vault = vault(&["a/here.md", "a/b c.md", "d/e.md", "top.md"]);
    let from = path("a/here.md");
    let led = |text: &str| match vault.resolve(&from, &links(text)[0]) {
        LinkDestination::File(file) => file.as_str().to_owned(),
        other => format!("{other:?}"),
    };
    for (text, expected) in [
        ("[x](b%20c.md)", "a/b c.md"),
        ("[x](<b c.md#h>)", "a/b c.md"),
        ("[x](../d/e.md?raw=1)", "d/e.md"),
        ("[x](/top)", "top.md"),
        ("[x](e.md)", "d/e.md"),
        ("[x](#here)", "a/here.md"),
        ("[x](../../../top.md)", "Missing"),
        ("[x](https://a.example/b.md)", "External"),
        ("[x](//a.example/b.md)", "External"),
        ("[x](javascript:alert(1))", "External"),
        ("[x](d/)", "Missing"),
    ] {
        assert_eq!(led(text), expected, "{text}");
    }
}

#[test]
fn fragments_lead_to_sections_and_blocks() {
    let note = "---\na: 1\n---\n# One\ntext\n## *Two*: it\nx ^p\n\n- a ^i\n  - b\n\n| t |\n|--|\n| r | ^row\n| s |\n\n^table\n\n# One\n## Two it\nlast\n```\ny ^no\n```\n";
    let outline = NoteOutline::parse(note);
    let at = |fragment: &str| outline.find(fragment).map(|range| &note[range]);
    assert!(at("one").unwrap().starts_with("# One\ntext") && at("one").unwrap().ends_with("^table\n\n"));
    assert!(at("Two: it").unwrap().starts_with("## *Two*"));
    assert!(at("two-it").unwrap().starts_with("## *Two*"));
    assert!(at("one-1").unwrap().starts_with("# One\n## Two it"));
    assert_eq!(at("One#Two it").map(|text| text.starts_with("## *Two*")), Some(true));
    assert_eq!(at("^p"), Some("x ^p\n"));
    assert_eq!(at("^I"), Some("- a ^i\n  - b\n"));
    assert_eq!(at("^row"), Some("| r | ^row\n"));
    assert!(at("^table").unwrap().starts_with("| t |"));
    assert_eq!((at("^no"), at("three"), at("^")), (None, None, None));
}

#[test]
fn a_rename_changes_the_links_that_lead_to_the_note_and_nothing_else() {
    let vault = vault(&["a/old.md", "a/x.md", "b/y.md", "b/new name.md", "pic.png"]);
    let rename = NoteRename::new(&vault, path("a/old.md"), path("b/c/new name.md")).unwrap();
    let text = "---\nup: '[[old]]'\n---\n[[old]] [[Old|text]] [[a/old#h]] [[/a/old.md]] ![[old#^b]] `[[old]]` [[x]] [i](old.md#h \"t\")\r\n\
        [j](<old.md>) [r] [e](https://x.example/old.md) <img src='../pic.png'>\n\n[r]: ../a/old \"t\"\n";
    let rewritten = rename.rewrite(&path("a/x.md"), text);
    assert_eq!(rewritten.problems, []);
    assert_eq!(
        rewritten.text,
        "---\nup: '[[b/c/new name]]'\n---\n[[b/c/new name]] [[b/c/new name|text]] [[b/c/new name#h]] [[/b/c/new name.md]] ![[b/c/new name#^b]] `[[old]]` [[x]] [i](../b/c/new%20name.md#h \"t\")\r\n\
        [j](<../b/c/new%20name.md>) [r] [e](https://x.example/old.md) <img src='../pic.png'>\n\n[r]: ../b/c/new%20name \"t\"\n"
    );
    assert_eq!(rewritten.changed, 9);
    // The note itself moves, so what it links relatively to does not.
    let own = rename.rewrite(&path("a/old.md"), "[[#h]] [x](x.md) [[x]] [me](old.md) ![](../pic.png)");
    assert_eq!(own.text, "[[#h]] [x](../../a/x.md) [[x]] [me](new%20name.md) ![](../../pic.png)");
}

#[test]
fn definitions_that_exist_for_wikilinks_follow_them() {
    let vault = vault(&["a/old.md", "x.md"]);
    let rename = NoteRename::new(&vault, path("a/old.md"), path("b/new.md")).unwrap();
    let rewritten = |text: &str| rename.rewrite(&path("x.md"), text).text;
    assert_eq!(
        rewritten("[[old]] ![[old]] [[old|T]]\n\n[old]: a/old.md \"Old\"\n[old|T]: <a/old.md>\n"),
        "[[new]] ![[new]] [[new|T]]\n\n[new]: b/new.md \"Old\"\n[new|T]: <b/new.md>\n"
    );
    assert_eq!(
        rewritten("[[old]] [t][old]\n\n[old]: a/old.md\n"),
        "[[new]] [t][old]\n\n[old]: b/new.md\n",
        "another link needs the label"
    );
    assert_eq!(
        rewritten("[[old]] [new]\n\n[old]: a/old.md\n[new]: x.md\n"),
        "[[new]] [new]\n\n[old]: b/new.md\n[new]: x.md\n",
        "the label is taken"
    );
}

#[test]
fn a_rename_does_not_capture_links_to_others() {
    let vault = vault(&["a/b/old.md", "long/way/note.md", "x.md"]);
    let rename = NoteRename::new(&vault, path("a/b/old.md"), path("a/note.md")).unwrap();
    assert_eq!(rename.rewrite(&path("x.md"), "[[note]] [[old]]").text, "[[long/way/note]] [[note]]");
    assert!(NoteRename::new(&vault, path("a/b/old.md"), path("x.md")).is_err());
    assert!(NoteRename::new(&vault, path("gone.md"), path("y.md")).is_err());
}

#[test]
fn both_styles_are_written_and_read() {
    let at = path("users/u/turns/turn_000815/context.md");
    let link = DualLink::new(path("users/u/turns/turn_000759/research.md"), "research_759_abc123");
    assert_eq!(
        link.both(&at),
        "[turn_000759/research.md](../turn_000759/research.md) | [[users/u/turns/turn_000759/research|research_759_abc123]]"
    );
    let block = DualLink::to_block(at.clone(), BlockId::numbered("claim", 1), "x]]y|\n`z`");
    assert_eq!(block.wiki(), "[[users/u/turns/turn_000815/context#^claim-001|x y z]]");
    for link in [
        link,
        block,
        DualLink::new(path("a/c.d.md"), "x"),
        DualLink::new(path("a/e.json"), ""),
        DualLink::new(path("a/(e) [f]#.md"), "g h"),
    ] {
        assert_eq!(DualLink::read(&link.both(&at), &at), Some(link.clone()));
        assert_eq!(DualLink::read(&link.wiki(), &at), Some(link.clone()));
        let reference = Reference { link, note: "a \"b\" - \"c\"\n[[d]]".to_owned() };
        assert_eq!(Reference::read(&reference.wiki(), &at), Some(reference.clone()));
        let read = Reference::read(&reference.numbered(1, &at), &at).unwrap();
        assert_eq!((read.note, read.link.file), (reference.note, reference.link.file));
    }
}

#[test]
fn hostile_texts_take_linear_time() {
    for piece in
        ["[[", "![", "[a](", "<!--", "<a href=", "`", "[[a|", "\\[[", "$", "^a\n\n", "- a ^b\n", "[a]: b\n"]
    {
        let text = piece.repeat(60_000);
        let found = links(&text).len() + NoteOutline::parse(&text).anchors.len();
        assert!(found <= 120_000);
    }
}

fn name() -> impl Strategy<Value = String> {
    "[ab](/[aB ]x?|[.]b|é|[(]){0,2}(/c d)?".prop_map(|name| name + ".md")
}

proptest! {
    #[test]
    fn any_text_is_scanned(text in hostile()) {
        for link in links(&text) {
            prop_assert!(text.get(link.range.clone()).is_some());
            prop_assert!(link.target.is_none_or(|target| text.get(target).is_some()));
        }
        for anchor in NoteOutline::parse(&text).anchors {
            prop_assert!(text.get(anchor.range).is_some());
        }
    }

    #[test]
    fn after_a_rename_every_link_leads_where_it_led(
        files in proptest::collection::btree_set(name(), 2..6),
        which in any::<proptest::sample::Index>(),
        to in name(),
        note in any::<proptest::sample::Index>(),
        written in proptest::collection::vec((any::<proptest::sample::Index>(), 0..6_u8), 0..6),
        around in hostile(),
    ) {
        let files: Vec<VaultPath> = files.iter().filter_map(|file| VaultPath::new(file)).collect();
        let vault = Vault::new(files.clone());
        let (from, note) = (which.get(&files).clone(), note.get(&files).clone());
        let Ok(rename) = NoteRename::new(&vault, from.clone(), path(&to)) else { return Ok(()) };
        let mut text = around;
        for (goal, manner) in written {
            let goal = goal.get(&files);
            text += &match manner {
                0 => format!(" [[{}]]", goal.wiki()),
                1 => format!(" ![[{}|x]]", goal.name()),
                2 => format!(" [x]({})", super::spell::encoded(&note.relative(goal))),
                3 => format!(" [x](<{}#h>)", note.relative(goal)),
                4 => format!(" [[/{goal}#^b]]"),
                _ => format!("\n\n[x{}]: /{}\n\n[x{}]", text.len(), super::spell::encoded(goal.as_str()), text.len()),
            };
        }
        let rewritten = rename.rewrite(&note, &text);
        prop_assert_eq!(&rewritten.problems, &[]);
        let new_note = if note == from { path(&to) } else { note.clone() };
        // `[[x]]` is also the reference `[x]` where a definition has that label, and stops being one where the label
        // has other uses.
        let alone = |text: &str| -> Vec<Link> {
            let found = links(text);
            let wiki = |link: &Link| {
                found.iter().any(|wiki| wiki.kind == LinkKind::Wiki && wiki.range.end == link.range.end + 1)
            };
            found.iter().filter(|link| link.kind != LinkKind::Reference || !wiki(link)).cloned().collect()
        };
        let (before, after) = (alone(&text), alone(&rewritten.text));
        prop_assert_eq!(before.len(), after.len(), "{}\n{}", text, rewritten.text);
        for (old, new) in before.iter().zip(&after) {
            let expected = match vault.resolve(&note, old) {
                LinkDestination::File(file) if *file == from => format!("{:?}", path(&to)),
                LinkDestination::File(file) => format!("{file:?}"),
                // What led nowhere may lead to the new name; that is no break.
                _ => continue,
            };
            let LinkDestination::File(file) = rename.vault().resolve(&new_note, new) else {
                return Err(TestCaseError::fail(format!("{new:?} leads nowhere in {}", rewritten.text)));
            };
            prop_assert_eq!(format!("{file:?}"), expected, "{} -> {}", text, rewritten.text);
            prop_assert_eq!(&old.fragment, &new.fragment);
        }
    }
}
