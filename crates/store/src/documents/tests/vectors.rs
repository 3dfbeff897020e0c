//! Vectors follow what turns say: through summaries, the archive, an index that is built anew, and an end.

use larder_text::hash::ContentHash;
use larder_vault::{DocumentTime, TurnMetadata, read_json, write_json};

use super::generate::turn;
use super::*;
use crate::documents::index::dump::dump;

/// A vector that follows from the text.
fn vector(text: &str) -> Vec<f32> {
    let hash = |at: u8| ContentHash::new(&[text.as_bytes(), &[at]].concat()).to_hex();
    let numbers = |hash: String| -> Vec<f32> { hash.bytes().map(|byte| f32::from(byte) - 70.0).collect() };
    (0..3).flat_map(|at| numbers(hash(at))).collect()
}

fn fill(user: &UserDocuments, model: &str) -> usize {
    let missing = user.vectors().missing(model, 1..=u32::MAX).unwrap();
    let made: Vec<_> = missing.iter().map(|gist| (gist.clone(), vector(&gist.text))).collect();
    user.vectors().insert(model, &made).unwrap();
    made.len()
}

fn near(user: &UserDocuments, model: &str, text: &str) -> Vec<u32> {
    let vector = TextVector { model: model.to_owned(), numbers: vector(text) };
    let found = user.vectors().near_turns(&vector, u32::MAX, 0.99, 50).unwrap();
    found.into_iter().map(|(number, _)| number).collect()
}

/// The text of a turn as vectors are made of it.
fn said(user: &UserDocuments, number: u32) -> String {
    let row = user.catalog().turn(number).unwrap().unwrap();
    let topic = row.topic.unwrap_or_default().replace('.', " ");
    format!("{}\n{}\n{topic}", row.query, row.summary.unwrap_or_default())
}

fn commit(home: &Home, user: &UserDocuments, turns: u64) {
    for number in 0..turns {
        home.set(START + number * 3_600_000);
        user.drafts().commit(&turn(user)).unwrap();
    }
}

fn summarize(user: &UserDocuments, number: u32, summary: &str) {
    let at = user.place().turn(number).metadata();
    let before = user.files().read_text(&at).unwrap().unwrap();
    let mut metadata = read_json::<TurnMetadata>(&before).value.unwrap();
    metadata.summary = Some(summary.to_owned());
    let seen = Some(ContentHash::new(before.as_bytes()));
    user.files().write(&at, write_json(&metadata).as_bytes(), seen).unwrap();
}

#[test]
fn a_turn_is_near_what_it_says_now() {
    let home = Home::new();
    {
        let user = home.open().user("u").unwrap();
        commit(&home, &user, 12);
        assert_eq!(near(&user, "m", &said(&user, 6)), [] as [u32; 0]);
        assert!(fill(&user, "m") > 12, "turns and research, equal texts once");
        assert_eq!(fill(&user, "m"), 0);
        assert_eq!(near(&user, "m", &said(&user, 6)), [6]);
        // Odd turns have no summary, so those of one topic say the same.
        assert_eq!(near(&user, "m", &said(&user, 1)), [11, 1]);
        assert_eq!(near(&user, "other", &said(&user, 6)), [] as [u32; 0]);
        let before = said(&user, 6);
        summarize(&user, 6, "Something else.");
        assert_eq!(near(&user, "m", &before), [] as [u32; 0]);
        assert_eq!(user.vectors().missing("m", 6..=6).unwrap()[0].text, said(&user, 6));
        assert_eq!(user.vectors().missing("m", 7..=12).unwrap(), []);
        assert_eq!(fill(&user, "m"), 1);
        assert_eq!(near(&user, "m", &said(&user, 6)), [6]);
        let vector = TextVector { model: "m".to_owned(), numbers: vector(&said(&user, 6)) };
        assert_eq!(user.vectors().near_turns(&vector, 6, 0.99, 50).unwrap(), [], "turns before turn 6");
    };
}

