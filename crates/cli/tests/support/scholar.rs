//! A model that plays every phase of a turn, told apart by what their prompts say; and the vault its turns leave.

#![allow(clippy::panic, reason = "helpers of tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use larder_testkit::stub::{Answer, Seen};
use larder_vault::VaultPath;
use larder_vault::links::{LinkDestination, Vault, links};
use serde_json::{Value, json};

use super::{Shop, reply_text};

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Analyzer,
    Reflection,
    Retrieval,
    Gathering,
    Planner,
    Coordinator,
    Synthesizer,
    Validator,
    Summarizer,
}

/// What only the prompt of this role says.
const MARKS: [(Role, &str); 9] = [
    (Role::Analyzer, "You read a user's query before it is answered"),
    (Role::Reflection, "You are the gate before any work"),
    (Role::Retrieval, "You choose what is read before a query is answered"),
    (Role::Gathering, "You compile what is known before a query is answered"),
    (Role::Planner, "You plan how a query is answered"),
    (Role::Coordinator, "You carry out a plan with tools"),
    (Role::Synthesizer, "You write the answer that the user gets"),
    (Role::Validator, "You are the last check before a user sees an answer"),
    (Role::Summarizer, "You write the index entry of a finished turn"),
];

/// A query of which nobody knows what it wants.
pub const UNCLEAR: &str = "book it for friday";
/// The question that is asked back.
pub const QUESTION: &str = "What would you like to book for Friday?";
/// What the scholar answers.
pub const ANSWER: &str = "The ledger lies beneath the granary floor. [context.md§0]";

/// Who is asked, and everything that the prompt says.
pub fn asked(seen: &Seen) -> (Role, String) {
    let messages = seen.json()["messages"].clone();
    let prompt = messages.to_string();
    let role = MARKS.iter().find(|(_, mark)| prompt.contains(mark)).map(|(role, _)| *role);
    (role.unwrap_or_else(|| panic!("nobody's prompt: {prompt}")), prompt)
}

/// What a scholar says: one call of `doc.search`, then the answer.
pub fn say(role: Role, prompt: &str) -> String {
    match role {
        Role::Analyzer => json!({"resolved_query": "", "was_resolved": false, "query_type": "new_topic", "intent": "informational", "entities": [],
            "content_reference": null, "reasoning": "It refers to nothing."}),
        Role::Reflection if prompt.contains(UNCLEAR) => json!({"decision": "CLARIFY", "confidence": 0.94,
            "is_action": true, "is_follow_up": false, "reasoning": "Nothing says what.", "question": QUESTION}),
        Role::Reflection => json!({"decision": "PROCEED", "confidence": 0.95, "is_action": false,
            "is_follow_up": false, "reasoning": "It is clear.", "question": null}),
        Role::Retrieval => json!({"direct_info": [], "links_to_follow": [], "reasoning": "Nothing is known."}),
        Role::Gathering => json!({"information": "Nothing is known.", "preferences": [], "prior_turns": [],
            "references": [], "sufficiency": "NEEDS_RESEARCH"}),
        Role::Planner => json!({"goal": "Answer the query.", "intent": "informational", "confidence": 0.9,
            "next_step": "coordinator", "question": null, "goals": [],
            "tasks": [{"goal": null, "text": "Look it up."}], "focus": null, "previous_failure": null,
            "new_approach": null, "topic": "history.ledger"}),
        Role::Coordinator if !prompt.contains("Iteration 1") => call("doc.search", &json!({"query": "ledger"})),
        Role::Coordinator => json!({"action": "DONE", "goal": null, "reasoning": "Enough is known.", "calls": [],
            "goal_confidence": null, "progress": "Enough is known.", "claims": []}),
        Role::Synthesizer => return ANSWER.to_owned(),
        Role::Validator => json!({"decision": "APPROVE", "confidence": 0.9, "checks": {"claims_supported": true,
            "no_hallucinations": true, "query_addressed": true, "coherent_format": true}, "goals": [],
            "issues": [], "revision_hints": [], "suggested_fixes": [], "notes": ""}),
        Role::Summarizer => json!({"summary": "Where the ledger lies.", "topic": "history.ledger", "lessons": []}),
    }
    .to_string()
}

/// A round that calls a tool.
pub fn call(tool: &str, arguments: &Value) -> Value {
    json!({"action": "TOOL_CALL", "goal": null, "reasoning": "It is needed.",
        "calls": [{"tool": tool, "arguments": arguments}], "goal_confidence": null, "progress": null, "claims": []})
}

impl Shop {
    /// A folder where a scholar plays every layer; `other` may answer in its place.
    pub fn with_scholar(other: impl Fn(Role, &str) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let shop = Self::responding(move |seen| {
            let (role, prompt) = asked(seen);
            other(role, &prompt).unwrap_or_else(|| reply_text(&say(role, &prompt)))
        });
        shop.configure_scholar("");
        shop
    }

    /// Writes larder.toml, with more tables.
    pub fn configure_scholar(&self, tables: &str) {
        let layers =
            ["REFLEX", "NERVES", "MIND", "VOICE", "EYES"].map(|layer| format!("{layer} = \"stub\"\n"));
        let model =
            "provider = \"openai\"\nid = \"gpt-4o-mini\"\nretries = 0\nwindow = 32000\nmax_output = 4000\n";
        let address = self.address();
        self.write(
            "larder.toml",
            format!(
                "[models.layers]\n{}[models.stub]\nbase_url = \"{address}/v1\"\n{model}{tables}",
                layers.concat()
            ),
        );
    }

    /// Who was asked, in order.
    pub fn roles(&self) -> Vec<Role> {
        self.seen().iter().map(|seen| asked(seen).0).collect()
    }

    /// The documents of all users, where nobody says otherwise.
    pub fn documents(&self) -> Documents {
        Documents { root: self.path().join("home/documents") }
    }
}

/// A tree of documents.
pub struct Documents {
    root: PathBuf,
}

impl Documents {
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Every file by its path.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        walk(&self.root, &self.root, &mut found);
        found
    }

    /// The folders of turns of the user `local`, by their names, with the names of their files. What a killed writer
    /// left is hidden.
    pub fn turns(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut turns: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for path in self.files().keys() {
            let Some((_, inside)) = path.split_once("/turns/") else { continue };
            let hidden = inside.split('/').any(|name| name.starts_with('.'));
            if let (Some((turn, file)), false) = (inside.split_once('/'), hidden) {
                turns.entry(turn.to_owned()).or_default().insert(file.to_owned());
            }
        }
        turns
    }

    /// Links that lead nowhere, of the notes for which `looked_at` holds.
    pub fn broken_links(&self, looked_at: impl Fn(&str) -> bool) -> Vec<String> {
        let files = self.files();
        let vault = Vault::new(files.keys().filter_map(|name| VaultPath::new(name)));
        let mut broken = Vec::new();
        for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".md") && looked_at(name)) {
            let from = VaultPath::new(name).unwrap();
            for link in links(&String::from_utf8_lossy(bytes)) {
                if vault.resolve(&from, &link) == LinkDestination::Missing {
                    broken.push(format!("{name}: {}", link.path));
                }
            }
        }
        broken
    }
}

fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            walk(root, &path, found);
        } else if let Ok(bytes) = std::fs::read(&path) {
            found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), bytes);
        }
    }
}
