//! Work that no one waits for goes behind calls that someone waits for where both ask one model (C57).

use std::time::Duration;

use larder_core::recipe::Layer;
use larder_store::ForegroundWork;
use tokio::time::Instant;

use crate::engine::Engine;

/// How often background work looks whether someone waits.
const PERIOD: Duration = Duration::from_millis(100);

/// The longest that a piece of background work lets others go first: traffic that never ends would hold it off for ever.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl Engine {
    /// Says that someone waits for what is done with this engine, if background work could be in its way.
    pub fn enter_foreground(&self) -> Option<ForegroundWork> {
        let shares = !self.is_background && self.shared_model().is_some();
        shares.then(|| self.store.store().enter_foreground()).flatten()
    }

    /// Whether background work would have to wait now.
    pub fn must_wait(&self) -> bool {
        self.is_background && self.shared_model().is_some() && self.lets_others_go_first()
    }

    /// Waits, in the background, until no one waits for the model that NERVES shares with MIND, or it has been long
    /// enough.
    pub(crate) async fn take_turn(&self, model: &str) -> Option<ForegroundWork> {
        if self.shared_model() != Some(model) {
            return None;
        }
        while self.is_background && self.lets_others_go_first() {
            tokio::time::sleep(PERIOD).await;
        }
        self.enter_foreground()
    }

    fn lets_others_go_first(&self) -> bool {
        self.patient_until.is_none_or(|end| Instant::now() < end) && self.store.store().is_in_foreground()
    }

    /// The model of MIND, if it is that of NERVES, too.
    fn shared_model(&self) -> Option<&str> {
        let table = self.models.table();
        let (mind, nerves) = (table.resolve(Layer::Mind, None)?, table.resolve(Layer::Nerves, None)?);
        (mind.name == nerves.name).then_some(mind.name)
    }
}
