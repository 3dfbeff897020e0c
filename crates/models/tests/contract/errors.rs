//! The cases in which something goes wrong.

use std::time::Duration;

use futures::StreamExt;
use larder_models::chat::{ChatEvent, ChatModel, ChatRequest, ModelError};
use larder_testkit::stub::{Answer, End};

use crate::support::{Class, KEY, Wire, events, model_at, reply, request, stubbed};

/// Long enough for a loopback exchange on a busy machine, short enough for a test.
const SHORT: Duration = Duration::from_millis(200);

/// The error of a call, whole and streamed; both must be of one class.
async fn both(model: &dyn ChatModel, asked: &ChatRequest) -> [ModelError; 2] {
    let whole = model.chat(asked).await.expect_err("the call fails");
    let streamed = events(model, asked).await.expect_err("the stream fails");
    assert_eq!(std::mem::discriminant(&whole), std::mem::discriminant(&streamed), "{whole} / {streamed}");
    [whole, streamed]
}

pub async fn every_status_has_its_class(wire: &dyn Wire) {
    let classes: [(u16, &str, Class); 11] = [
        (400, "invalid_request_error", |e| matches!(e, ModelError::BadRequest { status: 400, .. })),
        (401, "authentication_error", |e| matches!(e, ModelError::Auth { .. })),
        (403, "permission_error", |e| matches!(e, ModelError::Auth { .. })),
        (404, "not_found_error", |e| matches!(e, ModelError::BadRequest { status: 404, .. })),
        (413, "request_too_large", |e| matches!(e, ModelError::BadRequest { status: 413, .. })),
        (422, "invalid_request_error", |e| matches!(e, ModelError::BadRequest { status: 422, .. })),
        (429, "rate_limit_error", |e| matches!(e, ModelError::RateLimited { retry_after: None, .. })),
        (500, "api_error", |e| matches!(e, ModelError::Server { status: 500, .. })),
        (503, "api_error", |e| matches!(e, ModelError::Server { status: 503, .. })),
        (529, "overloaded_error", |e| matches!(e, ModelError::Server { status: 529, .. })),
        (307, "elsewhere", |e| matches!(e, ModelError::BadRequest { status: 307, .. })),
    ];
    for (status, kind, is_right) in classes {
        let answer =
            Answer::json(status, &wire.error(kind, "the reason")).header("location", "http://127.0.0.1:1/");
        let stub = stubbed(wire, [answer.clone(), answer]).await;
        for error in both(&*stub.model, &request()).await {
            assert!(is_right(&error), "{status}: {error:?}");
            assert!(error.to_string().contains("the reason"), "{error}");
        }
        assert_eq!(stub.server.seen().len(), 2, "asked once each");
    }
}

pub async fn every_wording_of_a_full_window_is_known(wire: &dyn Wire) {
    for answer in wire.window_errors() {
        let stub = stubbed(wire, [answer.clone(), answer]).await;
        for error in both(&*stub.model, &request()).await {
            assert!(matches!(error, ModelError::WindowExceeded { .. }), "{error:?}");
        }
    }
}

pub async fn retry_after_is_read(wire: &dyn Wire) {
    let answer = Answer::json(429, &wire.error("rate_limit_error", "slow down")).header("Retry-After", "7");
    let stub = stubbed(wire, [answer.clone(), answer]).await;
    for error in both(&*stub.model, &request()).await {
        let seven = Some(Duration::from_secs(7));
        assert!(
            matches!(error, ModelError::RateLimited { retry_after, .. } if retry_after == seven),
            "{error:?}"
        );
    }
}

pub async fn a_closed_port_is_unreachable(wire: &dyn Wire) {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        format!("http://{}", listener.local_addr().expect("an address"))
    };
    let model = model_at(wire, r#"["streaming"]"#, &address);
    for error in both(&*model, &request()).await {
        assert!(matches!(error, ModelError::Unreachable { .. }), "{error:?}");
    }
}

pub async fn a_stream_that_breaks_off_is_an_error(wire: &dyn Wire) {
    for end in [End::Clean, End::Break] {
        let stub = stubbed(wire, [Answer::events(wire.unfinished("Half a")).ending(end)]).await;
        let asked = request();
        let mut stream = stub.model.stream(&asked);
        let mut text = String::new();
        let error = loop {
            match stream.next().await.expect("the stream ends with an error") {
                Ok(ChatEvent::Text(piece)) => text.push_str(&piece),
                Ok(other) => panic!("{end:?}: {other:?}"),
                Err(error) => break error,
            }
        };
        assert_eq!(text, "Half a", "{end:?}: what came is given out");
        assert!(matches!(error, ModelError::Protocol { .. }), "{end:?}: {error:?}");
        assert_eq!(stream.next().await, None, "nothing follows the error");
    }
    let whole = wire.whole(&reply("never complete")).to_string();
    let half = &whole[..whole.len() / 2];
    let stub = stubbed(wire, [Answer::new(200, "application/json", half).ending(End::Break)]).await;
    let error = stub.model.chat(&request()).await.unwrap_err();
    assert!(matches!(error, ModelError::Protocol { .. }), "{error:?}");
}

