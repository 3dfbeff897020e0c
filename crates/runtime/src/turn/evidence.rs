//! Claims of phase 4 and what they stand on (R0-14.8, R1-3.42, R1-9.15): each is led back to the bytes of a tool's result
//! that say it. A claim with a value that no result states is made up, whatever source it names, and is left out.

use std::ops::Range;

use larder_core::content::rank::RankIndex;
use larder_core::content::retell;
use larder_core::content::sections::SectionId;
use larder_core::document::context::{Claim, Origin};
use larder_core::document::links::DualLink;
use larder_core::document::{self, BlockId, ToolResult, ToolResults};
use larder_core::pointer::Pointer;

use super::machine::Machine;
use crate::inputs::Document;
use crate::tools::ToolOutput;

/// Lines of one result that are searched for what a claim says.
const MOST_LINES: usize = 5_000;

impl Machine<'_> {
    /// Takes up what a tool found to be so. Its own word for where that stands counts; else the result is searched.
    pub(super) fn add_tool_claims(
        &mut self,
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
            self.add_claim(claim.clone(), bytes, document);
        }
    }

    /// Takes up what the model says that results show.
    pub(super) fn add_claims(&mut self, claims: Vec<Claim>) {
        if claims.is_empty() {
            return;
        }
        let results = self.results();
        let gathered = self.gathered();
        for claim in claims {
            match ground(&claim.claim, &results) {
                Some((result, range)) => {
                    let bytes = result.original.as_ref().map(|pointer| part(pointer, range));
                    let block = result.block();
                    let label = block.as_str().to_owned();
                    let link = DualLink::to_block(self.draft.place.tool_results(), block, &label);
                    self.add_claim(claim, bytes, Some(link));
                }
                None if states(&gathered, &claim.claim) => self.add_claim(claim, None, None),
                None => self.warn(format!(
                    "the claim {:?} is left out: nothing that a tool gave or that was gathered states it",
                    claim.claim
                )),
            }
        }
    }

    fn add_claim(&mut self, mut claim: Claim, bytes: Option<Pointer>, document: Option<DualLink>) {
        let rounds = self.state.rounds.get_or_insert_default();
        if rounds.claims.iter().any(|known| known.claim == claim.claim && known.source == claim.source) {
            return;
        }
        self.state.claims += 1;
        let block = BlockId::numbered("claim", self.state.claims);
        claim.origin = Some(Origin { block, bytes, document });
        rounds.claims.push(claim);
    }

    /// Every result of the turn.
    pub(super) fn results(&self) -> Vec<ToolResult> {
        let at = self.draft.place.tool_results();
        let text = self.text_of(&at).unwrap_or_default();
        let read = document::Document::<ToolResults>::read(text, &at);
        read.value.map(|document| document.value.results).unwrap_or_default()
    }

    fn gathered(&self) -> String {
        let view = document::select(&self.context, [SectionId::GatheredContext]);
        let section = view.sections.iter().find(|section| section.id == SectionId::GatheredContext);
        section.map(|section| view.body_of(section).to_owned()).unwrap_or_default()
    }

    /// `toolresults.md` as a document for recipes.
    pub(super) fn result_document(&self) -> Option<Document> {
        let at = self.draft.place.tool_results();
        Some(Document::whole(at.name(), at.as_str(), self.text_of(&at)?))
    }
}

/// The result that states a claim, and the line of it that says so.
fn ground<'r>(claim: &str, results: &'r [ToolResult]) -> Option<(&'r ToolResult, Range<usize>)> {
    let mut index = RankIndex::default();
    let mut places = Vec::new();
    for result in results {
        for range in lines(&result.content) {
            index.add(&result.content[range.clone()]);
            places.push((result, range));
        }
    }
    let hits = index.search(claim, 0);
    let places = hits.iter().filter_map(|hit| places.get(hit.passage));
    places
        .filter(|(result, _)| states(&result.content, claim))
        .map(|(result, range)| (*result, range.clone()))
        .next()
}

/// Whether every number, price, address and name of `claim` stands in `text`.
fn states(text: &str, claim: &str) -> bool {
    !text.is_empty() && retell::invented(text, claim).is_none()
}

/// The line of `text` that says most of what `claim` says.
fn stretch(text: &str, claim: &str) -> Option<Range<usize>> {
    let ranges: Vec<Range<usize>> = lines(text).collect();
    let mut index = RankIndex::of_query(claim);
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
    text.split_inclusive('\n').map(range).filter(|range| !range.is_empty()).take(MOST_LINES)
}

/// The pointer to a stretch.
fn part(pointer: &Pointer, range: Range<usize>) -> Pointer {
    Pointer::bytes(pointer.id.clone(), range)
}

#[cfg(test)]
mod tests {
    use larder_core::document::context::CallStatus;

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
    fn a_claim_is_led_back_to_the_line_that_says_it() {
        let results = [
            result(1, "Laptops of the week\nHP Victus 15 for $649 at bestbuy\n"),
            result(2, "Other\nLenovo LOQ 15 now $697\nEnd"),
        ];
        let (found, range) = ground("Lenovo LOQ 15 @ $697", &results).unwrap();
        assert_eq!((found.number, &found.content[range]), (2, "Lenovo LOQ 15 now $697"));
        assert!(ground("Lenovo LOQ 15 @ $599", &results).is_none(), "a price that nobody states");
        assert!(ground("Lenovo LOQ 15 @ $697", &[]).is_none());
    }
}
