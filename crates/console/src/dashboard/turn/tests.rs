//! A turn's page shows every section, attempt and compaction, leads every claim to its bytes, and shows nothing of
//! another user.

use axum::Router;
use axum::http::StatusCode;
use larder_agent::turn::TurnEvent;
use larder_text::pointer::Pointer;
use larder_vault::Mode;
use std::sync::Arc;

use larder_testkit::gateway::{TestApp as Fake, ask, get, read};
use larder_testkit::vault::{self, path};

const WORDS: &str = "Lenovo LOQ 15 now $697";

async fn started() -> (Arc<Fake>, Router) {
    let fake = Arc::new(Fake::new());
    vault::turn(&fake, "a", WORDS).await;
    let router = crate::dashboard::router(Arc::clone(&fake.app));
    (fake, router)
}

async fn page(fake: &Fake, router: &Router, path: &str) -> String {
    let (status, _, body) = read(ask(fake, router, "a", get(path)).await).await;
    assert_eq!(status, StatusCode::OK, "{path}: {body}");
    body
}

#[tokio::test]
async fn a_turn_shows_its_sections_attempts_and_what_it_took() {
    let (fake, router) = started().await;
    let body = page(&fake, &router, "/turns/1").await;
    for shown in [
        "<h2 id=\"h-0-user-query\">0. User Query</h2>",
        "<h2 id=\"h-4-tool-execution\">",
        "<span class=\"chip\">attempt 2</span>",
        "Attempt 1, which was rewritten",
        "Compaction 1: what prompts see of everything above",
        "The first answer.",
        "The second answer.",
        "2,345",
        "1.2 s",
        "4 coordinator",
        "commerce.laptop",
        "<span class=\"broken\" title=\"leads to no document\">gone</span>",
        "href=\"/vault/users/a/turns/turn_000001/toolresults%2Emd#b-result-001\"",
        "href=\"/turns/1/claims/claim-001\"",
        "turn_number",
        "What the answer cites",
        "[2]</td>",
    ] {
        assert!(body.contains(shown), "the page lacks {shown}: {body}");
    }
    let folded = body.find("The first answer.").unwrap();
    assert!(body[..folded].contains("The second answer."), "the newest attempt stands first");
    let results = page(&fake, &router, "/vault/users/a/turns/turn_000001/toolresults.md").await;
    assert!(results.contains("id=\"b-result-001\""), "the link leads somewhere: {results}");
}

#[tokio::test]
async fn a_claim_leads_back_to_its_bytes() {
    let (fake, router) = started().await;
    let body = page(&fake, &router, "/turns/1/claims/claim-001").await;
    assert!(body.contains(&format!("<mark>{WORDS}</mark>")), "{body}");
    assert!(body.contains("HP Victus 15 for $649") && body.contains("doc.search("), "{body}");
    let (start, end) = (vault::BEFORE.len(), vault::BEFORE.len() + WORDS.len());
    assert!(body.contains(&format!("Bytes {start} to {end} of ")), "{body}");
    let content = format!("{}{WORDS}\nEnd", vault::BEFORE);
    let id = fake.user("a").pointers().insert(content.as_bytes(), "tool_result", "x").unwrap().pointer_id.id;
    let pointer = Pointer::bytes(id, start..end).to_string().replace('#', "%23");
    assert!(body.contains(&format!("href=\"/pointers/{pointer}\"")), "{body}");
    let exact = page(&fake, &router, &format!("/pointers/{pointer}")).await;
    assert!(exact.contains(WORDS) && !exact.contains("HP Victus"), "exactly these bytes: {exact}");
    for missing in ["/turns/1/claims/claim-002", "/turns/2/claims/claim-001", "/turns/1/claims/%22"] {
        assert_eq!(ask(&fake, &router, "a", get(missing)).await.status(), StatusCode::NOT_FOUND, "{missing}");
    }
}

#[tokio::test]
async fn documents_are_listed_searched_and_shown_raw() {
    let (fake, router) = started().await;
    let body = page(&fake, &router, "/documents").await;
    assert!(body.contains("href=\"/turns/1\"") && body.contains(WORDS));
    let body = page(&fake, &router, "/documents?q=lenovo").await;
    assert!(body.contains("Found") && body.contains("href=\"/turns/1\""), "{body}");
    assert!(page(&fake, &router, "/documents?q=zebra").await.contains("No document holds these words"));
    let raw = page(&fake, &router, "/vault/users/a/turns/turn_000001/context.md?view=raw").await;
    assert!(raw.contains("## 5. Synthesis (Attempt 2)"), "{raw}");
    let json = page(&fake, &router, "/vault/users/a/turns/turn_000001/metrics.json").await;
    assert!(json.contains("&quot;total_tokens&quot;: 2412"), "{json}");
    let tree = page(&fake, &router, "/vault").await;
    assert!(tree.contains("No research") && tree.contains("No pages"), "{tree}");
}

