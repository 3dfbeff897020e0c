//! What a prompt that cannot be made is refused for, and which limit the refusal names.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop and say why")]

use larder_core::pack::{
    CallBudget, CallFraming, Cap, Overflow, Pack, PackRefusal, PackRequest, PackStep, Packing, Part,
    Protection, RefusalLimit, Rendition, Slot, SlotForm,
};
use larder_text::message::Role;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

fn prose(id: &str, sentences: usize) -> Part {
    let text: String = (0..sentences)
        .map(|at| format!("On day {at} the council of {id} spoke of bridge {}. ", at * 7))
        .collect();
    Part::new(id, "ctx", text)
}

fn pack(slot: Slot, parts: Vec<Part>, total: usize, window: usize) -> Result<Pack, PackRefusal> {
    pack_in(vec![slot], parts, total, window)
}

fn pack_in(slots: Vec<Slot>, parts: Vec<Part>, total: usize, window: usize) -> Result<Pack, PackRefusal> {
    pack_within(slots, parts, CallBudget { total, window, ..LIMITS })
}

const LIMITS: CallBudget =
    CallBudget { total: 0, window: 0, output: 100, response_reserve: 0, emergency_floor: 0, declared: None };

fn pack_within(slots: Vec<Slot>, parts: Vec<Part>, budget: CallBudget) -> Result<Pack, PackRefusal> {
    let counter = Counter::o200k();
    let request = PackRequest {
        slots,
        parts,
        budget,
        framing: CallFraming::for_call(&counter, &[], None),
        query: None,
        by_model: false,
        trigger: None,
        layer: None,
    };
    match Packing::new(&request, &counter, &PointerKey::new([7; 32])).unwrap().step() {
        PackStep::Done(pack) => Ok(*pack),
        PackStep::Refused(receipt) => Err(receipt.refused.unwrap()),
        PackStep::Need(_) => panic!("no model was offered"),
    }
}

fn slot(cap: usize, overflow: Overflow) -> Slot {
    Slot::new("ctx").cap(Cap::Tokens(cap)).overflow(overflow)
}

#[test]
fn a_refusal_names_the_limit_that_refused() {
    let refused = |cap, total, window| {
        pack(slot(cap, Overflow::REFUSE), vec![prose("a", 40)], total, window).unwrap_err()
    };
    let by_cap = refused(200, 20_000, 100_000);
    assert_eq!(by_cap.limit, RefusalLimit::Slot { name: "ctx".into(), cap: 200 });
    let words = by_cap.to_string();
    assert!(words.contains("Slot ctx holds at most 200: raise its cap"), "{words}");
    assert!(!words.contains("token_budget.total"), "{words}");
    let by_total = refused(5_000, 300, 100_000);
    assert_eq!(by_total.limit, RefusalLimit::Total);
    assert!(by_total.to_string().contains("Raise token_budget.total"));
    let by_window = refused(5_000, 20_000, 300);
    assert_eq!(by_window.limit, RefusalLimit::Window);
    assert!(by_window.to_string().contains("a model with a larger window"));
    // The same parts with limits of the settings.
    let refused = |limits: CallBudget| {
        let limits = CallBudget { window: 100_000, ..limits };
        pack_within(vec![slot(5_000, Overflow::REFUSE)], vec![prose("a", 40)], limits).unwrap_err()
    };
    let most = refused(CallBudget { total: 300, declared: Some(20_000), ..LIMITS });
    assert_eq!(most.limit, RefusalLimit::Override);
    assert!(most.to_string().contains("Raise policy.prompt_budget_override"), "{most}");
    assert!(!most.to_string().contains("token_budget.total"), "{most}");
    let floor = refused(CallBudget { total: 5_000, emergency_floor: 4_800, ..LIMITS });
    assert_eq!(floor.limit, RefusalLimit::Floor);
    assert!(floor.to_string().contains("Lower policy.emergency_floor"), "{floor}");
    let total = refused(CallBudget { total: 300, emergency_floor: 10, ..LIMITS });
    assert_eq!(total.limit, RefusalLimit::Total, "the floor alone is not why");
}

