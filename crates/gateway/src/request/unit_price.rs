//! What a request costs that is billed by the picture or the character, as far as the request states what its price
//! depends on; and its charge. Knows the bodies of these routes and the catalogue.

use std::sync::Arc;

use bytes::Bytes;
use larder_engine::blocking;
use larder_engine::executor;
use larder_models::catalogue::{Catalogue, Kind};
use larder_models::chat::Usage;
use larder_models::price::{Price, Usd};
use larder_text::json::{Document, Value};

use crate::app::Snapshot;
use crate::error::RequestError;
use crate::request::active::ActiveRequest;
use crate::request::passthrough::forbidden;

/// The most pictures that any provider makes at once.
const MAX_PICTURES: u64 = 100;

/// Reserves and records what a request for pictures or speech costs, if it can be known; a caller with a budget is refused
/// otherwise.
///
/// # Errors
/// If the caller has a budget that does not cover it, or the price cannot be known.
pub async fn charge(
    active: &mut ActiveRequest,
    current: &Arc<Snapshot>,
    path: &str,
    body: &Bytes,
) -> Result<(), RequestError> {
    let (snapshot, path, body) = (Arc::clone(current), path.to_owned(), body.clone());
    let pricing = blocking::run(move || {
        let engine = snapshot.shared();
        let count = |model: &str, text: &str| engine.counter_of_id(model).count(text);
        of_request(&path, &body, engine.models.table().catalogue(), count)
    });
    let price = pricing.await.map_err(|error| RequestError::bug(&error.to_string()))?;
    let cost = match price {
        Ok(cost) => cost,
        Err(_) if active.caller.limits.is_unlimited() => return Ok(()),
        Err(why) => {
            let words = format!("this key has a budget, and what this request costs is not known: {why}");
            return Err(forbidden(&words));
        }
    };
    if !active.caller.limits.is_unlimited() {
        let (of, by) = (Arc::clone(active.app()), active.caller.clone());
        let reserved = blocking::run(move || of.auth.reserve(&by, 0, cost));
        let reserved = reserved.await.map_err(|error| RequestError::bug(&error.to_string()))?;
        let now = active.app().store.now();
        active.budget.hold(reserved.map_err(|error| RequestError::from_auth(&error, now))?);
    }
    // Whatever becomes of the reply, the provider may have done the work.
    active.record_run(executor::Spending { usage: Usage::default(), cost: Some(cost) }, (0, Usd::default()));
    Ok(())
}

/// The provider has refused, so it bills nothing.
pub fn release(active: &mut ActiveRequest) {
    active.record_run(executor::Spending::default(), (0, Usd::default()));
}

/// The price of a request to one of these routes.
///
/// # Errors
/// What the request has to state, or that the catalogue has no price, as the end of a sentence.
fn of_request(
    path: &str,
    body: &[u8],
    catalogue: &Catalogue,
    count: impl Fn(&str, &str) -> usize,
) -> Result<Usd, String> {
    let json = std::str::from_utf8(body).ok().and_then(|text| Document::parse_request(text).ok());
    let document = json.as_ref().ok_or("its body is not JSON")?;
    let member = |name: &str| document.root().given(name);
    let model = member("model").and_then(Value::text).ok_or("it names no model")?;
    if path == "/v1/audio/speech" {
        let input = member("input").and_then(Value::text).ok_or("it has no `input`")?;
        let characters = u64::try_from(input.chars().count()).unwrap_or(u64::MAX);
        let price = unit(catalogue, &model, Kind::Speech).ok_or_else(|| unpriced(&model, "characters"))?;
        return Ok(price.of(characters));
    }
    let pictures = match member("n") {
        None => 1,
        Some(n) => {
            n.as_u64().filter(|n| (1..=MAX_PICTURES).contains(n)).ok_or("`n` is not a number of pictures")?
        }
    };
    let (price, prompt) = match unit(catalogue, &model, Kind::Image) {
        Some(price) => (price, Usd::default()),
        None => {
            let stated = |name: &str| member(name).and_then(Value::text).filter(|text| text != "auto");
            let (size, quality) = (stated("size"), stated("quality"));
            let (Some(size), Some(quality)) = (size, quality) else {
                return Err(format!(
                    "the price of {model:?} may depend on `size` and `quality`, which it does not state"
                ));
            };
            let id = format!("{quality}/{}/{model}", size.replacen('x', "-x-", 1));
            let price = unit(catalogue, &id, Kind::Image)
                .ok_or_else(|| unpriced(&model, &format!("pictures of size {size} and quality {quality}")))?;
            // Such a model also bills the tokens of the prompt.
            let text = member("prompt").and_then(Value::text).unwrap_or_default();
            let tokens = u64::try_from(count(&model, &text)).unwrap_or(u64::MAX);
            let row = catalogue.exactly(&model).ok_or_else(|| unpriced(&model, "the prompt"))?;
            let input = row.prices("standard", tokens).and_then(|tier| tier.input);
            let input = input.ok_or_else(|| unpriced(&model, "the prompt"))?;
            (price, Price::from_picos(input).of(tokens))
        }
    };
    Ok(price.of(pictures) + prompt)
}

/// The price of one unit of a model, under exactly this id.
fn unit(catalogue: &Catalogue, id: &str, kind: Kind) -> Option<Price> {
    let row = catalogue.exactly(id).filter(|row| row.kind == kind)?;
    row.unit.map(Price::from_picos)
}

fn unpriced(model: &str, what: &str) -> String {
    format!("the catalogue has no price of {model:?} for {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(path: &str, body: &str) -> Result<String, String> {
        of_request(path, body.as_bytes(), &Catalogue::built_in(), |_, text| text.len())
            .map(|usd| usd.to_string())
    }

    #[test]
    fn pictures_cost_by_size_and_quality_and_speech_by_character() {
        let image = |body: &str| price("/v1/images/generations", body);
        let stated = r#"{"model": "gpt-image-1", "prompt": "0123456789", "n": 2, "size": "1024x1536", "quality": "high"}"#;
        assert_eq!(image(stated).unwrap(), "0.50005", "two at 25 cents, ten tokens at 5 dollars a million");
        for (without, words) in [
            (stated.replace("high", "auto"), "depend on `size` and `quality`"),
            (stated.replace(", \"size\": \"1024x1536\"", ""), "depend on `size` and `quality`"),
            (stated.replace("1024x1536", "7x7"), "no price"),
            (stated.replace("\"n\": 2", "\"n\": \"2\""), "`n` is not a number"),
            (stated.replace("gpt-image-1", "nobody-knows"), "no price"),
            ("--boundary".to_owned(), "not JSON"),
        ] {
            let refused = image(&without).unwrap_err();
            assert!(refused.contains(words), "{without}: {refused}");
        }
        assert_eq!(image(r#"{"model": "xai/grok-imagine-image", "prompt": "x", "n": 3}"#).unwrap(), "0.06");
        let speech = |body: &str| price("/v1/audio/speech", body);
        assert_eq!(
            speech(r#"{"model": "tts-1", "voice": "alloy", "input": "Zwölf €."}"#).unwrap(),
            "0.00012"
        );
        assert!(speech(r#"{"model": "gpt-4o-mini-tts", "input": "x"}"#).unwrap_err().contains("no price"));
        assert!(speech(r#"{"model": "tts-1"}"#).unwrap_err().contains("`input`"));
    }
}
