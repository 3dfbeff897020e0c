//! Claims of phase 4 and their evidence (R0-14.8, R1-3.42, R1-9.15): each claim is traced to the bytes of a tool
//! result that state it. A claim with a value that no result states is invented, whatever source it names, and is
//! dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use larder_condense::rank::RankIndex;
use larder_condense::rewrite;
use larder_engine::inputs::InputDocument;
use larder_store::TurnDraft;
use larder_text::pointer::Pointer;
use larder_text::sections::SectionId;
use larder_tools::{ToolOutput, figures};
use larder_vault::context::{CallStatus, Claim, ClaimOrigin};
use larder_vault::links::DualLink;
use larder_vault::{Attachment, Attachments, BlockId, ToolResult, ToolResults, VaultPath};

use super::answers::ToolRequest;
use super::doubts::Doubts;
use super::known::KnownTexts;
use super::phase::PhaseContext;
use super::state::TurnState;
use super::{files, known, old_prices};

/// Lines of one result that are searched for a claim.
const MAX_LINES: usize = 5_000;
/// How many search hits are considered when looking for a better location than a result's title.
const NEAREST: usize = 50;

/// Adds a tool's own claims. A location given by the tool is used; otherwise the result is searched.
pub(super) fn add_tool_claims(
    cx: &mut PhaseContext<'_>,
    output: &ToolOutput,
    pointer: &Pointer,
    result: &DualLink,
    content: Option<&str>,
) {
    for claim in &output.claims {
        let known = claim.origin.as_ref();
        let found = || stretch(content?, &claim.claim).map(|range| part(pointer, range));
        let bytes = known.and_then(|origin| origin.bytes.clone()).or_else(found);
        let document = known.and_then(|origin| origin.document.clone()).or(Some(result.clone()));
        add_claim(&mut cx.state, claim.clone(), bytes, document);
    }
}

/// Adds the claims that the model derives from results.
pub(super) fn add_claims(cx: &mut PhaseContext<'_>, claims: Vec<Claim>) {
    if claims.is_empty() {
        return;
    }
    let results = results(&cx.draft);
    let attached: String = attachments(&cx.draft).into_iter().map(|(_, text)| text).collect();
    let gathered = cx.document.body(SectionId::GatheredContext) + &attached;
    for claim in claims {
        match ground(&claim.claim, &results) {
            Some((result, range)) => {
                let original = result.original.as_ref().filter(|_| is_exact(result, &range));
                let bytes = original.map(|pointer| part(pointer, range));
                let block = result.block();
                let label = block.as_str().to_owned();
                let link = DualLink::to_block(cx.draft.place.tool_results(), block, &label);
                add_claim(&mut cx.state, claim, bytes, Some(link));
            }
            None if states(&gathered, &claim.claim) => add_claim(&mut cx.state, claim, None, None),
            None => cx.events.warn(format!(
                "the claim {:?} is dropped: neither a tool result nor gathered context states it",
                claim.claim
            )),
        }
    }
}

fn add_claim(state: &mut TurnState, mut claim: Claim, bytes: Option<Pointer>, document: Option<DualLink>) {
    let known = &state.rounds().claims;
    if known.iter().any(|known| known.claim == claim.claim && known.source == claim.source) {
        return;
    }
    state.claims += 1;
    let block = BlockId::numbered("claim", state.claims);
    claim.origin = Some(ClaimOrigin { block, bytes, document });
    state.rounds().claims.push(claim);
}

/// Every tool result of the turn.
pub(super) fn results(draft: &TurnDraft) -> Vec<ToolResult> {
    let at = draft.place.tool_results();
    let text = files::text(draft, &at).unwrap_or_default();
    let read = larder_vault::Document::<ToolResults>::read(text, &at);
    read.value.map(|document| document.value.results).unwrap_or_default()
}

/// What was pasted into the query: the name and text of each attachment.
pub(super) fn attachments(draft: &TurnDraft) -> Vec<(String, String)> {
    let at = draft.place.attachments();
    let named = |attachment: Attachment| (name(&at, &attachment.block()), attachment.content);
    pasted(draft).into_iter().map(named).collect()
}

fn pasted(draft: &TurnDraft) -> Vec<Attachment> {
    let at = draft.place.attachments();
    let Some(text) = files::text(draft, &at) else { return Vec::new() };
    let read = larder_vault::Document::<Attachments>::read(text, &at).value;
    read.map(|document| document.value.attachments).unwrap_or_default()
}

