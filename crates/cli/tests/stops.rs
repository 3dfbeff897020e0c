//! Commands that are asked to stop: by Ctrl-C, by SIGTERM, or because their terminal is closed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use larder_testkit::stub::End;
use support::{Shop, reply_text};

/// Starts a command, asks it to stop when its model has been asked, and gives its exit code and what it said.
fn stopped(signal: &str, args: &[&str]) -> (Option<i32>, String) {
    let shop = Shop::responding(|_| reply_text("never").ending(End::Hang));
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    let command = shop.start(args);
    let end = Instant::now() + Duration::from_secs(60);
    while shop.seen().is_empty() {
        assert!(Instant::now() < end, "the model is never asked");
    }
    let sent = Command::new("kill").args([&format!("-{signal}"), &command.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = command.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_run_and_a_turn_end_in_order_whatever_asks_them_to_stop() {
    for signal in ["INT", "TERM", "HUP"] {
        let (code, said) = stopped(signal, &["run", "card/card_agent", "-q", "Begin"]);
        assert!(code == Some(130) && said.contains("error: stopped"), "{signal}: {code:?} {said}");
        let (code, said) = stopped(signal, &["turn", "What does the boat cost?"]);
        assert!(code == Some(130) && said.contains("larder turn resume 1"), "{signal}: {code:?} {said}");
    }
}
