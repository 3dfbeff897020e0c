//! What somebody wants who writes before a conversation is open (R4-7.25).

use futures::future::{BoxFuture, FutureExt};
use larder_engine::executor::{Meter, ModelSet, ProgressObserver, SpendingOnly};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_text::words::is_blank;
use serde::Serialize;
use serde_json::Value;

use crate::calls::TurnCall;
use crate::conversation::Conversations;
use crate::error::ConversationError;
use crate::kind::{Action, Block, ConversationType, Gives, Trigger};
use crate::prepare::stages;
use crate::reply::spent;

/// What takes the place of the stage among the costs.
const START: &str = "start";

/// What a message before any conversation led to.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Started {
    /// What the person wants, as data.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub data: Value,
    /// The answer, which belongs to no conversation.
    pub text: String,
    /// The calls that were made.
    pub calls: Vec<TurnCall>,
}

impl Conversations {
    /// Answers a message that comes before a conversation of this type is open, by the type's action for that. Nothing of it
    /// is part of a conversation.
    ///
    /// # Errors
    /// The type does not exist or has no such action, the ceiling of the day is reached, or a model or the store failed.
    pub fn start<'a>(
        &'a self,
        kind: &'a str,
        text: &'a str,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<Started, ConversationError>> {
        async move {
            if is_blank(text) {
                return Err(ConversationError::Empty);
            }
            let loaded = self.types.find(kind)?;
            let kind = &loaded.kind;
            let (mut name, mut action) = start_of(kind).ok_or_else(|| ConversationError::NoAction {
                name: START.to_owned(),
                help: format!("type {} has no action on `start`; begin a conversation", kind.name),
            })?;
            self.require_money(loaded, None)?;
            let open = self.store().list()?.iter().filter(|one| one.kind == kind.name).count();
            let process = format!("{}\nConversations of this kind that are open: {open}", stages(kind, None));
            let mut started = Started { data: Value::Null, text: String::new(), calls: Vec::new() };
            let mut result = None;
            loop {
                let texts = [(Block::Process, Some(process.clone())), (Block::Result, result.take())];
                let read = texts.into_iter().filter(|(block, _)| action.reads.contains(block));
                let documents = read.filter_map(|(block, text)| {
                    Some(InputDocument::whole(block.as_str(), block.as_str(), text?))
                });
                let input = RunInput {
                    query: Some(text.to_owned()),
                    documents: documents.collect(),
                    tags_read: Some(kind.fields.tags()),
                    ..RunInput::default()
                };
                let quiet = SpendingOnly(observer);
                let is_read = matches!(action.gives, Gives::Reply | Gives::Draft);
                let meter = Meter::new(if is_read { observer } else { &quiet }, None, None);
                let ended = self.engine.run(&action.recipe, &input, &meter).await;
                let total = meter.total();
                self.store().add_start_cost(&kind.name, &spent(START, name, &total.usage, total.cost))?;
                let outcome = ended?;
                started.calls.push(TurnCall::new(name, &outcome));
                match action.gives {
                    Gives::Reply | Gives::Draft => {
                        result = Some(outcome.reply.clone());
                        started.text = outcome.reply;
                    }
                    Gives::Data | Gives::Verdict => {
                        result = Some(outcome.output.to_string());
                        started.data = outcome.output;
                    }
                }
                match action.then.as_ref().and_then(|then| kind.actions.get_key_value(then)) {
                    Some(next) if started.calls.len() <= kind.actions.len() => (name, action) = next,
                    _ => return Ok(started),
                }
            }
        }
        .boxed()
    }

    /// The most tokens of what [`start`](Self::start) asks for, and every model that it may ask.
    ///
    /// # Errors
    /// The type does not exist.
    pub fn start_budget(&self, kind: &str) -> Result<(u64, ModelSet), ConversationError> {
        let kind = &self.types.find(kind)?.kind;
        let first = start_of(kind).map(|(_, action)| action);
        Ok(self.budget_of(kind.chain(first)))
    }
}

/// The action of a type for messages before a conversation.
fn start_of(kind: &ConversationType) -> Option<(&String, &Action)> {
    kind.actions.iter().find(|(_, action)| action.on.contains(&Trigger::Start))
}
