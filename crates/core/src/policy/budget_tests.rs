//! The arithmetic of the policy over models of three sizes.

use super::{ContextBudgetPolicy, ModelProfile, PolicySettings, UNKNOWN_WINDOW};

/// A model, and what the policy makes of it with nothing set.
struct Case {
    window: usize,
    max_output: Option<usize>,
    floor: usize,
    reserve: usize,
    budget: usize,
    threshold: usize,
    /// The budget of a request that allows its answer 4,096 tokens.
    asked: usize,
}

const CASES: [Case; 3] = [
    // The figures of docs/guide/gateway.md.
    Case {
        window: 128_000,
        max_output: Some(16_384),
        floor: 6_400,
        reserve: 2_000,
        budget: 119_600,
        threshold: 95_680,
        asked: 117_504,
    },
    Case {
        window: 200_000,
        max_output: None,
        floor: 10_000,
        reserve: 2_000,
        budget: 188_000,
        threshold: 150_400,
        asked: 185_904,
    },
    // It answers less than the reserve, and nothing comes out even.
    Case {
        window: 8_191,
        max_output: Some(1_000),
        floor: 409,
        reserve: 1_000,
        budget: 6_782,
        threshold: 5_425,
        asked: 3_686,
    },
];

fn policy(case: &Case, settings: &PolicySettings) -> ContextBudgetPolicy {
    let model =
        ModelProfile { window: case.window, input_limit: None, max_output: case.max_output, cache: None };
    ContextBudgetPolicy::from_settings(settings, &model)
}

#[test]
fn what_a_window_leaves_a_prompt_is_worked_out_alike_for_every_model() {
    for case in &CASES {
        let (window, usual) = (case.window, policy(case, &PolicySettings::default()));
        assert_eq!(usual.window(), window);
        assert_eq!(usual.emergency_floor(), case.floor, "5 % of {window}");
        assert_eq!(usual.response_reserve(None), case.reserve, "min(reserve, max_output) of {window}");
        assert_eq!(usual.prompt_budget(None), case.budget, "{window}");
        assert_eq!(usual.trace_threshold(), case.threshold, "80 % of the budget of {window}");
        assert_eq!(usual.response_reserve(Some(4_096)), 4_096, "exactly what is asked (C34)");
        assert_eq!(usual.prompt_budget(Some(4_096)), case.asked, "{window}");
        assert_eq!(usual.prompt_budget(Some(usize::MAX)), 0, "{window}");

        let most = |most| PolicySettings { prompt_budget_override: Some(most), ..PolicySettings::default() };
        let lowered = policy(case, &most(case.budget - 1_000));
        assert_eq!(lowered.prompt_budget(None), case.budget - 1_000);
        assert_eq!(lowered.trace_threshold(), (case.budget - 1_000) * 80 / 100);
        let raised = policy(case, &most(case.budget + 1_000));
        assert_eq!(raised.prompt_budget(None), case.budget, "it only lowers");

        let bare = PolicySettings {
            emergency_floor: Some(0),
            trace_threshold_tokens: Some(7),
            ..PolicySettings::default()
        };
        assert_eq!(
            policy(case, &bare).prompt_budget(None),
            window - case.reserve,
            "no floor is a floor, too"
        );
        assert_eq!(policy(case, &bare).trace_threshold(), 7);
    }
}

#[test]
fn windows_beyond_all_measure_do_not_wrap_around() {
    let vast = Case { window: usize::MAX, max_output: None, ..CASES[0] };
    let policy = policy(&vast, &PolicySettings::default());
    assert!(policy.trace_threshold() <= policy.prompt_budget(None));
    assert!(policy.trace_threshold() > 0);
}

#[test]
fn a_window_that_nobody_knows_is_no_limit_until_something_stands_in_for_it() {
    let unknown = policy(&Case { window: UNKNOWN_WINDOW, ..CASES[0] }, &PolicySettings::default());
    assert!(unknown.is_unlimited());
    assert_eq!((unknown.prompt_budget(None), unknown.prompt_budget(Some(9))), (usize::MAX, usize::MAX));
    assert_eq!((unknown.trace_threshold(), unknown.emergency_floor()), (usize::MAX, 0));
    let learned = unknown.revised(&PolicySettings::default(), Some(CASES[0].window));
    assert_eq!((learned.is_unlimited(), learned.prompt_budget(None)), (false, CASES[0].budget));
    let stays = learned.revised(&PolicySettings::default(), Some(7));
    assert_eq!(stays.window(), CASES[0].window, "a known window is not learned");
    let most = PolicySettings { prompt_budget_override: Some(5_000), ..PolicySettings::default() };
    let lowered = unknown.revised(&most, None);
    assert_eq!((lowered.is_unlimited(), lowered.prompt_budget(None)), (false, 5_000));
}
