//! Tests of the policy for conversations derived from the settings, and of the problems with it.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::settings::RunPolicy;

fn resolve(text: &str, env: crate::config::Env<'_>) -> Result<Config, ConfigError> {
    Config::resolve(text, "larder.toml", None, Path::new("."), env)
}

#[test]
fn all_illegal_values_of_the_policy_are_reported_with_their_places() {
    let text = "[policy]\nenabled = true\nentry_cap = 10\n  low_watermark = 0.01\n";
    let error = resolve(text, &|_| None).unwrap_err();
    let ConfigError::Problems(problems) = &error else { panic!("{error}") };
    let found: Vec<_> =
        problems.iter().map(|problem| (problem.line, problem.column, problem.message.as_str())).collect();
    assert_eq!(
        found,
        [(4, 3, "policy.low_watermark cannot be 0.01"), (3, 1, "policy.entry_cap cannot be 10")]
    );
    let words = error.to_string();
    assert!(words.contains("larder.toml:3:1\n  help: use at least 96"), "{words}");

    assert!(resolve("[policy]\nentry_cap = 96\nlow_watermark = 0.05\n", &|_| None).is_ok());
    let env = |name: &str| (name == "LARDER_ENTRY_CAP").then(|| "10".to_owned());
    let words = resolve("", &env).unwrap_err().to_string();
    assert!(words.starts_with("$LARDER_ENTRY_CAP is \"10\", which policy.entry_cap cannot be"), "{words}");
}

#[test]
fn caps_of_tools_are_a_table_with_a_place_for_each() {
    let read = |text: &str| resolve(text, &|_| None).map(|config| config.context_policy().tool_caps);
    let expected = BTreeMap::from([("mcp__shelf__*".to_owned(), 2_000), ("scan".to_owned(), 150)]);
    for text in [
        "[policy.tool_caps]\nscan = 150\n\"mcp__shelf__*\" = 2000\n",
        "[policy]\ntool_caps = { scan = 150, \"mcp__shelf__*\" = 2000 }\n",
    ] {
        assert_eq!(read(text).unwrap(), expected, "{text}");
    }
    let env = |name: &str| (name == "LARDER_TOOL_CAPS").then(|| "scan=150, mcp__shelf__*=2000".to_owned());
    assert_eq!(resolve("", &env).unwrap().context_policy().tool_caps, expected);

    let words = read("[policy.tool_caps]\nread = 200\nscan = 0\n").unwrap_err().to_string();
    assert!(words.starts_with("error[L070]: policy.tool_caps.scan cannot be 0"), "{words}");
    assert!(words.contains("larder.toml:3:1\n  help: use at least 96"), "{words}");
    for wrong in ["-5", "\"many\"", "1.5", "{ most = 500 }"] {
        let words = read(&format!("[policy.tool_caps]\nread = 200\nscan = {wrong}\n")).unwrap_err();
        let words = words.to_string();
        assert!(
            words.contains(&format!("policy.tool_caps.scan cannot be {wrong}"))
                && words.contains("larder.toml:3:1"),
            "{words}"
        );
        assert!(words.contains("help: use a value such as { shell = 2000 }"), "{words}");
    }
    let words = read("[policy.tool_cap]\nscan = 200\n").unwrap_err().to_string();
    assert!(words.contains("help: did you mean `policy.tool_caps`?"), "{words}");
}

#[test]
fn a_star_that_is_not_at_the_end_of_the_name_of_a_tool_is_reported_at_its_place() {
    for (text, line, words) in [
        (
            "[policy.tool_caps]\nread = 200\n\"x*y\" = 500\n",
            "3:1",
            "policy.tool_caps: the name `x*y` covers no tool",
        ),
        (
            "[policy]\ntool_caps = { \"*_log\" = 500 }\n",
            "2:15",
            "policy.tool_caps: the name `*_log` covers no tool",
        ),
        (
            "[policy]\nopt_out_tools = [\"a*b*\"]\n",
            "2:1",
            "policy.opt_out_tools: the name `a*b*` covers no tool",
        ),
    ] {
        let said = resolve(text, &|_| None).unwrap_err().to_string();
        assert!(said.contains(words) && said.contains(&format!("larder.toml:{line}\n")), "{said}");
        assert!(said.contains("help: a `*` matches any ending"), "{said}");
    }
    assert!(resolve("[policy.tool_caps]\n\"x*\" = 500\n\"*\" = 900\n", &|_| None).is_ok());
    let env = |name: &str| (name == "LARDER_TOOL_CAPS").then(|| "x*y=500".to_owned());
    let words = resolve("", &env).unwrap_err().to_string();
    assert!(words.starts_with("$LARDER_TOOL_CAPS is \"x*y\", which policy.tool_caps cannot be"), "{words}");
}

