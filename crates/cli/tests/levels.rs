//! A prompt is reduced at three levels, each before the next is needed, and says by which, from what, and at what cost.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use serde_json::{Value, json};
use support::{Shop, reply_text};

const EXPLAIN: [&str; 4] = ["explain", "notes/asked", "--doc", "context.md"];

/// A project whose recipe reads `context.md` in a call of `total` tokens, with a model that has room for it.
fn shop(total: usize, reads: &str) -> Shop {
    let shop = Shop::with_provider([reply_text("It matters.")]);
    let recipe = format!(
        "name: asked\ndescription: Say what matters.\nmodel_layer: VOICE\nprompt_files: [prompts/notes/all.md]\n\
         output_format: text\ntoken_budget: {{total: {total}, prompt: 100, input: {}, output: 200}}\n{reads}",
        total - 300
    );
    shop.write("recipes/notes/asked.yaml", recipe);
    let larder = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    shop.write("larder.toml", larder.replace("window = 8000", "window = 32000"));
    shop
}

/// A slot of the recipe's own, so that no section has a limit.
const IN_A_SLOT: &str = "input_sections: [\"§1\", \"§2\", \"§3\"]\nslots:\n  \
                         - {name: sys, from: prompt, cap: 100}\n  \
                         - {name: ctx, from: documents, cap: flexible, docs: [context.md]}\n";
/// A slot for each section.
const BY_SECTION: &str = "input_sections: [\"§1\", \"§2\", \"§3\"]\n";

/// Each sentence has about 12 tokens.
fn sentences(topic: &str, count: usize) -> String {
    (0..count).map(|at| format!("On day {at} the council spoke of {topic} {}.\n", at * 7)).collect()
}

