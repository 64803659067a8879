//! A job's body: bytes that nobody here interprets. It is shared, so that passing it on copies nothing, and stored as one run
//! of bytes.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The bytes of a job, or the value of a candidate.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Body(Option<Arc<[u8]>>);

impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Body {
        // A job by reference has an empty body, which costs nothing.
        Body((!bytes.is_empty()).then(|| Arc::from(bytes)))
    }
}

impl Deref for Body {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Body, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Body;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the bytes of a body")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Body, E> {
                Ok(Body::from(bytes))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}
