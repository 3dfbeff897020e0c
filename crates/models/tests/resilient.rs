//! Retries, pauses and the circuit breaker, on a clock that only moves when everyone waits.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at what it does not expect"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use larder_models::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError};
use larder_models::resilient::{BreakerPolicy, Jitter, Resilient, RetryPolicy};
use larder_testkit::scripted::{Act, ScriptedModel, text};
use larder_text::message::{Message, Role};
use tokio::time::{Instant, advance};

const SECOND: Duration = Duration::from_secs(1);

fn name() -> String {
    "m".to_owned()
}

fn server() -> ModelError {
    ModelError::Server { provider: name(), status: 500, detail: "oops".to_owned() }
}

fn limited(retry_after: Option<Duration>) -> ModelError {
    ModelError::RateLimited { provider: name(), detail: "slow".to_owned(), retry_after }
}

fn fail(error: ModelError) -> Act {
    Act::Say(Err(error))
}

fn say(words: &str) -> Act {
    Act::Say(Ok(text(words)))
}

fn policy() -> RetryPolicy {
    RetryPolicy {
        retries: 2,
        backoff: SECOND,
        max_backoff: 8 * SECOND,
        max_retry_after: 30 * SECOND,
        breaker: BreakerPolicy { failures: 3, open_for: 60 * SECOND },
    }
}

struct Rig {
    script: Arc<ScriptedModel>,
    model: Resilient<dyn ChatModel>,
}

fn rig_with(policy: RetryPolicy, jitter: Jitter, acts: impl IntoIterator<Item = Act>) -> Rig {
    let script = Arc::new(ScriptedModel::new(acts));
    let model = Resilient::new("m", Arc::clone(&script) as Arc<dyn ChatModel>, policy, jitter);
    Rig { script, model }
}

fn rig(acts: impl IntoIterator<Item = Act>) -> Rig {
    rig_with(policy(), Arc::new(|| 0.5), acts)
}

fn request() -> ChatRequest {
    ChatRequest::new("model-1", vec![Message::text(Role::User, "q")], 10, 100 * SECOND)
}

