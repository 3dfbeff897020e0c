//! What is written is read back, whatever stands in it; and it holds no link, section or block that is not ours.

use std::fmt::Debug;

use larder_text::sections::Sections;
use larder_vault::context::{self, SectionValue};
use larder_vault::links::{LinkDestination, Vault, links};
use larder_vault::*;
use proptest::prelude::*;

use super::values;

pub fn place() -> VaultPath {
    VaultPath::new("users/u/turns/turn_000815/context.md").unwrap()
}

/// The value comes back, without a problem, and writing it again gives the same bytes.
fn document<T: DocumentValue + PartialEq + Debug>(meta: Meta, value: T) -> Result<(), TestCaseError> {
    let document = Document::new(meta, value);
    let text = document.write(&place());
    let reading = Document::<T>::read(&text, &place());
    prop_assert_eq!(&reading.problems, &[], "{}", text);
    let read = reading.value.expect("a value");
    prop_assert_eq!(&read, &document, "{}", text);
    prop_assert_eq!(read.write(&place()), text);
    prop_assert_eq!(Note::parse(&read.write(&place())).to_string(), read.write(&place()));
    Ok(())
}

/// The same for a section, between others: it stands alone in its place, and the others are read as before.
fn section<T: SectionValue + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
    let head = "---\nid: x\n---\n## 0. User Query\n**Original:** q\n\n";
    let mut text = head.to_owned();
    text += &context::append(&text, value, &place());
    text += &append_section(&text, larder_text::sections::SectionId::Validation, "the end");
    let sections = Sections::parse(&text);
    prop_assert_eq!(sections.sections.len(), 3, "{}", text);
    let written = sections.attempts(T::ID).last().expect("the section");
    let written = if T::ID.number() == 6 { &sections.sections[1] } else { written };
    let reading = context::read::<T>(&text, written, &place());
    prop_assert_eq!(&reading.problems, &[], "{}", text);
    prop_assert_eq!(reading.value.as_ref(), Some(value), "{}", text);
    prop_assert_eq!(original_query(&text).is_some(), true);
    Ok(())
}

/// Every link that is not to a place outside leads to one of `files`, and to each of them leads one: no text around a
/// link of ours makes it code or a comment.
fn only_links_to(text: &str, files: impl IntoIterator<Item = VaultPath>) -> Result<(), TestCaseError> {
    let files: Vec<VaultPath> = files.into_iter().collect();
    let (vault, place) = (Vault::new(files.iter().cloned().chain([place()])), place());
    let mut reached = std::collections::BTreeSet::new();
    for link in links(text) {
        match vault.resolve(&place, &link) {
            LinkDestination::Missing => prop_assert!(false, "{:?} in {}", link, text),
            LinkDestination::File(file) => {
                reached.insert(file);
            }
            LinkDestination::External => {}
        }
    }
    // Capitals do not tell files apart in a vault, so a link may lead to either of two.
    let same = |a: &VaultPath, b: &VaultPath| a.as_str().to_lowercase() == b.as_str().to_lowercase();
    let missed = files.iter().find(|file| !reached.iter().any(|found| same(found, file)));
    prop_assert!(missed.is_none(), "{:?} is not linked in {}", missed, text);
    Ok(())
}