fn context([reflection, gathered, plan]: [usize; 3]) -> String {
    format!(
        "# Context Document\n\n## 0. User Query\n\n**Original:** What matters?\n\n\
         ## 1. Reflection Decision\n\n**Decision:** PROCEED\n\n{}\n## 2. Gathered Context\n\n{}\n\
         ## 3. Task Plan\n\n**Goal:** Find out.\n\n{}",
        sentences("roof", reflection),
        sentences("bridge", gathered),
        sentences("quay", plan)
    )
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// The part of an explained prompt that is this section.
fn section(receipt: &Value, number: u8) -> &Value {
    let parts = receipt["parts"].as_array().unwrap();
    parts.iter().find(|part| part["source"] == format!("context.md§{number}")).unwrap()
}

fn document_tokens(receipt: &Value) -> u64 {
    let parts = receipt["parts"].as_array().unwrap().iter();
    parts.filter(|part| part["kind"] == "context").map(|part| number(&part["tokens"])).sum()
}

fn levels(receipt: &Value) -> Vec<(String, String)> {
    let taken = receipt["assessment"]["levels"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |taken: &Value, key: &str| taken[key].as_str().unwrap().to_owned();
    taken.iter().map(|taken| (text(taken, "level"), text(taken, "impact"))).collect()
}

fn level(name: &str, impact: &str) -> (String, String) {
    (name.to_owned(), impact.to_owned())
}

#[test]
fn a_context_md_over_its_share_of_a_call_is_reduced_to_its_target() {
    // Of 12,000 tokens 8,600 and 7,500; of another size in proportion.
    for (total, trigger, target) in
        [(12_000_u64, 8_600, 7_500), (24_000, 17_200, 15_000), (6_000, 4_300, 3_750)]
    {
        let shop = shop(usize::try_from(total).unwrap(), IN_A_SLOT);
        let scale = usize::try_from(total).unwrap() * 11 / 600;
        shop.write("context.md", context([scale, scale, scale]));
        let below = shop.json(&EXPLAIN);
        let whole = document_tokens(&below);
        assert!(whole > trigger * 9 / 10 && whole <= trigger, "{total}: {whole}");
        assert!(levels(&below).is_empty() && shop.ok(&EXPLAIN).out.contains("Every part is sent whole."));

        shop.write("context.md", context([scale, scale * 3 / 2, scale]));
        let above = shop.json(&EXPLAIN);
        let reduced = document_tokens(&above);
        assert!(reduced <= target && reduced > target * 9 / 10, "{total}: {reduced}");
        assert_eq!(levels(&above), [level("document", "moderate")]);
        assert_eq!(section(&above, 2)["reason"], "document_over_limit", "the largest first");
        assert_eq!(section(&above, 3)["rendition"], "whole", "the newest section stays");
        assert_eq!(section(&above, 0)["rendition"], "whole");
        let text = shop.ok(&EXPLAIN).out;
        assert!(text.contains("level 2 (document), impact moderate: "), "{text}");
        assert!(text.contains("document over limit"), "{text}");
    }
}

#[test]
fn a_section_over_its_limit_is_the_only_one_that_is_reduced() {
    let shop = shop(12_000, BY_SECTION);
    shop.write("context.md", context([5, 250, 5]));
    let receipt = shop.json(&EXPLAIN);
    assert_eq!(levels(&receipt), [level("section", "minimal")]);
    assert!(number(&section(&receipt, 2)["tokens"]) <= 2_000, "{receipt}");
    for whole in [0, 1, 3] {
        assert_eq!(section(&receipt, whole)["rendition"], "whole");
    }
    let text = shop.ok(&EXPLAIN).out;
    assert!(text.contains("level 1 (section), impact minimal: 1 part in "), "{text}");
    // Sections within their limits keep the document within its own.
    shop.write("context.md", context([250, 250, 250]));
    let receipt = shop.json(&EXPLAIN);
    assert_eq!(levels(&receipt), [level("section", "severe")], "§1 keeps less than a tenth");
    assert!(number(&section(&receipt, 1)["tokens"]) * 10 < number(&section(&receipt, 1)["original_tokens"]));
}

/// The limits of sections of a document, whatever the call has room for.
#[test]
fn each_section_over_its_limit_is_reduced_to_it() {
    const SECTIONS: [(&str, u64); 6] = [
        ("## 1. Reflection Decision", 300),
        ("## 2. Gathered Context", 2_000),
        ("## 3. Task Plan", 800),
        ("## 4. Tool Execution", 2_500),
        ("## 5. Synthesis", 2_000),
        ("## 6. Validation", 500),
    ];
    let shop = shop(30_000, "input_sections: [\"§1\", \"§2\", \"§3\", \"§4\", \"§5\", \"§6\"]\n");
    for (at, (_, limit)) in SECTIONS.into_iter().enumerate() {
        let sized = |(number, (heading, _)): (usize, &(&str, u64))| {
            let count = if number == at { limit as usize / 9 } else { 2 };
            format!("{heading}\n\n{}\n", sentences("roof", count))
        };
        let text: String = SECTIONS.iter().enumerate().map(sized).collect();
        shop.write(
            "context.md",
            format!("# Context Document\n\n## 0. User Query\n\n**Original:** Why?\n\n{text}"),
        );
        let receipt = shop.json(&EXPLAIN);
        for number in 0..=6_u8 {
            let part = section(&receipt, number);
            let is_large = usize::from(number) == at + 1;
            assert_eq!(
                part["rendition"] != "whole",
                is_large,
                "R0-11.13 to R0-11.19: §{number} with §{}",
                at + 1
            );
            assert!(
                !is_large || number_of(part) <= limit && number_of(part) * 10 > limit * 7,
                "§{number}: {part}"
            );
        }
    }
}

fn number_of(part: &Value) -> u64 {
    number(&part["tokens"])
}

#[test]
fn the_impact_follows_what_is_no_longer_in_view() {
    let shop = Shop::with_provider([]);
    let larder = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    shop.write("larder.toml", larder.replace("window = 8000", "window = 64000"));
    let message = |at: usize| {
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        json!({"role": role, "content": sentences("roof", 40)})
    };
    shop.write("h.json", Value::from((0..60).map(message).collect::<Vec<_>>()).to_string());
    let impact = |cap: usize, overflow: &str| {
        shop.write(
            "recipes/notes/asked.yaml",
            format!(
                "name: asked\ndescription: Say what matters.\nmodel_layer: VOICE\n\
                 prompt_files: [prompts/notes/all.md]\noutput_format: text\n\
                 token_budget: {{total: 50000, prompt: 100, input: 40000, output: 200}}\n\
                 variables: {{word: plain}}\nslots:\n  - {{name: sys, from: prompt, cap: 100}}\n  \
                 - {{name: history, from: messages, cap: {cap}, overflow: {overflow}}}\n"
            ),
        );
        let receipt = shop.json(&["explain", "notes/asked", "-q", "Well?", "--history", "h.json"]);
        let [(level, impact)] = levels(&receipt).try_into().unwrap();
        assert_eq!(level, "section", "{receipt}");
        impact
    };
    assert_eq!(impact(3_000, "[point]"), "severe", "all but the newest is behind a pointer");
    assert_eq!(impact(3_000, "[condense]"), "severe", "less than a tenth is in view");
    assert_eq!(impact(10_000, "[condense]"), "moderate", "less than half is in view");
}

#[test]
fn a_call_near_its_limit_is_reduced_to_eleven_twelfths_of_it() {
    let with_notes = "input_docs: [notes]\ninput_sections: [\"§1\", \"§2\", \"§3\"]\n";
    let shop = shop(12_000, with_notes);
    shop.write("context.md", context([5, 5, 5]));
    let args = ["explain", "notes/asked", "--doc", "context.md", "--doc", "notes=notes.md"];
    // It fits 11,800 tokens, and exceeds 11,000.
    let mut lines = 800;
    let receipt = loop {
        shop.write("notes.md", sentences("lamp", lines));
        let receipt = shop.json(&args);
        if number(&receipt["assessment"]["total_tokens"]) > 11_000 {
            break receipt;
        }
        lines += 10;
    };
    let assessment = &receipt["assessment"];
    assert_eq!((&assessment["needed"], &assessment["overflow"]), (&json!(false), &json!(0)));
    assert_eq!((&assessment["budget"], &assessment["compression_ratio"]), (&json!(11_800), &json!(1.0)));
    assert_eq!(levels(&receipt), [level("call", "severe")]);
    assert!(number(&receipt["total"]) <= 11_000, "{receipt}");
    let text = shop.ok(&args).out;
    assert!(text.contains("level 3 (call), impact severe: 1 part in "), "{text}");
    assert!(text.contains("call near limit"), "{text}");
    // What must be whole is sent whole up to the budget: the trigger refuses nothing.
    rewrite(&shop, "[notes]", "[{name: notes, protect: true}]");
    let receipt = shop.json(&args);
    assert_eq!((levels(&receipt), &receipt["refused"]), (Vec::new(), &Value::Null));
    assert!(number(&receipt["total"]) > 11_000);
}

/// Changes the recipe.
fn rewrite(shop: &Shop, from: &str, to: &str) {
    let path = "recipes/notes/asked.yaml";
    let recipe = std::fs::read_to_string(shop.path().join(path)).unwrap();
    assert!(recipe.contains(from), "{recipe}");
    shop.write(path, recipe.replace(from, to));
}

/// Gives the recipe a prompt that no other uses.
fn own_prompt(shop: &Shop, text: &str) {
    rewrite(shop, "prompts/notes/all.md", "prompts/notes/own.md");
    shop.write("prompts/notes/own.md", text);
}

#[test]
fn a_receipt_states_need_total_budget_overflow_and_ratio() {
    let shop = shop(12_000, "input_docs: [notes]\n");
    shop.write("notes.md", sentences("lamp", 1_400));
    let args = ["explain", "notes/asked", "--doc", "notes=notes.md", "-q", "What costs most?"];
    let receipt = shop.json(&args);
    let assessment = &receipt["assessment"];
    let (total, budget) = (number(&assessment["total_tokens"]), number(&assessment["budget"]));
    assert_eq!((&assessment["needed"], budget), (&json!(true), 11_800));
    assert!(total > 14_000, "{assessment}");
    assert_eq!(number(&assessment["overflow"]), total - budget);
    let ratio = assessment["compression_ratio"].as_f64().unwrap();
    assert!((ratio - budget as f64 / total as f64).abs() < 1e-9, "{assessment}");
    assert_eq!(levels(&receipt), [level("call", "severe")]);
    let text = shop.ok(&args).out;
    let line = format!(
        "whole it has {total} tokens, {} more than 11800; compression ratio {ratio:.2}",
        total - budget
    );
    assert!(text.contains(&line), "{text}");

    // The record of a run has the same, and names the layer and the parts of the pack.
    let run = ["run", "notes/asked", "--doc", "notes=notes.md", "-q", "What costs most?"];
    let recorded = &shop.json(&run)["receipt"];
    assert_eq!(&recorded["assessment"], assessment);
    assert_eq!((&recorded["layer"], &receipt["layer"]), (&json!("VOICE"), &json!("VOICE")));
    let kinds: Vec<&Value> = recorded["parts"].as_array().unwrap().iter().map(|part| &part["kind"]).collect();
    for kind in ["role_prompt", "linked_docs", "query"] {
        assert!(kinds.contains(&&json!(kind)), "{kind}: {kinds:?}");
    }
}

#[test]
fn raising_the_total_by_the_stated_deficit_is_enough() {
    // Numbers have far more tokens than a quarter of their bytes.
    let shop = shop(3_000, "input_docs: [{name: notes, protect: true}]\n");
    let numbers: String = (0..600).map(|at| format!("{} {} ", at * 7_919, at * 104_729)).collect();
    shop.write("notes.md", numbers);
    let args = ["explain", "notes/asked", "--doc", "notes=notes.md", "-q", "What costs most?"];
    let explain =
        || serde_json::from_str::<Value>(&shop.run(&[&args[..], &["--format", "json"]].concat()).out);
    let refused = &explain().unwrap()["refused"];
    let deficit = number(&refused["deficit"]);
    assert!(deficit > 1_000, "{refused}");
    rewrite(&shop, "total: 3000", &format!("total: {}", 3_000 + deficit - 1));
    assert_eq!(number(&explain().unwrap()["refused"]["deficit"]), 1);
    rewrite(&shop, &format!("total: {}", 3_000 + deficit - 1), &format!("total: {}", 3_000 + deficit));
    assert_eq!(explain().unwrap()["refused"], Value::Null);
}

#[test]
fn a_size_that_is_sampled_is_called_about() {
    let shop = shop(12_000, "input_docs: [notes]\n");
    let args = ["explain", "notes/asked", "--doc", "notes=notes.md", "-q", "What costs most?"];
    for (count, is_estimate) in [(1_400, false), (8_000, true)] {
        shop.write("notes.md", sentences("lamp", count));
        let assessment = &shop.json(&args)["assessment"];
        assert_eq!(assessment["is_estimate"], json!(is_estimate));
        let line = format!(
            "whole it has {}{} tokens",
            if is_estimate { "about " } else { "" },
            assessment["total_tokens"]
        );
        assert!(shop.ok(&args).out.contains(&line), "{line}");
        let counted: u64 =
            shop.ok(&["count", "notes.md"]).out.split_whitespace().next().unwrap().parse().unwrap();
        let total = number(&assessment["total_tokens"]);
        assert!(total.abs_diff(counted) * 20 < counted, "{total} against {counted}");
    }
}

#[test]
fn values_that_make_a_prompt_longer_than_its_allotment_are_refused() {
    let shop =
        shop(12_000, "input_docs: [{name: notes, required: false}]\nvariables: {tone: \"{{ tone }}\"}\n");
    own_prompt(&shop, "You answer from notes, in this tone: {{ tone }}\n");
    shop.ok(&["check"]);
    let explain =
        |tone: &str| shop.run(&["explain", "notes/asked", "-q", "Why?", "--set", &format!("tone={tone}")]);
    assert_eq!(explain("dry").code, 0);
    let refused = explain(&"dry and plain ".repeat(60));
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("more than token_budget.prompt, which is 100"), "{}", refused.err);
    assert_eq!(shop.seen().len(), 0);
}

#[test]
fn a_template_knows_the_session_and_the_user() {
    let shop = shop(
        12_000,
        "input_docs: [{name: notes, required: false}]\nvariables: {where: \"{{ session_id }}\"}\n",
    );
    own_prompt(&shop, "Session {{ where }} of {{ user }}{% if turn_id %}, {{ turn_id }}{% endif %}.\n");
    shop.ok(&["check"]);
    shop.ok(&["run", "notes/asked", "-q", "Why?", "--session", "abc123", "--user", "ann"]);
    let sent = shop.seen()[0].json()["messages"].to_string();
    assert!(sent.contains("Session abc123 of ann."), "{sent}");
}
