//! Phase 7: saving by rule, before any model is asked for a summary (C5, R1-3.78). When the commit is
//! through, the turn is whole; what follows it can fail without costing anything.

use larder_condense::sections::Sections;
use larder_vault::links::DualLink;
use larder_vault::{Backlink, Meta, Note, Response, TurnMetadata, TurnMetrics, TurnStatus, VaultPath};
use serde_json::{Value, json};

use super::TurnOutcome;
use super::error::TurnError;
use super::event::TurnEvent;
use super::machine::Machine;
use super::state::{Ending, Step};

/// What the runs of the turn read, and what gathering considered; beside the files that the layout names.
const RECEIPTS: &str = "receipts.json";
/// Picodollars of a millionth of a dollar.
const PICOS_PER_MICRO: u64 = 1_000_000;
/// Characters of an answer that stand for a turn until it is summarized.
const INTERIM_SUMMARY: usize = 240;
/// The last phase.
const LAST: u8 = Step::Save.phase();

impl Machine<'_> {
    /// Ends the turn: its answer is told, its documents are completed and committed.
    pub(super) async fn save(mut self) -> Result<TurnOutcome, TurnError> {
        let began = self.clock.now();
        let (number, name) = (LAST, Step::Save.name().to_owned());
        self.tell(&TurnEvent::Phase { number, name, attempt: 1 });
        let lost = || Ending::Failed { reason: "the turn came to no end".to_owned() };
        let ending = self.state.ending.clone().unwrap_or_else(lost);
        self.tell_ending(&ending);
        self.complete(&ending);
        self.turns.documents.drafts().commit(&self.draft)?;
        self.committed = true;
        self.note_turn(&ending);
        let millis = self.clock.millis_since(began);
        self.tell(&TurnEvent::PhaseDone { number, tokens: 0, millis, text: "saved".to_owned() });
        let outcome = self.outcome(ending);
        self.tell(&TurnEvent::Finished {
            status: outcome.status,
            unverified: outcome.unverified,
            tokens: self.state.tokens(),
            cost: outcome.cost,
            millis: outcome.latency_ms,
        });
        Ok(outcome)
    }

    fn tell_ending(&self, ending: &Ending) {
        match ending {
            Ending::Answer { text, .. } => self.tell(&TurnEvent::Answer { text: text.clone() }),
            Ending::Clarify { question } => self.tell(&TurnEvent::Clarify { question: question.clone() }),
            Ending::Failed { .. } => {}
        }
    }

    fn outcome(&mut self, ending: Ending) -> TurnOutcome {
        let status = status(&ending);
        let (mut answer, mut question, mut reason, mut is_unverified) = (None, None, None, false);
        match ending {
            Ending::Answer { text, unverified, note, .. } => {
                (answer, is_unverified, reason) = (Some(text), unverified, note);
            }
            Ending::Clarify { question: asked } => question = Some(asked),
            Ending::Failed { reason: why } => reason = Some(why),
        }
        TurnOutcome {
            turn: self.draft.number,
            folder: self.draft.place.folder().to_owned(),
            status,
            answer,
            question,
            reason,
            unverified: is_unverified,
            usage: self.state.usage,
            cost: self.state.cost,
            tool_calls: self.state.tool_calls,
            latency_ms: self.clock.spent(),
        }
    }

    /// Completes the draft: every file that the turn's folder will hold.
    fn complete(&mut self, ending: &Ending) {
        self.draft.phase = Some(LAST);
        self.write_response(ending);
        self.complete_frontmatter(ending);
        let metrics = self.metrics();
        self.write_json(&self.draft.place.metrics(), &metrics);
        let metadata = self.metadata(ending);
        self.write_json(&self.draft.place.metadata(), &metadata);
        if let Some(receipts) = VaultPath::new(&format!("{}/{RECEIPTS}", self.draft.place.folder())) {
            let ended = ended(ending);
            let value = json!({
                "turn_number": self.draft.number, "ended": ended, "considered": self.state.considered,
                "runs": self.state.receipts,
            });
            self.write_json(&receipts, &value);
        }
        self.draft.files.insert(super::machine::CONTEXT.to_owned(), self.context.clone().into_bytes());
    }

    /// `response.md` holds what the user got: the answer with its mark, or why there is none.
    fn write_response(&mut self, ending: &Ending) {
        let text = match ending {
            Ending::Answer { text, .. } => text.clone(),
            Ending::Failed { reason } if !self.state.attempts.is_empty() => {
                format!("> **No answer.** {}", reason.split_whitespace().collect::<Vec<_>>().join(" "))
            }
            Ending::Failed { .. } | Ending::Clarify { .. } => return,
        };
        self.write(&self.draft.place.response(), "response", Response(text));
    }

    /// The frontmatter of `context.md` says at the end what the turn was about. The sections stay as they are.
    fn complete_frontmatter(&mut self, ending: &Ending) {
        let end = Sections::parse(&self.context).frontmatter.end;
        let Some(mut meta) = Meta::read(&Note::parse(&self.context).frontmatter).value else { return };
        let plan = self.state.plan.as_ref();
        meta.topic = plan.and_then(|plan| plan.topic.clone());
        meta.intent = plan.map(|plan| plan.intent);
        if let Ending::Answer { quality, .. } = ending {
            meta.quality = *quality;
        }
        self.context.replace_range(..end, meta.write().as_str());
    }

    /// The entry of this turn in what it uses.
    pub(super) fn backlink(&self, section: &str) -> Backlink {
        let link = DualLink::new(self.at(), &larder_vault::turn_name(self.draft.number));
        Backlink { link, section: section.to_owned() }
    }

    fn metrics(&mut self) -> TurnMetrics {
        TurnMetrics {
            turn_number: self.draft.number,
            total_duration_ms: self.clock.spent(),
            total_tokens: self.state.tokens(),
            total_cost_microdollars: self.state.cost.map_or(0, |cost| cost.picos() / PICOS_PER_MICRO),
            tool_calls: u64::from(self.state.tool_calls),
            runs: self.state.runs.clone(),
        }
    }

    fn metadata(&mut self, ending: &Ending) -> TurnMetadata {
        let plan = self.state.plan.as_ref();
        TurnMetadata {
            turn_number: self.draft.number,
            user_id: self.turns.documents.user().to_owned(),
            session_id: self.draft.session.clone(),
            mode: self.draft.mode,
            status: status(ending),
            created_at: self.draft.created_at,
            finished_at: Some(self.clock.now()),
            query: self.resolved().to_owned(),
            summary: Some(interim_summary(ending)),
            topic: plan.and_then(|plan| plan.topic.clone()),
            intent: plan.map(|plan| plan.intent),
            quality: match ending {
                Ending::Answer { quality, .. } => *quality,
                Ending::Clarify { .. } | Ending::Failed { .. } => None,
            },
            unverified: matches!(ending, Ending::Answer { unverified: true, .. }),
            last_phase: Some(LAST),
            revisions: self.state.revisions,
            retries: self.state.retries,
        }
    }
}

pub(super) const fn status(ending: &Ending) -> TurnStatus {
    match ending {
        Ending::Answer { .. } => TurnStatus::Complete,
        Ending::Clarify { .. } => TurnStatus::Clarify,
        Ending::Failed { .. } => TurnStatus::Failed,
    }
}

/// How the turn ended, for its receipts.
fn ended(ending: &Ending) -> Value {
    match ending {
        Ending::Answer { unverified, note, .. } => {
            json!({"status": status(ending), "unverified": unverified, "reason": note})
        }
        Ending::Clarify { question } => json!({"status": status(ending), "question": question}),
        Ending::Failed { reason } => json!({"status": status(ending), "reason": reason}),
    }
}

/// What stands for a turn until a model has summarized it: the next turn may come before that.
fn interim_summary(ending: &Ending) -> String {
    let (before, text) = match ending {
        Ending::Answer { text, .. } => ("", text),
        Ending::Clarify { question } => ("Asked the user: ", question),
        Ending::Failed { reason } => ("No answer: ", reason),
    };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = words.char_indices().nth(INTERIM_SUMMARY).map(|(end, _)| end);
    match end {
        Some(end) => format!("{before}{}…", &words[..end]),
        None => format!("{before}{words}"),
    }
}
