//! Phase 2: what is already known (R1-3.29 to R1-3.34, R1-10, R1-14). Retrieval finds candidates, a model chooses
//! among them, retrieval reads the chosen ones, and a model compiles §2. Anything that a model names without having
//! been shown it is dropped.

use std::sync::Arc;

use larder_engine::inputs::InputDocument;
use larder_retrieval::{
    Candidates, Grant, LinkExpansion, LinkToFollow, PageLevel, ResearchCandidate, Retrieval, SMALL_PAGE,
    WHOLE,
};
use larder_store::UserDocuments;
use larder_text::tokens::Counter;
use larder_tools::figures::{self, Evidence};
use larder_vault::context::{CachedResearch, GatheredContext, TopResult};
use larder_vault::lifecycle::ResearchState;
use larder_vault::links::{DualLink, Reference};
use larder_vault::{BlockId, DocumentTime, Hours, Research, VaultPath};

use super::answers::{GatheringAnswer, RetrievalAnswer, ShownItems};
use super::doubts::Doubts;
use super::embeddings::query_vector;
use super::error::Stop;
use super::event::{Events, TurnEvent};
use super::gathered_documents;
use super::phase::{PhaseContext, PhaseOutcome};
use super::recipes::PhaseInputs;
use super::turn_phase::TurnPhase;
use super::{known, old_prices, old_research};

const RETRIEVAL: &str = "phase2_context_gatherer_retrieval";
const SYNTHESIS: &str = "phase2_context_gatherer_synthesis";
/// Results of cached research that §2 shows; the research itself is linked.
const TOP_RESULTS: usize = 3;
/// Tokens of what a captured page answers in §2, besides the text of a small page; the capture is linked.
const CAPTURED_ANSWER: usize = SMALL_PAGE;

/// Gathers in two runs of recipes.
pub(super) async fn run(cx: &mut PhaseContext<'_>) -> Result<PhaseOutcome, Stop> {
    let turns = cx.turns;
    let vector = query_vector(cx).await;
    let (now, counter) = (cx.clock.now(), cx.document.condenser.counter.clone());
    let retrieval = Retrieval::new(&turns.documents, &counter, now, Grant::Gatherer);
    let query = cx.query().to_owned();
    let retrieval = retrieval.with_vector(vector.as_ref()).with_query(&query);
    let reference = cx.state.analysis.as_ref().and_then(|analysis| analysis.content_reference.as_ref());
    let (number, session) = (cx.draft.number, cx.draft.session.as_deref());
    let found = retrieval.find(cx.query(), number, session, reference).await?;
    let mut candidates = gathered_documents::candidates(&found, turns.documents.place());
    let page = candidates.iter_mut().filter(|document| document.input == "page");
    page.for_each(|page| say_age(&turns.documents, page, now));
    let inputs = PhaseInputs { documents: candidates.clone(), ..PhaseInputs::default() };
    let (chosen, links) = cx.recipes().decide(RETRIEVAL, inputs, |answer| Ok(links(answer))).await?;
    let direct = direct_info(&chosen, &candidates);
    let followed = retrieval.follow(&links, room_for_links(cx, &direct, &found)).await?;
    report_considered(cx, &found, &followed);
    let mut documents = gathered_documents::linked(&followed);
    documents.iter_mut().for_each(|document| say_age(&turns.documents, document, now));
    documents.extend(gathered_documents::preferences(&found, turns.documents.place()));
    let mut shown = shown(&turns.documents, &found, &followed)?;
    let asked = [cx.document.asked().unwrap_or_default(), cx.query().to_owned()].join("\n");
    let turns_found = found.turn_index.iter().map(|turn| (turn.context.to_string(), turn.line()));
    let read = documents.iter().chain(candidates.iter().filter(|document| document.input != "turn_index"));
    let read = read.map(|document| (document.name.clone(), document.text.to_string()));
    let read = ReadEvidence::new(&turns.documents, read.chain(turns_found), now, &asked);
    // What the first model said in passing is no evidence: all that it was shown is.
    documents.extend(direct);
    let texts = documents.iter().chain(&candidates).map(|document| &*document.text);
    let time = now.to_string();
    shown.text = texts.chain([read.current.as_str(), &time]).collect::<Vec<_>>().join("\n").to_lowercase();
    let inputs = PhaseInputs { documents, ..PhaseInputs::default() };
    let convert = |answer: &GatheringAnswer| Ok(answer.gathered(&shown));
    let (answer, (mut gathered, dropped)) = cx.recipes().decide(SYNTHESIS, inputs, convert).await?;
    if let Some(first) = dropped.first() {
        let others =
            if dropped.len() > 1 { format!(" and {} more", dropped.len() - 1) } else { String::new() };
        cx.events.warn(format!("gathering named {first}{others}, which it was not shown; dropped"));
    }
    let is_meant = cx.state.analysis.as_ref().is_some_and(|analysis| analysis.content_reference.is_some());
    gathered.information = read.stated(&gathered.information, now, cx.events);
    let compiled = gathered.information.clone();
    add_page(&mut gathered, &found, is_meant, &counter, (&turns.documents, now));
    add_publications(&mut gathered, &found);
    cx.state.unstated = unstated(&gathered, &compiled, &read.names);
    cx.state.old_days = read.days;
    gathered.memory = used_memory(&turns.documents, &gathered, &found)?;
    let facts = found.facts.iter().filter_map(|fact| Some((fact.id.clone()?, fact.fact.clone())));
    cx.state.facts = facts.collect();
    keep_used_research(&turns.documents, &mut gathered, (&found, &followed))?;
    cx.document.append(&gathered).await?;
    cx.state.references = gathered.references.into_iter().map(|reference| reference.link.file).collect();
    Ok(PhaseOutcome::new(TurnPhase::Plan, answer.sufficiency.as_str()))
}

