//! Captures log events for a test.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The fields of one event by name, as they would be written; `message` is its message.
pub type Fields = BTreeMap<String, String>;

/// Every event, in order. To be handed to [`tracing::subscriber::set_default`], which looks at one thread only.
#[derive(Debug, Clone, Default)]
pub struct Events(Arc<Mutex<Vec<Fields>>>);

impl Events {
    /// The events with this message.
    pub fn named(&self, message: &str) -> Vec<Fields> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|fields| fields.get("message").is_some_and(|own| own == message)).cloned().collect()
    }
}

impl Subscriber for Events {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut written = Written::default();
        event.record(&mut written);
        self.0.lock().unwrap().push(written.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Written(Fields);

impl Visit for Written {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}
