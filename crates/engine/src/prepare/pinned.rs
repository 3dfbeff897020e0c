//! The lines of `context.md` that stay however far their section is condensed.

use larder_text::sections::SectionId;

/// Labels by which later phases decide: a section keeps their lines however far it is condensed.
const PINNED_LABELS: [(SectionId, &[&str]); 4] = [
    (SectionId::Reflection, &["**Decision:**"]),
    (SectionId::GatheredContext, &["**Sufficiency:**"]),
    (SectionId::TaskPlan, &["**Goal:**", "**Intent:**", "**Route To:**"]),
    (SectionId::Validation, &["**Decision:**"]),
];
/// Bytes of a line that is kept for its label.
const LONGEST_PINNED: usize = 300;

/// The first line of a section that begins with each of its own labels: the others are part of a text.
pub(super) fn lines(id: SectionId, text: &str) -> Vec<String> {
    let labels = PINNED_LABELS.iter().find(|(of, _)| *of == id).map_or(&[][..], |(_, labels)| labels);
    let first = |label: &&str| text.lines().find(|line| line.starts_with(label));
    let lines = labels.iter().filter_map(first).filter(|line| line.len() <= LONGEST_PINNED);
    lines.map(str::to_owned).collect()
}
