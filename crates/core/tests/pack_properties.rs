//! The guarantees of packing over generated requests: never over budget, nothing lost, protected is protected,
//! same input same bytes, budgets used up, prefixes stable.
//!
//! `PROPTEST_CASES` sets the number of cases; the long run uses 20,000 for each property.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use std::collections::BTreeMap;

use larder_condense::ContentType;
use larder_core::pack::{
    CallBudget, CallFraming, Cap, Frame, Overflow, Pack, PackRequest, PackStep, Packing, Part, Protection,
    Rendition, Slot, SlotForm,
};
use larder_text::hash::ContentHash;
use larder_text::message::{Role, ToolCall};
use larder_text::pointer::{Fragment, Pointer, PointerKey};
use larder_text::tokens::Counter;
use proptest::prelude::*;

fn key() -> PointerKey {
    PointerKey::new([7; 32])
}

fn counter() -> Counter {
    thread_local!(static COUNTER: Counter = Counter::o200k());
    COUNTER.with(Clone::clone)
}

fn run(request: &PackRequest) -> PackStep {
    let counter = counter();
    let key = key();
    Packing::new(request, &counter, &key).expect("the request is well formed").step()
}

/// What a store would give back for a pointer, from what the pack says must be stored.
fn resolve(pack: &Pack, pointer: &Pointer) -> Vec<u8> {
    let key = key();
    assert!(key.owns(&pointer.id));
    let stored: BTreeMap<String, &str> = pack
        .originals
        .iter()
        .map(|original| (key.mint(ContentHash::new(original.text.as_bytes())).to_string(), &*original.text))
        .collect();
    let text = stored.get(pointer.id.as_str()).expect("every pointer leads to a stored original");
    match pointer.fragment {
        None => text.as_bytes().to_vec(),
        Some(Fragment::Bytes { start, end }) => text.as_bytes()[start..end].to_vec(),
        Some(Fragment::Lines { first, last }) => {
            text.split_inclusive('\n').skip(first - 1).take(last + 1 - first).collect::<String>().into_bytes()
        }
    }
}

/// Numbers that follow from a seed. A text made of them is one value to proptest, not one per character, which
/// makes a case a hundred times cheaper; it still shrinks, by its length.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn letters(&mut self, least: usize, most: usize) -> String {
        (0..least + self.below(most - least + 1)).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }

    /// Any character, the odd ones as often as the plain ones.
    fn character(&mut self) -> char {
        const ODD: [char; 12] = [
            '\0', '\r', '\n', '\t', '\x1b', '\u{85}', '\u{301}', '\u{200d}', '\u{2028}', '\u{feff}', '[', '⋯',
        ];
        let code = match self.below(4) {
            0 => return ODD[self.below(ODD.len())],
            1 => self.below(0x80),
            2 => self.below(0x1_0000),
            _ => self.below(0x11_0000),
        };
        char::from_u32(code as u32).unwrap_or('\u{fffd}')
    }

    fn word(&mut self) -> String {
        match self.below(16) {
            0 => format!("T{}{}", self.letters(2, 7), ['.', '!', '?'][self.below(3)]),
            1 => "$697.50".to_owned(),
            2 => "https://example.org/a?b=1".to_owned(),
            3 => "\n\n".to_owned(),
            4 => "ERROR: disk full\n".to_owned(),
            5 => "日本語の文。".to_owned(),
            6 => "[⋯ L1-2] lp1-0000000000000-000000".to_owned(),
            7 => self.character().to_string(),
            _ => self.letters(1, 9),
        }
    }
}

fn words() -> impl Strategy<Value = String> {
    (0..400_usize, any::<u64>()).prop_map(|(count, seed)| {
        let mut numbers = Numbers(seed);
        (0..count).map(|_| numbers.word()).collect::<Vec<_>>().join(" ")
    })
}

fn part(slot: &'static str) -> impl Strategy<Value = Part> {
    let content_type = prop_oneof![
        Just(ContentType::Prose),
        Just(ContentType::Markdown),
        Just(ContentType::ContextDoc),
        Just(ContentType::Generic),
    ];
    let frame = prop_oneof![
        Just(Frame::Bare { heading: None }),
        Just(Frame::Tagged { name: "doc".into(), attributes: vec![("from".into(), "a \"b\"".into())] }),
        Just(Frame::Fenced { heading: "## Log".into() }),
    ];
    (words(), content_type, 0u8..=3, 0u8..20, 1u8..9, any::<bool>(), frame, 0u8..24).prop_map(
        move |(text, content_type, priority, protection, relevance, summarizable, frame, pinned)| {
            let mut part = Part::new("", slot, text);
            part.content_type = content_type;
            part.priority = priority * 25;
            part.relevance = f64::from(relevance);
            part.protection = match protection {
                0 => Protection::Critical,
                1..=3 => Protection::Protected,
                _ => Protection::None,
            };
            part.summarizable = summarizable;
            part.frame = frame;
            if pinned == 0 {
                let (start, end) = (text_at(&part.text, 1, 3), text_at(&part.text, 1, 2));
                let end = part.text.floor_char_boundary(end.min(start + 24));
                part.pins = vec![part.text[start..end].to_owned()];
            }
            part
        },
    )
}

