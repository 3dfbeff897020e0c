//! What one client may take from the others.

use larder_proxy::record::Outcome;
use larder_testkit::stub::{Answer, StubServer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{Gateway, said};

async fn limited(settings: &str) -> Gateway {
    Gateway::with(StubServer::start([said("hi"), said("hi")]).await, &format!("[gateway]\n{settings}\n"))
        .await
}

async fn refusal(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    (status, response.json::<Value>().await.unwrap()["error"]["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn bodies_are_refused_for_what_is_wrong_with_them_in_words_that_help() {
    let gateway = limited("max_body_bytes = 2000\nmax_messages = 3").await;
    let say = |content: &str| json!({"role": "user", "content": content});
    let chat = |messages: Vec<Value>| json!({"model": "mini", "messages": messages}).to_string();
    for (body, status, words) in [
        (chat(vec![say(&"x".repeat(2_000))]), 413, "max_body_bytes"),
        (chat(vec![say("x"); 4]), 400, "max_messages"),
        ("{\"model\": \"mini\"".to_owned(), 400, "not JSON"),
        ("[".repeat(1_000), 400, "not JSON"),
        (json!({"messages": [say("hi")]}).to_string(), 400, "model"),
        (json!({"model": "mini"}).to_string(), 400, "messages"),
        (json!({"model": "mini", "messages": "hi"}).to_string(), 400, "messages"),
    ] {
        let start = body.chars().take(60).collect::<String>();
        let (got, message) = refusal(gateway.post("/v1/chat/completions", body).send().await.unwrap()).await;
        assert_eq!(got, status, "{start}: {message}");
        assert!(message.contains(words), "{start}: {message}");
    }
    let bytes = gateway.post("/v1/chat/completions", "").body(vec![b'{', 0xff]).send().await.unwrap();
    assert!(refusal(bytes).await.1.contains("not UTF-8: byte 1"));
    let zipped = gateway.post("/v1/chat/completions", "{}").header("content-encoding", "zstd");
    assert_eq!(zipped.send().await.unwrap().status(), 415);
    let lying = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{}",
        "400\r\n".to_owned() + &"x".repeat(1024) + "\r\n400\r\n" + &"x".repeat(1024) + "\r\n0\r\n\r\n"
    );
    assert!(raw(&gateway, &lying).await.starts_with("HTTP/1.1 413"));
    assert!(gateway.seen().is_empty());
}

#[tokio::test]
async fn more_requests_than_there_are_places_are_asked_to_come_again() {
    let (answer, pusher) = Answer::events("").pushed();
    let provider = StubServer::start([answer, said("hi")]).await;
    let gateway = Gateway::with(provider, "[gateway]\nmax_requests = 1\n").await;
    let body = json!({"model": "mini", "messages": [{"role": "user", "content": "hi"}], "stream": true});
    pusher.push("data: {\"choices\":[]}\n\n");
    let first = gateway.chat(&body).await;
    let second = gateway.chat(&body).await;
    assert_eq!((second.status().as_u16(), second.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    drop(pusher);
    first.text().await.unwrap();
    assert_eq!(gateway.chat(&body).await.status(), 200);
}

#[tokio::test]
async fn clients_that_send_their_requests_slowly_are_dropped() {
    let gateway = limited("header_timeout_s = 1\nbody_timeout_s = 1").await;
    let answer = raw(&gateway, "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    let answer =
        raw(&gateway, "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{")
            .await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn a_client_that_stops_reading_loses_its_place() {
    let (answer, pusher) = Answer::events("").pushed();
    let provider = StubServer::start([answer, said("hi")]).await;
    let gateway = Gateway::with(provider, "[gateway]\nmax_requests = 1\nwrite_timeout_s = 1\n").await;
    // Far more than all buffers on the way hold.
    let piece = format!(": {}\n\n", "x".repeat(1_000)).repeat(1_000);
    (0..48).for_each(|_| pusher.push(piece.clone()));
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 << 10).unwrap();
    let mut client = socket.connect(gateway.address()).await.unwrap();
    let body = json!({"model": "mini", "messages": [{"role": "user", "content": "hi"}], "stream": true});
    let text = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    client.write_all(format!("{head}{text}").as_bytes()).await.unwrap();
    let mut begun = [0; 12];
    client.read_exact(&mut begun).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    gateway.provider.client_left().await;
    assert_eq!(gateway.chat(&body).await.status(), 200, "its place is free");
    let (records, cut) = gateway.stop().await;
    assert_eq!((records[0].summary.outcome, records[1].summary.outcome), (Outcome::ClientGone, Outcome::Ok));
    assert_eq!(cut, 0);
    drop((client, pusher));
}

/// Sends bytes and gives back all that comes before the gateway closes.
async fn raw(gateway: &Gateway, bytes: &str) -> String {
    let mut stream = TcpStream::connect(gateway.address()).await.unwrap();
    let _ = stream.write_all(bytes.as_bytes()).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8(response).unwrap()
}
