//! The act of sharing: a preview that says what goes to whom and has it judged, and the act, which names the preview that was
//! confirmed. A statement for a comparison is released in the same way, to that purpose alone. What was shared once is the
//! same share however often it is sent.

use futures::future::{BoxFuture, FutureExt};
use larder_engine::executor::{ProgressObserver, SpendingOnly};
use larder_engine::inputs::InputDocument;
use larder_store::{
    ConversationMessage, ConversationRecord, MemoryChange, MemoryFilter, MemoryKind, Speaker, StoreError,
    Track,
};
use larder_text::hash::ContentHash;
use larder_text::tokens::Counter;
use larder_text::words::is_blank;
use serde::{Deserialize, Serialize};

use crate::actions::ActionResult;
use crate::conversation::{Conversation, Conversations};
use crate::error::ConversationError;
use crate::intent::matches_of;
use crate::kind::{Action, Block, Sight, Trigger};
use crate::memory::Share;
use crate::revise::last_said;
use crate::state::{Happened, ParticipantState};

/// The action that conditions of a type know as sharing.
pub const SHARE: &str = "share";
/// Hexadecimal digits of a confirmation.
const DIGITS: usize = 24;
/// What the check of language is asked for, where no action says it.
const JUDGE_QUERY: &str = "Decide whether this attacks the person who will read it.";

/// A text that a participant means to give.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewShare {
    /// The number of the message that it is from: the participant's own, or a reply with a draft. Default: the newest draft
    /// of the session or, with a text that is not from it, what the participant said last.
    #[serde(default)]
    pub message: Option<u64>,
    /// The text. Default: the draft of that reply, or all of the message.
    #[serde(default)]
    pub text: Option<String>,
    /// The participants who get it, by name.
    #[serde(default)]
    pub to: Vec<String>,
    /// In place of participants: the action that may read it once every participant has released something for it.
    #[serde(default)]
    pub purpose: Option<String>,
}

/// What would be given, before anyone sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SharePreview {
    /// The whole text.
    pub text: String,
    /// Who gets it.
    pub to: Vec<String>,
    /// What it is released for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The message that it is from.
    pub message: u64,
    /// What was judged of it.
    pub verdicts: Vec<Verdict>,
    /// Words of it that the reader may take as an attack, though nothing stops it: those that phrases of the type match, and
    /// those that a judge named without stopping the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What confirms exactly this text for exactly these. Only the newest preview can be confirmed.
    pub confirm: String,
}

/// What a judge says of a text that is about to be shared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Verdict {
    /// The action, or the recipe, that judged.
    pub by: String,
    /// Whether the text must not be shared as it is.
    pub stops: bool,
    /// The words that stop it.
    pub spans: Vec<String>,
    /// The text with only these changed; empty if there is none.
    pub suggestion: String,
}

/// What was given.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Shared {
    /// The share.
    pub share: Share,
    /// The stage in which the participant is now.
    pub stage: String,
    /// What the action gave that waited for this release, as the last of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ActionResult>,
}

/// The answer of a recipe that judges.
#[derive(Deserialize)]
struct Judged {
    attacks: bool,
    #[serde(default)]
    spans: Vec<String>,
    #[serde(default)]
    suggestion: String,
}

impl SharePreview {
    /// Whether it may be confirmed.
    pub fn may_be_shared(&self) -> bool {
        self.verdicts.iter().all(|verdict| !verdict.stops)
    }
}

