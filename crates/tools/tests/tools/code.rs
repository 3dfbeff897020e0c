//! Code mode: nothing outside the workspace is reached, edits are atomic, programs are killed.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use larder_engine::settings::ToolSettings;
use larder_vault::Mode;
use larder_vault::context::CallStatus;
use serde_json::json;

use crate::support::{Answers, Fixture, words};

/// Longest wait for something that is expected; only a failing test waits for it.
#[cfg(unix)]
const PATIENCE: Duration = Duration::from_secs(60);

fn fixture() -> Fixture {
    Fixture::code(&ToolSettings::default())
}

fn allowing(programs: &[&str]) -> ToolSettings {
    let commands = programs.iter().map(|name| (*name).to_owned()).collect();
    // Only Linux has the sandbox; what is tested here does not depend on it.
    ToolSettings { commands, command_unconfined: !cfg!(target_os = "linux"), ..ToolSettings::default() }
}

#[tokio::test]
async fn files_are_read_whole_and_by_lines() {
    let fixture = fixture();
    fixture.write("a.rs", "one\ntwo\nthree\n");
    assert_eq!(words(&fixture.call("file.read", json!({"path": "a.rs"})).await), "one\ntwo\nthree\n");
    let part = fixture.call("file.read", json!({"path": "./a.rs", "from": 2, "to": 2})).await;
    assert_eq!((words(&part).as_str(), part.summary.as_str()), ("two\n", "./a.rs: lines 2 to 2"));
    let absolute = fixture.workspace.join("a.rs").canonicalize().unwrap();
    assert_eq!(fixture.call("file.read", json!({"path": absolute})).await.status, CallStatus::Success);
    fixture.write("large.txt", "0123456789abcde\n".repeat(100_000));
    let large = fixture.call("file.read", json!({"path": "large.txt"})).await;
    assert!(
        large.content.len() < 401_000 && large.summary.contains("there is more: read on from line"),
        "{}",
        large.summary
    );
    let rest = fixture.call("file.read", json!({"path": "large.txt", "from": 99_999})).await;
    assert_eq!(words(&rest).lines().count(), 2);
    fixture.write("binary", b"a\0b");
    fixture.write("oneline", "x".repeat(1_000_000));
    for (path, status, text) in [
        ("binary", CallStatus::Error, "not a text file"),
        ("missing", CallStatus::Error, "missing"),
        (".", CallStatus::Error, "not a plain file"),
        ("oneline", CallStatus::Success, "xxx"),
    ] {
        let output = fixture.call("file.read", json!({"path": path})).await;
        assert_eq!(output.status, status, "{path}: {}", output.summary);
        assert!(words(&output).contains(text) && output.content.len() < 401_000, "{path}");
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_workspace() {
    let fixture = fixture();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    std::fs::write(&secret, "secret").unwrap();
    fixture.write("inside.txt", "inside");
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink(&secret, fixture.workspace.join("link.txt")).unwrap();
        symlink(outside.path(), fixture.workspace.join("folder")).unwrap();
        symlink(outside.path().join("new.txt"), fixture.workspace.join("dangling.txt")).unwrap();
        symlink("inside.txt", fixture.workspace.join("fine.txt")).unwrap();
        assert_eq!(words(&fixture.call("file.read", json!({"path": "fine.txt"})).await), "inside");
    }
    let mut paths = vec![
        "../secret.txt".to_owned(),
        "a/../../x".to_owned(),
        "/etc/passwd".to_owned(),
        secret.display().to_string(),
    ];
    if cfg!(unix) {
        paths.extend(["link.txt", "folder/secret.txt", "folder/new.txt", "folder"].map(str::to_owned));
    }
    for path in &paths {
        for (tool, arguments) in [
            ("file.read", json!({"path": path})),
            ("file.edit", json!({"path": path, "old": "secret", "new": "x"})),
            ("file.edit", json!({"path": path, "old": "", "new": "x"})),
            ("file.search", json!({"pattern": "secret", "path": path})),
        ] {
            let output = fixture.call(tool, arguments).await;
            assert_ne!(output.status, CallStatus::Success, "{tool} {path}: {}", words(&output));
            assert!(!words(&output).contains("secret\n"), "{tool} {path}");
        }
    }
    let made = fixture.call("file.edit", json!({"path": "dangling.txt", "old": "", "new": "x"})).await;
    assert_ne!(made.status, CallStatus::Success);
    assert!(!outside.path().join("new.txt").exists());
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    let found = fixture.call("file.search", json!({"pattern": "secret"})).await;
    assert!(words(&found).is_empty(), "links are not followed: {}", words(&found));
}

#[tokio::test]
async fn lines_are_found_within_bounds() {
    let fixture = fixture();
    std::fs::create_dir(fixture.workspace.join("src")).unwrap();
    fixture.write("src/a.rs", "fn main() {}\nlet needle = 1;\n");
    fixture.write("b.txt", "NEEDLE\n".repeat(500));
    fixture.write("ignored.log", "needle\n");
    fixture.write(".gitignore", "*.log\n");
    fixture.write("binary", b"needle\0");
    let found = fixture.call("file.search", json!({"pattern": "needle"})).await;
    assert_eq!(words(&found), "src/a.rs:2: let needle = 1;\n");
    let many =
        fixture.call("file.search", json!({"pattern": "needle", "ignore_case": true, "limit": 3})).await;
    assert_eq!(words(&many).lines().count(), 3);
    assert!(many.summary.contains("there are more"));
    let literal =
        fixture.call("file.search", json!({"pattern": "main() {", "literal": true, "path": "src"})).await;
    assert!(words(&literal).starts_with("src/a.rs:1:"));
    let wrong = fixture.call("file.search", json!({"pattern": "main("})).await;
    assert!(wrong.status == CallStatus::Error && words(&wrong).contains("set literal"));
    let huge = fixture.call("file.search", json!({"pattern": "(x{1000}){1000}"})).await;
    assert_eq!(huge.status, CallStatus::Error, "a pattern may not fill the memory");
}

#[tokio::test]
async fn a_search_of_a_folder_leaves_out_what_reading_denies() {
    let mut fixture = fixture();
    for folder in ["project/store", "project/src", ".larder", "documents"] {
        std::fs::create_dir_all(fixture.workspace.join(folder)).unwrap();
    }
    let private = ["larder.toml", ".larder/key", "project/larder.toml", "project/store/a", "documents/a"];
    for path in private {
        fixture.write(path, "base_url = needle\n");
    }
    fixture.write("project/src/a.rs", "needle\n");
    let of_project = ["project/larder.toml", "project/store", "documents"];
    let settings = ToolSettings {
        private: of_project.map(|path| fixture.workspace.join(path)).to_vec(),
        ..ToolSettings::default()
    };
    fixture.toolbox = larder_tools::ToolBox::new(&settings).unwrap();
    for arguments in [
        json!({"pattern": "needle"}),
        json!({"pattern": "needle", "path": "project"}),
        json!({"pattern": "needle", "path": "."}),
    ] {
        let found = fixture.call("file.search", arguments.clone()).await;
        assert_eq!(words(&found), "project/src/a.rs:1: needle\n", "{arguments}");
    }
    for path in private {
        for (tool, arguments) in [
            ("file.read", json!({"path": path})),
            ("file.search", json!({"path": path, "pattern": "needle"})),
        ] {
            let refused = fixture.call(tool, arguments).await;
            assert_eq!(refused.status, CallStatus::Denied, "{tool} {path}: {}", words(&refused));
        }
    }
}

#[tokio::test]
async fn edits_are_exact_and_give_their_diff() {
    let fixture = fixture();
    fixture.write("a.txt", "one\r\ntwo\r\ntwo\r\n");
    let edit = |old: &str, new: &str, all: bool| json!({"path": "a.txt", "old": old, "new": new, "all": all});
    for (old, text) in [("three", "does not occur"), ("two", "occurs 2 times"), ("one\n", "does not occur")] {
        let output = fixture.call("file.edit", edit(old, "x", false)).await;
        assert!(output.status == CallStatus::Error && words(&output).contains(text), "{}", words(&output));
    }
    let output = fixture.call("file.edit", edit("one", "eins", false)).await;
    assert_eq!(output.summary, "Edited a.txt (+1 -1 lines)");
    assert!(
        words(&output).contains("--- a/a.txt\n+++ b/a.txt\n") && words(&output).contains("-one\r\n+eins\r\n")
    );
    fixture.call("file.edit", edit("two", "zwei", true)).await;
    assert_eq!(std::fs::read(fixture.workspace.join("a.txt")).unwrap(), b"eins\r\nzwei\r\nzwei\r\n");
    let new = json!({"path": "new.txt", "old": "", "new": "hello\n"});
    assert_eq!(fixture.call("file.edit", new.clone()).await.summary, "Made new.txt (+1 -0 lines)");
    assert!(words(&fixture.call("file.edit", new).await).contains("is there already"));
    fixture.write("binary", b"a\xffb");
    let binary = fixture.call("file.edit", json!({"path": "binary", "old": "a", "new": "b"})).await;
    assert!(words(&binary).contains("not UTF-8"));
    let left: Vec<_> =
        std::fs::read_dir(&fixture.workspace).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "nothing is left behind: {left:?}");
    let below = json!({"path": "docs/2026/new.md", "old": "", "new": "hello\n"});
    assert_eq!(fixture.call("file.edit", below).await.summary, "Made docs/2026/new.md (+1 -0 lines)");
    for path in ["made/../../out.txt", "a.txt/below.txt"] {
        let outside = json!({"path": path, "old": "", "new": "x"});
        assert_ne!(fixture.call("file.edit", outside).await.status, CallStatus::Success, "{path}");
    }
    assert!(!fixture.workspace.join("made").exists());
}

