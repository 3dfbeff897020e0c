//! `larder policy tune`: settings are proposed from what the gateway recorded, never at the price of what agents need.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, reply_text};

const TURNS: usize = 26;
const MODELS: &str = "[models.small]\nwindow = 128000\nmax_output = 1000\n";

/// A listing of lines of some 14 tokens, unlike any other.
fn listing(run: usize, turn: usize) -> String {
    let line = |at: usize| {
        let number = (run * 7_919 + turn * 613 + at * 31) % 99_991;
        format!("shelf {number} holds {} boxes from the {} of may\n", number % 17, number % 29)
    };
    (0..250).map(line).collect()
}

/// Which line of the result before it a message of an agent repeats, by the tool that gave it.
type Uses<'a> = &'a dyn Fn(&str) -> Option<usize>;

/// A run of an agent that looks at listings of 50 lines and repeats this line of each.
fn run(number: usize, turns: usize, uses: Option<usize>) -> Value {
    run_of(&["list"], number, turns, 50, &|_| uses)
}

/// A run of an agent that calls these tools by turns. Each gives `lines` lines.
fn run_of(tools: &[&str], number: usize, turns: usize, lines: usize, uses: Uses<'_>) -> Value {
    let listing =
        |run, turn| listing(run, turn).lines().take(lines).fold(String::new(), |all, line| all + line + "\n");
    let tool = |turn: usize| tools[turn % tools.len()];
    let mut messages =
        vec![json!({"role": "user", "content": format!("Count the boxes of depot {number}.")})];
    for turn in 0..turns {
        let id = format!("call_{turn}");
        let arguments = json!({"aisle": turn}).to_string();
        let last = turn.checked_sub(1).and_then(|last| Some((last, uses(tool(last))?)));
        let said = match last {
            Some((last, line)) => {
                format!("So much for {}.", listing(number, last).lines().nth(line).unwrap())
            }
            None => "Next.".to_owned(),
        };
        messages.push(json!({"role": "assistant", "content": said, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": tool(turn), "arguments": arguments}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": listing(number, turn)}));
    }
    json!({"model": "small", "messages": messages})
}

/// The run with a short result before each of its messages, which the message repeats.
fn with_counts(mut run: Value) -> Value {
    let mut messages = Vec::new();
    for (at, mut message) in run["messages"].as_array().unwrap().clone().into_iter().enumerate() {
        if message["role"] == "assistant" {
            let (id, count) =
                (format!("count_{at}"), format!("Aisle number {at} holds {} crates.", at * 7_919));
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": id, "type": "function", "function": {"name": "count", "arguments": "{}"}}]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": count}));
            message["content"] = json!(count);
        }
        messages.push(message);
    }
    run["messages"] = json!(messages);
    run
}

/// A folder whose gateway has recorded these runs.
fn recorded(runs: impl IntoIterator<Item = Value>, policy: &str) -> Shop {
    let runs: Vec<Value> = runs.into_iter().collect();
    let shop = Shop::with_provider(runs.iter().map(|_| reply_text("done")));
    shop.configure("", &format!("{MODELS}{policy}"));
    let served = Served::start(&shop, &[]);
    for run in &runs {
        let (status, body) = served.post("/v1/chat/completions", run);
        assert_eq!(status, 200, "{body}");
    }
    served.signal("TERM");
    assert_eq!(served.end().0, Some(0));
    shop
}

#[test]
fn from_few_runs_nothing_is_proposed() {
    let shop = recorded([run(0, TURNS, None)], "");
    let tuned = shop.json(&["policy", "tune", "--apply"]);
    assert_eq!(
        (&tuned["runs"], &tuned["proposed"], &tuned["revision"]),
        (&json!(1), &json!(null), &json!(null))
    );
    let said = shop.ok(&["policy", "tune"]).out;
    assert!(said.contains("1 recorded runs with 26 turns are too few to judge by"), "{said}");
    assert_eq!(shop.json(&["revisions"]), json!([]));
}

#[test]
fn a_conversation_that_would_take_hours_is_skipped_and_named() {
    let shop = recorded([run_of(&["list"], 0, 1_001, 1, &|_| None)], "");
    let tuned = shop.json(&["policy", "tune"]);
    let skipped = json!([{"runs": 1, "why": "longer than 2000 messages"}]);
    assert_eq!((&tuned["runs"], &tuned["skipped"]), (&json!(0), &skipped));
    let said = shop.ok(&["policy", "tune"]).out;
    assert!(said.contains("not replayed: 1 (longer than 2000 messages)"), "{said}");
}

