//! The mark of a flow's text. A change of a flow names the mark of the text on which it rests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Changes with a flow's text. All versions on all machines make the same mark of the same text: the mark is in the log, and
/// an author may read the flow at one node and change it at another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowMark(u64);

impl FlowMark {
    /// The mark of a text: FNV-1a with 64 bits.
    pub fn of(text: &str) -> FlowMark {
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        FlowMark(hash)
    }
}

impl fmt::Display for FlowMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for FlowMark {
    type Err = String;

    fn from_str(text: &str) -> Result<FlowMark, String> {
        let fits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok().filter(|_| fits);
        number
            .map(FlowMark)
            .ok_or_else(|| format!("{text:?} is no mark; FLOW SHOW tells the mark of a flow"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_the_same_in_every_version_and_reads_back() {
        // The published values of FNV-1a.
        assert_eq!(FlowMark::of("").to_string(), "cbf29ce484222325");
        assert_eq!(FlowMark::of("foobar").to_string(), "85944171f73967e8");
        let mark = FlowMark::of("a -> [q] -> b");
        assert_eq!(mark.to_string().parse(), Ok(mark));
        for text in ["", "12", "+123456789abcdef", "85944171f73967e8 "] {
            assert!(text.parse::<FlowMark>().is_err(), "{text:?}");
        }
    }
}
