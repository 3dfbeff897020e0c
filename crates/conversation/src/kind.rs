//! The conversation type as written in `conversations/NAME.yaml`: data, and nothing that acts on it.
//!
//! Every number of a conversation is here. Doc comments are the descriptions in the schema for editors.

mod calls;
mod flow;
mod memory;
mod window;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde::Deserialize;
use serde_json::Value;

pub use self::calls::{Action, Block, Breaker, Call, CallPlan, CallTime, CallWhen, Gives, Trigger};
pub use self::flow::{Aside, Condition, FieldIs, Milestone, Stage, SummaryOverride, Transition};
pub use self::memory::{Category, Intent, IntentRules, MemoryRules};
pub use self::window::{Deepening, Depth, Limit, RetrievalRules, SmallWindow, SummaryRules, WindowRules};

/// How one kind of conversation is led: its stages, what of it is sent, what is remembered, and which calls it makes.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationType {
    /// Letters, digits, `_` and `-`; the stem of the file.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,100}$"))]
    pub name: String,
    /// What such a conversation is for.
    #[schemars(length(min = 1))]
    pub description: String,
    /// The recipe of the replies, of category `converse`. Each stage is one of its variants.
    pub recipe: String,
    /// Who speaks, and what they see of each other.
    #[serde(default)]
    pub participants: Participants,
    /// In order; a participant starts in the first.
    #[schemars(length(min = 1))]
    pub stages: Vec<Stage>,
    /// What is noted as reached, once for each participant.
    #[serde(default)]
    pub milestones: Vec<Milestone>,
    /// What is sent of the conversation.
    pub window: WindowRules,
    /// What changes for models with a small window.
    #[serde(default)]
    pub small: Option<SmallWindow>,
    /// When older messages are summarized.
    pub summary: SummaryRules,
    /// What is remembered.
    pub memory: MemoryRules,
    /// What a message may say about memory itself, and how that is found.
    #[serde(default)]
    pub intents: IntentRules,
    /// Where values are in a reply.
    #[serde(default)]
    pub fields: FieldRules,
    /// Texts that are sent only where they matter.
    #[serde(default)]
    pub pieces: Pieces,
    /// What a participant, a reply or an act of sharing can start, by name.
    #[serde(default)]
    pub actions: BTreeMap<String, Action>,
    /// The calls of a turn: which come before the reply, which behind it, and what guards them.
    pub calls: CallPlan,
    /// The preset by which the model of a reply is chosen; without one, the layer of the recipe answers.
    #[serde(default)]
    pub router: Option<String>,
    /// Checks of what is said.
    #[serde(default)]
    pub safety: SafetyRules,
    /// Ceilings on what is spent.
    #[serde(default)]
    pub ceilings: Ceilings,
}

/// Who speaks. Each participant has a private track and a stage of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Participants {
    /// The most there may be.
    #[schemars(range(min = 1, max = 8))]
    pub most: u8,
    /// What a participant sees of the others. What is not listed stays with its participant.
    #[serde(default)]
    #[schemars(extend("uniqueItems" = true))]
    pub sees: Vec<Sight>,
    /// The newest texts that others shared which are sent with each message; each is at most `window.message_chars` long.
    #[serde(default = "shown_shares")]
    #[schemars(range(min = 1, max = 100))]
    pub shown_shares: usize,
}

const fn shown_shares() -> usize {
    5
}

impl Default for Participants {
    fn default() -> Self {
        Self { most: 1, sees: Vec::new(), shown_shares: shown_shares() }
    }
}

/// What participants may see of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// The stage of the main line that another is in, where conversations are shown. No model is told.
    Stage,
    /// The milestones that another has reached, in the same places.
    Milestones,
    /// What another shared with the participant by an explicit act. Without this, nothing can be shared.
    Shared,
}

/// Where values are in a reply: fields `Name: value` in one of the recipe's tags.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FieldRules {
    /// The tag with the fields, which is hidden from participants.
    pub tag: Option<String>,
    /// The field with the intensity of feeling, from 1 to 10.
    pub intensity: Option<String>,
    /// The tag of a text that the participant may share.
    pub draft: Option<String>,
    /// The tag whose text names an action that takes the place of the reply.
    pub dispatch: Option<String>,
    /// The newest intensity is compared with the mean of so many before it.
    #[schemars(range(min = 1, max = 20))]
    pub trend_turns: usize,
    /// From this difference on, the trend is rising or falling; below it is stable.
    #[schemars(range(min = 1, max = 9))]
    pub trend_from: u8,
}

impl FieldRules {
    /// The tags of a reply that the type reads. What is in any other visible tag is text.
    pub(crate) fn tags(&self) -> Vec<String> {
        [&self.tag, &self.draft, &self.dispatch].into_iter().flatten().cloned().collect()
    }
}

impl Default for FieldRules {
    fn default() -> Self {
        Self { tag: None, intensity: None, draft: None, dispatch: None, trend_turns: 3, trend_from: 1 }
    }
}

