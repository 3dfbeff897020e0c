//! Learns how far estimates of a model's tokens are off from what its provider reports: one factor, high enough for the
//! prompts that need most, and changed seldom. Stores nothing, and knows no model.

/// The factor 1, in parts per million.
const ONE_PPM: u64 = 1_000_000;
/// Reports outside these factors of the estimate are ignored: they count something other than this prompt.
const PLAUSIBLE_PPM: std::ops::RangeInclusive<u64> = ONE_PPM / 16..=4 * ONE_PPM;
/// Estimated tokens that are compared as one: a longer prompt by itself, shorter ones together, of which each says little.
const BLOCK_TOKENS: u64 = 1_000;
/// Reports that the first lower factor takes.
const FIRST_WAIT: u64 = 8;
/// Change of the factor, in percent, from which it is learned anew: the reserve that a correction leaves.
const STEP_PERCENT: u64 = 5;
/// How many times as many reports as the last time the next lower factor takes, so that traffic which changes to and fro
/// ends with the highest factor that it needs instead of with a revision for each change.
const LONGER: u64 = 4;

/// What the reports of one model have shown about one estimate of its tokens so far. Factors are in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EstimateReports {
    /// Estimated tokens of the short prompts that are compared next.
    pub estimated: u64,
    /// Their tokens as reported.
    pub reported: u64,
    /// Reports since the learned factor was last confirmed or replaced.
    pub samples: u64,
    /// The highest factor among them.
    pub highest: u64,
    /// The factor that was learned last.
    pub learned: u64,
    /// The factor that applies: another one where the last was taken back.
    pub used: u64,
    /// So many reports have to agree on a lower factor.
    pub wait: u64,
}

impl EstimateReports {
    /// No reports, while this factor applies.
    pub const fn new(used: u64) -> Self {
        Self { estimated: 0, reported: 0, samples: 0, highest: 0, learned: used, used, wait: FIRST_WAIT }
    }

    /// Whether a report can be about the prompt of this estimate.
    pub fn is_plausible(estimated: u64, reported: u64) -> bool {
        ratio_ppm(reported, estimated).is_some_and(|ratio| PLAUSIBLE_PPM.contains(&ratio))
    }

    /// Adds a report, and gives the factor that it makes necessary: a higher one as soon as a block exceeds what is charged,
    /// since prompts could exceed the window; a lower one after a wait, which then grows. `correction` maps reported tokens
    /// per million estimated ones to the factor that takes effect. What was taken back is not learned again at once.
    pub fn add(&mut self, estimated: u64, reported: u64, correction: impl Fn(u64) -> u64) -> Option<u64> {
        self.samples = self.samples.saturating_add(1);
        let mut block = (estimated, reported);
        if estimated < BLOCK_TOKENS {
            block = (self.estimated.saturating_add(estimated), self.reported.saturating_add(reported));
            (self.estimated, self.reported) = if block.0 < BLOCK_TOKENS { block } else { (0, 0) };
        }
        if block.0 < BLOCK_TOKENS {
            return None;
        }
        let factor = correction(ratio_ppm(block.1, block.0).unwrap_or(ONE_PPM));
        self.highest = self.highest.max(factor);
        let is_raised = factor * 100 > self.used * (100 + STEP_PERCENT);
        let is_due = self.samples >= self.wait;
        let moved_on = self.highest * 100 > self.learned * (100 + STEP_PERCENT);
        let last = if moved_on { self.used } else { self.learned };
        let is_lowered = is_due && self.highest * 100 < last * (100 - STEP_PERCENT);
        if is_lowered {
            self.wait = self.wait.saturating_mul(LONGER);
        }
        let learned = (is_raised || is_lowered).then_some(self.highest);
        if is_raised || is_due {
            (self.samples, self.highest) = (0, 0);
        }
        if let Some(factor) = learned {
            (self.learned, self.used) = (factor, factor);
        }
        learned
    }
}

