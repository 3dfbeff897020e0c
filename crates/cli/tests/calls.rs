//! The tools that a recipe names are called outside turns too: with their classes, limits and permissions, by `larder run`,
//! cards and recipes over HTTP.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use larder_testkit::stub::{Answer, End, Seen};
use serde_json::{Value, json};
use support::scholar::{asked, say};
use support::served::Served;
use support::{Ran, Shop, reply_calls, reply_text};

const HELPER: &str = "\
name: helper
description: Work in a folder.
mode: code
model_layer: VOICE
token_budget: {total: 6000, prompt: 300, input: 4500, output: 600, response_reserve: 200}
prompt_files: [prompts/notes/all.md]
input_docs: [{name: notes, required: false}]
tools_available: [file.read, file.edit, command.run, memory.create]
output_format: text
";

fn shop(respond: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Shop {
    let shop = Shop::responding(respond);
    configure(&shop, "");
    shop.write("recipes/notes/helper.yaml", HELPER);
    shop.write(
        "recipes/notes/keeper.yaml",
        HELPER.replace("name: helper", "name: keeper").replace("mode: code\n", ""),
    );
    shop.write("prompts/notes/all.md", "You do what you are asked.\n");
    shop.write("work/a.txt", "The harbour opens at six.\n");
    shop.write("secret.txt", "Nobody reads this.\n");
    shop
}

fn configure(shop: &Shop, tables: &str) {
    shop.configure_layers(&["MIND", "VOICE"], "capabilities = [\"tools\"]\n", tables);
}

fn offered(seen: &Seen) -> Vec<String> {
    let body = seen.json();
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn results(seen: &Seen) -> Vec<String> {
    let body = seen.json();
    let messages = body["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// Makes one call, then answers with its result.
fn calls(tool: &'static str, arguments: Value) -> impl Fn(&Seen) -> Answer + Send + Sync {
    move |seen| match results(seen).first() {
        None => reply_calls(&[(tool, arguments.clone())]),
        Some(result) => reply_text(&format!("It came to: {result}")),
    }
}

#[test]
fn explain_lists_the_tools_with_their_tokens() {
    let shop = shop(|_| reply_text("unasked"));
    let args = ["explain", "notes/helper", "-q", "Look."];
    let explained = shop.json(&args);
    let tools = explained["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(["command_run", "file_edit", "file_read"].iter().all(|name| names.contains(name)), "{names:?}");
    let tokens: Vec<u64> = tools.iter().map(|tool| tool["tokens"].as_u64().unwrap()).collect();
    let framing = explained["budget"]["framing"].as_u64().unwrap();
    assert!(tokens.iter().all(|&tokens| tokens > 20) && tokens.iter().sum::<u64>() < framing, "{explained}");
    let shown = shop.ok(&args).out;
    assert!(shown.contains("tool file_read ") && shown.contains(&format!("{:>5}", tokens[0])), "{shown}");
}

#[test]
fn names_of_tools_that_there_are_not_are_reported_and_all_tools_of_a_server_can_be_named() {
    let shop = shop(|_| reply_text("Done."));
    shop.write(
        "recipes/notes/wild.yaml",
        HELPER
            .replace("name: helper", "name: wild")
            .replace(
                "[file.read, file.edit, command.run, memory.create]",
                "[mcp.files.*, file.reed, mcp.filse.*]",
            )
            .replace("mode: code\n", ""),
    );
    configure(&shop, "[tools.mcp.files]\ncommand = \"/no/such/server\"\n");
    let ran = shop.fails(1, &["check"]);
    let said = ran.out;
    assert!(
        said.contains("there is no tool `file.reed`") && said.contains("did you mean `file.read`?"),
        "{said}"
    );
    assert!(said.contains("there is no tool `mcp.filse.*`") && said.contains("[tools.mcp.filse]"), "{said}");
    assert!(
        said.contains("did you mean `mcp.files.*`?") && !said.contains("no tool `mcp.files.*`"),
        "{said}"
    );
    let ran = shop.ok(&["run", "notes/wild", "-q", "Look."]);
    assert!(
        ran.err.contains("there is no tool file.reed") && !ran.err.contains("--mode code"),
        "{}",
        ran.err
    );
}

const RUN: [&str; 6] = ["run", "notes/helper", "-q", "Look.", "--workspace", "work"];

#[test]
fn a_recipe_calls_its_tools_in_its_workspace() {
    let shop = shop(calls("file_read", json!({"path": "a.txt"})));
    let run = shop.json(&RUN);
    assert!(run["reply"].as_str().unwrap().contains("The harbour opens at six."), "{}", run["reply"]);
    let seen = shop.seen();
    assert_eq!(
        offered(&seen[0]),
        ["command_run", "file_edit", "file_read", "memory_create", "larder_rehydrate"]
    );
    assert_eq!(run["usage"]["input"], 200, "every round is on the record");
    let call = &run["receipt"]["calls"][0];
    assert_eq!((&call["call"], &call["status"]), (&json!("file.read(path=\"a.txt\")"), &json!("success")));
    let whole = shop.ok(&["rehydrate", call["pointer"].as_str().unwrap()]).out;
    assert!(whole.contains("The harbour opens at six."), "{whole}");
    let ran = shop.ok(&RUN);
    let said = ran.err.lines().find(|line| line.starts_with("file.read(path=\"a.txt\"): success")).unwrap();
    assert!(said.contains(call["pointer"].as_str().unwrap()), "{said}");
    // What the tools take is part of the prompt.
    let framing =
        |recipe: &str| shop.json(&["explain", recipe, "-q", "Look."])["budget"]["framing"].as_u64().unwrap();
    shop.write(
        "recipes/notes/bare.yaml",
        HELPER
            .replace("name: helper", "name: bare")
            .replace("tools_available: [file.read, file.edit, command.run, memory.create]\n", ""),
    );
    assert!(framing("notes/helper") > framing("notes/bare") + 200);
}

#[test]
fn nothing_outside_the_workspace_is_read_and_only_a_recipe_for_code_has_one() {
    let shop = shop(calls("file_read", json!({"path": "../secret.txt"})));
    let run = shop.json(&RUN);
    assert!(!run["reply"].as_str().unwrap().contains("Nobody"), "{}", run["reply"]);
    let ran = shop.fails(2, &["run", "notes/keeper", "-q", "Look.", "--workspace", "work"]);
    assert!(ran.err.contains("--workspace needs --mode code"), "{}", ran.err);
}

#[test]
fn a_recipe_runs_in_its_own_mode_only_and_its_prompt_names_what_is_offered() {
    let shop = shop(|_| reply_text("Done."));
    shop.write(
        "recipes/notes/talker.yaml",
        HELPER.replace("helper", "talker").replace("mode: code", "mode: chat"),
    );
    for (recipe, declared, chosen) in [("notes/helper", "code", "chat"), ("notes/talker", "chat", "code")] {
        let ran = shop.fails(1, &["run", recipe, "-q", "Look.", "--mode", chosen]);
        let told = format!("{recipe} is for mode {declared} only, and this run is in mode {chosen}");
        assert!(ran.err.contains(&told) && ran.err.contains(&format!("--mode {declared}")), "{ran:?}");
    }
    assert!(shop.seen().is_empty());
    shop.write("prompts/notes/all.md", "You may call: {{ tools | join(' ') }}.\n");
    let prompt = |recipe: &str| {
        let run = shop.json(&["run", recipe, "-q", "Look."]);
        (shop.seen().pop().unwrap().json()["messages"].to_string(), run["receipt"]["not_offered"].clone())
    };
    let (said, missing) = prompt("notes/talker");
    assert!(said.contains("You may call: memory.create."), "{said}");
    assert_eq!(missing, json!(["file.read", "file.edit", "command.run"]));
    let (said, missing) = prompt("notes/helper");
    assert!(said.contains("You may call: command.run file.edit file.read memory.create."), "{said}");
    assert_eq!(missing, Value::Null);
}

#[test]
fn over_http_a_recipe_for_code_is_offered_nothing_that_needs_a_workspace() {
    let shop = shop(|_| reply_text("Done."));
    configure(&shop, "[gateway]\nrecipe_tools = \"write\"\n");
    let served = Served::start(&shop, &[]);
    let body = json!({"model": "recipe/notes/helper", "messages": [{"role": "user", "content": "Look."}]});
    let (status, said) = served.post("/v1/chat/completions", &body);
    served.signal("TERM");
    served.end();
    assert_eq!(status, 200, "{said}");
    assert!(
        !offered(&shop.seen()[0]).iter().any(|name| name.starts_with("file_")),
        "{:?}",
        offered(&shop.seen()[0])
    );
    assert!(offered(&shop.seen()[0]).contains(&"memory_create".to_owned()));
    let runs = shop.json(&["runs"]);
    let run = shop.json(&["runs", "show", runs[0]["run_id"].as_str().unwrap_or_default()]);
    let missing = json!(["file.read", "file.edit", "command.run"]);
    assert_eq!(run["receipt"]["not_offered"], missing, "{run}");
}

#[test]
fn store_settings_and_documents_of_others_are_out_of_reach_in_a_workspace() {
    const PIN: &str = "vault/users/bob/turns/turn_000001/context.md";
    let tried = [
        ("file_read", json!({"path": PIN})),
        ("file_read", json!({"path": "home/key"})),
        ("file_read", json!({"path": "larder.toml"})),
        ("file_search", json!({"pattern": "PIN"})),
        ("command_run", json!({"program": "cat", "args": [PIN, "home/key", "larder.toml"]})),
        ("command_run", json!({"program": "grep", "args": ["-r", "PIN", "."]})),
        ("command_run", json!({"program": "cp", "args": ["home/key", "work/x"]})),
        ("command_run", json!({"program": "cat", "args": ["work/a.txt"]})),
    ];
    let shop =
        shop(move |seen| if results(seen).is_empty() { reply_calls(&tried) } else { reply_text("Read.") });
    configure(&shop, "[documents]\nplace = \"vault\"\n[tools]\ncommands = [\"cat\", \"cp\", \"grep\"]\n");
    shop.write("recipes/notes/helper.yaml", HELPER.replace("file.edit", "file.search"));
    shop.write(PIN, "What does the PIN 4711 open?\n");
    let args = ["run", "notes/helper", "-q", "Look.", "--workspace", ".", "--yes"];
    let ran: Ran = shop.command(&args).env("PATH", std::env::var("PATH").unwrap()).output().unwrap().into();
    assert_eq!(ran.code, 0, "{ran:?}");
    let results = results(&shop.seen()[1]);
    for result in &results[..3] {
        assert!(result.contains("is Larder's own: no tool reads or changes it"), "{result}");
    }
    let all = results.join("\n");
    assert!(!all.contains("4711") && !all.contains("[models.layers]"), "{all}");
    assert!(shop.path().join("home/key").exists() && !shop.path().join("work/x").exists(), "{all}");
    if cfg!(target_os = "linux") {
        assert!(results[7].contains("The harbour opens at six."), "the rest is there: {}", results[7]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn programs_end_with_the_process_that_started_them() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;
    use std::time::Duration;
    /// Longest wait for something that is expected to happen.
    const PATIENCE: Duration = Duration::from_secs(30);
    let script = "exec 3>pipe; sleep 600 & sleep 601";
    for unconfined in [false, true] {
        let arguments = json!({"program": "sh", "args": ["-c", script]});
        let shop = shop(calls("command_run", arguments));
        configure(&shop, &format!("[tools]\ncommands = [\"sh\"]\ncommand_unconfined = {unconfined}\n"));
        let pipe = shop.path().join("work/pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (report, reported) = channel();
        std::thread::spawn(move || {
            // Opened when a program opens it, and at its end when the last one that has it has ended.
            let mut pipe = std::fs::File::open(pipe).unwrap();
            report.send("started").unwrap();
            pipe.read_to_end(&mut Vec::new()).unwrap();
            report.send("ended")
        });
        let args = [&RUN[..], &["--yes"]].concat();
        let mut command = shop.command(&args);
        command.env("PATH", std::env::var("PATH").unwrap()).stdin(Stdio::null()).stderr(Stdio::null());
        let mut larder = command.stdout(Stdio::null()).spawn().unwrap();
        assert_eq!(reported.recv_timeout(PATIENCE), Ok("started"));
        larder.kill().unwrap();
        larder.wait().unwrap();
        assert_eq!(reported.recv_timeout(PATIENCE), Ok("ended"), "unconfined: {unconfined}");
    }
}

#[test]
fn a_turn_plants_no_settings_for_the_next_command() {
    let plant =
        |path: &str| ("file_edit", json!({"path": path, "old": "", "new": "[tools]\ncommands = [\"sh\"]\n"}));
    let touch = |name: &str| ("command_run", json!({"program": "touch", "args": [name]}));
    let places =
        ["larder.toml", "sub/Larder.toml", ".larder/index.sqlite", ".git/hooks/post-commit", "b.txt"];
    let tried: Vec<(&str, Value)> = places
        .iter()
        .map(|place| plant(place))
        .chain(["larder.toml", "sub/larder.toml", "c.txt"].map(touch))
        .collect();
    let shop =
        shop(move |seen| if results(seen).is_empty() { reply_calls(&tried) } else { reply_text("Done.") });
    configure(&shop, "[tools]\ncommands = [\"touch\"]\n");
    // Settings below that were there before stay.
    shop.write("work/sub/own/larder.toml", "");
    let args = [&RUN[..], &["--yes"]].concat();
    let ran: Ran = shop.command(&args).env("PATH", std::env::var("PATH").unwrap()).output().unwrap().into();
    assert_eq!(ran.code, 0, "{ran:?}");
    let results = results(&shop.seen()[1]);
    for (place, result) in places.iter().zip(&results[..4]) {
        assert!(result.contains("would take effect beyond this task"), "{place}: {result}");
        assert!(!shop.path().join("work").join(place).exists(), "{place}");
    }
    assert!(shop.path().join("work/b.txt").exists(), "{results:?}");
    assert!(
        !shop.path().join("work/larder.toml").exists() && !shop.path().join("work/sub/larder.toml").exists()
    );
    assert!(shop.path().join("work/sub/own/larder.toml").exists());
    if cfg!(target_os = "linux") {
        for (result, made) in [(5, "larder.toml.set-aside"), (6, "sub/larder.toml.set-aside")] {
            let made = shop.path().join("work").canonicalize().unwrap().join(made);
            let note = format!("it was renamed to {}; rename it back if it is yours", made.display());
            assert!(results[result].contains(&note), "{}", results[result]);
            assert!(ran.err.contains(&note), "{}", ran.err);
            assert!(made.exists());
        }
        assert!(shop.path().join("work/c.txt").exists());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_turn_makes_no_project_for_the_next_command() {
    let recipe = "name: answer\ndescription: Planted.\nmodel_layer: VOICE\n";
    let edit = |path: &str| ("file_edit", json!({"path": path, "old": "", "new": recipe}));
    let refused =
        ["recipes/ask/answer.yaml", "sub/recipes/a.yml", "Conversations/care.yaml", "own/prompts/a/b.md"];
    let script = "mkdir -p recipes/ask conversations sub/recipes own/recipes/b soups/recipes own/prompts/a; \
                  echo x > recipes/ask/answer.yaml; echo x > conversations/a.yml; echo x > sub/recipes/a.yaml; \
                  echo y >> own/recipes/a/a.yaml; echo x > own/recipes/b/b.yaml; echo x > own/prompts/a/a.md; \
                  echo x > own/routes.yaml; echo x > soups/recipes/soup.md; echo x > soups/registry.yaml";
    let mut tried: Vec<(&str, Value)> = refused.iter().map(|path| edit(path)).collect();
    tried.push(edit("soups/recipes/soup.ts"));
    tried.push(("command_run", json!({"program": "sh", "args": ["-c", script]})));
    let shop =
        shop(move |seen| if results(seen).is_empty() { reply_calls(&tried) } else { reply_text("Done.") });
    configure(&shop, "[tools]\ncommands = [\"sh\"]\n");
    shop.write("work/own/recipes/a/a.yaml", "x: 1\n");
    let project = || {
        let mut command = shop.command(&["config"]);
        let ran: Ran = command.current_dir(shop.path().join("work")).output().unwrap().into();
        (ran.code, ran.out, ran.err)
    };
    let before = project();
    assert!(before.2.contains("project "), "it is the one above: {before:?}");
    let args = [&RUN[..], &["--yes"]].concat();
    let ran: Ran = shop.command(&args).env("PATH", std::env::var("PATH").unwrap()).output().unwrap().into();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(project(), before);
    let results = results(&shop.seen()[1]);
    for (path, result) in refused.iter().zip(&results) {
        assert!(result.contains("would take effect beyond this task"), "{path}: {result}");
    }
    let at = |path: &str| shop.path().join("work").canonicalize().unwrap().join(path);
    let said = results.last().unwrap();
    for path in [
        "recipes/ask/answer.yaml",
        "conversations/a.yml",
        "sub/recipes/a.yaml",
        "own/recipes/b/b.yaml",
        "own/prompts/a/a.md",
    ] {
        let aside = at(&format!("{path}.set-aside"));
        assert!(said.contains(&format!("renamed to {}", aside.display())), "{path}: {said}");
        assert!(aside.exists() && !at(path).exists(), "{path}");
    }
    assert!(said.contains(&format!("{} was changed", at("own/recipes/a/a.yaml").display())), "{said}");
    for path in ["soups/recipes/soup.md", "soups/recipes/soup.ts", "own/routes.yaml", "soups/registry.yaml"] {
        assert!(at(path).exists(), "{path} decides nothing: {said}");
    }
}

#[cfg(unix)]
#[test]
fn a_program_gets_no_file_that_larder_was_given() {
    for unconfined in [false, true] {
        let script = "cat <&9; echo changed >&9; echo over";
        let shop = shop(calls("command_run", json!({"program": "sh", "args": ["-c", script]})));
        configure(&shop, &format!("[tools]\ncommands = [\"sh\"]\ncommand_unconfined = {unconfined}\n"));
        let args = [&RUN[..], &["--yes"]].concat();
        let larder = shop.command(&args);
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", "exec 9<>secret.txt; exec \"$0\" \"$@\""]);
        command.arg(larder.get_program()).args(larder.get_args()).current_dir(shop.path()).env_clear();
        command.envs(larder.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran: Ran = command.env("PATH", std::env::var("PATH").unwrap()).output().unwrap().into();
        assert!(ran.code == 0 && ran.out.contains("over"), "{ran:?}");
        assert!(ran.out.to_lowercase().contains("bad file descriptor"), "unconfined {unconfined}: {ran:?}");
        assert!(!ran.out.contains("Nobody reads this"), "{ran:?}");
        let kept = std::fs::read_to_string(shop.path().join("secret.txt")).unwrap();
        assert_eq!(kept, "Nobody reads this.\n", "unconfined {unconfined}");
    }
}

#[test]
fn what_changes_a_file_needs_permission() {
    let edit = json!({"path": "a.txt", "old": "six", "new": "seven"});
    // As prompts and docs write it.
    let shop = shop(calls("file.edit", edit));
    let file = || std::fs::read_to_string(shop.path().join("work/a.txt")).unwrap();
    let ran = shop.ok(&RUN);
    assert!(ran.err.contains("refused: file.edit") && ran.out.contains("not allowed"), "{ran:?}");
    assert!(file().contains("six"));
    let ran = shop.ok(&[&RUN[..], &["--yes"]].concat());
    assert!(file().contains("seven"), "{ran:?}");
}

#[test]
fn a_failed_run_says_what_its_tools_changed() {
    let edit = json!({"path": "a.txt", "old": "six", "new": "seven"});
    let shop = shop(move |seen| match results(seen).is_empty() {
        true => reply_calls(&[("file_edit", edit.clone())]),
        false => reply_text(""),
    });
    let ran = shop.fails(1, &[&RUN[..], &["--yes"]].concat());
    let file = std::fs::read_to_string(shop.path().join("work/a.txt")).unwrap();
    assert!(file.contains("seven") && ran.err.contains("no answer passed the checks"), "{ran:?}");
    let said = ran.err.lines().find(|line| line.starts_with("file.edit(path=\"a.txt\"")).unwrap();
    assert!(said.contains(": success "), "{said}");
    let pointer = said.rsplit_once("· ").unwrap().1;
    assert!(shop.ok(&["rehydrate", pointer]).out.contains("a.txt"), "{said}");
}

#[test]
fn a_tool_that_the_recipe_does_not_name_is_not_called() {
    let shop = shop(calls("doc_search", json!({"query": "harbour"})));
    let ran = shop.ok(&RUN);
    assert!(ran.out.contains("there is no tool \"doc_search\""), "{}", ran.out);
}

#[test]
fn a_round_reads_the_calls_of_the_rounds_before_it_with_their_results() {
    let shop =
        shop(|seen| match (results(seen).len(), seen.json()["messages"].to_string().contains("Read it.")) {
            (_, true) => reply_text("Wrote it.\n<promise>COMPLETE</promise>"),
            (0, false) => reply_calls(&[("file_read", json!({"path": "a.txt"}))]),
            _ => reply_text("Read it."),
        });
    shop.ok(&[
        "run",
        "card/card_agent",
        "-q",
        "Write the hours",
        "--until-done",
        "--mode",
        "code",
        "--workspace",
        "work",
    ]);
    let seen = shop.seen();
    assert_eq!(seen.len(), 3);
    let request = seen[2].json();
    let messages = request["messages"].as_array().unwrap();
    let at = messages.iter().position(|message| message["role"] == "assistant").unwrap();
    let [asked, called, result, said] = &messages[at - 1..at + 3] else { panic!("{request}") };
    assert!(asked["content"].to_string().contains("Write the hours"), "{request}");
    assert_eq!(called["tool_calls"][0]["function"]["name"], "file_read", "{request}");
    assert_eq!(called["tool_calls"][0]["id"], result["tool_call_id"], "{request}");
    assert!(result["content"].as_str().unwrap().contains("The harbour opens at six."), "{request}");
    assert_eq!(said["content"], "Read it.", "{request}");
}

#[test]
fn calls_and_rounds_have_the_limits_of_a_turn() {
    let shop = shop(|seen| match results(seen).len() {
        0 => reply_calls(&[
            ("file_read", json!({"path": "a.txt"})),
            ("file_read", json!({"path": "a.txt", "from": 1})),
        ]),
        _ => reply_text("Read."),
    });
    configure(&shop, "[turn]\nmax_tool_calls = 1\n");
    let run = shop.json(&RUN);
    let status = |at: usize| run["receipt"]["calls"][at]["status"].as_str().unwrap().to_owned();
    assert_eq!((status(0).as_str(), status(1).as_str()), ("success", "denied"));
    let again = self::shop(|_| reply_calls(&[("file_read", json!({"path": "a.txt"}))]));
    configure(&again, "[turn]\nmax_iterations = 5\n");
    let ran = again.fails(1, &RUN);
    assert!(ran.err.contains("5 times within one run (max_iterations under [turn]"), "{}", ran.err);
    // Five rounds of calls, the call after them, and the repair, which offers no tools.
    let seen = again.seen();
    assert_eq!(seen.iter().filter(|seen| !offered(seen).is_empty()).count(), 6);
    assert!(results(&seen[5]).last().unwrap().contains("last call in this reply"));
}

#[test]
fn a_run_with_all_its_calls_and_attempts_stays_within_the_limits_of_a_turn() {
    // Every call of a model takes 110 tokens.
    let shop = shop(|_| reply_calls(&[("file_read", json!({"path": "a.txt"}))]));
    configure(&shop, "[turn]\nmax_tokens = 300\n");
    let ran = shop.fails(1, &RUN);
    assert!(ran.err.contains("its tokens are used up"), "{}", ran.err);
    assert_eq!(shop.seen().len(), 3, "no repair follows");
    assert!(shop.ok(&["runs"]).out.contains("Failed: gates"));
    let shop = self::shop(|_| reply_calls(&[("file_read", json!({"path": "a.txt"}))]).ending(End::Hang));
    configure(&shop, "[turn]\nmax_time_s = 1\n");
    let ran = shop.fails(3, &[&RUN[..], &["--format", "json"]].concat());
    let error: Value = serde_json::from_str(ran.err.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&error["error"]["code"], &error["error"]["exit_code"]),
        (&json!("timeout"), &json!(3)),
        "{error}"
    );
}

#[test]
fn a_later_attempt_reads_what_was_called_before() {
    let shop = shop(|seen| {
        let text = seen.json()["messages"].to_string();
        match (results(seen).is_empty(), text.contains("These calls were made already")) {
            (true, false) => reply_calls(&[("file_read", json!({"path": "a.txt"}))]),
            // The first answer is not what its schema asks for.
            (false, _) => reply_text("It opens at six."),
            (true, true) => {
                reply_text(if text.contains("The harbour opens at six.") { "{\"at\": 6}" } else { "?" })
            }
        }
    });
    let schema = "output_format: json\noutput_schema: {type: object, required: [at], properties: {at: {type: integer}}}\nquality_gates: {schema_validation: true, max_retries: 1}\n";
    shop.write("recipes/notes/helper.yaml", HELPER.replace("output_format: text\n", schema));
    let run = shop.json(&RUN);
    assert_eq!(run["output"]["at"], 6, "{run}");
    assert_eq!(run["receipt"]["calls"].as_array().unwrap().len(), 1, "nothing is called twice");
}

#[test]
fn a_long_result_is_condensed_into_the_room_that_is_left() {
    let shop = shop(calls("file_read", json!({"path": "long.txt"})));
    let lines: Vec<String> = (0..9_000).map(|at| format!("The {at}th boat left the harbour.")).collect();
    shop.write("work/long.txt", lines.join("\n"));
    let run = shop.json(&RUN);
    let call = &run["receipt"]["calls"][0];
    assert!(call["tokens"].as_u64().unwrap() <= 4_000, "{call}");
    let read = shop.seen().pop().map(|seen| results(&seen).concat()).unwrap();
    assert!(read.contains("lp1-"), "the whole result is behind a pointer");
    let whole = shop.ok(&["rehydrate", call["pointer"].as_str().unwrap()]).out;
    assert!(whole.contains("The 4999th boat left the harbour."));
}

/// Notes with which the prompt of the helper just fits: it takes more than nine tenths of its budget.
fn notes_that_just_fit(shop: &Shop) -> Value {
    (100..400)
        .step_by(4)
        .map(|count| {
            let lines: Vec<String> =
                (0..count).map(|at| format!("On day {at} boat {} left the harbour.", at * 7)).collect();
            shop.write("notes.txt", lines.join("\n"));
            shop.json(&["explain", "notes/helper", "-q", "Look.", "--doc", "notes=notes.txt"])
        })
        .find(|explained| explained["whole"].as_u64() > available(explained).map(|tokens| tokens * 9 / 10))
        .unwrap()
}

fn available(explained: &Value) -> Option<u64> {
    explained["budget"]["available"].as_u64()
}

#[test]
fn a_prompt_that_just_fits_keeps_a_quarter_for_the_results_of_its_tools() {
    let shop = shop(calls("file_read", json!({"path": "a.txt"})));
    let explained = notes_that_just_fit(&shop);
    let available = available(&explained).unwrap();
    assert!(explained["whole"].as_u64().unwrap() <= available, "{explained}");
    assert_eq!(explained["budget"]["kept_free"].as_u64().unwrap(), available / 4, "{explained}");
    assert!(explained["budget"]["used"].as_u64().unwrap() <= available - available / 4, "{explained}");
    let parts = explained["parts"].as_array().unwrap();
    let notes = parts.iter().find(|part| part["id"] == "notes").unwrap();
    assert_eq!((&notes["rendition"], &notes["reason"]), (&json!("condensed"), &json!("call_near_limit")));
    let run = shop.json(&[&RUN[..], &["--doc", "notes=notes.txt"]].concat());
    assert_eq!(run["receipt"]["calls"][0]["status"], "success", "{run}");
    assert!(run["output"].as_str().unwrap().contains("The harbour opens at six."), "{run}");
}

#[test]
fn calls_that_are_not_carried_out_are_listed_with_the_reason() {
    let shop = shop(calls("file_read", json!({"path": "a.txt"})));
    // What is protected leaves no room, and the prompt is sent.
    let helper = HELPER.replace("required: false}", "required: false, protect: true}");
    shop.write("recipes/notes/helper.yaml", helper);
    let explained = notes_that_just_fit(&shop);
    let left = available(&explained).unwrap() - explained["budget"]["used"].as_u64().unwrap();
    let lines = std::fs::read_to_string(shop.path().join("notes.txt")).unwrap();
    shop.write("notes.txt", lines + &" x".repeat(usize::try_from(left - 60).unwrap()));
    let ran = shop.fails(1, &[&RUN[..], &["--doc", "notes=notes.txt"]].concat());
    let said = ran.err.lines().find(|line| line.starts_with("file_read(")).unwrap_or_default();
    assert!(said.contains("denied the budget of the prompt has no room for more"), "{}", ran.err);
    let runs = shop.json(&["runs"]);
    let run = shop.json(&["runs", "show", runs[0]["run_id"].as_str().unwrap_or_default()]);
    let call = &run["receipt"]["calls"][0];
    assert_eq!(call["status"], "denied", "{run}");
    assert!(call["summary"].as_str().unwrap().contains("no room for more"), "{call}");
}

#[test]
fn over_http_only_what_the_settings_allow_is_offered() {
    for (setting, tools, remembered) in [
        ("", vec!["memory_query", "larder_rehydrate"], false),
        ("[gateway]\nrecipe_tools = \"none\"\n", vec![], false),
        (
            "[gateway]\nrecipe_tools = \"write\"\n",
            vec!["memory_create", "memory_query", "larder_rehydrate"],
            true,
        ),
    ] {
        let fact = json!({"kind": "fact", "fact": "The harbour opens at six.", "category": "Work"});
        let shop = shop(calls("memory_create", fact));
        shop.write(
            "recipes/notes/keeper.yaml",
            HELPER.replace("name: helper", "name: keeper").replace("mode: code\n", "").replace(
                "[file.read, file.edit, command.run, memory.create]",
                "[memory.query, memory.create]",
            ),
        );
        configure(&shop, setting);
        let served = Served::start(&shop, &[]);
        let body =
            json!({"model": "recipe/notes/keeper", "messages": [{"role": "user", "content": "Look."}]});
        let (status, said) = served.post("/v1/chat/completions", &body);
        served.signal("TERM");
        served.end();
        assert_eq!(offered(&shop.seen()[0]), tools, "{setting}");
        let files = shop.documents().files();
        let knows = files.values().any(|bytes| String::from_utf8_lossy(bytes).contains("The harbour opens"));
        assert_eq!(knows, remembered, "{setting}");
        if !tools.is_empty() {
            assert!(status == 200, "{status} {said}");
        }
        assert!(shop.documents().broken_links(|_| true).is_empty());
    }
}

const PAGE: &str = "<!doctype html><title>Tides</title><h1>Tides</h1><p>The spring tide at Brook harbour reaches \
    4.7 metres, as the harbour office measured over twenty years with two gauges.</p>";

/// A board's card in a home with an earlier turn; its model starts research, of which each step is scripted.
fn research(seen: &Seen) -> Answer {
    match seen.line.as_str() {
        line if line.starts_with("GET /search") => {
            let url = format!("http://{}/tides", seen.header("host").unwrap());
            return Answer::json(
                200,
                &json!({"results": [{"title": "Tides", "url": url, "content": "Tides"}]}),
            );
        }
        "GET /robots.txt" => return Answer::new(404, "text/plain", ""),
        "GET /tides" => return Answer::new(200, "text/html; charset=utf-8", PAGE),
        _ => {}
    }
    let text = seen.json()["messages"].to_string();
    let steps = [
        (
            "You plan a piece of research",
            json!({"searches": ["spring tide Brook"], "reason": "It names it."}),
        ),
        (
            "You take from a web page",
            json!({"summary": "Tides at Brook.", "claims": [{
            "claim": "The spring tide at Brook harbour reaches 4.7 metres.", "confidence": 0.9,
            "quote": "The spring tide at Brook harbour reaches 4.7 metres", "ttl": "30d", "evergreen": false}]}),
        ),
    ];
    if let Some((_, answer)) = steps.iter().find(|(mark, _)| text.contains(mark)) {
        return reply_text(&answer.to_string());
    }
    if text.contains("You choose which search results") || text.contains("You write up a piece of research") {
        return reply_text("I would rather not.");
    }
    if !text.contains("one card of a task board") {
        let (role, prompt) = asked(seen);
        return reply_text(&say(role, &prompt));
    }
    match results(seen).first() {
        None => {
            reply_calls(&[("internet_research", json!({"query": "How high is the spring tide at Brook?"}))])
        }
        Some(result) if result.contains("4.7 metres") => {
            reply_text("It is 4.7 metres.\n<promise>COMPLETE</promise>")
        }
        Some(_) => reply_text("Nobody knows."),
    }
}

#[test]
fn a_card_starts_research_with_a_budget_of_its_own() {
    let shop = Shop::responding(research);
    let tools = |more: &str| {
        let address = shop.address();
        format!(
            "capabilities = [\"tools\"]\n[tools]\nsearch_url = \"{address}/search\"\nprivate_hosts = [\"127.0.0.1\"]\n{more}"
        )
    };
    shop.configure_scholar(&tools(""));
    shop.ok(&["turn", "Where lies the ledger?"]);
    let before = shop.documents().turns();
    let run = shop.json(&["run", "card/card_agent", "-q", "Write the tide into the docs."]);
    assert_eq!(run["output"]["promise"], "COMPLETE", "{}", run["reply"]);
    let call = &run["receipt"]["calls"][0];
    assert_eq!(call["status"], "success", "{call}");
    assert!(call["files"].as_object().unwrap().keys().any(|name| name == "research.md"), "{call}");
    assert_eq!(shop.documents().turns(), before, "no turn holds it");
    // The research runs are on the record, apart from the card's own.
    let runs = shop.json(&["runs"]);
    let recipes: Vec<&str> =
        runs.as_array().unwrap().iter().map(|run| run["recipe"].as_str().unwrap()).collect();
    assert!(recipes.contains(&"plan_research") && recipes.contains(&"extract_claims"), "{recipes:?}");
    // Its own budget ends it: the plan alone takes more.
    shop.configure_scholar(&tools("research_tokens = 50\n"));
    let before = shop.seen().len();
    let ran = shop.ok(&["run", "card/card_agent", "-q", "Write the tide into the docs."]);
    assert!(ran.out.contains("Nobody knows."), "{}", ran.out);
    let extracted = shop.seen()[before..]
        .iter()
        .filter(|seen| seen.line.starts_with("POST"))
        .filter(|seen| seen.json()["messages"].to_string().contains("You take from a web page"))
        .count();
    assert_eq!(extracted, 0);
}

#[test]
fn an_mcp_server_that_does_not_answer_is_named_with_its_place_and_a_remedy() {
    let shop = shop(|_| reply_text("Done."));
    configure(
        &shop,
        "[tools.mcp.far]\nurl = \"http://127.0.0.1:9/mcp\"\n[tools.mcp.near]\ncommand = \"true\"\n",
    );
    let args = [&RUN[..], &["-v"]].concat();
    let ran: Ran = shop.command(&args).env("PATH", std::env::var("PATH").unwrap()).output().unwrap().into();
    let said = ran.err;
    assert!(said.contains("MCP server far: no MCP server answers at http://127.0.0.1:9/mcp ("), "{said}");
    assert!(said.contains("start it, or correct url under [tools.mcp.far]"), "{said}");
    assert!(said.contains("MCP server near: the program \"true\" ended"), "{said}");
    assert!(!said.contains("rmcp") && !said.contains("Transport"), "{said}");
}
