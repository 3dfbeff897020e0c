//! Budgets that are learned from recorded replies: proposes them for a type, and knows which revision of them a session
//! uses (R4-9.3). They lie within what the type and the model allow, and change in a session only where its prefix does.

use std::collections::BTreeMap;

use larder_engine::config::{BUDGETS, budget_key};
use larder_engine::inputs::BudgetLimits;
use larder_store::{Speaker, Track};
use serde::{Deserialize, Serialize};

use crate::calls::TurnCall;
use crate::conversation::{Conversation, Conversations, ReplyRecord, WindowRecord};
use crate::error::ConversationError;
use crate::intent::MemoryIntent;
use crate::kind::ConversationType;
use crate::reply::REPLY;
use crate::state::ParticipantState;

/// The fewest replies to propose anything from.
const FEWEST_REPLIES: usize = 50;
/// A budget is so many times the 95th percentile of what was used, and at least the most that was.
const HEADROOM: usize = 2;
/// Budgets are multiples of this.
const STEP: usize = 64;
/// The fewest tokens of a reply.
const LEAST_OUTPUT: usize = 256;
/// Characters that are taken for a token where a type limits characters (R4-5.10).
const CHARS_PER_TOKEN: usize = 4;

/// The learned budgets that a session uses, until its next summary or the next session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionBudgets {
    /// The revision that they are from; 0 if nothing is learned.
    pub revision: u64,
    session: u64,
    watermark: Option<u64>,
    /// Tokens, by the name of the budget.
    tokens: BTreeMap<String, usize>,
}

impl SessionBudgets {
    /// The limits of a reply that is written by this recipe of the type.
    pub(crate) fn limits(&self, kind: &ConversationType, recipe: &str) -> BudgetLimits {
        let of = |name: &str| self.tokens.get(&name_for(kind, recipe, name)).copied();
        BudgetLimits { context: of("context"), output: of("output") }
    }
}

/// What a budget of a recipe is called: the recipe for small windows has its own.
fn name_for(kind: &ConversationType, recipe: &str, name: &str) -> String {
    if recipe == kind.recipe { name.to_owned() } else { format!("small.{name}") }
}

/// What recorded replies of a type used, and the budgets that follow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetTuning {
    /// The type.
    pub conversation: String,
    /// Replies that were read.
    pub replies: usize,
    /// Each budget that replies were written under.
    pub budgets: Vec<TunedBudget>,
    /// What differs from the newest revision: the value by key, `None` where the type's own is to be used again.
    pub changes: BTreeMap<String, Option<String>>,
}

/// One budget: what was used of it, in tokens, and what is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TunedBudget {
    /// The key in a revision.
    pub key: String,
    /// The recipe of the replies.
    pub recipe: String,
    /// Replies.
    pub replies: usize,
    /// Percentiles of what was used.
    pub p50: usize,
    /// The 95th.
    pub p95: usize,
    /// The most that was used.
    pub most: usize,
    /// The least that the type allows: its system prompt and the messages that are never dropped.
    pub least: usize,
    /// The most that the type and its model allow.
    pub allowed: usize,
    /// What the newest revision has learned.
    pub learned: Option<usize>,
    /// What is proposed; `None` for all that is allowed.
    pub proposed: Option<usize>,
    /// Why nothing below what is allowed is proposed.
    pub note: Option<String>,
}

/// What the replies of one recipe used.
#[derive(Default)]
struct Used {
    context: Vec<usize>,
    output: Vec<usize>,
    /// Whether messages were left out because there was no room, and whether replies reached their limit.
    is_short: [bool; 2],
}

impl Used {
    fn add(&mut self, record: &ReplyRecord) {
        let WindowRecord { system_tokens, history_tokens, blocks, left_out, reserved_tokens, .. } =
            &record.window;
        let of_blocks: usize = blocks.iter().map(|(_, tokens)| tokens).sum();
        self.context.push(system_tokens + history_tokens + of_blocks);
        let reply = record.calls.iter().find(|call| call.call == REPLY);
        let output = reply.map_or(0, |TurnCall { usage, .. }| usize::try_from(usage.output).unwrap_or(0));
        self.output.push(output);
        self.is_short[0] |= *left_out > 0;
        // What a reader wanted short says nothing of the type's limit; nor does a reply that was closed long before it,
        // since it repeated itself.
        let is_limit_of_type = record.max_output.is_none_or(|most| most > *reserved_tokens);
        let is_near = output.saturating_mul(10) >= reserved_tokens.saturating_mul(9);
        self.is_short[1] |= is_limit_of_type && (output >= *reserved_tokens || record.is_cut && is_near);
    }
}

impl Conversations {
    /// Reads the replies of the user's newest `most` conversations of a type, and proposes budgets by what they used.
    ///
    /// # Errors
    /// The type does not exist, its recipe or model cannot be used, or the store fails.
    pub fn tune(&self, kind: &str, most: usize) -> Result<BudgetTuning, ConversationError> {
        let kind = &self.types.find(kind)?.kind;
        let mut used: BTreeMap<String, Used> = BTreeMap::new();
        let mut replies = 0;
        for record in self.recorded(kind, most)? {
            used.entry(record.recipe.clone()).or_default().add(&record);
            replies += 1;
        }
        let revisions = self.engine.store.store().revisions();
        let learned = revisions.settings(revisions.newest()?)?;
        let mut tuning = BudgetTuning {
            conversation: kind.name.clone(),
            replies,
            budgets: Vec::new(),
            changes: BTreeMap::new(),
        };
        for (recipe, used) in &used {
            for mut budget in self.budgets(kind, recipe, used)? {
                budget.learned = learned.get(&budget.key).and_then(|tokens| tokens.parse().ok());
                if budget.learned != budget.proposed && budget.replies >= FEWEST_REPLIES {
                    let value = budget.proposed.map(|tokens| tokens.to_string());
                    tuning.changes.insert(budget.key.clone(), value);
                }
                tuning.budgets.push(budget);
            }
        }
        Ok(tuning)
    }

