//! Selecting, filling and extracting over small texts, each against its own guarantee.

use super::*;
use crate::content_type::ContentType;
use crate::engine::fill::fill;
use crate::request::{CondenseRequest, KnownText, ReaderView};
use crate::types::plain::Plain;
use larder_text::pointer::PointerKey;
use larder_text::seen_text::SeenText;
use larder_text::tokens::Counter;

const SENTENCES: usize = 60;

/// Lines without salient spans; the 31st speaks of a harbour.
fn lines() -> String {
    let subjects = ["crane", "barge", "clerk", "engine", "ledger", "warehouse", "captain"];
    let line = |at: usize| match at {
        30 => "The harbour master closed the northern gate because of the storm.\n".to_owned(),
        _ => format!(
            "The {} waited while the {} was being moved.\n",
            subjects[at % 7],
            subjects[(at / 7 + at) % 7]
        ),
    };
    (0..SENTENCES).map(line).collect()
}

/// Calls `check` with the job of condensing `text`.
fn with_job(text: &str, target: usize, query: Option<&str>, pins: &[String], check: impl FnOnce(&Job<'_>)) {
    let (counter, key) = (Counter::o200k(), PointerKey::new([1; 32]));
    let content_type = ContentType::Generic;
    let request = CondenseRequest { text, content_type, target, query, pins, counter: &counter, key: &key };
    check(&Job::new(&request, KnownText::from_request(&request)));
}

/// Calls `check` with a selection over the lines of the job's text.
fn with_selection(job: &Job<'_>, check: impl FnOnce(PieceSelection<'_>)) {
    let text = job.request.text;
    let units = Plain.units(job);
    let ranges: Vec<_> = units.iter().map(|unit| unit.range.clone()).collect();
    let scores = Scores::new(text, &ranges, job.request.query);
    let renderer = Renderer::new(job, Header::Bare);
    let pieces = refine(text, &units, &job.required, &[], &[], (Grain::Exact, None));
    check(PieceSelection::new(job, &pieces, &scores, &renderer, &[]));
}

fn shown(selection: &PieceSelection<'_>) -> usize {
    selection.shown.iter().filter(|&&shown| shown).count()
}

#[test]
fn only_required_ranges_are_shown_initially() {
    with_job(&lines(), 200, None, &[], |job| {
        with_selection(job, |selection| assert_eq!(shown(&selection), 0))
    });
    let pins = ["northern gate".to_owned()];
    with_job(&lines(), 200, None, &pins, |job| {
        with_selection(job, |selection| {
            let text: String = selection.ranges().into_iter().map(|range| &job.request.text[range]).collect();
            assert!(text.contains("northern gate") && text.len() < 100, "{text:?}");
        });
    });
}

#[test]
fn choosing_stays_near_the_target_and_steps_can_be_taken_back() {
    with_job(&lines(), 300, None, &[], |job| {
        with_selection(job, |mut selection| {
            assert!(selection.choose());
            let (before, tokens) = (shown(&selection), selection.tokens());
            assert!(before > 3 && tokens <= 300 * 11 / 10, "{before} lines, {tokens} tokens");
            assert!(selection.take_back(100));
            assert!(shown(&selection) < before && selection.tokens() < tokens);
        });
    });
}

#[test]
fn the_unit_that_answers_the_query_ranks_first() {
    with_job(&lines(), 100, Some("Why was the harbour gate closed?"), &[], |job| {
        with_selection(job, |mut selection| {
            let best = (0..selection.pieces.len()).map(|piece| selection.candidate(piece)).max().unwrap();
            let range = selection.pieces[best.piece].range.clone();
            assert!(job.request.text[range].contains("harbour"));
            selection.choose();
            assert!(selection.shown[best.piece]);
        });
    });
}

#[test]
fn a_unit_next_to_a_shown_one_gains_because_it_needs_no_marker() {
    with_job(&lines(), 200, None, &[], |job| {
        with_selection(job, |mut selection| {
            let before = selection.score(21).rank;
            selection.shown[20] = true;
            assert!(selection.score(21).rank > before);
        });
    });
}

#[test]
fn filling_uses_the_target_up_and_never_exceeds_it() {
    for target in [120, 250, 400] {
        with_job(&lines(), target, None, &[], |job| {
            with_selection(job, |mut selection| {
                choose(&mut selection);
                fill(&mut selection);
                let tokens = selection.tokens();
                assert!(tokens <= target && (target - tokens) * 20 <= target, "{tokens} of {target}");
                for (&piece, &end) in &selection.partial {
                    let range = selection.pieces[piece].range.clone();
                    assert!(range.start < end && end <= range.end, "a piece is shown from its beginning");
                }
            });
        });
    }
}