#[tokio::test]
async fn writes_are_asked_for_and_other_modes_have_none() {
    let mut fixture = fixture();
    fixture.confirm = Answers(false, 0.into());
    fixture.write("a.txt", "one");
    let output = fixture.call("file.edit", json!({"path": "a.txt", "old": "one", "new": "two"})).await;
    assert_eq!((output.status, fixture.confirm.1.load(Ordering::SeqCst)), (CallStatus::Denied, 1));
    assert_eq!(std::fs::read_to_string(fixture.workspace.join("a.txt")).unwrap(), "one");
    fixture.call("file.read", json!({"path": "a.txt"})).await;
    assert_eq!(fixture.confirm.1.load(Ordering::SeqCst), 1, "looking is not asked for");
    fixture.mode = Mode::Chat;
    let output = fixture.call("file.read", json!({"path": "a.txt"})).await;
    assert!(
        output.status == CallStatus::Denied && words(&output).contains("chat mode"),
        "{}",
        words(&output)
    );
}

#[cfg(unix)]
#[tokio::test]
async fn programs_run_without_a_shell_and_only_if_they_are_allowed() {
    let fixture = Fixture::code(&allowing(&["echo", "sh", "pwd", "env"]));
    let run = |program: &str, args: &[&str]| json!({"program": program, "args": args});
    let output = fixture.call("command.run", run("echo", &["$HOME", "a b", "| rm"])).await;
    assert_eq!(output.summary, "echo: exit code 0");
    assert!(words(&output).contains("--- stdout\n$HOME a b | rm\n"));
    assert_eq!(fixture.confirm.1.load(Ordering::SeqCst), 1, "it is asked for each time");
    let failed = fixture.call("command.run", run("sh", &["-c", "echo no >&2; exit 3"])).await;
    assert!(failed.status == CallStatus::Error && words(&failed).contains("exit code 3\n--- stderr\nno"));
    for program in ["cat", "./echo", "/bin/echo", "../echo", ""] {
        let output = fixture.call("command.run", run(program, &[])).await;
        assert_ne!(output.status, CallStatus::Success, "{program}");
    }
    let none = Fixture::code(&ToolSettings::default());
    assert!(words(&none.call("command.run", run("echo", &[])).await).contains("tools.commands"));
    let variables = words(&fixture.call("command.run", run("env", &[])).await);
    assert!(variables.contains("PATH=") && !variables.contains("CARGO_"), "{variables}");
}

