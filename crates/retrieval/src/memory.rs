//! Memory: preferences, facts, and what worked before (R1-7.1, R1-7.2, R1-10.5; C76, C102). Facts and preferences are
//! ranked by relevance to the query, then by recency, and at most five are shown; the rest stays in `memory/`.

use larder_vault::layout::site_knowledge;
use larder_vault::{
    Document, DocumentTime, DocumentValue, FactRecord, FactRecords, Facts, PreferenceRecords, Preferences,
    Scope, SiteKnowledge, Ttl, VaultPath, read_json, turn_number,
};
use serde::de::DeserializeOwned;

use super::page::PageAnswer;
use super::phrases::PaddedQuery;
use super::ranking::{Ranked, scores};
use super::render::line;
use super::trace::Trace;
use super::{
    FactCandidate, MAX_SHOWN, PreferenceCandidate, PublishedBy, Retrieval, RetrievalError, SearchRequest,
};

/// Categories of facts that are ways to proceed, not statements.
const STRATEGIES: [&str; 6] =
    ["strategy", "strategies", "strategy_pattern", "strategy_patterns", "lesson", "lessons"];
/// Maximum number of sites whose stored knowledge is consulted per query.
const MOST_SITES: usize = 4;

/// Remembered entries that may matter.
pub(super) struct Memory {
    pub(super) preferences: Vec<PreferenceCandidate>,
    pub(super) facts: Vec<FactCandidate>,
    pub(super) strategies: Vec<String>,
}

pub(super) async fn find(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    page: Option<&PageAnswer>,
    trace: &mut Trace,
) -> Result<Memory, RetrievalError> {
    let place = retrieval.documents.place();
    let preferences = preferences(retrieval).await;
    let scored = rank(retrieval, request.query, &preferences, |line| format!("{} {}", line.name, line.value));
    let set = |line: &mut PreferenceCandidate, score| line.score = score;
    let at = place.preferences();
    let at = |_: &PreferenceCandidate| at.to_string();
    let preferences =
        show(retrieval, preferences, &scored, set, ("preference", &at), trace, PreferenceCandidate::line);
    let (mut facts, mut ways) = (Vec::new(), Vec::new());
    for fact in facts_of(retrieval, trace).await {
        let is_way = STRATEGIES.iter().any(|name| fact.category.eq_ignore_ascii_case(name));
        if is_way { ways.push(fact) } else { facts.push(fact) }
    }
    let published = published(retrieval, &facts)?;
    facts.extend(published);
    let mut scored =
        rank(retrieval, request.query, &facts, |line| format!("{} {}", line.fact, line.category));
    // What is new counts in its own conversation; elsewhere only where the query asks for it (R1-12.6). So does what
    // others published.
    scored.retain(|(at, score)| {
        let fact = &facts[*at];
        let counts = *score > 0.0 || fact.published.is_none() && is_of_conversation(retrieval, request, fact);
        if !counts {
            let why = match &fact.published {
                None => "it is new in another conversation and holds no words of the query",
                Some(_) => "another user published it, and it holds no words of the query",
            };
            trace.unused("fact", &fact_place(retrieval, fact), *score, why);
        }
        counts
    });
    let mut others = 0;
    scored.retain(|(at, score)| {
        others += usize::from(facts[*at].published.is_some());
        let counts = facts[*at].published.is_none() || others <= MAX_PUBLISHED;
        if !counts {
            trace.unused("fact", &fact_place(retrieval, &facts[*at]), *score, MANY_PUBLISHED);
        }
        counts
    });
    let set = |line: &mut FactCandidate, score| line.score = score;
    let at = |fact: &FactCandidate| fact_place(retrieval, fact);
    let facts = show(retrieval, facts, &scored, set, ("fact", &at), trace, FactCandidate::line);
    let strategies = strategies(retrieval, request, page, ways, trace).await;
    Ok(Memory { preferences, facts, strategies })
}

/// Statements of other users that are shown at most, so that they displace few of the user's own facts.
pub(super) const MAX_PUBLISHED: usize = 2;
/// Why another is not.
pub(super) const MANY_PUBLISHED: &str = "two that other users published rank above it";

