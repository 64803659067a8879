//! How two nodes begin to talk. The dialler says who it is and whom it wants; the acceptor does the same. Each has drawn a
//! random number, so neither can be answered with a recording. If the cluster has a secret, the dialler proves that it knows
//! it without sending it, and every frame after that has a code. The acceptor says nothing made with the secret before: from
//! that a stranger could guess the secret at leisure. Its own proof is the code of its verdict.
//!
//! ```text
//! dialler  -> hello                 88 bytes
//! acceptor -> hello                 88 bytes
//! dialler  -> proof                 with a secret, 32 bytes
//! acceptor -> verdict               a frame: empty for yes, else why not
//! dialler  -> frames
//! ```

use ring::hmac;
use testigo_core::ClusterId;

use super::config::ClusterSecret;

/// The first bytes of every connection between nodes. No HTTP request and no TLS greeting begins like this.
pub(super) const OPENING: [u8; 8] = *b"\x89TGO\r\n\x1a\n";

/// The latest and the oldest version of this protocol that this node speaks.
pub(super) const VERSION: u8 = 2;
const OLDEST: u8 = 2;

/// The group that all nodes are in.
const GROUP: u16 = 0;

pub(super) const HELLO_BYTES: usize = 88;
pub(super) const PROOF_BYTES: usize = 32;
const NONCE_BYTES: usize = 32;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Frames from one member to another.
    Frames,
    /// A node wants to become a member.
    Join,
}

/// What each side says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) version: u8,
    pub(super) oldest: u8,
    pub(super) purpose: Purpose,
    /// Whether it knows a secret and expects the other to.
    pub(super) guarded: bool,
    pub(super) group: u16,
    /// Its node lease. All nodes must have the same, or one may act when others believe that it no longer does.
    pub(super) lease_ms: u16,
    /// Zero when joining.
    pub(super) cluster: ClusterId,
    pub(super) from: u64,
    /// 0 when joining: any member can answer.
    pub(super) to: u64,
    pub(super) start: u64,
    pub(super) nonce: [u8; NONCE_BYTES],
}

/// Why two nodes cannot talk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GreetingError {
    #[error("it does not speak as a node does")]
    NoNode,
    #[error(
        "it speaks versions {oldest} to {version} of the nodes' language, and this node {OLDEST} to {VERSION}; \
         stop both, and start them with the same version of testigo"
    )]
    Version { oldest: u8, version: u8 },
    #[error("it is of group {0}")]
    Group(u16),
    #[error(
        "its node lease is {is} ms, and this node's is {own} ms; give all nodes the same --lease-ms"
    )]
    Lease { is: u16, own: u16 },
    #[error("it has a cluster secret, and this node has none")]
    Guarded,
    #[error("it has no cluster secret, and this node has one")]
    Unguarded,
    #[error("it does not know the cluster's secret")]
    Proof,
    #[error("it is node {is}, not node {wanted}")]
    Node { is: u64, wanted: u64 },
    #[error("the system gives no random numbers")]
    NoRandomness,
}

impl Hello {
    /// This node's hello.
    pub(super) fn new(
        purpose: Purpose,
        guarded: bool,
        lease_ms: u16,
        cluster: ClusterId,
        (from, start): (u64, u64),
        to: u64,
    ) -> Result<Hello, GreetingError> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| GreetingError::NoRandomness)?;
        Ok(Hello {
            version: VERSION,
            oldest: OLDEST,
            purpose,
            guarded,
            group: GROUP,
            lease_ms,
            cluster,
            from,
            to,
            start,
            nonce,
        })
    }

    pub(super) fn write(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&OPENING);
        bytes[8] = self.version;
        bytes[9] = self.oldest;
        bytes[10] = match self.purpose {
            Purpose::Frames => 1,
            Purpose::Join => 2,
        };
        bytes[11] = self.guarded.into();
        bytes[12..14].copy_from_slice(&self.group.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.lease_ms.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.cluster.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.from.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.to.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.start.to_le_bytes());
        bytes[56..].copy_from_slice(&self.nonce);
        bytes
    }

    pub(super) fn read(bytes: &[u8; HELLO_BYTES]) -> Result<Hello, GreetingError> {
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(number)
        };
        if bytes[..8] != OPENING {
            return Err(GreetingError::NoNode);
        }
        let (version, oldest) = (bytes[8], bytes[9]);
        // All versions share this much.
        if version < OLDEST || oldest > VERSION {
            return Err(GreetingError::Version { oldest, version });
        }
        let purpose = match bytes[10] {
            1 => Purpose::Frames,
            2 => Purpose::Join,
            _ => return Err(GreetingError::NoNode),
        };
        let mut cluster = [0; 16];
        cluster.copy_from_slice(&bytes[16..32]);
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&bytes[56..]);
        Ok(Hello {
            version,
            oldest,
            purpose,
            guarded: bytes[11] != 0,
            group: u16::from_le_bytes([bytes[12], bytes[13]]),
            lease_ms: u16::from_le_bytes([bytes[14], bytes[15]]),
            cluster: ClusterId(u128::from_le_bytes(cluster)),
            from: number(32),
            to: number(40),
            start: number(48),
            nonce,
        })
    }

    /// Whether these bytes can still become a greeting: a stranger is cut off at its first wrong byte.
    pub(super) fn may_begin_with(bytes: &[u8]) -> bool {
        bytes
            .iter()
            .zip(OPENING)
            .all(|(byte, opening)| *byte == opening)
    }

    /// Whether this node, with or without a secret, can talk to the other.
    pub(super) fn fits(&self, guarded: bool, lease_ms: u16) -> Result<(), GreetingError> {
        match (self.guarded, guarded) {
            _ if self.group != GROUP => Err(GreetingError::Group(self.group)),
            _ if self.lease_ms != lease_ms => Err(GreetingError::Lease {
                is: self.lease_ms,
                own: lease_ms,
            }),
            (true, false) => Err(GreetingError::Guarded),
            (false, true) => Err(GreetingError::Unguarded),
            _ => Ok(()),
        }
    }
}

