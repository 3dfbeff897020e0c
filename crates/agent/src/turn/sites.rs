//! What visits show about their sites: where prices and comments stand, how long lists are divided, which addresses
//! redirect (R1-7.2). Learned for the user who visited; nobody else sees it unless it is published.

use std::collections::BTreeMap;

use larder_store::{StoreError, UserDocuments};
use larder_text::hash::ContentHash;
use larder_tools::site_of;
use larder_vault::{
    DocumentTime, ExtractedData, Manifest, Score, SiteKnowledge, SitePattern, read_json, value_names,
    write_json,
};

/// Patterns of a site that are kept, the most certain.
const MOST: usize = 20;
/// A pattern below it is forgotten.
const LEAST: f64 = 0.2;

/// Learns from the pages that a turn captured, given its files.
pub(super) fn learn(
    documents: &UserDocuments,
    files: &BTreeMap<String, Vec<u8>>,
    now: DocumentTime,
) -> Result<(), StoreError> {
    for (name, bytes) in files.iter().filter(|(name, _)| name.starts_with("webpage_cache/")) {
        let Some(folder) = name.strip_suffix("manifest.json") else { continue };
        let Some(manifest) = read::<Manifest>(bytes) else { continue };
        let Some(site) = site_of(&manifest.url) else { continue };
        let data = files.get(&format!("{folder}extracted_data.json"));
        let data = data.and_then(|bytes| read::<ExtractedData>(bytes)).unwrap_or_default();
        let at = documents.place().site(&site);
        let before = documents.files().read_text(&at)?;
        let known = before.as_deref().and_then(|text| read_json::<SiteKnowledge>(text).value);
        // A file that somebody has edited and that cannot be read is left as it is.
        if before.is_some() && known.is_none() {
            continue;
        }
        let mut known = known.unwrap_or_else(|| SiteKnowledge {
            domain: site.clone(),
            updated_at: now,
            reliability: None,
            patterns: Vec::new(),
        });
        known.updated_at = now;
        known.reliability = documents.uses().source(&site)?.map(|source| source.reliability);
        for (kind, pattern) in patterns(&manifest, &data) {
            confirm(&mut known.patterns, kind, pattern, now);
        }
        let seen = before.as_ref().map(|text| ContentHash::new(text.as_bytes()));
        documents.files().write(&at, write_json(&known).as_bytes(), seen)?;
    }
    Ok(())
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    read_json(std::str::from_utf8(bytes).ok()?).value
}

/// What one page shows, by its kind.
fn patterns(manifest: &Manifest, data: &ExtractedData) -> Vec<(&'static str, &'static str)> {
    let values = value_names(data);
    let has = |name: &str| values.iter().any(|value| value == name);
    let stated = ["json_ld", "open_graph", "meta"].iter().filter_map(|name| data.get(*name));
    let stated: String = stated.map(|value| value.to_string().to_lowercase()).collect();
    let summary = &manifest.content_summary;
    let mut found = Vec::new();
    if has("price") || has("products") {
        found.push(match stated.contains("price") {
            true => ("price", "its pages state prices as data: a visit gives them without reading the text"),
            false => ("price", "its pages state prices in their text only"),
        });
    }
    if has("top_comments") || summary.comment_count.is_some() {
        found.push(match stated.contains("\"comment\"") {
            true => ("comments", "its pages state comments as data"),
            false => ("comments", "its pages state comments in their text only"),
        });
    }
    if summary.has_pagination {
        found.push((
            "pagination",
            "its threads and lists are divided into numbered pages: visit each page that matters",
        ));
    }
    if !manifest.redirected_from.is_empty() {
        found.push(("address", "its short addresses redirect: the page's own address is in the capture"));
    }
    found
}

/// Counts a pattern that was seen; another one of its kind becomes less certain.
fn confirm(known: &mut Vec<SitePattern>, kind: &str, pattern: &str, now: DocumentTime) {
    for other in known.iter_mut().filter(|known| known.kind == kind && known.pattern != pattern) {
        other.confidence = Score::new(other.confidence.get() / 2.0).unwrap_or_default().rounded();
    }
    known.retain(|known| known.confidence.get() >= LEAST);
    let place = known.iter().position(|known| known.kind == kind && known.pattern == pattern);
    let uses = place.and_then(|at| known.get(at)).map_or(0, |known| known.uses).saturating_add(1);
    // The share of right uses, with one of each assumed before the first.
    let confidence = f64::from(uses.saturating_add(1)) / f64::from(uses.saturating_add(2));
    let confidence = Score::new(confidence).unwrap_or_default().rounded();
    match place.and_then(|at| known.get_mut(at)) {
        Some(known) => (known.uses, known.confidence, known.last_seen) = (uses, confidence, now),
        None => {
            let hash = ContentHash::new(pattern.as_bytes()).to_hex();
            let id = format!("{kind}_{}", &hash[..6]);
            let (kind, pattern) = (kind.to_owned(), pattern.to_owned());
            known.push(SitePattern { id, kind, pattern, confidence, uses, last_seen: now });
        }
    }
    known.sort_by(|a, b| b.confidence.get().total_cmp(&a.confidence.get()).then(a.id.cmp(&b.id)));
    known.truncate(MOST);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_again_becomes_certain_and_what_is_contradicted_is_forgotten() {
        let now: DocumentTime = "2026-01-05T10:00:00Z".parse().unwrap();
        let mut known = Vec::new();
        (0..3).for_each(|_| confirm(&mut known, "price", "in the text", now));
        let certain: Vec<(&str, u32, String)> = known
            .iter()
            .map(|known| (known.pattern.as_str(), known.uses, known.confidence.to_string()))
            .collect();
        assert_eq!(certain, [("in the text", 3, "0.80".to_owned())]);
        (0..3).for_each(|_| confirm(&mut known, "price", "as data", now));
        assert_eq!(known.iter().map(|known| known.pattern.as_str()).collect::<Vec<_>>(), ["as data"]);
    }
}
