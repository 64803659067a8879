//! What the HTTP door may cost.

/// The limits of the HTTP front door. In the configuration file each has the same name with `http_` in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections without a request under way: those that have not sent a complete head yet, those kept open between
    /// requests, and those asking for `/healthz` or `/metrics`. One more closes the oldest of them.
    pub connections: usize,
    /// Requests under way, from the complete head to the last byte of the answer; one more is answered with 503. `/healthz`,
    /// `/metrics` and event streams do not count.
    pub requests: usize,
    /// Event streams; one more is answered with 503.
    pub streams: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Header fields of a request.
    pub head_fields: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Time for a complete head to arrive, counted from the connection's start or the end of the previous answer.
    pub head_ms: u64,
    /// Time for a complete body to arrive after its head.
    pub body_ms: u64,
    /// Time for the client to take a complete answer, or one event of a stream.
    pub answer_ms: u64,
}

/// The maximum number of connections, requests or streams that can be configured.
const COUNT_MAX: u64 = 100_000;
/// The maximum head that can be configured: hyper buffers a little more.
const HEAD_BYTES_MAX: u64 = 256 << 10;
const HEAD_FIELDS_MAX: u64 = 1_000;
const BODY_BYTES_MAX: u64 = 64 << 20;
/// An hour.
const TIME_MS_MAX: u64 = 3_600_000;

impl HttpLimits {
    /// The name, value and maximum of each limit.
    pub(crate) fn bounds(&self) -> [(&'static str, u64, u64); 9] {
        [
            ("http_connections", self.connections as u64, COUNT_MAX),
            ("http_requests", self.requests as u64, COUNT_MAX),
            ("http_streams", self.streams as u64, COUNT_MAX),
            ("http_head_bytes", self.head_bytes as u64, HEAD_BYTES_MAX),
            ("http_head_fields", self.head_fields as u64, HEAD_FIELDS_MAX),
            ("http_body_bytes", self.body_bytes as u64, BODY_BYTES_MAX),
            ("http_head_ms", self.head_ms, TIME_MS_MAX),
            ("http_body_ms", self.body_ms, TIME_MS_MAX),
            ("http_answer_ms", self.answer_ms, TIME_MS_MAX),
        ]
    }
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            // Together with requests and streams, fewer than the descriptors that the RESP front door leaves.
            connections: 128,
            requests: 32,
            streams: 64,
            head_bytes: 16 << 10,
            head_fields: 64,
            // A command with a job's body, every byte of it escaped as JSON.
            body_bytes: 4 << 20,
            head_ms: 10_000,
            body_ms: 30_000,
            answer_ms: 30_000,
        }
    }
}
