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
    let ran: Ran = command.env_remove("LARDER_HOME").output().unwrap().into();
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

#[test]
fn the_page_of_commands_has_every_command_with_its_options() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let page = std::fs::read_to_string(path).unwrap();
    let shop = Shop::new();
    let help = shop.ok(&["--help"]).out;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    // A name stands two columns in; what is further in goes on with the line before.
    let names = commands.lines().filter(|line| !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"serve") && names.contains(&"top"), "{names:?}");
    let shared = ["--home", "--project", "--user", "--format", "--verbose...", "--help", "--version"];
    for name in names.into_iter().filter(|name| *name != "help") {
        let (_, section) = page.split_once(&format!("## `larder {name}`\n")).expect(name);
        let section = section.split("\n## ").next().unwrap();
        let help = shop.ok(&[name, "--help"]).out;
        let (_, options) = help.split_once("Options:\n").unwrap();
        let lines = options.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        let flags = lines.flat_map(str::split_whitespace).filter(|word| word.starts_with("--"));
        for flag in flags.filter(|flag| !shared.contains(flag)) {
            assert!(section.contains(flag), "larder {name} {flag}");
        }
    }
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
