//! Captured pages: each page is served on the loopback address and visited with `web.visit`. What a browser would show of it
//! is compared with the stored `page_content.md`, and the stretches marked as main text with the true article.
//!
//! The visible text comes from a parser of its own (html5ever), not from the one that the product reads pages with.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dom_query::{Document as Dom, NodeRef};
use larder_engine::executor::{Meter, NoopObserver, RemainingBudget};
use larder_engine::project::Project;
use larder_engine::settings::ToolSettings;
use larder_engine::{Engine, RunPolicy};
use larder_store::{DocumentPlace, Documents, Store, StoreOptions, UserDocuments};
use larder_testkit::layers::{Answering, every_layer};
use larder_testkit::stub::{Answer, StubServer};
use larder_text::tokens::Counter;
use larder_tools::{DenyAll, ToolBox, ToolContext};
use larder_vault::layout::UserPlace;
use larder_vault::{Document, DocumentTime, Mode, PageContent};
use serde_json::json;

use super::html::{LEAST_F1, TextExtractor, harmonic, mean};
use crate::report::{Report, ReportColumn};
use crate::{Failure, corpora};

/// Elements whose text a browser does not show, or shows as the value of a control.
const HIDDEN: [&str; 17] = [
    "head", "script", "style", "noscript", "template", "textarea", "iframe", "object", "audio", "video",
    "canvas", "svg", "noembed", "noframes", "title", "datalist", "math",
];

/// Visits all pages.
///
/// # Errors
/// The corpus is missing or not as expected, or a page cannot be visited.
pub fn measure() -> Result<Report, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(visits())
}

