//! Words of the wire in JSON and back. A word is a string; one that is not UTF-8 is `{"base64": "…"}`, in both directions, so
//! that no byte is lost and text stays readable.

use std::fmt;

use base64::prelude::{BASE64_STANDARD, Engine};
use redis_protocol::resp3::types::BytesFrame;
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

/// Cap on words of one command.
pub(super) const WORDS_MAX: usize = 1_000;

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said(pub(super) Vec<u8>);

impl Said {
    /// The word in capitals, as keywords are compared, cut to fit a sentence.
    pub(super) fn capitals(&self) -> String {
        const SHOWN_BYTES_MAX: usize = 64;
        let shown = &self.0[..self.0.len().min(SHOWN_BYTES_MAX)];
        String::from_utf8_lossy(shown).to_ascii_uppercase()
    }
}

impl From<&str> for Said {
    fn from(text: &str) -> Said {
        Said(text.into())
    }
}

/// The words in a body, or what is wrong with it.
pub(super) fn read_words(body: &[u8]) -> Result<Vec<Said>, String> {
    let words: Words = serde_json::from_slice(body).map_err(|why| {
        format!("the body is not a command as JSON, such as [\"JOB\", \"SHOW\", \"17\"]: {why}")
    })?;
    Ok(words.0)
}

struct Words(Vec<Said>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
        deserializer.deserialize_seq(WordsVisitor)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of words")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Words, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = seq.next_element::<Word>()? {
            if words.len() == WORDS_MAX {
                return Err(A::Error::custom(format!("more than {WORDS_MAX} words")));
            }
            words.push(Said(match word {
                Word::Text(text) => text.into_bytes(),
                Word::Bytes { base64 } => {
                    let bytes = BASE64_STANDARD.decode(base64);
                    bytes.map_err(|why| A::Error::custom(format!("base64: {why}")))?
                }
            }));
        }
        Ok(Words(words))
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a word is a string, or {\"base64\": \"…\"} for bytes that are not text"
)]
enum Word {
    Text(String),
    Bytes { base64: String },
}

/// An answer of the node as JSON; an error is its line.
pub(super) fn answer_json(frame: BytesFrame) -> Result<Value, String> {
    Ok(match frame {
        BytesFrame::BlobString { data, .. }
        | BytesFrame::SimpleString { data, .. }
        | BytesFrame::VerbatimString { data, .. }
        | BytesFrame::BigNumber { data, .. } => text_json(&data),
        BytesFrame::SimpleError { data, .. } => return Err(data.to_string()),
        BytesFrame::BlobError { data, .. } => {
            return Err(String::from_utf8_lossy(&data).into_owned());
        }
        BytesFrame::Boolean { data, .. } => json!(data),
        BytesFrame::Number { data, .. } => json!(data),
        BytesFrame::Double { data, .. } => json!(data),
        BytesFrame::Array { data, .. } | BytesFrame::Push { data, .. } => {
            let items: Result<Vec<Value>, String> = data.into_iter().map(answer_json).collect();
            Value::Array(items?)
        }
        BytesFrame::Map { data, .. } => {
            let mut map = Map::new();
            for (key, value) in data {
                let key = match answer_json(key)? {
                    Value::String(key) => key,
                    key => key.to_string(),
                };
                map.insert(key, answer_json(value)?);
            }
            Value::Object(map)
        }
        _ => Value::Null,
    })
}

fn text_json(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "base64": BASE64_STANDARD.encode(bytes) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{frugally, inputs};

    #[test]
    fn bytes_that_are_not_text_survive() {
        let words = read_words(br#"["JOB", "\u00f1", {"base64": "/wAK"}]"#).expect("words");
        let wanted = [Said::from("JOB"), Said::from("ñ"), Said(vec![255, 0, 10])];
        assert_eq!(words, wanted);
        assert_eq!(text_json(&[255, 0, 10]), json!({ "base64": "/wAK" }));
        assert_eq!(text_json("ñ\0".as_bytes()), json!("ñ\0"));
    }

    #[test]
    fn what_is_no_command_is_refused_with_why() {
        let many = format!("[{}\"x\"]", "\"x\",".repeat(WORDS_MAX));
        for (body, why) in [
            ("", "EOF"),
            ("{}", "an array of words"),
            ("\"PING\"", "an array of words"),
            ("[1]", "a word is a string"),
            ("[null]", "a word is a string"),
            ("[[\"a\"]]", "a word is a string"),
            ("[\"a\"] [\"b\"]", "trailing"),
            ("[{\"base64\": \"%\"}]", "base64"),
            (many.as_str(), "more than 1000 words"),
        ] {
            let refusal = read_words(body.as_bytes()).expect_err(body);
            assert!(refusal.contains(why), "{body}: {refusal}");
        }
        assert!(read_words(b"[\"\xff\"]").is_err(), "JSON is UTF-8");
    }

    /// Random and mutated bodies yield words or a sentence, never a panic, and never take more memory than they justify.
    #[test]
    fn no_body_panics_or_takes_much() {
        const INPUTS: u64 = 50_000;
        const ALPHABET: &[u8] = b"[]{}\",:\\u0/d8base64=\0\xff 1e9-";
        let samples = [
            r#"["JOB","MOVE","17","shop/orders"]"#,
            r#"["JOB","CREATE","q","*",{"base64":"AAEC/w=="}]"#,
            r#"["\ud83d\ude00",{"base64":""},"\u0000"]"#,
        ];
        let (mut all, mut read) = (0, 0);
        inputs(INPUTS, |chance| {
            let mut bytes = match chance.below(6) {
                0 => chance.bytes(80),
                _ => chance.one(&samples).as_bytes().to_vec(),
            };
            chance.mutate(&mut bytes, ALPHABET, 3);
            all += 1;
            if let Ok(words) = frugally(&bytes, || read_words(&bytes)) {
                read += 1;
                let said: usize = words.iter().map(|word| word.0.len()).sum();
                assert!(said <= bytes.len());
            }
        });
        assert!(read > all / 50, "too few are commands: {read} of {all}");
    }
}