/// What the model that compiles §2 may state.
struct ReadEvidence {
    /// What was read, without old prices.
    current: String,
    /// The same with them.
    with_old: String,
    /// What may state names.
    names: String,
    /// When the old prices were looked up.
    days: Vec<DocumentTime>,
}

impl ReadEvidence {
    fn new(
        documents: &UserDocuments,
        read: impl Iterator<Item = (String, String)>,
        now: DocumentTime,
        asked: &str,
    ) -> Self {
        let mut doubts = Doubts::new(documents);
        let (mut current, mut with_old, mut names, mut days) = (vec![], vec![], vec![], vec![]);
        for (name, text) in read {
            days.extend(old_prices::days(documents, (&name, &text), now));
            let stated = old_research::evidence(&doubts.without(&name, &text), &name, now);
            let pages = known::pages_of_research(documents, &name, &text);
            with_old.push(stated.clone());
            let stated = old_prices::evidence(documents, (&name, stated), now, "");
            names.push(known::names_of(&stated, &pages));
            current.push(stated);
        }
        days.sort_unstable();
        days.dedup();
        let [current, with_old, names] =
            [current, with_old, names].map(|texts| texts.join("\n") + "\n" + asked);
        Self { current, with_old, names, days }
    }

    /// The lines of what the model compiled whose values are in what it was shown: §2 is evidence for the answer. Old prices
    /// count for the lines that say of which day they are.
    fn stated(&self, information: &str, now: DocumentTime, events: Events<'_>) -> String {
        let lines: Vec<&str> = information.lines().collect();
        let time = now.to_string();
        let [are_stated, were_stated] =
            [&self.current, &self.with_old].map(|known| Evidence::new(known).at(&time).are_stated(&lines));
        let says_day = |line: &str| self.days.iter().any(|day| old_prices::says_day(line, *day, now));
        let checked = lines.iter().zip(are_stated.into_iter().zip(were_stated));
        let kept: Vec<&str> = checked
            .filter(|(line, (is_stated, was_stated))| *is_stated || *was_stated && says_day(line))
            .map(|(line, _)| *line)
            .collect();
        let dropped = lines.len() - kept.len();
        if dropped > 0 {
            events.warn(format!(
                "gathering stated values that nothing it was shown states; lines dropped: {dropped}"
            ));
        }
        kept.join("\n")
    }
}

/// Says in a document of which day its prices are, or that it is old research.
fn say_age(documents: &UserDocuments, document: &mut InputDocument, now: DocumentTime) {
    let old = old_research::current(&document.text, &document.name, now);
    let old = old.or_else(|| old_prices::dated(documents, &document.name, &document.text, now));
    if let Some(text) = old {
        document.text = text.into();
    }
}

/// The words that may be of names in what a model compiled, and that neither what it was shown nor what code added has.
fn unstated(gathered: &GatheredContext, compiled: &str, names: &str) -> Vec<String> {
    let added = gathered.information.strip_prefix(compiled).unwrap_or_default();
    let summaries = gathered.prior_turns.iter().map(|turn| turn.summary.as_str());
    let said = std::iter::once(compiled).chain(summaries).collect::<Vec<_>>().join("\n");
    figures::unstated_words(&said, &format!("{names}\n{added}"))
}

