//! What is decided before a reply is asked for: the stage, what rules find in the message, and what of the past is sent.

use larder_engine::inputs::{InputDocument, RunInput};
use larder_engine::routing::RouteInput;
use larder_store::{ConversationMessage, MemoryRecord};
use serde_json::Value;

use crate::blocks::{Block, BlockSources, blocks};
use crate::conversation::{Conversation, WindowRecord};
use crate::error::ConversationError;
use crate::intent::{self, Found};
use crate::kind::{Block as Input, ConversationType, Stage};
use crate::nearness::Near;
use crate::reading::SessionSummary;
use crate::reply::{line, past};
use crate::state::ParticipantState;
use crate::window::{Coverage, HistoryRules, PastMessage, SessionWindow, choose};

/// What is known before the reply is asked for.
pub(crate) struct Prepared<'k> {
    pub stage: &'k Stage,
    pub found: Found,
    /// The messages before this one.
    pub past: Vec<PastMessage>,
    pub window: SessionWindow,
    pub sources: BlockSources,
    pub blocks: Vec<Block>,
    pub record: WindowRecord,
    /// The recipe, which depends on the window of the model.
    pub recipe: String,
    /// The summary of the session, if it may be sent.
    pub summary: Option<Value>,
    /// What is looked for besides the words of the message.
    pub searches: Vec<String>,
    /// What of other sessions is in view, and by which consent.
    pub origins: Vec<MemoryRecord>,
}

