//! The usage of a reply's rounds: the maximum before each is sent, and what is known while it arrives. Each round is
//! priced by itself, since a price may depend on the length of its prompt. Knows no wire format.

use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_proxy::record::Tokens;
use larder_proxy::wire::PartialUsage;
use larder_text::usage::Service;

use crate::request::bill::Pricing;

/// Bytes of reply text counted as one token if none are reported: deliberately low, so that leaving early does not
/// stretch a budget.
const BYTES_PER_TOKEN: u64 = 3;

/// The rounds of one request that were sent to its upstream, in order.
#[derive(Debug)]
pub struct UsageAccounting {
    /// The number of requested choices, each of which may be equally long.
    pub choices: u64,
    /// The longest reply of the model, if the request sets no limit.
    pub longest: u64,
    rounds: Vec<Round>,
    /// Tokens by which the prompt of the next round is longer than that of the first.
    growth: u64,
}

/// What one round uses.
#[derive(Debug)]
struct Round {
    /// The most that it may use, which was reserved for it.
    max: Usage,
    known: PartialUsage,
}

impl Default for UsageAccounting {
    fn default() -> Self {
        Self { choices: 1, longest: 0, rounds: Vec::new(), growth: 0 }
    }
}

impl UsageAccounting {
    /// Adds tokens to the prompt of the next round.
    pub const fn grow(&mut self, tokens: u64) {
        self.growth = self.growth.saturating_add(tokens);
    }

    /// The maximum usage of the next round, for a request whose first prompt has these tokens.
    pub fn next_round(&self, tokens: &Tokens) -> Usage {
        Usage {
            input: tokens.after.saturating_add(self.growth),
            cached_input: 0,
            cache_write: 0,
            cache_write_1h: 0,
            output: tokens.output.max(self.longest).saturating_mul(self.choices),
            reasoning: 0,
            service: Service::Standard,
        }
    }

    /// A round leaves for the upstream, which may use `max`.
    pub fn begin_round(&mut self, max: Usage) {
        self.rounds.push(Round { max, known: PartialUsage::default() });
    }

    /// Whether anything has been sent to the upstream.
    pub const fn has_sent(&self) -> bool {
        !self.rounds.is_empty()
    }

    /// Replaces what is known about the last round. It is kept however the request ends.
    pub fn update(&mut self, known: PartialUsage) {
        if let Some(round) = self.rounds.last_mut() {
            round.known = known;
        }
    }

    /// The tokens of each round's prompt as the provider reports them, or else as counted.
    pub fn prompts(&self) -> impl Iterator<Item = u64> {
        self.rounds.iter().map(|round| round.known.usage.map_or(round.max.input, |usage| usage.input))
    }

    /// The known usage of all rounds. Unreported usage is estimated from the bytes received; `early`: the reply did
    /// not reach its end, so even reported usage may be incomplete.
    pub fn known(&self, early: bool) -> Option<Usage> {
        sum(self.rounds.iter().filter_map(|round| round.used(early)))
    }

    /// What that costs.
    pub fn cost(&self, early: bool, pricing: &Pricing) -> Usd {
        let rounds = self.rounds.iter().filter_map(|round| round.used(early));
        rounds.map(|used| pricing.prices.cost(&used).total).sum()
    }

    /// The usage of the same reply if the model had had everything from the start: its first prompt, and its last
    /// text.
    pub fn at_once(&self, early: bool) -> Option<Usage> {
        let mut rounds = self.rounds.iter().filter_map(|round| round.used(early));
        let first = rounds.next()?;
        Some(Usage { output: rounds.next_back().unwrap_or(first).output, ..first })
    }

    /// Whether any of the known usage is estimated.
    pub fn is_estimated(&self, early: bool) -> bool {
        self.rounds.iter().any(|round| round.used(early) != round.known.usage)
    }

    /// The charge for all rounds: their usage, or the reservation for those whose usage is unknown or that ended
    /// without a report. `unbilled`: the last round was refused.
    pub fn charged(&self, early: bool, unbilled: bool) -> Option<Usage> {
        sum(self.charges(early, unbilled).map(|charge| charge.usage()))
    }

    /// What that costs.
    pub fn charged_cost(&self, early: bool, unbilled: bool, pricing: &Pricing) -> Usd {
        let charges = self.charges(early, unbilled);
        charges
            .map(|charge| match charge {
                Charge::Used(usage) => pricing.prices.cost(&usage).total,
                Charge::Reserved(max) => pricing.most(&max),
            })
            .sum()
    }

    fn charges(&self, early: bool, unbilled: bool) -> impl Iterator<Item = Charge> {
        let rounds = self.rounds.iter().enumerate();
        rounds.filter_map(move |(at, round)| round.charged(early, unbilled && at + 1 == self.rounds.len()))
    }
}

/// What a round is charged.
#[derive(Clone, Copy)]
enum Charge {
    Used(Usage),
    /// The most that it may have used.
    Reserved(Usage),
}

impl Charge {
    const fn usage(self) -> Usage {
        match self {
            Self::Used(usage) | Self::Reserved(usage) => usage,
        }
    }
}

