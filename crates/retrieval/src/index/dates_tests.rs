//! Tests of the days that questions and what is said name, as they are seen from the day on which they were written.

use super::*;

fn day(year: i32, month: u32, day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, month, day).unwrap()
}

/// A span from two days such as "2026-06-03" or one.
fn span(days: &str) -> DaySpan {
    let (first, last) = days.split_once(' ').unwrap_or((days, days));
    first.parse().unwrap()..=last.parse().unwrap()
}

fn asked(question: &str, today: &str) -> Vec<DaySpan> {
    spans(question, Some(today.parse().unwrap()))
}

fn told(text: &str, day: &str) -> Vec<DaySpan> {
    told_time(text, day.parse().unwrap()).spans
}

#[test]
fn a_single_day_is_read_from_a_text_with_its_year() {
    assert_eq!(day_of("1:56 pm on 8 May, 2023"), Some(day(2023, 5, 8)));
    assert_eq!(day_of("2024-02-29T10:00:00Z"), Some(day(2024, 2, 29)));
    for none in ["8 May", "May 2023", "yesterday", "2023-02-29", ""] {
        assert_eq!(day_of(none), None, "{none}");
    }
}

#[test]
fn dates_are_understood_as_they_are_written() {
    for (named, days) in [
        ("on 8 May, 2023", "2023-05-08"),
        ("on the 3rd of June", "2023-06-03"),
        ("on Friday, 1 September", "2023-09-01"),
        ("on 2023-05-08", "2023-05-08"),
        ("in 2023-02", "2023-02-01 2023-02-28"),
        ("during September 2021", "2021-09-01 2021-09-30"),
        ("in may", "2023-05-01 2023-05-31"),
        ("in February 2024", "2024-02-01 2024-02-29"),
        ("on March 3, 2021", "2021-03-03"),
        ("back in 2022", "2022-01-01 2022-12-31"),
        ("yesterday", "2023-09-12"),
        ("two days ago", "2023-09-11"),
        ("a week ago", "2023-09-03 2023-09-09"),
        ("two weekends ago", "2023-08-27 2023-09-02"),
        ("last week", "2023-09-03 2023-09-10"),
        ("last month", "2023-08-01 2023-08-31"),
        ("last year", "2022-01-01 2022-12-31"),
        ("since yesterday", "2023-09-12 2023-09-13"),
        ("since Friday", "2023-09-08 2023-09-13"),
        ("since March", "2023-03-01 2023-09-13"),
        ("last weekend", "2023-09-09 2023-09-10"),
        ("in winter 2021", "2021-12-01 2022-02-28"),
        ("in the summer of 2021", "2021-06-01 2021-08-31"),
        ("on the 11th", "2023-09-11"),
        ("on the 11th about the rent", "2023-09-11"),
    ] {
        let question = format!("What did we do {named}?");
        assert_eq!(asked(&question, "2023-09-13"), [span(days)], "{question}");
    }
}

#[test]
fn ranges_are_read_alike_in_questions_and_in_what_is_said() {
    for (range, days) in [
        ("between 3 and 9 June", "2023-06-03 2023-06-09"),
        ("from 3 June to 9 June", "2023-06-03 2023-06-09"),
        ("from the 3rd to the 9th of June", "2023-06-03 2023-06-09"),
        ("from the 3rd to the 9th", "2023-09-03 2023-09-09"),
        ("August 11 to 15, 2022", "2022-08-11 2022-08-15"),
        ("from 30 May to June 2nd", "2023-05-30 2023-06-02"),
        ("from 28 to 3 August", "2023-07-28 2023-08-03"),
        ("from 30 December to 2 January 2023", "2022-12-30 2023-01-02"),
        ("from March until May", "2023-03-01 2023-05-31"),
        ("between November and February 2023", "2022-11-01 2023-02-28"),
        ("from November 2021 to February", "2021-11-01 2022-02-28"),
        ("from last March until May", "2023-03-01 2023-05-31"),
        ("from spring to summer 2022", "2022-03-01 2022-08-31"),
        ("from 2019 to 2021", "2019-01-01 2021-12-31"),
    ] {
        let question = format!("Were we away {range}?");
        assert_eq!(asked(&question, "2023-09-13"), [span(days)], "{question}");
        let text = format!("We were away {range}.");
        assert_eq!(told(&text, "2023-09-13"), [span(days)], "{text}");
    }
    let days = [span("2023-06-03"), span("2023-06-09")];
    assert_eq!(told("We met on 3 and 9 June.", "2023-09-13"), days);
    assert_eq!(told("We met on 3 June and on 9 June.", "2023-09-13"), days);
    assert_eq!(told("On 3 June - May said so - it rained.", "2023-09-13"), days[..1]);
    assert_eq!(told("On May 3 - 2 of us were ill.", "2023-09-13"), [span("2023-05-03")]);
    assert_eq!(told("From Monday to Friday I am off.", "2023-09-17").len(), 2, "the last week, or the next");
}

