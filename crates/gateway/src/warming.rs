//! Models that stay loaded are loaded when the gateway starts, so that no request waits for it (R0-3.2, R0-20.2). Knows
//! no request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::app::App;

/// How many models are to be warm, and how many are.
#[derive(Debug, Default)]
pub struct Warmth {
    models: AtomicUsize,
    warm: AtomicUsize,
    failed: AtomicUsize,
}

impl Warmth {
    /// What `/readyz` says: numbers, since anyone may ask.
    pub(crate) fn shown(&self) -> Value {
        let number = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        json!({"models": number(&self.models), "warm": number(&self.warm), "failed": number(&self.failed)})
    }
}

/// Asks each model that stays loaded, and costs nothing, for one token, one after another. A failure is logged: the
/// model is loaded by the first request then.
pub(crate) async fn warm(app: Arc<App>) {
    let engine = app.current().shared().clone();
    let hot = engine.hot_models();
    app.warmth.models.store(hot.len(), Ordering::Relaxed);
    for name in hot {
        let began = Instant::now();
        let asked = tokio::select! {
            asked = engine.warm(&name) => asked,
            () = app.stop.cancelled() => return,
        };
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match asked {
            Ok(()) => {
                app.warmth.warm.fetch_add(1, Ordering::Relaxed);
                tracing::info!(model = name, duration_ms, "model_warmed");
            }
            Err(error) => {
                app.warmth.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(model = name, duration_ms, %error, "model_not_warmed");
            }
        }
    }
}
