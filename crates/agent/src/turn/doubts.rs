//! What earlier turns said without evidence is no evidence later (R0-14.8): the values of answers that were never verified,
//! or that a better attempt replaced, and that the turn's own documents do not state.

use std::collections::{BTreeMap, BTreeSet};

use larder_store::UserDocuments;
use larder_text::sections::SectionId;
use larder_tools::figures;
use larder_vault::context::CallStatus;
use larder_vault::{Document, ToolResults, TurnMetadata, TurnStatus, VaultPath};

/// Turns that one text may name.
const MOST_TURNS: usize = 100;
/// Answers of one turn that later ones replaced.
const MOST_ATTEMPTS: u32 = 9;

/// The values that earlier turns invented.
pub(super) struct Doubts<'d> {
    documents: &'d UserDocuments,
    invented: BTreeMap<u32, Vec<String>>,
}

impl<'d> Doubts<'d> {
    pub(super) const fn new(documents: &'d UserDocuments) -> Self {
        Self { documents, invented: BTreeMap::new() }
    }

    /// A document without the values that the turns invented which it, or its name, refers to.
    pub(super) fn without(&mut self, name: &str, text: &str) -> String {
        let turns = turns_in(name).chain(turns_in(text)).collect::<BTreeSet<u32>>();
        let values: Vec<String> =
            turns.into_iter().take(MOST_TURNS).flat_map(|turn| self.of_turn(turn).to_vec()).collect();
        if values.is_empty() { text.to_owned() } else { figures::without(text, &values) }
    }

    fn of_turn(&mut self, number: u32) -> &[String] {
        if !self.invented.contains_key(&number) {
            // What refers back to this turn meanwhile finds nothing.
            self.invented.insert(number, Vec::new());
            let found = self.find(number).unwrap_or_default();
            self.invented.insert(number, found);
        }
        self.invented.get(&number).map(Vec::as_slice).unwrap_or_default()
    }

    fn find(&mut self, number: u32) -> Option<Vec<String>> {
        let row = self.documents.catalog().turn(number).ok()??;
        let folder = row.context.folder().to_owned();
        let files = self.documents.files();
        let read = |name: &str| files.read_text(&VaultPath::new(&format!("{folder}/{name}"))?).ok()?;
        let metadata: Option<TurnMetadata> =
            read("metadata.json").and_then(|json| serde_json::from_str(&json).ok());
        let is_verified =
            metadata.is_some_and(|turn| turn.status == TurnStatus::Complete && !turn.unverified);
        let replaced = (1..=MOST_ATTEMPTS).map_while(|attempt| read(&format!("response_{attempt}.md")));
        let last = if is_verified { None } else { read("response.md") };
        let answers: Vec<String> = replaced.chain(last).map(|text| body(&text).to_owned()).collect();
        if answers.is_empty() {
            return None;
        }
        let context = read("context.md").unwrap_or_default();
        let section = |id| {
            let view = larder_vault::select(&context, [id]);
            view.sections.iter().map(|section| view.body_of(section).to_owned()).collect::<String>()
        };
        let results = VaultPath::new(&format!("{folder}/toolresults.md"))
            .and_then(|at| Document::<ToolResults>::read(&read("toolresults.md")?, &at).value);
        let results = results.map(|document| document.value.results).unwrap_or_default();
        let results = results.into_iter().filter(|result| result.status == CallStatus::Success);
        let evidence: Vec<String> = [section(SectionId::UserQuery), section(SectionId::GatheredContext)]
            .into_iter()
            .chain(read("attachments.md"))
            .chain(results.map(|result| result.content))
            .chain([row.created_at.to_string()])
            .collect();
        let evidence = self.without("", &evidence.join("\n"));
        Some(figures::all_unsupported(&evidence, &answers.join("\n")))
    }
}

/// An answer without the properties before it and the references after it.
fn body(response: &str) -> &str {
    let after = response.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    let text = after.map_or(response, |(_, text)| text);
    text.split("\n## Source References").next().unwrap_or(text)
}

/// The numbers of the turns that a text names by their folders.
fn turns_in(text: &str) -> impl Iterator<Item = u32> {
    text.match_indices("turn_").filter_map(|(at, _)| {
        let digits = text[at + "turn_".len()..].find(|char: char| !char.is_ascii_digit());
        let end = digits.map_or(text.len(), |length| at + "turn_".len() + length);
        larder_vault::turn_number(&text[at..end])
    })
}