impl Conversations {
    /// A conversation as this user sees it. Of other participants the state has what the type lets one see: the stage of
    /// the main line, and the texts of milestones.
    ///
    /// # Errors
    /// The user does not take part in it and did not begin it, or the store fails.
    pub fn show(&self, id: &str) -> Result<ConversationRecord, ConversationError> {
        let mut record = self.store().get(id)?;
        let user = self.engine.store.user();
        let own = record.participants.iter().find(|one| one.user == user).map(|one| one.name.clone());
        let (Some(own), Ok(loaded)) = (own, self.types.find(&record.kind)) else { return Ok(record) };
        let track = Track { conversation: id, participant: &own };
        let sees = |sight| loaded.kind.participants.sees.contains(&sight);
        let mut seen = Vec::new();
        if sees(Sight::Stage) {
            let first = loaded.kind.stages.first().map_or("", |stage| stage.name.as_str());
            for (name, stage) in self.store().values_of_others(track, "$.stage")? {
                seen.push((name, "stage", if stage.is_null() { first.into() } else { stage }));
            }
        }
        if sees(Sight::Milestones) {
            for (name, reached) in self.store().values_of_others(track, "$.milestones")? {
                let texts = reached.as_array().into_iter().flatten().map(|one| one["text"].clone());
                seen.push((name, "milestones", texts.collect()));
            }
        }
        for (name, key, value) in seen {
            let other = record.participants.iter_mut().find(|one| one.name == name && one.user != user);
            if let Some(other) = other {
                other.state[key] = value;
            }
        }
        Ok(record)
    }
}