#[test]
fn a_slot_that_condenses_or_refuses_leaves_nothing_out() {
    let refusing = Overflow { condense: true, ..Overflow::REFUSE };
    let all = |count: usize| (0..count).map(|at| prose(&format!("n{at}"), 30)).collect::<Vec<_>>();
    let made = pack(slot(900, refusing), all(4), 20_000, 100_000).unwrap();
    assert!(made.receipt.parts.iter().all(|part| part.rendition == Rendition::Condensed), "{made:?}");
    let refusal = pack(slot(300, refusing), all(12), 20_000, 100_000).unwrap_err();
    assert_eq!(refusal.limit, RefusalLimit::Slot { name: "ctx".into(), cap: 300 });
    assert!(refusal.deficit > 0 && !refusal.parts.is_empty());
    let dropping = pack(slot(300, Overflow { drop: true, ..refusing }), all(12), 20_000, 100_000).unwrap();
    assert!(dropping.receipt.parts.iter().any(|part| part.rendition == Rendition::Absent));
}

#[test]
fn what_is_protected_is_whole_or_a_pointer_or_the_call_is_refused() {
    let protected = || Part { protection: Protection::Protected, ..prose("section", 90) };
    let rendition = |cap| {
        let parts = vec![protected(), prose("other", 60)];
        pack(slot(cap, Overflow::LADDER), parts, 20_000, 100_000).map(|pack| pack.receipt.parts[0].rendition)
    };
    assert_eq!(rendition(5_000).unwrap(), Rendition::Whole);
    assert_eq!(rendition(1_000).unwrap(), Rendition::Pointer, "never condensed");
    let refusal = rendition(20).unwrap_err();
    assert_eq!(refusal.limit, RefusalLimit::Slot { name: "ctx".into(), cap: 20 });
    let no_pointer = slot(1_000, Overflow { condense: true, ..Overflow::DROP });
    let refusal = pack(no_pointer, vec![protected()], 20_000, 100_000).unwrap_err();
    assert_eq!(refusal.parts[0].0, "section");
}

#[test]
fn what_must_be_whole_is_not_above_the_cap_of_its_slot() {
    let critical = || Part { protection: Protection::Critical, ..prose("contract", 90) };
    let refused = |cap: Cap| {
        let parts = vec![critical(), prose("other", 60)];
        pack(Slot::new("ctx").cap(cap), parts, 20_000, 100_000).map(|pack| pack.receipt.parts[0].rendition)
    };
    assert_eq!(refused(Cap::Tokens(5_000)).unwrap(), Rendition::Whole);
    let refusal = refused(Cap::Tokens(900)).unwrap_err();
    assert_eq!(refusal.limit, RefusalLimit::Slot { name: "ctx".into(), cap: 900 });
    assert_eq!(refusal.parts[0].0, "contract", "{refusal:?}");
    assert_eq!(refused(Cap::Share(0.5)).unwrap(), Rendition::Whole);
    let refusal = refused(Cap::Share(0.05)).unwrap_err();
    let RefusalLimit::Slot { cap, .. } = &refusal.limit else { panic!("{refusal:?}") };
    assert!((990..=995).contains(cap), "a twentieth of 19,900 less the framing: {cap}");
    // Two that hold it apart, and exceed their sum together.
    let of = |slot: &str| Part { slot: slot.into(), protection: Protection::Critical, ..prose(slot, 90) };
    let slots = ["a", "b"].map(|name| Slot::new(name).cap(Cap::Share(0.05)));
    let size = pack_in(slots[..1].to_vec(), vec![of("a")], 100_000, 200_000).unwrap().receipt.parts[0].tokens;
    let budget = size * 15;
    assert!(pack_in(slots.to_vec(), vec![of("a")], budget, 200_000).is_ok());
    let refusal = pack_in(slots.to_vec(), vec![of("a"), of("b")], budget, 200_000).unwrap_err();
    assert!(matches!(&refusal.limit, RefusalLimit::Slot { name, .. } if &**name == "b"), "{refusal:?}");
}

