//! Estimates for models whose tokenizer is not public: factors relative to o200k_base, and the margin charged. The
//! provider's own counts, where known, are applied by the caller.

use crate::family::{Family, FamilyEstimate};

/// Factors are in hundredths, so that a charge is the same on every machine.
const WHOLE: usize = 100;
/// A factor of 1, in parts per million.
const ONE_PPM: u64 = 1_000_000;
/// How many bytes of a text are examined to tell prose from code.
const LOOKED_AT: usize = 4 * 1024;
/// The share of code punctuation, in hundredths, from which a text counts as code.
const CODE_SIGNS: usize = 4;

/// Claude models fall into two generations by their tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaudeGeneration {
    /// Claude 3 to Opus 4.6.
    To4_6,
    /// 4.7 and later, and every model whose version cannot be determined.
    From4_7,
}

/// How the counts of a related vocabulary become an estimate, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Margin {
    prose: usize,
    json: usize,
    code: usize,
    upper: usize,
}

/// A factor plus a reserve of one twentieth, for prompts above the average.
const fn reserved(factor_ppm: u64) -> u64 {
    factor_ppm.saturating_add(factor_ppm / 20)
}

impl ClaudeGeneration {
    /// The name of its tokenizer.
    pub(super) fn tokenizer(self) -> &'static str {
        match self {
            Self::To4_6 => "claude-4.6",
            Self::From4_7 => "claude",
        }
    }
}

impl std::fmt::Display for Margin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { prose, json, code, upper } = self;
        write!(f, "{prose} {json} {code} {upper}")
    }
}

impl From<FamilyEstimate> for Margin {
    fn from(estimate: FamilyEstimate) -> Self {
        let FamilyEstimate { prose, json, code, upper, single_digits: _ } = estimate;
        Self { prose, json, code, upper }
    }
}

impl Margin {
    /// The margin of counts that are not estimates.
    pub(super) const NONE: Self = Self { prose: WHOLE, json: WHOLE, code: WHOLE, upper: WHOLE };

    /// The margin for unknown vocabularies. The upper end is the widest measured for vocabularies that are not
    /// public; the rest is a guess above o200k_base, because most vocabularies are smaller. It applies until the
    /// provider reports its own counts.
    pub(super) const UNKNOWN: Self = Self { prose: 120, json: 130, code: 130, upper: 240 };

    /// The factor by which reports of `reported_ppm` tokens per million charged ones correct this margin: 1 where that
    /// would change nothing.
    pub(super) fn correction(self, reported_ppm: u64) -> u64 {
        let factor = reported_ppm.max(self.least_factor());
        if self.corrected(factor) == self { ONE_PPM } else { factor }
    }

    /// The lowest factor, in parts per million, by which this margin is corrected. Lower reports say something about the
    /// texts of one user: with it, texts of the kind that has the most tokens are still charged their mean.
    fn least_factor(self) -> u64 {
        let families = || Family::all().iter().filter_map(|family| family.estimate).map(Self::from);
        let mean = match self {
            // The model may belong to any family, also to the one with the most tokens.
            Self::UNKNOWN => families().map(Self::highest_mean).fold(self.highest_mean(), usize::max),
            _ => self.highest_mean(),
        };
        let (mean, upper) = (mean as u64, self.upper as u64);
        (mean * ONE_PPM).div_ceil(upper.max(1)).min(ONE_PPM)
    }

    /// The mean of the kind of text that has the most tokens.
    fn highest_mean(self) -> usize {
        self.prose.max(self.json).max(self.code)
    }

    /// The likely charge for prose that has `tokens` tokens in the model's own vocabulary.
    pub(super) fn charge_of(self, tokens: usize) -> usize {
        tokens.saturating_mul(self.upper) / self.prose
    }

    /// The margin whose upper end is this one's times `factor_ppm`, plus a reserve; never higher than this one's.
    pub(super) fn corrected(self, factor_ppm: u64) -> Self {
        let scaled =
            u128::try_from(self.upper).unwrap_or(u128::MAX).saturating_mul(u128::from(reserved(factor_ppm)));
        let upper = usize::try_from(scaled.div_ceil(u128::from(ONE_PPM))).unwrap_or(usize::MAX);
        if factor_ppm == ONE_PPM || upper >= self.upper {
            return self;
        }
        // Reported counts are better evidence than measurements made elsewhere.
        let middle = (upper * WHOLE / (WHOLE + WHOLE / 20)).max(1);
        Self { prose: middle, json: middle, code: middle, upper }
    }

