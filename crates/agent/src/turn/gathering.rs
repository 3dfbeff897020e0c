//! Phase 2: what is known already (R1-3.29 to R1-3.34, R1-10, R1-14). Retrieval finds candidates, a model chooses among
//! them, retrieval reads what was chosen, and a model compiles §2. What a model names and was not shown is left out.

use std::sync::Arc;

use larder_vault::context::{CachedResearch, GatheredContext, TopResult};
use larder_vault::links::{DualLink, Reference};
use larder_vault::{Hours, Research, VaultPath};

use super::answers::{GatheringAnswer, RetrievalAnswer, ShownItems};
use super::error::Stop;
use super::event::TurnEvent;
use super::gathered_documents;
use super::machine::{Done, Machine};
use super::recipes::Offer;
use super::state::Step;
use larder_engine::inputs::InputDocument;
use larder_retrieval::{Candidates, Grant, LinkExpansion, LinkToFollow, ResearchCandidate, Retrieval};

const RETRIEVAL: &str = "phase2_context_gatherer_retrieval";
const SYNTHESIS: &str = "phase2_context_gatherer_synthesis";
/// Results of cached research that §2 shows; the research itself is linked.
const TOP_RESULTS: usize = 3;

impl Machine<'_> {
    /// Gathers in two runs of recipes.
    pub(super) async fn gather(&mut self) -> Result<Done, Stop> {
        let turns = self.turns;
        let vector = self.query_vector().await;
        let (now, counter) = (self.clock.now(), self.counter.clone());
        let retrieval = Retrieval::new(&turns.documents, &counter, now, Grant::Gatherer);
        let retrieval = retrieval.with_vector(vector.as_ref());
        let reference = self.state.analysis.as_ref().and_then(|analysis| analysis.content_reference.clone());
        let (number, session) = (self.draft.number, self.draft.session.clone());
        let found = retrieval.find(self.resolved(), number, session.as_deref(), reference.as_ref())?;
        let offer = Offer { documents: gathered_documents::candidates(&found), ..Offer::default() };
        let (chosen, links) = self.decide(RETRIEVAL, offer, |answer| Ok(links(answer))).await?;
        let direct = direct_info(&chosen, &found);
        let followed = retrieval.follow(&links, self.room_for_links(&direct, &found))?;
        self.tell_considered(&found, &followed);
        let mut documents = gathered_documents::linked(&followed);
        documents.extend(gathered_documents::preferences(&found));
        documents.extend(direct);
        let known = known(&found, &followed);
        let offer = Offer { documents, ..Offer::default() };
        let make = |answer: &GatheringAnswer| Ok(answer.gathered(&known));
        let (answer, (mut gathered, dropped)) = self.decide(SYNTHESIS, offer, make).await?;
        for name in dropped {
            self.warn(format!("gathering named {name}, which it was not shown; it is left out"));
        }
        add_page(&mut gathered, &found);
        self.keep_used_research(&mut gathered, &followed).await?;
        self.append(&gathered)?;
        self.state.references =
            gathered.references.into_iter().map(|reference| reference.link.file).collect();
        Ok(Done::new(Step::Plan, answer.sufficiency.as_str()))
    }

    /// Tokens for linked documents: what the input of the recipe that compiles leaves beside the rest of what it reads
    /// (C23).
    fn room_for_links(&self, direct: &Option<InputDocument>, found: &Candidates) -> usize {
        let input = self.recipe(SYNTHESIS).map_or(0, |recipe| recipe.budget.input);
        let preferences = gathered_documents::preferences(found);
        let beside = direct.iter().chain(&preferences).map(|document| self.counter.count(&document.text));
        let beside: usize = beside.sum();
        input.saturating_sub(beside + self.counter.count(&self.context))
    }

    fn tell_considered(&mut self, found: &Candidates, followed: &LinkExpansion) {
        let all = found.considered.iter().chain(&followed.considered);
        let considered: Vec<serde_json::Value> =
            all.filter_map(|considered| serde_json::to_value(considered).ok()).collect();
        self.state.considered.extend(considered.iter().cloned());
        self.tell(&TurnEvent::Gathered { considered });
    }

    /// Of the research that was found, §2 lists what was read or referred to, with the best of its results.
    async fn keep_used_research(
        &self,
        gathered: &mut GatheredContext,
        followed: &LinkExpansion,
    ) -> Result<(), Stop> {
        let referred = &gathered.references;
        gathered.research.retain(|research| {
            let file = research.document.as_ref().map(|link| &link.file);
            referred.iter().any(|reference| Some(&reference.link.file) == file)
                || followed.documents.iter().any(|document| Some(&document.path) == file)
        });
        for research in &mut gathered.research {
            let Some(link) = &research.document else { continue };
            let text = self.turns.documents.files().read_text(&link.file)?.unwrap_or_default();
            research.top = top_results(&text, &link.file);
        }
        Ok(())
    }
}

