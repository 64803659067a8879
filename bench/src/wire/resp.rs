//! RESP, version 2: commands, and the answers to them.

/// A command as RESP writes it.
pub(crate) fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    write(&mut bytes, &words);
    bytes
}

/// Writes a command of any bytes.
pub(crate) fn write(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend(format!("*{}\r\n", words.len()).bytes());
    for word in words {
        out.extend(format!("${}\r\n", word.len()).bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// An answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply<'a> {
    /// A simple string.
    Said(&'a str),
    Number(u64),
    Bytes(&'a [u8]),
    Null,
    List(Vec<Reply<'a>>),
}

impl<'a> Reply<'a> {
    pub(crate) fn list(&self) -> &[Reply<'a>] {
        match self {
            Reply::List(list) => list,
            _ => &[],
        }
    }

    pub(crate) fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Reply::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Reply::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// Reads one answer and says how long it is; nothing while it is incomplete.
pub(crate) fn reply(input: &[u8]) -> Result<Option<(usize, Reply<'_>)>, String> {
    let Some(first) = line(input)? else {
        return Ok(None);
    };
    let mut used = first.len() + 2;
    let (kind, rest) = first.split_at(1);
    let number = || rest.parse::<i64>().map_err(|_| unexpected(first));
    let answer = match kind {
        "+" => Reply::Said(rest),
        ":" => Reply::Number(rest.parse().map_err(|_| unexpected(first))?),
        "$" if number()? >= 0 => {
            let end = used + number()? as usize;
            if input.len() < end + 2 {
                return Ok(None);
            }
            let bytes = &input[used..end];
            used = end + 2;
            Reply::Bytes(bytes)
        }
        "*" if number()? >= 0 => {
            let mut list = Vec::new();
            for _ in 0..number()? {
                let Some((length, one)) = reply(&input[used..])? else {
                    return Ok(None);
                };
                used += length;
                list.push(one);
            }
            Reply::List(list)
        }
        "$" | "*" | "_" => Reply::Null,
        _ => return Err(unexpected(first)),
    };
    Ok(Some((used, answer)))
}

/// The first line, if it is whole.
pub(crate) fn line(input: &[u8]) -> Result<Option<&str>, String> {
    let end = input.windows(2).position(|pair| pair == b"\r\n");
    let Some(line) = end.map(|end| &input[..end]) else {
        return Ok(None);
    };
    match std::str::from_utf8(line) {
        Ok(line) if !line.is_empty() => Ok(Some(line)),
        _ => Err(format!("the server said {line:?}")),
    }
}

/// For an answer that makes no sense here.
pub(crate) fn unexpected(line: &str) -> String {
    format!("the server said `{line}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_when_it_is_whole() {
        let whole = b"*4\r\n:7\r\n$2\r\n\r\n\r\n$-1\r\n*1\r\n+OK\r\n";
        let said = Reply::List(vec![Reply::Said("OK")]);
        let list = vec![Reply::Number(7), Reply::Bytes(b"\r\n"), Reply::Null, said];
        assert_eq!(reply(whole), Ok(Some((whole.len(), Reply::List(list)))));
        for end in 0..whole.len() {
            assert_eq!(reply(&whole[..end]), Ok(None), "{end}");
        }
        assert!(reply(b"-NOQUEUE x\r\n").is_err());
    }
}
