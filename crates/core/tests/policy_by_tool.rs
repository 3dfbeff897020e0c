//! What the caps of single tools and the prices of a provider's cache change in the decision about a conversation.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use larder_core::policy::{
    ContextBudgetPolicy, Conversation, ConversationItem, DecidedWindow, DecisionContext, FixedTokens,
    ItemCall, Memo, MessageForm, ModelProfile, PointerReader, PolicySettings, UNKNOWN_WINDOW,
};
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::pointer::PointerKey;
use larder_text::price::{CacheShares, CacheWrites};
use larder_text::tokens::Counter;

const CACHE: CacheShares = CacheShares { minimum: 0, read: 0.1, write: 1.25, write_hour: 2.0 };

/// Log lines, some eleven tokens each, unlike those of any other `seed`.
fn listing(seed: usize, lines: usize) -> String {
    let line = |at: usize| format!("bay {} holds crate {}\n", seed * 7_919 + at, (seed + at) * 31 % 9_973);
    (0..lines).map(line).collect()
}

/// Decides a conversation in which these tools were called, one after the other, with their results. Arguments follow the
/// name of a tool after a space.
fn decide(
    results: &[(&str, String)],
    policy: &ContextBudgetPolicy,
    writes: CacheWrites,
    memo: &Memo,
) -> DecidedWindow {
    let (counter, key) = (Counter::o200k(), PointerKey::new([7; 32]));
    let ids: Vec<String> = (0..results.len()).map(|at| format!("call_{at}")).collect();
    let calls: Vec<[ItemCall<'_>; 1]> = results
        .iter()
        .zip(&ids)
        .map(|((tool, _), id)| {
            let (name, arguments) = tool.split_once(' ').unwrap_or((tool, "{}"));
            [ItemCall { id: id.into(), name: name.into(), arguments: arguments.into() }]
        })
        .collect();
    let plain = |role, text: &'static str| ConversationItem {
        role,
        text,
        hash: ContentHash::new(text.as_bytes()),
        tokens: counter.count(text),
        sampled: false,
        opaque_tokens: 4,
        opaque: &[],
        calls: &[],
        result_of: None,
        texts: &[],
        is_error: false,
        summarizable: true,
        spared: false,
        rehydrated: false,
    };
    let mut items = vec![plain(Role::User, "Where is everything?")];
    for (((_, text), id), calls) in results.iter().zip(&ids).zip(&calls) {
        items.push(ConversationItem { calls, ..plain(Role::Assistant, "I look.") });
        items.push(ConversationItem {
            text,
            hash: ContentHash::new(text.as_bytes()),
            tokens: counter.count(text),
            result_of: Some(id),
            ..plain(Role::Tool, "")
        });
    }
    let conversation = Conversation {
        fixed: FixedTokens { system: 100, tools: 50, framing: 3, rehydrate_tool: 70 },
        items: &items,
        max_output: Some(100),
        reader: PointerReader::Larder,
        needs_tool: false,
        refers_above: true,
        writes,
    };
    policy.decide(&conversation, DecisionContext { counter: &counter, key: &key, memo })
}

fn policy(settings: PolicySettings, window: usize) -> ContextBudgetPolicy {
    let cache = Some(CACHE);
    let model = ModelProfile { window, input_limit: None, max_output: None, cache };
    ContextBudgetPolicy::from_settings(&settings, &model)
}

fn caps(caps: &[(&str, usize)]) -> PolicySettings {
    let tool_caps = caps.iter().map(|(tool, cap)| ((*tool).to_owned(), *cap)).collect();
    PolicySettings { tool_caps, ..PolicySettings::default() }
}

/// Tokens of each result as it is sent.
fn sizes(window: &DecidedWindow) -> Vec<usize> {
    window.items[2..].iter().step_by(2).map(|item| item.tokens).collect()
}

#[test]
fn a_tool_with_a_cap_of_its_own_is_condensed_by_that_and_no_other_is() {
    let results: Vec<(&str, String)> =
        (0..6).map(|at| (["scan", "read"][at % 2], listing(at, [30, 400][at % 2]))).collect();
    // One memo for all policies: none may take another's renditions.
    let memo = Memo::default();
    let of = |settings: PolicySettings, window| {
        let policy = policy(settings, window);
        sizes(&decide(&results, &policy, CacheWrites::Usual, &memo))
    };
    let usual = of(PolicySettings::default(), 200_000);
    assert!(usual[0] > 200 && usual[1] < 2_100, "a scan is whole, what is read is capped: {usual:?}");
    let capped = of(caps(&[("scan", 120), ("re*", 3_500)]), 200_000);
    for (at, (&size, &before)) in capped.iter().zip(&usual).enumerate() {
        match at % 2 {
            0 => assert!(size < 150, "{capped:?}"),
            _ => assert!(size > 3_000 && size > before, "{capped:?}"),
        }
    }
    assert_eq!(of(PolicySettings::default(), 200_000), usual);
    // A model that nobody knows is not shortened but for floods.
    let unknown = of(caps(&[("scan", 120)]), UNKNOWN_WINDOW);
    assert_eq!(unknown[0], usual[0]);
    let off = PolicySettings { opt_out_tools: ["scan".to_owned()].into(), ..caps(&[("scan", 120)]) };
    assert_eq!(of(off, 200_000)[0], usual[0], "who opts out is never condensed");
}

/// The text that takes the place of the result of a call, if any.
fn made(window: &DecidedWindow, call: usize) -> Option<&str> {
    window.items[2 + 2 * call].form.substitution().map(|made| made.text.as_str())
}