fn links(answer: &RetrievalAnswer) -> Vec<LinkToFollow> {
    let link = |chosen: &super::answers::LinkChoice| LinkToFollow {
        path: chosen.path.clone(),
        sections_to_extract: chosen.sections_to_extract.clone(),
    };
    answer.links_to_follow.iter().map(link).collect()
}

/// What answers directly: what retrieval said, and the captured page whatever it said (R1-5.6, R1-5.7).
fn direct_info(answer: &RetrievalAnswer, found: &Candidates) -> Option<InputDocument> {
    let said = answer.direct_info.iter().map(|info| format!("- {}\n", info.trim())).collect::<String>();
    let page = gathered_documents::page(found);
    let page = page.map(|page| format!("\nThe captured page:\n{}", page.text)).unwrap_or_default();
    let text = said + &page;
    (!text.is_empty()).then(|| InputDocument::whole("direct_info", "direct_info", Arc::from(text)))
}

/// Everything that the model was shown, by the paths under which it was.
fn known(found: &Candidates, followed: &LinkExpansion) -> ShownItems {
    let mut known = ShownItems::default();
    let mut add = |file: &VaultPath, label: &str, note: &str| {
        let link = DualLink::new(file.clone(), label);
        let entry = known.documents.entry(file.to_string());
        entry.or_insert_with(|| Reference { link, note: note.to_owned() });
    };
    let research: Vec<&ResearchCandidate> = found.cached_intel.iter().chain(&found.research_hits).collect();
    for candidate in &research {
        add(&candidate.document, &candidate.id, "Full research");
    }
    for turn in &found.turn_index {
        add(&turn.context, &larder_vault::turn_name(turn.turn), "Prior turn");
    }
    if let Some(page) = &found.page {
        add(&page.document, page.document.short(), "Captured page");
    }
    for passage in &found.passages {
        add(&passage.document, passage.document.short(), "Passage");
    }
    for fact in found.facts.iter().filter_map(|fact| fact.source.as_ref()) {
        add(fact, fact.short(), "Memory");
    }
    for read in &followed.documents {
        add(&read.path, read.path.short(), "Linked document");
    }
    let preferences = found.preferences.iter().filter_map(|preference| preference.source_turn);
    known.turns = found.turn_index.iter().map(|turn| turn.turn).chain(preferences).collect();
    let mut seen = Vec::new();
    for candidate in research {
        if !seen.contains(&&candidate.document) {
            seen.push(&candidate.document);
            known.research.push(cached(candidate));
        }
    }
    known
}

fn cached(candidate: &ResearchCandidate) -> CachedResearch {
    CachedResearch {
        document: Some(DualLink::new(candidate.document.clone(), &candidate.id)),
        topic: candidate.topic.clone(),
        quality: candidate.quality,
        age: Hours::from_seconds(candidate.age_seconds),
        top: Vec::new(),
    }
}

fn top_results(text: &str, at: &VaultPath) -> Vec<TopResult> {
    let research = larder_vault::Document::<Research>::read(text, at).value.map(|document| document.value);
    let listings = research.map(|research| research.listings).unwrap_or_default();
    let top = |listing: larder_vault::Listing| TopResult {
        product: listing.product,
        price: listing.price,
        source: listing.vendor,
    };
    listings.into_iter().take(TOP_RESULTS).map(top).collect()
}

/// The captured page is referred to, and its address stands in §2, whatever the model made of it (R1-5.7, R1-14.7).
fn add_page(gathered: &mut GatheredContext, found: &Candidates) {
    let Some(page) = &found.page else { return };
    if !gathered.references.iter().any(|reference| reference.link.file == page.document) {
        let link = DualLink::new(page.document.clone(), page.document.short());
        gathered.references.push(Reference { link, note: "Captured page".to_owned() });
    }
    if !gathered.information.contains(&page.source_url) {
        gathered.information += &format!("\n\nAddress of the captured page: {}", page.source_url);
    }
}
