//! Counts against vectors, and the guarantees of bounded, cached, divided and trimmed counting.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Text that exercises words, gaps, contractions, scripts without spaces, marks, and runs.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z]{1,9}",
        2 => "[ \t]{1,3}",
        2 => "[!-/:-@\\[-`{-~]{1,3}",
        1 => "[\r\n]{1,3}",
        1 => "[0-9]{1,5}",
        1 => "'(s|t|re|VE|ll)",
        1 => "[ぁ-んァ-ヶ一-龠]{1,6}[、。！]?",
        1 => "\\PC{1,4}",
        1 => "[\u{300}-\u{310}\u{3000}\u{a0}\u{200d}]{1,2}",
        1 => "[a =\n]".prop_flat_map(|c| (1..60_usize).prop_map(move |n| c.repeat(n))),
    ];
    prop::collection::vec(piece, 0..160).prop_map(|pieces| pieces.concat())
}

fn vocabulary() -> impl Strategy<Value = OpenAi> {
    prop_oneof![Just(OpenAi::Cl100k), Just(OpenAi::O200k)]
}

fn counter(vocabulary: OpenAi) -> Counter {
    Counter::new(vocabulary.name(), Label::Exact, Framing::OPENAI, OpenAiEngine::new(vocabulary))
}

proptest! {
    #[test]
    fn counts_add_up_over_safe_cuts(text in text(), least in 1..40_usize, vocabulary in vocabulary()) {
        let vocabulary = OpenAiEngine::new(vocabulary);
        let (mut rest, mut sum) = (text.as_str(), 0);
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(cuts::head_end(rest, least));
            sum += vocabulary.count(head);
            rest = tail;
        }
        prop_assert_eq!(sum, vocabulary.count(&text));
        let (head, tail) = text.split_at(cuts::tail_start(&text, least));
        prop_assert_eq!(vocabulary.count(head) + vocabulary.count(tail), vocabulary.count(&text));
    }

    #[test]
    fn a_bounded_count_is_the_full_count(text in text(), limit in 0..400_usize, repeat in 1..20_usize, vocabulary in vocabulary()) {
        let text = text.repeat(repeat);
        let full = OpenAiEngine::new(vocabulary).count(&text);
        prop_assert_eq!(counter(vocabulary).count(&text), full);
        for limit in [limit, full, full.saturating_sub(1), full + 1] {
            prop_assert_eq!(counter(vocabulary).count_up_to(&text, limit), Some(full).filter(|&n| n <= limit));
        }
    }

    #[test]
    fn a_remembered_count_is_the_same(text in text()) {
        let counter = Counter::o200k();
        prop_assert_eq!(counter.count(&text), counter.clone().count(&text));
    }

    #[test]
    fn the_kept_text_fits_and_is_maximal(text in text(), max in 0..300_usize, vocabulary in vocabulary()) {
        let counter = counter(vocabulary);
        let prefix = counter.prefix(&text, max);
        prop_assert!(text.starts_with(prefix) && counter.count(prefix) <= max);
        let suffix = counter.suffix(&text, max);
        prop_assert!(text.ends_with(suffix) && counter.count(suffix) <= max);
        let estimate = Counter::claude(ClaudeGeneration::From4_7);
        prop_assert!(estimate.count(estimate.prefix(&text, max)) <= max);
        prop_assert!(Counter::bytes().prefix(&text, max).len() <= max);
        if counter.count(&text) <= max {
            prop_assert_eq!((prefix, suffix), (text.as_str(), text.as_str()));
        }
    }

    #[test]
    fn a_proof_of_excess_is_right(text in text(), limit in 0..200_usize, vocabulary in vocabulary()) {
        let vocabulary = OpenAiEngine::new(vocabulary);
        prop_assert!(!vocabulary.surely_exceeds(&text, limit) || vocabulary.count(&text) > limit);
    }

    #[test]
    fn shortened_runs_count_the_same(
        unit in "[a-z=! \n]{1,2}|あ|é|😀|\u{301}|aA|'s|7|\r\n",
        times in 2_000..9_000_usize, before in "[a-z ]{0,9}", after in "[a-z ]{0,9}", vocabulary in vocabulary(),
    ) {
        let text = format!("{before}{}{after}", unit.repeat(times));
        let whole = tiktoken::get_encoding(vocabulary.name()).unwrap().count(&text);
        prop_assert_eq!(OpenAiEngine::new(vocabulary).count(&text), whole);
    }
}

