//! What people do to the files: it is read as far as it goes, reported where it does not, and never lost.

use larder_text::sections::Sections;
use larder_vault::context::*;
use larder_vault::links::DualLink;
use larder_vault::*;

use super::round_trips::place;

fn problems<T>(reading: &ParsedDocument<T>) -> Vec<String> {
    reading.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_hand_written_turn_is_read() {
    let text = "Some words first.\n\n## 0. User Query\ncheapest laptop\n\n## 1. Reflection Decision\n\n**Decision:** proceed\n\
        **Mood:** sunny\n**Confidence:** 0.95\n**Reasoning:**\n\n- clear\n- enough\n\n## 3. Task Plan\n**Goal:** find one\n\
        **Intent:** commerce\n**Route To:** coordinator\n**Subtasks:**\n* look\n* compare\n\n## 6. Validation\n**Outcome:** APPROVE\n\
        **Overall Quality:** 0.825\n### Issues\nNone\n\n### My own heading\nkept\n";
    let place = place();
    assert_eq!(original_query(text).as_deref(), Some("cheapest laptop"));
    let reflection = read_newest::<Reflection>(text, &place).unwrap();
    assert_eq!(problems(&reflection), [""; 0]);
    let reflection = reflection.value.unwrap();
    assert_eq!(
        (reflection.decision, reflection.reasoning.as_str()),
        (ReflectionDecision::Proceed, "- clear\n- enough")
    );
    let plan = read_newest::<TaskPlan>(text, &place).unwrap().value.unwrap();
    assert_eq!(
        (plan.intent, plan.steps.len(), plan.steps[1].text.as_str()),
        (Intent::CommerceSearch, 2, "compare")
    );
    let verdict = read_newest::<Validation>(text, &place).unwrap().value.unwrap();
    assert_eq!((verdict.decision, verdict.issues.len()), (Verdict::Approve, 0));
    assert!(read_newest::<Synthesis>(text, &place).is_none());
}

#[test]
fn what_cannot_be_understood_is_named_with_its_line() {
    let text = "---\nid: x\n---\n## 1. Reflection Decision\n**Decision:** PERHAPS\n**Confidence:** 95%\n\n## 4. Tool Execution\n\
        ### Iteration one\n**Action:** WAIT\n\n### Claims Extracted\n| Claim | Confidence | Source | TTL |\n|---|---|---|---|\n| a | 2 | b | soon |\n\
        ### Termination\n**Reason:** done\n";
    let place = place();
    assert_eq!(
        problems(&read_newest::<Reflection>(text, &place).unwrap()),
        [
            "line 5: Decision: expected PROCEED or CLARIFY, found \"PERHAPS\"",
            "line 6: Confidence: expected a number from 0 to 1, found \"95%\"",
        ]
    );
    assert_eq!(
        problems(&read_newest::<ToolLog>(text, &place).unwrap()),
        [
            "line 9: expected the number of the iteration in its heading",
            "line 10: Action: expected TOOL_CALL or DONE, found \"WAIT\"",
            "line 15: Confidence: expected a number from 0 to 1, found \"2\"",
            "line 15: TTL: expected a duration such as 6h, or evergreen, found \"soon\"",
            "line 16: **Iterations:** is missing",
            "line 16: **Tool Calls:** is missing",
        ]
    );
}

#[test]
fn only_the_last_section_grows() {
    let text = "## 4. Tool Execution\nx\n\n## 5. Synthesis\ny\n";
    assert_eq!(
        extend_section(text, larder_text::sections::SectionId::ToolExecution, "z").unwrap_err().to_string(),
        "§4 is not the last section of the document, and earlier sections are immutable; append a new attempt"
    );
    assert!(append_compaction("", larder_text::sections::SectionId::ToolExecution, "", "z").is_err());
}

/// A body cannot pass for a compaction, which would hide from a prompt what stands before it.
#[test]
fn nobody_else_compacts() {
    let id = larder_text::sections::SectionId::ToolExecution;
    let text = append_section("", id, "the truth\n### Compaction 1\na lie\n");
    let view = select(&text, [id]);
    assert!(view.text_of(&view.sections[0]).contains("the truth"));
    assert_eq!(Sections::parse(&text).sections.len(), 1);
}

#[test]
fn research_keeps_what_people_wrote_into_it() {
    let text = "# Research Document\n\n**ID:** research_759_abc123\n**Turn:** 759\n**Query:** hamsters\n\nmine\n\n## Metadata\n\
        **Topic:** pet.hamster\n**Intent:** transactional\n**Quality:** 0.8\n**Created:** 2025-12-06T18:44:00Z\n**Expires:** 2025-12-07T00:44:00Z\n\
        ## My notes\nkept\n## Evergreen Knowledge\n### Reputable Sources\n| URL | Vendor | Reliability | Type |\n|-|-|-|-|\n| https://a.example | A | 0.85 | breeder |\n\
        | x | B | high | shop |\n### General Facts\n- Price range $10-$70\n## Linked From\n(nothing yet)\n";
    let at = VaultPath::new("users/u/turns/turn_000759/research.md").unwrap();
    let reading = Document::<Research>::read(text, &at);
    assert_eq!(problems(&reading), ["line 22: Reliability: expected a number from 0 to 1, found \"high\""]);
    let research = reading.value.unwrap().value;
    assert_eq!((research.sources.len(), research.sources[0].vendor.as_str()), (1, "A"));
    assert_eq!(research.facts, ["Price range $10-$70"]);
    assert_eq!(research.expires.unwrap().seconds_since(research.created), 6 * 3_600);
    let backlink = Backlink { link: DualLink::new(place(), "turn_000815"), section: "§2".to_owned() };
    let linked = backlink.add_to(text, &at);
    assert_eq!(
        linked,
        text.to_owned()
            + "- [turn_000815/context.md](../turn_000815/context.md) | [[users/u/turns/turn_000815/context|turn_000815]] - \"§2\"\n"
    );
    assert_eq!(Document::<Research>::read(&linked, &at).value.unwrap().value.linked_from, [backlink]);
}

#[test]
fn memory_keeps_what_people_wrote_into_it() {
    let at = VaultPath::new("users/u/facts.md").unwrap();
    let line = |id: usize, fact: &str| FactLine {
        id: Some(BlockId::numbered("fact", id)),
        fact: fact.to_owned(),
        category: "People".to_owned(),
        scope: Scope::User,
        confidence: Score::new(0.9),
        source: None,
    };
    let text = "---\nmine: 1\n---\nhello\n# Facts\n\n- has a dog (People, user, 0.9) ^fact-001\n- my own line\n- gone (x, new) ^fact-002\n\n# Other\n- x ^fact-003\n";
    let updated = Facts(vec![line(1, "has two dogs"), line(4, "plays chess")]).update(text, &at);
    assert_eq!(
        updated,
        "---\nmine: 1\n---\nhello\n# Facts\n\n- has two dogs (People, user, 0.90) ^fact-001\n- plays chess (People, user, 0.90) ^fact-004\n- my own line\n\n# Other\n- x ^fact-003\n"
    );
    let at = VaultPath::new("users/u/preferences.md").unwrap();
    let text = "# Preferences\n\n- budget: $500 (cash)\n- not one\n";
    let reading = Document::<Preferences>::read(text, &at);
    assert_eq!(problems(&reading), ["line 4: expected `name: value`; the line is kept but ignored"]);
    let mut read = reading.value.unwrap().value;
    assert_eq!((read.0[0].name.as_str(), read.0[0].value.as_str()), ("budget", "$500 (cash)"));
    read.0[0].value = "$800".to_owned();
    assert_eq!(read.update(text, &at), "# Preferences\n\n- budget: $800\n- not one\n");
}

#[test]
fn an_index_keeps_what_people_wrote_into_it() {
    let at = VaultPath::new("users/u/turns/index.md").unwrap();
    let entry = |turn: u32, note: &str| IndexEntry {
        link: DualLink::new(layout::UserPlace::new("u").turn(turn).context(), &turn_name(turn)),
        note: note.to_owned(),
    };
    let mut index = IndexNote {
        title: "Turns".to_owned(),
        recent: vec![entry(1, "first")],
        topics: vec![TopicEntry::new("pet hamster.syrian", "x")],
    };
    let written = index.write_body(&at);
    assert!(written.contains("- #pet-hamster/syrian - x\n"), "{written}");
    let edited = written.replace("## By Topic", "my words\n\n## By Topic");
    index.recent.insert(0, entry(2, "second"));
    let updated = index.update(&edited, &at);
    assert!(updated.contains("my words"));
    let read: Vec<u32> = IndexNote::read_body(&updated, 1, &at)
        .value
        .unwrap()
        .recent
        .iter()
        .filter_map(|entry| turn_number(&entry.link.label))
        .collect();
    assert_eq!(read, [2, 1]);
    assert_eq!(index.update(&updated, &at), updated);
}