/// The side of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Dialler,
    Acceptor,
}

/// Both hellos, and what those who know the secret can derive from them.
#[derive(Debug)]
pub(super) struct Secrets {
    key: hmac::Key,
    hellos: [u8; 2 * HELLO_BYTES],
}

impl Secrets {
    pub(super) fn new(
        secret: &ClusterSecret,
        dialler: &[u8; HELLO_BYTES],
        acceptor: &[u8; HELLO_BYTES],
    ) -> Secrets {
        let mut hellos = [0; 2 * HELLO_BYTES];
        hellos[..HELLO_BYTES].copy_from_slice(dialler);
        hellos[HELLO_BYTES..].copy_from_slice(acceptor);
        Secrets {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret.bytes()),
            hellos,
        }
    }

    /// The proof that the dialler knows the secret.
    pub(super) fn proof(&self) -> [u8; PROOF_BYTES] {
        self.derive(b"testigo 2 dialler's proof")
    }

    pub(super) fn check(&self, proof: &[u8]) -> Result<(), GreetingError> {
        match same(&self.proof(), proof) {
            true => Ok(()),
            false => Err(GreetingError::Proof),
        }
    }

    /// The key for a side's frames.
    pub(super) fn frame_key(&self, of: Side) -> hmac::Key {
        let key = self.derive(match of {
            Side::Dialler => b"testigo 2 dialler's frames",
            Side::Acceptor => b"testigo 2 acceptor's frames",
        });
        hmac::Key::new(hmac::HMAC_SHA256, &key)
    }

    fn derive(&self, label: &[u8]) -> [u8; PROOF_BYTES] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(label);
        context.update(&self.hellos);
        let mut bytes = [0; PROOF_BYTES];
        bytes.copy_from_slice(context.sign().as_ref());
        bytes
    }
}

/// Compares in constant time.
pub(super) fn same(right: &[u8], given: &[u8]) -> bool {
    let differences = right.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b));
    differences == 0 && right.len() == given.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello::new(Purpose::Frames, true, 3_000, ClusterId(7), (2, 9), 3).unwrap()
    }

    #[test]
    fn a_hello_is_read_as_it_was_written_and_says_which_versions_it_speaks() {
        let hello = hello();
        let bytes = hello.write();
        assert_eq!(Hello::read(&bytes), Ok(hello.clone()));
        let mut older = bytes;
        (older[8], older[9]) = (1, 1);
        let refused = Hello::read(&older).unwrap_err().to_string();
        assert!(refused.contains("versions 1 to 1"), "{refused}");
        assert!(refused.contains("the same version of testigo"), "{refused}");
        let mut newer = bytes;
        newer[8] = VERSION + 1;
        assert!(Hello::read(&newer).is_ok(), "it still speaks this version");
        newer[9] = VERSION + 1;
        let version = VERSION + 1;
        let oldest = version;
        let unspoken = Err(GreetingError::Version { oldest, version });
        assert_eq!(Hello::read(&newer), unspoken);
        assert_eq!(hello.fits(false, 3_000), Err(GreetingError::Guarded));
        assert_eq!(hello.fits(true, 3_000), Ok(()));
        let (is, own) = (3_000, 12_000);
        assert_eq!(hello.fits(true, own), Err(GreetingError::Lease { is, own }));
    }

    #[test]
    fn strangers_are_known_by_their_first_bytes() {
        for bytes in [&b"GET / HTTP/1.1"[..], b"\x16\x03\x01", b"*1\r\n", b"\0"] {
            assert!(!Hello::may_begin_with(bytes));
        }
        assert!(Hello::may_begin_with(b""));
        assert!(Hello::may_begin_with(&OPENING[..3]));
        assert!(!Hello::may_begin_with(b"\x89PNG\r\n\x1a\n"));
    }

    #[test]
    fn a_proof_is_good_for_one_conversation() {
        let secret = |text| ClusterSecret::read(text).unwrap();
        let ours = secret("the same on all nodes");
        let (dialler, acceptor) = (hello().write(), hello().write());
        let here = Secrets::new(&ours, &dialler, &acceptor);
        let proof = here.proof();
        assert_eq!(here.check(&proof), Ok(()));
        assert!(here.check(&proof[..31]).is_err());
        let later = Secrets::new(&ours, &dialler, &hello().write());
        assert!(later.check(&proof).is_err(), "replayed");
        let reflected = Secrets::new(&ours, &acceptor, &dialler);
        assert!(reflected.check(&proof).is_err(), "reflected");
        let other = Secrets::new(&secret("a different secret"), &dialler, &acceptor);
        assert!(other.check(&proof).is_err(), "guessed");
    }
}