async fn streamed(model: &Resilient<dyn ChatModel>) -> Result<ChatReply, ModelError> {
    let asked = request();
    let events: Vec<ChatEvent> = model.stream(&asked).try_collect().await?;
    match events.last() {
        Some(ChatEvent::Done(reply)) => Ok(reply.clone()),
        other => panic!("a stream ends with Done, not {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn retryable_errors_are_retried_with_backoff() {
    for stream in [false, true] {
        let rig = rig([fail(server()), fail(limited(None)), say("yes")]);
        let start = Instant::now();
        let reply = if stream { streamed(&rig.model).await } else { rig.model.chat(&request()).await };
        assert_eq!(reply, Ok(text("yes")));
        assert_eq!(start.elapsed().as_millis(), 500 + 1_000, "half of 1 s, half of 2 s");
        assert_eq!(rig.script.requests().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn retries_are_limited_and_the_last_error_is_returned() {
    let rig = rig([fail(limited(None)), fail(limited(None)), fail(server())]);
    assert_eq!(rig.model.chat(&request()).await, Err(server()));
    assert_eq!(rig.script.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_that_could_be_billed_twice_are_not_retried() {
    let text = |detail: &str| detail.to_owned();
    for error in [
        ModelError::Timeout { provider: name(), after: SECOND },
        ModelError::Protocol { provider: name(), detail: text("broke off") },
        ModelError::Auth { provider: name(), status: 401, detail: text("no") },
        ModelError::BadRequest { provider: name(), status: 400, detail: text("no") },
        ModelError::WindowExceeded { provider: name(), detail: text("too long") },
        ModelError::NotConfigured { provider: name(), detail: text("no key") },
    ] {
        let rig = rig([fail(error.clone()), fail(error.clone())]);
        assert_eq!(rig.model.chat(&request()).await, Err(error.clone()));
        assert_eq!(streamed(&rig.model).await, Err(error));
        assert_eq!(rig.script.requests().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_not_repeated_once_it_has_begun() {
    let rig = rig([Act::Break(vec!["Half a".to_owned()], server()), say("never")]);
    let asked = request();
    let events: Vec<_> = rig.model.stream(&asked).collect().await;
    assert_eq!(events, [Ok(ChatEvent::Text("Half a".to_owned())), Err(server())]);
    assert_eq!(rig.script.left(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_provider_may_ask_for_a_pause_within_reason() {
    let patient = rig([fail(limited(Some(20 * SECOND))), say("yes")]);
    let start = Instant::now();
    assert_eq!(patient.model.chat(&request()).await, Ok(text("yes")));
    assert_eq!(start.elapsed(), 20 * SECOND);

    let too_long = rig([fail(limited(Some(31 * SECOND))), say("never")]);
    assert_eq!(too_long.model.chat(&request()).await, Err(limited(Some(31 * SECOND))));
}

#[tokio::test(start_paused = true)]
async fn pauses_are_spread_over_their_whole_range_and_capped() {
    let draws = Arc::new(Mutex::new(vec![1.0, 0.0, 1.0, f64::NAN, 7.0]));
    let jitter: Jitter = Arc::new(move || draws.lock().expect("one thread").pop().expect("enough draws"));
    let policy =
        RetryPolicy { retries: 5, breaker: BreakerPolicy { failures: 9, open_for: SECOND }, ..policy() };
    let acts = std::iter::repeat_n(fail(server()), 5).chain([say("yes")]);
    let rig = rig_with(RetryPolicy { max_backoff: 3 * SECOND, ..policy }, jitter, acts);
    let start = Instant::now();
    assert_eq!(rig.model.chat(&request()).await, Ok(text("yes")));
    // 7.0 counts as 1 (1 s), NaN as 0, then 1 of 3 s (capped), 0 and 1 of 3 s.
    assert_eq!(start.elapsed(), 7 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_is_for_all_attempts_together() {
    let hang = rig([Act::Hang, Act::Hang]);
    let asked = ChatRequest { timeout: 5 * SECOND, ..request() };
    let start = Instant::now();
    let late = ModelError::Timeout { provider: name(), after: 5 * SECOND };
    assert_eq!(hang.model.chat(&asked).await, Err(late.clone()));
    assert_eq!(start.elapsed(), 5 * SECOND);
    let events: Vec<_> = hang.model.stream(&asked).collect().await;
    assert_eq!(events, [Err(late.clone())]);

    let slow = rig([Act::After(4 * SECOND, Box::new(fail(server()))), Act::Hang]);
    let start = Instant::now();
    assert_eq!(slow.model.chat(&asked).await, Err(late));
    assert_eq!(start.elapsed(), 5 * SECOND);

    let no_time_left =
        rig([Act::After(Duration::from_millis(4_800), Box::new(fail(server()))), say("never")]);
    assert_eq!(
        no_time_left.model.chat(&asked).await,
        Err(server()),
        "a pause that ends too late is not begun"
    );

    let endless = ChatRequest { timeout: Duration::MAX, ..request() };
    assert_eq!(rig([say("yes")]).model.chat(&endless).await, Ok(text("yes")));
}

#[tokio::test(start_paused = true)]
async fn the_breaker_opens_probes_and_closes() {
    let broken = ModelError::Protocol { provider: name(), detail: "garbage".to_owned() };
    let acts = std::iter::repeat_n(fail(broken.clone()), 4).chain([say("back"), say("well")]);
    let rig = rig(acts);
    for _ in 0..3 {
        assert_eq!(rig.model.chat(&request()).await, Err(broken.clone()));
    }
    let open = |retry_in| Err(ModelError::BreakerOpen { provider: name(), failures: 3, retry_in });
    assert_eq!(rig.model.chat(&request()).await, open(60 * SECOND));
    advance(59 * SECOND).await;
    assert_eq!(streamed(&rig.model).await, open(SECOND));
    assert_eq!(rig.script.requests().len(), 3, "nothing was sent");

    advance(SECOND).await;
    assert_eq!(rig.model.chat(&request()).await, Err(broken), "the probe fails");
    assert!(matches!(rig.model.chat(&request()).await, Err(ModelError::BreakerOpen { failures: 4, .. })));
    advance(60 * SECOND).await;
    assert_eq!(streamed(&rig.model).await, Ok(text("back")), "the probe succeeds");
    assert_eq!(rig.model.chat(&request()).await, Ok(text("well")));
}

#[tokio::test(start_paused = true)]
async fn one_probe_at_a_time_and_a_cancelled_one_lets_the_next_try() {
    let timeout = ModelError::Timeout { provider: name(), after: SECOND };
    let rig = rig(std::iter::repeat_n(fail(timeout), 3).chain([Act::Hang, say("back")]));
    for _ in 0..3 {
        let _ = rig.model.chat(&request()).await;
    }
    advance(60 * SECOND).await;
    let asked = request();
    {
        let mut probe = rig.model.stream(&asked);
        assert!(futures::poll!(probe.next()).is_pending());
        let refused = rig.model.chat(&asked).await;
        assert!(
            matches!(refused, Err(ModelError::BreakerOpen { retry_in: Duration::ZERO, .. })),
            "{refused:?}"
        );
    }
    assert_eq!(rig.model.chat(&asked).await, Ok(text("back")));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_is_not_out() {
    let refusal = ModelError::BadRequest { provider: name(), status: 400, detail: "no".to_owned() };
    let rig = rig(std::iter::repeat_n(fail(refusal.clone()), 10).chain([say("yes")]));
    for _ in 0..10 {
        assert_eq!(rig.model.chat(&request()).await, Err(refusal.clone()));
    }
    assert_eq!(rig.model.chat(&request()).await, Ok(text("yes")));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_counts_as_a_failure() {
    let broken = ModelError::Protocol { provider: name(), detail: "broke off".to_owned() };
    let rig = rig(std::iter::repeat_n(Act::Break(vec!["Half".to_owned()], broken), 3));
    for _ in 0..3 {
        assert!(streamed(&rig.model).await.is_err());
    }
    assert!(matches!(streamed(&rig.model).await, Err(ModelError::BreakerOpen { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_falls_silent_counts_as_a_failure() {
    let rig = rig(std::iter::repeat_n(Act::Hang, 3));
    let asked = ChatRequest { timeout: SECOND, ..request() };
    for _ in 0..3 {
        let events: Vec<_> = rig.model.stream(&asked).collect().await;
        assert_eq!(events, [Err(ModelError::Timeout { provider: name(), after: SECOND })]);
    }
    assert!(matches!(rig.model.chat(&asked).await, Err(ModelError::BreakerOpen { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_stopped_waiting_is_not_asked_again() {
    for status in [504, 524] {
        let late = ModelError::Server { provider: name(), status, detail: "timeout".to_owned() };
        let rig = rig([fail(late.clone()), say("billed twice")]);
        assert_eq!(rig.model.chat(&request()).await, Err(late));
        assert_eq!(rig.script.requests().len(), 1, "whether the model went on is not known");
    }
}