/// Tokens for linked documents: the input budget of the recipe that compiles, less the rest of its input (C23).
fn room_for_links(cx: &PhaseContext<'_>, direct: &Option<InputDocument>, found: &Candidates) -> usize {
    let counter = &cx.document.condenser.counter;
    let input = cx.recipe(SYNTHESIS).map_or(0, |recipe| recipe.budget.input);
    let preferences = gathered_documents::preferences(found, cx.turns.documents.place());
    let others = direct.iter().chain(&preferences).map(|document| counter.count(&document.text));
    let others: usize = others.sum();
    input.saturating_sub(others + counter.count(&cx.document.text))
}

fn report_considered(cx: &mut PhaseContext<'_>, found: &Candidates, followed: &LinkExpansion) {
    let all = found.considered.iter().chain(&followed.considered);
    let considered: Vec<serde_json::Value> =
        all.filter_map(|considered| serde_json::to_value(considered).ok()).collect();
    cx.state.considered.extend(considered.iter().cloned());
    cx.events.send(&TurnEvent::Gathered { considered });
}

/// Of the research found, §2 lists what was read or referenced, with its best results unless they are stale.
fn keep_used_research(
    documents: &UserDocuments,
    gathered: &mut GatheredContext,
    (found, followed): (&Candidates, &LinkExpansion),
) -> Result<(), Stop> {
    let referred = &gathered.references;
    gathered.research.retain(|research| {
        let file = research.document.as_ref().map(|link| &link.file);
        referred.iter().any(|reference| Some(&reference.link.file) == file)
            || followed.documents.iter().any(|document| Some(&document.path) == file)
    });
    for research in &mut gathered.research {
        let Some(link) = &research.document else { continue };
        let mut candidates = found.cached_intel.iter().chain(&found.research_hits);
        if candidates.any(|one| one.document == link.file && one.state == ResearchState::Stale) {
            // Its prices are looked up again (R1-12.4).
            let note = format!("\n\nStale research, look up prices and stock again: {}.", link.label);
            gathered.information += &note;
            continue;
        }
        let text = documents.files().read_text(&link.file)?.unwrap_or_default();
        research.top = top_results(&text, &link.file);
    }
    Ok(())
}

fn links(answer: &RetrievalAnswer) -> Vec<LinkToFollow> {
    let link = |chosen: &super::answers::LinkChoice| LinkToFollow {
        path: chosen.path.clone(),
        sections_to_extract: chosen.sections_to_extract.clone(),
    };
    answer.links_to_follow.iter().map(link).collect()
}

/// Information that answers directly: what retrieval stated, and always the captured page (R1-5.6, R1-5.7).
fn direct_info(answer: &RetrievalAnswer, candidates: &[InputDocument]) -> Option<InputDocument> {
    let said = answer.direct_info.iter().map(|info| format!("- {}\n", info.trim())).collect::<String>();
    let page = candidates.iter().find(|document| document.input == "page");
    let page = page.map(|page| format!("\nThe captured page:\n{}", page.text)).unwrap_or_default();
    let text = said + &page;
    (!text.is_empty()).then(|| InputDocument::whole("direct_info", "direct_info", Arc::from(text)))
}