/// The same pseudo-random numbers in every run.
pub(super) fn random_numbers() -> impl FnMut() -> u64 {
    let mut state = 88_172_645_463_325_252_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// More words than a table holds, short and long, with control characters where a table keeps lengths.
#[test]
fn words_that_share_a_bucket_keep_their_counts() {
    let mut random = random_numbers();
    let mut word = |length: usize| -> String {
        (0..length)
            .map(|_| ['a', 'e', 'n', 't', 'R', '\n', '\x0e', '.', 'é'][(random() % 9) as usize])
            .collect()
    };
    let words: Vec<String> = (0..60_000).map(|n| word(1 + n % 33)).collect();
    let engine = OpenAiEngine::new(OpenAi::O200k);
    let reference = tiktoken::get_encoding(OpenAi::O200k.name()).unwrap();
    for _ in 0..2 {
        for word in &words {
            assert_eq!(engine.count(word), reference.count(word), "{word:?}");
        }
    }
}

/// `'s's` is one piece of two tokens: a run of them must not end in the middle of a piece where it did not before.
#[test]
fn a_shortened_run_ends_at_the_same_place_of_a_piece() {
    for vocabulary in [OpenAi::Cl100k, OpenAi::O200k] {
        let reference = tiktoken::get_encoding(vocabulary.name()).unwrap();
        let engine = OpenAiEngine::new(vocabulary);
        for (times, after) in (4_940..4_953).flat_map(|times| ["", "t", "tbba"].map(|after| (times, after))) {
            let text = "'s".repeat(times) + after;
            assert_eq!(engine.count(&text), reference.count(&text), "{times} {after:?}");
        }
    }
}

#[test]
fn counts_equal_those_of_the_reference_implementation() {
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../../tests/data/token-vectors.json")).unwrap();
    assert!(vectors.len() > 400);
    for vector in vectors {
        let text = vector["text"].as_str().unwrap();
        for counter in [Counter::cl100k(), Counter::o200k()] {
            assert_eq!(json!(counter.count(text)), vector[counter.name()], "{} of {text:?}", counter.name());
        }
    }
}

/// Megabytes that are slow to divide or to merge: under a limit each is decided in well under 50 ms.
#[test]
fn hostile_megabytes_are_decided_under_a_limit() {
    const MEGABYTE: usize = 1 << 20;
    const LIMIT: usize = 8_192;
    let mut random = random_numbers();
    let mut texts: Vec<String> = [
        "a",
        " ",
        "\n",
        "\r\n",
        "!",
        "7",
        "ab",
        "aA",
        "'s",
        "! ",
        "\0",
        "\u{301}",
        "\u{a0}",
        "漢",
        "😀",
        "<|endoftext|>",
    ]
    .iter()
    .map(|unit| unit.repeat(MEGABYTE / unit.len()))
    .collect();
    texts.push((0..MEGABYTE / 4).filter_map(|_| char::from_u32((random() % 0x11_0000) as u32)).collect());
    texts.push((0..MEGABYTE / 3).filter_map(|_| char::from_u32((random() % 0x1_0000) as u32)).collect());
    texts.push((0..MEGABYTE).map(|_| char::from(b'a' + (random() % 26) as u8)).collect());
    texts.push(
        String::from_utf8_lossy(&(0..MEGABYTE).map(|_| random() as u8).collect::<Vec<_>>()).into_owned(),
    );
    for counter in [Counter::cl100k(), Counter::o200k()] {
        counter.count("warm");
        for text in &texts {
            let started = Instant::now();
            let decided = counter.count_up_to(text, LIMIT);
            let took = started.elapsed();
            let start: String = text.chars().take(6).collect();
            println!("{} {start:?}: {decided:?} in {took:?}", counter.name());
            // Generous, for busy machines and unoptimised builds; the benchmark holds the tight figure.
            assert!(took < Duration::from_secs(30), "{} {start:?} took {took:?}", counter.name());
            assert_eq!(
                decided.is_some(),
                counter.count_up_to(text, MEGABYTE).is_some_and(|n| n <= LIMIT),
                "{start:?}"
            );
        }
    }
}

#[test]
fn normal_text_is_kept_to_within_a_token() {
    let text: String = (0..30_000).map(|n| format!("Sentence number {n} says something else. ")).collect();
    let counter = Counter::o200k();
    for max in [1, 7, 100, 999, 8_192, 100_000] {
        for kept in [counter.prefix(&text, max), counter.suffix(&text, max)] {
            let tokens = counter.count(kept);
            assert!(tokens <= max && tokens + 1 >= max, "{tokens} of {max}");
        }
    }
}

#[test]
fn names_of_special_tokens_are_ordinary_text() {
    assert!(Counter::o200k().count("<|endoftext|>") > 1);
    assert!(byte_level().count("<|end|>") > 1);
}

#[test]
fn labels_say_how_far_a_count_can_be_trusted() {
    let text = "A word of prose.";
    assert_eq!((Counter::bytes().label(), Counter::bytes().count(text)), (Label::Bounded, 16));
    let (exact, claude) = (Counter::o200k(), Counter::claude(ClaudeGeneration::To4_6));
    assert_eq!((exact.label(), exact.estimate(text)), (Label::Exact, exact.count(text)));
    assert_eq!(claude.label(), Label::Estimated);
    assert!(exact.count(text) < claude.estimate(text) && claude.estimate(text) < claude.count(text));
    assert_eq!(claude.count_up_to(text, claude.count(text)), Some(claude.count(text)));
    assert_eq!(claude.count_up_to(text, claude.count(text) - 1), None);
    assert_eq!(Counter::default().name(), DEFAULT_TOKENIZER);
    let expected = "claude-4.6 o200k_base 108 115 130 145";
    assert_eq!((claude.estimate_name(), claude.corrected(920_000).estimate_name()), (expected, expected));
}

#[test]
fn a_document_is_counted_by_section() {
    let counter = Counter::cl100k();
    let breakdown = counter.count_document(&[("§0", "the query"), ("§1", "a plan"), ("§1", "again")]);
    assert_eq!(breakdown.total, breakdown.by_section.values().sum::<usize>());
    assert_eq!(breakdown.by_section["§1"], counter.count("a plan") + counter.count("again"));
}

#[test]
fn a_request_counts_its_framing_tools_and_schema() {
    use crate::message::{Message, Role, ToolDef};
    let counter = Counter::o200k();
    let messages = [Message::text(Role::System, "Be brief."), Message::text(Role::User, "Why?")];
    // The example of OpenAI's cookbook: 3 per message, 1 for the role, 3 to open the answer.
    let bare = 3 + (3 + 1 + counter.count("Be brief.")) + (3 + 1 + counter.count("Why?"));
    assert_eq!(counter.count_messages(&messages, &[], None), bare);
    let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
    let tool = ToolDef { name: "find".into(), description: "Finds it.".into(), parameters: schema.clone() };
    let with_tool = counter.count_messages(&messages, &[tool], None);
    assert!(with_tool >= bare + counter.count(&schema.to_string()) + counter.count("Finds it."));
    assert!(
        counter.count_messages(&messages, &[], Some(&schema)) >= bare + counter.count(&schema.to_string())
    );
}

/// The byte-level alphabet: a printable character for every byte, as GPT-2 has it.
fn alphabet() -> Vec<char> {
    let printable = |b: u32| matches!(b, 33..=126 | 161..=172 | 174..=255);
    let mut others = 256_u32..;
    (0..256).map(|b| char::from_u32(if printable(b) { b } else { others.next().unwrap() }).unwrap()).collect()
}

fn byte_level_json() -> Value {
    let mut vocabulary: Vec<String> = alphabet().into_iter().map(String::from).collect();
    let merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("1", "2"), ("a", "n"), ("Ġ", "an"), ("Ġ", "Ġ")];
    vocabulary.extend(merges.map(|(a, b)| format!("{a}{b}")));
    let end = vocabulary.len();
    let ids: serde_json::Map<String, Value> =
        vocabulary.into_iter().zip(0..).map(|(t, id)| (t, json!(id))).collect();
    json!({
        "version": "1.0", "truncation": {"max_length": 4, "direction": "Right", "strategy": "LongestFirst", "stride": 0},
        "added_tokens": [{"id": end, "content": "<|end|>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": ids,
                  "merges": merges.map(|(a, b)| format!("{a} {b}"))},
    })
}

fn byte_level() -> Counter {
    Counter::from_tokenizer_json(byte_level_json().to_string().as_bytes(), "test").unwrap()
}

#[test]
fn counters_share_caches_only_with_those_of_their_registry() {
    let (one, other) = (Registry::builtin(), Registry::builtin());
    let cached = |counter: &Counter| counter.vocabulary.cache.len();
    let by_name = |registry: &Registry, name: &str| registry.by_name(name).unwrap();
    by_name(&one, "o200k_base").count("What one counter has counted, another of its registry knows.");
    assert_eq!((cached(&one.for_model("gpt-4o")), cached(&one.for_model("claude-opus-4-7"))), (1, 1));
    assert_eq!((cached(&one.unknown()), cached(&one.for_model("gpt-4-turbo"))), (1, 0));
    assert!(std::ptr::eq(by_name(&one, "o200k_base").workers(), by_name(&one, "cl100k_base").workers()));
    assert_eq!((cached(&other.for_model("gpt-4o")), cached(&Counter::o200k())), (0, 0));
    assert!(!std::ptr::eq(one.unknown().workers(), other.unknown().workers()));
}

#[test]
fn a_tokenizer_json_counts_whole_texts() {
    let counter = byte_level();
    assert_eq!((counter.label(), counter.name()), (Label::Exact, "test"));
    // the | Ġthe | Ġan | d | Ġ | 12 — six tokens, although the file asks to truncate at four.
    assert_eq!(counter.count("the the and 12"), 6);
    let long = "the the and 12, ".repeat(3_000);
    assert_eq!(counter.count(&long), counter.vocabulary.engine.count(&long));
    assert!(counter.vocabulary.engine.shape().cuts);
}

#[test]
fn unfamiliar_parts_are_counted_whole_and_words_by_the_general_crate() {
    let word_piece = json!({
        "version": "1.0", "added_tokens": [], "normalizer": {"type": "BertNormalizer", "clean_text": true,
        "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "hello": 1, "##s": 2, ",": 3}},
    });
    let counter = Counter::from_tokenizer_json(word_piece.to_string().as_bytes(), "words").unwrap();
    assert_eq!(counter.count("Hellos, hello"), 4);
    assert!(!counter.vocabulary.engine.shape().cuts);
    assert_eq!(counter.count_up_to("Hellos, hello", 3), None);
    assert_eq!(counter.prefix("hello hello hello hello", 2), "hello hello ");
}

#[test]
fn a_bad_tokenizer_json_is_refused() {
    let mut far = byte_level_json();
    far["model"]["vocab"]["zz"] = json!(4_000_000_000_u32);
    let mut unknown_merge = byte_level_json();
    unknown_merge["model"]["merges"] = json!(["no such"]);
    let bad = [
        "",
        "[]",
        "{}",
        "null",
        "\u{0}",
        "{\"model\": {\"vocab\": 3}}",
        &far.to_string(),
        &unknown_merge.to_string(),
    ]
    .map(|json| Counter::from_tokenizer_json(json.as_bytes(), "bad.json").unwrap_err().to_string());
    assert!(bad.iter().all(|error| error.contains("bad.json")), "{bad:?}");
    assert!(Counter::from_tokenizer_json(&[0xFF, 0xFE], "bad.json").is_err());
    assert!(Counter::from_tokenizer_json("[".repeat(1 << 20).as_bytes(), "deep").is_err());
}

/// A GGUF file of only metadata, with the vocabulary of `byte_level_json`.
fn gguf(model: &str, pre: &str) -> Vec<u8> {
    let json = byte_level_json();
    let string = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let strings = |texts: Vec<String>| {
        let items: Vec<u8> = texts.iter().flat_map(|text| string(text)).collect();
        [&9_u32.to_le_bytes()[..], &8_u32.to_le_bytes(), &(texts.len() as u64).to_le_bytes(), &items].concat()
    };
    let text = |text: &str| [&8_u32.to_le_bytes()[..], &string(text)].concat();
    let mut tokens: Vec<String> = json["model"]["vocab"].as_object().unwrap().keys().cloned().collect();
    tokens.push("<|end|>".to_owned());
    let kinds: Vec<u8> = (0..tokens.len())
        .flat_map(|id| if id + 1 == tokens.len() { 3_i32 } else { 1 }.to_le_bytes())
        .collect();
    let kinds =
        [&9_u32.to_le_bytes()[..], &5_u32.to_le_bytes(), &(tokens.len() as u64).to_le_bytes(), &kinds]
            .concat();
    let merges =
        json["model"]["merges"].as_array().unwrap().iter().map(|m| m.as_str().unwrap().to_owned()).collect();
    let entries = [
        ("general.name", text("test")),
        ("tokenizer.ggml.model", text(model)),
        ("tokenizer.ggml.pre", text(pre)),
        ("tokenizer.ggml.tokens", strings(tokens)),
        ("tokenizer.ggml.token_type", kinds),
        ("tokenizer.ggml.merges", strings(merges)),
    ];
    let mut file = [&b"GGUF"[..], &3_u32.to_le_bytes(), &0_u64.to_le_bytes(), &6_u64.to_le_bytes()].concat();
    for (key, value) in entries {
        file.extend(string(key));
        file.extend(value);
    }
    file
}

#[test]
fn the_vocabulary_in_a_gguf_counts_as_its_tokenizer_json_does() {
    let plain = Counter::from_gguf(&gguf("gpt2", "gpt-2")[..], "plain").unwrap();
    let text = "the the and 12 <|end|>";
    assert_eq!(plain.count(text), byte_level().count(text));
    // SmolLM keeps digits apart, and its first word has no space before it.
    let smollm = Counter::from_gguf(&gguf("gpt2", "smollm")[..], "smollm").unwrap();
    assert_eq!(smollm.count("the 12"), 4);
    assert_eq!(plain.count("the 12"), 3);
}

#[test]
fn a_bad_gguf_is_refused() {
    let file = gguf("gpt2", "gpt-2");
    for end in (0..file.len()).step_by(97) {
        assert!(Counter::from_gguf(&file[..end], "cut").is_err(), "cut at {end}");
    }
    for (model, pre) in [("llama", "default"), ("gpt2", "unheard-of")] {
        let error = Counter::from_gguf(&gguf(model, pre)[..], "odd").unwrap_err().to_string();
        assert!(error.contains("tokenizer.json instead"), "{error}");
    }
    let mut huge = file;
    huge[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(Counter::from_gguf(&huge[..], "huge").is_err());
}

#[test]
fn samples_represent_a_large_text() {
    let counter = Counter::o200k();
    let row = |at: usize| {
        format!("{{\"id\": {at}, \"path\": \"src/file_{}.rs\", \"grüße\": \"世界\"}}, ", at * 7919 % 613)
    };
    let large: String = (0..12_000).map(row).collect();
    let (sampled, counted) = (counter.sampled(&large), counter.count(&large));
    assert!(sampled.abs_diff(counted) * 50 < counted, "{sampled} beside {counted}");
    let small: String = (0..200).map(row).collect();
    assert_eq!(counter.sampled(&small), counter.count(&small));
    assert!(Counter::claude(ClaudeGeneration::From4_7).sampled(&large) > sampled, "charged with its margin");
}
