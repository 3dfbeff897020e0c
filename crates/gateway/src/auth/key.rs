//! The text of a key: how it is written, read and hashed. It prints as `***`. Knows nothing of where keys are kept.

use std::fmt;

use argon2::password_hash::PasswordHasher;
use argon2::password_hash::phc::Output;
use argon2::{Algorithm, Argon2, Block, Params, PasswordHash, Version};
use larder_store::KeyId;

use super::AuthError;

/// The prefix of every key.
const PREFIX: &str = "lk-";
/// Random bytes of a key in addition to its id: 192 bits.
const SECRET_BYTES: usize = 24;
/// Random bytes that are hashed with a key.
const SALT_BYTES: usize = 16;

/// A key: `lk-`, the 12 digits of its id, `-`, and 48 digits that are the secret. It is printed by [`ApiKey::reveal`] only.
#[derive(Clone)]
pub struct ApiKey {
    id: KeyId,
    text: String,
}

impl ApiKey {
    /// Creates a key from random bytes.
    pub(super) fn new(id: KeyId, secret: [u8; SECRET_BYTES]) -> Self {
        let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text: format!("{PREFIX}{id}-{secret}"), id }
    }

    /// Whether a text is meant to be one of Larder's keys rather than a provider's.
    pub fn is_meant(text: &str) -> bool {
        text.trim_start().starts_with(PREFIX)
    }

    /// Parses a key; `None` if it does not look like one of Larder's. Surrounding white space is ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('-')?;
        let digits = secret.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let whole = digits && secret.len() == 2 * SECRET_BYTES;
        whole.then_some(Self { id: id.parse().ok()?, text: text.to_owned() })
    }

    /// What it is called.
    pub const fn id(&self) -> &KeyId {
        &self.id
    }

    /// The text itself, for the one time it is shown.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Its Argon2id hash, as a string that names the method.
    pub(super) fn hash(&self, salt: [u8; SALT_BYTES]) -> Result<String, AuthError> {
        let hash = Argon2::default().hash_password_with_salt(self.text.as_bytes(), &salt);
        hash.map(|hash| hash.to_string()).map_err(|error| AuthError::Hashing(error.to_string()))
    }

    /// Whether the key has this hash, compared in constant time. `memory` is scratch space and grows as needed; its
    /// content is irrelevant.
    pub(super) fn matches(&self, hash: &str, memory: &mut Vec<Block>) -> bool {
        self.is_behind(hash, memory).unwrap_or(false)
    }

    /// `None` if this is not a valid hash.
    fn is_behind(&self, hash: &str, memory: &mut Vec<Block>) -> Option<bool> {
        let stored = PasswordHash::new(hash).ok()?;
        let (salt, expected) = (stored.salt.as_ref()?, stored.hash.as_ref()?);
        let algorithm = Algorithm::try_from(stored.algorithm.as_str()).ok()?;
        let version = Version::try_from(stored.version?).ok()?;
        let params = Params::try_from(&stored).ok()?;
        if memory.len() < params.block_count() {
            memory.resize(params.block_count(), Block::new());
        }
        let mut buffer = [0_u8; Output::MAX_LENGTH];
        let out = buffer.get_mut(..expected.len())?;
        let method = Argon2::new(algorithm, version, params);
        method.hash_password_into_with_memory(self.text.as_bytes(), salt, out, memory.as_mut_slice()).ok()?;
        // `Output` is compared in constant time.
        Output::new(out).ok().map(|made| made == *expected)
    }

    /// A fast keyed hash, useless to anyone without the key.
    pub(super) fn fast_hash(&self, key: &[u8; 32]) -> blake3::Hash {
        blake3::keyed_hash(key, self.text.as_bytes())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use argon2::password_hash::PasswordVerifier as _;

    use super::*;

    #[test]
    fn a_key_reads_back_and_prints_as_stars() {
        let key = ApiKey::new(KeyId::new([1, 2, 3, 4, 5, 0xab]), [0xcd; SECRET_BYTES]);
        assert_eq!(key.reveal(), format!("lk-0102030405ab-{}", "cd".repeat(SECRET_BYTES)));
        let read = ApiKey::parse(&format!(" {}\n", key.reveal())).unwrap();
        assert_eq!((read.id(), read.reveal()), (key.id(), key.reveal()));
        assert_eq!(format!("{key:?} {:?}", Some(read)), "*** Some(***)");
        for wrong in ["", "lk-", "sk-0102030405ab-cd", "lk-0102030405ab-cd", "lk--", "lk-é-é"] {
            assert!(ApiKey::parse(wrong).is_none(), "{wrong}");
        }
        assert!(ApiKey::parse(&key.reveal().to_uppercase()).is_none());
    }

    #[test]
    fn only_the_hash_of_a_key_matches_it() {
        let key = ApiKey::new(KeyId::new([1; 6]), [2; SECRET_BYTES]);
        let other = ApiKey::new(KeyId::new([1; 6]), [3; SECRET_BYTES]);
        let hash = key.hash([4; SALT_BYTES]).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let mut memory = Vec::new();
        for _ in 0..2 {
            assert!(key.matches(&hash, &mut memory) && !other.matches(&hash, &mut memory));
        }
        assert_eq!(memory.len(), 19 << 10, "one block for all of them");
        for nonsense in ["", "$argon2id$nonsense", "$argon2id$v=19$m=19456,t=2,p=1", &hash[..hash.len() - 2]]
        {
            assert!(!key.matches(nonsense, &mut memory), "{nonsense}");
        }
        // The hash as computed by the library itself.
        assert!(Argon2::default().verify_password(key.text.as_bytes(), hash.as_str()).is_ok());
        assert_ne!(hash, key.hash([5; SALT_BYTES]).unwrap(), "the salt counts");
        assert!(!hash.contains("0202"));
    }
}
