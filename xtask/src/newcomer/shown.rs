//! Compares what a terminal shows with what a document shows. Times, dates, process ids, session ids and host names
//! differ from run to run, and with them the width of columns; everything else must be the same.

/// A text without what differs from run to run.
pub(super) fn steady(text: &str) -> String {
    let lines = text.trim().lines().map(steady_line);
    lines.collect::<Vec<_>>().join("\n")
}

fn steady_line(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let bare = word.trim_end_matches([',', '.', ':', ';']);
        let (by, _) = bare.split_once('@').unwrap_or((bare, ""));
        let word = match bare {
            _ if is_process(bare) => "HOST:PID".into(),
            _ if is_span(bare) => "SPAN".into(),
            _ if is_moment(bare) => "MOMENT".into(),
            _ if digits(bare) && bare.len() > 10 => "ID".into(),
            _ if bare.contains('@') && bare.contains('/') => format!("{by}@HOST"),
            _ => word.to_owned(),
        };
        words.push(word);
    }
    words.join(" ")
}

fn digits(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// `vm:6197`, and no address.
fn is_process(word: &str) -> bool {
    let parts = word.rsplit_once(':');
    parts.is_some_and(|(host, number)| digits(number) && !host.contains('.') && !digits(host))
}

/// `3ms`, `1.5s`, `2m`.
fn is_span(word: &str) -> bool {
    let number = word.trim_end_matches(['m', 's', 'h', 'd']);
    let numeric = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    number.len() < word.len() && !number.is_empty() && number.bytes().all(numeric)
}

/// `2026-01-31` or `09:07:15.391Z`.
fn is_moment(word: &str) -> bool {
    let plain = word
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"-:.Z".contains(&byte));
    let marks = |mark| word.matches(mark).count() == 2;
    plain && (marks('-') || marks(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_from_run_to_run_is_left_out() {
        let same = |one, other| assert_eq!(steady(one), steady(other));
        same("held   4ms by  a@vm/1689", "held 12.5s by a@other/7");
        same(
            "435330612615305  vm:6197 lock",
            "31825854787189 other:6 lock",
        );
        same(
            "created 2026-11-17 09:07:15.391Z\n",
            "created 2027-01-02 19:07:15.001Z",
        );
        for (one, other) in [
            ("fence 4294967297", "fence 4294967298"),
            ("client 127.0.0.1:7611", "client 127.0.0.1:7612"),
            ("2 passed", "3 passed"),
            ("a\nb", "b\na"),
        ] {
            assert_ne!(steady(one), steady(other));
        }
    }
}
