//! Candidates: planted facts, research by its state, memory, and that nothing changes from run to run.

use larder_agent::turn::gathered_documents::candidates;
use larder_retrieval::index::Limits;
use larder_retrieval::{Grant, MAX_SHOWN, MemoryKinds, RetrievalError, TURN_INDEX_LIMIT};
use larder_vault::lifecycle::ResearchState;
use larder_vault::{
    BlockId, DocumentValue, FactLine, FactRecord, FactRecords, Facts, PreferenceRecord, PreferenceRecords,
    Scope, Score, Ttl, VaultPath, write_json,
};

use super::{TURNS, Vault};
use larder_testkit::lived_in::{dense, subject};

#[tokio::test]
async fn planted_facts_are_found() {
    let vault = Vault::of(TURNS).await;
    let retrieval = vault.retrieval(Grant::Gatherer);
    let (mut in_index, mut first, mut in_passages, mut asked) = (0, 0, 0, 0);
    for number in (1..=TURNS).step_by(5) {
        let it = subject(number);
        let query = format!("what was the {} that you suggested for my {}?", it.property, it.thing);
        let found = retrieval.find(&query, TURNS + 1, None, None).await.unwrap();
        assert!(found.turn_index.len() <= TURN_INDEX_LIMIT);
        asked += 1;
        in_index += u32::from(found.turn_index.iter().any(|turn| turn.turn == number));
        first += u32::from(found.turn_index.first().is_some_and(|turn| turn.turn == number));
        in_passages += u32::from(found.passages.iter().any(|passage| passage.text.contains(&it.secret)));
        for passage in &found.passages {
            let text = vault.documents.files().read_text(&passage.document).unwrap().unwrap();
            assert_eq!(&text[passage.bytes.clone()], passage.text);
        }
    }
    println!("{asked} facts: {in_index} in the turn index, {first} first, {in_passages} in passages");
    assert!(in_index * 100 >= asked * 95, "{in_index} of {asked} in the turn index");
    assert!(first * 100 >= asked * 80, "{first} of {asked} first");
    assert!(in_passages * 100 >= asked * 90, "{in_passages} of {asked} in passages");
}

#[tokio::test]
async fn nothing_is_found_from_later_turns_or_of_other_users() {
    let vault = Vault::of(40).await;
    let bob = vault.all.user("bob").unwrap();
    dense().add_turn(&bob);
    // Queries about what turn 40 researched, and about what turn 35 did: no later turn has that topic, whose research
    // would take its place (R1-12.5).
    let (asked, before) = (format!("{} {}", dense().query(35), dense().query(40)), 36);
    let found = vault.retrieval(Grant::Gatherer).find(&asked, before, None, None).await.unwrap();
    let turns: Vec<u32> = found.turn_index.iter().map(|turn| turn.turn).collect();
    assert!(turns.contains(&35) && turns.iter().all(|turn| *turn < before), "{turns:?}");
    let research = found.cached_intel.iter().chain(&found.research_hits);
    let research: Vec<u32> = research.map(|research| research.turn).collect();
    assert!(research.contains(&35) && research.iter().all(|turn| *turn < before), "{research:?}");
    // Without the scope they would be found.
    let later = vault.retrieval(Grant::Gatherer).find(&asked, 41, None, None).await.unwrap();
    assert!(later.turn_index.iter().any(|turn| turn.turn == 40));
    let json = serde_json::to_string(&found).unwrap();
    assert!(!json.contains("users/bob") && !json.contains(&subject(40).secret), "{json}");
}

#[tokio::test]
async fn a_query_that_names_nothing_gets_the_newest_turns() {
    let vault = Vault::of(60).await;
    let found =
        vault.retrieval(Grant::Gatherer).find("and those?", 61, Some("session-2"), None).await.unwrap();
    assert_eq!(found.turn_index.len(), TURN_INDEX_LIMIT);
    assert_eq!(found.turn_index[0].turn, 60);
    let recent = vault.retrieval(Grant::QueryAnalyzer).recent(3, 61, None).await.unwrap();
    assert_eq!(recent.iter().map(|turn| turn.number).collect::<Vec<_>>(), [60, 59, 58], "R1-14.1");
}

