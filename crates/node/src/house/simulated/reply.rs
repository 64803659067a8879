//! What a client reads from its connection, in version 3 of the protocol.

/// A reply, or a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Number(u64),
    Text(String),
    Error(String),
    Null,
    /// For a map, keys and values in turn.
    List(Vec<Said>),
    Push(Vec<Said>),
}

impl Said {
    /// Takes the first reply off the front, if it is complete.
    pub(super) fn read(bytes: &mut Vec<u8>) -> Option<Said> {
        let mut at = 0;
        let said = read(bytes, &mut at)?;
        bytes.drain(..at);
        Some(said)
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Said::Text(text) | Said::Error(text) => text,
            _ => "",
        }
    }

    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Said::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> &[Said] {
        match self {
            Said::List(list) | Said::Push(list) => list,
            _ => &[],
        }
    }

    /// A map's list under a key.
    pub(super) fn of(&self, key: &str) -> &[Said] {
        self.value(key).map_or(&[], Said::list)
    }

    /// A map's value under a key.
    pub(super) fn value(&self, key: &str) -> Option<&Said> {
        let mut pairs = self.list().chunks(2);
        let pair = pairs.find(|pair| pair[0].text() == key);
        pair.and_then(|pair| pair.get(1))
    }
}

fn read(bytes: &[u8], at: &mut usize) -> Option<Said> {
    let rest = bytes.get(*at..)?;
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let (kind, line) = rest[..end].split_first()?;
    let line = String::from_utf8_lossy(line).into_owned();
    *at += end + 2;
    let count = || line.parse::<usize>().ok();
    let mut several =
        |count: usize| -> Option<Vec<Said>> { (0..count).map(|_| read(bytes, at)).collect() };
    Some(match kind {
        b':' => Said::Number(line.parse().ok()?),
        b'+' => Said::Text(line),
        b'-' => Said::Error(line),
        b'_' => Said::Null,
        b'*' => several(count()?).map(Said::List)?,
        b'%' => several(2 * count()?).map(Said::List)?,
        b'>' => several(count()?).map(Said::Push)?,
        b'$' => {
            let count = count()?;
            let text = bytes.get(*at..*at + count)?;
            bytes.get(*at + count + 1)?;
            *at += count + 2;
            Said::Text(String::from_utf8_lossy(text).into_owned())
        }
        other => panic!("a reply of kind {}", char::from(*other)),
    })
}
