//! Only parts reach a prompt (invariant 8): whatever else a request holds steers the packing and is never said, but for
//! the marks that the packer sets where parts are left out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use larder_core::pack::{CallBudget, CallFraming, PackRequest, PackStep, Packing, Part, Slot};
use larder_text::message::Message;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

/// A word that no part holds.
const ELSEWHERE: &str = "zyzzyva";

fn packed(parts: Vec<Part>, total: usize) -> Vec<Message> {
    let counter = Counter::o200k();
    let request = PackRequest {
        slots: ["first", "second"].map(Slot::new).to_vec(),
        parts,
        budget: CallBudget {
            total,
            window: 10_000,
            output: 100,
            response_reserve: 0,
            emergency_floor: 0,
            declared: None,
        },
        framing: CallFraming::for_call(&counter, &[], None),
        query: Some(format!("What is a {ELSEWHERE}?")),
        by_model: false,
        trigger: None,
        layer: None,
    };
    match Packing::new(&request, &counter, &PointerKey::new([7; 32])).unwrap().step() {
        PackStep::Done(pack) => pack.messages,
        other => panic!("{other:?}"),
    }
}

fn parts(sentences: usize) -> Vec<Part> {
    let text = |of: &str| -> String {
        (0..sentences).map(|at| format!("The {of} lamp of row {at} costs {} euros.\n", at * 7)).collect()
    };
    ["first", "second"].map(|name| Part::new(name, name, text(name))).to_vec()
}

fn said(messages: &[Message]) -> String {
    messages.iter().map(Message::joined_text).collect()
}

#[test]
fn without_parts_nothing_is_said() {
    assert_eq!(said(&packed(Vec::new(), 2_000)), "");
}

#[test]
fn whole_parts_are_the_only_text_in_a_prompt() {
    let bare = |text: &str| text.chars().filter(|char| !char.is_whitespace()).collect::<String>();
    let parts = parts(5);
    let texts: String = parts.iter().map(|part| &*part.text).collect();
    assert_eq!(bare(&said(&packed(parts, 2_000))), bare(&texts));
}

#[test]
fn the_query_alone_is_not_said_however_little_fits() {
    for total in [250, 400, 1_000, 3_000] {
        let said = said(&packed(parts(400), total));
        assert!(!said.is_empty() && !said.contains(ELSEWHERE), "{total}: {said}");
    }
}
