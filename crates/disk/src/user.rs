//! User ids, the folder names derived from them, and valid names of other things. Does not access the folders.

use crate::StoreError;

/// The default user: on the command line unless another is given, and for gateway callers while there are no keys.
pub const LOCAL_USER: &str = "local";
/// Maximum bytes of a user id or other name.
const MAX_NAME_BYTES: usize = 256;
/// Longer ids get a folder named by their hash, well under every file system's limit of a name.
const MAX_PLAIN_BYTES: usize = 64;

/// Rejects ids that are empty, longer than 256 bytes, or contain control characters (including NUL).
///
/// # Errors
/// The id is one of these.
pub fn check(user: &str) -> Result<(), StoreError> {
    let Some(reason) = fault(user) else { return Ok(()) };
    Err(StoreError::InvalidUser { user: shortened(user), reason })
}

/// As [`check`], for the name of something else.
///
/// # Errors
/// As [`check`].
pub fn check_name(what: &'static str, name: &str) -> Result<(), StoreError> {
    let Some(reason) = fault(name) else { return Ok(()) };
    Err(StoreError::InvalidName { what, name: shortened(name), reason })
}

fn fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("empty; expected 1 to 256 bytes")
    } else if name.len() > MAX_NAME_BYTES {
        Some("too long; expected at most 256 bytes")
    } else if name.chars().any(char::is_control) {
        Some("has a control character; expected none")
    } else {
        None
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(40).collect()
}

/// The name of the folder with the user's blobs.
///
/// Plain ids stay readable after `u-`; all others (with separators, dots, capitals, non-ASCII, or too long) become
/// `h-` and a hash. No id can therefore leave its folder, and no two share one even on case-insensitive file systems.
pub fn folder(user: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    if user.len() <= MAX_PLAIN_BYTES && user.bytes().all(plain) {
        format!("u-{user}")
    } else {
        format!("h-{}", blake3::hash(user.as_bytes()).to_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_ids_are_refused_or_encoded() {
        for user in ["", "a\0b", "a\nb", "\u{7f}", &"x".repeat(257)] {
            assert!(check(user).is_err(), "{user:?}");
        }
        for user in
            ["..", ".", "/etc/passwd", "a/../b", "a\\b", "C:", "Alice", "ユーザー", "u-a", &"x".repeat(256)]
        {
            check(user).unwrap();
            let folder = folder(user);
            assert!(
                folder.len() <= 66 && folder.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            );
        }
    }

    proptest! {
        #[test]
        fn no_two_users_share_a_folder(a in "[-a-zA-Z0-9_./é]{1,4}", b in "[-a-zA-Z0-9_./é]{1,4}") {
            prop_assert_eq!(a == b, folder(&a).eq_ignore_ascii_case(&folder(&b)));
        }
    }
}
