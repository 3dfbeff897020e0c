//! Values learned at run time over the settings: a revision of them fills in what nothing else sets. Knows which settings
//! may be learned; knows neither how nor where revisions are stored.

use std::collections::BTreeMap;

use larder_core::policy::InvalidSetting;
use serde::Serialize;

use super::{Config, Setting, SettingOrigin, policy, setting};
use crate::settings::spec::SettingValue;
use crate::settings::{self, LEARNED};

/// Why a value is not used that should be a number of tokens.
const NO_TOKENS: &str = "not a number of tokens such as 32000";
/// The beginning and the end of the key of a learned window, around the id of the model: `models.ID.window`.
const WINDOW: (&str, &str) = ("models.", ".window");

/// What surrounds the id of the model and the name of the estimate in the key of a learned factor:
/// `models.ID.estimate_factor."ESTIMATE"`.
const FACTOR: [&str; 3] = ["models.", ".estimate_factor.\"", "\""];
/// The factor 1, and the highest that can be used, in parts per million.
const ONE_PPM: u64 = 1_000_000;
const MAX_PPM: u64 = 4 * ONE_PPM;
/// Parts per million in a thousandth, the last digit of a factor as text.
const THOUSANDTH: u64 = 1_000;

/// The key under which the window of a model is learned.
pub fn window_key(id: &str) -> String {
    format!("{}{id}{}", WINDOW.0, WINDOW.1)
}

/// Whether a key is that of a learned window.
pub fn is_window(key: &str) -> bool {
    id_in(key, WINDOW).is_some()
}

/// The key and the value under which it is learned that a provider reports `factor_ppm` tokens for each million that the
/// estimate of this name has for a model: a decimal number, rounded up.
pub fn factor_change(id: &str, estimate: &str, factor_ppm: u64) -> (String, String) {
    let thousandths = factor_ppm.div_ceil(THOUSANDTH);
    let value = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    (factor_key(id, estimate), value)
}

fn factor_key(id: &str, estimate: &str) -> String {
    let [before, between, after] = FACTOR;
    format!("{before}{id}{between}{estimate}{after}")
}

/// The factor, in parts per million, that applies to the estimate of this name; one million if none is learned.
pub fn factor_in(learned: &BTreeMap<String, String>, id: &str, estimate: &str) -> u64 {
    learned.get(&factor_key(id, estimate)).and_then(|value| factor_of(value)).unwrap_or(ONE_PPM)
}

/// The id of the model and the name of the estimate in the key of a learned factor; `None` for other keys.
pub fn factor_in_key(key: &str) -> Option<(&str, &str)> {
    let [before, between, after] = FACTOR;
    key.strip_prefix(before)?.strip_suffix(after)?.rsplit_once(between)
}

/// The factor that a text is, in parts per million.
fn factor_of(value: &str) -> Option<u64> {
    let (whole, part) = value.split_once('.').filter(|(_, part)| part.len() == 3)?;
    let ppm = whole
        .parse::<u64>()
        .ok()?
        .checked_mul(ONE_PPM)?
        .checked_add(part.parse::<u64>().ok()? * THOUSANDTH)?;
    (1..=MAX_PPM).contains(&ppm).then_some(ppm)
}

/// What budgets of a conversation type are learned: tokens of the prompt besides the participant's message and of the
/// reply, by the recipe of the type and by that for small windows.
pub const BUDGETS: [&str; 4] = ["context", "output", "small.context", "small.output"];

/// The key under which one of [`BUDGETS`] is learned for a conversation type: `conversations.TYPE.NAME`.
pub fn budget_key(kind: &str, name: &str) -> String {
    format!("conversations.{kind}.{name}")
}

/// The value of `policy.tool_caps` with these names and tokens.
pub fn tool_caps_value(caps: &BTreeMap<String, usize>) -> String {
    caps.text()
}

