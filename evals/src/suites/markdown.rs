//! Markdown: links found as CommonMark has them, followed as vaults mean them, kept by a rename; and texts that go
//! through our documents and come back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use larder_text::sections::{SectionId, Sections};
use larder_vault::links::{
    Dialect, Link, LinkDestination, LinkKind, NoteOutline, NoteRename, Vault, is_external, links, scan,
};
use larder_vault::{
    Document, Note, Response, VaultPath, append_section, original_query, query_body, unescape,
};
use regex::Regex;

use crate::report::{Better, Report, ReportColumn};
use crate::{Failure, corpora, measure};

/// Wikilinks of foam-docs that lead nowhere, by their note: two mistakes and an example.
const MISSING: [(&str, &str); 3] = [
    ("user/features/foam-queries.md", "project-alpha"),
    ("user/index.md", "publishing"),
    ("user/tools/cli/search.md", "cli-grep"),
];

/// What one row counts.
#[derive(Default)]
struct MarkdownFigures {
    checked: usize,
    right: usize,
    lost: usize,
    false_starts: usize,
    faults: Vec<String>,
}

impl MarkdownFigures {
    fn check(&mut self, right: bool, fault: impl FnOnce() -> String) {
        self.checked += 1;
        self.right += usize::from(right);
        if !right {
            self.faults.push(fault());
        }
    }
}

/// What one row is made of.
type Measure<'a> = &'a dyn Fn() -> Result<MarkdownFigures, Failure>;

