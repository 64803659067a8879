//! Just enough of gRPC over HTTP/2 to call one method at a time, so that etcd is asked the way its own clients ask and
//! not through its slower JSON gateway.

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// A frame's length and, with the end of the call, the message that it was answered with.
type Read<'a> = (usize, Option<&'a [u8]>);

/// The calling side of a connection.
#[derive(Debug, Default)]
pub(crate) struct Grpc {
    stream: u32,
    message: Vec<u8>,
}

impl Grpc {
    /// Opens the connection, and its window so wide that it need not be opened again.
    pub(crate) fn open(&self, out: &mut Vec<u8>) {
        const WIDER: u32 = (1 << 31) - 1 - 65_535;
        out.extend_from_slice(PREFACE);
        frame(out, SETTINGS, 0, 0, &[]);
        frame(out, WINDOW_UPDATE, 0, 0, &WIDER.to_be_bytes());
    }

    /// Calls a method with an encoded message.
    pub(crate) fn call(&mut self, path: &str, message: &[u8], out: &mut Vec<u8>) {
        self.stream = if self.stream == 0 { 1 } else { self.stream + 2 };
        self.message.clear();
        // HPACK without any table of our own: POST, http, then literals by index or by name.
        let mut headers = vec![0x83, 0x86];
        for (name, value) in [
            (&[0x04][..], path),
            (&[0x01], "localhost"),
            (&[0x0f, 0x10], "application/grpc"),
            (b"\x00\x02te", "trailers"),
        ] {
            headers.extend_from_slice(name);
            headers.push(value.len() as u8);
            headers.extend(value.bytes());
        }
        frame(out, HEADERS, END_HEADERS, self.stream, &headers);
        let mut data = vec![0];
        data.extend((message.len() as u32).to_be_bytes());
        data.extend_from_slice(message);
        frame(out, DATA, END_STREAM, self.stream, &data);
    }

    /// Reads one frame, if it is whole.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Read<'_>>, String> {
        let Some(head) = input.get(..HEAD_BYTES) else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let Some(body) = input.get(HEAD_BYTES..HEAD_BYTES + length) else {
            return Ok(None);
        };
        match kind {
            DATA => self.message.extend_from_slice(body),
            SETTINGS if flags & ACK == 0 => frame(out, SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => frame(out, PING, ACK, 0, body),
            RESET | GO_AWAY => return Err(format!("the server ended the call: {body:?}")),
            _ => {}
        }
        let ended = matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
        let message = match (ended, self.message.get(5..)) {
            (false, _) => None,
            (true, Some(message)) => Some(message),
            (true, None) => {
                let why = String::from_utf8_lossy(body);
                return Err(format!("the call was refused: {why:?}"));
            }
        };
        Ok(Some((HEAD_BYTES + length, message)))
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, body: &[u8]) {
    out.extend_from_slice(&(body.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(body);
}

/// A protobuf field of bytes.
pub(crate) fn bytes_field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    field.extend(varint(bytes.len() as u64));
    field.extend_from_slice(bytes);
    field
}

/// A protobuf field of a number.
pub(crate) fn number_field(number: u8, value: u64) -> Vec<u8> {
    let mut field = vec![number << 3];
    field.extend(varint(value));
    field
}

/// The value of a field of bytes in a message.
pub(crate) fn find_bytes(message: &[u8], wanted: u8) -> Option<&[u8]> {
    all_bytes(message, wanted).next()
}

/// The values of a field of bytes that is repeated in a message.
pub(crate) fn all_bytes(message: &[u8], wanted: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = message;
    std::iter::from_fn(move || {
        loop {
            let (tag, after) = read_varint(rest)?;
            let (value, after) = read_varint(after)?;
            match tag & 7 {
                0 => rest = after,
                2 => {
                    let (bytes, after) = after.split_at_checked(value as usize)?;
                    rest = after;
                    if tag >> 3 == u64::from(wanted) {
                        return Some(bytes);
                    }
                }
                _ => return None,
            }
        }
    })
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}
