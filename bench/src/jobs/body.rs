//! What is in a job: its number at both ends, and something known between, so that a mangled body is seen.

/// Bodies of a loop.
pub(crate) const BODY_BYTES: usize = 1024;
const DIGITS: usize = 16;

/// The alphabet again and again.
const FILLER: [u8; BODY_BYTES] = {
    let mut filler = [0; BODY_BYTES];
    let mut at = 0;
    while at < BODY_BYTES {
        filler[at] = b'a' + (at % 26) as u8;
        at += 1;
    }
    filler
};

/// The body of a numbered job.
pub(crate) fn body(number: u64) -> [u8; BODY_BYTES] {
    let mut body = FILLER;
    let digits = format!("{number:0DIGITS$x}");
    body[..DIGITS].copy_from_slice(digits.as_bytes());
    body[BODY_BYTES - DIGITS..].copy_from_slice(digits.as_bytes());
    body
}

/// The number of the job with this body, if it is one of ours and whole.
pub(crate) fn number(found: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(found.get(..DIGITS)?).ok()?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (found == body(number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_says_its_number_and_a_mangled_one_does_not() {
        let mut mangled = body(7 << 32 | 9);
        assert_eq!(number(&mangled), Some(7 << 32 | 9));
        assert_eq!(number(&mangled[1..]), None);
        mangled[500] ^= 1;
        assert_eq!(number(&mangled), None);
    }
}