proptest! {
    #[test]
    fn queries(value in values::user_query()) {
        // §0 is the first section of its document.
        let text = append_section("", context::UserQuery::ID, &value.write(&place()));
        let text = text.clone() + &append_section(&text, larder_text::sections::SectionId::Reflection, "x");
        let sections = Sections::parse(&text);
        prop_assert_eq!(sections.sections.len(), 2, "{}", text);
        let reading = context::read::<context::UserQuery>(&text, &sections.sections[0], &place());
        prop_assert_eq!(&reading.problems, &[], "{}", text);
        prop_assert_eq!(reading.value.as_ref(), Some(&value), "{}", text);
        prop_assert_eq!(original_query(&text), Some(value.original));
        only_links_to(&text, [])?;
    }

    #[test]
    fn enriching_gives_the_same_as_writing_at_once(value in values::user_query()) {
        let mut text = append_section("", context::UserQuery::ID, &query_body(&value.original));
        if let Some(resolved) = &value.resolved {
            text += &extend_section(&text, context::UserQuery::ID, &resolved.write()).expect("the last section");
        }
        let reading = context::read_newest::<context::UserQuery>(&text, &place()).expect("§0");
        prop_assert_eq!(reading.value, Some(value), "{}", text);
    }

    #[test]
    fn reflections(value in values::reflection()) { section(&value)?; }

    #[test]
    fn gathered_contexts(value in values::gathered()) {
        section(&value)?;
        let linked = value.references.iter().map(|reference| reference.link.file.clone());
        let research = value.research.iter().filter_map(|research| Some(research.document.as_ref()?.file.clone()));
        let known = value.turns.values().chain(&value.memory).cloned();
        only_links_to(&value.write(&place()), linked.chain(research).chain(known))?;
    }

    #[test]
    fn plans(value in values::plan(), meta in values::meta()) {
        section(&value)?;
        only_links_to(&value.write(&place()), value.ticket.iter().map(|link| link.file.clone()))?;
        document(meta, Ticket(value))?;
    }

    #[test]
    fn tool_logs(value in values::tool_log()) {
        section(&value)?;
        let results = value.iterations.iter().flat_map(|iteration| &iteration.results);
        let full = results.filter_map(|result| Some(result.full.as_ref()?.file.clone()));
        let origins = value.claims.iter().filter_map(|claim| claim.origin.as_ref()?.document.as_ref());
        let text = value.write(&place());
        only_links_to(&text, full.chain(origins.map(|link| link.file.clone())))?;
        let ids: Vec<String> = links::NoteOutline::parse(&text).anchors.into_iter().map(|anchor| anchor.id).collect();
        for id in ids {
            let ours = value.claims.iter().filter_map(|claim| claim.origin.as_ref()).any(|origin| origin.block.as_str() == id);
            prop_assert!(ours, "^{} is forged in {}", id, text);
        }
    }

    #[test]
    fn tool_logs_grow_piece_by_piece(value in values::tool_log()) {
        let mut text = append_section("", context::ToolLog::ID, "");
        let pieces = value.iterations.iter().map(|iteration| iteration.write(&place()));
        let claims = (!value.claims.is_empty()).then(|| context::Claim::write_all(&value.claims, &place()));
        let end = value.termination.as_ref().map(context::Termination::write);
        for piece in pieces.chain(claims).chain(end) {
            text += &extend_section(&text, context::ToolLog::ID, &piece).expect("the last section");
        }
        prop_assert_eq!(Sections::parse(&text).sections.len(), 1);
        let reading = context::read_newest::<context::ToolLog>(&text, &place()).expect("§4");
        prop_assert_eq!(reading.value, Some(value), "{}", text);
    }

    #[test]
    fn a_compaction_replaces_the_text_before_it(first in values::tool_log(), then in values::tool_log(), said in values::some_text()) {
        let id = context::ToolLog::ID;
        let mut text = append_section("", id, &first.write(&place()));
        text += &append_compaction(&text, id, "lp1-x", &said).expect("the last section");
        for iteration in &then.iterations {
            text += &extend_section(&text, id, &iteration.write(&place())).expect("the last section");
        }
        let log = context::read_newest::<context::ToolLog>(&text, &place()).expect("§4").value.expect("a value");
        let all: Vec<_> = first.iterations.iter().chain(&then.iterations).cloned().collect();
        prop_assert_eq!(log.iterations, all, "{}", text);
        prop_assert_eq!(log.claims, first.claims);
        let view = select(&text, [id]);
        let shown = view.text_of(&view.sections[0]).into_owned();
        prop_assert!(shown.starts_with("## 4. Tool Execution\n### Compaction 1\n\n**Original:** lp1-x\n\n"), "{}", shown);
        prop_assert!(text.ends_with(&shown["## 4. Tool Execution\n".len()..]));
    }

    #[test]
    fn answers(value in values::synthesis(), response in values::response(), meta in values::meta()) {
        section(&value)?;
        only_links_to(&value.write(&place()), value.full.iter().map(|link| link.file.clone()))?;
        document(meta, response)?;
    }

    #[test]
    fn verdicts(value in values::validation()) { section(&value)?; }

    #[test]
    fn researches(value in values::research(), meta in values::meta()) {
        prop_assert_eq!(read_json::<Research>(&write_json(&value)).value, Some(value.clone()));
        document(meta, value)?;
    }

    #[test]
    fn results_of_tools(value in values::tool_results(), meta in values::meta()) {
        let text = value.write_body(&place());
        only_links_to(&text, [])?;
        for result in &value.results {
            prop_assert!(links::NoteOutline::parse(&text).find(&result.block().to_string()).is_some());
        }
        let mut grown = Document::new(meta.clone(), ToolResults::default()).write(&place());
        value.results.iter().for_each(|result| grown += &result.write());
        prop_assert_eq!(grown, Document::new(meta.clone(), value.clone()).write(&place()));
        prop_assert_eq!(links::NoteOutline::parse(&text).anchors.len(), value.results.iter().map(|result| result.number).collect::<std::collections::BTreeSet<_>>().len());
        document(meta, value)?;
    }

    #[test]
    fn pages(value in values::page(), meta in values::meta()) {
        only_links_to(&value.write_body(&place()), [])?;
        document(meta, value)?;
    }

    #[test]
    fn memory(preferences in values::preferences(), facts in values::facts(), meta in values::meta()) {
        document(meta.clone(), preferences)?;
        document(meta, facts)?;
    }

    #[test]
    fn notes_of_a_vault(wrapper in values::wrapper(), index in values::index_note(), meta in values::meta()) {
        document(meta.clone(), wrapper)?;
        document(meta, index)?;
    }

    #[test]
    fn any_text_is_read_as_every_document(text in values::text(), more in values::text()) {
        let text = format!("{text}\n{more}");
        let lines = text.lines().count().max(1) + 1;
        fn read<T: DocumentValue>(text: &str, lines: usize) {
            let problems = Document::<T>::read(text, &place()).problems;
            assert!(problems.iter().all(|problem| (1..=lines).contains(&problem.line)), "{problems:?}");
        }
        read::<Research>(&text, lines);
        read::<ToolResults>(&text, lines);
        read::<Ticket>(&text, lines);
        read::<Response>(&text, lines);
        read::<PageContent>(&text, lines);
        read::<Preferences>(&text, lines);
        read::<Facts>(&text, lines);
        read::<Wrapper>(&text, lines);
        read::<IndexNote>(&text, lines);
        for body in [format!("## 3. Task Plan\n{text}"), format!("## 4. Tool Execution\n{text}")] {
            let _ = context::read_newest::<context::TaskPlan>(&body, &place());
            let _ = context::read_newest::<context::ToolLog>(&body, &place());
        }
    }
}
