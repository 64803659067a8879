//! Patterns of names: `*` stands for any text and `?` for any one character. Whoever writes a pattern may wish the node ill,
//! so it has limits, and matching reads each byte of a name once.

use crate::error::{Refusal, Word};
use crate::limits::Limits;

/// A checked pattern, of the size of its text. To match many names with it, make a [`Matcher`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Box<str>);

/// A pattern that is ready to match. It simulates the automaton whose states say how much of the pattern has been read, all
/// states at once, one bit each: a step per byte of the name and 64 bytes of the pattern, whatever they contain.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// How many bytes and `?` there are: the number of the last state.
    end: usize,
    /// How many words the states have.
    words: usize,
    /// For each byte, into which states it leads from the states before them.
    leads: Box<[u64]>,
    /// The states in front of a `*`, which every byte leaves as they are.
    stars: Box<[u64]>,
    /// Those, and the states behind a `?`, which stay until the character is over.
    within: Box<[u64]>,
}

impl Pattern {
    /// Reads a pattern. Several `*` in a row are one. Refused with `BADARG` if it exceeds [`Limits::PATTERN_BYTES`] or
    /// [`Limits::PATTERN_STARS`] then.
    pub fn new(text: &str) -> Result<Pattern, Refusal> {
        let (mut folded, mut bytes, mut stars) = (String::new(), 0, 0);
        let mut last = None;
        for found in text.chars() {
            if (last.replace(found), found) == (Some('*'), '*') {
                continue;
            }
            stars += usize::from(found == '*');
            bytes += found.len_utf8();
            // What is too long is only counted.
            if bytes <= Limits::PATTERN_BYTES {
                folded.push(found);
            }
        }
        let refused = |what: String| Err(Refusal::new(Word::BadArg, what));
        if bytes > Limits::PATTERN_BYTES {
            let most = Limits::PATTERN_BYTES;
            return refused(format!(
                "a pattern has {bytes} bytes; at most {most} are allowed, the limit pattern_bytes"
            ));
        }
        if stars > Limits::PATTERN_STARS {
            let most = Limits::PATTERN_STARS;
            return refused(format!(
                "a pattern has {stars} stars; at most {most} are allowed, the limit pattern_stars"
            ));
        }
        Ok(Pattern(folded.into()))
    }

    /// The pattern that every text matches.
    pub fn any() -> Pattern {
        Pattern("*".into())
    }

    /// Whether one text matches.
    pub fn fits(&self, text: &str) -> bool {
        let head = self.0.find(['*', '?']).unwrap_or(self.0.len());
        text.as_bytes().starts_with(&self.0.as_bytes()[..head]) && self.matcher().fits(text)
    }

    /// The pattern, ready to match many texts.
    pub fn matcher(&self) -> Matcher {
        let end = self.0.bytes().filter(|byte| *byte != b'*').count();
        let words = end / 64 + 1;
        let mut matcher = Matcher {
            end,
            words,
            leads: vec![0; 256 * words].into(),
            stars: vec![0; words].into(),
            within: vec![0; words].into(),
        };
        let mut state = 0;
        for byte in self.0.bytes() {
            match byte {
                b'*' => {
                    set(&mut matcher.stars, state);
                    set(&mut matcher.within, state);
                }
                b'?' => {
                    state += 1;
                    let firsts = (0..=u8::MAX).filter(|byte| !continues(*byte));
                    firsts.for_each(|first| set(matcher.leads_mut(first), state));
                    set(&mut matcher.within, state);
                }
                byte => {
                    state += 1;
                    set(matcher.leads_mut(byte), state);
                }
            }
        }
        matcher
    }
}

impl Matcher {
    /// Whether a text matches.
    pub fn fits(&self, text: &str) -> bool {
        self.run(text, &mut 0)
    }

    /// What it costs to match a name, in looks at a row without a pattern.
    pub fn weight(&self) -> usize {
        self.words
    }

    fn run(&self, text: &str, steps: &mut usize) -> bool {
        // A state's word and bit: never more words than a pattern of the limit has.
        let mut states = [0u64; Limits::PATTERN_BYTES / 64 + 1];
        let states = &mut states[..self.words];
        states[0] = 1;
        for byte in text.bytes() {
            let leads = &self.leads[usize::from(byte) * self.words..][..self.words];
            let stays = match continues(byte) {
                true => &self.within,
                false => &self.stars,
            };
            let (mut carry, mut any) = (0, 0);
            for ((state, lead), stay) in states.iter_mut().zip(leads).zip(stays) {
                *steps += 1;
                let moved = *state << 1 | carry;
                carry = *state >> 63;
                *state = moved & lead | *state & stay;
                any |= *state;
            }
            if any == 0 {
                return false;
            }
        }
        states[self.end / 64] >> (self.end % 64) & 1 == 1
    }

    fn leads_mut(&mut self, byte: u8) -> &mut [u64] {
        &mut self.leads[usize::from(byte) * self.words..][..self.words]
    }
}

fn set(states: &mut [u64], state: usize) {
    states[state / 64] |= 1 << (state % 64);
}