impl Round {
    fn used(&self, early: bool) -> Option<Usage> {
        let PartialUsage { usage, said, ended } = self.known;
        let estimate = u64::try_from(said).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN);
        match usage {
            // Until the end, a provider reports the output of the beginning only.
            Some(usage) if early && !ended => Some(Usage { output: usage.output.max(estimate), ..usage }),
            Some(usage) => Some(usage),
            // The prompt as counted. Hidden reasoning is unknown.
            None if said > 0 || (ended && !early) => {
                Some(Usage { input: self.max.input, output: estimate, ..Usage::default() })
            }
            None => None,
        }
    }

    fn charged(&self, early: bool, unbilled: bool) -> Option<Charge> {
        if unbilled {
            return self.used(early).map(Charge::Used);
        }
        // Hidden reasoning is in no estimate: a client must not get it for free by requesting no usage report.
        let is_reported = self.known.usage.is_some() || !self.known.ended;
        let used = self.used(early).filter(|_| is_reported);
        Some(used.map_or(Charge::Reserved(self.max), Charge::Used))
    }
}

fn sum(all: impl Iterator<Item = Usage>) -> Option<Usage> {
    all.reduce(|mut sum, usage| {
        sum += usage;
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    fn rounds(rounds: &[PartialUsage]) -> UsageAccounting {
        let mut accounting = UsageAccounting::default();
        for known in rounds {
            accounting.begin_round(usage(1_000, 500));
            accounting.update(*known);
        }
        accounting
    }

    #[test]
    fn a_round_that_breaks_off_takes_what_is_reported_and_no_less_than_what_came() {
        let begun = |output, said| PartialUsage { usage: Some(usage(80, output)), said, ended: false };
        let ended = PartialUsage { usage: Some(usage(70, 9)), said: 300, ended: true };
        assert_eq!(rounds(&[begun(1, 0)]).known(true), Some(usage(80, 1)));
        assert_eq!(rounds(&[begun(1, 31)]).known(true), Some(usage(80, 11)));
        assert_eq!(rounds(&[begun(40, 31)]).known(true), Some(usage(80, 40)));
        assert!(rounds(&[begun(1, 31)]).is_estimated(true) && !rounds(&[begun(40, 31)]).is_estimated(true));
        assert_eq!(rounds(&[ended, begun(1, 30)]).known(true), Some(usage(150, 19)));
        assert_eq!(rounds(&[ended, begun(1, 30)]).charged(true, false), Some(usage(150, 19)));
    }

    #[test]
    fn a_reply_at_once_has_the_first_prompt_and_the_last_words() {
        let round = |input, output| PartialUsage { usage: Some(usage(input, output)), said: 0, ended: true };
        assert_eq!(rounds(&[round(70, 9)]).at_once(false), Some(usage(70, 9)));
        assert_eq!(rounds(&[round(70, 9), round(90, 8), round(120, 30)]).at_once(false), Some(usage(70, 30)));
        assert_eq!(rounds(&[]).at_once(false), None);
    }

    #[test]
    fn unreported_usage_is_estimated_from_the_bytes_received() {
        let said = PartialUsage { usage: None, said: 30, ended: false };
        let all_said = PartialUsage { ended: true, ..said };
        let empty = PartialUsage { said: 0, ..all_said };
        // A client that leaves after the last text pays the same as one that stays.
        for early in [true, false] {
            assert_eq!(rounds(&[said]).known(early), Some(usage(1_000, 10)));
            assert_eq!(rounds(&[all_said]).known(early), Some(usage(1_000, 10)));
            let charged = rounds(&[all_said, said]).charged(early, false);
            assert_eq!(charged, Some(usage(2_000, 510)), "what was thought unseen is not free");
            assert_eq!(rounds(&[all_said]).charged(early, true), Some(usage(1_000, 10)));
            assert!(rounds(&[all_said]).is_estimated(early));
        }
        assert_eq!(rounds(&[empty]).known(false), Some(usage(1_000, 0)));
        assert_eq!(rounds(&[empty]).known(true), None, "an error is not a reply");
        let (silent, ended) =
            (PartialUsage::default(), PartialUsage { usage: Some(usage(70, 9)), said: 0, ended: true });
        assert_eq!(rounds(&[ended, silent]).known(true), Some(usage(70, 9)));
        assert!(!rounds(&[ended, silent]).is_estimated(true), "of what is not known, nothing is claimed");
        assert_eq!(rounds(&[ended, silent]).charged(true, false), Some(usage(1_070, 509)));
        assert_eq!(
            rounds(&[ended, silent]).charged(true, true),
            Some(usage(70, 9)),
            "a refusal is not billed"
        );
        assert_eq!(rounds(&[silent]).charged(true, true), None);
        let charged = rounds(&[silent, ended]).charged(true, true);
        assert_eq!(charged, Some(usage(1_070, 509)), "it was not the last");
        assert_eq!((rounds(&[]).known(true), rounds(&[]).charged(true, false)), (None, None));
    }
}
