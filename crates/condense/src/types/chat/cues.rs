//! Words that mark a sentence of a conversation as significant: decisions, failures, what works, what is done, what
//! remains; and words that mark it as small talk.
//!
//! English, and decisions also in German and some other languages; otherwise the order of turns, the speaker, code and salient spans decide.

use std::sync::LazyLock;

use regex::Regex;

use larder_text::pattern::pattern;

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

/// Words that say of a sentence, by themselves, what it is.
static LABELLED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^[\s*_>#-]*(?:decision|decided|resolution|done|state|status|in progress|next step|constraint|requirement|open(?: item| question| point| issue)?s?|to-?do|blocked|fixed|root cause|entscheidung|entschieden|beschluss|offen|vorgabe|behoben|ursache|décision|decisión|decisione)\b[^.]{0,24}:|(?:決定|未解決|修正|結論)\s*[：:]",
    )
});
static STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?ix)\b(?:we|i)(?:'ve|\ have|'ll|\ will|\ have\ to)?\ (?:decided|decide|agreed|agree|chose|choose|rejected|reject|settled|use|keep|go\ with|went\ with|must|need\ to\ keep|dropped|ruled\ out)\b
        |\blet'?s\ (?:go\ with|use|keep|not)\b
        |\b(?:use|keep|store|prefer|choose|chose|reject|rejected|avoid|drop|instead\ of|rather\ than)\b[^.!?]*\b(?:because|since|so\ that|due\ to)\b
        |\b(?:fail|failed|failing|broke|crash|crashed|error|bug)\b[^!?]*\b(?:fixed|solved|resolved|worked\ around|by)\b
        |\b(?:fixed|solved|resolved|worked\ around)\ (?:by|with|it\ by)\b
        |\b(?:still\ (?:need|missing|open|fails?|to\ do)|not\ yet|no\ \w+\ yet|open\ (?:item|question|point)|remains?\ (?:open|to)|left\ to\ do|todo)\b
        |\bwir\ (?:nehmen|verwenden|benutzen|behalten|haben\ (?:uns\ )?(?:entschieden|beschlossen|verworfen)|bleiben\ bei)\b|\bbehoben\ durch\b|\bnoch\ (?:offen|nicht|kein)
        |(?:決めました|採用|却下|使わない|直しました|禁止)",
    )
});
/// What the user rules out or demands.
static RULE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:do not|don't|never|must(?: not)?|always|only|banned|forbidden|not allowed|required|should not|shouldn't|make sure|prefer|nicht|niemals|nie|immer|nur|verboten|muss|müssen|darf)\b|(?:ないで|禁止|必ず)",
    )
});
/// Calls that change something: names of tools, and commands of a shell.
static CHANGE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)^→ (?:\w*(?:edit|write|create|replace|insert|patch|delete|rename|move)\w*\b|[^\n]*(?:"command": ?"(?:str_replace|insert|create|undo_edit)"|\bsed -i|\bgit (?:commit|apply|revert|stash|reset|checkout --)|\bapply_patch|\bpatch -p|\btee |\b(?:mv|rm|cp) -?\w|\b(?:pip|npm|cargo|apt|apt-get|go|yarn) (?:install|add|get)\b|>>? ?[\w./~-]+\w))"#,
    )
});

/// Whether a sentence states a decision, its reason, a failure with its fix, or what is open.
pub(super) fn decides(sentence: &str) -> bool {
    DECISION.is_match(sentence) || LABELLED.is_match(sentence) || STATEMENT.is_match(sentence)
}

/// Whether a sentence of the user rules something out or demands it.
pub(super) fn rules(sentence: &str) -> bool {
    RULE.is_match(sentence)
}

/// Whether a call, as a transcript writes it, changes something.
pub(super) fn changes(call: &str) -> bool {
    CHANGE.is_match(call)
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
        for pattern in
            [&MATTER, &IDLE, &CODES, &FAILURE, &DECISION, &REASON, &LABELLED, &STATEMENT, &RULE, &CHANGE]
        {
            LazyLock::force(pattern);
        }
    }

    #[test]
    fn statements_rules_and_changes_are_told_from_talk() {
        for said in [
            "**Decision:** store minutes, because DST breaks timestamps.",
            "Entscheidung: Minuten speichern.",
            "決定：分 XQ8 で保存します。",
            "Open item: route 7 has no source.",
        ] {
            assert!(LABELLED.is_match(said), "{said}");
        }
        for said in [
            "We rejected the monkeypatch approach.",
            "We agreed on cents because floats drift.",
            "The build failed with a borrow problem; fixed by cloning the key.",
            "Wir nehmen Cent, weil Gleitkomma rundet.",
            "Let's go with plan B.",
        ] {
            assert!(STATEMENT.is_match(said), "{said}");
        }
        for said in ["Let me look at the file.", "The function returns a list.", "Now I run the tests."] {
            assert!(!STATEMENT.is_match(said) && !LABELLED.is_match(said), "{said}");
        }
        assert!(RULE.is_match("Please do not use chrono.") && RULE.is_match("Bitte chrono nicht verwenden."));
        for call in [
            r#"→ bash {"command": "cd /t && sed -i 's/a/b/' x.py"}"#,
            r#"→ str_replace_editor {"command": "str_replace", "path": "/a.py"}"#,
            r#"→ edit_file {"path": "a.rs"}"#,
            r#"→ bash {"command":"cat > fix.py <<EOF"}"#,
        ] {
            assert!(CHANGE.is_match(call), "{call}");
        }
        for call in [r#"→ bash {"command": "grep -rn distinct ."}"#, r#"→ read_file {"path": "a"}"#] {
            assert!(!CHANGE.is_match(call), "{call}");
        }
    }
}