/// The name of a part of a document of the turn: without the folder, whose name would make it an earlier turn.
pub(super) fn name(at: &VaultPath, block: &BlockId) -> String {
    format!("{} {block}", at.name())
}

/// The pointers to the bytes of attachments and results, by name.
pub(super) fn originals(draft: &TurnDraft) -> BTreeMap<String, String> {
    let (pasted_at, results_at) = (draft.place.attachments(), draft.place.tool_results());
    let pasted = pasted(draft).into_iter().map(|one| (name(&pasted_at, &one.block()), one.original));
    let results = results(draft).into_iter().map(|one| (name(&results_at, &one.block()), one.original));
    pasted.chain(results).filter_map(|(name, original)| Some((name, original?.to_string()))).collect()
}

/// How a call is written that stores its own arguments: its result states nothing else.
pub(super) const WRITING: &str = "memory.create(";
/// How a call is written whose result a model writes from pages.
pub(super) const RESEARCH: &str = "internet.research(";

/// The names of the results of such calls.
pub(super) fn names_of_calls(draft: &TurnDraft, call: &str) -> Vec<String> {
    let at = draft.place.tool_results();
    let results = results(draft).into_iter().filter(|result| result.call.starts_with(call));
    results.map(|result| name(&at, &result.block())).collect()
}

/// Why a call may not store what it is to store: values that neither the person, gathered context nor a result states. What
/// is stored is evidence for later turns.
pub(super) fn invented_memory(cx: &PhaseContext<'_>, request: &ToolRequest) -> Option<String> {
    if !request.text().starts_with(WRITING) {
        return None;
    }
    let arguments = request.value();
    let said: Vec<&str> =
        ["fact", "name", "value"].iter().filter_map(|name| arguments.get(name)?.as_str()).collect();
    let mut known = KnownTexts::default();
    known.add(cx.document.body(SectionId::UserQuery));
    let gathered = cx.document.body(SectionId::GatheredContext);
    let gathered = old_prices::of_lines(&gathered, &cx.state.old_days, cx.clock.last(), &said.join("\n"));
    let names = figures::without_words(&gathered, &cx.state.unstated);
    known.add_named(gathered, names);
    attachments(&cx.draft).into_iter().for_each(|(_, text)| known.add(text));
    let mut doubts = Doubts::new(&cx.turns.documents);
    let results = results(&cx.draft).into_iter();
    for result in results.filter(|one| one.status == CallStatus::Success && !one.call.starts_with(WRITING)) {
        let stated = doubts.without("", &result.content);
        let is_research = result.call.starts_with(RESEARCH);
        let pages = if is_research { known::pages_of_draft(&cx.draft) } else { String::new() };
        let names = known::names_of(&stated, &pages);
        known.add_named(stated, names);
    }
    let invented = known.unsupported(&said.join("\n"), &cx.clock.last().to_string());
    let values: Vec<String> = invented.iter().map(|value| format!("{value:?}")).collect();
    (!values.is_empty()).then(|| {
        format!(
            "{} is neither said by the user nor stated by a result of this turn; leave it out",
            values.join(", ")
        )
    })
}

/// `toolresults.md` as a document for recipes.
pub(super) fn result_document(draft: &TurnDraft) -> Option<InputDocument> {
    let at = draft.place.tool_results();
    Some(InputDocument::whole(at.name(), at.as_str(), files::text(draft, &at)?))
}

/// These results in the form of `toolresults.md`, as a document for recipes; `None` without any.
pub(super) fn list_of(draft: &TurnDraft, results: &[ToolResult]) -> Option<InputDocument> {
    let at = draft.place.tool_results();
    let text: String = results.iter().map(ToolResult::write).collect();
    (!results.is_empty()).then(|| InputDocument::whole(at.name(), at.as_str(), text))
}

