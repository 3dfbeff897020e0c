//! A vault with a turn whose every word is untrusted, for tests of pages and API.

use larder_store::{TurnDraft, UserDocuments};
use larder_text::pointer::Pointer;
use larder_text::sections::SectionId;
use larder_vault::context::{self, Action, CallResult, CallStatus, Claim, ClaimOrigin, Iteration, ToolLog};
use larder_vault::links::{DualLink, Reference};
use larder_vault::{
    BlockId, Document, DocumentTime, Meta, Mode, Response, RunMetrics, Score, ToolResult, ToolResults,
    TurnMetadata, TurnMetrics, TurnStatus, VaultPath,
};
use serde_json::json;

use crate::gateway::TestApp;

/// The tool output before and after the range that supports the claim.
pub const BEFORE: &str = "Laptops of the week\nHP Victus 15 for $649\n";

fn at() -> DocumentTime {
    "2026-01-05T10:00:00Z".parse().unwrap()
}

/// Commits turn 1 of `user`, with `words` wherever untrusted text may appear; an answer was written twice.
pub async fn turn(fake: &TestApp, user: &str, words: &str) -> UserDocuments {
    let vault = fake.vault(user);
    let mut draft = vault.drafts().begin(Mode::Chat, Some("session-1"), words).unwrap();
    let content = format!("{BEFORE}{words}\nEnd");
    let stored =
        fake.user(user).pointers().insert(content.as_bytes(), "tool_result", words).unwrap().pointer_id;
    let result = ToolResult {
        number: 1,
        call: format!("doc.search(query={words:?})"),
        iteration: 1,
        goal: None,
        status: CallStatus::Success,
        at: at(),
        bytes: content.len() as u64,
        original: Some(stored.clone()),
        content,
    };
    let original = stored.to_string();
    let bytes = Pointer::bytes(stored.id, BEFORE.len()..BEFORE.len() + words.len());
    let context = context_of(&draft, user, words, &result, bytes);
    put(&mut draft, "context.md", context.as_bytes());
    let results = draft.place.tool_results();
    let source = Reference {
        link: DualLink::to_block(results.clone(), result.block(), "toolresults"),
        note: original,
    };
    let response =
        Response { text: format!("The second answer. [2]\n\n{words}"), sources: vec![(2, source)] };
    let meta = Meta::for_turn(draft.number, "response", user, at());
    let text = Document::new(meta, response).write(&draft.place.response());
    put(&mut draft, "response.md", text.as_bytes());
    let meta = Meta::for_turn(draft.number, "toolresults", user, at());
    let text = Document::new(meta, ToolResults { results: vec![result] }).write(&results);
    put(&mut draft, "toolresults.md", text.as_bytes());
    let metrics = larder_vault::write_json(&metrics(words));
    put(&mut draft, "metrics.json", metrics.as_bytes());
    let considered =
        json!([{"document": words, "kind": words, "score": 0.5, "used": true, "tokens": 3, "why": words}]);
    let receipts = json!({"considered": considered}).to_string();
    put(&mut draft, "receipts.json", receipts.as_bytes());
    let metadata = larder_vault::write_json(&metadata(user, words));
    put(&mut draft, "metadata.json", metadata.as_bytes());
    vault.drafts().commit(&draft).unwrap();
    vault
}

fn put(draft: &mut TurnDraft, name: &str, bytes: &[u8]) {
    draft.files.insert(name.to_owned(), bytes.to_vec());
}

fn context_of(draft: &TurnDraft, user: &str, words: &str, result: &ToolResult, bytes: Pointer) -> String {
    let place = draft.place.context();
    let meta = Meta::for_turn(draft.number, "context", user, at());
    let mut text = meta.write().as_str().to_owned();
    text += &larder_vault::append_section(&text, SectionId::UserQuery, &larder_vault::query_body(words));
    text += &context::append(&text, &log(draft, words, result, bytes), &place);
    text +=
        &larder_vault::append_section(&text, SectionId::Synthesis, &format!("The first answer.\n\n{words}"));
    let body =
        format!("The second answer.\n\n{words}\n\n[gone](gone.md) [results](toolresults.md#^result-001)");
    text += &larder_vault::append_section(&text, SectionId::Synthesis, &body);
    text += &larder_vault::append_compaction(&text, SectionId::Synthesis, "none", &format!("Short. {words}"))
        .unwrap();
    text
}

fn log(draft: &TurnDraft, words: &str, result: &ToolResult, bytes: Pointer) -> ToolLog {
    let link = DualLink::to_block(draft.place.tool_results(), result.block(), "result-001");
    let origin = ClaimOrigin {
        block: BlockId::numbered("claim", 1),
        bytes: Some(bytes),
        document: Some(link.clone()),
    };
    let claim = Claim {
        claim: words.to_owned(),
        confidence: Score::new(0.9).unwrap(),
        source: words.to_owned(),
        ttl: "6h".parse().unwrap(),
        origin: Some(origin),
    };
    let iteration = Iteration {
        number: 1,
        action: Action::ToolCall,
        goal: None,
        reasoning: words.to_owned(),
        calls: vec![result.call.clone()],
        results: vec![CallResult { status: CallStatus::Success, text: words.to_owned(), full: Some(link) }],
        confidence: None,
        progress: None,
    };
    ToolLog { iterations: vec![iteration], claims: vec![claim], termination: None }
}

fn metrics(words: &str) -> TurnMetrics {
    let run = RunMetrics {
        phase: 4,
        recipe: words.to_owned(),
        run: words.to_owned(),
        model: words.to_owned(),
        duration_ms: 1_200,
        tokens_in: 2_345,
        tokens_out: 67,
        cost_microdollars: 1_500,
    };
    TurnMetrics {
        turn_number: 1,
        total_duration_ms: 2_500,
        total_tokens: 2_412,
        total_cost_microdollars: 1_500,
        tool_calls: 1,
        runs: vec![run],
    }
}

fn metadata(user: &str, words: &str) -> TurnMetadata {
    TurnMetadata {
        turn_number: 1,
        user_id: user.to_owned(),
        session_id: Some("session-1".to_owned()),
        mode: Mode::Chat,
        status: TurnStatus::Complete,
        created_at: at(),
        finished_at: Some(at()),
        query: words.to_owned(),
        summary: Some(words.to_owned()),
        topic: Some("commerce.laptop".to_owned()),
        intent: None,
        quality: Score::new(0.9),
        invented: Vec::new(),
        unverified: false,
        last_phase: Some(7),
        revisions: 1,
        retries: 0,
    }
}

/// A path that a test knows to be one.
pub fn path(text: &str) -> VaultPath {
    VaultPath::new(text).unwrap()
}
