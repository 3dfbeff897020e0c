//! What the rounds of a reply took, as far as it is known while they come. Knows no prices and no wire format.

use larder_models::chat::Usage;

use larder_proxy::wire::PartialUsage;

/// Bytes of a reply's text that are taken for one token where nobody reports them: rather too few, so that a budget is not
/// stretched by leaving early.
const BYTES_PER_TOKEN: u64 = 3;

/// The rounds of a reply, in order.
#[derive(Debug, Default)]
pub struct UsageAccounting(Vec<Round>);

/// One of them.
#[derive(Debug)]
struct Round {
    /// What was set aside for it.
    most: Usage,
    known: PartialUsage,
}

impl UsageAccounting {
    /// A round has been asked for, which may take `most`.
    pub fn begins(&mut self, most: Usage) {
        self.0.push(Round { most, known: PartialUsage::default() });
    }

    /// What is known now of the last round.
    pub fn knows(&mut self, known: PartialUsage) {
        if let Some(round) = self.0.last_mut() {
            round.known = known;
        }
    }

    /// What all rounds took that anything is known of. What nobody reported is estimated by what came; `early`: the reply
    /// did not come to its end, so that even what is reported may not be all.
    pub fn known(&self, early: bool) -> Option<Usage> {
        sum(self.0.iter().filter_map(|round| round.took(early)))
    }

    /// What is known of the same reply had the model had everything before it: its first prompt, and its last words.
    pub fn at_once(&self, early: bool) -> Option<Usage> {
        let mut rounds = self.0.iter().filter_map(|round| round.took(early));
        let first = rounds.next()?;
        Some(Usage { output: rounds.next_back().unwrap_or(first).output, ..first })
    }

    /// Whether any of what is known is estimated.
    pub fn is_estimated(&self, early: bool) -> bool {
        self.0.iter().any(|round| round.took(early) != round.known.usage)
    }

    /// What all rounds are charged: what they took, and what was set aside for those that nothing is known of or whose end
    /// came without a report. `unbilled`: the last of them was refused.
    pub fn charged(&self, early: bool, unbilled: bool) -> Option<Usage> {
        let rounds = self.0.iter().enumerate();
        sum(rounds.filter_map(|(at, round)| round.charged(early, unbilled && at + 1 == self.0.len())))
    }
}

impl Round {
    fn took(&self, early: bool) -> Option<Usage> {
        let PartialUsage { usage, said, ended } = self.known;
        let estimate = u64::try_from(said).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN);
        match usage {
            // Until its end a provider reports the output of the beginning.
            Some(usage) if early && !ended => Some(Usage { output: usage.output.max(estimate), ..usage }),
            Some(usage) => Some(usage),
            // The prompt as it was counted. What the model thought where nobody sees it is not known.
            None if said > 0 || (ended && !early) => {
                Some(Usage { input: self.most.input, output: estimate, ..Usage::default() })
            }
            None => None,
        }
    }

    fn charged(&self, early: bool, unbilled: bool) -> Option<Usage> {
        if unbilled {
            return self.took(early);
        }
        // What the model thought where nobody sees it is in no estimate: asking for no report must not make it free.
        let is_reported = self.known.usage.is_some() || !self.known.ended;
        self.took(early).filter(|_| is_reported).or(Some(self.most))
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

    fn taken(rounds: &[PartialUsage]) -> UsageAccounting {
        let mut taken = UsageAccounting::default();
        for known in rounds {
            taken.begins(usage(1_000, 500));
            taken.knows(*known);
        }
        taken
    }

    #[test]
    fn a_round_that_breaks_off_takes_what_is_reported_and_no_less_than_what_came() {
        let begun = |output, said| PartialUsage { usage: Some(usage(80, output)), said, ended: false };
        let ended = PartialUsage { usage: Some(usage(70, 9)), said: 300, ended: true };
        assert_eq!(taken(&[begun(1, 0)]).known(true), Some(usage(80, 1)));
        assert_eq!(taken(&[begun(1, 31)]).known(true), Some(usage(80, 11)));
        assert_eq!(taken(&[begun(40, 31)]).known(true), Some(usage(80, 40)));
        assert!(taken(&[begun(1, 31)]).is_estimated(true) && !taken(&[begun(40, 31)]).is_estimated(true));
        assert_eq!(taken(&[ended, begun(1, 30)]).known(true), Some(usage(150, 19)));
        assert_eq!(taken(&[ended, begun(1, 30)]).charged(true, false), Some(usage(150, 19)));
    }

    #[test]
    fn a_reply_at_once_has_the_first_prompt_and_the_last_words() {
        let round = |input, output| PartialUsage { usage: Some(usage(input, output)), said: 0, ended: true };
        assert_eq!(taken(&[round(70, 9)]).at_once(false), Some(usage(70, 9)));
        assert_eq!(taken(&[round(70, 9), round(90, 8), round(120, 30)]).at_once(false), Some(usage(70, 30)));
        assert_eq!(taken(&[]).at_once(false), None);
    }

    #[test]
    fn what_nobody_reports_is_estimated_by_what_came_and_unknown_where_nothing_came() {
        let said = PartialUsage { usage: None, said: 30, ended: false };
        let all_said = PartialUsage { ended: true, ..said };
        let empty = PartialUsage { said: 0, ..all_said };
        // Whoever leaves once all is said pays what is paid by who stays.
        for early in [true, false] {
            assert_eq!(taken(&[said]).known(early), Some(usage(1_000, 10)));
            assert_eq!(taken(&[all_said]).known(early), Some(usage(1_000, 10)));
            let charged = taken(&[all_said, said]).charged(early, false);
            assert_eq!(charged, Some(usage(2_000, 510)), "what was thought unseen is not free");
            assert_eq!(taken(&[all_said]).charged(early, true), Some(usage(1_000, 10)));
            assert!(taken(&[all_said]).is_estimated(early));
        }
        assert_eq!(taken(&[empty]).known(false), Some(usage(1_000, 0)));
        assert_eq!(taken(&[empty]).known(true), None, "an error is no reply");
        let (silent, ended) =
            (PartialUsage::default(), PartialUsage { usage: Some(usage(70, 9)), said: 0, ended: true });
        assert_eq!(taken(&[ended, silent]).known(true), Some(usage(70, 9)));
        assert!(!taken(&[ended, silent]).is_estimated(true), "of what is not known, nothing is claimed");
        assert_eq!(taken(&[ended, silent]).charged(true, false), Some(usage(1_070, 509)));
        assert_eq!(
            taken(&[ended, silent]).charged(true, true),
            Some(usage(70, 9)),
            "a refusal is not billed"
        );
        assert_eq!(taken(&[silent]).charged(true, true), None);
        let charged = taken(&[silent, ended]).charged(true, true);
        assert_eq!(charged, Some(usage(1_070, 509)), "it was not the last");
        assert_eq!((taken(&[]).known(true), taken(&[]).charged(true, false)), (None, None));
    }
}