/// What other users published (R1-12.12), unless the user knows it already. What this user published is among the user's
/// own facts.
pub(super) fn published(
    retrieval: &Retrieval<'_>,
    own: &[FactCandidate],
) -> Result<Vec<FactCandidate>, RetrievalError> {
    let store = retrieval.documents.store();
    let mut others = store.publications().list()?;
    others.retain(|publication| publication.published_by != store.user());
    let facts = others.into_iter().flat_map(|publication| {
        let by =
            PublishedBy { id: publication.id, user: publication.published_by, source: publication.source };
        publication.statements.into_iter().map(move |fact| FactCandidate {
            id: None,
            fact,
            category: publication.category.clone(),
            scope: Scope::Global,
            confidence: None,
            source: None,
            published: Some(by.clone()),
            updated_at: Some(publication.published_at.into()),
            score: 0.0,
        })
    });
    Ok(facts.filter(|fact| own.iter().all(|own| own.fact != fact.fact)).collect())
}

/// Where a fact is, for the receipt.
pub(super) fn fact_place(retrieval: &Retrieval<'_>, fact: &FactCandidate) -> String {
    match &fact.published {
        Some(by) => format!("publication {} by {}", by.id, by.user),
        None => retrieval.documents.place().facts().to_string(),
    }
}

/// Whether a fact counts in the conversation of the request, whatever is asked.
fn is_of_conversation(retrieval: &Retrieval<'_>, request: &SearchRequest<'_>, fact: &FactCandidate) -> bool {
    let number = fact.source.as_ref().and_then(turn_of).filter(|_| fact.scope == Scope::New);
    let turn = number.and_then(|number| retrieval.documents.catalog().turn(number).ok().flatten());
    turn.is_none_or(|turn| turn.session.as_deref() == request.session)
}

/// The records, in which people's own edits of the readable rendering count (C76).
pub(super) async fn preferences(retrieval: &Retrieval<'_>) -> Vec<PreferenceCandidate> {
    let place = retrieval.documents.place();
    let records: PreferenceRecords = json(retrieval, &place.memory("preferences")).await.unwrap_or_default();
    let records = records.preferences.into_iter().map(|record| PreferenceCandidate {
        source_turn: record.source.as_ref().and_then(turn_of),
        name: record.id,
        value: record.value,
        updated_at: Some(record.updated_at),
        score: 0.0,
    });
    let mut lines: Vec<PreferenceCandidate> = records.collect();
    let shown: Option<Preferences> = markdown(retrieval, &place.preferences()).await;
    // A line that people removed from the rendering removes its record.
    if let Some(shown) = &shown {
        lines.retain(|line| shown.0.iter().any(|known| known.name == line.name));
    }
    for shown in shown.into_iter().flat_map(|shown| shown.0) {
        match lines.iter_mut().find(|line| line.name == shown.name) {
            Some(line) => line.value = shown.value,
            None => lines.push(PreferenceCandidate {
                source_turn: shown.source.as_ref().and_then(|source| turn_of(&source.file)),
                name: shown.name,
                value: shown.value,
                updated_at: None,
                score: 0.0,
            }),
        }
    }
    lines
}

/// The unexpired records, with people's edits of the rendering applied.
pub(super) async fn facts_of(retrieval: &Retrieval<'_>, trace: &mut Trace) -> Vec<FactCandidate> {
    let place = retrieval.documents.place();
    let at = place.memory("facts");
    let records: FactRecords = json(retrieval, &at).await.unwrap_or_default();
    let mut lines = Vec::new();
    let mut deleted = Vec::new();
    for record in records.facts {
        if ended(&record, retrieval.now) {
            trace.unused("fact", &format!("{at}#{}", record.id), 0.0, "its time is over");
            deleted.push(record.id.as_str().to_owned());
        } else {
            lines.push(fact_line(record));
        }
    }
    let shown: Option<Facts> = markdown(retrieval, &place.facts()).await;
    if let Some(shown) = &shown {
        let stands =
            |id: &str| shown.0.iter().any(|fact| fact.id.as_ref().is_some_and(|known| known.as_str() == id));
        lines.retain(|line| line.id.as_deref().is_none_or(stands));
    }
    for shown in shown.into_iter().flat_map(|shown| shown.0) {
        let id = shown.id.map(|id| id.as_str().to_owned());
        match lines.iter_mut().find(|line| id.is_some() && line.id == id) {
            Some(line) => line.fact = shown.fact,
            None if id.as_ref().is_some_and(|id| deleted.contains(id)) => {}
            None => lines.push(FactCandidate {
                id,
                fact: shown.fact,
                category: shown.category,
                scope: shown.scope,
                confidence: shown.confidence,
                source: shown.source.map(|source| source.file),
                published: None,
                updated_at: None,
                score: 0.0,
            }),
        }
    }
    lines
}