/// Whether a byte belongs to the character that an earlier byte began.
fn continues(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The obvious way: greedy, back to the last star. Correct, and slow for who wishes it so.
    fn greedy(text: &str, pattern: &str, steps: &mut usize) -> bool {
        let (text, pattern): (Vec<char>, Vec<char>) =
            (text.chars().collect(), pattern.chars().collect());
        let (mut t, mut p, mut retry) = (0, 0, None);
        loop {
            *steps += 1;
            match pattern.get(p) {
                Some('*') => {
                    retry = Some((t, p + 1));
                    p += 1;
                    continue;
                }
                Some(wanted) if t < text.len() && (*wanted == '?' || *wanted == text[t]) => {
                    (t, p) = (t + 1, p + 1);
                    continue;
                }
                None if t == text.len() => return true,
                _ => {}
            }
            let Some((from, star)) = &mut retry else {
                return false;
            };
            *from += 1;
            if *from > text.len() {
                return false;
            }
            (t, p) = (*from, *star);
        }
    }

    fn fits(text: &str, pattern: &str) -> bool {
        let pattern = Pattern::new(pattern).unwrap();
        let fits = pattern.fits(text);
        assert_eq!(pattern.matcher().fits(text), fits);
        fits
    }

    /// All texts of these characters of up to this length.
    fn texts(characters: &[char], most: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..most {
            let until = all.len();
            for at in from..until {
                let longer = characters.iter().map(|next| format!("{}{next}", all[at]));
                let longer: Vec<String> = longer.collect();
                all.extend(longer);
            }
            from = until;
        }
        all
    }

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (text, pattern, fit) in [
            ("deploy", "*", true),
            ("deploy", "d*y", true),
            ("deploy", "d?ploy", true),
            ("deploy", "d*x", false),
            ("deploy", "deploy?", false),
            ("a.b.c", "*.c", true),
            ("aaab", "*ab", true),
            ("", "*", true),
            ("ab", "", false),
            ("é", "?", true),
            ("é", "??", false),
        ] {
            assert_eq!(fits(text, pattern), fit, "{text} {pattern}");
        }
    }

    #[test]
    fn every_short_pattern_fits_what_it_should() {
        let names = texts(&['a', 'b', 'é', '€'], 4);
        for pattern in texts(&['a', 'é', '*', '?'], 4) {
            for name in &names {
                let wanted = greedy(name, &pattern, &mut 0);
                assert_eq!(fits(name, &pattern), wanted, "{name} {pattern}");
            }
        }
    }

    #[test]
    fn a_long_pattern_fits_across_its_words() {
        for length in [62, 63, 64, 65, 127, 128, 129, 250] {
            let name = "é".repeat(length / 2) + &"x".repeat(length % 2) + "end";
            for pattern in [
                name.clone(),
                format!("{}*end", "?".repeat(length / 2)),
                format!("*{}", &name[name.len() / 4 * 2..]),
            ] {
                assert!(fits(&name, &pattern), "{length} {pattern}");
                assert!(!fits(&format!("{name}s"), &pattern), "{length} {pattern}");
            }
        }
    }

    #[test]
    fn a_hostile_pattern_costs_a_step_per_byte_and_word() {
        let name = "a".repeat(Limits::NAME_BYTES);
        let bound = |pattern: &Pattern| name.len() * (pattern.0.len() / 64 + 1);
        let stars = Limits::PATTERN_STARS;
        let (mut worst, mut slow) = (0, 0);
        for pattern in [
            format!("*{}b", "a".repeat(Limits::NAME_BYTES / 2)),
            format!("*{}b", "?".repeat(Limits::NAME_BYTES / 2)),
            "*aaaaaaaaaaaaaaa?".repeat(stars - 1) + "*b",
            "*".to_owned() + &"?".repeat(Limits::PATTERN_BYTES - 1),
        ] {
            let checked = Pattern::new(&pattern).unwrap();
            let mut steps = 0;
            assert!(!checked.matcher().run(&name, &mut steps));
            assert!(steps <= bound(&checked), "{pattern}: {steps}");
            worst = worst.max(steps);
            let mut steps = 0;
            greedy(&name, &pattern, &mut steps);
            slow = slow.max(steps / bound(&checked));
        }
        assert!(worst > Limits::NAME_BYTES, "no pattern was long");
        assert!(slow > 10, "the bound finds the greedy way");
    }

    #[test]
    fn what_is_too_long_or_has_too_many_stars_is_refused() {
        let most = |text: &str| Pattern::new(text).map(|pattern| pattern.0.len());
        let refused = |text: &str| Pattern::new(text).unwrap_err().to_string();
        assert_eq!(most(&"x".repeat(512)), Ok(512));
        assert_eq!(
            refused(&"x".repeat(2 << 20)),
            "BADARG a pattern has 2097152 bytes; at most 512 are allowed, the limit pattern_bytes"
        );
        assert_eq!(most(&"*".repeat(2 << 20)), Ok(1), "that is one star");
        assert_eq!(most(&"**x".repeat(8)), Ok(16));
        assert_eq!(
            refused(&"*x".repeat(9)),
            "BADARG a pattern has 9 stars; at most 8 are allowed, the limit pattern_stars"
        );
        assert_eq!(Pattern::new("*"), Ok(Pattern::any()));
    }
}
