//! The network around a provider: a company's own certificates, and its proxy. `tests/providers/network.sh` sets both
//! up on the loopback address and runs these tests; without it they are ignored, since they need a changed environment.

#![allow(clippy::expect_used, clippy::panic, reason = "a test stops at what it does not expect")]

use std::time::Duration;

use larder_models::chat::{ChatRequest, ModelError};
use larder_models::connect::Models;
use larder_models::table::ModelTable;
use larder_testkit::stub::{Answer, StubServer};
use larder_text::message::{Message, Role};

async fn ask(address: &str) -> ModelError {
    let toml = format!(
        "[models.m]\nprovider = \"openai\"\nbase_url = \"{address}\"\nid = \"x\"\nwindow = 100\nmax_output = 10\nretries = 0\n"
    );
    let table = ModelTable::parse(&toml).unwrap_or_else(|problems| panic!("{problems}"));
    let model = Models::new(table, ".", &|_| None).chat("m").expect("the model connects");
    let request = ChatRequest::new("x", vec![Message::text(Role::User, "q")], 10, Duration::from_secs(10));
    model.chat(&request).await.expect_err("the server only refuses")
}

fn address() -> String {
    std::env::var("LARDER_TEST_TLS").expect("run tests/providers/network.sh")
}

#[tokio::test]
#[ignore = "needs the server and the environment of tests/providers/network.sh"]
async fn a_certificate_that_the_system_trusts_is_trusted() {
    let error = ask(&address()).await;
    assert!(matches!(error, ModelError::Server { status: 501, .. }), "the server was reached: {error:?}");
}

#[tokio::test]
#[ignore = "needs the server and the environment of tests/providers/network.sh"]
async fn an_untrusted_certificate_is_rejected() {
    let error = ask(&address()).await;
    assert!(matches!(&error, ModelError::Unreachable { .. }), "nothing was sent: {error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
#[ignore = "needs the environment of tests/providers/network.sh"]
async fn other_machines_are_reached_through_the_proxy_and_this_one_is_not() {
    // The script names this port as the proxy.
    let port = std::env::var("LARDER_TEST_PROXY_PORT").expect("run tests/providers/network.sh");
    let proxy =
        StubServer::start_on(port.parse().expect("a port"), [Answer::new(418, "text/plain", "proxied")])
            .await;
    let error = ask("http://models.example.invalid/v1").await;
    assert!(matches!(error, ModelError::BadRequest { status: 418, .. }), "{error:?}");
    assert_eq!(proxy.seen()[0].line, "POST http://models.example.invalid/v1/chat/completions");

    let local = StubServer::start([Answer::new(404, "text/plain", "direct")]).await;
    let error = ask(local.address()).await;
    assert!(matches!(error, ModelError::BadRequest { status: 404, .. }), "{error:?}");
    assert_eq!((proxy.seen().len(), local.seen().len()), (1, 1));
}
