//! Model ids, reduced to what names the model: without the reseller in front of it, its region, its date or the
//! spelling that one of them prefers. Knows spellings; knows no model's facts.

/// Who serves models with Bedrock's ids.
const BEDROCK: &str = "bedrock";
/// Regions in front of Bedrock's ids, as in `us.anthropic.claude-…`.
const REGIONS: [&str; 12] =
    ["us.", "us-gov.", "eu.", "apac.", "au.", "jp.", "ca.", "sa.", "me.", "in.", "uk.", "global."];
/// Makers in front of Bedrock's ids, and what the rest of the id needs in their place.
const MAKERS: [(&str, &str); 18] = [
    ("ai21.", ""),
    ("amazon.", ""),
    ("anthropic.", ""),
    ("cohere.", ""),
    ("deepseek.", "deepseek-"),
    ("google.", ""),
    ("meta.", ""),
    ("minimax.", ""),
    ("mistral.", ""),
    ("moonshot.", ""),
    ("moonshotai.", ""),
    ("nvidia.", ""),
    ("openai.", ""),
    ("qwen.", ""),
    ("writer.", ""),
    ("xai.", ""),
    ("zai.", ""),
    ("twelvelabs.", ""),
];
/// Makers that resellers join to the model's name with a hyphen, where the name that follows says the same.
const JOINED: [(&str, &str); 3] = [("anthropic-", "claude-"), ("openai-", "gpt-"), ("meta-", "llama-")];
/// Variants of one model after a colon. Any other text there, such as the size in `llama3.1:8b`, is part of the name.
const VARIANTS: [&str; 8] = ["free", "beta", "nitro", "floor", "online", "extended", "exacto", "thinking"];

/// A model id, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelId {
    /// Who serves it, as the id says: the part before the first slash, `bedrock` for Bedrock's dotted ids and ARNs, or
    /// nothing.
    pub reseller: String,
    /// The model and its version in one spelling: `claude-sonnet-4-5` for `us.anthropic.claude-4.5-sonnet@20250929`.
    /// Ids with the same key name the same generation of the same model.
    pub key: String,
    /// The variant after a colon, such as `free`.
    pub variant: Option<String>,
    /// What was removed or respelled, in that order.
    pub steps: Vec<&'static str>,
}

impl ModelId {
    /// Takes an id apart. Every text has a key; one that names no model has one that nothing else has.
    pub fn parse(id: &str) -> Self {
        let mut parsed =
            Self { reseller: String::new(), key: String::new(), variant: None, steps: Vec::new() };
        let lower = id.trim().to_lowercase();
        let mut name = lower.as_str();
        if let Some(base) = name.strip_prefix("ft:").and_then(|tuned| tuned.split(':').next()) {
            name = base;
            parsed.steps.push("fine-tuning prefix");
        }
        if let Some((reseller, _)) = name.split_once('/') {
            parsed.reseller = if is_bedrock_arn(reseller) { BEDROCK } else { reseller }.to_owned();
            parsed.steps.push("provider prefix");
            name = name.rsplit('/').next().unwrap_or(name);
        }
        let owned = parsed.without_maker(name);
        let mut name = owned.as_str();
        let revision = parsed.suffix(&mut name);
        let dated = name;
        name = without_date(name);
        if revision && let Some(rest) = without_revision(name) {
            parsed.steps.push("revision");
            name = without_date(rest);
        }
        if let Some(rest) = name.strip_suffix("-latest").filter(|rest| !rest.ends_with("chat")) {
            name = rest;
        }
        if name.len() < dated.len() && !parsed.steps.contains(&"revision") {
            parsed.steps.push("date");
        }
        let spelled = spelled(name);
        if spelled != name {
            parsed.steps.push("spelling");
        }
        parsed.key = spelled;
        parsed
    }