#[test]
fn a_file_that_is_not_toml_is_reported_without_an_empty_help() {
    for text in ["[policy\n", "[ask]\nmax_calls = 1\nmax_calls = 2\n"] {
        let words = resolve(text, &|_| None).unwrap_err().to_string();
        assert!(words.starts_with("error[L070]") && words.contains("larder.toml:"), "{words}");
        assert!(!words.contains("help: \n") && !words.trim_end().ends_with("help:"), "{words}");
    }
}

#[test]
fn either_switch_turns_condensing_off_and_zero_is_a_floor() {
    let policy = |text: &str| resolve(text, &|_| None).unwrap().context_policy();
    assert!(policy("").enabled);
    assert!(!policy("[policy]\nenabled = false\n").enabled);
    assert!(!policy("[policy]\ncompression_enabled = false\n").enabled);
    let off = |name: &str| (name == "COMPRESSION_ENABLED").then(|| "false".to_owned());
    assert!(!resolve("", &off).unwrap().context_policy().enabled);

    assert_eq!(policy("").emergency_floor, None, "a share of each window");
    assert_eq!(policy("[policy]\nemergency_floor = 0\n").emergency_floor, Some(0));
    assert!(resolve("[policy]\nemergency_floor = -1\n", &|_| None).is_err());
}

#[test]
fn older_environment_variables_set_the_same() {
    let read = |set: &[(&str, &str)]| {
        let env = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Config::resolve("", "larder.toml", None, Path::new("."), &env)
    };
    let usual = read(&[]).unwrap();
    assert_eq!((usual.policy(), usual.default_context_budget()), (RunPolicy::default(), 12_000));
    assert_eq!((usual.policy().compression_threshold, usual.policy().min_compression_savings), (0.9, 500));
    let set = read(&[
        ("DEFAULT_CONTEXT_BUDGET", "9000"),
        ("COMPRESSION_THRESHOLD", "0.8"),
        ("MIN_COMPRESSION_SAVINGS", "0"),
        ("COMPRESSION_MODEL_LAYER", "NERVES"),
    ])
    .unwrap();
    let policy = RunPolicy { compression_threshold: 0.8, min_compression_savings: 0, ..RunPolicy::default() };
    assert_eq!((set.policy(), set.default_context_budget()), (policy, 9_000));
    for wrong in [
        ("DEFAULT_CONTEXT_BUDGET", "0"),
        ("COMPRESSION_THRESHOLD", "0"),
        ("COMPRESSION_THRESHOLD", "90"),
        ("COMPRESSION_MODEL_LAYER", "MIND"),
    ] {
        assert!(read(&[wrong]).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_current_name_takes_precedence_over_older_ones() {
    let text = "[ai.context_policy]\nenabled = true\nresponse_reserve = 1\n[context_policy]\nresponse_reserve = 2\n\
                emergency_floor = 3\n[policy]\nresponse_reserve = 4\nenabled = false\n";
    let read = |env: &dyn Fn(&str) -> Option<String>| {
        let config = Config::resolve(text, "larder.toml", None, Path::new("."), env).unwrap();
        let of = |key: &str| {
            let setting = config.settings().into_iter().find(|setting| setting.key == key).unwrap();
            (setting.value, setting.origin.to_string())
        };
        ["policy.response_reserve", "policy.enabled", "policy.emergency_floor"].map(of)
    };
    let is = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    let [reserve, enabled, floor] = read(&|_| None);
    assert_eq!(reserve, is("4", "larder.toml:8"));
    assert_eq!(enabled, is("false", "larder.toml:9"));
    assert_eq!(floor, is("3", "larder.toml:6"), "an older name applies on its own");

    let old = |name: &str| (name == "RESPONSE_TOKEN_RESERVE").then(|| "5".to_owned());
    assert_eq!(
        read(&old)[0],
        is("5", "$RESPONSE_TOKEN_RESERVE"),
        "the environment takes precedence over the file"
    );
    let both = |name: &str| match name {
        "LARDER_RESPONSE_RESERVE" => Some("6".to_owned()),
        other => old(other),
    };
    assert_eq!(read(&both)[0], is("6", "$LARDER_RESPONSE_RESERVE"));
}
