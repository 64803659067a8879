//! What a password is checked against: its salted hash, or the password itself. A hash is written
//! `$pbkdf2-sha256$i=N$salt$hash`, both parts in base64, so that a reader of the configuration file does not get the
//! password.

use std::fmt;
use std::num::NonZeroU32;

use base64::prelude::{BASE64_STANDARD_NO_PAD, Engine};
use ring::pbkdf2;

const PREFIX: &str = "$pbkdf2-sha256$";
/// OWASP's advice for PBKDF2 with SHA-256.
const ROUNDS: u32 = 600_000;
/// A check with more rounds would keep the whole machine busy.
const ROUNDS_MAX: u32 = 10_000_000;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
/// The longest password that is checked.
pub(crate) const PASSWORD_BYTES_MAX: usize = 1024;

/// What a password is checked against.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The password.
    Plain(String),
    /// Its hash.
    Hashed(Hash),
}

/// A salted hash.
#[derive(Clone, PartialEq, Eq)]
pub struct Hash {
    rounds: NonZeroU32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

/// What is wrong with a password or its hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// No client could send it.
    #[error("the password is empty; set one, or none")]
    Empty,
    /// It is longer than any password that is checked.
    #[error("the password has more than {PASSWORD_BYTES_MAX} bytes")]
    Long,
    /// It begins like a hash but is not one.
    #[error("this is no hash; `testigo password` makes one")]
    NoHash,
    /// There is no randomness.
    #[error("the system gives no random numbers: {0}")]
    NoSalt(String),
}

impl Secret {
    /// Reads a value of the configuration file: a hash if it begins like one, otherwise the password itself.
    pub fn read(text: &str) -> Result<Secret, SecretError> {
        check(text)?;
        match text.strip_prefix(PREFIX) {
            Some(rest) => Hash::read(rest)
                .map(Secret::Hashed)
                .ok_or(SecretError::NoHash),
            None => Ok(Secret::Plain(text.to_owned())),
        }
    }

    /// Hashes a password with a new salt.
    pub fn hash(password: &str) -> Result<Secret, SecretError> {
        check(password)?;
        let mut salt = vec![0; SALT_BYTES];
        getrandom::fill(&mut salt).map_err(|error| SecretError::NoSalt(error.to_string()))?;
        let mut hash = vec![0; HASH_BYTES];
        let rounds = NonZeroU32::MIN.saturating_add(ROUNDS - 1);
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(algorithm, rounds, &salt, password.as_bytes(), &mut hash);
        Ok(Secret::Hashed(Hash { rounds, salt, hash }))
    }

    /// Whether this is the password. With a hash this takes a good part of a second.
    pub(crate) fn is(&self, given: &str) -> bool {
        match self {
            Secret::Plain(password) => same(password.as_bytes(), given.as_bytes()),
            Secret::Hashed(Hash { rounds, salt, hash }) => {
                let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
                pbkdf2::verify(algorithm, *rounds, salt, given.as_bytes(), hash).is_ok()
            }
        }
    }

    /// Whether the check needs no hashing.
    pub(crate) fn is_quick(&self) -> bool {
        matches!(self, Secret::Plain(_))
    }
}

fn check(password: &str) -> Result<(), SecretError> {
    match password.len() {
        0 => Err(SecretError::Empty),
        1..=PASSWORD_BYTES_MAX => Ok(()),
        _ => Err(SecretError::Long),
    }
}

impl Hash {
    fn read(text: &str) -> Option<Hash> {
        let mut parts = text.strip_prefix("i=")?.split('$');
        let rounds: NonZeroU32 = parts.next()?.parse().ok()?;
        let mut part = || BASE64_STANDARD_NO_PAD.decode(parts.next()?).ok();
        let (salt, hash) = (part()?, part()?);
        let whole = parts.next().is_none() && salt.len() >= 8 && hash.len() == HASH_BYTES;
        (whole && rounds.get() <= ROUNDS_MAX).then_some(Hash { rounds, salt, hash })
    }
}

/// Compares in constant time.
fn same(password: &[u8], given: &[u8]) -> bool {
    let differences = password
        .iter()
        .zip(given.iter().chain(std::iter::repeat(&0)))
        .fold(0, |sum, (a, b)| sum | (a ^ b));
    differences == 0 && password.len() == given.len()
}

/// The form in the configuration file; a plain password is not shown.
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Plain(_) => f.write_str("(a password)"),
            Secret::Hashed(Hash { rounds, salt, hash }) => {
                let [salt, hash] = [salt, hash].map(|bytes| BASE64_STANDARD_NO_PAD.encode(bytes));
                write!(f, "{PREFIX}i={rounds}${salt}${hash}")
            }
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_of_its_password_alone() {
        let hashed = Secret::hash("secret").unwrap();
        let written = hashed.to_string();
        let read = Secret::read(&written).unwrap();
        assert_eq!(read, hashed);
        assert!(read.is("secret") && !read.is("Secret") && !read.is(""));
        assert_ne!(Secret::hash("secret").unwrap().to_string(), written);
        assert!(!written.contains("secret"));
    }

    #[test]
    fn a_plain_password_is_itself() {
        let plain = Secret::read("a=b").unwrap();
        assert!(plain.is("a=b"));
        for wrong in ["", "a", "a=", "a=c", "a=bb"] {
            assert!(!plain.is(wrong), "{wrong}");
        }
        assert!(!format!("{plain:?} {plain}").contains("a=b"));
    }

    #[test]
    fn half_a_hash_is_no_password() {
        let written = Secret::hash("x").unwrap().to_string();
        for cut in PREFIX.len()..written.len() {
            assert_eq!(Secret::read(&written[..cut]), Err(SecretError::NoHash));
        }
        assert_eq!(
            Secret::read("$pbkdf2-sha256$i=99999999$AAAAAAAAAAAAAAAA$AAAA"),
            Err(SecretError::NoHash)
        );
        assert_eq!(Secret::read(""), Err(SecretError::Empty));
        assert_eq!(Secret::read(&"x".repeat(2000)), Err(SecretError::Long));
    }
}