#[test]
fn research_is_near_its_facts() {
    let home = Home::new();
    {
        let user = home.open().user("u").unwrap();
        commit(&home, &user, 8);
        let missing = user.vectors().missing("m", 8..=8).unwrap();
        let facts = missing.iter().find(|gist| gist.text != said(&user, 8)).unwrap().text.clone();
        fill(&user, "m");
        let vector = TextVector { model: "m".to_owned(), numbers: vector(&facts) };
        let found = user.vectors().near_research(&vector, u32::MAX, 0.99, 5).unwrap();
        assert_eq!(found.iter().map(|row| row.turn).collect::<Vec<_>>(), [8]);
        assert_eq!(near(&user, "m", &facts), [] as [u32; 0], "research is no turn");
    };
}

#[test]
fn vectors_outlive_the_index_and_turns_that_move() {
    let home = Home::new();
    {
        let documents = home.open();
        let user = documents.user("u").unwrap();
        commit(&home, &user, 300);
        fill(&user, "m");
        let later = DocumentTime::from_millis(i64::try_from(START).unwrap() + 200 * 86_400_000).unwrap();
        let archived = documents.archive("u", later).unwrap().turns[0];
        assert_eq!(fill(&user, "m"), 0, "what moved says what it said");
        assert!(near(&user, "m", &said(&user, archived)).contains(&archived));
        let unsaid = said(&user, 6);
        let last = user.catalog().turn(300).unwrap().unwrap();
        assert!(last.archived || user.place().turn(300).context() == last.context);
        let grown = dump(user.index());
        documents.reindex(&|_| {}).unwrap();
        assert_eq!(dump(user.index()), grown, "every vector is kept");
        // From nothing, all of them are made anew, and are the same.
        drop((user, documents));
        std::fs::remove_dir_all(home.dir.path().join("home/indexes")).unwrap();
        let documents = home.open();
        documents.recover().unwrap();
        let user = documents.user("u").unwrap();
        assert!(fill(&user, "m") > 100);
        assert_eq!(dump(user.index()), grown);
        assert!(!near(&user, "m", &unsaid).is_empty());
    };
}

#[test]
fn unused_vectors_are_removed_on_reindex() {
    let home = Home::new();
    {
        let documents = home.open();
        let user = documents.user("u").unwrap();
        commit(&home, &user, 20);
        let vectors = |user: &UserDocuments| {
            dump(user.index()).iter().filter(|line| line.starts_with("[Text(\"vector")).count()
        };
        let before = said(&user, 6);
        let made = fill(&user, "m");
        fill(&user, "other");
        assert_eq!(vectors(&user), 2 * made);
        user.vectors().retain_model("m").unwrap();
        assert_eq!((vectors(&user), near(&user, "other", &before).len()), (made, 0));
        summarize(&user, 6, "Something else.");
        assert_eq!((fill(&user, "m"), vectors(&user)), (1, made + 1));
        documents.reindex(&|_| {}).unwrap();
        assert_eq!((vectors(&user), fill(&user, "m")), (made, 0));
        assert_eq!(near(&user, "m", &said(&user, 6)), [6]);
        // Out of the journal, which would bring the turn back.
        documents.recover().unwrap();
        std::fs::remove_dir_all(home.vault().join(user.place().turn(8).folder())).unwrap();
        documents.reindex(&|_| {}).unwrap();
        assert!(vectors(&user) < made, "a turn that somebody removed leaves no vector");
        documents.forget("u").unwrap();
        assert!(!home.dir.path().join("home/indexes/documents/u.db").exists());
        let user = documents.user("u").unwrap();
        assert_eq!((vectors(&user), user.vectors().missing("m", 1..=u32::MAX).unwrap().len()), (0, 0));
    };
}

#[test]
fn users_are_walls_to_vectors() {
    let home = Home::new();
    {
        let documents = home.open();
        let (ada, eve) = (documents.user("ada").unwrap(), documents.user("eve").unwrap());
        commit(&home, &ada, 4);
        fill(&ada, "m");
        assert_eq!(near(&ada, "m", &said(&ada, 2)), [2]);
        assert_eq!(near(&eve, "m", &said(&ada, 2)), [] as [u32; 0]);
        let names: Vec<String> =
            documents.users().unwrap().iter().map(|user| user.user().to_owned()).collect();
        assert_eq!(names, ["ada"]);
    };
}
