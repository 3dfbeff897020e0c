//! The built-in catalogue as a whole, and how ids find their entries.

use super::*;

fn found(id: &str) -> Entry {
    Catalogue::built_in().find(id).unwrap_or_else(|| panic!("{id} is in the catalogue"))
}

fn limits_of(id: &str) -> (LimitRule, u64, u64, Option<u64>) {
    let entry = found(id);
    let limits = entry.limits.unwrap_or_else(|| panic!("{id} has limits"));
    (limits.rule, limits.window, limits.input, entry.row.max_output)
}

#[test]
fn the_built_in_file_is_whole_and_small() {
    assert!(BUILT_IN.len() <= 300_000, "{} bytes", BUILT_IN.len());
    let text = unpacked().unwrap();
    let source = Source { format: 0, source: String::new(), date: String::new(), license: String::new() };
    let catalogue = Catalogue::read(&text, source).unwrap();
    let mut kinds = BTreeMap::<Kind, usize>::new();
    for at in 0..catalogue.table().lines.len() {
        *kinds.entry(catalogue.table().row(at).unwrap().kind).or_default() += 1;
    }
    let embedding = kinds.remove(&Kind::Embedding).unwrap_or_default();
    let units = [Kind::Image, Kind::Speech].map(|kind| kinds.remove(&kind).unwrap_or_default());
    assert!(units[0] >= 100 && units[1] >= 10, "{units:?}");
    assert!(embedding >= 100 && kinds.values().sum::<usize>() >= 2_500, "{embedding} {kinds:?}");
    let source = catalogue.source().unwrap();
    assert!(source.source.starts_with("litellm 1.") && source.license == "MIT", "{source:?}");
}

#[test]
fn every_id_finds_its_own_facts() {
    let catalogue = Catalogue::built_in();
    for at in 0..catalogue.table().lines.len() {
        let id = catalogue.table().id(at);
        let entry = catalogue.find(id).unwrap();
        let row = catalogue.table().row(at).unwrap();
        assert_eq!(entry.matched, Match { id: id.to_owned(), steps: Vec::new() });
        assert_eq!((&entry.row.prices, row.max_input), (&row.prices, entry.row.max_input), "{id}");
        assert!(row.max_output.is_none() || row.max_output == entry.row.max_output, "{id}");
        if let (Some(limits), Some(input)) = (entry.limits, row.max_input) {
            assert!(limits.input <= limits.window && limits.input <= input, "{id}: {limits:?}");
            assert!(limits.window >= input, "{id}: {limits:?} is less than its row's {input}");
        }
    }
}

#[test]
fn behind_a_prefix_the_version_that_is_asked_for_is_found() {
    for (id, output) in [("20240620-v1:0", 4_096), ("20241022-v2:0", 8_192)] {
        let entry = found(&format!("bedrock/anthropic.claude-3-5-sonnet-{id}"));
        assert!(entry.matched.id.ends_with(id), "{:?}", entry.matched);
        assert_eq!(entry.row.max_output, Some(output), "{id}");
    }
}

