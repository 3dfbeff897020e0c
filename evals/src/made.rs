//! Made-up texts of every type, from a seed: what is measured where no corpus is needed, and what is mutated.
//!
//! Knows what such texts look like; does not know how they are condensed.

use std::fmt::Write as _;

use larder_condense::ContentType;

/// Every content type with the name under which commands and folders know it.
pub const TYPES: [(&str, ContentType); 15] = [
    ("json", ContentType::Json),
    ("log", ContentType::Log),
    ("diff", ContentType::Diff),
    ("code", ContentType::Code),
    ("html", ContentType::Html),
    ("table", ContentType::Table),
    ("chat", ContentType::Chat),
    ("markdown", ContentType::Markdown),
    ("prose", ContentType::Prose),
    ("context_doc", ContentType::ContextDoc),
    ("research_doc", ContentType::ResearchDoc),
    ("page_doc", ContentType::PageDoc),
    ("tool_result", ContentType::ToolResult),
    ("prior_turn", ContentType::PriorTurn),
    ("generic", ContentType::Generic),
];

/// A small generator of numbers (SplitMix64): the same seed gives the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is more than 0.
    pub const fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// One of `choices`, of which there is at least one.
    pub fn one<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

const WORDS: [&str; 40] = [
    "harbour",
    "the",
    "library",
    "of",
    "market",
    "and",
    "orchard",
    "in",
    "railway",
    "to",
    "theatre",
    "a",
    "observatory",
    "was",
    "winter",
    "with",
    "letter",
    "for",
    "captain",
    "on",
    "garden",
    "that",
    "morning",
    "by",
    "window",
    "from",
    "river",
    "had",
    "stone",
    "her",
    "silence",
    "his",
    "budget",
    "ledger",
    "café",
    "after",
    "seven",
    "lantern",
    "quiet",
    "under",
];
const LEVELS: [&str; 6] = ["INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"];
const NAMES: [&str; 6] = ["ann", "bo", "carla", "dmitri", "emi", "farid"];

/// A text of this type of about so many bytes, at least one item.
pub fn text(content_type: ContentType, seed: u64, bytes: usize) -> String {
    let mut random = Random::new(seed);
    let random = &mut random;
    match content_type {
        ContentType::Json => json(random, bytes),
        ContentType::Log => repeat(random, bytes, log_line),
        ContentType::Diff => repeat(random, bytes, diff_file),
        ContentType::Code => repeat(random, bytes, function),
        ContentType::Html => html(random, bytes),
        ContentType::Table => table(random, bytes),
        ContentType::Chat => repeat(random, bytes, turn),
        ContentType::Markdown | ContentType::ResearchDoc => repeat(random, bytes, part),
        ContentType::ContextDoc => context(random, bytes),
        ContentType::PageDoc => {
            format!("# Page\n\nurl: https://example.org/page\n\n{}", repeat(random, bytes, part))
        }
        ContentType::Prose | ContentType::PriorTurn => repeat(random, bytes, paragraph),
        ContentType::ToolResult | ContentType::Generic => repeat(random, bytes, tool_line),
    }
}

fn repeat(random: &mut Random, bytes: usize, item: fn(&mut Random, usize, &mut String)) -> String {
    let mut out = String::with_capacity(bytes + 1_000);
    let mut n = 0;
    while n == 0 || out.len() < bytes {
        item(random, n, &mut out);
        n += 1;
    }
    out
}

fn sentence(random: &mut Random, out: &mut String) {
    for _ in 0..random.below(16) + 4 {
        out.push_str(random.one(&WORDS));
        if random.below(14) == 0 {
            let _ = write!(out, " {}", random.below(90_000));
        }
        out.push(' ');
    }
    out.push_str("end. ");
}

fn paragraph(random: &mut Random, _: usize, out: &mut String) {
    (0..random.below(6) + 1).for_each(|_| sentence(random, out));
    out.push_str("\n\n");
}

fn part(random: &mut Random, n: usize, out: &mut String) {
    let _ = write!(out, "## Part {n}\n\n");
    paragraph(random, n, out);
    match random.below(4) {
        0 => {
            let _ = write!(out, "```sh\nmake part-{n}\n```\n\n");
        }
        1 => (0..5).for_each(|item| {
            let _ = writeln!(out, "- item {item}: {} costs ${}.50", random.one(&WORDS), random.below(900));
        }),
        2 => {
            let _ = write!(
                out,
                "| name | value |\n|---|---|\n| {} | {} |\n\n",
                random.one(&WORDS),
                random.below(99)
            );
        }
        _ => {}
    }
    out.push('\n');
}

