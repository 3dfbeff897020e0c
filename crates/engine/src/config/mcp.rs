//! MCP servers in the settings: a table each, under a user-chosen name. Knows no protocol.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Config, Setting, SettingOrigin};
use crate::settings::spec::list;
use crate::settings::{MCP_TIMEOUT, McpSettings, McpTransport};

/// The prefix of the keys of MCP servers.
pub(super) const PREFIX: &str = "tools.mcp.";
/// The keys of a server's table, with their help.
const KEYS: [(&str, &str); 6] = [
    ("command", "Program that is the MCP server."),
    ("args", "Arguments of the program."),
    ("env", "Environment variables, by name, that the program sees."),
    ("url", "Address of the MCP server."),
    ("key_env", "Environment variable that holds the server's bearer token."),
    ("timeout_s", "Seconds that a call may take."),
];

/// A key of a server as the file sets it: its dotted path, value and line.
pub(super) type Stated = (String, String, usize);

/// The servers whose tables are empty.
pub(super) fn empty(file: &toml::Table) -> impl Iterator<Item = &str> {
    let servers = file.get("tools").and_then(|tools| tools.get("mcp")).and_then(toml::Value::as_table);
    let is_empty = |value: &toml::Value| value.as_table().is_some_and(toml::Table::is_empty);
    servers.into_iter().flatten().filter(move |(_, value)| is_empty(value)).map(|(name, _)| name.as_str())
}

/// Problems in the tables of MCP servers: the key, the problem, and how to fix it.
pub(super) fn problems<'e>(
    stated: &'e [Stated],
    empty: impl Iterator<Item = &'e str>,
) -> Vec<(String, String, String)> {
    let mut problems = Vec::new();
    for (full, value, _) in stated {
        let Some((name, key)) = split(full) else {
            let help = "name the server: [tools.mcp.files], with command or url in it".to_owned();
            problems.push((full.clone(), format!("unknown setting {full}"), help));
            continue;
        };
        let fine = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
        if !name.chars().all(fine) {
            let help = "use ASCII letters, digits, _ and -".to_owned();
            problems.push((full.clone(), format!("{name} cannot be the name of an MCP server"), help));
        }
        if !KEYS.iter().any(|(known, _)| *known == key) {
            let help = larder_core::recipe::suggest(key, KEYS.iter().map(|(known, _)| *known));
            problems.push((full.clone(), format!("unknown setting {full}"), help));
        } else if !legal(key, value) {
            let help = format!("use a value such as {}", example(key));
            problems.push((full.clone(), format!("{full} cannot be {value}"), help));
        }
    }
    let names: std::collections::BTreeSet<&str> =
        stated.iter().filter_map(|(full, ..)| Some(split(full)?.0)).chain(empty).collect();
    for name in names {
        let has = |key: &str| stated.iter().any(|(full, ..)| *full == format!("{PREFIX}{name}.{key}"));
        if has("command") == has("url") {
            let message = format!("MCP server {name} needs either command or url, and not both");
            let help = "set command and args for a program, or url for a server".to_owned();
            problems.push((format!("{PREFIX}{name}"), message, help));
        }
    }
    problems
}

fn split(full: &str) -> Option<(&str, &str)> {
    full.strip_prefix(PREFIX)?.split_once('.')
}

fn legal(key: &str, value: &str) -> bool {
    match key {
        "args" | "env" => list(value).is_some(),
        "url" => value.starts_with("http://") || value.starts_with("https://"),
        "timeout_s" => value.parse::<u32>().is_ok_and(|seconds| seconds > 0),
        _ => !value.is_empty(),
    }
}

fn example(key: &str) -> &'static str {
    match key {
        "args" | "env" => "[\"a\", \"b\"]",
        "url" => "http://127.0.0.1:8000/mcp",
        "timeout_s" => "60",
        "key_env" => "MCP_KEY",
        _ => "npx",
    }
}

/// The keys of MCP servers as settings, for display.
pub(super) fn settings(stated: &[Stated], path: &str) -> Vec<Setting> {
    let setting = |(full, value, line): &Stated| {
        let (_, help) =
            KEYS.into_iter().find(|(key, _)| split(full).is_some_and(|(_, found)| found == *key))?;
        let origin = SettingOrigin::File { path: path.to_owned(), line: *line };
        Some(Setting { key: full.clone(), value: value.clone(), origin, env: &[], aliases: &[], help })
    };
    stated.iter().filter_map(setting).collect()
}

