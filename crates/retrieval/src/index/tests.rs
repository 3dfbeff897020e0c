//! Tests of the index: what ranks first and why, what references lead to, and the limits.

use proptest::prelude::*;

use super::*;

const TURNS: [(&str, &str); 8] = [
    ("Ann", "Hi Bob, how was your weekend?"),
    ("Bob", "Great! We went camping in the mountains."),
    ("Ann", "Lovely. Which tent did you take?"),
    ("Bob", "The old green one."),
    ("Ann", "I painted a sunset yesterday."),
    ("Bob", "Nice! Did you sell it?"),
    ("Ann", "Not yet."),
    ("Bob", "Talk soon."),
];

fn conversation() -> Index {
    let mut index = Index::default();
    for (author, text) in TURNS {
        index.add(&Record { text, author: Some(author), ..Record::default() });
    }
    index
}

fn found(index: &Index, question: &str) -> Vec<usize> {
    index.search(&Query::new(question)).iter().map(|hit| hit.record).collect()
}

#[test]
fn an_answer_is_found_next_to_the_question_with_its_words() {
    let index = conversation();
    assert!(found(&index, "What tent did Bob take?")[..2].contains(&3));
    assert!(found(&index, "zebra").is_empty() && found(&index, "").is_empty());
    assert!(found(&Index::default(), "tent").is_empty());
}

#[test]
fn the_author_whom_the_question_names_counts_for_more() {
    let mut index = Index::default();
    for author in ["Ann", "Bob"] {
        index.start_section();
        index.add(&Record { text: "I like sailing.", author: Some(author), ..Record::default() });
    }
    assert_eq!(found(&index, "Does Bob like sailing?"), [1, 0]);
    assert_eq!(found(&index, "Does Ann's friend like sailing?"), [0, 1]);
}

#[test]
fn the_day_of_which_the_question_speaks_counts_for_more() {
    let mut index = Index::default();
    let day = |day| NaiveDate::from_ymd_opt(2023, 5, day);
    for at in [day(1), day(8), None] {
        index.start_section();
        index.add(&Record { text: "We met at the harbour.", day: at, ..Record::default() });
    }
    assert_eq!(found(&index, "Who met at the harbour on 8 May 2023?")[0], 1);
    let yesterday = Query { text: "Who met yesterday?", today: day(2) };
    assert_eq!(index.search(&yesterday)[0].record, 0);
}

#[test]
fn neighbours_help_only_within_their_section() {
    let mut index = Index::default();
    index.add(&Record { text: "Where did you park?", ..Record::default() });
    index.start_section();
    index.add(&Record { text: "Behind the station.", ..Record::default() });
    assert_eq!(found(&index, "park"), [0]);
}

#[test]
fn an_index_for_one_query_ranks_like_any_other() {
    let query = "Which tent did Bob take to the mountains?";
    let mut small = Index::for_query(query);
    for (author, text) in TURNS {
        small.add(&Record { text, author: Some(author), ..Record::default() });
    }
    let full = conversation();
    assert_eq!(small.search(&Query::new(query)), full.search(&Query::new(query)));
    assert!(small.postings.len() <= 4 && full.postings.len() > 20);
    assert!((small.rarity("tents") - full.rarity("tents")).abs() < 1e-12);
    assert!(full.rarity("zebra") > full.rarity("tent") && full.rarity("tent") > full.rarity("you"));
}

#[test]
fn scripts_without_spaces_match_by_pairs() {
    let mut index = Index::default();
    for text in ["吾輩は猫である。", "名前はまだ無い。", "どこで生れたか。"] {
        index.start_section();
        index.add(&Record { text, ..Record::default() });
    }
    assert_eq!(found(&index, "猫の名前は何か")[0], 1);
}

/// Owners, their pets and addresses, as rows that name each other.
const ROWS: [(&str, &str); 9] = [
    ("pet-1", "### pet-1 (owner: per-1)\nname: Rex\nspecies: dog"),
    ("pet-2", "### pet-2 (owner: per-2)\nname: Tom\nspecies: cat"),
    ("per-1", "### Ann Lee (ID: per-1)\nborn: 1980"),
    ("per-2", "### Bob Ray (ID: per-2)\nborn: 1990"),
    ("per-3", "### Cy Poe (ID: per-3)\nborn: 1970"),
    ("adr-1", "### adr-1 (owner: per-1)\ncity: Oslo\nstate: Ohio"),
    ("adr-2", "### adr-2 (owner: per-2)\ncity: Bonn\nstate: Utah"),
    ("adr-3", "### adr-3 (owner: per-3)\ncity: Rome\nstate: Ohio"),
    ("car-1", "### car-1 (owner: per-1)\ncolour: red"),
];
const ASKED: &str = "Who lives in the same state as the owner of the pet named 'Rex'?";

fn document(id: &str) -> u32 {
    u32::from(id.as_bytes()[0])
}

fn rows() -> Index {
    let mut index = Index::default();
    for (id, text) in ROWS {
        index.start_section();
        index.add(&Record { text, id: Some(id), document: document(id), ..Record::default() });
    }
    index
}

fn gathered(limits: &Limits) -> Gathered {
    rows().gather(&Query::new(ASKED), limits, |record| ROWS[record].1, |_| 20)
}