fn log_line(random: &mut Random, n: usize, out: &mut String) {
    let (minute, second, milli) = (n / 600 % 60, n / 10 % 60, random.below(1_000));
    let level = if random.below(400) == 0 { "ERROR" } else { random.one(&LEVELS[..5]) };
    let _ = write!(out, "2026-11-04 10:{minute:02}:{second:02}.{milli:03} {level} ");
    let id = random.next() >> 40;
    let _ = match random.below(6) {
        _ if level == "ERROR" => {
            writeln!(out, "worker-{} failed: disk quota exceeded in /var/lib/{id:06x}", id % 9)
        }
        0 => writeln!(out, "api GET /v1/orders/{id} 200 in {} ms", id % 900),
        1 => writeln!(out, "api POST /v1/orders 201 in {} ms, order {id}", id % 900),
        2 => writeln!(out, "cache hit for key user:{id} ({} bytes)", id % 40_000),
        3 => writeln!(out, "worker-{} took job {id:06x} from queue mail", id % 9),
        4 => writeln!(out, "connection from 10.0.{}.{} closed", id % 250, id / 250 % 250),
        _ => writeln!(out, "heartbeat ok"),
    };
}

fn tool_line(random: &mut Random, n: usize, out: &mut String) {
    if random.below(3) == 0 {
        sentence(random, out);
        out.push('\n');
    } else {
        let _ = writeln!(
            out,
            "src/{}/{}.rs:{n}: {} bytes",
            random.one(&WORDS),
            random.one(&WORDS),
            random.below(9_999)
        );
    }
}

fn record(random: &mut Random, n: usize) -> String {
    let status =
        if random.below(50) == 0 { "failed: card declined" } else { random.one(&["paid", "sent", "open"]) };
    format!(
        "{{\"id\": \"ord-{n:06}\", \"customer\": \"{}_{}\", \"total\": {}.{:02}, \"status\": \"{status}\", \"items\": [{}, {}], \"address\": {{\"city\": \"{}\", \"zip\": \"{:05}\"}}}}",
        random.one(&NAMES),
        random.below(5_000),
        random.below(900),
        random.below(100),
        random.below(50),
        random.below(50),
        random.one(&WORDS),
        random.below(99_999),
    )
}

fn json(random: &mut Random, bytes: usize) -> String {
    let mut records = vec![record(random, 0)];
    let mut length = records[0].len();
    while length < bytes {
        let record = record(random, records.len());
        length += record.len() + 2;
        records.push(record);
    }
    match random.below(4) {
        0 => records.join("\n"),
        1 => format!("{{\"ok\": true, \"count\": {}, \"orders\": [{}]}}", records.len(), records.join(", ")),
        _ => format!("[{}]", records.join(", ")),
    }
}

/// Deep and widely indented JSON of about so many bytes: few tokens for its size, since runs of spaces are one.
pub fn wide_json(bytes: usize) -> String {
    const DEPTH: usize = 46;
    let mut out = String::with_capacity(bytes + 1_000);
    (0..DEPTH).for_each(|depth| {
        let _ = write!(out, "{{\n{}\"level{depth}\": ", " ".repeat(4 * (depth + 1)));
    });
    out.push_str("[\n");
    let margin = " ".repeat(4 * (DEPTH + 1));
    let mut n = 0;
    while out.len() < bytes {
        let comma = if n == 0 { "" } else { ",\n" };
        let _ = write!(out, "{comma}{margin}{}", n % 97);
        n += 1;
    }
    out.push_str("\n]");
    out.push_str(&"}".repeat(DEPTH));
    out
}

fn diff_file(random: &mut Random, n: usize, out: &mut String) {
    let name = format!("src/{}/{}{n}.rs", random.one(&WORDS), random.one(&WORDS));
    let _ = writeln!(out, "diff --git a/{name} b/{name}");
    match random.below(5) {
        0 => {
            let lines = random.below(30) + 1;
            let _ = write!(
                out,
                "new file mode 100644\nindex 0000000..{n:07x}\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{lines} @@\n"
            );
            (0..lines).for_each(|line| code_line(random, line, '+', out));
        }
        1 => {
            let _ = write!(out, "similarity index 100%\nrename from old/{name}\nrename to {name}\n");
        }
        _ => {
            let _ = write!(out, "index {n:07x}..{:07x} 100644\n--- a/{name}\n+++ b/{name}\n", n + 1);
            let mut at = 1;
            for _ in 0..random.below(4) + 1 {
                let (removed, added) = (random.below(6) + 1, random.below(9) + 1);
                let _ = writeln!(out, "@@ -{at},{} +{at},{} @@ fn work()", removed + 2, added + 2);
                code_line(random, at, ' ', out);
                (0..removed).for_each(|line| code_line(random, line, '-', out));
                (0..added).for_each(|line| code_line(random, line, '+', out));
                code_line(random, at, ' ', out);
                at += 40;
            }
        }
    }
}

