//! Pages of the reference that follow from the program. `LARDER_BLESS=1` writes them anew; read the diff.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use support::{Ran, Shop};

/// The end of what is written by hand.
const HEAD: &str = "|---|---|---|---|---|\n";

/// A cell with code in it; nothing where there is nothing.
fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) }
}

#[test]
fn the_page_of_settings_has_every_setting() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/settings.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rows) = page.split_once(HEAD).unwrap();
    let shop = Shop::new();
    let mut command = shop.command(&["config", "--format", "json"]);
    let ran: Ran =
        command.env_remove("LARDER_HOME").env_remove("LARDER_JOBS_DETACHED").output().unwrap().into();
    let settings: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    let mut expected = String::new();
    for setting in &settings {
        assert_eq!(setting["origin"], "default", "{setting}");
        let text = |key: &str| setting[key].as_str().unwrap();
        let names = |key: &str| -> Vec<String> {
            setting[key].as_array().unwrap().iter().map(|name| code(name.as_str().unwrap())).collect()
        };
        let (env, aliases) = (names("env"), names("aliases"));
        let (name, older) = env.split_at(env.len().min(1));
        let (name, older) = (name.concat(), [older, &aliases].concat().join(", "));
        let (key, default) = (code(text("key")), code(text("value")));
        let help = text("help").replace('|', "\\|");
        writeln!(expected, "| {key} | {default} | {name} | {older} | {help} |").unwrap();
    }
    if std::env::var_os("LARDER_BLESS").is_some() {
        std::fs::write(&path, format!("{head}{HEAD}{expected}")).unwrap();
        return;
    }
    assert_eq!(rows, expected, "docs/reference/settings.md; LARDER_BLESS=1 writes it anew");
}

/// The part of `cli.md` that is written by hand ends here.
const COMMANDS: &str = "<!-- Below: `larder COMMAND --help`, written by the test `reference`. -->\n";

/// What `larder … --help` prints, without the options that all commands share.
fn help_of(shop: &Shop, command: &[&str]) -> String {
    let mut run = shop.command(&[command, &["--help"]].concat());
    let help: Ran = run.env_remove("LARDER_HOME").output().unwrap().into();
    let sections = help.out.split("\n\n").fold(Vec::<String>::new(), |mut sections, section| {
        // A section begins at the margin; an indented piece belongs to the one before.
        match sections.last_mut() {
            Some(last) if section.starts_with(' ') => *last = format!("{last}\n\n{section}"),
            _ => sections.push(section.to_owned()),
        }
        sections
    });
    let own = sections.iter().filter(|section| command.is_empty() || !section.starts_with("Global options:"));
    let own: Vec<&str> = own.map(|section| section.trim_end()).collect();
    let lines: Vec<&str> =
        own.iter().flat_map(|section| section.lines().chain([""])).map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

/// The commands that a help text lists.
fn subcommands(help: &str) -> Vec<&str> {
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let list = list.split("\n\n").next().unwrap().lines();
    // A name is indented by two columns, a continued description by more.
    let names =
        list.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

#[test]
fn the_page_of_commands_is_their_help() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, written) = page.split_once(COMMANDS).unwrap();
    let shop = Shop::new();
    let help = help_of(&shop, &[]);
    let mut expected = format!("\n```text\n{help}\n```\n");
    assert!(subcommands(&help).contains(&"serve"), "{help}");
    for name in subcommands(&help) {
        let help = help_of(&shop, &[name]);
        assert!(help.contains("Example"), "larder {name} --help has no example");
        writeln!(expected, "\n## `larder {name}`\n\n```text\n{help}\n```").unwrap();
        for under in subcommands(&help) {
            let help = help_of(&shop, &[name, under]);
            writeln!(expected, "\n### `larder {name} {under}`\n\n```text\n{help}\n```").unwrap();
        }
    }
    if std::env::var_os("LARDER_BLESS").is_some() {
        std::fs::write(&path, format!("{head}{COMMANDS}{expected}")).unwrap();
        return;
    }
    assert_eq!(written, expected, "docs/reference/cli.md; LARDER_BLESS=1 writes it anew");
}

#[test]
fn the_page_of_migration_names_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/guide/migration.md")).unwrap();
    let code = page.split('`').skip(1).step_by(2).filter_map(|code| code.split_whitespace().next());
    let places = ["crates/", "docs/", "evals/", "tests/"];
    let named: Vec<&str> = code.filter(|name| places.iter().any(|place| name.starts_with(place))).collect();
    assert!(named.len() > 20, "{named:?}");
    for name in named {
        assert!(root.join(name).exists(), "{name}");
    }
}
