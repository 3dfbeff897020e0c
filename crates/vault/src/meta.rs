//! The frontmatter of Larder's documents, and their tags.

use serde_json::{Value, json};

use super::note::Frontmatter;
use super::problem::{ParseProblem, ParsedDocument};
use super::value::{DocumentTime, Intent, Scope, Score, words};

words! {
    /// The kind of a document's content.
    ContentKind, "context, research or pricing":
    /// The context of a turn.
    Context = "context",
    /// Research results.
    Research = "research",
    /// Prices.
    Pricing = "pricing",
}

words! {
    /// Larder's own tags; people may add others.
    Tag, "turn, context, research, metrics or decision":
    /// A document of a turn.
    Turn = "turn",
    /// A `context.md`.
    Context = "context",
    /// Research output.
    Research = "research",
    /// Durations and costs.
    Metrics = "metrics",
    /// A decision.
    Decision = "decision",
}

/// The frontmatter of one of Larder's documents. Other keys are preserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// A unique id, such as `turn_000815_context`.
    pub id: String,
    /// The turn it belongs to; `None` for documents that outlive a turn.
    pub turn_number: Option<u32>,
    /// The user's id, under this key's historical name (C85).
    pub session_id: String,
    /// A topic such as `commerce.laptop`.
    pub topic: Option<String>,
    /// The intent of the query.
    pub intent: Option<Intent>,
    /// The kinds of content in the document.
    pub content_types: Vec<ContentKind>,
    /// Its scope.
    pub scope: Scope,
    /// Its quality.
    pub quality: Option<Score>,
    /// When it was created.
    pub created_at: DocumentTime,
    /// Tags for filtering in Obsidian, without `#`.
    pub tags: Vec<String>,
}

impl Meta {
    /// The frontmatter of a document of a turn, such as `context` of turn 815.
    pub fn for_turn(turn: u32, kind: &str, user: &str, created_at: DocumentTime) -> Self {
        Self {
            id: format!("{}_{kind}", super::turn_name(turn)),
            turn_number: Some(turn),
            session_id: user.to_owned(),
            topic: None,
            intent: None,
            content_types: Vec::new(),
            scope: Scope::User,
            quality: None,
            created_at,
            tags: vec![Tag::Turn.to_string()],
        }
    }

    /// The same frontmatter with content types and tags.
    #[must_use]
    pub fn holding(mut self, kinds: &[ContentKind], tags: &[Tag]) -> Self {
        self.content_types.extend(kinds);
        self.tags.extend(tags.iter().map(Tag::to_string));
        self
    }

    /// Sets the keys of these values; all other bytes are preserved. A missing value does not remove its key.
    pub fn write_into(&self, front: &mut Frontmatter) {
        let words = |kinds: &[ContentKind]| -> Value { kinds.iter().map(|kind| json!(kind)).collect() };
        let entries = [
            ("id", Some(json!(self.id))),
            ("turn_number", self.turn_number.map(Value::from)),
            ("session_id", Some(json!(self.session_id))),
            ("topic", self.topic.as_ref().map(|topic| json!(topic))),
            ("intent", self.intent.map(|intent| json!(intent))),
            ("content_types", Some(words(&self.content_types))),
            ("scope", Some(json!(self.scope))),
            ("quality", self.quality.map(|quality| json!(quality))),
            ("created_at", Some(json!(self.created_at))),
            ("tags", Some(json!(self.tags))),
        ];
        for (key, value) in entries {
            if let Some(value) = value.filter(|value| front.get(key).as_ref() != Some(value)) {
                front.set(key, &value);
            }
        }
    }

    /// Creates new frontmatter.
    pub fn write(&self) -> Frontmatter {
        let mut front = Frontmatter::default();
        self.write_into(&mut front);
        front
    }

    /// Reads the frontmatter; there is no value without `id`, `session_id` and `created_at`.
    pub fn read(front: &Frontmatter) -> ParsedDocument<Self> {
        let mut keys = MetaKeys { front, problems: Vec::new() };
        let meta = keys.meta();
        ParsedDocument::new(meta, keys.problems)
    }
}