fn ended(record: &FactRecord, now: DocumentTime) -> bool {
    match record.ttl {
        Ttl::Evergreen => false,
        ttl @ Ttl::Seconds(_) => ttl.end(record.updated_at).is_some_and(|end| end <= now),
    }
}

fn fact_line(record: FactRecord) -> FactCandidate {
    FactCandidate {
        id: Some(record.id.as_str().to_owned()),
        fact: record.fact,
        category: record.category,
        scope: record.scope,
        confidence: Some(record.confidence),
        source: record.source,
        published: None,
        updated_at: Some(record.updated_at),
        score: 0.0,
    }
}

/// Something that was remembered at some time.
pub(super) trait Remembered {
    fn updated_at(&self) -> Option<DocumentTime>;
}

impl Remembered for PreferenceCandidate {
    fn updated_at(&self) -> Option<DocumentTime> {
        self.updated_at
    }
}

impl Remembered for FactCandidate {
    fn updated_at(&self) -> Option<DocumentTime> {
        self.updated_at
    }
}

/// Places and scores: by relevance, then the newer, then in their order.
fn rank<T: Remembered>(
    retrieval: &Retrieval<'_>,
    query: &str,
    lines: &[T],
    text: impl Fn(&T) -> String,
) -> Vec<(usize, f64)> {
    // Names are written with signs between their words: `favorite_hamster`.
    let texts: Vec<String> = lines.iter().map(|line| text(line).replace(['_', '.'], " ")).collect();
    let scores = scores(query, retrieval.now, texts.iter().map(|text| Ranked::alone(text)));
    let mut ranked: Vec<(usize, f64)> = scores.into_iter().enumerate().collect();
    ranked.sort_by(|a, b| {
        let newer = lines[b.0].updated_at().cmp(&lines[a.0].updated_at());
        b.1.total_cmp(&a.1).then(newer).then(a.0.cmp(&b.0))
    });
    ranked
}

