//! The key of receipts. A receipt proves to the node, after a crash, that it granted what a session claims. The key is part
//! of the replicated half, like the sessions for which it vouches: neither exists without the other, a backup holds both, and
//! every member of a cluster gets it from the log. Making and verifying receipts is the node's work.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The secret with which receipts are made, drawn at random by the node that starts first.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptKey([u8; ReceiptKey::BYTES]);

impl ReceiptKey {
    /// Its length.
    pub const BYTES: usize = 32;

    /// The key with these random bytes.
    pub fn new(bytes: [u8; ReceiptKey::BYTES]) -> ReceiptKey {
        ReceiptKey(bytes)
    }

    /// The secret itself.
    pub fn bytes(&self) -> &[u8; ReceiptKey::BYTES] {
        &self.0
    }
}

/// Never shows the secret, even where a change or a record is printed.
impl fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptKey(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_key_tells_nothing() {
        let key = ReceiptKey::new([7; ReceiptKey::BYTES]);
        assert_eq!(format!("{key:?}"), "ReceiptKey(secret)");
    }
}
