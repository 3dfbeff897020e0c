//! What a picture costs with OpenAI's models, according to the guide "Images and vision" in OpenAI's documentation, and
//! with Anthropic's, according to "Vision" in theirs. Knows sizes and model names.

/// Tokens of pictures for a family of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pictures {
    /// A fixed maximum for any size.
    AtMost(usize),
    /// A token for so many pixels, and a maximum: larger pictures are scaled down.
    Area {
        /// Pixels of one token.
        pixels: u64,
        /// Tokens of the largest picture.
        most: usize,
    },
    /// A base plus a charge per tile of 512 pixels, after the picture is scaled to fit a 2,048-pixel square and then
    /// to a shorter side of 768 pixels: never more than eight tiles. At low detail, the base alone.
    Tiles {
        /// Tokens for a picture of any size.
        base: usize,
        /// Tokens per tile of 512 by 512 pixels.
        tile: usize,
    },
}

/// The side in pixels of the square that a picture is first scaled to fit.
const SQUARE: u64 = 2_048;
/// The shorter side in pixels that it is then scaled to.
const SHORTER: u64 = 768;
/// The side of a tile in pixels.
const TILE: u64 = 512;
/// Tiles of the largest picture.
const MAX_TILES: usize = 8;
/// Maximum number of 32-pixel patches of a picture.
const MAX_PATCHES: usize = 1_536;

/// Id prefixes of small models and their charges; the rest of an id may be a date. Models that count patches charge
/// more than one token for each, by a factor in hundredths.
const SMALL: [(&str, Pictures); 6] = [
    ("gpt-4o-mini", Pictures::Tiles { base: 2_833, tile: 5_667 }),
    ("gpt-4.1-mini", patches(162)),
    ("gpt-4.1-nano", patches(246)),
    ("gpt-5-mini", patches(162)),
    ("gpt-5-nano", patches(246)),
    ("o4-mini", patches(172)),
];

const fn patches(hundredths: usize) -> Pictures {
    Pictures::AtMost((MAX_PATCHES * hundredths).div_ceil(100))
}

impl Pictures {
    /// The charge of the large models: 85 and 170 per tile (GPT-4o, 4.1, 4.5). No other model that counts tiles
    /// charges more.
    pub const OPENAI: Self = Self::Tiles { base: 85, tile: 170 };

    /// The charge of Anthropic's models: width times height over 750, at most what the models with the highest resolution
    /// take.
    pub const ANTHROPIC: Self = Self::Area { pixels: 750, most: 4_784 };

    /// The charge of an OpenAI model, by its id without prefixes. A small model missing from the guide is charged
    /// like the most expensive patch-counting one.
    pub(super) fn of_openai(id: &str) -> Self {
        let known = SMALL.iter().find(|(model, _)| id.starts_with(model));
        let is_small = ["-mini", "-nano"].iter().any(|size| id.contains(size));
        known.map_or(if is_small { patches(246) } else { Self::OPENAI }, |(_, pictures)| *pictures)
    }

    /// Tokens for a picture in base64, by its size where that decides and is known.
    pub(super) fn tokens(self, data: &str) -> usize {
        match self {
            Self::AtMost(most) => most,
            Self::Tiles { .. } | Self::Area { .. } => crate::picture::size(data)
                .map_or(self.max_tokens(), |(width, height)| self.sized(width, height)),
        }
    }

    /// Tokens for a picture of unknown size.
    pub const fn max_tokens(self) -> usize {
        match self {
            Self::AtMost(most) | Self::Area { most, .. } => most,
            Self::Tiles { base, tile } => base + MAX_TILES * tile,
        }
    }

    /// Tokens for a picture at low detail.
    pub const fn low(self) -> usize {
        match self {
            Self::AtMost(most) | Self::Area { most, .. } => most,
            Self::Tiles { base, .. } => base,
        }
    }

    /// Tokens for a picture of this many pixels.
    pub fn sized(self, width: u32, height: u32) -> usize {
        let (base, tile) = match self {
            Self::Tiles { base, tile } => (base, tile),
            Self::Area { pixels, most } => {
                let tokens = (u64::from(width) * u64::from(height)).div_ceil(pixels);
                return usize::try_from(tokens).map_or(most, |tokens| tokens.clamp(1, most));
            }
            Self::AtMost(most) => return most,
        };
        let (shorter, longer) = (u64::from(width.min(height)), u64::from(width.max(height)));
        // Pictures are scaled down, never up. Divide last and round up, so that no tile is missed.
        let scale = |pixels: u64| {
            let fits = if longer > SQUARE { (SQUARE, longer) } else { (1, 1) };
            let is_tall = shorter * fits.0 > SHORTER * fits.1;
            let (by, of) = if is_tall { (SHORTER, shorter) } else { fits };
            (pixels * by).div_ceil(of)
        };
        let tiles = scale(shorter).div_ceil(TILE) * scale(longer).div_ceil(TILE);
        base + usize::try_from(tiles).map_or(MAX_TILES, |tiles| tiles.clamp(1, MAX_TILES)) * tile
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anthropic_charges_by_area() {
        for ((width, height), tokens) in [
            ((200, 200), 54),
            ((1_000, 1_000), 1_334),
            ((1_092, 1_092), 1_590),
            ((9_000, 9_000), 4_784),
            ((0, 5), 1),
        ] {
            assert_eq!(Pictures::ANTHROPIC.sized(width, height), tokens, "{width} x {height}");
        }
        assert_eq!(Pictures::ANTHROPIC.max_tokens(), 4_784);
    }

    #[test]
    fn small_models_charge_what_the_guide_says() {
        for (model, most) in [
            ("gpt-4o", 1_445),
            ("gpt-4o-2024-08-06", 1_445),
            ("gpt-4o-mini", 48_169),
            ("gpt-4o-mini-2024-07-18", 48_169),
            ("gpt-4.1-mini-2025-04-14", 2_489),
            ("gpt-4.1-nano", 3_779),
            ("gpt-5", 1_445),
            ("gpt-5-mini", 2_489),
            ("gpt-5-nano-2025-08-07", 3_779),
            ("o4-mini", 2_642),
            ("gpt-7-mini", 3_779),
        ] {
            assert_eq!(Pictures::of_openai(model).max_tokens(), most, "{model}");
        }
    }

    #[test]
    fn tiles_are_counted_after_a_picture_was_made_smaller() {
        for ((width, height), tiles) in [
            ((150, 150), 1),
            ((512, 512), 1),
            ((513, 512), 2),
            ((1_024, 1_024), 4),
            ((2_048, 4_096), 6),
            ((1_080, 1_920), 6),
            ((768, 2_048), 8),
            ((6_000, 300), 4),
            ((u32::MAX, u32::MAX), 4),
            ((u32::MAX, 1), 4),
            ((0, 0), 1),
        ] {
            let tokens = Pictures::OPENAI.sized(width, height);
            assert_eq!(tokens, 85 + 170 * tiles, "{width} x {height}");
            assert!(tokens <= Pictures::OPENAI.max_tokens());
        }
        assert_eq!(Pictures::AtMost(2_048).sized(1, 1), 2_048);
    }
}