#[test]
fn a_draft_tiles_the_original_within_the_target() {
    for (target, query) in [(100, None), (300, Some("harbour gate")), (500, None)] {
        with_job(&lines(), target, query, &[], |job| {
            let draft = Extractive(Plain).condense(job).unwrap();
            assert!(job.request.counter.count(&draft.text) <= target);
            let gaps = draft.gaps.iter().map(|gap| gap.bytes.clone());
            let mut all: Vec<Range<usize>> = draft.shown.iter().cloned().chain(gaps).collect();
            all.sort_by_key(|range| range.start);
            let ends = all.iter().scan(0, |at, range| Some(range.start == std::mem::replace(at, range.end)));
            assert!(
                ends.into_iter().all(|tiles| tiles)
                    && all.last().is_some_and(|last| last.end == lines().len())
            );
        });
    }
}

#[test]
fn pins_that_do_not_fit_are_refused_with_the_tokens_they_need() {
    let pins = [lines()[..900].to_owned()];
    with_job(&lines(), 60, None, &pins, |job| {
        let refused = Extractive(Plain).condense(job).unwrap_err();
        let CondenseError::PinsExceedTarget { needed, target } = refused else { panic!("{refused}") };
        assert!(target == 60 && needed > 60);
    });
}

#[test]
fn every_unit_gets_a_reason() {
    with_job(&lines(), 200, Some("harbour"), &[], |job| {
        let (_, reasons) = Extractive(Plain).condense_explained(job).unwrap();
        let reasons = reasons.unwrap();
        assert!(reasons.iter().all(|unit| !unit.reasons.is_empty()));
        assert!(reasons.windows(2).all(|pair| pair[0].bytes.end == pair[1].bytes.start));
    });
}

#[test]
fn error_lines_precede_whatever_answers_the_query() {
    let line = |at: usize| match at {
        300 => "src/core/alloc.c:212:17: error: no member named capcity\n".to_owned(),
        _ if at.is_multiple_of(4) => format!("ld -o out/part{at} obj/file{at}.o\n"),
        _ => format!("cc -c src/file{at}.c -o build/file{at}.o\n"),
    };
    let text: String = (0..600).map(line).collect();
    for query in ["build", "out", "file17", "why", "does the build of file17 fail"] {
        with_job(&text, 300, Some(query), &[], |job| {
            let draft = Extractive(Plain).condense(job).unwrap();
            assert!(draft.text.contains("capcity"), "{query}: {}", draft.text);
        });
    }
}

#[test]
fn an_error_seen_before_is_shown_again() {
    let line = |run: usize, at: usize| match at {
        20 => "E       AssertionError: assert 0.31 == 0.32\n".to_owned(),
        21..24 => format!("inv = invoice(lines, {at}) # the same in every run of this test\n"),
        _ => format!("recalculated line {at} in {}\n", at * 7919 + run),
    };
    let text = |run| (0..120).map(|at| line(run, at)).collect::<String>();
    let mut before = SeenText::default();
    before.add(&text(1));
    let seen: Vec<_> = before.repeats(&text(2), 0).into_iter().map(|repeat| repeat.bytes).collect();
    assert_eq!(text(2)[seen[0].clone()].lines().count(), 4, "the error and what follows it");
    with_job(&text(2), 300, None, &[], |job| {
        let view = ReaderView { seen: &seen, ..ReaderView::default() };
        let known = KnownText::from_request(job.request);
        let draft = Extractive(Plain).condense(&Job::new(job.request, known).in_view(view)).unwrap();
        assert!(draft.text.contains("AssertionError") && !draft.text.contains("inv ="), "{}", draft.text);
    });
}

#[test]
fn errors_that_differ_in_digits_alone_are_all_shown_while_they_are_few() {
    let text = |errors: usize| -> String {
        let line = |at: usize| format!("   Compiling part-{at} v1.0.{at} in the workspace\n");
        let error = |at: usize| format!("error: could not compile unit {at}\n");
        (0..600)
            .map(|at| line(at) + &if at % 6 == 0 && at / 6 < errors { error(at) } else { String::new() })
            .collect()
    };
    let shown = |errors: usize| {
        let mut count = 0;
        with_job(&text(errors), 1_000, None, &[], |job| {
            let condensed = Extractive(Plain).condense(job).unwrap().text;
            count = condensed.lines().filter(|line| line.starts_with("error:")).count();
        });
        count
    };
    assert_eq!((shown(3), shown(10)), (3, 10));
    assert!((10..40).contains(&shown(100)), "{}", shown(100));
}
