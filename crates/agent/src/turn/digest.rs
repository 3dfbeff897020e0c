//! A section in fewer tokens along its own structure (R1-3.15, R1-3.16): labels, tables, decisions and references stay,
//! texts get shorter; what was gathered is condensed by a model where the policy allows it. A result counts only if it can
//! be read back as its section. §4 has its own rule, `shrink`.

use larder_condense::ContentType;
use larder_text::sections::SectionId;
use larder_vault::VaultPath;
use larder_vault::context::{GatheredContext, Reflection, SectionValue, TaskPlan, Validation};

use super::documents::TurnDocument;

/// Characters of each text that a step keeps.
const STEPS: [usize; 5] = [300, 160, 80, 40, 16];
/// Tokens of a compaction's heading and frame.
const FRAME: usize = 80;
/// With fewer tokens, a condensed text says nothing.
const MIN_INFORMATION: usize = 64;

/// The newest version of section `id` in at most `target` tokens, the frame of a compaction counted; `None` for sections
/// without such a rule, and if it cannot be that short.
pub(super) async fn of(id: SectionId, document: &TurnDocument<'_>, target: usize) -> Option<String> {
    let target = target.checked_sub(FRAME)?;
    let at = &document.at;
    let fits = |text: &str| document.condenser.counter.count_up_to(text, target).is_some();
    match id {
        SectionId::Reflection => shortened(&document.newest()?, at, fits, shorten_reflection),
        SectionId::GatheredContext => gathered(&document.newest()?, document, target).await,
        SectionId::TaskPlan => shortened(&document.newest()?, at, fits, shorten_plan),
        SectionId::Validation => shortened(&document.newest()?, at, fits, shorten_verdict),
        SectionId::UserQuery | SectionId::ToolExecution | SectionId::Synthesis => None,
    }
}

fn shortened<T: SectionValue + Clone>(
    value: &T,
    at: &VaultPath,
    fits: impl Fn(&str) -> bool,
    shorten: impl Fn(&mut T, usize),
) -> Option<String> {
    let written = STEPS.into_iter().map(|chars| {
        let mut short = value.clone();
        shorten(&mut short, chars);
        short.write(at)
    });
    written.into_iter().find(|text| fits(text) && is_readable::<T>(text, at))
}

fn is_readable<T: SectionValue>(text: &str, at: &VaultPath) -> bool {
    let read = T::read(text, 1, at);
    read.value.is_some() && read.problems.is_empty()
}

/// What was gathered takes what the lists leave.
async fn gathered(value: &GatheredContext, document: &TurnDocument<'_>, target: usize) -> Option<String> {
    let TurnDocument { condenser, at, .. } = document;
    let mut is_first = true;
    for chars in STEPS {
        let mut short = GatheredContext { information: String::new(), ..value.clone() };
        short.preferences.iter_mut().for_each(|preference| cut(&mut preference.value, chars));
        short.prior_turns.iter_mut().for_each(|turn| cut(&mut turn.summary, chars));
        short.research.iter_mut().for_each(|research| research.top.truncate(chars / 80));
        let lists = condenser.counter.count(&short.write_digest(at));
        let room = target.saturating_sub(lists);
        for room in [room, room * 4 / 5, room / 2].into_iter().filter(|room| *room >= MIN_INFORMATION) {
            let written = match std::mem::take(&mut is_first) {
                true => condenser.by_model(&value.information, ContentType::Markdown, room, "§2").await,
                false => None,
            };
            let by_rule = match written {
                Some(written) => {
                    short.information = written.text;
                    None
                }
                None => {
                    let by_rule = condenser.for_document(&value.information, ContentType::Markdown, room);
                    let Some(by_rule) = by_rule else { continue };
                    short.information.clone_from(&by_rule.result.text);
                    Some(by_rule)
                }
            };
            let text = short.write_digest(at);
            if condenser.counter.count_up_to(&text, target).is_some()
                && is_readable::<GatheredContext>(&text, at)
                && condenser.store(value.information.as_bytes(), "section", "what was gathered").is_ok()
            {
                by_rule.iter().for_each(|condensed| condenser.report(condensed));
                return Some(text);
            }
        }
    }
    None
}

fn shorten_reflection(reflection: &mut Reflection, chars: usize) {
    cut(&mut reflection.reasoning, chars);
    reflection.question.iter_mut().for_each(|question| cut(question, chars.max(STEPS[0])));
}

fn shorten_plan(plan: &mut TaskPlan, chars: usize) {
    cut(&mut plan.goal, chars.max(STEPS[1]));
    let texts = [&mut plan.previous_failure, &mut plan.new_approach, &mut plan.focus];
    texts.into_iter().flatten().for_each(|text| cut(text, chars));
    plan.steps.iter_mut().for_each(|step| cut(&mut step.text, chars));
    plan.goals.iter_mut().for_each(|goal| cut(&mut goal.description, chars));
}

fn shorten_verdict(verdict: &mut Validation, chars: usize) {
    cut(&mut verdict.notes, chars);
    let lists = [&mut verdict.issues, &mut verdict.revision_hints, &mut verdict.suggested_fixes];
    lists.into_iter().flatten().for_each(|text| cut(text, chars));
    verdict.goals.iter_mut().for_each(|goal| cut(&mut goal.notes, chars));
}

/// Cuts a text after a word, with a mark.
pub(super) fn cut(text: &mut String, max_chars: usize) {
    let Some((end, _)) = text.char_indices().nth(max_chars) else { return };
    let word = text[..end].rfind(char::is_whitespace).filter(|at| *at > end / 2).unwrap_or(end);
    text.truncate(word);
    text.truncate(text.trim_end().len());
    text.push('…');
}
