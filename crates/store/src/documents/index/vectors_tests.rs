//! What is found near a vector, beside what looking at every vector exactly would find.

use proptest::prelude::*;
use rusqlite::Connection;

use super::*;

/// What rounding numbers to a byte may change of a cosine.
const ROUNDING: f64 = 0.01;

fn empty() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(include_str!("schema.sql")).unwrap();
    connection
}

/// Numbers from -1 to 1, the same for the same seed.
fn vector(seed: u64, dimensions: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x2545_F491_4F6C_DD1D;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..dimensions).map(|_| next()).collect()
}

/// A vector beside another one.
fn beside(of: &[f32], seed: u64, apart: f32) -> Vec<f32> {
    of.iter().zip(vector(seed, of.len())).map(|(a, b)| a + apart * b).collect()
}

/// Turn `n + 1` says the text of vector `n`.
fn fill(connection: &mut Connection, vectors: &[Vec<f32>]) {
    let tx = connection.transaction().unwrap();
    let mut all = Vec::new();
    for (turn, vector) in (1_u32..).zip(vectors) {
        let gist = EmbeddingText { of: Subject::Turns, text: format!("text {turn}") };
        let sql = "INSERT INTO gists (document, of, turn, hash, text) VALUES (?1, 0, ?2, ?3, ?4)";
        tx.execute(sql, params![format!("users/u/{turn}.json"), turn, hash(&gist.text), gist.text]).unwrap();
        all.push((gist, vector.clone()));
    }
    // In another order than that of the turns.
    all.reverse();
    insert_vectors(&tx, "m", &all).unwrap();
    tx.commit().unwrap();
}

fn nearest(connection: &mut Connection, query: &[f32], floor: f64, most: usize) -> Vec<(u32, f64)> {
    let tx = connection.transaction().unwrap();
    let query = TextVector { model: "m".to_owned(), numbers: query.to_vec() };
    let found = near(&tx, Subject::Turns, &query, u32::MAX, floor, most).unwrap();
    found.into_iter().map(|(_, turn, score)| (turn, score)).collect()
}

fn exact(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_nearest_are_those_that_looking_at_everything_finds(
        seeds in prop::collection::vec(any::<u64>(), 1..CANDIDATES),
        dimensions in 8_usize..200,
        query in any::<u64>(),
        most in 1_usize..30,
        floor in -1.0_f64..0.5,
    ) {
        let vectors: Vec<Vec<f32>> = seeds.iter().map(|seed| vector(*seed, dimensions)).collect();
        let query = vector(query, dimensions);
        let mut connection = empty();
        fill(&mut connection, &vectors);
        let found = nearest(&mut connection, &query, floor, most);
        let mut all: Vec<f64> = vectors.iter().map(|vector| exact(&query, vector)).collect();
        for (turn, score) in &found {
            prop_assert!((all[*turn as usize - 1] - score).abs() < ROUNDING);
            prop_assert!(*score >= floor);
        }
        prop_assert!(found.windows(2).all(|two| (two[0].1, two[0].0) > (two[1].1, two[1].0)));
        all.sort_by(|a, b| b.total_cmp(a));
        let sure = all.iter().take(most).filter(|score| **score > floor + ROUNDING).count();
        prop_assert!(found.len() >= sure);
        for ((_, score), best) in found.iter().zip(all) {
            prop_assert!((score - best).abs() < ROUNDING);
        }
    }
}

#[test]
fn among_thousands_the_nearest_are_found() {
    let query = vector(1, 384);
    // Some come nearer and nearer to the query, among thousands that have nothing to do with it.
    let mut vectors: Vec<Vec<f32>> = (10..6_000).map(|seed| vector(seed, 384)).collect();
    for (place, apart) in [(17, 0.3), (900, 0.6), (2_500, 0.9), (4_000, 1.2), (5_900, 1.5)] {
        vectors[place - 1] = beside(&query, 7 + place as u64, apart);
    }
    let mut connection = empty();
    fill(&mut connection, &vectors);
    let found = nearest(&mut connection, &query, 0.4, 20);
    assert_eq!(found.iter().map(|(turn, _)| *turn).collect::<Vec<_>>(), [17, 900, 2_500, 4_000, 5_900]);
    assert_eq!(found, nearest(&mut connection, &query, 0.4, 20));
}

#[test]
fn ties_are_newest_first_in_any_insertion_order() {
    let same = vec![vector(3, 64); 500];
    let mut connection = empty();
    fill(&mut connection, &same);
    let found = nearest(&mut connection, &same[0], 0.9, 3);
    assert_eq!(found.iter().map(|(turn, _)| *turn).collect::<Vec<_>>(), [500, 499, 498]);
}

#[test]
fn an_invalid_vector_is_near_nothing() {
    let mut connection = empty();
    fill(&mut connection, &[vec![], vec![0.0; 9], vec![f32::NAN; 9], vec![f32::INFINITY; 9], vector(5, 9)]);
    let found = nearest(&mut connection, &vector(5, 9), 0.1, 9);
    assert_eq!(found.iter().map(|(turn, _)| *turn).collect::<Vec<_>>(), [5]);
    for odd in [vec![], vec![0.0; 9], vec![f32::NAN; 9], vector(5, 8)] {
        assert_eq!(nearest(&mut connection, &odd, 0.1, 9), []);
    }
}

#[test]
fn a_text_that_nothing_says_any_more_gets_no_vector() {
    let mut connection = empty();
    fill(&mut connection, &[vector(1, 64)]);
    let tx = connection.transaction().unwrap();
    insert_vectors(
        &tx,
        "m",
        &[(EmbeddingText { of: Subject::Turns, text: "taken back".to_owned() }, vector(2, 64))],
    )
    .unwrap();
    let kept: i64 = tx.query_row("SELECT count(*) FROM vectors", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 1);
}
