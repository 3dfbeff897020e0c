//! `ask`: answers a question over files, folders and stored texts, with the bytes behind every claim.

use larder_agent::ask::{AskAnswer, AskError, Asker, Question};
use larder_engine::executor::Meter;
use larder_engine::settings::{AskLimits, AskSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::McpCaller;
use super::super::progress::CallProgress;
use super::super::sources::CallError;
use super::{McpTool, Reading, missing};

/// The recipe that answers, unless the call names one.
const RECIPE: &str = "ask/answer";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    /// The question, as a full sentence.
    question: String,
    /// Pointers and paths of files and folders to read. Default: everything open to this server.
    #[serde(default)]
    sources: Vec<String>,
    /// The recipe that answers. Default: ask/answer.
    recipe: Option<String>,
    /// The most tokens that all model calls may use, prompts and replies; the limit of the server applies, too.
    max_tokens: Option<u64>,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Answered {
    /// The answer.
    answer: String,
    /// Whether the answer shares words with what it cites; for a quoted answer, whether it covers enough of the question.
    verified: bool,
    /// Its sentences, each with its source.
    claims: Vec<CitedSentence>,
    /// What was read.
    read: Reading,
    /// The steps a model took to find more.
    steps: Vec<String>,
    /// The run's record.
    run_id: String,
    /// The name of the model that answered; empty if the answer is quoted and no model was called.
    model: String,
    /// Calls of models.
    calls: usize,
    /// Prompt tokens of all calls.
    input_tokens: u64,
    /// Reply tokens of all calls.
    output_tokens: u64,
    /// Price of all calls in US dollars, if prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

/// A sentence of the answer.
#[derive(Debug, Serialize, JsonSchema)]
struct CitedSentence {
    /// The sentence.
    text: String,
    /// The document: a path or a pointer.
    source: String,
    /// First and last line, from 1.
    lines: [usize; 2],
    /// First byte, and one past the last.
    bytes: [usize; 2],
    /// Restores exactly these bytes.
    pointer: String,
    /// Whether the bytes share words with the sentence; doubt a sentence without support.
    supported: bool,
}

impl McpTool for Ask {
    type Output = Answered;
    const NAME: &'static str = "ask";
    const TITLE: &'static str = "Answer a question over files";
    const DESCRIPTION: &'static str = "Answers a question over files, folders and the texts behind \
        pointers, of any size, without bringing them into your window: finds the relevant passages, \
        quotes their sentences or has a model answer from them within a budget, and returns the bytes that every \
        sentence comes from. Answers by a model cost model calls; `search` does not.";
    const CALLS_MODEL: bool = true;

    async fn call(
        self,
        caller: &McpCaller,
        progress: &CallProgress,
    ) -> Result<(Answered, String), CallError> {
        let paths = caller.sources(&self.sources)?;
        let own = caller.asking.limits;
        let limits =
            AskLimits { tokens: self.max_tokens.map_or(own.tokens, |tokens| tokens.min(own.tokens)), ..own };
        let recipe = self.recipe.as_deref().unwrap_or(RECIPE);
        caller.engine.recipe_or_builtin(recipe).map_err(|error| missing(&error))?;
        let asking = AskSettings { limits, ..caller.asking };
        let question = Question { text: &self.question, paths: &paths, recipe, asking };
        let reach = question.reach(&caller.engine);
        let reserved = match &caller.budget {
            Some(budget) if !reach.is_empty() => {
                Some(budget.reserve(limits.tokens, &reach).map_err(CallError)?)
            }
            _ => None,
        };
        let meter = Meter::new(progress, None, None);
        let answer = progress.wait(Asker::new(&caller.engine, &meter).ask(&question)).await;
        let answer = answer.ok_or_else(|| CallError("cancelled".to_owned()))?;
        let taken = meter.total();
        let used = match &answer {
            // The search counts failed calls at their maximum; the meter includes calls for condensing. Charge the larger.
            Ok(AskAnswer { search, .. }) => {
                let usage = if search.tokens() > taken.tokens() { search.usage } else { taken.usage };
                Some((usage, search.cost.max(taken.cost)))
            }
            // The last call may have been carried out at an unknown cost: the whole reservation counts.
            Err(AskError::Run(error)) if error.may_be_billed() => None,
            Err(_) => Some((taken.usage, taken.cost)),
        };
        if let (Some(reserved), Some((usage, cost))) = (reserved, used) {
            reserved.settle(usage, cost);
        }
        let answered = Answered::of(answer?, caller);
        let text = answered.print();
        Ok((answered, text))
    }
}

impl Answered {
    fn of(answer: AskAnswer, caller: &McpCaller) -> Self {
        let AskAnswer { outcome, verified, claims, search, .. } = answer;
        let text = outcome.output.get("answer").and_then(|answer| answer.as_str()).unwrap_or(&outcome.reply);
        let claim = |claim: larder_agent::ask::GroundedClaim| CitedSentence {
            text: claim.text,
            source: caller.roots.shown(&claim.source),
            lines: claim.lines.into(),
            bytes: claim.bytes.into(),
            pointer: claim.pointer.to_string(),
            supported: claim.supported,
        };
        Self {
            answer: text.to_owned(),
            verified,
            claims: claims.into_iter().map(claim).collect(),
            read: Reading::of(&search, caller),
            run_id: outcome.run_id.as_str().to_owned(),
            model: outcome.receipt.model,
            calls: search.calls,
            input_tokens: search.usage.input,
            output_tokens: search.usage.output,
            cost_usd: search.cost.and_then(|cost| cost.to_string().parse().ok()),
            steps: search.steps,
        }
    }

    fn print(&self) -> String {
        let mut text = format!("{}\n", self.answer.trim_end());
        if !self.verified {
            text.push_str("(unverified: it may not answer the question)\n");
        }
        for claim in &self.claims {
            let [first, last] = claim.lines;
            let doubt = if claim.supported { "" } else { " (its source does not support it)" };
            text.push_str(&format!(
                "\n{:?}\n  ← {}:{first}-{last} {}{doubt}",
                claim.text, claim.source, claim.pointer
            ));
        }
        text
    }
}
