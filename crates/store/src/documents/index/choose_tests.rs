//! What is chosen for weighing, beside what looking at every document would choose.

use proptest::prelude::*;
use rusqlite::Connection;

use super::super::search::look_up;
use super::*;

/// Enough for common words to be held by more documents than are visited for one word.
const DOCUMENTS: i64 = 12_000;

/// Which documents hold a word: every so manieth one from the first on, up to the last.
#[derive(Debug, Clone)]
struct Spread {
    first: i64,
    every: i64,
    last: i64,
}

impl Spread {
    fn holds(&self, id: i64) -> bool {
        (self.first..=self.last).contains(&id) && (id - self.first) % self.every == 0
    }
}

fn index(words: &[Spread]) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(include_str!("schema.sql")).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    for id in 1..=DOCUMENTS {
        let held = words.iter().enumerate().filter(|(_, word)| word.holds(id));
        let text: String = held.map(|(at, _)| format!("w{at} ")).collect();
        let mut document =
            connection.prepare_cached("INSERT INTO documents (path, kind) VALUES (?1, 0)").unwrap();
        document.execute([format!("{id}.md")]).unwrap();
        let mut row =
            connection.prepare_cached("INSERT INTO words (rowid, context) VALUES (?1, ?2)").unwrap();
        row.execute((id, text)).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    connection
}

/// What is chosen, and what would be if every document were looked at.
fn chosen(words: &[Spread], most: usize) -> (Vec<i64>, Vec<i64>) {
    let mut connection = index(words);
    let tx = connection.transaction().unwrap();
    let mut lookup = Lookup::new(&tx, &["context"]).unwrap();
    let texts: Vec<String> = (0..words.len()).map(|at| format!("w{at}")).collect();
    let found = look_up(&tx, &texts, &mut lookup).unwrap();
    let score = |id: i64, tells: bool| -> f64 {
        let held = found.iter().filter(|word| {
            let at: usize = word.text.trim_start_matches('w').parse().unwrap();
            (word.share <= EVERYWHERE) == tells && words[at].holds(id)
        });
        held.map(|word| word.weight).sum()
    };
    let mut all: Vec<(f64, f64, i64)> =
        (1..=DOCUMENTS).map(|id| (score(id, true), score(id, false), id)).collect();
    all.retain(|(telling, other, _)| telling + other > 0.0);
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then(b.2.cmp(&a.2)));
    let best = all.into_iter().take(most).map(|(_, _, id)| id).collect();
    (choose(&found, &mut lookup, most).unwrap(), best)
}

#[test]
fn common_words_find_what_holds_them_together_however_old_it_is() {
    let common = |first, every| Spread { first, every, last: DOCUMENTS };
    // Each word has thousands of documents; one of 140 holds all three.
    let words = [common(1, 4), common(2, 5), common(3, 7), Spread { first: 17, every: 1, last: 17 }];
    let (found, best) = chosen(&words[..3], 85);
    assert!(found.iter().all(|id| id % 140 == 17), "{found:?}");
    assert_eq!(found, best);
    let (found, best) = chosen(&words, 96);
    assert_eq!((found[0], found), (17, best));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn what_is_chosen_is_what_looking_at_everything_would_choose(
        common in prop::collection::vec((1_i64..40, 4_i64..6), 0..4),
        rare in prop::collection::vec((1_i64..400, 50_i64..3_000), 0..3),
        everywhere in any::<bool>(),
    ) {
        let spread = |(first, every)| Spread { first, every, last: DOCUMENTS };
        let mut words: Vec<Spread> = common.into_iter().chain(rare).map(spread).collect();
        if everywhere {
            words.push(Spread { first: 1, every: 1, last: DOCUMENTS });
        }
        let (found, best) = chosen(&words, 96);
        prop_assert_eq!(found, best);
    }
}