    /// Converts a charge made after a correction by `factor_ppm` to what it would have been without it.
    pub(super) fn uncorrected(charged: u64, factor_ppm: u64) -> u64 {
        let factor = if factor_ppm == ONE_PPM { ONE_PPM } else { reserved(factor_ppm).clamp(1, ONE_PPM) };
        u64::try_from(u128::from(charged) * u128::from(ONE_PPM) / u128::from(factor)).unwrap_or(u64::MAX)
    }

    /// The charge for `tokens` tokens of the related vocabulary.
    pub(super) fn charge(self, tokens: usize) -> usize {
        tokens.saturating_mul(self.upper).div_ceil(WHOLE)
    }

    /// The largest number of tokens of the related vocabulary whose charge does not exceed `limit`.
    pub(super) fn uncharged(self, limit: usize) -> usize {
        limit.saturating_mul(WHOLE) / self.upper
    }

    /// The most likely number of tokens.
    pub(super) fn middle(self, tokens: usize, text: &str) -> usize {
        if self == Self::NONE {
            return tokens;
        }
        tokens.saturating_mul(self.factor(text)).div_ceil(WHOLE)
    }

    fn factor(self, text: &str) -> usize {
        let start = &text.as_bytes()[..text.len().min(LOOKED_AT)];
        let signs = start.iter().filter(|byte| b"{}[]()<>=;_".contains(byte)).count();
        match text.trim_start().bytes().next() {
            Some(b'{' | b'[') => self.json,
            _ if signs * WHOLE > start.len() * CODE_SIGNS => self.code,
            _ => self.prose,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::Family;

    fn margin(tokenizer: &str) -> Margin {
        let family = Family::all().iter().find(|family| family.tokenizer == tokenizer).unwrap();
        family.estimate.unwrap().into()
    }

    #[test]
    fn the_charge_never_exceeds_the_limit_it_was_derived_from() {
        let margin = margin("claude");
        for limit in 0..10_000 {
            assert!(margin.charge(margin.uncharged(limit)) <= limit);
            assert!(margin.charge(margin.uncharged(limit) + 1) > limit);
        }
    }

    #[test]
    fn a_correction_lowers_the_charge_with_a_reserve_and_never_raises_it() {
        let margin = margin("claude");
        assert_eq!(margin.corrected(ONE_PPM), margin);
        assert_eq!(margin.corrected(500_000).charge(100), 126, "half of 240, and a twentieth");
        assert_eq!(margin.corrected(2_000_000), margin);
        for factor in [400_000, 500_000, 930_000, ONE_PPM, 3_000_000] {
            let (before, after) = (margin.charge(10_000), margin.corrected(factor).charge(10_000));
            let back = Margin::uncorrected(after as u64, factor) as usize;
            assert!(back.abs_diff(before) <= before / 100, "{factor}: {before} {after} {back}");
        }
    }

    #[test]
    fn the_lowest_correction_charges_no_kind_of_text_less_than_its_mean() {
        let known: Vec<Margin> =
            Family::all().iter().filter_map(|family| family.estimate).map(Margin::from).collect();
        let least = |margin: Margin| margin.corrected(margin.least_factor()).charge(10_000);
        for margin in &known {
            let charged = least(*margin);
            assert!(charged >= margin.highest_mean() * 100 && charged <= margin.charge(10_000), "{margin:?}");
            assert!(
                least(Margin::UNKNOWN) >= margin.highest_mean() * 100,
                "a model of any family: {margin:?}"
            );
        }
        assert!(known.len() > 5 && least(Margin::UNKNOWN) < Margin::UNKNOWN.charge(10_000));
        assert_eq!(Margin::NONE.correction(500_000), ONE_PPM);
    }

    #[test]
    fn a_correction_is_what_changes_the_charge() {
        let margin = margin("claude");
        assert_eq!(margin.correction(283_000), margin.least_factor());
        assert_eq!(margin.correction(800_000), 800_000);
        for without_effect in [970_000, ONE_PPM, 2_000_000] {
            assert_eq!(margin.correction(without_effect), ONE_PPM);
        }
    }

    #[test]
    fn the_middle_follows_the_kind_of_text() {
        let margin = margin("claude-4.6");
        assert_eq!(margin.middle(100, "It was a quiet morning, and nobody spoke."), 108);
        assert_eq!(margin.middle(100, "  {\"a\": 1}"), 115);
        assert_eq!(margin.middle(100, "fn main() { let x = f(1); }"), 130);
    }
}
