//! The outer format of a Debian package, `ar(5)`: a line, then each member behind a head of 60 bytes.

/// The members as one archive. Names are short, and everything belongs to root at the start of time.
pub(super) fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let length = content.len();
        bytes.extend(
            format!(
                "{name:<16}{:<12}{:<6}{:<6}{:<8}{length:<10}`\n",
                0, 0, 0, 100_644
            )
            .bytes(),
        );
        bytes.extend(content);
        // Members begin at even positions.
        bytes.extend((length % 2 == 1).then_some(b'\n'));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_heads_of_60_bytes_and_begin_at_even_positions() {
        let bytes = archive(&[("odd", b"abc".to_vec()), ("even", b"de".to_vec())]);
        let text = String::from_utf8(bytes).expect("texts only");
        assert_eq!(text.len(), 8 + 60 + 4 + 60 + 2);
        assert!(text[8..].starts_with("odd             0  "), "{text}");
        assert_eq!(&text[8 + 48..8 + 60], "3         `\n");
        assert_eq!(&text[68..72], "abc\n");
        assert!(text[72..].starts_with("even "), "{text}");
    }
}