#[test]
fn a_conversation_with_a_damaged_message_is_skipped_and_named() {
    // Large enough for a file of its own.
    let mut large = run(0, TURNS, None);
    large["messages"][2]["content"] = json!((0..10).map(|at| listing(at, at)).collect::<String>());
    let shop = recorded([large], "");
    let folder = shop.path().join("home/blobs/u-local");
    for file in
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    {
        let mut bytes = std::fs::read(&file).unwrap();
        bytes.iter_mut().skip(256).for_each(|byte| *byte ^= 0x5A);
        std::fs::write(&file, bytes).unwrap();
    }
    let tuned = shop.json(&["policy", "tune"]);
    let skipped = json!([{"runs": 1, "why": "a stored message is damaged or missing: see `larder verify`"}]);
    assert_eq!((&tuned["runs"], &tuned["skipped"]), (&json!(0), &skipped), "{tuned}");
}

#[test]
fn what_a_gateway_without_settings_recorded_is_replayed_and_decided_by_the_catalogue() {
    let mut asked = run(0, TURNS, None);
    asked["model"] = json!("gpt-4o-mini");
    let shop = Shop::with_provider([reply_text("done")]);
    shop.write("larder.toml", "");
    let served = Served::start(&shop, &["--openai", &format!("{}/v1", shop.address())]);
    assert_eq!(served.post("/v1/chat/completions", &asked).0, 200);
    served.signal("TERM");
    assert_eq!(served.end().0, Some(0));
    let tuned = shop.json(&["policy", "tune"]);
    assert_eq!((&tuned["runs"], &tuned["skipped"]), (&json!(1), &json!([])), "{tuned}");
    assert_eq!((&tuned["current"]["needs"], &tuned["current"]["needs_in_view"]), (&json!(0), &json!(null)));
    let said = shop.ok(&["policy", "tune"]).out;
    assert!(said.contains("1 run, 26 turns, 0 needs") && !said.contains("100.00 %"), "{said}");
    shop.write("request.json", asked.to_string());
    let decided = shop.json(&["policy", "request.json"]);
    assert_eq!((&decided["outcome"], &decided["unknown_window"]), (&json!("ok"), &json!(false)), "{decided}");
    assert!(decided["tokens"]["budget"].as_u64().unwrap() > 100_000, "{decided}");
    // Of one that nobody knows, the window is unknown here as it is to the gateway.
    let unknown = shop.json(&["policy", "request.json", "--model", "private-7b"]);
    assert_eq!(unknown["unknown_window"], true, "{unknown}");
}

/// An agent that repeats nothing may need all the same what it was shown.
#[test]
fn from_runs_without_needs_nothing_is_proposed() {
    let shop = recorded((0..12).map(|number| run(number, TURNS, None)), "");
    let tuned = shop.json(&["policy", "tune", "--apply"]);
    assert_eq!((&tuned["runs"], &tuned["proposed"]), (&json!(12), &json!(null)), "{tuned}");
    let note = tuned["note"].as_str().unwrap();
    assert!(note.starts_with("0 needs are too few to judge by"), "{note}");
    assert_eq!(shop.json(&["revisions"]), json!([]));
}

#[test]
fn a_lower_cap_is_proposed_applied_and_reverted_where_it_hides_nothing_needed() {
    let shop = recorded((0..12).map(|number| with_counts(run(number, TURNS, None))), "");
    let tuned = shop.json(&["policy", "tune", "--apply"]);
    let (current, proposed) = (&tuned["current"], &tuned["proposed"]);
    let cost = |trial: &Value| trial["net_cost"].as_f64().unwrap();
    assert!(cost(proposed) < cost(current) - 0.1, "{proposed} {current}");
    assert_eq!((&proposed["needs_in_view"], &proposed["harmless"]), (&json!(1.0), &json!(true)));
    assert_eq!(tuned["revision"], 1);
    let shown = shop.ok(&["revisions", "show", "1"]).out;
    assert!(
        shown.contains("policy.entry_cap = 150  (used)") && shown.contains("tuned on 12 recorded runs"),
        "{shown}"
    );
    let again = shop.ok(&["policy", "tune"]).out;
    assert!(again.contains("Nothing is proposed: no other settings"), "{again}");
    shop.ok(&["revisions", "revert", "0"]);
    assert_eq!(shop.json(&["revisions", "diff", "0", "2"]), json!({}));
}

