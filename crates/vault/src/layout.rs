//! The path of every document, relative to the root of the vault.
//!
//! The root of the vault is the root of the data, so a wikilink contains the full path. Knows no files.

use super::names::{VaultPath, safe_name, turn_name, url_slug};
use super::value::DocumentTime;

/// The folder of one user: `users/{id}`. It contains nothing of any other user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserPlace {
    name: String,
}

impl UserPlace {
    /// The folder of any user id; ids that are not plain names get a folder named by their hash.
    pub fn new(user: &str) -> Self {
        Self { name: safe_name(user) }
    }

    fn file(&self, path: &str) -> VaultPath {
        VaultPath::of_safe(format!("users/{}/{path}", self.name))
    }

    /// The user's preferences as Markdown.
    pub fn preferences(&self) -> VaultPath {
        self.file("preferences.md")
    }

    /// The facts learned about and for the user, as Markdown.
    pub fn facts(&self) -> VaultPath {
        self.file("facts.md")
    }

    /// The records of one kind: `memory/{kind}.json`.
    pub fn memory(&self, kind: &str) -> VaultPath {
        self.file(&format!("memory/{}.json", safe_name(kind)))
    }

    /// What this user's visits showed about a site: `site_knowledge/{domain}.json`.
    pub fn site(&self, domain: &str) -> VaultPath {
        self.file(site_knowledge(domain).as_str())
    }

    /// The index of the memory folder.
    pub fn memory_index(&self) -> VaultPath {
        self.file("memory/index.md")
    }

    /// The index of the turns folder.
    pub fn turns_index(&self) -> VaultPath {
        self.file("turns/index.md")
    }

    /// The generated overview of research on one topic: `research_cache/{topic}.json`.
    pub fn research(&self, topic: &str) -> VaultPath {
        self.file(&format!("research_cache/{}.json", safe_name(topic)))
    }

    /// The index of a month's archived turns of this user.
    pub fn archive_index(&self, month: &str) -> VaultPath {
        VaultPath::of_safe(format!("archive/{}/{}/index.md", safe_name(month), self.name))
    }

    /// The index of the research folder.
    pub fn research_index(&self) -> VaultPath {
        self.file("research_cache/index.md")
    }

    /// The folder of a turn of this user; turns are numbered per user.
    pub fn turn(&self, number: u32) -> TurnPlace {
        TurnPlace { folder: format!("users/{}/turns/{}", self.name, turn_name(number)), number }
    }

    /// The folder of the turn once it is archived: `archive/YYYY-MM/{user}/turn_XXXXXX`.
    pub fn archived_turn(&self, number: u32, at: DocumentTime) -> TurnPlace {
        TurnPlace { folder: format!("archive/{}/{}/{}", at.month(), self.name, turn_name(number)), number }
    }
}

/// The folder of one turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnPlace {
    folder: String,
    number: u32,
}