impl Conversation {
    /// Everything that is decided before a model is asked; [`complete`](Self::complete) fills in the blocks.
    pub(crate) fn prepare(
        &self,
        message: &ConversationMessage,
        state: &ParticipantState,
    ) -> Result<Prepared<'_>, ConversationError> {
        let kind = &self.loaded.kind;
        let stage = state.stage(kind).ok_or_else(|| ConversationError::NoAside {
            name: state.aside.clone().unwrap_or_default(),
            help: format!("the type {} has no stage", kind.name),
        })?;
        let found = intent::find(&kind.intents, &message.text);
        let safety = kind.safety.from_intensity.is_some_and(|from| {
            found.intensity.is_some_and(|now| now >= from)
                || state.intensity().is_some_and(|last| last >= from)
        });
        let messages = self.all.store().messages_before(self.track(), message.session, message.turn)?;
        let past: Vec<PastMessage> = messages.iter().map(past).collect();
        let summary = if found.memory.is_some_and(intent::MemoryIntent::withholds) {
            None
        } else {
            self.summary(message.session)?
        };
        let covered = summary.as_ref().map(|summary| summary.covered(&messages));
        let mut window = choose(&past, covered, &HistoryRules::of(kind, stage, &kind.window), &found);
        let tokens = match &kind.small {
            Some(small) => {
                let routing = self.routing(state, found.intensity, safety);
                self.window_of(message, &window, routing, small.below)?
            }
            None => usize::MAX,
        };
        let (rules, recipe) = kind.for_window(tokens);
        if rules != kind.window {
            window = choose(&past, covered, &HistoryRules::of(kind, stage, &rules), &found);
        }
        let count = |wanted: fn(&Coverage) -> bool| window.coverage.iter().filter(|one| wanted(one)).count();
        let sent = past.iter().zip(&window.coverage).filter(|(_, covered)| **covered == Coverage::Sent);
        let sent = sent.map(|(message, _)| message);
        let is_long = |message: &&PastMessage| message.text.chars().nth(rules.message_chars).is_some();
        let record = WindowRecord {
            shortened: sent.clone().filter(is_long).map(|message| message.number).collect(),
            sent: sent.map(|message| message.number).collect(),
            summarized: count(|one| matches!(one, Coverage::Summarized)),
            withheld: count(|one| matches!(one, Coverage::Withheld(_))),
            intent: found.memory,
            watermark: summary.as_ref().map(|summary: &SessionSummary| summary.watermark),
            safety,
            ..WindowRecord::default()
        };
        Ok(Prepared {
            stage,
            found,
            past,
            window,
            sources: BlockSources::default(),
            blocks: Vec::new(),
            record,
            recipe: recipe.to_owned(),
            summary: summary.map(|summary| summary.text),
            searches: Vec::new(),
            origins: Vec::new(),
        })
    }

    /// Fills in the blocks before the message.
    pub(crate) fn complete(
        &self,
        message: &ConversationMessage,
        state: &ParticipantState,
        prepared: &mut Prepared<'_>,
        near: Near,
    ) -> Result<(), ConversationError> {
        self.gather(message, state, prepared, near)?;
        prepared.blocks = blocks(&self.loaded.kind.fields, state, &prepared.sources);
        Ok(())
    }

    /// The tokens of the window of the model that answers: of the layer that the router chooses for what would be sent to a
    /// large one, or of the recipe's. It is asked only where models that it may choose lie on both sides of `below`.
    fn window_of(
        &self,
        message: &ConversationMessage,
        window: &SessionWindow,
        routing: RouteInput,
        below: usize,
    ) -> Result<usize, ConversationError> {
        let (engine, name) = (&self.all.engine, &self.loaded.kind.recipe);
        let recipe = engine.find(name, None).map_err(|source| engine.missing(name, source))?;
        let preset = routing.preset.as_ref().or(recipe.router.as_ref());
        let preset = preset.and_then(|name| engine.project.routers().get(name));
        let tiers = preset.into_iter().flat_map(|preset| &preset.tiers).map(|tier| tier.layer);
        let layers = tiers.chain(preset.is_none().then_some(recipe.layer));
        let windows: Vec<usize> = layers
            .filter_map(|layer| engine.models.table().resolve(layer, None))
            .map(|model| model.spec.window)
            .collect();
        if let Some(&first) = windows.first()
            && windows.iter().all(|window| (*window < below) == (first < below))
        {
            return Ok(first);
        }
        let query = Some(message.text.clone());
        let input = RunInput { query, history: window.sent.clone(), routing, ..RunInput::default() };
        let layer = engine.route(recipe, &input).map_or(recipe.layer, |route| route.layer);
        Ok(engine.candidate(layer, None)?.spec.window)
    }

    /// The texts that blocks are made of, as far as the intents and the safety rules allow.
    fn gather(
        &self,
        message: &ConversationMessage,
        state: &ParticipantState,
        prepared: &mut Prepared<'_>,
        near: Near,
    ) -> Result<(), ConversationError> {
        let (kind, found) = (&self.loaded.kind, prepared.found);
        let mut pieces: Vec<&str> = Vec::new();
        let mut piece = |path: &Option<String>| {
            if let Some(text) =
                path.as_deref().map(|path| self.loaded.text(path)).filter(|text| !text.is_empty())
            {
                pieces.push(text.trim());
            }
        };
        if prepared.record.safety {
            piece(&kind.safety.text);
        }
        if found.asks_about_process {
            piece(&kind.pieces.process_overview);
        }
        if state.came_from.is_some() {
            piece(
                prepared
                    .stage
                    .transition
                    .as_ref()
                    .map_or(&kind.pieces.transition, |_| &prepared.stage.transition),
            );
        }
        if state.just_shared {
            piece(&kind.pieces.post_share);
        }
        if found.memory == Some(intent::MemoryIntent::AvoidRecall) {
            piece(&kind.pieces.avoid_recall);
        }
        if found.asks_to_remember {
            piece(&kind.pieces.memory_request);
        }
        prepared.sources.pieces = pieces.into_iter().map(str::to_owned).collect();
        if found.memory.is_some_and(intent::MemoryIntent::withholds) {
            return Ok(());
        }
        prepared.sources.summary = prepared.summary.take();
        self.recall(message, state, prepared, near)
    }

    /// The documents that an action reads, of what a reply has and of what it asks for besides.
    pub(crate) fn documents_of(
        &self,
        reads: &[Input],
        prepared: &Prepared<'_>,
        state: &ParticipantState,
        given: &[(Input, String)],
    ) -> Vec<InputDocument> {
        let own = |input: Input| match input {
            Input::Messages => {
                let lines = prepared.past.iter().map(|one| line(one.number, one.role, &one.text));
                Some(lines.collect::<Vec<_>>().join("\n"))
            }
            Input::Process => Some(self.process(state)),
            _ => prepared.blocks.iter().find(|block| block.input == input).map(|block| block.text.clone()),
        };
        let text = |input: Input| {
            let given = given.iter().find(|(name, _)| *name == input);
            given.map(|(_, text)| text.clone()).or_else(|| own(input))
        };
        let documents = reads.iter().filter_map(|&input| Some((input, text(input)?)));
        documents.map(|(input, text)| InputDocument::whole(input.as_str(), input.as_str(), text)).collect()
    }

    /// The stages of the main line, and which of them the participant is in.
    fn process(&self, state: &ParticipantState) -> String {
        let kind = &self.loaded.kind;
        stages(kind, state.stage(kind).map(|stage| stage.name.as_str()))
    }
}

/// The list of stages that participants see, with the current one marked.
pub(crate) fn stages(kind: &ConversationType, here: Option<&str>) -> String {
    let told = kind.stages.iter().filter_map(|stage| Some((stage, stage.about.as_deref()?)));
    let lines = told.map(|(stage, about)| {
        let mark = if Some(stage.name.as_str()) == here { " (here)" } else { "" };
        let number = stage.number.map(|number| format!("Stage {number}, ")).unwrap_or_default();
        format!("- {number}{}{mark}: {}", stage.name, about.trim())
    });
    lines.collect::<Vec<_>>().join("\n")
}
