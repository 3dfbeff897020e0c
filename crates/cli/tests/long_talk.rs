//! A conversation of two participants over several sessions, through the server: what is sent of it, turn after turn.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::path::Path;

use larder_testkit::long_talk::{LongTalk, Talked, Turn};
use support::next;

const MESSAGES: usize = 200;
const SESSIONS: usize = 4;
const WORDS: &str = "work dinner brother garden money morning letter door quiet angry listen promise kitchen train \
                     winter child school tired promise holiday window phone neighbour birthday";

/// Sentences of words in no order, each with a reply.
fn said() -> Vec<(String, String)> {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut state = 7;
    let mut sentence = |opening: &str, many: usize| {
        let mut text = opening.to_owned();
        for _ in 0..many {
            let at = usize::try_from(next(&mut state)).unwrap_or_default() % words.len();
            text = format!("{text} {}", words[at]);
        }
        text + "."
    };
    (0..MESSAGES).map(|_| (sentence("I told you about", 30), sentence("You speak of", 20))).collect()
}

fn sum(turns: &[Turn], of: impl Fn(&Turn) -> u64) -> u64 {
    turns.iter().map(of).sum()
}

#[test]
fn every_turn_of_a_long_conversation_covers_its_session_and_repeats_the_turn_before() {
    let said = said();
    let larder = Path::new(env!("CARGO_BIN_EXE_larder"));
    let talk = LongTalk { larder, messages: MESSAGES, sessions: SESSIONS, said: &said, vectors: false };
    let Talked { turns, marks, faults } = talk.hold();
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!((turns.len(), marks.len()), (MESSAGES / 2, 4));
    let repeating = turns.iter().filter(|turn| turn.repeats == Some(true)).count();
    assert!(repeating > turns.len() / 2, "{repeating}");
    assert!(turns.iter().any(|turn| turn.withheld) && turns.iter().any(|turn| turn.coverage[1] > 0));
    assert!(turns.iter().any(|turn| turn.retrieved > 0), "nothing of earlier sessions was looked up");
    let (input, cached) = (sum(&turns, |turn| turn.input), sum(&turns, |turn| turn.cached));
    assert!(cached * 100 >= input * 60, "{cached} of {input} tokens were cached");
    // The vocabulary of the model is public (R4-9.6).
    let off = |turn: &&Turn| turn.counted.abs_diff(turn.input) * 50 > turn.input;
    assert_eq!(turns.iter().find(off), None);
    assert!(marks.windows(2).all(|pair| pair[1].cost > pair[0].cost), "{marks:?}");
}
