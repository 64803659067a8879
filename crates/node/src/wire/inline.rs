//! Commands typed on a line, as in telnet: words between blanks, with quotes as the Redis tools write them.

/// Splits a line into words: puts their text into `text`, and each word's range in it into `ranges`. False if a quote is not
/// closed, or is closed in the middle of a word.
pub(super) fn split(line: &[u8], text: &mut Vec<u8>, ranges: &mut Vec<(u32, u32)>) -> bool {
    let mut rest = line;
    loop {
        while let [blank, after @ ..] = rest
            && blank.is_ascii_whitespace()
        {
            rest = after;
        }
        if rest.is_empty() {
            return true;
        }
        let from = text.len();
        while let [byte, after @ ..] = rest
            && !byte.is_ascii_whitespace()
        {
            rest = match byte {
                b'"' => match double_quoted(after, text) {
                    Some(after) => after,
                    None => return false,
                },
                b'\'' => match single_quoted(after, text) {
                    Some(after) => after,
                    None => return false,
                },
                byte => {
                    text.push(*byte);
                    after
                }
            };
        }
        ranges.push((from as u32, text.len() as u32));
    }
}

/// What follows the closing quote, which must be a blank or the end.
fn closed(rest: &[u8]) -> Option<&[u8]> {
    rest.first()
        .is_none_or(u8::is_ascii_whitespace)
        .then_some(rest)
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'"', after @ ..] => return closed(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                text.push(hex(*high) << 4 | hex(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                text.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                text.push(*byte);
                after
            }
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\'', after @ ..] => return closed(after),
            [b'\\', b'\'', after @ ..] => {
                text.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                text.push(*byte);
                after
            }
        };
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase() - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let (mut text, mut ranges) = (Vec::new(), Vec::new());
        split(line.as_bytes(), &mut text, &mut ranges).then(|| {
            let words = ranges.iter().map(|(a, b)| &text[*a as usize..*b as usize]);
            words.map(|w| String::from_utf8_lossy(w).into()).collect()
        })
    }

    #[test]
    fn blanks_part_words_and_quotes_keep_them_together() {
        assert_eq!(words("  LOCK \t a ").unwrap(), ["LOCK", "a"]);
        assert_eq!(words("").unwrap(), [""; 0]);
        assert_eq!(
            words(r#"LOCK a REASON "two \"words\"\x21" 'it\'s'"#).unwrap(),
            ["LOCK", "a", "REASON", "two \"words\"!", "it's"]
        );
        assert_eq!(words(r#"ECHO """#).unwrap(), ["ECHO", ""]);
        assert_eq!(words(r#"ECHO "\n\t\q""#).unwrap(), ["ECHO", "\n\tq"]);
    }

    #[test]
    fn open_quotes_are_refused() {
        for line in [r#"ECHO "a"#, "ECHO 'a", r#"ECHO "a"b"#, r#"ECHO "\"#] {
            assert_eq!(words(line), None, "{line}");
        }
    }
}