#[test]
fn references_lead_to_an_owner_and_to_rows_that_share_the_value_asked_for() {
    let links = Some(LinkLimits::default());
    let reached = gathered(&Limits { tokens: 120, links });
    let way: Vec<(&str, Reached)> =
        reached.records.iter().map(|found| (ROWS[found.record].0, found.reached)).collect();
    assert_eq!(
        way,
        [
            ("pet-1", Reached::Hit),
            ("per-1", Reached::ReferredToBy(0)),
            ("adr-1", Reached::RefersTo(2)),
            ("car-1", Reached::RefersTo(2)),
            ("adr-3", Reached::SharesWith(5)),
            ("per-3", Reached::ReferredToBy(7)),
        ]
    );
    assert_eq!(reached.left_out.last().map(|left| left.1), Some(Omission::Budget));
    let worths: Vec<f64> = reached.records.iter().map(|found| found.worth).collect();
    assert!(worths[0] == 1.0 && worths[1..].iter().all(|worth| (0.0..1.0).contains(worth)), "{worths:?}");
    let plain = gathered(&Limits { tokens: 60, links: None });
    assert!(plain.records.iter().all(|found| found.reached == Reached::Hit));
}

#[test]
fn references_stop_at_their_limits() {
    let within = |links: LinkLimits| {
        let reached = gathered(&Limits { tokens: 1_000, links: Some(links) });
        let linked = |begins: &str| {
            let is_linked = |found: &&GatheredRecord| {
                found.reached != Reached::Hit && ROWS[found.record].0.starts_with(begins)
            };
            reached.records.iter().filter(is_linked).count()
        };
        (linked("per"), linked(""), reached.left_out)
    };
    let standard = LinkLimits::default();
    assert_eq!((standard.depth, standard.tokens, standard.document), (2, 6_400, 2_000));
    let (_, linked, left) = within(LinkLimits { tokens: 40, ..standard });
    assert_eq!(linked, 2);
    assert!(left.iter().any(|left| left.1 == Omission::LinkBudget));
    let (of_document, _, left) = within(LinkLimits { document: 20, ..standard });
    assert_eq!(of_document, 1);
    assert!(left.iter().any(|left| left.1 == Omission::DocumentBudget));
    let (_, linked, _) = within(LinkLimits { depth: 1, ..standard });
    assert_eq!(linked, 1, "only the owner that the pet refers to");
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let word = prop::sample::select(vec![
        "pet", "tent", "a-1", "b-2", "state:", "Ohio", "went?", "猫の", "\n", "Ann",
    ]);
    prop::collection::vec(prop::collection::vec(word, 0..8).prop_map(|words| words.join(" ")), 0..24)
}

proptest! {
    #[test]
    fn budgets_hold_and_the_same_input_gives_the_same_order(
        texts in texts(),
        question in "(pet|tent|state|a-1|Ann|Ohio|the|猫の| ){0,6}",
        tokens in 0_usize..200,
        links in prop::option::of((0_usize..4, 0_usize..200, 0_usize..60)),
        sections in prop::collection::vec(any::<bool>(), 24),
    ) {
        let build = || {
            let mut index = Index::default();
            for (at, text) in texts.iter().enumerate() {
                if sections[at] {
                    index.start_section();
                }
                let (id, document) = ([None, Some("a-1"), Some("b-2")][at % 3], (at % 2) as u32);
                index.add(&Record { text, id, document, author: Some("Ann"), ..Record::default() });
            }
            index
        };
        let links = links.map(|(depth, tokens, document)| LinkLimits { depth, tokens, document });
        let (limits, query) = (Limits { tokens, links }, Query::new(&question));
        let cost = |record: usize| record % 7 * 5;
        let gather = |index: &Index| index.gather(&query, &limits, |record| &texts[record], cost);
        let index = build();
        let first = gather(&index);
        prop_assert_eq!(&first, &gather(&build()));
        prop_assert_eq!(index.search(&query), build().search(&query));
        prop_assert_eq!(first.tokens, first.records.iter().map(|found| cost(found.record)).sum::<usize>());
        prop_assert!(first.tokens <= tokens);
        let linked: Vec<usize> =
            first.records.iter().filter(|found| found.reached != Reached::Hit).map(|found| found.record).collect();
        let allowed = links.map_or((0, 0), |links| (links.tokens, links.document));
        prop_assert!(linked.iter().map(|&record| cost(record)).sum::<usize>() <= allowed.0);
        for document in 0..2 {
            let of = linked.iter().filter(|&&record| record % 2 == document);
            prop_assert!(of.map(|&record| cost(record)).sum::<usize>() <= allowed.1);
        }
        let mut once: Vec<usize> = first.records.iter().map(|found| found.record).collect();
        once.extend(first.left_out.iter().map(|left| left.0));
        let all = once.len();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), all, "each record is considered once");
        // A larger budget without links only adds.
        let plain = |tokens| {
            let limits = Limits { tokens, links: None };
            index.gather(&query, &limits, |record| &texts[record], cost).records
        };
        prop_assert!(plain(tokens + 50).starts_with(&plain(tokens)));
    }
}
