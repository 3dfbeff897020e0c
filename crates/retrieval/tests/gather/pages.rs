//! Captured pages: which one is meant, what it answers, and when the page itself has to be visited.

use larder_agent::turn::gathered_documents::candidates;
use larder_retrieval::{Grant, PageLevel};
use larder_vault::ContentReference;

use super::Vault;
use larder_testkit::lived_in::{dense, subject};

fn reference(turn: u32) -> ContentReference {
    ContentReference {
        title: format!("Forum: {}", subject(turn).thing),
        content_type: "thread".to_owned(),
        site: "forum.example.com".to_owned(),
        source_turn: Some(turn),
        source_url: Some(dense().url(turn)),
        ..ContentReference::default()
    }
}

#[tokio::test]
async fn a_referred_page_answers_at_the_level_that_the_query_asks_for() {
    let vault = Vault::of(40).await;
    let retrieval = vault.retrieval(Grant::Gatherer);
    for (query, level, says) in [
        (
            "how many pages is the thread?",
            PageLevel::Manifest,
            "The thread has 3 pages (from cached visit record)",
        ),
        ("how many comments does it have", PageLevel::Manifest, "42 comments"),
        ("what's the top comment", PageLevel::Data, subject(30).secret.as_str()),
        ("what did the thread say about cooling?", PageLevel::Content, "runs cold"),
        ("what's the current price", PageLevel::Navigate, "may have changed"),
        ("is it still in stock", PageLevel::Navigate, "may have changed"),
        ("check for new comments", PageLevel::Navigate, "may have changed"),
    ] {
        let found = retrieval.find(query, 41, None, Some(&reference(30))).await.unwrap();
        let page = found.page.as_ref().expect("the page was captured");
        assert_eq!(page.level, level, "{query}: {}", page.why);
        assert!(page.text.contains(says), "{query}: {}", page.text);
        assert_eq!(
            (page.source_url.as_str(), page.captured_at),
            (dense().url(30).as_str(), dense().moment(30))
        );
        assert!(vault.counter.count(&page.text) <= 2_000, "R1-8.11");
        assert_eq!(found.turn_index.iter().map(|turn| turn.turn).collect::<Vec<_>>(), [30], "R1-5.8");
        let documents = candidates(&found, vault.documents.place());
        let input = documents.iter().find(|document| document.input == "page").unwrap();
        assert!(
            input.text.contains(&dense().url(30)) && !input.text.contains("\n## 5. Synthesis"),
            "{}",
            input.text
        );
    }
}

#[tokio::test]
async fn a_capture_is_found_by_turn_and_by_words() {
    let vault = Vault::of(60).await;
    let analyzer = vault.retrieval(Grant::QueryAnalyzer);
    let of_turn = analyzer.capture(Some(30), "the thread").await.unwrap().expect("turn 30 captured a page");
    assert_eq!((of_turn.url.as_str(), of_turn.turn), (dense().url(30).as_str(), 30));
    let expected = ContentReference { webpage_cache_path: Some(of_turn.path.clone()), ..Default::default() };
    assert_eq!(expected.capture().map(|(turn, _)| turn), Some(30), "{}: R1-5.3", of_turn.path);
    let words = format!("the forum thread about the {} of the {}", subject(50).property, subject(50).thing);
    assert_eq!(analyzer.capture(None, &words).await.unwrap().map(|capture| capture.turn), Some(50));
    assert_eq!(analyzer.capture(Some(31), "the thread").await.unwrap(), None);
    assert_eq!(analyzer.capture(None, "zebra crossing").await.unwrap(), None);
}

#[tokio::test]
async fn a_page_that_was_not_captured_is_visited_if_its_address_is_known() {
    let vault = Vault::of(12).await;
    let retrieval = vault.retrieval(Grant::Gatherer);
    let known =
        ContentReference { source_url: Some("https://elsewhere.example/x".to_owned()), ..reference(11) };
    let found = retrieval.find("how many pages is the thread?", 13, None, Some(&known)).await.unwrap();
    let page = found.page.expect("its address is known");
    assert_eq!((page.level, page.source_url.as_str()), (PageLevel::Navigate, "https://elsewhere.example/x"));
    let unknown = ContentReference { source_url: None, source_turn: None, ..reference(11) };
    let found = retrieval.find("how many pages is the thread?", 13, None, Some(&unknown)).await.unwrap();
    assert_eq!(found.page, None);
    assert!(found.considered.iter().any(|entry| entry.kind == "capture" && !entry.used));
    assert!(!found.turn_index.is_empty(), "a reference that leads nowhere does not hide the turns");
    let hostile = ContentReference {
        webpage_cache_path: Some("turn_000010/webpage_cache/../../../../bob".to_owned()),
        source_url: None,
        source_turn: None,
        ..reference(11)
    };
    assert_eq!(retrieval.find("how many pages?", 13, None, Some(&hostile)).await.unwrap().page, None);
}

#[tokio::test]
async fn a_page_is_found_by_the_address_that_was_asked_for() {
    let vault = Vault::of(40).await;
    let short = "https://short.example/30";
    let hint = format!("the thread at {short}");
    let analyzer = vault.retrieval(Grant::QueryAnalyzer);
    for turn in [Some(30), None] {
        let found = analyzer.capture(turn, &hint).await.unwrap().map(|capture| (capture.turn, capture.url));
        assert_eq!(found, Some((30, dense().url(30))), "{turn:?}");
    }
    let known = ContentReference { source_url: Some(short.to_owned()), ..reference(30) };
    let retrieval = vault.retrieval(Grant::Gatherer);
    let found = retrieval.find("how many pages is the thread?", 41, None, Some(&known)).await.unwrap();
    let page = found.page.expect("the page was captured");
    assert_eq!((page.level, page.source_url), (PageLevel::Manifest, dense().url(30)));
}

#[tokio::test]
async fn an_address_identifies_exactly_one_page() {
    let vault = Vault::of(60).await;
    let analyzer = vault.retrieval(Grant::QueryAnalyzer);
    let other = "https://forum.example.com/never-visited/99";
    for turn in [None, Some(30)] {
        let found = analyzer.capture(turn, &format!("Forum thread {other}")).await.unwrap();
        assert_eq!(found, None, "{turn:?}");
    }
    let same = analyzer.capture(None, &format!("see {}, please", dense().url(30))).await.unwrap();
    assert_eq!(same.map(|capture| capture.turn), Some(30));
    let query = format!("how many pages does {other} have?");
    assert_eq!(vault.retrieval(Grant::Gatherer).find(&query, 61, None, None).await.unwrap().page, None);
}
