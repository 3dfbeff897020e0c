//! Generated turns: each number gives the same turn, with all kinds of files and links between turns.

use std::collections::BTreeMap;

use larder_vault::layout::{TurnPlace, UserPlace};
use larder_vault::links::DualLink;
use larder_vault::{
    Captured, ContentSummary, Document, DocumentTime, Intent, Manifest, Meta, Mode, PageContent, PageStretch,
    Research, Response, Score, TurnMetadata, TurnStatus, write_json,
};

use super::super::{TurnDraft, UserDocuments};

const WORDS: [&str; 24] = [
    "laptop",
    "hamster",
    "price",
    "café",
    "store",
    "breeder",
    "screen",
    "battery",
    "cage",
    "wheel",
    "keyboard",
    "review",
    "thread",
    "stock",
    "vendor",
    "syrian",
    "roborovski",
    "memory",
    "disk",
    "warranty",
    "shipping",
    "forum",
    "answer",
    "question",
];
const TOPICS: [&str; 5] = ["commerce.laptop", "commerce.laptop.gaming", "pet.hamster", "", "travel"];

fn words(seed: u64, count: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        WORDS[usize::try_from(state % WORDS.len() as u64).unwrap()]
    };
    (0..count).map(|_| next()).collect::<Vec<_>>().join(" ")
}

fn metadata(draft: &TurnDraft, user: &str) -> TurnMetadata {
    let number = u64::from(draft.number);
    TurnMetadata {
        turn_number: draft.number,
        user_id: user.to_owned(),
        session_id: Some("session".to_owned()),
        mode: Mode::Chat,
        status: TurnStatus::Complete,
        created_at: draft.created_at,
        finished_at: None,
        query: draft.query.clone(),
        summary: number.is_multiple_of(2).then(|| words(number, 6)),
        topic: Some(TOPICS[draft.number as usize % 5].to_owned()).filter(|topic| !topic.is_empty()),
        intent: Some(Intent::Informational),
        quality: Score::new(0.9),
        invented: Vec::new(),
        unverified: false,
        last_phase: Some(7),
        revisions: 0,
        retries: 0,
    }
}

fn research(draft: &TurnDraft, user: &str) -> Research {
    let number = draft.number;
    Research {
        id: format!("research_{number}_abc"),
        turn: number,
        session: user.to_owned(),
        query: draft.query.clone(),
        topic: TOPICS[number as usize % 5].to_owned(),
        intent: Intent::CommerceSearch,
        quality: Score::new(0.8).unwrap(),
        created: draft.created_at,
        expires: number.is_multiple_of(8).then(|| draft.created_at.plus_seconds(6 * 3_600)),
        supersedes: None,
        write_up: None,
        sources: Vec::new(),
        facts: vec![words(u64::from(number) + 7, 12)],
        listings: Vec::new(),
        claims: Vec::new(),
        linked_from: Vec::new(),
    }
}

fn page(files: &mut BTreeMap<String, Vec<u8>>, place: &TurnPlace, at: DocumentTime) {
    let url = format!("https://shop.example/{}", place.number() % 7);
    let page = place.page(&url);
    let manifest = Manifest {
        url: url.clone(),
        redirected_from: vec![format!("{url}?short")],
        url_slug: page.slug().to_owned(),
        title: words(u64::from(place.number()) + 3, 4),
        visited_at: at,
        turn_number: place.number(),
        captured: Captured { page_content: true, ..Captured::default() },
        content_summary: ContentSummary::default(),
        answerable_questions: Vec::new(),
    };
    let content = PageContent {
        title: manifest.title.clone(),
        url,
        captured: at,
        original: None,
        text: vec![PageStretch { main: true, text: words(u64::from(place.number()) + 5, 80) }],
        visible_elements: Vec::new(),
    };
    let meta = Meta::for_turn(place.number(), "page_content", "u", at);
    let folder = format!("webpage_cache/{}", page.slug());
    files.insert(format!("{folder}/manifest.json"), write_json(&manifest).into_bytes());
    let content = Document::new(meta, content).write(&page.content());
    files.insert(format!("{folder}/page_content.md"), content.into_bytes());
}

/// Fills a draft with the files of a turn.
pub(super) fn fill(draft: &mut TurnDraft, user: &str) {
    let number = draft.number;
    let place = draft.place.clone();
    let at = draft.created_at;
    let mut context = Meta::for_turn(number, "context", user, at).write().as_str().to_owned();
    context.push_str(&format!("# Turn\n\n{}\n", words(u64::from(number), 60)));
    if number > 1 {
        let earlier = UserPlace::new(user).turn(number / 2 + number % 2);
        if earlier.number() != number {
            let link = DualLink::new(earlier.context(), "earlier").both(&place.context());
            context.push_str(&format!("\n- {link}\n"));
        }
    }
    let response = Document::new(
        Meta::for_turn(number, "response", user, at),
        Response {
            text: format!("unique{number} {}", words(u64::from(number) + 1, 40)),
            ..Response::default()
        },
    );
    let files = &mut draft.files;
    files.insert("context.md".to_owned(), context.into_bytes());
    files.insert("response.md".to_owned(), response.write(&place.response()).into_bytes());
    files.insert("query_analysis.json".to_owned(), b"{\"resolved_query\": \"x\"}\n".to_vec());
    if number.is_multiple_of(3) {
        page(files, &place, at);
    }
    let metadata = metadata(draft, user);
    if number.is_multiple_of(4) {
        let value = research(draft, user);
        let meta = Meta::for_turn(number, "research", user, at);
        let text = Document::new(meta, value.clone()).write(&place.research());
        draft.files.insert("research.md".to_owned(), text.into_bytes());
        draft.files.insert("research.json".to_owned(), write_json(&value).into_bytes());
    }
    draft.files.insert("metadata.json".to_owned(), write_json(&metadata).into_bytes());
}

/// Begins a turn and fills it.
pub(super) fn turn(documents: &UserDocuments) -> TurnDraft {
    let mut draft = documents.drafts().begin(Mode::Chat, Some("session"), "which laptop?").unwrap();
    fill(&mut draft, documents.user());
    draft
}
