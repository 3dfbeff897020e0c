//! `larder backup`, `restore` and `repair` through the command line.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use larder_store::{Store, StoreOptions};
#[cfg(unix)]
use support::Ran;
use support::Shop;

#[cfg(unix)]
const RECIPE: &str = "\
name: plain
description: Answer a question.
model_layer: VOICE
token_budget: {total: 6000, prompt: 300, input: 4500, output: 600, response_reserve: 200}
prompt_files: [prompts/notes/all.md]
input_docs: [{name: notes, required: false}]
output_format: text
";

fn insert(shop: &Shop, content: &str) -> String {
    let store = Store::open(&shop.path().join("home"), StoreOptions::default()).unwrap();
    let user = store.user("local").unwrap();
    user.pointers().insert(content.as_bytes(), "text", "a text").unwrap().pointer_id.to_string()
}

#[test]
fn a_backup_is_restored_and_a_lost_index_is_rebuilt() {
    let shop = Shop::new();
    let missing = shop.run(&["backup", "copy"]);
    assert!(missing.code == 1 && missing.err.contains("no store in"), "{missing:?}");
    let (small, large) = (insert(&shop, "small"), insert(&shop, &"large ".repeat(20_000)));
    assert!(shop.ok(&["backup", "copy"]).out.starts_with("2 pointers, 2 contents, "));
    let again = shop.run(&["backup", "copy"]);
    assert!(again.code == 1 && again.err.contains("not empty"), "{again:?}");
    let refused = shop.run(&["restore", "copy"]);
    assert!(refused.code == 1 && refused.err.contains("not empty"), "{refused:?}");

    for inside in ["home/copies/one", "home/../home/copy"] {
        let refused = shop.run(&["backup", inside]);
        assert!(refused.code == 1 && refused.err.contains("is inside the home"), "{refused:?}");
    }
    assert!(!shop.path().join("home/copies").exists() && !shop.path().join("home/copy").exists());
    std::fs::create_dir(shop.path().join("homes")).unwrap();
    shop.ok(&["backup", "homes/copy"]);

    assert!(shop.ok(&["repair"]).out.contains("nothing was changed"));
    std::fs::write(shop.path().join("home/index.sqlite"), [b'x'; 9_000]).unwrap();
    let damaged = shop.run(&["rehydrate", &small]);
    assert!(damaged.code == 3 && damaged.err.contains("run `larder repair --home "), "{damaged:?}");
    let report = shop.json(&["repair"]);
    assert_eq!((&report["pointers"], &report["problems"]), (&2.into(), &serde_json::json!([])), "{report}");
    assert_eq!(shop.ok(&["rehydrate", &small]).out, "small");
    std::fs::remove_file(shop.path().join("home/key")).unwrap();
    let keyless = shop.fails(3, &["rehydrate", &small]);
    assert!(keyless.err.contains("home/key: missing"), "{keyless:?}");

    std::fs::remove_dir_all(shop.path().join("home")).unwrap();
    let report = shop.json(&["restore", "copy"]);
    assert_eq!(report["report"]["pointers"], 2, "{report}");
    assert_eq!(shop.ok(&["rehydrate", &large]).out, "large ".repeat(20_000));
    assert!(shop.ok(&["verify"]).out.contains("0 problems"));
}

#[cfg(unix)]
#[test]
fn a_home_that_cannot_be_written_is_read() {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    /// The account of nobody, in place of one that may write everything.
    const NOBODY: u32 = 65_534;
    let shop = Shop::with_scholar(|_, _| None);
    shop.ok(&["turn", "Where is the ledger?"]);
    let pointer = insert(&shop, "The ledger lies in the granary.\n");
    shop.write("prompts/notes/all.md", "You do what you are asked.\n");
    shop.write("recipes/notes/plain.yaml", RECIPE);
    let reads: [&[&str]; 17] = [
        &["explain", "notes/plain", "-q", "Where is the ledger?"],
        &["runs"],
        &["costs"],
        &["trends"],
        &["transcript"],
        &["interventions"],
        &["jobs"],
        &["revisions"],
        &["turn", "list"],
        &["turn", "show", "1"],
        &["rehydrate", &pointer],
        &["verify"],
        &["config"],
        &["gc", "--dry-run"],
        &["keys"],
        &["policy"],
        &["policy", "tune"],
    ];
    let before: Vec<Ran> = reads.iter().map(|args| shop.ok(args)).collect();
    let root = std::fs::metadata(shop.path()).unwrap().uid() == 0;
    let system = |program: &str, args: &[&str]| {
        assert!(Command::new(program).args(args).arg(shop.path()).status().unwrap().success());
    };
    // Nobody may not run a program in a home folder of root.
    let program = shop.path().join("larder-program");
    if root {
        std::fs::copy(shop.command(&[]).get_program(), &program).unwrap();
        system("chown", &["-R", "65534:65534"]);
    }
    system("chmod", &["-R", "a-w"]);
    let run = |args: &[&str]| -> Ran {
        let mut command = shop.command(args);
        if root {
            let as_given = command;
            command = Command::new(&program);
            command.args(as_given.get_args()).env_clear();
            command.envs(as_given.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.current_dir(as_given.get_current_dir().unwrap_or_else(|| shop.path()));
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().unwrap().into()
    };
    for (args, before) in reads.iter().zip(before) {
        let ran = run(args);
        assert_eq!((ran.code, &ran.out), (0, &before.out), "{args:?}: {ran:?}");
    }
    let outside = tempfile::tempdir().unwrap();
    assert!(Command::new("chmod").arg("a+rwx").arg(outside.path()).status().unwrap().success());
    let copy = outside.path().join("copy");
    let copied = run(&["backup", copy.to_str().unwrap()]);
    assert_eq!(copied.code, 0, "{copied:?}");
    let documents = std::fs::read_dir(copy.join("documents")).unwrap().count();
    assert!(documents > 0 && copy.join("key").is_file(), "{copied:?}");
    let files = outside.path().join("files");
    let exported = run(&["export", "local", "--to", files.to_str().unwrap()]);
    assert_eq!(exported.code, 0, "{exported:?}");
    assert!(files.join("manifest.json").is_file() && files.join("documents").is_dir(), "{exported:?}");
    for args in [
        &["keys", "create", "--yes"][..],
        &["policy", "tune", "--apply"],
        &["turn", "Where is the key?"],
        &["turn", "drop", "1"],
        &["jobs", "cancel", "1"],
        &["archive"],
        &["gc"],
    ] {
        let ran = run(args);
        assert!(
            ran.code != 0 && ran.err.contains("make it writable, or name another folder (a home with --home"),
            "{args:?}: {ran:?}"
        );
    }
    // A gateway alone stores no documents.
    system("chmod", &["-R", "u+w"]);
    std::fs::remove_dir_all(shop.path().join("home/documents")).unwrap();
    system("chmod", &["-R", "a-w"]);
    let files = outside.path().join("others");
    for args in [
        &["gc", "--dry-run"][..],
        &["trends"],
        &["turn", "list"],
        &["export", "local", "--to", files.to_str().unwrap()],
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    }
    system("chmod", &["-R", "u+w"]);
}
