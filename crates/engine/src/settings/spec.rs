//! How settings are declared. [`settings!`] turns one struct into all metadata of its settings: key, environment
//! variables, aliases, default, legal values and help. Knows no setting.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use larder_models::connect::is_address;
use larder_models::price::Usd;
use larder_models::web::Network;

/// Everything about a setting except its value.
pub(crate) struct SettingSpec {
    /// The key in `larder.toml`, with its table.
    pub key: &'static str,
    /// Aliases of the key that the file may use.
    pub aliases: &'static [&'static str],
    /// Environment variables; the first is the current name, the others are aliases.
    pub env: &'static [&'static str],
    /// What it does, in sentences.
    pub help: &'static str,
    /// The default as text; empty if the setting is unset by default.
    pub default: fn() -> String,
    /// Whether a text is a legal value.
    pub accepts: fn(&str) -> bool,
    /// How the file writes its value.
    pub form: ValueForm,
    /// An example of a legal value, for settings without a default.
    pub like: &'static str,
}

/// How a file writes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// As a number, a boolean or a string.
    Plain,
    /// As a string.
    Text,
    /// As an array of strings, or a string with commas.
    List,
}

impl ValueForm {
    /// Whether a value of the file has this form.
    pub(crate) fn is_of(self, value: &toml::Value) -> bool {
        match self {
            Self::Plain => true,
            Self::Text => value.is_str(),
            Self::List => value.is_str() || value.is_array(),
        }
    }
}

impl SettingSpec {
    /// Whether `key` is the setting's name or an alias.
    pub(crate) fn is_called(&self, key: &str) -> bool {
        self.key == key || self.aliases.contains(&key)
    }

    /// A legal value, for messages.
    pub(crate) fn example(&self) -> String {
        let default = (self.default)();
        if default.is_empty() { self.like.to_owned() } else { default }
    }

    /// A legal value as the file writes it.
    pub(crate) fn example_in_file(&self) -> String {
        let example = self.example();
        let is_bare = || format!("example = {example}").parse::<toml::Table>().is_ok();
        match self.form {
            ValueForm::Plain if is_bare() => example,
            ValueForm::Plain | ValueForm::Text => toml::Value::from(example).to_string(),
            ValueForm::List => toml::Value::from(list(&example).unwrap_or_default()).to_string(),
        }
    }
}

/// A struct declared with [`settings!`].
pub(crate) trait SettingSection: Default {
    /// Its settings, in the order of its fields.
    const SETTINGS: &'static [SettingSpec];

    /// Reads the values that `text` returns by key. Missing or illegal values get the default.
    fn read<'t>(text: &dyn Fn(&str) -> Option<&'t str>) -> Self;
}

