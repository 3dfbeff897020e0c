//! Models that no setting describes: what the catalogue knows about them is what holds.

use larder_proxy::record::{Bill, Tokens};
use larder_testkit::stub::{Answer, StubServer};
use serde_json::json;

use crate::support::{Gateway, message, said};

/// A text of about this many tokens of o200k_base.
fn text(tokens: usize) -> String {
    "The lamp in the hall stands by the door. ".repeat(tokens / 10)
}

/// Sends a prompt of about `tokens` tokens to a model of a default server; what came of it.
async fn asked(model: &str, tokens: usize, max_tokens: u64) -> (u16, Tokens, Option<Bill>, String) {
    let usage = json!({"input_tokens": 1_000_000, "output_tokens": 100_000,
        "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0});
    let mut reply = message(json!([{"type": "text", "text": "hi"}]), "end_turn");
    reply["usage"] = usage;
    let provider = match model.starts_with("claude") {
        true => StubServer::start([Answer::json(200, &reply)]).await,
        false => StubServer::start([said("hi")]).await,
    };
    let address = provider.address();
    let settings = format!("[gateway]\nopenai = \"{address}/v1\"\nanthropic = \"{address}\"\n");
    let gateway = Gateway::with(provider, &settings).await;
    let body = json!({"model": model, "max_tokens": max_tokens,
        "messages": [{"role": "user", "content": text(tokens)}]});
    let response = match model.starts_with("claude") {
        true => gateway.messages(&body).await,
        false => gateway.chat(&body).await,
    };
    let (status, said) = (response.status().as_u16(), response.text().await.unwrap());
    if status == 200 {
        assert_eq!(gateway.last_sent()["messages"], body["messages"], "sent whole");
    }
    let (records, _) = gateway.stop().await;
    (status, records[0].summary.tokens, records[0].summary.bill, said)
}

#[tokio::test]
async fn a_model_that_no_setting_names_has_its_own_window_and_prices() {
    let (status, tokens, bill, _) = asked("claude-sonnet-4-5-20250929", 95_000, 32_000).await;
    assert_eq!((status, tokens.budget), (200, 200_000 - 32_000 - 10_000));
    assert!(tokens.before > 100_000, "more than a window of 128,000 would have left: {tokens:?}");
    assert_eq!(bill.unwrap().cost.to_string(), "4.5", "3 dollars and a tenth of 15");
    let (status, tokens, _, said) = asked("claude-sonnet-4-5-20250929", 130_000, 32_000).await;
    assert_eq!((status, tokens.budget), (400, 158_000), "{said}");
}

#[tokio::test]
async fn a_prompt_with_a_limit_of_its_own_may_fill_it_whatever_the_reply_asks_for() {
    for max_tokens in [1_000, 128_000] {
        let (status, tokens, ..) = asked("gpt-5.2", 240_000, max_tokens).await;
        assert_eq!((status, tokens.budget), (200, 272_000 - 13_600), "{max_tokens}");
    }
    let (status, tokens, ..) = asked("o3", 60_000, 100_000).await;
    assert_eq!((status, tokens.budget), (200, 200_000 - 100_000 - 10_000), "o3 shares its window");
}

#[tokio::test]
async fn a_tokenizer_that_is_not_public_is_no_reason_to_refuse_a_short_prompt() {
    let provider = StubServer::start([said("hi")]).await;
    let model = format!(
        "[models.gemini]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\nid = \"gemini-2.5-pro\"\nwindow = 16000\n",
        provider.address()
    );
    let gateway = Gateway::with(provider, &format!("{model}max_output = 8000\n")).await;
    let body = json!({"model": "gemini", "max_tokens": 4_000, "messages": [{"role": "user", "content": text(2_700)}]});
    assert_eq!(gateway.chat(&body).await.status(), 200);
    let (records, _) = gateway.stop().await;
    let charged = records[0].summary.tokens.before;
    assert!((2_700..2_700 * 3 / 2).contains(&charged), "{charged}");
}

#[tokio::test]
async fn what_settings_leave_out_of_a_model_comes_from_the_catalogue() {
    let provider = StubServer::start([]).await;
    let address = provider.address();
    let model = |name: &str, more: &str| {
        format!(
            "[models.{name}]\nprovider = \"openai\"\nbase_url = \"{address}/v1\"\nid = \"gpt-5.2\"\n{more}\n"
        )
    };
    let settings =
        model("bare", "") + &model("mine", "window = 100000\nmax_output = 1000\nprices = { input = 1 }");
    let gateway = Gateway::with(provider, &settings).await;
    let engine = gateway.app.current().engine(&gateway.store());
    let table = engine.models.table();
    let (bare, mine) = (table.model("bare").unwrap(), table.model("mine").unwrap());
    assert_eq!((bare.window, bare.input_limit, bare.max_output), (400_000, Some(272_000), 128_000));
    assert!(bare.prices.is_some());
    assert_eq!(
        (mine.window, mine.input_limit, mine.max_output),
        (100_000, None, 1_000),
        "settings come first"
    );
    assert_ne!(mine.prices, bare.prices);
}