#[test]
fn a_percentage_is_a_cap() {
    let of = |slot: &str, part: Part| Part { slot: slot.into(), ..part };
    let made = |shares: [f64; 2], sentences: [usize; 2]| {
        let slots =
            vec![Slot::new("a").cap(Cap::Share(shares[0])), Slot::new("b").cap(Cap::Share(shares[1]))];
        let parts = vec![of("a", prose("a", sentences[0])), of("b", prose("b", sentences[1]))];
        let made = pack_in(slots, parts, 5_100, 100_000).unwrap();
        made.receipt.budget.slots.iter().map(|slot| slot.tokens).collect::<Vec<_>>()
    };
    let slots = made([0.1, 0.2], [300, 300]);
    assert!((450..=500).contains(&slots[0]) && (900..=1_000).contains(&slots[1]), "{slots:?}");
    // What one percentage does not use goes to the other, within the sum of both.
    let slots = made([0.1, 0.2], [300, 1]);
    assert!((1_400..=1_500).contains(&slots.iter().sum::<usize>()), "{slots:?}");
    let slots = made([0.6, 0.4], [400, 1]);
    assert!(slots[0] > 4_500, "{slots:?}");
}

#[test]
fn what_a_slot_cannot_use_goes_to_those_that_need_it() {
    let pointing = Overflow { point: true, drop: true, ..Overflow::REFUSE };
    let slots = vec![
        Slot::new("first").cap(Cap::Tokens(1_900)).overflow(pointing),
        Slot::new("rest").cap(Cap::Flexible).overflow(pointing),
    ];
    let of = |slot: &str, part: Part| Part { slot: slot.into(), ..part };
    let parts = vec![of("first", prose("a", 600)), of("rest", prose("b", 40))];
    let made = pack_in(slots, parts, 2_500, 100_000).unwrap();
    let renditions: Vec<Rendition> = made.receipt.parts.iter().map(|part| part.rendition).collect();
    assert_eq!(renditions, [Rendition::Pointer, Rendition::Whole]);
}

#[test]
fn nothing_is_left_out_that_takes_no_more_than_the_line_that_names_it() {
    let parts = vec![prose("a", 200), Part::new("small", "ctx", "Ask Marit.".to_owned())];
    let made = pack(slot(1_000, Overflow::LADDER), parts, 20_000, 100_000).unwrap();
    assert_eq!(made.receipt.parts[1].rendition, Rendition::Whole);
    // Where protected parts fill a slot, others keep some of it.
    let notes = Part { protection: Protection::Protected, ..prose("notes", 300) };
    let made = pack(slot(3_000, Overflow::LADDER), vec![notes, prose("log", 8)], 20_000, 100_000).unwrap();
    assert_eq!(made.receipt.parts[1].rendition, Rendition::Whole);
}

#[test]
fn an_older_message_that_is_shorter_than_a_mark_stays_as_it_is() {
    let message = |id: &str, role: Role, text: String| Part { role, ..Part::new(id, "talk", text) };
    let long = |at: usize| format!("The council spoke of bridge {at} and of its toll. ").repeat(100);
    let parts = vec![
        message("1", Role::User, "Fix the bridge.".to_owned()),
        message("2", Role::Assistant, "Yes.".to_owned()),
        message("3", Role::User, long(3)),
        message("4", Role::Assistant, long(4)),
    ];
    let mut talk = Slot::new("talk").cap(Cap::Tokens(800));
    talk.form = SlotForm::Messages;
    let made = pack_in(vec![talk], parts, 20_000, 100_000).unwrap();
    let part = |id: &str| made.receipt.parts.iter().find(|part| *part.id == *id).unwrap();
    assert_eq!(part("2").rendition, Rendition::Whole, "{:?}", made.receipt.parts);
    assert!(made.receipt.parts.iter().any(|part| part.rendition != Rendition::Whole), "it is over its cap");
    assert!(made.messages.iter().any(|message| message.joined_text() == "Yes."), "{:?}", made.messages);
}
