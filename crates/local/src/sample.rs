//! Picks the next token: the most likely one by default, a random one if a temperature is set. The generator is
//! seeded by the request, so that the same request produces the same reply.

use std::collections::BTreeSet;

/// What the logit of a token that was just written is divided by. Greedy decoding of a model this small repeats
/// itself without it.
const REPETITION_PENALTY: f32 = 1.15;
/// How far back a repetition counts, in tokens of the reply.
const REPETITION_SPAN: usize = 96;
/// Tokens of a reply that repeat as many of its earlier ones: a model this small would go on in circles.
const CIRCLE: usize = 24;

/// Whether a text goes in circles: it ends as an earlier part of it, word for word.
pub(super) fn repeats_itself(written: &[u32]) -> bool {
    let Some((rest, last)) = written.split_last_chunk::<CIRCLE>() else { return false };
    rest.windows(CIRCLE).any(|earlier| earlier == last)
}

pub(super) struct Sampler {
    temperature: f32,
    state: u64,
}

impl Sampler {
    /// A sampler for one request; no temperature, or zero, is greedy.
    pub(super) fn new(temperature: Option<f32>, seed: u64) -> Self {
        Self { temperature: temperature.filter(|value| value.is_finite()).unwrap_or(0.0), state: seed }
    }

    /// The next token. Tokens at minus infinity are never taken; `written` is what repeats are measured against.
    pub(super) fn pick(&mut self, logits: &mut [f32], written: &[u32]) -> u32 {
        let recent: BTreeSet<u32> = written.iter().rev().take(REPETITION_SPAN).copied().collect();
        for token in recent {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit = if *logit > 0.0 { *logit / REPETITION_PENALTY } else { *logit * REPETITION_PENALTY };
            }
        }
        if self.temperature > 0.0 { self.draw(logits) } else { likeliest(logits) }
    }

    fn draw(&mut self, logits: &[f32]) -> u32 {
        let (temperature, share) = (self.temperature, self.uniform());
        let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weight = |logit: f32| f64::from((logit - top) / temperature).exp();
        let total: f64 = logits.iter().map(|&logit| weight(logit)).sum();
        let mut left = share * total;
        for (token, &logit) in (0_u32..).zip(logits) {
            left -= weight(logit);
            if left < 0.0 {
                return token;
            }
        }
        likeliest(logits)
    }

    /// SplitMix64, as a number from 0 up to 1.
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The token of the highest logit; the first of equals.
fn likeliest(logits: &[f32]) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, &logit) in (0_u32..).zip(logits) {
        if logit > best.1 {
            best = (token, logit);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_takes_the_likeliest_and_avoids_what_it_just_wrote() {
        let mut sampler = Sampler::new(None, 0);
        assert_eq!(sampler.pick(&mut [1.0, 2.0, 1.9], &[]), 1);
        assert_eq!(sampler.pick(&mut [1.0, 2.0, 1.9], &[1]), 2);
        assert_eq!(sampler.pick(&mut [-1.0, -1.1, f32::NEG_INFINITY], &[0]), 1);
    }

    #[test]
    fn a_text_goes_in_circles_when_it_repeats_a_long_part_of_itself() {
        let sentence: Vec<u32> = (0..30).collect();
        let circle = [sentence.as_slice(), &[99], &sentence].concat();
        assert!(repeats_itself(&circle) && repeats_itself(&circle[..55]));
        for text in [&circle[..54], &sentence, &[1; 40], &[]] {
            assert!(!repeats_itself(text), "{text:?}");
        }
    }

    #[test]
    fn a_draw_follows_the_seed_and_never_takes_what_is_barred() {
        let logits = [1.0, f32::NEG_INFINITY, 1.1, 0.9];
        let draws = |seed| {
            let mut sampler = Sampler::new(Some(1.0), seed);
            (0..64).map(|_| sampler.pick(&mut logits.clone(), &[])).collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        assert!(draws(7).iter().all(|&token| token != 1));
        assert_eq!(draws(7).iter().collect::<BTreeSet<_>>().len(), 3);
    }
}
