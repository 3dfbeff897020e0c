//! Research that a turn reads again (R0-14.8, R1-12.4): its findings are evidence, what it says of itself is none, such
//! as its quality, and neither are the prices and stock of research past its lifetime.

use larder_tools::figures;
use larder_vault::{DocumentTime, DocumentValue, Research, VaultPath};

/// How the text of research begins, after its frontmatter.
pub(super) const TITLE: &str = "# Research Document\n";

/// What a document states: of research its findings, of others all.
pub(super) fn evidence(text: &str, at: &str, now: DocumentTime) -> String {
    let Some((start, research)) = read(text, at) else { return text.to_owned() };
    let is_old = is_old(&research, now);
    let research = if is_old { lasting(research) } else { research };
    let mut said = vec![research.topic];
    // Its time is no evidence, and its day is only where an answer has to name it.
    if research.created.day() != now.day() {
        said.push(format!("As of {}.", research.created.day()));
    }
    if let Some(write_up) = research.write_up {
        said.extend([write_up.title, write_up.overview]);
        said.extend([write_up.findings, write_up.evergreen, write_up.time_sensitive].concat());
    }
    said.extend(research.facts);
    said.extend(
        research
            .sources
            .into_iter()
            .map(|source| format!("{} {} {}", source.vendor, source.kind, source.url)),
    );
    let listings = research.listings.into_iter();
    said.extend(listings.map(|one| {
        format!(
            "{} | price: {} | {} | stock: {} | {}",
            one.product, one.price, one.vendor, one.in_stock, one.url
        )
    }));
    said.extend(research.claims.into_iter().map(|claim| format!("{} ({})", claim.claim, claim.source)));
    // What is before the title is its frontmatter, or the path that a call names.
    let before = text[..start].split("---").next().unwrap_or_default();
    format!("{before}{}", said.join("\n"))
}

/// A document as it may be shown: research past its lifetime without its prices and stock.
pub(super) fn current(text: &str, at: &str, now: DocumentTime) -> Option<String> {
    let (_, research) = read(text, at).filter(|(_, research)| is_old(research, now))?;
    let expired = research.expires.map(|expires| expires.to_string()).unwrap_or_default();
    let body = lasting(research).write_body(&VaultPath::new(at)?);
    Some(format!(
        "Stale since {expired}: prices and stock are left out and have to be looked up again.\n\n{body}"
    ))
}

fn read(text: &str, at: &str) -> Option<(usize, Research)> {
    let start = text.find(TITLE)?;
    let at = VaultPath::new(at).or_else(|| VaultPath::new("research.md"))?;
    Some((start, Research::read_body(&text[start..], 1, &at).value?))
}

fn is_old(research: &Research, now: DocumentTime) -> bool {
    research.expires.is_some_and(|expires| expires <= now)
}

/// What of research stays true.
fn lasting(mut research: Research) -> Research {
    research.listings.clear();
    let plain = |text: &mut String| *text = figures::without_prices(text);
    if let Some(write_up) = &mut research.write_up {
        write_up.time_sensitive.clear();
        [&mut write_up.title, &mut write_up.overview].into_iter().for_each(plain);
        write_up.findings.iter_mut().chain(&mut write_up.evergreen).for_each(plain);
    }
    research.facts.iter_mut().for_each(plain);
    research.claims.iter_mut().for_each(|claim| plain(&mut claim.claim));
    research
}