    /// Removes region and maker of a Bedrock id, and the maker that some resellers repeat.
    fn without_maker(&mut self, name: &str) -> String {
        let region = REGIONS.iter().find_map(|region| name.strip_prefix(region));
        let rest = region.unwrap_or(name);
        let maker = MAKERS.iter().find_map(|(maker, kept)| Some((rest.strip_prefix(maker)?, kept)));
        if let Some((rest, kept)) = maker {
            self.steps.push(if region.is_some() { "region and maker" } else { "maker" });
            if self.reseller.is_empty() {
                BEDROCK.clone_into(&mut self.reseller);
            }
            return format!("{kept}{rest}");
        }
        let name = name.strip_prefix("databricks-").unwrap_or(name);
        let joined = JOINED
            .iter()
            .find_map(|(maker, model)| name.strip_prefix(maker).filter(|rest| rest.starts_with(model)));
        joined.unwrap_or(name).to_owned()
    }

    /// Removes what follows a colon or an at sign; whether a Bedrock revision such as `-v1:0` may precede it.
    fn suffix(&mut self, name: &mut &str) -> bool {
        let mut revision = self.reseller == BEDROCK || self.steps.contains(&"maker");
        if let Some((rest, suffix)) = name.rsplit_once(':') {
            let provisioned = suffix.trim_end_matches('k');
            if VARIANTS.contains(&suffix) {
                self.variant = Some(suffix.to_owned());
                self.steps.push("variant");
                *name = rest;
            } else if !provisioned.is_empty() && provisioned.bytes().all(|byte| byte.is_ascii_digit()) {
                // Bedrock adds the context length of provisioned models after the revision: `-v1:0:200k`.
                *name = rest.rsplit_once(':').map_or(rest, |(rest, _)| rest);
                revision = true;
            }
        }
        if let Some((rest, tag)) = name.split_once('@')
            && (tag == "default" || tag == "latest" || is_date(tag))
        {
            *name = rest;
            self.steps.push("date");
        }
        revision
    }
}

/// Whether the part of an id before the first slash is that of an ARN of Bedrock's, in any partition of AWS:
/// `arn:aws:bedrock:us-east-1:123456789012:inference-profile`.
fn is_bedrock_arn(before_slash: &str) -> bool {
    let mut parts = before_slash.split(':');
    let is_aws = parts.next() == Some("arn") && parts.next().is_some_and(|part| part.starts_with("aws"));
    is_aws && parts.next() == Some(BEDROCK)
}

/// `…-v1` without its end, where what remains still names a version.
fn without_revision(name: &str) -> Option<&str> {
    let (rest, revision) = name.rsplit_once("-v")?;
    let is_number = !revision.is_empty() && revision.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && rest.bytes().any(|byte| byte.is_ascii_digit())).then_some(rest)
}

/// An id without the date at its end: `-20250929` or `-2025-09-29`.
fn without_date(name: &str) -> &str {
    for length in [8, 10] {
        if let Some(at) = name.len().checked_sub(length + 1)
            && let (Some(rest), Some(date)) = (name.get(..at), name.get(at + 1..))
            && name.as_bytes()[at] == b'-'
            && is_date(date)
            && !rest.is_empty()
        {
            return rest;
        }
    }
    name
}