/// The character boundary at or before so much of the text.
fn text_at(text: &str, part: usize, of: usize) -> usize {
    text.floor_char_boundary(text.len() * part / of)
}

fn number(mut parts: Vec<Part>) -> Vec<Part> {
    for (index, part) in parts.iter_mut().enumerate() {
        part.id = format!("p{index}").into();
        part.source.name = format!("doc {index}").into();
    }
    parts
}

fn cap() -> impl Strategy<Value = Cap> {
    prop_oneof![
        (50usize..3000).prop_map(Cap::Tokens),
        (0.1f64..1.0).prop_map(Cap::Share),
        Just(Cap::Flexible)
    ]
}

prop_compose! {
    fn request()(
        a in prop::collection::vec(part("a"), 0..12),
        b in prop::collection::vec(part("b"), 0..12),
        cap_a in cap(),
        cap_b in cap(),
        ladder in any::<[bool; 3]>(),
        total in 100usize..6000,
        output in 0usize..500,
        form in prop_oneof![Just(SlotForm::Joined), Just(SlotForm::Messages)],
    ) -> PackRequest {
        let mut slot_b = Slot::new("b").cap(cap_b);
        slot_b.overflow = Overflow { condense: ladder[0], truncate: ladder[1], point: ladder[2], drop: true };
        slot_b.form = form;
        PackRequest {
            slots: vec![Slot::new("a").cap(cap_a), slot_b],
            parts: number(a.into_iter().chain(b).collect()),
            budget: CallBudget { total, window: 5000, output, response_reserve: 20, emergency_floor: 0, declared: None },
            framing: CallFraming::for_call(&counter(), &[], None),
            query: Some("what about the price?".into()),
            by_model: false,
            trigger: None,
            layer: None,
        }
    }
}

fn check(request: &PackRequest, pack: &Pack) -> Result<(), TestCaseError> {
    let counter = counter();
    let recount = counter.count_messages(&pack.messages, &[], None);
    prop_assert_eq!(recount, pack.receipt.total);
    prop_assert!(recount <= request.budget.available());
    prop_assert!(
        request.budget.available() + request.budget.output + 20
            <= request.budget.total.min(5000).max(request.budget.output + 20)
    );
    // Older messages that are condensed together have a line of their own.
    prop_assert!(matches!(pack.receipt.parts.len() - request.parts.len(), 0 | 1));
    let prompt: String = pack.messages.iter().map(|message| message.joined_text()).collect();
    for part in &request.parts {
        for pin in &part.pins {
            prop_assert!(prompt.contains(pin.as_str()), "{pin:?} of {} is gone", part.id);
        }
        let receipt =
            pack.receipt.parts.iter().find(|receipt| *receipt.id == *part.id).expect("a line per part");
        if part.protection == Protection::Critical {
            prop_assert_eq!(receipt.rendition, Rendition::Whole);
        }
        match &receipt.pointer {
            None => {
                prop_assert!(receipt.rendition == Rendition::Whole);
                prop_assert!(prompt.contains(&*part.text));
            }
            Some(pointer) => {
                let back = resolve(pack, pointer);
                if part.shell.tool_calls.is_empty() {
                    prop_assert_eq!(back, part.text.as_bytes());
                } else {
                    prop_assert!(back.starts_with(part.text.as_bytes()));
                }
                for gap in &receipt.gaps {
                    let back = resolve(pack, &gap.pointer);
                    prop_assert_eq!(&back[..], &part.text.as_bytes()[gap.bytes.clone()]);
                }
            }
        }
        if receipt.rendition == Rendition::Pointer {
            prop_assert!(prompt.contains(&receipt.pointer.as_ref().expect("checked above").to_string()));
        }
    }
    Ok(())
}

