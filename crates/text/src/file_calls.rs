//! Which calls name a file of data, whose exact text an edit has to repeat.
//!
//! Knows how tools and arguments are named; does not know results. In doubt a call names a file: what is taken for one by
//! mistake costs tokens, but a file that is written differently cannot be edited.

use serde_json::Value;

/// Words in the names of tools that read a file, with or without an extension.
const READING: [&str; 6] = ["cat", "edit", "editor", "open", "read", "view"];
/// Words in the names of tools whose path is a folder.
const LISTING: [&str; 9] = ["dir", "directory", "find", "folder", "glob", "grep", "list", "search", "tree"];
/// Programs that print a file, with or without an extension.
const PRINTING: [&str; 6] = ["bat", "cat", "head", "nl", "sed", "tail"];
/// Extensions of what a command runs; `tool` is that of `python -m json.tool`.
const PROGRAMS: [&str; 29] = [
    "bash", "bat", "c", "cjs", "cmd", "cpp", "cs", "exe", "fish", "go", "jar", "java", "js", "jsx", "kt",
    "lua", "mjs", "php", "pl", "ps1", "py", "rb", "rs", "sh", "swift", "tool", "ts", "tsx", "zsh",
];
/// Endings of the names of hosts.
const DOMAINS: [&str; 6] = ["com", "edu", "gov", "io", "net", "org"];

/// Whether a call of `tool` names a file of data. `arguments` are JSON, or plain text for custom tools.
pub fn names_file(tool: &str, arguments: &str) -> bool {
    let words = words(tool);
    let has = |any: &[&str]| words.split(' ').any(|word| any.contains(&word));
    let reads = (has(&READING) || says_file(tool)) && !has(&LISTING);
    match serde_json::from_str(arguments) {
        Ok(arguments) => has_file("", &arguments, reads),
        Err(_) => command_names_file(arguments),
    }
}