#[test]
fn an_arn_of_bedrocks_has_the_facts_of_its_last_segment() {
    for (arn, id) in [
        ("us-east-1:123:inference-profile", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("us-east-1::foundation-model", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("us-west-2::foundation-model", "amazon.nova-pro-v1:0"),
    ] {
        let (entry, own) = (found(&format!("arn:aws:bedrock:{arn}/{id}")), found(id));
        assert_eq!((entry.matched.id.as_str(), &entry.row), (id, &own.row), "{arn}");
        assert!(!entry.row.prices.is_empty(), "{arn}");
    }
    let profile = "arn:aws:bedrock:us-east-1:123:application-inference-profile/a1b2c3d4e5f6";
    assert_eq!(Catalogue::built_in().find(profile), None);
}

#[test]
fn makers_limits_are_what_they_publish() {
    use LimitRule::{Separate, Shared};
    for (id, rule, window, input, output) in [
        ("claude-sonnet-4-5", Shared, 200_000, 200_000, 64_000),
        ("claude-opus-4-7", Shared, 1_000_000, 1_000_000, 128_000),
        ("gpt-5", Separate, 400_000, 272_000, 128_000),
        ("gpt-5.2", Separate, 400_000, 272_000, 128_000),
        ("gpt-6-sol", Separate, 1_050_000, 922_000, 128_000),
        // The table has the whole window of these as the limit of the prompt.
        ("gpt-5.5", Separate, 1_050_000, 922_000, 128_000),
        ("us.openai.gpt-5.5", Separate, 1_050_000, 922_000, 128_000),
        ("gpt-5.1-codex", Separate, 400_000, 272_000, 128_000),
        ("gpt-4o", Shared, 128_000, 128_000, 16_384),
        ("o3", Shared, 200_000, 200_000, 100_000),
        ("gpt-4.1", Shared, 1_047_576, 1_047_576, 32_768),
        // A reseller with limits of its own keeps them.
        ("github_copilot/gpt-5-mini", Shared, 128_000, 128_000, 64_000),
        ("github_copilot/gpt-5.5", Separate, 400_000, 272_000, 128_000),
    ] {
        assert_eq!(limits_of(id), (rule, window, input, Some(output)), "{id}");
    }
    assert!(found("gpt-5.5").limits.unwrap().uncertain && !found("gpt-5.2").limits.unwrap().uncertain);
    assert!(found("gpt-5-pro").limits.unwrap().uncertain, "its row contradicts what the maker publishes");
}

#[test]
fn spellings_of_others_find_the_makers_entry() {
    for (id, entry) in [
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("anthropic/claude-4.5-sonnet:beta", "claude-sonnet-4-5"),
        ("Claude-Sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-opus-4.6", "claude-opus-4-6"),
        ("claude-opus-4-8@20270101", "claude-opus-4-8"),
        ("ca.anthropic.claude-opus-5-20260101-v1:0", "anthropic.claude-opus-5"),
        ("bedrock/eu-west-3/us.anthropic.claude-sonnet-4-6", "us.anthropic.claude-sonnet-4-6"),
        ("azure/gpt-5.2-2027-01-01", "azure/gpt-5.2"),
        ("openai/gpt-5.2", "gpt-5.2"),
        ("ft:gpt-4.1-2098-01-01:acme::abc", "gpt-4.1"),
        ("gpt-4o-2099-01-01", "gpt-4o"),
        ("google/gemini-2.5-pro", "gemini-2.5-pro"),
    ] {
        let found = found(id);
        assert_eq!(found.matched.id, entry, "{id}");
        assert!(!found.matched.steps.is_empty(), "{id}");
    }
}

#[test]
fn an_unknown_model_has_no_entry_however_much_it_resembles_one() {
    let catalogue = Catalogue::built_in();
    for id in ["", "gpt", "gpt-4.7", "claude", "claude-sonnet-9-9", "my-gpt-4o", "gpt-4o-but-mine", "llama"] {
        assert_eq!(catalogue.find(id), None, "{id}");
    }
    assert_eq!(catalogue.nearest("claude-sonet-4-5"), Some("claude-sonnet-4-5"));
    assert_eq!(catalogue.nearest("gtp-5.2"), Some("gpt-5.2"));
    assert_eq!(catalogue.nearest("something-else-entirely"), None);
}

#[test]
fn what_the_table_does_not_say_stays_unknown() {
    let free = found("anthropic/claude-sonnet-4.5:free");
    assert!(free.row.prices.is_empty() && free.limits.is_some(), "{free:?}");
    let sonnet = found("claude-sonnet-4-5").row.prices("standard", 1_000).unwrap();
    let picos = (sonnet.input, sonnet.output, sonnet.cache_read, sonnet.cache_write, sonnet.cache_write_1h);
    let dollars = |millionths: u64| Some(millionths);
    assert_eq!(
        picos,
        (dollars(3_000_000), dollars(15_000_000), dollars(300_000), dollars(3_750_000), dollars(6_000_000))
    );
    let gpt = found("gpt-5.2").row;
    assert_eq!(gpt.prices("standard", 1_000).unwrap().cache_write, None, "missing, not the input price");
    assert_eq!(gpt.prices("batch", 1_000).unwrap().input, Some(875_000));
    assert_eq!(gpt.prices("priority", 1_000).unwrap().output, Some(28_000_000));
    assert_eq!(gpt.prices("no-such-service", 1_000), None);
    let gemini = found("gemini-2.5-pro").row;
    assert_eq!(gemini.prices("standard", 200_000).unwrap().input, Some(1_250_000));
    assert_eq!(gemini.prices("standard", 200_001).unwrap().input, Some(2_500_000));
    let qwen = found("dashscope/qwen3-coder-plus").row;
    assert!(qwen.prices.len() >= 3, "every tier is kept: {:?}", qwen.prices);
}

#[test]
fn a_broken_table_is_refused_as_a_whole() {
    let text = unpacked().unwrap();
    let source =
        || Source { format: 1, source: "test".into(), date: "2026-01-01".into(), license: "MIT".into() };
    let read = |text: &str| Catalogue::read(text, source()).map(|_| ()).unwrap_err().to_string();
    assert!(read("").contains("neither"), "{}", read(""));
    assert!(read("{}").contains("0 models"));
    assert!(read("{\"a\": 1}").contains("not an object"));
    assert!(
        read("{\"a\": {\"litellm_provider\": \"b\", \"mode\": \"chat\", \"max_input_tokens\": \"many\"}}")
            .contains("max_input_tokens")
    );
    assert!(read(&text[..text.len() / 2]).contains("model"), "{}", read(&text[..text.len() / 2]));
    assert!(read(&text.replacen("\"format\":1", "\"format\":2", 1)).contains("format is 2"));
    assert!(read(&text.replacen("\"max_input\":", "\"max_imput\":", 1)).contains("max_imput"));
    assert!(Catalogue::read(&text, source()).is_ok());
}

/// The numbers that name a generation, read without the code that makes keys: dates and revisions left out.
fn generation(id: &str) -> Vec<String> {
    let name = id.to_lowercase();
    let name = name.rsplit('/').next().unwrap();
    let name = name.split([':', '@']).next().unwrap();
    // `us-gov.ai21.j2-mid-v1`: a cloud writes regions and makers in front of the model, its own revision after it.
    let mut model = name;
    while let Some((_, rest)) =
        model.split_once('.').filter(|(_, rest)| rest.starts_with(char::is_alphabetic))
    {
        model = rest.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix("-v").unwrap_or(rest);
    }
    let name = model;
    let dateless = match name.len() {
        n if n > 9 && name.as_bytes()[n - 9] == b'-' && name[n - 8..].bytes().all(|b| b.is_ascii_digit()) => {
            &name[..n - 9]
        }
        n if n > 11
            && name.as_bytes()[n - 3] == b'-'
            && name.as_bytes()[n - 6] == b'-'
            && name[n - 10..].starts_with("20") =>
        {
            &name[..n - 11]
        }
        _ => name,
    };
    let numbers = dateless.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let mut numbers: Vec<String> = numbers.map(str::to_owned).collect();
    numbers.sort();
    numbers
}

/// Ids under which a model is known elsewhere.
fn aliases(id: &str) -> [String; 8] {
    [
        id.to_uppercase(),
        format!("openrouter/{id}"),
        format!("{id}:free"),
        format!("{id}-20990101"),
        format!("{id}-2099-01-01"),
        format!("{id}@20990101"),
        id.replace('.', "-"),
        format!("us.anthropic.{id}-v1:0"),
    ]
}

#[test]
fn every_alias_finds_the_same_generation() {
    let catalogue = Catalogue::built_in();
    let mut wrong = Vec::new();
    for id in catalogue.ids() {
        let is_bare = !id.contains([':', '@']);
        let plain = is_bare && !id.contains(['.', '/']) && ModelId::parse(id).steps.is_empty();
        let comparable = is_bare && generation(id) == generation(&id.replace('p', "-"));
        for (how, alias) in aliases(id).iter().enumerate() {
            let Some(entry) = catalogue.find(alias) else {
                if plain && how <= 5 {
                    wrong.push(format!("{alias} is not found"));
                }
                continue;
            };
            let found = &entry.matched.id;
            let same_key = ModelId::parse(alias).key == ModelId::parse(found).key;
            if !same_key || (how < 6 && comparable && generation(found) != generation(id)) {
                wrong.push(format!("{alias} found {found}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of the aliases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_fine_tuned_model_has_the_limits_of_its_base_and_its_own_prices_or_none() {
    let tuned = found("ft:gpt-4o-2024-08-06:acme::abc");
    assert_eq!(tuned.matched.id, "ft:gpt-4o-2024-08-06");
    assert_eq!(
        tuned.row.prices("standard", 1).unwrap().input,
        Some(3_750_000),
        "not the base model's 2.5 dollars"
    );
    let unlisted = found("ft:gpt-4.1-nano-2098-01-01:acme::abc");
    assert_eq!((unlisted.matched.id.as_str(), unlisted.prices()), ("gpt-4.1-nano", None));
    assert_eq!(unlisted.limits, found("gpt-4.1-nano").limits);
    assert_eq!(found("gpt-4o-2099-01-01").matched.id, "gpt-4o", "a base model has no tuned row");
}

#[test]
fn bills_have_every_tier_of_the_table() {
    use larder_text::usage::{Service, Usage};
    let cost = |id: &str, usage: Usage| found(id).prices().unwrap().cost(&usage).total.to_string();
    let million = Usage { output: 1_000_000, ..Usage::default() };
    let long = Usage { input: 300_000, ..Usage::default() };
    assert_eq!(cost("gpt-5.5", million), "30");
    assert_eq!(cost("gpt-5.5", Usage { service: Service::Priority, ..million }), "75");
    assert_eq!(cost("gpt-5.5", Usage { service: Service::Flex, ..million }), "15");
    assert_eq!(cost("gpt-5.5", Usage { input: 272_000, ..long }), "1.36");
    assert_eq!(cost("gpt-5.5", long), "3", "10 dollars above 272,000 tokens");
    assert_eq!(cost("gpt-5.5", Usage { service: Service::Batch, ..long }), "1.5");
    assert_eq!(cost("gpt-5.5", Usage { cached_input: 200_000, ..long }), "1.2");
    let written = Usage { input: 100_000, cache_write: 100_000, ..Usage::default() };
    assert_eq!(cost("claude-sonnet-4-5", written), "0.375");
    assert_eq!(cost("claude-sonnet-4-5", Usage { cache_write_1h: 50_000, ..written }), "0.4875");
    // Anthropic's priority tier is capacity that is paid in advance; what the table lacks costs the usual price.
    assert_eq!(cost("claude-sonnet-4-5", Usage { service: Service::Priority, ..written }), "0.375");
    let catalogue = Catalogue::built_in();
    for id in catalogue.ids() {
        let row = catalogue.find(id).unwrap().row;
        let known = row.prices(STANDARD, 0).is_some_and(|tier| {
            tier.input.is_some() && (tier.output.is_some() || row.kind == Kind::Embedding)
        });
        assert_eq!(row.all_prices().is_some(), known, "{id}");
    }
}
