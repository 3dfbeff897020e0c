//! Tests of questions about times: days that are named by the question or by what was said, and what tells a time.

use chrono::NaiveDate;

use super::*;

/// The past of somebody, a session for each.
const PAST: [(&str, &str); 9] = [
    ("2026-02-10", "Met Lena at the station last Tuesday."),
    ("2026-03-03", "I started the pottery course."),
    ("2026-03-03", "The budget for the garden is 400 euros."),
    ("2026-03-20", "We painted the kitchen blue."),
    ("2026-04-05", "In March I was in Ghent for work."),
    (
        "2026-04-09",
        "The budget for the garden had to grow to 600 euros, since the fence and the shed cost more.",
    ),
    ("2026-04-14", "Ran into Oskar from the choir at the market."),
    ("2026-04-14", "My sister moves next weekend and I help her."),
    ("2026-04-15", "It rains and I met nobody."),
];
const TODAY: &str = "2026-04-16";

fn millis(day: &str) -> u64 {
    let day: NaiveDate = day.parse().unwrap();
    u64::try_from(day.and_hms_opt(12, 0, 0).unwrap().and_utc().timestamp_millis()).unwrap()
}

/// What is found in the past, best first.
fn found(question: &str, past: &[(&str, &'static str)]) -> Vec<&'static str> {
    let mut dialogue = Dialogue::default();
    let mut among = Vec::new();
    for (number, (day, text)) in past.iter().enumerate() {
        dialogue.add(number as u64, &Utterance { text, author: "User", millis: millis(day) });
        among.push(Candidate { number: number as u64, session: number, ..Candidate::default() });
    }
    let asked = Asked { text: question, millis: millis(TODAY), ..Asked::default() };
    dialogue.related(&asked, &among).iter().map(|found| past[found.place].1).collect()
}

#[test]
fn a_day_finds_what_was_said_on_it_or_speaks_of_it() {
    for (question, text) in [
        ("Who was it that I met last Tuesday?", "Ran into Oskar"),
        ("Whom did I meet on 3 February?", "Met Lena"),
        ("What did I tell you yesterday?", "It rains"),
        ("What did we do between 18 and 22 March?", "We painted"),
        ("What did we do from March 18 to March 22?", "We painted"),
        ("What am I doing on April 18?", "My sister moves"),
        ("What are my plans for this weekend?", "My sister moves"),
        ("Was there anything about a budget last month?", "The budget for the garden is"),
        ("Have I said anything since Wednesday?", "It rains"),
        ("What did we do four weeks ago?", "We painted"),
    ] {
        let found = found(question, &PAST);
        assert!(found[0].starts_with(text), "{question}: {found:?}");
    }
}

#[test]
fn a_month_finds_all_of_it_first() {
    let found = found("What did I say in March?", &PAST);
    let mut of_march = found[..4].to_vec();
    of_march.sort_unstable();
    assert_eq!(of_march, [PAST[1].1, PAST[4].1, PAST[2].1, PAST[3].1], "{found:?}");
}

#[test]
fn a_question_for_a_time_prefers_what_tells_one() {
    let past = [
        ("2026-03-01", "The pottery course is the best of all courses."),
        (
            "2026-03-08",
            "I began the pottery course three weeks ago, and there was clay on all of my clothes.",
        ),
    ];
    for (question, first) in [
        ("When did the pottery course begin?", 1),
        ("How long have I been in the pottery course?", 1),
        ("Which pottery course is the best?", 0),
        ("How is it when the pottery course is the best?", 0),
    ] {
        assert_eq!(found(question, &past)[0], past[first].1, "{question}");
    }
}

#[test]
fn a_question_about_the_last_time_prefers_the_newest() {
    assert_eq!(found("What is the budget for the garden?", &PAST)[0], PAST[2].1);
    for question in ["When did we last talk about the garden's budget?", "the latest budget for the garden"] {
        assert_eq!(found(question, &PAST)[0], PAST[5].1, "{question}");
    }
}
