//! What becomes of a prompt that fits whole and uses most of its budget.

use larder_core::pack::{CallBudget, CallFraming, Cap, Part, Protection};

use super::*;

const AVAILABLE: usize = 10_000;

/// A prompt of about so many tokens in one part.
fn request(tokens: usize, available: usize) -> PackRequest {
    let counter = Counter::cl100k();
    let lines: String = (0..tokens).map(|n| format!("parcel {n} was weighed and sent on\n")).collect();
    let text = counter.prefix(&lines, tokens).to_owned();
    PackRequest {
        slots: vec![Slot::new("documents")],
        parts: vec![Part::new("notes", "documents", text)],
        budget: CallBudget {
            total: available,
            window: usize::MAX,
            output: 0,
            response_reserve: 0,
            emergency_floor: 0,
            declared: None,
        },
        framing: CallFraming::default(),
        query: None,
        by_model: false,
        trigger: None,
        layer: None,
    }
}

fn made(request: &PackRequest, policy: &RunPolicy) -> Pack {
    let (counter, key) = (Counter::cl100k(), PointerKey::new([7; 32]));
    let whole = pack(request, &counter, &key).unwrap().unwrap();
    *relieved(&whole, request, &counter, &key, policy).unwrap().unwrap_or(whole)
}

fn is_whole(pack: &Pack) -> bool {
    pack.receipt.parts[0].rendition == Rendition::Whole
}

#[test]
fn a_prompt_over_the_threshold_is_condensed_to_it_where_that_saves_enough() {
    let usual = RunPolicy::default();
    let whole = |tokens, available, policy: &RunPolicy| is_whole(&made(&request(tokens, available), policy));
    assert!(whole(8_900, AVAILABLE, &usual), "below the threshold");
    assert!(whole(9_300, AVAILABLE, &usual), "it would save too little");
    assert!(whole(3_900, 4_000, &usual), "so would all of a small budget");
    let relieved = made(&request(9_800, AVAILABLE), &usual);
    assert!(!is_whole(&relieved) && relieved.receipt.total <= 9_000, "{}", relieved.receipt.total);
    assert_eq!(relieved.receipt.parts[0].reason, PartReason::OverThreshold);
    assert_eq!(relieved.receipt.budget.available, AVAILABLE, "the budget is what it was");
    assert!(relieved.receipt.parts[0].pointer.is_some());
    // What does not fit may have all of the budget.
    let over = made(&request(10_800, AVAILABLE), &usual);
    assert_eq!(over.receipt.parts[0].reason, PartReason::CallOverBudget);

    for policy in [
        RunPolicy { compression_threshold: 1.0, ..usual },
        RunPolicy { min_compression_savings: 2_000, ..usual },
        RunPolicy { compression_enabled: false, ..usual },
    ] {
        assert!(whole(9_800, AVAILABLE, &policy), "{policy:?}");
    }
    let lower = RunPolicy { compression_threshold: 0.5, min_compression_savings: 0, ..usual };
    assert!(made(&request(6_000, AVAILABLE), &lower).receipt.total <= 5_000);
}

#[test]
fn a_conversation_whose_decisions_stay_is_left_alone() {
    let mut request = request(9_800, AVAILABLE);
    request.slots[0].form = SlotForm::Messages;
    request.slots[0].cap = Cap::Tokens(20_000);
    assert!(is_whole(&made(&request, &RunPolicy::default())));
}

/// So many parts of so many tokens each.
fn parts(count: usize, tokens: usize) -> PackRequest {
    let mut request = request(tokens, AVAILABLE);
    let text = request.parts[0].text.to_string();
    let part =
        |n: usize| Part::new(format!("note {n}"), "documents", text.replace("parcel", &format!("box {n}")));
    request.parts = (0..count).map(part).collect();
    request
}

#[test]
fn no_part_of_a_prompt_that_fits_becomes_a_pointer_or_a_beginning() {
    let usual = RunPolicy::default();
    // How many parts there must be for a prompt between the threshold with its savings and the budget.
    let with = |tokens: usize| {
        let made = |count| made(&parts(count, tokens), &RunPolicy { compression_threshold: 1.0, ..usual });
        let fits = (1..400).take_while(|count| {
            let pack = made(*count);
            pack.receipt.parts.iter().all(|part| part.rendition == Rendition::Whole)
        });
        let request = parts(fits.last().unwrap(), tokens);
        assert!(made(request.parts.len()).receipt.total > 9_500);
        request
    };
    let request = with(300);
    let relieved = made(&request, &usual);
    let kept = |part: &PartReceipt| matches!(part.rendition, Rendition::Whole | Rendition::Condensed);
    assert!(relieved.receipt.parts.iter().all(kept), "{:?}", relieved.receipt.parts);

    let mut fixed = request.clone();
    fixed.parts.iter_mut().for_each(|part| part.summarizable = false);
    let mut cut = request;
    cut.slots[0].overflow = Overflow { condense: false, truncate: true, ..Overflow::LADDER };
    for request in [fixed, cut] {
        let pack = made(&request, &usual);
        assert!(pack.receipt.parts.iter().all(|part| part.rendition == Rendition::Whole));
    }
}

/// A prompt of about so many tokens that is asked again, with a note of 160.
fn noted(tokens: usize) -> (PackRequest, PackRequest) {
    let first = request(tokens, AVAILABLE);
    let mut again = first.clone();
    let text = request(160, AVAILABLE).parts.remove(0).text.to_string();
    let mut note = Part::new(NOTE, NOTE, text);
    note.protection = Protection::Critical;
    again.parts.push(note);
    again.slots.push(Slot::new(NOTE).overflow(Overflow::REFUSE));
    (first, again)
}

#[test]
fn a_repair_note_does_not_change_the_rest_of_the_prompt() {
    let usual = RunPolicy::default();
    let (first, again) = noted(9_420);
    assert!(is_whole(&made(&first, &usual)) && is_whole(&made(&again, &usual)));
    let (first, again) = noted(9_750);
    let (first, again) = (made(&first, &usual), made(&again, &usual));
    assert!(!is_whole(&first) && !is_whole(&again));
    let tokens = |pack: &Pack| pack.receipt.parts[0].tokens;
    let (first, again) = (tokens(&first), tokens(&again));
    assert!(first.abs_diff(again) < 40, "{first} and {again}");
}

#[test]
fn a_relieved_prompt_has_the_slots_of_the_whole_budget() {
    let mut request = request(9_800, AVAILABLE);
    request.slots[0].soft = Some(0.985);
    let whole = made(&request, &RunPolicy { compression_enabled: false, ..RunPolicy::default() });
    let relieved = made(&request, &RunPolicy::default());
    assert!(!is_whole(&relieved));
    let ledgers = |pack: &Pack| {
        let slots = pack.receipt.budget.slots.iter();
        slots.map(|slot| (slot.allowed, slot.soft_trigger)).collect::<Vec<_>>()
    };
    assert_eq!(ledgers(&relieved), ledgers(&whole));
    assert!(relieved.receipt.budget.slots[0].tokens < whole.receipt.budget.slots[0].tokens);
}