#[test]
fn last_and_next_say_which_month_season_or_day_is_meant() {
    for (today, named, days) in [
        ("2026-04-16", "last June", "2025-06-01 2025-06-30"),
        ("2026-04-16", "last April", "2025-04-01 2025-04-30"),
        ("2026-04-16", "next March", "2027-03-01 2027-03-31"),
        ("2026-11-16", "next March", "2027-03-01 2027-03-31"),
        ("2026-11-16", "this March", "2026-03-01 2026-03-31"),
        ("2026-04-16", "this May", "2026-05-01 2026-05-31"),
        ("2023-09-13", "last summer", "2023-06-01 2023-08-31"),
        ("2026-04-16", "next summer", "2026-06-01 2026-08-31"),
        ("2026-01-16", "this winter", "2025-12-01 2026-02-28"),
        ("2026-11-16", "this winter", "2026-12-01 2027-02-28"),
        ("2026-01-16", "last winter", "2024-12-01 2025-02-28"),
        ("2023-09-13", "last Wednesday", "2023-09-06"),
        ("2023-11-17", "next Friday", "2023-11-24"),
        ("2023-11-17", "this Friday", "2023-11-17"),
        ("2023-11-17", "this weekend", "2023-11-18 2023-11-19"),
        ("2023-11-17", "next month", "2023-12-01 2023-12-31"),
    ] {
        let question = format!("What of {named}?");
        assert_eq!(asked(&question, today), [span(days)], "{question}");
        assert_eq!(told(&format!("It is about {named}."), today), [span(days)], "{named}");
    }
}

#[test]
fn a_question_without_a_year_means_the_latest_and_the_next_unless_its_tense_tells() {
    let both = |question| asked(question, "2026-04-16");
    assert_eq!(both("What happens on 2 May?"), [span("2025-05-02"), span("2026-05-02")]);
    assert_eq!(both("What will we do on 2 March?"), [span("2027-03-02")]);
    assert_eq!(both("What did we do on 2 March?"), [span("2026-03-02")]);
    // A past tense speaks of days to come, too, if they are nearer.
    assert_eq!(both("Which flight did I book for 2 May?"), [span("2025-05-02"), span("2026-05-02")]);
    assert_eq!(both("What is on Friday?"), [span("2026-04-10"), span("2026-04-17")]);
    assert_eq!(asked("What did I say on 29 February?", "2025-04-16"), [span("2024-02-29")]);
    assert_eq!(asked("What did I say on the 31st?", "2026-05-15"), [span("2026-03-31"), span("2026-05-31")]);
}

#[test]
fn what_is_said_without_a_year_means_the_nearest_unless_its_tense_tells() {
    for (text, days) in [
        ("We leave tomorrow.", "2023-11-18"),
        ("In two weeks I am done.", "2023-11-28 2023-12-04"),
        ("The fair is in January.", "2024-01-01 2024-01-31"),
        ("I was there in August.", "2023-08-01 2023-08-31"),
        ("I was back on the 15th after my trip.", "2023-11-15"),
        ("My appointment is on 2 December.", "2023-12-02"),
        ("I'll be in Rome on 2 May.", "2024-05-02"),
        ("I booked a flight for 2 December.", "2022-12-02"),
        ("A few days ago it broke.", "2023-11-14"),
    ] {
        assert_eq!(told(text, "2023-11-17")[0], span(days), "{text}");
    }
    assert_eq!(told("I booked a flight for 2 December.", "2023-11-17")[1], span("2023-12-02"));
    let both = [span("2026-04-10"), span("2026-04-17")];
    assert_eq!(told("My dentist is on Friday.", "2026-04-14"), both);
    assert_eq!(told("I'll see the dentist on Friday.", "2026-04-13"), [span("2026-04-17")]);
    assert_eq!(told("I saw the dentist on Friday.", "2026-04-13"), [span("2026-04-10")]);
}

#[test]
fn a_time_may_be_told_without_a_day() {
    let told = |text| told_time(text, day(2023, 11, 17));
    for text in ["I had it for three years.", "I just signed.", "We meet every Monday."] {
        assert_eq!(told(text), ToldTime { spans: vec![], tells: true }, "{text}");
    }
    assert_eq!(told("May I ask for the second one?"), ToldTime::default());
}

#[test]
fn the_words_of_a_date_are_apart_from_the_rest() {
    let today = Some(day(2023, 9, 13));
    for (question, rest) in [
        ("What did Ann buy on 8 May, 2023 in Ghent?", "What did Ann buy  in Ghent?"),
        ("What did I say on the 11th about the rent?", "What did I say  about the rent?"),
        ("Do you think this may be a problem?", "Do you think this may be a problem?"),
        ("Were we away from March until May?", "Were we away ?"),
        ("What did Ann buy on Monday, 8 May?", "What did Ann buy ?"),
    ] {
        assert_eq!(asked_days(question, today).rest, rest);
    }
    assert_eq!(asked_days("yesterday", None).rest, "yesterday");
}

#[test]
fn words_that_only_look_like_dates_are_none() {
    for text in [
        "May I ask?",
        "Do you think this may be a problem?",
        "This may help.",
        "The next may take longer.",
        "What we rely on may change.",
        "a march of 12 miles",
        "a letter from April",
        "31 February 2023",
        "room 4051",
        "We live on the 2nd floor.",
        "It worked on the 3rd attempt.",
        "We start on the 2nd Monday",
        "the 9th symphony",
        "",
    ] {
        assert!(asked(text, "2023-09-13").is_empty(), "{text}");
        assert!(told(text, "2023-09-13").is_empty(), "{text}");
    }
    assert!(asked("2023-13-45", "2023-09-13").is_empty());
    for relative in ["yesterday", "in March", "3 weeks ago", "last month", "last June", "on Friday"] {
        assert!(spans(relative, None).is_empty(), "{relative}");
    }
}

/// However long its sentence is, reading a date costs the same.
#[test]
fn only_the_words_around_a_date_are_read_for_its_tense() {
    let far = "word ".repeat(SENTENCE);
    assert_eq!(told(&format!("I was ill {far} in March"), "2023-11-17"), [span("2024-03-01 2024-03-31")]);
    let cut = "é".repeat(SENTENCE);
    assert_eq!(told(&format!("{cut} in March {cut}"), "2023-11-17"), [span("2024-03-01 2024-03-31")]);
}