#[tokio::test]
async fn a_conversation_goes_on_from_its_own_turns_whatever_others_did_since() {
    let vault = Vault::of(60).await;
    let catalog = vault.documents.catalog();
    let newest = catalog.turn(60).unwrap().unwrap().session;
    let turns = (1..=30).rev().map(|number| catalog.turn(number).unwrap().unwrap());
    let last = turns.into_iter().find(|turn| turn.session != newest).unwrap();
    let session = last.session.as_deref().unwrap();
    let last = catalog.recent_turns(1, Some(61), Some(session)).unwrap()[0].number;
    assert!(last < 58, "the newest three turns are of others");
    let recent = vault.retrieval(Grant::QueryAnalyzer).recent(3, 61, Some(session)).await.unwrap();
    let recent: Vec<u32> = recent.iter().map(|turn| turn.number).collect();
    assert_eq!(recent[0], last);
    assert_eq!(recent[recent.len() - 3..], [60, 59, 58]);
    // The words of the query are those of other turns.
    for query in ["who should I call, and when?", &dense().query(20)] {
        let found = vault.retrieval(Grant::Gatherer).find(query, 61, Some(session), None).await.unwrap();
        let first: Vec<u32> = found.turn_index.iter().take(4).map(|turn| turn.turn).collect();
        assert!(first.contains(&last), "{query}: {first:?}");
    }
}

#[tokio::test]
async fn research_is_offered_by_its_state() {
    let mut vault = Vault::of(100).await;
    let about = subject(95);
    let query = format!("find me a {} for the {}", about.property, about.thing);
    let found = vault.retrieval(Grant::Gatherer).find(&query, 101, None, None).await.unwrap();
    let cached = found.cached_intel.first().expect("research of the last hour is cached");
    assert_eq!((cached.turn, cached.state), (95, ResearchState::Active));
    assert!(cached.digest.contains(&about.secret), "listings stand in it: {}", cached.digest);
    assert!(found.cached_intel.iter().all(|research| research.state == ResearchState::Active));
    vault.now = dense().moment(95).plus_seconds(7 * 3_600);
    let found = vault.retrieval(Grant::Gatherer).find(&query, 101, None, None).await.unwrap();
    assert!(found.cached_intel.is_empty(), "all of it is older than six hours (R1-4.8)");
    let stale = found.research_hits.first().expect("stale research is offered");
    assert_eq!((stale.turn, stale.state), (95, ResearchState::Stale));
    assert!(!stale.digest.contains(&about.secret) && stale.digest.contains("lasts for years"));
    let documents = candidates(&found, vault.documents.place());
    let text = documents.iter().find(|document| document.input == "research_hits").unwrap();
    assert!(text.text.contains("state: stale"), "{}", text.text);
    vault.now = dense().moment(95).plus_seconds(60 * 86_400);
    let found = vault.retrieval(Grant::Gatherer).find(&query, 101, None, None).await.unwrap();
    assert!(found.research_hits.is_empty());
    let expired = found.considered.iter().find(|entry| entry.kind == "research").unwrap();
    assert!(!expired.used && expired.why.starts_with("expired"), "{expired:?}");
}