/// `part` per `whole` in parts per million; `None` if either is zero.
fn ratio_ppm(part: u64, whole: u64) -> Option<u64> {
    let ratio = (u128::from(part) * u128::from(ONE_PPM)).checked_div(u128::from(whole))?;
    u64::try_from(ratio).ok().filter(|_| part > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As for an estimate of which at least 54 % are charged, and which a factor from 0.953 on does not change.
    fn correction(reported: u64) -> u64 {
        if reported > 952_000 { ONE_PPM } else { reported.max(541_667) }
    }

    /// A report of this many parts per million, more or less by up to a tenth.
    fn report(sums: &mut EstimateReports, at: u64, ppm: u64) -> Option<u64> {
        let random = at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let estimated = [500, 2_000, 20_000][(random % 3) as usize];
        sums.add(estimated, estimated * ppm / 1_000 * (900 + random % 201) / ONE_PPM, correction)
    }

    #[test]
    fn two_teams_that_take_turns_lead_to_few_factors() {
        for (low, high) in [(650_000, 800_000), (550_000, 900_000)] {
            for burst in [1, 10, 50, 200, 1_000, 5_000, 20_000] {
                let mut sums = EstimateReports::new(ONE_PPM);
                let ppm = |at: u64| if (at / burst).is_multiple_of(2) { low } else { high };
                let learned: Vec<u64> =
                    (0..100_000).filter_map(|at| report(&mut sums, at, ppm(at))).collect();
                assert!((1..=20).contains(&learned.len()), "{low} {high} {burst}: {learned:?}");
            }
        }
    }

    #[test]
    fn what_changes_for_good_is_followed_and_too_low_a_factor_at_once() {
        let mut sums = EstimateReports::new(ONE_PPM);
        let mut reports =
            |count: u64, ppm: u64| (0..count).filter_map(|at| report(&mut sums, at, ppm)).collect::<Vec<_>>();
        assert!(!reports(1_000, 800_000).is_empty());
        let lower = reports(2_000, 600_000);
        assert!(lower.last().is_some_and(|factor| *factor < 680_000), "{lower:?}");
        let higher = reports(16, 900_000);
        assert!(higher.last().is_some_and(|factor| *factor > 850_000), "{higher:?}");
    }

    #[test]
    fn few_long_prompts_among_many_that_need_less_are_charged_what_they_need() {
        for one_in in [3, 20, 50, 200] {
            let mut sums = EstimateReports::new(ONE_PPM);
            let too_low = (0..50_000_u64).filter(|at| {
                let is_heavy = (at.wrapping_mul(0xD1B5_4A32_D192_ED03) >> 33).is_multiple_of(one_in);
                let (estimated, ppm) = if is_heavy { (20_000, 900_000) } else { (700 + at % 3_000, 600_000) };
                let charged = sums.learned * 105 / 100;
                sums.add(estimated, estimated * ppm / ONE_PPM, correction);
                *at > 8 && is_heavy && charged < ppm
            });
            assert!((0..=8).contains(&too_low.count()), "one in {one_in}");
        }
    }

    #[test]
    fn a_lower_factor_that_someone_reverted_to_is_raised_again() {
        let mut sums = EstimateReports { learned: 900_000, ..EstimateReports::new(600_000) };
        assert_eq!(sums.add(2_000, 1_800, correction), Some(900_000));
        let mut sums = EstimateReports { learned: 600_000, ..EstimateReports::new(ONE_PPM) };
        assert!(
            (0..100).all(|_| sums.add(2_000, 1_200, correction).is_none()),
            "nor is a higher one lowered"
        );
    }

    #[test]
    fn what_has_no_effect_is_not_learned() {
        let mut sums = EstimateReports::new(ONE_PPM);
        assert!((0..1_000).all(|at| report(&mut sums, at, 1_300_000).is_none()), "never above the estimate");
        let learned: Vec<u64> = (0..1_000).filter_map(|at| report(&mut sums, at, 283_000 + at)).collect();
        assert_eq!(learned, [541_667], "nor below the lowest factor");
    }
}
