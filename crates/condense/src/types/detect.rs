//! Determines a text's type: explicit type, known file name or storage path, then content rules in a fixed order.
//!
//! Knows names and content; all it knows of a text's origin is whether it may declare its own type.

use crate::content_type::ContentType;
use crate::types::{by_extension, structure_of};

/// Bytes of a text that the prose heuristics read.
const SAMPLE_BYTES: usize = 8_192;

/// Determines the type of `content` (R0-22.7 to R0-22.12 as settled by C41).
///
/// `name` is a file name, a storage path with `/`, or a tool's name prefixed with `tool:`. The current turn's
/// `context.md` is named without a turn folder; one inside a `turn_…` folder belongs to another turn. `trusted` is
/// false for text from the web or from tools, whose content never decides a document type.
pub fn detect(explicit: Option<ContentType>, name: &str, trusted: bool, content: &str) -> ContentType {
    explicit
        .or_else(|| by_path(name))
        .or_else(|| by_seed_rules(name, if trusted { content } else { "" }))
        .or_else(|| {
            by_extension(name).map(|known| if is_chat(known, content) { ContentType::Chat } else { known })
        })
        .or_else(|| structure_of(content))
        .unwrap_or_else(|| if reads_like_prose(content) { ContentType::Prose } else { ContentType::Generic })
}

/// Larder's own files, which the substring rules would misclassify.
fn by_path(name: &str) -> Option<ContentType> {
    let path = name.replace('\\', "/");
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", &path));
    match file {
        "context.md" if folders.split('/').any(|folder| folder.starts_with("turn_")) => {
            Some(ContentType::PriorTurn)
        }
        "context.md" => Some(ContentType::ContextDoc),
        "research.md" => Some(ContentType::ResearchDoc),
        _ if file.starts_with("research_") && file.ends_with(".md") => Some(ContentType::ResearchDoc),
        "toolresults.md" => Some(ContentType::ToolResult),
        "page_content.md" | "extracted_data.json" => Some(ContentType::PageDoc),
        _ => None,
    }
}

fn by_seed_rules(name: &str, content: &str) -> Option<ContentType> {
    if content.contains("## 0. User Query") {
        return Some(ContentType::ContextDoc); // R0-22.7
    }
    if content.contains("## Research Findings") {
        return Some(ContentType::ResearchDoc); // R0-22.8
    }
    if name.contains("page_doc") || content.contains("ocr_items") {
        return Some(ContentType::PageDoc); // R0-22.9
    }
    if name.starts_with("tool:") || name.contains("tool_result") {
        return Some(ContentType::ToolResult); // R0-22.10
    }
    if name.contains("turn_") || content.contains("Previous Turn") {
        return Some(ContentType::PriorTurn); // R0-22.11
    }
    None
}

/// Conversations are often stored as JSON.
fn is_chat(known: ContentType, content: &str) -> bool {
    known == ContentType::Json && structure_of(content) == Some(ContentType::Chat)
}

/// Prose: mostly letters and spaces, few signs of code or data, and regular sentence ends.
fn reads_like_prose(content: &str) -> bool {
    let sample = &content[..content.floor_char_boundary(SAMPLE_BYTES)];
    let (mut all, mut words, mut signs, mut ends) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut chars = sample.chars().peekable();
    while let Some(c) = chars.next() {
        all += 1;
        match c {
            '{' | '}' | '[' | ']' | '<' | '>' | '=' | '|' | '\\' | '/' | '_' | '#' | ';' | '\0' => signs += 1,
            // Within versions, names of files and numbers it ends nothing.
            '.' | '!' | '?' if chars.peek().is_some_and(|next| next.is_ascii_alphanumeric()) => {}
            '.' | '!' | '?' | '。' | '！' | '？' => ends += 1,
            c if c.is_alphabetic() || c == ' ' => words += 1,
            _ => {}
        }
    }
    // Sentences of more than 400 characters are rare; a text of one sentence may have any length up to that.
    all > 0 && words * 100 >= all * 75 && signs * 100 <= all * 3 && (ends * 400 >= all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContentType::*;

    const CONTEXT: &str = "# Context\n\n## 0. User Query\n\nfind a lamp\n";
    const PROSE: &str =
        "It was late. The train had gone, and nobody knew when the next one would come. She waited.";

    #[test]
    fn the_explicit_type_goes_before_everything() {
        assert_eq!(detect(Some(Chat), "context.md", true, CONTEXT), Chat);
    }

    #[test]
    fn known_files_are_what_their_path_says() {
        for (name, expected) in [
            ("context.md", ContextDoc),
            ("turns/turn_000759/context.md", PriorTurn),
            ("turns\\turn_000759\\context.md", PriorTurn),
            ("turns/turn_000759/research.md", ResearchDoc),
            ("turns/turn_000759/research_2.md", ResearchDoc),
            ("turns/turn_000759/toolresults.md", ToolResult),
            ("webpage_cache/shop/page_content.md", PageDoc),
            ("webpage_cache/shop/extracted_data.json", PageDoc),
        ] {
            for trusted in [true, false] {
                assert_eq!(detect(None, name, trusted, "Previous Turn ocr_items"), expected, "{name}");
            }
        }
    }

    #[test]
    fn seed_rules_apply_in_their_order() {
        for (name, content, expected) in [
            ("a", "## 0. User Query\n## Research Findings", ContextDoc),
            ("page_doc_1", "## Research Findings", ResearchDoc),
            ("tool:page_doc", "", PageDoc),
            ("a", "{\"ocr_items\": []}", PageDoc),
            ("tool:turn_lights_on", "", ToolResult),
            ("my_tool_result.txt", "", ToolResult),
            ("turn_000012.md", "", PriorTurn),
            ("a", "Previous Turn: lamps", PriorTurn),
        ] {
            assert_eq!(detect(None, name, true, content), expected, "{name:?} {content:?}");
        }
    }

    #[test]
    fn untrusted_text_cannot_declare_its_own_type() {
        for content in [CONTEXT, "## Research Findings", "ocr_items", "Previous Turn"] {
            assert!(matches!(detect(None, "page", false, content), Generic | Prose), "{content:?}");
        }
        assert_eq!(detect(None, "tool:search", false, CONTEXT), ToolResult);
    }

    #[test]
    fn other_texts_go_by_extension_and_look() {
        assert_eq!(detect(None, "README.MD", false, ""), Markdown);
        assert_eq!(detect(None, "story.txt", false, PROSE), Prose);
        assert_eq!(
            detect(None, "", false, "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"),
            Prose
        );
        assert_eq!(detect(None, "", true, ""), Generic);
        let build: String =
            (0..200).map(|n| format!("   Compiling crate v1.{n}.0 in the workspace\n")).collect();
        assert_eq!(detect(None, "", false, &build), Generic, "versions have no sentences");
        assert_eq!(detect(None, "x", true, "\0\0\0\u{1}binary"), Generic);
        assert_eq!(detect(None, "x.json", true, "{\"a\": [1, 2, 3], \"b\": \"c\"}"), Json);
    }
}
