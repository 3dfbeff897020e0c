//! The settings of retention: how long and how much the store keeps. Knows no class of data and no store.

use super::spec::{SettingValue, settings};

/// The value that switches a limit off.
const UNLIMITED: &str = "unlimited";

/// A limit above zero; `None` is `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<u32>);

impl SettingValue for Limit {
    fn parse(text: &str) -> Option<Self> {
        match text {
            UNLIMITED => Some(Self(None)),
            number => u32::parse(number).filter(|number| *number > 0).map(|number| Self(Some(number))),
        }
    }

    fn text(&self) -> String {
        self.0.map_or_else(|| UNLIMITED.to_owned(), |number| number.to_string())
    }
}

/// A limit in gigabytes above zero, which may be a fraction, as bytes; `None` is `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeLimit(pub(crate) Option<u64>);

/// Bytes of a gigabyte.
const GIGABYTE: f64 = 1e9;

impl SettingValue for SizeLimit {
    fn parse(text: &str) -> Option<Self> {
        if text == UNLIMITED {
            return Some(Self(None));
        }
        let bytes = text.parse::<f64>().ok()? * GIGABYTE;
        (1.0..=f64::from(u32::MAX) * GIGABYTE).contains(&bytes).then_some(Self(Some(bytes as u64)))
    }

    fn text(&self) -> String {
        self.0.map_or_else(|| UNLIMITED.to_owned(), |bytes| (bytes as f64 / GIGABYTE).to_string())
    }
}

settings! {
    /// How long and how much the store keeps. Documents and turns never expire.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct RetentionSettings {
        /// Days that the original behind a pointer is kept after the last request whose window named it. One that a
        /// document refers to is kept as long as the document. `unlimited`: for ever.
        #[env("LARDER_RETENTION_ORIGINALS_DAYS")]
        pub originals: Limit = "retention.originals_days", Limit(Some(30));
        /// Days that the transcript of a conversation is kept after its last request. `unlimited`: for ever.
        #[env("LARDER_RETENTION_TRANSCRIPTS_DAYS")]
        pub transcripts: Limit = "retention.transcripts_days", Limit(Some(30));
        /// Days that records of requests and runs are kept, with receipts, answers, resolved interventions, the daily
        /// spending of keys, and the dates on which originals expired. `unlimited`: for ever.
        #[env("LARDER_RETENTION_RECORDS_DAYS")]
        pub records: Limit = "retention.records_days", Limit(Some(90));
        /// Days that a conversation with a person is kept after its newest message, with everything that is remembered from
        /// it. `unlimited`: until it is deleted.
        #[env("LARDER_RETENTION_CONVERSATIONS_DAYS")]
        pub conversations: Limit = "retention.conversations_days", Limit(None);
        /// Gigabytes, such as `20` or `0.5`, that originals, transcripts and records may take on disk. Beyond it the
        /// least recently used is removed, but nothing that was used within 24 hours. `unlimited`: no limit.
        #[env("LARDER_RETENTION_MAX_GB")]
        pub max_gb: SizeLimit = "retention.max_gb", SizeLimit(Some(20_000_000_000));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_the_size_may_be_a_fraction_of_a_gigabyte() {
        for (text, bytes) in [
            ("20", Some(20_000_000_000)),
            ("0.5", Some(500_000_000)),
            ("1.25", Some(1_250_000_000)),
            (UNLIMITED, None),
        ] {
            let limit = SizeLimit::parse(text);
            assert_eq!(limit, Some(SizeLimit(bytes)), "{text}");
            assert_eq!(limit.unwrap().text(), text);
        }
        for text in ["0", "-1", "0.0", "NaN", "inf", "much", "", "1e300"] {
            assert_eq!(SizeLimit::parse(text), None, "{text}");
        }
    }
}
