//! The REST API and the dashboard over the state of a gateway. Knows neither how requests are served nor how they are
//! decided.

use std::sync::Arc;

use larder_gateway::app::App;
use larder_gateway::routes::Extra;

pub mod api;
pub mod dashboard;

/// Everything that a gateway serves for people and their scripts.
pub fn routes(app: &Arc<App>) -> Extra {
    Extra {
        private: api::router(Arc::clone(app)).merge(dashboard::router(Arc::clone(app))),
        public: dashboard::open_router(Arc::clone(app)),
    }
}
