//! Whether a form of a result that is said to hide nothing shows everything: for the property tests of the policy and, in
//! `evals`, the fuzzers of the gateway. Knows the wording of references.

/// Whether `sent` shows everything of `text`: all its lines or, if it is JSON, all its values, each where it stood or by a
/// reference to the same lines of `sent` itself or of one of the texts of the `prompt`.
pub fn shows_all(text: &str, sent: &str, prompt: &[&str]) -> bool {
    let terse = larder_condense::terse_json(text);
    terse.is_some_and(|terse| shows_lines(&terse, sent, prompt)) || shows_lines(text, sent, prompt)
}

fn shows_lines(text: &str, sent: &str, prompt: &[&str]) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let mut left = lines.as_slice();
    for line in sent.lines() {
        let shown = match referred(line) {
            None if left.first() == Some(&line) => 1,
            None => return false,
            Some((first, last)) => {
                let count = last + 1 - first;
                let holds = |text: &&str| {
                    let there = text.lines().skip(first - 1).take(count);
                    left.len() >= count && there.eq(left[..count].iter().copied())
                };
                if !prompt.iter().chain([&sent]).any(holds) {
                    return false;
                }
                count
            }
        };
        left = &left[shown..];
    }
    left.is_empty()
}

/// The first and the last of the lines that a reference names.
fn referred(line: &str) -> Option<(usize, usize)> {
    let (range, _) = line.strip_prefix("[… above: L")?.split_once(" of ")?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first >= 1 && last >= first).then_some((first, last))
}