/// The first five; the others are recorded as not shown.
fn show<T: Clone>(
    retrieval: &Retrieval<'_>,
    lines: Vec<T>,
    ranked: &[(usize, f64)],
    set: impl Fn(&mut T, f64),
    (kind, at): (&'static str, &dyn Fn(&T) -> String),
    trace: &mut Trace,
    line: impl Fn(&T) -> String,
) -> Vec<T> {
    let mut shown = Vec::new();
    for &(place, score) in ranked {
        let mut entry = lines[place].clone();
        set(&mut entry, score);
        if shown.len() == MAX_SHOWN {
            trace.unused(kind, &at(&entry), score, format!("five rank above it: {}", line(&entry)));
            continue;
        }
        let why = if score > 0.0 { "it holds words of the query" } else { "it is recent" };
        trace.used(kind, &at(&entry), score, retrieval.counter.count(&line(&entry)), why);
        shown.push(entry);
    }
    shown
}

/// What worked before: remembered approaches that share words with the query, and patterns of the sites it is about.
async fn strategies(
    retrieval: &Retrieval<'_>,
    request: &SearchRequest<'_>,
    page: Option<&PageAnswer>,
    ways: Vec<FactCandidate>,
    trace: &mut Trace,
) -> Vec<String> {
    let mut found = Vec::new();
    let ranked = rank(retrieval, request.query, &ways, |line| line.fact.clone());
    let at = retrieval.documents.place().facts();
    for (place, score) in ranked.into_iter().filter(|(_, score)| *score > 0.0).take(MAX_SHOWN) {
        let text = line(&ways[place].fact);
        trace.used(
            "strategy",
            at.as_str(),
            score,
            retrieval.counter.count(&text),
            "it holds words of the query",
        );
        found.push(text);
    }
    for site in sites(request, page) {
        let (own, shared) = (retrieval.documents.place().site(&site), site_knowledge(&site));
        let of_user = json::<SiteKnowledge>(retrieval, &own).await;
        let (path, known) = match (of_user, json::<SiteKnowledge>(retrieval, &shared).await) {
            (Some(mut known), shared) => {
                let new = shared.into_iter().flat_map(|shared| shared.patterns);
                let new: Vec<_> =
                    new.filter(|new| !known.patterns.iter().any(|own| own.kind == new.kind)).collect();
                known.patterns.extend(new);
                (own, known)
            }
            (None, Some(known)) => (shared, known),
            (None, None) => continue,
        };
        let mut patterns: Vec<_> = known.patterns.iter().collect();
        patterns.sort_by(|a, b| b.confidence.get().total_cmp(&a.confidence.get()).then(a.id.cmp(&b.id)));
        for pattern in patterns.into_iter().take(MAX_SHOWN) {
            let text = format!(
                "{site} ({}, {}): {}",
                line(&pattern.kind),
                pattern.confidence,
                line(&pattern.pattern)
            );
            let tokens = retrieval.counter.count(&text);
            trace.used(
                "strategy",
                path.as_str(),
                pattern.confidence.get(),
                tokens,
                "the query is about this site",
            );
            found.push(text);
        }
    }
    found
}

/// The sites that a query is about: of its reference, of the page that answers, and those it names.
fn sites(request: &SearchRequest<'_>, page: Option<&PageAnswer>) -> Vec<String> {
    let reference = request.reference.into_iter();
    let of_reference =
        reference.flat_map(|reference| [Some(reference.site.as_str()), reference.source_url.as_deref()]);
    let named = request.query.split_whitespace().map(Some);
    let all = of_reference.chain([page.map(|page| page.source_url.as_str())]).chain(named);
    let mut sites = Vec::new();
    for site in all.flatten().filter_map(site_of) {
        if !sites.contains(&site) && sites.len() < MOST_SITES {
            sites.push(site);
        }
    }
    sites
}

/// `amazon.com` of `https://www.amazon.com/x`, `Amazon.com` or `amazon.com,`.
fn site_of(text: &str) -> Option<String> {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let host = host.trim_matches(|char: char| !char.is_alphanumeric()).to_lowercase();
    let host = host.strip_prefix("www.").unwrap_or(&host);
    let is_site = host.split_once('.').is_some_and(|(name, end)| !name.is_empty() && end.len() >= 2)
        && PaddedQuery::new(host).subjects().next().is_some();
    is_site.then(|| host.to_owned())
}

fn turn_of(path: &VaultPath) -> Option<u32> {
    path.as_str().split('/').find_map(turn_number)
}

/// Reads a JSON document; a missing or broken one is ignored here, and reported where it is edited.
async fn json<T: DeserializeOwned>(retrieval: &Retrieval<'_>, path: &VaultPath) -> Option<T> {
    let text = retrieval.documents.files().read_text(path).ok()??;
    read_json(&text).value
}

async fn markdown<T: DocumentValue>(retrieval: &Retrieval<'_>, path: &VaultPath) -> Option<T> {
    let text = retrieval.documents.files().read_text(path).ok()??;
    Document::<T>::read(&text, path).value.map(|document| document.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_hosts() {
        assert_eq!(site_of("https://www.Amazon.com/dp/1?x#y").as_deref(), Some("amazon.com"));
        assert_eq!(site_of("bestbuy.com,").as_deref(), Some("bestbuy.com"));
        for none in ["laptop", "", "...", "e.g", "https://"] {
            assert_eq!(site_of(none), None, "{none}");
        }
    }
}