struct MetaKeys<'f> {
    front: &'f Frontmatter,
    problems: Vec<ParseProblem>,
}

impl MetaKeys<'_> {
    fn meta(&mut self) -> Option<Meta> {
        let id = self.required::<String>("id");
        let session_id = self.required::<String>("session_id");
        let created_at = self.required::<DocumentTime>("created_at");
        Some(Meta {
            turn_number: self.value("turn_number"),
            topic: self.value("topic"),
            intent: self.value("intent"),
            content_types: self.value("content_types").unwrap_or_default(),
            scope: self.value("scope").unwrap_or(Scope::User),
            quality: self.value("quality"),
            tags: self.value("tags").unwrap_or_default(),
            id: id?,
            session_id: session_id?,
            created_at: created_at?,
        })
    }

    fn required<T: serde::de::DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        if self.front.line_of(key).is_none() {
            self.problems.push(ParseProblem::new(1, format!("the frontmatter has no {key}")));
        }
        self.value(key)
    }

    fn value<T: serde::de::DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let line = self.front.line_of(key)?;
        match self.front.get(key) {
            None => {
                self.problems.push(ParseProblem::new(line, format!("{key} cannot be read: it is not YAML")))
            }
            Some(Value::Null) => {}
            Some(value) => match serde_json::from_value(value) {
                Ok(value) => return Some(value),
                Err(error) => self.problems.push(ParseProblem::new(line, format!("{key}: {error}"))),
            },
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::note::Note;
    use super::super::quote::tests::hostile;
    use super::*;

    fn meta() -> Meta {
        let at = "2026-01-05T10:00:00Z".parse().unwrap();
        let mut meta = Meta::for_turn(815, "context", "henry", at)
            .holding(&[ContentKind::Context, ContentKind::Pricing], &[Tag::Context]);
        meta.topic = Some("commerce.laptop".to_owned());
        meta.intent = Some(Intent::Transactional);
        meta.quality = Score::new(0.92);
        meta
    }

    #[test]
    fn frontmatter_has_the_keys_of_the_format() {
        assert_eq!(
            meta().write().as_str(),
            "---\nid: turn_000815_context\nturn_number: 815\nsession_id: henry\ntopic: commerce.laptop\n\
             intent: transactional\ncontent_types: [context, pricing]\nscope: user\nquality: 0.92\n\
             created_at: 2026-01-05T10:00:00Z\ntags: [turn, context]\n---\n"
        );
    }

    #[test]
    fn edited_frontmatter_is_read_as_far_as_it_goes() {
        let text =
            "---\nid: x\nsession_id: 7\nquality: 3\nmood: odd\ncreated_at: 2026-01-05T10:00:00Z\n---\n";
        let reading = Meta::read(&Note::parse(text).frontmatter);
        assert_eq!(reading.value, None);
        let problems: Vec<String> = reading.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "line 3: session_id: invalid type: integer `7`, expected a string",
                "line 4: quality: expected a number from 0 to 1, found \"3\""
            ]
        );
        let mut front = Note::parse(text).frontmatter;
        meta().write_into(&mut front);
        assert!(front.as_str().contains("mood: odd\n"));
        assert_eq!(Meta::read(&front).value, Some(meta()));
    }

    proptest! {
        #[test]
        fn every_meta_is_read_back(id in hostile(), user in hostile(), topic in proptest::option::of(hostile()), tags in proptest::collection::vec(hostile(), 0..3), quality in proptest::option::of(0.0..=1.0_f64)) {
            let meta = Meta { id, session_id: user, topic, tags, quality: quality.and_then(Score::new), ..meta() };
            let front = meta.write();
            let reading = Meta::read(&Note::parse(&format!("{}body", front.as_str())).frontmatter);
            prop_assert_eq!(reading.problems, []);
            prop_assert_eq!(reading.value, Some(meta));
        }
    }
}