pub async fn broken_streams_are_errors(wire: &dyn Wire) {
    let invalid = [
        b"data: \xff\xfe\n\n".as_slice(),
        b"data: {\"choices\": [\n\n",
        b"data: nonsense\n\n",
        b"nonsense",
        b"",
    ];
    for body in invalid {
        let stub = stubbed(wire, [Answer::events(body)]).await;
        let error = events(&*stub.model, &request()).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Protocol { .. }),
            "{:?}: {error:?}",
            String::from_utf8_lossy(body)
        );
    }
    let json_instead = Answer::json(200, &wire.whole(&reply("not streamed")));
    let stub = stubbed(wire, [json_instead]).await;
    let error = events(&*stub.model, &request()).await.unwrap_err();
    assert!(error.to_string().contains("expected a stream, but received"), "{error}");
}

pub async fn garbage_is_an_error(wire: &dyn Wire) {
    let deep = "[".repeat(100_000);
    for body in
        ["", "null", "[]", "{}", "{\"choices\": 7, \"content\": 7}", "<html>", "\0", "{", deep.as_str()]
    {
        let stub = stubbed(wire, [Answer::new(200, "application/json", body)]).await;
        let error = stub.model.chat(&request()).await.unwrap_err();
        assert!(matches!(error, ModelError::Protocol { .. }), "{body:.20}: {error:?}");
    }
}

pub async fn an_error_inside_a_stream_has_its_class(wire: &dyn Wire) {
    for (event, is_right) in wire.late_errors() {
        let body = [wire.unfinished("Half a"), event.clone()].concat();
        for answer in [Answer::events(body.clone()), Answer::events(body).byte_by_byte()] {
            let stub = stubbed(wire, [answer]).await;
            let asked = request();
            let all: Vec<_> = stub.model.stream(&asked).collect().await;
            let (last, before) = all.split_last().expect("an error at least");
            assert!(last.as_ref().is_err_and(is_right), "{}: {last:?}", String::from_utf8_lossy(&event));
            assert!(!before.is_empty() && before.iter().all(Result::is_ok), "the text comes first: {all:?}");
        }
    }
}

pub async fn silence_times_out(wire: &dyn Wire) {
    let begun = Answer::events(wire.unfinished("Half a")).ending(End::Hang);
    let silent = Answer::events("").ending(End::Hang);
    let stub = stubbed(wire, [silent.clone(), silent, begun]).await;
    let asked = ChatRequest { timeout: SHORT, ..request() };
    let mut errors = both(&*stub.model, &asked).await.to_vec();
    let all: Vec<_> = stub.model.stream(&asked).collect().await;
    assert_eq!(
        all.len(),
        all.iter().filter(|event| event.is_ok()).count() + 1,
        "one error, at the end: {all:?}"
    );
    errors.extend(all.into_iter().filter_map(Result::err));
    for error in errors {
        assert!(matches!(error, ModelError::Timeout { after: SHORT, .. }), "{error:?}");
        assert!(!error.is_retryable(), "whether it was billed is not known");
    }
}

pub async fn a_dropped_call_closes_the_connection(wire: &dyn Wire) {
    let asked = request();
    let stub = stubbed(wire, [Answer::events(wire.unfinished("Half a")).ending(End::Hang)]).await;
    let mut stream = stub.model.stream(&asked);
    stream.next().await.expect("a piece").expect("of text");
    drop(stream);
    stub.server.client_left().await;

    let stub = stubbed(wire, [Answer::json(200, &wire.whole(&reply("x"))).ending(End::Hang)]).await;
    let is_asked = async {
        while stub.server.seen().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        reply = stub.model.chat(&asked) => panic!("{reply:?}"),
        () = is_asked => {}
    }
    stub.server.client_left().await;
}

pub async fn huge_error_bodies_are_cut(wire: &dyn Wire) {
    let stub = stubbed(wire, [Answer::new(500, "text/plain", vec![b'x'; 1 << 22])]).await;
    let error = stub.model.chat(&request()).await.unwrap_err();
    assert!(matches!(error, ModelError::Server { status: 500, .. }) && error.to_string().len() < 2_000);
}

pub async fn no_error_tells_the_key(wire: &dyn Wire) {
    let words = format!("Incorrect API key provided: {KEY}");
    let answer = Answer::json(401, &wire.error("authentication_error", &words));
    let late = [wire.unfinished("x"), format!("data: {KEY}\n\n").into_bytes()].concat();
    let stub = stubbed(wire, [answer.clone(), answer, Answer::events(late)]).await;
    let mut errors = both(&*stub.model, &request()).await.to_vec();
    errors.push(events(&*stub.model, &request()).await.unwrap_err());
    for error in errors {
        assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
    }
}
