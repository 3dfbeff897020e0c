//! Records read back as they were written, and say what their lists come to.
#![allow(clippy::unwrap_used, reason = "a test may stop and say why")]

use larder_proxy::record::{
    ByRendition, MAX_NAME_BYTES, NO_MODEL, OTHER_MODEL, Outcome, RequestRecord, RequestSummary, cut_name,
    saved,
};
use larder_testkit::records as fake;
use larder_text::price::Usd;

#[test]
fn a_record_reads_back_whole_or_as_its_head() {
    let exchange = fake::exchange("a", 1);
    let json = serde_json::to_string(&exchange).unwrap();
    assert_eq!(serde_json::from_str::<RequestRecord>(&json).unwrap(), exchange);
    assert_eq!(serde_json::from_str::<RequestSummary>(&json).unwrap(), exchange.summary);
}

#[test]
fn the_shape_counts_what_the_lists_hold() {
    let shape = fake::exchange("a", 1).summary.shape;
    assert_eq!(shape.parts, ByRendition { whole: 2, condensed: 1, pointer: 1, absent: 1 });
    assert_eq!(shape.tokens, ByRendition { whole: 1_100, condensed: 200, pointer: 40, absent: 0 });
    assert_eq!((shape.pointers, shape.compactions, shape.rehydrations, shape.epoch), (2, 1, 1, 1));
}

#[test]
fn what_is_not_sent_or_runs_dry_changes_no_form() {
    let compactions = |outcome: Outcome, dry_run: bool| {
        let RequestRecord { summary: mut head, window, compactions, rehydrations } = fake::exchange("a", 1);
        head.outcome = outcome;
        head.decision.as_mut().unwrap().dry_run = dry_run;
        let exchange = RequestRecord::new(head, window, compactions, rehydrations);
        assert_eq!(exchange.compactions.len(), 1, "the record still says what would have been done");
        exchange.summary.shape.compactions
    };
    assert_eq!((compactions(Outcome::Ok, false), compactions(Outcome::ClientGone, false)), (1, 1));
    assert_eq!((compactions(Outcome::Refused, false), compactions(Outcome::Ok, true)), (0, 0));
}

#[test]
fn savings_may_be_negative_and_names_are_cut_at_characters() {
    let (less, more) = (Usd::from_picos(500_000_000_000), Usd::from_picos(2_000_000_000_000));
    assert_eq!(saved(less, more), "1.5");
    assert_eq!(saved(more, less), "-1.5");
    assert_eq!(saved(less, less), "0");
    let name = "é".repeat(MAX_NAME_BYTES);
    assert_eq!(cut_name(&name).len(), MAX_NAME_BYTES);
    assert_eq!(cut_name(&format!("a{name}")).len(), MAX_NAME_BYTES - 1);
}

#[test]
fn a_model_outside_the_table_is_named_where_it_is_known_or_its_provider_confirmed_it() {
    let mut head = fake::exchange("a", 1).summary;
    assert_eq!((head.reported_model(), head.booked_model()), (Some("main"), "main"));
    let model = head.answered_by.as_mut().unwrap();
    (model.name, model.server) = ("gpt-4o".to_owned(), Some("openai".to_owned()));
    head.outcome = Outcome::UpstreamError;
    assert_eq!((head.reported_model(), head.booked_model()), (Some("gpt-4o"), "gpt-4o"));
    head.model_is_known = false;
    assert_eq!((head.reported_model(), head.booked_model()), (Some(OTHER_MODEL), OTHER_MODEL));
    head.outcome = Outcome::Ok;
    assert_eq!(head.reported_model(), Some("gpt-4o"));
    head.answered_by.as_mut().unwrap().name = "a word\nof the client's".to_owned();
    assert_eq!((head.reported_model(), head.booked_model()), (Some(OTHER_MODEL), OTHER_MODEL));
}

#[test]
fn a_request_without_a_model_is_booked_under_its_own_name_only_where_that_is_known() {
    let mut head = fake::exchange("a", 1).summary;
    (head.answered_by, head.model, head.recipe) =
        (None, "recipe/chat/typo".to_owned(), Some("chat/typo".to_owned()));
    (head.outcome, head.model_is_known) = (Outcome::Invalid, false);
    assert_eq!(head.reported_model(), None);
    assert_eq!((head.booked_model(), head.booked_recipe()), (OTHER_MODEL, Some(OTHER_MODEL)));
    head.model_is_known = true;
    assert_eq!((head.booked_model(), head.booked_recipe()), ("recipe/chat/typo", Some("chat/typo")));
    head.model = String::new();
    assert_eq!(head.booked_model(), NO_MODEL);
}