impl Conversation {
    /// What a share would give to whom, and what the judges of the type say of it.
    ///
    /// # Errors
    /// The type does not let participants share, there is no such message, name or purpose, the text is empty, a judge gave
    /// no verdict, or the store fails.
    pub fn preview_share<'a>(
        &'a self,
        new: &'a NewShare,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<SharePreview, ConversationError>> {
        async move {
            let _lease = self.lease().await?;
            let (_, state) = self.standing()?;
            self.require_shareable(new, &state)?;
            let (message, text) = self.text_of(new)?;
            let verdicts = match new.purpose {
                None => self.judge(&text, &state, observer).await?,
                Some(_) => Vec::new(),
            };
            let warnings = self.warnings(&text, &verdicts);
            let all = serde_json::json!([self.id, self.participant, message, text, new.to, new.purpose]);
            let mut confirm = ContentHash::new(all.to_string().as_bytes()).to_hex();
            confirm.truncate(DIGITS);
            let (to, purpose) = (new.to.clone(), new.purpose.clone());
            let preview = SharePreview { text, to, purpose, message, verdicts, warnings, confirm };
            let (_, mut state) = self.standing()?;
            state.preview = Some(preview.clone());
            self.all.store().set_state(self.track(), &serde_json::to_value(&state).unwrap_or_default())?;
            Ok(preview)
        }
        .boxed()
    }

    /// The preview that waits to be confirmed.
    ///
    /// # Errors
    /// The store fails.
    pub fn preview(&self) -> Result<Option<SharePreview>, ConversationError> {
        Ok(self.standing()?.1.preview)
    }

    /// Gives what was previewed; the same one again is the share that there is. Where it was the last statement that an
    /// action waited for, that action runs.
    ///
    /// # Errors
    /// `confirm` is not that of the newest preview, a judge stops it, or the store fails. If the action fails, what was
    /// released stays released, and the action can be asked for.
    pub fn share<'a>(
        &'a self,
        confirm: &'a str,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<Shared, ConversationError>> {
        async move {
            let _lease = self.lease().await?;
            let kind = &self.loaded.kind;
            let (_, mut state) = self.standing()?;
            let id = format!("share-{confirm}");
            let filter =
                MemoryFilter { kind: Some(MemoryKind::Share), id: Some(&id), ..MemoryFilter::default() };
            if let Some(given) = self.all.store().memory().list(&filter)?.pop() {
                return Ok(Shared { share: Share::read(&given), stage: self.stage_of(&state), result: None });
            }
            let held = state.preview.take().filter(|held| held.confirm == confirm);
            let held = held.ok_or(ConversationError::NotConfirmed)?;
            if !held.may_be_shared() {
                let help = "a judge stops it as it is; change the text, and preview that".to_owned();
                return Err(not_shared(help));
            }
            let counter = Counter::cl100k();
            let purpose = held.purpose.as_deref();
            let record = self.memory(&counter).sharing(id, held.message, &held.text, &held.to, purpose)?;
            let share = Share::read(&record);
            let others = self.stages_of_others()?;
            state.just_shared |= purpose.is_none();
            state.act(kind, Happened { action: Some(purpose.unwrap_or(SHARE)), others: &others });
            let saved = serde_json::to_value(&state).unwrap_or_default();
            let states = vec![(self.id.clone(), self.participant.clone(), saved)];
            let change = MemoryChange { put: vec![record], states, ..MemoryChange::default() };
            self.all.store().memory().apply(&change)?;
            let ready = self.released_actions()?;
            let result = match purpose.filter(|purpose| ready.iter().any(|name| name == purpose)) {
                Some(purpose) => Some(self.act_within(purpose, None, observer).await?),
                None => None,
            };
            let (_, state) = self.standing()?;
            Ok(Shared { share, stage: self.stage_of(&state), result })
        }
        .boxed()
    }

    fn stage_of(&self, state: &ParticipantState) -> String {
        state.stage(&self.loaded.kind).map(|stage| stage.name.clone()).unwrap_or_default()
    }

    /// Fails unless this can be shared now with whom it names.
    fn require_shareable(&self, new: &NewShare, state: &ParticipantState) -> Result<(), ConversationError> {
        let kind = &self.loaded.kind;
        let refused = |name: &str, help: String| ConversationError::NoAction { name: name.to_owned(), help };
        if !kind.participants.sees.contains(&Sight::Shared) {
            return Err(refused(
                SHARE,
                format!("participants of type {} see nothing of each other", kind.name),
            ));
        }
        match &new.purpose {
            Some(purpose) if !new.to.is_empty() => {
                Err(refused(purpose, "name participants or a purpose, not both".to_owned()))
            }
            Some(purpose) => {
                if self.purposes_in(state).any(|name| name == purpose) {
                    return Ok(());
                }
                Err(refused(
                    purpose,
                    "no action of this stage waits for statements under this name".to_owned(),
                ))
            }
            None if new.to.is_empty() => Err(refused(SHARE, "name the participants who get it".to_owned())),
            None => {
                let others = self.others()?;
                let Some(name) = new.to.iter().find(|name| !others.contains(name)) else { return Ok(()) };
                let reason = "not another participant of this conversation";
                let name = name.chars().take(80).collect();
                Err(StoreError::InvalidName { what: "participant", name, reason }.into())
            }
        }
    }

    /// The actions of the participant's stage that wait for a statement of every participant.
    ///
    /// # Errors
    /// The store fails.
    pub fn purposes(&self) -> Result<Vec<String>, ConversationError> {
        let (_, state) = self.standing()?;
        Ok(self.purposes_in(&state).map(str::to_owned).collect())
    }

    fn purposes_in(&self, state: &ParticipantState) -> impl Iterator<Item = &str> {
        let kind = &self.loaded.kind;
        let stage = state.stage(kind);
        let waits = move |action: &Action| {
            action.on.contains(&Trigger::Released) && stage.is_some_and(|stage| action.fits(stage))
        };
        kind.actions.iter().filter(move |(_, action)| waits(action)).map(|(name, _)| name.as_str())
    }

    /// Words that the reader of a text may take as an attack. A verdict that stops it names its own.
    fn warnings(&self, text: &str, verdicts: &[Verdict]) -> Vec<String> {
        let named = verdicts.iter().filter(|verdict| !verdict.stops).flat_map(|verdict| &verdict.spans);
        let safety = &self.loaded.kind.safety;
        let matched = matches_of(&safety.attack_phrases, &safety.attack_phrases_not_with, text).into_iter();
        let mut warnings: Vec<String> = Vec::new();
        for words in matched.map(str::to_owned).chain(named.cloned()) {
            if !warnings.contains(&words) {
                warnings.push(words);
            }
        }
        warnings
    }

    /// The text that is to be shared, and the message that it is from.
    fn text_of(&self, new: &NewShare) -> Result<(u64, String), ConversationError> {
        let message = match new.message {
            Some(number) => number,
            None => {
                let messages = self.messages(None)?;
                match (self.newest_draft(&messages), &new.text) {
                    (Some((number, draft)), Some(text)) if draft.contains(text.trim()) => number,
                    (Some((number, _)), None) => number,
                    // What was said last was said to the assistant alone, and is offered to nobody by itself.
                    (None, None) => {
                        return Err(not_shared("there is no draft in this session: give the text"));
                    }
                    // A changed draft of an opening, to which the participant has said nothing yet.
                    (draft, Some(_)) => {
                        let said = last_said(&messages).map(|message| message.number);
                        let drafted = draft.map(|(number, _)| number);
                        said.or(drafted)
                            .ok_or_else(|| not_shared("say something first: what is shared comes from it"))?
                    }
                }
            }
        };
        let source = self.message(message)?;
        let own = match source.speaker {
            Speaker::Participant => source.text,
            Speaker::Assistant => self.record(message)?.draft.unwrap_or_default(),
        };
        let text = new.text.clone().unwrap_or(own);
        if is_blank(&text) {
            return Err(ConversationError::Empty);
        }
        // It is part of every prompt of those who get it.
        let most = self.loaded.kind.window.message_chars;
        if text.chars().nth(most).is_some() {
            let help = format!(
                "the text has {} characters, and at most {most} can be given at once; name the part that matters as `text`",
                text.chars().count()
            );
            return Err(not_shared(help));
        }
        Ok((message, text))
    }

    /// The newest draft of the assistant among the messages of a session, with the number of its message.
    pub fn newest_draft(&self, messages: &[ConversationMessage]) -> Option<(u64, String)> {
        let mut written = messages.iter().rev().filter(|message| message.speaker == Speaker::Assistant);
        written.find_map(|message| Some((message.number, self.record_of(message).draft?)))
    }

    /// Has a text judged by every action before sharing, and by the check of language.
    async fn judge(
        &self,
        text: &str,
        state: &ParticipantState,
        observer: &dyn ProgressObserver,
    ) -> Result<Vec<Verdict>, ConversationError> {
        let kind = &self.loaded.kind;
        let Some(stage) = state.stage(kind) else { return Ok(Vec::new()) };
        let before = kind.actions.iter();
        let before = before.filter(|(_, action)| action.on.contains(&Trigger::Share) && action.fits(stage));
        let mut judges: Vec<(&str, &str, &str)> = before
            .map(|(name, action)| (name.as_str(), action.recipe.as_str(), action.about.as_str()))
            .collect();
        if let Some(attacks) = &kind.safety.attacks
            && judges.iter().all(|(_, recipe, _)| recipe != attacks)
        {
            judges.push((attacks, attacks, JUDGE_QUERY));
        }
        if !judges.is_empty() {
            self.require_money()?;
        }
        let mut verdicts = Vec::new();
        for (name, recipe, about) in judges {
            let documents = vec![InputDocument::whole(Block::Draft.as_str(), Block::Draft.as_str(), text)];
            let quiet = SpendingOnly(observer);
            let outcome = self.act_alone(name, recipe, (about, documents), stage, &quiet).await?;
            self.charge(name, stage, &outcome, Vec::new())?;
            let judged: Result<Judged, _> = serde_json::from_value(outcome.output);
            let Judged { attacks, spans, suggestion } = judged.map_err(|_| {
                not_shared(format!("`{name}` gave no verdict, without which nothing is shared; try again"))
            })?;
            verdicts.push(Verdict { by: name.to_owned(), stops: attacks, spans, suggestion });
        }
        Ok(verdicts)
    }
}

/// Why nothing is shared, and what to do.
fn not_shared(help: impl Into<String>) -> ConversationError {
    ConversationError::NoAction { name: SHARE.to_owned(), help: help.into() }
}
