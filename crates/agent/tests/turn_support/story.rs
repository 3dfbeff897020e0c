//! Stories and replies from files, as `turns/README.md` describes them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use larder_agent::turn::TurnRequest;
use larder_engine::settings::TurnLimits;
use larder_store::TurnDraft;
use larder_text::hash::ContentHash;
use larder_vault::context::{
    self, CallStatus, Checklist, Claim, NextStep, Reflection, ReflectionDecision, ResolvedQuery, Synthesis,
    TaskPlan, UserQuery, Validation, Verdict,
};
use larder_vault::layout::{PagePlace, TurnPlace};
use larder_vault::{
    ContentKind, Document, FactRecords, Intent, Manifest, Meta, Mode, PageContent, PageStretch,
    PreferenceRecords, ReferenceType, Research, Response, Scope, Score, Tag, TurnMetadata, TurnMetrics,
    VaultPath, url_slug,
};
use regex::{Captures, Regex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tools::Given;
use super::{World, millis};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    pub recipe: String,
    pub reply: Value,
}

impl Reply {
    pub fn text(&self) -> String {
        match &self.reply {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Story {
    pub story: String,
    pub now: larder_vault::DocumentTime,
    pub user: String,
    pub session: Option<String>,
    pub mode: Mode,
    pub query: String,
    pub turn: u32,
    pub before: Before,
    pub tools: Vec<ToolCall>,
    pub limits: Limits,
    pub after: After,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Before {
    pub turns: Vec<Earlier>,
    pub memory: Memory,
    pub workspace: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Memory {
    pub preferences: Value,
    pub facts: Value,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Earlier {
    pub metadata: TurnMetadata,
    pub original: String,
    pub context: EarlierContext,
    pub research: Option<Research>,
    pub pages: Vec<Page>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct EarlierContext {
    pub resolved: String,
    pub plan_goal: String,
    pub topic: String,
    pub answer: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Page {
    pub manifest: Value,
    pub content: PageText,
    pub data: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct PageText {
    pub title: String,
    pub url: String,
    pub captured: larder_vault::DocumentTime,
    pub text: String,
    pub visible_elements: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub tool: String,
    pub arguments: Value,
    pub status: CallStatus,
    pub summary: String,
    pub content: Content,
    #[serde(default)]
    pub claims: Vec<Claim>,
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Repeated { repeat: String, times: usize },
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    iterations: Option<u32>,
    tool_calls: Option<u32>,
    revisions: Option<u32>,
    retries: Option<u32>,
    tokens: Option<u64>,
    time_ms: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    pub status: larder_vault::TurnStatus,
    pub route: Option<NextStep>,
    pub tools_called: Vec<String>,
    pub attempts: BTreeMap<String, usize>,
    pub iterations: Option<String>,
    pub tool_calls: Option<String>,
    pub unverified: bool,
    pub answer_has: Vec<String>,
    pub answer_lacks: Vec<String>,
    pub context_has: Vec<String>,
    pub context_lacks: Vec<String>,
    pub prompts_have: BTreeMap<String, Vec<String>>,
    pub prompts_lack: BTreeMap<String, Vec<String>>,
    pub question: Option<String>,
    pub overall_quality: Option<f64>,
    pub section4_tokens_at_most: Option<usize>,
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/turns")
}

/// Every flow by name, sorted.
pub fn flows() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root().join("stories"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

pub fn read(flow: &str) -> (Story, Vec<Reply>) {
    read_with(flow, |text| text)
}

/// The same in a vault that holds so many turns: its own follow them.
pub fn read_after(taken: u32, flow: &str) -> (Story, Vec<Reply>) {
    let number =
        Regex::new(r#"(?<before>\b[Tt]urn:? |"turn": |"turn_number": |turn_0*)(?<number>\d{1,3})\b"#)
            .unwrap();
    let (story, _) = read(flow);
    let own = story.before.turns.iter().map(|earlier| earlier.metadata.turn_number);
    let first = own.chain([story.turn]).min().unwrap();
    read_with(flow, |text| {
        let shifted = number.replace_all(&text, |found: &Captures<'_>| {
            let number = found["number"].parse::<u32>().unwrap() + taken + 1 - first;
            let before = found["before"].trim_end_matches('0');
            if before == "turn_" { format!("turn_{number:06}") } else { format!("{before}{number}") }
        });
        shifted.into_owned()
    })
}

fn read_with(flow: &str, change: impl Fn(String) -> String) -> (Story, Vec<Reply>) {
    let text = |folder: &str| {
        let path = root().join(folder).join(format!("{flow}.json"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        change(text)
    };
    let story =
        serde_json::from_str(&text("stories")).unwrap_or_else(|error| panic!("story {flow}: {error}"));
    (story, serde_json::from_str(&text("replies")).unwrap_or_else(|error| panic!("replies {flow}: {error}")))
}

impl Story {
    pub fn request(&self, world: &World) -> TurnRequest {
        let workspace = (!self.before.workspace.is_empty()).then(|| world.workspace());
        let session = self.session.clone();
        TurnRequest { query: self.query.clone(), mode: self.mode, session, workspace }
    }

    /// The world as it is before the turn.
    pub async fn world(&self) -> World {
        self.within(World::new(&self.user, &self.now.to_string(), self.mode)).await
    }

    /// What stands before the turn, in this world.
    pub async fn within(&self, mut world: World) -> World {
        for earlier in &self.before.turns {
            earlier.commit(&world).await;
        }
        self.remember(&world);
        for (name, text) in &self.before.workspace {
            let path = world.workspace().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        world.turns.limits = self.limits.over(world.turns.limits);
        world.tools.gives(self.tools.iter().map(ToolCall::given));
        world.clock.0.store(millis(self.now), std::sync::atomic::Ordering::SeqCst);
        self.take_numbers(&world);
        world
    }

    /// Takes the numbers that this user has used already.
    fn take_numbers(&self, world: &World) {
        let newest = world.turns.documents.catalog().recent_turns(1, None, None).unwrap();
        let held = newest.first().map_or(0, |row| row.number);
        assert!(held < self.turn, "the vault holds number {held} already");
        for _ in held + 1..self.turn {
            let draft =
                world.turns.documents.drafts().begin(self.mode, None, "a number that is taken").unwrap();
            world.turns.documents.drafts().discard(draft.number).unwrap();
        }
    }

    /// Adds to what is remembered.
    fn remember(&self, world: &World) {
        fn added<T: DeserializeOwned + Serialize + Default>(
            world: &World,
            kind: &str,
            given: &Value,
            add: impl Fn(&mut T, T),
        ) {
            let at = world.turns.documents.place().memory(kind);
            let files = world.turns.documents.files();
            let standing = files.read(&at).unwrap();
            let seen = standing.as_deref().map(ContentHash::new);
            let mut records: T =
                standing.map_or_else(T::default, |bytes| serde_json::from_slice(&bytes).unwrap());
            add(&mut records, serde_json::from_value(serde_json::json!({ kind: given })).unwrap());
            files.write(&at, larder_vault::write_json(&records).as_bytes(), seen).unwrap();
        }
        let Memory { preferences, facts } = &self.before.memory;
        let has_any = |records: &Value| records.as_array().is_some_and(|records| !records.is_empty());
        if has_any(preferences) {
            added::<PreferenceRecords>(world, "preferences", preferences, |all, given| {
                all.preferences.extend(given.preferences);
            });
        }
        if has_any(facts) {
            added::<FactRecords>(world, "facts", facts, |all, given| all.facts.extend(given.facts));
        }
    }
}

impl Limits {
    fn over(&self, limits: TurnLimits) -> TurnLimits {
        TurnLimits {
            iterations: self.iterations.unwrap_or(limits.iterations),
            tool_calls: self.tool_calls.unwrap_or(limits.tool_calls),
            revisions: self.revisions.unwrap_or(limits.revisions),
            retries: self.retries.unwrap_or(limits.retries),
            tokens: self.tokens.or(limits.tokens),
            time: self.time_ms.map(Duration::from_millis).or(limits.time),
            ..limits
        }
    }
}

impl ToolCall {
    fn given(&self) -> Given {
        let content = match &self.content {
            Content::Text(text) => text.clone(),
            Content::Repeated { repeat, times } => repeat.repeat(*times),
        };
        Given {
            tool: self.tool.clone(),
            arguments: self.arguments.clone(),
            status: self.status,
            summary: self.summary.clone(),
            content: content.into_bytes(),
            claims: self.claims.clone(),
            files: self.files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())).collect(),
            hangs: false,
        }
    }
}

impl Earlier {
    /// Commits the turn as if it had run then.
    async fn commit(&self, world: &World) {
        let number = self.metadata.turn_number;
        let place = world.turns.documents.place().turn(number);
        let at = self.metadata.created_at;
        world.clock.0.store(millis(at), std::sync::atomic::Ordering::SeqCst);
        let mut files = BTreeMap::new();
        let mut put = |path: VaultPath, text: String| {
            let name = path.as_str().strip_prefix(place.folder()).unwrap()[1..].to_owned();
            files.insert(name, text.into_bytes());
        };
        put(place.context(), self.context_text(&place, &self.metadata.user_id));
        put(place.metadata(), larder_vault::write_json(&self.metadata));
        put(
            place.metrics(),
            larder_vault::write_json(&TurnMetrics { turn_number: number, ..TurnMetrics::default() }),
        );
        let meta = |kind: &str| Meta::for_turn(number, kind, &self.metadata.user_id, at);
        put(
            place.response(),
            Document::new(
                meta("response"),
                Response { text: self.context.answer.clone(), sources: Vec::new() },
            )
            .write(&place.response()),
        );
        if let Some(research) = &self.research {
            let mut meta = meta("research").holding(&[ContentKind::Research], &[Tag::Research]);
            (meta.topic, meta.scope) = (Some(research.topic.clone()), Scope::New);
            put(place.research(), Document::new(meta, research.clone()).write(&place.research()));
            put(place.research_json(), larder_vault::write_json(research));
        }
        for page in &self.pages {
            page.write(&place.page(&page.content.url), &meta("page"), &mut put);
        }
        let draft = TurnDraft {
            number,
            place: place.clone(),
            mode: self.metadata.mode,
            session: self.metadata.session_id.clone(),
            query: self.original.clone(),
            created_at: at,
            phase: Some(7),
            state: Value::Null,
            files,
        };
        world.turns.documents.drafts().commit(&draft).unwrap();
    }

    fn context_text(&self, place: &TurnPlace, user: &str) -> String {
        let at = place.context();
        let score = Score::new(0.9).unwrap();
        let mut meta = Meta::for_turn(place.number(), "context", user, self.metadata.created_at)
            .holding(&[ContentKind::Context], &[Tag::Context]);
        (meta.topic, meta.intent) = (Some(self.context.topic.clone()), self.metadata.intent);
        let mut text = meta.write().as_str().to_owned();
        let query = UserQuery {
            original: self.original.clone(),
            resolved: Some(ResolvedQuery {
                query: (self.context.resolved != self.original).then(|| self.context.resolved.clone()),
                query_type: ReferenceType::GeneralQuestion,
                content_reference: None,
                reasoning: String::new(),
            }),
        };
        text += &context::append(&text, &query, &at);
        let reflection = Reflection {
            decision: ReflectionDecision::Proceed,
            confidence: score,
            is_action: false,
            is_follow_up: false,
            reasoning: "It is clear.".to_owned(),
            question: None,
            block: None,
        };
        text += &context::append(&text, &reflection, &at);
        let plan = TaskPlan {
            previous_failure: None,
            new_approach: None,
            goal: self.context.plan_goal.clone(),
            intent: self.metadata.intent.unwrap_or(Intent::Informational),
            confidence: Some(score),
            steps: Vec::new(),
            goals: Vec::new(),
            focus: None,
            next: NextStep::Synthesis,
            question: None,
            ticket: None,
        };
        text += &context::append(&text, &plan, &at);
        let answer =
            Synthesis { preview: self.context.answer.clone(), full: None, checklist: Checklist::default() };
        text += &context::append(&text, &answer, &at);
        let verdict = Validation {
            decision: Verdict::Approve,
            confidence: score,
            checks: Vec::new(),
            goals: Vec::new(),
            issues: Vec::new(),
            revision_hints: Vec::new(),
            suggested_fixes: Vec::new(),
            notes: String::new(),
            block: None,
        };
        let last = context::append(&text, &verdict, &at);
        text + &last
    }
}

impl Page {
    fn write(&self, place: &PagePlace, meta: &Meta, put: &mut impl FnMut(VaultPath, String)) {
        let mut manifest: Manifest = serde_json::from_value(self.manifest.clone()).unwrap();
        manifest.url_slug = url_slug(&self.content.url);
        put(place.manifest(), larder_vault::write_json(&manifest));
        let content = PageContent {
            title: self.content.title.clone(),
            url: self.content.url.clone(),
            captured: self.content.captured,
            original: None,
            text: vec![PageStretch { main: true, text: self.content.text.clone() }],
            visible_elements: self.content.visible_elements.clone(),
        };
        put(place.content(), Document::new(meta.clone(), content).write(&place.content()));
        if let Some(data) = &self.data {
            put(place.data(), larder_vault::write_json(data));
        }
    }
}