/// Whether a key is that of a budget of a conversation type.
fn is_budget(key: &str) -> bool {
    let named = key.strip_prefix("conversations.").and_then(|rest| rest.split_once('.'));
    named.is_some_and(|(_, name)| BUDGETS.contains(&name))
}

/// The id of the model in a key with this beginning and end.
fn id_in<'a>(key: &'a str, around: (&str, &str)) -> Option<&'a str> {
    key.strip_prefix(around.0)?.strip_suffix(around.1)
}

/// What a learned value is that has no setting of its own.
fn help_of(key: &str) -> Option<&'static str> {
    if is_window(key) {
        return Some(
            "The window of a model that is in no table, in tokens: learned when its provider refused a longer prompt.",
        );
    }
    if factor_in_key(key).is_some() {
        return Some(
            "What this estimate of the model's tokens is multiplied by, as the reports of its provider show; 5 % more is charged.",
        );
    }
    is_budget(key).then_some(
        "A budget of a conversation type, in tokens: learned from what its prompts and replies use.",
    )
}

/// What became of a learned value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum Standing {
    /// It is used.
    Used,
    /// It is not used, because the user sets the value: what is learned never overrides that.
    Overridden {
        /// Where it is set.
        by: String,
    },
    /// It cannot be used.
    Unusable {
        /// Why.
        reason: String,
    },
}

/// A learned value over the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LearnedValue {
    /// Its key.
    pub key: String,
    /// Its value, as text.
    pub value: String,
    /// Whether it is used.
    #[serde(flatten)]
    pub standing: Standing,
}

/// A revision with values that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "revision {number} has values that cannot be used, and nothing was changed:\n  {}\nchoose another revision, or write \
     what you need into larder.toml",
    problems.join("\n  ")
)]
pub struct UnusableRevision {
    number: u64,
    problems: Vec<String>,
}

impl Config {
    /// These settings with what a revision has learned in place of defaults, and what became of each learned value.
    pub fn revised(&self, number: u64, learned: &BTreeMap<String, String>) -> (Self, Vec<LearnedValue>) {
        let mut revised = self.clone();
        let mut values = Vec::new();
        for (key, value) in learned {
            let standing = revised.learn(number, key, value);
            if standing == Standing::Used
                && let Some(help) = help_of(key)
            {
                let (key, value, origin) = (key.clone(), value.clone(), SettingOrigin::Revision { number });
                revised.settings.push(Setting { key, value, origin, env: &[], aliases: &[], help });
            }
            values.push(LearnedValue { key: key.clone(), value: value.clone(), standing });
        }
        (revised, values)
    }