#[test]
fn nothing_is_proposed_that_hides_what_agents_need() {
    let long = |number| run_of(&["list"], number, TURNS, 220, &|_| Some(110));
    let shop = recorded((0..12).map(long), "");
    let tuned = shop.json(&["policy", "tune"]);
    // The defaults hide the lines that the agent goes on with; only more room is harmless.
    assert_eq!(tuned["current"]["harmless"], false);
    assert_eq!(tuned["proposed"]["harmless"], true);
    let cap = |trial: &Value| Some(trial["settings"]["policy.entry_cap"].as_str()?.parse::<usize>().unwrap());
    assert!(cap(&tuned["proposed"]).unwrap() >= 4_000, "{}", tuned["proposed"]);
    let tried = tuned["tried"].as_array().unwrap().iter();
    for (cap, trial) in tried.filter_map(|trial| Some((cap(trial)?, trial))) {
        assert_eq!(trial["harmless"], cap >= 4_000, "{trial}");
    }
}

/// Of two tools with results of the same kind, those of one are used and those of the other never.
#[test]
fn a_cap_is_proposed_for_the_tool_alone_whose_results_nothing_needs() {
    // Names are chosen by whoever calls the gateway.
    let unused = "scan \"a\" } # \u{202e}";
    let runs = (0..18)
        .map(|number| run_of(&["look", unused], number, TURNS, 30, &|tool| (tool == "look").then_some(15)));
    let shop = recorded(runs, "");
    let tuned = shop.json(&["policy", "tune", "--apply"]);
    let (current, proposed) = (&tuned["current"], &tuned["proposed"]);
    assert_eq!(current["harmless"], true, "{tuned}");
    let settings = proposed["settings"].as_object().unwrap();
    assert_eq!(settings.keys().collect::<Vec<_>>(), ["policy.tool_caps"]);
    let table: toml::Table =
        format!("caps = {}", settings["policy.tool_caps"].as_str().unwrap()).parse().unwrap();
    let caps = table["caps"].as_table().unwrap();
    let tools: Vec<&str> = caps.keys().map(String::as_str).collect();
    assert_eq!((table.len(), tools), (1, vec![unused]));
    let saved = current["net_cost"].as_f64().unwrap() - proposed["net_cost"].as_f64().unwrap();
    assert!(saved > 0.05 && proposed["harmless"] == true, "{tuned}");
    let rows = tuned["tools"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["tool"] == name).unwrap();
    assert_eq!(
        (rows.len(), &row(unused)["proposed"], &row("look")["proposed"]),
        (2, &json!(true), &json!(false))
    );
    assert_eq!((&row(unused)["results"], &row(unused)["cap"]), (&json!(18 * TURNS / 2), &json!(null)));
    for trial in row("look")["tried"].as_array().unwrap() {
        let (cap, harmless) = (trial["cap"].as_u64().unwrap(), trial["harmless"] == true);
        assert_eq!(harmless, cap >= 400, "{trial}");
    }

    let shown = shop.ok(&["revisions", "show", "1"]).out;
    assert!(shown.contains("policy.tool_caps = {") && shown.contains("(used)"), "{shown}");
    let again = shop.ok(&["policy", "tune"]).out;
    assert!(again.contains("Nothing is proposed: no other settings"), "{again}");
    assert!(again.contains("saves too little") && !again.contains('\u{202e}'), "{again}");
    shop.ok(&["revisions", "revert", "0"]);
    assert_eq!(shop.json(&["revisions", "diff", "0", "2"]), json!({}));
}

/// What holds for one half of the runs only is not proposed.
#[test]
fn a_cap_that_one_half_of_the_runs_does_not_confirm_is_not_proposed() {
    let runs = (0..12).map(|number| {
        run_of(&["look", "scan"], number, TURNS, 30, &|tool| {
            (tool == "look" || number % 2 == 0).then_some(15)
        })
    });
    let shop = recorded(runs, "");
    let tuned = shop.json(&["policy", "tune"]);
    assert_eq!((&tuned["proposed"], &tuned["current"]["harmless"]), (&json!(null), &json!(true)), "{tuned}");
    let said = shop.ok(&["policy", "tune"]).out;
    let row = said.lines().find(|line| line.starts_with("scan ")).unwrap();
    assert!(row.ends_with("(not confirmed by the other half)"), "{said}");
}

#[test]
fn what_the_settings_state_is_left_as_it_is() {
    let shop = recorded((0..12).map(|number| run(number, TURNS, None)), "[policy]\nentry_cap = 900\n");
    let tuned = shop.json(&["policy", "tune"]);
    let keys = tuned["tried"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|trial| trial["settings"].as_object().unwrap().keys());
    assert!(keys.into_iter().all(|key| key != "policy.entry_cap"), "{tuned}");
}