impl Config {
    pub(super) fn mcp_servers(&self) -> BTreeMap<String, McpSettings> {
        let mut tables: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        for setting in &self.settings {
            if let Some((name, key)) = split(&setting.key) {
                tables.entry(name).or_default().insert(key, &setting.value);
            }
        }
        let server = |(name, table): (&str, BTreeMap<&str, &str>)| {
            let text = |key: &str| table.get(key).map(|value| (*value).to_owned());
            let names = |key: &str| table.get(key).and_then(|value| list(value)).unwrap_or_default();
            let place = match (text("command"), text("url")) {
                (Some(command), _) => {
                    McpTransport::Program { command, args: names("args"), env: names("env") }
                }
                (None, Some(url)) => McpTransport::Url { url, key_env: text("key_env") },
                (None, None) => return None,
            };
            let timeout = text("timeout_s").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
            let timeout = timeout.unwrap_or(MCP_TIMEOUT);
            Some((name.to_owned(), McpSettings { place, timeout }))
        };
        tables.into_iter().filter_map(server).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{ConfigError, FILE};

    fn read(text: &str) -> Result<Config, ConfigError> {
        Config::resolve(text, FILE, None, Path::new("."), &|_| None)
    }

    #[test]
    fn servers_are_read_and_shown() {
        let config = read(
            "[tools]\nsearch_url = \"http://127.0.0.1:8080/search\"\ncommands = [\"cargo\"]\nprivate_hosts = [\"127.0.0.1\", \"10.0.0.0/8\"]\n\
             [tools.mcp.files]\ncommand = \"npx\"\nargs = [\"-y\", \"server\"]\ntimeout_s = 5\n[tools.mcp.far]\nurl = \"https://x.example/mcp\"\nkey_env = \"K\"\n",
        )
        .unwrap();
        let tools = config.tools();
        assert_eq!(tools.private_hosts.len(), 2);
        assert_eq!(tools.commands, ["cargo"]);
        assert_eq!(tools.mcp["files"].timeout, Duration::from_secs(5));
        let McpTransport::Program { args, .. } = &tools.mcp["files"].place else { panic!("a program") };
        assert_eq!(args, &["-y", "server"]);
        assert!(
            matches!(&tools.mcp["far"].place, McpTransport::Url { key_env: Some(key), .. } if key == "K")
        );
        let shown = config.settings();
        let shown = shown.iter().find(|setting| setting.key == "tools.mcp.files.command").unwrap();
        assert_eq!(shown.origin, SettingOrigin::File { path: FILE.to_owned(), line: 6 });
    }

    #[test]
    fn mistakes_are_reported_with_their_places() {
        for (text, message, line) in [
            ("[tools.mcp.a]\ncomand = \"x\"\n", "unknown setting tools.mcp.a.comand", 2),
            (
                "[tools.mcp.a]\n[tools.mcp.b]\ncommand = \"x\"\n",
                "MCP server a needs either command or url",
                1,
            ),
            ("[tools]\ncommands = [\"../x\"]\n", "tools.commands cannot be [\"../x\"]", 2),
            ("[tools]\ncommands = [\"a b\"]\n", "tools.commands cannot be", 2),
            ("[tools]\ncommands = [\"git\", \"\"]\n", "tools.commands cannot be", 2),
            ("[tools.mcp.a]\ntimeout_s = 5\n", "MCP server a needs either command or url, and not both", 1),
            (
                "[tools.mcp.a]\ncommand = \"x\"\nurl = \"http://x\"\n",
                "MCP server a needs either command or url, and not both",
                1,
            ),
            ("[tools.mcp.a]\nurl = \"ftp://x\"\n", "tools.mcp.a.url cannot be ftp://x", 2),
            ("[tools.mcp.\"a b\"]\ncommand = \"x\"\n", "a b cannot be the name", 2),
            ("[tools.mcp]\ncommand = \"x\"\n", "unknown setting tools.mcp.command", 2),
            ("[tools]\nprivate_hosts = [\"example.com\"]\n", "tools.private_hosts cannot be", 2),
            ("[tools]\nserach_url = \"http://x\"\n", "unknown setting tools.serach_url", 2),
        ] {
            let Err(ConfigError::Problems(problems)) = read(text) else { panic!("{text}") };
            let found = problems.iter().find(|problem| problem.message.contains(message));
            assert_eq!(found.map(|problem| problem.line), Some(line), "{text}: {problems:?}");
        }
    }
}