/// Everything that the model was shown, by the paths in its prompt.
fn shown(
    documents: &UserDocuments,
    found: &Candidates,
    followed: &LinkExpansion,
) -> Result<ShownItems, Stop> {
    let mut shown = ShownItems::default();
    let mut add = |file: &VaultPath, label: &str, note: &str| {
        let link = DualLink::new(file.clone(), label);
        let entry = shown.documents.entry(file.to_string());
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
    let place = documents.place();
    if found.facts.iter().any(|fact| fact.published.is_none()) {
        add(&place.memory("facts"), "facts", "Memory");
    }
    if !found.preferences.is_empty() {
        add(&place.memory("preferences"), "preferences", "Memory");
    }
    for id in found.facts.iter().filter_map(|fact| fact.id.as_deref().and_then(BlockId::new)) {
        let link = DualLink::to_block(place.facts(), id.clone(), id.as_str());
        let reference = Reference { link, note: "Memory".to_owned() };
        shown.documents.insert(format!("{}#{id}", place.facts()), reference);
    }
    let preferences = found.preferences.iter().filter_map(|preference| preference.source_turn);
    let read = followed.documents.iter().filter_map(|read| turn_of(&read.path));
    shown.turns = found.turn_index.iter().map(|turn| (turn.turn, turn.context.clone())).collect();
    for number in preferences.chain(read) {
        // A turn that is gone is not linked to.
        let turn = documents.catalog().turn(number)?;
        shown.turns.extend(turn.map(|turn| (number, turn.context)));
    }
    let mut seen = Vec::new();
    for candidate in research {
        if !seen.contains(&&candidate.document) {
            seen.push(&candidate.document);
            shown.research.push(cached(candidate));
        }
    }
    Ok(shown)
}

/// §2 says of each statement that another user published who did, and where it comes from (R1-12.12).
fn add_publications(gathered: &mut GatheredContext, found: &Candidates) {
    let used = found.facts.iter().filter(|fact| larder_retrieval::states(&gathered.information, &fact.fact));
    let lines: Vec<String> =
        used.filter(|fact| fact.published.is_some()).map(larder_retrieval::FactCandidate::line).collect();
    if !lines.is_empty() {
        gathered.information += &format!("\n\nFrom other users:\n{}", lines.join("\n"));
    }
}

/// The records of memory that §2 uses: those of its preferences, and of facts that its information states (R1-8.5).
fn used_memory(
    documents: &UserDocuments,
    gathered: &GatheredContext,
    found: &Candidates,
) -> Result<Vec<VaultPath>, Stop> {
    let mut own = found.facts.iter().filter(|fact| fact.published.is_none());
    let has_fact = own.any(|fact| larder_retrieval::states(&gathered.information, &fact.fact));
    let used = [("preferences", !gathered.preferences.is_empty()), ("facts", has_fact)];
    let mut memory = Vec::new();
    for (kind, _) in used.into_iter().filter(|(_, is_used)| *is_used) {
        let file = documents.place().memory(kind);
        // What people wrote into the readable document alone has no record yet.
        if documents.files().read(&file)?.is_some() {
            memory.push(file);
        }
    }
    Ok(memory)
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

/// The turn in whose folder a document is.
fn turn_of(document: &VaultPath) -> Option<u32> {
    document.folder().split('/').find_map(larder_vault::turn_number)
}

/// §2 refers to the captured page, states what it answers and its address if the query means it, or the model named it
/// (R1-5.6, R1-5.7, R1-14.7): a page that merely shares words with the query is no evidence.
fn add_page(
    gathered: &mut GatheredContext,
    found: &Candidates,
    is_meant: bool,
    counter: &Counter,
    (documents, now): (&UserDocuments, DocumentTime),
) {
    let Some(page) = &found.page else { return };
    let file = page.document.as_str();
    // Section 2 is evidence for the answer whatever that says, so old prices, which need their day, have no place there.
    let current = |text: String| old_prices::evidence(documents, (file, text), now, "");
    let is_captured = page.document.name() != "context.md";
    let is_named = |gathered: &GatheredContext, file: &VaultPath| {
        gathered.references.iter().any(|reference| reference.link.file == *file)
    };
    if !is_meant && !is_named(gathered, &page.document) {
        return;
    }
    let refer = |gathered: &mut GatheredContext, file: &VaultPath| {
        if !is_named(gathered, file) {
            let note = if is_captured { "Captured page" } else { "The turn that saw the page" };
            let link = DualLink::new(file.clone(), file.short());
            gathered.references.push(Reference { link, note: note.to_owned() });
        }
    };
    refer(gathered, &page.document);
    // What a page said once can be cited with its day also where it no longer answers.
    let whole = page.small_page.as_ref();
    if let Some(page) = whole {
        refer(gathered, &page.document);
    }
    if let Some(answer) = page.captured(CAPTURED_ANSWER, counter) {
        let mut said: Vec<String> = vec![current(answer).trim().to_owned()];
        if let Some(whole) = whole {
            let text = current(whole.text.clone());
            said.extend(
                Some(text.trim()).filter(|text| !text.is_empty()).map(|text| format!("{WHOLE}\n{text}")),
            );
        }
        said.retain(|said| !said.is_empty());
        if !said.is_empty() {
            let said = said.join("\n\n");
            gathered.information += &format!("\n\nFrom the capture of {}:\n{said}", page.source_url);
        }
    }
    if page.level == PageLevel::Navigate {
        gathered.information += &format!(
            "\n\nThe page was captured on {} and may have changed since; how it is now: {}",
            page.captured_at.day(),
            page.source_url
        );
    } else if !gathered.information.contains(&page.source_url) {
        gathered.information += &format!("\n\nAddress of the captured page: {}", page.source_url);
    }
}