/// Declares a section of settings. The doc comment of a field is the setting's help. Attributes, in this order and
/// each optional: `env` lists environment variables, `aliases` older keys, `like` an example for messages, `accept` a
/// function from text to `Option` of the field's type if not every value of the type is legal. The braces after
/// `with` contain fields that are not settings.
/// `with` hold fields that are not settings.
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[doc = $help:literal])+
                $(#[env($($env:literal),+)])?
                $(#[aliases($($alias:literal),+)])?
                $(#[like($like:literal)])?
                $(#[accept($accept:expr)])?
                pub $field:ident: $type:ty = $key:literal, $default:expr;
            )+
        }
        $(with { $( $(#[$extra_attribute:meta])* pub $extra:ident: $extra_type:ty, )+ })?
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $( $(#[doc = $help])+ pub $field: $type, )+
            $( $( $(#[$extra_attribute])* pub $extra: $extra_type, )+ )?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )+ $( $( $extra: Default::default(), )+ )? }
            }
        }

        impl $crate::settings::spec::SettingSection for $name {
            const SETTINGS: &'static [$crate::settings::spec::SettingSpec] = &[$(
                $crate::settings::spec::SettingSpec {
                    key: $key,
                    aliases: &[$($($alias),+)?],
                    env: &[$($($env),+)?],
                    help: concat!($($help),+).trim_ascii_start(),
                    default: || {
                        let default: $type = $default;
                        $crate::settings::spec::SettingValue::text(&default)
                    },
                    form: <$type as $crate::settings::spec::SettingValue>::FORM,
                    accepts: |text| $crate::settings::spec::settings!(@read text, $type $(, $accept)?).is_some(),
                    like: concat!("" $(, $like)?),
                },
            )+];

            fn read<'t>(text: &dyn Fn(&str) -> Option<&'t str>) -> Self {
                Self {
                    $(
                        $field: text($key)
                            .and_then(|text| $crate::settings::spec::settings!(@read text, $type $(, $accept)?))
                            .unwrap_or_else(|| $default),
                    )+
                    $( $( $extra: Default::default(), )+ )?
                }
            }
        }
    };
    (@read $text:ident, $type:ty) => {
        <$type as $crate::settings::spec::SettingValue>::parse($text)
    };
    (@read $text:ident, $type:ty, $accept:expr) => {{
        let value: Option<$type> = $accept($text);
        value
    }};
}
pub(crate) use settings;

/// A type that a setting can have.
pub(crate) trait SettingValue: Sized {
    /// How the file writes it.
    const FORM: ValueForm = ValueForm::Plain;

    /// Reads the value from the text in the file or the environment.
    fn parse(text: &str) -> Option<Self>;

    /// The text of a value, which [`parse`](Self::parse) reads back.
    fn text(&self) -> String;
}

impl SettingValue for bool {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Integers have at most 32 bits, whatever the type that uses them.
macro_rules! whole_number {
    ($($type:ty),+) => {$(
        impl SettingValue for $type {
            fn parse(text: &str) -> Option<Self> {
                text.parse::<u32>().ok()?.try_into().ok()
            }

            fn text(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
whole_number!(u32, u64, usize);

impl SettingValue for f64 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number: &Self| number.is_finite())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Whole seconds.
impl SettingValue for Duration {
    fn parse(text: &str) -> Option<Self> {
        u64::parse(text).map(Self::from_secs)
    }

    fn text(&self) -> String {
        self.as_secs().to_string()
    }
}

/// Any text, including none.
impl SettingValue for String {
    const FORM: ValueForm = ValueForm::Text;

    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

impl SettingValue for PathBuf {
    const FORM: ValueForm = ValueForm::Text;

    fn parse(text: &str) -> Option<Self> {
        Some(text.into())
    }

    fn text(&self) -> String {
        self.to_string_lossy().into_owned()
    }
}

impl SettingValue for SocketAddr {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// US dollars.
impl SettingValue for Usd {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for Network {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Empty text means unset.
impl<T: SettingValue> SettingValue for Option<T> {
    const FORM: ValueForm = T::FORM;

    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { T::parse(text).map(Some) }
    }

    fn text(&self) -> String {
        self.as_ref().map(T::text).unwrap_or_default()
    }
}

/// `["a", "b"]` in the file, `a,b` in the environment.
impl<T: SettingValue> SettingValue for Vec<T> {
    const FORM: ValueForm = ValueForm::List;

    fn parse(text: &str) -> Option<Self> {
        list(text)?.iter().map(|item| T::parse(item)).collect()
    }

    fn text(&self) -> String {
        self.iter().map(T::text).collect::<Vec<_>>().join(",")
    }
}

/// `{ a = 1, "b c" = 2 }` in the file, `a=1,b c=2` in the environment.
impl SettingValue for BTreeMap<String, usize> {
    fn parse(text: &str) -> Option<Self> {
        if !text.trim_start().starts_with('{') {
            let entry = |item: String| {
                let (name, number) = item.rsplit_once('=')?;
                Some((name.trim().to_owned(), usize::parse(number.trim())?))
            };
            return list(text)?.into_iter().map(entry).collect();
        }
        let table: toml::Table = format!("table = {text}").parse().ok()?;
        let entry = |(name, value): (&String, &toml::Value)| {
            value.as_integer().and_then(|number| Some((name.clone(), usize::parse(&number.to_string())?)))
        };
        let table = table.get("table").filter(|_| table.len() == 1)?;
        table.as_table()?.iter().map(entry).collect()
    }

    fn text(&self) -> String {
        let number = |number: &usize| toml::Value::Integer(i64::try_from(*number).unwrap_or(i64::MAX));
        let table: toml::Table = self.iter().map(|(name, value)| (name.clone(), number(value))).collect();
        if table.is_empty() { String::new() } else { toml::Value::Table(table).to_string() }
    }
}

/// The items of a list, as written in a file (`["a", "b"]`) or an environment variable (`a,b`).
pub(crate) fn list(text: &str) -> Option<Vec<String>> {
    if !text.trim_start().starts_with('[') {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        return Some(items.map(str::to_owned).collect());
    }
    let table: toml::Table = format!("list = {text}").parse().ok()?;
    let values = table.get("list")?.as_array()?;
    values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// A value other than zero.
pub(crate) fn positive<T: SettingValue + Default + PartialEq>(text: &str) -> Option<T> {
    T::parse(text).filter(|value| *value != T::default())
}

/// A value other than zero, or unset.
pub(crate) fn positive_or_unset<T: SettingValue + Default + PartialEq>(text: &str) -> Option<Option<T>> {
    if text.is_empty() { Some(None) } else { positive(text).map(Some) }
}

/// A number from 0 to 1.
pub(crate) fn share(text: &str) -> Option<f64> {
    f64::parse(text).filter(|number| (0.0..=1.0).contains(number))
}

/// An http or https address, or unset.
pub(crate) fn url_or_unset(text: &str) -> Option<Option<String>> {
    match text {
        "" => Some(None),
        url if is_address(url) => Some(Some(url.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    settings! {
        #[derive(Debug, PartialEq)]
        struct Shelf {
            /// Jars on the shelf,
            /// counted by hand.
            #[env("JARS", "OLD_JARS")]
            #[aliases("old.jars")]
            #[accept(positive)]
            pub jars: usize = "shelf.jars", 3;
            /// Names of jars.
            #[like("plum")]
            pub names: Vec<String> = "shelf.names", Vec::new();
        }
        with {
            pub note: String,
        }
    }

    #[test]
    fn one_struct_declares_key_default_help_and_legal_values() {
        let [jars, names] = Shelf::SETTINGS else { panic!("two settings") };
        assert_eq!(
            (jars.key, jars.env, jars.aliases),
            ("shelf.jars", &["JARS", "OLD_JARS"][..], &["old.jars"][..])
        );
        assert_eq!((jars.help, (jars.default)()), ("Jars on the shelf, counted by hand.", "3".to_owned()));
        assert!((jars.accepts)("1") && !(jars.accepts)("0") && !(jars.accepts)("few"));
        assert_eq!((jars.example(), names.example()), ("3".to_owned(), "plum".to_owned()));
        assert!(jars.is_called("old.jars") && !jars.is_called("jars"));
    }

    #[test]
    fn a_section_is_read_with_defaults_for_what_is_missing() {
        let read = Shelf::read(&|key| (key == "shelf.names").then_some("plum, fig"));
        let names = vec!["plum".to_owned(), "fig".to_owned()];
        assert_eq!(read, Shelf { jars: 3, names, note: String::new() });
    }

    #[test]
    fn a_table_is_written_so_that_it_is_read_back() {
        let odd = [
            "shell",
            "mcp__a__*",
            "a, b = 3",
            "quote \" end",
            "}\n[policy]\nenabled = false",
            "\u{202e}x",
            "",
        ];
        let table: BTreeMap<String, usize> = odd.into_iter().map(str::to_owned).zip(100..).collect();
        assert_eq!(BTreeMap::parse(&table.text()), Some(table));
        assert_eq!(BTreeMap::parse(""), Some(BTreeMap::new()));
        for wrong in ["a", "a=x", "a=-1", "{ a = 1", "{ a = [1] }", "{ a = 1 }\nb = 2"] {
            assert_eq!(BTreeMap::<String, usize>::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_list_is_read_as_files_and_variables_write_it() {
        for text in ["a, b", "[\"a\", \"b\"]", "[ 'a', 'b', ]"] {
            assert_eq!(list(text), Some(vec!["a".to_owned(), "b".to_owned()]), "{text}");
        }
        assert_eq!(list(""), Some(Vec::new()));
        for wrong in ["[1]", "[\"a\"", "[[]]"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }
}
