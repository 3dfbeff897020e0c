//! Words that mark a sentence of a conversation as significant: decisions, failures, what works, what is done, what
//! remains; and words that mark it as small talk.
//!
//! English, and decisions also in German; otherwise the order of turns, the speaker, code and salient spans decide.

use std::sync::LazyLock;

use regex::Regex;

use crate::analysis::pattern::pattern;

/// The weight of a sentence with one of the significant words, and of small talk.
const MATTERS: f32 = 2.0;
const TALK: f32 = 0.3;
const CODE: f32 = 1.6;
/// Maximum bytes of small talk.
const LONGEST_TALK: usize = 240;

const DECISIONS: &str = r"decid|decision|agree|let'?s (?:use|go|keep|do|not)|we(?:'ll| will| should| must| need)|instead of|rather than|because|chose|choose|go(?:ing)? with|prefer|requirement|must(?: not)?\b|should not|constraint|clarif";
const FAILURES: &str = r"error|fail|exception|traceback|panic|crash|bug\b|broken|can(?:no|')t|does ?n(?:o|')t work|not work|wrong|root cause|caused? by|exit (?:code|status)|denied|timed? ?out|undefined|warning";
const STATES: &str = r"\bfixed|resolved|works now|now works|working|passes|passing|passed|implemented|complete|done\b|finished|merged|deployed|in progress|current(?:ly)?\b|status";
const REMAINING: &str = r"todo|fixme|remain|still (?:need|have|to|miss)|not (?:yet|started)|next step|\bnext,|left to do|follow[- ]up|pending|blocked|later\b";

static MATTER: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"(?i)\b(?:{DECISIONS}|{FAILURES}|{STATES}|{REMAINING})")));
static IDLE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)^[\s"*>-]*(?:sure|certainly|of course|absolutely|great|happy to|i'd be happy|i'm happy|glad|thanks|thank you|you'?re welcome|no problem|hello|hi\b|hey\b|good (?:morning|question|catch)|let me know|feel free|i hope|hope this|as an ai|i (?:understand|apologi[sz]e)|sorry|ok(?:ay)?[.,! ]|sounds good|perfect|excellent)"#,
    )
});
/// Code, commands and their output in running text.
static CODES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"`[^`\n]+`|^\s*(?:\$ |>>> |\+\+\+ |--- |@@ )|[;{}]\s*(?:\\n)?$|\w\(\)|::\w"));

/// Words of failure, also within names such as `ValueError`.
static FAILURE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)error|exception|traceback|fail|fatal|panic|abort|denied|undefined|cannot")
});

/// Whether a line of a tool's result names a failure.
pub(super) fn names_failure(line: &str) -> bool {
    FAILURE.is_match(line)
}

/// A sentence that states a decision: by its label, or by what "we" do.
static DECISION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)(?:^|\\n|[.!?] )[\s>#*_\[\]-]*(?:decisions?|decided|agreed|agreement|entscheidung|entschieden|beschluss|beschlossen|festgelegt|vereinbart)\b[^:\n]{0,24}:",
        r"|\b(?:we|i)(?:'ve| have)? (?:decided|agreed|settled|chose)\b|\b(?:was|were|been) (?:decided|agreed)\b",
        r"|\blet'?s (?:use|go with|keep|stick)\b|\b(?:we|i)(?:'ll| will| shall|'re going to| are going to) (?:use|take|keep|adopt|choose|pick|go with|stay with|stick)\b",
        r"|\bwe (?:use|take|keep|adopt|choose|pick|go with|stay with|stick)\b[^\n]*\b(?:because|since|so that)\b",
        r"|\b(?:wir|ich) (?:nehmen|nehme|verwenden|verwende|benutzen|nutzen|bleiben bei|setzen auf|einigen uns)\b",
        r"|\bwir haben\b[^\n]{0,80}\b(?:entschieden|beschlossen|geeinigt|vereinbart)\b",
    ))
});
/// What may precede the sentence with the reason.
static REASON: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)^[\s>*_-]*(?:because|reason|rationale|why|weil|grund|begr\u{fc}ndung)\b"));

/// Whether a sentence states a decision.
pub(super) fn decides(sentence: &str) -> bool {
    DECISION.is_match(sentence)
}

/// Whether the text after a decision belongs to it: it gives the reason, or the decision was only announced.
pub(super) fn completes(decision: &str, next: &str) -> bool {
    decision.trim_end().trim_end_matches('*').ends_with(':') || REASON.is_match(next)
}

/// The weight of a sentence by its words; 1 is neutral.
pub(super) fn worth(sentence: &str) -> f32 {
    let says = |words: &Regex| words.is_match(sentence);
    let code = if says(&CODES) { CODE } else { 1.0 };
    if says(&MATTER) || says(&DECISION) {
        return MATTERS * code;
    }
    if sentence.len() <= LONGEST_TALK && says(&IDLE) { TALK } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for pattern in [&MATTER, &IDLE, &CODES, &FAILURE, &DECISION, &REASON] {
            LazyLock::force(pattern);
        }
    }
}