proptest! {
    // Long runs meet many inputs that fit whole; those say nothing and must not end the run.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_global_rejects: u32::MAX,
        ..ProptestConfig::default()
    })]

    /// Invariants 1, 2 and 3, or a refusal that names a deficit.
    #[test]
    fn packs_fit_lose_nothing_and_keep_what_is_critical(request in request()) {
        match run(&request) {
            PackStep::Done(pack) => check(&request, &pack)?,
            PackStep::Refused(receipt) => {
                let refusal = receipt.refused.expect("a refused receipt says so");
                prop_assert!(refusal.deficit > 0);
                // Without a part to blame, the budget does not even hold the framing and the marks.
                prop_assert!(!refusal.parts.is_empty() || request.budget.available() < 200);
            }
            PackStep::Need(_) => prop_assert!(false, "no model was offered"),
        }
    }

    /// Invariant 5.
    #[test]
    fn the_same_request_gives_the_same_bytes(request in request()) {
        if let (PackStep::Done(one), PackStep::Done(two)) = (run(&request), run(&request)) {
            prop_assert_eq!(&one.messages, &two.messages);
            prop_assert_eq!(one.receipt, two.receipt);
        }
    }

    /// A request without anything critical is never refused, however small its budget is beside its content.
    #[test]
    fn what_may_be_left_out_never_causes_a_refusal(mut request in request()) {
        for part in &mut request.parts {
            part.protection = Protection::None;
            part.pins.clear();
        }
        request.budget.total += 700;
        let step = run(&request);
        prop_assert!(matches!(step, PackStep::Done(_)), "{step:?}");
    }

    /// Content that exceeds the budget fills at least 98 % of it, from a few hundred tokens up.
    #[test]
    fn budgets_are_used_up(texts in prop::collection::vec(prose(), 2..10), total in 300usize..4000) {
        let parts: Vec<Part> = texts.into_iter().map(|text| {
            let mut part = Part::new("", "docs", text);
            part.content_type = ContentType::Prose;
            part
        }).collect();
        let request = PackRequest {
            slots: vec![Slot::new("docs")],
            parts: number(parts),
            budget: CallBudget { total, window: 100_000, output: 0, response_reserve: 0, emergency_floor: 0, declared: None },
            framing: CallFraming::for_call(&counter(), &[], None),
            query: None,
            by_model: false,
            trigger: None,
            layer: None,
        };
        let all: usize = request.parts.iter().map(|part| counter().count(&part.text)).sum();
        prop_assume!(all > total + total / 4);
        let PackStep::Done(pack) = run(&request) else { return Err(TestCaseError::fail("refused")) };
        let used = pack.receipt.total;
        prop_assert!(used * 100 >= total * 98, "{used} of {total} tokens used");
    }

    /// Invariant 6: while a conversation grows, its prompt is extended, except in a new epoch.
    #[test]
    fn a_growing_conversation_extends_its_prompt(
        texts in prop::collection::vec(words(), 2..30),
        cap in 200usize..2000,
        overflow in any::<[bool; 3]>(),
    ) {
        let mut slot = Slot::new("history").cap(Cap::Tokens(cap));
        slot.form = SlotForm::Messages;
        slot.protect_last = 2;
        slot.overflow = Overflow { condense: overflow[0], truncate: overflow[1], point: overflow[2], drop: true };
        let messages: Vec<Part> = number(texts.into_iter().enumerate().map(|(at, text)| message(at, text)).collect());
        let mut before: Option<(Pack, usize)> = None;
        for until in 1..=messages.len() {
            if until % 3 == 2 {
                continue; // a call without its result is never sent
            }
            let request = PackRequest {
                slots: vec![slot.clone()],
                parts: messages[..until].to_vec(),
                budget: CallBudget { total: 100_000, window: 100_000, output: 0, response_reserve: 0, emergency_floor: 0, declared: None },
                framing: CallFraming::for_call(&counter(), &[], None),
                query: None,
                by_model: false,
                trigger: None,
                layer: None,
            };
            let PackStep::Done(pack) = run(&request) else { return Err(TestCaseError::fail("refused")) };
            let epoch = pack.receipt.epoch.expect("a slot of messages has an epoch").number;
            if let Some((last, last_epoch)) = &before
                && *last_epoch == epoch
            {
                prop_assert_eq!(&pack.messages[..last.messages.len()], &last.messages[..]);
            }
            for message in &pack.messages {
                for call in &message.tool_calls {
                    prop_assert!(pack.messages.iter().any(|other| other.tool_call_id.as_ref() == Some(&call.id)));
                }
                if let Some(id) = &message.tool_call_id {
                    prop_assert!(pack.messages.iter().any(|other| other.tool_calls.iter().any(|call| call.id == *id)));
                }
            }
            before = Some((*pack, epoch));
        }
    }
}

/// User, assistant with a call, its result, in turn.
fn message(at: usize, text: String) -> Part {
    let mut part = Part::new("", "history", text);
    match at % 3 {
        0 => part.priority = 80,
        1 => {
            part.role = Role::Assistant;
            part.summarizable = false;
            part.shell.tool_calls =
                vec![ToolCall { id: format!("call{at}"), name: "read".into(), arguments: "{}".into() }];
        }
        _ => {
            part.role = Role::Tool;
            part.priority = 20;
            part.shell.tool_call_id = Some(format!("call{}", at - 1));
        }
    }
    part
}

fn prose() -> impl Strategy<Value = String> {
    (20..80_usize, any::<u64>()).prop_map(|(sentences, seed)| {
        let mut numbers = Numbers(seed);
        let mut sentence = || {
            let words: Vec<String> = (0..4 + numbers.below(14)).map(|_| numbers.letters(2, 9)).collect();
            format!("The {}. ", words.join(" "))
        };
        (0..sentences).map(|_| sentence()).collect()
    })
}