#[tokio::test]
async fn no_document_of_another_user_is_shown_and_none_that_is_not_there() {
    let (fake, router) = started().await;
    vault::turn(&fake, "b", "the secret of b").await;
    for (user, place) in [
        ("a", "/vault/users/b/turns/turn_000001/context.md"),
        ("a", "/vault/users/a/../b/turns/turn_000001/context.md"),
        ("a", "/vault/users/a/%2e%2e/b/turns/turn_000001/context.md"),
        ("a", "/vault/users/a%2f..%2fb/turns/turn_000001/context.md"),
        ("a", "/vault/users/a/turns/turn_000001/none.md"),
        ("a", "/vault/users/a/turns"),
        ("a", "/vault/etc/passwd"),
        ("c", "/turns/1"),
        ("c", "/turns/1/claims/claim-001"),
        ("a", "/turns/4294967295"),
    ] {
        let (status, _, body) = read(ask(&fake, &router, user, get(place)).await).await;
        assert!(status.is_client_error(), "{place}: {status}");
        assert!(!body.contains("secret"), "{place}");
    }
    for place in ["/documents", "/documents?q=secret", "/vault", "/turns/1"] {
        assert!(!page(&fake, &router, place).await.contains("secret of b"), "{place}");
    }
}

#[tokio::test]
async fn a_turn_under_way_is_shown_as_it_goes_on() {
    let fake = Arc::new(Fake::new());
    let router = crate::dashboard::router(Arc::clone(&fake.app));
    fake.vault("a").drafts().begin(Mode::Chat, None, "<b>What</b> is it?").unwrap();
    let stopped = page(&fake, &router, "/turns/1").await;
    assert!(stopped.contains("This turn was stopped") && stopped.contains("&lt;b&gt;What"), "{stopped}");
    let hold = fake.vault("a").leases().acquire(1).unwrap();
    let elsewhere = page(&fake, &router, "/turns/1").await;
    assert!(elsewhere.contains("another process") && !elsewhere.contains("This turn was stopped"));
    drop(hold);
    let gone = ask(&fake, &router, "a", get("/live/turns/1")).await;
    assert_eq!(gone.status(), StatusCode::NO_CONTENT, "a browser is told not to come again");

    let under = fake.running_turns.begin("a", 1).unwrap();
    under.publish(&TurnEvent::Phase { number: 4, name: "coordinator".to_owned(), attempt: 2 });
    under.publish(&TurnEvent::Tool { call: "<script>alert(1)</script>".to_owned() });
    let running = page(&fake, &router, "/turns/1").await;
    assert!(running.contains("data-live=\"/live/turns/1\"") && running.contains("id=\"live-state\""));
    let listed = page(&fake, &router, "/documents").await;
    assert!(listed.contains("running"), "{listed}");
    assert_eq!(ask(&fake, &router, "b", get("/live/turns/1")).await.status(), StatusCode::NO_CONTENT);
    let live = ask(&fake, &router, "a", get("/live/turns/1")).await;
    drop(under);
    let (_, _, events) = read(live).await;
    assert!(events.starts_with("event: pieces\n") && events.contains("Phase 4, coordinator"), "{events}");
    assert!(events.contains("&lt;script&gt;") && !events.contains("<script>"), "{events}");
    assert!(events.contains("Show the whole turn"), "the last piece says that it has ended: {events}");
}

#[tokio::test]
async fn pictures_are_shown_and_binary_files_are_not() {
    let (fake, router) = started().await;
    let vault = fake.vault("a");
    let mut draft = vault.drafts().begin(Mode::Chat, None, "x").unwrap();
    draft.files.insert("webpage_cache/p/screenshot.png".into(), b"\x89PNG\r\n\x1a\nxx".to_vec());
    draft.files.insert("blob.md".into(), vec![0xff, 0xfe]);
    vault.drafts().checkpoint(&draft).unwrap();
    let folder = draft.place.folder();
    let shown = page(&fake, &router, &format!("/vault/{folder}/webpage_cache/p/screenshot.png")).await;
    assert!(shown.contains("<img class=\"screenshot\" src=\"/api/v1/documents/users/a/"), "{shown}");
    let shown = page(&fake, &router, &format!("/vault/{folder}/blob.md")).await;
    assert!(shown.contains("This file is not text"), "{shown}");
    assert_eq!(path(&format!("{folder}/blob.md")).name(), "blob.md");
}
