//! The guarantees of the context policy over generated histories: decisions stay while a history grows, pairs stay
//! together, what must stand does, nothing is lost, nothing exceeds the budget, and the memo changes nothing.
//!
//! `PROPTEST_CASES` sets the number of cases.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

#[path = "support/references.rs"]
mod references;

use std::collections::BTreeMap;
use std::ops::Range;

use references::shows_all;

use larder_core::policy::{
    BudgetStatus, ContextBudgetPolicy, Conversation, ConversationItem, DecidedWindow, DecisionContext,
    FixedTokens, ItemCall, Memo, MessageForm, ModelProfile, PointerReader, PolicySettings, Verdict,
    reads_back,
};
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::pointer::{Fragment, Pointer, PointerKey};
use larder_text::price::{CacheShares, CacheWrites};
use larder_text::tokens::Counter;
use proptest::prelude::*;

const FRAMING: usize = 4;

fn counter() -> Counter {
    thread_local!(static COUNTER: Counter = Counter::o200k());
    COUNTER.with(Clone::clone)
}

fn key() -> PointerKey {
    PointerKey::new([7; 32])
}

/// One message with everything it owns.
#[derive(Debug, Clone)]
struct Said {
    role: Role,
    text: String,
    /// Where in it the texts are that it consists of, if it has several.
    texts: Vec<Range<usize>>,
    /// Id and tool.
    calls: Vec<(String, &'static str)>,
    result_of: Option<String>,
    is_error: bool,
    rehydrated: bool,
}

/// A message without calls.
fn plain(role: Role, text: impl Into<String>) -> Said {
    let (text, texts, calls) = (text.into(), Vec::new(), Vec::new());
    Said { role, text, texts, calls, result_of: None, is_error: false, rehydrated: false }
}

/// Texts as one, a line feed between them, and where each is in it with that.
fn join(texts: &[String]) -> (String, Vec<Range<usize>>) {
    let all = texts.join("\n");
    let end = |at: usize| texts[..=at].iter().map(|text| text.len() + 1).sum::<usize>().min(all.len());
    let range = |at: usize| at.checked_sub(1).map_or(0, end)..end(at);
    let ranges = (0..texts.len()).map(range).collect();
    (all, ranges)
}

/// Numbers that follow from a seed: a text made of them is one value to proptest, which makes a case cheap.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn word(&mut self) -> String {
        (0..2 + self.below(8)).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }

    fn line(&mut self) -> String {
        (0..4 + self.below(12)).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// Lines of a file that earlier results may have shown, records, prose, or anything.
    fn result(&mut self) -> String {
        let lines = self.below(60);
        match self.below(5) {
            0 => String::new(),
            1 => {
                let start = self.below(200);
                let line =
                    |at: usize| format!("{at}: let value_{at} = compute({}, \"{}\");\n", at * 31, at % 7);
                (start..start + lines).map(line).collect()
            }
            2 => {
                let record = |at| {
                    format!("{{\"id\": \"R{at}\", \"name\": \"{}\", \"price\": {}}}", self.word(), at * 3)
                };
                format!("[{}]", (0..lines).map(record).collect::<Vec<_>>().join(", "))
            }
            3 => (0..lines).map(|_| format!("{} ERROR {}\n", self.word(), self.line())).collect(),
            _ => (0..lines).map(|_| self.line() + ".\n").collect(),
        }
    }

    fn history(&mut self, steps: usize) -> Vec<Said> {
        let mut said = vec![plain(Role::System, self.line())];
        for step in 0..steps {
            if step == 0 || self.below(4) == 0 {
                said.push(plain(Role::User, self.line()));
            }
            let calls = self.below(4);
            if calls == 0 {
                said.push(plain(Role::Assistant, self.line()));
                continue;
            }
            let name = |call| format!("call_{step}_{call}");
            // Some formats give every call a message of its own.
            let apart = self.below(3) == 0;
            let tools = ["read_file", "search", "document_edit"];
            let calls: Vec<(String, &'static str)> =
                (0..calls).map(|call| (name(call), tools[self.below(3)])).collect();
            let groups: Vec<Vec<(String, &'static str)>> = if apart {
                calls.iter().map(|call| vec![call.clone()]).collect()
            } else {
                vec![calls.clone()]
            };
            for calls in groups {
                said.push(Said { calls, ..plain(Role::Assistant, self.line()) });
            }
            for (id, _) in calls {
                let (is_error, rehydrated) = (self.below(8) == 0, self.below(12) == 0);
                let texts: Vec<String> = (0..1 + self.below(3)).map(|_| self.result()).collect();
                let (text, texts) = join(&texts);
                said.push(Said {
                    texts,
                    result_of: Some(id),
                    is_error,
                    rehydrated,
                    ..plain(Role::Tool, text)
                });
            }
        }
        said
    }
}

/// What a request allows.
#[derive(Debug, Clone, Copy)]
struct How {
    reader: PointerReader,
    needs_tool: bool,
    refers_above: bool,
    writes: CacheWrites,
}

const USUAL: How =
    How { reader: PointerReader::Larder, needs_tool: false, refers_above: true, writes: CacheWrites::Usual };

fn any_request() -> impl Strategy<Value = How> {
    let reader =
        prop_oneof![Just(PointerReader::Larder), Just(PointerReader::Client), Just(PointerReader::Nobody)];
    (reader, any::<bool>()).prop_map(|(reader, refers_above)| How { reader, refers_above, ..USUAL })
}

/// Decides the first messages of a history.
fn decide(said: &[Said], policy: &ContextBudgetPolicy, memo: &Memo) -> DecidedWindow {
    decide_as(USUAL, said, policy, memo)
}

fn decide_as(how: How, said: &[Said], policy: &ContextBudgetPolicy, memo: &Memo) -> DecidedWindow {
    with_items(how, said, |conversation| {
        let (counter, key) = (counter(), key());
        policy.decide(conversation, DecisionContext { counter: &counter, key: &key, memo })
    })
}

fn with_items<T>(how: How, said: &[Said], run: impl FnOnce(&Conversation<'_>) -> T) -> T {
    let counter = counter();
    let calls: Vec<Vec<ItemCall<'_>>> = said
        .iter()
        .map(|said| {
            said.calls
                .iter()
                .map(|(id, name)| ItemCall { id: id.into(), name: (*name).into(), arguments: "{}".into() })
                .collect()
        })
        .collect();
    let items: Vec<ConversationItem<'_>> = said
        .iter()
        .zip(&calls)
        .map(|(said, calls)| ConversationItem {
            role: said.role,
            text: &said.text,
            texts: &said.texts,
            hash: ContentHash::new(said.text.as_bytes()),
            tokens: counter.count(&said.text),
            sampled: false,
            opaque_tokens: FRAMING + 10 * calls.len(),
            calls,
            opaque: &[],
            result_of: said.result_of.as_deref(),
            is_error: said.is_error,
            summarizable: true,
            spared: how.reader == PointerReader::Nobody,
            rehydrated: said.rehydrated,
        })
        .collect();
    let fixed = FixedTokens { system: 0, tools: 50, framing: 3, rehydrate_tool: 70 };
    run(&Conversation {
        fixed,
        items: &items,
        max_output: Some(100),
        reader: how.reader,
        needs_tool: how.needs_tool,
        refers_above: how.refers_above,
        writes: how.writes,
    })
}

fn policy(window: usize, threshold: Option<usize>, turns: Option<usize>) -> ContextBudgetPolicy {
    let settings = PolicySettings {
        trace_threshold_tokens: threshold,
        expected_turns: turns,
        emergency_floor: Some(50),
        ..PolicySettings::default()
    };
    ContextBudgetPolicy::from_settings(
        &settings,
        &ModelProfile { window, input_limit: None, max_output: None, cache: None },
    )
}

/// What is sent in the place of each message.
fn sent<'w>(said: &'w [Said], window: &'w DecidedWindow) -> Vec<Option<&'w str>> {
    let text = |(said, decided): (&'w Said, &'w larder_core::policy::DecidedItem)| match &decided.form {
        MessageForm::Whole => Some(said.text.as_str()),
        MessageForm::Replaced(made) | MessageForm::DroppedFor(made) => Some(made.text.as_str()),
        MessageForm::Dropped => None,
    };
    said.iter().zip(&window.items).map(text).collect()
}

fn resolve(stored: &BTreeMap<String, String>, pointer: &Pointer) -> String {
    let text = stored.get(pointer.id.as_str()).expect("every pointer leads to a stored original");
    match pointer.fragment {
        None => text.clone(),
        Some(Fragment::Bytes { start, end }) => text[start..end].to_owned(),
        Some(Fragment::Lines { first, last }) => {
            text.split_inclusive('\n').skip(first - 1).take(last + 1 - first).collect()
        }
    }
}

fn check_window(said: &[Said], window: &DecidedWindow, budget: usize) -> Result<(), TestCaseError> {
    prop_assert_eq!(window.verdict == Verdict::Refuse, window.decision.status == BudgetStatus::Reject);
    if window.verdict == Verdict::Refuse {
        prop_assert!(window.decision.deficit > 0 && window.decision.largest.len() == 3);
        return Ok(());
    }
    let (counter, key) = (counter(), key());
    let texts = sent(said, window);
    let recount: usize = said
        .iter()
        .zip(&texts)
        .zip(&window.items)
        .map(|((said, text), decided)| match decided.form {
            MessageForm::Dropped => 0,
            // A message of the model, which has no calls.
            MessageForm::DroppedFor(_) => counter.count(text.unwrap_or_default()) + FRAMING,
            _ => counter.count(text.unwrap_or_default()) + FRAMING + 10 * said.calls.len(),
        })
        .sum();
    let offered = if window.offer_tool { 70 } else { 0 };
    prop_assert_eq!(recount + 50 + 3 + offered, window.tokens_after);
    prop_assert!(window.tokens_after <= budget);
    let stored: BTreeMap<String, String> = with_items(USUAL, said, |conversation| {
        let kept = window.originals(conversation.items);
        kept.map(|kept| (key.mint(ContentHash::new(kept.text.as_bytes())).to_string(), kept.text.to_owned()))
            .collect()
    });
    let mut seen: Vec<&str> = Vec::new();
    for ((said, decided), text) in said.iter().zip(&window.items).zip(&texts) {
        let whole = decided.form == MessageForm::Whole;
        prop_assert!(whole || !matches!(said.role, Role::System | Role::User), "verbatim: {:?}", decided);
        if said.rehydrated || said.role == Role::Assistant {
            prop_assert!(whole || matches!(decided.form, MessageForm::Dropped | MessageForm::DroppedFor(_)));
        }
        for (_, pointer) in key.find_in(text.unwrap_or_default()) {
            resolve(&stored, &pointer);
        }
        if let MessageForm::Replaced(made) = &decided.form {
            prop_assert!(made.tokens < counter.count(&said.text));
            match &made.pointer {
                Some(pointer) => prop_assert_eq!(&resolve(&stored, pointer), &said.text),
                None => prop_assert!(shows_all(&said.text, &made.text, &seen), "{}", made.text),
            }
            for gap in &made.gaps {
                let hidden = &said.text[gap.bytes.clone()];
                prop_assert_eq!(&resolve(&stored, &gap.pointer), hidden);
                let above = made.text.contains(&format!("L{}-{} as above", gap.range.0, gap.range.1));
                for part in hidden.split_inclusive('\n').filter(|_| above) {
                    prop_assert!(
                        seen.iter().any(|seen| seen.contains(part)),
                        "{part:?} does not stand above"
                    );
                }
            }
        }
        seen.extend(text);
    }
    let shown: Vec<&String> = texts
        .iter()
        .flatten()
        .flat_map(|text| key.find_in(text))
        .filter_map(|(_, pointer)| stored.get(pointer.id.as_str()))
        .collect();
    for (said, decided) in said.iter().zip(&window.items) {
        let dropped = matches!(decided.form, MessageForm::Dropped | MessageForm::DroppedFor(_));
        prop_assert!(!dropped || shown.iter().any(|text| text.contains(&said.text)), "{:?} is lost", said);
    }
    for (at, message) in said.iter().enumerate() {
        let gone =
            |at: usize| matches!(window.items[at].form, MessageForm::Dropped | MessageForm::DroppedFor(_));
        for (id, _) in &message.calls {
            let answer = said.iter().position(|said| said.result_of.as_ref() == Some(id));
            prop_assert!(answer.is_none_or(|answer| gone(at) == gone(answer)), "the pair {id} is torn");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Everything that holds of a single window.
    #[test]
    fn windows_fit_and_lose_nothing(how in any_request(), seed in any::<u64>(), steps in 1usize..14, room in 400usize..6000, soft in any::<bool>()) {
        let said = Numbers(seed).history(steps);
        let policy = policy(room, soft.then_some(room / 2), soft.then_some(50));
        let window = decide_as(how, &said, &policy, &Memo::default());
        check_window(&said, &window, policy.prompt_budget(Some(100)))?;
    }

    /// A request is never longer than it came, Larder's tool included.
    #[test]
    fn no_request_grows(how in any_request(), seed in any::<u64>(), steps in 1usize..14, room in 300usize..6000, soft in any::<bool>(), turns in 1usize..90) {
        let said = Numbers(seed).history(steps);
        let policy = policy(room, soft.then_some(room / 3), Some(turns));
        let window = decide_as(how, &said, &policy, &Memo::default());
        if window.verdict != Verdict::Refuse {
            prop_assert!(window.tokens_after <= window.tokens_before, "{} > {}", window.tokens_after, window.tokens_before);
        }
    }

    /// What nobody could open is hidden only if the prompt would not fit; what is not above is not referred to.
    #[test]
    fn nothing_is_hidden_from_those_who_cannot_look(how in any_request(), seed in any::<u64>(), steps in 1usize..14, room in 400usize..6000) {
        let said = Numbers(seed).history(steps);
        let policy = policy(room, Some(room / 3), Some(50));
        let window = decide_as(how, &said, &policy, &Memo::default());
        prop_assert!(!window.offer_tool || how.reader == PointerReader::Larder);
        let fits = window.tokens_before <= policy.prompt_budget(Some(100));
        for decided in &window.items {
            let hides = decided.form.hides();
            prop_assert!(!hides || !fits || how.reader != PointerReader::Nobody, "{:?}", decided);
            let above = decided.form.substitution().is_some_and(|made| [" as above", "[… above: "].iter().any(|mark| made.text.contains(mark)));
            prop_assert!(!above || how.refers_above, "{:?}", decided);
        }
    }

    /// What was decided for a history stays decided while it grows, except where an epoch is declared.
    #[test]
    fn a_growing_history_keeps_its_prefix(how in any_request(), seed in any::<u64>(), steps in 2usize..12, room in 900usize..6000, threshold in 400usize..4000) {
        let said = Numbers(seed).history(steps);
        let policy = policy(room, Some(threshold), Some(40));
        let memo = Memo::default();
        let mut before: Option<(usize, DecidedWindow)> = None;
        // A request ends where the model is to speak: nothing waits for its result.
        let ends = (1..=said.len()).filter(|&until| {
            let waits = |said: &Said| said.role == Role::Assistant;
            !waits(&said[until - 1]) && said.get(until).is_none_or(waits)
        });
        for until in ends {
            let window = decide_as(how, &said[..until], &policy, &memo);
            prop_assert_eq!(window.epoch.moved_prefix, before.as_ref().is_some_and(|(length, _)| window.epoch.at_message > *length), "{:?}", window.epoch);
            if let Some((length, last)) = before.filter(|(_, last)| last.verdict != Verdict::Refuse) {
                let kept = if window.epoch.at_message > length { window.epoch.from_message.min(length) } else { length };
                if window.epoch.number <= last.epoch.number + 1 && window.verdict != Verdict::Refuse {
                    prop_assert_eq!(&sent(&said[..kept], &window)[..kept], &sent(&said[..kept], &last)[..kept]);
                }
            }
            before = Some((until, window));
        }
    }

    /// What is said of a conversation beforehand, with some of its results still pending, is what becomes of it.
    #[test]
    fn what_is_evaluated_is_what_is_decided(
        seed in any::<u64>(), steps in 1usize..12, room in 400usize..6000, pending in 0usize..4,
        kind in 0usize..4
    ) {
        let said = Numbers(seed).history(steps);
        let settings = PolicySettings {
            enabled: kind != 1,
            dry_run: kind == 2,
            trace_threshold_tokens: (kind == 3).then_some(room / 2),
            emergency_floor: Some(50),
            ..PolicySettings::default()
        };
        let model = ModelProfile { window: room, input_limit: None, max_output: None, cache: None };
        let policy = ContextBudgetPolicy::from_settings(&settings, &model);
        with_items(USUAL, &said, |all| {
            let (counter, key, memo) = (counter(), key(), Memo::default());
            let means = DecisionContext { counter: &counter, key: &key, memo: &memo };
            let window = policy.decide(all, means);
            let results = all.items.iter().rev().take_while(|item| item.role == Role::Tool).count();
            let (items, pending) = all.items.split_at(all.items.len() - pending.min(results));
            let decision = policy.evaluate(&Conversation { items, ..*all }, pending, means);
            prop_assert_eq!(&decision, &window.decision);
            prop_assert_eq!(&policy.tokens_available(all, &[], means), &decision);
            let whole = window.items.iter().all(|item| item.form == MessageForm::Whole);
            let too_long = window.tokens_before > decision.prompt_budget;
            let refused = decision.status == BudgetStatus::Reject && !settings.dry_run;
            prop_assert_eq!(window.verdict == Verdict::Refuse, refused);
            prop_assert!(!settings.dry_run || window.verdict == Verdict::AsItCame, "it only says what would be");
            match decision.status {
                // What fits may be shortened all the same, because that is cheaper.
                BudgetStatus::Ok => prop_assert!(!too_long && decision.deficit == 0),
                BudgetStatus::NeedsSummary => {
                    prop_assert!(!whole && too_long && window.tokens_after <= decision.prompt_budget);
                }
                BudgetStatus::Reject => prop_assert!(decision.deficit > 0 && decision.largest.len() == 3),
            }
            Ok(())
        })?;
    }

    /// A memo that knows nothing, one that knows everything, and one that forgets at once decide the same.
    #[test]
    fn the_memo_changes_nothing(seed in any::<u64>(), steps in 1usize..10, room in 900usize..6000) {
        let said = Numbers(seed).history(steps);
        let policy = policy(room, Some(room / 2), Some(40));
        let (memo, forgetful) = (Memo::default(), Memo::new(0));
        let first = decide(&said, &policy, &memo);
        for window in [decide(&said, &policy, &memo), decide(&said, &policy, &forgetful)] {
            prop_assert_eq!(sent(&said, &first), sent(&said, &window));
            prop_assert_eq!(&first.decision, &window.decision);
        }
    }

    /// Nor does one that knows a history that is alike but for a result that is never shortened: references count it.
    #[test]
    fn a_memo_of_a_similar_history_changes_nothing(
        seed in any::<u64>(),
        steps in 1usize..10,
        room in 900usize..6000,
        tool in prop::sample::select(vec!["read_file", "search", "document_edit"]),
    ) {
        let said = Numbers(seed).history(steps);
        let call = Said { calls: vec![("extra".to_owned(), tool)], ..plain(Role::Assistant, "") };
        let result = Said { result_of: Some("extra".to_owned()), ..plain(Role::Tool, "nothing") };
        let mut longer = said.clone();
        longer.splice(2..2, [call, result]);
        let policy = policy(room, Some(room / 2), Some(40));
        for (first, second) in [(&said, &longer), (&longer, &said)] {
            let memo = Memo::default();
            decide(first, &policy, &memo);
            let (known, anew) = (decide(second, &policy, &memo), decide(second, &policy, &Memo::default()));
            prop_assert_eq!(sent(second, &known), sent(second, &anew));
        }
    }
}

/// A window is full only when what must stay fills it, however many runs were dropped.
#[test]
fn a_long_conversation_of_short_turns_fits() {
    for turns in [40, 90, 140] {
        let mut numbers = Numbers(turns as u64);
        let mut said = Vec::new();
        for turn in 0..turns {
            let (id, result) =
                (format!("call_{turn}"), (0..10).map(|_| numbers.line()).collect::<Vec<_>>().join("\n"));
            said.push(plain(Role::User, format!("and depot {turn}?")));
            said.push(Said { calls: vec![(id.clone(), "search")], ..plain(Role::Assistant, "") });
            said.push(Said { result_of: Some(id), ..plain(Role::Tool, result) });
            said.push(plain(Role::Assistant, format!("That is {turn}.")));
        }
        said.push(plain(Role::User, "and now?".to_owned()));
        let policy = policy(5_000, None, None);
        let window = decide(&said, &policy, &Memo::default());
        assert!(window.verdict != Verdict::Refuse, "{:?}", window.decision);
        check_window(&said, &window, policy.prompt_budget(Some(100))).unwrap();
    }
}

#[test]
fn our_tool_is_offered_wherever_the_history_needs_it() {
    let said = [plain(Role::User, "go")];
    let policy = policy(4_000, None, None);
    for (needs_tool, reader, offered) in [
        (false, PointerReader::Larder, false),
        (true, PointerReader::Larder, true),
        (true, PointerReader::Nobody, false),
    ] {
        let window = decide_as(How { needs_tool, reader, ..USUAL }, &said, &policy, &Memo::default());
        assert_eq!(window.offer_tool, offered);
        let verdict = if offered { Verdict::Edited } else { Verdict::AsItCame };
        assert_eq!(window.verdict, verdict);
    }
}

#[test]
fn tools_that_read_originals_are_known_by_their_names() {
    let names = ["larder_rehydrate", "mcp__larder__rehydrate", "larder-rehydrate", "rehydrate"];
    assert!(names.into_iter().all(reads_back));
    assert!(!["read_file", "dehydrate", "autorehydrate", "rehydrate_all", ""].into_iter().any(reads_back));
}

/// Replacing a result moves the cached prefix before it once; a prefix that is too short to be cached costs nothing to
/// move.
#[test]
fn a_prefix_too_short_to_be_cached_may_move_for_less() {
    let mut numbers = Numbers(3);
    let mut words = |count: usize| (0..count).map(|_| numbers.word()).collect::<Vec<_>>().join(" ");
    let said = [
        plain(Role::User, words(900)),
        Said { calls: vec![("c1".to_owned(), "read")], ..plain(Role::Assistant, "") },
        Said { result_of: Some("c1".to_owned()), ..plain(Role::Tool, words(1_300)) },
    ];
    let decided = |minimum| {
        let cache = Some(CacheShares { minimum, read: 0.1, write: 1.25, write_hour: 2.0 });
        let model = ModelProfile { window: 200_000, input_limit: None, max_output: None, cache };
        let policy = ContextBudgetPolicy::from_settings(&PolicySettings::default(), &model);
        let window = decide(&said, &policy, &Memo::default());
        matches!(window.items[2].form, MessageForm::Replaced(_))
    };
    let prefix = counter().count(&said[0].text);
    assert!(prefix > 2_000, "{prefix}");
    assert!(!decided(0), "the tool would move the cached prefix for one result");
    assert!(!decided(prefix), "the prompt is long enough to be cached");
    assert!(decided(20_000), "nothing is cached yet");
}
