//! `larder policy` from outside: budgets with what they come from, and what would become of a request.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use serde_json::{Value, json};
use support::Shop;

/// Of each figure of the model `stub` the tokens and what they come from.
fn figures(shop: &Shop) -> Vec<(u64, String)> {
    let shown = shop.json(&["policy", "--model", "stub"]);
    let model = &shown[0];
    assert_eq!(shown.as_array().unwrap().len(), 1, "{shown}");
    let names = ["window", "response_reserve", "emergency_floor", "prompt_budget", "trace_threshold"];
    let figure = |name: &str| {
        let figure = &model[name];
        (figure["tokens"].as_u64().unwrap(), figure["source"].as_str().unwrap().to_owned())
    };
    names.map(figure).into()
}

#[test]
fn budgets_say_what_they_come_from() {
    let shop = Shop::with_models([]);
    let (tokens, sources): (Vec<_>, Vec<_>) = figures(&shop).into_iter().unzip();
    assert_eq!(tokens, [8_000, 1_000, 400, 6_600, 5_280]);
    assert_eq!(sources[1], "the maximum reply of the model");
    assert_eq!(sources[2], "5% of the window");

    shop.configure("", "[policy]\nemergency_floor = 0\nprompt_budget_override = 5000\n");
    let (tokens, sources): (Vec<_>, Vec<_>) = figures(&shop).into_iter().unzip();
    assert_eq!(tokens, [8_000, 1_000, 0, 5_000, 4_000]);
    for (source, key) in
        [(&sources[2], "policy.emergency_floor"), (&sources[3], "policy.prompt_budget_override")]
    {
        assert!(source.starts_with(key) && source.contains("larder.toml:"), "{source}");
    }
    let told = shop.ok(&["policy", "--format", "text"]).out;
    assert!(
        told.contains("stub (gpt-4o-mini)\n") && told.contains("  emergency floor           0  "),
        "{told}"
    );
    let ran = shop.fails(1, &["policy", "--model", "nobody"]);
    assert!(ran.err.contains("nobody") && ran.err.contains("stub"), "{}", ran.err);
}

#[test]
fn a_limit_of_the_prompt_is_named_where_it_limits() {
    let shop = Shop::with_models([]);
    let limit = "input_limit = 5000\n";
    shop.configure(limit, "");
    let (tokens, sources): (Vec<_>, Vec<_>) = figures(&shop).into_iter().unzip();
    assert_eq!(tokens, [8_000, 1_000, 250, 4_750, 3_800]);
    assert_eq!(
        (sources[2].as_str(), sources[3].as_str()),
        ("5% of the input limit", "the input limit less the floor")
    );
    assert_eq!(shop.json(&["policy", "--model", "stub"])[0]["input_limit"]["tokens"], 5_000);
    assert!(
        shop.ok(&["policy", "--format", "text"])
            .out
            .contains("  input limit            5000  the model table")
    );
    for (tokens, lowers) in [(4_000, true), (6_000, false)] {
        shop.configure(limit, &format!("[policy]\nprompt_budget_override = {tokens}\n"));
        let budget = figures(&shop).swap_remove(3);
        assert_eq!(budget.0, tokens.min(4_750));
        assert_eq!(budget.1.starts_with("policy.prompt_budget_override"), lowers, "{}", budget.1);
    }
}