#[tokio::test]
async fn at_most_five_preferences_and_facts_are_shown_by_relevance_then_recency() {
    let vault = Vault::of(3).await;
    let place = vault.documents.place().clone();
    let preference = |number: u32, id: &str, value: &str| PreferenceRecord {
        id: id.to_owned(),
        value: value.to_owned(),
        source: Some(place.turn(number).context()),
        updated_at: dense().moment(number),
    };
    let mut preferences: Vec<_> =
        (10..20).map(|number| preference(number, &format!("liking_{number}"), "nothing special")).collect();
    preferences.push(preference(1, "favorite_hamster", "Syrian"));
    let records = write_json(&PreferenceRecords { preferences });
    vault.documents.files().write(&place.memory("preferences"), records.as_bytes(), None).unwrap();
    let fact = |number: u32, fact: &str, ttl| FactRecord {
        id: BlockId::new(&format!("fact-{number:03}")).unwrap(),
        category: "People".to_owned(),
        fact: fact.to_owned(),
        source: None,
        scope: Scope::User,
        confidence: Score::new(0.9).unwrap(),
        uses: 0,
        ttl,
        created_at: dense().moment(number),
        updated_at: dense().moment(number),
    };
    let mut facts: Vec<_> = (10..20).map(|number| fact(number, "the sky is blue", Ttl::Evergreen)).collect();
    facts.push(fact(2, "Ann keeps hamsters", Ttl::Evergreen));
    facts.push(fact(3, "hamsters cost $20", Ttl::Seconds(1)));
    let records = write_json(&FactRecords { facts });
    vault.documents.files().write(&place.memory("facts"), records.as_bytes(), None).unwrap();
    let found = vault.retrieval(Grant::Gatherer).find("some hamsters please", 4, None, None).await.unwrap();
    let names: Vec<&str> = found.preferences.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["favorite_hamster", "liking_19", "liking_18", "liking_17", "liking_16"]);
    assert_eq!(found.preferences[0].source_turn, Some(1));
    assert_eq!((found.facts.len(), found.facts[0].fact.as_str()), (MAX_SHOWN, "Ann keeps hamsters"));
    assert_eq!(found.facts[1].id.as_deref(), Some("fact-019"));
    let unused =
        |kind: &str| found.considered.iter().filter(|entry| entry.kind == kind && !entry.used).count();
    assert_eq!((unused("preference"), unused("fact")), (6, 7), "what is not shown is recorded");
}

#[tokio::test]
async fn the_same_vault_and_clock_give_the_same_bytes() {
    let (one, two) = (Vault::of(TURNS).await, Vault::of(TURNS).await);
    for number in [7, 95, 150, 299] {
        let mut seen = Vec::new();
        for vault in [&one, &two, &one] {
            let retrieval = vault.retrieval(Grant::Gatherer);
            let found =
                retrieval.find(&dense().query(number), TURNS + 1, Some("session-3"), None).await.unwrap();
            let texts: Vec<String> = candidates(&found, vault.documents.place())
                .iter()
                .map(|document| format!("{}{}", document.name, document.text))
                .collect();
            seen.push((serde_json::to_vec(&found).unwrap(), texts));
        }
        assert_eq!(seen[0], seen[1]);
        assert_eq!(seen[0], seen[2]);
    }
}

#[tokio::test]
async fn a_caller_gets_what_it_is_granted() {
    let vault = Vault::of(10).await;
    let analyzer = vault.retrieval(Grant::QueryAnalyzer);
    let refused = |error: &RetrievalError| matches!(error, RetrievalError::NotGranted { .. });
    assert!(analyzer.find("x", 11, None, None).await.is_err_and(|error| refused(&error)));
    assert!(analyzer.follow(&[], 100).await.is_err_and(|error| refused(&error)));
    let synthesis = vault.retrieval(Grant::Synthesis);
    assert!(synthesis.find("x", 11, None, None).await.is_err_and(|error| refused(&error)));
    assert!(synthesis.recent(3, 11, None).await.is_err_and(|error| refused(&error)));
    assert!(synthesis.capture(None, "x").await.is_err_and(|error| refused(&error)));
    let tools = vault.retrieval(Grant::Tools);
    assert!(tools.find("x", 11, None, None).await.is_err_and(|error| refused(&error)));
    assert!(tools.follow(&[], 100).await.is_err_and(|error| refused(&error)));
    assert!(tools.recent(3, 11, None).await.is_err_and(|error| refused(&error)));
    assert!(tools.search_documents("laptop", &[], 3).is_ok_and(|found| !found.considered.is_empty()));
    for other in [Grant::QueryAnalyzer, Grant::Gatherer, Grant::Synthesis] {
        let other = vault.retrieval(other);
        assert!(other.search_documents("x", &[], 3).is_err_and(|error| refused(&error)));
        assert!(other.open("facts.md", &|_| None).is_err_and(|error| refused(&error)));
        assert!(other.recall(None, MemoryKinds::All, 3).await.is_err_and(|error| refused(&error)));
    }
}

