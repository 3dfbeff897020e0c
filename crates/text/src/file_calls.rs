//! Which calls name a file of data, whose exact text an edit has to repeat, and which return the text of a file.
//!
//! Knows how tools and arguments are named; does not know results. In doubt a call names a file: what is taken for one by
//! mistake costs tokens, but a file that is written differently cannot be edited.

use serde_json::Value;

/// Words in the names of tools that read a file, with or without an extension.
const READING: [&str; 6] = ["cat", "edit", "editor", "open", "read", "view"];
/// Words in the names of tools whose path is a folder.
const LISTING: [&str; 9] = ["dir", "directory", "find", "folder", "glob", "grep", "list", "search", "tree"];
/// Programs that print a file, with or without an extension.
const PRINTING: [&str; 7] = ["bat", "cat", "Get-Content", "head", "nl", "sed", "tail"];
/// Words in the names of tools that run a file.
const RUNNING: [&str; 5] = ["exec", "execute", "lint", "run", "test"];
/// Programs that may run before one that prints a file, and print next to nothing.
const QUIET: [&str; 4] = ["cd", "echo", "pwd", "wc"];
/// Extensions of what a command runs; `tool` is that of `python -m json.tool`.
const PROGRAMS: [&str; 29] = [
    "bash", "bat", "c", "cjs", "cmd", "cpp", "cs", "exe", "fish", "go", "jar", "java", "js", "jsx", "kt",
    "lua", "mjs", "php", "pl", "ps1", "py", "rb", "rs", "sh", "swift", "tool", "ts", "tsx", "zsh",
];
/// Endings of the names of hosts.
const DOMAINS: [&str; 6] = ["com", "edu", "gov", "io", "net", "org"];

/// Whether a call of `tool` names a file of data. `arguments` are JSON, or plain text for custom tools.
pub fn names_file(tool: &str, arguments: &str) -> bool {
    match serde_json::from_str(arguments) {
        Ok(arguments) => has_file("", &arguments, reads(tool)),
        Err(_) => command_names_file(arguments),
    }
}

/// The path of a file whose text a call of `tool` returns: one that a tool for reading is given, or that a command prints
/// and does nothing else. In doubt there is none.
pub fn file_read(tool: &str, arguments: &str) -> Option<String> {
    let path = match serde_json::from_str(arguments) {
        Ok(arguments) if reads(tool) && !has(&RUNNING, tool) => path_argument("", &arguments),
        Ok(arguments) => command_argument(&arguments),
        Err(_) => printed_file(arguments),
    };
    path.filter(|path| !path.contains('\n'))
}

/// Whether a tool reads files by its name.
fn reads(tool: &str) -> bool {
    (has(&READING, tool) || says_file(tool)) && !has(&LISTING, tool)
}

/// Whether one of these words is in the name of a tool.
fn has(any: &[&str], tool: &str) -> bool {
    words(tool).split(' ').any(|word| any.contains(&word))
}