/// Whether an argument of a tool, which may read files, is or contains the path of one.
fn has_file(name: &str, argument: &Value, reads: bool) -> bool {
    match argument {
        Value::String(text) => is_file(name, text, reads),
        Value::Array(items) => items.iter().any(|item| has_file(name, item, reads)),
        Value::Object(fields) => fields.iter().any(|(field, value)| {
            let name = if says_file(name) { name } else { field };
            has_file(name, value, reads)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_file(name: &str, text: &str, reads: bool) -> bool {
    let name = name.to_ascii_lowercase();
    let may_be_path = !is_url(text) && !text.is_empty() && !text.ends_with(['/', '\\']);
    if says_file(&name) || text.starts_with("file://") {
        may_be_path
    } else if ["path", "paths", "notebook"].iter().any(|end| name.ends_with(end)) {
        may_be_path && (reads || extension(text).is_some())
    } else {
        // `u.id` in a query is a column, and its rows are no file.
        !name.contains("query") && !name.contains("sql") && command_names_file(text)
    }
}

fn says_file(name: &str) -> bool {
    name.to_ascii_lowercase().replace("profile", "").contains("file")
}

/// Whether a command prints a file, or one of its words is the path of a file that is not a program.
fn command_names_file(command: &str) -> bool {
    let quoted = command.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
    quoted.filter(|part| !is_url(part)).any(|part| {
        let is_in_path = |c: char| c.is_alphanumeric() || matches!(c, '/' | '\\' | '.' | '_' | '-' | '*');
        part.split_inclusive(|c| !is_in_path(c)).any(|word| {
            // In code `rows.map(` is a call; before `@` stands the name of an account.
            let is_code = word.ends_with(['(', '[', '@']);
            let word = word.trim_end_matches(|c| !is_in_path(c));
            let is_program = |kind: &str| PROGRAMS.iter().any(|known| kind.eq_ignore_ascii_case(known));
            let is_host = |kind: &str| !word.contains('/') && DOMAINS.contains(&kind);
            let is_data = |kind: &str| !is_code && !is_program(kind) && !is_host(kind);
            PRINTING.contains(&word) || extension(word).is_some_and(is_data)
        })
    })
}

/// The extension of a file's name; `None` for versions such as `3.11` and filters such as `.data.items`.
fn extension(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let (_, kind) = name.rsplit_once('.')?;
    let is_hidden_file = kind.starts_with("json") || kind.ends_with("rc") || kind.ends_with("config");
    let is_kind = kind.starts_with(char::is_alphabetic) && (!name.starts_with('.') || is_hidden_file);
    is_kind.then_some(kind)
}

/// Whether this is an address, and not that of a file on this machine.
fn is_url(text: &str) -> bool {
    text.contains("://") && !text.contains("file://")
}

/// The words of a tool's name such as `readFile` or `fs.read`, separated by spaces.
fn words(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() {
            words.push(' ');
        }
        words.push(if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_whatever_their_extension() {
        for file in [
            "app_en.arb",
            "schema.jsonld",
            "App.sarif",
            "data.topojson",
            "settings.sublime-settings",
            "a.code-snippets",
            "Package.resolved",
            "package.json.tmpl",
            "foo.excalidraw",
            "a.asmdef",
            "x.uproject",
            "web/tsconfig.JSON",
            ".eslintrc",
            ".mcp.json",
        ] {
            for (tool, arguments) in [
                ("read_file", format!(r#"{{"path": "{file}"}}"#)),
                ("fetch", format!(r#"{{"path": "a b/{file}"}}"#)),
                ("fetch", format!(r#"{{"uri": "file:///a/{file}"}}"#)),
                ("fetch", format!(r#"{{"what": [{{"name": "{file}"}}]}}"#)),
                ("Bash", format!(r#"{{"command": ["bash", "-lc", "cd web && jq . <{file}|less"]}}"#)),
                ("run", format!(r#"{{"code": "print(json.load(open('{file}')))"}}"#)),
                ("exec", format!("git show HEAD:{file}")),
            ] {
                assert!(names_file(tool, &arguments), "{tool} {arguments}");
            }
        }
    }

    #[test]
    fn files_without_an_extension_are_known_by_the_names_of_tools_arguments_and_programs() {
        for (tool, arguments) in [
            ("read_file", r#"{"path": "conf/manifest"}"#),
            ("ReadText", r#"{"paths": ["conf/manifest"]}"#),
            ("mcp__fs__view", r#"{"path": "conf/manifest"}"#),
            ("str_replace_editor", r#"{"command": "view", "path": "/repo/conf/manifest"}"#),
            ("get", r#"{"filePath": "conf/manifest"}"#),
            ("get", r#"{"uri": "file:///conf/manifest"}"#),
            ("get", r#"{"files": [{"name": "manifest"}]}"#),
            ("Bash", r#"{"command": "cd conf && (cat manifest)"}"#),
            ("Bash", r#"{"command": "sed -n 1,40p conf/manifest"}"#),
        ] {
            assert!(names_file(tool, arguments), "{tool} {arguments}");
        }
    }

    #[test]
    fn other_calls_name_no_file() {
        for (tool, arguments) in [
            ("http", r#"{"path": "/v1/users"}"#),
            ("http", r#"{"path": "/v1.2/users/"}"#),
            ("openapi_request", r#"{"path": "/v1/users"}"#),
            ("list_files", r#"{"path": "src"}"#),
            ("read_directory", r#"{"path": "src"}"#),
            ("get_file_contents", r#"{"path": "src/"}"#),
            ("fetch", r#"{"file_url": "https://example.com/app.arb"}"#),
            ("shell", r#"{"command": "curl -s 'https://example.com/v1/users.json?x=a.arb'"}"#),
            ("shell", r#"{"command": "curl -s api.example.com/v1/users"}"#),
            ("shell", r#"{"command": "dig example.com"}"#),
            ("shell", r#"{"command": "python3.11 report.py --since 1.2.3"}"#),
            ("shell", r#"{"command": "./tools/report.sh; go run main.go"}"#),
            ("shell", r#"{"command": "gh api /repos/a/b | jq '.data.items[].name'"}"#),
            ("shell", r#"{"command": "kubectl get pods -o json | python -m json.tool"}"#),
            ("evaluate", r#"{"script": "rows.map(x => x)"}"#),
            ("get_user", r#"{"email": "a.b@example.com", "profile": "default"}"#),
            ("sql", r#"{"query": "SELECT u.id FROM users u"}"#),
            ("get_order", r##"{"order": "#W123", "limit": 2.5}"##),
            ("search", "json"),
            ("get", ""),
            ("get", "{}"),
        ] {
            assert!(!names_file(tool, arguments), "{tool} {arguments}");
        }
    }
}
