//! `ask`: an answer to a question over files, folders and stored texts, with the bytes that every claim stands on.

use larder_agent::ask::{AskAnswer, AskError, Asker, Question};
use larder_engine::executor::Meter;
use larder_engine::settings::{AskLimits, AskSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::McpCaller;
use super::super::progress::CallProgress;
use super::super::sources::CallError;
use super::{Reading, Tool, missing};

/// The recipe that answers, unless the call names one.
const RECIPE: &str = "ask/answer";

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    /// The question, in whole words.
    question: String,
    /// Over what: pointers, and paths of files and folders. Everything that is open unless given.
    #[serde(default)]
    sources: Vec<String>,
    /// The recipe that answers: ask/answer unless given.
    recipe: Option<String>,
    /// Tokens that all calls of models may take, prompts and replies; the server's own limit holds as well.
    max_tokens: Option<u64>,
}

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Answered {
    /// The answer.
    answer: String,
    /// Whether the answer shares words with what it cites; a quoted one, whether it holds enough of the question.
    verified: bool,
    /// Its sentences, each with where it comes from.
    claims: Vec<Claim>,
    /// What was read.
    read: Reading,
    /// What a model did to find more, step by step.
    steps: Vec<String>,
    /// The run's record.
    run_id: String,
    /// The model that answered, as the table calls it; empty where the answer is quoted and no model was asked.
    model: String,
    /// Calls of models.
    calls: usize,
    /// Prompt tokens of all calls.
    input_tokens: u64,
    /// Reply tokens of all calls.
    output_tokens: u64,
    /// Price of all calls in US dollars, where prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

/// A sentence of the answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Claim {
    /// The sentence.
    text: String,
    /// The document: a path or a pointer.
    source: String,
    /// First and last line, from 1.
    lines: [usize; 2],
    /// First byte, and one past the last.
    bytes: [usize; 2],
    /// Gives exactly these bytes back.
    pointer: String,
    /// Whether the bytes share words with the sentence; one without support deserves doubt.
    supported: bool,
}

impl Tool for Ask {
    type Output = Answered;
    const NAME: &'static str = "ask";
    const TITLE: &'static str = "Answer a question over files";
    const DESCRIPTION: &'static str = "Answers a question over files, folders and the texts behind \
        pointers, of any size, without bringing them into your window: finds the passages that matter, \
        quotes their sentences or has a model answer from them within a budget, and gives the bytes that every \
        sentence comes from. A model's answer costs calls of the model; `search` does not.";
    const ASKS: bool = true;

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
            // The search counts calls of which nothing came as if they had taken all they might; the meter counts those
            // that condensed, too. The larger of the two holds.
            Ok(AskAnswer { search, .. }) => {
                let usage = if search.tokens() > taken.tokens() { search.usage } else { taken.usage };
                Some((usage, search.cost.max(taken.cost)))
            }
            // The last call may have been carried out, and nobody knows what it took: what was set aside counts.
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
        let claim = |claim: larder_agent::ask::GroundedClaim| Claim {
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
            let doubt = if claim.supported { "" } else { " (no words in common)" };
            text.push_str(&format!(
                "\n{:?}\n  ← {}:{first}-{last} {}{doubt}",
                claim.text, claim.source, claim.pointer
            ));
        }
        text
    }
}