#[tokio::test]
async fn everything_that_was_considered_is_recorded() {
    let vault = Vault::of(60).await;
    let found = vault.retrieval(Grant::Gatherer).find(&dense().query(30), 61, None, None).await.unwrap();
    let used = |kind: &str| found.considered.iter().filter(|entry| entry.kind == kind && entry.used).count();
    assert_eq!(used("turn"), found.turn_index.len());
    assert_eq!(used("passage"), found.passages.len());
    assert_eq!(used("research"), found.cached_intel.len() + found.research_hits.len());
    assert!(found.considered.iter().all(|entry| !entry.why.is_empty() && (entry.used == (entry.tokens > 0))));
    let inputs: Vec<String> =
        candidates(&found, vault.documents.place()).into_iter().map(|document| document.input).collect();
    for input in ["turn_index", "passages"] {
        assert!(inputs.iter().any(|name| name == input), "{inputs:?}");
    }
}

#[tokio::test]
async fn strategies_and_lessons_are_ways_to_proceed_and_no_facts() {
    let vault = Vault::of(3).await;
    let at = vault.documents.place().memory("facts");
    let fact = |number: usize, category: &str, fact: &str| FactRecord {
        id: BlockId::numbered("fact", number),
        category: category.to_owned(),
        fact: fact.to_owned(),
        source: None,
        scope: Scope::User,
        confidence: Score::new(0.9).unwrap(),
        uses: 0,
        ttl: Ttl::Evergreen,
        created_at: dense().moment(1),
        updated_at: dense().moment(1),
    };
    let ways = ["strategy", "Strategies", "lesson", "lessons", "strategy_patterns"];
    let mut facts: Vec<FactRecord> = ways
        .iter()
        .enumerate()
        .map(|(at, category)| fact(at + 1, category, &format!("way {at}: for hamsters ask a breeder first")))
        .collect();
    facts.push(fact(9, "People", "Ann keeps hamsters"));
    let records = write_json(&FactRecords { facts });
    vault.documents.files().write(&at, records.as_bytes(), None).unwrap();
    let found = vault.retrieval(Grant::Gatherer).find("some hamsters please", 4, None, None).await.unwrap();
    assert_eq!(found.facts.iter().map(|line| line.fact.as_str()).collect::<Vec<_>>(), ["Ann keeps hamsters"]);
    for (at, category) in ways.iter().enumerate() {
        let way = format!("way {at}:");
        assert!(found.strategy_patterns.iter().any(|pattern| pattern.contains(&way)), "{category}");
    }
    let documents = candidates(&found, vault.documents.place());
    let text_of =
        |input: &str| documents.iter().find(|document| document.input == input).unwrap().text.to_string();
    assert!(text_of("strategy_patterns").contains("way 0:") && !text_of("preferences").contains("way 0:"));
}

