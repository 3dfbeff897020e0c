//! Following links: levels, budgets, sections, and every way in which a link can be wrong.

use larder_agent::turn::gathered_documents::linked;
use larder_retrieval::{Grant, LinkExpansion, LinkToFollow};
use larder_vault::VaultPath;

use super::{TURNS, Vault};
use larder_testkit::lived_in::{dense, subject};

fn link(path: &str, sections: &[&str]) -> LinkToFollow {
    LinkToFollow {
        path: path.to_owned(),
        sections_to_extract: sections.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn why<'f>(followed: &'f LinkExpansion, document: &str) -> &'f str {
    let entry = followed.considered.iter().find(|entry| entry.document.contains(document) && !entry.used);
    entry.map_or("", |entry| entry.why.as_str())
}

async fn note(vault: &Vault, name: &str, text: &str) -> VaultPath {
    let path = VaultPath::new(&format!("users/henry/notes/{name}")).unwrap();
    vault.documents.files().write(&path, text.as_bytes(), None).unwrap();
    path
}

#[tokio::test]
async fn links_are_followed_two_steps_and_only_what_is_asked_for_is_read() {
    let vault = Vault::of(100).await;
    let retrieval = vault.retrieval(Grant::Gatherer);
    let followed = retrieval.follow(&[link("turns/turn_000090/context.md", &["§2"])], 6_400).await.unwrap();
    let depths: Vec<(u8, u32)> = followed
        .documents
        .iter()
        .map(|document| {
            (document.depth, document.path.as_str().split('/').find_map(larder_vault::turn_number).unwrap())
        })
        .collect();
    assert_eq!(depths, [(1, 90), (2, 70)], "level 3 is not followed (R1-8.9)");
    assert!(
        !followed.documents[0].text.contains(&subject(90).secret),
        "only §2: {}",
        followed.documents[0].text
    );
    assert!(
        followed.documents[1].path.name() == "research.md"
            && followed.documents[1].text.contains(&subject(70).secret)
    );
    assert_eq!(followed.documents[1].claims.len(), 1, "claims stand with what is read");
    assert_eq!(followed.documents[0].claims.len(), 0, "and not with what is left out");
    let synthesis = vault.retrieval(Grant::Synthesis);
    let links = [link("turn_90/context.md", &["4. Tool Execution"]), link("turn_70/research.md", &[])];
    let followed = synthesis.follow(&links, 6_400).await.unwrap();
    assert_eq!(followed.documents.len(), 1, "one document and nothing that it links to (C90)");
    assert!(followed.documents[0].text.starts_with("## 4. Tool Execution"));
    assert!(linked(&followed)[0].text.starts_with("\\## 4. Tool Execution"), "escaped as data");
}

#[tokio::test]
async fn budgets_hold() {
    let vault = Vault::of(TURNS).await;
    note(&vault, "long.md", &"A line with some words in it that goes on.\n".repeat(2_000)).await;
    let mut links = vec![link("notes/long.md", &[])];
    links.extend((1..=60).map(|turn| link(&format!("turn_{turn}/context.md"), &[])));
    for limit in [0, 50, 500, 3_000, 6_400, 100_000] {
        let followed = vault.retrieval(Grant::Gatherer).follow(&links, limit).await.unwrap();
        let sum: usize = followed.documents.iter().map(|document| vault.counter.count(&document.text)).sum();
        assert_eq!(sum, followed.tokens);
        assert!(sum <= limit.min(6_400), "{sum} of {limit} (C23)");
        assert!(followed.documents.iter().all(|document| document.tokens <= 2_000), "R1-8.11");
        assert!(followed.considered.iter().any(|entry| entry.why.contains("used up")), "{limit}");
    }
}