    /// What is kept of the replies to messages of this user, in the newest conversations of a type.
    fn recorded(&self, kind: &ConversationType, most: usize) -> Result<Vec<ReplyRecord>, ConversationError> {
        let (store, user) = (self.store(), self.engine.store.user());
        let all = store.list()?;
        let mut records = Vec::new();
        for conversation in all.iter().filter(|one| one.kind == kind.name).take(most) {
            for own in conversation.participants.iter().filter(|one| one.user == user) {
                let track = Track { conversation: &conversation.id, participant: &own.name };
                for session in 1..=own.session {
                    for message in store.messages(track, session, 0..u64::MAX)? {
                        let answers = message.speaker == Speaker::Assistant && message.reply_to.is_some();
                        let record = answers.then(|| serde_json::from_value(message.data).ok()).flatten();
                        // Records of earlier versions do not say what was reserved.
                        let is_whole = |record: &ReplyRecord| record.window.reserved_tokens > 0;
                        records.extend(record.filter(is_whole));
                    }
                }
            }
        }
        Ok(records)
    }

    /// The budgets of one recipe of a type.
    fn budgets(
        &self,
        kind: &ConversationType,
        recipe: &str,
        used: &Used,
    ) -> Result<[TunedBudget; 2], ConversationError> {
        let engine = &self.engine;
        let found = engine.find(recipe, None).map_err(|source| engine.missing(recipe, source))?;
        let spec = engine.candidate(found.layer, None)?.spec;
        let rules = kind.small.as_ref().filter(|_| recipe != kind.recipe);
        let protected = rules.map_or(kind.window.protected, |small| small.protected);
        let limit = found.budget.output.min(usize::try_from(spec.max_output).unwrap_or(usize::MAX));
        let beside = limit.saturating_add(found.budget.response_reserve);
        let tuned = |name: &str, values: &[usize], (least, allowed): (usize, usize), short: Option<&str>| {
            let mut values = values.to_vec();
            values.sort_unstable();
            let (p50, p95) = (percentile(&values, 50), percentile(&values, 95));
            let most = values.last().copied().unwrap_or(0);
            let wanted = p95.saturating_mul(HEADROOM).max(most).max(least).next_multiple_of(STEP);
            let few = (values.len() < FEWEST_REPLIES).then(|| {
                format!("{} replies are too few to judge by: {FEWEST_REPLIES} are needed", values.len())
            });
            let all = (wanted >= allowed).then(|| "what was used needs all that is allowed".to_owned());
            let note = few.or_else(|| short.map(str::to_owned)).or(all);
            TunedBudget {
                key: budget_key(&kind.name, &name_for(kind, recipe, name)),
                recipe: recipe.to_owned(),
                replies: values.len(),
                p50,
                p95,
                most,
                least,
                allowed,
                learned: None,
                proposed: note.is_none().then_some(wanted),
                note,
            }
        };
        let floor = found.budget.prompt + protected * kind.window.message_chars.div_ceil(CHARS_PER_TOKEN);
        let context = (floor, found.budget.total.min(spec.window).saturating_sub(beside));
        let short = |at: usize, why| used.is_short[at].then_some(why);
        Ok([
            tuned("context", &used.context, context, short(0, "messages of the history did not fit")),
            tuned("output", &used.output, (LEAST_OUTPUT, limit), short(1, "a reply reached its limit")),
        ])
    }
}

/// The value below which so many hundredths of the sorted values lie.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0)
}

impl Conversation {
    /// Moves a session on to the newest revision of learned budgets where its prefix begins anew in any case: with its first
    /// message, and where the summary that is sent was written.
    pub(crate) fn renew_budgets(
        &self,
        session: u64,
        record: &mut WindowRecord,
        state: &mut ParticipantState,
    ) -> Result<(), ConversationError> {
        let held = &mut state.budgets;
        // Whoever withholds the past sends no summary, which is there all the same.
        let same_summary =
            held.watermark == record.watermark || record.intent.is_some_and(MemoryIntent::withholds);
        if held.session != session || !same_summary {
            let revisions = self.all.engine.store.store().revisions();
            let revision = revisions.newest()?;
            let mut tokens = BTreeMap::new();
            if revision > 0 {
                let learned = revisions.settings(revision)?;
                let of_kind = BUDGETS.iter().filter_map(|name| {
                    let value = learned.get(&budget_key(&self.loaded.kind.name, name))?.parse().ok()?;
                    Some(((*name).to_owned(), value)).filter(|_| value > 0)
                });
                tokens.extend(of_kind);
            }
            *held = SessionBudgets { revision, session, watermark: record.watermark, tokens };
        }
        record.revision = held.revision;
        Ok(())
    }
}