#[cfg(unix)]
#[tokio::test]
async fn programs_that_hang_are_ended_with_all_that_they_started() {
    let settings = ToolSettings { command_timeout: Duration::from_secs(3), ..allowing(&["sh"]) };
    let fixture = Fixture::code(&settings);
    let run = |script: &str| json!({"program": "sh", "args": ["-c", script]});
    let ended = last_to_end(&fixture.workspace.join("first"));
    let began = Instant::now();
    let output = fixture.call("command.run", run("exec 3>first; echo begun; sleep 60 & sleep 60")).await;
    assert_eq!(output.status, CallStatus::Timeout, "{}", words(&output));
    assert!(words(&output).contains("begun") && began.elapsed() < PATIENCE);
    ended.recv_timeout(PATIENCE).expect("no process goes on");
    let ended = last_to_end(&fixture.workspace.join("second"));
    let began = Instant::now();
    let output = fixture.call("command.run", run("exec 3>second; sleep 61 & echo done")).await;
    assert!(output.status == CallStatus::Success && began.elapsed() < PATIENCE, "{}", words(&output));
    ended.recv_timeout(PATIENCE).expect("no process goes on");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_program_outlives_its_call_in_a_session_of_its_own() {
    let fixture = Fixture::code(&allowing(&["sh"]));
    let ended = last_to_end(&fixture.workspace.join("pipe"));
    let script = "exec 3>pipe; setsid sleep 600 & setsid sh -c 'setsid sleep 601 & sleep 602' & set -m; sleep 603 & \
                  (setsid sleep 604 &) & timeout 605 sleep 606 & echo done";
    let output = fixture.call("command.run", json!({"program": "sh", "args": ["-c", script]})).await;
    assert!(words(&output).contains("done"), "{}", words(&output));
    ended.recv_timeout(PATIENCE).expect("no process goes on");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_that_kills_all_it_can_does_not_outlive_its_call() {
    if !signals_are_confined() {
        return;
    }
    let fixture = Fixture::code(&allowing(&["sh"]));
    let ended = last_to_end(&fixture.workspace.join("pipe"));
    let script = "exec 3>pipe; env -i setsid /bin/sh -c 'kill -9 -1; exec sleep 600' & echo done; sleep 601";
    let output = fixture.call("command.run", json!({"program": "sh", "args": ["-c", script]})).await;
    assert!(words(&output).contains("done"), "{}", words(&output));
    ended.recv_timeout(PATIENCE).expect("no process goes on");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_limits_no_process_but_itself() {
    let fixture = Fixture::code(&allowing(&["sh"]));
    let me = std::process::id();
    let script = format!("ulimit -c 0 && echo itself; prlimit --pid {me} --core=0:0 && echo another");
    let output = words(&fixture.call("command.run", json!({"program": "sh", "args": ["-c", script]})).await);
    assert!(output.contains("itself") && !output.contains("another"), "{output}");
    assert!(output.contains("not permitted") || output.contains("not found"), "{output}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_program_outlives_its_call_without_its_environment() {
    if !signals_are_confined() {
        return;
    }
    let fixture = Fixture::code(&allowing(&["sh"]));
    let ended = last_to_end(&fixture.workspace.join("pipe"));
    let script = "exec 3>pipe; env -i setsid /bin/sh -c 'setsid sleep 600 & sleep 601' & echo done";
    let output = fixture.call("command.run", json!({"program": "sh", "args": ["-c", script]})).await;
    assert!(words(&output).contains("done"), "{}", words(&output));
    ended.recv_timeout(PATIENCE).expect("no process goes on");
}

/// Whether this is Linux 6.12 or newer, where Landlock keeps signals inside.
#[cfg(target_os = "linux")]
fn signals_are_confined() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}

/// Makes a named pipe, and reports when the last process has ended that opened it or inherited it.
#[cfg(unix)]
fn last_to_end(pipe: &Path) -> Receiver<()> {
    assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let (pipe, (report, ended)) = (pipe.to_owned(), channel());
    std::thread::spawn(move || {
        assert_eq!(std::fs::read(pipe).unwrap(), b"", "nobody writes");
        report.send(())
    });
    ended
}

#[cfg(unix)]
#[tokio::test]
async fn output_beyond_the_limit_is_counted_and_dropped() {
    let fixture = Fixture::code(&ToolSettings { max_result_bytes: 10_000, ..allowing(&["sh"]) });
    let script = "yes 0123456789 | head -c 100000000; printf '\\377\\000' >&2";
    let output = fixture.call("command.run", json!({"program": "sh", "args": ["-c", script]})).await;
    assert_eq!(output.status, CallStatus::Success);
    let kept = "of 100000000 bytes of stdout the first 7950 are kept";
    assert_eq!(output.summary, format!("sh: exit code 0; {kept}"));
    let said = words(&output);
    assert!(said.ends_with(&format!("[{kept}; the limit is tools.max_result_bytes]\n")), "{said}");
    assert!(!said.contains("command.run gave") && output.content.len() <= 10_000, "{}", output.content.len());
    let stdout = said.split_once("--- stdout\n").unwrap().1.split_once("\n--- stderr").unwrap().0;
    assert_eq!(stdout.len(), 7_950);
    assert!(output.content.windows(2).any(|bytes| bytes == b"\xff\0"), "any bytes are kept");
    // Both outputs are cut to a half, and each is counted by itself.
    let script = "yes out | head -c 20000; yes err | head -c 30000 >&2";
    let output = fixture.call("command.run", json!({"program": "sh", "args": ["-c", script]})).await;
    let both =
        "of 20000 bytes of stdout the first 3976 are kept; of 30000 bytes of stderr the first 3976 are kept";
    assert_eq!(output.summary, format!("sh: exit code 0; {both}"));
    assert!(!words(&output).contains("command.run gave"), "{}", words(&output));
}

#[tokio::test]
async fn a_turn_without_time_calls_nothing() {
    let mut fixture = fixture();
    fixture.budget.deadline = Some(tokio::time::Instant::now());
    fixture.write("a.txt", "one");
    assert_eq!(fixture.call("file.read", json!({"path": "a.txt"})).await.status, CallStatus::Timeout);
}