#[tokio::test]
async fn of_a_long_document_what_bears_on_the_query_is_read() {
    let vault = Vault::of(1).await;
    let line = "The granary by the harbour was painted again in autumn.\n\n";
    let answer = "The slater wants 31,400 EUR for the new roof.";
    let text = format!("# Letter\n\n{}{answer}\n\n{}", line.repeat(2_000), line.repeat(1_000));
    note(&vault, "long.md", &text).await;
    for grant in [Grant::Gatherer, Grant::Synthesis] {
        let retrieval = vault.retrieval(grant).with_query("How much does the slater want for the roof?");
        for limit in [500, 6_400] {
            let followed = retrieval.follow(&[link("notes/long.md", &[])], limit).await.unwrap();
            let read = &followed.documents[0];
            assert!(read.text.contains(answer) && read.text.starts_with("# Letter"), "{}", read.text);
            assert!(read.text.ends_with("the rest is in users/henry/notes/long.md]"), "{}", read.text);
            assert!(vault.counter.count(&read.text) <= limit.min(2_000));
        }
        let other = vault.retrieval(grant).with_query("zebra?");
        let followed = other.follow(&[link("notes/long.md", &[])], 6_400).await.unwrap();
        assert!(followed.documents[0].text.contains("[cut here:"));
    }
    let longer = format!("{text}{}", line.repeat(10_000));
    note(&vault, "longer.md", &longer).await;
    let retrieval =
        vault.retrieval(Grant::Gatherer).with_query("How much does the slater want for the roof?");
    let links = [link("notes/long.md", &[]), link("notes/longer.md", &[])];
    let followed = retrieval.follow(&links, 6_400).await.unwrap();
    let says = |at: usize| followed.documents[at].text.contains("on the query in its first 512 KiB;");
    assert_eq!([says(0), says(1)], [false, true], "what of a document is searched is said");
}

#[tokio::test]
async fn what_a_link_may_not_do_is_recorded_with_the_reason() {
    let vault = Vault::of(5).await;
    let bob = vault.all.user("bob").unwrap();
    dense().add_turn(&bob);
    note(&vault, "a.md", "To [b](b.md), [[users/henry/notes/b]] and [self](a.md).\n").await;
    note(&vault, "b.md", "Back to [a](a.md), on to [c](c.md).\n").await;
    note(&vault, "c.md", "Never read: level 3.\n").await;
    let hostile = "[1](../../../../etc/passwd) [2](/etc/passwd) [3](../../bob/turns/turn_000001/context.md) [4](users/bob/facts.md) [5](https://evil.example/) [6](..%2f..%2fbob%2fturns%2fturn_000001%2fcontext.md) [7](gone.md) <http://x.example>\n";
    note(&vault, "hostile.md", hostile).await;
    let retrieval = vault.retrieval(Grant::Gatherer);
    let followed =
        retrieval.follow(&[link("notes/a.md", &[]), link("notes/hostile.md", &[])], 6_400).await.unwrap();
    let read: Vec<&str> = followed.documents.iter().map(|document| document.path.name()).collect();
    assert_eq!(read, ["a.md", "hostile.md", "b.md"], "{:#?}", followed.considered);
    assert!(why(&followed, "a.md").starts_with("a cycle"), "{:#?}", followed.considered);
    assert!(why(&followed, "gone.md").starts_with("there is no such document"));
    assert!(why(&followed, "https://evil").contains("outside the vault"));
    for out in ["etc/passwd", "bob/turns", "users/bob/facts.md", "..%2f"] {
        assert!(!why(&followed, out).is_empty(), "{out}: {:#?}", followed.considered);
    }
    assert!(
        !serde_json::to_string(&followed.documents)
            .unwrap()
            .contains("users/bob/turns/turn_000001/context.md\",")
    );
    let back =
        retrieval.follow(&[link("notes/b.md", &[]), link("../../bob/facts.md", &[])], 6_400).await.unwrap();
    assert!(back.considered.iter().any(|entry| entry.why.starts_with("a cycle")), "{:#?}", back.considered);
    let missing = retrieval.follow(&[link("turn_3/context.md", &["Nonsense"])], 6_400).await.unwrap();
    assert!(
        missing.considered[0].why.contains("without Nonsense; given whole"),
        "{:?}",
        missing.considered[0]
    );
}

#[tokio::test]
async fn a_flood_of_links_is_looked_at_up_to_a_limit() {
    let vault = Vault::of(1).await;
    let flood: String = (0..20_000).map(|at| format!("[x{at}](gone/{at}.md)\n")).collect();
    note(&vault, "flood.md", &flood).await;
    let followed =
        vault.retrieval(Grant::Gatherer).follow(&[link("notes/flood.md", &[])], 6_400).await.unwrap();
    assert!(followed.considered.len() < 200);
    assert!(
        followed.considered.iter().any(|entry| entry.why.contains("further links")),
        "{:?}",
        followed.considered.last()
    );
}