/// The first argument of a tool for reading that names a file.
fn path_argument(name: &str, argument: &Value) -> Option<String> {
    match argument {
        Value::String(text) => {
            let says_path = ["path", "paths", "notebook"].iter().any(|end| name.ends_with(end));
            let is_file = says_file(name) || says_path && extension(text).is_some();
            (is_file && !is_url(text)).then(|| text.clone())
        }
        Value::Array(items) => items.iter().find_map(|item| path_argument(name, item)),
        Value::Object(fields) => fields.iter().find_map(|(field, value)| {
            let name = if says_file(name) { name } else { field };
            path_argument(name, value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The file that the command among the arguments prints. A command may be a list of words.
fn command_argument(argument: &Value) -> Option<String> {
    match argument {
        Value::String(text) => printed_file(text),
        Value::Array(items) => {
            let words: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            let whole = words.and_then(|words| printed_file(&words.join(" ")));
            whole.or_else(|| items.iter().find_map(command_argument))
        }
        Value::Object(fields) => {
            let is_command =
                |name: &str| ["cmd", "command", "script"].iter().any(|word| name.ends_with(word));
            fields.iter().filter(|(name, _)| is_command(name)).find_map(|(_, value)| command_argument(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The first file that a command prints, if it does nothing else.
fn printed_file(command: &str) -> Option<String> {
    let command = command.replace("2>&1", "").replace("2>/dev/null", "");
    if ["<", ">", "$(", "`"].iter().any(|sign| command.contains(sign)) {
        return None;
    }
    let mut file = None;
    for step in command.split(['&', ';', '\n']).filter(|step| !step.trim().is_empty()) {
        let mut stages = step.split('|').map(str::split_whitespace);
        let mut first = stages.next()?;
        let program = first.next()?;
        let prints = |program: &str| PRINTING.contains(&program);
        let only_prints = stages.clone().all(|mut stage| stage.next().is_some_and(prints));
        let is_quiet = QUIET.contains(&program) && stages.next().is_none();
        if is_quiet {
            continue;
        }
        if !prints(program) || !only_prints {
            return None;
        }
        let path = first.rfind(|word| !word.starts_with('-'));
        file = file.or(path.map(|path| path.trim_matches(['"', '\'']).to_owned()));
    }
    file
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

    #[test]
    fn the_file_that_a_call_reads_is_known_by_its_tool_or_by_a_command_that_only_prints() {
        for (tool, arguments, path) in [
            ("Read", r#"{"file_path": "/repo/src/a.rs", "limit": 20}"#, "/repo/src/a.rs"),
            ("read_file", r#"{"path": "a.py"}"#, "a.py"),
            ("mcp__fs__read_text_file", r#"{"path": "docs/a b.md"}"#, "docs/a b.md"),
            ("Read", r#"{"file_path": "/repo/Makefile"}"#, "/repo/Makefile"),
            ("read_many_files", r#"{"paths": ["a.go", "b.go"]}"#, "a.go"),
            ("str_replace_editor", r#"{"command": "view", "path": "/repo/a.c"}"#, "/repo/a.c"),
            ("Bash", r#"{"command": "cd src && sed -n '1,200p' a.ts", "timeout": 3}"#, "a.ts"),
            ("shell", r#"{"command": ["bash", "-lc", "nl -ba 'a.rs' | sed -n 1,40p"]}"#, "a.rs"),
            ("shell", r#"{"command": ["cat", "a.rs"]}"#, "a.rs"),
            ("shell", r#"{"cmd": "wc -l 2024.md && cat 2024.md 2>&1"}"#, "2024.md"),
            ("exec", "cat a.py; echo ---; cat b.py 2>/dev/null", "a.py"),
        ] {
            assert_eq!(file_read(tool, arguments).as_deref(), Some(path), "{tool} {arguments}");
        }
    }

    #[test]
    fn other_calls_read_no_file() {
        for (tool, arguments) in [
            ("list_files", r#"{"path": "src/a.rs"}"#),
            ("read_directory", r#"{"path": "src.d"}"#),
            ("view", r#"{"path": "/repo/src"}"#),
            ("read_url", r#"{"path": "https://example.com/a.html"}"#),
            ("get_order", r#"{"path": "a.json"}"#),
            ("Bash", r#"{"command": "grep -rn area src/a.rs"}"#),
            ("Bash", r#"{"command": "cat a.log | grep Error"}"#),
            ("Bash", r#"{"command": "make && cat a.log"}"#),
            ("Bash", r#"{"command": "cat a.csv > b.csv"}"#),
            ("Bash", "{\"command\": \"cat <<EOF\\nx\\nEOF\"}"),
            ("Bash", r#"{"command": "echo 'print(1)' | python3"}"#),
            ("Bash", r#"{"command": "cat $(ls -t | head -1)"}"#),
            ("Bash", r#"{"command": "pytest -q", "description": "cat the report"}"#),
            ("run_python_file", r#"{"path": "report.py"}"#),
            ("shell", "cat"),
            ("shell", ""),
        ] {
            assert_eq!(file_read(tool, arguments), None, "{tool} {arguments}");
        }
    }
}