#[test]
fn a_file_and_an_error_stay_as_they_are() {
    let host = |at| format!("  {{\"host\": \"b{at}\", \"port\": 80{at}, \"tags\": [\"eu\", \"prod\"]}}");
    let hosts = format!("[\n{}\n]\n", (0..9).map(host).collect::<Vec<_>>().join(",\n"));
    let failure = format!("{{\"error\": {hosts}}}");
    let calls = [
        ("list_hosts", hosts.clone()),
        (r#"read_file {"path": "etc/hosts.json"}"#, hosts.replace("eu", "us")),
        (r#"shell {"command": "head -40 .hostsrc"}"#, hosts.replace("eu", "ap")),
        (r#"read_file {"path": "conf/manifest"}"#, hosts.replace("eu", "af")),
        (r#"shell {"command": "jq . hosts.arb"}"#, hosts.replace("eu", "sa")),
        ("list_hosts", failure),
    ];
    let decided =
        decide(&calls, &policy(PolicySettings::default(), 200_000), CacheWrites::Usual, &Memo::default());
    assert!(made(&decided, 0).unwrap().starts_with("[host|port|tags\nb0|800|[eu, prod]\n"), "{decided:?}");
    for (at, (call, _)) in calls.iter().enumerate().skip(1) {
        assert_eq!(made(&decided, at), None, "{call}");
    }
}

/// A Python module with this many functions of some 200 tokens each, with the line numbers that tools for reading write.
fn numbered_module(functions: usize) -> String {
    let function = |at: usize| {
        let lines: String =
            (2..12).map(|n| format!("    width += shape.side({}) * {n}\n", at * n % 9_973)).collect();
        format!("def area_{at}(shape):\n    width = shape.width\n{lines}    return width\n\n")
    };
    let code: String = (0..functions).map(function).collect();
    code.lines().enumerate().map(|(at, line)| format!("{:>6}→{line}\n", at + 1)).collect()
}

/// Plain sentences, some 13 tokens each.
fn prose(seed: usize, sentences: usize) -> String {
    let sentence = |at| {
        format!("The harbour of town {at} was closed for {} days that winter.\n", (seed + at) * 31 % 9_973)
    };
    (0..sentences).map(sentence).collect()
}

#[test]
fn a_file_that_is_read_is_whole_far_beyond_the_cap() {
    let calls = [
        (r#"shell {"command": "harbours --all"}"#, prose(2, 400)),
        (r#"Read {"file_path": "/repo/area.py"}"#, numbered_module(60)),
        (r#"shell {"command": "sed -n '1,400p' docs/harbours.md"}"#, prose(1, 400)),
    ];
    let decided =
        decide(&calls, &policy(PolicySettings::default(), 200_000), CacheWrites::Usual, &Memo::default());
    let sizes = sizes(&decided);
    assert!(sizes[0] < 2_100, "what is no file is capped: {sizes:?}");
    assert!(sizes[1] > 8_000 && sizes[2] > 5_000, "{sizes:?}");
    assert_eq!((made(&decided, 1), made(&decided, 2)), (None, None));
}

#[test]
fn a_source_file_that_is_too_long_shows_its_signatures_whatever_numbers_its_lines_have() {
    let calls = [(r#"Read {"file_path": "/repo/area.py"}"#, numbered_module(200))];
    let decided =
        decide(&calls, &policy(PolicySettings::default(), 200_000), CacheWrites::Usual, &Memo::default());
    let text = made(&decided, 0).unwrap();
    assert!(sizes(&decided)[0] < 16_100, "{:?}", sizes(&decided));
    assert_eq!(text.matches("→def area_").count(), 200, "every signature is shown");
}

#[test]
fn a_reference_says_which_of_several_alike_calls_it_means() {
    let test = r#"shell {"command": "cd lib && pytest -q"}"#;
    let calls = [
        (test, listing(1, 12)),
        (test, listing(2, 12)),
        (r#"shell {"command": ["bash", "-lc", "cat once.txt"], "workdir": "/repo"}"#, listing(3, 12)),
        (test, "short".to_owned()),
        (test, format!("again\n{}{}", listing(2, 12), listing(3, 12))),
    ];
    let decided =
        decide(&calls, &policy(PolicySettings::default(), 200_000), CacheWrites::Usual, &Memo::default());
    let text = made(&decided, 4).unwrap();
    for words in ["L1-12 of result 2 of \"cd lib && pytest -q\"", "L1-12 of \"…ash -lc cat once.txt\""] {
        assert!(text.contains(words), "{text}");
    }
}

/// An epoch pays the sooner, the less the provider takes for writing anew what comes after the first change.
#[test]
fn the_lifetime_that_a_request_asks_for_decides_how_soon_an_epoch_pays() {
    let results: Vec<(&str, String)> = (0..12).map(|at| ("scan", listing(at, 35))).collect();
    let soonest = |writes| {
        (1..2_000).find(|turns| {
            let settings = PolicySettings {
                trace_threshold_tokens: Some(2_500),
                expected_turns: Some(*turns),
                protect_last: 2,
                ..PolicySettings::default()
            };
            decide(&results, &policy(settings, 200_000), writes, &Memo::default()).epoch.number > 0
        })
    };
    let [unmarked, usual, hour] =
        [CacheWrites::Nothing, CacheWrites::Usual, CacheWrites::Hour].map(|writes| soonest(writes).unwrap());
    assert!(unmarked < usual && usual < hour, "{unmarked} {usual} {hour}");
    let whole = |window: DecidedWindow| window.items.iter().all(|item| item.form == MessageForm::Whole);
    let once = policy(PolicySettings::default(), 200_000);
    assert!(whole(decide(&results, &once, CacheWrites::Hour, &Memo::default())), "it is far from full");
}