/// The result that states a claim, and the line in it: not the result's title, if another line states something the
/// title does not.
fn ground<'r>(claim: &str, results: &'r [ToolResult]) -> Option<(&'r ToolResult, Range<usize>)> {
    let mut index = RankIndex::for_query(claim);
    let mut places = Vec::new();
    for result in results {
        // Once for the result: checked for each line, a long result would be read thousands of times.
        let is_stating = states(&result.content, claim);
        for range in lines(&result.content) {
            index.add(&result.content[range.clone()]);
            places.push((result, range, is_stating));
        }
    }
    let hits = index.search(claim, 0);
    let mut stating = hits.iter().filter_map(|hit| places.get(hit.passage)).filter(|place| place.2);
    let first = stating.next()?;
    let title = lines(&first.0.content).next().filter(|title| *title == first.1);
    let better = title.and_then(|title| {
        let known = words(&first.0.content[title]);
        let rest: BTreeSet<String> = words(claim).difference(&known).cloned().collect();
        stating.take(NEAREST).find(|place| !words(&place.0.content[place.1.clone()]).is_disjoint(&rest))
    });
    let (result, range, _) = better.unwrap_or(first);
    Some((*result, range.clone()))
}

/// Words and numbers in lower case, without short words.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|char: char| !char.is_alphanumeric());
    let is_significant = |word: &&str| word.chars().count() > 2 || word.parse::<u64>().is_ok();
    words.filter(is_significant).map(str::to_lowercase).collect()
}

/// Whether an offset in the text is the same in the stored bytes: no earlier byte was replaced.
fn is_exact(result: &ToolResult, range: &Range<usize>) -> bool {
    !result.content[..range.end].contains(char::REPLACEMENT_CHARACTER)
}

/// Whether every number, price, address and name of `claim` appears in `text`.
fn states(text: &str, claim: &str) -> bool {
    !text.is_empty() && rewrite::invented(text, claim).is_none()
}

/// The line of `text` that shares most with `claim`.
fn stretch(text: &str, claim: &str) -> Option<Range<usize>> {
    let ranges: Vec<Range<usize>> = lines(text).collect();
    let mut index = RankIndex::for_query(claim);
    for range in &ranges {
        index.add(&text[range.clone()]);
    }
    ranges.get(index.search(claim, 0).first()?.passage).cloned()
}

fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    let range = move |line: &str| {
        let start = at;
        at += line.len();
        start..start + line.trim_end().len()
    };
    text.split_inclusive('\n').map(range).filter(|range| !range.is_empty()).take(MAX_LINES)
}

/// The pointer to a range of an original.
fn part(pointer: &Pointer, range: Range<usize>) -> Pointer {
    Pointer::bytes(pointer.id.clone(), range)
}

#[cfg(test)]
mod tests {
    use larder_vault::context::CallStatus;

    use super::*;

    fn result(number: u32, content: &str) -> ToolResult {
        ToolResult {
            number,
            call: "doc.search()".into(),
            iteration: 1,
            goal: None,
            status: CallStatus::Success,
            at: "2026-01-05T10:00:00Z".parse().unwrap(),
            bytes: content.len() as u64,
            original: None,
            content: content.to_owned(),
        }
    }

    #[test]
    fn a_claim_is_traced_to_the_line_that_states_it() {
        let results = [
            result(1, "Laptops of the week\nHP Victus 15 for $649 at bestbuy\n"),
            result(2, "Other\nLenovo LOQ 15 now $697\nEnd"),
        ];
        let (found, range) = ground("Lenovo LOQ 15 @ $697", &results).unwrap();
        assert_eq!((found.number, &found.content[range]), (2, "Lenovo LOQ 15 now $697"));
        assert!(ground("Lenovo LOQ 15 @ $599", &results).is_none(), "a price that no result states");
        assert!(ground("Lenovo LOQ 15 @ $697", &[]).is_none());
    }

    #[test]
    fn a_line_that_states_more_is_preferred_to_the_title() {
        let notes = "Acme Server 3.0 release notes\n\n- Fixed a crash.\n- HTTP/3 is on by default.\n";
        let notes = [result(1, notes)];
        let (found, range) = ground("Acme Server 3.0 has HTTP/3 on by default.", &notes).unwrap();
        assert_eq!(&found.content[range], "- HTTP/3 is on by default.");
        let titles = [result(1, "Lenovo LOQ 15 costs $697\nHP Victus costs $649\n")];
        assert_eq!(ground("Lenovo LOQ 15 @ $697", &titles).unwrap().1, 0..24);
    }

    #[test]
    fn after_bytes_that_are_not_text_no_position_is_exact() {
        let latin = result(1, "Preis f\u{fffd}r LOQ\nLOQ: $697\n");
        assert!(!is_exact(&latin, &(16..25)) && is_exact(&latin, &(0..5)));
    }
}
