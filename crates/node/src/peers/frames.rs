//! Frames on a connection between nodes: a length, the bytes, and, if there is a secret, a code over the bytes and the
//! frame's position, so that none can be changed, left out or repeated.

use bytes::{Buf, Bytes, BytesMut};
use ring::hmac;
use testigo_engine::FRAME_BYTES_MAX;

use super::greeting::same;

const LENGTH_BYTES: usize = 4;
const CODE_BYTES: usize = 16;

/// What a node hears instead of a verdict if it does not know the secret: an empty frame without a code.
pub(super) const UNPROVEN: [u8; LENGTH_BYTES + CODE_BYTES] = [0; LENGTH_BYTES + CODE_BYTES];

/// Writes frames for a connection.
#[derive(Debug)]
pub(super) struct Sealer {
    key: Option<hmac::Key>,
    position: u64,
}

/// Reads frames from a connection.
#[derive(Debug)]
pub(super) struct Opener {
    key: Option<hmac::Key>,
    position: u64,
    bytes_max: usize,
}

/// Why a connection is cut off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FramesError {
    #[error("a frame of {0} bytes")]
    Length(usize),
    #[error("a frame whose code is wrong")]
    Code,
}

impl Sealer {
    pub(super) fn new(key: Option<hmac::Key>) -> Sealer {
        Sealer { key, position: 0 }
    }

    /// Appends a frame.
    pub(super) fn seal(&mut self, frame: &[u8], into: &mut Vec<u8>) {
        debug_assert!(frame.len() <= FRAME_BYTES_MAX);
        into.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        into.extend_from_slice(frame);
        if let Some(key) = &self.key {
            into.extend_from_slice(&code(key, self.position, frame));
        }
        self.position += 1;
    }
}

impl Opener {
    pub(super) fn new(key: Option<hmac::Key>, bytes_max: usize) -> Opener {
        Opener {
            key,
            position: 0,
            bytes_max,
        }
    }

    /// From now on frames may be this long.
    pub(super) fn allow(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// The next complete frame.
    pub(super) fn next(&mut self, bytes: &mut BytesMut) -> Result<Option<Bytes>, FramesError> {
        let Some(length) = bytes.first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > self.bytes_max {
            return Err(FramesError::Length(length));
        }
        let code_bytes = self.key.as_ref().map_or(0, |_| CODE_BYTES);
        let whole = LENGTH_BYTES + length + code_bytes;
        if bytes.len() < whole {
            // A long frame is read into memory that need not move.
            bytes.reserve(whole - bytes.len());
            return Ok(None);
        }
        bytes.advance(LENGTH_BYTES);
        let frame = bytes.split_to(length).freeze();
        if let Some(key) = &self.key {
            let given = bytes.split_to(CODE_BYTES);
            if !same(&code(key, self.position, &frame), &given) {
                return Err(FramesError::Code);
            }
        }
        self.position += 1;
        Ok(Some(frame))
    }
}

fn code(key: &hmac::Key, position: u64, frame: &[u8]) -> [u8; CODE_BYTES] {
    let mut context = hmac::Context::with_key(key);
    context.update(&position.to_le_bytes());
    context.update(frame);
    let mut code = [0; CODE_BYTES];
    code.copy_from_slice(&context.sign().as_ref()[..CODE_BYTES]);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Option<hmac::Key> {
        Some(hmac::Key::new(hmac::HMAC_SHA256, b"key"))
    }

    fn sealed(key: Option<hmac::Key>, frames: &[&[u8]]) -> Vec<u8> {
        let (mut sealer, mut bytes) = (Sealer::new(key), Vec::new());
        for frame in frames {
            sealer.seal(frame, &mut bytes);
        }
        bytes
    }

    fn opened(key: Option<hmac::Key>, bytes: &[u8]) -> Result<Vec<Bytes>, FramesError> {
        let mut opener = Opener::new(key, 100);
        let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
        for byte in bytes {
            buffer.extend_from_slice(&[*byte]);
            while let Some(frame) = opener.next(&mut buffer)? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    #[test]
    fn frames_come_out_as_they_went_in_byte_by_byte() {
        for key in [None, key()] {
            let bytes = sealed(key.clone(), &[b"one", b"", b"three"]);
            let frames = opened(key, &bytes).unwrap();
            assert_eq!(frames, [&b"one"[..], b"", b"three"]);
        }
    }

    #[test]
    fn nothing_is_changed_left_out_repeated_or_too_long() {
        let good = sealed(key(), &[b"one", b"two"]);
        let one = good.len() / 2;
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            let frames = opened(key(), &bytes).map(|frames| frames.len());
            assert!(frames.is_err() || frames == Ok(1), "byte {at}: {frames:?}");
        }
        let repeated = [&good[..one], &good[..one]].concat();
        assert_eq!(opened(key(), &repeated), Err(FramesError::Code));
        assert_eq!(opened(key(), &good[one..]), Err(FramesError::Code));
        let long = sealed(None, &[&[0; 101]]);
        assert_eq!(opened(None, &long), Err(FramesError::Length(101)));
    }
}