/// Prompt files whose text opens the block before the user's message where it matters, so that neither the system prompt
/// nor the history changes when one appears. They are sent as they are, without templates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pieces {
    /// When the participant asks about the process or the stages (R4-2.9).
    pub process_overview: Option<String>,
    /// When the stage has just changed and the stage has no text of its own (R4-2.12).
    pub transition: Option<String>,
    /// When the participant has just shared something (R4-2.13).
    pub post_share: Option<String>,
    /// When nothing of the past may be brought up.
    pub avoid_recall: Option<String>,
    /// When the participant asks to remember or to forget something.
    pub memory_request: Option<String>,
    /// Where anything retrieved is sent: how to use it. The whole line, brackets included (R4-6.15).
    pub memory_guidance: Option<String>,
}

/// Checks of what is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SafetyRules {
    /// The intensity from which nothing is retrieved and the larger model answers with the safety text (R4-4.24).
    #[schemars(range(min = 1, max = 10))]
    pub from_intensity: Option<u8>,
    /// The prompt file with what the model is told then.
    pub text: Option<String>,
    /// The lowest tier of the router's preset that may answer then.
    pub tier: Option<String>,
    /// The recipe that judges whether a text attacks someone, before it is shared (R4-7.17).
    pub attacks: Option<String>,
    /// Phrases that may attack someone, in the form of those of `intents`. The preview of a text that has one shows the words
    /// that match, whatever the model says that judges it; it may be shared nevertheless.
    pub attack_phrases: Vec<String>,
    /// Words such as `not` with which such a phrase does not count: right before it, or among the words that ` … ` stands
    /// for.
    pub attack_phrases_not_with: Vec<String>,
}

/// Ceilings on what is spent, in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ceilings {
    /// For one conversation.
    #[schemars(range(min = 0.0))]
    pub per_conversation: Option<f64>,
    /// For one day of one user.
    #[schemars(range(min = 0.0))]
    pub per_day: Option<f64>,
}

impl ConversationType {
    /// The stage of this name.
    pub fn stage(&self, name: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name == name)
    }

    /// The stages that a session can begin in, besides the main line.
    pub fn asides(&self) -> impl Iterator<Item = &str> {
        self.stages.iter().filter(|stage| stage.aside != Aside::No).map(|stage| stage.name.as_str())
    }

    /// The rules for summaries of a session in this stage.
    pub fn summary_in(&self, stage: &Stage) -> SummaryRules {
        let SummaryRules { recipe, after_messages, after_tokens, again_after, keep, words } = &self.summary;
        let own = stage.summary.clone().unwrap_or_default();
        SummaryRules {
            recipe: own.recipe.unwrap_or_else(|| recipe.clone()),
            after_messages: own.after_messages.unwrap_or(*after_messages),
            after_tokens: own.after_tokens.or(*after_tokens),
            again_after: own.again_after.unwrap_or(*again_after),
            keep: own.keep.unwrap_or(*keep),
            words: own.words.unwrap_or(*words),
        }
    }

    /// The rules for the window of a model, and the recipe of the reply: those of `small` if its window is that small.
    pub fn for_window(&self, tokens: usize) -> (WindowRules, &str) {
        match &self.small {
            Some(small) if tokens < small.below => {
                (WindowRules { protected: small.protected, ..self.window }, &small.recipe)
            }
            _ => (self.window, &self.recipe),
        }
    }

    /// Whether the fields count of replies that this recipe writes.
    pub fn trusts_fields_of(&self, recipe: &str) -> bool {
        self.small.as_ref().is_none_or(|small| small.trusts_fields || small.recipe != recipe)
    }

    /// The JSON Schema of such a file.
    pub fn schema() -> Value {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let generator = settings.with_transform(RecursiveTransform(simplify)).into_generator();
        let mut schema = generator.into_root_schema_for::<Self>();
        schema.insert("title".to_owned(), "A conversation type of Larder".into());
        schema.to_value()
    }
}

/// Optional keys are left out rather than null, and line breaks of doc comments mean nothing.
fn simplify(schema: &mut schemars::Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    for key in ["default", "format"] {
        object.remove(key);
    }
    if let Some(Value::Array(forms)) = object.get_mut("anyOf") {
        forms.retain(|form| form.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = forms.as_mut_slice() {
            let only = std::mem::take(only);
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_mut_slice() {
            let only = only.take();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = without_citations(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
}

/// A text without the rows of requirements that it cites in parentheses, which say nothing to a user.
fn without_citations(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (") {
        let cites = ["R4-", "C", "N"].iter().any(|start| {
            after.strip_prefix(start).is_some_and(|id| id.starts_with(|c: char| c.is_ascii_digit()))
        });
        kept.push_str(before);
        match after.split_once(')').filter(|_| cites) {
            Some((_, behind)) => rest = behind,
            None => {
                kept.push_str(" (");
                rest = after;
            }
        }
    }
    kept + rest
}
