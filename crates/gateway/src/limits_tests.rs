//! Tests of the room that bodies take, and of who asks for it.

use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use larder_engine::Engine;
use larder_engine::config::Config;
use larder_engine::project::Project;
use larder_models::connect::Models;
use larder_store::{Store, StoreOptions};
use larder_text::tokens::Counter;
use tower::ServiceExt as _;

use super::*;
use crate::app::{App, Loaded};

const SOON: Duration = Duration::from_secs(10);

fn in_pieces(pieces: &[&'static str]) -> Body {
    let pieces: Vec<_> =
        pieces.iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes()))).collect();
    Body::from_stream(futures::stream::iter(pieces))
}

#[test]
fn room_is_taken_by_kib_and_comes_back() {
    let admission = Admission::with_memory(1, 4 << 10);
    let (mut one, mut other) = (admission.body_memory(), admission.body_memory());
    assert!(one.grow(1) && one.grow(1 << 10), "what it has is enough");
    assert!(other.grow(3 << 10));
    assert!(!one.grow((1 << 10) + 1));
    drop(other);
    assert!(one.grow(usize::MAX), "more than there is at all needs all there is");
    assert!(!admission.body_memory().grow(1));
    one.shrink(3 << 10);
    assert!(admission.body_memory().grow(1 << 10) && !admission.body_memory().grow((1 << 10) + 1));
    one.shrink(usize::MAX);
    assert!(!admission.body_memory().grow((1 << 10) + 1), "nothing is given back that is needed");
    one.shrink(0);
    assert!(admission.body_memory().grow(4 << 10));
    drop(one);
    assert!(admission.body_memory().grow(1));
    let ordinary = Admission::new(1, 32 << 20);
    assert_eq!(ordinary.max_kib, 256 << 10);
    assert_eq!(Admission::new(1, 100 << 20).max_kib, 800 << 10, "eight of the largest bodies");
}

#[tokio::test]
async fn bodies_are_read_as_far_as_there_is_room_for_what_has_come() {
    let admission = Admission::with_memory(1, 2 << 10);
    let mut room = admission.body_memory();
    let whole = read_body(in_pieces(&["one ", "", "two ", "three"]), 13, SOON, &mut room).await;
    assert_eq!(whole.unwrap(), "one two three");
    let large =
        read_body(in_pieces(&["one ", "two ", "three"]), 12, SOON, &mut admission.body_memory()).await;
    assert_eq!(large, Err(BodyError::TooLarge { limit: 12 }));
    assert_eq!(read_body(Body::empty(), 0, SOON, &mut admission.body_memory()).await.unwrap(), "");
    let two_kib = || Body::from(vec![b'x'; 2 << 10]);
    assert_eq!(read_body(two_kib(), 4 << 10, SOON, &mut admission.body_memory()).await, Err(BodyError::Full));
    drop(room);
    assert!(read_body(two_kib(), 4 << 10, SOON, &mut admission.body_memory()).await.is_ok());
    let mut silent = admission.body_memory();
    let never = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let slow = read_body(never, 4 << 10, Duration::from_millis(1), &mut silent).await;
    assert!(matches!(slow, Err(BodyError::Slow { .. })));
    assert!(silent.held.is_none(), "who says that much will come takes no room for it");
}

/// A gateway as it is without any settings.
fn app(home: &tempfile::TempDir) -> Arc<App> {
    let store = Store::open(&home.path().join("home"), StoreOptions::default()).unwrap();
    let (folder, user) = (home.path().to_owned(), store.user("local").unwrap());
    let load = move || {
        let config = Config::load(Some(&folder), Some(&folder.join("home")), &|_: &str| None)
            .map_err(|error| error.to_string())?;
        let models = Models::new(config.models().clone(), &folder, &|_| None);
        let project = Project::builtin(&Counter::cl100k());
        let engine = Engine::new(project, models, user.clone(), config.policy(), Box::new(|_| None));
        Ok(Loaded { engine: engine.map_err(|error| error.to_string())?, config })
    };
    App::new(store, Box::new(load)).unwrap()
}

async fn status(app: &Arc<App>, path: &str) -> StatusCode {
    let mut request = Request::post(path)
        .header("host", "127.0.0.1:8080")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Body::from(r#"{"model": "no such model", "input": "hi", "messages": []}"#))
        .unwrap();
    let peer = std::net::SocketAddr::from(([127, 0, 0, 1], 4_000));
    request.extensions_mut().insert(ConnectInfo(peer));
    let ok = || axum::routing::post(|| async { "ok" });
    let private = axum::Router::new().route("/api/v1/turns", ok()).route("/policy", ok());
    let extra = crate::routes::Extra { private, ..Default::default() };
    crate::routes::router(app, extra).oneshot(request).await.unwrap().status()
}

#[tokio::test]
async fn every_request_with_a_body_needs_a_place_and_room_for_it() {
    let home = tempfile::tempdir().unwrap();
    let app = app(&home);
    let paths = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/mcp"];
    let busy = StatusCode::SERVICE_UNAVAILABLE;
    for path in paths {
        assert_ne!(status(&app, path).await, busy, "{path}");
    }
    let mut room = app.admission.body_memory();
    assert!(room.grow(usize::MAX));
    for path in paths.into_iter().chain(["/api/v1/turns", "/policy"]) {
        assert_eq!(status(&app, path).await, busy, "{path}: no room");
    }
    drop(room);
    let places: Vec<_> = std::iter::from_fn(|| app.admission.take()).collect();
    for path in paths {
        assert_eq!(status(&app, path).await, busy, "{path}: no place");
    }
    drop(places);
    for path in paths {
        assert_ne!(status(&app, path).await, busy, "{path}: all of it came back");
    }
}