/// Measures the examples of CommonMark and the vaults.
///
/// # Errors
/// The corpus is missing or not as expected.
pub fn measure() -> Result<Report, Failure> {
    let folder = corpora::folder("markdown")?;
    let none =
        |name| ReportColumn { better: Better::Lower, accepted: Some(0.0), ..ReportColumn::shown(name, 0) };
    let mut report = Report {
        suite: "markdown",
        title: "Links of CommonMark's examples and of two vaults; texts through our documents and back"
            .to_owned(),
        columns: vec![
            ReportColumn::shown("checked", 0),
            ReportColumn::higher("right %", 0.0).least(100.0),
            none("lost bytes"),
            none("false sections"),
            ReportColumn::shown("ms", 0),
        ],
        rows: Vec::new(),
        total: Vec::new(),
        faults: Vec::new(),
    };
    let vaults = vaults(&folder)?;
    let foam = VaultFiles::read(&folder.join("foam-docs"))?;
    let examples = examples(&folder)?;
    let mut total = MarkdownFigures::default();
    let measures: [(&str, Measure<'_>); 6] = [
        ("CommonMark: targets", &|| commonmark(&examples)),
        ("obsidian-export: links", &|| Ok(obsidian(&vaults))),
        ("foam-docs: links", &|| Ok(foam_links(&foam))),
        ("renames, obsidian-export", &|| {
            Ok(vaults.iter().fold(MarkdownFigures::default(), |found, (vault, _)| renames(vault, found)))
        }),
        ("renames, foam-docs", &|| Ok(renames(&foam, MarkdownFigures::default()))),
        ("round trips", &|| Ok(round_trips(&examples, vaults.iter().map(|(vault, _)| vault).chain([&foam])))),
    ];
    for (name, run) in measures {
        let started = Instant::now();
        let found = run()?;
        let ms = started.elapsed().as_secs_f64() * 1e3;
        report.rows.push((name.to_owned(), figures(&found, Some(ms))));
        report.faults.extend(found.faults.iter().map(|fault| format!("{name}: {fault}")));
        total.checked += found.checked;
        total.right += found.right;
        total.lost += found.lost;
        total.false_starts += found.false_starts;
    }
    report.total = figures(&total, None);
    Ok(report)
}

fn figures(found: &MarkdownFigures, ms: Option<f64>) -> Vec<Option<f64>> {
    let share = measure::percent(found.right, found.checked);
    vec![
        Some(found.checked as f64),
        Some(share),
        Some(found.lost as f64),
        Some(found.false_starts as f64),
        ms,
    ]
}

struct Example {
    number: u64,
    markdown: String,
    html: String,
}

fn examples(folder: &Path) -> Result<Vec<Example>, Failure> {
    let spec = corpora::json(&folder.join("commonmark/spec-0.31.2.json"))?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let examples = spec.as_array().ok_or("the examples are not a list")?.iter();
    let read = |example: &serde_json::Value| Example {
        number: example["number"].as_u64().unwrap_or_default(),
        markdown: text(&example["markdown"]),
        html: text(&example["html"]),
    };
    Ok(examples.map(read).collect())
}

/// Example by example: the targets that the scanner finds are those of the expected HTML.
fn commonmark(examples: &[Example]) -> Result<MarkdownFigures, Failure> {
    let tag = Regex::new(r#"<[A-Za-z](?:[^"'<>]|"[^"]*"|'[^']*')*>"#)?;
    let value = Regex::new(r#"(?:href|src)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+))"#)?;
    let mut found = MarkdownFigures::default();
    for Example { number, markdown, html } in examples {
        let tags: String = tag.find_iter(html).map(|tag| tag.as_str()).collect();
        let expected: BTreeSet<String> = value
            .captures_iter(&tags)
            .filter_map(|captures| captures.iter().skip(1).flatten().next())
            .map(|value| normal(&unescaped(value.as_str())))
            .collect();
        let links = scan(markdown, Dialect::CommonMark);
        let given: BTreeSet<String> = links.iter().map(|link| normal(&link.destination())).collect();
        found.check(given == expected, || format!("example {number}: {given:?}, expected {expected:?}"));
    }
    Ok(found)
}

fn unescaped(value: &str) -> String {
    let value = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    value.replace("&amp;", "&")
}

/// A destination as HTML writers put it: characters that an address cannot contain are percent-encoded.
fn normal(destination: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+!*'(),%#@?=;:/,&$~".contains(&byte);
    let encode = |byte: u8| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    destination.bytes().map(encode).collect()
}

/// A vault in memory.
struct VaultFiles {
    notes: Vec<(VaultPath, String)>,
    vault: Vault,
}

impl VaultFiles {
    fn read(folder: &Path) -> Result<Self, Failure> {
        let mut files = Vec::new();
        collect(folder, &mut files)?;
        let (mut notes, mut paths) = (Vec::new(), Vec::new());
        for file in files {
            let name = file.strip_prefix(folder)?.to_string_lossy().replace('\\', "/");
            let Some(path) = VaultPath::new(&name) else { continue };
            if name.ends_with(".md") {
                notes.push((path.clone(), corpora::text(&file)?));
            }
            paths.push(path);
        }
        notes.sort();
        Ok(Self { notes, vault: Vault::new(paths) })
    }

    fn note(&self, path: &VaultPath) -> Option<&str> {
        self.notes.iter().find(|(note, _)| note == path).map(|(_, text)| text.as_str())
    }

    /// Where a link leads that must stay in the vault.
    fn led<'v>(&'v self, from: &'v VaultPath, link: &Link) -> Option<&'v VaultPath> {
        match self.vault.resolve(from, link) {
            LinkDestination::File(file) => Some(file),
            _ => None,
        }
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// The vaults of obsidian-export: each with what its notes became.
fn vaults(folder: &Path) -> Result<Vec<(VaultFiles, VaultFiles)>, Failure> {
    let root = folder.join("obsidian-export");
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(root.join("input"))? {
        names.push(entry?.path());
    }
    names.sort();
    let pair = |input: &PathBuf| -> Result<_, Failure> {
        Ok((VaultFiles::read(input)?, VaultFiles::read(&root.join("expected").join(corpora::name(input)))?))
    };
    names.iter().map(pair).collect()
}

/// Each link of a note is a link to the same place in the converted note, each embed is text there.
fn obsidian(vaults: &[(VaultFiles, VaultFiles)]) -> MarkdownFigures {
    let mut found = MarkdownFigures::default();
    for (input, expected) in vaults {
        for (path, text) in &input.notes {
            let Some(became) = expected.note(path) else { continue };
            for link in links(text).iter().filter(|link| !is_external(&link.path)) {
                let whole = &text[link.range.clone()];
                let shown = whole
                    .split_once('|')
                    .map_or(link.path.as_str(), |(_, shown)| shown.trim_end_matches("]]"));
                found.check(became_so(input, path, link, shown, became), || format!("{path}: {link:?}"));
            }
        }
    }
    found
}

fn became_so(vault: &VaultFiles, path: &VaultPath, link: &Link, shown: &str, became: &str) -> bool {
    let slug = |fragment: &str| {
        let kept = fragment.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
        kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
    };
    let linked = |file: Option<&VaultPath>| {
        links(became).iter().any(|given| {
            let fragments = [&given.fragment, &link.fragment].map(|fragment| fragment.as_deref().map(slug));
            !is_external(&given.path) && vault.led(path, given) == file && fragments[0] == fragments[1]
        })
    };
    let Some(file) = vault.led(path, link) else {
        // Either nothing became of it, or a link to a note that is not in the corpus.
        return linked(None) || !became.contains(&format!("[{}]", link.path));
    };
    let Some(note) = vault.note(file).filter(|_| link.embed) else {
        // What is not exported along with the note is named and not linked.
        return linked(Some(file)) || became.contains(&format!("*{shown}*"));
    };
    let body = Sections::parse(note).frontmatter.end..note.len();
    let range = match &link.fragment {
        Some(fragment) => NoteOutline::parse(note).find(fragment),
        None => Some(body),
    };
    let Some(range) = range else { return false };
    let is_present = |line: &str| {
        let start: Vec<&str> = words(line).take(5).collect();
        became.lines().any(|line| words(line).take(5).eq(start.iter().copied()))
    };
    let lines = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| words(line).next().is_some() && !line.contains("[["))
            .map(str::to_owned)
            .collect()
    };
    // A note that embeds one that embeds the first again is linked to instead.
    let whole = lines(&note[range.clone()]).iter().all(|line| is_present(line));
    let beyond =
        link.fragment.is_some() && lines(&note[range.end..]).iter().skip(1).any(|line| is_present(line));
    whole && !beyond || linked(Some(file))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Every wikilink leads to a note, except those that are known to lead nowhere.
fn foam_links(foam: &VaultFiles) -> MarkdownFigures {
    let mut found = MarkdownFigures::default();
    for (path, text) in &foam.notes {
        for link in links(text).iter().filter(|link| link.kind == LinkKind::Wiki) {
            let missing = MISSING.contains(&(path.as_str(), link.path.as_str()));
            found.check(foam.led(path, link).is_some() != missing, || format!("{path}: {link:?}"));
        }
    }
    found
}

/// Renames every note once: all links lead where they led, and no other byte changes.
fn renames(files: &VaultFiles, mut found: MarkdownFigures) -> MarkdownFigures {
    for (from, _) in &files.notes {
        let to = format!("renamed (1)/{}-new.md", from.name().trim_end_matches(".md"));
        let Some(to) = VaultPath::new(&to) else { continue };
        let Ok(rename) = NoteRename::new(&files.vault, from.clone(), to.clone()) else {
            found.faults.push(format!("{from} cannot be renamed"));
            continue;
        };
        for (path, text) in &files.notes {
            let new = rename.rewrite(path, text);
            found.faults.extend(new.problems.iter().map(|problem| format!("{from}: {path}: {problem}")));
            let here = if path == from { &to } else { path };
            let (before, after) = (links(text), links(&new.text));
            if rest(text, &before) != rest(&new.text, &after) {
                found.lost += text.len();
                found.faults.push(format!("{from}: {path}: bytes outside of the links have changed"));
            }
            for (old, new) in before.iter().zip(&after) {
                let Some(led) = files.led(path, old) else { continue };
                let expected = if led == from { &to } else { led };
                let right = matches!(rename.vault().resolve(here, new), LinkDestination::File(file) if file == expected);
                found.check(right, || format!("{from}: {path}: {new:?} leads elsewhere"));
            }
        }
    }
    found
}

/// The text without the targets of its links, and without the labels of its definitions, which follow the wikilinks
/// that they are for.
fn rest(text: &str, links: &[Link]) -> String {
    let written = |link: &Link| link.target.clone().into_iter().chain(link.label.clone());
    let mut targets: Vec<_> = links.iter().flat_map(written).collect();
    targets.sort_by_key(|target| target.start);
    let mut rest = String::new();
    let mut at = 0;
    for target in targets {
        rest.push_str(text.get(at..target.start).unwrap_or_default());
        at = at.max(target.end);
    }
    rest + &text[at..]
}

/// Each text as a note, a query, a section and an answer, and back; none of them opens a section.
fn round_trips<'v>(examples: &[Example], vaults: impl Iterator<Item = &'v VaultFiles>) -> MarkdownFigures {
    let notes = vaults.flat_map(|vault| vault.notes.iter().map(|(_, text)| text.as_str()));
    let mut found = MarkdownFigures::default();
    for text in examples.iter().map(|example| example.markdown.as_str()).chain(notes) {
        let sections = Sections::parse(text);
        found.false_starts += sections.sections.len();
        let query = append_section("", SectionId::UserQuery, &query_body(text));
        let both = query.clone() + &append_section(&query, SectionId::Synthesis, text);
        let sections = Sections::parse(&both).sections;
        found.false_starts += sections.len().abs_diff(2);
        let body = sections.last().map(|section| unescape(&both[section.body.clone()]).into_owned());
        let place = VaultPath::new("response.md");
        let answer = place.and_then(|place| {
            let answer =
                Document { meta: None, value: Response { text: text.to_owned(), sources: Vec::new() } };
            Some(Document::<Response>::read(&answer.write(&place), &place).value?.value.text)
        });
        let mut changed = Note::parse(text);
        changed.frontmatter.set("larder", &serde_json::json!("x"));
        let kept = text.lines().filter(|line| *line != "---").all(|line| changed.to_string().contains(line));
        let whole = Note::parse(text).to_string() == text
            && original_query(&both).unwrap_or_default() == text
            && body.is_some_and(|body| body.trim_end_matches('\n') == text.trim_end_matches('\n'))
            && answer.as_deref() == Some(text)
            && kept;
        found.lost += if whole { 0 } else { text.len() };
        found.check(whole, || format!("{:?} does not come back", text.chars().take(60).collect::<String>()));
    }
    found
}