async fn visits() -> Result<Report, Failure> {
    let folder = corpora::folder("html")?;
    let truth = corpora::json(&folder.join("ground-truth.json"))?;
    let reader = TextExtractor::new()?;
    let paths = corpora::files(&folder.join("pages"), &[".html.gz", ".html"])?;
    let mut pages = BTreeMap::new();
    for path in &paths {
        pages.insert(corpora::name(path).replace(".gz", "").replace(".html", ""), corpora::text(path)?);
    }
    let served: HashMap<String, String> = pages.clone().into_iter().collect();
    let server = StubServer::responding(move |seen| {
        let page = seen.line.strip_prefix("GET /").and_then(|name| served.get(name));
        page.map_or(Answer::new(404, "text/plain", ""), |page| {
            Answer::new(200, "text/html; charset=utf-8", page.clone())
        })
    })
    .await;
    let browser = Browser::new()?;
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let (mut precisions, mut recalls) = (Vec::new(), Vec::new());
    let (mut all_seen, mut all_kept, mut all_ordered) = (0, 0, 0);
    for (number, (id, page)) in (1..).zip(&pages) {
        let article = truth[id]["articleBody"].as_str().ok_or_else(|| format!("{id} has no true text"))?;
        let content = browser.visit(number, &format!("{}/{id}", server.address())).await?;
        let seen = visible(page);
        let whole = words(&reader.unlinked(&content.whole_text()));
        let (mut kept, mut ordered, mut at) = (0, 0, 0);
        for block in &seen {
            let found = whole[at..].find(block).map(|found| at + found + block.len());
            ordered += usize::from(found.is_some());
            at = found.unwrap_or(at);
            if found.is_some() || whole.contains(block) {
                kept += 1;
            } else {
                faults.push(format!(
                    "{id}: not in the capture: {}",
                    block.chars().take(80).collect::<String>()
                ));
            }
        }
        let (both, extra, missed) = reader.overlap(article, &reader.readable(&content.main_text()));
        let precision = (both + extra > 0.0).then(|| both / (both + extra));
        let recall = (both + missed > 0.0).then(|| both / (both + missed));
        precisions.extend(precision);
        recalls.extend(recall);
        (all_seen, all_kept, all_ordered) = (all_seen + seen.len(), all_kept + kept, all_ordered + ordered);
        let f1 = precision.zip(recall).map(|(p, r)| harmonic(p, r));
        rows.push((
            id.chars().take(8).collect(),
            vec![
                Some(seen.len() as f64),
                share(kept, seen.len()),
                share(ordered, seen.len()),
                f1,
                precision,
                recall,
            ],
        ));
    }
    let (precision, recall) = (mean(&precisions), mean(&recalls));
    let total = vec![
        Some(all_seen as f64),
        share(all_kept, all_seen),
        share(all_ordered, all_seen),
        Some(harmonic(precision, recall)),
        Some(precision),
        Some(recall),
    ];
    Ok(Report {
        suite: "captures",
        title: "Captured pages (article extraction benchmark), visited over loopback".to_owned(),
        columns: vec![
            ReportColumn::shown("texts", 0),
            ReportColumn::higher("kept %", 0.0).least(100.0),
            ReportColumn::shown("in order %", 1),
            ReportColumn::higher("F1", 0.02).least(LEAST_F1).digits(3),
            ReportColumn::higher("precision", 0.03).digits(3),
            ReportColumn::higher("recall", 0.03).digits(3),
        ],
        rows,
        total,
        faults,
    })
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// The texts of a page that a browser shows, in its order, with their white space made plain.
fn visible(page: &str) -> Vec<String> {
    let dom = Dom::from(page);
    let shown = |node: &NodeRef<'_>| node.is_text() && !node.ancestors_it(None).any(|parent| hides(&parent));
    let texts = dom.root().descendants_it().filter(shown).map(|node| words(&node.text()));
    texts.filter(|text| text.contains(char::is_alphanumeric)).collect()
}

/// Whether a browser without style sheets shows nothing of an element. Pages hide their root only until a script has run.
fn hides(element: &NodeRef<'_>) -> bool {
    let Some(name) = element.node_name() else { return false };
    if HIDDEN.contains(&&*name) {
        return true;
    }
    let style = element.attr("style").map(|style| style.to_lowercase().replace([' ', '\n', '\t'], ""));
    let invisible = ["display:none", "visibility:hidden", "visibility:collapse"];
    let is_styled = style.is_some_and(|style| {
        style.split(';').any(|one| invisible.contains(&one.trim_end_matches("!important")))
    });
    let is_root = ["html", "body", "main", "article"].contains(&&*name);
    !is_root && (is_styled || element.attr("hidden").is_some_and(|value| &*value != "until-found"))
}

fn words(text: &str) -> String {
    let gap = |char: char| char.is_whitespace() || char.is_control();
    text.split(gap).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The product's tools over a vault of its own. No model is asked by anything that is measured.
struct Browser {
    engine: Engine,
    documents: UserDocuments,
    toolbox: ToolBox,
    _dir: tempfile::TempDir,
}

impl Browser {
    fn new() -> Result<Self, Failure> {
        let dir = tempfile::tempdir()?;
        let store = Store::open(&dir.path().join("home"), StoreOptions::default())?;
        let folder = DocumentPlace::Folder(dir.path().join("documents"));
        let documents = Documents::open(&store, &folder)?.user("evals")?;
        let models = every_layer(Arc::new(Answering::new(|_| "{}".to_owned())), dir.path(), 32_000, 5_000);
        let project = Project::builtin(&Counter::cl100k());
        let engine =
            Engine::new(project, models, store.user("evals")?, RunPolicy::default(), Box::new(|_| None))?;
        let settings = ToolSettings { private_hosts: vec!["127.0.0.1".parse()?], ..ToolSettings::default() };
        Ok(Self { engine, documents, toolbox: ToolBox::new(&settings)?, _dir: dir })
    }

    /// The capture of a page, as a turn of this number stores it.
    async fn visit(&self, number: u32, url: &str) -> Result<PageContent, Failure> {
        let turn = UserPlace::new("evals").turn(number);
        let (files, meter) = (BTreeMap::new(), Meter::new(&NoopObserver, None, None));
        let context = ToolContext {
            engine: &self.engine,
            documents: &self.documents,
            counter: &Counter::unknown(),
            turn: &turn,
            draft_files: &files,
            original_query: "What does the page say?",
            intent: None,
            topic: None,
            mode: Mode::Chat,
            now: DocumentTime::from_millis(0).ok_or("the epoch is a moment")?,
            workspace: None,
            confirm: &DenyAll,
            observer: &meter,
            begun: &|| Ok(()),
            budget: RemainingBudget::default(),
        };
        let output = self.toolbox.call("web.visit", &json!({"url": url}), &context).await;
        let at = turn.page(url).content();
        let name = at.as_str().strip_prefix(turn.folder()).unwrap_or_default().trim_start_matches('/');
        let bytes = output.files.get(name).ok_or_else(|| format!("{url}: {}", output.summary))?;
        let text = std::str::from_utf8(bytes)?;
        let content = Document::<PageContent>::read(text, &at).value.map(|document| document.value);
        content.ok_or_else(|| format!("{url}: {name} cannot be read").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_browser_shows_is_visible() {
        let page = "<title>T</title><p>One <b>two</b>&amp;three<script>no</script><svg><text>no</text></svg><td>four\n five";
        assert_eq!(visible(page), ["One", "two", "&three", "four five"]);
    }
}