fn code_line(random: &mut Random, n: usize, sign: char, out: &mut String) {
    let _ = writeln!(
        out,
        "{sign}    let {}_{n} = {}({});",
        random.one(&NAMES),
        random.one(&WORDS),
        random.below(999)
    );
}

/// The diff that adds a file with this text.
pub fn diff_adding(name: &str, text: &str) -> String {
    let mut diff = format!(
        "diff --git a/{name} b/{name}\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{} @@\n",
        text.lines().count()
    );
    text.lines().for_each(|line| {
        let _ = writeln!(diff, "+{line}");
    });
    diff
}

fn function(random: &mut Random, n: usize, out: &mut String) {
    if n == 0 {
        out.push_str("//! Ledgers.\n\nuse std::collections::HashMap;\n\n");
    }
    let _ = write!(
        out,
        "/// Works out the {} of {}.\npub fn {}_{n}(input: &HashMap<String, u64>, limit: usize) -> Option<u64> {{\n",
        random.one(&WORDS),
        random.one(&WORDS),
        random.one(&NAMES)
    );
    (0..random.below(20) + 2).for_each(|line| code_line(random, line, ' ', out));
    out.push_str(
        "    for (name, value) in input {\n        if *value > 3 { return None; } // TODO: name\n    }\n",
    );
    out.push_str("    Some(limit as u64)\n}\n\n");
}

fn html(random: &mut Random, bytes: usize) -> String {
    let menu: String = (0..20)
        .map(|n| {
            format!("<li><a href=\"/section/{n}\">{} {}</a></li>\n", random.one(&WORDS), random.one(&WORDS))
        })
        .collect();
    let body = repeat(random, bytes, |random, n, out| {
        let mut text = String::new();
        (0..4).for_each(|_| sentence(random, &mut text));
        let _ =
            write!(out, "<h2>Part {n}</h2>\n<p class=\"body-text\">{text}<a href=\"/x/{n}\">more</a></p>\n");
    });
    format!(
        "<!DOCTYPE html>\n<html><head><title>Page</title><style>p {{ margin: 0 }}</style></head><body>\n<nav><ul>{menu}</ul></nav>\n<article><h1>Title</h1>\n{body}</article>\n<footer>© 2026 <script>track();</script></footer></body></html>\n"
    )
}

fn table(random: &mut Random, bytes: usize) -> String {
    let comma = random.one(&[",", ",", "\t", ";"]);
    let header = ["id", "name", "city", "amount", "when"].join(comma);
    let mut out = format!("{header}\n");
    let mut n = 0;
    while n == 0 || out.len() < bytes {
        let (name, city) = (random.one(&NAMES), random.one(&WORDS));
        let cells = [
            n.to_string(),
            name.to_owned(),
            city.to_owned(),
            format!("{}.{:02}", random.below(9_000), random.below(100)),
            format!("2026-{:02}-{:02}", random.below(12) + 1, random.below(28) + 1),
        ];
        let _ = writeln!(out, "{}", cells.join(comma));
        n += 1;
    }
    out
}

fn turn(random: &mut Random, n: usize, out: &mut String) {
    out.push_str(if n.is_multiple_of(2) { "User: " } else { "Assistant: " });
    if n.is_multiple_of(2) {
        sentence(random, out);
        out.push_str("Could you fix that?\n\n");
    } else {
        (0..3).for_each(|_| sentence(random, out));
        let _ = write!(out, "We decided to use port {}.\n\n```sh\nmake {n}\n```\n\n", random.below(9_000));
    }
}

fn context(random: &mut Random, bytes: usize) -> String {
    let mut out = "# Context\n\n## 0. User Query\n\nfind a lamp\n\n".to_owned();
    for (number, name) in
        [(1, "Reflection Decision"), (2, "Gathered Context"), (3, "Task Plan"), (4, "Tool Execution")]
    {
        let _ = write!(out, "## {number}. {name}\n\n");
        out.push_str(&repeat(random, bytes / 4, paragraph));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_text_of_about_the_size_asked_for() {
        for (name, content_type) in TYPES {
            let made = text(content_type, 5, 20_000);
            assert_eq!(made, text(content_type, 5, 20_000), "{name}");
            assert!((15_000..40_000).contains(&made.len()), "{name}: {}", made.len());
        }
    }
}
