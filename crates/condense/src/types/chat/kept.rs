//! What a conversation stands on, whatever is asked: decisions with their reasons, what the user rules out, failures with
//! their fixes, open items, and the calls that changed something. Within a share of the target each, the newest first, they
//! come before all that only resembles the query.

use std::cmp::Reverse;
use std::sync::LazyLock;

use regex::Regex;

use super::messages::Speaker;
use crate::analysis::pattern::pattern;
use crate::engine::job::Job;
use crate::engine::units::{TextPiece, Tier};
use larder_text::transcript;

/// Shares of the target, in per cent, for statements and for calls.
const STATEMENTS: usize = 25;
const CALLS: usize = 12;
/// Tokens of the label and the markers around a piece.
const AROUND: f32 = 16.0;
/// Longer pieces say more than a statement, in bytes.
const LONGEST: usize = 700;

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

/// Lets the pieces that matter most come first; `pieces` are those of messages, each with who wrote it.
pub(super) fn keep(job: &Job<'_>, speakers: &[Option<Speaker>], pieces: &mut [TextPiece]) {
    let text = job.request.text;
    let mut found: [Vec<(Reverse<u8>, Reverse<usize>)>; 2] = [Vec::new(), Vec::new()];
    for (at, (piece, speaker)) in pieces.iter().zip(speakers).enumerate() {
        let Some(speaker) = *speaker else { continue };
        if piece.tier == Tier::First || !piece.divisible || speaker == Speaker::Tool {
            continue;
        }
        let said = &text[piece.range.clone()];
        if said.starts_with(transcript::CALL) {
            if CHANGE.is_match(said) {
                found[1].push((Reverse(0), Reverse(at)));
            }
        } else if piece.range.len() <= LONGEST {
            let strength = match speaker {
                _ if LABELLED.is_match(said) => 2,
                Speaker::User | Speaker::Other if RULE.is_match(said) => 2,
                _ if STATEMENT.is_match(said) => 1,
                _ => continue,
            };
            found[0].push((Reverse(strength), Reverse(at)));
        }
    }
    for (mut found, share) in found.into_iter().zip([STATEMENTS, CALLS]) {
        found.sort_unstable();
        let mut room = (job.request.target * share / 100) as f32;
        for (_, Reverse(at)) in found {
            let cost = pieces[at].range.len() as f32 * job.tokens_per_byte() + AROUND;
            if cost <= room {
                room -= cost;
                pieces[at].tier = Tier::First;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
