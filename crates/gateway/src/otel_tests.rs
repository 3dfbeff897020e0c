//! What reaches a collector, and what does not.

use larder_testkit::records::exchange;
use larder_testkit::stub::{Answer, StubServer};

use super::*;

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_span_holds_sizes_and_hashes_and_no_word_of_the_client() {
    let server = StubServer::start([Answer::new(200, "application/x-protobuf", "")]).await;
    let otel = Otel::new(server.address()).unwrap();
    let mut head = exchange("person@example.com", 1).summary;
    head.model = "asked-for-by-client".to_owned();
    head.session = Some("a secret conversation".to_owned());
    head.traceparent = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned());
    otel.record(&head);
    tokio::task::spawn_blocking(move || otel.shutdown()).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].line, "POST /v1/traces");
    assert_eq!(seen[0].header("content-type"), Some("application/x-protobuf"));
    let body = &seen[0].body;
    for there in [
        "chat model-1",
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.conversation.id",
        "larder.overhead_us",
        "service.name",
    ] {
        assert!(holds(body, there), "{there}");
    }
    for absent in ["asked-for-by-client", "secret conversation", "person@example.com", "read_file"] {
        assert!(!holds(body, absent), "{absent}");
    }
    let trace =
        [0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36];
    assert!(body.windows(16).any(|window| window == trace), "it stands in the client's trace");
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_said() {
    for address in ["", "collector:4318", "ftp://collector"] {
        assert!(matches!(Otel::new(address), Err(OtelError::Address(_))), "{address}");
    }
}
