//! Truncation: keeps the beginning of a text up to a boundary, with a pointer to the rest.
//!
//! Knows where sentences and sections begin; makes no other choice.

use crate::condense::unchanged;
use crate::condensed::{CondenseError, Condensed};
use crate::engine::draft::CondensedDraft;
use crate::engine::job::Job;
use crate::engine::render::{Header, Renderer};
use crate::engine::verify::verified;
use crate::request::{CondenseRequest, KnownText};
use crate::types::{PLAIN, prose};

/// The beginning of a text that meets the target, cut before a section if that keeps at least half of what fits,
/// otherwise after a sentence; a marker replaces the rest. A text that meets the target is returned unchanged. The
/// query is ignored.
///
/// # Errors
/// If not even one sentence fits the target, a pin would be cut off, or the text does not contain a pin.
pub fn truncate(request: &CondenseRequest<'_>) -> Result<Condensed, CondenseError> {
    if let Some(pin) = request.pins.iter().find(|pin| !request.text.contains(pin.as_str())) {
        return Err(CondenseError::PinAbsent { pin: pin.clone() });
    }
    let text = request.text;
    let job = Job::new(request, KnownText::from_request(request));
    if job.original_tokens <= request.target {
        return Ok(unchanged(&job));
    }
    let ends: Vec<usize> =
        prose::sentences(text, 0..text.len()).into_iter().map(|sentence| sentence.end).collect();
    for &header in Header::ladder(&job) {
        let renderer = Renderer::new(&job, header);
        let shown = |end: usize| renderer.settle(std::iter::once(0..end));
        let fits =
            |&end: &usize| request.counter.count_up_to(&renderer.text(&shown(end)), request.target).is_some();
        let fitting = &ends[..ends.partition_point(fits)];
        let Some(&last) = fitting.last() else { continue };
        let section = fitting.iter().rev().find(|&&end| starts_section(&text[end..]));
        let end = section.copied().filter(|&end| end >= last / 2).unwrap_or(last);
        let shown = shown(end);
        let (cut, gaps) = (renderer.text(&shown), renderer.gaps(&shown));
        let draft = CondensedDraft { text: cut, shown, rewritten: Vec::new(), gaps };
        if let Ok(verified) = verified(&job, PLAIN, draft) {
            return Ok(verified);
        }
    }
    Err(CondenseError::PinsExceedTarget { needed: job.original_tokens, target: request.target })
}

/// Whether a Markdown heading, or one between `===`, starts here (R4-5.17).
fn starts_section(text: &str) -> bool {
    text.starts_with("===") || text.trim_start_matches('#').starts_with(' ') && text.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content_type::ContentType;
    use larder_text::pointer::PointerKey;
    use larder_text::tokens::Counter;

    fn cut(text: &str, target: usize) -> Result<Condensed, CondenseError> {
        let (counter, key) = (Counter::o200k(), PointerKey::new([1; 32]));
        let (content_type, query, pins) = (ContentType::Prose, None, &[][..]);
        truncate(&CondenseRequest { text, content_type, target, query, pins, counter: &counter, key: &key })
    }

    #[test]
    fn it_ends_after_a_sentence_and_the_rest_is_one_gap() {
        let text = "The barge came at nine with all its crates. ".repeat(60);
        let condensed = cut(&text, 200).unwrap();
        let [gap] = &condensed.gaps[..] else { panic!("{:?}", condensed.gaps) };
        assert!(condensed.tokens <= 200 && condensed.text.contains(&text[..gap.bytes.start]));
        assert!(text[..gap.bytes.start].ends_with("crates. ") && gap.bytes.end == text.len());
    }

    #[test]
    fn it_ends_before_a_section_that_would_be_cut() {
        let section = "=== Log ===\n\n".to_owned() + &"It went on for a while. ".repeat(20) + "\n\n";
        let condensed = cut(&section.repeat(4), 300).unwrap();
        assert_eq!(condensed.gaps[0].bytes.start % section.len(), 0);
    }

    #[test]
    fn a_target_without_room_for_a_sentence_is_refused() {
        let text = "A sentence that is rather long for so small a target, as it seems to all. ".repeat(9);
        assert!(matches!(cut(&text, 12), Err(CondenseError::PinsExceedTarget { .. })));
    }
}
