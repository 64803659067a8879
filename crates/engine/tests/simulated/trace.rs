//! A running sum of everything that happens, so that two runs can be compared byte for byte.

use std::fmt::{self, Write};

use testigo_sim::Time;

#[derive(Debug)]
pub(crate) struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Trace(0xCBF2_9CE4_8422_2325)
    }
}

impl Trace {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        // FNV-1a.
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    pub(crate) fn event(&mut self, at: Time, event: &impl fmt::Debug) {
        let written = write!(self, "{at} {event:?}");
        written.expect("a sum takes everything");
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0
    }
}

impl Write for Trace {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
