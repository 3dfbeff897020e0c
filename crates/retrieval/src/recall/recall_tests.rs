//! Tests of recall: what ranks first and why, what links lead to, and the limits.

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
        index.add(&Record { text, author: Some(author), tokens: 10, ..Record::default() });
    }
    index
}

fn found(index: &Index, question: &str) -> Vec<usize> {
    index.search(&Query::of(question)).iter().map(|hit| hit.record).collect()
}

#[test]
fn an_answer_is_found_beside_the_question_that_has_its_words() {
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
    let day = |day| Day::of(2023, 5, day);
    for at in [day(1), day(8), None] {
        index.start_section();
        index.add(&Record { text: "We met at the harbour.", day: at, ..Record::default() });
    }
    assert_eq!(found(&index, "Who met at the harbour on 8 May 2023?")[0], 1);
    let yesterday = Query { text: "Who met yesterday?", today: day(2), ..Query::default() };
    assert_eq!(index.search(&yesterday)[0].record, 0);
}

#[test]
fn sections_are_no_neighbours() {
    let mut index = Index::default();
    index.add(&Record { text: "Where did you park?", ..Record::default() });
    index.start_section();
    index.add(&Record { text: "Behind the station.", ..Record::default() });
    assert_eq!(found(&index, "park"), [0]);
}

#[test]
fn what_is_like_the_question_is_found_without_its_words() {
    let index = conversation();
    let alike = [0.0, 0.1, f32::NAN, -3.0, 0.9];
    let hits = index.search(&Query { text: "art", alike: &alike, ..Query::default() });
    assert_eq!(hits.iter().map(|hit| hit.record).collect::<Vec<_>>(), [4, 1]);
    let both = index.search(&Query { text: "camping", alike: &[0.0, 0.0, 0.2], ..Query::default() });
    assert_eq!(both[0].record, 1, "{both:?}");
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

fn rows() -> Index {
    let mut index = Index::default();
    for (id, text) in ROWS {
        index.start_section();
        let document = id.split('-').next().unwrap();
        index.add(&Record { text, tokens: 20, id: Some(id), document, ..Record::default() });
    }
    index
}

fn gathered(limits: &Limits) -> Gathered {
    rows().gather(&Query::of(ASKED), limits, |record| ROWS[record].1)
}

#[test]
fn links_lead_from_a_row_to_its_owner_and_to_who_shares_what_is_asked_for() {
    let links = Some(LinkLimits::default());
    let reached = gathered(&Limits { tokens: 120, links });
    let way: Vec<(&str, Why)> = reached.taken.iter().map(|taken| (ROWS[taken.record].0, taken.why)).collect();
    assert_eq!(
        way,
        [
            ("pet-1", Why::Found),
            ("per-1", Why::NamedBy(0)),
            ("adr-1", Why::Names(2)),
            ("car-1", Why::Names(2)),
            ("adr-3", Why::Shares(5)),
            ("per-3", Why::NamedBy(7)),
        ]
    );
    assert_eq!(reached.left.last().map(|left| left.1), Some(Left::Budget));
    let plain = gathered(&Limits { tokens: 60, links: None });
    assert!(plain.taken.iter().all(|taken| taken.why == Why::Found));
}

#[test]
fn links_stop_at_their_limits() {
    let within = |links: LinkLimits| {
        let reached = gathered(&Limits { tokens: 1_000, links: Some(links) });
        let linked = |document: &str| {
            let of = |taken: &&Taken| taken.why != Why::Found && ROWS[taken.record].0.starts_with(document);
            reached.taken.iter().filter(of).count()
        };
        (linked("per"), linked(""), reached.left)
    };
    let standard = LinkLimits::default();
    assert_eq!((standard.depth, standard.tokens, standard.document), (2, 6_400, 2_000));
    let (_, linked, left) = within(LinkLimits { tokens: 40, ..standard });
    assert_eq!(linked, 2);
    assert!(left.iter().any(|left| left.1 == Left::LinkBudget));
    let (of_document, _, left) = within(LinkLimits { document: 20, ..standard });
    assert_eq!(of_document, 1);
    assert!(left.iter().any(|left| left.1 == Left::Document));
    let (_, linked, _) = within(LinkLimits { depth: 1, ..standard });
    assert_eq!(linked, 1, "only whom the pet names");
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
                let (id, document) = ([None, Some("a-1"), Some("b-2")][at % 3], ["x", "y"][at % 2]);
                index.add(&Record { text, tokens: at % 7 * 5, id, document, author: Some("Ann"), ..Record::default() });
            }
            index
        };
        let links = links.map(|(depth, tokens, document)| LinkLimits { depth, tokens, document });
        let (limits, query) = (Limits { tokens, links }, Query::of(&question));
        let gather = |index: &Index| index.gather(&query, &limits, |record| &texts[record]);
        let index = build();
        let first = gather(&index);
        prop_assert_eq!(&first, &gather(&build()));
        prop_assert_eq!(index.search(&query), build().search(&query));
        let cost = |taken: &Taken| taken.record % 7 * 5;
        prop_assert_eq!(first.tokens, first.taken.iter().map(cost).sum::<usize>());
        prop_assert!(first.tokens <= tokens);
        let linked: Vec<&Taken> = first.taken.iter().filter(|taken| taken.why != Why::Found).collect();
        let allowed = links.map_or((0, 0), |links| (links.tokens, links.document));
        prop_assert!(linked.iter().map(|taken| cost(taken)).sum::<usize>() <= allowed.0);
        for document in 0..2 {
            let of = linked.iter().filter(|taken| taken.record % 2 == document);
            prop_assert!(of.map(|taken| cost(taken)).sum::<usize>() <= allowed.1);
        }
        let mut once: Vec<usize> = first.taken.iter().map(|taken| taken.record).collect();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), first.taken.len());
        // A larger budget without links only adds.
        let plain = |tokens| index.gather(&query, &Limits { tokens, links: None }, |record| &texts[record]).taken;
        prop_assert!(plain(tokens + 50).starts_with(&plain(tokens)));
    }
}