/// Whether a text is `20250929` or `2025-09-29`, of this century.
fn is_date(text: &str) -> bool {
    let digits: String = match text.len() {
        8 => text.to_owned(),
        10 if text.as_bytes().get(4) == Some(&b'-') && text.as_bytes().get(7) == Some(&b'-') => {
            text.split('-').collect()
        }
        _ => return false,
    };
    let is_month = digits.get(4..6).is_some_and(|month| ("01"..="12").contains(&month));
    digits.len() == 8
        && digits.starts_with("20")
        && is_month
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// One spelling of separators and versions: `llama-v3p1` and `llama-3.1` are `llama-3-1`; `claude-4.5-sonnet` and
/// `claude-sonnet-4.5` are `claude-sonnet-4-5`.
fn spelled(name: &str) -> String {
    let bytes = name.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let mut plain = String::with_capacity(name.len());
    for (at, sign) in name.char_indices() {
        let between = is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
        match sign {
            '.' | '_' | ' ' => plain.push('-'),
            'p' if between => plain.push('-'),
            'v' if plain.ends_with("llama-") && is_digit(Some(at + 1)) => {}
            _ => plain.push(sign),
        }
    }
    let Some(rest) = plain.strip_prefix("claude-") else { return plain };
    // The family and its version come in either order.
    let is_number = |token: &&str| token.len() <= 2 && token.bytes().all(|byte| byte.is_ascii_digit());
    let (numbers, words): (Vec<&str>, Vec<&str>) =
        rest.split('-').filter(|token| !token.is_empty()).partition(is_number);
    ["claude"].into_iter().chain(words).chain(numbers).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_model_have_one_key() {
        for (key, ids) in [
            (
                "claude-sonnet-4-5",
                &[
                    "claude-sonnet-4-5",
                    "claude-sonnet-4-5-20250929",
                    "claude-sonnet-4.5",
                    "claude-4.5-sonnet",
                    "anthropic/claude-sonnet-4.5",
                    "openrouter/anthropic/claude-sonnet-4.5:free",
                    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                    "bedrock/eu-west-3/anthropic.claude-sonnet-4-5-20250929-v1:0",
                    "anthropic.claude-sonnet-4-5-20250929-v1:0:200k",
                    "vertex_ai/claude-sonnet-4-5@20250929",
                    "databricks/databricks-claude-sonnet-4-5",
                    "gradient_ai/anthropic-claude-4.5-sonnet",
                    "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                    "Claude-Sonnet-4-5",
                ][..],
            ),
            (
                "claude-opus-4-6",
                &["claude-opus-4-6", "au.anthropic.claude-opus-4-6-v1", "claude-4.6-opus@default"],
            ),
            ("claude-v2", &["anthropic.claude-v2:1", "anthropic.claude-v2"]),
            ("gpt-4o", &["gpt-4o", "gpt-4o-2024-08-06", "ft:gpt-4o-2024-08-06:acme::abc", "azure/eu/gpt-4o"]),
            ("gpt-5-1-chat-latest", &["gpt-5.1-chat-latest"]),
            ("deepseek-r1", &["us.deepseek.r1-v1:0", "deepseek/deepseek-r1"]),
            ("llama-3-1-8b-instruct", &["fireworks_ai/accounts/fireworks/models/llama-v3p1-8b-instruct"]),
            ("llama3-1:8b", &["ollama/llama3.1:8b"]),
        ] {
            for id in ids {
                assert_eq!(ModelId::parse(id).key, key, "{id}");
            }
        }
    }

    #[test]
    fn an_arn_of_bedrocks_names_a_model_that_bedrock_serves() {
        for (id, reseller) in [
            (
                "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                "bedrock",
            ),
            (
                "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0",
                "bedrock",
            ),
            ("arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/anthropic.claude-v2:1", "bedrock"),
            (
                "arn:aws:sagemaker:us-east-1:1:endpoint/anthropic.claude-v2:1",
                "arn:aws:sagemaker:us-east-1:1:endpoint",
            ),
            ("openrouter/anthropic/claude-sonnet-4.5", "openrouter"),
        ] {
            assert_eq!(ModelId::parse(id).reseller, reseller, "{id}");
        }
    }

    #[test]
    fn generations_keep_their_own_keys() {
        for (one, other) in [
            ("claude-sonnet-4", "claude-sonnet-4-6"),
            ("claude-opus-4", "claude-opus-4-20250514-v1"),
            ("gpt-4", "gpt-4.5-preview"),
            ("gpt-4", "gpt-4-0613"),
            ("mistral-large-2411", "mistral-large-2407"),
            ("llama3.1:8b", "llama3.1:70b"),
            ("claude-v2", "claude-v1"),
            ("gpt-5-chat-latest", "gpt-5-latest"),
        ] {
            let keys = [one, other].map(|id| ModelId::parse(id).key);
            let same = one == "claude-opus-4";
            assert_eq!(keys[0] == keys[1], same && keys[1] == "claude-opus-4", "{one} {other} {keys:?}");
        }
    }

    #[test]
    fn any_text_has_a_key() {
        for id in
            ["", "/", ":", "@", "ft:", "us.", "-20250101", "é-20250929", "a/b/", "claude-", "日本語-v1:0"]
        {
            let parsed = ModelId::parse(id);
            assert_eq!(ModelId::parse(&parsed.key).key, parsed.key, "{id}");
        }
    }
}