#[tokio::test]
async fn what_is_new_counts_in_its_conversation_and_elsewhere_where_it_is_asked_for() {
    let vault = Vault::of(3).await;
    let place = vault.documents.place().clone();
    let fact = |number: usize, fact: &str, scope: Scope| FactRecord {
        id: BlockId::numbered("fact", number),
        category: "People".to_owned(),
        fact: fact.to_owned(),
        source: Some(place.turn(2).context()),
        scope,
        confidence: Score::new(0.9).unwrap(),
        uses: 0,
        ttl: Ttl::Evergreen,
        created_at: dense().moment(1),
        updated_at: dense().moment(1),
    };
    let facts = vec![fact(1, "Ann keeps hamsters", Scope::New), fact(2, "Bert rents a flat", Scope::User)];
    let records = write_json(&FactRecords { facts });
    vault.documents.files().write(&place.memory("facts"), records.as_bytes(), None).unwrap();
    let said = async |query: &str, session: Option<&str>| {
        let found = vault.retrieval(Grant::Gatherer).find(query, 4, session, None).await.unwrap();
        found.facts.iter().map(|line| line.fact.clone()).collect::<Vec<_>>()
    };
    let session = vault.documents.catalog().turn(2).unwrap().unwrap().session;
    assert_eq!(said("something else", session.as_deref()).await.len(), 2, "in its own conversation");
    assert_eq!(said("something else", Some("another")).await, ["Bert rents a flat"]);
    assert_eq!(said("does Ann keep hamsters?", Some("another")).await[0], "Ann keeps hamsters");
}

#[tokio::test]
async fn deleted_lines_are_forgotten() {
    let vault = Vault::of(3).await;
    let place = vault.documents.place().clone();
    let fact = |number: usize, fact: &str| FactRecord {
        id: BlockId::numbered("fact", number),
        category: "People".to_owned(),
        fact: fact.to_owned(),
        source: None,
        scope: Scope::User,
        confidence: Score::new(0.9).unwrap(),
        uses: 0,
        ttl: Ttl::Evergreen,
        created_at: dense().moment(1),
        updated_at: dense().moment(1),
    };
    let facts = vec![fact(1, "Ann keeps hamsters"), fact(2, "Ann is ill")];
    let shown = Facts(vec![FactLine::from(&facts[0])]).write_body(&place.facts());
    let records = write_json(&FactRecords { facts });
    vault.documents.files().write(&place.memory("facts"), records.as_bytes(), None).unwrap();
    vault.documents.files().write(&place.facts(), shown.as_bytes(), None).unwrap();
    let found = vault.retrieval(Grant::Gatherer).find("what of Ann?", 4, None, None).await.unwrap();
    let said: Vec<&str> = found.facts.iter().map(|line| line.fact.as_str()).collect();
    assert_eq!(said, ["Ann keeps hamsters"]);
}

#[tokio::test]
async fn passages_follow_ids_into_documents_without_words_of_the_query() {
    let vault = Vault::of(0).await;
    for (name, text) in [
        ("pets", "### pet-1 (owner: pers-1)\nname: Rex\n\n### pet-2 (owner: pers-2)\nname: Tom\n"),
        ("people", "### Ann Lee (ID: pers-1)\nborn: 1980\n\n### Bob Ray (ID: pers-2)\nborn: 1990\n"),
    ] {
        let path = VaultPath::new(&format!("users/henry/notes/{name}.md")).unwrap();
        vault.documents.files().write(&path, text.as_bytes(), None).unwrap();
    }
    let retrieval = vault.retrieval(Grant::Gatherer);
    let find = async |retrieval: larder_retrieval::Retrieval<'_>| {
        retrieval.find("Who is the owner of Rex?", 1, None, None).await.unwrap()
    };
    let found = find(retrieval).await;
    let passages: Vec<&str> = found.passages.iter().map(|passage| passage.text.as_str()).collect();
    assert!(
        passages[0].starts_with("### pet-1") && passages.contains(&"### Ann Lee (ID: pers-1)\nborn: 1980")
    );
    let owner = found.considered.iter().find(|entry| entry.document.ends_with("people.md")).unwrap();
    assert_eq!(owner.why, "users/henry/notes/pets.md refers to it");
    let unlinked = Limits { links: None, ..Limits::default() };
    let found = find(retrieval.with_passage_limits(unlinked)).await;
    assert!(found.passages.iter().all(|passage| !passage.text.contains("Ann Lee")));
}

#[test]
fn what_a_person_does_not_see_is_shown_to_no_model() {
    let hidden = "pay\u{200b}ments \u{202e}are\u{e0041} due\n\u{7}soon";
    assert_eq!(larder_retrieval::render::line(hidden), "payments are due soon");
}