#[test]
fn the_cap_of_a_tool_that_has_opted_out_is_said_to_have_no_effect() {
    let shop = Shop::with_models([]);
    let caps = "tool_caps = { shell = 900, read_log = 900, \"read_*\" = 900 }\n";
    shop.configure("", &format!("[policy]\nopt_out_tools = [\"read_log\"]\n{caps}"));
    let notes = |shop: &Shop| {
        let said = shop.ok(&["check"]).err;
        said.lines().filter(|line| line.contains("tool_caps")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        notes(&shop),
        [
            "note: policy.tool_caps.read_log has no effect: results of this tool stay whole, see policy.opt_out_tools"
        ]
    );
    let noted = json!({"severity": "note", "message": notes(&shop)[0].trim_start_matches("note: ")});
    assert!(shop.json(&["check"]).as_array().unwrap().contains(&noted), "programs see notes too");
    shop.configure("", &format!("[policy]\nopt_out_tools = [\"read*\"]\n{caps}"));
    assert_eq!(notes(&shop).len(), 2);
}

fn after_tool(output: &str) -> Value {
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": "read_log", "arguments": "{}"}});
    json!({"model": "stub", "messages": [
        {"role": "user", "content": "Which lamp is the dearest?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": output},
    ], "tools": [{"type": "function", "function": {"name": "read_log", "parameters": {"type": "object"}}}]})
}

#[test]
fn a_request_is_decided_as_the_gateway_would_and_nothing_is_sent() {
    let shop = Shop::with_models([]);
    let log: String =
        (1..=600).map(|n| format!("lamp {n} stands in row {} and costs {} euros\n", n % 7, n * 7)).collect();
    shop.write("request.json", after_tool(&log).to_string());
    let looked = shop.json(&["policy", "request.json"]);
    assert_eq!(looked["decision"]["status"], "needs_summary", "{looked}");
    assert!(looked["tokens"]["after"].as_u64() < looked["tokens"]["before"].as_u64(), "{looked}");
    let told = shop.ok(&["policy", "request.json"]).out;
    assert!(told.starts_with("needs_summary: ") && told.contains("\nlargest: message 3 (tool) "), "{told}");
    assert!(told.contains("condensed") && told.contains("lp1-"), "{told}");

    // What fits is no problem of the budget, even where shortening it is cheaper.
    shop.configure("", "[policy]\nentry_cap = 300\n");
    let short: String = log.lines().take(100).map(|line| format!("{line}\n")).collect();
    shop.write("fits.json", after_tool(&short).to_string());
    let looked = shop.json(&["policy", "fits.json"]);
    let decided = (&looked["decision"]["status"], &looked["decision"]["deficit"]);
    assert_eq!(decided, (&json!("ok"), &json!(0)), "{looked}");
    assert!(looked["tokens"]["after"].as_u64() < looked["tokens"]["before"].as_u64(), "{looked}");
    // One tool alone may have more.
    for (tool, is_whole) in [("read_log", true), ("\"read_*\"", true), ("list", false)] {
        shop.configure("", &format!("[policy]\nentry_cap = 300\n[policy.tool_caps]\n{tool} = 5000\n"));
        let tokens = shop.json(&["policy", "fits.json"])["tokens"].clone();
        assert_eq!(tokens["after"] == tokens["before"], is_whole, "{tool}: {tokens}");
    }
    shop.configure("", "[policy.tool_caps]\nread_log = 5000\nlist = 0\n");
    let wrong = shop.fails(1, &["check"]).out;
    assert!(
        wrong.contains("policy.tool_caps.list cannot be 0") && wrong.contains("help: use at least 96"),
        "{wrong}"
    );
    shop.configure("", "");

    let flood =
        json!({"model": "stub", "messages": [{"role": "user", "content": "all of it, ".repeat(9_000)}]});
    shop.write("flood.json", flood.to_string());
    let refused = shop.fails(1, &["policy", "flood.json"]).out;
    assert!(refused.starts_with("reject: ") && refused.contains("largest: message 1 (user) "), "{refused}");

    let short = json!({"model": "elsewhere", "input": "hi"}).to_string();
    let args = ["policy", "-", "--wire", "openai-responses", "--model", "stub"];
    let ran = shop.run_with(&args, short.as_bytes());
    assert!(ran.code == 0 && ran.out.starts_with("ok: it fits\nmodel stub: "), "{ran:?}");

    shop.write("nonsense.json", "nonsense");
    assert!(shop.fails(1, &["policy", "nonsense.json"]).err.contains("nonsense.json: "));
    assert!(shop.seen().is_empty());
}

#[test]
fn it_fails_where_the_gateway_would_and_not_in_a_dry_run() {
    let shop = Shop::with_models([]);
    let flood =
        json!({"model": "stub", "messages": [{"role": "user", "content": "all of it, ".repeat(9_000)}]});
    shop.write("flood.json", flood.to_string());
    shop.fails(1, &["policy", "flood.json"]);
    for switch in ["enabled", "compression_enabled"] {
        shop.configure("", &format!("[policy]\n{switch} = false\n"));
        let told = shop.fails(1, &["policy", "flood.json"]).out;
        assert!(told.contains("condensing is switched off (policy.enabled or"), "{told}");
    }
    shop.configure("", "[policy]\ndry_run = true\n");
    let told = shop.ok(&["policy", "flood.json"]).out;
    assert!(told.starts_with("reject: ") && told.contains("dry run: sent unchanged"), "{told}");

    shop.configure("", "[gateway]\nmax_body_bytes = 2000\n");
    let ran = shop.fails(1, &["policy", "flood.json"]);
    assert!(ran.err.contains("flood.json: ") && ran.err.contains("more than 2000 bytes"), "{ran:?}");
    assert!(ran.out.is_empty(), "{ran:?}");
    let short = json!({"model": "stub", "messages": [{"role": "user", "content": "hi"}]});
    shop.write("short.json", short.to_string());
    shop.ok(&["policy", "short.json"]);
}

#[test]
fn it_needs_no_key_of_a_provider() {
    let shop = Shop::with_models([]);
    let gateway = "[gateway]\nopenai = \"https://models.example/v1\"\nopenai_key_env = \"NOT_SET\"\n\
                   anthropic = \"https://models.example\"\nanthropic_key_file = \"no-such-file\"\n";
    shop.configure("api_key_file = \"none-either\"\n", gateway);
    assert_eq!(figures(&shop)[0].0, 8_000);
    for model in ["stub", "gpt-elsewhere"] {
        let request = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
        shop.write("request.json", request.to_string());
        let looked = shop.json(&["policy", "request.json"]);
        assert_eq!(looked["decision"]["status"], "ok", "{looked}");
    }
    // Serving needs them as before.
    let ran = shop.fails(1, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.err.contains("NOT_SET") || ran.err.contains("no-such-file"), "{}", ran.err);
}
