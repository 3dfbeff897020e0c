//! What the Dockerfile promises of the program that it runs: its variables, its command and its health check.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::process::{Command, Stdio};

use support::Shop;
use support::served::Served;

const DOCKERFILE: &str = include_str!("../../../Dockerfile");
const GUIDE: &str = include_str!("../../../docs/guide/containers.md");

/// The arguments of an instruction in its JSON form.
fn instruction(name: &str) -> Vec<String> {
    let line = DOCKERFILE.lines().rev().find(|line| line.starts_with(name)).unwrap();
    serde_json::from_str(&line[line.find('[').unwrap()..]).unwrap()
}

#[test]
fn a_container_serves_from_its_volume_and_says_when_it_is_ready() {
    assert_eq!(
        (instruction("ENTRYPOINT"), instruction("CMD")),
        (vec!["larder".into()], vec!["serve".into()])
    );
    let shop = Shop::with_models([]);
    let variables = DOCKERFILE.lines().find_map(|line| line.strip_prefix("ENV ")).unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_larder"));
    for variable in variables.split_whitespace() {
        let (name, value) = variable.split_once('=').unwrap();
        assert!(GUIDE.contains(&format!("(`{name}`)")), "{name} is not in the guide");
        // The folders and the port of the container are those of the test.
        match name {
            "LARDER_LISTEN" => serve.env(name, "127.0.0.1:0"),
            _ => serve.env(name, shop.path().join(value.trim_start_matches('/'))),
        };
    }
    serve.args(instruction("CMD")).current_dir(shop.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let served = Served::of(serve.spawn().unwrap());
    assert!(shop.path().join("data/index.sqlite").is_file(), "the home is the volume");
    let port = served.address.rsplit(':').next().unwrap().to_owned();
    let check = instruction("HEALTHCHECK");
    let is_healthy = || {
        let script = check[2].replace("8787", &port);
        let ran = Command::new(&check[0]).args([&check[1], &script]).output().unwrap();
        ran.status.success()
    };
    assert!(is_healthy());
    served.signal("TERM");
    assert_eq!(served.end().0, Some(0));
    assert!(!is_healthy());
}
