//! Two engines in one process share neither threads nor caches nor stores.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;

use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_store::{Store, StoreOptions};
use larder_testkit::layers::every_layer;
use larder_testkit::scripted::ScriptedModel;
use larder_text::tokens::Counter;
use tempfile::TempDir;

fn engine() -> (Engine, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap().user("tester").unwrap();
    let models = every_layer(Arc::new(ScriptedModel::new([])), dir.path(), 8_000, 1_000);
    let project = Project::builtin(&Counter::cl100k());
    (Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap(), dir)
}

#[test]
fn counters_of_two_engines_are_independent() {
    let ((one, _dir), (other, _other_dir)) = (engine(), engine());
    for model in ["gpt-4o", "gpt-4-turbo", "claude-opus-4-7", "an unknown model"] {
        let (counter, again) = (one.counter_of_id(model), one.counter_of_id(model));
        assert!(std::ptr::eq(counter.workers(), again.workers()), "{model}: one engine has one pool");
        assert!(!std::ptr::eq(counter.workers(), other.counter_of_id(model).workers()), "{model}");
    }
}