    /// Checks that everything learned in a revision can be used, so that going back to it has its whole effect.
    ///
    /// # Errors
    /// [`UnusableRevision`] with every value that cannot.
    pub fn check_revision(
        &self,
        number: u64,
        learned: &BTreeMap<String, String>,
    ) -> Result<(), UnusableRevision> {
        let (_, values) = self.revised(number, learned);
        let problem = |LearnedValue { key, value, standing }: LearnedValue| match standing {
            Standing::Unusable { reason } => Some(format!("{key} = {value}: {reason}")),
            _ => None,
        };
        let problems: Vec<String> = values.into_iter().filter_map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(UnusableRevision { number, problems }) }
    }

    fn learn(&mut self, number: u64, key: &str, value: &str) -> Standing {
        if let Some(id) = id_in(key, WINDOW) {
            return self.learn_window(id, value);
        }
        if factor_in_key(key).is_some() {
            let Some(factor) = factor_of(value) else {
                return Standing::Unusable { reason: "not a factor such as 0.625".to_owned() };
            };
            self.factors.insert(key.to_owned(), factor);
            return Standing::Used;
        }
        if is_budget(key) {
            return match value.parse::<usize>() {
                Ok(tokens) if tokens > 0 => Standing::Used,
                _ => Standing::Unusable { reason: NO_TOKENS.to_owned() },
            };
        }
        let spec = settings::find(key).filter(|spec| LEARNED.contains(&spec.key) && spec.key == key);
        let Some((spec, at)) =
            spec.and_then(|spec| Some((spec, self.settings.iter().position(|setting| setting.key == key)?)))
        else {
            return Standing::Unusable { reason: "not a setting that is learned".to_owned() };
        };
        let before = self.settings[at].clone();
        if before.origin != SettingOrigin::Default {
            return Standing::Overridden { by: before.origin.to_string() };
        }
        if !(spec.accepts)(value) {
            return Standing::Unusable { reason: format!("not a value such as {}", spec.example()) };
        }
        self.settings[at] = setting(spec, value, SettingOrigin::Revision { number });
        let is_own = |problem: &InvalidSetting| policy::key_of(problem) == key;
        if let Some(problem) = self.context_policy().problems().into_iter().find(is_own) {
            self.settings[at] = before;
            return Standing::Unusable { reason: problem.help };
        }
        Standing::Used
    }

    fn learn_window(&mut self, id: &str, value: &str) -> Standing {
        let known = self.models.models().any(|(name, spec)| name == id || spec.id == id);
        if known {
            return Standing::Overridden { by: "the model table".to_owned() };
        }
        match value.parse() {
            Ok(tokens) if tokens > 0 => {
                self.windows.insert(id.to_owned(), tokens);
                Standing::Used
            }
            _ => Standing::Unusable { reason: NO_TOKENS.to_owned() },
        }
    }

    /// The learned window of a model that the table does not have, in tokens.
    pub fn learned_window(&self, id: &str) -> Option<usize> {
        self.windows.get(id).copied()
    }

    /// The learned factor, in parts per million, by which the tokens that the estimate of this name has for a model are
    /// corrected; one million if nothing is learned about that estimate.
    pub fn estimate_factor(&self, id: &str, estimate: &str) -> u64 {
        self.factors.get(&factor_key(id, estimate)).copied().unwrap_or(ONE_PPM)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(text: &str) -> Config {
        Config::resolve(text, "larder.toml", None, Path::new("."), &|_| None).unwrap()
    }

    fn learned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn standings(config: &Config, pairs: &[(&str, &str)]) -> Vec<Standing> {
        let (_, values) = config.revised(3, &learned(pairs));
        values.into_iter().map(|value| value.standing).collect()
    }

    #[test]
    fn a_learned_value_takes_the_place_of_a_default_only() {
        let stated = "[policy]\nprotect_last = 2\n[models.mine]\nprovider = \"openai\"\nid = \"mine-1\"\n\
                      base_url = \"http://x\"\nwindow = 1000\nmax_output = 100\n";
        let pairs = [
            ("models.far-away.window", "32768"),
            ("models.mine-1.window", "32768"),
            ("policy.entry_cap", "700"),
            ("policy.protect_last", "9"),
            ("policy.tool_caps", r#"{ scan = 150, "odd \" name" = 900 }"#),
        ];
        let (revised, values) = config(stated).revised(3, &learned(&pairs));
        let policy = revised.context_policy();
        assert_eq!((policy.entry_cap, policy.protect_last), (Some(700), 2));
        assert_eq!((policy.tool_cap("scan"), policy.tool_cap("odd \" name")), (Some(150), Some(900)));
        assert_eq!(
            (revised.learned_window("far-away"), revised.learned_window("mine-1")),
            (Some(32_768), None)
        );
        let standings: Vec<_> = values.into_iter().map(|value| value.standing).collect();
        assert_eq!(
            standings,
            [
                Standing::Used,
                Standing::Overridden { by: "the model table".to_owned() },
                Standing::Used,
                Standing::Overridden { by: "larder.toml:2".to_owned() },
                Standing::Used,
            ]
        );
        let shown = revised.settings().into_iter().find(|one| one.key == "policy.entry_cap").unwrap();
        assert_eq!((shown.value.as_str(), shown.origin.to_string().as_str()), ("700", "revision 3"));
        let windows = revised.settings().into_iter().filter(|one| one.key.ends_with(".window"));
        let windows: Vec<_> = windows.map(|one| (one.key, one.value, one.origin.to_string())).collect();
        let expected = ("models.far-away.window".to_owned(), "32768".to_owned(), "revision 3".to_owned());
        assert_eq!(windows, [expected]);
    }

    #[test]
    fn what_cannot_be_used_changes_nothing() {
        let pairs = [
            ("gateway.listen", "0.0.0.0:80"),
            ("models.far-away.window", "wide"),
            ("policy.entry_cap", "10"),
            ("policy.tool_caps", "{ scan = 10 }"),
            ("policy.low_watermark", "low"),
            ("policy.no_such", "1"),
        ];
        assert!(standings(&config(""), &pairs).iter().all(|one| matches!(one, Standing::Unusable { .. })));
        let (revised, _) = config("").revised(1, &learned(&pairs));
        assert_eq!(revised.settings(), config("").settings());
        assert_eq!(revised.learned_window("far-away"), None);
    }

    #[test]
    fn a_revision_with_unusable_values_is_refused_with_all_of_them() {
        let check = |pairs: &[(&str, &str)]| config("").check_revision(3, &learned(pairs));
        let refused = check(&[
            ("models.m.window", "wide"),
            ("policy.entry_cap", "700"),
            ("policy.low_watermark", "low"),
        ]);
        let words = refused.unwrap_err().to_string();
        for expected in [
            "revision 3",
            "models.m.window = wide: not a number of tokens such as 32000",
            "policy.low_watermark = low: not a value such as ",
        ] {
            assert!(words.contains(expected), "{expected}: {words}");
        }
        assert!(!words.contains("entry_cap"), "{words}");
        assert!(check(&[("policy.entry_cap", "700")]).is_ok());
    }

    #[test]
    fn budgets_of_conversation_types_are_numbers_of_tokens() {
        let key = |name| budget_key("support", name);
        let (context, other) = (key("context"), key("patience"));
        let pairs = [(context.as_str(), "9000"), (other.as_str(), "9000")];
        let unusable = |reason: &str| Standing::Unusable { reason: reason.to_owned() };
        assert_eq!(
            standings(&config(""), &pairs),
            [Standing::Used, unusable("not a setting that is learned")]
        );
        assert_eq!(standings(&config(""), &[(&context, "0")]), [unusable(NO_TOKENS)]);
    }

    #[test]
    fn every_setting_that_may_be_learned_exists() {
        for key in LEARNED {
            assert!(settings::find(key).is_some_and(|spec| spec.key == key), "{key}");
        }
    }

    #[test]
    fn a_window_is_found_by_any_id() {
        for id in ["m", "a/b:c.window", "models.x"] {
            assert_eq!(id_in(&window_key(id), WINDOW), Some(id));
        }
    }

    #[test]
    fn a_factor_is_read_as_it_is_written_and_never_lower() {
        for (ppm, text, read) in
            [(620_001, "0.621", 621_000), (1_000_000, "1.000", ONE_PPM), (2_345_000, "2.345", 2_345_000)]
        {
            let (key, value) = factor_change("a.b/c", "open 104", ppm);
            assert_eq!((key.as_str(), value.as_str()), ("models.a.b/c.estimate_factor.\"open 104\"", text));
            let (revised, _) = config("").revised(1, &BTreeMap::from([(key, value)]));
            assert_eq!(revised.estimate_factor("a.b/c", "open 104"), read);
            let unknown = [("b", "open 104"), ("a.b/c", "open 110")];
            assert_eq!(unknown.map(|(id, estimate)| revised.estimate_factor(id, estimate)), [ONE_PPM; 2]);
        }
        let unusable =
            ["", "1", "0.000", "4.001", "-1.000", "1.00", "1.0000", "99999999999999999999.000", "a.b"];
        for value in unusable {
            let key = factor_change("m", "open", 1).0;
            let found = standings(&config(""), &[(&key, value)]);
            assert!(matches!(found[..], [Standing::Unusable { .. }]), "{value}");
        }
    }
}