macro_rules! turn_files {
    ($($(#[$doc:meta])* $method:ident = $name:literal),+ $(,)?) => {
        impl TurnPlace {
            $($(#[$doc])* pub fn $method(&self) -> VaultPath { self.file($name) })+
        }
    };
}

turn_files! {
    /// §0 to §6.
    context = "context.md",
    /// Phase 0's analysis of the query.
    query_analysis = "query_analysis.json",
    /// What was pasted into the query.
    attachments = "attachments.md",
    /// The full task plan.
    ticket = "ticket.md",
    /// The full answer.
    response = "response.md",
    /// The full research.
    research = "research.md",
    /// The full research as data.
    research_json = "research.json",
    /// Every tool call with its full result.
    tool_results = "toolresults.md",
    /// Durations, tokens and costs.
    metrics = "metrics.json",
    /// The turn's metadata and status.
    metadata = "metadata.json",
}

impl TurnPlace {
    /// The turn's number.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The folder, without a trailing `/`.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    fn file(&self, name: &str) -> VaultPath {
        VaultPath::of_safe(format!("{}/{name}", self.folder))
    }

    /// A piece of research of the turn, the first with number 1: `research.md`, `research_2.md`.
    pub fn research_number(&self, number: usize) -> VaultPath {
        if number <= 1 { self.research() } else { self.file(&format!("research_{number}.md")) }
    }

    /// The plan of an attempt that another one replaced: `ticket_1.md`.
    pub fn earlier_ticket(&self, attempt: u32) -> VaultPath {
        self.file(&format!("ticket_{attempt}.md"))
    }

    /// The answer of an attempt that another one replaced: `response_1.md`.
    pub fn earlier_response(&self, attempt: u32) -> VaultPath {
        self.file(&format!("response_{attempt}.md"))
    }

    /// The capture of a page that the turn visited: `webpage_cache/{url_slug}/`.
    pub fn page(&self, url: &str) -> PagePlace {
        let slug = url_slug(url);
        PagePlace { folder: format!("{}/webpage_cache/{slug}", self.folder), slug }
    }
}

/// The folder of one captured page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PagePlace {
    folder: String,
    slug: String,
}

impl PagePlace {
    /// The name of the folder.
    pub fn slug(&self) -> &str {
        &self.slug
    }

    fn file(&self, name: &str) -> VaultPath {
        VaultPath::of_safe(format!("{}/{name}", self.folder))
    }

    /// What was captured, and which questions it can answer.
    pub fn manifest(&self) -> VaultPath {
        self.file("manifest.json")
    }

    /// The page's text.
    pub fn content(&self) -> VaultPath {
        self.file("page_content.md")
    }

    /// The page's structured data.
    pub fn data(&self) -> VaultPath {
        self.file("extracted_data.json")
    }

    /// A screenshot of the page.
    pub fn screenshot(&self) -> VaultPath {
        self.file("screenshot.png")
    }
}

/// Whether a file of a turn is a piece of research: `research.md`, or `research_2.md` where the turn did more than one.
pub fn is_research(name: &str) -> bool {
    name == "research.md" || is_numbered(name, "research_")
}

/// Whether a file of a turn is the plan or the answer of an attempt that another one replaced.
pub fn is_earlier_attempt(name: &str) -> bool {
    is_numbered(name, "ticket_") || is_numbered(name, "response_")
}

fn is_numbered(name: &str, start: &str) -> bool {
    let number = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(".md"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What is known about a site, for all users: `site_knowledge/{domain}.json`.
pub fn site_knowledge(domain: &str) -> VaultPath {
    VaultPath::of_safe(format!("site_knowledge/{}.json", safe_name(&domain.to_lowercase())))
}

/// The folder of the figures by day.
pub const DAILY: &str = "observability/daily";

/// What the turns of a day took, over all users: `observability/daily/{day}.json`.
pub fn daily_figures(day: &str) -> VaultPath {
    VaultPath::of_safe(format!("{DAILY}/{}.json", safe_name(day)))
}

/// The same for the last weeks: `observability/trends.json`.
pub fn trends() -> VaultPath {
    VaultPath::of_safe("observability/trends.json".to_owned())
}

/// The readable note next to a file that is not Markdown: `metrics.json` → `metrics.json.md`.
pub fn wrapper(file: &VaultPath) -> VaultPath {
    VaultPath::of_safe(format!("{file}.md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_where_the_layout_says() {
        let at: DocumentTime = "2026-01-05T10:00:00Z".parse().unwrap();
        let user = UserPlace::new("henry");
        let turn = user.turn(815);
        for (path, expected) in [
            (user.preferences(), "users/henry/preferences.md"),
            (user.memory("facts"), "users/henry/memory/facts.json"),
            (user.research("commerce.laptop"), "users/henry/research_cache/commerce.laptop.json"),
            (turn.context(), "users/henry/turns/turn_000815/context.md"),
            (user.archived_turn(815, at).metadata(), "archive/2026-01/henry/turn_000815/metadata.json"),
            (site_knowledge("Amazon.com"), "site_knowledge/amazon.com.json"),
            (user.site("Amazon.com"), "users/henry/site_knowledge/amazon.com.json"),
            (daily_figures("2026-01-05"), "observability/daily/2026-01-05.json"),
            (wrapper(&turn.metrics()), "users/henry/turns/turn_000815/metrics.json.md"),
        ] {
            assert_eq!(path.as_str(), expected);
        }
        let page = turn.page("https://www.reddit.com/r/x/comments/1");
        assert!(page.manifest().as_str().starts_with("users/henry/turns/turn_000815/webpage_cache/reddit_"));
    }

    #[test]
    fn no_id_leaves_its_place() {
        for hostile in ["..", "../../etc", "/etc/passwd", "a/b", "con", "a\0b", "", "x\u{202e}y"] {
            let user = UserPlace::new(hostile);
            for path in [
                user.memory(hostile),
                user.research(hostile),
                user.turn(1).page(hostile).content(),
                site_knowledge(hostile),
            ] {
                assert_eq!(VaultPath::new(path.as_str()), Some(path.clone()), "{path}");
            }
        }
    }
}
